"""Spins with couplings of any sign on any graph."""

import math
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import eigsh

from skident._compat import validate_params
from skident._kernels import glass
from skident._random import draw_seed, generator, stream_key
from skident.datasets._chains import CHAINS, SPINS, sample_chains
from skident.datasets._couplings import check_couplings, check_field

# The streams of the pilot that spaces the temperatures, besides those of _pilot.
_SPACING = 2
_SPACING_PAIRS = 4
_SPACING_SWEEPS, _SPACING_SNAPSHOTS = 192, 32
_SPACING_STEPS = 32
# Single chains are quick if after so many sweeps they remember less than this.
_MEMORY_SWEEPS, _MEMORY = 4, 0.1
# The hottest temperature, in units of that at which they begin to be slow.
_BEYOND = 1.25
# The pilot reaches down to this part of the hottest temperature.
_FROZEN = 1e-3
# Distance of neighbouring temperatures: exchanges are accepted erfc(1.5 / 2) = 29 %.
_DISTANCE = 1.5

# With more neighbours clusters span the graph and only exchange the replicas.
_CLUSTER_NEIGHBOURS = 6
# Rough time of an update of a spin, and of an addition to a local field.
_UPDATE_NS, _ADD_NS = 10.0, 0.03
# A spin and its local field.
_SITE_BYTES = 9
_MOST_BYTES = 2**28
# Larger matrices are not made dense for an eigenvalue.
_DENSE_SITES = 256


