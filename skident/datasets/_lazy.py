"""Rows of images that stay on disk until they are asked for."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from skident.datasets._files import check_keys, need, reading, wrong

_BLOCK_BYTES = 2**24
# Length of the fixed part of a local header of a zip file, up to its name.
_ZIP_HEADER = 30


class LazyRows:
    """Rows of an array on disk: a shape, a type, and indexing that reads.

    Indexed by an int, a slice, a mask or an array of rows, in any order; what comes
    back is an array in memory. Further indices apply to it. ``numpy.asarray`` reads
    all. Holds no open file, so that it can be pickled and sent to other processes.

    Parameters
    ----------
    shape : tuple of int
        Of the whole array.
    dtype : dtype
        Of the array.
    """

    def __init__(self, shape, dtype):
        self.shape = tuple(int(n) for n in shape)
        self.dtype = np.dtype(dtype)
        self.ndim = len(self.shape)

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return f"<{self.shape} {self.dtype} on disk>"

    def __getitem__(self, key):
        key, *rest = key if isinstance(key, tuple) else (key,)
        rows = np.arange(len(self))[key]
        if rows.ndim > 1:
            raise IndexError(f"Rows are one-dimensional, got an index of {rows.ndim}.")
        found = self._read(np.atleast_1d(rows))
        if rows.ndim == 0:
            return found[0][tuple(rest)]
        return found[(slice(None), *rest)]

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("The rows are on disk: reading them is a copy.")
        found = self[:]
        return found if dtype is None else found.astype(dtype, copy=False)

    def _read(self, rows):
        raise NotImplementedError


class H5Rows(LazyRows):
    """Rows of a dataset of an HDF5 file, opened at each access."""

    def __init__(self, path, key, shape, dtype):
        super().__init__(shape, dtype)
        self._path, self._key = str(path), key

    def _read(self, rows):
        h5py = need("h5py")
        expected = f"rows of {self._key!r}"
        with reading(self._path, expected, OSError), h5py.File(self._path, "r") as file:
            dataset = file[self._key]
            # HDF5 reads rows in ascending order, each once.
            wanted, places = np.unique(rows, return_inverse=True)
            if wanted.size and wanted[-1] - wanted[0] + 1 == wanted.size:
                wanted = slice(int(wanted[0]), int(wanted[-1]) + 1)
            return dataset[wanted][places.reshape(-1)]


class ImageRows(LazyRows):
    """Images of a folder, decoded when they are asked for.

    Parameters
    ----------
    folder : Path
        Where they are.
    numbers : ndarray of int of shape (n_images,)
        The numbers that they are named by, with six digits.
    """

    def __init__(self, folder, numbers):
        self._folder, self._numbers = str(folder), numbers
        self.shape = None
        first = self._open(numbers[0])
        super().__init__((len(numbers), *first.shape), first.dtype)

    def _read(self, rows):
        out = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for place, number in zip(out, self._numbers[rows], strict=True):
            place[:] = self._open(number)
        return out

    def _open(self, number):
        image_module = need("PIL.Image", "Pillow")
        path = Path(self._folder) / f"{number:06d}.png"
        with reading(path, "a PNG image", OSError, SyntaxError):
            with image_module.open(path) as image:
                pixels = np.asarray(image.convert("RGB"))
        if self.shape is not None and pixels.shape != self.shape[1:]:
            raise wrong(
                path, f"an image of shape {self.shape[1:]}", f"has {pixels.shape}"
            )
        return pixels


class Archive:
    """Arrays of an .npz file, none of them pickled.

    Parameters
    ----------
    path : Path
        The file.
    expected : str
        What it should be, for errors.
    needed : sequence of str
        Arrays that it must have.
    """

    def __init__(self, path, expected, needed):
        self._path, self._expected = path, expected
        with self._reading(), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        keys = [name.removesuffix(".npy") for name in names if name.endswith(".npy")]
        check_keys(path, expected, needed, keys)

    def _reading(self):
        return reading(
            self._path, self._expected, zipfile.BadZipFile, zlib.error, OSError,
            EOFError, ValueError,
        )  # fmt: skip

    def header(self, key):
        """Return shape and type of an array, read from the first bytes of it."""
        with self._reading(), zipfile.ZipFile(self._path) as archive:
            with archive.open(f"{key}.npy") as stream:
                shape, _, dtype = _header(stream)
        if dtype.hasobject:
            raise wrong(self._path, self._expected, f"has {key!r} pickled")
        return shape, dtype

    def read(self, key, rows=None):
        """Return an array, or some of its rows, in memory.

        Rows of a compressed array are gathered block by block on one way through it.
        """
        self.header(key)
        with self._reading(), zipfile.ZipFile(self._path) as archive:
            with archive.open(f"{key}.npy") as stream:
                if rows is None:
                    return np.lib.format.read_array(stream, allow_pickle=False)
                shape, fortran, dtype = _header(stream)
                if not fortran:
                    return _gather(stream, shape, dtype, rows)
            return self.read(key)[rows]

    def map(self, key):
        """Return an array as a read-only memory map; None if it is compressed."""
        self.header(key)
        with self._reading():
            with zipfile.ZipFile(self._path) as archive:
                info = archive.getinfo(f"{key}.npy")
            if info.compress_type != zipfile.ZIP_STORED:
                return None
            with open(self._path, "rb") as file:
                file.seek(info.header_offset)
                local = file.read(_ZIP_HEADER)
                # Lengths of the name and of the extra field that follow.
                name, extra = (
                    int.from_bytes(local[k : k + 2], "little") for k in (26, 28)
                )
                file.seek(name + extra, 1)
                shape, fortran, dtype = _header(file)
                order = "F" if fortran else "C"
                return np.memmap(
                    self._path, dtype, "r", file.tell(), shape=shape, order=order
                )


def _header(stream):
    """Return shape, whether it is in Fortran order, and type of an .npy stream."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(stream)
    raise ValueError(f"version {version} of the .npy format holds no plain numbers")


def _gather(stream, shape, dtype, rows):
    """Return rows of an array in C order from a stream, read up to its numbers."""
    size = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
    out = np.empty((len(rows), *shape[1:]), dtype)
    order = np.argsort(rows, kind="stable")
    wanted = np.asarray(rows)[order]
    step = max(1, _BLOCK_BYTES // max(1, size))
    for start in range(0, shape[0], step):
        stop = min(start + step, shape[0])
        first, last = np.searchsorted(wanted, [start, stop])
        data = stream.read((stop - start) * size)
        if len(data) < (stop - start) * size:
            raise EOFError(f"it ends within row {start + len(data) // max(1, size)}")
        if last > first:
            block = np.frombuffer(data, dtype).reshape(stop - start, *shape[1:])
            out[order[first:last]] = block[wanted[first:last] - start]
        if last == len(wanted):
            break
    return out
