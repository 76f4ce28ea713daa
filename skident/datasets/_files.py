"""Files of others: what to say when one is missing, wrong, or needs a package."""

import contextlib
import importlib
import os
from pathlib import Path


def need(package, name=None):
    """Import a package that only readers need.

    Parameters
    ----------
    package : str
        What to import.
    name : str, optional
        What it is called by pip, if otherwise.

    Raises
    ------
    ImportError
        With the extra to install.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"Reading this file needs {name or package}: "
            'pip install "skident[readers]".'
        ) from error


def existing(path, what, source, *, folder=False):
    """Return a path of an existing file, or folder.

    Parameters
    ----------
    path : str or path-like
        Given by the user.
    what : str
        What is expected there.
    source : str
        Where it can be had.
    folder : bool
        Whether it must be a folder, or else a file.

    Raises
    ------
    TypeError
        If it is no path.
    FileNotFoundError
        If nothing is there.
    ValueError
        For a folder in the place of a file, or a file in that of a folder.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or path-like, got {path!r}.")
    path = Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(
            f"Nothing at {str(path)!r}, where {what} was expected. It is at {source}."
        )
    if path.is_dir() != folder:
        found = "folder" if path.is_dir() else "file"
        raise ValueError(f"Expected {what}, but {str(path)!r} is a {found}.")
    return path


def wrong(path, expected, found):
    """Return the error of a file that is not what it should be."""
    return ValueError(f"Expected {expected}, but {str(path)!r} {found}.")


@contextlib.contextmanager
def reading(path, expected, *errors):
    """Turn the errors of a library that cannot read a file into one that says so."""
    try:
        yield
    except errors as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise wrong(path, expected, f"cannot be read as one: {reason}") from error


def check_keys(path, expected, needed, present):
    """Raise unless a file has the arrays, tables or columns that it must have."""
    missing = [key for key in needed if key not in present]
    if missing:
        listed = ", ".join(map(repr, list(present)[:12])) or "nothing"
        raise wrong(
            path, expected, f"has no {', '.join(map(repr, missing))}; it has {listed}"
        )
