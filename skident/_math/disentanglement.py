"""From a table of factors by latents to one number: how axis-aligned a code is."""

from typing import NamedTuple

import numpy as np
from scipy import special

from skident._math.nearest import (
    SortedColumn,
    entropy,
    kraskov_information,
    plug_in_information,
    ross_information,
    sort_column,
)

# Chance that any pair of a table of independent columns counts as dependent.
_ERROR_RATE = 0.01
# The null of nearest neighbours has a skewness of 1 for 60 rows, less for more. A gamma
# distribution of this shape has that skewness.
_NULL_SHAPE = 4.0
# What is left of a scale by rounding.
_NOTHING = 1e-12


class Column(NamedTuple):
    """A factor or a latent.

    Attributes
    ----------
    discrete : bool
        Whether values are classes.
    codes : ndarray of int of shape (n_samples,) or None
        Classes, if discrete.
    values : SortedColumn or None
        Numbers, if not.
    """

    discrete: bool
    codes: np.ndarray | None
    values: SortedColumn | None


class Dependence(NamedTuple):
    """Mutual information of each factor with each latent.

    Attributes
    ----------
    raw : ndarray of shape (n_factors, n_latents)
        Estimates, nats, neither clipped nor corrected.
    bias : ndarray of shape (n_factors, n_latents)
        Mean estimate between independent rows; 0 without shuffles.
    noise : ndarray of shape (n_factors, n_latents)
        Standard deviation of that; 0 without shuffles.
    n_shuffles : int
        How often rows were shuffled.
    """

    raw: np.ndarray
    bias: np.ndarray
    noise: np.ndarray
    n_shuffles: int


def as_column(array, discrete):
    """Return numbers or codes as a :class:`Column`."""
    if discrete:
        return Column(True, array, None)
    return Column(False, None, sort_column(array))


