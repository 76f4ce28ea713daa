"""Readers of images with known factors that come in one file."""

import numpy as np
from sklearn.utils import Bunch

from skident.datasets._files import check_keys, existing, need, reading, wrong
from skident.datasets._lazy import Archive, H5Rows

_DSPRITES = "https://github.com/google-deepmind/dsprites-dataset"
_SHAPES3D = "https://github.com/google-deepmind/3d-shapes"
_MPI3D = "https://github.com/rr-learning/disentanglement_dataset"
_MPI3D_NAMES = (
    "object_color", "object_shape", "object_size", "camera_height",
    "background_color", "horizontal_axis", "vertical_axis",
)  # fmt: skip
# Of the number of images; the complex shapes have the same as the first version.
_MPI3D_SIZES = {
    460_800: (4, 4, 2, 3, 3, 40, 40),
    1_036_800: (6, 6, 2, 3, 3, 40, 40),
}


def load_dsprites(path, *, rows=None):
    """Read dSprites: white sprites on black, on a full grid of six factors.

    Parameters
    ----------
    path : str or path-like
        ``dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz``, from
        https://github.com/google-deepmind/dsprites-dataset (Apache-2.0), 26 MB.
    rows : slice or array-like of int, default=None
        Images to keep, in this order; None keeps all. The public file is compressed,
        its 737,280 images take 3 GB in memory: with ``rows`` they are gathered on one
        way through the file, and take what they need.

    Returns
    -------
    Bunch
        ``images`` : ndarray of shape (n, 64, 64), uint8, 0 or 1; a read-only memory map
        if the array in the file is not compressed and ``rows`` is None.
        ``factors`` : ndarray of shape (n, 6), int64, codes 0, 1, ...
        ``factor_values`` : ndarray of shape (n, 6), float64: shape 1, 2, 3; scale in
        [0.5, 1]; orientation in [0, 2 pi); positions in [0, 1].
        ``factor_names`` : list of str: color (constant), shape, scale, orientation,
        posX, posY.
        ``factor_sizes`` : tuple of int, number of values of each factor.
        ``DESCR`` : str.

    Raises
    ------
    FileNotFoundError
        If there is no file, saying where it is to be had.
    ValueError
        If the file is not of this layout, saying what was expected and found.

    Notes
    -----
    Layout: an .npz archive of ``imgs`` (n, 64, 64) uint8, ``latents_classes`` (n, 6)
    int64 and ``latents_values`` (n, 6) float64, as in the "reloading example" of the
    source. Its fourth array, ``metadata``, is a pickled dict: it is never read.

    References
    ----------
    .. [1] Matthey, Higgins, Hassabis, Lerchner, "dSprites: disentanglement testing
       sprites dataset" (2017).

    Examples
    --------
    A file of the same layout:

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from skident.datasets import load_dsprites
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "small.npz"
    >>> np.savez(path, imgs=np.zeros((6, 64, 64), np.uint8),
    ...     latents_classes=np.eye(6, dtype=int), latents_values=np.eye(6))
    >>> data = load_dsprites(path, rows=[1, 0])
    >>> data.images.shape, data.factor_names[1:3], data.factors[0].tolist()
    ((2, 64, 64), ['shape', 'scale'], [0, 1, 0, 0, 0, 0])
    >>> folder.cleanup()
    """
    expected = "a dSprites archive (imgs, latents_classes, latents_values)"
    path = existing(path, expected, _DSPRITES)
    keys = ("imgs", "latents_classes", "latents_values")
    archive = Archive(path, expected, keys)
    shapes = {key: archive.header(key)[0] for key in keys}
    n = shapes["imgs"][0] if shapes["imgs"] else 0
    if len(shapes["imgs"]) != 3 or archive.header("imgs")[1] != np.uint8 or n == 0:
        raise wrong(path, expected, _described(archive, "imgs", "(n, 64, 64) uint8"))
    for key in keys[1:]:
        if shapes[key] != (n, 6):
            raise wrong(path, expected, _described(archive, key, f"({n}, 6)"))
    kept = None if rows is None else _row_numbers(rows, n)
    classes, values = (archive.read(key) for key in keys[1:])
    if classes.dtype.kind not in "iu" or classes.min() < 0:
        raise wrong(
            path, expected, f"has latents_classes of type {classes.dtype}, least value "
            f"{classes.min():g}: no codes 0, 1, ...",
        )  # fmt: skip
    images = archive.map("imgs") if rows is None else None
    return Bunch(
        images=archive.read("imgs", kept) if images is None else images,
        factors=_select(classes, kept).astype(np.int64),
        factor_values=_select(values, kept).astype(np.float64),
        factor_names=["color", "shape", "scale", "orientation", "posX", "posY"],
        factor_sizes=tuple(int(k) + 1 for k in classes.max(axis=0)),
        DESCR=f"dSprites, {_DSPRITES}",
    )


