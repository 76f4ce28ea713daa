"""Disentanglement, completeness and informativeness by the importances of trees."""

from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from skident._compat import Interval, validate_params
from skident._math import disentanglement
from skident._random import draw_seed, generator, new_seed
from skident.metrics._factors import problem
from skident.metrics._infomec import PARAMETERS

_FOLDS, _TREES = 2, 3
# Fewest rows of a leaf, or a fiftieth of all if fewer: smaller ones fit noise,
# which then counts as importance.
_LEAF, _LEAVES = 10, 50
# Most rows that a tree is grown on.
_TREE_ROWS = 2000


class DCI(NamedTuple):
    """Disentanglement, completeness and informativeness of a code.

    Attributes
    ----------
    disentanglement : float
        Is each latent important to one factor only? In [0, 1].
    completeness : float
        Is one latent only important to each factor? In [0, 1].
    informativeness : float
        Mean over factors of the accuracy, or of the variance explained, on other rows.
    importances : ndarray of shape (n_factors, n_latents)
        Rows of sum 1; rows of zeros for factors that are predicted no better than by a
        guess.
    disentanglement_per_latent : ndarray of shape (n_latents,)
        0 for latents of no importance.
    completeness_per_factor : ndarray of shape (n_factors,)
        0 for factors that are not predicted.
    informativeness_per_factor : ndarray of shape (n_factors,)
        Accuracy of discrete factors, share of variance explained of continuous ones.
    chance_per_factor : ndarray of shape (n_factors,)
        What a guess would have: the frequency of the commonest class, or 0.
    """

    disentanglement: float
    completeness: float
    informativeness: float
    importances: np.ndarray
    disentanglement_per_latent: np.ndarray
    completeness_per_factor: np.ndarray
    informativeness_per_factor: np.ndarray
    chance_per_factor: np.ndarray


@validate_params(
    {
        **{
            name: PARAMETERS[name]
            for name in (
                "factors", "latents", "discrete_factors", "cv", "groups", "max_samples",
                "random_state",
            )
        },
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    },
    prefer_skip_nested_validation=True,
)  # fmt: skip
def dci_score(  # noqa: PLR0913 - every option by name
    factors,
    latents,
    *,
    discrete_factors="auto",
    n_estimators=20,
    cv=3,
    groups=None,
    max_samples=10_000,
    n_jobs=None,
    random_state=None,
):
    r"""Measure disentanglement, completeness and informativeness of a code.

    With the importance :math:`R_{jk}` of latent j, of D, in a forest that predicts
    factor k, of S,

    .. math::
        D_j = 1 - H_S\Big(\frac{R_{jk}}{\sum_k R_{jk}}\Big), \qquad
        C_k = 1 - H_D\Big(\frac{R_{jk}}{\sum_j R_{jk}}\Big),

    where :math:`H_n` is the entropy with logarithms of base n. Disentanglement is the
    mean of :math:`D_j` weighted by :math:`\sum_k R_{jk}`, completeness that of
    :math:`C_k`.

    Parameters
    ----------
    factors : array-like of shape (n_samples, n_factors) or (n_samples,)
        The true factors: numbers or labels, also as a data frame or an array of
        objects. None may be constant.
    latents : array-like of shape (n_samples, n_latents) or (n_samples,)
        The code of the same rows.
    discrete_factors : "auto", bool or array-like of bool, default="auto"
        Which factors are classes, as in :func:`infomec_score`.
    n_estimators : int, default=20
        Trees of a forest.
    cv : int, default=3
        Folds: importances and scores are means over forests fitted on the others.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together: folds keep them together.
    max_samples : int or None, default=10_000
        Most rows used, drawn at random; None uses all.
    n_jobs : int, default=None
        Number of threads of a forest; any number gives the same result.
    random_state : int, RandomState instance or None, default=None
        Seed of rows, folds and forests.

    Returns
    -------
    DCI
        Never NaN: what is of no importance counts 0; with one factor the
        disentanglement of a latent is 1 if it has any importance, and with one latent
        the completeness likewise.

    Raises
    ------
    ValueError
        As by :func:`infomec_score`.

    See Also
    --------
    infomec_score : By information and linear probes.

    Notes
    -----
    Trees are grown on at most 2000 rows each, choose among all latents at each split
    and have leaves of at least ten rows, or a fiftieth of all if those are fewer. A
    factor whose accuracy is not three standard errors above a guess (or of which no
    variance is explained) has importances of 0: those of such a forest are noise.
    Latents count by their ranks.

    References
    ----------
    .. [1] Eastwood, Williams, "A framework for the quantitative evaluation of
       disentangled representations", ICLR 2018, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import dci_score
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(4, size=(600, 2))
    >>> latents = factors + 0.1 * rng.standard_normal((600, 2))
    >>> found = dci_score(factors, latents, random_state=0)
    >>> round(found.disentanglement), round(found.completeness)
    (1, 1)
    >>> round(found.informativeness, 2)
    0.99
    """
    seed = draw_seed(random_state)
    rows = problem(
        factors, latents, discrete_factors=discrete_factors, discrete_latents=False,
        groups=groups, cv=cv, max_samples=max_samples, seed=seed,
    )  # fmt: skip
    features = rankdata(rows.latents, axis=0)
    rng = generator(seed, _TREES)
    forests = {"n_estimators": n_estimators, "n_jobs": n_jobs}
    importances, scores, chances = (
        np.array(part)
        for part in zip(
            *(
                _of_factor(features, factor, rows, cv, (seed, rng), forests)
                for factor in zip(rows.factors, rows.discrete, strict=True)
            ),
            strict=True,
        )
    )
    per_latent = disentanglement.concentration_by_entropy(importances.T)
    per_factor = disentanglement.concentration_by_entropy(importances)
    return DCI(
        _weighted(per_latent, importances.sum(axis=0)),
        float(per_factor.mean()),
        float(scores.mean()),
        importances,
        per_latent,
        per_factor,
        scores,
        chances,
    )


def _of_factor(features, factor, rows, cv, randomness, forests):
    """Return importances of all latents, the score of a forest and that of a guess."""
    values, discrete = factor
    seed, rng = randomness
    codes = values if discrete else np.zeros(len(values), dtype=np.intp)
    folds = rows.folds(codes, cv, seed, _FOLDS)
    kind = RandomForestClassifier if discrete else RandomForestRegressor
    importances = np.zeros(features.shape[1])
    predicted, guess = np.empty(len(values)), np.empty(len(values))
    for fold in range(cv):
        test = folds == fold
        forest = kind(
            **forests, max_features=None,
            min_samples_leaf=max(1, min(_LEAF, len(values) // _LEAVES)),
            max_samples=min(_TREE_ROWS, int((~test).sum())),
            random_state=new_seed(rng),
        ).fit(features[~test], values[~test])  # fmt: skip
        importances += forest.feature_importances_ / cv
        predicted[test] = forest.predict(features[test])
        guess[test] = values[~test].mean()
    if discrete:
        score = float((predicted == values).mean())
        chance = float(np.bincount(values).max() / len(values))
        least = chance + 3.0 * np.sqrt(chance * (1.0 - chance) / len(values))
    else:
        loss, null = ((values - p) ** 2 for p in (predicted, guess))
        score, chance, least = max(0.0, 1.0 - loss.sum() / null.sum()), 0.0, 0.0
    total = importances.sum()
    informed = score > least and total > 0
    return importances / total if informed else 0.0 * importances, score, chance


def _weighted(values, weights):
    """Return the weighted mean; 0 without any weight."""
    total = weights.sum()
    return float(values @ weights / total) if total > 0 else 0.0
