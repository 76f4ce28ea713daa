"""The Curie-Weiss model, summed exactly over its magnetisation."""

import math
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from skident._compat import Interval, validate_params

# Terms below this share of the largest one are lost in float64 anyway.
_NEGLIGIBLE = -40.0
# Half width of the hypergeometric distribution, in standard deviations: what lies
# outside weighs less than exp(-40) of the whole.
_WIDTH = 9.0
# Bounds the memory of the double sum (entries of one block).
_BLOCK = 1 << 20


class CurieWeiss(NamedTuple):
    r"""Exact values of the Curie-Weiss model, as :func:`curie_weiss` returns them.

    In a field too, moments are those of m = M / N about zero: nothing is subtracted.

    Attributes
    ----------
    magnetization : float
        <m>.
    abs_magnetization : float
        <\|m\|>.
    susceptibility : float
        N <m^2>, without 1 / T.
    binder : float
        1 - <m^4> / (3 <m^2>^2).
    energy : float
        <H> / N.
    free_energy : float
        -T ln Z; minus infinity at infinite temperature.
    entropy : float
        Entropy of the whole configuration, in nats.
    total_correlation : float
        Sum of the entropies of the single spins minus ``entropy``, in nats. In a field
        the spins are biased, and their own entropy is that of the biased spin.
    bipartite_information : float
        Mutual information, in nats, of the half cut: the first ``n_sites // 2`` spins
        against the rest.
    order_parameter : float
        sqrt(<m^2>).
    pair_correlation : float or None
        <s_i s_j> for i != j; None for a single spin.
    """

    magnetization: float
    abs_magnetization: float
    susceptibility: float
    binder: float
    energy: float
    free_energy: float
    entropy: float
    total_correlation: float
    bipartite_information: float
    order_parameter: float
    pair_correlation: float | None


@validate_params(
    {
        "n_sites": [Interval(Integral, 1, None, closed="left")],
        "temperature": [Interval(Real, 1e-100, np.inf, closed="both")],
        "field": [Interval(Real, -1e100, 1e100, closed="both")],
    },
    prefer_skip_nested_validation=True,
)
def curie_weiss(n_sites, temperature, field=0.0):
    r"""Exact values of the Curie-Weiss model by summing over the magnetisation.

    The Hamiltonian, self-terms included, with :math:`k_B = 1`, spins
    :math:`s_i = \pm 1` and :math:`M = \sum_i s_i`, is

    .. math:: H(s) = -\frac{M^2}{2N} - B M .

    Parameters
    ----------
    n_sites : int
        Number of spins N; all sums are done on a logarithmic scale, so that 1e5 is
        as safe as 10.
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed.
    field : float, default=0.0
        Uniform field B.

    Returns
    -------
    CurieWeiss
        A named tuple of ``magnetization``, ``abs_magnetization``,
        ``susceptibility``, ``binder``, ``energy`` (per site), ``free_energy``,
        ``entropy``, ``total_correlation``, ``bipartite_information``,
        ``order_parameter`` and ``pair_correlation``; see :class:`CurieWeiss`.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value.

    References
    ----------
    .. [1] M. Kac, "Mathematical mechanisms of phase transitions", in Statistical
       Physics, Phase Transitions and Superfluidity, Gordon and Breach, 1968.

    Examples
    --------
    >>> from skident.exact import curie_weiss
    >>> truth = curie_weiss(64, 1.0)
    >>> round(truth.susceptibility, 3), round(truth.bipartite_information, 3)
    (9.11, 0.553)
    """
    n_sites, beta, field = int(n_sites), 1.0 / temperature, float(field)
    log_weights = log_up_weights(n_sites, beta, field)
    log_z = logsumexp(log_weights)
    # Cold, ln Z is large and rounds: normalised once more where numbers are small.
    log_p = log_weights - log_weights.max()
    log_p -= logsumexp(log_p)
    p = np.exp(log_p)
    M = 2.0 * np.arange(n_sites + 1) - n_sites
    m = M / n_sites
    square = p @ m**2
    energy = -p @ (M**2 / (2 * n_sites) + field * M)
    # Not ln Z + beta <H>: cold, these are large and cancel.
    entropy = p @ _log_binomials(n_sites) - xlogy(p, p).sum()
    up = p @ np.arange(n_sites + 1) / n_sites
    single = -xlogy(up, up) - xlogy(1 - up, 1 - up)
    pair = (n_sites * square - 1) / (n_sites - 1) if n_sites > 1 else None
    return CurieWeiss(
        magnetization=float(p @ m),
        abs_magnetization=float(p @ np.abs(m)),
        susceptibility=float(n_sites * square),
        binder=float(1 - (p @ m**4) / (3 * square**2)),
        energy=float(energy / n_sites),
        free_energy=-math.inf if beta == 0 else _free_energy(log_z, beta, n_sites),
        entropy=float(entropy),
        total_correlation=max(0.0, float(n_sites * single - entropy)),
        bipartite_information=_half_cut_information(n_sites, log_p),
        order_parameter=float(np.sqrt(square)),
        pair_correlation=pair if pair is None else float(pair),
    )