def load_shapes3d(path):
    """Read Shapes3D: coloured shapes in a room, on a full grid of six factors.

    Parameters
    ----------
    path : str or path-like
        ``3dshapes.h5``, from the bucket named at
        https://github.com/google-deepmind/3d-shapes (Apache-2.0), 255 MB.

    Returns
    -------
    Bunch
        ``images`` : rows of shape (n, 64, 64, 3), uint8, that stay on disk. They are
        read (HDF5 opened, read, closed) where they are indexed by an int, a slice, a
        mask or an array of rows: ``images[:1000]`` is an array. ``numpy.asarray``
        reads all, 5.9 GB.
        ``factors`` : ndarray of shape (n, 6), int64, codes 0, 1, ... in ascending order
        of the values.
        ``factor_values`` : ndarray of shape (n, 6), float64.
        ``factor_names`` : list of str: floor_hue, wall_hue, object_hue, scale, shape,
        orientation.
        ``factor_sizes`` : tuple of int; 10, 10, 10, 8, 4, 15 in the whole file.
        ``DESCR`` : str.

    Raises
    ------
    FileNotFoundError
        If there is no file, saying where it is to be had.
    ValueError
        If the file is not of this layout, saying what was expected and found.
    ImportError
        Without h5py (``pip install "skident[readers]"``).

    Notes
    -----
    Layout: HDF5 with ``images`` (480000, 64, 64, 3) uint8 and ``labels`` (480000, 6)
    float64, as in the loading example of the source.

    References
    ----------
    .. [1] Burgess, Kim, "3D shapes dataset" (2018).

    Examples
    --------
    A file of the same layout:

    >>> import tempfile, pathlib
    >>> import h5py
    >>> import numpy as np
    >>> from skident.datasets import load_shapes3d
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "small.h5"
    >>> with h5py.File(path, "w") as file:
    ...     file["images"] = np.zeros((4, 64, 64, 3), np.uint8)
    ...     file["labels"] = [[0.0, 0.1, 0.0, 0.75, 2.0, -30.0]] * 4
    >>> data = load_shapes3d(path)
    >>> data.images, data.images[[3, 1]].shape
    (<(4, 64, 64, 3) uint8 on disk>, (2, 64, 64, 3))
    >>> folder.cleanup()
    """
    expected = "a Shapes3D file (HDF5 with images, labels)"
    path = existing(path, expected, _SHAPES3D)
    h5py = need("h5py")
    with reading(path, expected, OSError), h5py.File(path, "r") as file:
        check_keys(path, expected, ("images", "labels"), file)
        shape, dtype = (getattr(file["images"], k, None) for k in ("shape", "dtype"))
        label_shape = getattr(file["labels"], "shape", None)
        if shape is None or len(shape) != 4 or shape[-1] != 3 or dtype != np.uint8:
            raise wrong(
                path, expected, f"has images of shape {shape}, type {dtype}, not "
                "(n, 64, 64, 3) uint8",
            )  # fmt: skip
        if label_shape != (shape[0], 6) or shape[0] == 0:
            raise wrong(
                path, expected, f"has labels of shape {label_shape} and images of "
                f"shape {shape}",
            )  # fmt: skip
        values = file["labels"][()].astype(np.float64)
    coded = [np.unique(column, return_inverse=True) for column in values.T]
    return Bunch(
        images=H5Rows(path, "images", shape, dtype),
        factors=np.stack([codes.reshape(-1) for _, codes in coded], axis=1),
        factor_values=values,
        factor_names=[
            "floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation",
        ],
        factor_sizes=tuple(len(names) for names, _ in coded),
        DESCR=f"Shapes3D, {_SHAPES3D}",
    )  # fmt: skip


