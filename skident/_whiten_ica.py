"""Whitening and independent component analysis."""

import warnings
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skident._blockwise import as_source, by_blocks
from skident._compat import Interval, StrOptions, fit_context
from skident._math import contrasts, ica, restarts
from skident._math.alignment import STABLE
from skident._math.frames import FRAMES
from skident._math.threads import workers
from skident._math.whitening import SOLVERS, centred_product, whiten
from skident._random import draw_seed, generator
from skident._validation import (
    all_or_nothing,
    as_rows,
    as_weights,
    describe_column,
    validate_rows,
)

_NAMED = 10


class WhitenICA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Independent components of unit variance, in an order that does not vary.

    Rows are centred, whitened within the rank of the data and rotated so that the
    contrasts :math:`G_i` of the components are stationary:

    .. math:: y = R K (x - \mu), \qquad \min_{R R' = I} \sum_i s_i \,
        \mathrm E[G_i(y_i)], \qquad
        s_i = \mathrm{sign}(\mathrm E[G_i''(y_i)] - \mathrm E[G_i'(y_i) y_i]).

    Parameters
    ----------
    n_components : int, float in (0, 1) or "mle", default=None
        Number of principal directions that are whitened: all within the rank; at most
        so many; the fewest that explain this part of the variance; the most probable
        number if the others are noise of one variance [3]_.
    contrast : {"logcosh", "exp", "cube", "adaptive"} or callable, default="logcosh"
        :math:`G`: ln cosh y for most data; -exp(-y²/2) for very heavy tails; y⁴/4
        (kurtosis) for light tails; "adaptive" is ln cosh y for sources with heavier
        tails than a Gaussian and y⁴/12, more precise there, for sources with
        lighter ones. A callable takes an array of any shape and returns three of the
        same shape, :math:`G`, :math:`G'` and :math:`G''`; ``fit`` compares the
        derivatives with finite differences, and gives :math:`G` the size that ln cosh
        has, for which ``tol`` is meant. The :math:`s_i` adapt every contrast to both
        kinds of tails.
    whiten : {"unit-variance", "rotation"}, default="unit-variance"
        "rotation" returns components that only turn the rows, so that distances and
        errors are in the units of the input (see Notes).
    whiten_solver : {"auto", "svd", "eigh"}, default="auto"
        "eigh" of the correlation matrix, fast for many rows; "svd" of the scaled rows,
        which are copied; "auto" is "eigh" if there are more rows than columns, unless
        ``rank_tol`` is below 1e-7.
    rank_tol : float, default=None
        Directions of the columns, scaled to unit variance, whose standard deviation is
        below ``rank_tol`` times the largest are cut, by either solver; None is 1e-6.
        "eigh" resolves no less than :math:`1.5 \cdot 10^{-8} \sqrt{p}`, :math:`p` the
        number of columns. A column that varies by less than 1e-7 of its values (by a
        tenth of ``rank_tol`` if that is less, but never within the rounding of its
        type) is constant: subtract the first row if that is signal.
    max_iter : int, default=1000
        Most passes over all rows in each start.
    tol : float, default=1e-4
        Largest entry of the gradient,
        :math:`|s_i \mathrm E[G_i'(y_i) y_j] - s_j \mathrm E[G_j'(y_j) y_i]|`, at which
        the solver stops.
    n_restarts : int, default=1
        Number of starts. The first depends on the data alone; the others start at
        random on a random half of the rows and finish on all of them. The best one is
        kept (see Notes).
    on_nonconvergence : {"warn", "raise"}, default="warn"
        What a solver does that ends above ``tol``: a ``ConvergenceWarning``, or a
        ``RuntimeError`` that leaves the estimator as it was.
    n_jobs : int, default=None
        Restarts in parallel, as in joblib; no result depends on it. Whatever its value,
        one solve on many rows runs as many threads as the BLAS library of numpy may
        (set by ``OMP_NUM_THREADS`` or ``threadpoolctl``), whose number changes the
        rounding of products.
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
        :math:`K`: rows scaled and turned to principal axes; with
        ``whiten="rotation"`` only turned.
    rotation_ : ndarray of shape (n_components, n_components)
        :math:`R`, orthogonal: ``components_ = rotation_ @ whitening_``.
    explained_variance_ : ndarray of shape (n_components,)
        Variance that each component adds to the input (squared norm of its column of
        ``mixing_``; with ``whiten="rotation"`` its variance), descending.
    rank_ : int
        Number of independent directions of the rows.
    n_components_ : int
        Number of components.
    n_iter_ : int
        Passes over all rows in the start that was kept.
    converged_ : bool
        Whether the gradient fell to ``tol``.
    criterion_ : float
        The gradient where it was measured last. One small step follows, after which it
        is less, some tenfold if ``tol`` is 1e-4.
    sub_gaussian_ : ndarray of bool of shape (n_components,)
        Whether a component has lighter tails than a Gaussian, by the sign
        :math:`s_i`.
    non_gaussianity_ : ndarray of shape (n_components,)
        :math:`|\mathrm E[G''(y)] - \mathrm E[G'(y) y]|`, which is 0 for a Gaussian, in
        standard errors of its estimate from Gaussian rows (with weights, Kish's
        effective number of them). A warning names two or more components below
        :math:`1 + 1.3 \sqrt k`, :math:`k` their number: what the solver finds in
        Gaussian noise.
    stability_ : ndarray of shape (n_components,)
        Only if ``n_restarts > 1``. How well each component is found again, in [0, 1]:
        the mean over restarts of the squared correlation between its counterparts in
        two random halves of the rows (of at most 8 million numbers, a sample of the
        rows beyond). A warning names components below 0.9: Gaussian, or too few rows.
        Two restarts give a hint, six a number.
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
    Components are ordered by ``explained_variance_`` (those equal to 1e-6 by the input
    column of their largest entry) and signed so that the entry of ``mixing_`` of
    largest absolute value is positive. Two whose variances differ by less than the
    solver resolves, about ``tol`` relative, or more if a component is near Gaussian,
    may change places between fits of the same rows in another order. Outputs have
    variance 1 with divisor ``n_samples`` on the rows of ``fit``. First steps on many
    rows are float32, the last ones float64, whatever the type of the rows;
    ``transform`` returns the float type it is given. On the same machine
    and with the same versions fits are bit for bit the same; elsewhere, and for other
    threads or orders of the rows, components agree to about ``tol``.

    With ``whiten="rotation"`` and :math:`A` the mixing matrix of unit-variance
    components, :math:`A = C^{1/2} Q` is its polar decomposition, :math:`C` the
    covariance of the rows, and components are :math:`Q' (x - \mu)`: the same rotation,
    but of the rows themselves instead of their symmetric whitening :math:`C^{-1/2} (x -
    \mu)`. Distances between rows are kept (within the directions kept), and components
    are uncorrelated only as far as the columns of :math:`A` are orthogonal.

    The contrast has many optima where sources are discrete and skewed (counts, rare
    events). The start that depends on the data is therefore left for better points in
    every plane of two components. If components are dependent still, by correlations
    of :math:`G_i''(y_i)` and :math:`y_j^2`, and are at most 16, four to eight more
    starts follow. Of two points that is better without a correlation above 0.2, as
    mixtures of some sources, such as Bernoulli(0.2), have the larger objective; then
    that of the larger objective, the sum of the distances of
    :math:`\mathrm E[G_i(y_i)]` from its value for a Gaussian.

    Constant columns have zero rows in ``mixing_`` and come back by ``mean_`` in
    ``inverse_transform``. Linearly dependent or constant columns, and more columns
    than rows, lower ``rank_`` with one warning.

    Rows are read in blocks, from memory, a memory map or a sequence of blocks, in some
    passes for the covariance and then two to four for the rotation, which begins on a
    sample. Beyond the input, memory for that sample (of at most 8 million numbers,
    60,000 rows or 150 rows a component, whichever is most), one block a thread and a
    few matrices of ``n_features`` columns and rows is needed, however many rows there
    are.

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
    .. [3] T. P. Minka, "Automatic choice of dimensionality for PCA", NIPS 2000.
    .. [4] Nelson, Fumero, Karaletsos, Locatello, "Statistical and structural
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
            StrOptions({"mle"}),
        ],
        "contrast": [StrOptions(set(contrasts.CONTRASTS)), callable],
        "whiten": [StrOptions(set(FRAMES))],
        "whiten_solver": [StrOptions(set(SOLVERS))],
        "rank_tol": [None, Interval(Real, 0, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_restarts": [Interval(Integral, 1, None, closed="left")],
        "on_nonconvergence": [StrOptions({"warn", "raise"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components=None,
        *,
        contrast="logcosh",
        whiten="unit-variance",
        whiten_solver="auto",
        rank_tol=None,
        max_iter=1000,
        tol=1e-4,
        n_restarts=1,
        on_nonconvergence="warn",
        n_jobs=None,
        random_state=None,
    ):
        self.n_components = n_components
        self.contrast = contrast
        self.whiten = whiten
        self.whiten_solver = whiten_solver
        self.rank_tol = rank_tol
        self.max_iter = max_iter
        self.tol = tol
        self.n_restarts = n_restarts
        self.on_nonconvergence = on_nonconvergence
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Find the components of the rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or blocks of rows
            At least two rows, not all equal. A sequence of two-dimensional arrays (of
            memory maps, or an object that fetches one when it is indexed) is read as
            blocks of rows one below the other, and so is a Dask array or data
            frame: block by block in every pass, never all of them at once. Blocks
            without rows are skipped.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Not negative; only ratios count. Whole numbers count as so many equal rows,
            but for ``non_gaussianity_``, its warning and ``n_components="mle"``, which
            take Kish's effective number of rows. Weights that are rounding in the sum
            (2e-16 of it) count as zero.

        Returns
        -------
        WhitenICA
            Itself.

        Raises
        ------
        ValueError
            For NaN, infinity, sparse data, one row, constant data, values whose square
            is no number, more components than columns, or a contrast whose
            derivatives are wrong, that is no more than quadratic or not finite.
        TypeError
            For a column of dates or other objects that are no numbers.
        RuntimeError
            If the solver stops early and ``on_nonconvergence="raise"``.
        """
        with all_or_nothing(self):
            source, n_samples = as_source(self, X)
            weights = as_weights(
                sample_weight, n_samples, min_positive=2, relative=True
            )
            contrast = self._check_parameters()
            with workers(n_samples * self.n_features_in_) as run:
                white = whiten(
                    source,
                    self.n_components,
                    solver=self.whiten_solver,
                    rank_tol=self.rank_tol,
                    weights=weights,
                    run=run,
                )
                self._warn_of_rank(white)
                solution, halves = self._solve(white.rows, contrast)
            self._store(white, solution, halves)
            self._warn_of_solution()
        return self

    def transform(self, X):
        """Return the components of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or blocks of rows
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            float32 if ``X`` is, else float64.

        Raises
        ------
        ValueError
            For rows as in ``fit``, another number of columns, or what overflows the
            float type.
        """
        check_is_fitted(self)
        return by_blocks(X, self._transform, self._validated)

    def _transform(self, X, first):
        with np.errstate(over="ignore", invalid="ignore"):
            Y = centred_product(X, self.mean_, self.components_)
        return _as_float(Y, X.dtype, "component", first)

    def inverse_transform(self, X):
        """Return the rows in input space that have the given components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components), or blocks of rows
            Components.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The rows themselves if all components were kept, up to rounding. float32 if
            ``X`` is, else float64.

        Raises
        ------
        ValueError
            For another number of columns, or what overflows the float type.
        """
        check_is_fitted(self)
        return by_blocks(X, self._inverse, as_rows)

    def _inverse(self, X, first):
        if X.shape[1] != self.n_components_:
            raise ValueError(
                f"X has shape {X.shape}, but inverse_transform needs "
                f"{self.n_components_} components as columns."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            rows = X @ self.mixing_.T + self.mean_
        return _as_float(rows, X.dtype, "column", first)

    def score_samples(self, X):
        """Return the log-likelihood of each row (see Notes), in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or blocks of rows
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            What lies outside the space spanned by the rows of ``fit`` does not count.
        """
        check_is_fitted(self)
        return by_blocks(X, self._log_density, self._validated)

    def _log_density(self, X, first):
        Y = centred_product(X, self.mean_, self.components_)
        if self._to_unit_variance is not None:
            Y = Y @ self._to_unit_variance.T
        kept, left = np.split(self._principal_variances, [self.n_components_])
        total = contrasts.source_log_density(Y, self.sub_gaussian_).sum(axis=1)
        total -= 0.5 * np.log(kept).sum()
        if left.size:
            axes = self._principal_axes[:, self.n_components_ :]
            E = centred_product(X, self.mean_, axes.T)
            noise = left.mean()
            total -= 0.5 * np.einsum("ij,ij->i", E / noise, E)
            total -= 0.5 * left.size * np.log(2 * np.pi * noise)
        return total

    def score(self, X, y=None, sample_weight=None):
        """Return the mean log-likelihood of rows (see Notes), in nats a row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or blocks of rows
            Rows, best not those of ``fit``.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the mean.

        Returns
        -------
        float
            Greater is better.
        """
        each = self.score_samples(X)
        weights = as_weights(sample_weight, len(each), relative=True)
        return float(np.average(each, weights=weights))

    def _validated(self, X, name, dtype):
        return validate_rows(self, X, reset=False, name=name, dtype=dtype)

    def _check_parameters(self):
        """Check what depends on the data, and return the contrast of the solver."""
        n_features = self.n_features_in_
        wanted = self.n_components
        if isinstance(wanted, bool):
            raise ValueError(
                f"n_components={wanted} is neither a number, a fraction nor 'mle'."
            )
        if wanted is not None and wanted != "mle" and wanted > n_features:
            raise ValueError(
                f"n_components={wanted} is more than the {n_features} column(s) of X."
            )
        if callable(self.contrast):
            return contrasts.UserContrast(self.contrast)
        return self.contrast

    def _solve(self, rows, contrast):
        """Return the best of all starts, and what the restarts found on halves."""
        options = {"contrast": contrast, "max_iter": self.max_iter, "tol": self.tol}
        if self.n_restarts == 1:
            return ica.solve(rows, **options), []
        seed = draw_seed(self.random_state)
        rngs = [generator(seed, k) for k in range(1, self.n_restarts)]
        if effective_n_jobs(self.n_jobs) == 1:
            return restarts.solve_often(rows, rngs, **options)

        def run(function, items):
            parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
            return parallel(delayed(function)(item) for item in items)

        return restarts.solve_often(rows._replace(run=map), rngs, run, **options)

    def _store(self, white, solution, halves):
        """Put components in canonical order and keep what was found."""
        frame = FRAMES[self.whiten](white, solution.rotation)
        n_rows = white.rows.n_effective
        self.mean_ = white.mean
        self.whitening_ = frame.basis
        self.rotation_ = frame.rotation
        self.components_ = frame.rotation @ frame.basis
        self.mixing_ = frame.mixing
        self.explained_variance_ = frame.variances
        self.rank_ = white.rank
        self.n_components_ = len(frame.order)
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        self.criterion_ = solution.criterion
        self.sub_gaussian_ = solution.sub_gaussian[frame.order]
        self.non_gaussianity_ = np.sqrt(n_rows) * solution.excess[frame.order]
        self._principal_variances = white.variances
        self._principal_axes = white.axes
        self._to_unit_variance = frame.to_unit
        vars(self).pop("stability_", None)
        if halves:
            self.stability_ = restarts.stability(solution.rotation, halves)[frame.order]

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
            message += f" Constant or nearly so: {', '.join(listed)}"
            message += f" and {more} more." if more else "."
        wanted = self.n_components
        if isinstance(wanted, Integral) and wanted > white.rank:
            message += f" n_components={wanted} is cut to {white.rank}."
        warnings.warn(message, UserWarning)

    def _warn_of_solution(self):
        if not self.converged_:
            message = (
                f"WhitenICA stopped after {self.n_iter_} passes with gradient "
                f"{self.criterion_:.1e} > tol={self.tol:g}. Raise max_iter, try "
                "another contrast, or lower n_components: Gaussian data and few rows a "
                "component make it slow."
            )
            if self.on_nonconvergence == "raise":
                raise RuntimeError(message)
            warnings.warn(message, ConvergenceWarning)
        gaussian = self.non_gaussianity_ < ica.gaussian_level(self.n_components_)
        if gaussian.sum() > 1:
            warnings.warn(
                f"Not identified: component(s) {_listed(gaussian)} cannot be told "
                "from Gaussian ones by these rows, and are an arbitrary rotation of "
                "each other.",
                UserWarning,
            )
        loose = getattr(self, "stability_", np.ones(1)) < STABLE
        if loose.any():
            warnings.warn(
                f"Not identified: component(s) {_listed(loose)} have stability below "
                f"{STABLE}: Gaussian sources, or too few rows.",
                UserWarning,
            )

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _listed(marked):
    """Return the first of the marked indices as text."""
    marked = np.flatnonzero(marked)
    more = marked.size - _NAMED
    return ", ".join(map(str, marked[:_NAMED])) + (
        f" and {more} more" if more > 0 else ""
    )


def _as_float(array, dtype, what, first):
    """Return numbers in a float type, or name the first that it cannot hold.

    The number of the first row is ``first``.
    """
    with np.errstate(over="ignore"):
        result = array.astype(dtype, copy=False)
    finite = np.isfinite(result)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"The result overflows {result.dtype}, first in {what} {column}, row "
            f"{first + row} ({array[row, column]:g}): pass X as float64, or of smaller "
            "numbers."
        )
    return result
