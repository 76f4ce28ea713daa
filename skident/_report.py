"""One self-contained HTML page about something fitted."""

import base64
import functools
import html
import io
from pathlib import Path

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skident import __version__
from skident._cond_total_correlation import CondTotalCorrelation
from skident.plotting import TotalCorrelationDisplay
from skident.plotting._panels import import_matplotlib, percent

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; }
th, td { padding: .25rem .8rem .25rem 0; text-align: left;
         border-bottom: 1px solid #ddd; }
img { max-width: 100%; }
pre { background: #f4f4f4; padding: .8rem; overflow-x: auto; }
.verdict { font-size: 1.4rem; font-weight: 600; }
footer { color: #6e6e6e; margin-top: 2rem; }
"""
_WORST_PAIRS = 5


def report(fitted, path, *, title="skident report"):
    """Write one self-contained HTML page about a litmus test, or about several.

    Verdict, reasons, figures with their intervals, a picture of what the latents leave
    and the pairs of columns where they leave most. The page holds its pictures and
    loads nothing; equal fits give equal pages.

    Parameters
    ----------
    fitted : CondTotalCorrelation or dict
        Fitted; or several of them by heading (for instance by number of latents), which
        are compared in a table first.
    path : str or pathlib.Path
        File to write; one that is there is replaced.
    title : str, default="skident report"
        Title of the page.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    TypeError
        For something that there is no page for.
    sklearn.exceptions.NotFittedError
        For something that is not fitted.
    OSError
        If the file cannot be written.

    See Also
    --------
    CondTotalCorrelation : The litmus test.

    Notes
    -----
    Without matplotlib the page says how to get the picture in its place.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import skident
    >>> from skident.datasets import make_curie_weiss
    >>> X, m = make_curie_weiss(400, 8, temperature=1.0, random_state=0)
    >>> model = skident.MeanFieldVAE(1, max_epochs=30)
    >>> test = skident.CondTotalCorrelation(model, n_resamples=100, random_state=0)
    >>> test = test.fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = skident.report(test, Path(folder) / "litmus.html").read_text()
    >>> test.verdict_ in page
    True
    """
    several = fitted if isinstance(fitted, dict) else {None: fitted}
    if not several:
        raise ValueError("report needs something fitted, got an empty dict.")
    sections = []
    for heading, one in several.items():
        top = "" if heading is None else _tag("h2", heading)
        sections.append(f"<section>\n{top}{_describe(one)}</section>\n")
    if len(several) > 1:
        sections.insert(0, _table(*litmus_table(several), caption="Compared"))
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"{_tag('title', title)}<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"{_tag('h1', title)}{''.join(sections)}"
        f"{_tag('footer', f'skident {__version__}')}</body>\n</html>\n"
    )
    path = Path(path)
    path.write_text(page, encoding="utf-8")
    return path


def litmus_table(tests):
    """Return head and rows of a table that compares litmus tests.

    Parameters
    ----------
    tests : dict
        Fitted ``CondTotalCorrelation`` by name.

    Returns
    -------
    head : tuple of str
    rows : list of tuple of str
    """
    head = ("", "unexplained u", "TC(x|z), nats", "p", "R, nats", "capacity", "verdict")
    rows = [
        (
            str(name),
            percent(test.unexplained_fraction_),
            f"{test.total_correlation_.value:.3g}",
            f"{test.pvalue_:.2g}",
            f"{test.rate_:.3g}",
            test.capacity_,
            test.verdict_,
        )
        for name, test in tests.items()
    ]
    return head, rows


@functools.singledispatch
def _describe(fitted):
    """Return the HTML about one fitted object."""
    raise TypeError(
        f"There is no report of {type(fitted).__name__}: give a fitted "
        "CondTotalCorrelation, or a dict of several by heading."
    )


@_describe.register
def _(fitted: CondTotalCorrelation):
    check_is_fitted(fitted)
    parts = [
        f'<p class="verdict">{html.escape(fitted.verdict_)}</p>\n',
        _list(fitted.reasons_),
        _table(("", "value", "interval"), _figures(fitted), caption="Figures"),
        _picture(fitted),
        _table(
            ("columns", "", "residual correlation"),
            _worst_pairs(fitted),
            caption="Where most is left",
        ),
        _tag("pre", repr(fitted)),
    ]
    return "".join(parts)


def _figures(test):
    """Rows of (name, value, interval) of a litmus test."""
    information = test.bipartite_information_
    estimates = {
        "TC(x|z), left by the latents, nats": test.total_correlation_,
        "TC(x), to be explained, nats": test.marginal_total_correlation_,
        "Unexplained fraction u": test.unexplained_fraction_,
        "Upper bound -ELBO - H(p), nats": test.upper_bound_,
        "Upper bound of u": test.unexplained_bound_,
        "TC(x) from the entropy, nats": test.known_total_correlation_,
        f"I_bip ({information.partition}), at least, nats": information[:3],
    }
    rows = [
        (name, f"{e[0]:.4g}", f"{e[1]:.4g} to {e[2]:.4g}")
        for name, e in estimates.items()
        if e is not None
    ]
    plain = {
        "Rate R, nats": test.rate_,
        "p-value of what is left": test.pvalue_,
        "p-value of independent columns": test.marginal_pvalue_,
    }
    rows += [(name, f"{value:.4g}", "") for name, value in plain.items()]
    return [*rows, ("Capacity of the latents", test.capacity_, "")]


def _worst_pairs(test):
    """Rows of (column, column, residual correlation), the largest first."""
    covariance = test.residual_covariance_
    if len(covariance) < 2:
        return []
    correlation = TotalCorrelationDisplay(covariance).residual_correlation_
    names = getattr(test, "feature_names_in_", range(len(covariance)))
    first, second = np.triu_indices(len(covariance), 1)
    values = correlation[first, second]
    order = np.argsort(-np.abs(values), kind="stable")[:_WORST_PAIRS]
    return [
        (str(names[first[k]]), str(names[second[k]]), f"{values[k]:+.3f}")
        for k in order
    ]


def _picture(test):
    """Residual correlations as an image, or a line that says why there is none."""
    if test.n_features_in_ < 2:
        return ""
    try:
        pyplot = import_matplotlib()
    except ImportError as error:
        return _tag("p", error)
    display = TotalCorrelationDisplay.from_estimator(test, shape=test.shape)
    buffer = io.BytesIO()
    # Without the name of the software that drew it: equal fits give equal pages.
    display.figure_.savefig(buffer, dpi=100, metadata={"Software": None})
    pyplot.close(display.figure_)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="Residual correlations" src="data:image/png;base64,{data}">\n'


def _tag(name, text):
    return f"<{name}>{html.escape(str(text))}</{name}>\n"


def _list(items):
    return f"<ul>\n{''.join(_tag('li', item) for item in items)}</ul>\n"


def _table(head, rows, *, caption):
    if not rows:
        return ""
    lines = [
        f"<tr>{''.join(_tag(kind, cell).strip() for cell in cells)}</tr>\n"
        for kind, cells in [("th", head), *(("td", row) for row in rows)]
    ]
    return f"<table>\n{_tag('caption', caption)}{''.join(lines)}</table>\n"
