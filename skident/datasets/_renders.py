"""Readers of Falcor3D and Isaac3D: folders of rendered images."""

import os
import re
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from skident.datasets._files import check_keys, existing, need, reading, wrong
from skident.datasets._lazy import ImageRows
from skident.datasets._sprites import grid

_SOURCE = "https://github.com/NVlabs/High-res-disentanglement-datasets"
# Tables of labels, in the order in which they are looked for.
_TABLES = ("labels.csv", "labels.npy", "train-rec.labels")
_NAME = re.compile(r"(\d+)\.png")
_FALCOR3D = {
    "lighting_intensity": 5, "lighting_x-dir": 6, "lighting_y-dir": 6,
    "lighting_z-dir": 6, "camera_x-pos": 6, "camera_y-pos": 6, "camera_z-pos": 6,
}  # fmt: skip
_ISAAC3D = {
    "object_shape": 3, "robot_x-move": 8, "robot_y-move": 5, "camera_height": 4,
    "object_scale": 4, "lighting_intensity": 4, "lighting_y-dir": 6,
    "object_color": 4, "wall_color": 4,
}  # fmt: skip


def load_falcor3d(path, *, labels=None):
    """Read Falcor3D: a living room under changing light, on a grid of seven factors.

    Parameters
    ----------
    path : str or path-like
        Folder of the unpacked archive (``Falcor3D_down128``, 128 x 128 pixels, 3.7 GB,
        or ``Falcor3D``, 1024 x 1024, 98 GB), by the links at
        https://github.com/NVlabs/High-res-disentanglement-datasets (CC BY 4.0); or the
        folder of images itself. Images may be missing.
    labels : str or path-like, default=None
        Table of factor values; None looks for ``labels.csv``, ``labels.npy`` and
        ``train-rec.labels`` in the folder. Without any, factors follow from the names
        of the images.

    Returns
    -------
    Bunch
        ``images`` : rows of shape (n, height, width, 3), uint8, that stay on disk. They
        are decoded where they are indexed by an int, a slice, a mask or an array of
        rows: ``images[:100]`` is an array.
        ``factors`` : ndarray of shape (n, 7), int64, codes 0, 1, ...
        ``factor_values`` : ndarray of shape (n, 7), float64, the codes in [0, 1].
        ``factor_names`` : list of str: lighting_intensity, lighting_x-dir,
        lighting_y-dir, lighting_z-dir, camera_x-pos, camera_y-pos, camera_z-pos.
        ``factor_sizes`` : tuple of int: 5, 6, 6, 6, 6, 6, 6.
        ``indices`` : ndarray of shape (n,), int64, the number in each image's name.
        ``DESCR`` : str.

    Raises
    ------
    FileNotFoundError
        If there is no folder, saying where it is to be had.
    ValueError
        If the folder or the table is not of this layout, or an image cannot be decoded
        or has another size, saying what was expected and found.
    ImportError
        Without Pillow, or for a .csv without pandas (``pip install
        "skident[readers]"``).

    Notes
    -----
    Layout: ``images/000000.png``, ``images/000001.png``, ...; the number is the place
    in the grid of factors, the last one running fastest (README of the source). Tables
    have one row an image of the grid, in this order, and one column a factor, with
    values k / (number of values - 1). ``train-rec.labels`` is an .npy file by its
    content. That it is in the archive of small images is taken from public loaders of
    it, not from the source; a .csv, which must have a column by the name of each
    factor, is an addition: its **layout is unverified**.

    References
    ----------
    .. [1] Nie et al., "Semi-supervised StyleGAN for disentanglement learning", ICML
       2020.

    Examples
    --------
    A folder of the same layout:

    >>> import tempfile, pathlib
    >>> from PIL import Image
    >>> from skident.datasets import load_falcor3d
    >>> folder = tempfile.TemporaryDirectory()
    >>> images = pathlib.Path(folder.name) / "images"
    >>> images.mkdir()
    >>> for index in (0, 46657):
    ...     Image.new("RGB", (16, 16)).save(images / f"{index:06d}.png")
    >>> data = load_falcor3d(folder.name)
    >>> data.images, data.factors[1].tolist()
    (<(2, 16, 16, 3) uint8 on disk>, [1, 0, 0, 0, 0, 0, 1])
    >>> folder.cleanup()
    """
    return _load(path, labels, "Falcor3D", _FALCOR3D)


