import pickle

import numpy as np
import pytest

from skident._kernels.hopfield import relabel
from skident._kernels.streams import seed_stream
from skident._math import hopfield as sums
from skident.datasets import make_hopfield, make_patterns
from skident.datasets._hopfield_chains import hopfield_chains, ladder, pack
from skident.exact import hopfield

METHODS = ["exact", "tempering"]
# Standard deviations of a mean: every seed but about one in ten millions.
SIGMAS = 5.7


def energy_of(patterns):
    patterns = patterns.astype(float)
    return lambda s: -((patterns @ s) ** 2).sum() / (2 * patterns.shape[1])


def standard_error(values):
    return values.std(axis=0) / np.sqrt(len(values))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "n_patterns, n_sites, temperature",
    [
        (1, 9, 0.5), (2, 10, 0.3), (3, 11, 0.5), (4, 8, 0.7), (5, 10, 0.3), (3, 9, 2.0),
        (6, 4, 0.8), (2, 1, 1.0),
    ],
)  # fmt: skip
def test_every_state_has_its_probability(
    assert_boltzmann, method, n_patterns, n_sites, temperature
):
    patterns = make_patterns(n_patterns, n_sites, random_state=n_sites)
    X, y, info = make_hopfield(
        20_000, patterns, temperature=temperature, method=method, return_info=True,
        random_state=0,
    )  # fmt: skip
    assert info.method == method
    assert_boltzmann(X, energy_of(patterns), temperature)
    np.testing.assert_allclose(y, X.astype(float) @ patterns.T / n_sites)
    energies = [energy_of(patterns)(s) for s in X[:50].astype(float)]
    np.testing.assert_allclose(info.energies[:50], energies)


@pytest.mark.parametrize("kind", ["alike", "reversed", "orthogonal"])
@pytest.mark.parametrize("method", METHODS)
def test_special_patterns(assert_boltzmann, method, kind):
    one = make_patterns(1, 8, random_state=0)
    patterns = {
        "alike": np.vstack([one, one]),
        "reversed": np.vstack([one, -one]),
        "orthogonal": np.array([[1] * 8, [1, -1] * 4, [1, 1, -1, -1] * 2]),
    }[kind]
    X, _ = make_hopfield(
        30_000, patterns, temperature=0.9, method=method, random_state=1
    )
    assert_boltzmann(X, energy_of(patterns), 0.9)


@pytest.mark.parametrize("temperature", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("n_patterns", [2, 3, 4])
@pytest.mark.parametrize("method", METHODS)
def test_wells_of_64_sites_are_occupied_as_they_should(method, n_patterns, temperature):
    patterns = make_patterns(n_patterns, 64, random_state=n_patterns)
    truth = hopfield(patterns, temperature)
    n = 1500 if method == "tempering" else 20_000
    _, y, info = make_hopfield(
        n, patterns, temperature=temperature, method=method, return_info=True,
        random_state=0,
    )  # fmt: skip
    size = abs(y)
    wells = (size == size.max(axis=1, keepdims=True)).astype(float)
    wells /= wells.sum(axis=1, keepdims=True)
    # Errors of a binomial share by its true value, with one count for what is rare.
    error = np.sqrt(truth.wells * (1 - truth.wells) / n)
    assert (abs(wells.mean(axis=0) - truth.wells) < SIGMAS * error + 10 / n).all()
    for values, expected in (
        (y, 0),
        (size, truth.abs_overlaps),
        (y**2, truth.square_overlaps),
        (info.energies / 64, truth.energy),
    ):
        error = SIGMAS * standard_error(values) + 10 / n
        assert (abs(values.mean(axis=0) - expected) < error).all()


def cell(overlaps):
    """Which well, which sign, how deep; half units break ties."""
    n_patterns = overlaps.shape[1]
    best = (abs(overlaps) - 1e-6 * np.arange(n_patterns)).argmax(axis=1)
    value = overlaps[np.arange(len(overlaps)), best]
    depth = np.minimum((abs(value) * 19.999).astype(int), 19)
    return (best * 2 + (value > 0)) * 20 + depth


def check_overlaps(assert_distribution, method, n_patterns, temperature, seed, n):
    """Distribution of well and depth at 64 sites against the class sum."""
    patterns = make_patterns(n_patterns, 64, random_state=2)
    terms = sums.class_sum(patterns)
    counts = sums.count_levels(terms.levels, sums.class_binomials(terms.classes.sizes))
    cdf = sums.cumulated(terms, 1 / temperature, counts)
    v = np.hstack([v for v, _ in sums.blocks_of_terms(terms, counts)]).T / 64
    p = np.diff(cdf, prepend=0) / 2
    n_cells = n_patterns * 2 * 20
    p = np.bincount(cell(v), p, n_cells) + np.bincount(cell(-v), p, n_cells)
    _, y = make_hopfield(
        n, patterns, temperature=temperature, method=method, random_state=seed
    )
    assert_distribution(np.bincount(cell(y), minlength=n_cells), p)


@pytest.mark.parametrize("temperature", [0.3, 0.7, 1.1])
@pytest.mark.parametrize("method", METHODS)
def test_overlaps_of_64_sites_have_their_distribution(
    assert_distribution, method, temperature
):
    check_overlaps(assert_distribution, method, 4, temperature, 0, 5000)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(20))
