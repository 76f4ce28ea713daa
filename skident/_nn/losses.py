"""Objectives: what the networks minimise, and what is reported of them.

Everything is in nats a row: summed over features and latents, averaged over rows.
"""

import math

import torch
from torch import nn


class SquaredError(nn.Module):
    """Squared error summed over features, averaged over rows."""

    def forward(self, output, x):
        """Compare rows (n, n_features)."""
        return (output - x).square().sum(-1).mean()


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

    def forward(self, encoded, x):
        """Compare an ``Encoded`` batch with the rows it came from."""
        fit = self.log_prob(encoded.parameters, x)
        kl = gaussian_kl(encoded.mean, encoded.log_var).sum(-1)
        return (self.beta * kl - fit).mean()


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


def importance_log_likelihood(module, log_prob, x, noise):
    """Log-likelihood of each row (n,) by importance sampling from the posterior.

    ln (1/k) sum_j p(x|z_j) p(z_j) / q(z_j|x) (Burda, Grosse, Salakhutdinov 2016): in
    expectation at least the ELBO and at most ln p(x), and equal to it as k grows.
    """
    draws, _, log_var = posterior_draws(module, x, noise)
    log_prior = -0.5 * draws.square().sum(-1)
    log_posterior = -0.5 * (noise.square().sum(-1)[:, None] + log_var.sum(-1))
    weights = log_prob(module.decode(draws), x) + log_prior - log_posterior
    return torch.logsumexp(weights, 0) - math.log(noise.shape[0])
