"""Rows and folds of probes, and probes with a closed form.

Linear probes are penalised in whitened columns only, so that an invertible affine map
of the latents leaves every score as it is.
"""

import numpy as np
from scipy import linalg

# Strengths of the penalty, tried from strong to weak: in whitened columns, one is a
# prior of unit variance.
ALPHAS = (10.0, 1.0, 0.1, 0.01, 1e-3)
# In units of the median distance of rows from the median: 17 standard deviations of
# normal, 25 of Laplace columns. What is beyond is no part of a distribution, unless it
# is a hundredth of all rows: then it may be a class of its own.
_FARTHEST, _RARE = 25.0, 0.01
# Rows count as far out at so many median deviations above the median distance from the
# mean: beyond 4 standard deviations for one normal column.
_PULLED, _MOST_PULLS = 8.0, 20
# With fewer rows a column no row stands out.
_ROWS_PER_COLUMN = 4
_TINY = np.finfo(float).tiny


def whiten_columns(latents):
    """Return the standardised principal components of rank-revealing whitening.

    Parameters
    ----------
    latents : ndarray of shape (n_samples, n_columns)
        Finite; constant and dependent columns are fine.

    Returns
    -------
    ndarray of shape (n_samples, rank)
        Uncorrelated, variance 1; the same up to a rotation for every invertible affine
        map of the latents.
    """
    centred = latents - latents.mean(axis=0)
    size = np.abs(centred).max(axis=0)
    # What rounding leaves of a constant column is no direction.
    noise = 1e-12 * np.abs(latents).max(axis=0, initial=0.0)
    centred = centred[:, size > noise]
    centred = centred / centred.std(axis=0)
    variance, axes = linalg.eigh(centred.T @ centred / len(latents))
    kept = variance > 1e-10 * variance.max(initial=0.0)
    return centred @ (axes[:, kept] / np.sqrt(variance[kept]))


def clip_outliers(array, farthest=_FARTHEST):
    """Bring entries that no distribution explains back to its edge, by column.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_columns)
        Finite.
    farthest : float
        Largest distance from the median of a column, in units of the median distance
        of those entries that are not equal to it. The nearest 99 of 100 entries stay.

    Returns
    -------
    ndarray of shape (n_samples, n_columns)
        The same for every scale of a column, but for that scale.
    """
    centre = np.median(array, axis=0)
    distance = np.abs(array - centre)
    clipped = array.copy()
    for j, column in enumerate(distance.T):
        apart = column[column > 0]
        if apart.size:
            reach = max(farthest * np.median(apart), _common(column))
            clipped[:, j] = np.clip(array[:, j], centre[j] - reach, centre[j] + reach)
    return clipped


def _common(distance):
    """Return the largest distance that is not among the rarest hundredth."""
    return np.quantile(distance, 1.0 - _RARE, method="lower")


def pull_in(latents):
    """Return whitened rows, those far out brought back along their radius.

    Unlike a limit for each column, that is the same in every basis. The rows within the
    limit define mean, covariance and, through their distances, the next limit. The
    nearest 99 of 100 rows stay where they are.

    Parameters
    ----------
    latents : ndarray of shape (n_samples, n_columns)
        Finite, without entries that swamp all others.

    Returns
    -------
    ndarray of shape (n_samples, rank)
    """
    white = whiten_columns(latents)
    if not white.size or _ROWS_PER_COLUMN * white.shape[1] > len(white):
        return white
    inside = np.ones(len(white), dtype=bool)
    for _ in range(_MOST_PULLS):
        centred = white - white[inside].mean(axis=0)
        variance, axes = np.linalg.eigh(centred[inside].T @ centred[inside])
        scale = np.sqrt(np.maximum(variance / inside.sum(), _TINY))
        centred = centred @ (axes / scale)
        distance = np.sqrt((centred**2).sum(axis=1))
        middle = np.median(distance)
        apart = np.abs(distance - middle)
        apart = apart[apart > 1e-9 * middle]
        limit = middle + (_PULLED * np.median(apart) if apart.size else 0.0)
        limit = max(limit, _common(distance))
        before, inside = inside, distance <= limit * (1.0 + 1e-9)
        if np.array_equal(before, inside):
            break
    return centred * np.minimum(1.0, limit / np.maximum(distance, _TINY))[:, None]


def canonical_order(latents):
    """Return an order of rows that neither their order nor the basis matters to.

    Rows are sorted by their distance from the mean in whitened columns; if the rows are
    too few for that to differ, in standardised ones. Ties are broken by the latents.

    Parameters
    ----------
    latents : ndarray of shape (n_samples, n_columns)
        Finite.

    Returns
    -------
    ndarray of int of shape (n_samples,)
    """
    white = whiten_columns(latents)
    if 2 * white.shape[1] > len(latents):
        white = latents - latents.mean(axis=0)
        white = white / np.maximum(white.std(axis=0), _TINY)
    distance = (white**2).sum(axis=1)
    # Rounded, so that what is equal but for the last digits counts as equal.
    size = distance.max(initial=0.0) or 1.0
    return np.lexsort([*latents.T[::-1], np.round(distance / size, 11)])


