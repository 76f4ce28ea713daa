"""Markov chains of the Ising model on a lattice, 64 of them in the bits of a word.

For what chains are see :mod:`skident.datasets._chains`.
"""

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skident._kernels.multispin import (
    CLASSES,
    LANES,
    LAZY_BITS,
    SWEEPS,
    count_differences,
    read_rows,
    start,
)
from skident._kernels.vectors import WIDTH
from skident.datasets._ising_chains import IsingChains, SwendsenWangChains

# Rough time of an update of a spin, in nanoseconds, and for blocks of 512 chains that
# of a random bit of every chain and of an extra flip.
_UPDATE_NS, _BIT_NS, _EXTRA_NS = 0.1, 2.0, 40.0
_MOST_BITS = 20

# Energy changes, in k_B T, that hardly matter.
_NEUTRAL = 0.5
_LAZY = 1 - 2.0**-LAZY_BITS

# Sets the streams of clusters apart from those of words.
_SETTLING_KEY = np.uint64(0x9FB21C651E98DF25)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class FlipTable(NamedTuple):
    """How the kernel realises probabilities (n_kinds, 2, 7) of flips.

    A flip happens with probability t + (1 - t) ``rate`` ``kept``, where t is
    ``thresholds`` / 2**n_bits. ``full`` tells which kernel; see there for ``planes``.
    """

    full: bool
    thresholds: np.ndarray
    planes: np.ndarray
    rate: float
    kept: np.ndarray

    @property
    def n_bits(self):
        """Random bits an update takes."""
        return self.planes.shape[2] - 1


def flip_probabilities(beta, coupling, field, n_neighbours, n_missing):
    r"""Probability that a proposed flip is accepted, by class.

    It is :math:`\min(1, e^{-x})` at an energy change of x k_B T, times 15/16 where
    :math:`|x| < 1/2`: a sweep over the sites in order in which moves that cost nothing
    are certain is not ergodic, on a periodic chain at no temperature. If no change is
    as large as 1/2 it is the heat bath :math:`1 / (1 + e^x)`. Either way the ratio
    of a flip and its reverse is :math:`e^{-x}`.

    Parameters
    ----------
    beta, coupling, field : float
        Inverse temperature, J, h.
    n_neighbours : int
        Neighbours of a site in the bulk.
    n_missing : ndarray of shape (n_kinds,)
        Numbers of neighbours that sites lack. A missing neighbour is played by the
        site itself: its bond is satisfied if J >= 0.

    Returns
    -------
    ndarray of shape (n_kinds, 2, 7)
        By kind of site, spin (down, up) and number of unsatisfied bonds, 0 to 6.
        Numbers that cannot occur repeat the nearest one that can.
    """
    missing = np.asarray(n_missing)[:, None, None]
    present = n_neighbours - missing
    unsatisfied = np.arange(CLASSES) - (missing if coupling < 0 else 0)
    unsatisfied = np.clip(unsatisfied, 0, present)
    spin = np.array([-1.0, 1.0])[:, None]
    x = 2 * beta * (abs(coupling) * (present - 2 * unsatisfied) + field * spin)
    p = np.exp(-np.clip(x, 0, 1000))
    if np.abs(x).max() < _NEUTRAL:
        return 1 / (1 + np.exp(x))
    return np.where(np.abs(x) < _NEUTRAL, _LAZY * p, p)


def flip_table(p, n_neighbours):
    """Return the :class:`FlipTable` of probabilities (n_kinds, 2, 7).

    The number of random bits is the one that makes for the least work: more of them
    leave less to extra flips.
    """
    half = n_neighbours // 2
    full = bool(
        (p[:, 0] != p[:, 1]).any()
        or (p[:, :, half + 1 :] < 1).any()
        or ((p[:, :, half] != _LAZY) & (p[:, :, half] < 1)).any()
    )
    choices = range(1 if full else LAZY_BITS, _MOST_BITS + 1)
    lanes = LANES * WIDTH
    work = [n * _BIT_NS + _left_over(p, n).max() * lanes * _EXTRA_NS for n in choices]
    n_bits = choices[int(np.argmin(work))]
    thresholds, left = np.floor(np.ldexp(p, n_bits)).astype(int), _left_over(p, n_bits)
    rate = left.max()
    # From the lowest bit; 1 before the first and after the last one. Of probability 1
    # all bits are 1, and "below" before the first one.
    shifts = np.arange(n_bits)[:, None]
    certain = p[:, :, None] == 1
    inner = ((thresholds[:, :, None] >> shifts) & 1) | certain
    outer = np.ones_like(certain)
    bits = np.concatenate([~certain, inner, outer], axis=2).astype(bool)
    planes = np.where(bits[:, :, 1:] ^ bits[:, :, :-1], _ALL, np.uint64(0))
    if not full:
        planes[:, :, -1, half] = np.where(p[:, :, half] == 1, _ALL, np.uint64(0))
    return FlipTable(full, thresholds, planes, float(rate), left / (rate or 1.0))


def _left_over(p, n_bits):
    """Probability of an extra flip that thresholds of some bits leave."""
    t = np.ldexp(np.floor(np.ldexp(p, n_bits)), -n_bits)
    return np.divide(p - t, 1 - t, out=np.zeros_like(p), where=t < 1)


