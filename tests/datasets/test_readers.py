"""Readers of public files, on small files written in the same layouts."""

import ast
import pickle
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.io import savemat

from skident import datasets
from skident.datasets import (
    _files,
    load_dsprites,
    load_falcor3d,
    load_isaac3d,
    load_mpi3d,
    load_retina,
    load_rxrx3_core,
    load_shapes3d,
)
from skident.metrics import probe_transfer

RNG = np.random.default_rng(0)


class Bomb:
    """An object whose unpickling would be seen."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was read",)


def pixels(*shape):
    return RNG.integers(0, 256, shape).astype(np.uint8)


def full_grid(*sizes):
    return np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)


# Writers of each layout: they return what was written, for comparison.


def write_dsprites(path, save=np.savez_compressed, **changes):
    classes = full_grid(1, 3, 2, 2, 2, 2)
    arrays = {
        "imgs": pixels(48, 64, 64) % 2,
        "latents_classes": classes,
        "latents_values": classes * 0.5,
        "metadata": np.array({"title": Bomb()}, dtype=object),
    } | changes
    kept = {key: array for key, array in arrays.items() if array is not None}
    save(path, allow_pickle=True, **kept)
    return arrays


def write_shapes3d(path, **changes):
    hues = np.linspace(0, 0.9, 10)
    values = np.column_stack([RNG.choice(hues, (20, 3)), RNG.random((20, 3))])
    values[:, 4] = np.arange(20) % 4
    arrays = {"images": pixels(20, 64, 64, 3), "labels": values} | changes
    with h5py.File(path, "w") as file:
        for key, array in arrays.items():
            if array is not None:
                chunks = {"chunks": True, "compression": "gzip"} if array.ndim else {}
                file.create_dataset(key, data=array, **chunks)
    return arrays


MPI3D_CUT = (2, 2, 1, 3, 1, 2, 2)


def write_mpi3d(path, save=np.savez, images=None, key="images"):
    images = pixels(48, 64, 64, 3) if images is None else images
    save(path, **{key: images})
    return images


def write_renders(folder, numbers, shape=(8, 8)):
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    rows = pixels(len(numbers), *shape, 3)
    for number, row in zip(numbers, rows, strict=True):
        Image.fromarray(row).save(images / f"{number:06d}.png")
    return rows


def write_retina(path, **changes):
    bint = (RNG.random((4, 5, 6)) < 0.3).astype(float)
    arrays = {"bint": bint} | changes
    kept = {key: array for key, array in arrays.items() if array is not None}
    savemat(path, kept, do_compression=True)
    return arrays["bint"]


WELLS = [f"gene-{k % 3:03d}_1_A{k:02d}" for k in range(12)]


def write_rxrx3(folder, metadata=None, embeddings=None, n_features=6):
    folder.mkdir(exist_ok=True)
    frame = pd.DataFrame(
        {
            "well_id": WELLS,
            "experiment_name": [well[:8] for well in WELLS],
            "plate": 1,
            "address": [well[-3:] for well in WELLS],
            "gene": ["EIF3H", "EMPTY_control", "NA", None] * 3,
            "treatment": "t",
            "SMILES": None,
            "concentration": np.nan,
            "perturbation_type": "CRISPR",
            "cell_type": "HUVEC",
        }
    )
    frame = frame if metadata is None else metadata(frame)
    frame.to_csv(folder / "metadata_rxrx3_core.csv", index=False)
    values = RNG.standard_normal((12, n_features)).astype(np.float32)
    table = pd.DataFrame(values).add_prefix("feature_")
    table.insert(0, "well_id", WELLS)
    table = table.sample(frac=1, random_state=0)
    table = table if embeddings is None else embeddings(table)
    table.to_parquet(folder / "OpenPhenom_rxrx3_core_embeddings.parquet", index=False)
    return frame, table


# What was written is what is read.


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("rows", [None, [7, 3, 3, 40], slice(40, None, 2), []])
def test_dsprites(tmp_path, save, rows):
    written = write_dsprites(tmp_path / "d.npz", save)
    data = load_dsprites(tmp_path / "d.npz", rows=rows)
    kept = slice(None) if rows is None else rows
    kept = np.arange(48)[kept if isinstance(kept, slice) else np.array(kept, int)]
    assert np.array_equal(data.images, written["imgs"][kept])
    assert np.array_equal(data.factors, written["latents_classes"][kept])
    assert np.array_equal(data.factor_values, written["latents_values"][kept])
    assert data.factor_sizes == (1, 3, 2, 2, 2, 2)
    assert data.images.dtype == np.uint8 and data.factors.dtype == np.int64
    mapped = save is np.savez and rows is None
    assert isinstance(data.images, np.memmap) == mapped
    if mapped:
        assert not data.images.flags.writeable


def test_rows_over_several_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("skident.datasets._lazy._BLOCK_BYTES", 5 * 64 * 64)
    written = write_dsprites(tmp_path / "d.npz")["imgs"]
    rows = RNG.permutation(48)[:17]
    assert np.array_equal(load_dsprites(tmp_path / "d.npz", rows=rows).images,
                          written[rows])  # fmt: skip
    mask = np.arange(48) % 5 == 1
    assert np.array_equal(load_dsprites(tmp_path / "d.npz", rows=mask).images,
                          written[mask])  # fmt: skip


def test_arrays_in_fortran_order(tmp_path):
    images = np.asfortranarray(pixels(48, 64, 64))
    for save in (np.savez, np.savez_compressed):
        write_dsprites(tmp_path / "d.npz", save, imgs=images)
        assert np.array_equal(load_dsprites(tmp_path / "d.npz").images, images)
        cut = load_dsprites(tmp_path / "d.npz", rows=[9, 1])
        assert np.array_equal(cut.images, images[[9, 1]])


def test_a_map_finds_an_array_behind_others_and_odd_headers(tmp_path):
    path = tmp_path / "d.npz"
    images = write_mpi3d(path)
    with zipfile.ZipFile(path) as archive:
        member = archive.read("images.npy")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("first.npy", b"x" * 1001)
        info = zipfile.ZipInfo("images.npy")
        info.extra = b"\x99\x99\x04\x00abcd"
        archive.writestr(info, member)
    data = load_mpi3d(path, factor_sizes=MPI3D_CUT)
    assert isinstance(data.images.base, np.memmap) or isinstance(data.images, np.memmap)
    assert np.array_equal(data.images, images)


def test_shapes3d(tmp_path):
    written = write_shapes3d(tmp_path / "s.h5")
    data = load_shapes3d(tmp_path / "s.h5")
    assert np.array_equal(data.factor_values, written["labels"])
    for codes, values in zip(data.factors.T, data.factor_values.T, strict=True):
        assert np.array_equal(np.unique(values)[codes], values)
    assert data.factor_sizes[4] == 4
    check_lazy(data.images, written["images"])


def check_lazy(lazy, truth):
    assert lazy.shape == truth.shape and lazy.dtype == truth.dtype
    assert len(lazy) == len(truth) and lazy.ndim == truth.ndim
    n = len(truth)
    keys = [
        0, -1, np.int64(2), slice(None), slice(1, n, 2), slice(None, None, -1),
        [3, 1, 1, -2], np.arange(n) % 3 == 0, np.array([], int), slice(0, 0), ...,
        (slice(2), 1), (1, 2, slice(3), 0), ([2, 0], slice(None), 0),
    ]  # fmt: skip
    for key in keys:
        found = lazy[key]
        assert isinstance(found, np.ndarray | np.generic)
        assert np.array_equal(found, truth[key]), key
    assert np.array_equal(np.asarray(lazy), truth)
    assert np.asarray(lazy, dtype=np.float32).dtype == np.float32
    assert np.array_equal(pickle.loads(pickle.dumps(lazy))[1], truth[1])
    assert sum(1 for _ in lazy) == n
    assert "on disk" in repr(lazy)
    for key in (n, -n - 1, [0, n]):
        with pytest.raises(IndexError):
            lazy[key]
    with pytest.raises(IndexError, match="one-dimensional"):
        lazy[np.zeros((2, 2), int)]
    with pytest.raises(ValueError, match="is a copy"):
        lazy.__array__(copy=False)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("split", [False, True])
def test_mpi3d(tmp_path, save, split):
    images = pixels(48, 64, 64, 3)
    shape = (*MPI3D_CUT, 64, 64, 3) if split else images.shape
    write_mpi3d(tmp_path / "m.npz", save, images.reshape(shape))
    data = load_mpi3d(tmp_path / "m.npz", factor_sizes=MPI3D_CUT)
    assert np.array_equal(data.images, images)
    assert isinstance(data.images, np.memmap) == (save is np.savez)
    assert np.array_equal(data.factors, full_grid(*MPI3D_CUT))
    assert data.factor_sizes == MPI3D_CUT and len(data.factor_names) == 7


@pytest.mark.parametrize("n", [460_800, 1_036_800])
def test_mpi3d_in_whole(tmp_path, n):
    """The strides that the source states; images of one pixel take the place of 64."""
    write_mpi3d(tmp_path / "m.npz", images=np.zeros((n, 1, 1, 3), np.uint8))
    data = load_mpi3d(tmp_path / "m.npz")
    assert np.prod(data.factor_sizes) == n
    strides = [28800 * data.factor_sizes[1], 28800, 14400, 4800, 1600, 40, 1]
    assert np.array_equal(data.factors @ strides, np.arange(n))


@pytest.mark.parametrize("load", [load_falcor3d, load_isaac3d])
@pytest.mark.parametrize("inside", [False, True])
def test_renders_without_a_table(tmp_path, load, inside):
    written = write_renders(tmp_path, [0, 5, 46656, 200_000])
    data = load(tmp_path / "images" if inside else tmp_path)
    check_lazy(data.images, written)
    assert data.indices.tolist() == [0, 5, 46656, 200_000]
    # strides of the README of the source
    strides = {
        load_falcor3d: [46656, 7776, 1296, 216, 36, 6, 1],
        load_isaac3d: [245760, 30720, 6144, 1536, 384, 96, 16, 4, 1],
    }[load]
    assert np.array_equal(data.factors @ strides, data.indices)
    assert (data.factors < data.factor_sizes).all()
    top = np.array(data.factor_sizes) - 1
    assert np.allclose(data.factor_values * top, data.factors)


@pytest.mark.parametrize("table", ["labels.csv", "labels.npy", "train-rec.labels"])
@pytest.mark.parametrize("given", [False, True])
def test_renders_with_a_table(tmp_path, table, given):
    sizes = np.array([5, 6, 6, 6, 6, 6, 6])
    codes = RNG.integers(0, sizes, (40, 7))
    values = codes / (sizes - 1)
    folder = tmp_path / "Falcor3D_down128"
    written = write_renders(folder, [3, 39, 17])
    path = (tmp_path if given else folder) / table
    names = load_falcor3d(folder).factor_names
    if table.endswith("csv"):
        frame = pd.DataFrame(values, columns=names).assign(comment="text")
        frame[["comment", *names[::-1]]].to_csv(path, index=False)
    else:
        with open(path, "wb") as file:
            np.save(file, values)
    data = load_falcor3d(folder, labels=path if given else None)
    assert np.array_equal(data.factors, codes[[3, 17, 39]])
    assert np.array_equal(data.images[[0, 2, 1]], written)


def test_renders_of_other_modes_are_colours(tmp_path):
    write_renders(tmp_path, [0])
    grey = pixels(8, 8)
    Image.fromarray(grey).save(tmp_path / "images" / "000001.png")
    assert np.array_equal(
        load_isaac3d(tmp_path).images[1], grey[..., None].repeat(3, 2)
    )


def write_retina_73(path):
    """As MATLAB 7.3 does: HDF5 with a header of its own, axes reversed."""
    bint = (RNG.random((4, 5, 6)) < 0.3).astype(float)
    with h5py.File(path, "w", userblock_size=512) as file:
        file["bint"] = bint.T
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    with open(path, "r+b") as file:
        file.write(header.ljust(512, b"\x00"))
    return bint


def write_plain_hdf5(path):
    bint = (RNG.random((4, 5, 6)) < 0.3).astype(np.uint8)
    with h5py.File(path, "w") as file:
        file["bint"] = bint.T
    return bint


@pytest.mark.parametrize("write", [write_retina, write_retina_73, write_plain_hdf5])
def test_retina(tmp_path, write):
    bint = write(tmp_path / "r.mat")
    data = load_retina(tmp_path / "r.mat")
    assert np.array_equal(data.bint, bint) and data.bint.dtype == np.uint8
    assert data.data.shape == (24, 5) and data.data.dtype == np.uint8
    for word, repeat, place in zip(data.data, data.groups, data.bins, strict=True):
        assert np.array_equal(word, bint[repeat, :, place])


@pytest.mark.data
def test_retina_of_the_recording(tmp_path, real_data):
    """A part of the real spikes, through a .mat file, gives the words of the README."""
    bint = real_data("retina_fishmovie32_160.npz")["bint"][:3]
    savemat(tmp_path / "bint_fishmovie32_100.mat", {"bint": bint})
    data = load_retina(tmp_path / "bint_fishmovie32_100.mat")
    assert np.array_equal(data.data, bint.transpose(0, 2, 1).reshape(-1, 160))
    assert (data.data == 0).all(axis=1).mean() == pytest.approx(0.21, abs=0.05)


@pytest.mark.data
def test_dsprites_of_the_public_images(tmp_path, real_data):
    """Real sprites, written in the public layout, come back with their factors."""
    real = real_data("dsprites_factorial_46080.npz")
    rows = RNG.integers(0, 46080, 200)
    images = np.unpackbits(real["packed"][rows], axis=1).reshape(-1, 64, 64)
    colour = np.zeros((200, 1), int)
    write_dsprites(
        tmp_path / "d.npz",
        imgs=images,
        latents_classes=np.c_[colour, real["latents_classes"][rows]],
        latents_values=np.c_[colour + 1, real["latents_values"][rows]],
    )
    data = load_dsprites(tmp_path / "d.npz")
    assert data.factor_names[1:] == real["latents_names"].tolist()
    # the mean column of the pixels follows posX
    column = (data.images * np.arange(64)).sum((1, 2)) / data.images.sum((1, 2))
    assert np.corrcoef(column, data.factor_values[:, 4])[0, 1] > 0.99


@pytest.mark.parametrize("given", ["folder", "file", "both"])
def test_rxrx3_core(tmp_path, given, monkeypatch):
    monkeypatch.setattr("skident.datasets._rxrx3._BLOCK", 5)
    frame, table = write_rxrx3(tmp_path)
    embeddings = tmp_path / "OpenPhenom_rxrx3_core_embeddings.parquet"
    arguments = {"path": tmp_path if given == "folder" else embeddings}
    if given == "both":
        other = (tmp_path / "metadata_rxrx3_core.csv").rename(tmp_path / "m.csv")
        arguments["metadata"] = other
    data = load_rxrx3_core(**arguments)
    assert np.array_equal(data.data, table.iloc[:, 1:].to_numpy())
    assert data.data.dtype == np.float32
    assert data.metadata["well_id"].tolist() == table["well_id"].tolist()
    by_well = frame.set_index("well_id").loc[table["well_id"]]
    assert data.batches.tolist() == by_well["experiment_name"].tolist()
    # "NA" is text, nothing is ""
    assert data.target.tolist() == by_well["gene"].fillna("").tolist()
    some = load_rxrx3_core(**arguments, genes=["EIF3H", "NA"])
    kept = by_well["gene"].isin(["EIF3H", "NA"]).to_numpy()
    assert np.array_equal(some.data, data.data[kept])
    assert some.target.tolist() == data.target[kept].tolist()
    assert len(load_rxrx3_core(**arguments, genes="EIF3H").data) == 3


def test_rxrx3_core_feeds_a_probe(tmp_path):
    write_rxrx3(tmp_path)
    data = load_rxrx3_core(tmp_path, genes=["EIF3H", "EMPTY_control"])
    found = probe_transfer(data.data, data.target, data.batches, probe="l2")
    assert 0 <= found.score.value <= 1


def test_wells_without_an_embedding_are_left_out(tmp_path):
    write_rxrx3(tmp_path, embeddings=lambda table: table.iloc[:5])
    assert len(load_rxrx3_core(tmp_path).data) == 5


def test_readers_import_their_packages_on_use():
    """Statements of modules: scikit-learn may load pandas by itself."""
    found = set()
    for path in Path(datasets.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or node.names[0].name]
                found |= {name.split(".")[0] for name in names}
    assert {"numpy", "scipy", "sklearn"} <= found
    assert not found & {"h5py", "pyarrow", "pandas", "PIL"}


@pytest.mark.parametrize(
    ("package", "name"),
    [("h5py", "h5py"), ("PIL.Image", "Pillow"), ("pandas", "pandas")]
    + [("pyarrow", "pyarrow")],
)
def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, package, name):
    write_shapes3d(tmp_path / "s.h5")
    write_renders(tmp_path, [0])
    write_rxrx3(tmp_path)
    found = _files.importlib.import_module

    def without(module):
        if module == package:
            raise ImportError(module)
        return found(module)

    monkeypatch.setattr(_files.importlib, "import_module", without)
    load, path = {
        "h5py": (load_shapes3d, tmp_path / "s.h5"),
        "Pillow": (load_isaac3d, tmp_path),
    }.get(name, (load_rxrx3_core, tmp_path))
    with pytest.raises(ImportError, match=rf'needs {name}: .*"skident\[readers\]"'):
        load(path)
