"""The Hopfield model, summed over its classes of sites with equal columns.

The weight of a configuration depends on its overlaps v = patterns @ s alone, and these
on how many spins of each class point up. There are two ways to enumerate: by the
numbers of all classes, or, where there are more classes than patterns, by *levels*,
the numbers of ups among the sites that bear given bits, which determine v as well and
for which the configurations are counted class by class (see
:mod:`skident._kernels.hopfield_exact`). Either way half of them is enough: the other
half follows by turning all spins.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import comb, gammaln

from skident._kernels.hopfield_exact import fill_slab

# With more sites the number of configurations overflows.
MOST_SITES = 1000
# No table of more entries than this can be.
_COUNTABLE = 1e12
# Terms of one block: it should stay in the cache.
_BLOCK = 1 << 13


class Classes(NamedTuple):
    """Sites grouped by their columns, after ``gauge`` has made the first pattern ones.

    Attributes
    ----------
    columns : int64 ndarray of shape (n_patterns, n_classes)
        The distinct columns.
    sizes : int64 ndarray of shape (n_classes,)
        How many sites have them, ascending.
    sites : int64 ndarray of shape (n_sites,)
        The sites, class by class.
    gauge : int8 ndarray of shape (n_sites,)
        The first pattern: by it spins and patterns are multiplied.
    """

    columns: np.ndarray
    sizes: np.ndarray
    sites: np.ndarray
    gauge: np.ndarray


class Levels(NamedTuple):
    """What there is to enumerate by levels.

    Attributes
    ----------
    bits : int64 ndarray of shape (n_bits, n_classes)
        Bits of the classes, the first of them 1: +1 entries of the distinct patterns,
        each up to a sign.
    totals : int64 ndarray of shape (n_classes + 1, n_bits)
        Sites that bear each bit in the first 0, 1, ... classes.
    bases : int64 ndarray of shape (n_classes + 1, n_slabs + 1)
        Where the slabs of the first 0, 1, ... classes start in the table.
    turn, offset : int64 ndarray of shape (n_patterns, n_bits), (n_patterns,)
        The overlaps of level k are ``turn @ k + offset``.
    """

    bits: np.ndarray
    totals: np.ndarray
    bases: np.ndarray
    turn: np.ndarray
    offset: np.ndarray


class ClassSum(NamedTuple):
    """The terms of the sum: their overlaps, and how many configurations each has.

    Attributes
    ----------
    classes : Classes
    levels : Levels or None
        None if terms are numbers of ups of all classes.
    n_terms : float
        How many terms there are, tables included; infinity beyond the range of floats.
    """

    classes: Classes
    levels: Levels | None
    n_terms: float


class Moments(NamedTuple):
    r"""Averages over the Boltzmann distribution, overlaps in units of the sites.

    Attributes
    ----------
    top : float
        The largest \|v\|^2, that of the ground states.
    log_z : float
        Log of the sum of all weights, each divided by that of a ground state.
    gap : float
        ``top`` - <\|v\|^2>.
    absolute, square, fourth : ndarray of shape (n_patterns,)
        <\|m\|>, <m^2>, <m^4> of each overlap m = v / N.
    wells : ndarray of shape (n_patterns,)
        Probability that \|m\| of this pattern is the largest; ties are shared.
    largest : float
        <max \|m\|>.
    """

    top: float
    log_z: float
    gap: float
    absolute: np.ndarray
    square: np.ndarray
    fourth: np.ndarray
    wells: np.ndarray
    largest: float


def check_patterns(patterns):
    """Return the patterns as int8, or say which entry is wrong."""
    if np.ma.is_masked(patterns):
        raise ValueError("patterns has masked entries: fill or remove them.")
    patterns = np.asarray(patterns)
    if patterns.dtype.kind not in "buif":
        raise ValueError(f"patterns must be real numbers, got type {patterns.dtype}.")
    if patterns.ndim != 2 or 0 in patterns.shape:
        raise ValueError(
            f"patterns must have shape (n_patterns, n_sites), got {patterns.shape}."
        )
    wrong = np.argwhere(~((patterns == 1) | (patterns == -1)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            "patterns must hold -1 and 1 only, got "
            f"{float(patterns[row, column])!r} in row {row}, column {column}."
        )
    return patterns.astype(np.int8)


def site_classes(patterns):
    """Group the sites whose columns are equal up to a sign.

    Parameters
    ----------
    patterns : int8 ndarray of shape (n_patterns, n_sites)
        Entries -1 and 1.

    Returns
    -------
    Classes
    """
    gauge = patterns[0].copy()
    columns, labels, sizes = np.unique(
        patterns * gauge, axis=1, return_inverse=True, return_counts=True
    )
    order = np.argsort(sizes, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Classes(
        np.ascontiguousarray(columns[:, order], dtype=np.int64),
        sizes[order],
        np.argsort(rank[labels.ravel()], kind="stable"),
        gauge,
    )


def class_sum(patterns):
    """Choose the shorter way to enumerate; nothing is enumerated yet.

    Parameters
    ----------
    patterns : int8 ndarray of shape (n_patterns, n_sites)
        Entries -1 and 1.

    Returns
    -------
    ClassSum
    """
    classes = site_classes(patterns)
    with np.errstate(over="ignore"):
        n_terms = float(np.ceil(np.prod(classes.sizes + 1.0) / 2))
    half = patterns.shape[1] // 2
    if len(classes.sizes) > 2 and patterns.shape[1] <= MOST_SITES:
        levels = class_levels(classes)
        last = float(_slab_sizes(levels.totals[-1:], half).sum())
        if _COUNTABLE < last < n_terms:
            return ClassSum(classes, levels, last)
        if last < n_terms:
            levels = levels._replace(bases=slab_bases(levels.totals, half))
            if levels.bases[-1, -1] < n_terms:
                return ClassSum(classes, levels, float(levels.bases[-1, -1]))
    return ClassSum(classes, None, n_terms)


def check_terms(terms, most_terms, remedy):
    """Refuse a sum of too many terms; ``remedy`` says what else to do."""
    if terms.n_terms <= most_terms:
        return
    many = f"{terms.n_terms:.2g}" if math.isfinite(terms.n_terms) else "over 1e308"
    n_patterns, n_sites = len(terms.classes.columns), len(terms.classes.sites)
    raise ValueError(
        f"The exact sum has {many} terms, more than {most_terms:.0e}: take {remedy}"
        f"fewer patterns (got {n_patterns}) or fewer sites (got {n_sites})."
    )


def class_levels(classes):
    """Return the levels of two or more classes, ``bases`` still to come."""
    columns, sizes = classes.columns, classes.sizes
    n_sites = sizes.sum()
    # Of a pattern and its reverse the one with fewer ups, or in a tie the one that is
    # down at the first class.
    ups = (columns > 0) @ sizes
    flipped = (2 * ups > n_sites) | ((2 * ups == n_sites) & (columns[:, 0] > 0))
    signs = np.where(flipped, -1, 1)
    own = (columns * signs[:, None] > 0).astype(np.int64)
    distinct, which = np.unique(own, axis=0, return_inverse=True)
    # The first row is that of the first pattern, now down everywhere: it bears no bit,
    # since the number of all ups is known anyway.
    bits = np.vstack([np.ones_like(sizes), distinct[1:]])
    turn = np.zeros((len(columns), len(bits)), np.int64)
    turn[np.arange(len(columns)), which.ravel()] = 4
    turn[:, 0] = -2
    totals = np.zeros((len(sizes) + 1, len(bits)), np.int64)
    np.cumsum((bits * sizes).T, axis=0, out=totals[1:])
    return Levels(
        bits,
        totals,
        np.empty(0, np.int64),
        turn * signs[:, None],
        signs * (n_sites - 2 * (own @ sizes)),
    )


def _slab_sizes(totals, most_up):
    """Return the number of levels in each slab (columns) of each table, as floats."""
    up = np.arange(most_up + 1)
    sizes = np.ones((len(totals), len(up)))
    for row, total in zip(sizes, totals, strict=True):
        low, high = slab_box(up[:, None], total)
        with np.errstate(over="ignore"):
            np.prod(high - low + 1.0, axis=1, out=row)
        row[up > total[0]] = 0
    return sizes


def slab_bases(totals, most_up):
    """Where the slabs with up to ``most_up`` ups start in the table of all tables.

    Parameters
    ----------
    totals : int64 ndarray of shape (n_classes + 1, n_bits)
        See :class:`Levels`.
    most_up : int
        Half the number of sites, or all where reverses are wanted too.

    Returns
    -------
    int64 ndarray of shape (n_classes + 1, most_up + 2)
    """
    sizes = _slab_sizes(totals, most_up)
    bases = np.zeros((len(sizes), sizes.shape[1] + 1))
    np.cumsum(sizes, axis=1, out=bases[:, 1:])
    bases[1:] += np.cumsum(bases[:-1, -1])[:, None]
    return bases.astype(np.int64)


def slab_box(up, total):
    """Lowest and highest entries, but for the first, of the levels of slabs."""
    return np.maximum(0, up - total[0] + total[1:]), np.minimum(up, total[1:])


def class_binomials(sizes):
    """Count the configurations of each class with 0, 1, ... ups."""
    return comb(sizes[:, None], np.arange(sizes.max() + 1))


def count_levels(levels, binomials):
    """Count the configurations of all levels.

    Returns
    -------
    ndarray
        The tables of the first 0, 1, ... classes, one after the other.
    """
    bits, totals, bases = levels.bits, levels.totals, levels.bases
    counts = np.empty(bases[-1, -1])
    counts[0] = 1.0
    n_slabs = bases.shape[1] - 1
    for c, row in enumerate(binomials):
        for up in range(min(n_slabs, int(totals[c + 1, 0]) + 1)):
            fill_slab(
                up, np.ascontiguousarray(bits[:, c]), row, totals[c], bases[c],
                totals[c + 1], bases[c + 1], counts,
            )  # fmt: skip
    return counts


def blocks_of_terms(terms, counts=None):
    """Yield the overlaps (n_patterns, n) and log configurations (n,) of all terms.

    Each term stands for its reverse too, and counts both.

    Parameters
    ----------
    terms : ClassSum
        What to enumerate.
    counts : ndarray or None
        From :func:`count_levels` if the terms are levels.
    """
    if terms.levels is None:
        yield from blocks_of_classes(terms.classes)
    else:
        yield from _blocks_of_levels(terms.levels, counts)


def blocks_of_classes(classes):
    """Yield what :func:`blocks_of_terms` does, enumerating all numbers of ups."""
    shape = tuple(int(n) + 1 for n in classes.sizes)
    tables = [_log_binomials(n) for n in classes.sizes]
    n_all = math.prod(shape)
    for first in range(0, (n_all + 1) // 2, _BLOCK):
        index = np.arange(first, min(first + _BLOCK, (n_all + 1) // 2))
        ups = np.unravel_index(index, shape)
        logs = sum(table[k] for table, k in zip(tables, ups, strict=True))
        # Only the term in the middle is its own reverse.
        logs += math.log(2) * (2 * index + 1 < n_all)
        magnetizations = 2.0 * np.array(ups) - classes.sizes[:, None]
        yield classes.columns @ magnetizations, logs


def _log_binomials(n):
    log_factorial = gammaln(np.arange(n + 1) + 1.0)
    return log_factorial[n] - log_factorial - log_factorial[::-1]


def _blocks_of_levels(levels, counts):
    n_sites, bases = levels.totals[-1, 0], levels.bases[-1]
    for up in range(len(bases) - 1):
        low, high = slab_box(up, levels.totals[-1])
        base = levels.turn @ np.r_[up, low] + levels.offset
        for first in range(bases[up], bases[up + 1], _BLOCK):
            index = np.arange(first, min(first + _BLOCK, bases[up + 1]))
            k = np.unravel_index(index - bases[up], np.r_[1, high - low + 1])
            with np.errstate(divide="ignore"):
                logs = np.log(counts[index])
            # The middle slab holds its own reverse.
            logs += math.log(2) * (2 * up < n_sites)
            yield levels.turn @ np.array(k, float) + base[:, None], logs


def moments(terms, beta, counts=None):
    """Average over all terms.

    Parameters
    ----------
    terms : ClassSum
        What to enumerate.
    beta : float
        Inverse temperature, from 0 to 1e100.
    counts : ndarray or None
        From :func:`count_levels` if the terms are levels.

    Returns
    -------
    Moments
    """
    n_patterns, n_sites = len(terms.classes.columns), len(terms.classes.sites)
    scale = beta / (2 * n_sites)
    sums, shift, top = np.zeros(3 + 4 * n_patterns), -np.inf, 0.0
    for v, logs, square, raised in _with_ground(terms, counts):
        # Relative to the ground state so far, or what is cold would be lost in it.
        top += raised
        shift -= scale * raised
        sums[1] += raised * sums[0]
        gap = top - square
        logs -= scale * gap
        # The largest weight so far is 1: nothing overflows.
        highest = max(shift, logs.max())
        sums *= np.exp(shift - highest) if shift > -np.inf else 0.0
        shift = highest
        sums += _sums(v / n_sites, gap, np.exp(logs - shift))
    z, gap, largest = sums[:3]
    absolute, square, fourth, wells = sums[3:].reshape(4, n_patterns) / z
    log_z = shift + math.log(z)
    return Moments(top, log_z, gap / z, absolute, square, fourth, wells, largest / z)


def _with_ground(terms, counts):
    """Yield blocks with |v|^2, and by how much its largest value so far rises."""
    top = 0.0
    for v, logs in blocks_of_terms(terms, counts):
        square = (v**2).sum(axis=0)
        highest = max(top, square[logs > -np.inf].max(initial=0.0))
        yield v, logs, square, highest - top
        top = highest


def _sums(m, gap, weights):
    """Sum what :func:`moments` averages, (3 + 4 n_patterns,), over one block."""
    size = np.abs(m)
    largest = size.max(axis=0)
    leading = (size == largest).astype(float)
    leading /= leading.sum(axis=0)
    square = m**2
    one = np.ones_like(gap)
    values = ([one, gap, largest], size, square, square**2, leading)
    return np.concatenate([np.asarray(v) @ weights for v in values])


def cumulated(terms, beta, counts=None):
    """Return the cumulated probabilities of all terms; the last is 1.

    The parameters are those of :func:`moments`.
    """
    scale = beta / (2 * len(terms.classes.sites))
    cdf, first, top = np.empty(_n_last(terms)), 0, 0.0
    for _, logs, square, raised in _with_ground(terms, counts):
        top += raised
        cdf[:first] -= scale * raised
        cdf[first : first + len(logs)] = logs - scale * (top - square)
        first += len(logs)
    cdf -= cdf.max()
    np.exp(cdf, out=cdf)
    np.cumsum(cdf, out=cdf)
    cdf /= cdf[-1]
    return cdf


def _n_last(terms):
    """Return the number of terms themselves, without the tables that lead to them."""
    if terms.levels is None:
        return int(terms.n_terms)
    return int(terms.levels.bases[-1, -1] - terms.levels.bases[-1, 0])
