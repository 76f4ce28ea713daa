"""Maps between two representations of the same rows, in three groups."""

import warnings
from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from skident._compat import Interval, StrOptions, fit_context
from skident._math import affine, assignment, motion, procrustes
from skident._validation import (
    all_or_nothing,
    as_rows,
    as_weights,
    check_same_length,
    validate_rows,
)


class _Aligner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What the aligners share: all but the options of the search for the map."""

    _not_unique = "the map is one of several that do equally well"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find the map from ``X`` to ``y``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to move; at least two.
        y : array-like of shape (n_samples, n_targets) or (n_samples,)
            Where each row should go; 1-D is one column. Rows are paired by position,
            those of data frames too.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row's squared error: an integer is as good as so many equal
            rows, 0 as none. At least two must be positive.

        Returns
        -------
        object
            Itself.

        Raises
        ------
        ValueError
            For NaN, infinity, sparse data, one row, other numbers of rows in ``X``
            and ``y``, frames with the same index in another order, negative weights,
            or sizes of ``X`` and ``y`` so far apart that the map is beyond the range
            of floats.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )
        _check_same_order(X, y)
        with all_or_nothing(self):
            X = validate_rows(self, X, reset=True, min_samples=2)
            y = as_rows(y, name="y", min_samples=2, one_column=True)
            check_same_length(X, y, names=("X", "y"))
            weights = as_weights(sample_weight, X.shape[0], min_positive=2)
            found = self._find(X, y, weights)
            self._n_targets = y.shape[1]
            self.rotation_ = found.rotation
            self.scale_ = found.scale
            self.source_mean_ = found.source_mean
            self.target_mean_ = found.target_mean
            self.is_reflection_ = found.reflection
            self.is_unique_ = found.unique
            if not found.unique:
                warnings.warn(self._thin_data(X, y), UserWarning)
        return self

    def transform(self, X):
        """Return ``scale_ * (X - source_mean_) @ rotation_ + target_mean_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to move.

        Returns
        -------
        ndarray of shape (n_samples, rotation_.shape[1])
            float32 if ``X`` is, else float64.

        Raises
        ------
        ValueError
            If a result is beyond the range of that type, besides the errors of ``fit``.
        """
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False)
        return _within_range(self._motion.apply, X)

    def inverse_transform(self, X):
        """Return the rows whose map is nearest to ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, rotation_.shape[1])
            Rows in the space of the target; of ``n_targets`` columns, they are padded
            as in the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The rows of ``X`` before the map, where it loses nothing. Where several
            rows are mapped to one place (a linear map to fewer columns, or one of
            lower rank), that nearest to ``source_mean_``; where none is, that mapped
            nearest: the map back is the pseudo-inverse of ``scale_ * rotation_``.

        Raises
        ------
        ValueError
            For another number of columns, or a result beyond the range of the type.
        """
        check_is_fitted(self)
        X = as_rows(X, name="X")
        if X.shape[1] == self._n_targets:
            X = motion.pad_columns(X, self._n_features_out)
        if X.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has shape {X.shape}, but inverse_transform needs "
                f"{self._n_features_out} columns."
            )
        return _within_range(self._invert, X)

    def score(self, X, y, sample_weight=None):
        """Return the part of the variance of ``y`` that the map explains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to move.
        y : array-like of shape (n_samples, n_targets) or (n_samples,)
            Where each should be.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, as in ``fit``.

        Returns
        -------
        float
            1 - squared error / squared distance of ``y`` from its mean, over all
            columns, padded ones included: 1 is best, 0 as good as the mean. For
            constant ``y``, 1 if it is met to rounding, else 0.
        """
        check_is_fitted(self)
        _check_same_order(X, y)
        X = validate_rows(self, X, reset=False)
        mapped = _within_range(self._motion.apply, X, np.float64)
        y = as_rows(y, name="y", one_column=True)
        check_same_length(mapped, y, names=("X", "y"))
        if y.shape[1] != self._n_targets:
            raise ValueError(
                f"y has shape {y.shape}, but fit saw {self._n_targets} column(s)."
            )
        weights = as_weights(sample_weight, y.shape[0])
        y = motion.pad_columns(y, mapped.shape[1])
        return motion.explained_variance(y, mapped, weights)

    @property
    def _motion(self):
        return motion.Motion(
            self.rotation_,
            self.scale_,
            self.source_mean_,
            self.target_mean_,
            self.is_unique_,
        )

    def _invert(self, X):
        # Rows of a rotation are orthonormal: its transpose is its pseudo-inverse.
        return self._motion.turn_back(X)

    def _thin_data(self, X, y):
        return (
            f"{type(self).__name__}: {self._not_unique} (X has shape {X.shape}, y "
            f"{y.shape}: too few rows, or rows on a plane). is_unique_ is False."
        )

    @property
    def _n_features_out(self):
        return self.rotation_.shape[1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class RigidAligner(_Aligner):
    r"""Rotation, reflection and translation of least squared error (Procrustes).

    .. math:: \min_{R' R = I, \mu, c} \; \sum_n w_n
        \lVert c \, (x_n - \mu_X) R + \mu_Y - y_n \rVert^2

    Parameters
    ----------
    allow_reflection : bool, default=True
        Whether the map may turn space inside out (determinant -1). If not, it is a
        proper rotation, as for molecules.
    scaling : bool, default=False
        Whether one factor for all coordinates is fitted.
    center : bool, default=True
        Whether means are taken off first, so that the map may translate; if not, it
        keeps the origin, and both means are 0.
    pad : bool, default=True
        Whether the narrower of ``X`` and ``y`` is padded with columns of zeros; if
        not, other widths are an error. ``transform`` returns the wider width, the
        columns of ``y`` first.

    Attributes
    ----------
    rotation_ : ndarray of shape (n_features, max(n_features, n_targets))
        Orthogonal if square, else the rows of the orthogonal matrix that padded
        columns do not need.
    scale_ : float
        The factor; 1 without ``scaling``, and where none above zero helps:
        ``X`` and ``y`` have nothing in common, or are mirror images that
        ``allow_reflection=False`` keeps apart.
    source_mean_ : ndarray of shape (n_features,)
        Mean of ``X``; 0 without ``center``.
    target_mean_ : ndarray of shape (max(n_features, n_targets),)
        Mean of ``y``, zero in padded columns and without ``center``.
    is_reflection_ : bool
        Whether the determinant is -1; False for other widths, where a reflection is a
        rotation of the wider space.
    is_unique_ : bool
        Whether the rows fix the map. If not (fewer rows than dimensions, or rows on a
        plane) there is a warning, and what is free is as near to the identity as can
        be.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if they have names.

    See Also
    --------
    skident.LinearAligner : Any affine map.
    skident.PermutationAligner : Order and sign of the columns only.
    skident.metrics.alignment_errors : All groups, out of sample.

    Notes
    -----
    The formula of ``transform`` is the only one: ``scale_ * (X - source_mean_) @
    rotation_ + target_mean_``. A rotation mixes the columns, so that variances or
    names that belonged to columns of ``X`` do not belong to those of the result.

    In sample, the squared error is at least that of :class:`skident.LinearAligner` and
    at most that of :class:`skident.PermutationAligner`, for any weights and widths
    (without ridge, and with ``criterion="error"`` and ``allow_reflection=True``).

    Sums are taken in units near the size of either side, so that rows of any size from
    1e-300 to 1e300 are aligned alike.

    References
    ----------
    .. [1] P. Schonemann, "A generalized solution of the orthogonal Procrustes
       problem", Psychometrika 31 (1966), 1.
    .. [2] Nelson, Fumero, Karaletsos, Locatello, "Statistical and structural
       identifiability in representation learning", ICLR 2026, theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skident import RigidAligner
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> Y = X @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + [5.0, 5.0]
    >>> aligner = RigidAligner().fit(X, Y)
    >>> aligner.transform(np.array([[1.0, 1.0]])).round(6)
    array([[4., 6.]])
    >>> aligner.is_reflection_
    False
    """

    _not_unique = "the rotation is one of several that do equally well"
    _parameter_constraints: ClassVar[dict] = {
        "allow_reflection": ["boolean"],
        "scaling": ["boolean"],
        "center": ["boolean"],
        "pad": ["boolean"],
    }

    def __init__(self, *, allow_reflection=True, scaling=False, center=True, pad=True):
        self.allow_reflection = allow_reflection
        self.scaling = scaling
        self.center = center
        self.pad = pad

    def _find(self, X, y, weights):
        if not self.pad and X.shape[1] != y.shape[1]:
            raise ValueError(
                f"X has shape {X.shape} and y {y.shape}: other widths need pad=True."
            )
        return procrustes.rigid_map(
            X,
            y,
            weights=weights,
            allow_reflection=self.allow_reflection,
            scaling=self.scaling,
            center=self.center,
        )


class LinearAligner(_Aligner):
    r"""Affine map of least squared error, with an optional ridge.

    .. math:: \min_{B, b} \; \sum_n w_n \lVert x_n B + b - y_n \rVert^2
        + \alpha \lVert B \rVert^2

    Parameters
    ----------
    alpha : float or "cv", default=0.0
        Weight of the squared entries of the map, in squared units of ``X``. "cv"
        chooses the value of least leave-one-out error: see Notes.
    center : bool, default=True
        Whether means are taken off first, so that the map may translate; if not, it
        keeps the origin, and both means are 0.

    Attributes
    ----------
    rotation_ : ndarray of shape (n_features, n_targets)
        The linear map :math:`B`, named as in the other aligners.
    scale_ : float
        Always 1.
    alpha_ : float
        The ridge used, in squared units of ``X`` (times those of the weights); the
        largest float if that is beyond it.
    source_mean_ : ndarray of shape (n_features,)
        Mean of ``X``; 0 without ``center``.
    target_mean_ : ndarray of shape (n_targets,)
        Mean of ``y``; 0 without ``center``.
    is_reflection_ : bool
        Whether the determinant is negative; False for other widths.
    is_unique_ : bool
        Whether the rows fix the map. If not (dependent columns, few rows) there is a
        warning, and the map is the smallest one on columns of unit variance. With a
        ridge it is always unique.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if they have names.

    See Also
    --------
    skident.RigidAligner : Rotation, reflection and translation only.

    Notes
    -----
    Widths need no padding: the map is ``n_features`` to ``n_targets`` columns.

    ``inverse_transform`` uses the pseudo-inverse of the map: what the map sends to
    zero comes back as the mean.

    ``alpha="cv"`` tries :math:`\alpha = 10^{-10}, 10^{-9.5}, \ldots, 10^2` times
    the largest squared singular value of the centred rows and takes that of least

    .. math:: \sum_n w_n \left\lVert \frac{y_n - x_n B - b}{1 - h_n} \right\rVert^2 ,

    :math:`h_n` the leverages (the diagonal of the matrix from ``y`` to its fit): the
    error of each row under the map to all others, by one decomposition. A weighted row
    is left out with its whole weight; copies of a row are left out one at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from skident import LinearAligner
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> aligner = LinearAligner().fit(X, X @ [[1.0], [3.0]])
    >>> aligner.rotation_.round(6)
    array([[1.],
           [3.]])
    """

    _not_unique = "the columns of X are dependent, so several maps do equally well"
    _parameter_constraints: ClassVar[dict] = {
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"cv"})],
        "center": ["boolean"],
    }

    def __init__(self, *, alpha=0.0, center=True):
        self.alpha = alpha
        self.center = center

    def _find(self, X, y, weights):
        found, self.alpha_ = affine.fit_linear(
            X, y, weights=weights, alpha=self.alpha, center=self.center
        )
        return found

    def _invert(self, X):
        return self._motion.invert(X)


class PermutationAligner(_Aligner):
    r"""Order and signs of the columns of ``X`` that match those of ``y`` best.

    .. math:: \max_{\pi, s} \; \sum_j s_j \, g_{\pi(j) j}

    Parameters
    ----------
    signed : bool, default=True
        Whether columns may change their sign.
    criterion : {"error", "correlation"}, default="error"
        What is summed: the inner products :math:`g` of centred columns (weighted by
        row), which minimises the squared error, or their correlations (cosines, without
        ``center``).
    assignment : {"auto", "optimal", "greedy"}, default="auto"
        How columns are matched. "optimal" solves the assignment problem, in time cubic
        in the width; "greedy" takes the largest :math:`|g|` first, then exchanges pairs
        of columns while that helps: at least half of the optimal sum, mostly all but
        a few per cent. "auto" is "optimal" up to 2000 columns of the narrower side,
        "greedy" beyond.
    center : bool, default=True
        Whether means are taken off first, so that the map may translate; if not, it
        keeps the origin, and both means are 0.

    Attributes
    ----------
    rotation_ : ndarray of shape (n_features, max(n_features, n_targets))
        Signed permutation matrix (its first rows if ``X`` is narrower): the narrower
        side is padded with columns of zeros.
    scale_ : float
        Always 1.
    source_mean_ : ndarray of shape (n_features,)
        Mean of ``X``; 0 without ``center``.
    target_mean_ : ndarray of shape (max(n_features, n_targets),)
        Mean of ``y``, zero in padded columns and without ``center``.
    is_reflection_ : bool
        Whether the determinant is -1; False for other widths.
    is_unique_ : bool
        Whether no other order or signs do as well to rounding; if there are, there is
        a warning, and columns stay in place where they may. Of a greedy assignment:
        whether no exchange of two columns does.
    assignment_ : str
        "optimal" or "greedy", as was used.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if they have names.

    See Also
    --------
    skident.RigidAligner : Rotation, reflection and translation.
    skident.WhitenICA : Makes columns that can be matched.

    Examples
    --------
    >>> import numpy as np
    >>> from skident import PermutationAligner
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> PermutationAligner().fit(X, -X[:, ::-1]).rotation_
    array([[ 0., -1.],
           [-1.,  0.]])
    """

    _not_unique = "several orders or signs of columns do equally well"
    _parameter_constraints: ClassVar[dict] = {
        "signed": ["boolean"],
        "criterion": [StrOptions(set(procrustes.CRITERIA))],
        "assignment": [StrOptions(set(assignment.ASSIGNMENTS))],
        "center": ["boolean"],
    }

    def __init__(
        self, *, signed=True, criterion="error", assignment="auto", center=True
    ):
        self.signed = signed
        self.criterion = criterion
        self.assignment = assignment
        self.center = center

    def _find(self, X, y, weights):
        width = min(X.shape[1], y.shape[1])
        self.assignment_ = assignment.choose_assignment(self.assignment, width)
        return procrustes.permutation_map(
            X,
            y,
            weights=weights,
            signed=self.signed,
            criterion=self.criterion,
            assignment=self.assignment_,
            center=self.center,
        )


def _within_range(move, X, dtype=None):
    """Return ``move(X)`` in a type, by default that of ``X``; refuse what overflows."""
    dtype = X.dtype if dtype is None else np.dtype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = move(X).astype(dtype, copy=False)
    finite = np.isfinite(moved).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"The map of X is beyond the range of {dtype} in row "
            f"{int(np.argmin(finite))}: rescale X"
            + (", or pass it as float64." if dtype == np.float32 else ".")
        )
    return moved


def _check_same_order(X, y):
    """Raise a ``ValueError`` if two frames have the same ids in another order."""
    first, second = (Z.index if hasattr(Z, "iloc") else None for Z in (X, y))
    if first is None or second is None or len(first) != len(second):
        return
    if first.equals(second) or not first.sort_values().equals(second.sort_values()):
        return
    row = int(np.argmax(np.asarray(first != second)))
    raise ValueError(
        f"X and y have the same index in another order: row {row} is {first[row]!r} in "
        f"X and {second[row]!r} in y. Rows are paired by position: pass "
        "y.loc[X.index]."
    )
