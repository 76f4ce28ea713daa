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
- relabelling: s -> s * pattern_mu * pattern_nu swaps the overlaps mu and nu. With mu
  that of the largest overlap this jumps from well to well; Metropolis accepted on what
  it does to the other overlaps;
- exchange of the states of neighbouring temperatures.

The arrays of many chains: ``streams`` (n_chains, 4) uint64; ``spins`` (n_chains,
n_temperatures, n_words) uint64; ``overlaps`` (n_chains, n_temperatures, n_patterns)
int64, patterns @ s; ``slots`` (n_chains, n_temperatures) int64, of which the first is
where the state at the first temperature is; ``counts`` (n_chains, 3) int64, the passes
done, the exchanges proposed and those accepted.
"""

import math

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import (
    fill_normals,
    fill_words,
    next_uniform,
    seed_stream,
)

# Below this no product of exponentials can overflow.
_SAFE = 600.0
_WORD = 4294967296.0
_NONE = np.uint64(0)
_ALL = ~_NONE
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
def class_limits(columns, g, limits):
    """Write the probability of up of each class, times 2**32, to ``limits``.

    Parameters
    ----------
    columns : ndarray of shape (n_patterns, n_classes)
        One column of the patterns a class.
    g : ndarray of shape (n_patterns,)
        The field.
    limits : ndarray of shape (n_classes,)
        Filled.
    """
    n_patterns, n_classes = columns.shape
    reach = 0.0
    for mu in range(n_patterns):
        reach += 2.0 * abs(g[mu])
    if reach < _SAFE:
        # A product of few exponentials in place of one exponential a class; four
        # patterns at a time, as memory is slower than arithmetic.
        limits[:] = 1.0
        whole = n_patterns - n_patterns % 4
        for mu in range(0, whole, 4):
            up0, up1 = math.exp(2.0 * g[mu]), math.exp(2.0 * g[mu + 1])
            up2, up3 = math.exp(2.0 * g[mu + 2]), math.exp(2.0 * g[mu + 3])
            down0, down1, down2, down3 = 1.0 / up0, 1.0 / up1, 1.0 / up2, 1.0 / up3
            for c in range(n_classes):
                pair = up0 if columns[mu, c] > 0 else down0
                pair *= up1 if columns[mu + 1, c] > 0 else down1
                other = up2 if columns[mu + 2, c] > 0 else down2
                other *= up3 if columns[mu + 3, c] > 0 else down3
                limits[c] *= pair * other
        for mu in range(whole, n_patterns):
            up = math.exp(2.0 * g[mu])
            down = 1.0 / up
            for c in range(n_classes):
                limits[c] *= up if columns[mu, c] > 0 else down
        for c in range(n_classes):
            limits[c] = limits[c] / (1.0 + limits[c]) * _WORD
    else:
        for c in range(n_classes):
            logit = 0.0
            for mu in range(n_patterns):
                logit += 2.0 * columns[mu, c] * g[mu]
            limits[c] = logistic(logit) * _WORD


@kernel
def draw_spins(limits, labels, state, words, spins):
    """Draw all spins given the probabilities of their classes.

    Parameters
    ----------
    limits : ndarray of shape (n_classes,)
        Probability of up of each class, times 2**32; used to 2**-32.
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
        word = _NONE
        first = 64 * w
        for j in range(min(64, n_sites - first)):
            up = np.uint64(float(halves[first + j]) < limits[labels[first + j]])
            word |= up << np.uint64(j)
        spins[w] = word


@kernel
def largest(v):
    """Return the index of the entry of largest size, the first of those alike."""
    best = 0
    for mu in range(1, v.shape[0]):
        if abs(v[mu]) > abs(v[best]):
            best = mu
    return best


@kernel
def relabel(patterns, n_sites, beta, state, spins, v, turned, trial):
    """Propose to swap the largest overlap and one of all.

    The other must be the largest then, so that the way back is proposed as often. It
    may be the same, or two wells would take turns. ``turned`` (n_words,) and ``trial``
    (n_patterns,) are scratch.
    """
    n_patterns, n_words = patterns.shape
    mu = largest(v)
    nu = int(next_uniform(state) * n_patterns)
    if nu == mu:
        return
    for w in range(n_words):
        turned[w] = patterns[mu, w] ^ patterns[nu, w] ^ spins[w]
    overlap(patterns, turned, n_sites, trial)
    gain = beta / (2.0 * n_sites) * (square_norm(trial) - square_norm(v))
    if largest(trial) == nu and (gain >= 0 or next_uniform(state) < math.exp(gain)):
        for w in range(n_words):
            spins[w] = turned[w]
        for k in range(n_patterns):
            v[k] = trial[k]


