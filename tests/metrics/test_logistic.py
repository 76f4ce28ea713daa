"""Logistic probes: known optima, both solvers, two classes, few rows."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from skident._math.probes import stratified_folds, whiten_columns
from skident.metrics import _logistic
from skident.metrics._logistic import held_out_explicitness, in_sample_explicitness

FOLDS = np.arange(400) % 4


def problem(seed=0, n=400, p=3, k=4):
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(k), rng.integers(k, size=n - k))
    slopes = [1.0, -1.0, 0.5][:p]
    return rng.standard_normal((n, p)) + 0.8 * codes[:, None] * slopes, codes


@pytest.mark.parametrize("largest", [1000, 1])
@pytest.mark.parametrize("seed", range(3))
def test_cells_without_some_classes_converge(seed, largest, monkeypatch):
    """Weights go to infinity along some directions and have an optimum along others."""
    monkeypatch.setattr(_logistic, "_LARGEST_HESSIAN", largest)
    codes, cells = np.random.default_rng(seed).integers(10, size=(2, 100))
    found = in_sample_explicitness((cells[:, None] == np.arange(10)) * 1.0, codes, 1e-8)
    assert found.gradient <= 1e-8 and found.n_iter > 3
    # The optimum is known: the weighted frequencies of each cell.
    table = np.zeros((10, 10))
    np.add.at(table, (cells, codes), compute_sample_weight("balanced", codes))
    table /= table.sum(axis=1, keepdims=True)
    loss = -np.log(table[cells, codes]).mean()
    assert found.score == pytest.approx(1 - loss / np.log(10), abs=1e-6)


@pytest.mark.parametrize("k", [2, 4])
def test_both_solvers_reach_the_same(k, monkeypatch):
    features, codes = problem(k=k)
    scores = []
    for largest in (1000, 1):
        monkeypatch.setattr(_logistic, "_LARGEST_HESSIAN", largest)
        fits = (
            in_sample_explicitness(features, codes, 1e-8),
            held_out_explicitness(features, codes, FOLDS, 1e-8),
        )
        assert max(fit.gradient for fit in fits) <= 1e-8
        scores.append([fit.score for fit in fits])
    np.testing.assert_allclose(*scores, atol=1e-6)
    # the probe knows most of what there is, and less on other rows
    assert 0.2 < scores[0][1] < scores[0][0] < 1


def test_separable_classes_are_known():
    codes = np.repeat([0, 1, 2], 30)
    found = in_sample_explicitness(10.0 * codes[:, None], codes, 1e-8)
    assert found.gradient <= 1e-8
    assert found.score == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("alpha", [1.0, 10.0])
def test_penalty_of_two_classes_is_that_of_two_vectors(alpha):
    """A third class of weight nearly 0, far away, makes scikit-learn keep all vectors.

    Without it there is one vector: the difference of two that are opposite.
    """
    features, codes = problem(k=2)
    white = whiten_columns(features)
    model = _logistic._new_model(white, codes, 1e-10)
    assert _logistic._fit(model, white, codes, alpha) <= 1e-9
    three = _logistic._new_model(white, codes + 1, 1e-10)
    three.set_params(C=1 / alpha)
    weights = np.append(compute_sample_weight("balanced", codes), 1e-9)
    three.fit(np.r_[white, np.zeros((1, 3))], np.append(codes, 2), weights)
    difference = three.coef_[1] - three.coef_[0]
    np.testing.assert_allclose(model.coef_[0], difference, rtol=1e-4)


def test_a_class_that_training_rows_lack_is_a_bounded_loss():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=200)
    latent = rng.standard_normal(200) + 2.0 * codes
    codes[0] = 2
    folds = stratified_folds(codes, 5, rng)
    found = held_out_explicitness(latent[:, None], codes, folds, 1e-5)
    assert 0.1 < found.score < 1 and found.gradient <= 1e-5


def test_one_class_to_train_on():
    codes = np.repeat([0, 1], 200)
    found = held_out_explicitness(problem()[0], codes, codes, 1e-5)
    assert found.score == 0 and found.gradient == 0


def test_no_column_that_varies_knows_nothing():
    codes = problem()[1]
    for found in (
        in_sample_explicitness(np.ones((400, 2)), codes, 1e-8),
        held_out_explicitness(np.ones((400, 2)), codes, FOLDS, 1e-8),
    ):
        assert found == (0.0, 0, 0.0)


def test_plenty_of_rows_need_no_search(monkeypatch):
    features, codes = problem(n=4000)
    folds = np.arange(4000) % 4
    quick = held_out_explicitness(features, codes, folds, 1e-5)
    monkeypatch.setattr(_logistic, "_PLENTY", 10**6)
    searched = held_out_explicitness(features, codes, folds, 1e-5)
    assert quick.score == pytest.approx(searched.score, abs=1e-3)
