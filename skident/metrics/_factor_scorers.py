"""Scores of transformers against known factors, for searches and cross-validation."""

import functools

from skident.metrics._dci import dci_score
from skident.metrics._gaps import mig_score, sap_score
from skident.metrics._infomec import infomec_score
from skident.metrics._mcc import mcc_score

_INFOMEC = ("infom", "infoe", "infoc")
# Name: function and, where it returns several, the field.
FACTOR_SCORES = {
    **{name: (infomec_score, name) for name in _INFOMEC},
    "disentanglement": (dci_score, "disentanglement"),
    "completeness": (dci_score, "completeness"),
    "informativeness": (dci_score, "informativeness"),
    "mig": (mig_score, None),
    "sap": (sap_score, None),
    "mcc": (mcc_score, "mcc"),
}


def factor_scorer(score="infom", **options):
    """Make a scorer of transformers that gets the true factors through ``y``.

    Parameters
    ----------
    score : str, default="infom"
        "infom", "infoe" or "infoc" of :func:`infomec_score`; "disentanglement",
        "completeness" or "informativeness" of :func:`dci_score`; "mig", "sap", "mcc".
    **options : dict
        Options of that function. ``random_state`` is 0 unless given, so that all
        candidates are scored alike.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``: the score of ``estimator.transform(X)`` against the
        factors ``y``; larger is better. For ``scoring=`` of a search; can be pickled.

    Raises
    ------
    ValueError
        For an unknown score.

    See Also
    --------
    infomec_scorer : Three scores at once.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skident import WhitenICA
    >>> from skident.datasets import make_nonlinear_mixture
    >>> from skident.metrics import factor_scorer
    >>> X, factors = make_nonlinear_mixture(600, 2, 2, random_state=0)
    >>> model = make_pipeline(StandardScaler(), WhitenICA(2, random_state=0))
    >>> search = GridSearchCV(
    ...     model,
    ...     {"whitenica__contrast": ["logcosh", "exp"]},
    ...     scoring=factor_scorer("mcc"),
    ...     cv=2,
    ... )
    >>> bool(search.fit(X, factors).best_score_ > 0.9)
    True
    """
    if score not in FACTOR_SCORES:
        raise ValueError(f"score must be one of {tuple(FACTOR_SCORES)}, got {score!r}.")
    return functools.partial(_score, name=score, options={"random_state": 0} | options)


def infomec_scorer(estimator, X, y):
    """Score a transformer by InfoM, InfoE and InfoC against the true factors.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``transform``; a pipeline too.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples, n_factors) or (n_samples,)
        Their true factors: numbers or labels.

    Returns
    -------
    dict
        ``infom``, ``infoe`` and ``infoc`` by :func:`infomec_score` with its defaults
        and ``random_state=0``. A search with ``scoring=infomec_scorer`` needs
        ``refit="infom"``, or another of the three.

    Raises
    ------
    TypeError
        If the estimator has no ``transform``.
    ValueError
        Without ``y``.

    See Also
    --------
    factor_scorer : One score, with options.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_validate
    >>> from skident import WhitenICA
    >>> from skident.metrics import infomec_scorer
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(4, size=(900, 2))
    >>> X = (factors + 0.1 * rng.standard_normal((900, 2))) @ [[2.0, 1.0], [1.0, 1.0]]
    >>> found = cross_validate(WhitenICA(), X, factors, scoring=infomec_scorer, cv=2)
    >>> bool(found["test_infoe"].min() > 0.9)
    True
    """
    result = infomec_score(*_factors_and_latents(estimator, X, y), random_state=0)
    return {name: getattr(result, name) for name in _INFOMEC}


def _score(estimator, X, y=None, *, name, options):
    function, field = FACTOR_SCORES[name]
    result = function(*_factors_and_latents(estimator, X, y), **options)
    return result if field is None else getattr(result, field)


def _factors_and_latents(estimator, X, y):
    if not hasattr(estimator, "transform"):
        raise TypeError(
            f"{estimator!r} has no transform: what is scored are its latents."
        )
    if y is None:
        raise ValueError("The true factors are needed: pass them as y to fit.")
    return y, estimator.transform(X)
