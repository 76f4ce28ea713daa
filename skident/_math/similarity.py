"""How alike two sets of paired rows are, from products of their columns.

Rows are read in blocks; nothing of size rows by rows is made unless a side has more
columns than rows, whose rows are then first turned into as many columns as rows.
"""

from typing import NamedTuple

import numpy as np

from skident._math.motion import EPS
from skident._math.paired_rows import Rows, blocks, open_rows
from skident._math.procrustes import robust_svd
from skident._math.whitening import whiten

# What is left of a cancelling sum, in units of its terms, below which it is rounding.
_ROUNDING = 64 * EPS


def centred_rows(array):
    """Return rows to be read in float64, centred to rounding.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_features)
        Finite, of any real type; may be a memory map. With more columns than rows it is
        read at once, and its centred rows are turned, by a rotation that keeps all
        products between them, into ``n_samples`` columns.

    Returns
    -------
    Rows
    """
    rows = open_rows(array)._replace(dtype=np.float64)
    n, width = array.shape
    rest = np.zeros(width)
    for part in blocks(n, width):
        rest += rows.take(part).sum(axis=0)
    rows = rows._replace(centre=rows.centre + rest / n)
    if width <= n:
        return rows
    turned = np.linalg.qr(rows.take(slice(None)).T, mode="r").T
    return Rows(np.ascontiguousarray(turned), np.zeros(n), 1.0, np.float64)


def _paired_blocks(X, Y):
    n, width = X.shape
    for part in blocks(n, width + Y.shape[1]):
        yield X.take(part), Y.take(part)


def square_norm(rows):
    """Return the sum of squares of all entries of centred rows."""
    n, width = rows.shape
    return sum(float((rows.take(part) ** 2).sum()) for part in blocks(n, width))


def kernel_alignment(X, Y, *, debiased):
    """Return the inner products of two linear kernels and of each with itself.

    Parameters
    ----------
    X, Y : Rows
        Of :func:`centred_rows`, with as many rows, at least four if ``debiased``.
    debiased : bool
        Whether diagonals are left out and the rest is centred without bias (Song et
        al. 2012, equation 5, times a constant), or kernels are centred as they are.

    Returns
    -------
    tuple of float
        Products XY, XX, YY. With ``debiased`` the first may be negative; XX or YY is
        zero where its rows are all equally far apart.
    """
    n = X.shape[0]
    xy = np.zeros((X.shape[1], Y.shape[1]))
    xx, yy = np.zeros((X.shape[1],) * 2), np.zeros((Y.shape[1],) * 2)
    totals, products = np.zeros(2), np.zeros((2, 2))
    for x, y in _paired_blocks(X, Y):
        xy += x.T @ y
        xx += x.T @ x
        yy += y.T @ y
        # diagonals of the kernels
        squares = np.stack([(x * x).sum(axis=1), (y * y).sum(axis=1)])
        totals += squares.sum(axis=1)
        products += squares @ squares.T
    norms = [float((product**2).sum()) for product in (xy, xx, yy)]
    if not debiased:
        return tuple(norms)
    return tuple(
        _without_diagonals(norm, products[i, j], totals[i] * totals[j], n)
        for norm, (i, j) in zip(norms, ((0, 1), (0, 0), (1, 1)), strict=True)
    )


def _without_diagonals(norm, product, total, n):
    """Return the unbiased product of two kernels of centred rows."""
    terms = norm, -n / (n - 2) * product, total / ((n - 1) * (n - 2))
    result = sum(terms)
    return 0.0 if abs(result) <= _ROUNDING * sum(map(abs, terms)) else result


def procrustes_chord(X, Y):
    """Return the distance of two centred sets of rows of unit norm, best rotated.

    Parameters
    ----------
    X, Y : Rows
        Of :func:`centred_rows`, with as many rows, neither all zero. The narrower is
        padded with columns of zeros.

    Returns
    -------
    float
        In [0, sqrt(2)]; measured after the rotation, so that nothing cancels.
    """
    if X.shape[1] > Y.shape[1]:
        X, Y = Y, X
    sizes = [np.sqrt(square_norm(rows)) for rows in (X, Y)]
    cross = sum(x.T @ y for x, y in _paired_blocks(X, Y))
    U, _, Vt = robust_svd(cross / (sizes[0] * sizes[1]), full_matrices=False)
    square = 0.0
    for x, y in _paired_blocks(X, Y):
        square += float((((x / sizes[0]) @ (U @ Vt) - y / sizes[1]) ** 2).sum())
    return min(float(np.sqrt(square)), np.sqrt(2.0))


class Canonical(NamedTuple):
    """Canonical correlations and how much of the first side each accounts for.

    Attributes
    ----------
    correlations : ndarray of shape (n_pairs,)
        Descending, in [0, 1]; as many as the smaller rank.
    weights : ndarray of shape (n_pairs,)
        Sum over the columns of the first side of the absolute covariance with the
        canonical variable.
    ranks : tuple of int
        Ranks of both sides.
    """

    correlations: np.ndarray
    weights: np.ndarray
    ranks: tuple


def canonical_correlations(X, Y, rank_tol=None):
    """Return the canonical correlations between the spans of two sets of columns.

    Parameters
    ----------
    X, Y : ndarray of shape (n_samples, n_features)
        Finite, neither constant. Dependent and constant columns count for nothing.
    rank_tol : float, optional
        As for :func:`skident._math.whitening.whiten`.

    Returns
    -------
    Canonical
    """
    X, Y = (
        side if side.dtype in (np.float64, np.float32) else side.astype(np.float64)
        for side in (X, Y)
    )
    sides = [whiten(side, rank_tol=rank_tol) for side in (X, Y)]
    first, second = sides
    cross = np.zeros((len(first.whitening), len(second.whitening)))
    for part in blocks(len(X), X.shape[1] + Y.shape[1]):
        white = [
            (np.asarray(side[part], dtype=np.float64) - map_.mean) @ map_.whitening.T
            for side, map_ in zip((X, Y), sides, strict=True)
        ]
        cross += white[0].T @ white[1]
    U, correlations, _ = robust_svd(cross / len(X), full_matrices=False)
    weights = np.abs(first.dewhitening @ U).sum(axis=0)
    return Canonical(
        np.clip(correlations, 0.0, 1.0), weights, (first.rank, second.rank)
    )