class MultispinChains(IsingChains):
    """Metropolis updates of single spins, in the order of the sites.

    Where single spins would leave stripes, a random start is that of
    :class:`skident.datasets._ising_chains.SwendsenWangChains`.

    A state is a tuple: random states (n_blocks, 4, 8), spins (n_blocks, n_sites + 2,
    8), gaps and numbers of flips (n_blocks, 8) of blocks of 512 chains, and the number
    of chains and of sweeps (2,). The last block is run in full, so that a chain is the
    same however many are run.
    """

    method = "multispin"
    lanes = LANES
    bundle = LANES * WIDTH
    update_ns = _UPDATE_NS

    @cached_property
    def table(self):
        """The :class:`FlipTable`, by the number of neighbours that a site lacks."""
        p = flip_probabilities(
            self.beta, self.coupling, self.field, self._n_neighbours, self._kinds[0]
        )
        return flip_table(p, self._n_neighbours)

    @property
    def _n_neighbours(self):
        return self.graph.neighbours.shape[1]

    @cached_property
    def _kinds(self):
        missing = (self.graph.neighbours == self.n_sites).sum(axis=1)
        return np.unique(missing, return_inverse=True)

    @property
    def _log_miss(self):
        return math.log1p(-self.table.rate)

    @cached_property
    def _arguments(self):
        """The model as the kernel takes it."""
        sites = np.arange(self.n_sites, dtype=np.int32)[:, None]
        neighbours = self.graph.neighbours
        neighbours = np.where(neighbours == self.n_sites, sites, neighbours)
        antiparallel = _ALL if self.coupling < 0 else np.uint64(0)
        table = self.table
        return (
            neighbours, self._kinds[1], antiparallel, table.planes, table.kept,
            self._log_miss,
        )  # fmt: skip

    def start(self, key, first, n_chains, cold):
        """Return the state of chains ``first``, ``first`` + 1, ..."""
        if first % LANES:
            raise ValueError(f"first must be a multiple of {LANES}, got {first}.")
        n_blocks = -(-n_chains // (LANES * WIDTH))
        states = np.empty((n_blocks, 4, WIDTH), np.uint64)
        spins = np.empty((n_blocks, self.n_sites + 2, WIDTH), np.uint64)
        gaps, flips = np.empty((2, n_blocks, WIDTH), np.int64)
        start(
            key, first // LANES, cold, *self.ordered, self._log_miss,
            states, spins, gaps,
        )  # fmt: skip
        flips[:] = 0
        if self.has_stripes and not cold:
            self._settle(key, first, -(-n_chains // LANES), spins)
        return states, spins, gaps, flips.view(np.uint64), np.array([n_chains, 0])

    def _settle(self, key, first, n_words, spins):
        """Start the chains of some words as those of :class:`SwendsenWangChains`."""
        clusters = SwendsenWangChains(*self)
        for word in range(n_words):
            _, rows = clusters.start(
                np.uint64(key) ^ _SETTLING_KEY, first + word * LANES, LANES, False
            )
            up = np.ascontiguousarray(rows.T) > 0
            bits = np.packbits(up, axis=1, bitorder="little")
            block, place = divmod(word, WIDTH)
            spins[block, : self.n_sites, place] = bits.view("<u8")[:, 0]

    def advance(self, state, n_sweeps):
        """Advance by some sweeps, in place."""
        sweep = SWEEPS[self._n_neighbours, self.table.full]
        sweep(n_sweeps, *self._arguments, *state[:4])
        state[4][1] += n_sweeps

    def observe(self, state):
        """Return energies and order parameters, absolute where H is symmetric."""
        energies, order = self._totals(state)
        return np.stack([energies, abs(order) if self.field == 0 else order], axis=1)

    def read(self, state):
        """Return rows, order parameters and energies."""
        rows = np.empty((state[4][0], self.n_sites), np.int8)
        read_rows(state[1], rows)
        energies, order = self._totals(state)
        return rows, order, energies

    def acceptance(self, state):
        """Return the share of proposals accepted since the start."""
        n_chains, n_sweeps = state[4].tolist()
        n_words = -(-n_chains // LANES)
        n_proposals = n_words * LANES * self.n_sites * n_sweeps
        return (
            float(state[3].ravel()[:n_words].sum() / n_proposals) if n_sweeps else 1.0
        )

    def _totals(self, state):
        """Energies and order parameters of all chains."""
        staggering, bonds = self.graph.staggering, self.graph.bonds
        opposite = self._count(state, bonds[:, 0], bonds[:, 1])
        energies = -self.coupling * (len(bonds) - 2.0 * opposite)
        sites = np.arange(self.n_sites)
        # Rows n_sites and n_sites + 1 of the spins are all down and all up.
        as_ordered = self._count(state, sites, self.n_sites + (staggering < 0))
        if self.field != 0:
            up = as_ordered
            if (staggering < 0).any():
                up = self._count(state, sites, np.full_like(sites, self.n_sites))
            energies -= self.field * (2 * up - self.n_sites)
        return energies, (2 * as_ordered - self.n_sites) / self.n_sites

    def _count(self, state, first, second):
        """Count in each chain the pairs of rows that differ."""
        pairs = np.stack([first, second], axis=1).astype(np.int32)
        counts = np.empty((len(state[1]), WIDTH, LANES), np.int64)
        count_differences(pairs, state[1], counts)
        return counts.ravel()[: state[4][0]]
