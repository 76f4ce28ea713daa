import numpy as np
import pytest

from skident._math.binary_span import decode_span
from skident._math.pattern_span import (
    decoder_span,
    entry_confidence,
    find_patterns,
    random_confidence,
    varies_beyond_noise,
)
from skident.datasets import make_curie_weiss

AUTO = {
    "n_patterns": None, "min_confidence": "auto", "solver": "vertex",
    "data_span": False, "seed": 0,
}  # fmt: skip


def random_basis(n_sites, n_dims, seed):
    rng = np.random.default_rng(seed)
    return np.linalg.qr(rng.standard_normal((n_sites, n_dims)))[0]


def noisy_span(n_patterns, n_sites, noise, seed):
    rng = np.random.default_rng(seed)
    patterns = rng.choice([-1, 1], size=(n_patterns, n_sites))
    basis = np.linalg.qr(patterns.T.astype(float))[0]
    basis += noise * rng.standard_normal(basis.shape) / np.sqrt(n_sites)
    return patterns, np.linalg.qr(basis)[0]


def exact(found, patterns):
    overlaps = np.abs(found.astype(int) @ patterns.T)
    return int((overlaps == patterns.shape[1]).any(axis=0).sum())


@pytest.mark.parametrize(
    ("n_sites", "n_dims"), [(16, 2), (32, 4), (64, 1), (64, 4), (64, 8), (128, 4)]
)
def test_random_spans_hardly_reach_the_confidence_of_random_spans(n_sites, n_dims):
    best = np.array(
        [
            1
            - decode_span(random_basis(n_sites, n_dims, s), solver="vertex").residuals[
                0
            ]
            for s in range(20)
        ]
    )
    level = random_confidence(n_sites, n_dims)
    assert (best > level).mean() <= 0.05
    # and it is no empty bound
    assert level - best.mean() < 0.18


def test_span_of_a_decoder_is_exact_without_noise():
    rng = np.random.default_rng(0)
    patterns = rng.choice([-1.0, 1.0], size=(3, 20))
    mixing = rng.standard_normal((3, 3))
    latents = rng.standard_normal((50, 3))
    logits = rng.standard_normal(20) + np.sin(latents) @ mixing @ patterns
    jacobians = np.einsum("na,ab,bi->nia", np.cos(latents), mixing, patterns)
    directions, spectrum = decoder_span(jacobians, logits)
    np.testing.assert_allclose(spectrum[3:], 0, atol=1e-6)
    projected = patterns @ directions[:, :3]
    np.testing.assert_allclose((projected**2).sum(axis=1), 20)
    total = (jacobians**2).sum() + ((logits - logits.mean(axis=0)) ** 2).sum()
    assert (spectrum**2).sum() == pytest.approx(total / 50)


def test_entries_are_certain_in_an_exact_span():
    patterns, basis = noisy_span(4, 64, 0.0, 0)
    np.testing.assert_allclose(entry_confidence(basis, patterns), 1)


@pytest.mark.parametrize("noise", [0.25, 0.35])
def test_as_many_entries_are_wrong_as_the_confidence_says(noise):
    """Found patterns near a planted one: right and wrong entries are known."""
    wrong, expected, doubtful, doubtful_wrong = 0.0, 0.0, 0, 0
    for seed in range(60):
        patterns, basis = noisy_span(3, 48, noise * 2, seed)
        found = decode_span(basis, solver="vertex").patterns
        overlaps = patterns @ found.T.astype(int)
        match = np.abs(overlaps).argmax(axis=0)
        near = np.abs(overlaps).max(axis=0) > 0.75 * 48
        truth = (
            patterns[match] * np.sign(overlaps[match, np.arange(len(match))])[:, None]
        )
        confidence = entry_confidence(basis, found)[near]
        is_wrong = (found != truth)[near]
        wrong += is_wrong.sum()
        expected += (1 - confidence).sum()
        doubtful += (confidence < 0.9).sum()
        doubtful_wrong += is_wrong[confidence < 0.9].sum()
    assert wrong > 20
    assert 0.4 < wrong / expected < 2.5
    # the few doubtful entries hold most of what is wrong
    assert doubtful_wrong > 0.5 * wrong
    assert doubtful < 0.3 * 60 * 3 * 48


