"""Whitening and independent component analysis."""

import warnings
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skident._compat import Interval, StrOptions, fit_context
from skident._math import contrasts, ica
from skident._math.whitening import SOLVERS, centred_product, whiten
from skident._random import draw_seed, generator
from skident._validation import as_rows, describe_column, validate_rows

_STABLE = 0.9
_NAMED = 10


class WhitenICA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Independent components of unit variance, in an order that does not vary.

    Rows are centred, whitened within the rank of the data and rotated so that the
    contrast :math:`G` of the components is stationary:

    .. math:: y = R K (x - \mu), \qquad \min_{R R' = I} \sum_i s_i \,
        \mathrm E[G(y_i)], \qquad
        s_i = \mathrm{sign}(\mathrm E[G''(y_i)] - \mathrm E[G'(y_i) y_i]).

    Parameters
    ----------
    n_components : int or float in (0, 1), default=None
        Number of principal directions that are whitened: all within the rank; at most
        so many; or the fewest that explain this part of the variance.
    contrast : {"logcosh", "exp", "cube"}, default="logcosh"
        :math:`G`: ln cosh y for most data, -exp(-y²/2) for very heavy tails, y⁴/4
        (kurtosis) for light tails.
    whiten_solver : {"auto", "svd", "eigh"}, default="auto"
        "eigh" of the correlation matrix, fast for many rows; "svd" of the scaled rows;
        "auto" is "eigh" if there are more rows than columns.
    rank_tol : float, default=None
        Directions of the columns, scaled to unit variance, whose standard deviation is
        below ``rank_tol`` times the largest are cut, by either solver; None is 1e-6.
    max_iter : int, default=200
        Most passes over the rows in each start.
    tol : float, default=1e-4
        Largest entry of the gradient,
        :math:`|s_i \mathrm E[G'(y_i) y_j] - s_j \mathrm E[G'(y_j) y_i]|`, at which the
        solver stops.
    n_restarts : int, default=1
        Number of starts. The first depends on the data alone; the others start at
        random on a random half of the rows and finish on all of them. The best
        objective is kept.
    random_state : int, RandomState instance or None, default=None
        Seed of the restarts; without them nothing is random.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unmixing matrix in input space: ``transform(X) = (X - mean_) @ components_.T``.
    mixing_ : ndarray of shape (n_features, n_components)
        Its right inverse: the contribution of each component, in input units.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows.
    whitening_ : ndarray of shape (n_components, n_features)
        :math:`K`: rows scaled and turned to principal axes.
    rotation_ : ndarray of shape (n_components, n_components)
        :math:`R`, orthogonal: ``components_ = rotation_ @ whitening_``.
    explained_variance_ : ndarray of shape (n_components,)
        Variance that each component adds to the input (squared norm of its column of
        ``mixing_``), descending.
    rank_ : int
        Number of independent directions of the rows.
    n_components_ : int
        Number of components.
    n_iter_ : int
        Passes over all rows in the start that was kept.
    converged_ : bool
        Whether the gradient fell to ``tol``.
    criterion_ : float
        The gradient at the end.
    sub_gaussian_ : ndarray of bool of shape (n_components,)
        Whether a component has lighter tails than a Gaussian, by the sign
        :math:`s_i`.
    stability_ : ndarray of shape (n_components,)
        Only if ``n_restarts > 1``. How well each component is found again, in [0, 1]:
        the mean over restarts of the squared correlation between its counterparts in
        two random halves of the rows. A warning names components below 0.9: Gaussian,
        or too few rows. Two restarts give a hint, six a number.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if they have names.

    See Also
    --------
    skident.PermutationAligner : Match the components of two fits.
    skident.metrics.amari_distance : Compare mixing matrices.

    Notes
    -----
    Components are ordered by ``explained_variance_`` (equal ones by the input column of
    their largest entry) and signed so that the entry of ``mixing_`` of largest absolute
    value is positive. Outputs have variance 1 with divisor ``n_samples`` on the rows of
    ``fit``. Everything is solved in float64; ``transform`` returns the float type it is
    given.

    Constant columns have zero rows in ``mixing_`` and come back by ``mean_`` in
    ``inverse_transform``. Linearly dependent or constant columns, and more columns
    than rows, lower ``rank_`` with one warning.

    ``score`` is comparable between contrasts and numbers of components, as it is a
    density on the whole ``rank_``-dimensional space of the data: each component has the
    hyperbolic secant density 1/(2 cosh(πy/2)), or if ``sub_gaussian_`` the mean of
    two normal densities at ±1/√2 of variance 1/2 (both of unit variance);
    principal directions left out are normal, with one common variance, their mean.

    References
    ----------
    .. [1] A. Hyvarinen, "Fast and robust fixed-point algorithms for independent
       component analysis", IEEE Trans. Neural Networks 10 (1999), 626.
    .. [2] P. Ablin, J.-F. Cardoso, A. Gramfort, "Faster ICA under orthogonal
       constraint", ICASSP 2018.
    .. [3] Nelson, Fumero, Karaletsos, Locatello, "Statistical and structural
       identifiability in representation learning", ICLR 2026, theorem 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skident import WhitenICA
    >>> rng = np.random.default_rng(0)
    >>> sources = rng.laplace(size=(2000, 2)) / np.sqrt(2)
    >>> mixing = np.array([[3.0, 1.0], [1.0, 1.0]])
    >>> ica = WhitenICA().fit(sources @ mixing.T)
    >>> ica.mixing_.round()
    array([[3., 1.],
           [1., 1.]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "contrast": [StrOptions(set(contrasts.CONTRASTS))],
        "whiten_solver": [StrOptions(set(SOLVERS))],
        "rank_tol": [None, Interval(Real, 0, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_restarts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components=None,
        *,
        contrast="logcosh",
        whiten_solver="auto",
        rank_tol=None,
        max_iter=200,
        tol=1e-4,
        n_restarts=1,
        random_state=None,
    ):
        self.n_components = n_components
        self.contrast = contrast
        self.whiten_solver = whiten_solver
        self.rank_tol = rank_tol
        self.max_iter = max_iter
        self.tol = tol
        self.n_restarts = n_restarts
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find the components of the rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            At least two rows, not all equal.
        y : None
            Ignored.

        Returns
        -------
        WhitenICA
            Itself.

        Raises
        ------
        ValueError
            For NaN, infinity, sparse data, one row, constant data, or more
            components than columns.
        """
        X = validate_rows(self, X, reset=True, min_samples=2)
        self._check_n_components(X.shape[1])
        white = whiten(
            X, self.n_components, solver=self.whiten_solver, rank_tol=self.rank_tol
        )
        self._warn_of_rank(white)
        solution, halves = ica.solve_often(
            centred_product(X, white.mean, white.whitening),
            self._restart_generators(),
            contrast=self.contrast,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self._store(white, solution, halves)
        self._warn_of_solution()
        return self

    def transform(self, X):
        """Return the components of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            float32 if ``X`` is, else float64.
        """
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False)
        Y = centred_product(X, self.mean_, self.components_)
        return Y.astype(X.dtype, copy=False)

    def inverse_transform(self, X):
        """Return the rows in input space that have the given components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Components.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The rows themselves if all components were kept, up to rounding.
        """
        check_is_fitted(self)
        X = as_rows(X, name="X")
        if X.shape[1] != self.n_components_:
            raise ValueError(
                f"X has shape {X.shape}, but inverse_transform needs "
                f"{self.n_components_} components as columns."
            )
        return (X @ self.mixing_.T + self.mean_).astype(X.dtype, copy=False)

    def score_samples(self, X):
        """Return the log-likelihood of each row (see Notes), in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            What lies outside the space spanned by the rows of ``fit`` does not count.
        """
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False)
        Y = centred_product(X, self.mean_, self.components_)
        kept, left = np.split(self._principal_variances, [self.n_components_])
        total = contrasts.source_log_density(Y, self.sub_gaussian_).sum(axis=1)
        total -= 0.5 * np.log(kept).sum()
        if left.size:
            axes = self._principal_axes[:, self.n_components_ :]
            E = centred_product(X, self.mean_, axes.T)
            noise = left.mean()
            total -= 0.5 * np.einsum("ij,ij->i", E, E) / noise
            total -= 0.5 * left.size * np.log(2 * np.pi * noise)
        return total

    def score(self, X, y=None):
        """Return the mean log-likelihood of rows (see Notes), in nats a row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, best not those of ``fit``.
        y : None
            Ignored.

        Returns
        -------
        float
            Greater is better.
        """
        return float(np.mean(self.score_samples(X)))

    def _check_n_components(self, n_features):
        if self.n_components is not None and self.n_components > n_features:
            raise ValueError(
                f"n_components={self.n_components} is more than the {n_features} "
                "column(s) of X."
            )

    def _restart_generators(self):
        if self.n_restarts == 1:
            return []
        seed = draw_seed(self.random_state)
        return [generator(seed, k) for k in range(1, self.n_restarts)]

    def _store(self, white, solution, halves):
        """Put components in canonical order and keep what was found."""
        order, signs = ica.canonical_order(white.dewhitening @ solution.rotation.T)
        self.mean_ = white.mean
        self.whitening_ = white.whitening
        self.rotation_ = signs[:, None] * solution.rotation[order]
        self.components_ = self.rotation_ @ white.whitening
        self.mixing_ = white.dewhitening @ self.rotation_.T
        self.explained_variance_ = np.sum(self.mixing_**2, axis=0)
        self.rank_ = white.rank
        self.n_components_ = len(order)
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        self.criterion_ = solution.criterion
        self.sub_gaussian_ = solution.sub_gaussian[order]
        self._principal_variances = white.variances
        self._principal_axes = white.axes
        vars(self).pop("stability_", None)
        if halves:
            self.stability_ = ica.stability(self.rotation_, halves)

    def _warn_of_rank(self, white):
        """Say in one warning how far the rank falls short, and of what."""
        n_features = white.mean.size
        if white.rank == n_features:
            return
        names = getattr(self, "feature_names_in_", None)
        message = f"X has rank {white.rank} of {n_features}; whitened within that rank."
        constant = np.flatnonzero(white.constant)
        if constant.size:
            listed = [describe_column(j, names) for j in constant[:_NAMED]]
            more = constant.size - len(listed)
            message += f" Constant: {', '.join(listed)}"
            message += f" and {more} more." if more else "."
        if self.n_components is not None and self.n_components > white.rank:
            message += f" n_components={self.n_components} is cut to {white.rank}."
        warnings.warn(message, UserWarning)

    def _warn_of_solution(self):
        if not self.converged_:
            warnings.warn(
                f"WhitenICA stopped after {self.n_iter_} passes with gradient "
                f"{self.criterion_:.1e} > tol={self.tol:g}. Raise max_iter, try "
                "another contrast, or lower n_components: Gaussian data and few rows a "
                "component make it slow.",
                ConvergenceWarning,
            )
        loose = np.flatnonzero(getattr(self, "stability_", np.ones(1)) < _STABLE)
        if loose.size:
            listed = ", ".join(map(str, loose[:_NAMED]))
            listed += f" and {loose.size - _NAMED} more" if loose.size > _NAMED else ""
            warnings.warn(
                f"Not identified: component(s) {listed} have stability below "
                f"{_STABLE}: Gaussian sources, or too few rows.",
                UserWarning,
            )

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
