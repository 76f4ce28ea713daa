"""Wrong files: each reader says what it expected, where, and what it found."""

import h5py
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.io import savemat

from skident import datasets

LOADERS = {
    name: getattr(datasets, f"load_{name}")
    for name in (
        "dsprites", "shapes3d", "mpi3d", "falcor3d", "isaac3d", "rxrx3_core", "retina",
    )
}  # fmt: skip
FOLDERS = ("falcor3d", "isaac3d")
FILES = [name for name in LOADERS if name not in FOLDERS]


def small_file(name, path):
    """Write a right file."""
    zeros = np.zeros
    if name == "dsprites":
        np.savez_compressed(
            path, imgs=zeros((9, 64, 64), np.uint8), latents_values=zeros((9, 6)),
            latents_classes=zeros((9, 6), int),
        )  # fmt: skip
        path.with_suffix(".npz").rename(path)
    elif name == "mpi3d":
        np.savez(path, images=zeros((9, 64, 64, 3), np.uint8))
        path.with_suffix(".npz").rename(path)
    elif name == "shapes3d":
        with h5py.File(path, "w") as file:
            file["images"] = zeros((9, 64, 64, 3), np.uint8)
            file["labels"] = zeros((9, 6))
    elif name == "retina":
        rng = np.random.default_rng(0)
        spikes = {"bint": rng.integers(0, 2, (9, 9, 99))}
        savemat(path, spikes, appendmat=False, do_compression=True)
    else:
        pd.DataFrame({"well_id": ["a"], "feature_0": [0.5]}).to_parquet(path)
        columns = "well_id experiment_name plate address gene treatment"
        frame = pd.DataFrame("a", [0], [*columns.split(), "perturbation_type"])
        frame.to_csv(path.parent / "metadata_rxrx3_core.csv", index=False)
    return path


def load(name, path):
    options = {"factor_sizes": (9, 1, 1, 1, 1, 1, 1)} if name == "mpi3d" else {}
    return LOADERS[name](path, **options)


def message_of(name, path):
    with pytest.raises(ValueError) as caught:
        load(name, path)
    message = str(caught.value)
    assert message.startswith("Expected ") and str(path) in message
    return message


@pytest.mark.parametrize("name", FILES)
def test_the_small_file_is_right(name, tmp_path):
    load(name, small_file(name, tmp_path / "data"))


@pytest.mark.parametrize("name", LOADERS)
def test_nothing_there(name, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"Nothing at .*missing.* expected. It is at https://"
    ):
        load(name, tmp_path / "missing")
    with pytest.raises(TypeError, match=r"path must be a str or path-like, got 3"):
        load(name, 3)


@pytest.mark.parametrize("name", FILES)
def test_truncated_file(name, tmp_path):
    path = small_file(name, tmp_path / "data")
    whole = path.read_bytes()
    for part in (0.97, 0.5, 0.1):
        path.write_bytes(whole[: int(part * len(whole))])
        assert "cannot be read as one" in message_of(name, path)


@pytest.mark.parametrize("name", ["dsprites", "retina"])
def test_bytes_that_do_not_unpack(name, tmp_path):
    path = small_file(name, tmp_path / "data")
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 3
    whole[middle : middle + 60] = b"\xff" * 60
    path.write_bytes(whole)
    assert "cannot be read as one" in message_of(name, path)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "content",
    [b"", b"not\na,table\n", bytes(range(256)) * 40],
    ids=["empty", "text", "bytes"],
)
def test_a_file_of_another_kind(name, content, tmp_path):
    path = small_file(name, tmp_path / "data")
    path.write_bytes(content)
    assert "cannot be read as one" in message_of(name, path)


