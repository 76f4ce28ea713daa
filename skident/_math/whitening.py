"""Rank-revealing whitening: centre, scale each column, cut the rank, turn to axes.

The rank is found on columns scaled to unit variance, so that it depends neither on
units nor on the solver; the order of the directions is that of the variance in the
units of the input.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg, special

from skident._math.moments import sources
from skident._math.rows import (
    COMPILED_ENTRIES,
    LARGE_ENTRIES,
    Rows,
    centred_product,
    counted,
    lanes,
    pieces,
    row_blocks,
    standardised,
)

__all__ = [
    "RANK_TOL",
    "SOLVERS",
    "Whitening",
    "centred_product",
    "noise_level",
    "whiten",
]

RANK_TOL = 1e-6
# Range of a column, in units of its values, up to which it is noise on a constant.
_CONSTANT_TOL = 1e-7
SOLVERS = ("auto", "svd", "eigh")
_EPS = np.finfo(np.float64).eps
# Ranges of columns whose squares are numbers.
_LEAST = 1e-152


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
    rows : Rows
        The rows, to be read white.
    """

    mean: np.ndarray
    whitening: np.ndarray
    dewhitening: np.ndarray
    variances: np.ndarray
    axes: np.ndarray
    rank: int
    constant: np.ndarray
    rows: Rows


def noise_level(dtype, rank_tol=RANK_TOL):
    """Return the range, in units of its values, up to which a column is constant.

    Parameters
    ----------
    dtype : {float64, float32}
        Type of the column, within whose rounding it always is.
    rank_tol : float
        As of :func:`whiten`.
    """
    return max(min(_CONSTANT_TOL, 0.1 * rank_tol), 8 * np.finfo(dtype).eps)


def column_ranges(source, n_features, weights=None, run=map, rank_tol=0.0):
    """Return mean, largest distance from it and constancy of each column.

    A column counts as constant if its range is below :func:`noise_level`, of the
    coarsest type of the blocks.

    Parameters
    ----------
    source : sequence of ndarray of shape (n_block_rows, n_features)
        Finite rows, in blocks.
    n_features : int
        Number of columns.
    weights : ndarray of shape (n_rows,), optional
        Positive.
    run : callable
        ``map`` or one in parallel threads.
    rank_tol : float
        As of :func:`whiten`.

    Returns
    -------
    mean, reach : ndarray of shape (n_features,)
        ``reach`` is 1 for a constant column.
    constant : ndarray of bool of shape (n_features,)
    """
    origin = np.array(next(iter(source))[0], dtype=np.float64)

    def task(piece, start):
        # Numbers whose sum overflows are named afterwards, by their range.
        with np.errstate(over="ignore", invalid="ignore"):
            noise = noise_level(piece.dtype, rank_tol)
            if weights is None:
                return *_stats(piece, origin), noise
            total = weights[start : start + piece.shape[0]] @ (piece - origin)
            return total, piece.min(axis=0), piece.max(axis=0), noise

    total, low, high, level = np.zeros(n_features), origin, origin, 0.0
    for part, least, most, noise in pieces(source, run, task):
        with np.errstate(over="ignore", invalid="ignore"):
            total += part
        low, high = np.minimum(low, least), np.maximum(high, most)
        level = max(level, noise)
    count = _count(source) if weights is None else weights.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        mean = origin + total / count
        size = np.maximum(np.abs(low), np.abs(high))
        constant = high - low <= level * size
        mean[high == low] = origin[high == low]
        reach = np.where(constant, 1.0, np.maximum(high - mean, mean - low))
    return mean, reach, constant


def _count(source):
    return sum(block.shape[0] for block in source)


