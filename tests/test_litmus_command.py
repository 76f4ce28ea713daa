import zipfile

import numpy as np
import pytest

from skident.__main__ import main
from skident._data_files import read_table
from skident.datasets import make_curie_weiss


@pytest.fixture(scope="module")
def words():
    return make_curie_weiss(400, 6, temperature=0.8, random_state=0)[0]


@pytest.fixture
def folder(words, tmp_path, monkeypatch):
    """A folder to work in, with the same words in three formats."""
    monkeypatch.chdir(tmp_path)
    np.save("words.npy", words)
    np.savez("one.npz", words)
    np.savez("two.npz", words=words, other=words[:, :2])
    np.savetxt("words.csv", words, "%d", ",")
    np.savetxt("named.csv", words, "%d", ",", header="a,b,c,d,e,f", comments="")
    return tmp_path


@pytest.mark.parametrize(
    "name, key",
    [
        ("words.npy", None),
        ("one.npz", None),
        ("two.npz", "words"),
        ("words.csv", None),
        ("named.csv", None),
    ],
)
def test_every_format_gives_the_same_words(name, key, words, folder):
    read = read_table(folder / name, key=key).values
    np.testing.assert_array_equal(read, words)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_verdict_reasons_table_and_page(folder, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    np.save("groups.npy", np.repeat(np.arange(100), 4))
    status = main(
        ["litmus", "words.npy", "--latents", "2", "1", "--epochs", "5",
         "--groups", "groups.npy", "--entropy", "3.2", "--partition", "checkerboard",
         "--shape", "2", "3", "--seed", "3", "--output", "page.html"]
    )  # fmt: skip
    out = capsys.readouterr().out
    assert status == 0
    assert out.startswith("words.npy: 400 rows, 6 columns\n   2 latents:\n")
    assert "-ELBO - H(p) bounds" in out and "I_bip (checkerboard)" in out
    lines = out.splitlines()
    table = next(k for k, line in enumerate(lines) if "unexplained u" in line)
    assert lines[table + 1].startswith("2 latents") and "[" in lines[table + 1]
    assert lines[table + 2].startswith("1 latent ")
    assert lines[table + 3].startswith(
        "Fewest latents that are mean-field with such a decoder: "
    )
    assert lines[-1] == "Page: page.html"
    page = (folder / "page.html").read_text()
    assert "<title>Litmus test of words.npy</title>" in page
    assert "<h2>1 latent</h2>" in page and "data:image/png;base64," in page


def wrong_files(folder):
    """Write files that are not what they seem."""
    (folder / "empty.npy").touch()
    (folder / "text.npy").write_text("not numbers")
    np.save("pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save("cube.npy", np.zeros((2, 3, 4)))
    np.save("real.npy", np.linspace(0, 1, 100).reshape(20, 5))
    np.save("few.npy", np.arange(10).reshape(2, 5) % 2)
    np.save("labels.npy", np.arange(7))
    (folder / "ragged.csv").write_text("0,1\n1\n")
    (folder / "words.txt").write_text("0 1")
    (folder / "folder.npy").mkdir()
    with zipfile.ZipFile(folder / "cut.npz", "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY")
    whole = (folder / "two.npz").read_bytes()
    (folder / "half.npz").write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["missing.npy"], "missing.npy"),
        (["folder.npy"], "folder.npy"),
        (["words.txt"], "must end in one of .npy, .npz, .csv"),
        (["empty.npy"], "cannot be read as .npy"),
        (["text.npy"], "cannot be read as .npy"),
        (["pickled.npy"], "cannot be read as .npy"),
        (["ragged.csv"], "cannot be read as .csv"),
        (["half.npz"], "cannot be read as .npz"),
        (["cut.npz"], "cut.npz"),
        (["two.npz"], "--key must be one of ['words', 'other']"),
        (["two.npz", "--key", "third"], "got 'third'"),
        (["cube.npy"], "shape (2, 3, 4)"),
        (["real.npy"], "column 1, row 0 is 0.0101"),
        (["few.npy"], "minimum of 8 is required"),
        (["words.npy", "--groups", "labels.npy"], "one label a row"),
        (["words.npy", "--groups", "missing.npy"], "missing.npy"),
        (["words.npy", "--entropy", "nan"], "entropy must be finite"),
        (["words.npy", "--partition", "checkerboard"], "needs shape="),
        (["words.npy", "--output", "nowhere/page.html"], "there is no folder"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments, message, folder, capsys):
    wrong_files(folder)
    assert main(["litmus", *arguments, "--epochs", "1"]) == 2
    err = capsys.readouterr().err.splitlines()
    assert err[-1].startswith("python -m skident litmus: error: ")
    assert message in err[-1]
    assert len(err) == 1  # no progress: nothing was trained before it was seen


@pytest.mark.parametrize(
    "wrong",
    [
        ["--jobs", "0"],
        ["--seed", "-1"],
        ["--latents", "0"],
        ["--latents", "x"],
        ["--cv"],
        [],
    ],
)
def test_wrong_options_are_refused(wrong, folder, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["litmus", "words.npy", *wrong] if wrong else ["litmus"])
    assert stop.value.code == 2
    assert "error: " in capsys.readouterr().err.splitlines()[-1]
