"""How far a smooth map is from an isometry, by the singular values of its Jacobian."""

from typing import NamedTuple

import numpy as np

_ROUNDING = 8


class BiLipschitz(NamedTuple):
    """How far a decoder is from an isometry, up to one scalar.

    Attributes
    ----------
    L : float
        The least L for which the decoder, its latents rescaled by ``scale``, is
        locally (1 + L)-bi-Lipschitz at the points given; 0 for a scaled isometry,
        infinite where a Jacobian has dependent columns, to rounding.
    scale : float
        What latents are multiplied by first: the geometric mean of the two extremes.
    smallest, largest : float
        Extreme singular values, before that.
    bound : float
        ``sqrt(2 L + L**2)``: the alignment error of two such representations under
        rigid maps, in units of the latent diameter, grows in proportion to it.
    """

    L: float
    scale: float
    smallest: float
    largest: float
    bound: float


def singular_extremes(jacobians, dtype=None):
    """Return the smallest and largest singular values (n,) of (n, n_outputs, d).

    Those that rounding alone may give count as 0: below eight times its unit, times the
    largest. That of ``dtype``, by default of the array, is meant.
    """
    values = np.linalg.svd(jacobians, compute_uv=False)
    largest = values[:, 0]
    if jacobians.shape[1] < jacobians.shape[2]:  # some direction is lost
        return np.zeros_like(largest), largest
    dtype = jacobians.dtype if dtype is None else dtype
    floor = _ROUNDING * np.finfo(dtype).eps * largest
    return np.where(values[:, -1] > floor, values[:, -1], 0.0), largest


def bi_lipschitz_constant(smallest, largest, quantile=0.0):
    """Return the constant of extremes (n,); a quantile leaves out so many points.

    Parameters
    ----------
    smallest, largest : ndarray of shape (n,)
        Extreme singular values at each point.
    quantile : float
        Fraction of points to leave out at either end.

    Returns
    -------
    BiLipschitz
    """
    low = float(np.quantile(smallest, quantile))
    high = float(np.quantile(largest, 1.0 - quantile))
    if high == 0.0:
        raise ValueError(
            "All Jacobians are zero: the decoder is constant, and no scale of its "
            "latents makes it near to an isometry."
        )
    if low == 0.0:
        return BiLipschitz(np.inf, 0.0, low, high, np.inf)
    excess = max(float(np.sqrt(high / low)) - 1.0, 0.0)
    bound = float(np.sqrt(excess * (2.0 + excess)))
    return BiLipschitz(excess, float(np.sqrt(low) * np.sqrt(high)), low, high, bound)
