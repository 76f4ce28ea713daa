import math

import numpy as np
import pytest

from skident._kernels import hopfield
from skident._kernels.streams import seed_stream

KEY = np.uint64(5)


def started(index=0):
    state = np.empty(4, np.uint64)
    seed_stream(KEY, index, state)
    return state


def packed(signs):
    n_words = -(-signs.shape[-1] // 64)
    out = np.zeros((*signs.shape[:-1], n_words), np.uint64)
    for i in range(signs.shape[-1]):
        bit = (signs[..., i] > 0).astype(np.uint64) << np.uint64(i % 64)
        out[..., i // 64] |= bit
    return out


def model(n_patterns, n_sites):
    signs = np.random.default_rng(n_sites).choice([-1, 1], (n_patterns, n_sites))
    columns, labels = np.unique(signs, axis=1, return_inverse=True)
    return signs, packed(signs), columns.astype(float), labels.ravel().astype(np.int32)


def start(patterns, n_sites, n_temperatures=3, cold=False, pick=lambda f: f):
    n_patterns, n_words = patterns.shape
    chains = (
        np.empty((4, 4), np.uint64),
        np.empty((4, n_temperatures, n_words), np.uint64),
        np.empty((4, n_temperatures, n_patterns), np.int64),
        np.empty((4, n_temperatures), np.int64),
        np.zeros((4, 3), np.int64),
    )
    pick(hopfield.start_chains)(KEY, 2, patterns, n_sites, cold, *chains[:-1])
    return chains


@pytest.mark.parametrize("n_sites", [5, 64, 100])
@pytest.mark.parametrize("n_patterns", [1, 3])
@pytest.mark.parametrize("cold", [False, True])
def test_chains_agree_with_their_twin(n_patterns, n_sites, cold):
    signs, patterns, columns, labels = model(n_patterns, n_sites)
    betas = np.array([2.0, 1.0, 0.5])
    results = []
    arguments = patterns, columns, labels, betas
    scratch = hopfield.chain_scratch(*arguments[:3])
    for pick in (lambda f: f, lambda f: f.py_func):
        with np.errstate(over="ignore"):
            chains = start(patterns, n_sites, cold=cold, pick=pick)
            pick(hopfield.advance_chains)(*arguments, 4, scratch, *chains)
        rows = np.empty((4, n_sites), np.int8)
        pick(hopfield.unpack_chains)(
            chains[1], chains[3], signs[0].astype(np.int8), rows
        )
        results.append((*chains, rows))
    for ours, twin in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, twin)


def test_chains_go_on_where_they_stopped():
    _, patterns, columns, labels = model(3, 70)
    betas = np.array([2.0, 1.0, 0.5])
    once, twice = start(patterns, 70), start(patterns, 70)
    arguments = patterns, columns, labels, betas
    scratch = hopfield.chain_scratch(*arguments[:3])
    hopfield.advance_chains(*arguments, 8, scratch, *once)
    for n_sweeps in (1, 4, 3):
        hopfield.advance_chains(*arguments, n_sweeps, scratch, *twice)
    for a, b in zip(once, twice, strict=True):
        np.testing.assert_array_equal(a, b)
    # Pairs of three temperatures: one in every sweep.
    np.testing.assert_array_equal(once[-1][:, :2], np.full((4, 2), 8))


@pytest.mark.parametrize("n_sites", [5, 64, 70])
@pytest.mark.parametrize("cold", [False, True])
def test_starts(n_sites, cold):
    signs, patterns, _, _ = model(3, n_sites)
    _, spins, overlaps, slots, _ = start(patterns, n_sites, cold=cold)
    found = np.empty((12, n_sites), np.int8)
    hopfield.unpack_chains(
        spins.reshape(12, 1, -1), np.zeros((12, 1), int), np.ones(n_sites, np.int8),
        found,
    )  # fmt: skip
    np.testing.assert_array_equal(overlaps.reshape(12, 3), found.astype(int) @ signs.T)
    np.testing.assert_array_equal(slots, [[0, 1, 2]] * 4)
    # No stray bit: the words are those of the spins.
    np.testing.assert_array_equal(packed(found), spins.reshape(12, -1))
    ordered = abs(overlaps).max(axis=2) == n_sites
    assert ordered.all() == cold
    if cold:
        assert (found.reshape(4, 3, -1) == found.reshape(4, 3, -1)[:, :1]).all()


def test_cold_starts_are_all_patterns_with_both_signs():
    _, patterns, _, _ = model(3, 64)
    n = 3000
    overlaps = np.empty((n, 1, 3), np.int64)
    hopfield.start_chains(
        KEY, 0, patterns, 64, True, np.empty((n, 4), np.uint64),
        np.empty((n, 1, 1), np.uint64), overlaps, np.empty((n, 1), np.int64),
    )  # fmt: skip
    which = abs(overlaps[:, 0]).argmax(axis=1)
    sign = overlaps[np.arange(n), 0, which] > 0
    counts = np.bincount(2 * which + sign, minlength=6)
    # Six standard deviations of a binomial count.
    assert abs(counts - n / 6).max() < 6 * math.sqrt(n * 5 / 36)


def test_parts_agree_with_their_twins():
    _, patterns, columns, labels = model(3, 70)
    g = np.array([0.3, -0.2, 0.9])
    results = []
    for pick in (lambda f: f, lambda f: f.py_func):
        with np.errstate(over="ignore"):
            state, field = started(), np.empty(3)
            limits = np.empty(columns.shape[1])
            words, spins = np.empty(35, np.uint64), np.empty((2, 2), np.uint64)
            turned, trial = np.empty(2, np.uint64), np.empty(3, np.int64)
            v, slots = np.empty((2, 3), np.int64), np.arange(2)
            pick(hopfield.class_limits)(columns, g, limits)
            for r in range(2):
                pick(hopfield.draw_spins)(limits, labels, state, words, spins[r])
                pick(hopfield.overlap)(patterns, spins[r], 70, v[r])
            pick(hopfield.relabel)(
                patterns, 70, 0.1, state, spins[0], v[0], turned, trial
            )
            betas = np.array([1.0, 0.9])
            accepted = pick(hopfield.exchange)(betas, 70, 0, state, v, slots)
            pick(hopfield.draw_field)(v[0], 1.3, 70, state, field)
            norm = pick(hopfield.square_norm)(v[1])
            best = pick(hopfield.largest)(v[1])
            bits = pick(hopfield.count_bits)(words[3])
            p = [pick(hopfield.logistic)(x) for x in (-800.0, -1.0, 0.0, 2.0, 800.0)]
            results.append(
                (limits, spins, v, slots, accepted, field, norm, best, bits, p)
            )
    for ours, twin in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, twin)