@kernel
def exchange(betas, n_sites, parity, state, v, slots):
    """Exchange neighbouring temperatures; ``slots[r]`` is the state at ``betas[r]``.

    Pairs (parity, parity + 1), (parity + 2, ...) are proposed. Returns how many are
    accepted.
    """
    accepted = 0
    for r in range(parity, betas.shape[0] - 1, 2):
        a, b = slots[r], slots[r + 1]
        # ln of the ratio: (beta_r - beta_r+1) (E_r - E_r+1), E = -|v|^2 / 2N.
        gain = square_norm(v[b]) - square_norm(v[a])
        gain *= (betas[r] - betas[r + 1]) / (2.0 * n_sites)
        if gain >= 0 or next_uniform(state) < math.exp(gain):
            slots[r], slots[r + 1] = b, a
            accepted += 1
    return accepted


@kernel
def start_chains(key, first, patterns, n_sites, cold, streams, spins, overlaps, slots):
    """Seed chains ``first, first + 1, ...`` and draw their starts.

    Parameters
    ----------
    key : uint64
        Names the streams.
    first : int
        Number of the first chain.
    patterns : uint64 ndarray of shape (n_patterns, n_words)
        Packed.
    n_sites : int
        Number of sites.
    cold : bool
        Whether to start in a random pattern with a random sign, the same at all
        temperatures, or else at random: as symmetric as the energy, so that a state and
        its reverse are equally likely.
    streams, spins, overlaps, slots
        Filled.
    """
    n_patterns, n_words = patterns.shape
    rest = np.uint64(64 * n_words - n_sites)
    for k in range(streams.shape[0]):
        seed_stream(key, first + k, streams[k])
        mu = int(next_uniform(streams[k]) * n_patterns)
        sign = _ALL if next_uniform(streams[k]) < 0.5 else _NONE
        for r in range(spins.shape[1]):
            slots[k, r] = r
            if cold:
                for w in range(n_words):
                    spins[k, r, w] = patterns[mu, w] ^ sign
            else:
                fill_words(streams[k], spins[k, r])
            spins[k, r, n_words - 1] &= _ALL >> rest
            overlap(patterns, spins[k, r], n_sites, overlaps[k, r])


def chain_scratch(patterns, columns, labels):
    """Return the arrays that :func:`advance_chains` works with.

    They are made here because compiling them takes a tenth of the time of the kernel.
    """
    n_patterns, n_words = patterns.shape
    return (
        np.empty((len(labels) + 1) // 2, np.uint64), np.empty(n_words, np.uint64),
        np.empty(n_patterns, np.int64), np.empty(n_patterns),
        np.empty(columns.shape[1]),
    )  # fmt: skip


@kernel
def advance_chains(
    patterns, columns, labels, betas, n_passes, scratch, streams, spins, overlaps,
    slots, counts,
):  # fmt: skip
    """Advance chains; a pass is each temperature in turn, then exchanges.

    Parameters
    ----------
    patterns : uint64 ndarray of shape (n_patterns, n_words)
        Packed.
    columns, labels
        As for :func:`class_limits` and :func:`draw_spins`: ``columns[mu, labels[i]]``
        is pattern mu at site i.
    betas : ndarray of shape (n_temperatures,)
        Inverse temperatures, descending.
    n_passes : int
        Passes to do.
    scratch : tuple of ndarray
        From :func:`chain_scratch`.
    streams, spins, overlaps, slots, counts
        The chains; changed.
    """
    n_patterns, n_sites = patterns.shape[0], labels.shape[0]
    n_temperatures = betas.shape[0]
    words, turned, trial, g, limits = scratch
    for k in range(streams.shape[0]):
        state = streams[k]
        for _ in range(n_passes):
            for r in range(n_temperatures):
                s, v = spins[k, slots[k, r]], overlaps[k, slots[k, r]]
                draw_field(v, betas[r], n_sites, state, g)
                class_limits(columns, g, limits)
                draw_spins(limits, labels, state, words, s)
                overlap(patterns, s, n_sites, v)
                if n_patterns > 1:
                    relabel(patterns, n_sites, betas[r], state, s, v, turned, trial)
            parity = counts[k, 0] % 2
            counts[k, 0] += 1
            counts[k, 1] += (n_temperatures - parity) // 2
            counts[k, 2] += exchange(
                betas, n_sites, parity, state, overlaps[k], slots[k]
            )


@kernel
def unpack_chains(spins, slots, gauge, rows):
    """Write the spins at the first temperature, times ``gauge``, to rows.

    Parameters
    ----------
    spins, slots
        The chains.
    gauge : int8 ndarray of shape (n_sites,)
        What to write for up.
    rows : int8 ndarray of shape (n_chains, n_sites)
        Filled.
    """
    for k in range(rows.shape[0]):
        s = spins[k, slots[k, 0]]
        for i in range(gauge.shape[0]):
            up = (s[i >> 6] >> np.uint64(i & 63)) & np.uint64(1)
            rows[k, i] = gauge[i] if up else -gauge[i]
