"""Passes over columns: against numpy."""

import numpy as np
import pytest

from skident._kernels.columns import column_stats, standardise


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (50, 3), (8, 200)])
def test_stats_of_columns(dtype, shape):
    X = np.random.default_rng(0).standard_normal(shape).astype(dtype) + dtype(5)
    origin = X[0].astype(np.float64)
    total, low, high = np.zeros(shape[1]), origin.copy(), origin.copy()
    for part in np.array_split(X, 2):
        column_stats(part, origin, total, low, high)
    np.testing.assert_allclose(total, (X - origin).sum(axis=0), atol=1e-12)
    np.testing.assert_array_equal(low, X.min(axis=0))
    np.testing.assert_array_equal(high, X.max(axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("out", [np.float32, np.float64])
def test_standardise_is_computed_in_float64(dtype, out):
    rng = np.random.default_rng(0)
    X = (1e6 + rng.standard_normal((30, 4))).astype(dtype)
    mean, inverse = X.mean(axis=0, dtype=np.float64), rng.uniform(1, 2, 4)
    found = np.empty(X.shape, out)
    standardise(X, mean, inverse, found)
    exact = (X.astype(np.float64) - mean) * inverse
    np.testing.assert_array_equal(found, exact.astype(out))
