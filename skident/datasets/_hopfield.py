"""Spins that store patterns."""

import math
from functools import partial

import numpy as np

from skident._compat import validate_params
from skident._kernels.hopfield import hopfield_chains
from skident._random import draw_seed
from skident.datasets._chains import (
    COMMON,
    check_spin_values,
    draws_key,
    measure_burn_in,
    run_blocks,
    sample_info,
)

# The hottest temperature, in units of the spin glass temperature 1 + sqrt(P / N).
_HOTTEST = 1.25
# Ratio of neighbouring temperatures: 1 + _SPACING / sqrt(N), as energies fluctuate
# by sqrt(N).
_SPACING = 2.5

_NO_TRACE = np.empty((0, 0, 0))


@validate_params(
    {**COMMON, "patterns": ["array-like"]},
    prefer_skip_nested_validation=True,
)
def make_hopfield(
    n_samples,
    patterns,
    *,
    temperature,
    spin_values=(-1, 1),
    return_info=False,
    n_jobs=None,
    random_state=None,
):
    r"""Draw independent samples of the Hopfield model with stored patterns.

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
    spin_values : {(-1, 1), (0, 1)}, default=(-1, 1)
        How to write a spin that points down, up. The model is that of ±1 in both.
    return_info : bool, default=False
        Whether to return ``info`` too.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. The samples do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples. Sample k does not depend on ``n_samples``.

    Returns
    -------
    X : ndarray of shape (n_samples, n_sites), dtype int8
        The spins. Cast before multiplying: an int8 sum overflows at 127.
    y : ndarray of shape (n_samples, n_patterns)
        The overlaps :math:`\xi^\mu \cdot s / N`, in [-1, 1] for either
        ``spin_values``.
    info : Bunch
        Only if ``return_info``: ``method``, ``energies`` (n_samples,) the total H,
        ``tau_int`` the integrated autocorrelation time :math:`1 + 2 \sum_t \rho(t)`
        in sweeps, ``burn_in`` in sweeps, ``ess`` = n_samples, and ``temperatures``
        the ladder.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value.

    Warns
    -----
    ConvergenceWarning
        If the chains mix too slowly for the burn-in to be measured.

    Notes
    -----
    Every sample is the end of its own chain, which starts at random. A sweep, at each
    of a ladder of temperatures, draws the fields of the patterns given the spins
    (Gaussian), then all spins given the fields (independent), and proposes to swap
    two overlaps through :math:`s_i \to s_i \xi_i^\mu \xi_i^\nu`; then neighbouring
    temperatures propose to exchange their states. The start is as symmetric as H, so
    that a state and its reverse are equally likely. The burn-in is eight times the
    autocorrelation time (of energy and squared overlaps) in pilot chains.

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
    low, _ = check_spin_values(spin_values)
    patterns = _check_patterns(patterns)
    n_patterns, n_sites = patterns.shape
    temperatures = _ladder(temperature, n_patterns, n_sites)
    gauge = patterns[0]
    model = (*_gauged(patterns, gauge), 1.0 / temperatures)
    seed = draw_seed(random_state)
    tau_int, burn_in = measure_burn_in(
        partial(_pilot, model=model),
        seed,
        n_sites=n_sites * len(temperatures),
        n_observables=n_patterns + 1,
        n_jobs=n_jobs,
    )
    task = partial(_rows, key=draws_key(seed), model=model, n_sweeps=burn_in)
    X = np.empty((n_samples, n_sites), np.int8)
    overlaps = np.empty((n_samples, n_patterns), np.int64)
    row_ns = burn_in * len(temperatures) * n_sites * (10 + n_patterns)
    run_blocks(task, (X, overlaps), row_ns=row_ns, n_jobs=n_jobs)
    X *= gauge
    if low == 0:
        X += 1
        X //= 2
    y = overlaps / n_sites
    if not return_info:
        return X, y
    energies = -0.5 * n_sites * (y**2).sum(axis=1)
    info = sample_info(
        "tempered block Gibbs", energies, tau_int=tau_int, burn_in=burn_in
    )
    info.temperatures = temperatures
    return X, y, info


def _check_patterns(patterns):
    """Return the patterns as int8, or say which entry is wrong."""
    patterns = np.asarray(patterns)
    if patterns.ndim != 2 or 0 in patterns.shape:
        raise ValueError(
            f"patterns must have shape (n_patterns, n_sites), got {patterns.shape}."
        )
    wrong = np.argwhere(~((patterns == 1) | (patterns == -1)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"patterns must hold -1 and 1 only, got {patterns[row, column]!r} in row "
            f"{row}, column {column}."
        )
    return patterns.astype(np.int8)


def _gauged(patterns, gauge):
    """Gauged patterns, packed, with their distinct columns and the label of each site.

    Turning the sites so that the first pattern is all ones makes columns that differ
    by a sign only equal.
    """
    turned = patterns * gauge
    columns, labels = np.unique(turned, axis=1, return_inverse=True)
    return (
        _packed(turned),
        np.ascontiguousarray(columns, dtype=np.float64),
        labels.ravel().astype(np.int32),
    )


def _packed(patterns):
    """Pack 64 sites a word, the first in the lowest bit; bit 1 is +1."""
    n_patterns, n_sites = patterns.shape
    n_words = -(-n_sites // 64)
    bits = np.zeros((n_patterns, n_words, 64), np.uint64)
    bits.reshape(n_patterns, -1)[:, :n_sites] = patterns > 0
    return (bits << np.arange(64, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)


def _ladder(temperature, n_patterns, n_sites):
    """Temperatures from the one asked for up to where single chains mix."""
    hottest = _HOTTEST * (1 + math.sqrt(n_patterns / n_sites))
    if temperature >= hottest:
        return np.array([temperature])
    ratio = math.log1p(_SPACING / math.sqrt(n_sites))
    n_steps = math.ceil(math.log(hottest / temperature) / ratio)
    return np.geomspace(temperature, hottest, n_steps + 1)


def _pilot(start, stop, key, n_sweeps, model):
    n_patterns, n_sites, n_chains = len(model[0]), len(model[2]), stop - start
    trace = np.empty((n_chains, n_sweeps, n_patterns + 1))
    rows = np.empty((n_chains, n_sites), np.int8)
    overlaps = np.empty((n_chains, n_patterns), np.int64)
    hopfield_chains(key, start, *model, n_sweeps, rows, overlaps, trace)
    return trace


def _rows(start, stop, key, model, n_sweeps):
    n_patterns, n_sites = len(model[0]), len(model[2])
    rows = np.empty((stop - start, n_sites), np.int8)
    overlaps = np.empty((stop - start, n_patterns), np.int64)
    hopfield_chains(key, start, *model, n_sweeps, rows, overlaps, _NO_TRACE)
    return rows, overlaps
