"""Likelihood and posterior on a lattice, against integrals and enumeration."""

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import nquad, quad
from scipy.special import expit

from skident._nn import quadrature
from skident._nn.likelihoods import Bernoulli, Poisson
from skident._nn.precision import PRECISIONS
from skident._nn.quadrature import GridModel, GridPosterior, lattice
from skident._nn.threads import seeded
from skident._nn.training import Schedule, build_net, train

CPU = torch.device("cpu")
N = 5


def model(n_components, family=None, scale=3.0, seed=1):
    """A decoder with random weights."""
    family = family or Bernoulli(n_features=N)
    with seeded(seed):
        module = GridModel(family, n_components, (8,))
        with torch.no_grad():
            module.decoder[-1].weight.mul_(scale)
    return module.eval()


def words(n=N):
    return 2.0 * np.array(list(np.ndindex(*(2,) * n))) - 1.0


def joint_density(module, z, x):
    """p(x | z) p(z) of one row of spins, by numpy and scipy."""
    with torch.no_grad():
        logits = module.decode(torch.tensor(np.atleast_2d(z), dtype=torch.float32))
    return stats.norm.pdf(z).prod() * expit(x * logits[0].numpy().astype(float)).prod()


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_lattice_has_the_moments_of_the_prior(n_components):
    grid = lattice(24, n_components, device=CPU)
    weights = grid.log_weights.exp().double()
    points = grid.points.double()
    assert float(weights.sum()) == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(weights @ points, 0, atol=1e-5)
    second = points.T @ (weights[:, None] * points)
    np.testing.assert_allclose(second, np.eye(n_components), atol=1e-3)
    assert (points.norm(dim=1) <= 5.0).all()
    axis = (grid.index + 0.5) * grid.spacing - 5.0
    torch.testing.assert_close(axis.double(), points, atol=1e-5, rtol=0)


def test_shifted_lattices_fill_the_space_between_the_points():
    one, other = (
        lattice(20, 2, device=CPU, shift=torch.full((2,), shift))
        for shift in (-0.5, 0.5)
    )
    np.testing.assert_allclose(other.points - one.points, one.spacing, atol=1e-5)


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("n_nodes", [3, 12])
def test_model_is_normalised_on_any_lattice(n_components, n_nodes):
    grid = GridPosterior(model(n_components), n_nodes, n_components, CPU)
    total = grid.log_likelihood(torch.tensor(words())).exp().sum()
    assert float(total) == pytest.approx(1, abs=1e-12)


def test_likelihood_with_one_latent_is_the_integral():
    module, x = model(1), words()[[3, 17, 30]]
    exact = [quad(lambda z, r=r: joint_density(module, [z], r), -9, 9)[0] for r in x]
    grid = GridPosterior(module, 128, 1, CPU)
    np.testing.assert_allclose(
        grid.log_likelihood(torch.tensor(x)), np.log(exact), atol=2e-5
    )


def test_likelihood_with_two_latents_is_the_integral():
    module, x = model(2), words()[17]
    exact = nquad(
        lambda a, b: joint_density(module, np.array([a, b]), x),
        [(-6, 6)] * 2,
        opts={"epsabs": 1e-6},
    )[0]
    grid = GridPosterior(module, 48, 2, CPU)
    value = float(grid.log_likelihood(torch.tensor(x[None])))
    assert value == pytest.approx(np.log(exact), abs=2e-4)


def test_counts_are_integrated_as_well():
    counts = np.random.default_rng(0).poisson([1.0, 6.0], (40, 2))
    units = Poisson(n_features=2).learn(counts, np.ones(counts.shape, bool))
    family = Poisson(n_features=2, **units)
    module = model(1, family, scale=1.0)
    rows = torch.tensor(family.rows(counts[:4], None))
    z = np.linspace(-9, 9, 4001)
    with torch.no_grad():
        fields = family.fields(module.decode(torch.tensor(z[:, None]).float()))
    p = stats.poisson(np.exp(fields.double().numpy())).pmf(counts[:4, None]).prod(-1)
    exact = np.trapezoid(p * stats.norm.pdf(z), z, axis=1)
    grid = GridPosterior(module, 128, 1, CPU)
    np.testing.assert_allclose(grid.log_likelihood(rows), np.log(exact), atol=1e-4)


def test_posterior_has_the_moments_of_the_integral():
    module, x = model(1), words()[[3, 17]]
    moments = GridPosterior(module, 192, 1, CPU).moments(torch.tensor(x)).numpy()
    z = np.linspace(-9, 9, 4001)
    for row, (mean, deviation) in zip(x, moments, strict=True):
        p = np.array([joint_density(module, np.array([a]), row) for a in z])
        p /= p.sum()
        assert mean == pytest.approx(p @ z, abs=1e-4)
        assert deviation == pytest.approx(np.sqrt(p @ z**2 - (p @ z) ** 2), abs=1e-4)


def test_draws_follow_the_posterior():
    grid = GridPosterior(model(2), 12, 2, CPU)
    x = torch.tensor(words()[[9]])
    uniform = torch.tensor((np.arange(50_000) + 0.5) / 50_000)
    draws = grid.draw(x.expand(50_000, -1), uniform)
    mean, deviation = grid.moments(x).view(2, 2).numpy()
    # quantiles without noise: exact to one part in 50,000
    np.testing.assert_allclose(draws.mean(0), mean, atol=1e-3)
    np.testing.assert_allclose(draws.std(0), deviation, atol=1e-3)
    edges = grid.draw(x.expand(2, -1), torch.tensor([0.0, 1.0 - 1e-9]))
    assert torch.isfinite(edges).all()