def test_overlaps_for_many_seeds(assert_distribution, method, seed):
    check_overlaps(assert_distribution, method, 4, 0.3, seed, 10_000)


@pytest.mark.parametrize("method", METHODS)
def test_sites_of_one_class_are_alike(method):
    # All pairs of sites of a class have the same correlation. At most 1000 pairs.
    patterns = make_patterns(3, 64, random_state=0)
    X, _ = make_hopfield(
        20_000, patterns, temperature=1.2, method=method, random_state=0
    )
    classes = sums.site_classes(patterns)
    turned = (X * classes.gauge).astype(float)[:, classes.sites]
    correlation = turned.T @ turned / len(X)
    first = np.cumsum(classes.sizes) - classes.sizes
    for a, b in zip(first, classes.sizes, strict=True):
        block = correlation[a : a + b, a : a + b]
        values = block[np.triu_indices(b, 1)]
        assert abs(values - values.mean()).max() < 6.5 / np.sqrt(len(X))


@pytest.mark.parametrize("method", METHODS)
def test_turning_sites_over_does_not_change_the_overlaps(method):
    # The gauge symmetry of the model: patterns and spins turned over together.
    patterns = make_patterns(3, 70, random_state=0)
    turn = make_patterns(1, 70, random_state=1)
    arguments = {"temperature": 0.6, "method": method, "random_state": 0}
    X, y = make_hopfield(20, patterns, **arguments)
    turned_X, turned_y = make_hopfield(20, patterns * turn, **arguments)
    np.testing.assert_array_equal(turned_y, y)
    np.testing.assert_array_equal(turned_X, X * turn)


def test_relabelling_keeps_the_distribution(assert_boltzmann):
    # Alone, from exact draws: with few sites many overlaps tie.
    patterns = make_patterns(4, 6, random_state=0)
    X, y = make_hopfield(60_000, patterns, temperature=1.0, random_state=0)
    before = X.copy()
    spins, v = pack(X), np.rint(6 * y).astype(np.int64)
    state = np.empty(4, np.uint64)
    seed_stream(np.uint64(1), 0, state)
    turned, trial = np.empty(1, np.uint64), np.empty(4, np.int64)
    for s, overlaps in zip(spins, v, strict=True):
        relabel(pack(patterns), 6, 1.0, state, s, overlaps, turned, trial)
    X = (2 * ((spins >> np.arange(6, dtype=np.uint64)) & np.uint64(1))).astype(int) - 1
    assert (X != before).any(axis=1).mean() > 0.1
    assert_boltzmann(X, energy_of(patterns), 1.0)


def test_half_load_at_low_temperature_is_in_equilibrium(monkeypatch):
    # The burn-in was measured (no warning), and three times as much changes nothing.
    patterns = make_patterns(16, 32, random_state=0)
    energies = []
    for times in (8, 24):
        monkeypatch.setattr("skident.datasets._pilot._BURN_IN_TIMES", times)
        *_, info = make_hopfield(
            200, patterns, temperature=0.3, return_info=True, random_state=times
        )
        assert info.method == "tempering"
        assert info.burn_in >= times * info.tau_int
        energies.append(info.energies)
    assert info.temperatures[0] == 0.3
    assert info.temperatures[-1] > 1 + np.sqrt(0.5)
    assert 0.2 < info.acceptance < 0.9
    first, second = energies
    error = np.hypot(standard_error(first), standard_error(second))
    assert abs(first.mean() - second.mean()) < SIGMAS * error


@pytest.mark.slow
def test_half_load_of_64_sites_agrees_with_long_runs():
    patterns = make_patterns(32, 64, random_state=0)
    _, y, info = make_hopfield(
        2000, patterns, temperature=0.3, return_info=True, random_state=0
    )
    chains = hopfield_chains(patterns, 0.3)
    # Twenty times the burn-in, from ordered starts.
    state = chains.start(np.uint64(7), 0, 500, True)
    chains.advance(state, 20 * info.burn_in)
    _, long_y, energies = chains.read(state)
    for ours, other in ((info.energies, energies), (y**2, long_y**2)):
        error = np.hypot(standard_error(ours), standard_error(other))
        assert (abs(ours.mean(axis=0) - other.mean(axis=0)) < SIGMAS * error).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", [1e-100, 1e-3])
def test_coldest_temperature_is_the_ground_states(method, temperature):
    patterns = make_patterns(2, 20, random_state=0)
    _, y, info = make_hopfield(
        200, patterns, temperature=temperature, method=method, return_info=True,
        random_state=0,
    )  # fmt: skip
    truth = hopfield(patterns, temperature)
    np.testing.assert_allclose(info.energies, 20 * truth.energy)
    assert abs(y).max(axis=1).min() == 1.0
    # Both patterns are ground states, in turn.
    share = (abs(y[:, 0]) == 1).mean()
    assert abs(share - 0.5) < SIGMAS * 0.5 / np.sqrt(200)


