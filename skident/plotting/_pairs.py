"""Figures of pairs of columns: correlations, and distances on a lattice."""

import math
from numbers import Integral

import numpy as np


def lattice_distances(shape, periodic=True):
    """Return how many bonds lie between each two sites of a lattice.

    Parameters
    ----------
    shape : int or sequence of int
        Sides of the lattice; sites are in C order, as in ``make_ising``.
    periodic : bool
        Whether the lattice closes on itself along every axis.

    Returns
    -------
    ndarray of shape (n_sites, n_sites), int
        Sum over axes of the distance along each.
    """
    sides = check_sides(shape)
    total = np.zeros((math.prod(sides),) * 2, dtype=int)
    for places, side in zip(np.indices(sides), sides, strict=True):
        places = places.ravel()
        steps = np.abs(places[:, None] - places)
        total += np.minimum(steps, side - steps) if periodic else steps
    return total


def check_sides(shape):
    """Return the sides as a tuple, or raise a ``ValueError``."""
    sides = (shape,) if isinstance(shape, Integral) else tuple(shape)
    if not sides or not all(isinstance(n, Integral) and n >= 1 for n in sides):
        raise ValueError(f"shape must be ints, each at least 1; got {shape!r}.")
    return tuple(int(n) for n in sides)


def correlation(covariance):
    """Return the correlation of a checked covariance, 0 where a variance is 0."""
    covariance = np.asarray(covariance, dtype=float)
    name = "residual_covariance"
    if covariance.ndim != 2 or len(set(covariance.shape)) != 1 or len(covariance) < 2:
        raise ValueError(
            f"{name} must be square with at least 2 columns, got shape "
            f"{covariance.shape}."
        )
    if not np.isfinite(covariance).all():
        row, column = np.argwhere(~np.isfinite(covariance))[0]
        raise ValueError(f"{name} is not finite at row {row}, column {column}.")
    variances = np.diag(covariance)
    if (variances < 0).any():
        column = int(np.argmin(variances))
        raise ValueError(f"{name} has a negative variance: column {column}.")
    if not np.allclose(covariance, covariance.T, atol=1e-8 * variances.max()):
        raise ValueError(f"{name} must be symmetric.")
    scale = np.sqrt(variances)
    product = np.outer(scale, scale)
    correlation = np.divide(
        covariance, product, out=np.zeros_like(product), where=product > 0
    )
    np.fill_diagonal(correlation, 1.0)
    return correlation


def by_distance(distances, values):
    """Return distances, and mean and standard error of the values at each."""
    distances, codes, counts = np.unique(
        distances, return_inverse=True, return_counts=True
    )
    means = np.bincount(codes, values) / counts
    squares = np.bincount(codes, (values - means[codes]) ** 2)
    return distances, means, np.sqrt(squares / np.maximum(counts - 1, 1) / counts)
