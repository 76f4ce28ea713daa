"""Orthogonal matrices: starts of independent component analysis, and steps."""

import numpy as np
from scipy import linalg

from skident._math.moments import tilted_covariance


def fourth_order_start(rows, form=None):
    """Return the eigenvectors of E[(z'Mz) z z'] - M - M' as a start (Cardoso 1989).

    They are the sources, if these are independent, with their kurtosis times parts of
    M as eigenvalues. Default M = 1: sources of one kurtosis have equal eigenvalues
    then, but not with others.
    """
    if form is None:
        moment = tilted_covariance(rows, lambda Z: np.einsum("ij,ij->i", Z, Z))
    else:
        moment = tilted_covariance(rows, lambda Z: np.einsum("ij,ij->i", Z @ form, Z))
        moment -= form + form.T
    return np.linalg.eigh(moment)[1].T[::-1].copy()


def third_order_start(rows, direction):
    """Return the eigenvectors of E[(u'z) z z'], the sources by their skewness."""
    moment = tilted_covariance(rows, lambda Z: Z @ direction)
    return np.linalg.eigh(moment)[1].T[::-1].copy()


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
        chosen = np.flatnonzero(square > level)
        if len(chosen) >= Z.shape[1]:
            break
    chosen = chosen[np.argsort(-square[chosen], kind="stable")][: 8 * Z.shape[1]]
    far = Z[chosen[np.lexsort((*Z[chosen].T, -square[chosen]))]]
    Q = linalg.qr(far.T.astype(np.float64), mode="economic", pivoting=True)[0]
    return Q.T if Q.shape[1] == Z.shape[1] else np.eye(Z.shape[1])


def apart_rows_start(rows):
    """Return directions of rows far from the mean and from each other, as a start.

    For rows so few that single ones decide: the farthest first, each time the one
    farthest from the span of those taken, and of equals (to 1e-6) the first by its
    coordinates, so that rounding, repeats and the order of the rows do not count.
    """
    Z = rows.source[0].astype(np.float64)
    rest = Z[np.unique(np.round(Z, 6), axis=0, return_index=True)[1]]
    axes = []
    for _ in range(Z.shape[1]):
        distance = np.einsum("ij,ij->i", rest, rest)
        chosen = rest[np.argmax(distance >= (1 - 1e-6) * distance.max())]
        axes.append(chosen / np.linalg.norm(chosen))
        rest = rest - np.outer(rest @ axes[-1], axes[-1])
    return polar(np.array(axes))


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