@validate_params(
    {
        **SPINS,
        **CHAINS,
        "couplings": ["array-like", "sparse matrix"],
        "field": [Real, "array-like"],
    },
    prefer_skip_nested_validation=True,
)
def make_spin_glass(
    n_samples,
    couplings,
    *,
    temperature,
    field=0.0,
    draws_per_chain=1,
    spacing="auto",
    spin_values=(-1, 1),
    out=None,
    return_info=False,
    n_jobs=None,
    verbose=0,
    random_state=None,
):
    r"""Draw independent samples of spins with given couplings, at equilibrium.

    The Hamiltonian, with :math:`k_B = 1`, spins :math:`s_i = \pm 1`, symmetric
    couplings :math:`J` and field :math:`h`, is

    .. math:: H(s) = -\sum_{i < j} J_{ij} s_i s_j - \sum_i h_i s_i ,

    each pair counted once, and :math:`P(s) \propto e^{-H(s)/T}`. See
    :func:`make_couplings` for random couplings.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    couplings : array-like or sparse matrix of shape (n_sites, n_sites)
        The couplings J: symmetric, with zeros on the diagonal. All zero are free
        spins.
    temperature : float
        Temperature T, at least 1e-100; infinity is allowed. The glass transition of
        the Sherrington-Kirkpatrick model is at 1 (couplings of variance 1/N), that of
        the Edwards-Anderson model in three dimensions at 1.10 (±1) and 0.95 (Gaussian
        of variance 1); in two dimensions it is at 0.
    field : float or array-like of shape (n_sites,), default=0.0
        Field h, one for all sites or one each.
    draws_per_chain : int, default=1
        Draws taken of each chain: row k is draw ``k % draws_per_chain`` of chain
        ``k // draws_per_chain``. By default every sample has its own chain.
    spacing : int or "auto", default="auto"
        Sweeps between the draws of a chain; "auto" is one autocorrelation time.
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
    y : ndarray of shape (n_samples,)
        The overlap :math:`q = \frac{1}{N} \sum_i s_i^a s_i^b` of each sample with its
        replica, in [-1, 1] for either ``spin_values``. The replica of sample 2j is
        sample 2j + 1 (with ``draws_per_chain`` > 1 the same draw of the next chain),
        so that both have the same q: y holds n_samples / 2 independent values, and the
        mean of a function of q has the error of ess / 2 of them. The replica of the
        last sample may not be among the rows.
    info : Bunch
        Only if ``return_info``: ``method``, ``energies`` (n_samples,) the total H,
        ``order_parameter`` = y, ``tau_int`` the integrated autocorrelation time
        :math:`1 + 2 \sum_t \rho(t)` in sweeps, ``ess`` the number of
        independent samples for functions of one row, ``burn_in`` and ``spacing`` in
        sweeps, ``acceptance`` the share of exchanges accepted, ``start_disagreement``
        between chains from random and from quenched starts in standard deviations,
        ``temperatures`` the ladder and ``exchange_acceptance`` of each two neighbours
        in it.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it and its value, or the
        entry of ``couplings`` that is wrong.

    Warns
    -----
    ConvergenceWarning
        If the chains mix too slowly for the burn-in to be measured, if chains from
        random and quenched starts disagree, or if the draws of a chain are worth few
        independent ones.

    Notes
    -----
    A glass shows in no function of one configuration: magnetisation and energy are
    those of a paramagnet. Its order parameter is the overlap of two independent
    configurations (replicas) of the same couplings [1]_. So chains run in pairs, and
    every configuration is used once as a row: the two of a pair are independent rows.

    A chain is a ladder of temperatures from T to where chains of single spins forget
    in a few sweeps, as a pilot says (at most to the largest eigenvalue of J, below
    which mean-field theory expects order). A sweep redraws, at each temperature, all
    spins given their neighbours (heat bath, in the order of the sites); on graphs with
    at most six neighbours a site (in the mean) it then swaps, in the colder half, a
    cluster of sites in which the two replicas differ [3]_ [4]_; then neighbouring
    temperatures propose to exchange their states [2]_. The temperatures are spaced by
    the energy fluctuations in that pilot, so that at least about 30 % of exchanges are
    accepted. The burn-in is eight times the autocorrelation time of
    energy and squared overlap, and of random marks that configurations get at the
    hottest temperature and take along through the ladder: these are as old as what a
    configuration remembers. It is measured in further pilot chains, half of which start
    from a quench.

    Couplings and field are rounded to :math:`2^{-52}` of the largest
    :math:`\sum_j |J_{ij}| + |h_i|` (up to a factor 2), so that local fields are exact
    sums.

    References
    ----------
    .. [1] S. F. Edwards and P. W. Anderson, "Theory of spin glasses", J. Phys. F 5,
       965 (1975).
    .. [2] K. Hukushima and K. Nemoto, "Exchange Monte Carlo method and application
       to spin glass simulations", J. Phys. Soc. Jpn. 65, 1604 (1996).
    .. [3] J. Houdayer, "A cluster Monte Carlo algorithm for 2-dimensional spin
       glasses", Eur. Phys. J. B 22, 479 (2001).
    .. [4] Z. Zhu, A. J. Ochoa and H. G. Katzgraber, "Efficient cluster algorithm for
       spin glasses in any space dimension", Phys. Rev. Lett. 115, 077201 (2015).

    Examples
    --------
    >>> from skident.datasets import lattice_graph, make_couplings, make_spin_glass
    >>> J = make_couplings(lattice_graph((4, 4)), distribution="binary", random_state=0)
    >>> X, q = make_spin_glass(100, J, temperature=0.8, random_state=0)
    >>> X.shape, q.shape
    ((100, 16), (100,))
    >>> bool(q[0] == X[0].astype(float) @ X[1] / 16)
    True
    """
    matrix = check_couplings(couplings)
    field = check_field(field, matrix.shape[0])
    seed = draw_seed(random_state)
    chains, exchange_acceptance = _tempered(matrix, field, temperature, seed)
    result = sample_chains(
        chains, n_samples, draws_per_chain=draws_per_chain, spacing=spacing,
        spin_values=spin_values, out=out, return_info=return_info, n_jobs=n_jobs,
        verbose=verbose, random_state=seed,
    )  # fmt: skip
    if return_info:
        with np.errstate(divide="ignore"):
            result[2].temperatures = 1.0 / chains.betas
        result[2].exchange_acceptance = exchange_acceptance
    return result


class GlassState(NamedTuple):
    """State of pairs of chains; see :mod:`skident._kernels.glass`."""

    states: np.ndarray
    spins: np.ndarray
    fields: np.ndarray
    energies: np.ndarray
    slots: np.ndarray
    marks: np.ndarray
    accepted: np.ndarray
    clock: np.ndarray
    # The last pair may be half asked for.
    n_chains: np.ndarray


