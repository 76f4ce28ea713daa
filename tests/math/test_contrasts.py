"""Contrasts of the user: checked, copied, scaled; and what is known of all."""

import numpy as np
import pytest
from scipy import integrate, stats

from skident._math import contrasts
from skident._math.contrasts import UserContrast

Y = np.linspace(-4.0, 4.0, 60).reshape(20, 3)


def scaled(size):
    return lambda y: tuple(size * part for part in contrasts.logcosh(y))


def quadratic(size):
    return lambda y: (
        size * (y * y / 2 + 3 * y),
        size * (y + 3),
        size * np.ones_like(y),
    )


@pytest.mark.parametrize("name", contrasts.CONTRASTS)
def test_reference_by_integration_and_simulation(name):
    known, function = contrasts.reference(name), contrasts.CONTRASTS[name]
    mean = integrate.quad(
        lambda y: stats.norm.pdf(y) * function(np.float64(y))[0], -9, 9
    )
    assert known.value == pytest.approx(mean[0], abs=1e-9)
    Z = np.random.default_rng(0).standard_normal((1000, 2000))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    _, slope, bend = function(Z)
    gap = (bend - slope * Z).mean(axis=0) * np.sqrt(1000)
    # The error of a standard deviation from 2000 draws is 1.6 %.
    assert known.spread == pytest.approx(gap.std(), rel=0.08)


@pytest.mark.parametrize("size", [1e-250, 1e-200, 1e-8, 1.0, 1e8, 1e200])
def test_size_of_a_contrast_does_not_matter(size):
    own = UserContrast(scaled(size))
    for part, expected in zip(own(Y), contrasts.logcosh(Y), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-9)
    np.testing.assert_allclose(contrasts.reference(own), contrasts.reference("logcosh"))


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_a_contrast_that_cannot_separate_is_refused(degree, size):
    function = {
        0: lambda y: (size * np.ones_like(y), 0 * y, 0 * y),
        1: lambda y: (size * y, size * np.ones_like(y), 0 * y),
        2: quadratic(size),
    }[degree]
    with pytest.raises(ValueError, match="must be more than quadratic"):
        UserContrast(function)


def test_a_contrast_without_gaussian_mean_is_refused():
    def growing(y):
        value = np.exp(y * y)
        return value, 2 * y * value, (2 + 4 * y * y) * value

    with pytest.raises(ValueError, match="less fast than a Gaussian density falls"):
        UserContrast(growing)


def in_place(y):
    slope = np.tanh(y)
    value = contrasts.logcosh(y)[0]
    y[:] = 7.0
    return value, slope, 1 - slope * slope


class Buffers:
    """Returns the same arrays again and again."""

    def __init__(self):
        self.kept = {}

    def __call__(self, y):
        out = self.kept.setdefault(y.shape, [np.empty(y.shape) for _ in range(3)])
        for target, part in zip(out, contrasts.logcosh(y), strict=True):
            target[:] = part
        return out


def single(y):
    return tuple(part.astype(np.float32) for part in contrasts.logcosh(y))


def inside_single(y):
    return contrasts.logcosh(y.astype(np.float32))


@pytest.mark.parametrize("function", [in_place, Buffers(), single, inside_single])
def test_ways_to_compute_a_contrast(function):
    own, before = UserContrast(function), Y.copy()
    first, again = own(Y), own(Y)
    np.testing.assert_array_equal(Y, before)
    own(Y + 1)
    for part, same, expected in zip(first, again, contrasts.logcosh(Y), strict=True):
        np.testing.assert_array_equal(part, same)
        np.testing.assert_allclose(part, expected, rtol=1e-6, atol=1e-6)
        assert part.dtype == np.float64


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_named_where_it_is_met(bad):
    def broken(y):
        value, slope, bend = contrasts.logcosh(y)
        return value, np.where(np.abs(y) > 5.5, bad, slope), bend

    own = UserContrast(broken)
    own(Y)
    far = Y.copy()
    far[3, 1] = -6.25
    with pytest.raises(ValueError, match=rf"finite arrays: G' is {bad} at y=-6.25"):
        own(far)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("which", ["first", "second"])
def test_a_wrong_derivative_is_seen_whatever_the_size(which, size):
    factor = np.array([1.0, 1.02 if which == "first" else 1.0, 1.0])
    factor[2] = 1.02 * factor[1] if which == "second" else factor[1]

    def wrong(y):
        return tuple(
            f * size * part
            for f, part in zip(factor, contrasts.logcosh(y), strict=True)
        )

    with pytest.raises(ValueError, match=f"its {which} derivative disagrees"):
        UserContrast(wrong)
