"""Swendsen-Wang cluster sampling of the Ising model, in a field too.

Given the spins, every satisfied bond (parallel spins for coupling > 0, antiparallel for
coupling < 0) is active with probability 1 - exp(-2 beta |coupling|). Given the active
bonds, the clusters they form turn over independently: with probability 1/2 without a
field, else with the heat bath probability of the cluster's energy in the field. Both
steps are exact conditional draws of the joint distribution of spins and bonds (Edwards
and Sokal, Phys. Rev. D 38, 2009 (1988)), also if the coupling is frustrated.
"""

import math

import numpy as np

from skident._kernels.ising import measure, random_spins, write_row
from skident._kernels.jit import kernel
from skident._kernels.streams import (
    fill_words,
    next_uint64,
    next_uniform,
    seed_stream,
    threshold,
)


@kernel
def activate_bonds(bonds, satisfied, limit, words, spins, active):
    """List the active bonds in ``active`` (n_bonds,) and return their number.

    ``satisfied`` is 1 or -1, the product of spins of a satisfied bond, ``words`` holds
    a random uint32 a bond and ``limit`` is the threshold of activation. There is no
    branch: at the critical point a processor would guess every second one wrong.
    """
    count = 0
    for b in range(bonds.shape[0]):
        parallel = spins[bonds[b, 0]] * spins[bonds[b, 1]]
        active[count] = b
        count += (parallel == satisfied) & (words[b] < limit)
    return count


@kernel
def join_clusters(bonds, active, count, parent):
    """Join what the first ``count`` active bonds connect (Rem's union-find).

    On return ``parent[i]`` (n_sites,) is the smallest site of the cluster of i.
    """
    n_sites = parent.shape[0]
    for i in range(n_sites):
        parent[i] = i
    for k in range(count):
        i, j = bonds[active[k], 0], bonds[active[k], 1]
        up_i, up_j = parent[i], parent[j]
        # Climb on the side that stands higher, hooking it to the lower as we go.
        while up_i != up_j:
            if up_i < up_j:
                parent[j] = up_i
                if up_j == j:
                    break
                j, up_j = up_j, parent[up_j]
            else:
                parent[i] = up_j
                if up_i == i:
                    break
                i, up_i = up_i, parent[up_i]
    # Parents are smaller than their children, so one pass reaches every root.
    for i in range(n_sites):
        parent[i] = parent[parent[i]]


@kernel
def turn_clusters(parent, push, state, spins, turned):
    """Turn whole clusters over; ``push`` is 2 beta field.

    ``turned`` (n_sites,) is scratch: the magnetisation of each cluster at its root,
    then the sign by which the cluster is multiplied.
    """
    n_sites = spins.shape[0]
    if push != 0:
        turned[:] = 0
        for i in range(n_sites):
            turned[parent[i]] += spins[i]
    bits = np.uint64(0)
    left = 0
    for i in range(n_sites):
        root = parent[i]
        if root == i:
            if push != 0:
                x = push * turned[i]
                keep = next_uniform(state) * (1.0 + math.exp(min(-x, 700.0))) < 1.0
            else:
                if left == 0:
                    bits = next_uint64(state)
                    left = 64
                keep = bits & np.uint64(1) == 0
                bits >>= np.uint64(1)
                left -= 1
            turned[i] = 1 if keep else -1
        spins[i] *= turned[root]


@kernel
def swendsen_wang_chains(
    key, start, bonds, activation, staggering, coupling, push, field, n_sweeps,
    low, high, rows, totals, trace,
):  # fmt: skip
    """Run one independent chain a row, from a random start.

    The start is symmetric, so that without a field a state and its reverse are equally
    likely.

    Parameters
    ----------
    key : uint64
        Names the streams; row k of this call draws from stream ``start + k``.
    start : int
        Number of the first row.
    bonds : int32 ndarray of shape (n_bonds, 2)
        The two sites of each bond.
    activation : float
        1 - exp(-2 beta |coupling|), the probability that a satisfied bond is active.
    staggering, coupling, field
        As for :func:`skident._kernels.ising.measure`.
    push : float
        2 beta field.
    n_sweeps : int
        Cluster updates before the draw.
    low, high : int8
        What to write for a spin that points down, up.
    rows : int8 ndarray of shape (n_chains, n_sites)
        Filled with the draws.
    totals : ndarray of shape (n_chains, 2)
        Filled with energy and order parameter of the draws.
    trace : ndarray of shape (n_chains, n_sweeps, 2) or (0, 0, 0)
        If not empty, filled with energy and order parameter after each update.
    """
    n_sites, n_bonds = rows.shape[1], bonds.shape[0]
    state = np.empty(4, np.uint64)
    words = np.empty((n_bonds + 1) // 2, np.uint64)
    halves = words.view(np.uint32)
    active = np.empty(n_bonds, np.int32)
    spins = np.empty(n_sites, np.int8)
    parent = np.empty(n_sites, np.int32)
    turned = np.empty(n_sites, np.int32)
    satisfied = 1 if coupling > 0 else -1
    limit = threshold(activation)
    for k in range(rows.shape[0]):
        seed_stream(key, start + k, state)
        random_spins(state, spins)
        for t in range(n_sweeps):
            fill_words(state, words)
            count = activate_bonds(bonds, satisfied, limit, halves, spins, active)
            join_clusters(bonds, active, count, parent)
            turn_clusters(parent, push, state, spins, turned)
            if trace.shape[0] > 0:
                measure(spins, bonds, staggering, coupling, field, trace[k, t])
        measure(spins, bonds, staggering, coupling, field, totals[k])
        write_row(spins, low, high, rows[k])
