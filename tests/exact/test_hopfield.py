import itertools
import math

import numpy as np
import pytest
from scipy.linalg import hadamard

from skident.datasets import make_patterns
from skident.exact import curie_weiss, hopfield

PATTERNS = {
    "one site": np.ones((1, 1)),
    "one site, three patterns": np.array([[1], [-1], [1]]),
    "one pattern": make_patterns(1, 9, random_state=0),
    "two": make_patterns(2, 10, random_state=1),
    "three": make_patterns(3, 11, random_state=2),
    "four": make_patterns(4, 14, random_state=3),
    "more than sites": make_patterns(11, 5, random_state=4),
    "orthogonal": hadamard(8)[:5],
    "alike": np.vstack([make_patterns(1, 8, random_state=5)] * 3),
    "reversed": make_patterns(2, 12, random_state=6)[[0, 1, 0]] * [[1], [1], [-1]],
}


def entropy_of(p):
    p = p[p > 0]
    return -(p @ np.log(p))


def enumerate_all(patterns, temperature):
    """Everything by its definition, over all configurations."""
    n_sites = patterns.shape[1]
    states = np.array(list(itertools.product((-1, 1), repeat=n_sites)), dtype=float)
    m = states @ patterns.T / n_sites
    energies = -n_sites * (m**2).sum(axis=1) / 2
    weights = np.exp(-energies / temperature)
    p = weights / weights.sum()
    joint = p.reshape(2 ** (n_sites // 2), -1)
    size = abs(m)
    leading = np.isclose(size, size.max(axis=1, keepdims=True))
    entropy = entropy_of(p)
    parts = entropy_of(joint.sum(axis=1)) + entropy_of(joint.sum(axis=0))
    return {
        "energy": p @ energies / n_sites,
        "free_energy": -temperature * np.log(weights.sum()),
        "entropy": entropy,
        "total_correlation": n_sites * np.log(2) - entropy,
        "bipartite_information": parts - entropy,
        "order_parameter": np.sqrt(p @ (m**2).sum(axis=1)),
        "abs_overlaps": p @ size,
        "square_overlaps": p @ m**2,
        "susceptibility": n_sites * (p @ m**2),
        "binder": 1 - (p @ m**4) / (3 * (p @ m**2) ** 2),
        "largest_overlap": p @ size.max(axis=1),
        "wells": p @ (leading / leading.sum(axis=1, keepdims=True)),
    }


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("temperature", [0.1, 0.4, 1.0, 3.0])
def test_agrees_with_enumeration(name, temperature):
    patterns = PATTERNS[name]
    truth = hopfield(patterns, temperature)
    expected = enumerate_all(patterns, temperature)
    assert expected.keys() == set(truth._fields)
    for field, value in expected.items():
        np.testing.assert_allclose(
            getattr(truth, field), value, rtol=1e-9, atol=1e-10, err_msg=field
        )


@pytest.mark.parametrize("n_sites", [1, 2, 7, 64, 1001])
@pytest.mark.parametrize("temperature", [1e-100, 0.3, 1.0, 2.5, np.inf])
def test_one_pattern_is_the_curie_weiss_model(n_sites, temperature):
    pattern = make_patterns(1, n_sites, random_state=n_sites)
    truth = curie_weiss(n_sites, temperature)
    for patterns, colder in ((pattern, 1), (np.vstack([pattern, -pattern]), 2)):
        # The same pattern twice is the model at half the temperature.
        ours = hopfield(patterns, colder * temperature)
        same = pytest.approx(truth.energy * colder, rel=1e-12)
        assert ours.energy == same
        assert ours.free_energy == pytest.approx(truth.free_energy * colder, rel=1e-12)
        for name in ("entropy", "total_correlation", "bipartite_information"):
            same = pytest.approx(getattr(truth, name), rel=1e-12, abs=1e-10)
            assert getattr(ours, name) == same
        for name, single in (
            ("abs_overlaps", "abs_magnetization"),
            ("susceptibility", "susceptibility"),
            ("binder", "binder"),
        ):
            same = pytest.approx(getattr(truth, single), rel=1e-12, abs=1e-12)
            assert getattr(ours, name)[0] == same
        assert ours.order_parameter == pytest.approx(
            truth.order_parameter * math.sqrt(colder), rel=1e-12
        )


@pytest.mark.parametrize("n_patterns", [3, 4])
def test_thermodynamic_identities_at_64_sites(n_patterns):
    # S = -dF/dT and E = d(F / T) / d(1 / T), by central differences.
    patterns = make_patterns(n_patterns, 64, random_state=n_patterns)
    t, step = 0.7, 1e-4
    low, middle, high = (hopfield(patterns, x) for x in (t - step, t, t + step))
    slope = (high.free_energy - low.free_energy) / (2 * step)
    assert middle.entropy == pytest.approx(-slope, rel=1e-6)
    assert middle.free_energy == pytest.approx(
        64 * middle.energy - t * middle.entropy, rel=1e-12
    )
    assert middle.energy == pytest.approx(-middle.square_overlaps.sum() / 2)
    assert middle.wells.sum() == pytest.approx(1)
    # Each half holds at least the sign, and not more than half the correlation.
    assert 0 < middle.bipartite_information < middle.total_correlation


def test_symmetries():
    patterns = make_patterns(4, 40, random_state=0)
    truth = hopfield(patterns, 0.6)
    turn = make_patterns(1, 40, random_state=1)
    signs = np.array([[1], [-1], [-1], [1]])
    same = hopfield(patterns * turn * signs, 0.6)
    for ours, other in zip(truth, same, strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-10)
    order = [2, 0, 3, 1]
    turned = hopfield(patterns[order], 0.6)
    for name, ours in truth._asdict().items():
        expected = ours[order] if np.ndim(ours) else ours
        np.testing.assert_allclose(getattr(turned, name), expected, rtol=1e-10)


def test_large_system_reaches_the_mean_field_limit():
    # Orthogonal patterns: one is retrieved, with m = tanh(m / T).
    first = np.ones(4000)
    second = np.repeat([1, -1], 2000)
    truth = hopfield([first, second], 0.5)
    m = 1.0
    for _ in range(100):
        m = math.tanh(m / 0.5)
    assert truth.largest_overlap == pytest.approx(m, abs=1e-3)
    assert truth.energy == pytest.approx(-(m**2) / 2, abs=2e-3)
    assert truth.wells == pytest.approx([0.5, 0.5])
    # v_1^2 + v_2^2 is a sum over the halves, which are then independent.
    assert truth.bipartite_information == pytest.approx(0, abs=1e-8)


def test_too_long_an_information_is_none():
    truth = hopfield(make_patterns(2, 1200, random_state=0), 0.9)
    assert truth.bipartite_information is None


def test_infinite_temperature_is_independent():
    truth = hopfield(make_patterns(3, 50, random_state=0), np.inf)
    assert truth.entropy == pytest.approx(50 * math.log(2))
    assert truth.total_correlation == pytest.approx(0, abs=1e-10)
    assert truth.bipartite_information == pytest.approx(0, abs=1e-10)
    assert truth.free_energy == -math.inf
    assert truth.susceptibility == pytest.approx(np.ones(3))


@pytest.mark.parametrize("temperature", [1e-100, 1e-20, 1e-3])
def test_cold_model_has_its_ground_states(temperature):
    # Orthogonal patterns: four ground states, whose overlaps are exactly 0 and 1.
    truth = hopfield(hadamard(64)[[1, 2]], temperature)
    assert truth.entropy == pytest.approx(math.log(4), abs=1e-9)
    assert truth.energy == pytest.approx(-0.5)
    assert truth.free_energy == pytest.approx(-32 - temperature * math.log(4))
    assert truth.wells == pytest.approx([0.5, 0.5])
    assert truth.largest_overlap == pytest.approx(1)
    # Each half knows which of them it is.
    assert truth.bipartite_information == pytest.approx(math.log(4), abs=1e-8)


def test_a_pattern_that_is_not_felt_has_no_cumulant():
    # Three times the same pattern, and one orthogonal to it.
    truth = hopfield(hadamard(16)[[1, 1, 1, 2]], 1e-100)
    assert truth.square_overlaps[3] == 0
    assert truth.binder[3] == 0
    np.testing.assert_allclose(truth.wells, [1 / 3, 1 / 3, 1 / 3, 0])


@pytest.mark.slow
def test_five_patterns_of_64_sites():
    patterns = make_patterns(5, 64, random_state=0)
    truth = hopfield(patterns, 0.7)
    assert np.isfinite(np.hstack(truth)).all()
    assert truth.free_energy == pytest.approx(
        64 * truth.energy - 0.7 * truth.entropy, rel=1e-12
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((np.ones(4), 1.0), r"shape \(n_patterns, n_sites\), got \(4,\)"),
        (([[1, -1], [1, 0]], 1.0), "-1 and 1 only, got .*0.* in row 1, column 1"),
        ((np.ones((2, 3)), 0.0), "'temperature' parameter of hopfield"),
        ((np.ones((2, 3)), np.nan), "'temperature' parameter of hopfield"),
        ((make_patterns(7, 64, random_state=0), 1.0), r"terms, more than 1e\+08"),
        (
            (make_patterns(90, 3000, random_state=0), 1.0),
            "over 1e308 .*got 90.*got 3000",
        ),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        hopfield(*arguments)
