"""Network modules: autoencoders of fully connected layers."""

import itertools
from typing import NamedTuple

import torch
from torch import nn


class Encoded(NamedTuple):
    """What a variational autoencoder makes of a batch of n rows.

    ``parameters`` (n, n_outputs) are those of the likelihood at one draw of the
    latents, ``mean`` and ``log_var`` (n, n_components) those of the posterior.
    """

    parameters: torch.Tensor
    mean: torch.Tensor
    log_var: torch.Tensor


def perceptron(sizes, activation):
    """Return fully connected layers of the given sizes, linear at the end."""
    layers = []
    for n_in, n_out in itertools.pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), activation()]
    return nn.Sequential(*layers[:-1])


class Autoencoder(nn.Module):
    """Encoder and decoder with mirrored hidden layers and LeakyReLU.

    Parameters
    ----------
    n_features, n_components : int
        Width of the data and of the representation.
    hidden_layer_sizes : tuple of int
        Widths of the encoder's hidden layers; the decoder has them reversed.
    negative_slope : float
        Slope of LeakyReLU below zero.
    """

    def __init__(self, n_features, n_components, hidden_layer_sizes, negative_slope):
        super().__init__()

        def activation():
            return nn.LeakyReLU(negative_slope)

        hidden = tuple(hidden_layer_sizes)
        self.encoder = perceptron((n_features, *hidden, n_components), activation)
        self.decoder = perceptron((n_components, *hidden[::-1], n_features), activation)

    def encode(self, x):
        """Map rows (n, n_features) to latents (n, n_components)."""
        return self.encoder(x)

    def decode(self, z):
        """Map latents (n, n_components) to rows (n, n_features)."""
        return self.decoder(z)

    def forward(self, x):
        """Reconstruct rows (n, n_features)."""
        return self.decode(self.encode(x))


class VariationalAutoencoder(nn.Module):
    """Gaussian encoder with diagonal covariance, conditionally independent decoder.

    Parameters
    ----------
    n_features, n_outputs, n_components : int
        Width of the encoder's input, of the likelihood's parameters, of the latents.
    hidden_layer_sizes : tuple of int
        Widths of the encoder's hidden layers; the decoder has them reversed.
    """

    # The log-variance lives in (centre - half, centre + half): exp never overflows,
    # and the bound is smooth, so no gradient is cut.
    _LOG_VAR_CENTRE = -4.0
    _LOG_VAR_HALF = 8.0

    def __init__(self, n_features, n_outputs, n_components, hidden_layer_sizes):
        super().__init__()
        hidden = tuple(hidden_layer_sizes)
        self.encoder = perceptron((n_features, *hidden, 2 * n_components), nn.SiLU)
        self.decoder = perceptron((n_components, *hidden[::-1], n_outputs), nn.SiLU)

    def encode(self, x):
        """Map rows to the mean and log-variance of the posterior."""
        mean, raw = self.encoder(x).chunk(2, dim=-1)
        centre, half = self._LOG_VAR_CENTRE, self._LOG_VAR_HALF
        return mean, centre + half * torch.tanh((raw - centre) / half)

    def decode(self, z):
        """Map latents to the parameters of the likelihood."""
        return self.decoder(z)

    def forward(self, x):
        """Encode rows, draw one latent for each and decode it."""
        mean, log_var = self.encode(x)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        return Encoded(self.decode(z), mean, log_var)
