"""Rows of a table too large to copy, read in blocks: centred, scaled, whitened.

A *source* is a sequence of 2-D arrays, the blocks of the table one below the other: a
single array in memory or mapped, or blocks that are fetched when they are asked for.
Every pass over it cuts the blocks into pieces of a fixed number of entries, so that
sums depend neither on threads nor on memory.
"""

from typing import NamedTuple

import numpy as np

from skident._math.blocks import LazyBlocks

# Numbers in what is worked on at once (the cache of a core) and in a thread's task.
BLOCK_ENTRIES = 2**16
_TASK_ENTRIES = 2**19
# From here on float32 steps are worth their refinement in float64.
LARGE_ENTRIES = 2**18
# Below it numpy is quick enough, and compiled kernels need not be loaded.
COMPILED_ENTRIES = 2**13
# Rows that are looked at together for their weights, and numbers that are gathered.
_CUT_ROWS = 2**16
_GATHERED_ENTRIES = 2**22
# Numbers in a row of the kernels, which lay short rows side by side.
_LANE = 64


class Rows(NamedTuple):
    """White rows ``matrix @ ((x - mean) * inverse)`` of a source.

    Attributes
    ----------
    source : sequence of ndarray of shape (n_block_rows, n_features)
        The blocks.
    n_rows : int
        Number of rows of all blocks.
    mean, inverse : ndarray of shape (n_features,) or None
        What is subtracted from a row, and what it is multiplied with; None if the
        source is white.
    matrix : ndarray of shape (n_components, n_features)
        Whitening of the standardised rows.
    weights : ndarray of shape (n_rows,) or None
        Weight of each row, of mean 1.
    single : bool
        Whether float32 resolves the rows well enough to begin with.
    run : callable
        ``map`` or one in parallel threads.
    """

    source: object
    n_rows: int
    mean: np.ndarray
    inverse: np.ndarray
    matrix: np.ndarray
    weights: np.ndarray | None = None
    single: bool = False
    run: object = map

    @property
    def n_components(self):
        return self.matrix.shape[0]

    @property
    def n_entries(self):
        return self.n_rows * max(self.matrix.shape)

    @property
    def dtype(self):
        """Return the precision of the first steps, and of a stored sample."""
        return np.float32 if self.single else np.float64

    @property
    def is_stored(self):
        """Return whether the source is one array of white rows."""
        return len(self.source) == 1 and self.inverse is None

    @property
    def n_effective(self):
        """Return the number of rows; with weights Kish's effective number."""
        if self.weights is None:
            return self.n_rows
        return self.weights.sum() ** 2 / (self.weights @ self.weights)

    @property
    def n_repeats(self):
        """Return the number of rows that weights are the repeats of."""
        if self.weights is None:
            return self.n_rows
        return self.weights.sum() / self.weights.min()

    def take(self, chosen):
        """Return some rows of one stored array."""
        weights = None if self.weights is None else self.weights[chosen]
        return white_rows(self.source[0][chosen], weights, self.run)


def white_rows(Z, weights=None, run=map):
    """Return rows that are white already, shape (n_rows, n_components)."""
    k = Z.shape[1]
    single = Z.size >= LARGE_ENTRIES or Z.dtype == np.float32
    return Rows((Z,), Z.shape[0], None, None, np.eye(k), weights, single, run)


