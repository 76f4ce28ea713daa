"""One-to-one matching of columns: by optimal assignment, or greedily if very wide."""

import numpy as np
from scipy import optimize

# Up to this width an optimal assignment takes seconds.
LARGEST_OPTIMAL = 2000
ASSIGNMENTS = ("auto", "optimal", "greedy")
_EXCHANGES = 100


def choose_assignment(assignment, width):
    """Return what ``"auto"`` stands for at this width; the rest unchanged."""
    if assignment != "auto":
        return assignment
    return "optimal" if width <= LARGEST_OPTIMAL else "greedy"


def assign(worth, assignment):
    """Return the column of each row of a square matrix: the sum is made large.

    Parameters
    ----------
    worth : ndarray of shape (width, width)
        What is gained by matching a row to a column.
    assignment : {"optimal", "greedy"}
        "greedy" takes the largest entry, then the largest of what is left, and so on,
        and then exchanges pairs while that gains.

    Returns
    -------
    ndarray of int of shape (width,)
    """
    if assignment == "optimal":
        return optimize.linear_sum_assignment(worth, maximize=True)[1]
    return _exchange(worth, _greedy(worth))


def is_unique(worth, columns, widths, noise, assignment):
    """Return whether no other assignment does as well to rounding.

    For the greedy one, whether no exchange of two columns does.

    Parameters
    ----------
    worth : ndarray of shape (width, width)
        As for :func:`assign`.
    columns : ndarray of int of shape (width,)
        The answer.
    widths : tuple of int
        Rows and columns that are real, not padding.
    noise : float
        Size of rounding errors in ``worth``.
    assignment : {"optimal", "greedy"}
        How ``columns`` were found.
    """
    rows = np.arange(len(columns))
    if assignment == "greedy":
        gains = _exchange_gains(worth, columns)
        both = np.logical_and.outer
        padding = both(rows >= widths[0], rows >= widths[0])
        padding |= both(columns >= widths[1], columns >= widths[1])
        return bool(np.all(gains[~padding] < -noise))
    # The answer still wins after it is made slightly worse.
    trial = worth.copy()
    trial[rows, columns] -= 4 * len(columns) * noise
    again = assign(trial, "optimal")
    real = (rows < widths[0]) & ((columns < widths[1]) | (again < widths[1]))
    return bool(np.array_equal(columns[real], again[real]))


def _greedy(worth):
    """Take entries that are the largest of both their row and their column.

    That is the order of size, as far as it matters; the largest of all is always such
    an entry, so every round matches some.
    """
    columns = np.empty(len(worth), dtype=np.intp)
    rows_left = cols_left = np.arange(len(worth))
    while rows_left.size:
        best = worth.argmax(axis=1)
        mutual = worth.argmax(axis=0)[best] == np.arange(len(worth))
        columns[rows_left[mutual]] = cols_left[best[mutual]]
        free = np.ones(len(worth), dtype=bool)
        free[best[mutual]] = False
        worth = worth[np.ix_(~mutual, free)]
        rows_left, cols_left = rows_left[~mutual], cols_left[free]
    return columns


def _exchange_gains(worth, columns):
    """Return what is gained where rows i and k exchange their columns."""
    matched = worth[:, columns]
    kept = np.diag(matched)
    gains = matched + matched.T - kept[:, None] - kept
    np.fill_diagonal(gains, -np.inf)
    return gains


def _exchange(worth, columns):
    """Exchange pairs of columns while that gains more than rounding."""
    floor = 1e-12 * max(np.abs(worth).max(), np.finfo(float).tiny)
    rows = np.arange(len(columns))
    for _ in range(_EXCHANGES if len(columns) > 1 else 0):
        gains = _exchange_gains(worth, columns)
        partner = gains.argmax(axis=1)
        first = (partner[partner] == rows) & (rows < partner)
        first &= gains[rows, partner] > floor
        if not first.any():
            break
        one, other = rows[first], partner[first]
        columns[one], columns[other] = columns[other], columns[one]
    return columns
