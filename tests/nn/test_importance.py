"""The importance-weighted bound, between the ELBO and the log-likelihood."""

import numpy as np
import pytest
import torch

from skident._nn import losses
from skident._nn.latent_models import EncodedModel
from skident._nn.likelihoods import Bernoulli
from skident._nn.quadrature import GridPosterior
from skident._nn.threads import seeded

FAMILY = Bernoulli(n_features=6)
X = torch.tensor(np.random.default_rng(0).choice([-1.0, 1.0], (40, 6))).float()


@pytest.fixture(scope="module")
def module():
    with seeded(1):
        module = EncodedModel(FAMILY, 1, (8,))
        with torch.no_grad():
            module.decoder[-1].weight.mul_(4)
    return module.eval()


def loss(module, n_draws, n=200, **options):
    bound = losses.NegativeImportanceBound(FAMILY.log_prob, 1, n_draws)
    vars(bound).update(options)
    with seeded(0), torch.no_grad():
        return np.mean([float(bound(module, X)) for _ in range(n)])


def test_bound_tightens_from_the_elbo_to_the_log_likelihood(module):
    exact = -GridPosterior(module, 128, 1, torch.device("cpu")).log_likelihood(X).mean()
    noise = torch.tensor(np.random.default_rng(0).standard_normal((4000, 1))).float()
    with torch.no_grad():
        elbo = -losses.elbo(module, FAMILY.log_prob, X, noise).mean()
    one, five, many = (loss(module, k) for k in (1, 5, 200))
    assert one == pytest.approx(float(elbo), abs=0.02)
    assert one > five + 0.02 > many + 0.02
    assert many == pytest.approx(float(exact), abs=0.01)


def test_warm_up_takes_prior_and_posterior_out(module):
    with seeded(0), torch.no_grad():
        mean, log_var = module.encode(X)
        z = mean + torch.exp(0.5 * log_var) * torch.randn(4000, *mean.shape)
        expected = -FAMILY.log_prob(module.decode(z), X).mean()
    assert loss(module, 1, beta=0.0) == pytest.approx(float(expected), abs=0.03)


def test_standard_error_is_that_of_repeated_estimates(module):
    rng = np.random.default_rng(0)
    both = torch.stack(
        [
            losses.importance_estimate(
                module,
                FAMILY.log_prob,
                X,
                torch.tensor(rng.standard_normal((200, 1))).float(),
            )
            for _ in range(300)
        ]
    ).detach()
    spread, claimed = both[..., 0].std(0), both[..., 1].mean(0)
    np.testing.assert_allclose(claimed, spread, rtol=0.35)


def test_one_draw_has_an_infinite_error(module):
    estimate = losses.importance_estimate(module, FAMILY.log_prob, X, torch.zeros(1, 1))
    assert torch.isinf(estimate[:, 1]).all() and torch.isfinite(estimate[:, 0]).all()


def test_missing_sites_start_unseen_by_the_encoder():
    family = Bernoulli(masked=True, n_features=6)
    with seeded(0):
        module = EncodedModel(family, 2, (8,))
    rows = torch.cat([X, torch.zeros_like(X)], 1)
    module.start(rows)
    marked = torch.cat([X, torch.ones_like(X)], 1)
    torch.testing.assert_close(module.encode(marked), module.encode(rows))
