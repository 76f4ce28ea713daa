"""Heat bath sampling of the Ising model."""

import numpy as np

from skident._kernels.ising import measure, random_spins, write_row
from skident._kernels.jit import kernel
from skident._kernels.streams import next_uniform, seed_stream


@kernel
def heat_bath_sweep(neighbours, chances, state, spins):
    """Redraw every spin given its neighbours, in the order of the sites.

    Parameters
    ----------
    neighbours : int32 ndarray of shape (n_sites, n_neighbours)
        Sites, or n_sites where there is no neighbour.
    chances : ndarray of shape (2 * n_neighbours + 1,)
        Probability of up, by the sum of the neighbours plus n_neighbours.
    state : uint64 ndarray of shape (4,)
        Random state.
    spins : int8 ndarray of shape (n_sites + 1,)
        The last entry is 0.
    """
    n_sites, n_neighbours = neighbours.shape
    for i in range(n_sites):
        total = n_neighbours
        for d in range(n_neighbours):
            total += spins[neighbours[i, d]]
        spins[i] = 1 if next_uniform(state) < chances[total] else -1


@kernel
def heat_bath_chains(
    key, start, neighbours, chances, bonds, staggering, coupling, field, n_sweeps,
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
    neighbours, chances
        As for :func:`heat_bath_sweep`.
    bonds, staggering, coupling, field
        As for :func:`skident._kernels.ising.measure`.
    n_sweeps : int
        Sweeps before the draw.
    low, high : int8
        What to write for a spin that points down, up.
    rows : int8 ndarray of shape (n_chains, n_sites)
        Filled with the draws.
    totals : ndarray of shape (n_chains, 2)
        Filled with energy and order parameter of the draws.
    trace : ndarray of shape (n_chains, n_sweeps, 2) or (0, 0, 0)
        If not empty, filled with energy and order parameter after each sweep.
    """
    n_sites = neighbours.shape[0]
    state = np.empty(4, np.uint64)
    spins = np.zeros(n_sites + 1, np.int8)
    for k in range(rows.shape[0]):
        seed_stream(key, start + k, state)
        random_spins(state, spins[:n_sites])
        for t in range(n_sweeps):
            heat_bath_sweep(neighbours, chances, state, spins)
            if trace.shape[0] > 0:
                measure(spins, bonds, staggering, coupling, field, trace[k, t])
        measure(spins, bonds, staggering, coupling, field, totals[k])
        write_row(spins, low, high, rows[k])