def first_come_codes(labels):
    """Return labels as 0, 1, ... in the order in which they first occur."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[codes.reshape(-1)]


def stratified_folds(codes, n_folds, rng):
    """Assign rows to folds of nearly equal size, each class evenly.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Classes.
    n_folds : int
        Number of folds, at most the number of rows.
    rng : Generator
        Shuffles the rows.

    Returns
    -------
    ndarray of int of shape (n_samples,)
    """
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(len(codes), dtype=np.intp)
    folds[order] = np.arange(len(codes)) % n_folds
    return folds


def held_out_r2(features, values, folds):
    """Return the share of variance that a linear probe explains on other rows.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_columns)
        Latents.
    values : ndarray of shape (n_samples,)
        Factor.
    folds : ndarray of int of shape (n_samples,)
        Fold of each row.

    Returns
    -------
    float
        In [0, 1]. Strengths of the penalty are chosen for each fold by the losses of
        the others.
    """
    white = whiten_columns(features)
    losses = np.empty((folds.max() + 1, len(ALPHAS)))
    null = 0.0
    for fold, row in enumerate(losses):
        test = folds == fold
        x, y = white[~test], values[~test]
        null += ((values[test] - y.mean()) ** 2).sum()
        x_mean = x.mean(axis=0)
        variance, axes = np.linalg.eigh((x - x_mean).T @ (x - x_mean))
        target = axes.T @ ((x - x_mean).T @ (y - y.mean()))
        for a, alpha in enumerate(ALPHAS):
            slope = axes @ (target / (variance + alpha))
            predicted = y.mean() + (white[test] - x_mean) @ slope
            row[a] = ((values[test] - predicted) ** 2).sum()
    return share(saved(chosen(losses).sum(), null))


def single_latent_accuracy(latent, codes, folds):
    """Return how often a linear discriminant of one column is right on other rows.

    Parameters
    ----------
    latent : ndarray of shape (n_samples,)
        One column.
    codes : ndarray of int of shape (n_samples,)
        Factor.
    folds : ndarray of int of shape (n_samples,)
        Fold of each row.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    Classes are normal with one variance, as frequent as in the training rows.
    """
    n_classes, right = codes.max() + 1, 0
    for fold in range(folds.max() + 1):
        test = folds == fold
        z, train = latent[~test], codes[~test]
        counts = np.bincount(train, minlength=n_classes)
        seen = np.maximum(counts, 1)
        means = np.bincount(train, weights=z, minlength=n_classes) / seen
        within = ((z - means[train]) ** 2).mean()
        prior = np.log(np.maximum(counts, _TINY))
        spread = within or np.finfo(float).eps * max(z.var(), _TINY)
        worth = prior - (latent[test, None] - means) ** 2 / (2.0 * spread)
        worth[:, counts == 0] = -np.inf
        right += (worth.argmax(axis=1) == codes[test]).sum()
    return float(right / len(codes))


def table_accuracy(cells, codes, folds):
    """Return how often the commonest class of a cell is right on other rows.

    Parameters
    ----------
    cells, codes : ndarray of int of shape (n_samples,)
        Codes of the known and of the sought. A cell without training rows counts as
        the commonest class of all.
    folds : ndarray of int of shape (n_samples,)
        Fold of each row.

    Returns
    -------
    float
        In [0, 1].
    """
    shape, right = (cells.max() + 1, codes.max() + 1), 0
    for fold in range(folds.max() + 1):
        test = folds == fold
        table = np.zeros(shape)
        np.add.at(table, (cells[~test], codes[~test]), 1.0)
        # The commonest of all breaks ties and fills what is empty.
        table += 0.5 * table.sum(axis=0) / (~test).sum()
        right += (table.argmax(axis=1)[cells[test]] == codes[test]).sum()
    return float(right / len(codes))


def chosen(losses):
    """Return the loss of each fold at the strength that is best for the others.

    Parameters
    ----------
    losses : ndarray of shape (n_folds, n_strengths)
    """
    others = losses.sum(axis=0) - losses
    return losses[np.arange(len(losses)), others.argmin(axis=1)]


def saved(loss, null):
    """Return the share of a loss that is saved; nothing can be saved of nothing."""
    return float(1.0 - loss / null) if null > 0 else 0.0


def share(value):
    """Return a share within [0, 1]."""
    return min(1.0, max(0.0, value))
