"""Dependence between two-valued columns: all of them, or two parts of them."""

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from skident._compat import Interval, StrOptions, validate_params
from skident._math import bipartite
from skident._math.information import Estimate, marginal_gain, split_halves
from skident._math.resampling import bootstrap_means, percentile_interval
from skident._random import draw_seed, generator
from skident._validation import as_group_codes, as_rows, describe_column

_FEWEST_ROWS = 4
_COMMON = {
    "X": "no_validation",
    "groups": "no_validation",
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    "n_resamples": [Interval(Integral, 1, None, closed="left")],
    "max_samples": [Interval(Integral, _FEWEST_ROWS, None, closed="left")],
    "random_state": ["random_state"],
}


class BipartiteInformation(NamedTuple):
    """Lower bound of the mutual information of two parts of the columns.

    Attributes
    ----------
    value : float
        The bound, nats.
    low, high : float
        Ends of its interval.
    partition : str
        Name of the cut: "half", "checkerboard", "random-max" or "given".
    first : ndarray of shape (n_features,), bool
        Columns of the first part; all others are the second.
    ceiling : float
        What the value can reach at most, nats: ln of the number of rows that each row
        is contrasted with.
    """

    value: float
    low: float
    high: float
    partition: str
    first: np.ndarray
    ceiling: float


@validate_params(_COMMON, prefer_skip_nested_validation=True)
def total_correlation(
    X,
    *,
    groups=None,
    confidence_level=0.95,
    n_resamples=1000,
    max_samples=10_000,
    random_state=None,
):
    r"""Estimate the total correlation of two-valued columns.

    .. math:: TC(x) = \sum_i H(x_i) - H(x) \ge 0,

    zero exactly if the columns are independent.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, all values in {-1, 1} or all in {0, 1}; at least 4.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together: halves and resamples keep them together.
    confidence_level : float, default=0.95
        Of the percentile interval.
    n_resamples : int, default=1000
        Number of bootstrap resamples of rows (or groups).
    max_samples : int, default=10_000
        Most rows used, drawn at random.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows, halves, simulated columns and resamples.

    Returns
    -------
    Estimate
        ``value``, ``low`` and ``high``, nats, none below 0.

    Raises
    ------
    ValueError
        For NaN, sparse data, fewer than 4 rows, or a value that is not one of two,
        naming column, row and value.

    See Also
    --------
    bipartite_information : Between two parts of the columns.
    skident.CondTotalCorrelation : What latents leave of it.

    Notes
    -----
    Held-out gain in log-likelihood of a pairwise chain (logistic regression of each
    column on those before it [1]_) over independent columns, less the gain on
    independent columns with the same means, which is what fitting the chain costs. It
    misses dependence that shows in no pair, and is low by what the chain cannot
    express: 0 to 5 per cent for spin models. Nothing is counted over configurations, so
    that the number of columns does not matter to memory.

    References
    ----------
    .. [1] B. J. Frey, "Graphical models for machine learning and digital
       communication", MIT Press (1998), section 3.1.

    Examples
    --------
    >>> from skident.datasets import make_curie_weiss
    >>> from skident.exact import curie_weiss
    >>> from skident.metrics import total_correlation
    >>> X, m = make_curie_weiss(5000, 16, temperature=1.0, random_state=0)
    >>> estimate = total_correlation(X, random_state=0)
    >>> round(estimate.value, 1), round(curie_weiss(16, 1.0).total_correlation, 1)
    (1.1, 1.2)
    """
    seed = draw_seed(random_state)
    bits, codes = _some_rows(X, groups, max_samples, seed)
    rng = generator(seed, 1)
    gain = marginal_gain(bits, split_halves(codes, rng), rng)
    return _estimate(gain, codes, confidence_level, n_resamples, rng)


