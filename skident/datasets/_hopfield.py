"""Spins that store patterns."""

from functools import partial

import numpy as np

from skident._compat import StrOptions, validate_params
from skident._kernels.hopfield_exact import draw_from_classes, draw_from_levels
from skident._math.hopfield import (
    check_patterns,
    check_terms,
    class_binomials,
    class_sum,
    count_levels,
    cumulated,
)
from skident.datasets._chains import CHAINS, SPINS, sample_chains, sample_exact
from skident.datasets._hopfield_chains import hopfield_chains

# Most terms of an exact sum: by choice, and on demand.
_MANY_TERMS = 3e7
_MOST_TERMS = 1e8


@validate_params(
    {
        **SPINS,
        **CHAINS,
        "patterns": ["array-like"],
        "method": [StrOptions({"auto", "exact", "tempering"})],
    },
    prefer_skip_nested_validation=True,
)
def make_hopfield(
    n_samples,
    patterns,
    *,
    temperature,
    method="auto",
    draws_per_chain=1,
    spacing="auto",
    spin_values=(-1, 1),
    out=None,
    return_info=False,
    n_jobs=None,
    verbose=0,
    random_state=None,
):
    r"""Draw samples of the Hopfield model with stored patterns.

    The Hamiltonian, self-terms included, with :math:`k_B = 1`, spins
    :math:`s_i = \pm 1` and P patterns :math:`\xi^\mu`, is

    .. math:: H(s) = -\frac{1}{2N} \sum_{\mu=1}^{P} \Big(\sum_i \xi_i^\mu s_i\Big)^2 ,

    and :math:`P(s) \propto e^{-H(s)/T}`.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    patterns : array-like of shape (n_patterns, n_sites)
        Stored patterns, entries -1 and 1; see :func:`make_patterns`.
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed. With few patterns a
        retrieval phase lies below 1; with many a glass lies below about
        :math:`1 + \sqrt{P/N}`.
    method : {"auto", "exact", "tempering"}, default="auto"
        "exact" draws independent samples from an enumeration of all overlaps, where
        that has at most 1e8 terms; "tempering" runs Markov chains for any patterns.
        "auto" is exact up to 3e7 terms: any patterns of up to 25 sites, 5 random ones
        at 64 sites (a few seconds of preparation, 0.25 GB), 4 at 150, 3 at 700, 2 at
        15,000.
    draws_per_chain : int, default=1
        Samples taken from each chain: row k is draw ``k % draws_per_chain`` of chain
        ``k // draws_per_chain``; 1 gives independent samples. No effect if exact.
    spacing : int or "auto", default="auto"
        Sweeps between the samples of a chain; "auto" is one autocorrelation time. No
        effect if exact.
    spin_values : {(-1, 1), (0, 1)}, default=(-1, 1)
        How to write a spin that points down, up. The model is that of ±1 in both.
    out : ndarray of shape (n_samples, n_sites), dtype int8, default=None
        Where to write X, for instance a memory map; None makes a new array.
    return_info : bool, default=False
        Whether to return ``info`` too.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. The samples do not depend on it.
    verbose : int, default=0
        1 shows a progress bar.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples. Sample k does not depend on ``n_samples``.

    Returns
    -------
    X : ndarray of shape (n_samples, n_sites), dtype int8
        The spins; ``out`` if it was given. Cast before a product
        such as X @ w: it stays int8 and wraps at 127 (X.sum() does not).
    y : ndarray of shape (n_samples, n_patterns)
        The overlaps :math:`\xi^\mu \cdot s / N`, in [-1, 1] for either
        ``spin_values``. The well of a sample is that of its largest ``abs(y)``; ties
        are common in small systems, and :func:`skident.exact.hopfield` shares them.
    info : Bunch
        Only if ``return_info``: ``method`` ("exact" or "tempering"), ``energies``
        (n_samples,) the total H, ``order_parameter`` = y, ``tau_int`` the integrated
        autocorrelation time :math:`1 + 2 \sum_t \rho(t)` in sweeps, ``ess`` the
        effective number of independent samples, ``burn_in`` and ``spacing`` in sweeps,
        ``acceptance`` of the exchanges of temperatures, ``start_disagreement`` of
        chains from random and from ordered starts in standard deviations, and
        ``temperatures``, the ladder.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value. If
        ``method="exact"`` and there are too many terms.

    Warns
    -----
    ConvergenceWarning
        If the chains mix too slowly for the burn-in to be measured, if random and
        ordered starts disagree, or if the effective sample size is small.

    Notes
    -----
    Exact: the energy depends only on how many spins point up in each class of sites
    with equal columns of the patterns (up to a sign). Overlaps are drawn from their
    distribution, then the numbers of the classes given the overlaps, then the
    arrangement in each class, uniformly. See :func:`skident.exact.hopfield`.

    Tempering: every sample is the end of its own chain (with ``draws_per_chain=1``),
    which starts at random. A pass, at each of a ladder of temperatures, draws the
    fields of the patterns given the spins (Gaussian), then all spins given the fields
    (independent), and proposes to swap the largest overlap and another one through
    :math:`s_i \to s_i \xi_i^\mu \xi_i^\nu`; then neighbouring temperatures propose to
    exchange their states. A sweep is as many passes as there are temperatures. The
    start is as symmetric as H, so that a state and its reverse are equally likely. The
    burn-in is eight times the autocorrelation time (of energy and squared overlaps) in
    pilot chains, and at least 16 sweeps.

    References
    ----------
    .. [1] J. J. Hopfield, "Neural networks and physical systems with emergent
       collective computational abilities", PNAS 79, 2554 (1982).
    .. [2] K. Hukushima and K. Nemoto, "Exchange Monte Carlo method and application
       to spin glass simulations", J. Phys. Soc. Jpn. 65, 1604 (1996).

    Examples
    --------
    >>> from skident.datasets import make_hopfield, make_patterns
    >>> patterns = make_patterns(2, 32, random_state=0)
    >>> X, overlaps = make_hopfield(100, patterns, temperature=0.5, random_state=0)
    >>> X.shape, overlaps.shape
    ((100, 32), (100, 2))
    """
    patterns = check_patterns(patterns)
    common = {
        "spin_values": spin_values, "out": out, "return_info": return_info,
        "n_jobs": n_jobs, "verbose": verbose, "random_state": random_state,
    }  # fmt: skip
    terms = class_sum(patterns)
    if method == "exact":
        check_terms(terms, _MOST_TERMS, "method='tempering', ")
    if method == "exact" or (method == "auto" and terms.n_terms <= _MANY_TERMS):
        result = _exact(terms, n_samples, temperature, common)
        temperatures = np.array([temperature], float)
    else:
        chains = hopfield_chains(patterns, temperature)
        result = sample_chains(
            chains, n_samples, draws_per_chain=draws_per_chain, spacing=spacing,
            **common,
        )  # fmt: skip
        temperatures = chains.temperatures
    if return_info:
        result[2].temperatures = temperatures
    return result


