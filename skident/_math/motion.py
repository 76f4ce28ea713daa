r"""Maps between two sets of paired rows, and the centred sums that they come from.

Every map has the one form

.. math:: T(x) = c \, (x - \mu_X) R + \mu_Y .

For rigid maps and permutations the narrower side is padded with columns of zeros: with
:math:`p` and :math:`q` columns, :math:`R` is :math:`p \times \max(p, q)`, the first
rows of an orthogonal matrix, and :math:`\mu_Y` ends in zeros where :math:`p > q`.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

EPS = np.finfo(np.float64).eps


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
    unique : bool
        Whether no other map of the group does equally well.
    """

    rotation: np.ndarray
    scale: float
    source_mean: np.ndarray
    target_mean: np.ndarray
    unique: bool

    @property
    def reflection(self):
        """Whether a map between equal widths turns space inside out, in O(n^3)."""
        return determinant_is_negative(self.rotation)

    def apply(self, X):
        """Return the mapped rows."""
        return self.scale * ((X - self.source_mean) @ self.rotation) + self.target_mean

    def invert(self, Y):
        """Return the rows whose map is nearest to ``Y``.

        Of several, the one nearest to the mean; rows of ``rotation`` may differ in
        size by any factor where they are independent.
        """
        p, q = self.rotation.shape
        # Dividing rows by their size leaves independent rows' inverse what it is, and
        # keeps small ones above the cut of the pseudo-inverse.
        size = powers_of_two(np.abs(self.rotation).max(axis=1)) if p <= q else 1.0
        back = np.linalg.pinv(self.rotation / np.reshape(size, (-1, 1)))
        return ((Y - self.target_mean) / self.scale) @ back / size + self.source_mean

    def turn_back(self, Y):
        """Return :meth:`invert` for a rotation with orthonormal rows: its transpose."""
        rows = (Y - self.target_mean) / self.scale
        return rows @ self.rotation.T + self.source_mean


class Sums(NamedTuple):
    """Centred sums of products of paired rows: all that a map depends on.

    Attributes
    ----------
    mean_x : ndarray of shape (n_source,)
        Mean of the source.
    mean_y : ndarray of shape (n_target,)
        Mean of the target.
    xy : ndarray of shape (n_source, n_target)
        Sum of outer products of centred rows.
    square_x : ndarray of shape (n_source,)
        Sum of squares of each centred column of the source.
    square_y : ndarray of shape (n_target,)
        The same of the target.
    xx : ndarray of shape (n_source, n_source) or None
        As ``xy``, of the source with itself; only linear maps need it.
    yy : ndarray of shape (n_target, n_target) or None
        The same of the target.
    """

    mean_x: np.ndarray
    mean_y: np.ndarray
    xy: np.ndarray
    square_x: np.ndarray
    square_y: np.ndarray
    xx: np.ndarray | None = None
    yy: np.ndarray | None = None

    def swapped(self):
        """Return the sums with source and target exchanged."""
        return Sums(
            self.mean_y, self.mean_x, self.xy.T, self.square_y, self.square_x,
            self.yy, self.xx,
        )  # fmt: skip

    @property
    def noise(self):
        """Return what rounding may do to a singular value of ``xy``."""
        size = np.sqrt(self.square_x.sum()) * np.sqrt(self.square_y.sum())
        return 8 * EPS * max(self.xy.shape) * size


class Pair(NamedTuple):
    """Paired rows, centred, each side in a unit near its own size.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_source)
        Source: centred, divided by ``unit_x``, times the root of the weight.
    Y : ndarray of shape (n_samples, n_target)
        Target, likewise.
    mean_x : ndarray of shape (n_source,)
        Mean of the source in units of the input.
    mean_y : ndarray of shape (n_target,)
        The same of the target.
    unit_x : float
        Power of two near the largest absolute value of the source.
    unit_y : float
        The same of the target.
    root : ndarray of shape (n_samples, 1)
        Root of the weight of each row, in units of ``unit_w``.
    unit_w : float
        Power of two near the largest weight.
    """

    X: np.ndarray
    Y: np.ndarray
    mean_x: np.ndarray
    mean_y: np.ndarray
    unit_x: float
    unit_y: float
    root: np.ndarray
    unit_w: float

    def sums(self):
        """Return the centred sums, in the units of the pair."""
        return Sums(
            self.mean_x,
            self.mean_y,
            self.X.T @ self.Y,
            np.einsum("ij,ij->j", self.X, self.X),
            np.einsum("ij,ij->j", self.Y, self.Y),
        )


def powers_of_two(sizes):
    """Return for each size the largest power of two up to it; 1 for 0."""
    sizes = np.asarray(sizes, dtype=np.float64)
    exponents = np.frexp(np.where(sizes > 0, sizes, 1.0))[1]
    return np.ldexp(1.0, exponents - 1)