def quantile_codes(values, n_bins):
    """Return a continuous column as classes of about equal size.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Equal values share a class.
    n_bins : int
        Most classes.

    Returns
    -------
    ndarray of int of shape (n_samples,)
    """
    ordered = np.sort(values)
    edges = ordered[(np.arange(1, n_bins) * len(values)) // n_bins]
    codes = np.searchsorted(np.unique(edges), values, "right")
    return np.unique(codes, return_inverse=True)[1].reshape(-1)


def information(first, second, n_neighbors, *, exact=False):
    """Return the mutual information of two columns by the estimator of their kinds.

    Parameters
    ----------
    first, second : Column
        Two discrete ones: by frequencies; one: Ross (2014); none: Kraskov et al.
    n_neighbors : int
        For the last two.
    exact : bool
        As in :func:`skident._math.nearest.ross_information`.

    Returns
    -------
    float
        Nats, neither clipped nor corrected.
    """
    if first.discrete and second.discrete:
        return plug_in_information(first.codes, second.codes)
    if first.discrete:
        return ross_information(first.codes, second.values, n_neighbors, exact=exact)
    if second.discrete:
        return ross_information(second.codes, first.values, n_neighbors, exact=exact)
    return kraskov_information(first.values, second.values, n_neighbors)


def dependence(factors, latents, n_neighbors, shuffles=(), *, exact=False):
    """Return the information of all pairs, and what independent rows would give.

    Parameters
    ----------
    factors, latents : list of Column
        Of the same rows.
    n_neighbors : int
        As for :func:`information`.
    shuffles : sequence of ndarray of int of shape (n_samples,)
        Orders of rows, at least two if any, in which the factors are independent of
        the latents.
    exact : bool
        As for :func:`information`.

    Returns
    -------
    Dependence
    """

    def table(columns):
        return np.array([
            [information(f, z, n_neighbors, exact=exact) for z in latents]
            for f in columns
        ])  # fmt: skip

    raw = table(factors)
    if not len(shuffles):
        return Dependence(raw, np.zeros_like(raw), np.zeros_like(raw), 0)
    null = np.array([table([_shuffled(f, s) for f in factors]) for s in shuffles])
    return Dependence(raw, null.mean(axis=0), null.std(axis=0, ddof=1), len(null))


def corrected(dependence, factors, latents):
    """Return information less its bias, within [0, the entropy of either].

    Parameters
    ----------
    dependence : Dependence
        Of these columns.
    factors, latents : list of Column
        The columns.

    Returns
    -------
    ndarray of shape (n_factors, n_latents)
    """
    gain = dependence.raw - dependence.bias
    most = [[_ceiling(f, z) for z in latents] for f in factors]
    return np.clip(gain, 0.0, most)


def least_gain(dependence):
    """Return the information above its bias from which a pair counts as dependent.

    A quantile of the null such that in a table of independent columns none counts in 99
    of 100 cases. Its noise is that of the pair, or that of all latents with the factor
    if that is larger: a few shuffles tell little of a single pair.

    Parameters
    ----------
    dependence : Dependence
        With its null.

    Returns
    -------
    ndarray of shape (n_factors, n_latents)
    """
    pooled = np.sqrt((dependence.noise**2).mean(axis=1, keepdims=True))
    freedom = (dependence.n_shuffles - 1) * dependence.raw.shape[1]
    p = 1.0 - _ERROR_RATE / dependence.raw.size
    quantile = special.gammaincinv(_NULL_SHAPE, p) / np.sqrt(_NULL_SHAPE)
    quantile -= np.sqrt(_NULL_SHAPE)
    # Noise and bias are estimates themselves.
    quantile *= special.stdtrit(freedom, p) / special.ndtri(p)
    quantile *= np.sqrt(1.0 + 1.0 / dependence.n_shuffles)
    return quantile * np.maximum(pooled, dependence.noise)


def normalised(dependence, factors):
    """Return the share of what a latent could tell of each factor, in [0, 1].

    The corrected information over the entropy of the factor less the same bias, as in
    adjusted mutual information. Latents without a significant one are 0, and so are
    factors; small ones of the others are kept, as those of a mixed code are many.

    Parameters
    ----------
    dependence : Dependence
        With its null.
    factors : list of Column
        Discrete ones.

    Returns
    -------
    ndarray of shape (n_factors, n_latents)
    """
    gain = dependence.raw - dependence.bias
    room = np.array([[entropy(f.codes)] for f in factors]) - dependence.bias
    counts = (gain > least_gain(dependence)) & (room > _NOTHING) & (gain > 0)
    counts = counts.any(axis=0) & counts.any(axis=1, keepdims=True) & (room > _NOTHING)
    return np.where(counts, np.clip(gain / np.where(counts, room, 1.0), 0.0, 1.0), 0.0)


def concentration(table):
    """Return, for each row, the largest entry over the sum, from 0 (even) to 1 (one).

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        Not negative.

    Returns
    -------
    ndarray of shape (n_rows,)
        0 for rows of zeros; with one column 1 for the others.
    """
    n_columns = table.shape[1]
    if n_columns == 0:
        return np.zeros(len(table))
    total = table.sum(axis=1)
    informed = total > 0
    if n_columns == 1:
        return informed.astype(float)
    ratio = table.max(axis=1) / np.where(informed, total, 1.0)
    ratio = np.where(informed, ratio, 1.0 / n_columns)
    return (ratio - 1.0 / n_columns) / (1.0 - 1.0 / n_columns)


def concentration_by_entropy(table):
    """Return 1 - H(row / sum) / ln(n_columns) for each row.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        Not negative.

    Returns
    -------
    ndarray of shape (n_rows,)
        0 for rows of zeros; with one column 1 for the others.
    """
    total = table.sum(axis=1, keepdims=True)
    informed = total[:, 0] > 0
    if table.shape[1] == 1:
        return informed.astype(float)
    shares = table / np.where(total > 0, total, 1.0)
    spread = special.entr(shares).sum(axis=1) / np.log(table.shape[1])
    return np.where(informed, np.clip(1.0 - spread, 0.0, 1.0), 0.0)


def top_gaps(table, nothing=0.0):
    """Return the largest entry of each row less the second.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        Scores.
    nothing : float or ndarray of shape (n_rows,)
        The second where there is one column.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    if table.shape[1] == 1:
        return table[:, 0] - nothing
    second, first = np.partition(table, -2, axis=1)[:, -2:].T
    return first - second


def _shuffled(column, order):
    """Return a column whose row k has the value of row ``order[k]``."""
    if column.discrete:
        return column._replace(codes=column.codes[order])
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    sorted_column = column.values
    return column._replace(
        values=SortedColumn(place[sorted_column.order], sorted_column.values)
    )


def _ceiling(first, second):
    """Return the most that two columns can share: the entropy of a discrete one."""
    return min(
        (entropy(c.codes) for c in (first, second) if c.discrete), default=np.inf
    )
