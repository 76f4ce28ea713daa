"""The size of a set of rows, without a distance matrix."""

import numpy as np

from skident._math.paired_rows import blocks

_SWEEPS = 16


def distances(X, point):
    """Return the distance of every row from a point.

    Parameters
    ----------
    X : Rows
        Centred rows.
    point : ndarray of shape (n_features,)
        In the same coordinates.

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    out = np.empty(X.shape[0])
    for rows in blocks(*X.shape):
        away = X.take(rows)
        away -= point.astype(away.dtype)
        out[rows] = np.sqrt(np.einsum("ij,ij->i", away, away))
    return out


def diameters(X):
    """Return the largest distance between rows that sweeps find, and a robust one.

    From the row farthest from the mean to the row farthest from that, and on until the
    distance grows no more: a lower bound, at least half of the true diameter, in
    a few passes over the rows. The robust diameter is twice the 99th percentile of the
    distance from the mean.

    Parameters
    ----------
    X : Rows
        Centred on their mean.

    Returns
    -------
    largest, robust : float
        In units of ``X.unit``.
    """
    away = distances(X, np.zeros(X.shape[1]))
    robust = 2.0 * float(np.quantile(away, 0.99))
    best = 0.0
    for _ in range(_SWEEPS):
        point = X.take(slice(farthest := int(np.argmax(away)), farthest + 1))[0]
        away = distances(X, point)
        if away.max() <= best:
            break
        best = float(away.max())
    return best, robust


DIAMETERS = ("max", "robust")
