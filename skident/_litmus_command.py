"""``python -m skident litmus``: the litmus test of rows in a file."""

from skident._command_line import (
    add_shared_options,
    bullets,
    check_output,
    count,
    layout,
    read_labels,
)
from skident._data_files import read_table


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
        help="rows of two values (-1 and 1, or 0 and 1), one column a variable: .npy, "
        ".npz (see --key, or FILE.npz:KEY), .parquet or .csv (a first line of names is "
        "skipped)",
    )
    parser.add_argument(
        "--latents",
        type=count,
        nargs="+",
        default=[1, 2, 4],
        metavar="K",
        help="numbers of latents to try (default: 1 2 4)",
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
        type=count,
        nargs="+",
        metavar="L",
        help="sides of a lattice of columns",
    )
    parser.add_argument(
        "--epochs",
        type=count,
        help="passes of the training (default: some 5000 steps)",
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
    ValueError, OSError
        For wrong files, before anything is trained.
    """
    from skident import CondTotalCorrelation, MeanFieldVAE, report
    from skident._report import litmus_table

    words = read_table(options.words, key=options.key).values
    if words.ndim != 2:
        raise ValueError(
            f"{options.words} must hold rows and columns, but its array has shape "
            f"{words.shape}."
        )
    groups = None
    if options.groups is not None:
        groups = read_labels(options.groups).values
    check_output(options.output)
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
    yield layout(*litmus_table(tests))
    enough = [name for name, test in tests.items() if test.verdict_ == "mean-field"]
    enough = enough[0] if enough else "none of these"
    yield f"Fewest latents that are mean-field with such a decoder: {enough}"
    if options.output is not None:
        page = report(tests, options.output, title=f"Litmus test of {options.words}")
        yield f"Page: {page}"


def describe(name, test):
    """Return the verdict of a litmus test and its reasons as text."""
    return f'   {name}:\n   "{test.verdict_}"\n{bullets(test.reasons_)}'
