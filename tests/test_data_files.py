"""Files of the commands: every format gives the same numbers, names and ids."""

import numpy as np
import pytest

from skident._command_line import read_labels
from skident._data_files import Table, join_by_id, read_table

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

IDS = ["w3", "w1", "w4", "w2"]
VALUES = np.array([[0.5, -1e-3], [2.25, 7.0], [3e10, 0.0], [-4.0, 8.0]])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(VALUES, columns=["a", "b, quoted"])
    frame.to_csv("plain.csv", index=False)
    frame.to_csv("bare.csv", index=False, header=False)
    frame.to_csv("bom.csv", index=False, encoding="utf-8-sig")
    frame.to_csv("bare_bom.csv", index=False, header=False, encoding="utf-8-sig")
    frame.to_parquet("plain.parquet")
    frame.insert(1, "well", IDS)
    frame.to_csv("ids.csv", index=False)
    frame.to_parquet("ids.parquet")
    frame.set_index("well").to_parquet("index.parquet")
    np.save("a.npy", VALUES)
    np.savez("one.npz", VALUES)
    np.savez("two.npz", first=VALUES, second=VALUES + 1)
    return tmp_path


@pytest.mark.parametrize(
    "source",
    [
        "a.npy",
        "one.npz",
        "two.npz:first",
        "plain.csv",
        "bare.csv",
        "bom.csv",
        "bare_bom.csv",
    ]
    + ["plain.parquet"],
)
def test_every_format_gives_the_same_numbers(source, folder):
    table = read_table(source)
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.name == source and table.ids is None
    named = source.startswith(("plain", "bom"))
    assert table.columns == (["a", "b, quoted"] if named else None)


@pytest.mark.parametrize("source", ["ids.csv", "ids.parquet", "index.parquet"])
def test_a_column_of_ids_is_set_apart(source, folder):
    table = read_table(source, id_column="well")
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.ids.tolist() == IDS and table.columns == ["a", "b, quoted"]


def test_key_of_the_file_goes_before_that_of_the_option(folder):
    read = read_table("two.npz:second", key="first").values
    np.testing.assert_array_equal(read, VALUES + 1)
    np.testing.assert_array_equal(read_table("two.npz", key="first").values, VALUES)


def test_npy_is_mapped_not_read(folder):
    assert isinstance(read_table("a.npy").values, np.memmap)


def test_types_of_parquet(folder):
    rows = {
        "f": np.float32([0.5, 1.5, 3.0]),
        "i": np.int8([1, 3, 2]),
        "t": [True, False, True],
        "z": [[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]],
    }
    table = pa.table(rows)
    fixed = table.column("z").cast(pa.list_(pa.float64(), 2))
    pq.write_table(table.append_column("y", fixed), "types.parquet")
    read = read_table("types.parquet")
    assert read.columns == ["f", "i", "t", "z[0]", "z[1]", "y[0]", "y[1]"]
    expected = [[0.5, 1, 1, 1, 2, 1, 2], [1.5, 3, 0, 3, 4, 3, 4], [3, 2, 1, 5, 7, 5, 7]]
    np.testing.assert_array_equal(read.values, expected)


def test_float32_stays_so(folder):
    pd.DataFrame(VALUES.astype("f4"), columns=["a", "b"]).to_parquet("f4.parquet")
    assert read_table("f4.parquet").values.dtype == np.float32


def test_labels_and_factors_may_be_text(folder):
    frame = pd.DataFrame({"gene": ["x", "y", "x"], "dose": [1, 2, 4]})
    frame.to_csv("factors.csv", index=False)
    frame.to_parquet("factors.parquet")
    for source in ("factors.csv", "factors.parquet"):
        values = read_table(source, text=True).values
        assert values.tolist() == [["x", 1.0], ["y", 2.0], ["x", 4.0]]
    frame[["gene"]].to_csv("groups.csv", index=False)
    np.save("groups.npy", np.array([[3], [1], [1]]))
    assert read_labels("groups.csv").values.tolist() == ["x", "y", "x"]
    assert read_labels("groups.npy").values.tolist() == [3, 1, 1]
    with pytest.raises(ValueError, match=r"one label a row, but has shape \(3, 2\)"):
        read_labels("factors.csv")


def test_missing_text_stays_missing(folder):
    (folder / "gaps.csv").write_text("gene,dose\nx,1\n,2\ny,\n")
    values = read_table("gaps.csv", text=True).values
    assert values[1, 0] is None and values[2, 1] is None


