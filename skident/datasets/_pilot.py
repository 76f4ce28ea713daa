"""Pilot chains: how long until a chain is in equilibrium, and how well it mixes.

For what ``chains`` is see :mod:`skident.datasets._chains`.
"""

import math
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from skident._random import stream_key

# At least this many pilot chains, half of them from an ordered start.
_PILOT_CHAINS = 16
_PILOT_START = 256
_PILOT_GROWTH = 4
# The pilot is long enough when it holds this many autocorrelation times.
_PILOT_TIMES = 40
# Time after which a pilot stops growing.
_PILOT_NS = 6e9
# About what it takes to observe chains after each sweep, besides 1 ns a site.
_OBSERVE_NS = 5e4
_BURN_IN_TIMES = 8
_BURN_IN_LEAST = 16
# In standard deviations. Noise is about 0.1 in a pilot of 40 autocorrelation times.
_DISAGREEMENT = 0.7

# About how long one call of a kernel lasts, so that Ctrl-C is heard.
CALL_NS = 5e7

# The two uses of a seed: no draw shares random numbers with the pilot.
DRAWS, _PILOT = 0, 1


class Pilot(NamedTuple):
    """What pilot chains say; times are in sweeps."""

    tau_int: float
    autocorrelation: np.ndarray
    burn_in: int
    acceptance: float
    start_disagreement: float
    trouble: str


def run_pilot(chains, seed, *, n_jobs):
    """Measure the autocorrelation time on pilot chains and choose the burn-in.

    The pilot grows until it holds 40 autocorrelation times, or has taken long. Its
    random numbers are its own, and it knows nothing of the number of samples, so that
    the burn-in is a function of model, temperature and seed.

    Parameters
    ----------
    chains : object
        See the head of this module.
    seed : int
        Seed of the whole call.
    n_jobs : int or None
        As in joblib.

    Returns
    -------
    Pilot
        With a burn-in of eight times ``tau_int`` after random starts have settled; or,
        with a word on ``trouble``, of as many sweeps as the longest pilot has.
    """
    with stopping() as running:
        return _measured(chains, seed, n_jobs, running)


@contextmanager
def stopping():
    """Yield a list with one item that is empty when the block has been left."""
    running = [True]
    try:
        yield running
    finally:
        running.clear()


