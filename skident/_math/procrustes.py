r"""The best map between two sets of paired rows, in each group of transformations.

Every map has the one form

.. math:: T(x) = c \, (x - \mu_X) R + \mu_Y .

For rigid maps and permutations the narrower side is padded with columns of zeros: with
:math:`p` and :math:`q` columns, :math:`R` is :math:`p \times \max(p, q)`, the first
rows of an orthogonal matrix, and :math:`\mu_Y` ends in zeros where :math:`p > q`.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

_EPS = np.finfo(np.float64).eps


class Motion(NamedTuple):
    """A map ``scale * (X - source_mean) @ rotation + target_mean``.

    Attributes
    ----------
    rotation : ndarray of shape (n_source, n_target)
        ``n_target`` is the padded width for rigid maps and permutations.
    scale : float
        One factor for all coordinates.
    source_mean : ndarray of shape (n_source,)
        Mean of the source.
    target_mean : ndarray of shape (n_target,)
        Mean of the target, zero in padded columns.
    reflection : bool
        Whether the map between equal widths turns space inside out (determinant < 0).
    unique : bool
        Whether no other map of the group does equally well.
    """

    rotation: np.ndarray
    scale: float
    source_mean: np.ndarray
    target_mean: np.ndarray
    reflection: bool
    unique: bool

    def apply(self, X):
        """Return the mapped rows."""
        return self.scale * ((X - self.source_mean) @ self.rotation) + self.target_mean

    def invert(self, Y):
        """Return the rows whose map is nearest to ``Y``."""
        back = np.linalg.pinv(self.rotation) / self.scale
        return (Y - self.target_mean) @ back + self.source_mean


def pad_columns(array, width):
    """Return ``array`` with columns of zeros appended up to ``width``."""
    missing = width - array.shape[1]
    return np.pad(array, ((0, 0), (0, missing))) if missing > 0 else array


def _centre(array):
    array = np.asarray(array, dtype=np.float64)
    mean = array.mean(axis=0)
    return array - mean, mean


def _determinant_is_negative(matrix):
    square = matrix.shape[0] == matrix.shape[1]
    return bool(square and np.linalg.slogdet(matrix)[0] < 0)


def _nearest_orthogonal(matrix, sign=0):
    """Return the orthogonal factor; with ``sign``, of that determinant."""
    U, _, Vt = linalg.svd(matrix, full_matrices=False)
    if sign and sign * np.linalg.slogdet(U @ Vt)[0] < 0:
        U[:, -1] *= -1.0
    return U @ Vt


def orthogonal_factor(cross, real, noise, proper=False):
    """Maximise ``trace(R.T @ cross)`` over matrices with orthonormal rows.

    Where ``cross`` leaves ``R`` free, ``R`` is as near to the identity as can be.

    Parameters
    ----------
    cross : ndarray of shape (n_source, n_target)
        ``n_source <= n_target``.
    real : int
        Number of singular values that data determine: the smaller unpadded width.
    noise : float
        Singular values up to here count as zero.
    proper : bool
        Whether a square ``R`` must have determinant +1.

    Returns
    -------
    R : ndarray of shape (n_source, n_target)
    strengths : ndarray of shape (n_source,)
        Singular values with the sign with which they count: ``trace(R.T @ cross)``
        is their sum.
    unique : bool
    """
    p, m = cross.shape
    U, singular, Vt = linalg.svd(cross)
    rank = int(np.sum(singular > noise))
    strengths = singular.copy()
    R = U[:, :rank] @ Vt[:rank]
    if rank < p:
        U0, V0 = U[:, rank:], Vt[rank:].T
        sign = 0
        if proper and p == m:
            sign = np.sign(np.linalg.det(U) * np.linalg.det(Vt))
        R = R + U0 @ _nearest_orthogonal(U0.T @ np.eye(p, m) @ V0, sign) @ V0.T
    elif proper and _determinant_is_negative(R):
        R = R - 2.0 * np.outer(U[:, -1], Vt[p - 1])
        strengths[-1] *= -1.0
    if proper and p == m == real:
        # A rotation is fixed by all axes but one, unless that one pulls back equally.
        unique = p == 1 or strengths[-2] + strengths[-1] > noise
    else:
        unique = rank >= real
    return R, strengths, bool(unique)


def _padded_cross(X, Y):
    width = max(X.shape[1], Y.shape[1])
    noise = 8 * _EPS * width * linalg.norm(X) * linalg.norm(Y)
    return pad_columns(X.T @ Y, width), noise


def rigid_map(X, Y, *, allow_reflection=True, scaling=False):
    r"""Find the rotation, translation and, if asked for, scale of least squared error.

    .. math:: \min_{R' R = I, \mu, c} \; \sum_n \lVert c (x_n - \mu_X) R + \mu_Y
        - y_n \rVert^2

    Between unequal widths a reflection is a rotation of the wider space, so the
    restriction to rotations costs nothing there.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_source)
        Rows to move.
    Y : ndarray of shape (n_samples, n_target)
        Where each should go.
    allow_reflection : bool
        Whether the determinant may be -1.
    scaling : bool
        Whether the factor ``c`` is fitted; else it is 1.

    Returns
    -------
    Motion
    """
    X, source_mean = _centre(X)
    Y, target_mean = _centre(Y)
    real = min(X.shape[1], Y.shape[1])
    proper = not allow_reflection or X.shape[1] != Y.shape[1]
    cross, noise = _padded_cross(X, Y)
    R, strengths, unique = orthogonal_factor(cross, real, noise, proper)
    size = np.vdot(X, X)
    # A scale of zero (nothing in common) would collapse the rows: then it stays 1.
    scale = float(strengths.sum() / size) if scaling and size > 0 else 1.0
    scale = scale if scale > 0 else 1.0
    target_mean = np.pad(target_mean, (0, cross.shape[1] - target_mean.size))
    reflection = _determinant_is_negative(R)
    return Motion(R, scale, source_mean, target_mean, reflection, unique)


def error_gain(X, Y):
    """Return what matching columns i and j takes off half the squared error."""
    return X.T @ Y


def correlation_gain(X, Y):
    """Return the correlation of columns i and j; 0 for constant columns."""
    size = np.outer(linalg.norm(X, axis=0), linalg.norm(Y, axis=0))
    return np.divide(X.T @ Y, size, out=np.zeros_like(size), where=size > 0)


CRITERIA = {"error": error_gain, "correlation": correlation_gain}


def permutation_map(X, Y, *, signed=True, criterion="error"):
    r"""Match columns one to one, by an optimal assignment after centring.

    .. math:: \max_{\pi, s} \; \sum_j s_j \, g_{\pi(j) j}

    with :math:`g` the inner products of centred columns ("error": the least squared
    error) or their correlations ("correlation").

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_source)
        Columns to reorder.
    Y : ndarray of shape (n_samples, n_target)
        Columns to match.
    signed : bool
        Whether a column may change its sign.
    criterion : {"error", "correlation"}
        What is made best.

    Returns
    -------
    Motion
    """
    X, source_mean = _centre(X)
    Y, target_mean = _centre(Y)
    p, q = X.shape[1], Y.shape[1]
    width = max(p, q)
    gain = np.zeros((width, width))
    gain[:p, :q] = CRITERIA[criterion](X, Y)
    worth = np.abs(gain) if signed else gain
    noise = 8 * _EPS * width * max(np.abs(gain).max(), np.finfo(float).tiny)
    columns = _assign(worth + noise * np.eye(width))
    rows = np.arange(width)
    signs = np.where(gain[rows, columns] < 0, -1.0, 1.0) if signed else np.ones(width)
    P = np.zeros((width, width))
    P[rows, columns] = signs
    target_mean = np.pad(target_mean, (0, width - q))
    reflection = p == q and _determinant_is_negative(P)
    unique = _assignment_is_unique(worth, columns, (p, q), 4 * width * noise)
    if signed:
        used = (rows < p) & (columns < q)
        unique = unique and bool(np.all(worth[rows, columns][used] > noise))
    return Motion(P[:p], 1.0, source_mean, target_mean, reflection, unique)


def _assign(worth):
    return optimize.linear_sum_assignment(worth, maximize=True)[1]


def _assignment_is_unique(worth, columns, widths, handicap):
    """Return whether the answer still wins after it is made slightly worse."""
    rows = np.arange(len(columns))
    trial = worth.copy()
    trial[rows, columns] -= handicap
    again = _assign(trial)
    real = (rows < widths[0]) & ((columns < widths[1]) | (again < widths[1]))
    return bool(np.array_equal(columns[real], again[real]))


def linear_map(X, Y, *, alpha=0.0):
    r"""Find the affine map of least squared error, with an optional ridge.

    .. math:: \min_{B, b} \; \sum_n \lVert x_n B + b - y_n \rVert^2
        + \alpha \lVert B \rVert^2

    Without a ridge, where several maps fit equally well, it is the one that is smallest
    on columns of unit variance.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_source)
        Rows to map.
    Y : ndarray of shape (n_samples, n_target)
        Where each should go.
    alpha : float
        Weight of the squared entries of the map, in squared units of ``X``.

    Returns
    -------
    Motion
    """
    X, source_mean = _centre(X)
    Y, target_mean = _centre(Y)
    p = X.shape[1]
    unit = np.ones(p)
    if alpha == 0:
        size = np.sqrt(np.mean(X**2, axis=0))
        rounding = 8 * _EPS * np.abs(source_mean)
        unit = np.where(size > rounding, size, np.inf)
    Q, R = linalg.qr(X / unit, mode="economic", overwrite_a=True)
    U, singular, Vt = linalg.svd(R, full_matrices=False)
    kept = singular > _EPS * max(X.shape) * singular[0]
    weights = np.divide(
        singular, singular**2 + alpha, out=np.zeros_like(singular), where=kept
    )
    B = (Vt.T * weights) @ (U.T @ (Q.T @ Y)) / unit[:, None]
    unique = alpha > 0 or int(kept.sum()) == p
    reflection = _determinant_is_negative(B)
    return Motion(B, 1.0, source_mean, target_mean, reflection, unique)


TRANSFORMATIONS = {
    "permutation": permutation_map,
    "rigid": rigid_map,
    "linear": linear_map,
}


def explained_variance(target, mapped):
    """Return 1 - squared error / squared distance from the mean, over all columns.

    1 if ``target`` is constant and met to rounding, 0 if constant and not met.
    """
    rounding = np.finfo(target.dtype).eps * np.abs(target).max()
    target = target.astype(np.float64)
    error = np.sum((target - mapped) ** 2)
    # centred on a row first: the mean of equal rows is then exact
    centred = target - target[0]
    spread = np.sum((centred - centred.mean(axis=0)) ** 2)
    rounding = float(rounding) ** 2 * target.size
    if spread <= 4 * rounding:
        return float(error <= 64 * rounding)
    return float(1.0 - error / spread)
