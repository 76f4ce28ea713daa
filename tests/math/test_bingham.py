import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import dawsn, erf, i0e

from skident._math import bingham

RANDOM = np.random.default_rng(0)
# Gaps from the largest eigenvalue: any shape, from nearly nothing to 1e4.
GAPS = [
    (share * third, third)
    for third in (1e-9, 1e-3, 0.1, 1.0, 5.0, 20.0, 41.9, 42.1, 100.0, 1e3, 1e4)
    for share in (0.0, 1e-3, 0.3, 0.9, 1.0)
]


def sphere_mean(a, power=(0, 0, 0)):
    """Mean over the sphere of prod n_i^(2 power_i) exp(n'An - max a).

    Polar axis along the largest eigenvalue, the azimuth by the trapezoidal rule, the
    height by adaptive quadrature, in pieces around the peak at the pole.
    """
    a = np.sort(np.asarray(a, float))[::-1]
    second, third = a[0] - a[1], a[0] - a[2]
    psi = (np.arange(200) + 0.5) * (math.pi / 2 / 200)
    cos2, sin2 = np.cos(psi) ** 2, np.sin(psi) ** 2

    def integrand(t):
        # w = 1 - x^2 = t^2, and dx = t dt / sqrt(1 - t^2).
        w, x2 = t * t, 1 - t * t
        weight = np.exp(-w * (second * cos2 + third * sin2))
        weight *= x2 ** power[0] * (w * cos2) ** power[1] * (w * sin2) ** power[2]
        return weight.mean() * t

    scale = 1 / math.sqrt(1 + third)
    points = [p for p in (scale, 4 * scale, 16 * scale, 64 * scale) if p < 1]
    edges = [0.0, *(p * math.pi / 2 for p in points), math.pi / 2]
    total = 0.0
    for low, high in itertools.pairwise(edges):
        # t = sin theta removes the root at the equator.
        total += quad(
            lambda theta: integrand(math.sin(theta)), low, high, epsabs=0,
            epsrel=1e-13, limit=200,
        )[0]  # fmt: skip
    return total


@pytest.mark.parametrize("gaps", GAPS)
def test_normaliser_agrees_with_the_other_polar_axis(gaps):
    # Along the largest eigenvalue: exp(-second w) (exp(-y) I_0(y)), w = 1 - x^2.
    second, third = gaps

    def integrand(theta):
        w = math.sin(theta) ** 2
        return math.exp(-second * w) * i0e((third - second) * w / 2) * math.sin(theta)

    scale = 1 / math.sqrt(1 + third)
    edges = [0.0, *(p for p in scale * 4.0 ** np.arange(8) if p < 1), math.pi / 2]
    total = sum(
        quad(integrand, low, high, epsabs=0, epsrel=1e-13)[0]
        for low, high in itertools.pairwise(edges)
    )
    ours = bingham.log_excess(np.array(second), np.array(third))
    assert ours == pytest.approx(math.log(total), abs=2e-13)
    # Without a trace, the gauge of the library.
    a = np.array([second + third, third - 2 * second, second - 2 * third]) / 3
    shifted = bingham.log_normalizer(RANDOM.permutation(a))
    assert shifted == pytest.approx(a[0] + math.log(total), rel=1e-14, abs=1e-12)


@pytest.mark.parametrize("k", [1e-6, 0.3, 3.0, 50.0, 1e4])
def test_rods_and_discs_have_closed_forms(k):
    rod = math.log(dawsn(math.sqrt(k)) / math.sqrt(k))
    disc = math.log(math.sqrt(math.pi / k) / 2 * erf(math.sqrt(k)))
    log_z, moments = bingham.normalizer_gradient([[k, 0, 0], [0, -k, 0], [5, 5, 5]])
    np.testing.assert_allclose(log_z, [k + rod, disc, 5], rtol=1e-14, atol=1e-13)
    # By partial integration of exp(k x^2) over a height.
    along = (math.sqrt(k) / dawsn(math.sqrt(k)) - 1) / (2 * k)
    across = (1 - math.exp(-k - disc)) / (2 * k)
    expected = [
        [along, (1 - along) / 2, (1 - along) / 2],
        [(1 - across) / 2, across, (1 - across) / 2],
        [1 / 3, 1 / 3, 1 / 3],
    ]
    # The closed forms themselves lose 1 / k of their digits where k is small.
    np.testing.assert_allclose(moments, expected, rtol=1e-12, atol=1e-15 + 1e-16 / k)


@pytest.mark.parametrize("a", [(0.3, -0.1, 0.2), (7, 2, -9), (-40, 30, 10), (0, 0, 3)])
def test_gradient_agrees_with_quadrature_and_with_differences(a):
    log_z, moments = bingham.normalizer_gradient(a)
    assert moments.sum() == pytest.approx(1, abs=1e-15)
    order = np.argsort(a)[::-1]
    total = sphere_mean(a)
    assert log_z == pytest.approx(max(a) + math.log(total), abs=1e-12)
    for rank, i in enumerate(order):
        power = [0, 0, 0]
        power[rank] = 1
        assert moments[i] == pytest.approx(sphere_mean(a, power) / total, abs=1e-12)
        step = 1e-3 * np.eye(3)[i]
        up, down, up2, down2 = bingham.log_normalizer(
            [a + step, a - step, a + 2 * step, a - 2 * step]
        )
        slope = (8 * (up - down) - (up2 - down2)) / 0.012
        assert moments[i] == pytest.approx(slope, abs=1e-9)


def test_small_moments_keep_their_digits():
    # Far out each component is a Gaussian of variance 1 / (2 gap).
    second, third = (
        np.array([1e8, 1e20, 1e50, 1e100]),
        np.array([3e8, 1e21, 1e50, 2e100]),
    )
    excess, m2, m3 = bingham.excess_moments(second, third)
    np.testing.assert_allclose(2 * second * m2, 1, rtol=2e-8)
    np.testing.assert_allclose(2 * third[1:] * m3[1:], 1, rtol=1e-13)
    log_z = -np.log(4 * second[1:] * third[1:]) / 2
    np.testing.assert_allclose(excess[1:], log_z, rtol=1e-14)
    assert excess.shape == m2.shape == (4,)


@pytest.mark.parametrize("y", [1e-8, 0.5, 30.0, 99.999, 100.001, 1e4, 1e100])
def test_bessel_defect_keeps_its_digits(y):
    nodes = math.pi * (np.arange(4000) + 0.5) / 4000
    if y > 1e4:
        expected = 1 / (2 * y)
    else:
        weight = np.exp(-2 * y * np.sin(nodes / 2) ** 2)
        expected = (weight * 2 * np.sin(nodes / 2) ** 2).sum() / weight.sum()
    assert bingham.bessel_defect(np.array([y])) == pytest.approx(expected, rel=3e-14)


def test_shapes_and_blocks(monkeypatch):
    a = RANDOM.normal(size=(5, 7, 3)) * 4
    log_z, moments = bingham.normalizer_gradient(a)
    assert log_z.shape == (5, 7)
    assert moments.shape == a.shape
    np.testing.assert_allclose(bingham.log_normalizer(a), log_z, rtol=1e-14)
    monkeypatch.setattr(bingham, "_BLOCK", 100)
    np.testing.assert_array_equal(bingham.normalizer_gradient(a)[1], moments)
    assert bingham.log_normalizer(np.empty((0, 3))).shape == (0,)
    assert bingham.log_normalizer(np.zeros(3)) == pytest.approx(0, abs=3e-15)
