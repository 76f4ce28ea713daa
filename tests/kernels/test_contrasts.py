"""Compiled contrasts: against numpy, in both precisions, to the edges of floats."""

import numpy as np
import pytest

from skident._kernels import contrasts as kernels
from skident._math import contrasts

NAMES = {"logcosh": ("logcosh", np.log(2.0)), "bell": ("exp", 0.0), "cube": ("cube", 0)}
BITS = {32: (np.float32, 5e-7), 64: (np.float64, 2e-15)}


def run(name, Y):
    """Return slope, and sums of curvature and value."""
    slope = np.empty_like(Y)
    curvature, value = np.zeros((2, Y.shape[1]), Y.dtype)
    getattr(kernels, name)(Y, slope, curvature, value)
    return slope, curvature, value


@pytest.mark.parametrize("bits", BITS)
def test_exponential_to_rounding(bits):
    dtype, tolerance = BITS[bits]
    x = np.linspace(0, 100, 4001).astype(dtype)
    decay = getattr(kernels, f"decay{bits}")
    found = np.array([decay(entry) for entry in x])
    np.testing.assert_allclose(found, np.exp(-x.astype(np.longdouble)), atol=tolerance)
    near = x < 5
    exact = np.exp(-x[near].astype(np.longdouble))
    np.testing.assert_allclose(found[near], exact, rtol=2 * tolerance)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (513, 2), (40, 129)])
def test_equal_to_numpy(name, bits, shape):
    dtype, tolerance = BITS[bits]
    rng = np.random.default_rng(0)
    Y = (rng.standard_normal(shape) * 3).astype(dtype)
    numpy_name, constant = NAMES[name]
    value, slope, bend = contrasts.CONTRASTS[numpy_name](Y.astype(np.float64))
    found = run(name, Y)
    size = 1 + np.abs(Y.astype(np.float64)).max() ** 4 * (name == "cube")
    np.testing.assert_allclose(found[0], slope, atol=tolerance * size)
    n = shape[0]
    # Sums over the rows one after the other lose at most n roundings.
    rounding = 4 * n * tolerance * size
    np.testing.assert_allclose(found[1], bend.sum(axis=0), atol=rounding)
    total = value.sum(axis=0) + n * constant
    np.testing.assert_allclose(found[2], total, atol=rounding)


@pytest.mark.parametrize("bits", BITS)
def test_extremes_are_finite_and_odd(bits):
    dtype = BITS[bits][0]
    large = [0.0, 1e-30, 1e-5, 30.0, 100.0, 1e4]
    Y = np.array([large, np.negative(large)], dtype=dtype)
    for name in ("logcosh", "bell"):
        slope, curvature, value = run(name, Y)
        assert np.isfinite(slope).all() and np.isfinite(curvature).all()
        np.testing.assert_array_equal(slope[0], -slope[1])
        assert np.isfinite(value).all()
    slope, _, value = run("logcosh", Y)
    np.testing.assert_allclose(slope[0], np.tanh(large), atol=BITS[bits][1])
    np.testing.assert_allclose(value[-1], 2e4, rtol=1e-6)


@pytest.mark.parametrize("bits", BITS)
def test_sums_are_added_to_what_is_there(bits):
    Y = np.random.default_rng(0).standard_normal((300, 5)).astype(BITS[bits][0])
    slope = np.empty_like(Y)
    for name in NAMES:
        curvature, value = np.zeros((2, 5), Y.dtype)
        function = getattr(kernels, name)
        function(Y[:100], slope[:100], curvature, value)
        function(Y[100:], slope[100:], curvature, value)
        whole = run(name, Y)
        np.testing.assert_array_equal(slope, whole[0])
        np.testing.assert_allclose(curvature, whole[1], rtol=1e-5)
        np.testing.assert_allclose(value, whole[2], rtol=1e-5)
