import numpy as np
import pytest
from scipy.special import gammaln

from skident.datasets import make_curie_weiss
from skident.exact import curie_weiss

# A right sampler leaves an interval of this many standard errors with probability
# 1e-8, far enough for the normal approximation of 1e5 draws.
SIGMAS = 5.7


def z_score(values, expected):
    return (values.mean() - expected) / (values.std(ddof=1) / np.sqrt(len(values)))


def check_moments(temperature, seed, n_samples, field=0.0):
    X, m, info = make_curie_weiss(
        n_samples, 64, temperature=temperature, field=field, return_info=True,
        random_state=seed,
    )  # fmt: skip
    truth = curie_weiss(64, temperature, field)
    spins = X.astype(float)
    assert abs(z_score(abs(m), truth.abs_magnetization)) < SIGMAS
    assert abs(z_score(64 * m**2, truth.susceptibility)) < SIGMAS
    assert abs(z_score(m, truth.magnetization)) < SIGMAS
    assert abs(z_score(info.energies, 64 * truth.energy)) < SIGMAS
    for i, j in ((0, 1), (0, 63), (31, 40)):
        assert abs(z_score(spins[:, i] * spins[:, j], truth.pair_correlation)) < SIGMAS
    np.testing.assert_allclose(m, spins.mean(axis=1), atol=1e-12)
    M = spins.sum(axis=1)
    np.testing.assert_allclose(info.energies, -(M**2) / 128 - field * M)


@pytest.mark.parametrize("temperature", [0.5, 0.8, 1.0, 1.25, 1.5])
def test_moments_of_64_sites_within_error(temperature):
    check_moments(temperature, 0, 50_000)


def test_moments_in_a_field_within_error():
    check_moments(0.9, 1, 50_000, field=-0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("temperature", [0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5])
def test_moments_for_many_seeds(temperature, seed):
    check_moments(temperature, seed, 200_000)


@pytest.mark.parametrize(
    "n, temperature, field",
    [(1, 1.0, 0.2), (2, 0.5, 0.0), (9, 0.9, 0.0), (9, 1.2, 0.3)],
)
def test_every_state_has_its_probability(assert_boltzmann, n, temperature, field):
    X, _ = make_curie_weiss(
        100_000, n, temperature=temperature, field=field, random_state=3
    )
    assert_boltzmann(
        X, lambda s: -(s.sum() ** 2) / (2 * n) - field * s.sum(), temperature
    )


def test_number_of_ups_of_a_large_system(assert_distribution):
    n = 3001
    X, m = make_curie_weiss(5000, n, temperature=1.0, random_state=4)
    ups = np.rint((m + 1) * n / 2).astype(int)
    np.testing.assert_array_equal(ups, (X > 0).sum(axis=1))
    k = np.arange(n + 1)
    log_p = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    log_p += (2 * k - n) ** 2 / (2 * n)
    p = np.exp(log_p - log_p.max())
    blocks = k // 60
    assert_distribution(
        np.bincount(ups // 60, minlength=blocks[-1] + 1),
        np.bincount(blocks, p / p.sum()),
    )
    # Every place is as good as any other.
    share = (X > 0).mean(axis=0)
    assert abs(share - share.mean()).max() < SIGMAS * 0.5 / np.sqrt(5000)


def test_very_large_system_and_very_cold():
    X, m = make_curie_weiss(3, 100_000, temperature=0.5, random_state=0)
    truth = curie_weiss(100_000, 0.5)
    np.testing.assert_allclose(abs(m), truth.abs_magnetization, atol=0.01)
    assert X.shape == (3, 100_000)
    _, cold = make_curie_weiss(200, 10, temperature=1e-100, random_state=0)
    assert set(cold) == {-1.0, 1.0}


def test_info_says_exact():
    *_, info = make_curie_weiss(7, 5, temperature=1.0, return_info=True, random_state=0)
    assert (info.method, info.tau_int, info.ess, info.burn_in) == ("exact", 1.0, 7.0, 0)
