import numpy as np
import pytest

from skident._math.cavity import polish_span
from skident.datasets import make_hopfield, make_patterns


def residuals(patterns, basis):
    return 1 - ((patterns @ basis) ** 2).sum(axis=1) / basis.shape[0]


def span_of(patterns):
    return np.linalg.qr(patterns.T.astype(float))[0]


@pytest.fixture(scope="module")
def data():
    patterns = make_patterns(3, 24, random_state=0)
    X, _ = make_hopfield(20_000, patterns, temperature=1.2, random_state=0)
    return patterns, X


def test_span_of_the_patterns_stays(data):
    patterns, X = data
    polished = polish_span(X, span_of(patterns))
    np.testing.assert_allclose(polished.T @ polished, np.eye(3), atol=1e-12)
    assert residuals(patterns, polished).max() < 0.01


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_shaken_span_comes_back(data, noise):
    patterns, X = data
    rng = np.random.default_rng(0)
    shaken = span_of(patterns) + noise * rng.standard_normal((24, 3)) / np.sqrt(24)
    start = np.linalg.qr(shaken)[0]
    assert residuals(patterns, start).max() > 0.05
    assert residuals(patterns, polish_span(X, start)).max() < 0.01


def test_more_dimensions_than_patterns_come_last(data):
    patterns, X = data
    rng = np.random.default_rng(1)
    start = np.linalg.qr(np.c_[patterns.T, rng.standard_normal((24, 2))])[0]
    polished = polish_span(X, start)
    assert residuals(patterns, polished[:, :3]).max() < 0.01


def test_only_the_span_matters(data):
    patterns, X = data
    rotation = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
    start = span_of(patterns)
    first, second = (polish_span(X[:2000], b) for b in (start, start @ rotation))
    np.testing.assert_allclose(first @ first.T, second @ second.T, atol=1e-6)


def test_column_of_one_value_is_harmless(data):
    patterns, X = data
    X = X[:2000].copy()
    X[:, 3] = 1
    polished = polish_span(X, span_of(patterns))
    assert np.isfinite(polished).all()
    assert residuals(patterns, polished).max() < 0.12
