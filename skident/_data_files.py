"""Reading arrays, labels and ids from the files that the commands take."""

import csv
import functools
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skident._entries import is_missing

SUFFIXES = (".npy", ".npz", ".csv", ".parquet")
_WITH_IDS = (".csv", ".parquet")
_NAMED = 3


class Table(NamedTuple):
    """Columns of a file.

    Attributes
    ----------
    name : str
        The file, as given.
    values : ndarray
        Of an .npy file a memory map, of any shape; of a table two-dimensional, of
        objects where there are columns of text.
    columns : list of str or None
        Names of the columns.
    ids : ndarray of str of shape (n_rows,) or None
        Names of the rows.
    """

    name: str
    values: np.ndarray
    columns: list | None = None
    ids: np.ndarray | None = None


def read_table(source, *, key=None, id_column=None, text=False):
    """Read a file.

    Parameters
    ----------
    source : str or path-like
        An .npy, .npz, .csv or .parquet file; "file.npz:name" names an array.
    key : str, optional
        Name of the array in an .npz file that holds several, if ``source`` has none.
    id_column : str, optional
        Column of a .csv or .parquet file that names the rows.
    text : bool, default=False
        Whether columns of text are allowed.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        For another kind of file, one that cannot be read as such, an unknown key or
        column, columns of text, naming them, or one that numbers the rows.
    OSError
        If it is not there.
    ImportError
        Without pyarrow, for a .parquet file.
    """
    path, own_key = _split_key(str(source))
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise ValueError(f"{path} must end in one of {', '.join(SUFFIXES)}.")
    try:
        if kind in _WITH_IDS:
            columns, ids = _READERS[kind](path, id_column, text)
        else:
            return Table(str(source), _read_arrays(path, kind, own_key or key))
    except (_Wrong, FileNotFoundError):
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, UnicodeError) as error:
        raise ValueError(f"{path} cannot be read as {kind}: {error}") from error
    if not columns:
        raise ValueError(f"{path} has no columns.")
    if not text:
        _refuse_row_numbers(path, columns)
    values = _stack(list(columns.values()))
    names = None if isinstance(next(iter(columns)), int) else list(columns)
    return Table(str(source), values, names, ids)


class _Wrong(ValueError):
    """A complaint that says all there is to say."""


def _split_key(source):
    """Return path and key of ``file.npz:key``."""
    start, found, key = source.rpartition(".npz:")
    return (Path(start + ".npz"), key) if found else (Path(source), None)


def _read_arrays(path, kind, key):
    if kind == ".npy":
        return np.load(path, mmap_mode="r", allow_pickle=False)
    with np.load(path, allow_pickle=False) as archive:
        names = archive.files
        key = names[0] if key is None and len(names) == 1 else key
        if key not in names:
            raise _Wrong(f"--key must be one of {names} in {path}, got {key!r}.")
        return archive[key]


