"""The Maier-Saupe model of directors: quadrature over a tensor field, and its limit.

With beta = 1 / T the weight exp(beta N / 3 tr Q^2) is a Gaussian integral over a
traceless symmetric tensor M: M given the directors is Q plus noise of variance
3 T / 2N in each of five orthonormal coordinates, and given M the directors are
independent, each Bingham distributed with matrix A = M / T. The density of M depends
on its eigenvalues alone,

    (1 + u) (cos phi, cos(phi - 2 pi / 3), cos(phi + 2 pi / 3)),  0 <= phi <= pi / 3,

and with y = 1 - cos 3 phi the measure of all tensors is (1 + u)^4 du dy, 0 <= y <= 2.
The ground state is u = y = 0; everything is measured from there, so that no large
numbers cancel when it is cold.
"""

import functools
import math
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp, roots_legendre

from skident._compat import Interval, validate_params
from skident._math.bingham import excess_moments, log_excess

# Hotter than this three terms of the series in 1 / T are exact to 1e-12.
_HOT = 1e4
# Panels are one standard deviation of the noise wide up to this distance from a peak,
# and then grow.
_NEAR, _GROWTH = 14, 1.25
# What lies below exp(-75) of the maximum is left out; the integral over y could lift it
# by exp(20).
_NEGLIGIBLE = -75.0
# Depth in y to which the integrand is followed.
_DEPTH = 45.0
_PANEL_NODES, _PANEL_WEIGHTS = roots_legendre(12)
_Y_NODES, _Y_WEIGHTS = roots_legendre(32)


class MaierSaupe(NamedTuple):
    r"""Exact values of the Maier-Saupe model, as :func:`maier_saupe` returns them.

    Attributes
    ----------
    order_parameter : float
        sqrt(2 <tr Q^2> / 3), the order S of an aligned state; 1 / sqrt(N) at infinite
        temperature.
    energy : float
        <H> / N.
    free_energy : float
        -T ln Z, where Z is the mean of exp(-H / T) over independent uniform directors;
        -1 / 2 at infinite temperature. Add -T N ln(4 pi) for the integral over the
        spheres.
    entropy : float
        Differential entropy of the whole configuration, in nats, with respect to the
        areas of the spheres: N ln(4 pi) - ``total_correlation``.
    total_correlation : float
        Sum of the entropies of the single directors, which are uniform, minus
        ``entropy``, in nats.
    pair_correlation : float or None
        <P_2(n_k . n_l)> for k != l; None for a single director.
    """

    order_parameter: float
    energy: float
    free_energy: float
    entropy: float
    total_correlation: float
    pair_correlation: float | None


class MaierSaupeLimit(NamedTuple):
    r"""Values of the infinite Maier-Saupe model; see :func:`maier_saupe_limit`.

    All of them per site, and of the stable phase where nothing else is said.

    Attributes
    ----------
    order_parameter : float
        S, zero above the transition.
    energy : float
        -S^2 / 2.
    free_energy : float
        -T ln Z / N against the uniform measure: zero in the isotropic phase.
    entropy : float
        In nats, with respect to the area of the sphere; ln(4 pi) in the isotropic
        phase.
    total_correlation : float
        ln(4 pi) - ``entropy``.
    nematic_order : float or None
        S of the nematic phase, stable or metastable; None above the temperature where
        that phase ends.
    nematic_free_energy : float or None
        Its free energy; positive where it is metastable.
    """

    order_parameter: float
    energy: float
    free_energy: float
    entropy: float
    total_correlation: float
    nematic_order: float | None
    nematic_free_energy: float | None


class MaierSaupeTransition(NamedTuple):
    r"""The phase transition of the infinite model; see :func:`maier_saupe_transition`.

    Attributes
    ----------
    temperature : float
        T_NI, where both phases have one free energy.
    order_parameter : float
        S of the nematic phase there.
    nematic_limit : float
        Temperature up to which the nematic phase is metastable.
    nematic_limit_order : float
        S at that temperature.
    isotropic_limit : float
        Temperature down to which the isotropic phase is metastable.
    """

    temperature: float
    order_parameter: float
    nematic_limit: float
    nematic_limit_order: float
    isotropic_limit: float