class GlassChains(NamedTuple):
    """Chains of parallel tempering, two and two, at inverse temperatures ``betas``."""

    betas: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    external: np.ndarray
    clusters: bool
    exchanges: bool

    lanes = bundle = 2

    @property
    def method(self):
        """The name of the algorithm."""
        extra = " with isoenergetic clusters" if self.clusters else ""
        return f"parallel tempering{extra}"

    @property
    def n_sites(self):
        """Spins of a configuration."""
        return len(self.external)

    @property
    def sweep_ns(self):
        """Rough time of a sweep of one chain, in nanoseconds."""
        update = _UPDATE_NS * (1.5 if self.clusters else 1.0)
        work = update * self.n_sites + _ADD_NS * len(self.values)
        return work * len(self.betas)

    @property
    def _model(self):
        return self.indptr, self.indices, self.values, self.external

    def start(self, key, first, n_chains, cold):
        """Return the state of chains from ``first``, an even number, on."""
        n_pairs, n_temperatures = -(-n_chains // 2), len(self.betas)
        shape = (n_pairs, 2, n_temperatures)
        state = GlassState(
            states=np.empty((n_pairs, 4), np.uint64),
            spins=np.empty((*shape, self.n_sites), np.int8),
            fields=np.empty((*shape, self.n_sites)),
            energies=np.empty(shape),
            slots=np.empty(shape, np.int64),
            marks=np.empty(shape, np.int8),
            accepted=np.zeros((n_pairs, n_temperatures - 1), np.int64),
            clock=np.zeros(n_pairs, np.int64),
            n_chains=np.array(n_chains),
        )
        glass.start_glass(key, first // 2, cold, *self._model, *state[:6])
        return state

    def advance(self, state, n_sweeps):
        """Advance by some sweeps, in place."""
        glass.advance_glass(
            n_sweeps, self.clusters, self.exchanges, self.betas, *self._model,
            glass.CHANCES, *state[:8],
        )  # fmt: skip

    def observe(self, state):
        """Energy, squared overlap, and the product of the marks of two walkers.

        The autocorrelation of the latter is the probability that neither has been at
        the hottest temperature since.
        """
        squares = self._overlaps(state) ** 2
        marks = np.prod(state.marks[:, :, 0], axis=1)
        pairs = np.repeat(np.stack([squares, marks], axis=1), 2, axis=0)
        return np.column_stack([self._energies(state), pairs])[: state.n_chains]

    def read(self, state):
        """Rows, overlaps and energies at the first temperature."""
        walkers = state.slots[:, :, :1, None]
        rows = np.take_along_axis(state.spins, walkers, axis=2)
        n = state.n_chains
        return (
            rows.reshape(-1, self.n_sites)[:n],
            np.repeat(self._overlaps(state), 2)[:n],
            self._energies(state)[:n],
        )

    def acceptance(self, state):
        """Return the share of exchanges accepted."""
        shares = self.exchange_acceptance(state)
        return float(shares.mean()) if len(shares) else 1.0

    def exchange_acceptance(self, state):
        """Return the share of exchanges of each two neighbouring temperatures."""
        return state.accepted.sum(axis=0) / max(1, 2 * state.clock.sum())

    def ladder_energies(self, state):
        """Return the energies (n_pairs, 2, n_temperatures), by temperature."""
        return np.take_along_axis(state.energies, state.slots, axis=2)

    def _energies(self, state):
        return self.ladder_energies(state)[:, :, 0].ravel()

    def _overlaps(self, state):
        overlaps = np.empty(len(state.spins))
        glass.overlaps_glass(state.spins, state.slots, overlaps)
        return overlaps


def _tempered(matrix, field, temperature, seed):
    """Return chains on a ladder of temperatures, and the acceptance of its steps."""
    values, external = _on_grid(matrix, field)
    n_sites = len(external)
    rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), values
    few = len(values) <= _CLUSTER_NEIGHBOURS * n_sites

    def chains(betas, clusters=few, exchanges=True):
        _check_size(n_sites, len(betas))
        return GlassChains(betas, *rows, external, clusters, exchanges)

    hottest = _hottest(matrix)
    if temperature >= hottest:
        return chains(np.array([1.0 / temperature])), np.empty(0)
    frozen = max(temperature, _FROZEN * hottest)
    coarse = hottest * np.geomspace(frozen / hottest, 1.0, _SPACING_STEPS)
    single = chains(1.0 / coarse, clusters=False, exchanges=False)
    betas = _spaced(single.betas, *_single_chains(single, stream_key(seed, _SPACING)))
    if temperature < frozen:
        betas = np.append(1.0 / temperature, betas)
    betas[0] = 1.0 / temperature
    tempered = chains(betas)
    return tempered, _measured_exchanges(tempered, stream_key(seed, _SPACING, 1))


def _check_size(n_sites, n_temperatures):
    n_bytes = 2 * _SITE_BYTES * n_sites * n_temperatures
    if n_bytes > _MOST_BYTES:
        raise ValueError(
            f"couplings of {n_sites} sites need {n_temperatures} temperatures, so that "
            f"two chains take {n_bytes / 2**20:.0f} MiB, above "
            f"{_MOST_BYTES / 2**20:.0f}. Take a smaller system or a higher temperature."
        )


def _on_grid(matrix, field):
    """Couplings and field as multiples of one power of two, so that sums are exact."""
    reach = (np.abs(matrix).sum(axis=1) + np.abs(field)).max()
    # The least exponent is that of all floats.
    exponent = max(int(np.frexp(reach)[1]) - 52, -1074)

    def rounded(x):
        return np.ldexp(np.round(np.ldexp(x, -exponent)), exponent)

    return rounded(matrix.data), rounded(field)


def _hottest(matrix):
    """Return the critical temperature of mean-field theory, the largest eigenvalue."""
    if matrix.nnz == 0:
        return 0.0
    n_sites, largest = matrix.shape[0], np.abs(matrix.data).max()
    scaled = matrix.copy()
    # Not matrix / largest, which is a product with 1 / largest and may overflow.
    scaled.data /= largest
    if n_sites <= _DENSE_SITES:
        top = np.linalg.eigvalsh(scaled.toarray())[-1]
    else:
        start = generator(0).standard_normal(n_sites)
        (top,) = eigsh(
            scaled, 1, which="LA", v0=start, tol=1e-2, return_eigenvectors=False
        )
    # Rounded, as the last digits may depend on the number of threads.
    return float(f"{top:.3g}") * float(largest)


def _single_chains(chains, key):
    """Width of the energies, and memory of the spins, at each temperature.

    Memory is the covariance of spins with themselves some sweeps later, a site in the
    mean, from the overlaps of a state with its past and of two replicas, over their
    variance: near 0 where a chain of a single temperature has forgotten its start.
    """
    state = chains.start(key, 0, 2 * _SPACING_PAIRS, False)
    for _ in range(_SPACING_SWEEPS // 3):
        chains.advance(state, 1)
    energies, own, other = [], 0.0, 0.0
    for _ in range(_SPACING_SNAPSHOTS):
        before = state.spins.copy()
        for _ in range(_MEMORY_SWEEPS):
            chains.advance(state, 1)
            energies.append(state.energies.copy())
        own += np.einsum("pcrn,pcrn->r", state.spins, before, dtype=np.float64)
        first, second = state.spins.swapaxes(0, 1)
        other += 2 * np.einsum("prn,prn->r", first, second, dtype=np.float64)
    # The median, as a rare jump to another valley would widen the mean.
    widths = np.median(np.std(energies, axis=0), axis=(0, 1))
    count = _SPACING_SNAPSHOTS * 2 * _SPACING_PAIRS * chains.n_sites
    return widths, (own - other) / np.maximum(count - other, 1.0)


def _measured_exchanges(chains, key):
    state = chains.start(key, 0, 2 * _SPACING_PAIRS, False)
    for _ in range(_SPACING_SWEEPS):
        chains.advance(state, 1)
    return chains.exchange_acceptance(state)


def _spaced(betas, widths, memory):
    """Inverse temperatures in equal steps of the integral of the energy's width.

    They end a little above where single chains forget quickly.
    """
    slow = np.flatnonzero(memory > _MEMORY)
    if len(slow) == 0:
        return betas[:1]
    last = np.searchsorted(-betas, -betas[slow[-1]] / _BEYOND) + 1
    betas, widths = betas[:last], widths[:last]
    steps = 0.5 * (widths[1:] + widths[:-1]) * (betas[:-1] - betas[1:])
    distance = np.append(0.0, np.cumsum(steps))
    n_steps = max(1, math.ceil(distance[-1] / _DISTANCE))
    return np.interp(np.linspace(0, distance[-1], n_steps + 1), distance, betas)
