import numpy as np
import pytest

from skident.datasets import make_hopfield, make_patterns


def energy_of(patterns):
    patterns = patterns.astype(float)
    return lambda s: -((patterns @ s) ** 2).sum() / (2 * patterns.shape[1])


@pytest.mark.parametrize(
    "n_patterns, n_sites, temperature",
    [(1, 9, 0.5), (2, 10, 0.3), (3, 11, 0.5), (4, 8, 0.7), (5, 10, 0.3), (3, 9, 2.0)],
)
def test_every_state_has_its_probability(
    assert_boltzmann, n_patterns, n_sites, temperature
):
    patterns = make_patterns(n_patterns, n_sites, random_state=n_sites)
    X, y, info = make_hopfield(
        40_000, patterns, temperature=temperature, return_info=True, random_state=0
    )
    assert_boltzmann(X, energy_of(patterns), temperature)
    np.testing.assert_allclose(y, X.astype(float) @ patterns.T / n_sites)
    energies = [energy_of(patterns)(s) for s in X[:50].astype(float)]
    np.testing.assert_allclose(info.energies[:50], energies)


@pytest.mark.parametrize("temperature", [0.4, 0.7])
def test_two_symmetric_wells_are_visited_equally(assert_distribution, temperature):
    # With two patterns s -> s * pattern_1 * pattern_2 is a symmetry: four equal wells.
    patterns = make_patterns(2, 64, random_state=1)
    _, y = make_hopfield(8000, patterns, temperature=temperature, random_state=1)
    best = abs(y).argmax(axis=1)
    sign = y[np.arange(len(y)), best] > 0
    tie = abs(y[:, 0]) == abs(y[:, 1])
    counts = np.bincount(2 * best[~tie] + sign[~tie], minlength=4)
    assert_distribution(counts, np.full(4, 0.25))


def overlap_distribution(patterns, temperature):
    """Exact distribution of the overlaps by summing over classes of equal columns."""
    columns, sizes = np.unique((patterns * patterns[0]).T, axis=0, return_counts=True)
    v, weights = np.zeros((1, patterns.shape[0])), np.ones(1)
    for column, size in zip(columns, sizes, strict=True):
        k = np.arange(size + 1)
        binomial = np.cumprod(np.r_[1.0, (size - k[:-1]) / (k[:-1] + 1)])
        v = (v[:, None] + np.outer(2 * k - size, column)).reshape(-1, v.shape[1])
        weights = np.outer(weights, binomial).ravel()
    n_sites = patterns.shape[1]
    log_p = np.log(weights) + (v**2).sum(axis=1) / (2 * n_sites * temperature)
    p = np.exp(log_p - log_p.max())
    return v / n_sites, p / p.sum()


def check_wells(assert_distribution, temperature, seed):
    patterns = make_patterns(3, 64, random_state=2).astype(int)
    _, y = make_hopfield(10_000, patterns, temperature=temperature, random_state=seed)
    exact_y, p = overlap_distribution(patterns, temperature)

    def cell(overlaps):
        # Which well, which sign, how deep: 3 * 2 * 5 cells; half units break ties.
        best = (abs(overlaps) - 1e-6 * np.arange(3)).argmax(axis=1)
        value = overlaps[np.arange(len(overlaps)), best]
        depth = np.minimum((abs(value) * 4.999).astype(int), 4)
        return (best * 2 + (value > 0)) * 5 + depth

    assert_distribution(
        np.bincount(cell(y), minlength=30), np.bincount(cell(exact_y), p, 30)
    )
    energy = -32 * (y**2).sum(axis=1)
    exact = p @ (-32 * (exact_y**2).sum(axis=1))
    assert abs(energy.mean() - exact) < 5.7 * energy.std() / np.sqrt(len(energy))


@pytest.mark.parametrize("temperature", [0.3, 0.7, 1.1])
def test_wells_of_64_sites_have_their_probabilities(assert_distribution, temperature):
    check_wells(assert_distribution, temperature, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_wells_for_many_seeds(assert_distribution, seed):
    check_wells(assert_distribution, 0.5, seed)


def test_turning_sites_over_does_not_change_the_overlaps():
    # The gauge symmetry of the model: patterns and spins turned over together.
    patterns = make_patterns(3, 70, random_state=0)
    turn = make_patterns(1, 70, random_state=1)
    X, y = make_hopfield(20, patterns, temperature=0.6, random_state=0)
    turned_X, turned_y = make_hopfield(
        20, patterns * turn, temperature=0.6, random_state=0
    )
    np.testing.assert_array_equal(turned_y, y)
    np.testing.assert_array_equal(turned_X, X * turn)


def test_half_load_at_low_temperature_is_in_equilibrium(monkeypatch):
    # The burn-in was measured (no warning), and three times as much changes nothing.
    patterns = make_patterns(16, 32, random_state=0)
    energies = []
    for times in (8, 24):
        monkeypatch.setattr("skident.datasets._chains._BURN_IN_TIMES", times)
        *_, info = make_hopfield(
            200, patterns, temperature=0.3, return_info=True, random_state=times
        )
        assert info.burn_in >= times * info.tau_int
        energies.append(info.energies)
    assert info.temperatures[0] == 0.3
    assert info.temperatures[-1] > 1 + np.sqrt(0.5)
    first, second = energies
    error = np.hypot(first.std(), second.std()) / np.sqrt(200)
    assert abs(first.mean() - second.mean()) < 5.7 * error


def test_extreme_temperatures():
    patterns = make_patterns(2, 20, random_state=0)
    _, cold = make_hopfield(50, patterns, temperature=1e-3, random_state=0)
    assert abs(cold).max(axis=1).min() == 1.0
    X, y = make_hopfield(4000, patterns, temperature=np.inf, random_state=0)
    # Independent spins: var of an overlap is 1 / N, its square has variance 2 / N^2.
    assert (y**2).mean() == pytest.approx(1 / 20, abs=6 * np.sqrt(2 / 8000) / 20)
    assert abs(X.astype(float).mean()) < 6 / np.sqrt(X.size)


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
