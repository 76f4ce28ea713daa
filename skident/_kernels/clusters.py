"""Swendsen-Wang sampling of the Ising model on a cubic lattice, in a field too.

Given the spins, every satisfied bond (parallel spins for coupling > 0, antiparallel for
coupling < 0) is active with probability 1 - exp(-2 beta |coupling|). Given the active
bonds, the clusters they form turn over independently: with probability 1/2 without a
field, else with the heat bath probability of the cluster's energy in the field. Both
steps are exact conditional draws of the joint distribution of spins and bonds (Edwards
and Sokal, Phys. Rev. D 38, 2009 (1988)), also if the coupling is frustrated. At
infinite temperature no bond is active, and one sweep forgets the state before.

The lattice is given by ``sides`` and ``wraps`` as in :mod:`skident._kernels.ising`. A
byte stands for each bond: block by block those of all sites to the left, upwards, and
to the plane before (if there is more than one plane), then the wraps.

A scan labels the sites in their order (J. Hoshen and R. Kopelman, Phys. Rev. B 14, 3438
(1976)): a site takes the label of its left neighbour, else of the one above, else a
fresh one. The pairs of labels that the other active bonds make equal are joined
afterwards. Nothing branches on what a random bond is: at the critical point a processor
would guess every second one wrong.
"""

import math

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import fill_words, next_uint64, next_uniform, threshold

# Unsigned indices are not negative, which would take tests in every loop.
_ZERO = np.uint64(0)
_ONE = np.uint64(1)

# What stands for a bond until it is known to be active (1) or not (0).
_UNDECIDED = np.uint8(0x80)
_ANY_UNDECIDED = np.uint64(0x8080808080808080)

# Turns 1 to -1 and back.
_TURN = np.uint8(0xFE)


@kernel
def mark_bonds(spins, step, at, unlike, edge, draws, active):
    """Draw which of the bonds of sites i and i - step are active.

    Parameters
    ----------
    spins : int8 ndarray of shape (n_sites,)
        Spins.
    step, at : int
        The bond of site i stands at ``at + i`` in the arrays.
    unlike : int8
        Exclusive-or of the spins of a satisfied bond.
    edge : uint8
        Below it a draw means active, above it not; at it the bond is undecided.
    draws : uint8 ndarray
        Random bytes.
    active : uint8 ndarray
        Filled: 1 active, 0 not, 0x80 undecided.
    """
    step, at = np.uint64(step), np.uint64(at)
    for k in range(spins.shape[0] - np.int64(step)):
        far = np.uint64(k)
        near = far + step
        bond = near + at
        drawn = (draws[bond] < edge) | ((draws[bond] == edge) << 7)
        active[bond] = drawn & -((spins[near] ^ spins[far]) == unlike)


@kernel
def mark_wraps(spins, wraps, at, unlike, edge, draws, active):
    """Do the same for the bonds ``wraps`` (n_wraps, 2), which stand from ``at`` on."""
    for w in range(wraps.shape[0]):
        drawn = (draws[at + w] < edge) | ((draws[at + w] == edge) << 7)
        product = spins[wraps[w, 0]] ^ spins[wraps[w, 1]]
        active[at + w] = drawn & -(product == unlike)


@kernel
def clear_ends(n_sites, sides, active):
    """Forget bonds of neighbours in memory that are ends of two rows, or planes."""
    _, width, plane = sides
    for i in range(0, n_sites, width):
        active[i] = 0
    for i in range(n_sites, 2 * n_sites, plane):
        for j in range(i, i + width):
            active[j] = 0


@kernel
def decide_bonds(rest, state, bonds, active):
    """Decide the undecided bonds with 24 more random bits each.

    ``bonds`` is ``active`` as uint64, and ``rest`` of 2**24 values mean active.
    """
    for w in range(bonds.shape[0]):
        if bonds[w] & _ANY_UNDECIDED:
            for k in range(8 * w, 8 * w + 8):
                if active[k] == _UNDECIDED:
                    active[k] = np.int64(next_uint64(state) >> np.uint64(40)) < rest


