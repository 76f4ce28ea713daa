"""Orthogonal matrices: starts of independent component analysis, and steps."""

import numpy as np
from scipy import linalg

from skident._math.moments import fourth_moments


def fourth_order_start(rows):
    """Return the eigenvectors of E[|z|^2 z z'] as a start (Cardoso 1989)."""
    return np.linalg.eigh(fourth_moments(rows))[1].T[::-1].copy()


def far_rows_start(rows):
    """Return directions of rows far from the mean, orthogonalised, as a start.

    A row is far because one source of heavy tails is large in it, whose direction it
    then has. Farthest first, and each time the one farthest from the span of those
    taken (pivoted QR); candidates are rows whose squared norm is two standard
    deviations above its mean, at most eight a component.
    """
    Z, weights = rows.source[0], rows.weights
    square = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
    share = np.ones(len(Z)) if weights is None else weights
    mean = np.average(square, weights=share)
    spread = np.sqrt(np.average((square - mean) ** 2, weights=share))
    for level in (mean + 2 * spread, mean, -1.0):
        chosen = np.flatnonzero((square > level) & (share > 0))
        if len(chosen) >= Z.shape[1]:
            break
    chosen = chosen[np.argsort(-square[chosen], kind="stable")][: 8 * Z.shape[1]]
    far = Z[chosen[np.lexsort((*Z[chosen].T, -square[chosen]))]]
    Q = linalg.qr(far.T.astype(np.float64), mode="economic", pivoting=True)[0]
    return Q.T if Q.shape[1] == Z.shape[1] else np.eye(Z.shape[1])


def random_rotation(rng, k):
    """Return an orthogonal matrix from the uniform distribution."""
    Q, R = np.linalg.qr(rng.standard_normal((k, k)))
    return (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).T


def polar(matrix):
    """Return the orthogonal matrix that is nearest to a square one."""
    values, axes = np.linalg.eigh(matrix.T @ matrix)
    if values[0] <= 1e-8 * values[-1]:
        return linalg.polar(matrix)[0]
    near = matrix @ (axes / np.sqrt(values)) @ axes.T
    return near @ (1.5 * np.eye(len(near)) - 0.5 * (near.T @ near))


def cayley(skew):
    """Return the orthogonal (1 - A/2)^-1 (1 + A/2): exp A to second order."""
    unit = np.eye(len(skew))
    return np.linalg.solve(unit - 0.5 * skew, unit + 0.5 * skew)
