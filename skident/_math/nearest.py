"""Mutual information of two columns, in nats: from counts and from nearest neighbours.

Codes are integers 0, 1, ... of classes that all occur. Estimates are neither clipped
nor corrected. One neighbour rule serves all: with r_i just below the distance from row
i to its k-th neighbour, every count is of rows within r_i, row i among them. In
continuous data that is the strict rule of Ross (2014) and Kraskov et al. (2004); where
values are repeated it counts the repeats on both sides alike (as Gao et al., 2017).
"""

from typing import NamedTuple

import numpy as np
from scipy import spatial, special, stats

# A radius so much below the distance excludes what is at that distance to rounding.
_JUST_BELOW = 1.0 - 1e-10


class SortedColumn(NamedTuple):
    """A column in ascending order.

    Attributes
    ----------
    order : ndarray of int of shape (n_samples,)
        Row of each value.
    values : ndarray of shape (n_samples,)
        The values.
    """

    order: np.ndarray
    values: np.ndarray


def sort_column(values):
    """Return a column of numbers in ascending order."""
    order = np.argsort(values, kind="stable")
    return SortedColumn(order, values[order])


def entropy(codes):
    """Return the entropy of codes by their frequencies, nats."""
    return float(special.entr(np.bincount(codes) / len(codes)).sum())


def plug_in_information(first, second):
    """Return the mutual information of the frequencies of pairs of codes, nats.

    Parameters
    ----------
    first, second : ndarray of int of shape (n_samples,)
        Codes.

    Returns
    -------
    float
    """
    pairs = first.astype(np.int64) * (second.max() + 1) + second
    counts = np.unique(pairs, return_counts=True)[1]
    joint = special.entr(counts / len(pairs)).sum()
    return entropy(first) + entropy(second) - float(joint)


def ross_information(codes, column, n_neighbors, *, exact=False):
    """Return the information between codes and a continuous column, nats.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Class of each row; classes of one row are left out.
    column : SortedColumn
        The continuous one.
    n_neighbors : int
        k; in a class of fewer rows all others are neighbours.
    exact : bool
        For columns without repeated values: strictly the rule of [1]_, to the last
        bit of the distance.

    Returns
    -------
    float
        0 if each class has one row.

    References
    ----------
    .. [1] B. C. Ross, "Mutual information between discrete and continuous data sets",
       PLoS ONE 9(2): e87357 (2014).
    """
    kept = (np.bincount(codes) > 1)[codes[column.order]]
    values, classes = column.values[kept], codes[column.order[kept]]
    if not len(values):
        return 0.0
    by_class = np.argsort(classes, kind="stable")
    x = values[by_class]
    sizes = np.bincount(classes)
    sizes = sizes[sizes > 1]
    distance = _class_distances(x, sizes, n_neighbors)
    if exact:
        near = np.repeat(np.minimum(n_neighbors, sizes - 1), sizes)
        among = _count_below(values, x, distance)
    else:
        radius = distance * _JUST_BELOW
        stops = np.cumsum(sizes)
        near = np.concatenate([
            _count_within(x[stop - size : stop], *part)
            for stop, size, *part in zip(
                stops, sizes, *(np.split(a, stops[:-1]) for a in (x, radius)),
                strict=True,
            )
        ])  # fmt: skip
        among = _count_within(values, x, radius)
    psi = special.digamma(np.arange(len(values) + 1))
    of_classes = (sizes * psi[sizes]).sum() / len(values)
    return float(psi[-1] + psi[near].mean() - of_classes - psi[among].mean())


def kraskov_information(first, second, n_neighbors):
    """Return the information between two continuous columns, nats.

    Parameters
    ----------
    first, second : SortedColumn
        The columns, which count by their ranks alone.
    n_neighbors : int
        k, less than the number of rows.

    Returns
    -------
    float

    References
    ----------
    .. [1] Kraskov, Stögbauer, Grassberger, "Estimating mutual information", Phys. Rev.
       E 69, 066138 (2004), equation 8.
    """
    points = np.stack([_ranks(first), _ranks(second)], axis=1)
    tree = spatial.cKDTree(points)
    distance = tree.query(points, [n_neighbors + 1], p=np.inf)[0][:, 0]
    radius = distance * _JUST_BELOW
    near = tree.query_ball_point(points, radius, p=np.inf, return_length=True)
    psi = special.digamma(np.arange(len(points) + 1))
    sides = [_count_within(np.sort(side), side, radius) for side in points.T]
    return float(psi[-1] + (psi[near] - psi[sides[0]] - psi[sides[1]]).mean())


def _ranks(column):
    """Return the rank of each row; equal values share the mean of theirs."""
    found = np.empty(len(column.values))
    found[column.order] = stats.rankdata(column.values)
    return found


def _class_distances(x, sizes, n_neighbors):
    """Return the distance of each value to its k-th neighbour in its class.

    Parameters
    ----------
    x : ndarray of shape (n_samples,)
        Class after class, ascending in each.
    sizes : ndarray of int of shape (n_classes,)
        Rows of each class, more than 1.
    n_neighbors : int
        k.

    Notes
    -----
    The k neighbours of a value are k + 1 consecutive values that hold it: of all such
    windows, the one whose farther end is nearest.
    """
    stops = np.cumsum(sizes)
    first, last = np.repeat(x[stops - sizes], sizes), np.repeat(x[stops - 1], sizes)
    # All others of a class are neighbours where there are no more than k.
    farthest = np.maximum(x - first, last - x)
    windows = len(x) - n_neighbors
    if windows <= 0:
        return farthest
    classes = np.repeat(np.arange(len(sizes)), sizes)
    inside = classes[:windows] == classes[n_neighbors:]
    low = np.where(inside, x[:windows], -np.inf)
    high = np.where(inside, x[n_neighbors:], np.inf)
    distance = np.full(len(x), np.inf)
    for place in range(n_neighbors + 1):
        value = x[place : place + windows]
        best = distance[place : place + windows]
        np.minimum(best, np.maximum(value - low, high - value), out=best)
    return np.where(np.repeat(sizes, sizes) > n_neighbors, distance, farthest)


def _count_within(values, x, radius):
    """Return how many of the ascending ``values`` are within ``radius`` of each x."""
    high = np.searchsorted(values, x + radius, "right")
    return high - np.searchsorted(values, x - radius, "left")


def _count_below(values, x, distance):
    """Return how many of the ascending ``values`` are nearer to x than ``distance``.

    Sums of x and the distance are rounded, so the bounds are moved until differences,
    which are what the distance is made of, agree. At a distance of 0 x itself counts.
    """
    n = len(values)
    padded = np.concatenate([[-np.inf], values, [np.inf]])
    stop = np.searchsorted(values, x + distance, "left")
    start = np.searchsorted(values, x - distance, "right")
    while (short := padded[stop + 1] - x < distance).any():
        stop = np.minimum(stop + short, n)
    while (over := padded[stop] - x >= distance).any():
        stop = stop - over
    while (short := x - padded[start] < distance).any():
        start = start - short
    while (over := x - padded[start + 1] >= distance).any():
        start = start + over
    return np.maximum(stop - start, 1)