def _exact(terms, n_samples, temperature, common):
    """Draw from the distribution of the terms of an exact sum."""
    classes, levels = terms.classes, terms.levels
    binomials = counts = None
    if levels is not None:
        binomials = class_binomials(classes.sizes)
        counts = count_levels(levels, binomials)
    draw = partial(
        _rows, cdf=cumulated(terms, 1.0 / temperature, counts), classes=classes,
        levels=levels, binomials=binomials, counts=counts,
    )  # fmt: skip
    n_sites = len(classes.sites)
    row_ns = 300 + 5 * n_sites + 10 * classes.columns.size
    return sample_exact(draw, n_samples, n_sites, row_ns=row_ns, **common)


def _rows(key, start, stop, cdf, classes, levels, binomials, counts):
    n_patterns, n_sites = len(classes.columns), len(classes.sites)
    rows = np.empty((stop - start, n_sites), np.int8)
    overlaps = np.empty((stop - start, n_patterns), np.int64)
    if levels is None:
        draw_from_classes(key, start, cdf, *classes, rows, overlaps)
    else:
        draw_from_levels(
            key, start, cdf, levels.bits, binomials, levels.totals, levels.bases,
            counts, *classes, rows, overlaps,
        )  # fmt: skip
    v = overlaps.astype(float)
    return rows, v / n_sites, -(v**2).sum(axis=1) / (2 * n_sites)
