"""Rank-revealing whitening: centre, scale each column, cut the rank, turn to axes.

The rank is found on columns scaled to unit variance, so that it depends neither on
units nor on the solver; the order of the directions is that of the variance in the
units of the input.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg

RANK_TOL = 1e-6
SOLVERS = ("auto", "svd", "eigh")
BLOCK_ENTRIES = 2**18
_EPS = np.finfo(np.float64).eps


class Whitening(NamedTuple):
    """Maps between the input and its whitened principal coordinates.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Mean of the rows.
    whitening : ndarray of shape (n_components, n_features)
        ``(X - mean) @ whitening.T`` has the identity as covariance (divisor
        ``n_samples``).
    dewhitening : ndarray of shape (n_features, n_components)
        Right inverse: ``whitening @ dewhitening`` is the identity.
    variances : ndarray of shape (rank,)
        Variances of all principal directions, descending, in squared input units.
    axes : ndarray of shape (n_features, rank)
        Principal directions, orthonormal columns.
    rank : int
        Number of independent directions.
    constant : ndarray of shape (n_features,)
        Whether each column is constant.
    """

    mean: np.ndarray
    whitening: np.ndarray
    dewhitening: np.ndarray
    variances: np.ndarray
    axes: np.ndarray
    rank: int
    constant: np.ndarray


def row_blocks(X):
    """Yield slices of rows that hold about ``BLOCK_ENTRIES`` numbers each."""
    size = max(256, BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], size):
        yield slice(start, start + size)


def centred_product(X, mean, matrix):
    """Return ``(X - mean) @ matrix.T`` in float64, block by block."""
    out = np.empty((X.shape[0], matrix.shape[0]))
    for rows in row_blocks(X):
        np.matmul(X[rows] - mean, matrix.T, out=out[rows])
    return out


def column_ranges(X):
    """Return mean, largest distance from it and constancy of each column.

    A column counts as constant if its range is within rounding of its values.

    Returns
    -------
    mean, reach : ndarray of shape (n_features,)
        ``reach`` is 1 for a constant column.
    constant : ndarray of bool of shape (n_features,)
    """
    total = np.zeros(X.shape[1])
    low, high = np.array(X[0], dtype=float), np.array(X[0], dtype=float)
    origin = low.copy()
    for rows in row_blocks(X):
        block = X[rows]
        total += (block - origin).sum(axis=0)
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
    mean = origin + total / X.shape[0]
    constant = high - low <= 8 * _EPS * np.maximum(np.abs(low), np.abs(high))
    mean[constant] = origin[constant]
    reach = np.where(constant, 1.0, np.maximum(high - mean, mean - low))
    return mean, reach, constant


def scaled_rows(X, mean, scale, kept):
    """Yield blocks of ``(X - mean) / scale`` in the columns kept."""
    for rows in row_blocks(X):
        block = X[rows] - mean
        block /= scale
        yield block if kept.all() else block[:, kept]


def gram(X, mean, scale, kept):
    """Return the mean outer product of the scaled rows."""
    width = int(kept.sum())
    total = np.zeros((width, width))
    for block in scaled_rows(X, mean, scale, kept):
        total += block.T @ block
    return total / X.shape[0]


def _standard_axes_eigh(X, mean, reach, kept):
    """Return deviations of columns, and singular values and axes, by ``eigh``."""
    covariance = gram(X, mean, reach, kept)
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    values, axes = linalg.eigh(correlation)
    singular = np.sqrt(np.maximum(values[::-1], 0.0))
    return deviation * reach[kept], singular, axes[:, ::-1]


def _standard_axes_svd(X, mean, reach, kept):
    """Return deviations of columns, and singular values and axes, by ``svd``."""
    Z = np.concatenate(list(scaled_rows(X, mean, reach, kept)))
    deviation = np.sqrt(np.mean(Z**2, axis=0))
    Z /= deviation
    if Z.shape[0] > 2 * Z.shape[1]:
        Z = linalg.qr(Z, mode="r", overwrite_a=True)[0][: Z.shape[1]]
    _, singular, axes = linalg.svd(Z, full_matrices=False)
    return deviation * reach[kept], singular / np.sqrt(X.shape[0]), axes.T


def _choose_solver(solver, shape, rank_tol):
    """Return ``eigh`` for tall data unless the tolerance is finer than it resolves."""
    if solver != "auto":
        return solver
    fine = rank_tol < 1e-7
    return "svd" if fine or shape[0] <= shape[1] else "eigh"


def count_components(n_components, variances):
    """Return how many principal directions ``n_components`` stands for.

    Parameters
    ----------
    n_components : None, int or float in (0, 1)
        All; at most so many; the fewest that explain this part of the variance.
    variances : ndarray of shape (rank,)
        Descending.
    """
    if n_components is None:
        return len(variances)
    if n_components < 1:
        explained = np.cumsum(variances) / variances.sum()
        return int(np.searchsorted(explained, n_components - 1e-12) + 1)
    return min(int(n_components), len(variances))


def whiten(X, n_components=None, *, solver="auto", rank_tol=None):
    r"""Find the whitening map of the rows of ``X``.

    With :math:`D` the standard deviations of the columns and
    :math:`C = V E V'` their correlation matrix cut to its rank, the input is
    :math:`X - \mu = Z (D V E^{1/2})'` with white :math:`Z`; the singular value
    decomposition :math:`D V E^{1/2} = P \Sigma Q'` turns :math:`Z` to the principal
    axes of the input, of which the first ``n_components`` are kept.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite; float64 or float32.
    n_components : None, int or float in (0, 1)
        See :func:`count_components`.
    solver : {"auto", "svd", "eigh"}
        "auto" is "eigh" if there are more rows than columns, else "svd".
    rank_tol : float, optional
        Directions of the scaled columns whose standard deviation is below
        ``rank_tol`` times the largest are cut; default 1e-6. "eigh" resolves no less
        than the root of ``n_features`` times the float64 precision.

    Returns
    -------
    Whitening

    Raises
    ------
    ValueError
        If every column is constant.
    """
    rank_tol = RANK_TOL if rank_tol is None else rank_tol
    mean, reach, constant = column_ranges(X)
    kept = ~constant
    if not kept.any():
        raise ValueError(
            f"Every column of X is constant (column 0 is {mean[0]:g}): there is no "
            "variance to whiten."
        )
    if _choose_solver(solver, X.shape, rank_tol) == "svd":
        deviation, singular, axes = _standard_axes_svd(X, mean, reach, kept)
        floor = X.shape[1] * _EPS
    else:
        deviation, singular, axes = _standard_axes_eigh(X, mean, reach, kept)
        floor = np.sqrt(X.shape[1] * _EPS)
    rank = int(np.sum(singular > max(rank_tol, floor) * singular[0]))
    singular, axes = singular[:rank], axes[:, :rank]
    return _principal(X, n_components, mean, kept, deviation, singular, axes)


def _principal(X, n_components, mean, kept, deviation, singular, axes):
    """Turn white coordinates of scaled columns to principal axes of the input."""
    unit = deviation.max()
    P, sigma, Qt = linalg.svd(
        (deviation / unit)[:, None] * axes * singular, full_matrices=False
    )
    variances = (sigma * unit) ** 2
    k = count_components(n_components, variances)
    whitening = np.zeros((k, mean.size))
    dewhitening = np.zeros((mean.size, k))
    directions = np.zeros((mean.size, len(sigma)))
    whitening[:, kept] = Qt[:k] @ (axes / singular).T / deviation
    dewhitening[kept] = deviation[:, None] * (axes * singular) @ Qt[:k].T
    directions[kept] = P
    if singular[-1] < 1e-3 * singular[0]:
        # The eigenvalues of a correlation matrix are right to the precision of the
        # largest: what that leaves in the small directions is taken out here.
        whitening, dewhitening = _polish(X, mean, whitening, dewhitening)
    return Whitening(
        mean, whitening, dewhitening, variances, directions, len(sigma), ~kept
    )


def _polish(X, mean, whitening, dewhitening):
    """Make the covariance of the whitened rows the identity to rounding."""
    Z = centred_product(X, mean, whitening)
    lower = linalg.cholesky(Z.T @ Z / X.shape[0], lower=True)
    whitening = linalg.solve_triangular(lower, whitening, lower=True)
    return whitening, dewhitening @ lower
