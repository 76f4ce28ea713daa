"""The infinite square lattice without a field."""

import math
from numbers import Real
from typing import NamedTuple

import numpy as np

from skident._compat import Interval, validate_params
from skident.exact._kaufman import plane, spontaneous_magnetization


class Onsager(NamedTuple):
    """Values a site of the infinite square lattice, as :func:`onsager` returns them.

    Attributes
    ----------
    energy : float
        <H> a site.
    free_energy : float
        -T ln Z a site; minus infinity at infinite temperature.
    entropy : float
        Entropy a site, in nats.
    total_correlation : float
        Limit of the total correlation of N sites over N, in nats: ln 2 - ``entropy``.
    order_parameter : float
        Spontaneous magnetisation, for ``coupling < 0`` the staggered one: the limit of
        sqrt(<m^2>); zero from the critical temperature on.
    pair_correlation : float
        <s_i s_j> of nearest neighbours.
    """

    energy: float
    free_energy: float
    entropy: float
    total_correlation: float
    order_parameter: float
    pair_correlation: float


@validate_params(
    {
        "temperature": [Interval(Real, 1e-100, np.inf, closed="both")],
        "coupling": [Interval(Real, -1e100, 1e100, closed="both")],
    },
    prefer_skip_nested_validation=True,
)
def onsager(temperature, *, coupling=1.0):
    r"""Exact values of the Ising model on the infinite square lattice.

    The Hamiltonian, with :math:`k_B = 1` and spins :math:`s_i = \pm 1`, is

    .. math:: H(s) = -J \sum_{\langle ij \rangle} s_i s_j ,

    each bond counted once. What :func:`ising` gives for the whole lattice is here
    that a site; the critical temperature is :math:`2 |J| / \ln(1 + \sqrt 2)`.

    Parameters
    ----------
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed.
    coupling : float, default=1.0
        Coupling J: positive is ferromagnetic, negative antiferromagnetic.

    Returns
    -------
    Onsager
        A named tuple of ``energy``, ``free_energy``, ``entropy``,
        ``total_correlation``, ``order_parameter`` and ``pair_correlation``; see
        :class:`Onsager`.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value.

    References
    ----------
    .. [1] L. Onsager, "Crystal statistics. I. A two-dimensional model with an
       order-disorder transition", Phys. Rev. 65, 117 (1944).
    .. [2] C. N. Yang, "The spontaneous magnetization of a two-dimensional Ising
       model", Phys. Rev. 85, 808 (1952).

    Examples
    --------
    >>> import numpy as np
    >>> from skident.exact import onsager
    >>> critical = 2 / np.log(1 + np.sqrt(2))
    >>> round(onsager(critical).energy, 6), round(onsager(2.0).order_parameter, 6)
    (-1.414214, 0.911319)
    """
    K = abs(coupling) / temperature
    site = plane(K)
    ground = -site.ground * abs(coupling)
    return Onsager(
        energy=float(0.0 - abs(coupling) * site.bond_sum),
        free_energy=free_energy(ground, site.log_z, temperature),
        entropy=float(site.entropy),
        total_correlation=float(site.total_correlation),
        order_parameter=spontaneous_magnetization(K),
        pair_correlation=math.copysign(float(site.bond_sum / 2), coupling),
    )


def free_energy(ground, log_z, temperature):
    """Return -T ln Z from an energy and what that leaves of ln Z."""
    return -math.inf if np.isinf(temperature) else float(ground - temperature * log_z)