def block_rows(width):
    """Return the number of rows in a block of ``BLOCK_ENTRIES`` numbers.

    It is a multiple of the number of rows that :func:`lanes` lays side by side.
    """
    return -(-max(256, BLOCK_ENTRIES // width) // _LANE) * _LANE


def row_blocks(X):
    """Yield slices of rows that hold about ``BLOCK_ENTRIES`` numbers each."""
    size = block_rows(max(1, X.shape[1]))
    for start in range(0, X.shape[0], size):
        yield slice(start, min(start + size, X.shape[0]))


def lanes(width, n_rows):
    """Return how many rows of that width fill a row of the kernels."""
    count = max(1, _LANE // width)
    return count if n_rows % count == 0 else 1


def pieces(source, run, task):
    """Yield ``task(piece, start)`` for pieces of all blocks, in order.

    ``start`` is the number of the first row of the piece.
    """
    offset = 0
    for block in source:
        size = block_rows(max(1, block.shape[1]))
        size *= max(1, _TASK_ENTRIES // BLOCK_ENTRIES)
        starts = range(0, block.shape[0], size)
        cut = [block[start : start + size] for start in starts]
        yield from run(task, cut, (offset + start for start in starts))
        offset += block.shape[0]


def counted(source, weights):
    """Leave out rows of weight 0.

    Parameters
    ----------
    source : sequence of ndarray of shape (n_block_rows, n_features)
        The blocks.
    weights : ndarray of shape (n_rows,)
        Not negative.

    Returns
    -------
    source : sequence of ndarray
        Few rows in one array, many in blocks that are cut anew in every pass.
    weights : ndarray
        The positive ones.
    """
    if weights.all():
        return source, weights
    chosen, offset = [], 0
    for k, block in enumerate(source):
        # Blocks may be costly to fetch, so that only a single one is cut.
        size = _CUT_ROWS if len(source) == 1 else max(1, block.shape[0])
        for start in range(0, block.shape[0], size):
            stop = min(start + size, block.shape[0])
            places = start + np.flatnonzero(weights[offset + start : offset + stop])
            if places.size:
                chosen.append((k, places))
        offset += block.shape[0]
    blocks = LazyBlocks(len(chosen), lambda n: source[chosen[n][0]][chosen[n][1]])
    weights = weights[weights > 0]
    if len(weights) * source[0].shape[1] <= _GATHERED_ENTRIES:
        blocks = (np.concatenate(list(blocks)),)
    return blocks, weights


def standardised(piece, mean, inverse, out):
    """Fill ``out`` with ``(piece - mean) * inverse``."""
    if inverse is None:
        out[:] = piece
        return
    if piece.size < COMPILED_ENTRIES:
        np.multiply(piece - mean, inverse, out=out, casting="same_kind")
        return
    from skident._kernels.columns import standardise

    n, width = piece.shape
    side = lanes(width, n)
    standardise(
        np.ascontiguousarray(piece).reshape(n // side, -1),
        np.tile(mean, side),
        np.tile(inverse, side),
        out.reshape(n // side, -1),
    )


def centred_product(X, mean, matrix):
    """Return ``(X - mean) @ matrix.T`` in float64, block by block."""
    out = np.empty((X.shape[0], matrix.shape[0]))
    for rows in row_blocks(X):
        np.matmul(X[rows] - mean, matrix.T, out=out[rows])
    return out


def _spread(n, size):
    """Return the number of one row drawn from each of ``size`` equal stretches."""
    edges = np.arange(size + 1) * n // size
    draw = np.random.default_rng(n).random(size)
    return edges[:-1] + (draw * np.diff(edges)).astype(np.intp)


def sample(rows, size, dtype=None):
    """Return at most ``size`` rows, white and stored, the same for every call.

    One row is drawn from each of ``size`` equal stretches, so that an order of the
    rows, or a period in it, does not matter. The draws depend on the sizes alone. By
    default it is float32 if the rows are many: computed in float64, so that white rows
    are right to 6e-8 whatever the condition of the input.
    """
    n, whole = rows.n_rows, size >= rows.n_rows
    chosen = np.arange(n) if whole else _spread(n, size)
    if dtype is None:
        large = n * rows.n_components >= LARGE_ENTRIES
        dtype = np.float32 if large else np.float64
    Z = np.empty((len(chosen), rows.n_components), dtype)
    offset = done = 0
    for block in rows.source:
        stop = int(np.searchsorted(chosen, offset + block.shape[0]))

        def fill(target, take, block=block):
            picked = block[take]
            out = np.empty(picked.shape)
            standardised(picked, rows.mean, rows.inverse, out)
            np.matmul(out, rows.matrix.T, out=target, casting="same_kind")

        part = Z[done:stop]
        cuts = list(row_blocks(part))
        take = cuts if whole else [chosen[done:stop][cut] - offset for cut in cuts]
        for _ in rows.run(fill, (part[cut] for cut in cuts), take):
            pass
        offset, done = offset + block.shape[0], stop
    weights = None if rows.weights is None else rows.weights[chosen]
    return white_rows(Z, weights, rows.run)


def whitened_again(rows):
    """Make a sample white by itself, in place and without turning its axes.

    Weak sources have a contrast so near to a Gaussian's that the variances of a sample,
    which are off by the root of its size, would be what they are chosen by. A sample
    whose variances are off by more than a factor 2, by heavy tails or what rarely
    varies, is left as it is.
    """
    Z, weights = rows.source[0], rows.weights
    total, square = np.zeros(Z.shape[1]), np.zeros((Z.shape[1],) * 2)
    for cut in row_blocks(Z):
        block = Z[cut]
        share = np.ones(len(block)) if weights is None else weights[cut]
        share = share.astype(Z.dtype)
        total += share @ block
        square += block.T @ (block if weights is None else share[:, None] * block)
    count = len(Z) if weights is None else weights.sum()
    mean = total / count
    values, axes = np.linalg.eigh(square / count - np.outer(mean, mean))
    if values[0] < 0.5 or values[-1] > 2.0:
        return rows
    matrix = ((axes / np.sqrt(values)) @ axes.T).astype(Z.dtype)
    shift = (mean @ matrix).astype(Z.dtype)
    for cut in row_blocks(Z):
        Z[cut] = Z[cut] @ matrix - shift
    if weights is not None:
        weights = weights * (len(Z) / count)
    return white_rows(Z, weights, rows.run)
