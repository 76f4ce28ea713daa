"""Shares of the variation of columns that batches and labels account for."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from skident._math.motion import powers_of_two


class Shares(NamedTuple):
    """Shares of the variance of each column, corrected for what chance gives.

    Attributes
    ----------
    batch : ndarray of shape (n_features,)
        Between batches.
    label : ndarray of shape (n_features,)
        Between labels within batches.
    """

    batch: np.ndarray
    label: np.ndarray


def variation_shares(Z, labels, batches):
    r"""Split the variance of columns: batches first, then labels within batches.

    .. math:: \frac{SS_\text{effect} - df_\text{effect} \, SS_\text{rest} /
        df_\text{rest}}{SS_\text{total}}

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Finite.
    labels, batches : ndarray of int of shape (n_samples,)
        Codes, 0 to the number of each - 1, all of which occur.

    Returns
    -------
    Shares or None
        Near 0, of either sign, where there is no effect; 0 for a constant column. None
        if batches and labels leave no degree of freedom.
    """
    n, n_batches = len(Z), batches.max() + 1
    # Each column in a unit near its size, so that squares are floats.
    Z = Z / powers_of_two(np.abs(Z).max(axis=0))
    varies = np.ptp(Z, axis=0) > 1e-12
    Z = Z - Z.mean(axis=0)
    Z[:, ~varies] = 0.0
    of_batch, of_label = _indicators(batches), _indicators(labels)
    sizes = np.bincount(batches)
    within = Z - (of_batch @ Z / sizes[:, None])[batches]
    # Products of the labels as columns of zeros and ones, less their means in each
    # batch, with one another and with Z.
    counts = (of_label @ of_batch.T).toarray()
    products = np.diag(counts.sum(axis=1)) - (counts / sizes) @ counts.T
    sums = of_label @ within
    values, vectors = np.linalg.eigh(products)
    # Entries are counts: what is smaller than this is rounding.
    kept = values > 1e-9 * n
    degrees = int(kept.sum())
    free = n - n_batches - degrees
    if free <= 0:
        return None
    coordinates = (vectors[:, kept] / np.sqrt(values[kept])).T @ sums
    total = (Z**2).sum(axis=0)
    inside, of_labels = (within**2).sum(axis=0), (coordinates**2).sum(axis=0)
    noise = np.maximum(inside - of_labels, 0.0) / free
    total = np.where(varies, total, 1.0)
    return Shares(
        (total * varies - inside - (n_batches - 1) * noise) / total,
        (of_labels - degrees * noise) / total,
    )


def _indicators(codes):
    """Return a sparse matrix that sums rows of one code: one row a code."""
    n = len(codes)
    return sparse.csr_array((np.ones(n), (codes, np.arange(n))))


def top_share(shares, fraction):
    """Return the part of a sum that its largest terms hold; negative terms count as 0.

    Parameters
    ----------
    shares : ndarray of shape (n_features,)
        Terms.
    fraction : float
        Part of the terms, rounded up, at least one.

    Returns
    -------
    float or None
        At least ``fraction``; None if no term is positive.
    """
    positive = np.sort(np.maximum(shares, 0.0))[::-1]
    if positive[0] == 0.0:
        return None
    # Rounded first: 0.28 * 25 is a little more than 7.
    count = max(1, int(np.ceil(round(fraction * len(positive), 9))))
    return float(positive[:count].sum() / positive.sum())
