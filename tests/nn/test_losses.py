import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from skident._nn import losses
from skident._nn.jacobians import batched_jacobian
from skident._nn.likelihoods import LIKELIHOODS
from skident._nn.modules import Encoded, VariationalAutoencoder
from skident._nn.threads import seeded

BERNOULLI = LIKELIHOODS["bernoulli"]


def signs(n, width, seed=0):
    draws = np.random.default_rng(seed).integers(0, 2, (n, width))
    return torch.from_numpy((2 * draws - 1).astype(np.float32))


@pytest.mark.parametrize("mean, log_var", [(0.0, 0.0), (1.5, -2.0), (-0.3, 1.0)])
def test_gaussian_kl_equals_its_integral(mean, log_var):
    q, p = stats.norm(mean, np.exp(0.5 * log_var)), stats.norm()
    exact, _ = quad(lambda z: q.pdf(z) * (q.logpdf(z) - p.logpdf(z)), -20, 20)
    got = losses.gaussian_kl(torch.tensor(mean), torch.tensor(log_var))
    assert float(got) == pytest.approx(exact, abs=1e-6)


def test_bernoulli_is_normalised_and_has_its_mean():
    logits = torch.tensor([-1.3, 0.4, 50.0])
    total = sum(
        torch.exp(BERNOULLI.log_prob(logits, 2.0 * torch.tensor(bits) - 1.0))
        for bits in np.ndindex(2, 2, 2)
    )
    assert float(total) == pytest.approx(1.0, abs=1e-6)
    p = torch.sigmoid(logits)
    torch.testing.assert_close(BERNOULLI.mean(logits), 2 * p - 1)
    extreme = BERNOULLI.log_prob(torch.tensor([-1e4]), torch.tensor([1.0]))
    assert float(extreme) == -1e4


def test_bernoulli_sample_has_the_mean():
    logits = torch.tensor([-1.0, 0.0, 2.0]).expand(20_000, 3)
    with seeded(0):
        mean = BERNOULLI.sample(logits).mean(0)
    # 6 standard errors of at most 1 / sqrt(20000)
    assert (mean - BERNOULLI.mean(logits[0])).abs().max() < 6 / np.sqrt(20_000)


def test_independent_parameters_have_the_columns_means_off_the_boundary():
    x = signs(9, 4)
    x[:, 0] = 1.0
    p = torch.sigmoid(BERNOULLI.independent(x))
    torch.testing.assert_close(p, ((x > 0).sum(0) + 0.5) / 10)


def test_negative_elbo_is_summed_over_columns_and_latents():
    n, width, d = 7, 5, 3
    encoded = Encoded(torch.zeros(n, width), torch.ones(n, d), torch.zeros(n, d))
    loss = losses.NegativeELBO(BERNOULLI.log_prob)
    x = signs(n, width)
    expected = width * np.log(2)
    assert float(loss(lambda x: encoded, x)) == pytest.approx(expected + 0.5 * d)
    loss.beta = 0.0
    assert float(loss(lambda x: encoded, x)) == pytest.approx(expected)


def model(width=6):
    with seeded(1):
        module = VariationalAutoencoder(width, width, 1, (8,))
        with torch.no_grad():
            module.decoder[-1].weight.mul_(4)
    return module


def exact_log_likelihood(module, x):
    """Quadrature over the single latent, in float64."""
    grid = torch.linspace(-8, 8, 4001)[:, None]
    with torch.no_grad():
        logits = module.decode(grid).double()
    log_prior = stats.norm.logpdf(grid.numpy()[:, 0])
    log_joint = BERNOULLI.log_prob(logits[:, None], x[None].double()).numpy()
    return np.log(
        np.trapezoid(np.exp(log_joint + log_prior[:, None]), dx=0.004, axis=0)
    )


def test_elbo_is_below_and_importance_sampling_reaches_the_exact_likelihood():
    module, x = model(), signs(40, 6)
    exact = exact_log_likelihood(module, x)
    noise = torch.from_numpy(
        np.random.default_rng(0).standard_normal((20_000, 1)).astype(np.float32)
    )
    with torch.no_grad():
        elbo = losses.elbo(module, BERNOULLI.log_prob, x, noise).numpy()
        weighted = losses.importance_log_likelihood(
            module, BERNOULLI.log_prob, x, noise
        ).numpy()
    # An untrained encoder: far below, and 20,000 draws are good to some 0.01 nats.
    assert (elbo < exact).all() and (exact - elbo).mean() > 0.05
    np.testing.assert_allclose(weighted, exact, atol=0.05)


def test_likelihood_sums_to_one_over_all_words():
    module = model()
    words = 2.0 * torch.tensor(list(np.ndindex(*(2,) * 6)), dtype=torch.float32) - 1
    assert np.exp(exact_log_likelihood(module, words)).sum() == pytest.approx(
        1, abs=1e-5
    )


def test_jacobian_equals_autograd():
    module = VariationalAutoencoder(6, 6, 3, (8,))
    z = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    expected = torch.stack(
        [
            torch.autograd.functional.jacobian(module.decode, row[None])[0, :, 0]
            for row in z
        ]
    )
    torch.testing.assert_close(batched_jacobian(module.decode, z), expected)