@kernel
def encode_links(active, width, links):
    """Write left + 2 up + 4 join of each site to ``links`` (n_sites,) uint8.

    Left and up tell whether the bond of a site to the one before it and to the one
    above it is active. Where both are, two labels must be joined, unless the other two
    bonds of their square connect the same sites.
    """
    n_sites = links.shape[0]
    for i in range(width):
        links[i] = active[i]
    width, rows = np.uint64(width), np.uint64(n_sites)
    for k in range(n_sites - np.int64(width)):
        above = np.uint64(k)
        i = above + width
        left, up = active[i], active[i + rows]
        join = left & up & ~(active[i + rows - _ONE] & active[above])
        links[i] = left | (up << 1) | (join << 2)


@kernel
def label_sites(links, width, labels, first, second):
    """Label sites in their order.

    Parameters
    ----------
    links : uint8 ndarray of shape (n_sites,)
        As of :func:`encode_links`.
    width : int
        Sites in a row.
    labels : uint32 ndarray of shape (width + n_sites,)
        Filled with the label of each site, after a row of padding.
    first, second : uint32 ndarray of shape (more than n_sites,)
        Filled with pairs of labels to be joined.

    Returns
    -------
    n_labels, n_pairs : uint64
    """
    width = np.uint64(width)
    fresh, label, count = _ZERO, _ZERO, _ZERO
    for k in range(links.shape[0]):
        i = np.uint64(k)
        link = links[i]
        upper = np.uint64(labels[i])
        new = fresh if link == 0 else upper
        label = label if link & 1 else new
        labels[i + width] = label
        fresh += np.uint64(link == 0)
        first[count] = label
        second[count] = upper
        count += np.uint64(link >> 2)
    return fresh, count


@kernel
def more_pairs(n_sites, sides, wraps, labels, active, count, first, second):
    """Append the labels at active bonds between planes and wraps; return the count."""
    _, width, plane = sides
    at = 2 * n_sites
    if plane < n_sites:
        for i in range(plane, n_sites):
            first[count] = labels[width + i]
            second[count] = labels[width + i - plane]
            count += np.uint64(active[at + i])
        at += n_sites
    for w in range(wraps.shape[0]):
        first[count] = labels[width + wraps[w, 0]]
        second[count] = labels[width + wraps[w, 1]]
        count += np.uint64(active[at + w])
    return count


@kernel
def join_labels(first, second, count, n_labels, parents):
    """Join ``count`` pairs of labels.

    ``parents`` (n_labels or more,) uint32 is filled: no parent is above its child, and
    the label that is its own parent stands for its cluster.
    """
    for r in range(n_labels):
        parents[r] = r
    for k in range(count):
        start = second[k]
        a, b = parents[first[k]], parents[start]
        while parents[a] != a:
            a = parents[a]
        while parents[b] != b:
            b = parents[b]
        root = a if a < b else b
        parents[a if a > b else b] = root
        parents[start] = root


@kernel
def draw_turns(parents, n_labels, bits, turns):
    """Draw without a field which labels turn over.

    ``bits`` is a random byte a label, and ``turns`` (n_labels or more,) uint8 is filled
    with what to exclusive-or to the spins.
    """
    for r in range(n_labels):
        parent = np.uint64(parents[r])
        own = -(parent == r)
        turns[r] = (-(bits[r] & 1) & _TURN & own) | (turns[parent] & ~own)


