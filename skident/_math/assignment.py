"""One-to-one matching of columns: by optimal assignment, or greedily if very wide."""

import numpy as np
from scipy import optimize

# Up to this width of the narrower side an optimal assignment takes seconds.
LARGEST_OPTIMAL = 2000
ASSIGNMENTS = ("auto", "optimal", "greedy")
_EXCHANGES = 100


def choose_assignment(assignment, width):
    """Return what ``"auto"`` stands for.

    Parameters
    ----------
    assignment : {"auto", "optimal", "greedy"}
        All but "auto" are returned as they are.
    width : int
        Number of columns of the narrower side.
    """
    if assignment != "auto":
        return assignment
    return "optimal" if width <= LARGEST_OPTIMAL else "greedy"


def size(worth):
    """Return the largest absolute value, not 0."""
    return max(float(worth.max()), -float(worth.min()), np.finfo(float).tiny)


def assign(worth, assignment):
    """Return a column of its own for each row of a matrix: the sum is made large.

    Parameters
    ----------
    worth : ndarray of shape (n_rows, n_columns)
        What is gained by matching a row to a column; ``n_rows <= n_columns``.
    assignment : {"optimal", "greedy"}
        "greedy" takes the largest entry, then the largest of what is left, and so on,
        and then exchanges columns while that gains.

    Returns
    -------
    ndarray of int of shape (n_rows,)
    """
    if assignment == "greedy":
        return _exchange(worth, _greedy(worth))
    if worth.shape[0] == worth.shape[1]:
        # What all matchings lose alike is taken off first: that halves the time.
        worth = worth - worth.max(axis=1, keepdims=True)
        worth -= worth.max(axis=0)
    return optimize.linear_sum_assignment(worth, maximize=True)[1]


def is_unique(worth, columns, noise, assignment):
    """Return whether no other assignment does as well to rounding.

    For the greedy one, whether no exchange of columns does.

    Parameters
    ----------
    worth : ndarray of shape (n_rows, n_columns)
        As for :func:`assign`.
    columns : ndarray of int of shape (n_rows,)
        The answer.
    noise : float
        Size of rounding errors in ``worth``.
    assignment : {"optimal", "greedy"}
        How ``columns`` were found.
    """
    if assignment == "greedy":
        gains = _exchange_gains(worth, _with_free(columns, worth.shape[1]))
        return bool(np.all(gains < -noise))
    # The answer still wins after it is made slightly worse.
    trial = worth.copy()
    trial[np.arange(len(columns)), columns] -= 4 * worth.shape[1] * noise
    return bool(np.array_equal(assign(trial, "optimal"), columns))


def _greedy(worth):
    """Take entries that are the largest of both their row and their column.

    That is the order of size, as far as it matters; the largest of all is always such
    an entry, so every round matches some.
    """
    count, width = worth.shape
    columns, best = np.empty(count, dtype=np.intp), np.empty(count, dtype=np.intp)
    live, free = np.arange(count), np.ones(width, dtype=bool)
    robbed = live
    while live.size:
        left = np.flatnonzero(free)
        best[robbed] = left[worth[np.ix_(robbed, left)].argmax(axis=1)]
        wanted = np.unique(best[live])
        rivals = live[worth[np.ix_(live, wanted)].argmax(axis=0)]
        mutual = best[rivals] == wanted
        columns[rivals[mutual]] = wanted[mutual]
        free[wanted[mutual]] = False
        live = np.setdiff1d(live, rivals[mutual])
        robbed = live[~free[best[live]]]
    return columns


def _with_free(columns, width):
    """Return all columns: those taken, in the order of their rows, then the others."""
    return np.append(columns, np.setdiff1d(np.arange(width), columns))


def _exchange_gains(worth, order):
    """Return what row i gains, with the owner, in exchange for the k-th of ``order``.

    Parameters
    ----------
    worth : ndarray of shape (n_rows, n_columns)
        As for :func:`assign`.
    order : ndarray of int of shape (n_columns,)
        As by :func:`_with_free`: the k-th column is that of row k, or free.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        -inf where nothing is exchanged.
    """
    count = len(worth)
    gains = np.take(worth, order, axis=1)
    gains -= np.diag(gains).copy()[:, None]
    gains[:, :count] += gains[:, :count].T.copy()
    np.fill_diagonal(gains, -np.inf)
    return gains


def _exchange(worth, columns):
    """Exchange columns, in pairs or with free ones, while that gains over rounding."""
    count, width = worth.shape
    floor = 1e-12 * size(worth)
    order, rows = _with_free(columns, width), np.arange(count)
    gains = _exchange_gains(worth, order)
    for _ in range(_EXCHANGES if width > 1 else 0):
        best = gains.argmax(axis=1)
        partner = np.append(best, gains[:, count:].argmax(axis=0))
        first = (partner[best] == rows) & (rows < best) & (gains[rows, best] > floor)
        if not first.any():
            break
        one, other = rows[first], best[first]
        order[one], order[other] = order[other], order[one]
        _update_gains(gains, worth, order, np.append(one, other))
    return order[:count]


def _update_gains(gains, worth, order, changed):
    """Bring :func:`_exchange_gains` up to date after some of ``order`` changed."""
    count = len(worth)
    kept = worth[np.arange(count), order[:count]]
    rows = changed[changed < count]
    gains[:, changed] = worth[:, order[changed]] - kept[:, None]
    gains[rows] = worth[np.ix_(rows, order)] - kept[rows, None]
    gains[rows, :count] += worth[:, order[rows]].T - kept
    gains[:, rows] = gains[rows, :count].T
    np.fill_diagonal(gains, -np.inf)