def test_site_of_its_own_is_not_known():
    patterns, basis = noisy_span(2, 16, 0.0, 1)
    own = np.zeros((16, 1))
    own[5] = 1
    rest = basis * (np.arange(16) != 5)[:, None]
    both = np.linalg.qr(np.c_[rest, own])[0]
    assert (entry_confidence(both, patterns)[:, 5] == 0.5).all()


def test_independent_columns_do_not_vary_beyond_noise():
    rng = np.random.default_rng(0)
    seen = sum(
        varies_beyond_noise(rng.random((400, 30)) < rng.uniform(0.2, 0.8, 30))
        for _ in range(60)
    )
    assert seen <= 3
    assert not varies_beyond_noise(np.ones((50, 4), np.int8))


def test_weakly_coupled_spins_vary_beyond_noise():
    X, _ = make_curie_weiss(4000, 32, temperature=2.0, random_state=0)
    assert varies_beyond_noise(X > 0)


def test_number_of_directions_is_that_of_the_patterns():
    bits = make_curie_weiss(500, 64, temperature=0.8, random_state=0)[0] > 0
    for seed in range(4):
        patterns, basis = noisy_span(3, 64, 0.15, seed)
        rest = np.linalg.qr(np.c_[basis, random_basis(64, 5, seed)])[0]
        found = find_patterns(rest, bits, 8, **AUTO)
        assert found.basis.shape == (64, 3) and not found.from_data
        assert found.claimed.all() and exact(found.patterns, patterns) == 3


def test_directions_after_a_false_one_are_reached():
    bits = make_curie_weiss(500, 64, temperature=0.8, random_state=0)[0] > 0
    patterns, basis = noisy_span(3, 64, 0.1, 0)
    first = np.c_[random_basis(64, 1, 5), basis]
    found = find_patterns(np.linalg.qr(first)[0], bits, 4, **AUTO)
    assert found.claimed.sum() == 3 == exact(found.patterns[found.claimed], patterns)


def test_nothing_is_claimed_in_random_spans_or_of_independent_columns():
    coupled = make_curie_weiss(500, 64, temperature=0.8, random_state=0)[0] > 0
    independent = np.random.default_rng(0).random((500, 64)) < 0.5
    n_false = sum(
        find_patterns(random_basis(64, 6, seed), coupled, 6, **AUTO).claimed.any()
        for seed in range(20)
    )
    assert n_false <= 1
    _, basis = noisy_span(3, 64, 0.1, 0)
    assert not find_patterns(basis, independent, 3, **AUTO).claimed.any()


@pytest.mark.parametrize("n_patterns", [3, None])
def test_data_give_the_span_that_a_decoder_missed(n_patterns):
    """Rows by block Gibbs at a temperature where nothing is ordered."""
    rng, beta = np.random.default_rng(0), 0.8
    patterns = rng.choice([-1.0, 1.0], size=(3, 32))
    signs = rng.choice([-1.0, 1.0], size=(4000, 32))
    for _ in range(60):
        noise = rng.standard_normal((4000, 3)) / np.sqrt(beta * 32)
        logits = 2 * beta * (signs @ patterns.T / 32 + noise) @ patterns
        signs = np.where(rng.random(signs.shape) < 1 / (1 + np.exp(-logits)), 1.0, -1.0)
    wrong = random_basis(32, 5, 0)
    params = {**AUTO, "n_patterns": n_patterns, "data_span": True}
    found = find_patterns(wrong, signs > 0, 5, **params)
    assert found.from_data and found.basis.shape == (32, 3)
    assert found.claimed.all() and exact(found.patterns, patterns.astype(int)) == 3
