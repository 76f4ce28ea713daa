"""The square lattice without a field: the torus of Kaufman, the plane of Onsager.

With K = J / T, S = sinh 2K and s = min(S, 1 / S), both follow from

    y(w) = sqrt((1 - s)**2 + 2 s sin(w/2)**2),  z(w) = sqrt(y(w)**2 + 2 s),
    a(w) = ln((y + z) / 2),

the logarithm of the eigenvalue of a mode of momentum w less its value at an infinitely
low or high temperature: so no sum is large where its result is small.
"""

import math
from typing import NamedTuple

import numpy as np

# In place of s where it is divided by; exp(-n gamma) is then 0.
_TINY = 1e-150
# Panels, halved towards momentum 0 (where a(w) is singular at the critical point), and
# nodes in each.
_PANELS, _NODES = 60, 20


class Thermodynamics(NamedTuple):
    """Of a ferromagnet at K = J / T.

    ln Z is ``log_z`` + ``ground`` K, ``ground`` a number of bonds; ``bond_sum`` is
    the mean of the sum of s_i s_j over bonds; ``entropy`` and ``total_correlation``
    are in nats.
    """

    log_z: float
    ground: float
    bond_sum: float
    entropy: float
    total_correlation: float


def torus(sides, K):
    """Sum over the states of a periodic square lattice (Kaufman 1949).

    Parameters
    ----------
    sides : tuple of two ints
        Along a side of length 2 bonds are double, along one of length 1 there is none.
    K : float
        J / T, not negative.

    Returns
    -------
    Thermodynamics
        Of the whole lattice.
    """
    m, n = min(sides), max(sides)
    s, slope, cold = _modulus(K)
    momenta = np.pi * np.arange(m) / m
    sectors = [
        _sector(momenta, s, n, 1 if cold else -1),
        _sector(momenta + np.pi / (2 * m), s, n, None),
    ]
    largest = max(log for log, _, _, _ in sectors)
    total, total_slope = 0.0, 0.0
    for log, log_slope, value, value_slope in sectors:
        scale = 0.5 * math.exp(log - largest)
        total += scale * value
        total_slope += scale * (value_slope + log_slope * value)
    log_sum, log_slope = largest + math.log(total), total_slope / total * slope
    # Along a side of length 1 the formula bonds each site to itself.
    return _thermodynamics(log_sum, log_slope, m * n, K, cold, 2 if m > 1 else 1)


def plane(K):
    """Return the :class:`Thermodynamics` a site of the infinite lattice (Onsager 1944).

    Parameters
    ----------
    K : float
        J / T, not negative.
    """
    s, slope, cold = _modulus(K)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    width = np.pi * 0.5 ** np.arange(1, _PANELS + 1)
    momenta = width[:, None] * (1 + (nodes + 1) / 2)
    weights = width[:, None] * weights / (2 * np.pi)
    a, a_slope = _mode(momenta / 2, s)[:2]
    log_sum, log_slope = (weights * a).sum(), (weights * a_slope).sum() * slope
    return _thermodynamics(log_sum, log_slope, 1, K, cold, 2)


def spontaneous_magnetization(K):
    """Return that of the infinite lattice (Yang 1952); zero from T_c on."""
    if K <= 0 or not _modulus(K)[2]:
        return 0.0
    log_sinh = 2 * K - math.log(2) + math.log1p(-math.exp(-4 * K))
    return (-math.expm1(-4 * log_sinh)) ** 0.125


def _modulus(K):
    """Return s, its derivative with respect to K, and whether S > 1."""
    # Beyond 2 K = 1 the hyperbolic sine exceeds 1, and further on it overflows.
    s = math.sinh(2 * K) if K < 0.5 else -2 * math.exp(-2 * K) / math.expm1(-4 * K)
    cold = K >= 0.5 or s > 1
    if K < 0.5 and cold:
        s = 1 / s
    return s, (-2 * s if cold else 2) * math.sqrt(1 + s * s), cold


def _mode(half_momenta, s):
    """Return a, its derivative with respect to s, and y."""
    sine = np.sin(half_momenta) ** 2
    y = np.sqrt((1 - s) ** 2 + 2 * s * sine)
    z = np.sqrt((1 - s) ** 2 + 2 * s * (1 + sine))
    # At momentum 0 and s = 1 the slope of y is that from below.
    y_slope = np.divide(s - 1 + sine, y, out=np.full_like(y, -1.0), where=y > 0)
    z_slope = (s + sine) / z
    y_less_1 = s * (s - 2 + 2 * sine) / (y + 1)
    z_less_1 = s * (s + 2 * sine) / (z + 1)
    a = np.log1p((y_less_1 + z_less_1) / 2)
    return a, (y_slope + z_slope) / (y + z), y


def _sector(half_momenta, s, n, sign):
    """Add the two products over the modes of one boundary condition.

    ``sign`` is that of the energy of the mode of momentum 0, if it is among them.
    Returns the log of a scale and its slope (with respect to s), then the sum of the
    two products on that scale, and its slope.
    """
    a, a_slope, y = _mode(half_momenta, s)
    divisor = max(s, _TINY)
    gamma = 2 * np.arcsinh(y / math.sqrt(2 * divisor))
    drop = n * (2 * a_slope - 1 / divisor)
    rare = np.exp(-n * gamma)
    plus = math.exp(np.log1p(rare).sum())
    plus_slope = -plus * (drop * rare / (1 + rare)).sum()
    rest = slice(0 if sign is None else 1, None)
    minus = math.exp(np.log1p(-rare[rest]).sum())
    minus_slope = minus * (drop * rare)[rest] @ (1 / -np.expm1(-n * gamma[rest]))
    if sign is not None:
        first = -math.expm1(-n * gamma[0])
        minus_slope = sign * (first * minus_slope + drop[0] * rare[0] * minus)
        minus *= sign * first
    return n * a.sum(), n * a_slope.sum(), plus + minus, plus_slope + minus_slope


def _thermodynamics(log_sum, log_slope, n_sites, K, cold, n_axes):
    """Put together; ``log_sum`` is less N ln 2 or, cold, less 2 N K and more."""
    self_bonds = (2 - n_axes) * n_sites
    if not cold:
        log_z = n_sites * math.log(2) + log_sum - self_bonds * K
        total_correlation = max(0.0, K * log_slope - log_sum)
        entropy = n_sites * math.log(2) - total_correlation
        return Thermodynamics(
            log_z, 0, log_slope - self_bonds, entropy, total_correlation
        )
    rare = math.exp(-4 * K)
    log_sum += n_sites * math.log1p(-rare)
    log_slope += n_sites * 4 * rare / -math.expm1(-4 * K)
    entropy = max(0.0, log_sum - K * log_slope)
    total_correlation = max(0.0, n_sites * math.log(2) - entropy)
    ground = n_axes * n_sites
    return Thermodynamics(
        log_sum, ground, ground + log_slope, entropy, total_correlation
    )
