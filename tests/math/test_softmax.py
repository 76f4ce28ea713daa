"""Multinomial logistic regression."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skident._math import softmax


def problem(seed=0, n=400, p=3, k=4):
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(k), rng.integers(k, size=n - k))
    return rng.standard_normal((n, p)) + 0.8 * codes[:, None] * [1, -1, 0.5], codes


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_optimum_is_that_of_scikit_learn(seed, alpha):
    features, codes = problem(seed)
    weights = softmax.balanced_weights(codes)
    fit = softmax.fit_softmax(features, codes, weights, alpha=alpha)
    peer = LogisticRegression(
        C=1 / alpha if alpha else np.inf, class_weight="balanced", solver="newton-cg",
        tol=1e-9, max_iter=1000,
    ).fit(features, codes)  # fmt: skip
    np.testing.assert_allclose(
        fit.log_prob(features), peer.predict_log_proba(features), atol=1e-5
    )
    assert 0 < fit.gradient <= 1e-8
    assert 3 < fit.n_iter < 15


def test_both_ways_to_step_reach_the_same(monkeypatch):
    features, codes = problem()
    weights = np.random.default_rng(0).random(len(codes))
    whole = softmax.fit_softmax(features, codes, weights, alpha=0.1)
    monkeypatch.setattr(softmax, "_LARGEST_HESSIAN", 1)
    parts = softmax.fit_softmax(features, codes, weights, alpha=0.1)
    assert parts.gradient <= 1e-8
    np.testing.assert_allclose(
        parts.log_prob(features), whole.log_prob(features), atol=1e-5
    )


def test_blocks_of_rows_change_nothing(monkeypatch):
    features, codes = problem()
    weights = np.ones(len(codes))
    whole = softmax.fit_softmax(features, codes, weights)
    monkeypatch.setattr(softmax, "_BLOCK_ENTRIES", 100)
    blocks = softmax.fit_softmax(features, codes, weights)
    np.testing.assert_allclose(
        blocks.log_prob(features), whole.log_prob(features), atol=1e-9
    )


def test_weights_are_repeated_rows():
    features, codes = problem(n=100)
    counts = np.random.default_rng(0).integers(1, 4, size=100)
    weighted = softmax.fit_softmax(features, codes, counts.astype(float))
    rows = np.repeat(np.arange(100), counts)
    repeated = softmax.fit_softmax(features[rows], codes[rows], np.ones(len(rows)))
    np.testing.assert_allclose(
        weighted.log_prob(features), repeated.log_prob(features), atol=1e-6
    )


def test_separable_classes_end_near_no_loss():
    codes = np.repeat([0, 1, 2], 30)
    fit = softmax.fit_softmax(10.0 * codes[:, None], codes, np.ones(90))
    assert fit.gradient <= 1e-8 and np.isfinite(fit.weights).all()
    assert fit.log_prob(10.0 * codes[:, None])[np.arange(90), codes].min() > -1e-4


def test_a_first_guess_does_not_change_the_end(monkeypatch):
    features, codes = problem(n=1000)
    weights = softmax.balanced_weights(codes)
    guess = softmax._first_guess(np.c_[features, np.ones(1000)], codes, weights, 0.0)
    assert np.abs(guess).max() > 0.1
    quick = softmax.fit_softmax(features, codes, weights)
    monkeypatch.setattr(softmax, "_PLENTY", 10**6)
    slow = softmax.fit_softmax(features, codes, weights)
    assert quick.n_iter < slow.n_iter
    np.testing.assert_allclose(
        quick.log_prob(features), slow.log_prob(features), atol=1e-6
    )


@pytest.mark.parametrize("largest", [1000, 1])
@pytest.mark.parametrize("seed", range(3))
def test_cells_without_some_classes_converge(seed, largest, monkeypatch):
    """Weights go to infinity along some directions and have an optimum along others."""
    monkeypatch.setattr(softmax, "_LARGEST_HESSIAN", largest)
    codes, cells = np.random.default_rng(seed).integers(10, size=(2, 100))
    white = softmax.whiten_columns((cells[:, None] == np.arange(10)).astype(float))
    weights = softmax.balanced_weights(codes)
    fit = softmax.fit_softmax(white, codes, weights)
    assert fit.gradient <= 1e-8
    # The optimum is known: the weighted frequencies of each cell.
    table = np.zeros((10, 10))
    np.add.at(table, (cells, codes), weights)
    table /= table.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(fit.log_prob(white)), table[cells], atol=1e-5)


def test_the_start_does_not_change_the_end():
    features, codes = problem()
    weights = np.ones(len(codes))
    cold = softmax.fit_softmax(features, codes, weights, alpha=1e-2)
    start = np.random.default_rng(0).standard_normal(cold.weights.shape)
    warm = softmax.fit_softmax(features, codes, weights, alpha=1e-2, start=start)
    np.testing.assert_allclose(
        warm.log_prob(features), cold.log_prob(features), atol=1e-5
    )


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_whitening_reveals_rank_in_any_basis(offset):
    rng = np.random.default_rng(0)
    latents = rng.standard_normal((200, 3)) * [1e-6, 1, 1e6]
    wide = np.c_[latents, latents @ [1.0, 2.0, 0.0], np.full(200, 0.1)] + offset
    white = softmax.whiten_columns(wide)
    assert white.shape == (200, 3)
    np.testing.assert_allclose(white.T @ white / 200, np.eye(3), atol=1e-6)
    plain = softmax.whiten_columns(latents)
    # Equal up to a rotation: all products of rows are.
    np.testing.assert_allclose(white @ white.T, plain @ plain.T, atol=1e-4)


def test_only_constant_columns_leave_none():
    assert softmax.whiten_columns(np.full((5, 2), 0.1)).shape == (5, 0)
