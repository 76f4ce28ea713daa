"""Exact sums and draws of the Hopfield model over its classes of equal columns.

Sites whose columns of the patterns are equal form a class, and the energy depends only
on how many spins of each class point up, through the overlaps. Class by class, the
number of configurations is counted at every *level*: the vector k of the numbers of
ups among the sites that bear given bits. The first bit is 1 at every site, so that
k[0] is the number of all ups. The levels of one k[0] form a slab, a box in the other
entries of k; with n sites of which n_b bear bit b,

    max(0, k[0] - (n - n_b)) <= k[b] <= min(k[0], n_b).

``totals`` (n_bits,) holds these numbers n_b (n itself first), ``bases`` where each slab
starts in the table. Slabs beyond half the sites follow by turning all spins. There
are at least two bits.
"""

import math

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import first_above, next_uint64, next_uniform, seed_stream

_SIGN = np.uint64(63)


@kernel
def place_of(k, totals, bases):
    """Return the place of a level in the table, or -1 if no configuration has it."""
    up, n_sites = k[0], totals[0]
    if up < 0 or up > n_sites:
        return -1
    place = 0
    for b in range(1, k.shape[0]):
        low = max(0, up - n_sites + totals[b])
        high = min(up, totals[b])
        if k[b] < low or k[b] > high:
            return -1
        place = place * (high - low + 1) + k[b] - low
    return bases[up] + place


@kernel
def level_of(place, totals, bases, k):
    """Write the level at a place of the table to ``k``: undoes :func:`place_of`."""
    up = 0
    while bases[up + 1] <= place:
        up += 1
    k[0] = up
    rest = place - bases[up]
    for b in range(k.shape[0] - 1, 0, -1):
        low = max(0, up - totals[0] + totals[b])
        width = min(up, totals[b]) - low + 1
        k[b] = low + rest % width
        rest //= width


@kernel
def fill_slab(up, bits, binomials, before, bases_before, totals, bases, counts):
    """Count the configurations of the levels of one slab when a class joins.

    Parameters
    ----------
    up : int
        The slab: number of all ups.
    bits : int64 ndarray of shape (n_bits,)
        Bits of the class.
    binomials : ndarray of shape (n + 1,)
        Number of configurations of the class with 0, 1, ..., n ups.
    before, totals : int64 ndarray of shape (n_bits,)
        Sites that bear each bit, without and with the class.
    bases_before, bases : int64 ndarray of shape (n_slabs + 1,)
        Where the slabs start in ``counts``, without and with the class.
    counts : ndarray
        The table; entries ``bases[up]`` to ``bases[up + 1]`` are filled.
    """
    last = bits.shape[0] - 1
    k, part = np.empty(last + 1, np.int64), np.empty(last + 1, np.int64)
    level_of(bases[up], totals, bases, k)
    low, high = k[last], min(up, totals[last])
    # Row by row along the last entry, where both tables are contiguous.
    for row in range(bases[up], bases[up + 1], high - low + 1):
        for i in range(row, row + high - low + 1):
            counts[i] = 0.0
        for j in range(max(0, up - before[0]), min(binomials.shape[0], up + 1)):
            for b in range(last):
                part[b] = k[b] - j * bits[b]
            shift = j * bits[last]
            first = max(low, shift + max(0, part[0] - before[0] + before[last]))
            final = min(high, shift + min(part[0], before[last]))
            part[last] = first - shift
            origin = place_of(part, before, bases_before) if first <= final else -1
            if origin >= 0:
                target = row + first - low
                for i in range(final - first + 1):
                    counts[target + i] += binomials[j] * counts[origin + i]
        # The next row of the slab, the last entry but one fastest.
        for b in range(last - 1, 0, -1):
            if k[b] < min(up, totals[b]):
                k[b] += 1
                break
            k[b] = max(0, up - totals[0] + totals[b])


@kernel
def sum_along(logs, weights, total):
    """Sum over one axis, on a logarithmic scale, with weights of the sum of indices.

    Parameters
    ----------
    logs : ndarray of shape (n_before, n_from, n_after)
        Logs of what is summed over the second axis; minus infinity is allowed.
    weights : ndarray of shape (n_from + n_to - 1,)
        Log of the weight of index i in ``logs`` and j in ``total`` is entry i + j.
    total : ndarray of shape (n_before, n_to, n_after)
        Filled.
    """
    n_before, n_from, n_after = logs.shape
    for a in range(n_before):
        for j in range(total.shape[1]):
            for z in range(n_after):
                highest = -np.inf
                for i in range(n_from):
                    highest = max(highest, logs[a, i, z] + weights[i + j])
                summed = 0.0
                if highest > -np.inf:
                    for i in range(n_from):
                        summed += math.exp(logs[a, i, z] + weights[i + j] - highest)
                    highest += math.log(summed)
                total[a, j, z] = highest


