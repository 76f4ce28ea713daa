"""HTML about alignment errors and about studies."""

import numpy as np

from skident import _page
from skident._conclusion import conclude_pair, conclude_study
from skident._study_text import notes as study_notes
from skident.plotting import AlignmentDisplay, StudyDisplay

SCORES = {
    "infom": "InfoM",
    "infoe": "InfoE",
    "infoc": "InfoC",
    "disentanglement": "DCI disentanglement",
    "completeness": "DCI completeness",
    "informativeness": "DCI informativeness",
    "mcc": "MCC",
}


def describe_errors(errors, conclusion=None):
    """Return HTML about two representations.

    Parameters
    ----------
    errors : AlignmentErrors
    conclusion : Conclusion, optional
        What follows from them, if more is known than the errors.

    Returns
    -------
    str
    """
    conclusion = conclude_pair(errors) if conclusion is None else conclusion
    parts = [
        _page.verdict(conclusion.headline),
        _page.bullets(conclusion.reasons),
        _page.table(*_error_table(errors), caption="Errors"),
        _page.bullets(notes(errors)),
        _page.picture(
            lambda: AlignmentDisplay.from_errors(errors),
            "Alignment errors by transformation",
        ),
    ]
    if errors.expected_error is not None:
        parts.append(
            _page.picture(
                lambda: AlignmentDisplay.from_errors(errors, kind="learning_curve"),
                "Alignment errors against the number of rows",
            )
        )
    return "".join(parts)


def notes(errors):
    """Return what is printed below the table of errors, as a list."""
    return str(errors).splitlines()[1 + len(errors.transformations) :]


def _error_table(errors):
    head = ["", "error", "interval", "first to second", "second to first", "chance"]
    columns = [
        errors.transformations,
        map(_figure, errors.error),
        map(_interval, errors.interval),
        map(_figure, errors.forward),
        map(_figure, errors.backward),
        map(_figure, errors.chance),
    ]
    if errors.expected_error is not None:
        head.append("with any number of rows")
        columns.append(map(_figure, errors.expected_error))
    return head, list(zip(*columns, strict=True))


def describe_study(study):
    """Return HTML about several representations.

    Parameters
    ----------
    study : IdentifiabilityStudy
        Fitted.

    Returns
    -------
    str
    """
    conclusion = conclude_study(study)
    table = study.table_
    head = ["", "error", "interval over rows", "interval over runs", "chance"]
    columns = [
        table["transformation"],
        map(_figure, table["error"]),
        _intervals(table, "lower", "upper"),
        _intervals(table, "run_lower", "run_upper"),
        map(_figure, table["chance"]),
    ]
    if "run_lower" not in table:
        del head[3], columns[3]
    parts = [
        _page.verdict(conclusion.headline),
        _page.bullets(conclusion.reasons),
        _page.table(head, list(zip(*columns, strict=True)), caption="Errors"),
        _page.bullets(_study_notes(study)),
        _page.picture(
            lambda: StudyDisplay.from_estimator(study),
            "Errors by transformation, errors of all pairs, and stable components",
        ),
        _factors(study.factor_table_),
        _page.table(*_run_table(study), caption="Runs"),
        _page.folded("All pairs", _page.table(*_pair_table(study), caption="Pairs")),
    ]
    if study.estimator is not None:
        parts.append(_page.tag("pre", repr(study)))
    return "".join(parts)


def _study_notes(study):
    size = (
        f"{len(study.run_table_['run'])} runs, {len(study.embedding_):,} rows; errors "
        f"are in units of the {study.diameter} diameter, intervals of level "
        f"{study.confidence_level:.4g}"
    )
    return [size, *study_notes(study)]


def _factors(table):
    if table is None:
        return ""
    rows = [
        (
            SCORES.get(name, name),
            _figure(table["value"][k]),
            _interval((table["lower"][k], table["upper"][k])),
            _figure(table["value_ica"][k]),
            _interval((table["lower_ica"][k], table["upper_ica"][k])),
        )
        for k, name in enumerate(table["score"])
    ]
    head = ("", "as it is", "interval over runs", "after ICA", "interval over runs")
    return _page.table(head, rows, caption="Against the factors")


def _run_table(study):
    runs, *columns = study.run_table_.values()
    names = {"error": "error to the others", "lipschitz": "bi-Lipschitz L"} | SCORES
    names |= {f"{name}_ica": f"{label} after ICA" for name, label in SCORES.items()}
    labels = [names.get(name, name) for name in list(study.run_table_)[1:]]
    head = ["", *(f"run {run}" for run in runs)]
    return head, [
        (label, *map(_figure, column))
        for label, column in zip(labels, columns, strict=True)
    ]


def _pair_table(study):
    first, second, *others = study.pair_table_.values()
    head = ["pair", *list(study.pair_table_)[2:]]
    head = ["ICA efficiency" if name == "ica_efficiency" else name for name in head]
    rows = zip(first, second, *others, strict=True)
    return head, [(f"{i} and {j}", *map(_figure, row)) for i, j, *row in rows]


def score_table(scores, names):
    """Return head and rows of a table of scores against known factors.

    Parameters
    ----------
    scores : dict of list
        By score, one entry a representation, and the same with "_ica" behind its name.
    names : list of str
        Of the representations.

    Returns
    -------
    head : list of str
    rows : list of tuple of str
    """
    head = ["", *(f"{name}{end}" for name in names for end in ("", ", after ICA"))]
    rows = []
    for score, label in SCORES.items():
        pairs = zip(scores[score], scores[f"{score}_ica"], strict=True)
        rows.append((label, *(_figure(value) for pair in pairs for value in pair)))
    return head, rows


def error_comparison(several):
    """Return head and rows of a table that compares alignment errors, or studies.

    Parameters
    ----------
    several : dict
        ``AlignmentErrors`` or fitted ``IdentifiabilityStudy`` by heading.

    Returns
    -------
    head : list of str
    rows : list of tuple of str
    """
    columns = {}
    for heading, one in several.items():
        if hasattr(one, "table_"):
            names, error = one.table_["transformation"], one.table_["error"]
            efficiency = one.ica_efficiency_
        else:
            names, error, efficiency = (
                one.transformations,
                one.error,
                one.ica_efficiency,
            )
        columns[str(heading)] = dict(zip(names, map(_figure, error), strict=True))
        columns[str(heading)]["ICA efficiency"] = _figure(efficiency)
    head = list(dict.fromkeys(name for column in columns.values() for name in column))
    head.append(head.pop(head.index("ICA efficiency")))
    rows = [
        (heading, *(column.get(name, "") for name in head))
        for heading, column in columns.items()
    ]
    return ["", *head], rows


def _figure(value):
    return "" if value is None else f"{value:.3f}"


def _interval(ends):
    low, high = ends
    return f"{low:.3f} to {high:.3f}"


def _intervals(table, low, high):
    ends = (table.get(low, ()), table.get(high, ()))
    return list(map(_interval, zip(*np.asarray(ends), strict=True)))
