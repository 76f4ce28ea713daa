"""``python -m skident``: both questions answered on embedded data, or on a file."""

import argparse
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skident import _align_command, _litmus_command

N_SITES, N_PATTERNS, HOPFIELD_T = 64, 4, 0.7
LATTICE, ISING_T = (8, 8), 2.5
RULE = "=" * 72
_SEED_BOUND = 2**30
_COMMANDS = {"litmus": _litmus_command, "align": _align_command}


class MeanFieldStory(NamedTuple):
    """Fitted objects of the first half."""

    patterns: np.ndarray
    n_exact: int
    n_exact_pca_span: int
    n_exact_pca_axes: int
    hopfield: object
    ising: object
    decoder: object


def count_exact(found, patterns):
    """Count the patterns found exactly, up to order and sign."""
    overlaps = np.abs(found.astype(int) @ patterns.T.astype(int))
    return int((overlaps == patterns.shape[1]).any(axis=0).sum())


def tell_mean_field(seed, quick):
    """Test a Hopfield model and an Ising sheet, and decode the Hopfield patterns."""
    from sklearn.decomposition import PCA

    from skident import CondTotalCorrelation, HopfieldPatternDecoder, MeanFieldVAE
    from skident._math.binary_span import decode_span
    from skident.datasets import make_hopfield, make_ising, make_patterns

    n_hopfield, n_ising = (10_000, 4_000) if quick else (16_000, 6_000)
    say(f"Drawing {n_hopfield:,} Hopfield and {n_ising:,} Ising states")
    patterns = make_patterns(N_PATTERNS, N_SITES, random_state=seed)
    X, _ = make_hopfield(
        n_hopfield, patterns, temperature=HOPFIELD_T, random_state=seed
    )
    sheet, _ = make_ising(n_ising, LATTICE, temperature=ISING_T, random_state=seed)

    def model(n_components):
        return MeanFieldVAE(
            n_components,
            hidden_layer_sizes=(64, 64),
            learning_rate=5e-3,
            max_epochs=25,
            verbose=1,
        )

    def litmus(estimator, rows):
        return CondTotalCorrelation(
            estimator, n_resamples=100, verbose=1, random_state=seed
        ).fit(rows)

    say("Hopfield: is it a mean-field system? (two models, each tested on new rows)")
    hopfield = litmus(model(N_PATTERNS), X)
    say("Ising: is it a mean-field system?")
    ising = litmus(model(1), sheet)
    say("Hopfield: which one? (one model on all rows, its decoder read)")
    decoder = HopfieldPatternDecoder(model(N_PATTERNS), random_state=seed).fit(X)
    axes = PCA(N_PATTERNS).fit(X).components_
    return MeanFieldStory(
        patterns,
        count_exact(decoder.patterns_, patterns),
        count_exact(decode_span(axes.T).patterns, patterns),
        count_exact(np.where(axes < 0, -1, 1), patterns),
        hopfield,
        ising,
        decoder,
    )


def tell_identifiability(seed, quick):
    """Train one autoencoder twice on digits and align the two embeddings."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from skident import AutoencoderEmbedder
    from skident.metrics import alignment_errors

    images = load_digits().data
    images = images[:, np.ptp(images, axis=0) > 0]  # three pixels are always off
    train, test = train_test_split(images, test_size=0.4, random_state=seed)
    say(f"Digits: training two autoencoders on {len(train)} images")
    embeddings = [
        AutoencoderEmbedder(
            8,
            hidden_layer_sizes=(128, 128),
            max_epochs=40 if quick else 60,
            verbose=1,
            random_state=2 * seed + run,
        )
        .fit(train)
        .transform(test)
        for run in range(2)
    ]
    return alignment_errors(*embeddings, random_state=seed)


def make_displays(story, errors):
    """Return what is drawn: correlations of the sheet, patterns, alignment errors."""
    from skident.plotting import (
        AlignmentDisplay,
        PatternDisplay,
        TotalCorrelationDisplay,
    )

    sheet = TotalCorrelationDisplay(
        story.ising.residual_covariance_,
        shape=LATTICE,
        verdict=f"Ising sheet: {story.ising.verdict_}",
        unexplained_fraction=story.ising.unexplained_fraction_,
    )
    patterns = PatternDisplay(story.decoder.patterns_, story.patterns, shape=(8, 8))
    return sheet, patterns, AlignmentDisplay(errors)


def write_report(story, errors, sheet):
    """Return the report as text."""
    hopfield = f"{N_SITES} spins, {N_PATTERNS} patterns, T = {HOPFIELD_T}"
    hopfield = f"Hopfield model ({hopfield}), {N_PATTERNS} latents"
    ising = f"{LATTICE[0]} x {LATTICE[1]} spins, T = {ISING_T}"
    ising = f"2-D Ising sheet ({ising}), 1 latent"
    return f"""
{RULE}
1. Is it a mean-field system, and which one?

