"""Blocks, moments by fold, and diameters of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from skident._math import paired_rows
from skident._math.diameters import diameters
from skident._math.paired_rows import (
    Rows,
    blocks,
    chunks,
    fold_moments,
    open_rows,
    training_moments,
)


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 5000), width=st.integers(1, 50), entries=st.integers(1, 10**5))
def test_blocks_and_chunks_cover_every_row_once(n, width, entries):
    seen = np.concatenate(
        [np.arange(n)[rows] for rows in blocks(n, width, entries=entries)]
    )
    np.testing.assert_array_equal(seen, np.arange(n))
    parts = [np.arange(n)[rows] for rows in chunks((n, width))]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(n))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "bool"])
def test_rows_are_centred_in_any_type(dtype):
    X = np.random.default_rng(0).integers(-3, 60, (200, 3)) / 4
    X = X.astype(dtype)
    rows = open_rows(X)
    expected = X.astype(float) - X.astype(float).mean(axis=0)
    np.testing.assert_allclose(rows.take(slice(0, 200)), expected, atol=1e-13)
    some = np.array([5, 3, 150])
    np.testing.assert_allclose(rows.take(some), expected[some], atol=1e-13)
    np.testing.assert_allclose(
        rows.subset(some).take(slice(0, 3)), expected[some], atol=1e-13
    )
    assert rows.unit == 1.0


def test_largest_negative_int8_is_no_overflow():
    X = np.full((4, 1), -128, dtype=np.int8)
    X[0] = 127
    assert open_rows(X).unit == 1.0
    assert diameters(open_rows(X))[0] == 255


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e20, 1e300])
def test_extreme_rows_get_a_unit_that_is_a_power_of_two(scale):
    X = np.random.default_rng(0).standard_normal((50, 2))
    rows = open_rows(scale * X)
    assert rows.unit == 2.0 ** round(np.log2(rows.unit))
    assert 0.1 < np.abs(rows.take(slice(0, 50))).max() < 10
    np.testing.assert_allclose(
        diameters(rows)[0] * rows.unit, diameters(open_rows(X))[0] * scale, rtol=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 5),
    q=st.integers(1, 5),
    offset=st.sampled_from([0.0, 1e3, 1e6]),
)
def test_moments_of_the_training_rows(seed, p, q, offset):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((60, p)) + offset, rng.standard_normal((60, q))
    folds = np.arange(60) % 3
    x, y = open_rows(X), open_rows(Y)
    halves = [fold_moments(x, y, folds, 3, rows, True) for rows in (
        slice(0, 25), slice(25, 60),
    )]  # fmt: skip
    for one, other in zip(*halves, strict=True):
        one.add(other)
    for fold in range(3):
        sums = training_moments(halves[0], fold).centred()
        A, B = X[folds != fold], Y[folds != fold]
        a, b = A - A.mean(axis=0), B - B.mean(axis=0)
        accuracy = {"atol": 1e-8 * (1 + offset / 1e3)}
        np.testing.assert_allclose(sums.xy, a.T @ b, **accuracy)
        np.testing.assert_allclose(sums.xx, a.T @ a, **accuracy)
        np.testing.assert_allclose(sums.yy, b.T @ b, **accuracy)
        np.testing.assert_allclose(sums.square_x, np.sum(a**2, axis=0), **accuracy)
        np.testing.assert_allclose(sums.mean_y + y.centre, B.mean(axis=0), atol=1e-10)


def test_negative_folds_do_not_count():
    X = open_rows(np.arange(20.0).reshape(10, 2))
    folds = np.r_[np.zeros(5, int), np.full(5, -1)]
    (part,) = fold_moments(X, X, folds, 1, slice(0, 10), False)
    assert part.count == 5 and part.xx.size == 0


def test_column_that_varies_in_the_test_fold_only_is_exactly_constant():
    """Rounding left in it would be scaled up by a linear map."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 2))
    folds = np.arange(90) % 3
    X[:, 1] = np.where(folds == 0, 1e3 * X[:, 1], 0.1)
    parts = fold_moments(open_rows(X), open_rows(X), folds, 3, slice(0, 90), True)
    sums = training_moments(parts, 0).centred()
    assert sums.square_x[1] == 0 and np.all(sums.xx[1] == 0) and np.all(sums.xy[1] == 0)


def test_large_single_precision_is_scored_in_it(monkeypatch):
    monkeypatch.setattr(paired_rows, "LARGE", 100)
    X = np.random.default_rng(0).standard_normal((100, 3)).astype(np.float32) + 1e3
    rows = open_rows(X)
    assert rows.dtype == np.float32
    assert rows.take(slice(0, 9)).dtype == np.float32
    # both precisions take the same centre off
    np.testing.assert_allclose(
        rows.take(slice(0, 100)),
        rows.take(slice(0, 100), np.float64),
        atol=1e-6,
    )
    assert open_rows(X.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("entries", [1, 10**6])
def test_diameters_do_not_depend_on_blocks(monkeypatch, p, entries):
    monkeypatch.setattr(blocks, "__defaults__", (*blocks.__defaults__[:-1], entries))
    X = np.random.default_rng(0).standard_cauchy((300, p))
    largest, robust = diameters(Rows(X, X.mean(axis=0), 1.0, np.float64))
    true = pdist(X).max()
    assert 0.5 * true <= largest <= true * (1 + 1e-12)
    away = np.linalg.norm(X - X.mean(axis=0), axis=1)
    assert robust == pytest.approx(2 * np.quantile(away, 0.99))
