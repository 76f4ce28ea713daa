"""Tempered chains of the Hopfield model."""

import math
from typing import NamedTuple

import numpy as np

from skident._kernels.hopfield import (
    advance_chains,
    chain_scratch,
    start_chains,
    unpack_chains,
)
from skident._math.hopfield import site_classes

# The hottest temperature, in units of the spin glass temperature 1 + sqrt(P / N),
# where single chains mix.
_HOTTEST = 1.05
# Ratio of neighbouring temperatures: 1 + _SPACING / sqrt(N), as energies fluctuate
# by sqrt(N). A third of the exchanges are accepted.
_SPACING = 3.5
# Energies differ by multiples of 2 / N. Below this over N only the lowest ones are left
# at any temperature.
_FROZEN = 0.1


class HopfieldChains(NamedTuple):
    """Chains that block Gibbs sampling, relabelling and tempering move.

    For what the methods do see :mod:`skident.datasets._chains`; the state and its
    arrays are those of :mod:`skident._kernels.hopfield`.

    Attributes
    ----------
    patterns : uint64 ndarray of shape (n_patterns, n_words)
        The patterns times ``gauge``, packed.
    columns : ndarray of shape (n_patterns, n_classes)
        Their distinct columns.
    labels : int32 ndarray of shape (n_sites,)
        Which of them each site has.
    gauge : int8 ndarray of shape (n_sites,)
        The first pattern.
    temperatures : ndarray of shape (n_temperatures,)
        From the one asked for up.
    """

    patterns: np.ndarray
    columns: np.ndarray
    labels: np.ndarray
    gauge: np.ndarray
    temperatures: np.ndarray

    method = "tempering"
    lanes = bundle = 1

    @property
    def n_sites(self):
        """Width of a row."""
        return len(self.labels)

    @property
    def sweep_ns(self):
        """Rough time of a sweep of one chain in nanoseconds."""
        n_patterns, n_classes = self.columns.shape
        one = 80 + 15 * n_patterns + 0.15 * n_patterns * n_classes + 2 * self.n_sites
        return one * len(self.temperatures) ** 2

    def start(self, key, first, n_chains, cold):
        """Return the state of new chains."""
        n_patterns, n_words = self.patterns.shape
        shape = (n_chains, len(self.temperatures))
        state = (
            np.empty((n_chains, 4), np.uint64),
            np.empty((*shape, n_words), np.uint64),
            np.empty((*shape, n_patterns), np.int64),
            np.empty(shape, np.int64),
            np.zeros((n_chains, 3), np.int64),
        )
        start_chains(key, first, self.patterns, self.n_sites, bool(cold), *state[:-1])
        return state

    def advance(self, state, n_sweeps):
        """Advance in place, each sweep by as many passes as there are temperatures.

        What the start left at low temperatures must travel up the ladder and down: a
        rare state that lives long there does not show in the autocorrelation time, and
        the least burn-in, counted in sweeps, has to cover it.
        """
        n_passes = n_sweeps * len(self.temperatures)
        model = self.patterns, self.columns, self.labels
        advance_chains(
            *model, 1 / self.temperatures, n_passes, chain_scratch(*model), *state
        )

    def observe(self, state):
        """Return the energy and the squared overlaps of each chain."""
        square = _overlaps(state) ** 2
        energies = -square.sum(axis=1, keepdims=True) / (2 * self.n_sites)
        return np.hstack([energies, square])

    def read(self, state):
        """Return rows, overlaps and energies."""
        _, spins, _, slots, _ = state
        rows = np.empty((len(spins), self.n_sites), np.int8)
        unpack_chains(spins, slots, self.gauge, rows)
        v = _overlaps(state)
        return rows, v / self.n_sites, -(v**2).sum(axis=1) / (2 * self.n_sites)

    def acceptance(self, state):
        """Return the share of exchanges accepted."""
        _, proposed, accepted = state[-1].sum(axis=0)
        return float(accepted / proposed) if proposed else 1.0


def _overlaps(state):
    """Return patterns @ s at the first temperature, (n_chains, n_patterns)."""
    _, _, overlaps, slots, _ = state
    return overlaps[np.arange(len(slots)), slots[:, 0]].astype(float)


def hopfield_chains(patterns, temperature):
    """Return the chains of a model.

    Parameters
    ----------
    patterns : int8 ndarray of shape (n_patterns, n_sites)
        Entries -1 and 1.
    temperature : float
        Temperature of the draws.

    Returns
    -------
    HopfieldChains
    """
    n_patterns, n_sites = patterns.shape
    classes = site_classes(patterns)
    labels = np.empty(n_sites, np.int32)
    labels[classes.sites] = np.repeat(np.arange(len(classes.sizes)), classes.sizes)
    return HopfieldChains(
        pack(patterns * classes.gauge),
        classes.columns.astype(float),
        labels,
        classes.gauge,
        ladder(temperature, n_patterns, n_sites),
    )


def pack(patterns):
    """Pack 64 sites a word, the first in the lowest bit; bit 1 is +1."""
    n_patterns, n_sites = patterns.shape
    n_words = -(-n_sites // 64)
    bits = np.zeros((n_patterns, n_words, 64), np.uint64)
    bits.reshape(n_patterns, -1)[:, :n_sites] = patterns > 0
    return (bits << np.arange(64, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)


def ladder(temperature, n_patterns, n_sites):
    """Temperatures from the one asked for up to where single chains mix."""
    hottest = _HOTTEST * (1 + math.sqrt(n_patterns / n_sites))
    if temperature >= hottest:
        return np.array([temperature], float)
    coldest = max(temperature, _FROZEN / n_sites)
    ratio = math.log1p(_SPACING / math.sqrt(n_sites))
    n_steps = math.ceil(math.log(hottest / coldest) / ratio)
    temperatures = np.geomspace(coldest, hottest, n_steps + 1)
    temperatures[0] = temperature
    return temperatures
