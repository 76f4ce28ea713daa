"""Tempered block Gibbs sampling of the Hopfield model.

The weight exp(sum_mu v_mu^2 beta / 2N), v = patterns @ s, is a Gaussian integral over
a field g in R^P: g | s ~ N(beta v / N, beta / N) each, and given g the spins are
independent with logit 2 patterns[:, i] . g. Sites whose columns are equal form a class
and share that logit: the caller turns over sites so that columns equal up to sign
become equal.

Spins and patterns are packed, 64 sites a word, bit 1 for +1 and the unused bits 0:
an overlap is a count of bits, a product of spins an exclusive or.

Three moves, each in detailed balance with the Boltzmann distribution:

- block Gibbs: g given s, then s given g;
- relabelling: s -> s * pattern_mu * pattern_nu swaps the overlaps mu and nu and so
  jumps from well to well; Metropolis accepted on what it does to the other overlaps;
- exchange of the states of neighbouring temperatures.
"""

import math

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import (
    fill_normals,
    fill_words,
    next_uniform,
    seed_stream,
    threshold,
)

# Below this no product of exponentials can overflow.
_SAFE = 600.0
_PAIRS = np.uint64(0x5555555555555555)
_QUADS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_ONES = np.uint64(0x0101010101010101)


@kernel
def logistic(x):
    """Return 1 / (1 + exp(-x)) without overflow."""
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


@kernel
def square_norm(v):
    """Return the sum of squares of an integer vector, as a float."""
    total = 0.0
    for mu in range(v.shape[0]):
        total += float(v[mu]) * v[mu]
    return total


@kernel
def count_bits(x):
    """Return the number of ones in a uint64."""
    x = x - ((x >> np.uint64(1)) & _PAIRS)
    x = (x & _QUADS) + ((x >> np.uint64(2)) & _QUADS)
    x = (x + (x >> np.uint64(4))) & _BYTES
    return np.int64((x * _ONES) >> np.uint64(56))


@kernel
def overlap(patterns, spins, n_sites, v):
    """Write patterns @ spins to ``v`` (n_patterns,), patterns and spins packed."""
    n_patterns, n_words = patterns.shape
    for mu in range(n_patterns):
        unequal = 0
        for w in range(n_words):
            unequal += count_bits(patterns[mu, w] ^ spins[w])
        v[mu] = n_sites - 2 * unequal


@kernel
def draw_field(v, beta, n_sites, state, g):
    """Draw the field g (n_patterns,) given the overlaps v = patterns @ s."""
    scale = beta / n_sites
    width = math.sqrt(scale)
    fill_normals(state, g)
    for mu in range(v.shape[0]):
        g[mu] = scale * v[mu] + width * g[mu]


@kernel
def class_limits(columns, g, odds, limits):
    """Write the probability of up of each class, times 2**32, to ``limits``.

    Parameters
    ----------
    columns : ndarray of shape (n_patterns, n_classes)
        One column of the patterns a class.
    g : ndarray of shape (n_patterns,)
        The field.
    odds : ndarray of shape (n_classes,)
        Scratch.
    limits : int64 ndarray of shape (n_classes,)
        Filled.
    """
    n_patterns, n_classes = columns.shape
    reach = 0.0
    for mu in range(n_patterns):
        reach += 2.0 * abs(g[mu])
    if reach < _SAFE:
        # A product of few exponentials in place of one exponential a class.
        odds[:] = 1.0
        for mu in range(n_patterns):
            factor = math.exp(2.0 * g[mu])
            inverse = 1.0 / factor
            for c in range(n_classes):
                odds[c] *= factor if columns[mu, c] > 0 else inverse
        for c in range(n_classes):
            limits[c] = threshold(odds[c] / (1.0 + odds[c]))
    else:
        for c in range(n_classes):
            logit = 0.0
            for mu in range(n_patterns):
                logit += 2.0 * columns[mu, c] * g[mu]
            limits[c] = threshold(logistic(logit))


@kernel
def draw_spins(limits, labels, state, words, spins):
    """Draw all spins given the probabilities of their classes.

    Parameters
    ----------
    limits : int64 ndarray of shape (n_classes,)
        Probability of up of each class, times 2**32.
    labels : int32 ndarray of shape (n_sites,)
        The class of each site.
    state : uint64 ndarray of shape (4,)
        Random state.
    words : uint64 ndarray of shape (ceil(n_sites / 2),)
        Scratch for random bits.
    spins : uint64 ndarray of shape (n_words,)
        Filled.
    """
    n_sites = labels.shape[0]
    fill_words(state, words)
    halves = words.view(np.uint32)
    for w in range(spins.shape[0]):
        word = np.uint64(0)
        first = 64 * w
        for j in range(min(64, n_sites - first)):
            up = np.uint64(np.int64(halves[first + j]) < limits[labels[first + j]])
            word |= up << np.uint64(j)
        spins[w] = word


