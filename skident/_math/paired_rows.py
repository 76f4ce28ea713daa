"""Paired rows read in blocks, and their moments fold by fold.

Moments of disjoint sets of rows add, so that one pass over the rows gives those of
every training set of a cross-validation.
"""

import itertools
from typing import NamedTuple

import numpy as np

from skident._math.motion import EPS, Sums, powers_of_two

BLOCK_ENTRIES = 2**21
# float32 arrays with more entries are scored in float32, all else in float64.
LARGE = 2**24
# Sizes between which squares are kept well within floats, float32 ones too.
_PLAIN = 1e-9, 1e9
_CHUNKS = 8


class Rows(NamedTuple):
    """Rows of an array, centred and in a unit near their size where they are extreme.

    Attributes
    ----------
    array : ndarray of shape (n_samples, n_features)
        Any real type; may be a memory map.
    centre : ndarray of shape (n_features,)
        Near the mean, in units of ``unit``.
    unit : float
        A power of two; 1 unless squares would leave the range of floats.
    dtype : type
        float32 for large float32 arrays, else float64: that of the scoring pass.
    """

    array: np.ndarray
    centre: np.ndarray
    unit: float
    dtype: type

    @property
    def shape(self):
        """Shape of the array."""
        return self.array.shape

    def take(self, rows, dtype=None):
        """Return rows, centred, as a new array.

        Parameters
        ----------
        rows : slice or ndarray of int
            Which.
        dtype : type, optional
            float32 or float64; default ``self.dtype``.
        """
        dtype = self.dtype if dtype is None else dtype
        block = np.array(self.array[rows], dtype=dtype)
        if self.unit != 1.0:
            block /= self.unit
        block -= self.centre.astype(dtype)
        return block

    def subset(self, rows):
        """Return some rows as a ``Rows`` of their own, in memory."""
        return self._replace(array=self.array[rows])


