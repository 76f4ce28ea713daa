"""Exact independent draws of spins that depend only on how many point up."""

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import first_above, next_uniform, seed_stream


@kernel
def draw_exchangeable(key, start, cdf, rows, ups):
    """Fill rows of spins whose number of ups has a given distribution.

    The arrangement is uniform given the number (Floyd's subset sampling, on the
    smaller of the two sides): at most n_sites / 2 random numbers a draw.

    Parameters
    ----------
    key : uint64
        Names the streams; row k of a run draws from stream ``start + k``.
    start : int
        Number of the first row.
    cdf : ndarray of shape (n_sites + 1,)
        Probability of at most k ups; the last entry is 1.
    rows : int8 ndarray of shape (n_samples, n_sites)
        Filled.
    ups : int64 ndarray of shape (n_samples,)
        Filled with the number of ups of each row.
    """
    n_samples, n_sites = rows.shape
    state = np.empty(4, np.uint64)
    for k in range(n_samples):
        seed_stream(key, start + k, state)
        n_ups = first_above(cdf, next_uniform(state))
        ups[k] = n_ups
        few, n_few = 1, n_ups
        if 2 * n_ups > n_sites:
            few, n_few = -1, n_sites - n_ups
        row = rows[k]
        row[:] = -few
        for last in range(n_sites - n_few, n_sites):
            site = int(next_uniform(state) * (last + 1))
            if row[site] == few:
                site = last
            row[site] = few