@validate_params(
    {
        "n_sites": [Interval(Integral, 1, 10**8, closed="both")],
        "temperature": [Interval(Real, 1e-100, np.inf, closed="both")],
    },
    prefer_skip_nested_validation=True,
)
def maier_saupe(n_sites, temperature):
    r"""Exact values of the Maier-Saupe model of directors by quadrature.

    The Hamiltonian of N unit vectors :math:`n_k` in space, self-terms included, with
    :math:`k_B = 1`, is

    .. math:: H = -\frac{1}{2N} \sum_{k,l} P_2(n_k \cdot n_l)
              = -\frac{N}{3} \operatorname{tr} Q^2 , \qquad
              Q = \frac{1}{N} \sum_k \tfrac{3}{2} \left(n_k n_k^T - I/3\right) ,

    with the Legendre polynomial :math:`P_2(x) = (3 x^2 - 1) / 2`; temperatures are in
    units of the coupling.

    Parameters
    ----------
    n_sites : int
        Number of directors N, at most 1e8.
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed.

    Returns
    -------
    MaierSaupe
        A named tuple of ``order_parameter``, ``energy`` (per site), ``free_energy``,
        ``entropy``, ``total_correlation`` and ``pair_correlation``; see
        :class:`MaierSaupe`.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value.

    See Also
    --------
    maier_saupe_limit : The same for infinitely many directors.

    Notes
    -----
    A Gaussian tensor field decouples the directors; what remains is an integral over
    two invariants of the tensor, done by Gauss-Legendre panels on a logarithmic scale
    around both phases. Entropy and -F / T have an error of about 1e-15 per site, the
    other values one of 1e-14. From T = 1e4 on the values are those of three terms of
    the series in 1 / T.

    References
    ----------
    .. [1] W. Maier and A. Saupe, "Eine einfache molekulare Theorie des nematischen
       kristallinflüssigen Zustandes", Z. Naturforsch. A 13, 564 (1958).
    .. [2] C. Bingham, "An antipodally symmetric distribution on the sphere", Ann.
       Statist. 2, 1201 (1974).

    Examples
    --------
    >>> from skident.exact import maier_saupe
    >>> truth = maier_saupe(64, 0.2202)
    >>> round(truth.order_parameter, 4), round(truth.total_correlation, 3)
    (0.4703, 25.582)
    """
    n_sites, temperature = int(n_sites), float(temperature)
    if temperature >= _HOT:
        log_z, excess_energy, total_correlation = _hot_values(n_sites, temperature)
        free_energy = -log_z
    else:
        shifted_log_z, excess_energy = _cold_values(n_sites, temperature)
        free_energy = -n_sites / 2 - temperature * shifted_log_z
        total_correlation = -shifted_log_z - n_sites * (excess_energy / temperature)
    energy = -0.5 + excess_energy
    total_correlation = max(0.0, total_correlation) if n_sites > 1 else 0.0
    pair = (-2 * energy * n_sites - 1) / (n_sites - 1) if n_sites > 1 else None
    return MaierSaupe(
        order_parameter=math.sqrt(-2 * energy),
        energy=energy,
        free_energy=free_energy,
        entropy=n_sites * math.log(4 * math.pi) - total_correlation,
        total_correlation=total_correlation,
        pair_correlation=pair,
    )


@validate_params(
    {"temperature": [Interval(Real, 1e-100, np.inf, closed="both")]},
    prefer_skip_nested_validation=True,
)
def maier_saupe_limit(temperature):
    r"""Values per site of the Maier-Saupe model of infinitely many directors.

    The model is that of :func:`maier_saupe`. The order S of the nematic phase solves
    :math:`S = \langle P_2 \rangle` under the weight :math:`e^{S P_2(x) / T}`, x
    uniform on [0, 1]; of the solutions the one of least free energy is the state.

    Parameters
    ----------
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed.

    Returns
    -------
    MaierSaupeLimit
        A named tuple of ``order_parameter``, ``energy``, ``free_energy``,
        ``entropy``, ``total_correlation`` (all per site), ``nematic_order`` and
        ``nematic_free_energy``; see :class:`MaierSaupeLimit`.

    Raises
    ------
    ValueError
        If the temperature is out of its range; the message names it.

    See Also
    --------
    maier_saupe : Values for a finite number of directors.
    maier_saupe_transition : Where the phases end.

    References
    ----------
    .. [1] W. Maier and A. Saupe, "Eine einfache molekulare Theorie des nematischen
       kristallinflüssigen Zustandes", Z. Naturforsch. A 13, 564 (1958).

    Examples
    --------
    >>> from skident.exact import maier_saupe_limit
    >>> round(maier_saupe_limit(0.2).order_parameter, 4)
    0.6148
    """
    temperature = float(temperature)
    order = nematic_order(temperature)
    nematic_free_energy = None
    if order is not None:
        second, excess, depletion = _uniaxial(order / temperature)
        total_correlation = max(0.0, -(excess + second))
        # -T (S / T + excess) + S^2 / 2, the ground state -1 / 2 apart.
        nematic_free_energy = -0.5 + depletion**2 / 2 - temperature * excess
    if order is None or nematic_free_energy > 0:
        stable, free_energy, total_correlation = 0.0, 0.0, 0.0
    else:
        stable, free_energy = order, nematic_free_energy
    return MaierSaupeLimit(
        order_parameter=stable,
        energy=0.0 - stable**2 / 2,
        free_energy=free_energy,
        entropy=math.log(4 * math.pi) - total_correlation,
        total_correlation=total_correlation,
        nematic_order=order,
        nematic_free_energy=nematic_free_energy,
    )


