import itertools
import math

import numpy as np
import pytest

from skident.exact import curie_weiss

# N = 64: T, bipartite information, <|m|>, N<m^2>, Binder, total correlation, <s_i s_j>.
# The digits printed are those of an independent computation; 4-digit entries of the
# last three columns are rounded to what is given.
TABLE = [
    (0.5, ".699", ".9536", "58.316", ".6642", "36.63", ".9098"),
    (0.8, ".870", ".6382", "28.443", ".5892", "14.21", ".4356"),
    (0.9, ".771", ".4450", "15.817", ".4595", "6.747", ".2352"),
    (1.0, ".553", ".3204", "9.110", ".3146", "3.189", ".1287"),
    (1.1, ".386", ".2543", "6.056", ".2113", "1.725", ".0802"),
    (1.25, ".241", ".2042", "4.046", ".1270", ".861", ".0484"),
    (1.5, ".131", ".1672", "2.767", ".0706", ".387", ".0281"),
]
COLUMNS = (
    "bipartite_information",
    "abs_magnetization",
    "susceptibility",
    "binder",
    "total_correlation",
    "pair_correlation",
)


def printed(value, digits):
    decimals = len(digits.split(".")[1])
    # 4.0465 is printed 4.046: half a unit of the last digit, plus a hair.
    return abs(value - float(digits)) <= 0.5001 * 10.0**-decimals


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"T={row[0]}")
def test_table_of_64_sites(row):
    truth = curie_weiss(64, row[0])
    for column, digits in zip(COLUMNS, row[1:], strict=True):
        assert printed(getattr(truth, column), digits), column


@pytest.mark.parametrize(
    "temperature, log_z, energy, entropy",
    [
        (0.8, "47.9251", "-.222209", "30.1483"),
        (1.0, "45.7271", "-.071170", "41.1722"),
        (1.25, "45.1191", "-.031613", "43.5006"),
    ],
)
def test_thermodynamics_of_64_sites(temperature, log_z, energy, entropy):
    truth = curie_weiss(64, temperature)
    assert printed(-truth.free_energy / temperature, log_z)
    assert printed(truth.energy, energy)
    assert printed(truth.entropy, entropy)


def enumerate_all(n, temperature, field):
    states = np.array(list(itertools.product((-1, 1), repeat=n)), dtype=float)
    M = states.sum(axis=1)
    energies = -(M**2) / (2 * n) - field * M
    weights = np.exp(-energies / temperature)
    return states, energies, weights / weights.sum(), weights.sum()


def entropy_of(p):
    p = p[p > 0]
    return -(p @ np.log(p))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("temperature", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("field", [0.0, 0.3, -1.0])
def test_agrees_with_enumeration(n, temperature, field):
    truth = curie_weiss(n, temperature, field)
    states, energies, p, z = enumerate_all(n, temperature, field)
    m = states.mean(axis=1)
    half = n // 2
    left = np.bincount(np.arange(2**n) >> (n - half), p)
    right = np.bincount(np.arange(2**n) & (2 ** (n - half) - 1), p)
    up = p @ (states[:, 0] > 0)
    single = entropy_of(np.array([up, 1 - up]))
    expected = {
        "magnetization": p @ m,
        "abs_magnetization": p @ abs(m),
        "susceptibility": n * (p @ m**2),
        "binder": 1 - (p @ m**4) / (3 * (p @ m**2) ** 2),
        "energy": p @ energies / n,
        "free_energy": -temperature * np.log(z),
        "entropy": entropy_of(p),
        "total_correlation": n * single - entropy_of(p),
        "bipartite_information": entropy_of(left) + entropy_of(right) - entropy_of(p),
        "order_parameter": np.sqrt(p @ m**2),
    }
    if n > 1:
        expected["pair_correlation"] = p @ (states[:, 0] * states[:, 1])
    else:
        assert truth.pair_correlation is None
    for name, value in expected.items():
        assert getattr(truth, name) == pytest.approx(value, rel=1e-9, abs=1e-10), name


def test_large_systems_reach_the_mean_field_limit():
    # m = tanh((m + B) / T), corrections of order 1 / N.
    truth = curie_weiss(100_000, 0.5, 0.1)
    m = 1.0
    for _ in range(200):
        m = math.tanh((m + 0.1) / 0.5)
    assert truth.magnetization == pytest.approx(m, abs=1e-5)
    assert truth.energy == pytest.approx(-(m**2) / 2 - 0.1 * m, abs=1e-4)
    # Without a field the sign of the magnetisation is shared by both halves.
    split = curie_weiss(20_000, 0.5)
    assert split.bipartite_information == pytest.approx(math.log(2), abs=0.01)
    # Above the critical point N<m^2> = 1 / (1 - 1 / T).
    assert curie_weiss(100_000, 2.0).susceptibility == pytest.approx(2.0, rel=1e-4)


def test_large_system_at_the_critical_point_is_finite():
    truth = curie_weiss(30_000, 1.0)
    assert np.isfinite(truth).all()
    # <m^2> = sqrt(12 / N) Gamma(3/4) / Gamma(1/4) at the critical point.
    leading = math.sqrt(12 * 30_000) * math.gamma(0.75) / math.gamma(0.25)
    assert truth.susceptibility == pytest.approx(leading, rel=0.01)


def test_infinite_temperature_is_independent():
    truth = curie_weiss(50, np.inf)
    assert truth.entropy == pytest.approx(50 * math.log(2))
    assert truth.total_correlation == pytest.approx(0, abs=1e-10)
    assert truth.bipartite_information == pytest.approx(0, abs=1e-10)
    assert truth.free_energy == -math.inf


def test_coldest_temperature_is_two_ground_states():
    truth = curie_weiss(50, 1e-100)
    assert truth.entropy == pytest.approx(math.log(2))
    assert truth.abs_magnetization == pytest.approx(1.0)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ((0, 1.0), "n_sites"),
        ((2.5, 1.0), "n_sites"),
        ((8, 0.0), "temperature"),
        ((8, -1.0), "temperature"),
        ((8, np.nan), "temperature"),
        ((8, 1.0, np.inf), "field"),
    ],
)
def test_bad_input_is_named(arguments, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of curie_weiss"):
        curie_weiss(*arguments)


@pytest.mark.parametrize("n_sites", [10, 1000])
@pytest.mark.parametrize("temperature", [1e-100, 1e-16, 1e-15, 1e-9, 1e-3])
def test_cold_half_cut_information_is_one_bit(n_sites, temperature):
    truth = curie_weiss(n_sites, temperature)
    assert truth.bipartite_information == pytest.approx(math.log(2), abs=1e-9)
    assert truth.entropy == pytest.approx(math.log(2), abs=1e-9)


def test_field_beyond_the_range_is_refused():
    with pytest.raises(ValueError, match="'field' parameter"):
        curie_weiss(7, 1.0, 1e300)


def test_a_weak_field_is_seen_however_cold():
    assert curie_weiss(64, 1e-20, 1e-18).magnetization == 1.0
    assert curie_weiss(64, 1e-20, 1e-22).magnetization == pytest.approx(np.tanh(0.64))
    assert curie_weiss(64, 1e-20).magnetization == pytest.approx(0, abs=1e-12)
