"""Objectives: what the networks minimise, and what is reported of them.

An objective is called with the module and a batch of rows, so that it can use encoder
and decoder. Everything is summed over features and latents and averaged over rows.
"""

import contextlib
import math

import torch
from torch import nn
from torch.nn import functional

from skident._nn.isometry import (
    mixed_latents,
    relative_distortion,
    sphere_directions,
)


class SquaredError(nn.Module):
    """Squared error summed over features, averaged over rows.

    An error compares what a decoder puts out with rows in network units, and knows
    how to turn that output into rows of the data.

    Attributes
    ----------
    name : str
        Its name in ``ERRORS``.
    """

    name = "mse"

    def __init__(self, mean, scale):
        super().__init__()
        self.register_buffer("mean", mean, persistent=False)
        self.scale = scale

    def forward(self, output, x):
        """Compare rows (n, n_features)."""
        return (output - x).square().sum(-1).mean()

    def decoded(self, output):
        """Return the rows that an output stands for, in units of ``scale``."""
        return output


class CrossEntropy(SquaredError):
    """Binary cross-entropy, in nats a row, of rows that lie in [0, 1].

    The decoder puts out logits.

    Parameters
    ----------
    mean : tensor of shape (n_features,)
        Means of the data, which network units have at 0.
    scale : float
        What network units have at 1.
    """

    name = "bce"

    def forward(self, output, x):
        """Compare logits with rows in network units."""
        target = (x * self.scale + self.mean).clamp(0.0, 1.0)
        # -t ln s(o) - (1 - t) ln s(-o), of which neither term overflows
        return (functional.softplus(output) - target * output).sum(-1).mean()

    def decoded(self, output):
        """Return probabilities, in units of ``scale`` and from the mean."""
        return (torch.sigmoid(output) - self.mean) / self.scale


ERRORS = {error.name: error for error in (SquaredError, CrossEntropy)}


class Reconstruction(nn.Module):
    r"""What an autoencoder minimises: an error, with masked input and a penalty.

    .. math:: \mathrm{error}(g(f(m(x))), x) + w \, u \, \mathrm{distortion}(g)

    Parameters
    ----------
    error : SquaredError or CrossEntropy
        Compares the decoder's output with the rows.
    isometry : float
        The weight w of the relative distortion of the decoder.
    unit : float
        Error u of the columns' means, which makes the weight free of any scale.
    mask : callable, optional
        What the encoder sees of rows: masked ones, or a copy.
    """

    def __init__(self, error, *, isometry=0.0, unit=1.0, mask=None):
        super().__init__()
        self.error, self.weight, self.mask = error, isometry * unit, mask

    def forward(self, module, x):
        """Return the loss of a batch of rows (n, n_features)."""
        with _small_batch_named():
            z = module.encode(x if self.mask is None else self.mask(x))
            if self.weight:
                # before z is decoded, which may change it in place; every second row:
                # as good an estimate to train by, and a fifth less time
                points = mixed_latents(z)[::2]
            loss = self.error(module.decode(z), x)
            if self.weight:
                loss = loss + self.weight * self._distortion(module, points)
        return loss

    def _distortion(self, module, points):
        return relative_distortion(
            lambda at: self.error.decoded(module.decode(at)),
            points,
            sphere_directions(points),
        )


@contextlib.contextmanager
def _small_batch_named():
    """Say what a normalisation over the batch needs; torch tells shapes inside only."""
    try:
        yield
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise ValueError(
            "module normalises over the batch (BatchNorm), which cannot be one row: "
            "give at least two rows and set batch_size to 2 or more (3 with isometry, "
            "which looks at every second row), or use what normalises each row by "
            "itself (LayerNorm)."
        ) from error


class NegativeELBO(nn.Module):
    r"""The negative evidence lower bound, in nats a row.

    .. math:: -\mathbb{E}_{q(z|x)} \ln p(x|z) + \beta\, KL(q(z|x) \| N(0, I))

    with one draw of z a row (Kingma and Welling 2014, equation 10).

    Parameters
    ----------
    log_prob : callable
        Log-probability of a likelihood.
    """

    def __init__(self, log_prob):
        super().__init__()
        self.log_prob = log_prob
        self.beta = 1.0

    def forward(self, module, x):
        """Return the loss of a batch of rows (n, n_features)."""
        encoded = module(x)
        fit = self.log_prob(encoded.parameters, x)
        kl = gaussian_kl(encoded.mean, encoded.log_var).sum(-1)
        return (self.beta * kl - fit).mean()