@functools.cache
def maier_saupe_transition():
    r"""Find the phase transition of the infinite Maier-Saupe model.

    The model is that of :func:`maier_saupe`; temperatures are in units of the coupling.
    The transition is of first order, and a weak one.

    Returns
    -------
    MaierSaupeTransition
        A named tuple of ``temperature``, ``order_parameter``, ``nematic_limit``,
        ``nematic_limit_order`` and ``isotropic_limit``; see
        :class:`MaierSaupeTransition`.

    See Also
    --------
    maier_saupe_limit : The phases at one temperature.

    Examples
    --------
    >>> from skident.exact import maier_saupe_transition
    >>> transition = maier_saupe_transition()
    >>> round(transition.temperature, 6), round(transition.order_parameter, 5)
    (0.220194, 0.42903)
    """
    # Along the nematic branch the field h = S / T grows from 0 to infinity; T = S / h
    # is largest where dS / dh = S / h, and the free energy zero where ln z = h S / 2.
    limit = brentq(_slope_defect, 1.0, 3.0, xtol=1e-15)
    transition = brentq(_free_energy_defect, limit, 3.0, xtol=1e-15)
    limit_order, order = 1 - _uniaxial(limit)[2], 1 - _uniaxial(transition)[2]
    return MaierSaupeTransition(
        temperature=order / transition,
        order_parameter=order,
        nematic_limit=limit_order / limit,
        nematic_limit_order=limit_order,
        isotropic_limit=0.2,
    )


def nematic_order(temperature):
    """Return S of the nematic phase, stable or not, or None where there is none."""
    limit = maier_saupe_transition()
    if temperature > limit.nematic_limit:
        return None

    def defect(order):
        return 1 - order - _uniaxial(order / temperature)[2]

    low = limit.nematic_limit_order
    if defect(low) <= 0 or defect(1.0) >= 0:
        return low if defect(low) <= 0 else 1.0
    return brentq(defect, low, 1.0, xtol=1e-15)


def _uniaxial(field):
    """Of the weight exp(h P_2): the sum of gaps times moments, ln z - h, and 1 - S."""
    gap = np.array(1.5 * field)
    excess, second, third = excess_moments(gap, gap)
    small = float(second + third)
    return float(gap) * small, float(excess), 1.5 * small


def _slope_defect(field):
    """Return h dS/dh - S."""
    _, _, depletion = _uniaxial(field)
    first = 1 - depletion / 1.5
    # <n_1^4>, from <n_i^2> - <n_j^2> = 2 (a_i - a_j) <n_i^2 n_j^2>.
    fourth = first - (first - depletion / 3) / (1.5 * field)
    return field * 2.25 * (fourth - first**2) - (1 - depletion)


def _free_energy_defect(field):
    """Return ln z - h S / 2."""
    _, excess, depletion = _uniaxial(field)
    return field * (1 + depletion) / 2 + excess


def _hot_values(n_sites, temperature):
    """T ln Z, energy above the ground state and total correlation, for large T."""
    beta = 1 / temperature
    # Second and third cumulant of -H among independent directors.
    second = (n_sites - 1) / (10 * n_sites)
    third = (n_sites - 1) / n_sites**2 * (1 / 35 + (n_sites - 2) / 25)
    minus_energy = 0.5 + beta * second + beta**2 * third / 2
    return (
        0.5 + beta * second / 2 + beta**2 * third / 6,
        0.5 - minus_energy / n_sites,
        beta**2 * second / 2 + beta**3 * third / 3,
    )