def pair_rows(X, Y, weights=None, center=True):
    """Centre both sides and bring them into the range where squares are floats.

    Parameters
    ----------
    X, Y : ndarray of shape (n_samples, n_features)
        Paired rows; the widths may differ.
    weights : ndarray of shape (n_samples,), optional
        Not negative, not all zero. Rows of weight zero are left out.
    center : bool
        Whether means are taken off; if not, they count as zero.

    Returns
    -------
    Pair
    """
    root, unit_w = np.ones((X.shape[0], 1)), 1.0
    if weights is not None:
        kept = weights > 0
        X, Y, weights = X[kept], Y[kept], np.asarray(weights, dtype=float)[kept]
        unit_w = float(powers_of_two(weights.max()))
        root = np.sqrt(weights / unit_w)[:, None]
    X, mean_x, unit_x = _centre(X, root, center)
    Y, mean_y, unit_y = _centre(Y, root, center)
    return Pair(X, Y, mean_x, mean_y, unit_x, unit_y, root, unit_w)


def _centre(array, root, center):
    """Return weighted centred rows in a unit, their mean, and the unit."""
    array = np.asarray(array, dtype=np.float64)
    low, high = array.min(axis=0), array.max(axis=0)
    largest = np.maximum(np.abs(low), np.abs(high))
    unit = float(powers_of_two(largest.max()))
    rows = array / unit
    if not center:
        return rows * root, np.zeros(array.shape[1]), unit
    # Centred on a row first: a constant column is then exactly zero.
    origin = rows[0].copy()
    rows -= origin
    rows[:, high / 2 - low / 2 <= 4 * EPS * largest] = 0.0
    square = (root / root.max()) ** 2
    shift = (square * rows).sum(axis=0) / square.sum()
    rows -= shift
    rows *= root
    return rows, (origin + shift) * unit, unit


def pad_columns(array, width):
    """Return ``array`` with columns of zeros appended up to ``width``."""
    missing = width - array.shape[1]
    return np.pad(array, ((0, 0), (0, missing))) if missing > 0 else array


def determinant_is_negative(matrix):
    """Return whether a matrix is square and has a negative determinant."""
    if matrix.shape[0] != matrix.shape[1]:
        return False
    entries = matrix != 0
    if not (entries.sum(axis=0) == 1).all() or not (entries.sum(axis=1) == 1).all():
        return bool(np.linalg.slogdet(matrix)[0] < 0)
    # A permutation of n with c cycles is n - c exchanges.
    cycles = csgraph.connected_components(sparse.csr_array(entries), directed=False)[0]
    return bool((len(matrix) - cycles + np.count_nonzero(matrix < 0)) % 2)


def exponent(unit):
    """Return the exponent of a power of two."""
    return int(np.frexp(unit)[1]) - 1


def in_units(values, power):
    """Return ``values`` times ``2**power``, or raise if that is beyond all floats.

    Raises
    ------
    ValueError
        If the largest entry overflows, or is too small to be told from zero.
    """
    bound = int(np.frexp(np.abs(values).max(initial=0.0))[1]) + power
    limits = np.finfo(np.float64)
    if np.any(values) and not limits.minexp < bound <= limits.maxexp:
        raise ValueError(
            "The sizes of X and y are so far apart that the map between them is beyond "
            "the range of floats: rescale one of them."
        )
    return np.ldexp(values, power)


def explained_variance(target, mapped, weights=None):
    """Return 1 - squared error / squared distance from the mean, over all columns.

    1 if ``target`` is constant and met to rounding, 0 if constant and not met.

    Parameters
    ----------
    target, mapped : ndarray of shape (n_samples, n_features)
        Where rows should be, and are.
    weights : ndarray of shape (n_samples,), optional
        Of the rows.
    """
    weights = np.ones(target.shape[0]) if weights is None else weights
    weights = (weights / weights.max())[:, None]
    largest = float(np.abs(target).max())
    rounding = np.finfo(target.dtype).eps
    unit = powers_of_two(max(largest, float(np.abs(mapped).max())))
    target = target.astype(np.float64) / unit
    rounding = float(rounding) * (largest / unit)
    error = np.sum(weights * (target - mapped / unit) ** 2)
    # centred on a row first: the mean of equal rows is then exact
    centred = target - target[0]
    centred -= (weights * centred).sum(axis=0) / weights.sum()
    spread = np.sum(weights * centred**2)
    rounding = rounding**2 * target.size
    if spread <= 4 * rounding:
        return float(error <= 64 * rounding)
    return float(1.0 - error / spread)