def blocks(n_rows, width, start=0, entries=BLOCK_ENTRIES):
    """Yield slices from ``start`` to ``n_rows`` of about ``entries`` numbers each."""
    size = max(64, entries // max(1, width))
    for first in range(start, n_rows, size):
        yield slice(first, min(first + size, n_rows))


def chunks(shape):
    """Return at most eight slices that share the rows out, whatever the hardware."""
    count = min(_CHUNKS, 1 + shape[0] * shape[1] // BLOCK_ENTRIES)
    edges = np.linspace(0, shape[0], count + 1).astype(int)
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def open_rows(array):
    """Return the array as ``Rows``: its unit, its centre, its type of computation."""
    n, width = array.shape
    largest = 0.0
    for rows in blocks(n, width):
        block = array[rows]
        largest = max(largest, float(block.max()), -float(block.min()))
    extreme = largest > 0.0 and not _PLAIN[0] < largest < _PLAIN[1]
    unit = float(powers_of_two(largest)) if extreme else 1.0
    origin = np.asarray(array[0], dtype=np.float64) / unit
    total = np.zeros(width)
    for rows in blocks(n, width):
        block = np.array(array[rows], dtype=np.float64)
        block /= unit
        block -= origin
        total += block.sum(axis=0)
    single = array.dtype == np.float32 and array.size >= LARGE
    dtype = np.float32 if single else np.float64
    # Rounded to the type of computation, so that every pass takes off the same.
    centre = (origin + total / n).astype(dtype).astype(np.float64)
    return Rows(array, centre, unit, dtype)


def in_larger_unit(X, Y):
    """Return both units in terms of the larger, as powers of two; 0 if beyond floats.

    Parameters
    ----------
    X, Y : Rows
        Two sides, each in a unit of its own.

    Returns
    -------
    tuple of float
        (1.0, 1.0) for equal units.
    """
    larger = max(X.unit, Y.unit)
    return X.unit / larger, Y.unit / larger


class Moments(NamedTuple):
    """Sums over a set of rows, centred near their mean.

    Attributes
    ----------
    count : ndarray of shape ()
        Number of rows.
    x, y : ndarray of shape (n_source,), (n_target,)
        Sums of either side.
    xy : ndarray of shape (n_source, n_target)
        Sum of outer products.
    square_x, square_y : ndarray of shape (n_source,), (n_target,)
        Sums of squares.
    xx, yy : ndarray of shape (n_source, n_source), (n_target, n_target)
        Sums of outer products of either side; empty where they are not needed.
    """

    count: np.ndarray
    x: np.ndarray
    y: np.ndarray
    xy: np.ndarray
    square_x: np.ndarray
    square_y: np.ndarray
    xx: np.ndarray
    yy: np.ndarray

    @classmethod
    def zeros(cls, p, q, full):
        """Return the moments of no rows, with ``xx`` and ``yy`` if ``full``."""
        shapes = [(), (p,), (q,), (p, q), (p,), (q,)]
        shapes += [(p, p), (q, q)] if full else [(0, 0), (0, 0)]
        return cls(*(np.zeros(shape) for shape in shapes))

    def add_rows(self, A, B):
        """Add paired rows, float64."""
        self.count[...] += len(A)
        self.x[...] += A.sum(axis=0)
        self.y[...] += B.sum(axis=0)
        self.xy[...] += A.T @ B
        if self.xx.size:
            self.xx[...] += A.T @ A
            self.yy[...] += B.T @ B
        self.square_x[...] += np.einsum("ij,ij->j", A, A)
        self.square_y[...] += np.einsum("ij,ij->j", B, B)

    def add(self, other):
        """Add the moments of other rows."""
        for mine, theirs in zip(self, other, strict=True):
            mine[...] += theirs

    def centred(self):
        """Return the sums about the mean of these rows.

        A column that is constant up to rounding gets zeros.
        """
        n = float(self.count)
        x, y = self.x / n, self.y / n
        square_x = _about_mean(self.square_x, x, n)
        square_y = _about_mean(self.square_y, y, n)
        alive = square_x > 0, square_y > 0
        xy = (self.xy - n * np.outer(x, y)) * np.outer(*alive)
        if not self.xx.size:
            return Sums(x, y, xy, square_x, square_y)
        xx = (self.xx - n * np.outer(x, x)) * np.outer(alive[0], alive[0])
        yy = (self.yy - n * np.outer(y, y)) * np.outer(alive[1], alive[1])
        return Sums(x, y, xy, square_x, square_y, xx, yy)


def _about_mean(square, mean, n):
    centred = square - n * mean**2
    return np.where(centred > 64 * EPS * square, centred, 0.0)


def fold_moments(X, Y, folds, n_folds, rows, full):
    """Return the moments of each fold over a range of rows, in one pass.

    Parameters
    ----------
    X, Y : Rows
        Paired rows.
    folds : ndarray of int of shape (n_samples,)
        Fold of each row, 0 to ``n_folds - 1``; rows of negative ones do not count.
    n_folds : int
        Number of folds.
    rows : slice
        Which rows.
    full : bool
        Whether ``xx`` and ``yy`` are needed.

    Returns
    -------
    list of Moments
    """
    p, q = X.shape[1], Y.shape[1]
    totals = [Moments.zeros(p, q, full) for _ in range(n_folds)]
    for block in blocks(rows.stop, max(p, q), rows.start):
        A, B = X.take(block, np.float64), Y.take(block, np.float64)
        labels = folds[block]
        for fold in range(n_folds):
            mine = labels == fold
            if mine.any():
                totals[fold].add_rows(A[mine], B[mine])
    return totals


def training_moments(parts, fold):
    """Return the moments of all folds but one.

    Added rather than taken off the total: a column that is constant outside one fold
    is then constant to the last digit.
    """
    others = [part for k, part in enumerate(parts) if k != fold]
    total = Moments(*(np.array(value) for value in others[0]))
    for part in others[1:]:
        total.add(part)
    return total