def _cold_values(n_sites, temperature):
    """Ln Z - N / 2T, and the energy per site above the ground state."""
    low, high = field_panels(n_sites, temperature)
    width = (high - low)[:, None]
    u = (low[:, None] + width * (_PANEL_NODES + 1) / 2).ravel()
    y_reach = depth_reach(n_sites, temperature, u, _DEPTH)[:, None]
    u, y = u[:, None], y_reach * (_Y_NODES + 1) / 2
    tilt, second_gap, third_gap = field_gaps(temperature, u, y)
    excess, second, third = excess_moments(second_gap, third_gap)
    noise = math.sqrt(temperature / n_sites)
    r = (1 + u) / temperature
    log_p = 4 * np.log1p(u) - (u / noise) ** 2 / 2 + n_sites * (excess - r * tilt)
    log_p += np.log((width * _PANEL_WEIGHTS).reshape(-1, 1) * y_reach * _Y_WEIGHTS / 4)
    total = logsumexp(log_p)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    # Of the noise alone: int (1 + u)^4 exp(-(1 + u)^2 / 2 noise^2) du dy, y to 2.
    log_noise = gammaln(2.5) + 2.5 * math.log(2) + 5 * math.log(noise)
    # loss = 1 - sum a_i <n_i^2> / r, with a_i the eigenvalues of M / T. The energy is
    # -<tr MQ> / 3 = -<(1 + u) (1 - loss)> / 2, as M is Q plus noise of mean zero, and
    # partial integration over u gives <u> = <4 / (N r) - loss>.
    loss = tilt + (second_gap * second + third_gap * third) / r
    excess_energy = (p * (loss + u * loss / 2)).sum() - 2 / n_sites * (p / r).sum()
    return float(total - log_noise), float(excess_energy)


def field_panels(n_sites, temperature):
    """Intervals of u that hold all the weight of the tensor field.

    Parameters
    ----------
    n_sites : int
        Number of directors.
    temperature : float
        Below infinity.

    Returns
    -------
    low, high : ndarray of shape (n_panels,)
        Ends of the intervals. The logarithm of the density is never more curved than
        that of the noise, and where it can have a peak the intervals are one standard
        deviation of the noise wide.
    """
    noise = math.sqrt(temperature / n_sites)
    near = noise * np.arange(_NEAR + 1)
    far = np.geomspace(near[-1], 1.0 + near[-1], _far_steps(near[-1]))
    steps = np.concatenate([near, far[1:]])
    order = nematic_order(temperature)
    if order is None:
        order = maier_saupe_transition().nematic_limit_order
    edges = np.concatenate([-1.0 + steps, order - 1 + steps, order - 1 - steps])
    edges = np.unique(np.clip(edges, -1.0, near[-1]))
    # Edges from the two peaks may all but coincide.
    edges = edges[np.append(True, np.diff(edges) > 1e-3 * noise)]
    low, high = edges[:-1], edges[1:]
    samples = np.stack([low, (low + high) / 2, high])
    # Along the ridge y = 0, where the density is largest at each u.
    scale = np.log(np.maximum(1 + samples, np.finfo(float).tiny))
    heights = 4 * scale - (samples / noise) ** 2 / 2
    heights += field_depth(n_sites, temperature, samples, np.zeros(1))
    kept = heights.max(axis=0) > heights.max() + _NEGLIGIBLE
    return low[kept], high[kept]


def _far_steps(near):
    """Return the number of steps of the growing intervals from the near ones to 1."""
    return 2 + math.ceil(math.log1p(1 / near) / math.log(_GROWTH))


def field_gaps(temperature, u, y):
    """Return 1 - cos phi, and the gaps from the first eigenvalue of M / T."""
    phi = np.arcsin(np.sqrt(y / 2)) * (2 / 3)
    r = math.sqrt(3) * (1 + u) / temperature
    second = np.maximum(r * np.sin(math.pi / 3 - phi), 0.0)
    return 2 * np.sin(phi / 2) ** 2, second, r * np.sin(math.pi / 3 + phi)


def field_depth(n_sites, temperature, u, y):
    """Return N ln z - N (1 + u) / T.

    It is convex in u, as ln z is convex along each ray, and falls with y: by
    <n_i^2> - <n_j^2> = 2 (a_i - a_j) <n_i^2 n_j^2> the derivative of ln z by phi is
    -2 (a_1 - a_2) (a_2 - a_3) <n_2^2 (n_1^2 - n_3^2)> / sqrt 3, negative as the weight
    of n_1 is the larger one.
    """
    tilt, second, third = field_gaps(temperature, u, y)
    return n_sites * (log_excess(second, third) - (1 + u) / temperature * tilt)


def depth_reach(n_sites, temperature, u, depth):
    """Return the y, at most 2, at which the density has fallen by exp(-depth)."""
    top = field_depth(n_sites, temperature, u, np.zeros(1)) - depth
    low, high = np.full(len(u), -280.0), np.full(len(u), math.log(2))
    inside = field_depth(n_sites, temperature, u, np.full(1, 2.0)) > top
    for _ in range(16):
        middle = (low + high) / 2
        deep = field_depth(n_sites, temperature, u, np.exp(middle)) <= top
        high = np.where(deep, middle, high)
        low = np.where(deep, low, middle)
    return np.where(inside, 2.0, np.exp(high))