def test_divergences_are_sums_over_the_posterior():
    grid = GridPosterior(model(2), 12, 2, CPU)
    x = torch.tensor(words()[[2, 9]])
    rate, *each = grid.divergences(x).numpy().T
    p = torch.softmax(grid.log_joint(x), 1).numpy()
    prior = grid.log_weights.exp().numpy()
    np.testing.assert_allclose(rate, (p * np.log(p / prior)).sum(1))
    for axis, kl in enumerate(each):
        index = grid.index[:, axis].numpy()
        marginal = np.stack([np.bincount(index, row, 12) for row in p])
        reference = np.bincount(index, prior, 12)
        with np.errstate(all="ignore"):
            terms = marginal * np.log(marginal / reference)
        np.testing.assert_allclose(kl, np.nansum(terms, axis=1))
    assert (rate >= each[0] - 1e-12).all() and (rate >= each[1] - 1e-12).all()


def test_loss_is_the_likelihood_on_a_shifted_lattice():
    module, x = model(1), torch.tensor(words(), dtype=torch.float32)
    loss = quadrature.NegativeGridLikelihood(module.family, 1)(module, x)
    exact = GridPosterior(module, 128, 1, CPU).log_likelihood(x).mean()
    assert loss.item() == pytest.approx(-exact.item(), abs=1e-3)


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.4, 1.0])
def test_loss_with_a_weight_is_the_best_bound_of_any_posterior(beta):
    """The maximum of E_q ln p(x|z) - beta KL(q || w), by its condition in numpy."""
    module = model(2)
    criterion = quadrature.NegativeGridLikelihood(module.family, 2)
    criterion.beta = beta
    x = torch.tensor(words(), dtype=torch.float32)
    with seeded(3):
        loss = criterion(module, x).item()
    with seeded(3):
        shift = torch.rand(2) - 0.5
    grid = lattice(quadrature.NODES[2][0], 2, device=CPU, shift=shift)
    with torch.no_grad():
        logits = module.decode(grid.points).double().numpy()
    log_p = np.log(expit(words()[:, None] * logits)).sum(-1)
    log_w = grid.log_weights.double().numpy()

    def bound(q):
        kl = np.where(q > 0, q * (np.log(np.maximum(q, 1e-300)) - log_w), 0).sum(1)
        return ((q * log_p).sum(1) - beta * kl).mean()

    if beta:
        q = np.exp((log_p - log_p.max(1, keepdims=True)) / beta + log_w)
        q /= q.sum(1, keepdims=True)
    else:
        q = np.eye(len(log_w))[log_p.argmax(1)]
    assert -loss == pytest.approx(bound(q), abs=1e-4)
    rng = np.random.default_rng(0)
    for other in rng.dirichlet(np.ones(len(log_w)), 20):
        for share in (0.01, 1.0):
            assert bound((1 - share) * q + share * other) < -loss + 1e-4
    criterion(module, x).backward()
    assert all(torch.isfinite(p.grad).all() for p in module.parameters())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_last_steps_compute_in_the_precision_of_the_training(precision):
    x = torch.tensor(words(), dtype=torch.float32)
    module, seen = model(1), []
    module.decoder[0].register_forward_hook(lambda m, i, o: seen.append(o.dtype))
    criterion = quadrature.NegativeGridLikelihood(module.family, 1)
    # float16 leaves the first steps out, until the scale of its loss fits
    schedule = Schedule(5e-2, 0.0, 32, 60, precision=precision)
    before = criterion(module, x).item()
    seen.clear()
    with seeded(0):
        last = quadrature.last_steps(schedule, len(x))
        net = build_net(module, criterion, last, CPU)
        train(net, x, None, last, verbose=0, description="")
    assert set(seen) == {PRECISIONS[precision] or torch.float32}
    assert {p.dtype for p in module.parameters()} == {torch.float32}
    assert criterion(module, x).item() < before - 0.03


@pytest.mark.parametrize(
    ("n_rows", "epochs", "expected"),
    [(500, 60, (500, 60)), (500, 999, (500, 100)), (140_000, 60, (16384, 11))],
)
def test_last_steps_are_few_and_large(n_rows, epochs, expected):
    last = quadrature.last_steps(
        Schedule(1e-2, 0.0, 64, epochs, kl_warmup=0.5, precision="float16"), n_rows
    )
    assert (last.batch_size, last.max_epochs) == expected
    assert last.learning_rate == pytest.approx(2e-3)
    assert last.kl_warmup == 0.0 and last.precision == "float16"


def test_last_steps_reach_the_maximum():
    """Its gradient over all rows shrinks, and the likelihood rises."""
    schedule = Schedule(1e-2, 0.0, 64, 100)
    rng = np.random.default_rng(0)
    common = rng.standard_normal((4000, 1))
    x = torch.tensor(np.where(common + rng.standard_normal((4000, N)) > 0, 1.0, -1.0))
    x = x.float()
    module = model(1)
    criterion = quadrature.NegativeGridLikelihood(module.family, 1)
    last = quadrature.last_steps(schedule, len(x))
    net = build_net(module, criterion, last, CPU)
    before = criterion(module, x).item()
    with seeded(0):
        train(net, x, None, last, verbose=0, description="")
    assert criterion(module, x).item() < before - 0.1
