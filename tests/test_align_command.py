"""The command for files of representations: tables, words, page, complaints."""

import re

import numpy as np
import pytest

from skident import IdentifiabilityStudy
from skident.__main__ import main
from skident.metrics import alignment_errors

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
N_ROWS = 300


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    Z = rng.laplace(size=(N_ROWS, 3))
    turn = np.eye(3) - 2 / 3  # far from any order of the axes
    turns = [np.eye(3), turn, turn[[1, 2, 0]] @ np.diag([1.0, -1.0, 1.0])]
    return [Z @ turn + 0.1 * rng.standard_normal(Z.shape) for turn in turns]


def groups_of(runs):
    """Thirty rows of about the same error each, so that groups matter."""
    size = np.linalg.norm(runs[0] - runs[1], axis=1)
    return np.argsort(np.argsort(size)) // 30


@pytest.fixture
def folder(runs, tmp_path, monkeypatch):
    """A folder to work in, with three runs, two of them as tables in other orders."""
    monkeypatch.chdir(tmp_path)
    for k, Z in enumerate(runs):
        np.save(f"run{k}.npy", Z)
    np.savez("runs.npz", a=runs[0], b=runs[1])
    ids = [f"w{k:03}" for k in range(N_ROWS)]
    rng = np.random.default_rng(1)
    frames = [pd.DataFrame(Z).add_prefix("z").assign(well=ids) for Z in runs]
    frames[0].sample(frac=1, random_state=rng).to_csv("a.csv", index=False)
    frames[1].sample(frac=1, random_state=rng).to_parquet("b.parquet", index=False)
    factors = pd.DataFrame({"well": ids, "dose": runs[0][:, 0] * 2})
    factors["gene"] = np.where(runs[0][:, 1] > 0, "x", "y")
    factors.sample(frac=1, random_state=rng).to_csv("factors.csv", index=False)
    np.save("factors.npy", runs[0][:, :2])
    np.save("groups.npy", groups_of(runs))
    return tmp_path


def run(capsys, *arguments):
    assert main(["align", *arguments]) == 0
    return capsys.readouterr().out


