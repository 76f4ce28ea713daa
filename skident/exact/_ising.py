"""The Ising model on a lattice, summed exactly."""

import math
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from skident._compat import Interval, validate_params
from skident.exact._ising_transfer import transfer_cost, transfer_sums
from skident.exact._kaufman import torus
from skident.exact._onsager import free_energy

# Beyond these a lattice is refused: rough seconds of one core, and bytes.
_LONGEST, _LARGEST = 100.0, 2**31


class Ising(NamedTuple):
    r"""Exact values of an Ising model, as :func:`ising` returns them.

    Moments are those of the order parameter m as :func:`skident.datasets.make_ising`
    returns it, about zero: the magnetisation a site, or for ``coupling < 0`` the
    staggered one, in which spins count with the sign (-1)^(sum of the site's
    coordinates). What was not computed is None.

    Attributes
    ----------
    magnetization : float
        <m>.
    abs_magnetization : float or None
        <\|m\|>.
    susceptibility : float or None
        N <m^2>, without 1 / T.
    binder : float or None
        1 - <m^4> / (3 <m^2>^2); also None where <m^2> vanishes, in the limit of an
        antiferromagnet that a field turns up as a whole.
    energy : float
        <H> / N.
    free_energy : float
        -T ln Z; minus infinity at infinite temperature.
    entropy : float
        Entropy of the whole configuration, in nats.
    total_correlation : float
        Sum of the entropies of the single spins minus ``entropy``, in nats.
    bipartite_information : float or None
        Mutual information, in nats, of the half cut: the first half (rounded down) of
        the layers across the longest side (the first of the longest) against the rest.
        On a square of even side these are the first N / 2 columns of samples.
    checkerboard_information : float or None
        Mutual information, in nats, of the checkerboard cut: the sites with an even
        sum of coordinates against those with an odd one. Also None where a periodic
        side of odd length (above 1) joins sites of one colour.
    order_parameter : float or None
        sqrt(<m^2>).
    pair_correlation : float or None
        <s_i s_j> of nearest neighbours, the mean over all bonds; None without bonds.
    """

    magnetization: float
    abs_magnetization: float | None
    susceptibility: float | None
    binder: float | None
    energy: float
    free_energy: float
    entropy: float
    total_correlation: float
    bipartite_information: float | None
    checkerboard_information: float | None
    order_parameter: float | None
    pair_correlation: float | None