def _measured(chains, seed, n_jobs, running):
    n_each = chains.lanes * math.ceil(_PILOT_CHAINS / 2 / chains.lanes)
    sweep_ns = _run(chains, n_each) * chains.sweep_ns + n_each * chains.n_sites
    longest = _PILOT_NS / (2 * (sweep_ns + _OBSERVE_NS))
    longest = max(_PILOT_GROWTH * _PILOT_START, longest)
    n_sweeps = _PILOT_START
    while True:
        key = stream_key(seed, _PILOT, n_sweeps)
        task = delayed(_traced)
        halves = Parallel(n_jobs=n_jobs, prefer="threads")(
            task(chains, key, cold * n_each, n_each, bool(cold), n_sweeps, running)
            for cold in (0, 1)
        )
        whole = np.stack([trace for trace, _ in halves])
        traces = whole[:, :, n_sweeps // 4 :]
        tau_int, autocorrelation = integrated_time(np.concatenate(traces))
        enough = n_sweeps >= _PILOT_TIMES * tau_int
        if enough or n_sweeps * _PILOT_GROWTH > longest:
            break
        n_sweeps *= _PILOT_GROWTH
    disagreement = start_disagreement(*traces)
    burn_in = settling_time(*whole) + math.ceil(_BURN_IN_TIMES * tau_int)
    return Pilot(
        tau_int,
        autocorrelation,
        max(_BURN_IN_LEAST, burn_in) if enough else n_sweeps,
        float(np.mean([acceptance for _, acceptance in halves])),
        disagreement,
        _trouble(enough, tau_int, n_sweeps, disagreement),
    )


def _traced(chains, key, first, n_chains, cold, n_sweeps, running):
    state = chains.start(key, first, n_chains, cold)
    trace = []
    for _ in range(n_sweeps):
        advance(chains, state, n_chains, 1, running)
        trace.append(chains.observe(state))
    return np.stack(trace, axis=1), chains.acceptance(state)


def _trouble(enough, tau_int, n_sweeps, disagreement):
    """Say what a pilot found wrong, or nothing."""
    remedy = (
        "The draws may not be in equilibrium: choose another method, a higher "
        "temperature or a smaller system."
    )
    if not enough:
        return (
            f"The chains mix slowly: the autocorrelation time is at least "
            f"{tau_int:.0f} sweeps, too long for a pilot of {n_sweeps} sweeps, which "
            f"is taken as burn-in. {remedy}"
        )
    if disagreement > _DISAGREEMENT:
        return (
            f"Chains from random and from ordered starts disagree by "
            f"{disagreement:.2g} standard deviations after {n_sweeps} sweeps. {remedy}"
        )
    return ""


def integrated_time(trace):
    """Integrated autocorrelation time 1 + 2 sum rho(t), the largest of all columns.

    Parameters
    ----------
    trace : ndarray of shape (n_chains, n_sweeps, n_observables)
        Chains with one common mean, so that chains stuck in different states count
        as correlated for ever. The sum is cut where the lag passes three times its
        value (Sokal's window).

    Returns
    -------
    tau_int : float
        At least 1, the value of independent sweeps.
    autocorrelation : ndarray of shape (n_lags,)
        rho(0) = 1, rho(1), ... of that column up to the cut.
    """
    n_sweeps = trace.shape[1]
    centred = trace - trace.mean(axis=(0, 1))
    # Chain by chain, as the transform of all of them would be large.
    spectrum = sum(np.abs(np.fft.rfft(c, 2 * n_sweeps, axis=0)) ** 2 for c in centred)
    covariance = np.fft.irfft(spectrum / len(trace), axis=0)[:n_sweeps]
    covariance /= (n_sweeps - np.arange(n_sweeps))[:, None]
    # A constant observable (rounding apart) says nothing.
    moving = covariance[0] > 1e-20 * np.abs(trace).max(axis=(0, 1)) ** 2
    if not moving.any():
        return 1.0, np.ones(1)
    rho = covariance[:, moving] / covariance[0, moving]
    times = 2.0 * np.cumsum(rho, axis=0) - 1.0
    beyond = np.arange(n_sweeps)[:, None] >= 3.0 * times
    cut = np.where(beyond.any(axis=0), beyond.argmax(axis=0), n_sweeps - 1)
    reached = np.take_along_axis(times, cut[None], axis=0)[0]
    slowest = reached.argmax()
    return float(max(1.0, reached[slowest])), rho[: cut[slowest] + 1, slowest]


def settling_time(hot, cold):
    """Return the sweeps until the mean of chains is that of equilibrium.

    The autocorrelation time does not tell: domains grow from a random start in a way
    of their own.

    Parameters
    ----------
    hot, cold : ndarray of shape (n_chains, n_sweeps, n_observables)
        Chains from random and from ordered starts. Their second halves are taken for
        equilibrium.

    Returns
    -------
    int
        The first sweep at which each observable lies within two standard errors, or
        the number of sweeps.
    """
    n_chains, n_sweeps, _ = hot.shape
    settled = np.concatenate([hot, cold])[:, n_sweeps // 2 :]
    mean, spread = settled.mean(axis=(0, 1)), settled.std(axis=(0, 1))
    error = spread / math.sqrt(n_chains) + 1e-10 * np.abs(mean)
    near = (np.abs(hot.mean(axis=0) - mean) <= 2 * error).all(axis=1)
    return int(near.argmax()) if near.any() else n_sweeps


def start_disagreement(hot, cold):
    """Difference of means of two sets of chains, in standard deviations.

    Parameters
    ----------
    hot, cold : ndarray of shape (n_chains, n_sweeps, n_observables)
        Chains from random and from ordered starts.

    Returns
    -------
    float
        The largest of all observables, in units of the standard deviation of all
        values together: 0 if they agree, 2 if they have nothing in common.
    """
    both = np.concatenate([hot, cold])
    spread = both.std(axis=(0, 1))
    gap = np.abs(hot.mean(axis=(0, 1)) - cold.mean(axis=(0, 1)))
    moving = spread > 1e-10 * np.abs(both).max(axis=(0, 1))
    return float((gap[moving] / spread[moving]).max(initial=0.0))


def effective_size(n_samples, autocorrelation, draws_per_chain, spacing):
    """Return how many independent draws are worth as much as the draws of chains."""
    lags = np.arange(1, draws_per_chain)
    lags = lags[lags * spacing < len(autocorrelation)]
    rho = autocorrelation[lags * spacing]
    weight = 1.0 + 2.0 * ((1.0 - lags / draws_per_chain) * rho).sum()
    return float(n_samples / max(1.0, weight))


def advance(chains, state, n_chains, n_sweeps, running):
    """Advance in calls so short that Ctrl-C is heard between them.

    ``running`` is a list that the thread which waits empties when it is interrupted:
    what other threads still do is then of no use to anybody.
    """
    step = max(1, int(CALL_NS / (chains.sweep_ns * _run(chains, n_chains))))
    for done in range(0, n_sweeps, step):
        if not running:
            raise InterruptedError("the call that started this chain has ended")
        chains.advance(state, min(step, n_sweeps - done))


def _run(chains, n_chains):
    """Return how many chains run when so many are asked for."""
    return chains.bundle * math.ceil(n_chains / chains.bundle)
