"""Correlation of factors with latents, and their best one-to-one matching."""

import numpy as np

from skident._math.assignment import assign, choose_assignment


def standard_columns(array):
    """Return centred columns of unit norm; constant ones are 0."""
    centred = array - array.mean(axis=0)
    size = np.abs(centred).max(axis=0)
    # What rounding leaves of a constant column is no signal.
    constant = size <= 1e-12 * np.abs(array).max(axis=0)
    centred = np.where(constant, 0.0, centred / np.where(size > 0, size, 1.0))
    norm = np.linalg.norm(centred, axis=0)
    return centred / np.where(norm > 0, norm, 1.0)


def correlation_table(factors, nominal, latents):
    """Return absolute correlations, shape (n_factors, n_latents).

    Parameters
    ----------
    factors : list of ndarray of shape (n_samples,)
        Numbers, or codes of the nominal ones.
    nominal : sequence of bool
        Factors without an order: their correlation ratio is taken, the square root of
        the share of the variance of a latent that lies between their classes.
    latents : ndarray of shape (n_samples, n_latents)
        Columns of :func:`standard_columns`.

    Returns
    -------
    ndarray of shape (n_factors, n_latents)
        In [0, 1].
    """
    table = np.empty((len(factors), latents.shape[1]))
    for row, factor, by_class in zip(table, factors, nominal, strict=True):
        if by_class:
            counts = np.bincount(factor)
            sums = [np.bincount(factor, weights=z) for z in latents.T]
            row[:] = np.sqrt((np.square(sums) / counts).sum(axis=1))
        else:
            row[:] = np.abs(standard_columns(factor[:, None])[:, 0] @ latents)
    return np.clip(table, 0.0, 1.0)


def match(table):
    """Return the column that belongs to each row, -1 for none, in the best matching.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        Worth of each pair, not negative. Pairs of no worth are left unmatched.

    Returns
    -------
    ndarray of int of shape (n_rows,)
    """
    found = np.full(len(table), -1)
    wide = table if table.shape[0] <= table.shape[1] else table.T
    partner = assign(wide, choose_assignment("auto", len(wide)))
    if wide is table:
        found[:] = partner
    else:
        found[partner] = np.arange(len(wide))
    return np.where(matched_worth(table, found) > 0, found, -1)


def matched_worth(table, matching):
    """Return the worth of the pair of each row; 0 without one."""
    rows = np.arange(len(table))
    return np.where(matching >= 0, table[rows, matching], 0.0)
