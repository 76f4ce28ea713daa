import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import dawsn, roots_legendre

from skident._math.bingham import log_normalizer
from skident.exact import (
    _maier_saupe,
    maier_saupe,
    maier_saupe_limit,
    maier_saupe_transition,
)

# N = 64: T, order parameter, energy, ln Z, total correlation, from an independent
# computation. The energy at 0.25 is -.0444651.
TABLE = [
    (0.15, ".7935", "-.31479", "39.360", "94.950"),
    (0.18, ".7081", "-.25071", "18.988", "70.153"),
    (0.20, ".6180", "-.19096", "11.040", "50.069"),
    (0.2202, ".4703", "-.11057", "6.555", "25.582"),
    (0.25, ".2982", "-.04447", "4.082", "7.301"),
    (0.30, ".2172", "-.02359", "2.730", "2.303"),
]


def printed(value, digits):
    decimals = len(digits.split(".")[1])
    return abs(value - float(digits)) <= 0.5001 * 10.0**-decimals


def values(n_sites, temperature):
    """Energy, -F / T and total correlation."""
    truth = maier_saupe(n_sites, temperature)
    return truth.energy, -truth.free_energy / temperature, truth.total_correlation


def p2(x):
    return 1.5 * x**2 - 0.5


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"T={row[0]}")
def test_table_of_64_sites(row):
    truth = maier_saupe(64, row[0])
    assert printed(truth.order_parameter, row[1])
    assert printed(truth.energy, row[2])
    assert printed(-truth.free_energy / row[0], row[3])
    assert printed(truth.total_correlation, row[4])
    assert truth.entropy == 64 * math.log(4 * math.pi) - truth.total_correlation


