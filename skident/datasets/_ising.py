"""Spins on a line, a sheet or a block that feel their neighbours."""

import math
from functools import partial
from numbers import Integral, Real

import numpy as np

from skident._compat import Interval, StrOptions, validate_params
from skident._kernels.clusters import swendsen_wang_chains
from skident._kernels.gibbs import heat_bath_chains
from skident._random import draw_seed
from skident.datasets._chains import (
    COMMON,
    check_spin_values,
    draws_key,
    measure_burn_in,
    run_blocks,
    sample_info,
)
from skident.datasets._lattice import check_shape, lattice

_NO_TRACE = np.empty((0, 0, 0))


@validate_params(
    {
        **COMMON,
        "shape": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "field": [Interval(Real, -1e100, 1e100, closed="both")],
        "coupling": [Interval(Real, -1e100, 1e100, closed="both")],
        "periodic": ["boolean"],
        "method": [StrOptions({"auto", "heat-bath", "swendsen-wang"})],
    },
    prefer_skip_nested_validation=True,
)
def make_ising(
    n_samples,
    shape,
    *,
    temperature,
    field=0.0,
    coupling=1.0,
    periodic=True,
    method="auto",
    spin_values=(-1, 1),
    return_info=False,
    n_jobs=None,
    random_state=None,
):
    r"""Draw independent samples of the Ising model on a lattice.

    The Hamiltonian, with :math:`k_B = 1` and spins :math:`s_i = \pm 1`, is

    .. math:: H(s) = -J \sum_{\langle ij \rangle} s_i s_j - h \sum_i s_i ,

    each bond counted once, and :math:`P(s) \propto e^{-H(s)/T}`.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    shape : int or tuple of 1 to 3 ints
        Sides of the lattice; an int is a chain. Sites are in C order.
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed. On the square lattice
        with J = 1 the critical one is 2 / ln(1 + sqrt(2)) = 2.269.
    field : float, default=0.0
        Uniform field h.
    coupling : float, default=1.0
        Coupling J: positive is ferromagnetic, negative antiferromagnetic.
    periodic : bool, default=True
        Whether the lattice closes on itself along every axis: each site is bonded
        to the next one, and the last to the first. So along a periodic side of
        length 2 the two sites are joined by two bonds; along a side of length 1 there
        is none. If False the last site has no next one.
    method : {"auto", "heat-bath", "swendsen-wang"}, default="auto"
        "swendsen-wang" turns over clusters of spins, in a field with the heat bath
        probability of the whole cluster; "heat-bath" redraws one spin after the
        other, in the order of the sites. "auto" takes clusters unless the lattice is
        frustrated (``coupling < 0`` and a periodic side of odd length above 1), where
        they grow over the whole lattice.
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
    y : ndarray of shape (n_samples,)
        The order parameter, in [-1, 1] for either ``spin_values``: the magnetisation
        a site, or for ``coupling < 0`` the staggered one, in which spins count with
        the sign (-1)^(sum of the site's coordinates).
    info : Bunch
        Only if ``return_info``: ``method``, ``energies`` (n_samples,) the total H,
        ``tau_int`` the integrated autocorrelation time :math:`1 + 2 \sum_t \rho(t)`
        in sweeps, ``burn_in`` in sweeps, and ``ess`` = n_samples.

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
    Every sample is the end of its own chain, which starts at random. The burn-in is
    eight times the autocorrelation time, of energy and (absolute, without a field)
    order parameter, in pilot chains. The start is as symmetric as H without a field, so
    that a state and its reverse are then equally likely.

    References
    ----------
    .. [1] R. H. Swendsen and J.-S. Wang, "Nonuniversal critical dynamics in Monte
       Carlo simulations", Phys. Rev. Lett. 58, 86 (1987).
    .. [2] R. G. Edwards and A. D. Sokal, "Generalization of the Fortuin-Kasteleyn-
       Swendsen-Wang representation", Phys. Rev. D 38, 2009 (1988).

    Examples
    --------
    >>> from skident.datasets import make_ising
    >>> X, m = make_ising(50, (8, 8), temperature=2.5, random_state=0)
    >>> X.shape, m.shape
    ((50, 64), (50,))
    """
    low, high = check_spin_values(spin_values)
    shape = check_shape(shape)
    n_sites = math.prod(shape)
    method = _choose(method, shape, coupling, periodic)
    beta, coupling, field = 1.0 / temperature, float(coupling), float(field)
    chains = _METHODS[method](lattice(shape, periodic, coupling), beta, coupling, field)
    seed = draw_seed(random_state)
    tau_int, burn_in = measure_burn_in(
        partial(_pilot, chains=chains, n_sites=n_sites, field=field),
        seed,
        n_sites=n_sites,
        n_observables=2,
        n_jobs=n_jobs,
    )
    task = partial(
        _rows, key=draws_key(seed), chains=chains, n_sites=n_sites, n_sweeps=burn_in,
        low=low, high=high,
    )  # fmt: skip
    X = np.empty((n_samples, n_sites), np.int8)
    totals = np.empty((n_samples, 2))
    run_blocks(task, (X, totals), row_ns=burn_in * n_sites * 20, n_jobs=n_jobs)
    energies, y = np.ascontiguousarray(totals.T)
    if not return_info:
        return X, y
    return X, y, sample_info(method, energies, tau_int=tau_int, burn_in=burn_in)


def _choose(method, shape, coupling, periodic):
    frustrated = coupling < 0 and periodic and any(n > 1 and n % 2 for n in shape)
    if method != "auto":
        return method
    return "heat-bath" if frustrated else "swendsen-wang"


def _heat_bath(graph, beta, coupling, field):
    n_neighbours = graph.neighbours.shape[1]
    total = np.arange(-n_neighbours, n_neighbours + 1)
    # A logit beyond 700 is certainty, and its exponential would overflow.
    logits = np.clip(2 * beta * (coupling * total + field), -700, 700)
    chances = 1 / (1 + np.exp(-logits))
    return partial(
        _call, heat_bath_chains, graph.neighbours, chances, graph.bonds,
        graph.staggering, coupling, field,
    )  # fmt: skip


def _swendsen_wang(graph, beta, coupling, field):
    activation = -math.expm1(-2 * beta * abs(coupling))
    return partial(
        _call, swendsen_wang_chains, graph.bonds, activation, graph.staggering,
        coupling, 2 * beta * field, field,
    )  # fmt: skip


_METHODS = {"heat-bath": _heat_bath, "swendsen-wang": _swendsen_wang}


def _call(kernel, *model, key, start, run):
    kernel(key, start, *model, *run)


def _pilot(start, stop, key, n_sweeps, chains, n_sites, field):
    n_chains = stop - start
    trace = np.empty((n_chains, n_sweeps, 2))
    rows, totals = np.empty((n_chains, n_sites), np.int8), np.empty((n_chains, 2))
    low, high = np.int8(-1), np.int8(1)
    chains(key=key, start=start, run=(n_sweeps, low, high, rows, totals, trace))
    if field == 0:
        np.abs(trace[:, :, 1], out=trace[:, :, 1])
    return trace


def _rows(start, stop, key, chains, n_sites, n_sweeps, low, high):
    rows = np.empty((stop - start, n_sites), np.int8)
    totals = np.empty((stop - start, 2))
    chains(key=key, start=start, run=(n_sweeps, low, high, rows, totals, _NO_TRACE))
    return rows, totals