@pytest.mark.parametrize("name", LOADERS)
def test_folder_and_file_exchanged(name, tmp_path):
    path = tmp_path / "there"
    if name in FOLDERS:
        path.write_text("a")
        assert "is a file" in message_of(name, path)
    else:
        path.mkdir()
        if name == "rxrx3_core":
            with pytest.raises(FileNotFoundError, match="OpenPhenom_rxrx3_core"):
                load(name, path)
        else:
            assert "is a folder" in message_of(name, path)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"imgs": None}, "has no 'imgs'; it has 'latents_classes', 'latents_values'"),
        ({"latents_values": None}, "has no 'latents_values'; it has 'imgs'"),
        ({"imgs": np.zeros((9, 64, 64))}, r"imgs of shape \(9, 64, 64\), type float64"),
        ({"imgs": np.zeros((9, 4096), np.uint8)}, r"imgs of shape \(9, 4096\)"),
        ({"imgs": np.uint8(3)}, r"imgs of shape \(\)"),
        (
            {"latents_classes": np.zeros((9, 5), int)},
            r"latents_classes of shape \(9, 5",
        ),
        ({"latents_values": np.zeros((8, 6))}, r"latents_values of shape \(8, 6\)"),
        ({"latents_classes": np.full((9, 6), 0.5)}, "no codes 0, 1"),
        ({"latents_classes": np.full((9, 6), -1)}, "least value -1"),
        ({"imgs": np.array({"a": 1}, object)}, "has 'imgs' pickled"),
        ({"latents_values": np.full((9, 6), "a", object)}, "'latents_values' pickled"),
    ],
)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_dsprites_of_another_layout(changes, found, save, tmp_path):
    arrays = {
        "imgs": np.zeros((9, 64, 64), np.uint8),
        "latents_classes": np.zeros((9, 6), int),
        "latents_values": np.zeros((9, 6)),
    } | changes
    kept = {key: array for key, array in arrays.items() if array is not None}
    save(tmp_path / "d.npz", allow_pickle=True, **kept)
    with pytest.raises(ValueError, match=found):
        datasets.load_dsprites(tmp_path / "d.npz")


@pytest.mark.parametrize("rows", [[9], [[0, 1]], 3, ["a"], [0.5]])
def test_dsprites_names_wrong_rows(rows, tmp_path):
    path = small_file("dsprites", tmp_path / "d")
    with pytest.raises(ValueError, match="rows must be a slice"):
        datasets.load_dsprites(path, rows=rows)


@pytest.mark.data
def test_files_of_other_layouts_are_not_taken_for_the_public_ones(real_data):
    sprites, retina = (
        real_data(f"{name}.npz").fid.name
        for name in ("dsprites_factorial_46080", "retina_fishmovie32_160")
    )
    with pytest.raises(ValueError, match=r"has no 'imgs'; it has 'packed'"):
        datasets.load_dsprites(sprites)
    with pytest.raises(ValueError, match=r"retina's .mat file .*cannot be read as one"):
        datasets.load_retina(retina)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"images": None}, "has no 'images'; it has 'labels'"),
        ({"labels": None}, "has no 'labels'; it has 'images'"),
        ({"images": np.zeros((9, 64, 64), np.uint8)}, r"images of shape \(9, 64, 64\)"),
        ({"images": np.zeros((9, 4, 4, 3))}, "type float64"),
        ({"labels": np.zeros((8, 6))}, r"labels of shape \(8, 6\)"),
        ({"labels": np.zeros((9, 5))}, r"labels of shape \(9, 5\)"),
    ],
)
def test_shapes3d_of_another_layout(changes, found, tmp_path):
    arrays = {"images": np.zeros((9, 4, 4, 3), np.uint8), "labels": np.zeros((9, 6))}
    with h5py.File(tmp_path / "s.h5", "w") as file:
        for key, array in (arrays | changes).items():
            if array is not None:
                file[key] = array
    with pytest.raises(ValueError, match=found):
        datasets.load_shapes3d(tmp_path / "s.h5")


def test_shapes3d_with_a_group_in_the_place_of_an_array(tmp_path):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_group("images")
        file["labels"] = np.zeros((9, 6))
    with pytest.raises(ValueError, match="images of shape None"):
        datasets.load_shapes3d(tmp_path / "s.h5")


def test_lazy_rows_of_a_file_that_went_away(tmp_path):
    path = small_file("shapes3d", tmp_path / "s.h5")
    images = datasets.load_shapes3d(path).images
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"Expected rows of 'images'.*cannot be read"):
        images[0]


