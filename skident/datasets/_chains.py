"""What the spin generators share: checks, pilot, blocks of rows, and the report."""

import math
import warnings
from functools import partial
from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from skident._compat import Interval
from skident._random import stream_key

# The two uses of a seed: no draw shares random numbers with the pilot.
_DRAWS, _PILOT = 0, 1

_PILOT_CHAINS = 16
_PILOT_START = 256
_PILOT_GROWTH = 4
# The pilot is long enough when it holds this many autocorrelation times.
_PILOT_TIMES = 40
# Site updates after which a pilot stops growing.
_PILOT_WORK = 2e8
_BURN_IN_TIMES = 8
_BURN_IN_LEAST = 16

# About how long one call of a kernel lasts, so that Ctrl-C is heard.
_BLOCK_NS = 5e7

SPIN_VALUES = ((-1, 1), (0, 1))

# Colder than this the inverse temperature would overflow.
COLDEST = 1e-100

# Constraints of the parameters that every spin generator has.
COMMON = {
    "n_samples": [Interval(Integral, 1, None, closed="left")],
    "temperature": [Interval(Real, COLDEST, np.inf, closed="both")],
    "spin_values": ["array-like"],
    "return_info": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}


def check_spin_values(spin_values):
    """Return the values of down and up as int8, or raise a ``ValueError``."""
    values = tuple(np.ravel(np.asarray(spin_values)).tolist())
    if values not in SPIN_VALUES:
        raise ValueError(
            f"spin_values must be (-1, 1) or (0, 1), down before up; got "
            f"{spin_values!r}."
        )
    return np.int8(values[0]), np.int8(values[1])


def draws_key(seed):
    """Return the key of the streams of the draws; row k takes stream k."""
    return stream_key(seed, _DRAWS)


def run_blocks(task, outputs, *, row_ns, n_jobs):
    """Fill arrays block by block of rows, blocks in parallel threads.

    Parameters
    ----------
    task : callable
        ``task(start, stop)`` returns one array of rows ``start:stop`` for each
        output. It returns rather than writes, so that any joblib backend will do.
    outputs : tuple of ndarray
        Filled.
    row_ns : float
        Rough cost of a row in nanoseconds. It sets the size of the blocks, on which
        no result depends.
    n_jobs : int or None
        As in joblib.
    """
    n_rows = len(outputs[0])
    size = int(min(n_rows, max(1, _BLOCK_NS // row_ns)))
    starts = range(0, n_rows, size)
    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        # In rounds, so that few blocks are held beside the output.
        width = 4 * effective_n_jobs(n_jobs)
        for first in range(0, len(starts), width):
            some = starts[first : first + width]
            results = parallel(delayed(task)(i, min(i + size, n_rows)) for i in some)
            for start, parts in zip(some, results, strict=True):
                for output, part in zip(outputs, parts, strict=True):
                    output[start : start + len(part)] = part


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
    float
        At least 1, the value of independent sweeps.
    """
    n_sweeps = trace.shape[1]
    centred = trace - trace.mean(axis=(0, 1))
    spectrum = np.abs(np.fft.rfft(centred, 2 * n_sweeps, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, axis=1)[:, :n_sweeps].mean(axis=0)
    covariance /= (n_sweeps - np.arange(n_sweeps))[:, None]
    # A constant observable (rounding apart) says nothing.
    moving = covariance[0] > 1e-20 * (1 + np.abs(trace).max(axis=(0, 1)) ** 2)
    if not moving.any():
        return 1.0
    rho = covariance[:, moving] / covariance[0, moving]
    times = 2.0 * np.cumsum(rho, axis=0) - 1.0
    beyond = np.arange(n_sweeps)[:, None] >= 3.0 * times
    cut = np.where(beyond.any(axis=0), beyond.argmax(axis=0), n_sweeps - 1)
    return float(max(1.0, np.take_along_axis(times, cut[None], axis=0).max()))


def measure_burn_in(pilot, seed, *, n_sites, n_observables, n_jobs):
    """Measure the autocorrelation time on pilot chains and choose the burn-in.

    The pilot grows until it holds 40 autocorrelation times. Its random numbers are
    its own, and it knows nothing of the number of samples, so that the burn-in is a
    function of model, temperature and seed.

    Parameters
    ----------
    pilot : callable
        ``pilot(start, stop, key, n_sweeps)`` returns the trace of chains
        ``start:stop`` from a random start, (n_chains, n_sweeps, n_observables).
    seed : int
        Seed of the whole call.
    n_sites : int
        Sites updated in one sweep of one chain.
    n_observables : int
        Width of the trace.
    n_jobs : int or None
        As in joblib.

    Returns
    -------
    tau_int : float
        Integrated autocorrelation time, in sweeps.
    burn_in : int
        Sweeps before the one draw of a chain: eight times ``tau_int``, or after a
        warning as many as the longest pilot has.
    """
    longest = max(4 * _PILOT_START, _PILOT_WORK / (_PILOT_CHAINS * n_sites))
    n_sweeps = _PILOT_START
    while True:
        trace = np.empty((_PILOT_CHAINS, n_sweeps, n_observables))
        key = stream_key(seed, _PILOT, n_sweeps)
        task = partial(_traced, pilot=pilot, key=key, n_sweeps=n_sweeps)
        run_blocks(task, (trace,), row_ns=20 * n_sweeps * n_sites, n_jobs=n_jobs)
        tau_int = integrated_time(trace[:, n_sweeps // 4 :])
        enough = n_sweeps >= _PILOT_TIMES * tau_int
        if enough or n_sweeps * _PILOT_GROWTH > longest:
            break
        n_sweeps *= _PILOT_GROWTH
    burn_in = max(_BURN_IN_LEAST, math.ceil(_BURN_IN_TIMES * tau_int))
    if not enough:
        burn_in = n_sweeps
        warnings.warn(
            f"The chains mix slowly: the autocorrelation time is at least "
            f"{tau_int:.0f} sweeps, too long for a pilot of {n_sweeps} sweeps. The "
            f"draws (after {burn_in} sweeps each) may not be in equilibrium: choose "
            "another method, a higher temperature or a smaller system.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return tau_int, burn_in


def _traced(start, stop, pilot, key, n_sweeps):
    return (pilot(start, stop, key, n_sweeps),)


def sample_info(method, energies, *, tau_int=1.0, burn_in=0):
    """Return the third value of a generator; every row comes from its own chain."""
    return Bunch(
        method=method,
        energies=energies,
        tau_int=tau_int,
        ess=float(len(energies)),
        burn_in=burn_in,
    )