@pytest.mark.parametrize("method", METHODS)
def test_infinite_temperature_is_independent(method):
    patterns = make_patterns(2, 20, random_state=0)
    X, y = make_hopfield(
        4000, patterns, temperature=np.inf, method=method, random_state=0
    )
    # Independent spins: var of an overlap is 1 / N, its square has variance 2 / N^2.
    assert (y**2).mean() == pytest.approx(1 / 20, abs=6 * np.sqrt(2 / 8000) / 20)
    assert abs(X.astype(float).mean()) < 6 / np.sqrt(X.size)


def test_several_draws_of_a_chain():
    patterns = make_patterns(3, 30, random_state=0)
    arguments = {"temperature": 0.8, "method": "tempering", "random_state": 0}
    X, y, info = make_hopfield(
        3000, patterns, draws_per_chain=50, return_info=True, **arguments
    )
    truth = hopfield(patterns, 0.8)
    assert info.spacing == np.ceil(info.tau_int)
    assert 300 < info.ess < 3000
    for values, expected in (
        (y**2, truth.square_overlaps),
        (info.energies / 30, truth.energy),
    ):
        error = values.std(axis=0) / np.sqrt(info.ess)
        assert (abs(values.mean(axis=0) - expected) < SIGMAS * error).all()
    single, _ = make_hopfield(60, patterns, **arguments)
    np.testing.assert_array_equal(single, X[::50])


def test_auto_is_exact_where_the_sum_is_short():
    for n_patterns, method in ((4, "exact"), (6, "tempering")):
        patterns = make_patterns(n_patterns, 64, random_state=0)
        *_, info = make_hopfield(
            5, patterns, temperature=1.5, return_info=True, random_state=0
        )
        assert info.method == method
    assert info.temperatures.tolist() == [1.5]


def test_too_long_an_exact_sum_is_refused():
    patterns = make_patterns(8, 64, random_state=0)
    with pytest.raises(
        ValueError, match=r"terms, more than .*: take method='tempering'"
    ):
        make_hopfield(5, patterns, temperature=1.0, method="exact")


def test_temperatures_are_few_and_close_enough():
    # Exchanges are accepted: about half of them, also where all is frozen.
    for temperature in (1e-100, 0.05, 0.3, 1.0):
        temperatures = ladder(temperature, 16, 64)
        assert temperatures[0] == temperature
        assert (np.diff(temperatures) > 0).all()
        assert len(temperatures) < 30
        chains = hopfield_chains(make_patterns(16, 64, random_state=0), temperature)
        state = chains.start(np.uint64(3), 0, 20, False)
        chains.advance(state, 10)
        assert 0.2 < chains.acceptance(state) <= 1.0
    assert ladder(3.0, 16, 64).tolist() == [3.0]


def test_chains_keep_their_promises():
    patterns = make_patterns(3, 70, random_state=0)
    chains = pickle.loads(pickle.dumps(hopfield_chains(patterns, 0.5)))
    for cold in (False, True):
        some = chains.start(np.uint64(1), 5, 4, cold)
        assert chains.acceptance(some) == 1.0
        rows, y, energies = chains.read(some)
        if cold:
            assert abs(y).max(axis=1).tolist() == [1.0] * 4
        chains.advance(some, 3)
        rows, y, energies = chains.read(some)
        assert rows.dtype == np.int8
        np.testing.assert_allclose(y, rows.astype(float) @ patterns.T / 70)
        np.testing.assert_allclose(energies, [energy_of(patterns)(s) for s in rows])
        seen = chains.observe(some)
        np.testing.assert_allclose(seen[:, 0], energies)
        np.testing.assert_allclose(seen[:, 1:], (70 * y) ** 2)
        # Chain 7 is the same whoever runs beside it.
        alone = chains.start(np.uint64(1), 7, 1, cold)
        chains.advance(alone, 2)
        chains.advance(alone, 1)
        np.testing.assert_array_equal(chains.read(alone)[0][0], rows[2])


@pytest.mark.parametrize(
    "patterns, message",
    [
        (np.ones(4), r"patterns must have shape \(n_patterns, n_sites\), got \(4,\)"),
        (np.ones((0, 4)), r"got \(0, 4\)"),
        ([[1, -1], [1, 0]], "-1 and 1 only, got .*0.* in row 1, column 1"),
        ([[1.0, np.nan]], "got .*nan.* in row 0, column 1"),
        ("words", "'patterns' parameter"),
    ],
)  # fmt: skip
def test_bad_patterns_are_named(patterns, message):
    with pytest.raises(ValueError, match=message):
        make_hopfield(3, patterns, temperature=1.0)


@pytest.mark.parametrize(
    "changes",
    [{"method": "gibbs"}, {"draws_per_chain": 0}, {"spacing": "far"}, {"spacing": 0}],
)
def test_bad_choices_are_named(changes):
    patterns = make_patterns(2, 8, random_state=0)
    with pytest.raises(ValueError, match=f"'{next(iter(changes))}' parameter"):
        make_hopfield(3, patterns, temperature=1.0, **changes)