@pytest.mark.parametrize(
    ("images", "sizes", "found"),
    [
        (
            np.zeros((8, 4, 4, 3), np.uint8),
            None,
            "8 images, not 460800 or 1036800: pass",
        ),
        (np.zeros((8, 4, 4, 3), np.uint8), (2,) * 7, "factor_sizes=.*has 8 images"),
        (np.zeros((8, 4, 4, 3), np.uint8), (2, 4), "factor_sizes=.*has 8 images"),
        (np.zeros((8, 4, 4), np.uint8), None, r"images of shape \(8, 4, 4\)"),
        (np.zeros((8, 4, 4, 3)), None, "type float64"),
        (np.zeros((0, 4, 4, 3), np.uint8), None, r"images of shape \(0, 4, 4, 3\)"),
    ],
)
def test_mpi3d_of_another_layout(images, sizes, found, tmp_path):
    np.savez(tmp_path / "m.npz", images=images)
    with pytest.raises(ValueError, match=found):
        datasets.load_mpi3d(tmp_path / "m.npz", factor_sizes=sizes)


def render(folder, *names, size=(4, 4)):
    (folder / "images").mkdir(exist_ok=True)
    noise = np.random.default_rng(0).integers(0, 256, (*size[::-1], 3)).astype(np.uint8)
    for name in names:
        Image.fromarray(noise).save(folder / "images" / name)


@pytest.mark.parametrize("name", FOLDERS)
def test_renders_of_another_layout(name, tmp_path):
    assert "has no such image; it has nothing" in message_of(name, tmp_path)
    (tmp_path / "readme.txt").write_text("a")
    assert "has no such image; it has 'readme.txt'" in message_of(name, tmp_path)
    render(tmp_path, "000001.png", "7.png")
    with pytest.raises(ValueError, match=r"images.*has '7.png', not of six digits"):
        load(name, tmp_path)
    (tmp_path / "images" / "7.png").unlink()
    render(tmp_path, "900000.png")
    with pytest.raises(
        ValueError, match=r"has image 900000, beyond the (233280|737280)"
    ):
        load(name, tmp_path)


