import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skident._math import information

SIDE = 3
STATES = (np.arange(2**9)[:, None] >> np.arange(9)) & 1


def ising_probabilities(temperature):
    spins = (2.0 * STATES - 1).reshape(-1, SIDE, SIDE)
    energy = -sum((spins * np.roll(spins, 1, axis)).sum((1, 2)) for axis in (1, 2))
    weight = np.exp(-energy / temperature)
    return weight / weight.sum()


def total_correlation(p):
    single = p @ STATES
    columns = -(single * np.log(single) + (1 - single) * np.log1p(-single)).sum()
    return columns + (p * np.log(p)).sum()


def draw(n, temperature, seed):
    rng = np.random.default_rng(seed)
    rows = STATES[rng.choice(len(STATES), n, p=ising_probabilities(temperature))]
    return rows.astype(np.int8), rng.random(n) < 0.5


def no_latents(bits):
    return np.broadcast_to(information.smoothed_means(bits), bits.shape), np.empty(
        (len(bits), 0)
    )


@pytest.mark.parametrize("temperature", [2.0, 3.0, 6.0])
@pytest.mark.parametrize("seed", range(3))
def test_chain_gain_reaches_the_enumerated_total_correlation(temperature, seed):
    bits, halves = draw(20_000, temperature, seed)
    gain = information.chain_gain(bits, *no_latents(bits), halves)
    exact = total_correlation(ising_probabilities(temperature))
    error = gain.std() / np.sqrt(len(gain))
    # never above but by chance; below by the pairwise form of the conditionals (under
    # 5 % here) and by 45 couplings fitted to 10,000 rows
    assert gain.mean() < exact + 5 * error
    assert gain.mean() > 0.95 * exact - 0.01 - 5 * error


@pytest.mark.parametrize("seed", range(3))
def test_chain_gain_of_independent_columns_is_minus_the_cost_of_fitting(seed):
    rng = np.random.default_rng(seed)
    bits = (rng.random((8000, 12)) < 0.3).astype(np.int8)
    gain = information.chain_gain(bits, *no_latents(bits), rng.random(8000) < 0.5)
    error = gain.std() / np.sqrt(len(gain))
    assert abs(gain.mean() + 66 / 8000) < 5 * error + 0.01


@pytest.mark.parametrize("seed", range(3))
def test_chain_gain_vanishes_once_the_common_cause_is_known(seed):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((8000, 1))
    means = expit(z * np.linspace(-2, 2, 12))
    bits = (rng.random(means.shape) < means).astype(np.int8)
    halves = rng.random(8000) < 0.5
    known = information.chain_gain(bits, means, z, halves)
    assert abs(known.mean()) < 0.02 + 5 * known.std() / np.sqrt(8000)
    assert information.chain_gain(bits, *no_latents(bits), halves).mean() > 0.5


def test_chain_gain_of_one_column_is_nothing():
    bits = (np.arange(40) % 3 == 0).astype(np.int8)[:, None]
    gain = information.chain_gain(bits, *no_latents(bits), np.arange(40) < 20)
    np.testing.assert_array_equal(gain, 0)


def test_logistic_regression_equals_scikit_learn():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((300, 4))
    target = (rng.random(300) < expit(features @ [1, -2, 0, 0.5])).astype(np.int8)
    expected = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10).fit(
        features, target
    )
    got = information.fit_logistic(features, target, np.zeros(4))
    np.testing.assert_allclose(got, expected.coef_[0], atol=1e-4)


def test_logistic_regression_of_separable_rows_stays_finite():
    features = np.linspace(-1, 1, 20)[:, None] * 1e3
    weights = information.fit_logistic(
        features, (features[:, 0] > 0).astype(np.int8), np.zeros(1)
    )
    assert 0 < weights[0] < 1


def test_log_probabilities_agree_and_do_not_overflow():
    rng = np.random.default_rng(0)
    bits, p = rng.integers(0, 2, (5, 3)), rng.uniform(0.1, 0.9, (5, 3))
    logits = np.log(p) - np.log1p(-p)
    np.testing.assert_allclose(
        information.bernoulli_log_prob(bits, logits).sum(1),
        information.independent_log_prob(bits, p),
    )
    assert information.bernoulli_log_prob(0, 1e6) == -1e6