@validate_params(
    {
        "shape": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "temperature": [Interval(Real, 1e-100, np.inf, closed="both")],
        "field": [Interval(Real, -1e100, 1e100, closed="both")],
        "coupling": [Interval(Real, -1e100, 1e100, closed="both")],
        "periodic": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def ising(shape, temperature, *, field=0.0, coupling=1.0, periodic=True):
    r"""Exact values of the Ising model on a lattice.

    The Hamiltonian, with :math:`k_B = 1` and spins :math:`s_i = \pm 1`, is

    .. math:: H(s) = -J \sum_{\langle ij \rangle} s_i s_j - h \sum_i s_i ,

    each bond counted once; lattice, parameters and order parameter are those of
    :func:`skident.datasets.make_ising`.

    Parameters
    ----------
    shape : int or tuple of 1 to 3 ints
        Sides of the lattice; an int is a chain.
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed.
    field : float, default=0.0
        Uniform field h.
    coupling : float, default=1.0
        Coupling J: positive is ferromagnetic, negative antiferromagnetic.
    periodic : bool, default=True
        Whether the lattice closes on itself along every axis. Along a periodic side of
        length 2 the two sites are joined by two bonds; along a side of length 1 there
        is none.

    Returns
    -------
    Ising
        A named tuple of ``magnetization``, ``abs_magnetization``,
        ``susceptibility``, ``binder``, ``energy`` (per site), ``free_energy``,
        ``entropy``, ``total_correlation``, ``bipartite_information`` (half cut),
        ``checkerboard_information``, ``order_parameter`` and ``pair_correlation``;
        see :class:`Ising`.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value. If the
        lattice is too large to sum; the message says what it would take.

    See Also
    --------
    onsager : The infinite square lattice.

    Notes
    -----
    Narrow lattices (all sides but the longest make up at most some 12 sites if
    periodic, 16 if open) are summed by transfer matrix, site by site: everything is
    known, of any coupling, field and temperature. A 10 x 10 lattice takes a second, a
    12 x 12 one some ten. Wider ones have a closed form [1]_ where they are periodic,
    square lattices without a field, and ferromagnetic or of two even sides: moments
    other than <m> = 0 and the informations of cuts are then None. Chains of more than
    some 100,000 sites come without <\|m\|>, the only moment that takes the whole
    distribution of m.

    References
    ----------
    .. [1] B. Kaufman, "Crystal statistics. II. Partition function evaluated by spinor
       analysis", Phys. Rev. 76, 1232 (1949).

    Examples
    --------
    >>> from skident.exact import ising
    >>> small = ising((4, 4), 2.269)
    >>> round(small.energy, 5), round(small.checkerboard_information, 3)
    (-1.56577, 1.084)
    >>> large = ising((512, 512), 2.269)
    >>> round(large.energy, 5), large.checkerboard_information is None
    (-1.41603, True)
    """
    shape = check_shape(shape)
    model = (float(temperature), float(field), float(coupling))
    cost, more, size = transfer_cost(shape, periodic, coupling < 0, field == 0)
    if cost <= _LONGEST and size <= _LARGEST:
        return _narrow(shape, periodic, *model, cost + more <= _LONGEST)
    even = all(n == 1 or n % 2 == 0 for n in shape)
    sides = sorted((1, *shape))[-2:]
    flat = math.prod(sides) == math.prod(shape)
    if flat and periodic and field == 0 and (coupling >= 0 or even):
        return _torus(sides, *model)
    n_layers = max(shape)
    raise ValueError(
        f"shape={shape} is too large to be summed exactly. By transfer matrix "
        f"{n_layers} layers of {math.prod(shape) // n_layers} sites take some "
        f"{cost:.1e} seconds and {size / 2**30:.1e} GiB, where {_LONGEST:.0f} seconds "
        f"and {_LARGEST // 2**30} GiB are allowed; each site of a layer (all sides but "
        "the longest) at least doubles that. Only chains and square lattices that are "
        "periodic, without a field, and have coupling >= 0 or even sides, may be of "
        "any size."
    )


def _narrow(shape, periodic, temperature, field, coupling, distribution):
    """Values by transfer matrix."""
    n_sites = math.prod(shape)
    sums = transfer_sums(
        shape, periodic, (coupling / temperature, field / temperature),
        staggered=coupling < 0, distribution=distribution,
    )  # fmt: skip
    m, abs_m, square, fourth = sums.moments / float(n_sites) ** np.array([1, 1, 2, 4])
    # A second moment that vanishes may round to below zero.
    square, vanishing = max(0.0, square), 1e-80 if distribution else 1e-9
    half, rest, entropy = sums.entropies
    energy = coupling * sums.bond_sum + field * sums.spin_means.sum()
    up = np.clip((1 + sums.spin_means) / 2, 0, 1)
    single = -(xlogy(up, up) + xlogy(1 - up, 1 - up)).sum()
    bonds, spins, log = sums.log_z
    two_coloured = not periodic or all(n == 1 or n % 2 == 0 for n in shape)
    checkerboard = max(0.0, float(entropy - sums.conditional))
    return Ising(
        magnetization=float(m) + 0.0,
        abs_magnetization=float(abs_m) if distribution else None,
        susceptibility=float(n_sites * square),
        binder=float(1 - fourth / (3 * square**2)) if square > vanishing else None,
        energy=0.0 - float(energy / n_sites),
        free_energy=free_energy(-(coupling * bonds + field * spins), log, temperature),
        entropy=float(entropy),
        total_correlation=max(0.0, float(single - entropy)),
        bipartite_information=max(0.0, float(half + rest - entropy)),
        checkerboard_information=checkerboard if two_coloured else None,
        order_parameter=float(np.sqrt(square)),
        pair_correlation=(
            float(sums.bond_sum / sums.n_bonds) if sums.n_bonds else None
        ),
    )


def _torus(sides, temperature, _, coupling):
    """Values by the closed form of the periodic square lattice or chain."""
    n_sites, n_bonds = math.prod(sides), math.prod(sides) * sum(n > 1 for n in sides)
    whole = torus(sides, abs(coupling) / temperature)
    return Ising(
        magnetization=0.0,
        abs_magnetization=None,
        susceptibility=None,
        binder=None,
        energy=0.0 - float(abs(coupling) * whole.bond_sum / n_sites),
        free_energy=free_energy(
            -abs(coupling) * whole.ground, whole.log_z, temperature
        ),
        entropy=float(whole.entropy),
        total_correlation=float(whole.total_correlation),
        bipartite_information=None,
        checkerboard_information=None,
        order_parameter=None,
        pair_correlation=math.copysign(float(whole.bond_sum / n_bonds), coupling),
    )


def check_shape(shape):
    """Return the sides as a tuple of ints, or raise a ``ValueError``."""
    sides = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    whole = all(isinstance(n, Integral) and n >= 1 for n in sides)
    sides = tuple(map(int, sides)) if whole else sides
    if not whole or not 1 <= len(sides) <= 3 or math.prod(sides) >= 2**31:
        raise ValueError(
            "shape must be one to three ints, each at least 1, with fewer than 2**31 "
            f"sites; got {shape!r}."
        )
    return sides
