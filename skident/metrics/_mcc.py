"""Mean correlation coefficient of factors and the latents matched to them."""

from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from skident._compat import Interval, StrOptions, validate_params
from skident._math.correlation import (
    correlation_table,
    match,
    matched_worth,
    standard_columns,
)
from skident._math.probes import canonical_order, clip_outliers
from skident._random import draw_seed, generator
from skident.metrics._factors import FARTHEST, paired


class MCC(NamedTuple):
    """Mean correlation of the factors with the latents matched to them.

    Attributes
    ----------
    mcc : float
        The mean over all factors, in [0, 1].
    chance : float
        Its mean where rows of the latents are shuffled.
    matching : ndarray of shape (n_factors,), int
        Latent of each factor, -1 for none.
    per_factor : ndarray of shape (n_factors,)
        Absolute correlation with that latent, 0 without one.
    correlations : ndarray of shape (n_factors, n_latents)
        All absolute correlations.
    """

    mcc: float
    chance: float
    matching: np.ndarray
    per_factor: np.ndarray
    correlations: np.ndarray


@validate_params(
    {
        "factors": "no_validation",
        "latents": "no_validation",
        "method": [StrOptions({"pearson", "spearman"})],
        "n_permutations": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def mcc_score(
    factors, latents, *, method="pearson", n_permutations=20, random_state=None
):
    r"""Correlate each factor with a latent of its own.

    .. math:: \mathrm{MCC} = \frac1S \max_\pi \sum_{i=1}^{S} |\mathrm{corr}(s_i,
        z_{\pi(i)})|,

    the maximum over one-to-one matchings of factors and latents.

    Parameters
    ----------
    factors : array-like of shape (n_samples, n_factors) or (n_samples,)
        The true factors: numbers or labels, also as a data frame or an array of
        objects. None may be constant. Labels that are not numbers have no order, and
        the correlation ratio is taken: the square root of the share of a latent's
        variance that lies between classes.
    latents : array-like of shape (n_samples, n_latents) or (n_samples,)
        The code of the same rows, of any width.
    method : {"pearson", "spearman"}, default="pearson"
        Correlation of values, or of ranks.
    n_permutations : int, default=20
        Shuffles of the rows from which the chance level is taken.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffles.

    Returns
    -------
    MCC
        ``mcc`` and its ``chance`` level, which is far from 0 with few rows or many
        latents. The sum is divided by the number of factors: one that no latent is left
        for counts 0, as does the correlation with a constant latent.

    Raises
    ------
    ValueError
        For a constant factor, a missing label, NaN, infinity, other numbers of rows or
        fewer than 4, naming the column.

    See Also
    --------
    infomec_score : Without the assumption that latents are linear in factors.

    Notes
    -----
    All rows count. With "pearson", values that are ten times as far from the median as
    half of the rows, and in the farthest hundredth, are brought back to that distance,
    on both sides, so that one outlier changes little.

    References
    ----------
    .. [1] Hyvärinen, Morioka, "Unsupervised feature extraction by time-contrastive
       learning and nonlinear ICA", NeurIPS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import mcc_score
    >>> factors = np.random.default_rng(0).random((500, 2))
    >>> found = mcc_score(factors, -3 * factors[:, ::-1], random_state=0)
    >>> round(found.mcc, 6), found.matching.tolist()
    (1.0, [1, 0])
    >>> found.chance < 0.1
    True
    >>> round(mcc_score(factors, factors[:, 0], random_state=0).mcc, 2)
    0.5
    """
    columns, latents = paired(factors, latents)
    order = canonical_order(clip_outliers(latents))
    latents = _robust(latents[order], method)
    nominal = [column.nominal for column in columns]
    values = [
        column.values[order]
        if column.nominal
        else _robust(column.values[order, None], method)[:, 0]
        for column in columns
    ]
    values = [
        v.astype(np.intp) if n else v for v, n in zip(values, nominal, strict=True)
    ]
    standard = standard_columns(latents)
    table = correlation_table(values, nominal, standard)
    rng = generator(draw_seed(random_state))
    chance = [
        _best(correlation_table(values, nominal, rng.permutation(standard)))[1].mean()
        for _ in range(n_permutations)
    ]
    matching, per_factor = _best(table)
    return MCC(
        float(per_factor.mean()), float(np.mean(chance)), matching, per_factor, table
    )


def _robust(array, method):
    if method == "spearman":
        return rankdata(array, axis=0)
    return clip_outliers(array, FARTHEST)


def _best(table):
    matching = match(table)
    return matching, matched_worth(table, matching)
