"""Tables that come in blocks of rows: sequences of arrays, and Dask collections."""

from collections.abc import Sequence


class LazyBlocks(Sequence):
    """Blocks that are fetched anew whenever they are asked for.

    Parameters
    ----------
    count : int
        Number of blocks.
    fetch : callable
        ``fetch(k)`` returns block k, rows of one width.
    """

    def __init__(self, count, fetch):
        self._count, self._fetch = count, fetch

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        if not 0 <= index < self._count:
            raise IndexError(index)
        return self._fetch(index)


def as_blocks(X):
    """Return the blocks of a table, or None for an ordinary one.

    Parameters
    ----------
    X : object
        A Dask array or data frame is known by its ``blocks`` or ``partitions`` and
        ``compute``; any other sequence (not an array) whose first item is
        two-dimensional, an array or a data frame, is blocks one below the other.

    Returns
    -------
    sequence or None
        Each item is an array or a data frame in memory, or memory-mapped.
    """
    if hasattr(X, "compute"):
        if hasattr(X, "numblocks") and X.ndim == 2:
            return LazyBlocks(X.numblocks[0], lambda k: X.blocks[k].compute())
        if hasattr(X, "npartitions") and not hasattr(X, "numblocks"):
            return LazyBlocks(X.npartitions, lambda k: X.partitions[k].compute())
    if isinstance(X, Sequence) and len(X) and len(getattr(X[0], "shape", ())) == 2:
        return X
    return None
