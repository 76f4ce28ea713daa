"""``python -m skident align``: whether representations in files agree."""

import contextlib
import warnings
from pathlib import Path

from skident._command_line import add_shared_options, bullets, check_output, layout
from skident._math.alignment import TRANSFORMATIONS
from skident._math.diameters import DIAMETERS


def add_parser(commands):
    """Add the command to those of the main parser."""
    parser = commands.add_parser(
        "align",
        help="do representations of the same rows, in files, agree?",
        description="Do representations of the same rows agree, and up to which maps? "
        "Prints errors of the best maps on rows that they were not fitted on, in units "
        "of the diameter, and what may be interpreted. Exit status 2: a file or option "
        "is wrong.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="two files, or more: .npy, .npz (see --key, or FILE.npz:KEY), .csv or "
        ".parquet; one row a sample, in the same order unless there is --id",
    )
    parser.add_argument(
        "--id",
        metavar="COLUMN",
        help="column that names the rows of .csv and .parquet files, to join them by",
    )
    parser.add_argument(
        "--drop-unmatched",
        action="store_true",
        help="with --id: leave out rows that are not in every file",
    )
    parser.add_argument(
        "--transformations",
        nargs="+",
        choices=TRANSFORMATIONS,
        default=list(TRANSFORMATIONS),
        help="groups of maps (default: all)",
    )
    parser.add_argument(
        "--diameter",
        choices=tuple(DIAMETERS),
        default="max",
        help="unit of the errors (default: max); robust is not set by one outlier",
    )
    parser.add_argument(
        "--factors",
        metavar="FILE",
        help="file of known factors, one column each, to score every file against",
    )
    add_shared_options(parser)


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
    ValueError, OSError, ImportError
        For wrong files, before anything is aligned.
    """
    from skident._align_files import load

    check_output(options.output)
    if len(options.files) < 2:
        raise ValueError(f"two files are needed to compare, got {options.files[0]}.")
    tables, groups, factors = load(options)
    pair = len(tables) == 2
    yield "\n".join(
        f"{f'Z{k + 1}' if pair else f'run {k}'}  {table.name}: "
        f"{len(table.values):,} rows, {_columns(table)}"
        for k, table in enumerate(tables)
    )
    options.transformations = list(dict.fromkeys(options.transformations))
    compare = _compare_pair if pair else _compare_runs
    sections = []
    with _noted() as found:
        for text, html in compare(options, tables, groups, factors):
            yield text
            sections.append(html)
    if found:
        notes = list(dict.fromkeys(" ".join(str(w.message).split()) for w in found))
        yield f"\nNotes\n{bullets(notes)}"
        sections.append(_section("Notes", notes))
    if options.output is not None:
        yield f"Page: {_write(options.output, tables, sections)}"


def _columns(table):
    n_columns = table.values.shape[1]
    return f"{n_columns:,} column{'s' * (n_columns > 1)}"


@contextlib.contextmanager
def _noted():
    """Collect warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        yield found


def _compare_pair(options, tables, groups, factors):
    """Yield text and HTML about two files."""
    from skident._alignment_pages import describe_errors, score_table
    from skident._conclusion import conclude_pair
    from skident._page import section, table
    from skident._study_pairs import score_factors
    from skident.metrics import alignment_errors

    first, second = tables
    errors = alignment_errors(
        first.values,
        second.values,
        transformations=options.transformations,
        groups=groups,
        diameter=options.diameter,
        n_jobs=options.jobs,
        verbose=1,
        random_state=options.seed,
    )
    conclusion = conclude_pair(errors, [first.values, second.values])
    html = _legend(("first", "second"), tables) + describe_errors(errors, conclusion)
    yield _text(errors, conclusion), section(None, html)
    if factors is not None:
        scores = score_factors(
            factors,
            [first.values, second.values],
            groups=groups,
            n_jobs=options.jobs,
            seed=options.seed,
            stream=0,
        )
        head, rows = score_table(scores, [one.name for one in tables])
        text = f"\nAgainst the factors of {options.factors}\n{layout(head, rows)}"
        yield text, section(None, table(head, rows, caption="Against the factors"))


def _compare_runs(options, tables, groups, factors):
    """Yield text and HTML about three files or more."""
    from skident import IdentifiabilityStudy
    from skident._alignment_pages import describe_study
    from skident._conclusion import conclude_study
    from skident._page import section

    study = IdentifiabilityStudy.from_embeddings(
        [table.values for table in tables],
        factors,
        groups=groups,
        transformations=options.transformations,
        diameter=options.diameter,
        n_jobs=options.jobs,
        verbose=1,
        random_state=options.seed,
    )
    html = _legend([f"run {k}" for k in range(len(tables))], tables) + describe_study(
        study
    )
    yield _text(study.summary(), conclude_study(study)), section(None, html)


def _legend(labels, tables):
    """Return HTML that says which file is which."""
    from skident._page import bullets

    named = zip(labels, tables, strict=True)
    return bullets([f"{label}: {table.name}" for label, table in named])


def _text(table, conclusion):
    return f"\n{table}\n\n{conclusion.headline}\n{bullets(conclusion.reasons)}"


def _section(heading, items):
    from skident._page import bullets, section

    return section(heading, bullets(items))


def _write(path, tables, sections):
    from skident._page import page

    names = [Path(table.name).name for table in tables]
    title = f"Alignment of {' and '.join(names)}"
    if len(names) > 2:
        title = f"Alignment of {len(names)} representations"
    path.write_text(page(title, sections), encoding="utf-8")
    return path
