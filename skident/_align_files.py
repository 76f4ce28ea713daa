"""The files of ``python -m skident align``: checked, and with rows in one order."""

import numpy as np

from skident._command_line import read_labels
from skident._data_files import join_by_id, read_table
from skident._validation import as_group_codes, check_finite, to_cpu
from skident.metrics._factors import paired

# As in alignment_errors.
_FOLDS = 5
_BLOCK = 65536


def load(options):
    """Read and check all files.

    Parameters
    ----------
    options : argparse.Namespace
        Of the command.

    Returns
    -------
    tables : list of Table
        One a file, with the same rows.
    groups : ndarray of shape (n_rows,) or None
        Labels.
    factors : ndarray of shape (n_rows, n_factors) or None
        Numbers or labels.

    Raises
    ------
    ValueError, OSError, ImportError
        For a file that cannot be compared with the others, naming it.
    """
    tables = [
        read_table(name, key=options.key, id_column=options.id)
        for name in options.files
    ]
    beside = {}
    if options.groups is not None:
        beside["groups"] = read_labels(options.groups, id_column=options.id)
    if options.factors is not None:
        beside["factors"] = read_table(options.factors, id_column=options.id, text=True)
    if options.id is not None:
        tables, beside = _joined(tables, beside, options.drop_unmatched)
    elif options.drop_unmatched:
        raise ValueError("--drop-unmatched needs --id.")
    tables = [_checked(table) for table in tables]
    _check_lengths([*tables, *beside.values()])
    if "groups" in beside:
        _check_groups(beside["groups"])
    if "factors" in beside:
        _check_factors(beside["factors"])
    values = [beside[name].values if name in beside else None for name in _BESIDE]
    return tables, *values


_BESIDE = ("groups", "factors")


def _joined(tables, beside, drop):
    """Return tables and what stands beside them, joined by ids."""
    for table in tables:
        if table.ids is None:
            raise ValueError(
                f"--id joins .csv and .parquet files, but {table.name} is none."
            )
    _check_lengths([tables[0], *(t for t in beside.values() if t.ids is None)])
    tables, joined = join_by_id(tables, list(beside.values()), drop=drop)
    return tables, dict(zip(beside, joined, strict=True))


def _check_lengths(tables):
    """Refuse tables of other numbers of rows than the first."""
    first = tables[0]
    for table in tables:
        if len(table.values) != len(first.values):
            raise ValueError(
                f"{table.name} has {len(table.values):,} rows, {first.name} has "
                f"{len(first.values):,}: rows are paired by position. --id COLUMN "
                "joins by ids; a .csv of text needs a first line of names."
            )


def _checked(table):
    """Return a table of finite rows that are not all equal."""
    values, name = table.values, table.name
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(
            f"{name} must hold rows and columns, but its array has shape "
            f"{values.shape}: save array.reshape(len(array), -1)."
        )
    if len(values) < _FOLDS:
        raise ValueError(f"{name} has {len(values)} row(s), but {_FOLDS} are needed.")
    values = to_cpu(values, name)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} has values of type {values.dtype}, not numbers.")
    check_finite(values, name=name, columns=table.columns)
    parts = (values[k : k + _BLOCK] for k in range(0, len(values), _BLOCK))
    if all((part == values[0]).all() for part in parts):
        raise ValueError(
            f"All rows of {name} are equal: its diameter, the unit of the errors, is 0."
        )
    return table._replace(values=values)


def _check_groups(table):
    try:
        n_groups = as_group_codes(table.values, len(table.values)).max() + 1
    except ValueError as error:
        raise ValueError(f"{table.name}: {error}") from error
    if n_groups < _FOLDS:
        raise ValueError(
            f"{table.name} has {n_groups} group(s), but {_FOLDS} are needed."
        )


def _check_factors(table):
    """Refuse now what the scores would refuse at the end."""
    try:
        paired(table.values, np.zeros((len(table.values), 1)))
    except ValueError as error:
        raise ValueError(f"{table.name}: {error}") from error
