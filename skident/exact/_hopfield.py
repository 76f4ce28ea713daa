"""The Hopfield model, summed exactly over its classes of equal columns."""

import math
from numbers import Real
from typing import NamedTuple

import numpy as np

from skident._compat import Interval, validate_params
from skident._math.hopfield import (
    check_patterns,
    check_terms,
    class_binomials,
    class_sum,
    count_levels,
    moments,
)
from skident._math.hopfield_cut import half_cut_information
from skident.exact._curie_weiss import curie_weiss

_MOST_TERMS = 1e8
# Exponentials taken for the mutual information.
_MOST_STEPS = 2e9


class Hopfield(NamedTuple):
    r"""Exact values of the Hopfield model, as :func:`hopfield` returns them.

    The overlaps are m_mu = xi^mu . s / N. Attributes of shape (n_patterns,) are in the
    order of the patterns.

    Attributes
    ----------
    energy : float
        <H> / N.
    free_energy : float
        -T ln Z; minus infinity at infinite temperature.
    entropy : float
        Entropy of the whole configuration, in nats.
    total_correlation : float
        N ln 2 (no spin is biased) minus ``entropy``, in nats.
    bipartite_information : float or None
        Mutual information, in nats, of the half cut: the first ``n_sites // 2`` sites
        against the rest. None where it takes more than 2e9 exponentials (some 10 s):
        about 64 sites with 5 patterns, 120 with 4, 250 with 3, 650 with 2.
    order_parameter : float
        sqrt(<sum_mu m_mu^2>).
    abs_overlaps : ndarray of shape (n_patterns,)
        <\|m_mu\|>.
    square_overlaps : ndarray of shape (n_patterns,)
        <m_mu^2>.
    susceptibility : ndarray of shape (n_patterns,)
        N <m_mu^2>, without 1 / T.
    binder : ndarray of shape (n_patterns,)
        1 - <m_mu^4> / (3 <m_mu^2>^2), the cumulant of each overlap; 0 where
        <m_mu^2> is below 1e-100: a pattern that the ground states do not feel.
    largest_overlap : float
        <max_mu \|m_mu\|>, the mean quality of retrieval.
    wells : ndarray of shape (n_patterns,)
        Probability that \|m_mu\| is the largest of all; where several are, they share
        it equally. The sum is 1.
    """

    energy: float
    free_energy: float
    entropy: float
    total_correlation: float
    bipartite_information: float | None
    order_parameter: float
    abs_overlaps: np.ndarray
    square_overlaps: np.ndarray
    susceptibility: np.ndarray
    binder: np.ndarray
    largest_overlap: float
    wells: np.ndarray


@validate_params(
    {
        "patterns": ["array-like"],
        "temperature": [Interval(Real, 1e-100, np.inf, closed="both")],
    },
    prefer_skip_nested_validation=True,
)
def hopfield(patterns, temperature):
    r"""Exact values of the Hopfield model by summing over classes of equal columns.

    The Hamiltonian, self-terms included, with :math:`k_B = 1`, spins
    :math:`s_i = \pm 1` and P patterns :math:`\xi^\mu`, is

    .. math:: H(s) = -\frac{1}{2N} \sum_{\mu=1}^{P} \Big(\sum_i \xi_i^\mu s_i\Big)^2 .

    Parameters
    ----------
    patterns : array-like of shape (n_patterns, n_sites)
        Stored patterns, entries -1 and 1; see
        :func:`~skident.datasets.make_patterns`.
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed.

    Returns
    -------
    Hopfield
        A named tuple of ``energy``, ``free_energy``, ``entropy``,
        ``total_correlation``, ``bipartite_information``, ``order_parameter``,
        ``abs_overlaps``, ``square_overlaps``, ``susceptibility``, ``binder``,
        ``largest_overlap`` and ``wells``; see :class:`Hopfield`.

    Raises
    ------
    ValueError
        If a parameter is out of its range or no pattern, naming it and its value; if
        the sum has more than 1e8 terms (some 20 s, and up to 1 GB).

    Notes
    -----
    Sites whose columns of the patterns are equal up to a sign form a class, at most
    2^(P-1) of them, and the energy depends only on how many spins of each class point
    up: a product of (class size + 1) terms. Where that is long, up to 1000 sites,
    configurations are counted by their overlaps instead, class by class. So 64 sites
    with 4 random patterns take some 600,000 terms in place of 40 millions (a fraction
    of a second), with 5 patterns 20 millions (seconds).

    References
    ----------
    .. [1] J. J. Hopfield, "Neural networks and physical systems with emergent
       collective computational abilities", PNAS 79, 2554 (1982).
    .. [2] D. J. Amit, H. Gutfreund and H. Sompolinsky, "Spin-glass models of neural
       networks", Phys. Rev. A 32, 1007 (1985).

    Examples
    --------
    >>> from skident.datasets import make_patterns
    >>> from skident.exact import hopfield
    >>> truth = hopfield(make_patterns(3, 64, random_state=0), 0.7)
    >>> round(truth.energy, 4), round(truth.bipartite_information, 4)
    (-0.3049, 1.9302)
    >>> truth.wells.round(3).tolist()
    [0.341, 0.4, 0.259]
    """
    patterns = check_patterns(patterns)
    n_sites = patterns.shape[1]
    terms = class_sum(patterns)
    check_terms(terms, _MOST_TERMS, "")
    beta = 1.0 / temperature
    counts = None
    if terms.levels is not None:
        counts = count_levels(terms.levels, class_binomials(terms.classes.sizes))
    mean = moments(terms, beta, counts)
    square = mean.top - mean.gap
    entropy = mean.log_z + beta / (2 * n_sites) * mean.gap
    return Hopfield(
        energy=float(-square / (2 * n_sites**2)),
        free_energy=_free_energy(mean, temperature, n_sites),
        entropy=float(entropy),
        total_correlation=max(0.0, float(n_sites * math.log(2) - entropy)),
        bipartite_information=_information(terms.classes, temperature, entropy),
        order_parameter=math.sqrt(square) / n_sites,
        abs_overlaps=mean.absolute,
        square_overlaps=mean.square,
        susceptibility=n_sites * mean.square,
        binder=_binder(mean.square, mean.fourth),
        largest_overlap=float(mean.largest),
        wells=mean.wells,
    )


def _free_energy(mean, temperature, n_sites):
    if math.isinf(temperature):
        return -math.inf
    return float(-temperature * mean.log_z - mean.top / (2 * n_sites))


def _binder(square, fourth):
    felt = square > 1e-100
    binder = np.zeros_like(square)
    binder[felt] = 1 - fourth[felt] / (3 * square[felt] ** 2)
    return binder


def _information(classes, temperature, entropy):
    if len(classes.sizes) > 1:
        return half_cut_information(classes, 1.0 / temperature, entropy, _MOST_STEPS)
    # The same pattern several times is one at a lower temperature.
    temperature = max(1e-100, temperature / len(classes.columns))
    return curie_weiss(len(classes.sites), temperature).bipartite_information
