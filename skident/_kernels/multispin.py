"""Metropolis sampling of 64 Ising lattices in the bits of a word.

A set bit is a spin that points up; lane j of word w is chain 64 w + j. Words stand in
blocks of eight: ``spins`` is uint64 (n_blocks, n_sites + 2, 8), of which the last two
rows are all down and all up, and ``states`` is uint64 (n_blocks, 4, 8), one random
stream a word. What happens in a word is a function of its stream alone.

A sweep proposes to flip every site once, in the order of the sites. The probability
of a flip depends on the *class* of the spin: the number of its unsatisfied bonds and,
if need be, its direction. Every lane has random bits of its own: n_bits of them, one
from each of as many random words, tell whether a number U is below the threshold of
the lane's class. From the lowest bit r of U to the highest, a bit 1 of the threshold
asks for ``below | r``, a bit 0 for ``below & r``. With complements carried along both
are ``(below ^ d) | r``, one instruction, where d says whether the bit of the
threshold differs from the one before.

What a threshold of few bits leaves of a probability p is made up by *extra* flips.
Candidates are strewn at a small rate over the lanes of all sites, by geometric gaps,
and kept with a probability of their class: p = t + (1 - t) rate P(kept), where
t = threshold / 2**n_bits.

M. E. J. Newman and G. T. Barkema, "Monte Carlo Methods in Statistical Physics", Oxford
(1999), on asynchronous multispin coding.
"""

import numpy as np

from skident._kernels.jit import kernel
from skident._kernels.streams import next_uint64, next_uniform, seed_stream
from skident._kernels.vectors import (
    WIDTH,
    inline,
    load,
    load_splat,
    load_streams,
    next_words,
    popcount,
    splat,
    store,
    store_streams,
    zeros,
)

LANES = 64
CLASSES = 7  # 0 to 6 unsatisfied bonds
# A spin that loses nothing flips unless this many random bits are all 0.
LAZY_BITS = 4

_NEVER = np.int64(2**62)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def gap(uniform, log_miss):
    """Return the number of failures before a success.

    ``log_miss`` is ln(1 - p) for a success of probability p, so that
    P(gap >= g) = (1 - p)**g if ``uniform`` is uniform on [0, 1).
    """
    failures = np.log1p(-uniform) / log_miss if log_miss < 0.0 else np.inf
    return np.int64(failures) if failures < _NEVER else _NEVER


@kernel
def start(key, first, cold, ordered, sign, log_miss, states, spins, gaps):
    """Seed the streams and draw the first state of every chain.

    Parameters
    ----------
    key : uint64
        Names the streams; word w of this call draws from stream ``first + w``.
    first : int
        Number of the first word.
    cold : bool
        False: every spin is random. True: every chain starts from ``ordered``.
    ordered : int8 ndarray of shape (n_sites,)
        A state of low energy.
    sign : int
        0 reverses ``ordered`` at random, chain by chain, 1 takes it as it is.
    log_miss : float
        ln(1 - rate) of the candidates for an extra flip.
    states : uint64 ndarray of shape (n_blocks, 4, 8)
        Filled.
    spins : uint64 ndarray of shape (n_blocks, n_sites + 2, 8)
        Filled.
    gaps : int64 ndarray of shape (n_blocks, 8)
        Filled with the number of lanes before the next candidate.
    """
    n_sites = ordered.shape[0]
    for b in range(spins.shape[0]):
        for w in range(WIDTH):
            state = states[b, :, w]
            seed_stream(key, first + b * WIDTH + w, state)
            as_ordered = next_uint64(state) if sign == 0 else _ALL
            for i in range(n_sites):
                if not cold:
                    spins[b, i, w] = next_uint64(state)
                else:
                    spins[b, i, w] = as_ordered if ordered[i] > 0 else ~as_ordered
            spins[b, n_sites, w] = np.uint64(0)
            spins[b, n_sites + 1, w] = _ALL
            gaps[b, w] = gap(next_uniform(state), log_miss)


