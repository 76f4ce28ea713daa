"""Affine maps of least squared error, with a ridge that may be chosen from the rows."""

import numpy as np
from scipy import linalg

from skident._math.motion import (
    EPS,
    Motion,
    exponent,
    in_units,
    pair_rows,
    powers_of_two,
)

# Ridges tried by cross-validation, in units of the largest squared singular value.
RIDGES = 10.0 ** np.linspace(-10.0, 2.0, 25)
# Below this reciprocal condition number, equations are solved by eigenvectors.
_WELL_CONDITIONED = 1e-10


def linear_map(X, Y, *, weights=None, alpha=0.0, center=True):
    r"""Find the affine map of least squared error, with an optional ridge.

    .. math:: \min_{B, b} \; \sum_n w_n \lVert x_n B + b - y_n \rVert^2
        + \alpha \lVert B \rVert^2

    Without a ridge, where several maps fit equally well, it is the one that is smallest
    on columns of unit variance.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_source)
        Rows to map.
    Y : ndarray of shape (n_samples, n_target)
        Where each should go.
    weights : ndarray of shape (n_samples,), optional
        Of the rows.
    alpha : float or "cv"
        Weight of the squared entries of the map, in squared units of ``X``; see
        :func:`fit_linear`.
    center : bool
        Whether there is an intercept ``b``; else both means are 0.

    Returns
    -------
    Motion
    """
    return fit_linear(X, Y, weights=weights, alpha=alpha, center=center)[0]


def fit_linear(X, Y, *, weights=None, alpha=0.0, center=True):
    r"""Return the map of :func:`linear_map` and its ridge.

    With ``alpha="cv"`` the ridge is that of ``RIDGES``, times the largest squared
    singular value of the centred rows, of least leave-one-out error

    .. math:: \sum_n w_n \left\lVert \frac{r_n}{1 - h_n} \right\rVert^2 ,

    with :math:`r` the residuals and :math:`h` the leverages of the map to all rows.

    Returns
    -------
    motion : Motion
    alpha : float
        In squared units of ``X``, times those of the weights.
    """
    pair = pair_rows(X, Y, weights, center)
    p = pair.X.shape[1]
    unit = np.ones(p)
    if alpha == 0:
        largest = np.abs(pair.X).max(axis=0)
        power = powers_of_two(largest)
        size = power * np.sqrt(np.mean((pair.X / power) ** 2, axis=0))
        unit = np.where(largest > 0, size, 1.0)
    Q, R = linalg.qr(pair.X / unit, mode="economic", overwrite_a=True)
    U, singular, Vt = linalg.svd(R, full_matrices=False)
    left = Q @ U
    loads = left.T @ pair.Y
    kept = singular > EPS * max(pair.X.shape) * max(singular[0], np.finfo(float).tiny)
    power = 2 * exponent(pair.unit_x) + exponent(pair.unit_w)
    if isinstance(alpha, str):
        ridge = _leave_one_out(pair, left, singular, loads, center)
        alpha = _saturated(ridge, power)
    else:
        ridge = _saturated(alpha, -power)
    gain = np.zeros_like(singular)
    with np.errstate(over="ignore"):
        gain[kept] = 1.0 / (singular[kept] + ridge / singular[kept])
    B = (Vt.T * gain) @ loads / unit[:, None]
    B = in_units(B, exponent(pair.unit_y) - exponent(pair.unit_x))
    unique = alpha > 0 or int(kept.sum()) == p
    return Motion(B, 1.0, pair.mean_x, pair.mean_y, bool(unique)), alpha


def _saturated(value, power):
    """Return ``value * 2**power``, held within the range of floats."""
    with np.errstate(over="ignore"):
        return float(min(np.ldexp(value, power), np.finfo(float).max))


def _leave_one_out(pair, left, singular, loads, center):
    """Return the ridge of ``RIDGES`` of least leave-one-out error."""
    square = singular**2
    if square[0] == 0.0:
        return 0.0
    mean_leverage = center * pair.root[:, 0] ** 2 / np.sum(pair.root**2)
    best, least = 0.0, np.inf
    for ridge in RIDGES * square[0]:
        shrink = square / (square + ridge)
        residual = pair.Y - (left * shrink) @ loads
        leverage = mean_leverage + left**2 @ shrink
        left_out = residual / np.maximum(1.0 - leverage, EPS)[:, None]
        error = np.vdot(left_out, left_out)
        if error < least:
            best, least = float(ridge), error
    return best


def linear_from_sums(sums):
    """Return :func:`linear_map` without a ridge from centred sums.

    Directions of the scaled columns whose standard deviation is below about 1e-7 of the
    largest are lost in the squares and count as dependent.

    Parameters
    ----------
    sums : Sums
        With ``xx``.

    Returns
    -------
    Motion
    """
    alive = sums.square_x > 0
    size = np.sqrt(sums.square_x[alive])
    correlation = sums.xx[np.ix_(alive, alive)] / np.outer(size, size)
    np.fill_diagonal(correlation, 1.0)
    right = sums.xy[alive] / size[:, None]
    solution, full = _solve(correlation, right)
    B = np.zeros(sums.xy.shape)
    B[alive] = solution / size[:, None]
    return Motion(B, 1.0, sums.mean_x, sums.mean_y, bool(full and alive.all()))


def _solve(correlation, right):
    """Return the smallest solution of symmetric equations, and whether it is unique."""
    factor, info = linalg.lapack.dpotrf(correlation, lower=1)
    if info == 0:
        norm = np.abs(correlation).sum(axis=0).max(initial=1.0)
        if linalg.lapack.dpocon(factor, norm, uplo="L")[0] > _WELL_CONDITIONED:
            return linalg.cho_solve((factor, True), right), True
    values, vectors = linalg.eigh(correlation)
    largest = values.max(initial=0.0)
    kept = values > 8 * EPS * len(values) * largest
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
    return (vectors * inverse) @ (vectors.T @ right), bool(kept.all())
