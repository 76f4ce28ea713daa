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


@pytest.mark.parametrize("n_sites", [5, 64, 100])
@pytest.mark.parametrize("n_patterns", [1, 3])
def test_chains_agree_with_their_twin(n_patterns, n_sites):
    _, patterns, columns, labels = model(n_patterns, n_sites)
    betas = np.array([2.0, 1.0, 0.5])
    results = []
    for run in (hopfield.hopfield_chains, hopfield.hopfield_chains.py_func):
        rows = np.empty((3, n_sites), np.int8)
        overlaps = np.empty((3, n_patterns), np.int64)
        trace = np.empty((3, 4, n_patterns + 1))
        run(KEY, 2, patterns, columns, labels, betas, 4, rows, overlaps, trace)
        results.append((rows, overlaps, trace))
    for ours, twin in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, twin)


def test_parts_agree_with_their_twins():
    _, patterns, columns, labels = model(3, 70)
    g = np.array([0.3, -0.2, 0.9])
    results = []
    for pick in (lambda f: f, lambda f: f.py_func):
        with np.errstate(over="ignore"):
            state, field = started(), np.empty(3)
            odds = np.empty(columns.shape[1])
            limits = np.empty(columns.shape[1], np.int64)
            words, spins = np.empty(35, np.uint64), np.empty((2, 2), np.uint64)
            turned, trial = np.empty(2, np.uint64), np.empty(3, np.int64)
            v, row = np.empty((2, 3), np.int64), np.empty(70, np.int8)
            slots = np.arange(2)
            pick(hopfield.class_limits)(columns, g, odds, limits)
            for r in range(2):
                pick(hopfield.draw_spins)(limits, labels, state, words, spins[r])
                pick(hopfield.overlap)(patterns, spins[r], 70, v[r])
            pick(hopfield.relabel)(
                patterns, 70, 0.1, state, spins[0], v[0], turned, trial
            )
            pick(hopfield.exchange)(np.array([1.0, 0.9]), 70, 0, state, v, slots)
            pick(hopfield.draw_field)(v[0], 1.3, 70, state, field)
            pick(hopfield.unpack_spins)(spins[1], row)
            norm = pick(hopfield.square_norm)(v[1])
            bits = pick(hopfield.count_bits)(words[3])
            p = [pick(hopfield.logistic)(x) for x in (-800.0, -1.0, 0.0, 2.0, 800.0)]
            results.append((limits, spins, v, slots, field, row, norm, bits, p))
    for ours, twin in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, twin)


def test_bits_and_overlaps():
    random = np.random.default_rng(0)
    for word in random.integers(0, 2**64, 200, dtype=np.uint64):
        assert hopfield.count_bits(word) == int(word).bit_count()
    signs, patterns, _, _ = model(4, 130)
    spins = random.choice([-1, 1], 130)
    v, row = np.empty(4, np.int64), np.empty(130, np.int8)
    hopfield.overlap(patterns, packed(spins), 130, v)
    np.testing.assert_array_equal(v, signs @ spins)
    hopfield.unpack_spins(packed(spins), row)
    np.testing.assert_array_equal(row, spins)


@pytest.mark.parametrize("scale", [0.5, 30.0, 1000.0])
def test_probabilities_by_products_and_by_logits(scale):
    # Both ways of computing them, to the resolution of a threshold.
    _, _, columns, _ = model(6, 40)
    g = scale * np.random.default_rng(1).normal(size=6)
    limits = np.empty(columns.shape[1], np.int64)
    hopfield.class_limits(columns, g, np.empty(columns.shape[1]), limits)
    expected = [1 / (1 + math.exp(min(-x, 700))) for x in 2 * columns.T @ g]
    np.testing.assert_allclose(limits / 2**32, expected, atol=2**-32)


def test_relabelling_swaps_two_overlaps():
    signs, patterns, _, _ = model(3, 64)
    spins, state = packed(signs[0]), started(3)
    v, turned, trial = np.empty(3, np.int64), np.empty(1, np.uint64), np.empty(3, int)
    hopfield.overlap(patterns, spins, 64, v)
    for _ in range(20):
        before = v.copy()
        # At infinite temperature every proposal is accepted.
        hopfield.relabel(patterns, 64, 0.0, state, spins, v, turned, trial)
        fresh = np.empty(3, np.int64)
        hopfield.overlap(patterns, spins, 64, fresh)
        np.testing.assert_array_equal(v, fresh)
        swaps = [(0, 1), (0, 2), (1, 2)]
        assert any(v[a] == before[b] and v[b] == before[a] for a, b in swaps)
