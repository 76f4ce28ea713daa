"""What the commands have in common: options, checks and the layout of text."""

import argparse
import textwrap
from pathlib import Path

from skident._data_files import SUFFIXES, read_table


def count(text):
    """Read an integer of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no integer of at least 1")
    return int(text)


def _jobs(text):
    """Read a number of jobs of joblib's."""
    if not text.removeprefix("-").isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is no integer other than 0")
    return int(text)


def add_shared_options(parser):
    """Add the options that every command on files has.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    parser.add_argument("--key", help="name of the array in an .npz file")
    parser.add_argument(
        "--groups",
        metavar="FILE",
        help="file with one label a row: rows that belong together (repeats, say)",
    )
    parser.add_argument(
        "--jobs",
        type=_jobs,
        default=1,
        help="how many at once, as in joblib (default: 1)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed (default: 0)")
    parser.add_argument(
        "--output", type=Path, metavar="PAGE", help="self-contained HTML page to write"
    )


def check_output(path):
    """Raise a ``ValueError`` unless a page can be written there.

    Parameters
    ----------
    path : pathlib.Path or None
        None for no page.
    """
    if path is None:
        return
    if path.suffix.lower() in SUFFIXES:
        raise ValueError(f"--output {path} is to be an HTML page, not a data file.")
    if path.is_dir():
        raise ValueError(f"--output {path} is a folder.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise ValueError(f"--output {path}: there is no folder {folder}.")


def read_labels(source, *, id_column=None):
    """Read one label a row.

    Parameters
    ----------
    source : str
        As in :func:`skident._data_files.read_table`.
    id_column : str, optional
        As there.

    Returns
    -------
    Table
        Its values have shape (n_rows,).

    Raises
    ------
    ValueError
        For more than one column, and as there.
    """
    table = read_table(source, id_column=id_column, text=True)
    if table.values.size != len(table.values.reshape(len(table.values), -1)):
        raise ValueError(
            f"{source} must have one label a row, but has shape {table.values.shape}."
        )
    return table._replace(values=table.values.reshape(-1))


def bullets(items):
    """Return lines that begin with a dash, wrapped, as text."""
    return "\n".join(
        textwrap.fill(item, 72, initial_indent="     - ", subsequent_indent="       ")
        for item in items
    )


def layout(head, rows):
    """Return a table as aligned text."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    )
