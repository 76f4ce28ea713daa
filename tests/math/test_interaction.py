import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr
from scipy.stats import norm

from skident._math import interaction

BETA, N_SITES = 1.2, 10


def states(n_sites):
    codes = np.arange(2**n_sites)[:, None]
    return 1.0 - 2.0 * ((codes >> np.arange(n_sites)) & 1)


def hopfield(seed=0, strength=0.3):
    """Two patterns, a random field, and the exact decoder of their Hopfield model.

    In the coordinates m_1 + m_2 and m_1 - m_2 the Gaussian fields of two patterns are
    independent; each is a monotonic function of one standard normal latent.
    """
    rng = np.random.default_rng(seed)
    patterns = rng.choice([-1.0, 1.0], size=(2, N_SITES))
    patterns[1, :2] = patterns[0, :2] * [1, -1]  # neither equal nor opposite
    field = strength * rng.standard_normal(N_SITES)
    same = patterns[0] == patterns[1]
    axis = np.linspace(-4.0, 4.0, 20001)

    def quantile(sites):
        logs = -BETA * N_SITES * axis**2 / 4
        for i in np.flatnonzero(sites):
            half = field[i] + BETA * patterns[0, i] * axis
            logs = logs + np.logaddexp(half, -half)
        cdf = integrate.cumulative_trapezoid(np.exp(logs - logs.max()), axis, initial=0)
        return lambda z: np.interp(ndtr(z), cdf / cdf[-1], axis)

    sums, differences = quantile(same), quantile(~same)

    def logits(points):
        u, v = sums(points[:, 0]), differences(points[:, 1])
        overlaps = np.stack([u + v, u - v], axis=1) / 2
        return 2 * (field + BETA * overlaps @ patterns)

    return patterns, field, logits


def off_span(field, patterns):
    return field - field @ np.linalg.pinv(patterns) @ patterns


def log_boltzmann(patterns, field, rows):
    overlaps = rows @ patterns.T
    logs = rows @ field + BETA / (2 * N_SITES) * (overlaps**2).sum(axis=1)
    return logs - np.log(np.exp(logs).sum())


@pytest.mark.parametrize("n_latents", [2, 3])
def test_hopfield_model_comes_back_from_its_decoder(n_latents):
    """A third latent that does nothing changes nothing."""
    patterns, field, logits = hopfield()
    outside, rows = off_span(field, patterns), states(N_SITES)
    found = interaction.find_interaction(logits, n_latents, outside, patterns, None)
    log_p = rows @ outside + interaction.log_integral(found, 0.5 * rows @ patterns.T)
    expected = log_boltzmann(patterns, field, rows)
    # Three latents have the coarser grid.
    atol = 1e-4 if n_latents == 2 else 5e-2
    np.testing.assert_allclose(log_p, expected, atol=atol)
    cumulants = interaction.cumulants(found)
    shift = cumulants.mean - 2 * field @ np.linalg.pinv(patterns)
    np.testing.assert_allclose(shift, 0, atol=10 * atol)
    variance = 4 * BETA / N_SITES
    np.testing.assert_allclose(
        cumulants.covariance, variance * np.eye(2), atol=10 * atol
    )
    np.testing.assert_allclose(cumulants.third, 0, atol=10 * atol)
    np.testing.assert_allclose(cumulants.fourth, 0, atol=20 * atol)
    t = np.array([[0.0, 0.0], [3.0, -1.0], [-5.0, 5.0]])
    quadratic = t @ cumulants.mean + 0.5 * variance * (t**2).sum(axis=1)
    np.testing.assert_allclose(
        interaction.cumulant_function(found, t), quadratic, atol=20 * atol
    )
    ratios = interaction.tail_ratio(found, np.array([4.0, 5.0]))
    np.testing.assert_allclose(ratios, 1, atol=20 * atol)


def one_pattern(phi):
    """A decoder of one latent and eight sites in one pattern, without field."""
    patterns = np.array([[1.0, -1, 1, 1, -1, -1, 1, 1]])

    def integral(t):
        def density(z):
            half = 0.5 * phi(z)
            return norm.pdf(z) * np.exp(t * phi(z)) / (2 * np.cosh(half)) ** 8

        return integrate.quad(density, -9, 9, epsabs=0, limit=400)[0]

    found = interaction.find_interaction(
        lambda z: phi(z) @ patterns, 1, np.zeros(8), patterns, None
    )
    return found, integral