def load_isaac3d(path, *, labels=None):
    """Read Isaac3D: a robot arm in a kitchen, on a grid of nine factors.

    Parameters
    ----------
    path : str or path-like
        Folder of the unpacked archive (``Isaac3D_down128``, 128 x 128 pixels, 13 GB, or
        ``Isaac3D``, 512 x 512, 190 GB), by the links at
        https://github.com/NVlabs/High-res-disentanglement-datasets (CC BY 4.0); or the
        folder of images itself. Images may be missing.
    labels : str or path-like, default=None
        Table of factor values; None looks for ``labels.csv``, ``labels.npy`` and
        ``train-rec.labels`` in the folder. Without any, factors follow from the names
        of the images.

    Returns
    -------
    Bunch
        As from :func:`load_falcor3d`, with nine factors: object_shape, robot_x-move,
        robot_y-move, camera_height, object_scale, lighting_intensity, lighting_y-dir,
        object_color, wall_color, of 3, 8, 5, 4, 4, 4, 6, 4, 4 values.

    Raises
    ------
    FileNotFoundError
        If there is no folder, saying where it is to be had.
    ValueError
        If the folder or the table is not of this layout, or an image cannot be decoded
        or has another size, saying what was expected and found.
    ImportError
        Without Pillow, or for a .csv without pandas (``pip install
        "skident[readers]"``).

    Notes
    -----
    Layout: as of :func:`load_falcor3d`; ``labels.npy`` in the archive of small images
    is taken from public loaders of it, and a .csv is **unverified**. The README of the
    source states the strides of the grid beside names in another order, with which they
    give no grid; the order here is that of its ``dataset_demo.py``, with which they do.

    References
    ----------
    .. [1] Nie et al., "Semi-supervised StyleGAN for disentanglement learning", ICML
       2020.

    Examples
    --------
    A folder of the same layout:

    >>> import tempfile, pathlib
    >>> from PIL import Image
    >>> from skident.datasets import load_isaac3d
    >>> folder = tempfile.TemporaryDirectory()
    >>> images = pathlib.Path(folder.name) / "images"
    >>> images.mkdir()
    >>> Image.new("RGB", (16, 16)).save(images / "245761.png")
    >>> data = load_isaac3d(folder.name)
    >>> dict(zip(data.factor_names, data.factors[0].tolist()))["object_shape"]
    1
    >>> folder.cleanup()
    """
    return _load(path, labels, "Isaac3D", _ISAAC3D)


def _load(path, labels, name, sizes):
    expected = f"a folder of {name} (images/000000.png, ...)"
    folder = existing(path, expected, _SOURCE, folder=True)
    images = folder / "images" if (folder / "images").is_dir() else folder
    total = int(np.prod(list(sizes.values())))
    numbers = _numbers(images, expected, total)
    codes = grid(tuple(sizes.values()), numbers)
    table = _find_table(folder, labels)
    if table is not None:
        codes = _table_codes(table, sizes, numbers)
    return Bunch(
        images=ImageRows(images, numbers),
        factors=codes,
        factor_values=codes / (np.array(list(sizes.values())) - 1.0),
        factor_names=list(sizes),
        factor_sizes=tuple(sizes.values()),
        indices=numbers,
        DESCR=f"{name}, {_SOURCE}",
    )


def _numbers(folder, expected, total):
    """Return the numbers in the names of images, ascending."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    found = [match for match in map(_NAME.fullmatch, names) if match]
    if not found:
        some = ", ".join(map(repr, sorted(names)[:5])) or "nothing"
        raise wrong(folder, expected, f"has no such image; it has {some}")
    for match in found:
        if match[0] != f"{int(match[1]):06d}.png":
            raise wrong(folder, expected, f"has {match[0]!r}, not of six digits")
    numbers = np.sort(np.array([match[1] for match in found], dtype=np.int64))
    if numbers[-1] >= total:
        raise wrong(
            folder, expected, f"has image {numbers[-1]}, beyond the {total} of the grid"
        )
    return numbers


def _find_table(folder, labels):
    if labels is not None:
        return existing(labels, "a table of labels (.csv or .npy)", _SOURCE)
    found = [folder / name for name in _TABLES if (folder / name).is_file()]
    return found[0] if found else None


def _table_codes(path, sizes, numbers):
    """Return the codes of images from a table with one row an image of the grid."""
    expected = f"a table of the factors {', '.join(sizes)}"
    if Path(path).suffix == ".csv":
        pandas = need("pandas")
        with reading(path, expected, ValueError, UnicodeDecodeError):
            frame = pandas.read_csv(path)
        check_keys(path, expected, sizes, [str(name) for name in frame.columns])
        with reading(path, f"{expected}, all numbers", ValueError, TypeError):
            table = frame[list(sizes)].to_numpy(dtype=np.float64)
    else:
        with reading(path, expected, ValueError, OSError, EOFError):
            table = np.load(path, allow_pickle=False)
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "fiu":
        raise wrong(path, expected, "is no array of numbers")
    if table.ndim != 2 or table.shape[1] != len(sizes):
        raise wrong(path, expected, f"has shape {table.shape}")
    if len(table) <= numbers[-1]:
        raise wrong(
            path, f"{expected}, one row an image of the grid", f"has {len(table)} "
            f"rows, and image {numbers[-1]} is there",
        )  # fmt: skip
    steps = np.array(list(sizes.values())) - 1
    scaled = table[numbers] * steps
    codes = np.rint(np.nan_to_num(scaled, nan=-1.0))
    off = ~(np.abs(scaled - codes) < 0.01) | (codes < 0) | (codes > steps)
    if off.any():
        row, column = np.argwhere(off)[0]
        raise wrong(
            path, f"{expected}, with values k / (number of values - 1)", "has "
            f"{table[numbers[row], column]:g} in column {list(sizes)[column]!r}, row "
            f"{numbers[row]}",
        )  # fmt: skip
    return codes.astype(np.int64)
