"""What both Ising kernels share: random starts, and what is recorded.

Energy convention: E = -coupling * sum_<ij> s_i s_j - field * sum_i s_i, s in {-1, 1}.
"""

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import next_uint64


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
def measure(spins, bonds, staggering, coupling, field, totals):
    """Write energy and order parameter of one state to ``totals`` (2,).

    ``bonds`` is (n_bonds, 2) int32; ``staggering`` (n_sites,) holds the signs with
    which spins enter the order parameter.
    """
    n_sites = staggering.shape[0]
    aligned, up, order = np.int64(0), np.int64(0), np.int64(0)
    for b in range(bonds.shape[0]):
        aligned += spins[bonds[b, 0]] * spins[bonds[b, 1]]
    for i in range(n_sites):
        up += spins[i]
        order += staggering[i] * spins[i]
    totals[0] = -coupling * aligned - field * up
    totals[1] = order / n_sites


@kernel
def write_row(spins, low, high, row):
    """Write spins as ``low`` (down) and ``high`` (up)."""
    for i in range(row.shape[0]):
        row[i] = high if spins[i] > 0 else low