def _read_csv(path, id_column, text):
    """Return columns by name (by number, without a first line of names), and ids."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        first = next(csv.reader(lines), [])
    if not first:
        raise ValueError("its first line is empty")
    named = not all(map(_is_number, first))
    names = _unique(path, first) if named else list(range(len(first)))
    place = _place(path, names, id_column)
    kept = [k for k in range(len(names)) if k != place]
    load = functools.partial(
        np.loadtxt, path, delimiter=",", skiprows=int(named), ndmin=2, comments=None,
        quotechar='"', encoding="utf-8-sig",
    )  # fmt: skip
    ids, usecols = None, None
    if place is not None:
        ids, usecols = load(dtype=str, usecols=[place])[:, 0], kept
        _refuse_gaps(path, names[place], ids)
    try:
        cells = load(usecols=usecols)
    except ValueError:
        if not text:
            _refuse_text(path, _text_cells(path, names, kept, named), id_column)
        cells = load(dtype=str, usecols=usecols)
    if not len(cells):
        raise ValueError("it has no rows")
    columns = [_as_numbers(column) for column in cells.T]
    return dict(zip((names[k] for k in kept), columns, strict=True)), ids


def _text_cells(path, names, kept, named):
    """Return row and cell of the first text of every column that has some."""
    found = {}
    with path.open(newline="", encoding="utf-8-sig") as lines:
        for row, cells in enumerate(csv.reader(lines), -int(named)):
            if row < 0:
                continue
            for k in kept:
                if k < len(cells) and names[k] not in found:
                    if not _is_number(cells[k]):
                        found[names[k]] = row, cells[k]
    return {name: found[name] for name in names if name in found}


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _as_numbers(cells):
    """Return a column as numbers if all of its cells are; empty ones are missing."""
    try:
        return cells.astype(float)
    except ValueError:
        return np.where(cells == "", None, cells.astype(object))


def _read_parquet(path, id_column, text):
    """Return columns by name, a list of numbers being several, and ids."""
    from skident.datasets._files import need

    pyarrow = need("pyarrow")
    parquet = need("pyarrow.parquet", "pyarrow")
    kinds = pyarrow.types
    lists = kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list
    numbers = kinds.is_integer, kinds.is_boolean, kinds.is_decimal
    with path.open("rb") as file:
        try:
            table = parquet.read_table(file)
        except pyarrow.ArrowException as error:
            raise ValueError(str(error)) from error
    names = _unique(path, table.column_names)
    place = _place(path, names, id_column)
    ids = None
    if place is not None:
        ids = table.column(place).to_pylist()
        _refuse_gaps(path, names[place], ids)
        ids = np.array(ids).astype(str)
    columns = {}
    for k, name in enumerate(names):
        if k == place:
            continue
        column, kind = table.column(k), table.schema.field(k).type
        if any(is_one(kind) for is_one in lists):
            block = _equal_lists(path, name, column)
            columns |= {f"{name}[{j}]": part for j, part in enumerate(block.T)}
        elif kinds.is_floating(kind):
            columns[name] = column.to_numpy()
        elif any(is_one(kind) for is_one in numbers):
            columns[name] = column.cast(pyarrow.float64()).to_numpy()
        else:
            columns[name] = np.array(column.to_pylist(), dtype=object)
    if not text:
        _refuse_text(path, _odd_cells(columns), id_column)
    return columns, ids


def _equal_lists(path, name, column):
    """Return a column of lists as one row a list."""
    import pyarrow.compute

    lengths = pyarrow.compute.list_value_length(column).unique().to_pylist()
    if len(lengths) != 1 or not lengths[0]:
        raise _Wrong(f"Column {name!r} of {path} has lists of lengths {lengths}.")
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, lengths[0])


def _odd_cells(columns):
    """Return row and cell of the first entry that is no number, by column."""
    return {
        name: (0, values[0])
        for name, values in columns.items()
        if values.dtype == object
    }


_READERS = {".csv": _read_csv, ".parquet": _read_parquet}


def _unique(path, names):
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise _Wrong(f"{path} has more than one column named {repeated[0]!r}.")
    return names


def _place(path, names, id_column):
    """Return which column holds the ids; None if none was asked for."""
    if id_column is None:
        return None
    if id_column not in names:
        listed = _listed(names) if isinstance(names[0], str) else "no names"
        raise _Wrong(f"{path} has no column {id_column!r} for --id, but {listed}.")
    if len(names) == 1:
        raise _Wrong(f"{path} has no column but that of the ids, {id_column!r}.")
    return names.index(id_column)


def _refuse_text(path, found, id_column):
    """Name the columns that hold no numbers, if there are any."""
    if found:
        listed = [f"{n!r} (row {row}: {cell!r})" for n, (row, cell) in found.items()]
        advice = "leave them out"
        if id_column is None:
            advice += "; align takes a column of ids by --id"
        raise _Wrong(
            f"{path} has columns that are no numbers: {_said(listed)}: {advice}."
        )


def _refuse_row_numbers(path, columns):
    """Refuse the index that data frames write: it would be a perfect dimension."""
    for name, values in columns.items():
        if values.dtype == object or len(values) < _NAMED:
            continue
        if np.array_equal(values, values[0] + np.arange(len(values))):
            raise _Wrong(
                f"Column {name!r} of {path} numbers the rows: leave it out "
                "(to_csv(index=False)), or let align join by it (--id)."
            )


def _refuse_gaps(path, name, ids):
    missing = [k for k, one in enumerate(ids) if is_missing(one) or one == ""]
    if missing:
        raise _Wrong(f"Column {name!r} of {path} has no id in row {missing[0]}.")


def _stack(columns):
    """Return columns side by side; of objects if some are text."""
    if all(column.dtype != object for column in columns):
        return np.column_stack(columns)
    table = np.empty((len(columns[0]), len(columns)), dtype=object)
    for k, column in enumerate(columns):
        table[:, k] = column
    return table


def join_by_id(tables, extra=(), *, drop=False):
    """Return rows of tables that have the same ids.

    Parameters
    ----------
    tables : list of Table
        Each with ids.
    extra : list of Table
        Must have these ids too, and may have more; one without ids has the rows of the
        first table.
    drop : bool, default=False
        Whether ids that only some tables have are left out.

    Returns
    -------
    tables, extra : list of Table
        In ascending order of the ids.

    Raises
    ------
    ValueError
        For ids that occur twice, that only some tables have, or that are missing in an
        extra one, naming file and ids.
    """
    for table in [*tables, *extra]:
        if table.ids is not None:
            _check_unique(table)
    common = functools.reduce(np.intersect1d, [table.ids for table in tables])
    lost = {t.name: np.setdiff1d(t.ids, common) for t in tables}
    parts = [
        f"{len(ids)} of {name} ({_listed(ids.tolist())})"
        for name, ids in lost.items()
        if len(ids)
    ]
    if not len(common):
        raise ValueError(f"The files have no id in common: {'; '.join(parts)}.")
    if parts and not drop:
        raise ValueError(
            f"Some ids are not in every file: {'; '.join(parts)}. --drop-unmatched "
            "leaves them out."
        )
    for table in extra:
        missing = [] if table.ids is None else np.setdiff1d(common, table.ids)
        if len(missing):
            raise ValueError(
                f"{table.name} lacks {len(missing)} id(s) of the others: "
                f"{_listed(missing.tolist())}."
            )
    first = _rows_of(tables[0].ids, common)
    taken = [_take(table, _rows_of(table.ids, common)) for table in tables]
    return taken, [
        _take(table, first if table.ids is None else _rows_of(table.ids, common))
        for table in extra
    ]


def _check_unique(table):
    ids, counts = np.unique(table.ids, return_counts=True)
    repeated = ids[counts > 1].tolist()
    if repeated:
        raise ValueError(
            f"{table.name} has {len(repeated)} id(s) more than once: "
            f"{_listed(repeated)}."
        )


def _rows_of(ids, wanted):
    order = np.argsort(ids)
    return order[np.searchsorted(ids, wanted, sorter=order)]


def _take(table, rows):
    ids = None if table.ids is None else table.ids[rows]
    return table._replace(values=table.values[rows], ids=ids)


def _listed(names):
    return _said([repr(name) for name in names])


def _said(parts):
    more = len(parts) - _NAMED
    return ", ".join(parts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
