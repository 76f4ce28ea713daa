"""Folds and bootstrap intervals that keep rows that belong together together."""

import numpy as np


def fold_labels(codes, n_folds, rng):
    """Assign rows to folds of nearly equal size, keeping groups whole.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Groups, 0 to the number of groups - 1.
    n_folds : int
        Number of folds, at most the number of groups.
    rng : Generator
        Shuffles the groups.

    Returns
    -------
    ndarray of int of shape (n_samples,)
        Fold of each row, 0 to ``n_folds - 1``; none is empty.

    Raises
    ------
    ValueError
        If there are fewer groups than folds.
    """
    sizes = np.bincount(codes)
    if len(sizes) < n_folds:
        raise ValueError(
            f"{n_folds} folds need at least as many groups, got {len(sizes)}."
        )
    order = rng.permutation(len(sizes))
    fold = np.empty(len(sizes), dtype=np.intp)
    if sizes.max() == 1:
        fold[order] = np.arange(len(sizes)) % n_folds
        return fold[codes]
    # Largest groups first, each to the fold that has fewest rows so far.
    order = order[np.argsort(-sizes[order], kind="stable")]
    filled = np.zeros(n_folds)
    for group in order:
        fold[group] = np.argmin(filled)
        filled[fold[group]] += sizes[group]
    return fold[codes]


def bootstrap_means(values, codes, n_resamples, rng):
    """Return means of the columns over resampled groups of rows.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_columns)
        One row a sample.
    codes : ndarray of int of shape (n_samples,)
        Groups, 0 to the number of groups - 1; whole groups are drawn with replacement.
    n_resamples : int
        Number of resamples.
    rng : Generator
        Draws the groups.

    Returns
    -------
    ndarray of shape (n_resamples, n_columns)
    """
    sizes = np.bincount(codes).astype(float)
    sums = np.stack([np.bincount(codes, weights=column) for column in values.T], axis=1)
    means = np.empty((n_resamples, values.shape[1]))
    for row in means:
        drawn = rng.integers(len(sizes), size=len(sizes))
        counts = np.bincount(drawn, minlength=len(sizes))
        row[:] = (counts @ sums) / (counts @ sizes)
    return means


def percentile_interval(draws, confidence_level):
    """Return the central interval of ``draws`` along the first axis, shape (..., 2)."""
    tail = 0.5 * (1.0 - confidence_level)
    return np.moveaxis(np.quantile(draws, [tail, 1.0 - tail], axis=0), 0, -1)


def paired_shuffle(labels, rng):
    """Return a permutation of the rows that swaps pairs within each label.

    A swap is its own inverse, so it breaks a pairing of two arrays in the same way
    whichever of the two is permuted.
    """
    permutation = np.arange(len(labels))
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        half = len(rows) // 2
        first, second = rows[:half], rows[half : 2 * half]
        permutation[first], permutation[second] = second, first
    return permutation


def upper_pvalue(statistic, null):
    """Return the share of null statistics, the observed one included, as large."""
    return float((1 + np.sum(np.asarray(null) >= statistic)) / (1 + len(null)))
