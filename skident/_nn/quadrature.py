r"""Likelihoods of models with few latents, by quadrature.

.. math:: p(x) = \int dz\, N(z; 0, I)\, p(x|z) \approx \sum_g w_g\, p(x | z_g)

The points are a lattice inside a ball, their weights the density of the prior,
normalised to a sum of 1: for smooth integrands the trapezoidal rule, which converges
faster than any power. For any lattice the sum is a normalised model of x, and at every
point all rows are one matrix product. While training, the lattice is shifted at random
at each step, so that the decoder is right between its points too.
"""

from typing import NamedTuple

import torch
from torch import nn

from skident._nn.latent_models import DecodingModel
from skident._nn.modules import perceptron

# Points an axis while training, and at most.
NODES = {1: (128, 2048), 2: (22, 128), 3: (11, 32)}
# Radius in standard deviations of the prior: outside lie 6e-7 to 2e-5 of it.
_RADIUS = 5.0
# Rows and number of the last, large steps, and their size relative to the first ones.
_LAST_ROWS, _LAST_STEPS, _LAST_RATE = 16384, 100, 0.2


class Lattice(NamedTuple):
    """Points in the space of latents.

    Attributes
    ----------
    points : tensor of shape (n_points, n_components)
        Latents.
    log_weights : tensor of shape (n_points,)
        Their prior probabilities, logarithms; the sum is 1.
    index : tensor of shape (n_points, n_components), int64
        Position along each axis.
    spacing : float
        Distance of neighbours.
    """

    points: torch.Tensor
    log_weights: torch.Tensor
    index: torch.Tensor
    spacing: float


def lattice(n_nodes, n_components, *, device, shift=None):
    """Return a lattice with ``n_nodes`` points along each axis of a ball.

    Parameters
    ----------
    n_nodes : int
        Points along each axis.
    n_components : int
        Number of latents.
    device : torch.device
        Where to put it.
    shift : tensor of shape (n_components,), optional
        Shift in units of the spacing, between -1/2 and 1/2.

    Returns
    -------
    Lattice
    """
    spacing = 2.0 * _RADIUS / n_nodes
    axis = torch.arange(n_nodes, device=device)
    index = torch.cartesian_prod(*[axis] * n_components).reshape(-1, n_components)
    points = (index + 0.5) * spacing - _RADIUS
    log_weights = -0.5 * points.square().sum(-1)
    inside = log_weights >= -0.5 * _RADIUS**2
    points, index = points[inside], index[inside]
    if shift is not None:
        points = points + shift * spacing
    log_weights = -0.5 * points.square().sum(-1)
    log_weights = log_weights - torch.logsumexp(log_weights, 0)
    return Lattice(points, log_weights, index, spacing)


class GridModel(DecodingModel):
    """A decoder whose likelihood is a sum over a lattice of latents: no encoder.

    Parameters
    ----------
    family : Likelihood
        Likelihood of the rows.
    n_components : int
        Number of latents.
    hidden_layer_sizes : tuple of int
        Reversed, the widths of the hidden layers.
    """

    def __init__(self, family, n_components, hidden_layer_sizes):
        super().__init__()
        sizes = (n_components, *reversed(hidden_layer_sizes), family.n_outputs)
        self.decoder = perceptron(sizes, nn.SiLU)
        self.share(family)
        # a row at every point of the cube around the ball
        self.multiplications = NODES[n_components][0] ** n_components * family.n_inputs


