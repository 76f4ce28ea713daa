"""How far two representations of the same rows are apart, out of sample."""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from skident._math import ica, procrustes
from skident._math.whitening import centred_product, row_blocks, whiten

_SWEEPS = 16
# Gradient of ICA: its sampling error is 1 / sqrt(n_samples), a few hundredths.
_TOL = 1e-3
TRANSFORMATIONS = (*procrustes.TRANSFORMATIONS, "ica")


def distances(X, point):
    """Return the distance of every row from a point."""
    out = np.empty(X.shape[0])
    for rows in row_blocks(X):
        out[rows] = linalg.norm(X[rows] - point, axis=1)
    return out


def max_diameter(X):
    """Return the largest pairwise distance found by farthest-point sweeps.

    From the row farthest from the mean to the row farthest from that, and on until the
    distance grows no more: a lower bound, at least half of the true diameter, in
    a few passes over the rows.
    """
    point, best = X.mean(axis=0), 0.0
    for sweep in range(_SWEEPS):
        away = distances(X, point)
        farthest = int(np.argmax(away))
        if sweep and away[farthest] <= best:
            break
        best = float(away[farthest]) if sweep else 0.0
        point = X[farthest]
    return best


def robust_diameter(X):
    """Return twice the 99th percentile of the distance from the mean."""
    return float(2.0 * np.quantile(distances(X, X.mean(axis=0)), 0.99))


DIAMETERS = {"max": max_diameter, "robust": robust_diameter}


class Unmixing(NamedTuple):
    """Whitening and rotation of one representation.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Mean of the rows.
    components : ndarray of shape (n_components, n_features)
        Sources are ``(X - mean) @ components.T``.
    mixing : ndarray of shape (n_features, n_components)
        The way back.
    converged : bool
        Whether the solver did.
    """

    mean: np.ndarray
    components: np.ndarray
    mixing: np.ndarray
    converged: bool

    def sources(self, X):
        """Return the sources of rows."""
        return centred_product(X, self.mean, self.components)


def unmix(X):
    """Whiten within the rank and separate; a constant ``X`` has no component."""
    try:
        white = whiten(X)
    except ValueError:
        empty = np.zeros((0, X.shape[1]))
        return Unmixing(X.mean(axis=0), empty, empty.T, True)
    solution = ica.solve(centred_product(X, white.mean, white.whitening), tol=_TOL)
    return Unmixing(
        white.mean,
        solution.rotation @ white.whitening,
        white.dewhitening @ solution.rotation.T,
        solution.converged,
    )


def ica_maps(X, Y):
    """Return the two maps between representations through matched components.

    Each side is unmixed by itself; the only supervision is the signed permutation
    that matches the components.

    Returns
    -------
    forward, backward : callable
        Map rows of ``X`` to ``Y`` and back.
    converged : bool
    """
    left, right = unmix(X), unmix(Y)
    match = procrustes.permutation_map(left.sources(X), right.sources(Y)).rotation
    match = match[:, : right.components.shape[0]]

    def forward(rows):
        return left.sources(rows) @ match @ right.mixing.T + right.mean

    def backward(rows):
        return right.sources(rows) @ match.T @ left.mixing.T + left.mean

    return forward, backward, left.converged and right.converged


def both_maps(name, X, Y):
    """Return the best maps of one group from ``X`` to ``Y`` and back, and a flag.

    The flag is False where the rows do not determine the map (or ICA has not
    converged).
    """
    if name == "ica":
        return ica_maps(X, Y)
    there = procrustes.TRANSFORMATIONS[name](X, Y)
    back = procrustes.TRANSFORMATIONS[name](Y, X)
    return there.apply, back.apply, there.unique and back.unique


def row_errors(mapped, target):
    """Return the distance of each mapped row from its target, zero-padded."""
    width = max(mapped.shape[1], target.shape[1])
    padded = procrustes.pad_columns(target, width)
    return linalg.norm(procrustes.pad_columns(mapped, width) - padded, axis=1)


def crossfitted_errors(X, Y, transformations, folds):
    """Fit each map on all folds but one and measure it on that one.

    Parameters
    ----------
    X, Y : ndarray of shape (n_samples, n_features)
        Paired rows; the widths may differ.
    transformations : sequence of str
        Names among ``TRANSFORMATIONS``.
    folds : ndarray of int of shape (n_samples,)
        Fold of each row.

    Returns
    -------
    errors : ndarray of shape (2, n_samples, n_transformations)
        Distances in the target's own units; X to Y first, then Y to X.
    sound : ndarray of bool of shape (n_transformations,)
        Whether every map was determined by its rows (and ICA converged).
    """
    errors = np.empty((2, X.shape[0], len(transformations)))
    sound = np.ones(len(transformations), dtype=bool)
    for fold in np.unique(folds):
        test = folds == fold
        train = ~test
        for k, name in enumerate(transformations):
            there, back, determined = both_maps(name, X[train], Y[train])
            errors[0, test, k] = row_errors(there(X[test]), Y[test])
            errors[1, test, k] = row_errors(back(Y[test]), X[test])
            sound[k] &= determined
    return errors, sound
