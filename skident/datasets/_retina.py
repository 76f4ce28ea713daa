"""Reader of the salamander retina under a repeated movie."""

import zlib

import numpy as np
from scipy import io
from sklearn.utils import Bunch

from skident.datasets._files import check_keys, existing, need, reading, wrong

_SOURCE = "https://doi.org/10.15479/AT:ISTA:61"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_ERRORS = (
    OSError, ValueError, TypeError, KeyError, EOFError, IndexError, zlib.error,
    io.matlab.MatReadError,
)  # fmt: skip


def load_retina(path):
    """Read binarised spikes of 160 retinal ganglion cells under a repeated movie.

    Parameters
    ----------
    path : str or path-like
        ``bint_fishmovie32_100.mat`` (as downloaded, with ``IST-2017-61-v1+1_`` before
        it), from https://doi.org/10.15479/AT:ISTA:61; believed CC0, unverified. Files
        of MATLAB 5 to 7.2 and, with h5py, of 7.3.

    Returns
    -------
    Bunch
        ``data`` : ndarray of shape (n_repeats * n_bins, n_cells), uint8: one word of
        zeros and ones a time bin, repeat after repeat; (283041, 160) in the whole file.
        ``groups`` : ndarray of shape (n_repeats * n_bins,), int64, the repeat of each
        word: split on it, as time bins repeat one movie.
        ``bins`` : ndarray of shape (n_repeats * n_bins,), int64, the bin in the movie.
        ``bint`` : ndarray of shape (n_repeats, n_cells, n_bins), uint8: the array of
        the file, a view of ``data``.
        ``bin_seconds`` : float, 0.02.
        ``DESCR`` : str.

    Raises
    ------
    FileNotFoundError
        If there is no file, saying where it is to be had.
    ValueError
        If the file is not of this layout, saying what was expected and found.
    ImportError
        For a file of MATLAB 7.3 without h5py (``pip install "skident[readers]"``).

    Notes
    -----
    Layout: a variable ``bint`` of shape (number of repeats, number of neurons, time in
    a repeat), binary; 297 repeats of 953 bins of 20 ms (abstract of the source; the
    name of the variable is that of public scripts that load it). The text file of the
    same record is not read. The file is read whole, 45 MB as uint8.

    References
    ----------
    .. [1] Tkacik, Marre, Amodei, Schneidman, Bialek, Berry, "Searching for collective
       behavior in a large network of sensory neurons", PLoS Comput Biol 10 (2014),
       e1003408.

    Examples
    --------
    A file of the same layout:

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from scipy.io import savemat
    >>> from skident.datasets import load_retina
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "small.mat"
    >>> savemat(path, {"bint": np.eye(6).reshape(3, 4, 3)})
    >>> data = load_retina(path)
    >>> data.data.shape, data.groups.tolist()
    ((9, 4), [0, 0, 0, 1, 1, 1, 2, 2, 2])
    >>> folder.cleanup()
    """
    expected = "the retina's .mat file (binary bint: repeats, neurons, time bins)"
    path = existing(path, expected, _SOURCE)
    bint = _read(path, expected)
    if not isinstance(bint, np.ndarray) or bint.dtype.kind not in "fiub":
        raise wrong(path, expected, f"has a bint of {type(bint).__name__}s, no numbers")
    if bint.ndim != 3 or bint.size == 0:
        raise wrong(path, expected, f"has bint of shape {bint.shape}")
    other = ~((bint == 0) | (bint == 1))
    if other.any():
        place = tuple(int(k) for k in np.argwhere(other)[0])
        raise wrong(
            path, expected, f"has {bint[place]:g} at repeat {place[0]}, neuron "
            f"{place[1]}, bin {place[2]}",
        )  # fmt: skip
    words = np.ascontiguousarray(bint.transpose(0, 2, 1), dtype=np.uint8)
    n_repeats, n_bins, n_cells = words.shape
    return Bunch(
        data=words.reshape(-1, n_cells),
        groups=np.repeat(np.arange(n_repeats), n_bins),
        bins=np.tile(np.arange(n_bins), n_repeats),
        bint=words.transpose(0, 2, 1),
        bin_seconds=0.02,
        DESCR=f"Salamander retina, fish movie, {_SOURCE}",
    )


def _read(path, expected):
    """Return the variable of a .mat file of any version."""
    if _is_hdf5(path, expected):
        h5py = need("h5py")
        with reading(path, expected, OSError), h5py.File(path, "r") as file:
            check_keys(path, expected, ("bint",), file)
            if not isinstance(file["bint"], h5py.Dataset):
                raise wrong(path, expected, "has bint as a group, no array")
            # MATLAB's columns are HDF5's rows.
            return file["bint"][()].T
    with reading(path, expected, *_ERRORS):
        names = [name for name, *_ in io.whosmat(path, appendmat=False)]
    check_keys(path, expected, ("bint",), names)
    with reading(path, expected, *_ERRORS):
        return io.loadmat(path, appendmat=False, variable_names=["bint"])["bint"]


def _is_hdf5(path, expected):
    with open(path, "rb") as file:
        if file.read(len(_HDF5)) == _HDF5:
            return True
    with reading(path, expected, *_ERRORS):
        return io.matlab.matfile_version(path, appendmat=False)[0] == 2
