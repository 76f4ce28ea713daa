"""What the entries of a table may be, and how an error names one."""

import re
from collections.abc import Sequence

import numpy as np

_NUMERIC = re.compile(r"u?int(?!erval)|float|bool")


def describe_column(index, columns=None):
    """Return ``column 3`` or, with names, ``column 3 ('gene')``."""
    if columns is None:
        return f"column {index}"
    return f"column {index} ({columns[index]!r})"


def is_missing(label):
    """Return whether a label is None, NaN, NaT or NA."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # NA is neither equal to itself nor not
        return True


def check_rectangular(X, name):
    """Raise a ``ValueError`` for a list whose rows differ in length, naming the row."""
    if not isinstance(X, Sequence) or isinstance(X, str | bytes):
        return
    lengths = [_length(row) for row in X]
    for k, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"{name} is no rectangular array: entry {k} has {_said(length)}, "
                f"entry 0 {_said(lengths[0])}."
            )
    if lengths and lengths[0] and not hasattr(X[0], "shape"):
        if _length(X[0][0]) is not None:
            for k, row in enumerate(X):
                check_rectangular(row, f"{name}[{k}]")


def _length(row):
    if hasattr(row, "shape"):
        return row.shape[0] if len(row.shape) else None
    plain = not isinstance(row, Sequence) or isinstance(row, str | bytes)
    return None if plain else len(row)


def _said(length):
    return "one value" if length is None else f"a list of {length}"


def check_numbers(X, name):
    """Name the first entry that is no real number.

    Raises
    ------
    ValueError
        For text or a time of numpy's.
    TypeError
        For an object of another kind.
    """
    array = X if isinstance(X, np.ndarray) else _frame_values(X)
    if array.ndim != 2 or array.dtype.kind not in "OUSmM":
        return
    for row, values in enumerate(array):
        for column, value in enumerate(values):
            wrong = _error_of(value)
            if wrong is not None:
                where = describe_column(column, getattr(X, "columns", None))
                raise wrong(
                    f"Input {name} cannot be converted to numbers: first in {where}, "
                    f"row {row} is {value!r}. The argument must be numbers, or strings "
                    "of numbers."
                )


def _frame_values(X):
    """Return the values of a data frame that has columns of objects, else nothing."""
    kinds = getattr(X, "dtypes", ())
    kinds = {str(kind) for kind in kinds} if np.iterable(kinds) else {str(kinds)}
    odd = {kind for kind in kinds if not _NUMERIC.match(kind.lower())}
    return np.asarray(X, dtype=object) if odd else np.empty(0)


def _error_of(value):
    """Return what kind of error an entry is; None if it can become a float.

    What is missing can, as NaN.
    """
    if is_missing(value):
        return None
    if isinstance(value, np.datetime64 | np.timedelta64):
        return ValueError
    try:
        float(value)
    except (TypeError, ValueError) as error:
        return type(error)
    return None
