"""Wolff sampling of the Ising model: one cluster at a time, in a field too.

A cluster grows from a random site over satisfied bonds (parallel spins for coupling >
0, antiparallel for coupling < 0), each taken with probability 1 - exp(-2 beta
|coupling|), and turns over (U. Wolff, Phys. Rev. Lett. 62, 361 (1989)). In a field it
turns with the Metropolis probability of its energy in the field, so that each update is
in detailed balance with the Boltzmann distribution.
"""

import math

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import next_uint64, next_uniform, threshold

_HALF = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
# An unsigned index is not negative, which would take a test at every use.
_ONE = np.uint64(1)

# Exclusive-or of a spin in the cluster: 1 becomes 3, -1 becomes -3.
_MARK = 2


@kernel
def grow_cluster(neighbours, like, limit, push, state, spins, members):
    """Grow a cluster.

    Parameters
    ----------
    neighbours : int32 ndarray of shape (n_sites, n_neighbours)
        Sites, or n_sites where there is no neighbour; n_neighbours is even.
    like : int
        1 or -1, the product of spins of a satisfied bond.
    limit : int
        A satisfied bond is taken if 32 random bits are below it.
    push : float
        2 beta field.
    state : uint64 ndarray of shape (4,)
        Random state.
    spins : int8 ndarray of shape (n_sites + 1,)
        The last entry is 0. Those of the cluster are marked.
    members : int32 ndarray of shape (n_sites + 1,)
        Its first entries are filled with the sites.

    Returns
    -------
    size : int
        Number of sites.
    turns : bool
        Whether the field lets the cluster turn over; if not, it may not be complete.
    """
    n_sites, n_neighbours = neighbours.shape
    # The cost in the field, in k_B T, that this update is ready to pay.
    budget = -math.log(1.0 - next_uniform(state)) if push != 0 else 0.0
    start = np.int64(next_uniform(state) * n_sites)
    members[0] = start
    spins[start] ^= _MARK
    size, head = _ONE, np.uint64(0)
    moment = 0
    word = np.uint64(0)
    while head < size:
        i = np.uint64(members[head])
        head += _ONE
        spin = spins[i] ^ _MARK
        moment += spin
        # A cluster of equal spins costs more and more as it grows.
        if like > 0 and push * moment > budget:
            break
        for d in range(n_neighbours):
            word = next_uint64(state) if d % 2 == 0 else word >> _SHIFT
            j = np.uint64(neighbours[i, d])
            joins = (spins[j] == like * spin) & (np.int64(word & _HALF) < limit)
            # Written even if it does not join: a branch would be guessed wrong.
            members[size] = j
            size += np.uint64(joins)
            spins[j] ^= _MARK * joins
    return np.int64(size), push * moment <= budget


@kernel
def advance_wolff(
    n_sweeps, n_clusters, neighbours, coupling, activation, push, states, spins, tally
):
    """Advance independent chains by sweeps of Wolff's cluster updates.

    A sweep updates ``n_clusters`` clusters, or with probability 1/2 one more. At
    infinite temperature every cluster is a single site and always turns, so that with
    a fixed number of them the parity of the number of up spins would never be
    forgotten.

    Parameters
    ----------
    n_sweeps : int
        Sweeps.
    n_clusters : int
        Cluster updates a sweep.
    neighbours : int32 ndarray of shape (n_sites, n_neighbours)
        Sites, or n_sites where there is no neighbour; n_neighbours is even.
    coupling : float
        Its sign matters.
    activation : float
        1 - exp(-2 beta |coupling|), the probability that a satisfied bond is taken,
        exact to 2**-33.
    push : float
        2 beta field.
    states : uint64 ndarray of shape (n_chains, 4)
        Random states; advanced.
    spins : int8 ndarray of shape (n_chains, n_sites)
        Advanced.
    tally : int64 ndarray of shape (n_chains, 2)
        Clusters that turned and clusters grown are added.
    """
    n_sites = spins.shape[1]
    like = 1 if coupling > 0 else -1
    limit = threshold(activation)
    padded = np.empty(n_sites + 1, np.int8)
    members = np.empty(n_sites + 1, np.int32)
    padded[n_sites] = 0
    for k in range(spins.shape[0]):
        state = states[k]
        for i in range(n_sites):
            padded[i] = spins[k, i]
        for _ in range(n_sweeps):
            more = np.int64(next_uint64(state) >> np.uint64(63))
            for _ in range(n_clusters + more):
                size, turns = grow_cluster(
                    neighbours, like, limit, push, state, padded, members
                )
                sign = -1 if turns else 1
                for m in range(size):
                    padded[members[m]] = sign * (padded[members[m]] ^ _MARK)
                tally[k, 0] += turns
                tally[k, 1] += 1
        for i in range(n_sites):
            spins[k, i] = padded[i]
