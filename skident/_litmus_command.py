"""``python -m skident litmus``: the litmus test of rows in a file."""

import argparse
import textwrap
import zipfile
from pathlib import Path

import numpy as np

_SUFFIXES = (".npy", ".npz", ".csv")


def add_parser(commands):
    """Add the command to those of the main parser."""
    parser = commands.add_parser(
        "litmus",
        help="is the data in a file a mean-field system?",
        description="Is the data in a file a mean-field system? Trains models with "
        "some numbers of latents and tests each on rows that it was not trained on. "
        "Exit status 2: a file or option is wrong.",
    )
    parser.add_argument(
        "words",
        type=Path,
        help="rows of two values (-1 and 1, or 0 and 1), one column a variable: .npy, "
        ".npz (see --key) or .csv (a first line of names is skipped)",
    )
    parser.add_argument(
        "--latents",
        type=_count,
        nargs="+",
        default=[1, 2, 4],
        metavar="K",
        help="numbers of latents to try (default: 1 2 4)",
    )
    parser.add_argument("--key", help="name of the array in an .npz file")
    parser.add_argument(
        "--groups",
        type=Path,
        help="file with one label a row: rows that belong together (repeats, say)",
    )
    parser.add_argument(
        "--entropy", type=float, help="entropy H(p) of a row in nats, where it is known"
    )
    parser.add_argument(
        "--partition",
        default="half",
        choices=("half", "checkerboard", "random-max"),
        help="cut whose information the latents must carry (default: half)",
    )
    parser.add_argument(
        "--shape",
        type=_count,
        nargs="+",
        metavar="L",
        help="sides of a lattice of columns",
    )
    parser.add_argument(
        "--epochs",
        type=_count,
        help="passes of the training (default: some 5000 steps)",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="folds at once, as in joblib (default: 1)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed (default: 0)")
    parser.add_argument("--output", type=Path, help="HTML page to write")
    return parser


def _count(text):
    """Read an integer of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no integer of at least 1")
    return int(text)


def load(path, key=None):
    """Read the array in a file.

    Parameters
    ----------
    path : pathlib.Path
        An .npy, .npz or .csv file.
    key : str, optional
        Name of the array in an .npz file that holds several.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        For another kind of file, or one that cannot be read as such.
    OSError
        If it is not there.
    """
    kind = path.suffix.lower()
    if kind not in _SUFFIXES:
        raise ValueError(f"{path} must end in one of {', '.join(_SUFFIXES)}.")
    try:
        if kind == ".csv":
            return _load_text(path)
        loaded = np.load(path, allow_pickle=False)
        if kind == ".npy":
            return loaded
        with loaded:
            names = loaded.files
            key = names[0] if key is None and len(names) == 1 else key
            if key in names:
                return loaded[key]
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as {kind}: {error}") from error
    raise ValueError(f"--key must be one of {names} in {path}, got {key!r}.")


def _load_text(path):
    """Read numbers between commas; a first line that holds names is skipped."""
    with path.open(encoding="utf-8") as lines:
        first = lines.readline()
    try:
        [float(cell) for cell in first.split(",")]
    except ValueError:
        return np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    return np.loadtxt(path, delimiter=",", ndmin=2)


def run(options):
    """Carry out the command, yielding what to print as it comes.

    Parameters
    ----------
    options : argparse.Namespace
        As the parser of :func:`add_parser` gives them.

    Yields
    ------
    str

    Raises
    ------
    ValueError, OSError
        For wrong files, before anything is trained.
    """
    from skident import CondTotalCorrelation, MeanFieldVAE, report
    from skident._report import litmus_table

    words = load(options.words, options.key)
    if words.ndim != 2:
        raise ValueError(
            f"{options.words} must hold rows and columns, but its array has shape "
            f"{words.shape}."
        )
    groups = None if options.groups is None else load(options.groups).reshape(-1)
    folder = None if options.output is None else options.output.resolve().parent
    if folder is not None and not folder.is_dir():
        raise ValueError(f"--output {options.output}: there is no folder {folder}.")
    yield f"{options.words}: {words.shape[0]:,} rows, {words.shape[1]:,} columns"
    tests = {}
    for n_latents in dict.fromkeys(options.latents):
        name = f"{n_latents} latent{'s' * (n_latents > 1)}"
        model = MeanFieldVAE(n_latents, max_epochs=options.epochs or "auto", verbose=1)
        test = CondTotalCorrelation(
            model,
            entropy=options.entropy,
            partition=options.partition,
            shape=options.shape,
            n_jobs=options.jobs,
            verbose=1,
            random_state=options.seed,
        )
        tests[name] = test.fit(words, groups=groups)
        yield describe(name, test)
    yield _layout(*litmus_table(tests))
    enough = [name for name, test in tests.items() if test.verdict_ == "mean-field"]
    enough = enough[0] if enough else "none of these"
    yield f"Fewest latents that are mean-field with such a decoder: {enough}"
    if options.output is not None:
        page = report(tests, options.output, title=f"Litmus test of {options.words}")
        yield f"Page: {page}"


def describe(name, test):
    """Return the verdict of a litmus test and its reasons as text."""
    reasons = "\n".join(
        textwrap.fill(reason, 72, initial_indent="     - ", subsequent_indent="       ")
        for reason in test.reasons_
    )
    return f'   {name}:\n   "{test.verdict_}"\n{reasons}'


def _layout(head, rows):
    """Return a table as aligned text."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    )
