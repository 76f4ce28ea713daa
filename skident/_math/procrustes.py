"""The best map between two sets of paired rows, in each group of transformations."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg

from skident._math import assignment as matching
from skident._math.affine import linear_from_sums, linear_map
from skident._math.motion import (
    EPS,
    Motion,
    determinant_is_negative,
    exponent,
    in_units,
    pad_columns,
    pair_rows,
    powers_of_two,
)


def robust_svd(matrix, full_matrices=True):
    """Return the singular value decomposition, by the slow driver if the fast fails."""
    try:
        return np.linalg.svd(matrix, full_matrices=full_matrices)
    except np.linalg.LinAlgError:
        return linalg.svd(matrix, full_matrices, lapack_driver="gesvd")


def _nearest_orthogonal(matrix, sign=0):
    """Return the orthogonal factor; with ``sign``, of that determinant."""
    U, _, Vt = robust_svd(matrix, full_matrices=False)
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
    U, singular, Vt = robust_svd(cross)
    rank = int(np.sum(singular > noise))
    strengths = singular.copy()
    R = U[:, :rank] @ Vt[:rank]
    if rank < p:
        U0, V0 = U[:, rank:], Vt[rank:].T
        sign = 0
        if proper and p == m:
            sign = np.linalg.slogdet(U)[0] * np.linalg.slogdet(Vt)[0]
        R = R + U0 @ _nearest_orthogonal(U0.T @ np.eye(p, m) @ V0, sign) @ V0.T
    elif proper and determinant_is_negative(R):
        R = R - 2.0 * np.outer(U[:, -1], Vt[p - 1])
        strengths[-1] *= -1.0
    if proper and p == m == real:
        # A rotation is fixed by all axes but one, unless that one pulls back equally.
        unique = p == 1 or strengths[-2] + strengths[-1] > noise
    else:
        unique = rank >= real
    return R, strengths, bool(unique)


def _factor_in_span(X, Y, real, noise, proper):
    """Return :func:`orthogonal_factor` of ``X.T @ Y`` where rows are few.

    Outside the span of the rows of both sides the nearest to the identity is the
    identity, so the problem is solved within that span.

    Parameters
    ----------
    X, Y : ndarray of shape (n_samples, width)
        Centred, padded to one width.
    real, noise, proper
        As for :func:`orthogonal_factor`.
    """
    basis = linalg.qr(np.concatenate([X, Y]).T, mode="economic")[0]
    cross = (X @ basis).T @ (Y @ basis)
    turn, strengths, unique = orthogonal_factor(cross, real, noise, proper)
    turn[np.diag_indices_from(turn)] -= 1.0
    R = (basis @ turn) @ basis.T
    R[np.diag_indices_from(R)] += 1.0
    return R, strengths, unique


def rigid_map(X, Y, *, weights=None, allow_reflection=True, scaling=False, center=True):
    r"""Find the rotation, translation and, if asked for, scale of least squared error.

    .. math:: \min_{R' R = I, \mu, c} \; \sum_n w_n \lVert c (x_n - \mu_X) R + \mu_Y
        - y_n \rVert^2

    Between unequal widths a reflection is a rotation of the wider space, so the
    restriction to rotations costs nothing there.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_source)
        Rows to move.
    Y : ndarray of shape (n_samples, n_target)
        Where each should go.
    weights : ndarray of shape (n_samples,), optional
        Of the rows.
    allow_reflection : bool
        Whether the determinant may be -1.
    scaling : bool
        Whether the factor ``c`` is fitted; else it is 1.
    center : bool
        Whether there is a translation; else both means are 0.

    Returns
    -------
    Motion
    """
    pair = pair_rows(X, Y, weights, center)
    p, q = pair.X.shape[1], pair.Y.shape[1]
    few = p >= q and 2 * len(pair.X) < p
    motion = _rigid(
        pair.sums(),
        (pair.X, pad_columns(pair.Y, p)) if few else None,
        allow_reflection=allow_reflection,
        scaling=scaling,
    )
    if not scaling:
        return motion
    if motion.scale == 0.0:  # nothing in common: a factor of 0 would collapse the rows
        return motion._replace(scale=1.0)
    power = exponent(pair.unit_y) - exponent(pair.unit_x)
    scale = in_units(np.float64(motion.scale), power)
    return motion._replace(scale=float(scale))


def rigid_from_sums(sums):
    """Return :func:`rigid_map` with reflections and without scale from centred sums."""
    return _rigid(sums, None, allow_reflection=True, scaling=False)


def _rigid(sums, rows, *, allow_reflection, scaling):
    """Return the map in the units of the sums; with scaling, 0 if it is rounding."""
    p, q = sums.xy.shape
    proper = not allow_reflection or p != q
    if rows is None:
        cross = pad_columns(sums.xy, p)
        R, strengths, unique = orthogonal_factor(cross, min(p, q), sums.noise, proper)
    else:
        R, strengths, unique = _factor_in_span(*rows, min(p, q), sums.noise, proper)
    scale = 1.0
    if scaling:
        common = strengths.sum()
        real = common > min(p, q) * sums.noise
        scale = float(common / sums.square_x.sum()) if real else 0.0
    target_mean = np.pad(sums.mean_y, (0, R.shape[1] - q))
    return Motion(R, scale, sums.mean_x, target_mean, unique)


def error_gain(sums):
    """Return what matching columns i and j takes off half the squared error."""
    return sums.xy


def correlation_gain(sums):
    """Return the correlation of columns i and j; 0 for constant columns."""
    size = np.outer(np.sqrt(sums.square_x), np.sqrt(sums.square_y))
    return np.divide(sums.xy, size, out=np.zeros_like(size), where=size > 0)


CRITERIA = {"error": error_gain, "correlation": correlation_gain}


def permutation_map(
    X,
    Y,
    *,
    weights=None,
    signed=True,
    criterion="error",
    assignment="auto",
    center=True,
    check=True,
):
    r"""Match columns one to one after centring.

    .. math:: \max_{\pi, s} \; \sum_j s_j \, g_{\pi(j) j}

    with :math:`g` the inner products of centred columns ("error": the least squared
    error) or their correlations ("correlation").

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_source)
        Columns to reorder.
    Y : ndarray of shape (n_samples, n_target)
        Columns to match.
    weights : ndarray of shape (n_samples,), optional
        Of the rows.
    signed : bool
        Whether a column may change its sign.
    criterion : {"error", "correlation"}
        What is made best.
    assignment : {"auto", "optimal", "greedy"}
        See :mod:`skident._math.assignment`.
    center : bool
        Whether means are taken off first.
    check : bool
        Whether to look for others that do as well, which takes as long again; if not,
        the map counts as unique.

    Returns
    -------
    Motion
    """
    pair = pair_rows(X, Y, weights, center)
    if criterion == "correlation":
        # Correlations know no units: columns of any size are brought to one.
        X, Y = (Z / powers_of_two(np.abs(Z).max(axis=0)) for Z in (pair.X, pair.Y))
        pair = pair._replace(X=X, Y=Y)
    return permutation_from_sums(
        pair.sums(),
        signed=signed,
        criterion=criterion,
        assignment=assignment,
        check=check,
    )


def permutation_from_sums(
    sums, *, signed=True, criterion="error", assignment="auto", check=True
):
    """Return :func:`permutation_map` from centred sums."""
    gain = CRITERIA[criterion](sums)
    p, q = gain.shape
    # Each column of the narrower side takes one of the wider.
    gain = gain.T if p > q else gain
    assignment = matching.choose_assignment(assignment, len(gain))
    worth = np.abs(gain) if signed else gain.copy()
    noise = 8 * EPS * max(p, q) * matching.size(worth)
    rows = np.arange(len(worth))
    worth[rows, rows] += noise  # of several that are as good, the one in place
    match = matching.assign(worth, assignment)
    taken, unique = gain[rows, match], True
    if check:
        worth[rows, rows] -= noise
        unique = matching.is_unique(worth, match, noise, assignment)
        unique = unique and not (signed and np.any(np.abs(taken) <= noise))
    signs = np.where(taken < 0, -1.0, 1.0) if signed else np.ones(len(match))
    P = np.zeros((p, max(p, q)))
    if p > q:
        P[match, rows] = signs
        _keep_in_place(P, match, q)
    else:
        P[rows, match] = signs
    target_mean = np.pad(sums.mean_y, (0, P.shape[1] - q))
    return Motion(P, 1.0, sums.mean_x, target_mean, unique)


def _keep_in_place(P, match, q):
    """Send what no target column takes to the padded ones, in place where it may."""
    spare = np.setdiff1d(np.arange(len(P)), match)
    padded = np.append(np.sort(match[match >= q]), spare[spare >= q])
    P[spare, padded] = 1.0


class Group(NamedTuple):
    """A group of transformations.

    Attributes
    ----------
    from_rows : callable
        ``(X, Y, *, weights=None, **options)`` to the best :class:`Motion`.
    from_sums : callable
        The same from :class:`skident._math.motion.Sums`.
    orthogonal : bool
        Whether maps keep distances, so that the best map back is the inverse and has
        the same error.
    unchecked : dict
        Options that leave out the search for other maps that do as well, where that
        takes time.
    """

    from_rows: Callable
    from_sums: Callable
    orthogonal: bool
    unchecked: dict


TRANSFORMATIONS = {
    "permutation": Group(
        permutation_map, permutation_from_sums, True, {"check": False}
    ),
    "rigid": Group(rigid_map, rigid_from_sums, True, {}),
    "linear": Group(linear_map, linear_from_sums, False, {}),
}
