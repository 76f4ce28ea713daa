"""Heat bath sampling of the Ising model."""

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import fill_words


@kernel
def heat_bath_sweep(neighbours, limits, words, spins):
    """Redraw every spin given its neighbours, in the order of the sites.

    Parameters
    ----------
    neighbours : int32 ndarray of shape (n_sites, n_neighbours)
        Sites, or n_sites where there is no neighbour.
    limits : int64 ndarray of shape (2 * n_neighbours + 1,)
        Probability of up times 2**53, by the sum of the neighbours plus n_neighbours.
    words : uint64 ndarray of shape (n_sites,)
        Random bits, of which the upper 53 are compared with a limit.
    spins : int8 ndarray of shape (n_sites + 1,)
        The last entry is 0.
    """
    n_sites, n_neighbours = neighbours.shape
    for i in range(n_sites):
        total = n_neighbours
        for d in range(n_neighbours):
            total += spins[neighbours[i, d]]
        up = np.int64(words[i] >> np.uint64(11)) < limits[total]
        spins[i] = 2 * up - 1


@kernel
def advance_heat_bath(n_sweeps, neighbours, limits, states, spins):
    """Advance independent chains by sweeps of the heat bath.

    A sweep redraws the spins one by one in the order of the sites. It leaves the
    Boltzmann distribution alone, though the reverse sweep would take the reverse order.
    Each spin is drawn afresh whatever it was, so nothing oscillates at any
    temperature; at infinite temperature one sweep forgets the state before.

    Parameters
    ----------
    n_sweeps : int
        Sweeps over all sites.
    neighbours, limits
        As for :func:`heat_bath_sweep`.
    states : uint64 ndarray of shape (n_chains, 4)
        Random states; advanced.
    spins : int8 ndarray of shape (n_chains, n_sites)
        Advanced.
    """
    n_sites = spins.shape[1]
    words = np.empty(n_sites, np.uint64)
    padded = np.empty(n_sites + 1, np.int8)
    padded[n_sites] = 0
    for k in range(spins.shape[0]):
        for i in range(n_sites):
            padded[i] = spins[k, i]
        for _ in range(n_sweeps):
            fill_words(states[k], words)
            heat_bath_sweep(neighbours, limits, words, padded)
        for i in range(n_sites):
            spins[k, i] = padded[i]
