"""Parallel tempering of spins with any couplings, in pairs of replicas.

Energy convention: E = -sum_{i<j} J_ij s_i s_j - sum_i b_i s_i, s in {-1, 1}.

Couplings are the compressed rows of a symmetric matrix without diagonal, columns in
order: the neighbours of site i are ``indices[indptr[i]:indptr[i + 1]]``. Beside the
spins stand their local fields h_i = sum_j J_ij s_j + b_i. Where couplings and fields
are multiples of one power of two, at most 2**53 of it in any local field, all these
sums are exact, so that fields brought up to date spin by spin never drift.

A walker is one configuration that wanders between temperatures. A chain is a ladder of
walkers, one a temperature; two chains (replicas) share a random stream. A sweep, in
this order: at each temperature and in each replica heat bath updates of all sites in
their order; if asked, in the colder half, an isoenergetic cluster move of the two
replicas; then exchanges of neighbouring temperatures, first of the even pairs, then of
the odd ones; then the walker at the hottest temperature gets, one time in four, a new
random mark.

At the hottest temperature a walker forgets where it came from in a few sweeps: its mark
is as old as what it remembers.
"""

import math

import numpy as np

from skident._kernels.ising import random_spins
from skident._kernels.jit import kernel
from skident._kernels.streams import (
    fill_words,
    next_uint64,
    next_uniform,
    seed_stream,
)

_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53

# Beyond this logit a uniform number of 53 bits sees certainty.
_CERTAIN = 40.0
_CELLS = 16
_EDGES = np.arange(2 * _CERTAIN * _CELLS + 1) / _CELLS - _CERTAIN
# Probability of up at the edges of cells of the logit.
CHANCES = 1.0 / (1.0 + np.exp(-_EDGES))


@kernel
def stays(word, logit, chances):
    """Tell whether a spin stays that points along itself with this logit.

    The probability is exact to 2**-53: ``chances``, at the edges of cells of the logit,
    brackets it, and the exponential is needed in the bracket only.
    """
    if logit >= _CERTAIN:
        return True
    if logit <= -_CERTAIN:
        return False
    uniform = (word >> np.uint64(11)) * _TO_UNIT
    cell = np.int64((logit + _CERTAIN) * _CELLS)
    if uniform < chances[cell]:
        return True
    if uniform >= chances[cell + 1]:
        return False
    return uniform * (1.0 + math.exp(-logit)) < 1.0


@kernel
def turn_spin(i, indptr, indices, values, spins, fields):
    """Turn spin i over and bring the local fields of its neighbours up to date."""
    n_sites, first, last = spins.shape[0], indptr[i], indptr[i + 1]
    spins[i] = -spins[i]
    step = 2.0 * spins[i]
    row = values[first:last]
    if last - first == n_sites - 1:
        # All others are neighbours: no indices, and so in vector registers.
        below, above = fields[:i], fields[i + 1 :]
        beyond = row[i:]
        for j in range(below.shape[0]):
            below[j] += step * row[j]
        for j in range(above.shape[0]):
            above[j] += step * beyond[j]
    else:
        columns = indices[first:last]
        for p in range(row.shape[0]):
            fields[columns[p]] += step * row[p]


@kernel
def heat_bath(beta, indptr, indices, values, chances, words, spins, fields):
    """Redraw every spin given its neighbours, in the order of the sites.

    ``words`` (n_sites,) uint64 are random bits, ``chances`` as for :func:`stays`.
    """
    for i in range(spins.shape[0]):
        if not stays(words[i], 2.0 * beta * fields[i] * spins[i], chances):
            turn_spin(i, indptr, indices, values, spins, fields)


@kernel
def local_fields(indptr, indices, values, external, spins, fields):
    """Write the local fields of all sites."""
    for i in range(spins.shape[0]):
        total = external[i]
        for p in range(indptr[i], indptr[i + 1]):
            total += values[p] * spins[indices[p]]
        fields[i] = total


