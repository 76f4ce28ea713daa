"""Folds and bootstrap intervals that keep rows that belong together together."""

import numpy as np

# Resampled units: more change nothing but the time.
MOST_UNITS = 50_000


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


def shuffled_places(codes, folds, rng):
    """Return where each row stands in a random order of its fold, in [0, 1).

    Rows of one group stand together. The rows below a bound are a random part of every
    fold, and part of those below a larger bound.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Groups, 0 to the number of groups - 1.
    folds : ndarray of int of shape (n_samples,)
        Fold of each row, 0 to the number of folds - 1.
    rng : Generator
        Shuffles the groups.

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    ranks = rng.permutation(codes.max() + 1)[codes]
    order = np.lexsort((ranks, folds))
    sizes = np.bincount(folds)
    starts = np.cumsum(sizes) - sizes
    places = np.empty(len(codes))
    places[order] = np.arange(len(codes))
    return (places - starts[folds]) / sizes[folds]


def bootstrap_means(values, codes, n_resamples, rng):
    """Return means of the columns over resampled groups of rows.

    More than ``MOST_UNITS`` groups are first joined at random into so many, which
    leaves the variance of the mean what it is.

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
    n_groups = codes.max() + 1
    if n_groups > MOST_UNITS:
        codes = (rng.permutation(n_groups) % MOST_UNITS)[codes]
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


def join_folds(labels, codes, rng):
    """Join folds until most rows can change places with those of other groups.

    Of halving the number of folds, again and again, that which leaves most rows that
    can: outside the fold that leaves fewest.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
        Fold of each row, 0 to the number of folds - 1.
    codes : ndarray of int of shape (n_samples,)
        Groups, none in more than one fold.
    rng : Generator
        Decides which folds are joined.

    Returns
    -------
    ndarray of int of shape (n_samples,)
        Joined fold of each row; ``labels`` where nothing is gained.
    """
    best, most = labels, -1
    joined, n_folds = labels, int(labels.max()) + 1
    while True:
        movable = _movable(joined, codes)
        kept = movable.sum() - movable.max()
        if kept > most:
            best, most = joined, kept
        if n_folds <= 2:
            return best
        n_folds = -(-n_folds // 2)
        joined = fold_labels(labels, n_folds, rng)


def _movable(labels, codes):
    """Return how many rows of each label :func:`paired_shuffle` moves to others."""
    n_codes = int(codes.max()) + 1
    pairs, counts = np.unique(labels * n_codes + codes, return_counts=True)
    sizes = np.bincount(labels)
    largest = np.zeros(len(sizes), dtype=np.intp)
    np.maximum.at(largest, pairs // n_codes, counts)
    return sizes - np.maximum(2 * largest - sizes, sizes % 2)


def paired_shuffle(labels, rng, codes=None):
    """Return a permutation of the rows that swaps pairs within each label.

    A swap is its own inverse, so it breaks a pairing of two arrays in the same way
    whichever of the two is permuted. No row changes places with one of its own group,
    unless that group is more than half of its label.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
        Rows are swapped within these, 0 to the number of labels - 1.
    rng : Generator
        Draws the pairs.
    codes : ndarray of int of shape (n_samples,), optional
        Groups; each row its own if there are none.
    """
    codes = np.arange(len(labels)) if codes is None else codes
    places = shuffled_places(codes, labels, rng)
    permutation = np.arange(len(labels))
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        rows = rows[np.argsort(places[rows])]
        if len(rows) % 2:
            # The odd row is of the largest group: others then find more partners.
            inverse, counts = np.unique(
                codes[rows], return_inverse=True, return_counts=True
            )[1:]
            of_largest = np.flatnonzero(counts[inverse] == counts.max())
            rows = np.delete(rows, of_largest[-1])
        half = len(rows) // 2
        first, second = rows[:half], rows[half : 2 * half]
        permutation[first], permutation[second] = second, first
    return permutation


def upper_pvalue(statistic, null):
    """Return the share of null statistics, the observed one included, as large."""
    return float((1 + np.sum(np.asarray(null) >= statistic)) / (1 + len(null)))
