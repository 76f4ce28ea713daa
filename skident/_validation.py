"""One door for arrays: what is wrong is said with its column, row and value."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from skident._compat import Interval, StrOptions
from skident._entries import (
    check_numbers,
    check_rectangular,
    describe_column,
    is_missing,
)

FLOATS = (np.float64, np.float32)
# Columns listed in a warning.
_NAMED = 5
# Beyond it a network's float32 numbers overflow.
_LARGEST_LATENT = 1e18

# Parameter constraints of every estimator that trains a network.
TRAINING = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "hidden_layer_sizes": ["array-like"],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "max_epochs": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "device": [str],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
}


def validate_rows(estimator, X, *, reset, name="X", min_samples=1, dtype=FLOATS):
    """Return ``X`` as a finite 2-D float array and check it against the fit.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets ``n_features_in_`` and ``feature_names_in_`` if ``reset``; is compared
        with them if not.
    X : array-like of shape (n_samples, n_features)
        Array, data frame, CPU tensor or memory map. float32 and float64 are passed
        on without a copy; every other real type becomes float64.
    reset : bool
        Whether this is a fit.
    name : str
        What to call the array in errors.
    min_samples : int
        Fewest rows allowed.
    dtype : sequence of dtype or None
        As for :func:`as_rows`.

    Returns
    -------
    ndarray of shape (n_samples, n_features)

    Raises
    ------
    ValueError
        For NaN or infinity (with column, row and value), sparse or complex input,
        other than two dimensions, too few rows, or a width other than fitted.
    """
    X = to_cpu(X, name)
    names = getattr(X, "columns", None)
    array = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=None if dtype is None else list(dtype),
        ensure_all_finite=False,
        ensure_min_samples=min_samples,
    )
    return _numbers(array, name, names)


def _numbers(array, name, columns):
    """Return an array whose type is real and whose entries are finite."""
    if array.dtype.kind not in "fiub":
        array = array.astype(np.float64)
    check_finite(array, name=name, columns=columns)
    return array


def as_rows(X, *, name, min_samples=1, dtype=FLOATS, one_column=False):
    """Return ``X`` as a finite 2-D float array, without an estimator.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        As for :func:`validate_rows`.
    name : str
        What to call the array in errors.
    min_samples : int
        Fewest rows allowed.
    dtype : sequence of dtype or None
        Accepted types; any other becomes the first of them. None keeps every real
        type of numbers as it is.
    one_column : bool
        Whether a 1-D array is taken as one column.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
    """
    X = to_cpu(X, name)
    names = getattr(X, "columns", None)
    if one_column and names is None:
        X = np.asarray(X)
        X = X.reshape(-1, 1) if X.ndim == 1 else X
    array = check_array(
        X,
        dtype=None if dtype is None else list(dtype),
        ensure_all_finite=False,
        ensure_min_samples=min_samples,
        input_name=name,
    )
    return _numbers(array, name, names)


def as_columns(X, width, *, name):
    """Return ``X`` as finite rows of a known width.

    Parameters
    ----------
    X : array-like of shape (n_samples, width)
        As for :func:`validate_rows`.
    width : int
        Number of columns that it must have.
    name : str
        What to call the array in errors.

    Returns
    -------
    ndarray of shape (n_samples, width)
    """
    array = as_rows(X, name=name)
    if array.shape[1] != width:
        raise ValueError(
            f"{name} must have {width} columns, one a latent component, but has shape "
            f"{array.shape}."
        )
    large = np.abs(array) > _LARGEST_LATENT
    if large.any():
        row, column = np.argwhere(large)[0]
        raise ValueError(
            f"{name} is too large for the network in column {column}, row {row}: "
            f"{array[row, column]:g}, beyond {_LARGEST_LATENT:g}."
        )
    return array


def check_finite(array, *, name="X", columns=None, block=65536):
    """Raise a ``ValueError`` that names the first entry that is NaN or infinite.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_features)
        Read in blocks of rows, so that memory maps are not gathered.
    name : str
        What to call the array.
    columns : sequence of str, optional
        Names of the columns.
    block : int
        Rows a block.
    """
    for start in range(0, array.shape[0], block):
        part = array[start : start + block]
        with np.errstate(all="ignore"):
            # Quick, and never finite if an entry is not.
            if part.dtype.kind == "f" and np.isfinite(part.sum()):
                continue
        finite = np.isfinite(part)
        if finite.all():
            continue
        row, column = np.argwhere(~finite)[0]
        value = array[start + row, column]
        what = "NaN" if np.isnan(value) else f"infinity ({value})"
        raise ValueError(
            f"Input {name} contains {what}: first in "
            f"{describe_column(column, columns)}, row {start + row}. Remove or "
            "impute such rows first."
        )


def warn_constant(estimator, constant, result):
    """Say in one warning which columns have one value only, and what becomes of them.

    Parameters
    ----------
    estimator : BaseEstimator
        May have ``feature_names_in_``.
    constant : ndarray of int
        Indices of the columns; none, no warning.
    result : str
        What the estimator makes of them.
    """
    if not constant.size:
        return
    names = getattr(estimator, "feature_names_in_", None)
    listed = ", ".join(describe_column(j, names) for j in constant[:_NAMED])
    more = constant.size - _NAMED
    warnings.warn(
        f"Constant in X: {listed}{f' and {more} more' if more > 0 else ''}; {result}",
        UserWarning,
    )


def check_same_length(X, Y, names=("X", "Y")):
    """Raise a ``ValueError`` with both shapes if the numbers of rows differ."""
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"{names[0]} and {names[1]} must have the same rows: {names[0]} has shape "
            f"{X.shape}, {names[1]} has shape {Y.shape}."
        )


def to_cpu(X, name):
    """Refuse what holds no array, or a sparse one, and bring a tensor to numpy."""
    if isinstance(X, str | os.PathLike):
        raise ValueError(
            f"{name} is a path, {str(X)!r}: pass np.load(path, mmap_mode='r')."
        )
    if hasattr(X, "files") and hasattr(X, "zip"):
        raise ValueError(
            f"{name} is an archive of the arrays {', '.join(X.files)}: pass one of "
            f"them, as {name}[{X.files[0]!r}]."
        )
    if isinstance(X, Iterator):
        raise ValueError(
            f"{name} is a {type(X).__name__}, which can be read once only: pass an "
            "array, or a list of blocks of rows where those are accepted."
        )
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):
        raise ValueError(f"{name} is a lazy frame: pass {name}.collect().")
    if sparse.issparse(X):
        raise ValueError(
            f"Input {name} is sparse, but dense data is required: pass "
            f"{name}.toarray()."
        )
    if np.ma.isMaskedArray(X) and np.ma.is_masked(X):
        row, column = np.argwhere(np.atleast_2d(np.ma.getmaskarray(X)))[0]
        raise ValueError(
            f"Input {name} is masked: first in column {column}, row {row}. Remove or "
            "impute such rows first."
        )
    if hasattr(X, "detach") and hasattr(X, "device"):
        if X.device.type != "cpu":
            raise ValueError(
                f"Input {name} is a tensor on {X.device}: pass {name}.cpu()."
            )
        X = X.detach().resolve_conj().resolve_neg()
        X = (X.float() if str(X.dtype) == "torch.bfloat16" else X).numpy()
    check_rectangular(X, name)
    if getattr(X, "ndim", 0) > 2:
        raise ValueError(
            f"Found array with dim {X.ndim}: {name} has shape {X.shape}, but needs one "
            f"row a sample: pass {name}.reshape(len({name}), -1)."
        )
    check_numbers(X, name)
    return X


@contextlib.contextmanager
def all_or_nothing(estimator):
    """Let a fit that fails or is interrupted leave the estimator as it was before."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_count(value, name):
    """Raise a ``ValueError`` unless a number of things is an int of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")


def check_methods(estimator, needed):
    """Raise a ``TypeError`` that lists the methods that an estimator lacks."""
    missing = [name for name in needed if not hasattr(estimator, name)]
    if missing:
        raise TypeError(
            f"estimator={estimator!r} has no {', '.join(missing)}: use a MeanFieldVAE, "
            "or an estimator with the same methods."
        )


def as_group_codes(groups, n_samples):
    """Return groups as integers 0, 1, ...; each row its own if there are none.

    Parameters
    ----------
    groups : array-like of shape (n_samples,) or None
        Labels of any one type that has an order.
    n_samples : int
        Number of rows.

    Returns
    -------
    ndarray of shape (n_samples,), int

    Raises
    ------
    ValueError
        For another shape, a missing label, or labels of several types, naming the row.
    """
    if groups is None:
        return np.arange(n_samples)
    check_rectangular(groups, "groups")
    groups = np.asarray(groups)
    if groups.shape != (n_samples,):
        raise ValueError(
            f"groups must have one label a row, shape ({n_samples},), got shape "
            f"{groups.shape}."
        )
    missing = np.flatnonzero([is_missing(label) for label in groups.tolist()])
    if missing.size:
        raise ValueError(f"groups has no label in row {missing[0]}.")
    try:
        return np.unique(groups, return_inverse=True)[1].reshape(-1)
    except TypeError as error:
        first = groups[0]
        row = next((k for k, g in enumerate(groups) if type(g) is not type(first)), 0)
        raise ValueError(
            "groups must be labels of one type that has an order, but row 0 has "
            f"{first!r} and row {row} {groups[row]!r}: pass them as strings."
        ) from error


def as_weights(sample_weight, n_samples, *, min_positive=1, relative=False):
    """Return weights of rows as floats; None if there are none.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or None
        Finite and not negative.
    n_samples : int
        Number of rows.
    min_positive : int
        Fewest rows of positive weight allowed.
    relative : bool
        Whether only ratios count: the largest becomes 1, and a weight that is rounding
        in the sum becomes 0.

    Returns
    -------
    ndarray of shape (n_samples,), float64, or None

    Raises
    ------
    ValueError
        For another shape, complex weights, too few positive ones, or one that is
        negative or not finite, naming the row.
    """
    if sample_weight is None:
        return None
    check_rectangular(sample_weight, "sample_weight")
    weights = np.asarray(sample_weight)
    if weights.dtype.kind == "c":
        raise ValueError("sample_weight must be real, but is complex.")
    weights = weights.astype(np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have one weight a row, shape ({n_samples},), got "
            f"shape {weights.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        raise ValueError(
            f"sample_weight must be finite and not negative, but row {wrong[0]} has "
            f"{weights[wrong[0]]:g}."
        )
    if relative and weights.any():
        weights = weights / weights.max()
        weights[weights < np.finfo(np.float64).eps * weights.sum()] = 0.0
    positive = int(np.count_nonzero(weights))
    if positive < min_positive:
        raise ValueError(
            f"sample_weight is zero in all but {positive} row(s), and at least "
            f"{min_positive} must count."
        )
    return weights


class TwoValuedInput:
    """Mixin of estimators for spins or binary words."""

    # What an error adds about data of another kind.
    _instead = ""

    def _two_valued(self, X, *, reset, min_samples=1):
        """Return two-valued rows as {0, 1} with the convention that they came in.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All values in {-1, 1} or all in {0, 1}. Rows of ones alone count as {0, 1}.
        reset : bool
            Whether this is a fit; after it the estimator has ``values_``.
        min_samples : int
            Fewest rows allowed.

        Returns
        -------
        bits : ndarray of shape (n_samples, n_features), int8
            0 for the lower value, 1 for the upper one.
        values : tuple of int
            ``(-1, 1)`` or ``(0, 1)``; at ``reset=False`` always that of the fit.

        Raises
        ------
        ValueError
            For any other value, naming column, row and value, besides the errors of
            :func:`validate_rows`.
        """
        names = getattr(X, "columns", None)
        array = validate_data(
            self,
            to_cpu(X, "X"),
            reset=reset,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=min_samples,
        )
        if array.dtype.kind == "f":
            check_finite(array, columns=names)
        if reset:
            values = (-1, 1) if (array == -1).any() else (0, 1)
            allowed = "-1 and 1 only, or 0 and 1 only"
        else:
            values = self.values_
            allowed = f"{values[0]} and {values[1]} only, as in the fit"
        bits = array == values[1]
        wrong = ~(bits | (array == values[0]))
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise ValueError(
                f"X must have values {allowed}, but {describe_column(column, names)}, "
                f"row {row} is {array[row, column]}. {type(self).__name__} is for "
                "two-valued data: threshold real values first (for instance X > 0)."
                f"{self._instead}"
            )
        return bits.view(np.int8), values


def to_values(bits, values):
    """Return {0, 1} in a two-valued convention, int8."""
    low, high = values
    return np.where(bits, np.int8(high), np.int8(low))
