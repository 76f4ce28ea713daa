"""Rows on their way into a network: their units, and reading them batch by batch."""

import mmap
from typing import NamedTuple

import numpy as np
import torch

# Numbers a block of a pass over the rows may hold: 16 MiB of float64.
_BLOCK_NUMBERS = 2**21
# Numbers that stay in the cache while they are worked on.
_CACHED = 2**15


class ColumnStatistics(NamedTuple):
    """What two passes over an array of shape (n_samples, n_features) give.

    Attributes
    ----------
    mean, smallest, largest : ndarray of shape (n_features,)
        Of each column, float64.
    scale : float
        Root mean square of the centred array; 1 if that is zero.
    two_valued : bool
        Whether 0 and 1 occur and nothing else.
    """

    mean: np.ndarray
    smallest: np.ndarray
    largest: np.ndarray
    scale: float
    two_valued: bool


def blocks(array):
    """Yield (start, stop) of pieces of an array that are small in float64."""
    rows = max(1, _BLOCK_NUMBERS // max(1, array.shape[1]))
    for start in range(0, array.shape[0], rows):
        yield start, min(start + rows, array.shape[0])


@np.errstate(over="ignore", invalid="ignore")
def column_statistics(array):
    """Return the statistics of columns, safe from overflow, by blocks of rows.

    The scale is not finite where the range of a column exceeds the largest float.
    """
    n, width = array.shape
    total = np.zeros(width)
    smallest, largest, two_valued = (
        np.full(width, np.inf),
        np.full(width, -np.inf),
        True,
    )
    for start, stop in blocks(array):
        block = _doubles(array[start:stop])
        total += (block / n).sum(axis=0)
        np.minimum(smallest, block.min(axis=0), out=smallest)
        np.maximum(largest, block.max(axis=0), out=largest)
        two_valued = two_valued and bool(((block == 0) | (block == 1)).all())
    # rounding must not move the mean of a constant column
    mean = np.clip(total, smallest, largest)
    reach = max(np.abs(largest - mean).max(), np.abs(smallest - mean).max())
    square = sum(
        float(np.square((_doubles(array[start:stop]) - mean) / reach).sum())
        for start, stop in blocks(array)
        if reach > 0
    )
    scale = float(reach * np.sqrt(square / array.size)) if reach > 0 else 1.0
    two_valued = two_valued and bool(smallest.min() == 0 and largest.max() == 1)
    return ColumnStatistics(mean, smallest, largest, scale, two_valued)


def check_unit_interval(array, columns=None):
    """Raise a ``ValueError`` that names the first value that is not in [0, 1]."""
    for start, stop in blocks(array):
        block = array[start:stop]
        outside = (block < 0) | (block > 1)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            name = "" if columns is None else f" ({columns[column]!r})"
            raise ValueError(
                f"loss='bce' needs values in [0, 1], but column {column}{name}, row "
                f"{start + row} is {block[row, column]:g}: scale X, or use loss='mse'."
            )


def cross_entropy_of_means(array, mean):
    """Return what the column means leave of a binary cross-entropy, nats a row.

    That is the error of the best constant reconstruction beyond that of a perfect one,
    for an array with values in [0, 1].
    """
    left = sum(
        float(_binary_entropy(_doubles(array[start:stop])).sum())
        for start, stop in blocks(array)
    )
    return float(_binary_entropy(mean).sum()) - left / array.shape[0]


def _binary_entropy(p):
    inner = np.clip(p, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
    return -p * np.log(inner) - (1.0 - p) * np.log1p(-inner)


def in_network_units(array, mean, scale, out=None):
    """Return rows centred and divided by the scale, float32, computed in float64.

    They are the first rows of ``out``, if there is one.
    """
    out = np.empty(array.shape, dtype=np.float32) if out is None else out
    rows = out[: array.shape[0]]
    size = max(1, _CACHED // max(1, array.shape[1]))
    buffer = np.empty((min(size, array.shape[0]), array.shape[1]))
    with np.errstate(over="ignore"):  # what is too large for float32 is infinite
        for start in range(0, array.shape[0], size):
            part = array[start : start + size]
            block = buffer[: part.shape[0]]
            np.subtract(part, mean, dtype=np.float64, out=block)
            block /= scale
            rows[start : start + size] = block
    return rows


def as_tensor(array, mean, scale, device):
    """Return an array in network units as one tensor."""
    return torch.from_numpy(in_network_units(array, mean, scale)).to(device)


def is_mapped(array):
    """Return whether an array lies in a file that is mapped into memory."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return isinstance(array, mmap.mmap)


class MappedRows:
    """Rows of an array that are read, and brought to network units, as asked for.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_features)
        Usually mapped from a file; never copied whole.
    mean : ndarray of shape (n_features,)
        Means of the columns.
    scale : float
        The common scale.
    device : torch.device
        Where batches go.
    index : ndarray of int, optional
        Which rows; None is all.
    """

    def __init__(self, array, mean, scale, device, index=None):
        self._array, self._mean, self._scale = array, mean, scale
        self._index = np.arange(array.shape[0]) if index is None else index
        self._target = device
        # indices are made where the array is
        self.device = torch.device("cpu")
        self.shape = (self._index.size, array.shape[1])

    def take(self, index):
        """Return the rows of a tensor of indices, not yet read."""
        chosen = self._index[index.numpy()]
        return MappedRows(self._array, self._mean, self._scale, self._target, chosen)

    def __getitem__(self, index):
        """Return the rows of a slice or a tensor of indices as a tensor."""
        chosen = self._index[index.numpy() if torch.is_tensor(index) else index]
        rows = in_network_units(self._array[chosen], self._mean, self._scale)
        return torch.from_numpy(rows).to(self._target)


def _doubles(block):
    return np.asarray(block, dtype=np.float64, order="C")
