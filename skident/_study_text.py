"""What a study found, in words."""

import numpy as np

from skident._math.alignment import STABLE


def summarize(study):
    """Return a fitted study as text.

    Parameters
    ----------
    study : IdentifiabilityStudy
        Fitted.

    Returns
    -------
    str
    """
    n_runs, n_rows = len(study.run_table_["run"]), len(study.embedding_)
    level = f"{study.confidence_level:.4g}".removeprefix("0")
    lines = [
        f"{n_runs} runs, {n_rows} rows; errors in units of the {study.diameter} "
        "diameter",
        *_error_lines(study.table_, level),
    ]
    lines += notes(study)
    if study.component_stability_ is not None:
        stable = int(np.sum(study.component_stability_ >= STABLE))
        lines.append(
            f"{stable} of {len(study.component_stability_)} independent components are "
            f"stable (correlation between runs at least {STABLE})"
        )
    if study.factor_table_ is not None:
        lines += ["", *_factor_lines(study.factor_table_, level)]
    return "\n".join(lines)


def notes(study):
    """Return what a study says of ICA and of theorem 1 as a list of text."""
    items = []
    if study.ica_efficiency_ is not None:
        low, high = study.ica_efficiency_interval_
        items.append(
            f"ICA efficiency {study.ica_efficiency_:.0%} [{low:.0%}, {high:.0%}]"
        )
    if study.bound_ is not None:
        items.append(
            f"theorem 1: the rigid error is at most {study.bound_:.3g} times a "
            "constant of the width, if all runs reconstruct alike"
        )
    return items


def _error_lines(table, level):
    over_runs = "run_lower" in table
    head = f"{'':12}{'error':>7}  {level + ' over rows':^16}"
    yield head + (f" {level + ' over runs':^16}" if over_runs else "") + " chance"
    for k, name in enumerate(table["transformation"]):
        line = f"{name:12}{table['error'][k]:7.3f}  {_interval(table, k, '')}"
        if over_runs:
            line += f" {_interval(table, k, 'run_')}"
        yield f"{line}{table['chance'][k]:7.3f}"


def _factor_lines(table, level):
    yield f"{'':16}{'as it is':^24}{'after ICA':^24}({level} over runs)"
    for k, name in enumerate(table["score"]):
        cells = [
            f"{table['value' + end][k]:6.3f}"
            f" [{table['lower' + end][k]:.3f}, {table['upper' + end][k]:.3f}]"
            for end in ("", "_ica")
        ]
        yield f"{name:16}" + "".join(f"{cell:^24}" for cell in cells).rstrip()


def _interval(table, k, kind):
    text = f"[{table[kind + 'lower'][k]:.3f}, {table[kind + 'upper'][k]:.3f}]"
    return f"{text:^16}"
