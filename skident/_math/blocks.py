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
        A Dask array or data frame is known by its ``numblocks`` or ``npartitions``
        and ``compute``. Any other sequence (not an array) is blocks one below the
        other if its first item, or of a list or tuple any item, is two-dimensional: an
        array or a data frame.

    Returns
    -------
    sequence or None
        Each item is an array or a data frame in memory, or memory-mapped.
    """
    if hasattr(X, "compute"):
        if hasattr(X, "numblocks") and X.ndim == 2:
            return LazyBlocks(X.numblocks[0], lambda k: X.blocks[k].compute())
        if hasattr(X, "npartitions") and not hasattr(X, "numblocks"):
            # X.partitions[k] takes other rows than these once X.loc was applied.
            parts = X.to_delayed()
            return LazyBlocks(len(parts), lambda k: parts[k].compute())
    if isinstance(X, Sequence) and len(X):
        items = X if isinstance(X, list | tuple) else (X[0],)
        if any(len(getattr(item, "shape", ())) == 2 for item in items):
            return X
    return None