def _stats(piece, origin):
    """Return sums about the origin, smallest and largest values of the columns."""
    n, width = piece.shape
    if piece.size < COMPILED_ENTRIES:
        return (piece - origin).sum(axis=0), piece.min(axis=0), piece.max(axis=0)
    from skident._kernels.columns import column_stats

    side = lanes(width, n)
    tiled = np.tile(origin, side)
    total, low, high = np.zeros_like(tiled), tiled.copy(), tiled.copy()
    wide = np.ascontiguousarray(piece).reshape(n // side, -1)
    column_stats(wide, tiled, total, low, high)
    total, low, high = (part.reshape(side, width) for part in (total, low, high))
    return total.sum(axis=0), low.min(axis=0), high.max(axis=0)


def gram(rows):
    """Return the mean outer product of the standardised rows of a source."""
    width = rows.mean.size

    def task(piece, start):
        total = np.zeros((width, width))
        for cut in row_blocks(piece):
            block = np.empty((cut.stop - cut.start, width))
            standardised(piece[cut], rows.mean, rows.inverse, block)
            if rows.weights is None:
                total += block.T @ block
            else:
                share = rows.weights[start + cut.start : start + cut.stop, None]
                total += block.T @ (share * block)
        return total

    return sum(pieces(rows.source, rows.run, task)) / rows.n_rows


def _standard_axes_eigh(rows, kept):
    """Return deviations of columns, and singular values and axes, by ``eigh``."""
    covariance = gram(rows)[np.ix_(kept, kept)]
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    values, axes = np.linalg.eigh(correlation)
    singular = np.sqrt(np.maximum(values[::-1], 0.0))
    return deviation, singular, axes[:, ::-1]


def _standard_axes_svd(rows, kept):
    """Return deviations of columns, and singular values and axes, by ``svd``."""
    X = np.concatenate([np.asarray(block) for block in rows.source])
    Z = ((X - rows.mean) * rows.inverse)[:, kept]
    if rows.weights is not None:
        Z *= np.sqrt(rows.weights)[:, None]
    deviation = np.sqrt(np.mean(Z**2, axis=0))
    Z /= deviation
    if Z.shape[0] > 2 * Z.shape[1]:
        Z = linalg.qr(Z, mode="r", overwrite_a=True)[0][: Z.shape[1]]
    _, singular, axes = linalg.svd(Z, full_matrices=False)
    return deviation, singular / np.sqrt(X.shape[0]), axes.T


def _choose_solver(solver, shape, rank_tol):
    """Return ``eigh`` for tall data unless the tolerance is finer than it resolves."""
    if solver != "auto":
        return solver
    fine = rank_tol < 1e-7
    return "svd" if fine or shape[0] <= shape[1] else "eigh"


def count_components(n_components, variances, n_rows=None):
    """Return how many principal directions ``n_components`` stands for.

    Parameters
    ----------
    n_components : None, int, float in (0, 1) or "mle"
        All; at most so many; the fewest that explain this part of the variance; the
        most probable number (:func:`probable_dimension`).
    variances : ndarray of shape (rank,)
        Descending.
    n_rows : float, optional
        Number of rows, for "mle".
    """
    if n_components is None:
        return len(variances)
    if n_components == "mle":
        return probable_dimension(variances, n_rows)
    if n_components < 1:
        explained = np.cumsum(variances / variances[0])
        explained /= explained[-1]
        return int(np.searchsorted(explained, n_components - 1e-12) + 1)
    return min(int(n_components), len(variances))


def probable_dimension(variances, n_rows):
    """Return the most probable number of directions that are more than noise.

    The evidence of probabilistic PCA by Laplace's method, directions left out being
    isotropic noise.

    Parameters
    ----------
    variances : ndarray of shape (rank,)
        Descending, positive.
    n_rows : float
        Number of rows.

    Returns
    -------
    int
        From 1 to ``max(1, rank - 1)``; the smallest of equals.

    References
    ----------
    Minka, "Automatic choice of dimensionality for PCA", NIPS 2000, equation 30.
    """
    rank = len(variances)
    if rank < 3:
        return 1
    scaled = variances / variances[0]
    return int(np.argmax(_log_evidence(scaled, n_rows))) + 1


def _log_evidence(variances, n_rows):
    """Return the log evidence of 1, ..., ``rank - 1`` directions, up to a constant."""
    rank = len(variances)
    k = np.arange(1, rank)
    half = 0.5 * (rank - k + 1)
    volume = np.cumsum(special.gammaln(half) - half * np.log(np.pi)) - k * np.log(2.0)
    noise = np.cumsum(variances[::-1])[::-1][1:] / (rank - k)
    free = rank * k - k * (k + 1) / 2
    return (
        volume
        - 0.5 * n_rows * np.cumsum(np.log(variances[:-1]))
        - 0.5 * n_rows * (rank - k) * np.log(noise)
        + 0.5 * (free + k) * np.log(2 * np.pi)
        - 0.5 * (_log_gaps(variances, noise) + free * np.log(n_rows))
        - 0.5 * k * np.log(n_rows)
    )


def _log_gaps(variances, noise):
    r"""Return for every k the sum of ln of the curvatures of the evidence.

    .. math:: \sum_{i < k} \sum_{j > i} \ln (v_i - v_j)(1 / u_j - 1 / u_i),

    :math:`u_j = v_j` for :math:`j < k`, and the noise beyond. Summed row by row, what
    is added by each i to all k at once, so that the time grows as the square of the
    rank.
    """
    rank = len(variances)
    inside, across = np.zeros((2, rank))
    for i in range(rank - 1):
        rest = variances[i + 1 :]
        gap = variances[i] - rest
        bend = 1.0 / rest - 1.0 / variances[i]
        inside[i + 1 :] += np.log(np.maximum(gap * bend, _EPS))
        apart = gap > 0
        log = np.log(np.where(apart, gap, _EPS))
        bend = 1.0 / noise[i:] - 1.0 / variances[i]
        number = np.cumsum(apart[::-1])[::-1]
        across[i + 1 :] += np.cumsum(log[::-1])[::-1]
        across[i + 1 :] += number * np.log(np.maximum(bend, _EPS))
    return np.cumsum(inside)[:-1] + across[1:]


def whiten(
    X, n_components=None, *, solver="auto", rank_tol=None, weights=None, run=map
):
    r"""Find the whitening map of the rows of ``X``.

    With :math:`D` the standard deviations of the columns and
    :math:`C = V E V'` their correlation matrix cut to its rank, the input is
    :math:`X - \mu = Z (D V E^{1/2})'` with white :math:`Z`; the singular value
    decomposition :math:`D V E^{1/2} = P \Sigma Q'` turns :math:`Z` to the principal
    axes of the input, of which the first ``n_components`` are kept.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features) or sequence of such blocks
        Finite; float64 or float32.
    n_components : None, int, float in (0, 1) or "mle"
        See :func:`count_components`.
    solver : {"auto", "svd", "eigh"}
        "auto" is "eigh" if there are more rows than columns, else "svd" (which
        gathers the rows).
    rank_tol : float, optional
        Directions of the scaled columns whose standard deviation is below
        ``rank_tol`` times the largest are cut; default 1e-6. "eigh" resolves no less
        than the root of ``n_features`` times the float64 precision. Columns that vary
        by less than 1e-7 of their values, or a tenth of a finer ``rank_tol``, are
        constant.
    weights : ndarray of shape (n_samples,), optional
        Not negative; repeats of rows, but for "mle", which takes Kish's effective
        number of rows.
    run : callable
        ``map`` or one in parallel threads.

    Returns
    -------
    Whitening

    Raises
    ------
    ValueError
        If every column is constant, or the square of a column over- or underflows.
    """
    rank_tol = RANK_TOL if rank_tol is None else rank_tol
    source = (X,) if hasattr(X, "ndim") else X
    if weights is not None:
        source, weights = counted(source, weights)
        weights = weights * (len(weights) / weights.sum())
    n_rows, n_features = _count(source), source[0].shape[1]
    mean, reach, constant = column_ranges(source, n_features, weights, run, rank_tol)
    _check_ranges(mean, reach, constant)
    kept = ~constant
    inverse = np.where(kept, 1.0 / reach, 0.0)
    unknown = np.empty((0, n_features))
    rows = Rows(source, n_rows, mean, inverse, unknown, weights, run=run)
    if _choose_solver(solver, (n_rows, n_features), rank_tol) == "svd":
        deviation, singular, axes = _standard_axes_svd(rows, kept)
        floor = n_features * _EPS
    else:
        deviation, singular, axes = _standard_axes_eigh(rows, kept)
        floor = np.sqrt(n_features * _EPS)
    rank = int(np.sum(singular > max(rank_tol, floor) * singular[0]))
    spectrum = _Spectrum(kept, deviation, singular[:rank], axes[:, :rank])
    return _principal(rows, n_components, spectrum)


class _Spectrum(NamedTuple):
    """Principal directions of columns of unit variance, within the rank."""

    kept: np.ndarray
    deviation: np.ndarray
    singular: np.ndarray
    axes: np.ndarray


def _check_ranges(mean, reach, constant):
    if constant.all():
        raise ValueError(
            f"Every column of X is constant (column 0 is {mean[0]:g}), exactly or but "
            "for a relative noise that is taken for rounding: there is no variance to "
            "whiten. If that noise is signal, subtract the first row."
        )
    wrong = np.flatnonzero(~constant & ~((reach >= _LEAST) & (reach <= 1 / _LEAST)))
    if wrong.size:
        column = wrong[0]
        raise ValueError(
            f"The variance of X overflows or vanishes in column {column}, of range "
            f"{reach[column]:g}: rescale it to between {_LEAST:g} and {1 / _LEAST:g}."
        )


def _principal(rows, n_components, spectrum):
    """Turn white coordinates of scaled columns to principal axes of the input."""
    kept, deviation, singular, axes = spectrum
    reach = 1.0 / rows.inverse[kept]
    scale = deviation * reach
    unit = scale.max()
    P, sigma, Qt = np.linalg.svd(
        (scale / unit)[:, None] * axes * singular, full_matrices=False
    )
    # Signs that do not depend on rounding, as an order of the rows changes it.
    flip = np.where(P.max(axis=0) < -P.min(axis=0), -1.0, 1.0)
    P, Qt = P * flip, Qt * flip[:, None]
    k = count_components(n_components, sigma**2, rows.n_effective)
    matrix = np.zeros((k, rows.mean.size))
    dewhitening = np.zeros((rows.mean.size, k))
    directions = np.zeros((rows.mean.size, len(sigma)))
    matrix[:, kept] = Qt[:k] @ (axes / singular).T / deviation
    dewhitening[kept] = scale[:, None] * (axes * singular) @ Qt[:k].T
    directions[kept] = P
    narrow = singular[-1] < 1e-3 * singular[0]
    large = rows.n_entries >= LARGE_ENTRIES
    rows = rows._replace(
        matrix=matrix, single=large and singular[-1] > 0.01 * singular[0]
    )
    if narrow:
        # The eigenvalues of a correlation matrix are right to the precision of the
        # largest: what that leaves in the small directions is taken out here.
        rows, dewhitening = _polish(rows, dewhitening)
    return Whitening(
        rows.mean,
        rows.matrix * rows.inverse,
        dewhitening,
        (sigma * unit) ** 2,
        directions,
        len(sigma),
        ~kept,
        rows,
    )


def _polish(rows, dewhitening):
    """Make the covariance of the white rows the identity to rounding."""

    def use(Z, weights):
        return (Z.T @ (Z if weights is None else weights * Z),)

    covariance = sources(rows, np.eye(rows.n_components), np.float64, use)[0]
    lower = linalg.cholesky(covariance, lower=True)
    matrix = linalg.solve_triangular(lower, rows.matrix, lower=True)
    return rows._replace(matrix=matrix), dewhitening @ lower