@kernel
def glass_energy(external, spins, fields):
    """Return the energy of a state with its local fields."""
    even, odd = 0.0, 0.0
    n_sites = spins.shape[0]
    # Two sums, as one would wait for its own additions.
    for i in range(0, n_sites - 1, 2):
        even += spins[i] * (fields[i] + external[i])
        odd += spins[i + 1] * (fields[i + 1] + external[i + 1])
    if n_sites % 2:
        even += spins[n_sites - 1] * (fields[n_sites - 1] + external[n_sites - 1])
    return -0.5 * (even + odd)


@kernel
def quench(indptr, indices, values, spins, fields):
    """Turn over spins that point against their fields until there is none."""
    turned = True
    while turned:
        turned = False
        for i in range(spins.shape[0]):
            if spins[i] * fields[i] < 0:
                turn_spin(i, indptr, indices, values, spins, fields)
                turned = True


@kernel
def swap_cluster(
    start, indptr, indices, values, spins, fields, other_spins, other_fields, stack,
    seen,
):  # fmt: skip
    """Swap between two replicas a cluster of sites in which they differ.

    A cluster ends where the replicas agree: so the sum of their energies stays, and
    with it the probability of the two together, at one temperature.

    Parameters
    ----------
    start : int
        A site. If the replicas agree there, nothing is done.
    indptr, indices, values
        The couplings.
    spins, fields, other_spins, other_fields : ndarray of shape (n_sites,)
        Spins and local fields of one and of the other replica.
    stack : int32 ndarray of shape (n_sites,)
        Scratch.
    seen : bool ndarray of shape (n_sites,)
        Scratch, all False; left so.

    Returns
    -------
    int
        Sites in the cluster.
    """
    if spins[start] == other_spins[start]:
        return 0
    stack[0], seen[start] = start, True
    size, done = 1, 0
    while done < size:
        i = stack[done]
        done += 1
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if spins[j] != other_spins[j] and not seen[j]:
                stack[size], seen[j] = j, True
                size += 1
    for k in range(size):
        i = stack[k]
        seen[i] = False
        turn_spin(i, indptr, indices, values, spins, fields)
        turn_spin(i, indptr, indices, values, other_spins, other_fields)
    return size


@kernel
def exchange(betas, parity, state, energies, slots, accepted):
    """Exchange neighbouring temperatures of one replica.

    ``slots[r]`` is the walker at ``betas[r]``, ``energies`` are those of the walkers;
    ``accepted[r]`` counts the exchanges of temperatures r and r + 1.
    """
    for r in range(parity, betas.shape[0] - 1, 2):
        a, b = slots[r], slots[r + 1]
        gain = (betas[r] - betas[r + 1]) * (energies[a] - energies[b])
        if gain >= 0 or next_uniform(state) < math.exp(gain):
            slots[r], slots[r + 1] = b, a
            accepted[r] += 1


@kernel
def renew_mark(state, walker, marks):
    """Give a walker a new mark, -1 or 1, one time in four."""
    bits = next_uint64(state)
    if bits & np.uint64(3) == np.uint64(0):
        marks[walker] = 1 if bits & np.uint64(4) else -1