{_litmus_command.describe(hopfield, story.hopfield)}

   Patterns decoded exactly, up to order and sign:
     from the decoder                      {story.n_exact} of {N_PATTERNS}
     from the PCA span by the same search  {story.n_exact_pca_span} of {N_PATTERNS}
     from the signs of the PCA axes        {story.n_exact_pca_axes} of {N_PATTERNS}

{_litmus_command.describe(ising, story.ising)}

   Where one latent fails: residual correlation against distance (bonds)
{_curve(sheet)}

2. Is what an autoencoder learned of the digits stable?
   Two seeds, new images, mean error in units of the latent diameter:

{textwrap.indent(str(errors), "   ")}

{_conclusion(errors)}
{RULE}"""


def _conclusion(errors):
    """Say in words what the table of alignment errors shows."""
    _, rigid, *_ = errors.error
    text = (
        f"Up to a rigid map the two agree to {rigid:.0%} of the diameter (unrelated "
        f"rows: {errors.chance[1]:.0%}), but not axis by axis."
    )
    if errors.ica_efficiency is not None:
        text += (
            " ICA, which sees no pairs, recovers "
            f"{errors.ica_efficiency:.0%} of what the rigid map gains."
        )
    return textwrap.fill(text, 72, initial_indent="   ", subsequent_indent="   ")


def _curve(sheet):
    rows = zip(sheet.distances_, sheet.correlations_, strict=True)
    return "\n".join(
        f"     {distance:2d}  {value:+.3f} {'#' * round(60 * abs(value))}"
        for distance, value in rows
    )


def save_figures(displays, folder):
    """Save the two figures; return the lines that say where, or how to get them."""
    from skident.plotting import draw_together

    sheet, patterns, alignment = displays
    try:
        figures = {
            "mean_field.png": draw_together(
                sheet, patterns, title="Hopfield patterns and an Ising sheet"
            ),
            "alignment.png": alignment.plot(name="Digits, two seeds").figure_,
        }
    except ImportError as error:
        return f"No figures: {error}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=150, bbox_inches="tight")
    return "\n".join(f"Figure: {folder / name}" for name in figures)


def say(text):
    """Print a line of progress at once."""
    print(text, flush=True)


def parse(arguments):
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m skident",
        description="Answer both questions of skident on embedded data, without a "
        "network: is many-body data a mean-field system and which one; and is what an "
        "autoencoder learned stable? Takes about a minute on two free cores. "
        "On data of your own, `litmus FILE` answers the first one, `align FILE FILE` "
        "the second.",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of data and models, below 2**30 (default: 0)",
    )
    parser.add_argument(
        "--output-dir",
        type=Path,
        default=Path("skident-report"),
        help="folder for the two figures (default: skident-report)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer rows and epochs: less time"
    )
    commands = parser.add_subparsers(dest="command", title="commands")
    for command in _COMMANDS.values():
        command.add_parser(commands)
    options = parser.parse_args(arguments)
    if not 0 <= options.seed < _SEED_BOUND:
        parser.error(f"--seed must be in [0, {_SEED_BOUND}), got {options.seed}")
    if options.output_dir.exists() and not options.output_dir.is_dir():
        parser.error(f"--output-dir {options.output_dir} is not a folder")
    return options


def run_command(options):
    """Carry out a command on files; return the exit status."""
    try:
        for text in _COMMANDS[options.command].run(options):
            say(text)
    except (ValueError, OSError, ImportError) as error:
        message = " ".join(str(error).split())
        name = f"python -m skident {options.command}"
        print(f"{name}: error: {message}", file=sys.stderr)
        return 2
    return 0


def main(arguments=None):
    """Run the story, or a command; return the exit status."""
    options = parse(arguments)
    if options.command is not None:
        return run_command(options)
    start = time.perf_counter()
    story = tell_mean_field(options.seed, options.quick)
    errors = tell_identifiability(options.seed, options.quick)
    displays = make_displays(story, errors)
    say(write_report(story, errors, displays[0]))
    say(save_figures(displays, options.output_dir))
    say(f"Took {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