@kernel
def relabel(patterns, n_sites, beta, state, spins, v, turned, trial):
    """Propose to swap two overlaps; ``turned`` and ``trial`` are scratch."""
    n_patterns, n_words = patterns.shape
    mu = int(next_uniform(state) * n_patterns)
    nu = int(next_uniform(state) * (n_patterns - 1))
    nu += nu >= mu
    for w in range(n_words):
        turned[w] = patterns[mu, w] ^ patterns[nu, w] ^ spins[w]
    overlap(patterns, turned, n_sites, trial)
    gain = beta / (2.0 * n_sites) * (square_norm(trial) - square_norm(v))
    if gain >= 0 or next_uniform(state) < math.exp(gain):
        for w in range(n_words):
            spins[w] = turned[w]
        for k in range(n_patterns):
            v[k] = trial[k]


@kernel
def unpack_spins(spins, row):
    """Write packed spins as 1 and -1 to ``row`` (n_sites,)."""
    for i in range(row.shape[0]):
        up = (spins[i >> 6] >> np.uint64(i & 63)) & np.uint64(1)
        row[i] = 1 if up else -1


@kernel
def exchange(betas, n_sites, parity, state, v, slots):
    """Exchange neighbouring temperatures; ``slots[r]`` is the state at ``betas[r]``."""
    for r in range(parity, betas.shape[0] - 1, 2):
        a, b = slots[r], slots[r + 1]
        # ln of the ratio: (beta_r - beta_r+1) (E_r - E_r+1), E = -|v|^2 / 2N.
        gain = square_norm(v[b]) - square_norm(v[a])
        gain *= (betas[r] - betas[r + 1]) / (2.0 * n_sites)
        if gain >= 0 or next_uniform(state) < math.exp(gain):
            slots[r], slots[r + 1] = b, a


@kernel
def hopfield_chains(
    key, start, patterns, columns, labels, betas, n_sweeps, rows, overlaps, trace
):
    """Run one independent tempered chain a row, from a random start.

    Parameters
    ----------
    key : uint64
        Names the streams; row k of this call draws from stream ``start + k``.
    start : int
        Number of the first row.
    patterns : uint64 ndarray of shape (n_patterns, n_words)
        Packed.
    columns, labels
        As for :func:`class_limits` and :func:`draw_spins`: ``columns[mu, labels[i]]``
        is pattern mu at site i.
    betas : ndarray of shape (n_temperatures,)
        Inverse temperatures; the draws are at the first.
    n_sweeps : int
        Sweeps before the draw.
    rows : int8 ndarray of shape (n_chains, n_sites)
        Filled with the draws, 1 and -1.
    overlaps : int64 ndarray of shape (n_chains, n_patterns)
        Filled with patterns @ s.
    trace : ndarray of shape (n_chains, n_sweeps, n_patterns + 1) or (0, 0, 0)
        If not empty, filled after each sweep with |v|^2 and each v_mu^2.
    """
    n_patterns, n_words = patterns.shape
    n_sites, n_temperatures = labels.shape[0], betas.shape[0]
    state = np.empty(4, np.uint64)
    words = np.empty((n_sites + 1) // 2, np.uint64)
    odds, g = np.empty(columns.shape[1]), np.empty(n_patterns)
    limits = np.empty(columns.shape[1], np.int64)
    turned, trial = np.empty(n_words, np.uint64), np.empty(n_patterns, np.int64)
    spins = np.empty((n_temperatures, n_words), np.uint64)
    v = np.empty((n_temperatures, n_patterns), np.int64)
    slots = np.empty(n_temperatures, np.int64)
    for k in range(rows.shape[0]):
        seed_stream(key, start + k, state)
        # Without overlaps the first fields are pure noise: a random start, symmetric
        # as the energy is, so that a state and its reverse are equally likely.
        v[:] = 0
        for r in range(n_temperatures):
            slots[r] = r
        for t in range(n_sweeps):
            for r in range(n_temperatures):
                s, w = spins[slots[r]], v[slots[r]]
                draw_field(w, betas[r], n_sites, state, g)
                class_limits(columns, g, odds, limits)
                draw_spins(limits, labels, state, words, s)
                overlap(patterns, s, n_sites, w)
                if n_patterns > 1:
                    relabel(patterns, n_sites, betas[r], state, s, w, turned, trial)
            exchange(betas, n_sites, t % 2, state, v, slots)
            if trace.shape[0] > 0:
                trace[k, t, 0] = square_norm(v[slots[0]])
                for mu in range(n_patterns):
                    trace[k, t, mu + 1] = float(v[slots[0], mu]) ** 2
        unpack_spins(spins[slots[0]], rows[k])
        for mu in range(n_patterns):
            overlaps[k, mu] = v[slots[0], mu]
