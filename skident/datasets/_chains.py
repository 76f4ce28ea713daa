"""What the samplers share: checks, pilots, blocks of rows, and the report.

A Markov chain sampler is a small picklable object, called ``chains`` here, with

- ``method``, what ``info.method`` says; ``n_sites``, the width of a row; ``sweep_ns``,
  the rough time of a sweep of one chain; ``lanes``, how many chains share a stream;
  ``bundle``, how many run at the cost of one;
- ``start(key, first, n_chains, cold)``, the state of chains ``first, first + 1, ...``:
  a tuple of arrays, random or (``cold``) ordered;
- ``advance(state, n_sweeps)``, in place; twice two sweeps are four, bit for bit;
- ``observe(state)``, (n_chains, n_observables): the energy, then order parameters that
  are even under the symmetries of the model;
- ``read(state)``, the rows (n_chains, n_sites), their order parameters and energies;
- ``acceptance(state)``, the share of proposals accepted since the start.
"""

import math
import warnings
from functools import partial
from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from skident._compat import Interval, StrOptions
from skident._progress import progress_bar
from skident._random import draw_seed, stream_key
from skident.datasets._pilot import (
    CALL_NS,
    DRAWS,
    advance,
    effective_size,
    run_pilot,
    stopping,
)

_SMALL_ESS = 0.1

# Bounds what is held beside the output.
_BLOCK_BYTES = 1 << 20

SPIN_VALUES = ((-1, 1), (0, 1))

# Colder than this the inverse temperature would overflow.
COLDEST = 1e-100