def write_wrong_files(folder):
    (folder / "text.csv").write_text("a,cell,b,batch\n1,T,2,\n3,B,4,\n5,B,x,9\n")
    (folder / "ragged.csv").write_text("0,1\n1\n")
    (folder / "empty.csv").touch()
    (folder / "header.csv").write_text("a,b\n")
    (folder / "twice.csv").write_text("a,a\n1,2\n")
    (folder / "only.csv").write_text("well\nw1\n")
    (folder / "gap.csv").write_text("well,a\nw1,1\n,3\n")
    (folder / "latin.csv").write_bytes(b"a,b\xe9\n1,2\n")
    pd.DataFrame(VALUES).to_csv("index.csv")
    (folder / "text.parquet").write_text("no parquet")
    pq.write_table(pa.table({"z": [[1.0], [1.0, 2.0]]}), "ragged.parquet")
    pq.write_table(pa.table({"a": [1.0], "s": ["T"]}), "strings.parquet")
    pq.write_table(pa.table({"a": [1.0, 2.0], "id": ["T", None]}), "gap.parquet")
    pq.write_table(pa.table({}), "none.parquet")


@pytest.mark.filterwarnings("ignore:.*no data:UserWarning")
@pytest.mark.parametrize(
    "source, id_column, message",
    [
        ("missing.csv", None, "missing.csv"),
        ("missing.parquet", None, "missing.parquet"),
        ("text.csv", None, r"'cell' \(row 0: 'T'\), 'b' \(row 2: 'x'\), 'batch' \(row "
         r"0: ''\): leave them out; align takes a column of ids by --id"),
        ("text.csv", "cell", r"numbers: 'b' \(row 2: 'x'\), 'batch'.* out\.$"),
        ("text.csv", "well", "text.csv has no column 'well' for --id, but 'a', 'cell'"),
        ("bare.csv", "well", "no names"),
        ("ragged.csv", None, "cannot be read as .csv"),
        ("empty.csv", None, "first line is empty"),
        ("header.csv", None, "no rows"),
        ("twice.csv", None, "more than one column named 'a'"),
        ("only.csv", "well", "no column but that of the ids"),
        ("gap.csv", "well", "Column 'well' of gap.csv has no id in row 1"),
        ("gap.parquet", "id", "no id in row 1"),
        ("latin.csv", None, "cannot be read as .csv"),
        ("index.csv", None, "Column 'Unnamed: 0|Column '' of index.csv numbers the"),
        ("text.parquet", None, "cannot be read as .parquet"),
        ("ragged.parquet", None, r"Column 'z' of .* lists of lengths \[1, 2\]"),
        ("strings.parquet", None, r"no numbers: 's' \(row 0: 'T'\)"),
        ("none.parquet", None, "no columns"),
        ("two.npz:third", None, "one of .*'first', 'second'.* got 'third'"),
        ("a.tsv", None, "must end in one of .npy, .npz, .csv, .parquet"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(source, id_column, message, folder):
    write_wrong_files(folder)
    with pytest.raises((ValueError, OSError), match=message):
        read_table(source, id_column=id_column)


def table(name, ids, scale=1.0):
    values = scale * np.array([[float(one[1:])] for one in ids])
    return Table(name, values, ["a"], np.array(ids))


def test_rows_are_joined_by_id():
    first, second = table("a", ["w3", "w1", "w2"]), table("b", ["w2", "w3", "w1"], 10)
    labels = Table("g", np.array(["l3", "l1", "l2"]))
    factors = table("f", ["w9", "w1", "w2", "w3"], 100)
    tables, extra = join_by_id([first, second], [labels, factors])
    assert [t.values[:, 0].tolist() for t in tables] == [[1, 2, 3], [10, 20, 30]]
    assert extra[0].values.tolist() == ["l1", "l2", "l3"]
    assert extra[1].values[:, 0].tolist() == [100, 200, 300]


def test_ids_on_one_side_only_are_named_or_dropped():
    first, second = table("a", ["w1", "w2", "w5"]), table("b", ["w2", "w1", "w7"])
    with pytest.raises(ValueError, match=r"1 of a \('w5'\); 1 of b \('w7'\).*--drop"):
        join_by_id([first, second])
    (one, two), _ = join_by_id([first, second], drop=True)
    assert one.values.tolist() == two.values.tolist() == [[1], [2]]
    with pytest.raises(ValueError, match="no id in common"):
        join_by_id([first, table("c", ["w8"])], drop=True)
    with pytest.raises(
        ValueError, match=r"f lacks 2 id\(s\) of the others: 'w2', 'w5'"
    ):
        join_by_id([first, first], [table("f", ["w1"])])
    with pytest.raises(ValueError, match=r"a has 1 id\(s\) more than once: 'w1'"):
        join_by_id([table("a", ["w1", "w1"]), second])