@validate_params(
    {
        **_COMMON,
        "partition": [StrOptions(set(bipartite.CUTS)), "array-like"],
        "shape": [Integral, "array-like", None],
    },
    prefer_skip_nested_validation=True,
)
def bipartite_information(
    X,
    partition="half",
    *,
    shape=None,
    groups=None,
    confidence_level=0.95,
    n_resamples=1000,
    max_samples=10_000,
    random_state=None,
):
    r"""Bound the mutual information of two parts of two-valued columns from below.

    .. math:: I(A; B) = H(x_A) + H(x_B) - H(x)

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, all values in {-1, 1} or all in {0, 1}; at least 4, and 2 columns.
    partition : {"half", "checkerboard", "random-max"} or array-like, default="half"
        The cut. "half": the first ``n_features // 2`` columns against the rest.
        "checkerboard": sites of the lattice ``shape`` with an even sum of coordinates
        against those with an odd one. "random-max": of ten random cuts into equal parts
        the one with the most information on one half of the rows; the value is that
        on the other half. An array of bool marks the columns of the first part, one of
        ints lists them.
    shape : int or sequence of int, default=None
        Sides of the lattice that the columns are the sites of, in C order.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together: halves and resamples keep them together.
    confidence_level : float, default=0.95
        Of the percentile interval.
    n_resamples : int, default=1000
        Number of bootstrap resamples of rows (or groups).
    max_samples : int, default=10_000
        Most rows used, drawn at random.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows, halves, cuts and resamples.

    Returns
    -------
    BipartiteInformation
        ``value``, ``low`` and ``high``, nats, none below 0; the cut (``partition``,
        ``first``) and the ``ceiling`` of the value.

    Raises
    ------
    ValueError
        For NaN, sparse data, too few rows or columns, a value that is not one of two
        (naming column, row and value), or a cut that does not fit the columns.

    See Also
    --------
    total_correlation : Between all columns.

    Notes
    -----
    A chain of logistic regressions q(b | a) predicts the smaller part from the larger;
    with the rows that it was not fitted on,

    .. math:: I(A; B) \ge E \ln \frac{q(b | a)}{\frac1K \sum_{k=1}^K q(b | a_k)},

    where the K rows contain a itself [1]_. In expectation this is a lower bound for any
    q and K: what the chain cannot express, too few rows and K <= 2000 only lower it. It
    is never above ln K (``ceiling``): a value near it says that there is more.

    References
    ----------
    .. [1] Poole, Ozair, van den Oord, Alemi, Tucker, "On variational bounds of mutual
       information", ICML 2019, equation 10.

    Examples
    --------
    >>> from skident.datasets import make_curie_weiss
    >>> from skident.exact import curie_weiss
    >>> from skident.metrics import bipartite_information
    >>> X, m = make_curie_weiss(5000, 16, temperature=0.8, random_state=0)
    >>> bound = bipartite_information(X, random_state=0)
    >>> truth = curie_weiss(16, 0.8).bipartite_information
    >>> 0.9 * truth < bound.value < 1.1 * truth
    True
    """
    seed = draw_seed(random_state)
    bits, codes = _some_rows(X, groups, max_samples, seed, min_columns=2)
    cut = check_cut(partition, bits.shape[1], shape)
    return measure_cut(
        bits, codes, cut,
        confidence_level=confidence_level, n_resamples=n_resamples,
        rng=generator(seed, 1),
    )  # fmt: skip


def check_cut(partition, n_columns, shape):
    """Return the name of a cut and its first part; None if that is to be found."""
    name = partition if isinstance(partition, str) else "given"
    if name == "random-max" or (name != "given" and n_columns == 1):
        return name, None
    return name, bipartite.cut_columns(partition, n_columns, shape)


def measure_cut(bits, codes, cut, *, confidence_level, n_resamples, rng):
    """Return the information of a checked cut of {0, 1} rows in groups ``codes``.

    A single column has none.
    """
    name, first = cut
    if bits.shape[1] == 1:
        return BipartiteInformation(0.0, 0.0, 0.0, name, np.ones(1, bool), np.inf)
    if first is None:
        chosen = split_halves(codes, rng)
        halves = split_halves(codes[chosen], rng)
        first = bipartite.largest_random_cut(bits[chosen], halves, rng)
        bits, codes = bits[~chosen], codes[~chosen]
    halves = split_halves(codes, rng)
    gain = bipartite.cut_gain(bits, first, halves)
    ceiling = float(np.log(bipartite.fewest_contrasted(halves)))
    estimate = _estimate(gain, codes, confidence_level, n_resamples, rng)
    return BipartiteInformation(*estimate, name, first, ceiling)


def _estimate(gain, codes, confidence_level, n_resamples, rng):
    codes = np.unique(codes, return_inverse=True)[1]
    draws = bootstrap_means(gain[:, None], codes, n_resamples, rng)[:, 0]
    figures = gain.mean(), *percentile_interval(draws, confidence_level)
    return Estimate(*(max(0.0, float(figure)) for figure in figures))


def _some_rows(X, groups, max_samples, seed, *, min_columns=1):
    """Return at most ``max_samples`` rows as {0, 1}, with their groups."""
    names = getattr(X, "columns", None)
    array = as_rows(X, name="X", dtype=None, min_samples=_FEWEST_ROWS)
    if array.shape[1] < min_columns:
        raise ValueError(
            f"X has {array.shape[1]} column(s), and a cut needs at least {min_columns}."
        )
    low = -1 if (array == -1).any() else 0
    wrong = (array != low) & (array != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            "X must have values -1 and 1 only, or 0 and 1 only, but "
            f"{describe_column(column, names)}, row {row} is {array[row, column]}. "
            "Threshold real values first (for instance X > 0)."
        )
    codes = as_group_codes(groups, len(array))
    rows = generator(seed, 0).permutation(len(array))[:max_samples]
    return (array[rows] == 1).view(np.int8), codes[rows]