def _free_energy(log_z, beta, n_sites):
    """Return -T ln Z of energies that count from -n_sites / 2."""
    return float(-log_z / beta - n_sites / 2)


def log_up_weights(n_sites, beta, field):
    """Log of the Boltzmann weight of all states with k spins up, k = 0..n_sites.

    Energies count from that of aligned spins without a field, -n_sites / 2, so that
    the field is not lost beside it however cold it is.
    """
    M = 2.0 * np.arange(n_sites + 1) - n_sites
    above = (n_sites - M) * (n_sites + M) / (2 * n_sites)
    return _log_binomials(n_sites) - beta * above + beta * field * M


def _log_binomials(n):
    """Log of n over k for k = 0..n."""
    log_factorial = gammaln(np.arange(n + 1) + 1.0)
    return log_factorial[n] - log_factorial - log_factorial[::-1]


def _half_cut_information(n_sites, log_p):
    """Mutual information of the numbers of ups in the two halves.

    Given its number of ups each half is uniform over its arrangements, whatever the
    other half, so that the numbers carry all the information.
    """
    n_left = n_sites // 2
    n_right = n_sites - n_left
    left, right = np.zeros(n_left + 1), np.zeros(n_right + 1)
    log_left, log_right = _log_binomials(n_left), _log_binomials(n_right)
    log_each = log_p - _log_binomials(n_sites)
    joint_entropy = 0.0
    for k, k_left in _joint_blocks(n_sites, n_left, log_p):
        log_joint = log_each[k] + log_left[k_left] + log_right[k - k_left]
        joint = np.exp(log_joint)
        joint_entropy -= joint @ log_joint
        left += np.bincount(k_left, joint, n_left + 1)
        right += np.bincount(k - k_left, joint, n_right + 1)
    entropy = -xlogy(left, left).sum() - xlogy(right, right).sum()
    return max(0.0, float(entropy - joint_entropy))


def _joint_blocks(n_sites, n_left, log_p):
    """Yield (ups, ups on the left), flat, in blocks that cover all that weighs."""
    ups = np.flatnonzero(log_p - log_p.max() > _NEGLIGIBLE)
    share = n_left / n_sites
    variance = ups / n_sites * (1 - ups / n_sites) * share * (1 - share) * n_sites
    reach = np.ceil(_WIDTH * (np.sqrt(variance) + 1)).astype(np.int64)
    centre = np.rint(ups * share).astype(np.int64)
    start = np.maximum(np.maximum(centre - reach, 0), ups - (n_sites - n_left))
    stop = np.minimum(np.minimum(centre + reach, n_left), ups) + 1
    rows = max(1, _BLOCK // int((stop - start).max()))
    for first in range(0, len(ups), rows):
        part = slice(first, first + rows)
        count = stop[part] - start[part]
        offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        yield np.repeat(ups[part], count), np.repeat(start[part], count) + offset