@pytest.mark.parametrize("name", FOLDERS)
def test_images_that_are_none(name, tmp_path):
    render(tmp_path, "000000.png", "000001.png", "000002.png", "000003.png")
    images = tmp_path / "images"
    whole = (images / "000001.png").read_bytes()
    (images / "000001.png").write_bytes(whole[: len(whole) // 2])
    (images / "000002.png").write_text("a text")
    render(tmp_path, "000003.png", size=(5, 4))
    data = load(name, tmp_path)
    for row, found in ((1, "000001.png"), (2, "000002.png")):
        with pytest.raises(ValueError, match=f"a PNG image, but .*{found}.* cannot be"):
            data.images[row]
    with pytest.raises(ValueError, match=r"000003.png' has \(4, 5, 3\)"):
        data.images[3]
    (images / "000000.png").write_text("a text")
    with pytest.raises(ValueError, match=r"a PNG image, but .*000000.png"):
        load(name, tmp_path)


def factor_table(n=3):
    names = datasets._renders._FALCOR3D
    return pd.DataFrame(np.zeros((n, 7)), columns=list(names))


def with_column(value):
    return lambda table: table.assign(**{"camera_x-pos": value})


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda t: t.drop(columns="camera_x-pos"), "has no 'camera_x-pos'; it has 'li"),
        (lambda t: t.iloc[:1], "has 1 rows, and image 2 is there"),
        (with_column(0.5), "has 0.5 in column 'camera_x-pos'"),
        (with_column(2), "has 2 in column 'camera_x-pos', row 0"),
        (with_column(np.nan), "has nan in column 'camera_x-pos'"),
        (with_column("a"), "all numbers, but .* cannot be read"),
    ],
)
def test_wrong_tables(change, found, tmp_path):
    render(tmp_path, "000000.png", "000002.png")
    change(factor_table()).to_csv(tmp_path / "labels.csv", index=False)
    with pytest.raises(ValueError, match=found):
        datasets.load_falcor3d(tmp_path)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (np.zeros((3, 6)), r"has shape \(3, 6\)"),
        (np.zeros(7), r"has shape \(7,\)"),
        (np.full((3, 7), "a"), "no array of numbers"),
        (np.array([{}], object), "cannot be read as one: Object arrays"),
        (b"text", "cannot be read as one"),
        (b"", "cannot be read as one"),
    ],
)
def test_wrong_arrays_of_labels(content, found, tmp_path):
    render(tmp_path, "000000.png")
    with open(tmp_path / "labels.npy", "wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            np.save(file, content, allow_pickle=True)
    with pytest.raises(ValueError, match=found):
        datasets.load_falcor3d(tmp_path)
    (tmp_path / "labels.npy").unlink()
    with pytest.raises(FileNotFoundError, match="where a table of labels"):
        datasets.load_falcor3d(tmp_path, labels=tmp_path / "other.csv")


@pytest.mark.parametrize(
    ("arrays", "found"),
    [
        ({"spikes": np.zeros((2, 2, 2))}, "has no 'bint'; it has 'spikes'"),
        ({"bint": np.zeros((4, 4))}, r"bint of shape \(4, 4\)"),
        ({"bint": np.zeros((0, 2, 2))}, r"bint of shape \(0, 2, 2\)"),
        ({"bint": np.arange(8).reshape(2, 2, 2)}, "has 2 at repeat 0, neuron 1, bin 0"),
        ({"bint": np.full((2, 2, 2), np.nan)}, "has nan at repeat 0, neuron 0, bin 0"),
        ({"bint": "text"}, "has a bint of ndarrays, no numbers|no numbers"),
        ({"bint": {"a": 1}}, "no numbers"),
    ],
)
def test_retina_of_another_layout(arrays, found, tmp_path):
    savemat(tmp_path / "r.mat", arrays)
    with pytest.raises(ValueError, match=found):
        datasets.load_retina(tmp_path / "r.mat")


def test_retina_of_hdf5_of_another_layout(tmp_path):
    with h5py.File(tmp_path / "r.mat", "w") as file:
        file.create_group("bint")
    with pytest.raises(ValueError, match="has bint as a group"):
        datasets.load_retina(tmp_path / "r.mat")
    with h5py.File(tmp_path / "r.mat", "w") as file:
        file["spikes"] = np.zeros(3)
    with pytest.raises(ValueError, match="has no 'bint'; it has 'spikes'"):
        datasets.load_retina(tmp_path / "r.mat")


@pytest.mark.parametrize(
    ("metadata", "embeddings", "found"),
    [
        ({"drop": "gene"}, {}, "metadata .*has no 'gene'; it has 'well_id'"),
        ({"copies": 2}, {}, "metadata .*has well_id 'a' more than once"),
        ({}, {"well_id": ["b"]}, "has well 'b', which the metadata lacks"),
        ({}, {"feature_0": ["x"]}, "has 'feature_0' of type .*string"),
        ({}, {"drop": "well_id"}, "has no 'well_id'; it has 'feature_0'"),
        ({}, {"drop": "feature_0"}, "has no 'feature_0'; it has 'well_id'"),
    ],
)
def test_rxrx3_core_of_another_layout(metadata, embeddings, found, tmp_path):
    path = small_file("rxrx3_core", tmp_path / "e.parquet")
    frame = pd.read_csv(tmp_path / "metadata_rxrx3_core.csv")
    frame = frame.drop(columns=metadata.get("drop", []))
    frame = pd.concat([frame] * metadata.get("copies", 1))
    frame.to_csv(tmp_path / "metadata_rxrx3_core.csv", index=False)
    table = pd.read_parquet(path).drop(columns=embeddings.pop("drop", []))
    table.assign(**embeddings).to_parquet(path, index=False)
    with pytest.raises(ValueError, match=found):
        datasets.load_rxrx3_core(path)


def test_rxrx3_core_without_its_metadata_or_with_unknown_genes(tmp_path):
    path = small_file("rxrx3_core", tmp_path / "e.parquet")
    with pytest.raises(
        ValueError, match="The metadata has no well of 'TP53', named in"
    ):
        datasets.load_rxrx3_core(path, genes=["a", "TP53"])
    csv = tmp_path / "metadata_rxrx3_core.csv"
    csv.write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match="Expected the metadata"):
        datasets.load_rxrx3_core(path)
    csv.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"metadata_rxrx3_core.csv.*huggingface"
    ):
        datasets.load_rxrx3_core(path)
