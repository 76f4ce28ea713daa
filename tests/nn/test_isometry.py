import numpy as np
import pytest
import torch

from skident._nn.isometry import (
    mixed_latents,
    relative_distortion,
    sphere_directions,
)
from skident._nn.losses import CrossEntropy, Reconstruction, SquaredError
from skident._nn.modules import Autoencoder
from skident._nn.threads import seeded


def points(n=200, d=3, seed=0, dtype=torch.float64):
    with seeded(seed):
        z = torch.randn(n, d, dtype=dtype)
        return z, sphere_directions(z)


def by_jacobians(decode, z, v):
    """The same number from explicit Jacobians."""
    J = torch.func.vmap(torch.func.jacfwd(lambda row: decode(row[None])[0]))(z)
    metric = J.mT @ J
    pull = (metric @ v[..., None])[..., 0]
    return z.shape[1] * pull.square().sum(1).mean() / (v * pull).sum(1).mean() ** 2 - 1


def curved(z):
    return torch.cat([torch.sin(z), z * z, z.roll(1, 1).exp()], dim=1)


def test_equals_the_definition_by_jacobians():
    z, v = points()
    got = relative_distortion(curved, z, v)
    torch.testing.assert_close(got, by_jacobians(curved, z, v), rtol=1e-10, atol=0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_scaled_isometry_has_none(scale):
    z, v = points()
    with seeded(1):
        frame = torch.linalg.qr(torch.randn(7, 3, dtype=torch.float64)).Q
    got = relative_distortion(lambda at: scale * at @ frame.mT, z, v)
    assert abs(float(got.detach())) < 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_never_negative_on_the_sphere(seed):
    """A Gaussian direction would give values down to -0.3 for few rows."""
    z, v = points(4, 3, seed)
    assert float(relative_distortion(curved, z, v).detach()) >= 0
    assert torch.allclose(v.norm(dim=1), torch.tensor(3.0, dtype=torch.float64).sqrt())


def test_scale_that_varies_from_point_to_point_is_seen():
    """Conformal maps: one scale at each point. A ratio a point would give 0."""
    z, v = points(2000, 2)

    def square(at):  # the complex square
        return torch.stack([at[:, 0] ** 2 - at[:, 1] ** 2, 2 * at.prod(1)], 1)

    # J'J = 4|z|^2 1, so that the value is E[s^2] / E[s]^2 - 1 with s = |z|^2
    s = z.square().sum(1)
    expected = s.square().mean() / s.mean() ** 2 - 1
    got = relative_distortion(square, z, v).detach()
    assert float(got) == pytest.approx(float(expected), rel=1e-10)
    assert float(got) > 0.5


def test_gradient_equals_finite_differences():
    z, v = points(50, 2)
    shape = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    def value(a):
        return relative_distortion(lambda at: torch.cat([a * at, at**2], 1), z, v)

    (slope,) = torch.autograd.grad(value(shape), shape)
    step = 1e-5
    with torch.no_grad():
        rise = value(shape + step) - value(shape - step)
    assert float(slope) == pytest.approx(float(rise) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("activation", [torch.nn.LeakyReLU, torch.nn.Softplus])
def test_gradient_of_weights_equals_that_of_the_definition(activation):
    with seeded(2):
        decode = torch.nn.Sequential(
            torch.nn.Linear(3, 5), activation(), torch.nn.Linear(5, 7)
        ).double()
    z, v = points(20)
    weights = [decode[0].weight, decode[0].bias, decode[2].weight]
    got, expected = (
        torch.autograd.grad(value(decode, z, v), weights, materialize_grads=True)
        for value in (relative_distortion, by_jacobians)
    )
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    # pieces of LeakyReLU do not move with the bias
    assert bool(got[1].any()) == (activation is torch.nn.Softplus)


def test_constant_decoder_gives_no_nan():
    z, v = points(10, 2, dtype=torch.float32)
    got = relative_distortion(lambda at: 0.0 * at, z, v)
    assert torch.isfinite(got)


def test_mixed_latents_lie_on_lines_through_pairs():
    z = torch.tensor([[0.0, 0.0], [1.0, 2.0]], requires_grad=True)
    with seeded(0):
        mixed = torch.cat([mixed_latents(z) for _ in range(500)])
    assert not mixed.requires_grad
    torch.testing.assert_close(mixed[:, 1], 2 * mixed[:, 0])
    assert -0.2 <= mixed[:, 0].min() and mixed[:, 0].max() <= 1.2
    # some 500 draws of the pair miss an end of width 0.1 with probability 1e-16
    assert mixed[:, 0].min() < -0.1 and mixed[:, 0].max() > 1.1


def test_one_row_is_enough():
    module = Autoencoder(4, 2, (8,), 0.2)
    loss = Reconstruction(SquaredError(torch.zeros(4), 1.0), isometry=1.0)
    assert torch.isfinite(loss(module, torch.ones(1, 4)))


def test_penalty_is_in_units_of_the_constant_reconstruction_at_every_second_row():
    module, x = Autoencoder(4, 2, (8,), 0.2), torch.randn(32, 4)
    error = SquaredError(torch.zeros(4), 1.0)

    def loss(**options):
        with seeded(5):
            return float(Reconstruction(error, **options)(module, x))

    plain, with_penalty = loss(), loss(isometry=0.5, unit=4.0)
    with seeded(5):
        z = mixed_latents(module.encode(x))[::2]
        expected = relative_distortion(module.decode, z, sphere_directions(z))
    assert with_penalty - plain == pytest.approx(2.0 * float(expected), rel=1e-4)


def test_cross_entropy_equals_its_definition_and_knows_probabilities():
    rng = np.random.default_rng(0)
    rows, logits = rng.random((6, 3)), 4 * rng.standard_normal((6, 3))
    mean, scale = rows.mean(0), 0.4
    error = CrossEntropy(torch.from_numpy(mean), scale)
    p = 1 / (1 + np.exp(-logits))
    expected = -(rows * np.log(p) + (1 - rows) * np.log(1 - p)).sum(1).mean()
    got = error(torch.from_numpy(logits), torch.from_numpy((rows - mean) / scale))
    assert float(got) == pytest.approx(expected, rel=1e-12)
    back = error.decoded(torch.from_numpy(logits)).numpy() * scale + mean
    np.testing.assert_allclose(back, p, rtol=1e-12)
    assert torch.isfinite(error(torch.tensor([[1e6, -1e6, 0.0]]), torch.zeros(1, 3)))