@pytest.mark.parametrize(
    "phi",
    [np.sin, lambda z: 2 * np.tanh(3 * z), lambda z: z + 0.3 * z**2],
    ids=["sine", "steep", "skewed"],
)
def test_cumulant_function_is_that_of_adaptive_quadrature(phi):
    found, integral = one_pattern(phi)
    for t in (-4.0, 0.5, 4.0):
        value = interaction.cumulant_function(found, np.array([[t]]))[0]
        assert value == pytest.approx(np.log(integral(t) / integral(0)), abs=1e-6)


def test_cumulants_are_the_derivatives_of_their_function():
    found, _ = one_pattern(lambda z: z + 0.3 * z**2)
    step = 0.05
    K = interaction.cumulant_function(found, step * np.arange(-3.0, 4)[:, None])
    cumulants = interaction.cumulants(found)
    first = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
    second = np.array([2, -27, 270, -490, 270, -27, 2]) / 180
    third = np.array([1, -8, 13, 0, -13, 8, -1]) / 8
    fourth = np.array([-1, 12, -39, 56, -39, 12, -1]) / 6
    assert cumulants.mean[0] == pytest.approx(first @ K / step, rel=1e-5)
    assert cumulants.covariance[0, 0] == pytest.approx(second @ K / step**2, rel=1e-5)
    assert cumulants.third[0] == pytest.approx(third @ K / step**3, rel=1e-3)
    assert cumulants.fourth[0] == pytest.approx(fourth @ K / step**4, rel=5e-3)
    assert cumulants.third[0] > 0.01


def test_tails_are_lighter_for_two_wells_and_heavier_for_three():
    """phi = +-a has K = ln cosh(a t); a state at 0 between makes it heavier."""
    t = np.array([3.0])
    two, _ = one_pattern(lambda z: np.where(z > 0.005, 1.0, -1.0))
    expected = 2 * np.log(np.cosh(3.0)) / 9
    assert interaction.tail_ratio(two, t)[0] == pytest.approx(expected, abs=0.02)
    three, _ = one_pattern(lambda z: 1.0 * (z > 1.0) - 1.0 * (z < -1.0))
    # weights of the wells under w
    q = 2 * norm.cdf(-1) / np.cosh(0.5) ** 8
    q /= q + 1 - 2 * norm.cdf(-1)
    expected = 2 * np.log(1 - q + q * np.cosh(3.0)) / (q * 9)
    assert interaction.tail_ratio(three, t)[0] == pytest.approx(expected, abs=0.02)
    assert expected > 1.2
    assert interaction.cumulants(three).fourth[0] > 0


@pytest.mark.parametrize("seed", range(2))
def test_points_at_many_temperatures_do_what_the_grid_does(seed):
    """Two latents of five matter, and the wells are deep."""
    patterns, field, logits = hopfield(seed, strength=0.1)
    outside, rows = off_span(field, patterns), states(N_SITES)
    rng = np.random.default_rng(seed)
    found = interaction.find_interaction(logits, 5, outside, patterns, rng)
    log_p = rows @ outside + interaction.log_integral(found, 0.5 * rows @ patterns.T)
    # Errors are those of some thousands of points; 0.05 is five of them.
    np.testing.assert_allclose(log_p, log_boltzmann(patterns, field, rows), atol=0.15)
    cumulants = interaction.cumulants(found)
    np.testing.assert_allclose(
        cumulants.covariance, 4 * BETA / N_SITES * np.eye(2), atol=0.06
    )


def test_without_patterns_nothing_interacts():
    patterns = np.empty((0, 4))
    for n_latents in (1, 4):
        found = interaction.find_interaction(
            lambda z: np.zeros((len(z), 4)), n_latents, np.full(4, 0.2), patterns,
            np.random.default_rng(0),
        )  # fmt: skip
        log_p = 0.2 * 4 + interaction.log_integral(found, np.empty((3, 0)))
        np.testing.assert_allclose(log_p, 4 * np.log(1 / (1 + np.exp(-0.4))))
        assert interaction.cumulants(found).covariance.shape == (0, 0)
        assert interaction.tail_ratio(found, np.empty(0)).shape == (0,)