def load_mpi3d(path, *, factor_sizes=None):
    """Read MPI3D: a robot arm that holds an object, on a full grid of seven factors.

    Parameters
    ----------
    path : str or path-like
        ``mpi3d_toy.npz``, ``mpi3d_realistic.npz``, ``mpi3d_real.npz`` or
        ``real3d_complicated_shapes_ordered.npz``, by the links at
        https://github.com/rr-learning/disentanglement_dataset (CC BY 4.0), up to 12 GB.
    factor_sizes : tuple of 7 ints, default=None
        Number of values of each factor. None goes by the number of images: 6, 6, 2, 3,
        3, 40, 40 for 1,036,800, and 4, 4, 2, 3, 3, 40, 40 for the 460,800 of the first
        version and of the complex shapes. Give it for a cut of the grid.

    Returns
    -------
    Bunch
        ``images`` : ndarray of shape (n, 64, 64, 3), uint8: a read-only memory map
        where the array in the file is stored as it is (as ``numpy.savez`` does), else
        read whole, 12.7 GB.
        ``factors`` : ndarray of shape (n, 7), int64, codes 0, 1, ...
        ``factor_names`` : list of str: object_color, object_shape, object_size,
        camera_height, background_color, horizontal_axis, vertical_axis.
        ``factor_sizes`` : tuple of int.
        ``DESCR`` : str.

    Raises
    ------
    FileNotFoundError
        If there is no file, saying where it is to be had.
    ValueError
        If the file is not of this layout, saying what was expected and found.

    Notes
    -----
    Layout: an .npz archive of ``images``, uint8, with the factors in the order of the
    grid, the last one running fastest; (n, 64, 64, 3), or the same with n split into
    the sizes of the grid. The source gives order and sizes; what a code means (which
    colour is 0) differs between the four files, and stands there.

    References
    ----------
    .. [1] Gondal et al., "On the transfer of inductive bias from simulation to the real
       world: a new disentanglement dataset", NeurIPS 2019.

    Examples
    --------
    A file of the same layout:

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from skident.datasets import load_mpi3d
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "small.npz"
    >>> np.savez(path, images=np.zeros((8, 64, 64, 3), np.uint8))
    >>> data = load_mpi3d(path, factor_sizes=(2, 1, 2, 1, 1, 1, 2))
    >>> data.images.shape, data.factors[5].tolist()
    ((8, 64, 64, 3), [1, 0, 0, 0, 0, 0, 1])
    >>> type(data.images).__name__
    'memmap'
    >>> del data
    >>> folder.cleanup()
    """
    expected = "an MPI3D archive (images)"
    path = existing(path, expected, _MPI3D)
    archive = Archive(path, expected, ("images",))
    shape, dtype = archive.header("images")
    n = int(np.prod(shape[:-3], dtype=np.int64)) if len(shape) >= 4 else 0
    if n == 0 or shape[-1] != 3 or dtype != np.uint8:
        raise wrong(
            path, expected, _described(archive, "images", "(n, 64, 64, 3) uint8")
        )
    if factor_sizes is None and n not in _MPI3D_SIZES:
        raise wrong(
            path, expected, f"has {n} images, not {' or '.join(map(str, _MPI3D_SIZES))}"
            ": pass factor_sizes if it is a cut of the grid",
        )  # fmt: skip
    sizes = _MPI3D_SIZES.get(n) if factor_sizes is None else tuple(factor_sizes)
    if len(sizes) != len(_MPI3D_NAMES) or np.prod(sizes, dtype=np.int64) != n:
        raise wrong(
            path, f"{expected} with a grid of factor_sizes={sizes}", f"has {n} images"
        )
    images = archive.map("images")
    images = archive.read("images") if images is None else images
    return Bunch(
        images=images.reshape(n, *shape[-3:]),
        factors=grid(sizes, np.arange(n)),
        factor_names=list(_MPI3D_NAMES),
        factor_sizes=tuple(int(k) for k in sizes),
        DESCR=f"MPI3D, {_MPI3D}",
    )


def grid(sizes, places):
    """Return the codes of factors at places of a full grid, the last running fastest.

    Parameters
    ----------
    sizes : tuple of int
        Number of values of each factor.
    places : ndarray of int of shape (n_samples,)
        Positions in the grid.

    Returns
    -------
    ndarray of shape (n_samples, n_factors), int64
    """
    return np.stack(np.unravel_index(places, sizes), axis=1).astype(np.int64)


def _described(archive, key, expected):
    shape, dtype = archive.header(key)
    return f"has {key} of shape {shape}, type {dtype}, not {expected}"


def _row_numbers(rows, n):
    """Return the rows that a slice or a list means, as numbers from 0."""
    if not isinstance(rows, slice):
        rows = np.asarray(rows)
        rows = rows.astype(int) if rows.size == 0 else rows
    try:
        found = np.arange(n)[rows]
    except IndexError as error:
        raise ValueError(
            f"rows must be a slice or row numbers below {n}: {error}."
        ) from error
    if found.ndim != 1:
        raise ValueError(f"rows must be a slice or a list of rows, got {rows!r}.")
    return found


def _select(array, rows):
    return array if rows is None else array[rows]