@kernel
def split_level(k, bits, binomials, totals, bases, counts, state, ups):
    """Draw how many spins of each class point up, given the level of all.

    The last class first: each number is weighed by the configurations of the class and
    of all classes before it. ``k`` is used up.

    Parameters
    ----------
    k : int64 ndarray of shape (n_bits,)
        The level.
    bits : int64 ndarray of shape (n_bits, n_classes)
        Bits of each class.
    binomials : ndarray of shape (n_classes, n + 1)
        As for :func:`fill_slab`, with zeros beyond the size of a class.
    totals : int64 ndarray of shape (n_classes + 1, n_bits)
        Sites that bear each bit in the first 0, 1, ... classes.
    bases : int64 ndarray of shape (n_classes + 1, n_slabs + 1)
        Where the slabs of the first 0, 1, ... classes start.
    counts : ndarray
        The tables of all these.
    state : uint64 ndarray of shape (4,)
        Random state.
    ups : int64 ndarray of shape (n_classes,)
        Filled.
    """
    for c in range(bits.shape[1] - 1, -1, -1):
        left = next_uniform(state) * counts[place_of(k, totals[c + 1], bases[c + 1])]
        taken, chosen = 0, 0
        for j in range(binomials.shape[1]):
            origin = place_of(k, totals[c], bases[c])
            weight = binomials[c, j] * counts[origin] if origin >= 0 else 0.0
            if weight > 0:
                chosen = j
                left -= weight
                if left < 0:
                    break
            taken += 1
            for b in range(k.shape[0]):
                k[b] -= bits[b, c]
        # Rounding may run past the last number that is possible.
        for b in range(k.shape[0]):
            k[b] += (taken - chosen) * bits[b, c]
        ups[c] = chosen


@kernel
def arrange(ups, sizes, sites, gauge, state, row):
    """Turn up, uniformly at random, a given number of spins of each class.

    Parameters
    ----------
    ups, sizes : int64 ndarray of shape (n_classes,)
        Spins up, and all spins, of each class.
    sites : int64 ndarray of shape (n_sites,)
        The sites, class by class.
    gauge : int8 ndarray of shape (n_sites,)
        What to write for up.
    state : uint64 ndarray of shape (4,)
        Random state.
    row : int8 ndarray of shape (n_sites,)
        Filled.
    """
    first = 0
    for c in range(sizes.shape[0]):
        few, n_few = 1, ups[c]
        if 2 * n_few > sizes[c]:
            few, n_few = -1, sizes[c] - n_few
        last = first + sizes[c]
        for i in range(first, last):
            row[sites[i]] = -few
        # Floyd's subset sampling.
        for i in range(last - n_few, last):
            site = sites[first + int(next_uniform(state) * (i - first + 1))]
            if row[site] == few:
                site = sites[i]
            row[site] = few
        first = last
    for i in range(row.shape[0]):
        row[i] *= gauge[i]


@kernel
def finish_row(columns, sizes, sites, gauge, state, ups, row, v):
    """Turn all spins over with probability 1/2, arrange them, and take overlaps.

    Parameters
    ----------
    columns : int64 ndarray of shape (n_patterns, n_classes)
        The column of the patterns that each class has.
    sizes, sites, gauge, state, row
        As for :func:`arrange`.
    ups : int64 ndarray of shape (n_classes,)
        Spins up of each class before they are turned; changed.
    v : int64 ndarray of shape (n_patterns,)
        Filled with patterns @ s.
    """
    if next_uint64(state) >> _SIGN:
        for c in range(ups.shape[0]):
            ups[c] = sizes[c] - ups[c]
    arrange(ups, sizes, sites, gauge, state, row)
    v[:] = 0
    for mu in range(columns.shape[0]):
        for c in range(ups.shape[0]):
            v[mu] += columns[mu, c] * (2 * ups[c] - sizes[c])


@kernel
def draw_from_classes(key, start, cdf, columns, sizes, sites, gauge, rows, overlaps):
    """Fill rows given the distribution of the numbers of ups of the classes.

    Parameters
    ----------
    key : uint64
        Names the streams; row k of a run draws from stream ``start + k``.
    start : int
        Number of the first row.
    cdf : ndarray
        Cumulated probabilities of all (ups[0], ups[1], ...), the last fastest, or of
        the first half of them: the others follow by turning all spins.
    columns, sizes, sites, gauge
        As for :func:`finish_row`.
    rows : int8 ndarray of shape (n_samples, n_sites)
        Filled with 1 and -1.
    overlaps : int64 ndarray of shape (n_samples, n_patterns)
        Filled with patterns @ s.
    """
    state, ups = np.empty(4, np.uint64), np.empty(sizes.shape[0], np.int64)
    for k in range(rows.shape[0]):
        seed_stream(key, start + k, state)
        rest = first_above(cdf, next_uniform(state))
        for c in range(sizes.shape[0] - 1, -1, -1):
            ups[c] = rest % (sizes[c] + 1)
            rest //= sizes[c] + 1
        finish_row(columns, sizes, sites, gauge, state, ups, rows[k], overlaps[k])


@kernel
def draw_from_levels(
    key, start, cdf, bits, binomials, totals, bases, counts,
    columns, sizes, sites, gauge, rows, overlaps,
):  # fmt: skip
    """Fill rows given the distribution of the levels of all sites.

    Parameters
    ----------
    cdf : ndarray
        Cumulated probabilities of the levels, in the order of the last table.
    bits, binomials, totals, bases, counts
        As for :func:`split_level`.
    key, start, columns, sizes, sites, gauge, rows, overlaps
        As for :func:`draw_from_classes`.
    """
    state, ups = np.empty(4, np.uint64), np.empty(sizes.shape[0], np.int64)
    level, last = np.empty(bits.shape[0], np.int64), bits.shape[1]
    for k in range(rows.shape[0]):
        seed_stream(key, start + k, state)
        place = bases[last, 0] + first_above(cdf, next_uniform(state))
        level_of(place, totals[last], bases[last], level)
        split_level(level, bits, binomials, totals, bases, counts, state, ups)
        finish_row(columns, sizes, sites, gauge, state, ups, rows[k], overlaps[k])
