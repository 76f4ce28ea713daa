"""Markov chains of the Ising model on a lattice, one spin or cluster at a time.

For what chains are see :mod:`skident.datasets._chains`.
"""

import math
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from skident._kernels.clusters import advance_clusters, cluster_scratch
from skident._kernels.gibbs import advance_heat_bath
from skident._kernels.ising import measure_ising, start_ising
from skident._kernels.wolff import advance_wolff
from skident.datasets._lattice import Lattice

# Rough time of an update of a site, in nanoseconds.
_HEAT_BATH_NS, _SWENDSEN_WANG_NS, _WOLFF_NS = 6.0, 4.0, 15.0

# From a random start the correlated regions grow by a factor each Swendsen-Wang update,
# however short the autocorrelation time is at equilibrium. After this many updates the
# energy at T <= 2 of 128 x 128 sites is within 0.1 standard deviations.
_SETTLING = 24

# tanh of the critical beta J and the exponent of the susceptibility, by the number of
# axes: 0 has one site; exact up to 2; for 3 M. Hasenbusch, Phys. Rev. B 82, 174433
# (2010).
_CRITICAL = ((1.0, 1.0), (1.0, 1.0), (math.sqrt(2) - 1, 1.75), (0.218095, 1.2372))


# Hotter than this, in units of |coupling| and by the number of axes, correlations are
# so short that single spins in 64 lanes beat clusters (the critical temperatures are
# 2.269 on the square lattice and 4.512 on the cubic one).
HOT = (2.0, 2.0, 2.8, 5.4)


class _Model(NamedTuple):
    """H = -coupling sum_<ij> s_i s_j - field sum_i s_i, at inverse temperature beta."""

    graph: Lattice
    beta: float
    coupling: float
    field: float


class IsingChains(_Model):
    """What the methods share; a state is a tuple of streams, spins and what else."""

    lanes = bundle = 1

    @property
    def n_sites(self):
        """Spins of a configuration."""
        return len(self.graph.staggering)

    @property
    def sweep_ns(self):
        """Rough time of a sweep of one chain, in nanoseconds."""
        return self.update_ns * self.n_sites

    @cached_property
    def ordered(self):
        """A state of low energy, and its sign: 0 if both have the same energy."""
        signs = self.graph.staggering
        if self.field == 0:
            return signs, 0
        # In a field an antiferromagnet may be staggered or uniform.
        total = signs.sum(dtype=np.int64)
        spins = np.ones((2, self.n_sites), np.int8)
        spins[0] = signs if total * self.field >= 0 else -signs
        spins[1] = 1 if self.field > 0 else -1
        best = self._measured(spins)[:, 0].argmin()
        return spins[best], 0 if best == 0 and total == 0 else 1

    @cached_property
    def activation(self):
        """Probability that a satisfied bond is active."""
        return -math.expm1(-2 * self.beta * abs(self.coupling))

    @property
    def push(self):
        """The energy of turning a spin against the field, in k_B T."""
        return 2 * self.beta * self.field

    @cached_property
    def has_stripes(self):
        """Whether domains that single spins can hardly move may be left by the start.

        They may in the ordered phase, and near it, of a lattice where all bonds can be
        satisfied.
        """
        first, second = self.graph.staggering[self.graph.bonds.T]
        satisfiable = (first * second * self.coupling > 0).all()
        cold = self.beta * abs(self.coupling) * HOT[self.n_axes] > 1
        return bool(satisfiable and cold)

    @property
    def n_axes(self):
        """Axes along which there is more than one site."""
        corners = (*self.graph.sides, self.n_sites)
        return sum(inner < outer for inner, outer in pairwise(corners))

    def start(self, key, first, n_chains, cold):
        """Return the state of chains ``first``, ``first`` + 1, ..."""
        states = np.empty((n_chains, 4), np.uint64)
        spins = np.empty((n_chains, self.n_sites), np.int8)
        start_ising(key, first, cold, *self.ordered, states, spins)
        return states, spins

    def observe(self, state):
        """Return energies and order parameters, absolute where H is symmetric."""
        totals = self._measured(state[1])
        if self.field == 0:
            np.abs(totals[:, 1], out=totals[:, 1])
        return totals

    def read(self, state):
        """Return rows, order parameters and energies."""
        energies, order = np.ascontiguousarray(self._measured(state[1]).T)
        return state[1].copy(), order, energies

    def acceptance(self, state):
        """Return 1: nothing is proposed."""
        return 1.0

    def _measured(self, spins):
        totals = np.empty((len(spins), 2))
        graph = self.graph
        measure_ising(
            graph.sides, graph.wraps, graph.staggering, self.coupling, self.field,
            spins, totals,
        )  # fmt: skip
        return totals


