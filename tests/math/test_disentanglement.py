"""From tables to scores, and the order of rows that no input order matters to."""

import numpy as np
import pytest
from scipy import stats

from skident._math import disentanglement, probes
from skident._math.correlation import correlation_table, match, standard_columns


@pytest.mark.parametrize("seed", range(5))
def test_concentration_is_its_definition(seed):
    table = np.random.default_rng(seed).random((4, 3))
    found = disentanglement.concentration(table)
    for row, value in zip(table, found, strict=True):
        assert value == pytest.approx((row.max() / row.sum() - 1 / 3) / (2 / 3))
    by_entropy = disentanglement.concentration_by_entropy(table)
    for row, value in zip(table, by_entropy, strict=True):
        assert value == pytest.approx(1 - stats.entropy(row, base=3))


@pytest.mark.parametrize(
    "rule", [disentanglement.concentration, disentanglement.concentration_by_entropy]
)
def test_limits_of_concentration(rule):
    table = np.array([[0, 0, 0], [2, 2, 2], [0, 5, 0.0]])
    np.testing.assert_allclose(rule(table), [0, 0, 1], atol=1e-12)
    np.testing.assert_array_equal(rule(np.array([[0.0], [3.0]])), [0, 1])


def test_no_column_has_no_concentration():
    np.testing.assert_array_equal(disentanglement.concentration(np.zeros((2, 0))), 0)


def test_gap_is_between_the_two_largest():
    table = np.array([[1.0, 5, 3], [2, 2, 0]])
    np.testing.assert_array_equal(disentanglement.top_gaps(table), [2, 0])
    np.testing.assert_array_equal(
        disentanglement.top_gaps(table[:, :1], 0.5), [0.5, 1.5]
    )


@pytest.mark.parametrize("n", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_independent_columns_rarely_count_as_dependent(n):
    """In one of 100 tables of 80 pairs."""
    dependent = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        factors = [disentanglement.as_column(rng.integers(3, size=n), True)] * 2
        latents = [disentanglement.as_column(rng.random(n), False) for _ in range(40)]
        shuffles = [rng.permutation(n) for _ in range(20)]
        table = disentanglement.dependence(factors, latents, 10, shuffles)
        assert np.abs(table.bias).max() < 0.1 and table.noise.max() < 0.2
        dependent += disentanglement.normalised(table, factors).any()
    assert dependent <= 1


@pytest.mark.parametrize("seed", range(3))
def test_quantile_classes(seed):
    values = np.random.default_rng(seed).standard_normal(1000)
    codes = disentanglement.quantile_codes(values, 10)
    np.testing.assert_array_equal(np.bincount(codes), 100)
    assert np.all(np.diff(codes[np.argsort(values)]) >= 0)
    grown = disentanglement.quantile_codes(np.exp(values), 10)
    np.testing.assert_array_equal(grown, codes)
    # Equal values share a class, whatever their number.
    few = disentanglement.quantile_codes(
        np.repeat([0.0, 1.0, 2.0], [700, 200, 100]), 10
    )
    np.testing.assert_array_equal(few, np.repeat([0, 1, 2], [700, 200, 100]))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("p", [1, 4])
def test_canonical_order_is_of_the_rows_not_of_their_order_or_basis(seed, p):
    rng = np.random.default_rng(seed)
    latents = rng.laplace(size=(300, p))
    ordered = latents[probes.canonical_order(latents)]
    shuffled = rng.permutation(latents)
    np.testing.assert_array_equal(shuffled[probes.canonical_order(shuffled)], ordered)
    mixed = latents @ rng.standard_normal((p, p)) + 3
    np.testing.assert_array_equal(latents[probes.canonical_order(mixed)], ordered)


@pytest.mark.parametrize("shape", [(20, 30), (20, 12)])
def test_canonical_order_with_more_columns_than_rows_can_tell(shape):
    rng = np.random.default_rng(0)
    latents = rng.standard_normal(shape)
    ordered = latents[probes.canonical_order(latents)]
    order = rng.permutation(20)
    again = latents[order][probes.canonical_order(latents[order] * 2.0)]
    np.testing.assert_array_equal(again, ordered)


def test_canonical_order_of_constant_latents():
    np.testing.assert_array_equal(probes.canonical_order(np.ones((5, 2))), np.arange(5))


def test_codes_by_first_occurrence():
    found = probes.first_come_codes(np.array(["b", "a", "b", "c"]))
    np.testing.assert_array_equal(found, [0, 1, 0, 2])


@pytest.mark.parametrize("seed", range(5))
def test_folds_are_even_and_so_are_classes_in_them(seed):
    rng = np.random.default_rng(seed)
    codes = rng.choice(5, size=123, p=[0.5, 0.3, 0.1, 0.07, 0.03])
    folds = probes.stratified_folds(codes, 4, rng)
    assert np.ptp(np.bincount(folds)) <= 1
    for code in range(5):
        assert np.ptp(np.bincount(folds[codes == code], minlength=4)) <= 1


def test_what_is_far_out_is_brought_back_and_nothing_else_moves():
    rng = np.random.default_rng(0)
    array = rng.laplace(size=(1000, 2))
    np.testing.assert_array_equal(probes.clip_outliers(array), array)
    far = array.copy()
    far[0] = [1e9, -1e9]
    clipped = probes.clip_outliers(far)
    np.testing.assert_array_equal(clipped[1:], array[1:])
    assert np.all(np.abs(clipped[0]) < 30) and np.all(np.abs(clipped[0]) > 10)
    # The same in any unit, and for columns that are mostly one value.
    np.testing.assert_allclose(probes.clip_outliers(-3e5 * far), -3e5 * clipped)
    sparse = np.zeros((100, 1))
    sparse[:5, 0] = [1, 2, 1, 1, 1e6]
    np.testing.assert_array_equal(probes.clip_outliers(sparse)[:5, 0], [1, 2, 1, 1, 25])
    np.testing.assert_array_equal(probes.clip_outliers(np.ones((4, 1))), 1)


@pytest.mark.parametrize("seed", range(3))
def test_rows_far_out_are_pulled_in_the_same_way_in_every_basis(seed):
    rng = np.random.default_rng(seed)
    latents = rng.standard_normal((500, 3))
    np.testing.assert_allclose(
        probes.pull_in(latents) @ probes.pull_in(latents).T,
        white(latents) @ white(latents).T,
        atol=1e-9,
    )
    latents[:2] = [[12, -12, 12], [12, 0, 0]]
    near = probes.pull_in(latents)
    radius = np.linalg.norm(near, axis=1)
    assert radius[:2] == pytest.approx([radius.max()] * 2) and radius.max() < 6
    np.testing.assert_allclose(np.cov(near[2:].T), np.eye(3), atol=0.02)
    mixed = probes.pull_in(latents @ rng.standard_normal((3, 3)) + 5)
    np.testing.assert_allclose(mixed @ mixed.T, near @ near.T, atol=1e-9)


def white(latents):
    return probes.whiten_columns(latents)


def gaussian_mixture(n=4000):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=n)
    return rng.standard_normal(n) + 2.0 * codes, codes, rng