# Constraints of the parameters that every sampler has ...
COMMON = {
    "n_samples": [Interval(Integral, 1, None, closed="left")],
    "temperature": [Interval(Real, COLDEST, np.inf, closed="both")],
    "return_info": ["boolean"],
    "out": [np.ndarray, None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
}
# ... that every sampler of spins has ...
SPINS = {**COMMON, "spin_values": ["array-like"]}
# ... and that those have which run chains.
CHAINS = {
    "draws_per_chain": [Interval(Integral, 1, None, closed="left")],
    "spacing": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
}


def sample_exact(
    draw, n_samples, n_sites, *, row_ns, random_state, spin_values=None,
    dtype=np.int8, method="exact", out=None, return_info=False, n_jobs=None, verbose=0,
):  # fmt: skip
    """Draw independent rows, without any chain.

    Parameters
    ----------
    draw : callable
        ``draw(key, start, stop)`` returns rows ``start:stop``, their order parameters
        and energies; a row is a function of the key and its number.
    n_samples, n_sites : int
        Shape of X.
    row_ns : float
        Rough time of a row in nanoseconds.
    method : str
        What ``info.method`` says.
    spin_values, dtype, out, return_info, n_jobs, verbose, random_state
        As for :func:`sample_chains`.

    Returns
    -------
    tuple
        As :func:`sample_chains`.
    """
    spin_values = check_spin_values(spin_values)
    X = check_out(out, (n_samples, n_sites), dtype)
    task = partial(_exact_rows, draw=draw, key=draws_key(draw_seed(random_state)))
    y, energies = fill_rows(
        task, X, row_ns=row_ns, spin_values=spin_values, with_energies=return_info,
        n_jobs=n_jobs, verbose=verbose,
    )  # fmt: skip
    if not return_info:
        return X, y
    return X, y, _info(method, y, energies)


def sample_chains(
    chains, n_samples, *, random_state, draws_per_chain=1, spacing="auto",
    spin_values=None, dtype=np.int8, out=None, return_info=False, n_jobs=None,
    verbose=0,
):  # fmt: skip
    """Draw rows from Markov chains in equilibrium.

    Parameters
    ----------
    chains : object
        See the head of this module.
    n_samples : int
        Number of rows.
    random_state : int, RandomState instance or None
        As in scikit-learn.
    draws_per_chain : int
        Row k is draw ``k % draws_per_chain`` of chain ``k // draws_per_chain``.
    spacing : int or "auto"
        Sweeps between the draws of a chain; "auto" is one autocorrelation time.
    spin_values : (low, high) or None
        How to write a spin that points down, up; None leaves rows as they are.
    dtype : dtype
        Of X.
    out : ndarray or None
        Where to write X.
    return_info : bool
        Whether to return ``info`` too.
    n_jobs : int or None
        As in joblib.
    verbose : int
        1 shows a progress bar.

    Returns
    -------
    X : ndarray of shape (n_samples, n_sites)
        The rows; ``out`` if it was given.
    y : ndarray of shape (n_samples, ...)
        The order parameters.
    info : Bunch
        Only if ``return_info``.
    """
    spin_values = check_spin_values(spin_values)
    X = check_out(out, (n_samples, chains.n_sites), dtype)
    seed = draw_seed(random_state)
    pilot = run_pilot(chains, seed, n_jobs=n_jobs)
    if pilot.trouble:
        warnings.warn(pilot.trouble, ConvergenceWarning, stacklevel=5)
    if spacing == "auto":
        spacing = math.ceil(pilot.tau_int)
    ess = effective_size(n_samples, pilot.autocorrelation, draws_per_chain, spacing)
    if ess < _SMALL_ESS * n_samples:
        warnings.warn(
            f"{n_samples} draws, {spacing} sweeps apart in chains of "
            f"{draws_per_chain}, are worth about {ess:.3g} independent ones (the "
            f"autocorrelation time is {pilot.tau_int:.3g} sweeps): take a larger "
            "spacing or fewer draws per chain.",
            ConvergenceWarning,
            stacklevel=5,
        )
    sweeps = pilot.burn_in + (draws_per_chain - 1) * spacing
    with stopping() as running:
        task = partial(
            _chain_rows, chains=chains, key=draws_key(seed), burn_in=pilot.burn_in,
            draws=draws_per_chain, spacing=spacing, running=running,
        )  # fmt: skip
        y, energies = fill_rows(
            task, X, row_ns=chains.sweep_ns * sweeps / draws_per_chain,
            granule=chains.lanes * draws_per_chain,
            least=draws_per_chain * chains.bundle, spin_values=spin_values,
            with_energies=return_info, n_jobs=n_jobs, verbose=verbose,
        )  # fmt: skip
    if not return_info:
        return X, y
    return X, y, _info(
        chains.method, y, energies, tau_int=pilot.tau_int, ess=ess,
        burn_in=pilot.burn_in, spacing=spacing, acceptance=pilot.acceptance,
        start_disagreement=pilot.start_disagreement,
    )  # fmt: skip


def _info(
    method, y, energies, *, tau_int=1.0, ess=None, burn_in=0, spacing=0, acceptance=1.0,
    start_disagreement=0.0,
):  # fmt: skip
    """Return the third value of a generator; by default that of exact draws."""
    return Bunch(
        method=method,
        energies=energies,
        order_parameter=y,
        tau_int=tau_int,
        ess=float(len(y)) if ess is None else ess,
        burn_in=burn_in,
        spacing=spacing,
        acceptance=acceptance,
        start_disagreement=start_disagreement,
    )


def check_spin_values(spin_values):
    """Return the values of down and up, or raise a ``ValueError``; None is kept."""
    if spin_values is None:
        return None
    values = tuple(np.ravel(np.asarray(spin_values)).tolist())
    if values not in SPIN_VALUES:
        raise ValueError(
            f"spin_values must be (-1, 1) or (0, 1), down before up; got "
            f"{spin_values!r}."
        )
    return values


def check_out(out, shape, dtype):
    """Return the array to write to: ``out`` if it fits, a new one if it is None."""
    if out is None:
        try:
            return np.empty(shape, dtype)
        except (MemoryError, ValueError) as error:
            size = math.prod(shape) * np.dtype(dtype).itemsize / 2**30
            raise MemoryError(
                f"X of shape {shape} takes {size:.3g} GiB: ask for fewer samples, or "
                "pass a memory map as out."
            ) from error
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(
            f"out must have shape {shape} and dtype {np.dtype(dtype)}, got shape "
            f"{out.shape} and dtype {out.dtype}."
        )
    if not out.flags.writeable:
        raise ValueError("out must be writeable (a memory map in mode 'r+' or 'w+').")
    return out


def draws_key(seed):
    """Return the key of the streams of the draws; row k takes stream k."""
    return stream_key(seed, DRAWS)


def fill_rows(
    task, X, *, row_ns, granule=1, least=1, spin_values=None, with_energies=False,
    n_jobs=None, verbose=0,
):  # fmt: skip
    """Fill X block by block of rows, blocks in parallel threads.

    Parameters
    ----------
    task : callable
        ``task(start, stop)`` returns the rows ``start:stop``, their order parameters
        and energies. It returns rather than writes, so that any joblib backend will do.
    X : ndarray
        Filled.
    row_ns : float
        Rough time of a row in nanoseconds. It sets the size of the blocks, on which
        no result depends.
    granule : int
        Blocks start at multiples of this.
    least : int
        Rows that a block should have if there are enough for all workers.
    spin_values : (low, high) or None
        The rows hold -1 and 1 and are written so.
    with_energies : bool
        Whether to keep the energies.
    n_jobs : int or None
        As in joblib.
    verbose : int
        1 shows a progress bar.

    Returns
    -------
    y : ndarray of shape (n_samples, ...)
        The order parameters.
    energies : ndarray of shape (n_samples,) or None
        The energies, if they are kept.
    """
    n_rows, workers = len(X), effective_n_jobs(n_jobs)
    size = min(
        max(least, CALL_NS / row_ns),
        max(least, _BLOCK_BYTES / max(1, X[:1].nbytes)),
        math.ceil(n_rows / workers),
    )
    size = granule * max(1, math.ceil(size / granule))
    starts = range(0, n_rows, size)
    y = energies = None
    with (
        Parallel(n_jobs=n_jobs, prefer="threads") as parallel,
        progress_bar(n_rows, "samples", verbose=verbose) as step,
    ):
        # In rounds, so that few blocks are held beside the output.
        for first in range(0, len(starts), 4 * workers):
            some = starts[first : first + 4 * workers]
            results = parallel(delayed(task)(i, min(i + size, n_rows)) for i in some)
            for start, (rows, order, energy) in zip(some, results, strict=True):
                if y is None:
                    y = np.empty((n_rows, *order.shape[1:]))
                    energies = np.empty(n_rows) if with_energies else None
                part = slice(start, start + len(rows))
                X[part] = _written(rows, spin_values)
                y[part] = order
                if with_energies:
                    energies[part] = energy
                step(len(rows))
    return y, energies


def _written(rows, spin_values):
    """Write -1 and 1 as asked for."""
    return rows if spin_values in (None, (-1, 1)) else rows > 0


def _exact_rows(start, stop, draw, key):
    return draw(key, start, stop)


def _chain_rows(start, stop, chains, key, burn_in, draws, spacing, running):
    """Rows ``start:stop``; ``start`` is the first draw of a chain."""
    n_rows = stop - start
    n_chains = math.ceil(n_rows / draws)
    state = chains.start(key, start // draws, n_chains, False)
    advance(chains, state, n_chains, burn_in, running)
    outputs = None
    for d in range(draws):
        if d > 0:
            advance(chains, state, n_chains, spacing, running)
        parts = chains.read(state)
        if draws == 1:
            return parts
        if outputs is None:
            outputs = [np.empty((n_rows, *p.shape[1:]), p.dtype) for p in parts]
        for output, part in zip(outputs, parts, strict=True):
            place = output[d::draws]
            place[:] = part[: len(place)]
    return tuple(outputs)