class NegativeGridLikelihood(nn.Module):
    r"""The negative log-likelihood on a lattice, in nats a row.

    With a weight :math:`\beta` of the KL term, as during warm-up, it is the negative
    of the largest bound that any posterior q on the lattice reaches:

    .. math:: \beta \ln \sum_g w_g\, p(x|z_g)^{1/\beta}
        = \max_q \left[E_q \ln p(x|z) - \beta\, KL(q \| w)\right]

    which is ln p(x) at 1, and at 0 the likelihood at the best point.

    Parameters
    ----------
    family : Likelihood
        Likelihood of the rows.
    n_components : int
        Number of latents.
    """

    def __init__(self, family, n_components):
        super().__init__()
        self.family, self.n_components = family, n_components
        self.beta = 1.0

    def forward(self, module, x):
        """Return the loss of a batch of rows (n, n_inputs)."""
        shift = torch.rand(self.n_components, device=x.device) - 0.5
        n_nodes = NODES[self.n_components][0]
        grid = lattice(n_nodes, self.n_components, device=x.device, shift=shift)
        natural = self.family.natural(module.decode(grid.points))
        joint = self.family.log_joint(*natural, self.beta * grid.log_weights, x)
        if self.beta == 0.0:
            return -joint.amax(1).mean()
        return -self.beta * torch.logsumexp(joint / self.beta, 1).mean()


def last_steps(schedule, n_rows):
    """Return the schedule of some large steps, after those of small, noisy batches.

    Parameters
    ----------
    schedule : Schedule
        That of the training, of which no more rows are visited again.
    n_rows : int
        Number of training rows.

    Returns
    -------
    Schedule
    """
    size = min(n_rows, _LAST_ROWS)
    n_steps = min(_LAST_STEPS, n_rows * schedule.max_epochs // size)
    return schedule._replace(
        learning_rate=_LAST_RATE * schedule.learning_rate,
        batch_size=size,
        max_epochs=max(1, n_steps * size // n_rows),
        kl_warmup=0.0,
        max_grad_norm=None,
    )


class GridPosterior:
    """Posterior p(z | x) on a lattice, in float64.

    Parameters
    ----------
    module : GridModel
        Trained network.
    n_nodes : int
        Points along each axis.
    n_components : int
        Number of latents.
    device : torch.device
        Where the network is.
    """

    def __init__(self, module, n_nodes, n_components, device):
        grid = lattice(n_nodes, n_components, device=device)
        self.family, self.n_nodes, self.spacing = module.family, n_nodes, grid.spacing
        with torch.inference_mode():
            self.natural = self.family.natural(module.decode(grid.points).double())
        self.points, self.index = grid.points.double(), grid.index
        # normalised once more, as float32 was
        self.log_weights = torch.log_softmax(grid.log_weights.double(), 0)

    @property
    def n_points(self):
        """Number of points."""
        return len(self.points)

    def log_joint(self, x):
        """Return ln w_g + ln p(x | z_g), shape (n, n_points)."""
        return self.family.log_joint(*self.natural, self.log_weights, x.double())

    def log_likelihood(self, x):
        """Return ln p(x) of each row (n,)."""
        return torch.logsumexp(self.log_joint(x), 1)

    def moments(self, x):
        """Return means and standard deviations of z, shape (n, 2 n_components).

        No deviation is below that of a uniform distribution between points.
        """
        weights = torch.softmax(self.log_joint(x), 1)
        mean = weights @ self.points
        variance = weights @ self.points.square() - mean.square()
        deviation = variance.clamp(min=self.spacing**2 / 12.0).sqrt()
        return torch.cat([mean, deviation], 1)

    def draw(self, x, uniform):
        """Return a point for each row, at the given quantiles (n,) of its posterior."""
        total = torch.cumsum(torch.softmax(self.log_joint(x), 1), 1)
        target = uniform.double()[:, None] * total[:, -1:]
        index = torch.searchsorted(total, target, right=True)[:, 0]
        return self.points[index.clamp(max=self.n_points - 1)]

    def divergences(self, x):
        """Return KL(p(z|x) || p(z)) and that of each latent, (n, 1 + n_components)."""
        log_posterior = torch.log_softmax(self.log_joint(x), 1)
        weights = log_posterior.exp()
        columns = [(weights * (log_posterior - self.log_weights)).sum(1)]
        prior = self.log_weights.exp()
        for index in self.index.T:
            marginal, reference = (
                p.new_zeros(len(p), self.n_nodes).index_add_(1, index, p)
                for p in (weights, prior[None])
            )
            ratio = torch.xlogy(marginal, marginal) - torch.xlogy(marginal, reference)
            columns.append(ratio.sum(1))
        return torch.stack(columns, 1)