@kernel
def start_glass(
    key, first, cold, indptr, indices, values, external, states, spins, fields,
    energies, slots, marks,
):  # fmt: skip
    """Seed and draw the start of pairs of chains.

    Parameters
    ----------
    key : uint64
        Names the streams; pair k of this call draws from stream ``first + k``.
    first : int
        Number of the first pair.
    cold : bool
        Whether to quench the walkers, else they are random.
    indptr, indices, values
        The couplings.
    external : ndarray of shape (n_sites,)
        The field b.
    states : uint64 ndarray of shape (n_pairs, 4)
        Filled, as are all that follow.
    spins : int8 ndarray of shape (n_pairs, 2, n_temperatures, n_sites)
        The walkers.
    fields : ndarray, shaped as ``spins``
        Their local fields.
    energies : ndarray of shape (n_pairs, 2, n_temperatures)
        Their energies.
    slots : int64 ndarray of shape (n_pairs, 2, n_temperatures)
        The walker at each temperature.
    marks : int8 ndarray of shape (n_pairs, 2, n_temperatures)
        Those of the walkers.
    """
    n_pairs, _, n_temperatures, _ = spins.shape
    for k in range(n_pairs):
        seed_stream(key, first + k, states[k])
        for c in range(2):
            random_spins(states[k], marks[k, c])
            for r in range(n_temperatures):
                s, h = spins[k, c, r], fields[k, c, r]
                slots[k, c, r] = r
                random_spins(states[k], s)
                local_fields(indptr, indices, values, external, s, h)
                if cold:
                    quench(indptr, indices, values, s, h)
                energies[k, c, r] = glass_energy(external, s, h)


@kernel
def advance_glass(
    n_sweeps, clusters, exchanges, betas, indptr, indices, values, external, chances,
    states, spins, fields, energies, slots, marks, accepted, clock,
):  # fmt: skip
    """Advance pairs of chains by some sweeps.

    Parameters
    ----------
    n_sweeps : int
        Sweeps; so many of one call are as good as of several.
    clusters : bool
        Whether the replicas swap clusters, at the colder half of the temperatures.
    exchanges : bool
        Whether temperatures exchange their walkers.
    betas : ndarray of shape (n_temperatures,)
        Inverse temperatures, the largest first.
    indptr, indices, values, external, states, spins, fields, energies, slots, marks
        As for :func:`start_glass`.
    chances : ndarray
        As for :func:`stays`.
    accepted : int64 ndarray of shape (n_pairs, n_temperatures - 1)
        Counts the exchanges of both replicas.
    clock : int64 ndarray of shape (n_pairs,)
        Counts sweeps.
    """
    n_pairs, _, n_temperatures, n_sites = spins.shape
    words = np.empty(n_sites, np.uint64)
    stack, seen = np.empty(n_sites, np.int32), np.zeros(n_sites, np.bool_)
    for k in range(n_pairs):
        state = states[k]
        for _ in range(n_sweeps):
            for r in range(n_temperatures):
                a, b = slots[k, 0, r], slots[k, 1, r]
                for c in range(2):
                    w = b if c else a
                    s, h = spins[k, c, w], fields[k, c, w]
                    fill_words(state, words)
                    heat_bath(betas[r], indptr, indices, values, chances, words, s, h)
                if clusters and 2 * r < n_temperatures:
                    site = int(next_uniform(state) * n_sites)
                    swap_cluster(
                        site, indptr, indices, values, spins[k, 0, a], fields[k, 0, a],
                        spins[k, 1, b], fields[k, 1, b], stack, seen,
                    )  # fmt: skip
                for c in range(2):
                    w = b if c else a
                    e = glass_energy(external, spins[k, c, w], fields[k, c, w])
                    energies[k, c, w] = e
            if exchanges:
                for c in range(2):
                    e, walkers = energies[k, c], slots[k, c]
                    exchange(betas, 0, state, e, walkers, accepted[k])
                    exchange(betas, 1, state, e, walkers, accepted[k])
            for c in range(2):
                renew_mark(state, slots[k, c, n_temperatures - 1], marks[k, c])
            clock[k] += 1


@kernel
def overlaps_glass(spins, slots, overlaps):
    """Write the mean product of the spins of each pair at the first temperature."""
    n_pairs, n_sites = spins.shape[0], spins.shape[3]
    for k in range(n_pairs):
        a, b = spins[k, 0, slots[k, 0, 0]], spins[k, 1, slots[k, 1, 0]]
        equal = 0
        for i in range(n_sites):
            equal += a[i] == b[i]
        overlaps[k] = (2 * equal - n_sites) / n_sites