@pytest.mark.parametrize("seed", range(3))
def test_pair_statistic_of_independent_columns_has_its_mean(seed):
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.1, 0.9, (4000, 20))
    bits = (rng.random(means.shape) < means).astype(np.int8)
    # chi-square of 190 degrees: 6 standard deviations
    assert abs(information.pair_statistic(bits - means, means) - 190) < 6 * np.sqrt(380)
    assert information.pair_statistic(bits[:, :1] - 0.5, means[:, :1]) == 0


def test_residual_covariance_by_hand():
    bits = np.array([[1, 0], [1, 1]], dtype=np.int8)
    means = np.array([[0.5, 0.5], [0.25, 0.5]])
    expected = (
        np.outer([0.5, -0.5], [0.5, -0.5]) + np.outer([0.75, 0.5], [0.75, 0.5])
    ) / 2
    np.testing.assert_allclose(information.residual_covariance(bits - means), expected)


@pytest.mark.parametrize("seed", range(3))
def test_marginal_gain_has_no_bias_where_there_is_nothing(seed):
    rng = np.random.default_rng(seed)
    bits = (rng.random((4000, 12)) < 0.3).astype(np.int8)
    gain = information.marginal_gain(bits, rng.random(4000) < 0.5, rng)
    assert abs(gain.mean()) < 5 * gain.std() / np.sqrt(4000)


@pytest.mark.parametrize("seed", range(3))
def test_calibration_takes_out_what_the_decoder_misses_and_nothing_else(seed):
    """Columns 0 and 1 are independent given z, 2 and 3 are not; all means are off."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((20_000, 2))
    truth = expit(z @ rng.normal(0, 1, (2, 4)))
    bits = (rng.random(truth.shape) < truth).astype(np.int8)
    bits[:, 3] = np.where(rng.random(20_000) < 0.5, bits[:, 2], bits[:, 3])
    truth[:, 3] = (truth[:, 2] + truth[:, 3]) / 2
    means = truth + 0.1 + 0.1 * z[:, :1] + 0.05 * z[:, :1] * z[:, 1:]
    raw = information.residual_covariance(bits - means)
    residuals = information.calibrated_residuals(bits, means, z)
    covariance = information.residual_covariance(residuals)
    expected = information.residual_covariance(bits - truth)
    np.testing.assert_allclose(covariance, expected, atol=0.002)
    assert raw[0, 1] > 0.015 > 5 * abs(covariance[0, 1])
    assert covariance[2, 3] > 0.03
    np.testing.assert_allclose((z**2).T @ residuals, 0, atol=1e-3)


@pytest.mark.parametrize("z", [np.zeros((50, 2)), np.ones((50, 1)), np.empty((50, 0))])
def test_latents_that_say_nothing_calibrate_the_mean_only(z):
    bits = np.random.default_rng(0).integers(0, 2, (50, 3), dtype=np.int8)
    residuals = information.calibrated_residuals(bits, np.full((50, 3), 0.3), z)
    np.testing.assert_allclose(residuals, bits - bits.mean(0), atol=1e-6)


def test_few_rows_are_not_calibrated_away():
    rng = np.random.default_rng(0)
    bits, z = rng.integers(0, 2, (12, 3), dtype=np.int8), rng.standard_normal((12, 3))
    residuals = information.calibrated_residuals(bits, np.full((12, 3), 0.5), z)
    np.testing.assert_allclose(residuals, bits - bits.mean(0), atol=1e-6)


def test_halves_keep_groups_together_where_there_are_two():
    codes = np.repeat([7, 3, 5, 9], [3, 5, 4, 2])
    halves = information.split_halves(codes, np.random.default_rng(0))
    assert all(len(set(halves[codes == code])) == 1 for code in set(codes))
    assert 5 <= halves.sum() <= 9
    alone = information.split_halves(np.full(10, 4), np.random.default_rng(0))
    assert alone.sum() == 5
