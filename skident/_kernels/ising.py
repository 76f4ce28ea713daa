"""What the Ising kernels share: starts, and what is measured.

Energy convention: E = -coupling * sum_<ij> s_i s_j - field * sum_i s_i, s in {-1, 1}.

A cubic lattice is given by ``sides``, a tuple of 1 and the number of sites in a row and
in a plane, and ``wraps``, int32 (n_wraps, 2). Sites are in C order; each is bonded to
the one before it in its row, to the one before that row in its plane, to the one before
that plane; ``wraps`` lists the bonds that close periodic axes. So most bonds are pairs
of contiguous slices.
"""

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import next_uint64, seed_stream


@kernel
def random_spins(state, spins):
    """Fill ``spins`` (n_sites,) with independent -1 and 1."""
    bits = np.uint64(0)
    for i in range(spins.shape[0]):
        if i % 64 == 0:
            bits = next_uint64(state)
        spins[i] = 1 if bits & np.uint64(1) else -1
        bits >>= np.uint64(1)


@kernel
def start_ising(key, first, cold, ordered, sign, states, spins):
    """Seed the streams of chains and draw their first states.

    Parameters
    ----------
    key : uint64
        Names the streams; chain k of this call draws from stream ``first + k``.
    first : int
        Number of the first chain.
    cold : bool
        False: every spin at random. True: ``ordered`` times ``sign``.
    ordered : int8 ndarray of shape (n_sites,)
        A state of low energy.
    sign : int
        -1 or 1; 0 draws one of them for each chain.
    states : uint64 ndarray of shape (n_chains, 4)
        Filled with the random states.
    spins : int8 ndarray of shape (n_chains, n_sites)
        Filled.
    """
    for k in range(spins.shape[0]):
        state, s = states[k], spins[k]
        seed_stream(key, first + k, state)
        if cold:
            turn = sign
            if sign == 0:
                turn = 1 - 2 * np.int64(next_uint64(state) >> np.uint64(63))
            for i in range(s.shape[0]):
                s[i] = turn * ordered[i]
        else:
            random_spins(state, s)


@kernel
def dot(a, b):
    """Return the sum of products of two int8 arrays, as an int64."""
    total = 0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@kernel
def measure_ising(sides, wraps, staggering, coupling, field, spins, totals):
    """Write energy and order parameter of each chain to ``totals`` (n_chains, 2).

    ``staggering`` (n_sites,) int8 holds the signs with which spins enter the order
    parameter.
    """
    n_sites = spins.shape[1]
    _, width, plane = sides
    for k in range(spins.shape[0]):
        s = spins[k]
        aligned, up = 0, 0
        for step in sides:
            aligned += dot(s[step:], s[: n_sites - step])
        # Neighbours in memory that are the ends of two rows, or of two planes.
        for i in range(width, n_sites, width):
            aligned -= s[i] * s[i - 1]
        for i in range(plane, n_sites, plane):
            aligned -= dot(s[i : i + width], s[i - width : i])
        for w in range(wraps.shape[0]):
            aligned += s[wraps[w, 0]] * s[wraps[w, 1]]
        for i in range(n_sites):
            up += s[i]
        totals[k, 0] = -coupling * aligned - field * up
        totals[k, 1] = dot(staggering, s) / n_sites