def test_two_files(runs, folder, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    out = run(capsys, "run0.npy", "run1.npy", "--seed", "3", "--output", "page.html")
    errors = alignment_errors(runs[0], runs[1], random_state=3)
    assert out.startswith("Z1  run0.npy: 300 rows, 3 columns\nZ2  run1.npy: 300 rows")
    assert str(errors) in out
    assert "\nDistances and the axes of ICA may be interpreted; single axes may" in out
    assert out.endswith("Page: page.html\n")
    page = (folder / "page.html").read_text()
    assert "<title>Alignment of run0.npy and run1.npy</title>" in page
    assert page.count("data:image/png;base64,") == 2  # errors and learning curve
    assert f"<td>{errors.error[1]:.3f}</td>" in page


def test_options_reach_the_comparison(runs, folder, capsys):
    out = run(
        capsys, "runs.npz:a", "runs.npz", "--key", "b", "--groups", "groups.npy",
        "--transformations", "rigid", "linear", "rigid", "--diameter", "robust",
        "--jobs", "2",
    )  # fmt: skip
    expected = alignment_errors(
        runs[0], runs[1], transformations=("rigid", "linear"), diameter="robust",
        groups=groups_of(runs), random_state=0,
    )  # fmt: skip
    assert str(expected) in out
    assert "Z1  runs.npz:a" in out


def test_tables_are_joined_by_id(runs, folder, capsys):
    """Rows in other orders agree as well as before they were shuffled."""
    options = ["--transformations", "rigid"]
    out = run(capsys, "a.csv", "b.parquet", "--id", "well", *options)
    # ids were in order, so that joined rows are those of the arrays
    expected = alignment_errors(*runs[:2], transformations=["rigid"], random_state=0)
    assert str(expected) in out


def test_ids_that_only_one_file_has_are_dropped_on_demand(runs, folder, capsys):
    frame = pd.read_csv("a.csv")
    frame[frame["well"] >= "w050"].to_csv("less.csv", index=False)
    files = ["b.parquet", "less.csv", "--id", "well", "--transformations", "rigid"]
    assert main(["align", *files]) == 2
    assert "'w000', 'w001', 'w002' and 47 more" in capsys.readouterr().err
    out = run(capsys, *files, "--drop-unmatched")
    assert "Z2  less.csv: 250 rows" in out
    expected = alignment_errors(
        runs[1][50:], runs[0][50:], transformations=["rigid"], random_state=0
    )
    assert str(expected) in out


def test_factors_of_two_files(runs, folder, capsys):
    out = run(
        capsys, "a.csv", "b.parquet", "--id", "well", "--factors", "factors.csv",
        "--transformations", "rigid", "--output", "page.html",
    )  # fmt: skip
    lines = out[out.index("Against the factors of factors.csv") :].splitlines()
    assert lines[1].split("  ")[-1].strip() == "b.parquet, after ICA"
    mcc = next(line for line in lines if line.startswith("MCC")).split()
    # the first factor is the first axis of the first file
    assert len(mcc) == 5 and float(mcc[1]) > 0.8
    assert (
        "<caption>Against the factors</caption>" in (folder / "page.html").read_text()
    )


def test_three_files_are_a_study(runs, folder, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    out = run(
        capsys, "run0.npy", "run1.npy", "run2.npy", "--factors", "factors.npy",
        "--output", "page.html",
    )  # fmt: skip
    study = IdentifiabilityStudy.from_embeddings(runs, random_state=0)
    assert out.startswith("run 0  run0.npy: 300 rows, 3 columns\nrun 1  run1.npy")
    assert study.summary() in out and "\nmcc " in out
    assert "may be interpreted; single axes may not.\n" in out
    page = (folder / "page.html").read_text()
    assert "<h1>Alignment of 3 representations</h1>" in page
    assert "<li>run 2: run2.npy</li>" in page and "InfoM after ICA" in page


def test_warnings_are_notes(folder, capsys):
    """The map of more columns than rows is not determined."""
    rng = np.random.default_rng(0)
    for name in ("wide1.npy", "wide2.npy"):
        np.save(name, rng.standard_normal((20, 30)))
    out = run(
        capsys, "wide1.npy", "wide2.npy", "--transformations", "linear",
        "--output", "page.html",
    )  # fmt: skip
    notes = out[out.index("\nNotes\n") :]
    assert "     - The rows do not determine every map of linear" in notes
    assert "do not determine every map" in (folder / "page.html").read_text()


def test_names_of_files_are_escaped(folder, capsys):
    name = "<b>&.npy"
    (folder / name).write_bytes((folder / "run0.npy").read_bytes())
    options = ["--transformations", "rigid", "--output", "page.html"]
    run(capsys, name, "run1.npy", *options)
    page = (folder / "page.html").read_text()
    assert "<b>" not in page and page.count("&lt;b&gt;&amp;.npy") >= 3


def test_widths_may_differ_and_one_dimension_is_a_column(runs, folder, capsys):
    np.save("column.npy", runs[0][:, 0])
    out = run(capsys, "run1.npy", "column.npy", "--transformations", "linear")
    assert "Z2  column.npy: 300 rows, 1 column\n" in out
    expected = alignment_errors(
        runs[1], runs[0][:, :1], transformations=["linear"], random_state=0
    )
    assert str(expected) in out


def write_wrong_files(runs, folder):
    Z = runs[0].copy()
    np.save("short.npy", Z[:-1])
    np.save("few.npy", Z[:4])
    np.save("cube.npy", np.zeros((N_ROWS, 3, 2)))
    np.save("equal.npy", np.full((N_ROWS, 3), 2.5))
    np.save("complex.npy", Z * 1j)
    np.save("words.npy", Z.astype(str).astype("U4"))
    np.save("text.npy", np.full((N_ROWS, 2), "x"))
    Z[7, 1] = np.nan
    np.save("nan.npy", Z)
    pd.DataFrame(Z).add_prefix("z").to_csv("nan.csv", index=False, na_rep="nan")
    np.save("two.npy", np.arange(N_ROWS) % 2)
    np.save("constant.npy", np.ones((N_ROWS, 2)))
    (folder / "folder").mkdir()
    pd.read_csv("factors.csv")[1:].to_csv("less.csv", index=False)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["run0.npy"], "two files are needed"),
        (["missing.npy"], "missing.npy"),
        (["runs.npz"], "--key must be one of ['a', 'b'] in runs.npz"),
        (["short.npy"], "short.npy has 299 rows, run0.npy has 300"),
        (["few.npy"], "few.npy has 4 row(s), but 5 are needed"),
        (["cube.npy"], "shape (300, 3, 2): save array.reshape(len(array), -1)"),
        (["equal.npy"], "All rows of equal.npy are equal"),
        (["nan.npy"], "nan.npy contains NaN: first in column 1, row 7"),
        (["nan.csv"], "nan.csv contains NaN: first in column 1 ('z1'), row 7"),
        (["complex.npy"], "type complex128, not numbers"),
        (["text.npy"], "text.npy cannot be converted to numbers"),
        (["words.npy"], "not numbers"),
        (["a.csv"], "a.csv has columns that are no numbers: 'well' (row 0: 'w"),
        (["a.csv", "--id", "well"], "but run0.npy is none"),
        (["run1.npy", "--drop-unmatched"], "--drop-unmatched needs --id"),
        (["run1.npy", "--groups", "two.npy"], "two.npy has 2 group(s), but 5"),
        (["run1.npy", "--groups", "short.npy"], "one label a row"),
        (["run1.npy", "--groups", "factors.npy"], "one label a row"),
        (["run1.npy", "--factors", "short.npy"], "short.npy has 299 rows"),
        (["run1.npy", "--factors", "constant.npy"], "constant.npy: factors, column 0"),
        (["run1.npy", "--factors", "nan.npy"], "nan.npy: factors, column 1, is nan"),
        (["run1.npy", "--output", "nowhere/page.html"], "there is no folder"),
        (["run1.npy", "--output", "folder"], "--output folder is a folder"),
        (["run1.npy", "--output", "run2.npy"], "not a data file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments, message, runs, folder, capsys):
    write_wrong_files(runs, folder)
    first = [] if arguments == ["run0.npy"] else ["run0.npy"]
    assert main(["align", *first, *arguments]) == 2
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert len(lines) == 1 and printed.out == ""  # nothing was compared
    assert lines[0].startswith("python -m skident align: error: ")
    assert message in lines[0]


def test_factors_that_lack_an_id_are_named(runs, folder, capsys):
    write_wrong_files(runs, folder)
    files = ["a.csv", "b.parquet", "--id", "well", "--factors", "less.csv"]
    assert main(["align", *files]) == 2
    assert re.search(
        r"less.csv lacks 1 id\(s\) of the others: 'w\d+'", capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "wrong",
    [
        ["--transformations", "affine"],
        ["--diameter", "min"],
        ["--seed", "-1"],
        ["--seed", "4294967296"],
        ["--jobs", "0"],
        ["--jobs", "x"],
        ["--cv", "3"],
    ],
)
def test_wrong_options_are_refused(wrong, folder, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["align", "run0.npy", "run1.npy", *wrong])
    assert stop.value.code == 2
    assert "error: " in capsys.readouterr().err.splitlines()[-1]


def test_parquet_without_pyarrow_says_how_to_get_it(folder, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert main(["align", "run0.npy", "b.parquet"]) == 2
    assert 'pip install "skident[readers]"' in capsys.readouterr().err