class NegativeImportanceBound(NegativeELBO):
    r"""The negative importance-weighted bound, in nats a row.

    .. math:: -\mathbb{E} \ln \frac{1}{k} \sum_{j=1}^{k} p(x|z_j)
        \left(\frac{p(z_j)}{q(z_j|x)}\right)^{\beta}, \quad z_j \sim q(z|x)

    (Burda, Grosse and Salakhutdinov 2016, equation 8): the ELBO for k = 1, and nearer
    to ln p(x) the larger k is.

    Parameters
    ----------
    log_prob : callable
        Log-probability of a likelihood.
    n_components, n_draws : int
        Number of latents, and k.
    """

    def __init__(self, log_prob, n_components, n_draws):
        super().__init__(log_prob)
        self.n_components, self.n_draws = n_components, n_draws

    def forward(self, module, x):
        """Return the loss of a batch of rows (n, n_features)."""
        shape = self.n_draws, x.shape[0], self.n_components
        noise = torch.randn(shape, device=x.device)
        weights = importance_weights(module, self.log_prob, x, noise, beta=self.beta)
        return math.log(self.n_draws) - torch.logsumexp(weights, 0).mean()


def gaussian_kl(mean, log_var):
    """KL(N(mean, exp(log_var)) || N(0, 1)) elementwise, in nats."""
    return 0.5 * (mean.square() + log_var.exp() - 1.0 - log_var)


def posterior_draws(module, x, noise):
    """Draw latents of each row with the same noise for every row.

    Parameters
    ----------
    module : VariationalAutoencoder
        Trained network.
    x : tensor of shape (n, n_features)
        Rows.
    noise : tensor of shape (k, n_components)
        Standard normal numbers.

    Returns
    -------
    draws : tensor of shape (k, n, n_components)
    mean, log_var : tensors of shape (n, n_components)
    """
    mean, log_var = module.encode(x)
    draws = mean + torch.exp(0.5 * log_var) * noise[:, None, :]
    return draws, mean, log_var


def elbo(module, log_prob, x, noise):
    """Evidence lower bound of each row (n,), averaged over k draws of noise."""
    draws, mean, log_var = posterior_draws(module, x, noise)
    fit = log_prob(module.decode(draws), x).mean(0)
    return fit - gaussian_kl(mean, log_var).sum(-1)


def importance_weights(module, log_prob, x, noise, *, beta=1.0):
    """Log of the weights p(x|z_j) (p(z_j) / q(z_j|x))^beta of draws from the posterior.

    Parameters
    ----------
    module : VariationalAutoencoder
        Network.
    log_prob : callable
        Log-probability of a likelihood.
    x : tensor of shape (n, n_features)
        Rows.
    noise : tensor of shape (k, n or 1, n_components)
        Standard normal numbers.
    beta : float
        Weight of prior and posterior.

    Returns
    -------
    tensor of shape (k, n)
    """
    mean, log_var = module.encode(x)
    draws = mean + torch.exp(0.5 * log_var) * noise
    ratio = 0.5 * (noise.square() + log_var - draws.square()).sum(-1)
    return log_prob(module.decode(draws), x) + beta * ratio


def importance_log_likelihood(module, log_prob, x, noise):
    """Log-likelihood of each row (n,) by importance sampling from the posterior.

    ln (1/k) sum_j p(x|z_j) p(z_j) / q(z_j|x) with the same noise (k, n_components) for
    every row (Burda, Grosse, Salakhutdinov 2016): in expectation at least the ELBO and
    at most ln p(x), and equal to it as k grows.
    """
    return importance_estimate(module, log_prob, x, noise)[:, 0]


def importance_estimate(module, log_prob, x, noise):
    """Log-likelihood as :func:`importance_log_likelihood`, and its standard error.

    Returns a tensor of shape (n, 2). The error is that of the mean of the weights over
    the mean, from their own variance: infinite for one draw, and too small where few
    draws carry all weight.
    """
    weights = importance_weights(module, log_prob, x, noise[:, None])
    n_draws = weights.shape[0]
    log_mean = torch.logsumexp(weights, 0) - math.log(n_draws)
    # sum_j (w_j / mean - 1)^2 / (k (k - 1))
    variance = (torch.exp(weights - log_mean) - 1.0).square().sum(0) / n_draws
    error = (variance / (n_draws - 1)).sqrt() if n_draws > 1 else variance + math.inf
    return torch.stack([log_mean, error], -1)
