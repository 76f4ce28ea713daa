"""One self-contained HTML page about something fitted."""

import functools
from pathlib import Path

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skident import _page
from skident._alignment_pages import describe_errors, describe_study, error_comparison
from skident._cond_total_correlation import CondTotalCorrelation
from skident._identifiability_study import IdentifiabilityStudy
from skident.metrics import AlignmentErrors
from skident.plotting import TotalCorrelationDisplay
from skident.plotting._panels import percent

_WORST_PAIRS = 5


def report(fitted, path, *, title="skident report"):
    """Write one self-contained HTML page about something fitted, or about several.

    What it found in words, the reasons, the figures with their intervals, and pictures.
    The page holds its pictures and loads nothing; equal fits give equal pages.

    Parameters
    ----------
    fitted : CondTotalCorrelation, IdentifiabilityStudy, AlignmentErrors or dict
        Fitted; or several of them by heading (for instance by number of latents). Those
        of one kind are compared in a table first.
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
    IdentifiabilityStudy : Several trainings of a model.
    skident.metrics.alignment_errors : Two representations.

    Notes
    -----
    Without matplotlib the page says how to get the picture in its place.

    Representations "may be interpreted" by the rules of the user guide ("How to read
    the result"): an error is far below chance under half of it, and a group of maps is
    as good as a larger one within a tenth of chance.

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
    sections = [
        _page.section(heading, describe(one)) for heading, one in several.items()
    ]
    if len(several) > 1:
        sections.insert(0, _compare(several))
    path = Path(path)
    path.write_text(_page.page(title, sections), encoding="utf-8")
    return path


def _compare(several):
    """Return a table of several things of one kind; nothing for several kinds."""
    for kind, compare in _COMPARISONS.items():
        if all(isinstance(one, kind) for one in several.values()):
            return _page.table(*compare(several), caption="Compared")
    return ""


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
def describe(fitted):
    """Return the HTML about one fitted object."""
    raise TypeError(
        f"There is no report of {type(fitted).__name__}: give a fitted "
        "CondTotalCorrelation or IdentifiabilityStudy, AlignmentErrors, or a dict of "
        "several by heading."
    )


@describe.register
def _(fitted: IdentifiabilityStudy):
    check_is_fitted(fitted)
    return describe_study(fitted)


@describe.register
def _(fitted: AlignmentErrors):
    return describe_errors(fitted)


@describe.register
def _(fitted: CondTotalCorrelation):
    check_is_fitted(fitted)
    parts = [
        _page.verdict(fitted.verdict_),
        _page.bullets(fitted.reasons_),
        _page.table(("", "value", "interval"), _figures(fitted), caption="Figures"),
        _picture(fitted),
        _page.table(
            ("columns", "", "residual correlation"),
            _worst_pairs(fitted),
            caption="Where most is left",
        ),
        _page.tag("pre", repr(fitted)),
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
    return _page.picture(
        lambda: TotalCorrelationDisplay.from_estimator(test, shape=test.shape),
        "Residual correlations",
    )


_COMPARISONS = {
    CondTotalCorrelation: litmus_table,
    IdentifiabilityStudy: error_comparison,
    AlignmentErrors: error_comparison,
}
