"""Passes over the columns of a block of rows that numpy would make one by one."""

import numpy as np

from skident._kernels.jit import kernel


@kernel
def column_stats(X, origin, total, low, high):
    """Add a block to sums about ``origin``, smallest and largest values of columns.

    Parameters
    ----------
    X : ndarray of shape (m, w)
        float32 or float64, finite.
    origin : float64 ndarray of shape (w,)
        What is subtracted before adding.
    total, low, high : float64 ndarray of shape (w,)
        Updated.
    """
    m, w = X.shape
    for b in range(m):
        for j in range(w):
            x = np.float64(X[b, j])
            total[j] += x - origin[j]
            low[j] = x if x < low[j] else low[j]
            high[j] = x if x > high[j] else high[j]


@kernel
def standardise(X, mean, inverse, out):
    """Fill ``out`` with ``(X - mean) * inverse``, computed in float64."""
    m, w = X.shape
    for b in range(m):
        for j in range(w):
            out[b, j] = (np.float64(X[b, j]) - mean[j]) * inverse[j]