def test_bits_and_overlaps():
    random = np.random.default_rng(0)
    for word in random.integers(0, 2**64, 200, dtype=np.uint64):
        assert hopfield.count_bits(word) == int(word).bit_count()
    signs, patterns, _, _ = model(4, 130)
    spins = random.choice([-1, 1], 130)
    v, row = np.empty(4, np.int64), np.empty((1, 130), np.int8)
    hopfield.overlap(patterns, packed(spins), 130, v)
    np.testing.assert_array_equal(v, signs @ spins)
    hopfield.unpack_chains(
        packed(spins)[None, None], np.zeros((1, 1), int), signs[0].astype(np.int8), row
    )
    np.testing.assert_array_equal(row[0], spins * signs[0])


@pytest.mark.parametrize("scale", [0.5, 30.0, 1000.0])
def test_probabilities_by_products_and_by_logits(scale):
    # Both ways of computing them.
    _, _, columns, _ = model(6, 40)
    g = scale * np.random.default_rng(1).normal(size=6)
    limits = np.empty(columns.shape[1])
    hopfield.class_limits(columns, g, limits)
    expected = [1 / (1 + math.exp(min(-x, 700))) for x in 2 * columns.T @ g]
    np.testing.assert_allclose(limits / 2**32, expected, rtol=1e-10, atol=1e-100)


def test_spins_have_their_probabilities():
    # 0 and 1 are certain; in between within six standard deviations.
    p = np.array([0.0, 0.2, 0.5, 1.0])
    labels = np.arange(100, dtype=np.int32) % 4
    state, words = started(1), np.empty(50, np.uint64)
    spins, row = np.empty((1, 1, 2), np.uint64), np.empty((1, 100), np.int8)
    total, n = np.zeros(4), 4000
    for _ in range(n):
        hopfield.draw_spins(p * 2**32, labels, state, words, spins[0, 0])
        hopfield.unpack_chains(spins, np.zeros((1, 1), int), np.ones(100, np.int8), row)
        total += np.bincount(labels, row[0] > 0)
    error = np.sqrt(p * (1 - p) / (25 * n))
    assert (abs(total / (25 * n) - p) <= 6 * error).all()


def test_relabelling_swaps_the_largest_overlap():
    signs, patterns, _, _ = model(3, 64)
    spins, state = packed(signs[0]), started(3)
    v, turned, trial = np.empty(3, np.int64), np.empty(1, np.uint64), np.empty(3, int)
    hopfield.overlap(patterns, spins, 64, v)
    moved = 0
    for _ in range(20):
        before = v.copy()
        # At infinite temperature every proposal is accepted that can be undone.
        hopfield.relabel(patterns, 64, 0.0, state, spins, v, turned, trial)
        fresh = np.empty(3, np.int64)
        hopfield.overlap(patterns, spins, 64, fresh)
        np.testing.assert_array_equal(v, fresh)
        if (v != before).any():
            moved += 1
            old, new = abs(before).argmax(), abs(v).argmax()
            assert (v[new], v[old]) == (before[old], before[new])
    assert moved > 5