class HeatBathChains(IsingChains):
    """Single spins, redrawn in the order of the sites; a sweep redraws them all.

    Where single spins would leave stripes, a random start is that of
    :class:`SwendsenWangChains`.
    """

    method = "heat-bath"
    update_ns = _HEAT_BATH_NS

    def start(self, key, first, n_chains, cold):
        """Return the state of chains ``first``, ``first`` + 1, ..."""
        if self.has_stripes:
            return SwendsenWangChains(*self).start(key, first, n_chains, cold)
        return super().start(key, first, n_chains, cold)

    @cached_property
    def limits(self):
        """Probability of up in units of 2**-53, by the sum of the neighbours."""
        n_neighbours = self.graph.neighbours.shape[1]
        total = np.arange(-n_neighbours, n_neighbours + 1)
        # A logit beyond 700 is certainty, and its exponential would overflow.
        logits = 2 * self.beta * (self.coupling * total + self.field)
        chances = 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
        return np.ceil(chances * 2.0**53).astype(np.int64)

    def advance(self, state, n_sweeps):
        """Advance by some sweeps, in place."""
        advance_heat_bath(n_sweeps, self.graph.neighbours, self.limits, *state)


class SwendsenWangChains(IsingChains):
    """Clusters that cover the lattice; a sweep draws and turns them all.

    A random start is followed by 24 updates, which belong to the start.
    """

    method = "swendsen-wang"
    update_ns = _SWENDSEN_WANG_NS

    def start(self, key, first, n_chains, cold):
        """Return the state of chains ``first``, ``first`` + 1, ..."""
        state = super().start(key, first, n_chains, cold)
        # One by one, so that Ctrl-C is heard.
        for _ in range(0 if cold else _SETTLING):
            self.advance(state, 1)
        return state

    def advance(self, state, n_sweeps):
        """Advance by some sweeps, in place."""
        sides, wraps = self.graph.sides, self.graph.wraps
        advance_clusters(
            n_sweeps, sides, wraps, self.coupling, self.activation, self.push,
            cluster_scratch(self.n_sites, sides, len(wraps)), *state,
        )  # fmt: skip


class WolffChains(IsingChains):
    """Single clusters, grown from random sites.

    A sweep is a fixed number of cluster updates, about as many as visit n_sites sites,
    or with probability 1/2 one more: times in sweeps, that of the autocorrelation for
    one, are in units of about one visit a site, as with the other methods, and not to
    be scaled by the size of the clusters. At and below the critical point it is one or
    two cluster updates, and a sweep visits as many sites as these clusters have.

    The clusters of a random state are small, and single ones would take about n_sites
    updates to grow: the start is that of :class:`SwendsenWangChains`.
    """

    method = "wolff"
    update_ns = _WOLFF_NS

    @cached_property
    def n_clusters(self):
        """Clusters a sweep updates, if not one more.

        The mean size of a cluster is the susceptibility, which is close to
        (1 - t / t_c)**-gamma with t = tanh(beta |coupling|) up to the critical point.
        In a field a cluster of parallel spins turns with probability exp(-|push|) a
        site, so that larger ones than 1 + 1 / |push| rarely do.
        """
        critical, gamma = _CRITICAL[self.n_axes]
        t = math.tanh(self.beta * abs(self.coupling))
        share = max(0.0, 1 - t / critical) ** gamma
        if self.coupling > 0 and self.field != 0:
            share = max(share, 1 - 1 / (1 + abs(self.push)))
        return max(1, math.ceil(self.n_sites * share))

    def start(self, key, first, n_chains, cold):
        """Return the state of chains ``first``, ``first`` + 1, ..."""
        state = SwendsenWangChains(*self).start(key, first, n_chains, cold)
        return *state, np.zeros((n_chains, 2), np.int64)

    def advance(self, state, n_sweeps):
        """Advance by some sweeps, in place."""
        advance_wolff(
            n_sweeps, self.n_clusters, self.graph.neighbours, self.coupling,
            self.activation, self.push, *state,
        )  # fmt: skip

    def acceptance(self, state):
        """Return the share of clusters that the field let turn."""
        turned, grown = state[2].sum(axis=0)
        return float(turned / grown) if grown > 0 else 1.0