def test_discriminant_reaches_the_best_accuracy():
    latent, codes, rng = gaussian_mixture()
    folds = probes.stratified_folds(codes, 5, rng)
    accuracy = probes.single_latent_accuracy(latent, codes, folds)
    assert accuracy == pytest.approx(stats.norm.cdf(1), abs=0.02)
    exact = probes.single_latent_accuracy(2.0 * codes, codes, folds)
    assert exact == 1.0
    constant = probes.single_latent_accuracy(np.zeros(4000), codes, folds)
    assert constant == pytest.approx(np.bincount(codes).max() / 4000)


def test_table_predicts_the_commonest_of_a_cell():
    codes = np.repeat([0, 1, 1], 40)
    folds = np.arange(120) % 4
    assert probes.table_accuracy(np.repeat([0, 1, 2], 40), codes, folds) == 1.0
    assert probes.table_accuracy(np.zeros(120, int), codes, folds) == 80 / 120
    # Cells that occur once tell of no other row.
    assert probes.table_accuracy(np.arange(120), codes, folds) == 80 / 120


@pytest.mark.parametrize("n, low, high", [(50, 0.0, 0.05), (2000, 0.62, 0.66)])
def test_held_out_variance_explained(n, low, high):
    """30 columns; 0.64 of the variance, which 50 rows are too few to find."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((n, 30))
    noise = rng.standard_normal(n) * (1 if n == 50 else 0.6)
    values = noise if n == 50 else 0.8 * features[:, 0] + noise
    folds = probes.stratified_folds(np.zeros(n, int), 5, rng)
    found = probes.held_out_r2(features, values, folds)
    assert low <= found <= high
    mixed = features @ rng.standard_normal((30, 30)) + 1
    assert probes.held_out_r2(mixed, values, folds) == pytest.approx(found, abs=1e-8)
    assert probes.held_out_r2(np.ones((n, 1)), values, folds) == 0.0


@pytest.mark.parametrize("shape", [(2, 4), (4, 2), (3, 3)])
def test_matching_is_the_best_of_all(shape):
    from itertools import permutations

    table = np.random.default_rng(0).random(shape)
    matching = match(table)
    used = matching[matching >= 0]
    assert len(set(used)) == len(used) == min(shape)
    wide = table if shape[0] <= shape[1] else table.T
    best = max(
        sum(wide[i, j] for i, j in enumerate(p))
        for p in permutations(range(wide.shape[1]), len(wide))
    )
    rows = np.flatnonzero(matching >= 0)
    assert table[rows, matching[rows]].sum() == pytest.approx(best)


def test_correlations_and_the_correlation_ratio():
    rng = np.random.default_rng(0)
    latents = rng.standard_normal((200, 3))
    latents[:, 2] = 5.0
    number, label = rng.standard_normal(200), rng.integers(3, size=200)
    latents[:, 1] += 2 * (label == 1)
    standard = standard_columns(latents)
    table = correlation_table([number, label], [False, True], standard)
    expected = abs(np.corrcoef(number, latents[:, 0])[0, 1])
    assert table[0, 0] == pytest.approx(expected)
    parts = [latents[label == k, 1] for k in range(3)]
    f = stats.f_oneway(*parts).statistic
    assert table[1, 1] ** 2 == pytest.approx(f * 2 / (f * 2 + 197))
    np.testing.assert_array_equal(table[:, 2], 0)