@pytest.mark.parametrize("temperature", [0.01, 0.1, 0.2202, 1.0, 50.0, 2e4])
def test_two_directors_agree_with_their_integral(temperature):
    # H = -(1 + P_2(c)) / 2, c uniform.
    c, w = roots_legendre(200)
    c, w = (c + 1) / 2, w / 2
    weight = w * np.exp((p2(c) - 1) / 2 / temperature)
    pair = weight @ p2(c) / weight.sum()
    log_z = math.log(weight.sum()) + 1 / temperature
    truth = maier_saupe(2, temperature)
    assert truth.pair_correlation == pytest.approx(pair, rel=1e-10)
    assert truth.energy == pytest.approx(-(1 + pair) / 4, rel=1e-13)
    assert truth.order_parameter == pytest.approx(math.sqrt((1 + pair) / 2), rel=1e-13)
    assert truth.free_energy == pytest.approx(-temperature * log_z, rel=1e-11)
    information = (1 + pair) / (2 * temperature) - log_z
    assert truth.total_correlation == pytest.approx(information, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("temperature", [0.1, 0.2202, 1.0])
def test_three_directors_agree_with_their_integral(temperature):
    # One along z, two by height and the azimuth between them.
    x, w = roots_legendre(60)
    x, w = (x + 1) / 2, w / 2
    phi = (np.arange(60) + 0.5) * math.pi / 60
    a, b = x[:, None, None], x[:, None]
    c = a * b + np.sqrt((1 - a**2) * (1 - b**2)) * np.cos(phi)
    minus_energy = 0.5 + (p2(a) + p2(b) + p2(c)) / 3
    weight = np.exp(minus_energy / temperature) * w[:, None, None] * w[:, None] / 60
    log_z = math.log(weight.sum())
    energy = -(weight * minus_energy).sum() / weight.sum()
    ours = values(3, temperature)
    expected = (energy / 3, log_z, -log_z - energy / temperature)
    np.testing.assert_allclose(ours, expected, rtol=1e-10)


@pytest.mark.parametrize("temperature", [1e-100, 1e-3, 0.2202, 7.0, 5e3, np.inf])
def test_one_director_is_free(temperature):
    truth = maier_saupe(1, temperature)
    assert truth.order_parameter == pytest.approx(1)
    assert truth.energy == pytest.approx(-0.5)
    assert truth.free_energy == pytest.approx(-0.5)
    assert truth.entropy == math.log(4 * math.pi)
    assert truth.total_correlation == 0
    assert truth.pair_correlation is None


@pytest.mark.parametrize(
    "n_sites, temperature",
    [(2, 0.02), (64, 0.2202), (64, 0.25), (1000, 0.2202), (1000, 0.2228), (1000, 3.0),
     (100_000, 0.2), (100_000, 0.2203)],
)  # fmt: skip
def test_energy_is_the_slope_of_the_partition_function(n_sites, temperature):
    # d ln Z / d beta = -N e and d TC / d beta = -beta N de / d beta, each from
    # differences of fourth order.
    beta = 1 / temperature
    step = 0.1 * beta / (20 + n_sites)
    at = [values(n_sites, 1 / (beta + k * step)) for k in (-2, -1, 1, 2)]
    slope = np.array([1, -8, 8, -1]) @ np.array(at) / (12 * step)
    energy = values(n_sites, temperature)[0]
    assert slope[1] == pytest.approx(-n_sites * energy, rel=1e-7, abs=1e-5)
    assert slope[2] == pytest.approx(-beta * n_sites * slope[0], rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("n_sites", [1, 2, 3, 64, 1000])
def test_hot_series_continues_the_quadrature(n_sites, monkeypatch):
    temperature = _maier_saupe._HOT
    hot = maier_saupe(n_sites, temperature)
    monkeypatch.setattr(_maier_saupe, "_HOT", np.inf)
    cold = maier_saupe(n_sites, temperature)
    assert hot.energy == pytest.approx(cold.energy, rel=1e-10)
    assert hot.free_energy == pytest.approx(cold.free_energy, rel=1e-9)
    assert hot.total_correlation == pytest.approx(cold.total_correlation, abs=1e-11)


def test_infinite_temperature_is_independent():
    truth = maier_saupe(50, np.inf)
    assert truth.order_parameter == pytest.approx(1 / math.sqrt(50))
    assert truth.pair_correlation == pytest.approx(0, abs=1e-15)
    assert truth.total_correlation == 0
    assert truth.free_energy == -0.5
    # -T ln Z has a limit, reached as 1 / T.
    assert maier_saupe(50, 1e300).free_energy == pytest.approx(-0.5)
    assert maier_saupe(50, 200.0).free_energy == pytest.approx(-0.5, abs=1e-3)


@pytest.mark.parametrize("n_sites", [2, 5, 1000])
@pytest.mark.parametrize("temperature", [1e-100, 1e-30, 1e-8, 1e-4])
def test_cold_directors_are_harmonic(n_sites, temperature):
    # Angles u_k off the common axis cost (3 / 2) sum |u_k - mean|^2: T / 2 for each of
    # 2 (N - 1) modes. Z is the Gaussian integral over them; the axis is free.
    truth = maier_saupe(n_sites, temperature)
    small = 3e-3 * n_sites
    n_modes = 2 * (n_sites - 1)
    excess = n_sites * (truth.energy + 0.5)
    rounding = 1e-16 * n_sites
    assert excess == pytest.approx(n_modes * temperature / 2, rel=1e-3, abs=rounding)
    log_z = math.log(n_sites) - (n_sites - 1) * math.log(3 / temperature)
    assert truth.free_energy == pytest.approx(
        -n_sites / 2 - temperature * log_z, abs=small * temperature + rounding
    )
    information = -n_modes / 2 - log_z
    assert truth.total_correlation == pytest.approx(information, abs=small, rel=1e-13)


def test_transition_of_the_infinite_model():
    truth = maier_saupe_transition()
    assert printed(truth.temperature, ".220194")
    assert printed(truth.order_parameter, ".42903")
    assert printed(truth.nematic_limit, ".22283")
    assert printed(truth.nematic_limit_order, ".3236")
    assert truth.isotropic_limit == 0.2
    below = maier_saupe_limit(truth.temperature - 1e-9)
    above = maier_saupe_limit(truth.temperature + 1e-9)
    assert below.order_parameter == pytest.approx(truth.order_parameter, abs=1e-6)
    assert above.order_parameter == 0
    assert above.nematic_free_energy > 0 > below.nematic_free_energy
    edge = maier_saupe_limit(truth.nematic_limit)
    assert edge.nematic_order == pytest.approx(truth.nematic_limit_order, abs=1e-6)
    assert maier_saupe_limit(truth.nematic_limit + 1e-9).nematic_order is None
    # The isotropic phase ends where its susceptibility 1 / (T - 1 / 5) diverges: at
    # a small field h the order is h / 5.
    slope = 1 - _maier_saupe._uniaxial(1e-6)[2]
    assert slope / 1e-6 == pytest.approx(truth.isotropic_limit, rel=1e-5)


@pytest.mark.parametrize("temperature", [0.01, 0.1, 0.2, 0.2201, 0.2215])
def test_order_solves_the_self_consistency(temperature):
    truth = maier_saupe_limit(temperature)
    order = truth.nematic_order
    h = order / temperature
    k = 1.5 * h
    # ln of the mean of exp(h P_2), and <x^2>, by Dawson's integral.
    log_z = h + math.log(dawsn(math.sqrt(k)) / math.sqrt(k))
    square = (math.sqrt(k) / dawsn(math.sqrt(k)) - 1) / (2 * k)
    assert p2(math.sqrt(square)) == pytest.approx(order, rel=1e-11)
    free_energy = order**2 / 2 - temperature * log_z
    assert truth.nematic_free_energy == pytest.approx(free_energy, abs=1e-13)
    if free_energy < 0:
        assert truth.free_energy == truth.nematic_free_energy
        assert truth.energy == -(order**2) / 2
        information = (truth.free_energy - truth.energy) / temperature
        assert truth.total_correlation == pytest.approx(information, rel=1e-9)
    else:
        assert (truth.free_energy, truth.energy, truth.total_correlation) == (0, 0, 0)
    assert truth.entropy == math.log(4 * math.pi) - truth.total_correlation


def test_limit_at_the_ends_of_the_range():
    cold = maier_saupe_limit(1e-100)
    assert (cold.order_parameter, cold.energy, cold.free_energy) == (1, -0.5, -0.5)
    # ln z - h = -ln(2 * 1.5 h), and the two modes.
    assert cold.total_correlation == pytest.approx(math.log(3e100) - 1)
    hot = maier_saupe_limit(np.inf)
    assert hot.order_parameter == hot.free_energy == 0
    assert hot.nematic_order is None


@pytest.mark.parametrize("temperature", [0.05, 0.15, 0.21])
def test_large_nematic_systems_reach_the_limit(temperature):
    truth, limit = maier_saupe(100_000, temperature), maier_saupe_limit(temperature)
    assert truth.order_parameter == pytest.approx(limit.order_parameter, abs=1e-4)
    assert truth.energy == pytest.approx(limit.energy, abs=1e-4)
    assert truth.free_energy / 1e5 == pytest.approx(limit.free_energy, abs=1e-4)
    assert truth.total_correlation / 1e5 == pytest.approx(
        limit.total_correlation, abs=1e-3
    )


def test_large_isotropic_systems_reach_the_gaussian_limit():
    # Five harmonic modes, soft at T = 1 / 5.
    temperature, n_sites = 0.3, 1_000_000
    truth = maier_saupe(n_sites, temperature)
    assert n_sites * truth.order_parameter**2 == pytest.approx(
        temperature / (temperature - 0.2), rel=1e-4
    )
    log_z = -2.5 * math.log(1 - 0.2 / temperature)
    assert -truth.free_energy / temperature == pytest.approx(log_z, rel=1e-4)


def test_phases_have_their_weights_at_the_transition():
    # Five modes of the isotropic phase stand against three of the nematic one, whose
    # axis is free: their weights are equal where N (F_iso - F_nem) / T is -ln N + a
    # constant, so that the shift of the transition grows as ln N / N.
    limit = maier_saupe_transition()
    half = limit.order_parameter**2 / 2
    shifts = []
    for n_sites in (10**5, 10**6):
        low, high = (limit.temperature * (1 + k / n_sites) for k in (10, 30))
        temperature = brentq(
            lambda t, n=n_sites: maier_saupe(n, t).order_parameter ** 2 - half,
            low, high, xtol=2e-4 / n_sites,
        )  # fmt: skip
        shifts.append(n_sites * (temperature / limit.temperature - 1))
    assert shifts[0] < 25
    slope = limit.temperature / (limit.order_parameter**2 / 2)
    assert shifts[1] - shifts[0] == pytest.approx(slope * math.log(10), rel=0.01)


def test_density_of_the_field_has_the_shape_that_samplers_rely_on():
    # Falls with y and is convex in u: over many fields, from weak to strong.
    y = np.linspace(0, 2, 60)
    for temperature in (1e-3, 0.05, 0.22, 3.0):
        u = np.linspace(-0.999, 3.0, 80)[:, None]
        depth = _maier_saupe.field_depth(1, temperature, u, y)
        assert (np.diff(depth, axis=1) < 1e-14 / temperature).all()
        assert (np.diff(depth, 2, axis=0) > -1e-14 / temperature).all()
        reach = _maier_saupe.depth_reach(1000, temperature, u.ravel(), 45.0)
        at_reach = _maier_saupe.field_depth(1000, temperature, u.ravel(), reach)
        fall = 1000 * depth[:, 0] - at_reach
        inside = reach < 2
        np.testing.assert_allclose(fall[inside], 45, rtol=0.01)
        assert (fall[~inside] <= 45).all()


def test_field_has_the_eigenvalues_it_names():
    u, y, temperature = np.array([0.3, -0.5]), np.array([0.7, 1.9]), 0.21
    tilt, second, third = _maier_saupe.field_gaps(temperature, u, y)
    phi = np.arccos(1 - y) / 3
    angles = np.array([0, -2, 2])[:, None] * math.pi / 3 + phi
    a = (1 + u) / temperature * np.cos(angles)
    np.testing.assert_allclose(a[0] - a[1], second)
    np.testing.assert_allclose(a[0] - a[2], third)
    np.testing.assert_allclose(tilt, 1 - np.cos(phi))
    depth = _maier_saupe.field_depth(7, temperature, u, y)
    expected = 7 * (log_normalizer(a.T) - (1 + u) / temperature)
    np.testing.assert_allclose(depth, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ((0, 1.0), "n_sites"),
        ((2.5, 1.0), "n_sites"),
        ((10**8 + 1, 1.0), "n_sites"),
        ((8, 0.0), "temperature"),
        ((8, -1.0), "temperature"),
        ((8, np.nan), "temperature"),
        ((8, "hot"), "temperature"),
    ],
)
def test_bad_input_is_named(arguments, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of maier_saupe"):
        maier_saupe(*arguments)
    if name == "temperature":
        with pytest.raises(ValueError, match="parameter of maier_saupe_limit"):
            maier_saupe_limit(arguments[1])