@kernel
def draw_turns_in_field(
    parents, n_labels, labels, width, spins, push, state, moments, turns
):
    """Draw in a field which labels turn over; ``push`` is 2 beta field.

    ``moments`` (n_labels or more,) int32 is scratch: the magnetisation of each label.
    """
    for r in range(n_labels):
        moments[r] = 0
    for i in range(spins.shape[0]):
        moments[labels[width + i]] += spins[i]
    for r in range(n_labels - 1, -1, -1):
        if parents[r] != r:
            moments[parents[r]] += moments[r]
    for r in range(n_labels):
        if parents[r] == r:
            x = push * moments[r]
            odds = math.exp(-x) if x > -700 else np.inf
            keep = next_uniform(state) * (1.0 + odds) < 1.0
            turns[r] = np.uint8(0) if keep else _TURN
        else:
            turns[r] = turns[parents[r]]


def cluster_scratch(n_sites, sides, n_wraps):
    """Return the arrays that :func:`advance_clusters` works with.

    They are made here because compiling them takes a third of the time of the kernel.
    """
    n_bonds = n_sites * (2 + (sides[2] < n_sites)) + n_wraps
    words = np.empty((n_bonds + 7) // 8, np.uint64)
    bonds = np.zeros((n_bonds + 7) // 8, np.uint64)
    links, turns = np.empty((2, n_sites), np.uint8)
    first, second = np.empty((2, n_bonds + 1), np.uint32)
    parents, moments = np.empty((2, n_sites), np.uint32)
    return (
        words, words.view(np.uint8), bonds, bonds.view(np.uint8), links,
        np.zeros(sides[1] + n_sites, np.uint32), first, second, parents,
        moments.view(np.int32), turns,
    )  # fmt: skip


@kernel
def advance_clusters(
    n_sweeps, sides, wraps, coupling, activation, push, scratch, states, spins
):
    """Advance independent chains by Swendsen-Wang updates.

    Parameters
    ----------
    n_sweeps : int
        Updates of all sites.
    sides : tuple of three ints
        1 and the number of sites in a row and in a plane.
    wraps : int32 ndarray of shape (n_wraps, 2)
        The two sites of each bond that closes an axis.
    coupling : float
        Its sign matters.
    activation : float
        1 - exp(-2 beta |coupling|), the probability that a satisfied bond is active,
        exact to 2**-33.
    push : float
        2 beta field.
    scratch : tuple of ndarray
        Of :func:`cluster_scratch`.
    states : uint64 ndarray of shape (n_chains, 4)
        Random states; advanced.
    spins : int8 ndarray of shape (n_chains, n_sites)
        Advanced.
    """
    words, draws, bonds, active, links, labels = scratch[:6]
    first, second, parents, moments, turns = scratch[6:]
    n_sites, width = spins.shape[1], sides[1]
    limit = threshold(activation)
    edge = limit >> 24 if limit < 2**32 else 255
    rest = limit - (edge << 24)
    edge = np.uint8(edge)
    unlike = np.int8(0) if coupling > 0 else np.int8(-2)
    for k in range(spins.shape[0]):
        state, s = states[k], spins[k]
        for _ in range(n_sweeps):
            fill_words(state, words)
            at = 0
            for step in sides:
                if step < n_sites or at < 2 * n_sites:
                    mark_bonds(s, step, at, unlike, edge, draws, active)
                    at += n_sites
            mark_wraps(s, wraps, at, unlike, edge, draws, active)
            clear_ends(n_sites, sides, active)
            decide_bonds(rest, state, bonds, active)
            encode_links(active, width, links)
            n_labels, n_pairs = label_sites(links, width, labels, first, second)
            n_labels = np.int64(n_labels)
            n_pairs = more_pairs(
                n_sites, sides, wraps, labels, active, n_pairs, first, second
            )
            join_labels(first, second, n_pairs, n_labels, parents)
            if push != 0:
                draw_turns_in_field(
                    parents, n_labels, labels, width, s, push, state, moments, turns
                )
            else:
                fill_words(state, words[: (n_labels + 7) // 8])
                draw_turns(parents, n_labels, draws, turns)
            for i in range(n_sites):
                s[i] ^= turns[labels[width + i]]
