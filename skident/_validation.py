"""One door for arrays: what is wrong is said with its column, row and value."""

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

FLOATS = (np.float64, np.float32)


def validate_rows(estimator, X, *, reset, name="X", min_samples=1):
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

    Returns
    -------
    ndarray of shape (n_samples, n_features)

    Raises
    ------
    ValueError
        For NaN or infinity (with column, row and value), sparse or complex input,
        other than two dimensions, too few rows, or a width other than fitted.
    """
    names = getattr(X, "columns", None)
    X = _to_cpu(X, name)
    array = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=list(FLOATS),
        ensure_all_finite=False,
        ensure_min_samples=min_samples,
    )
    check_finite(array, name=name, columns=names)
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
    dtype : sequence of dtype
        Accepted types; any other becomes the first of them.
    one_column : bool
        Whether a 1-D array is taken as one column.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
    """
    names = getattr(X, "columns", None)
    X = _to_cpu(X, name)
    if one_column and np.ndim(X) == 1:
        X = np.asarray(X).reshape(-1, 1)
    array = check_array(
        X,
        dtype=list(dtype),
        ensure_all_finite=False,
        ensure_min_samples=min_samples,
        input_name=name,
    )
    check_finite(array, name=name, columns=names)
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
        finite = np.isfinite(array[start : start + block])
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


def describe_column(index, columns=None):
    """Return ``column 3`` or, with names, ``column 3 ('gene')``."""
    if columns is None:
        return f"column {index}"
    return f"column {index} ({columns[index]!r})"


def check_same_length(X, Y, names=("X", "Y")):
    """Raise a ``ValueError`` with both shapes if the numbers of rows differ."""
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"{names[0]} and {names[1]} must have the same rows: {names[0]} has shape "
            f"{X.shape}, {names[1]} has shape {Y.shape}."
        )


def _to_cpu(X, name):
    """Refuse sparse input and bring a torch tensor to numpy."""
    if sparse.issparse(X):
        raise ValueError(
            f"Input {name} is sparse, but dense data is required: pass "
            f"{name}.toarray()."
        )
    if hasattr(X, "detach") and hasattr(X, "device"):
        if X.device.type != "cpu":
            raise ValueError(
                f"Input {name} is a tensor on {X.device}: pass {name}.cpu()."
            )
        return X.detach().numpy()
    return X