@kernel
def _place_extras(
    i, neighbours, kinds, antiparallel, chances, log_miss, states, spins, gaps, extra
):
    """Set the bits of extra flips at site i; return the site after a quiet stretch."""
    inline()
    nearest = _NEVER
    for w in range(WIDTH):
        while gaps[w] < LANES:
            lane = np.uint64(gaps[w])
            unsatisfied = 0
            for d in range(neighbours.shape[1]):
                differ = spins[i, w] ^ spins[neighbours[i, d], w] ^ antiparallel
                unsatisfied += np.int64((differ >> lane) & _ONE)
            up = np.int64((spins[i, w] >> lane) & _ONE)
            if next_uniform(states[:, w]) < chances[kinds[i], up, unsatisfied]:
                extra[w] |= _ONE << lane
            gaps[w] += 1 + gap(next_uniform(states[:, w]), log_miss)
        nearest = min(nearest, gaps[w])
    stop = min(kinds.shape[0], i + nearest // LANES)
    for w in range(WIDTH):
        gaps[w] -= LANES * (stop - i)
    return stop


@kernel
def _two_bonds(spin, spins, sites):
    """Return the masks of the lanes with 0, 1, ... 6 unsatisfied bonds, of 2."""
    inline()
    x0, x1 = spin ^ load(spins, sites[0] * WIDTH), spin ^ load(spins, sites[1] * WIDTH)
    z = zeros()
    return ~(x0 | x1), x0 ^ x1, x0 & x1, z, z, z, z


@kernel
def _four_bonds(spin, spins, sites):
    """Return the masks of the lanes with 0, 1, ... 6 unsatisfied bonds, of 4."""
    inline()
    x0, x1 = spin ^ load(spins, sites[0] * WIDTH), spin ^ load(spins, sites[1] * WIDTH)
    x2, x3 = spin ^ load(spins, sites[2] * WIDTH), spin ^ load(spins, sites[3] * WIDTH)
    a, b, c, d = x0 ^ x1, x0 & x1, x2 ^ x3, x2 & x3
    odd, z = a ^ c, zeros()
    pair = b ^ d  # one of the two pairs has both
    two = (a & c) | (pair & ~odd)
    return ~(a | b | c | d), odd & ~pair, two & ~odd, odd & pair, b & d, z, z


@kernel
def _six_bonds(spin, spins, sites):
    """Return the masks of the lanes with 0, 1, ... 6 unsatisfied bonds, of 6."""
    inline()
    x0, x1 = spin ^ load(spins, sites[0] * WIDTH), spin ^ load(spins, sites[1] * WIDTH)
    x2, x3 = spin ^ load(spins, sites[2] * WIDTH), spin ^ load(spins, sites[3] * WIDTH)
    x4, x5 = spin ^ load(spins, sites[4] * WIDTH), spin ^ load(spins, sites[5] * WIDTH)
    a, b = x0 ^ x1, x3 ^ x4
    ones_a, twos_a = a ^ x2, (x0 & x1) | (a & x2)
    ones_b, twos_b = b ^ x5, (x3 & x4) | (b & x5)
    odd, carry, c = ones_a ^ ones_b, ones_a & ones_b, twos_a ^ twos_b
    two, four = c ^ carry, (twos_a & twos_b) | (c & carry)
    low, middle = ~(two | four), two & ~four
    return (
        low & ~odd, low & odd, middle & ~odd, middle & odd,
        four & ~(two | odd), four & odd, four & two,
    )  # fmt: skip


@kernel
def _compare(below, bits, planes, at):
    """Take the next bit of U into its comparisons with the seven thresholds."""
    inline()
    return (
        (below[0] ^ load_splat(planes, at)) | bits,
        (below[1] ^ load_splat(planes, at + 1)) | bits,
        (below[2] ^ load_splat(planes, at + 2)) | bits,
        (below[3] ^ load_splat(planes, at + 3)) | bits,
        (below[4] ^ load_splat(planes, at + 4)) | bits,
        (below[5] ^ load_splat(planes, at + 5)) | bits,
        (below[6] ^ load_splat(planes, at + 6)) | bits,
    )


@kernel
def _outcome(masks, below, planes, at):
    """Return in each lane the comparison of its class, no more complemented."""
    inline()
    b0, b1, b2, b3, b4, b5, b6 = _compare(below, zeros(), planes, at)
    few = (masks[0] & b0) | (masks[1] & b1) | (masks[2] & b2) | (masks[3] & b3)
    return few | (masks[4] & b4) | (masks[5] & b5) | (masks[6] & b6)


@kernel
def _uphill_outcome(masks, half, below, recent, planes, at):
    """Return what lanes do if a flip costs energy at few unsatisfied bonds only.

    Classes below ``half`` are compared, those above it flip. Class ``half`` flips
    unless all recent bits are 0, or for sure if its last plane is set.
    """
    inline()
    z = zeros()
    one, two = masks[1] if half > 1 else z, masks[2] if half > 2 else z
    outcome = _outcome((masks[0], one, two, z, z, z, z), below, planes, at)
    lazy = recent[0] | recent[1] | recent[2] | recent[3]
    lazy = lazy | load_splat(planes, at + half)
    neutral = masks[half]
    return outcome | (neutral & lazy) | ~(masks[0] | one | two | neutral)


def _sweeper(n_neighbours, full):
    """Make the kernel for one kind of table; the two arguments are constants in it."""

    @kernel
    def sweep(
        n_sweeps, neighbours, kinds, antiparallel, planes, chances, log_miss,
        states, spins, gaps, flips,
    ):  # fmt: skip
        """Sweep all blocks.

        Parameters
        ----------
        n_sweeps : int
            Proposals at every site.
        neighbours : int32 ndarray of shape (n_sites, n_neighbours)
            Sites; the site itself stands where there is no neighbour.
        kinds : int64 ndarray of shape (n_sites,)
            Number of the site's table.
        antiparallel : uint64
            All bits set if bonds are satisfied by opposite spins, else 0.
        planes : uint64 ndarray of shape (n_kinds, 2, n_bits + 1, 7)
            The d of the head of this file, all bits set or none, of spins down and up.
            Unless ``full`` only those of down are used, for both.
        chances : ndarray of shape (n_kinds, 2, 7)
            Probability that a candidate for an extra flip is kept.
        log_miss : float
            ln(1 - rate) of the candidates.
        states : uint64 ndarray of shape (n_blocks, 4, 8)
            Random states, advanced.
        spins : uint64 ndarray of shape (n_blocks, n_sites + 2, 8)
            Updated.
        gaps : int64 ndarray of shape (n_blocks, 8)
            Lanes before the next candidate of each word, updated.
        flips : uint64 ndarray of shape (n_blocks, 8)
            Flips of each word, added to.
        """
        n_sites, n_bits = kinds.shape[0], planes.shape[2] - 1
        z, reverse = zeros(), splat(antiparallel)
        none, extra = (z, z, z, z, z, z, z), np.zeros(WIDTH, np.uint64)
        for turn in range(spins.shape[0] * n_sweeps):
            b, first = turn // n_sweeps, 0
            block, streams = spins[b], states[b]
            while first < n_sites:
                stop = _place_extras(
                    first, neighbours, kinds, antiparallel, chances, log_miss,
                    streams, block, gaps[b], extra,
                )  # fmt: skip
                s0, s1, s2, s3 = load_streams(streams)
                tally = load(flips, b * WIDTH)
                for i in range(first, stop):
                    spin, sites = load(block, i * WIDTH), neighbours[i]
                    if n_neighbours == 2:
                        masks = _two_bonds(spin ^ reverse, block, sites)
                    elif n_neighbours == 4:
                        masks = _four_bonds(spin ^ reverse, block, sites)
                    else:
                        masks = _six_bonds(spin ^ reverse, block, sites)
                    down, up, recent = none, none, (z, z, z, z)
                    at = kinds[i] * 2 * (n_bits + 1) * CLASSES
                    at_up = at + (n_bits + 1) * CLASSES
                    for _ in range(n_bits):
                        bits, s0, s1, s2, s3 = next_words(s0, s1, s2, s3)
                        down = _compare(down, bits, planes, at)
                        up = _compare(up, bits, planes, at_up)
                        recent = (bits, recent[0], recent[1], recent[2])
                        at += CLASSES
                        at_up += CLASSES
                    half = n_neighbours // 2
                    flip = _uphill_outcome(masks, half, down, recent, planes, at)
                    if full:
                        flip = ~spin & _outcome(masks, down, planes, at)
                        flip = flip | (spin & _outcome(masks, up, planes, at_up))
                    flip = flip | load(extra, 0)
                    store(extra, 0, z)
                    store(block, i * WIDTH, spin ^ flip)
                    tally = tally + popcount(flip)
                store_streams(streams, s0, s1, s2, s3)
                store(flips, b * WIDTH, tally)
                first = stop

    return sweep


SWEEPS = {(n, full): _sweeper(n, full) for n in (2, 4, 6) for full in (False, True)}


@kernel
def _add_to_planes(c0, c1, c2, c3, planes):
    """Add numbers of four bits to numbers of many bits, lane by lane."""
    inline()
    carry = zeros()
    for j in range(planes.shape[0]):
        a = load(planes, j * WIDTH)
        store(planes, j * WIDTH, a ^ c0 ^ carry)
        carry = (a & c0) | (carry & (a ^ c0))
        c0, c1, c2, c3 = c1, c2, c3, zeros()


@kernel
def count_differences(pairs, spins, counts):
    """Count in each chain the pairs of rows of ``spins`` that differ.

    Parameters
    ----------
    pairs : int32 ndarray of shape (n_pairs, 2)
        Numbers of rows: sites, or n_sites for all down, n_sites + 1 for all up.
    spins : uint64 ndarray of shape (n_blocks, n_sites + 2, 8)
        The spins.
    counts : int64 ndarray of shape (n_blocks, 8, 64)
        Filled.
    """
    n_pairs, length = pairs.shape[0], 4
    while n_pairs >> length:
        length += 1
    planes = np.empty((length, WIDTH), np.uint64)
    for b in range(spins.shape[0]):
        block = spins[b]
        planes[:] = 0
        for first in range(0, n_pairs, 15):
            c0 = c1 = c2 = c3 = zeros()
            for p in range(first, min(first + 15, n_pairs)):
                x = load(block, pairs[p, 0] * WIDTH) ^ load(block, pairs[p, 1] * WIDTH)
                c0, x = c0 ^ x, c0 & x
                c1, x = c1 ^ x, c1 & x
                c2, x = c2 ^ x, c2 & x
                c3 = c3 ^ x
            _add_to_planes(c0, c1, c2, c3, planes)
        counts[b] = 0
        for j in range(length):
            for w in range(WIDTH):
                for lane in range(LANES):
                    bit = (planes[j, w] >> np.uint64(lane)) & _ONE
                    counts[b, w, lane] += np.int64(bit) << j


@kernel
def read_rows(spins, rows):
    """Write one chain a row, -1 (down) and 1 (up).

    Parameters
    ----------
    spins : uint64 ndarray of shape (n_blocks, n_sites + 2, 8)
        The spins.
    rows : int8 ndarray of shape (n_chains, n_sites)
        Filled. The last word need not be used up.
    """
    n_chains, n_sites = rows.shape
    column = np.empty(LANES, np.uint64)
    for first in range(0, n_chains, LANES):
        b, w = first // (LANES * WIDTH), first // LANES % WIDTH
        for i in range(0, n_sites, LANES):
            n = min(LANES, n_sites - i)
            for j in range(n):
                column[j] = spins[b, i + j, w]
            for k in range(first, min(first + LANES, n_chains)):
                for j in range(n):
                    bit = (column[j] >> np.uint64(k - first)) & _ONE
                    rows[k, i + j] = 2 * np.int8(bit) - 1
