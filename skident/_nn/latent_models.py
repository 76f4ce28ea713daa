"""Modules of latent variable models with the outputs of a likelihood."""

from typing import NamedTuple

import torch
from torch import nn

from skident._nn.modules import VariationalAutoencoder


class Posterior(NamedTuple):
    """Mean and log-variance (n, n_components) of a Gaussian posterior."""

    mean: torch.Tensor
    log_var: torch.Tensor


class DecodingModel(nn.Module):
    """A decoder of which some outputs do not depend on z."""

    def share(self, family):
        """Add the outputs of a likelihood that do not depend on z."""
        self.family, self.shared = family, None
        if family.n_shared:
            self.shared = nn.Parameter(torch.zeros(family.n_shared))

    def decode(self, z):
        """Map latents (..., n_components) to the parameters of the likelihood."""
        parameters = self.decoder(z)
        if self.shared is None:
            return parameters
        shared = self.shared.expand(*parameters.shape[:-1], -1)
        return torch.cat([parameters, shared], -1)

    def start(self, rows):
        """Start at the independent columns that rows show."""
        independent, n_outputs = self.family.independent(rows), self.family.n_outputs
        with torch.no_grad():
            self.decoder[-1].bias.copy_(independent[:n_outputs])
            if self.shared is not None:
                self.shared.copy_(independent[n_outputs:])


class EncodedModel(DecodingModel, VariationalAutoencoder):
    """Variational autoencoder with the outputs of a likelihood.

    Parameters
    ----------
    family : Likelihood
        Likelihood of the rows.
    n_components : int
        Number of latents.
    hidden_layer_sizes : tuple of int
        Widths of the encoder's hidden layers; the decoder has them reversed.
    """

    def __init__(self, family, n_components, hidden_layer_sizes):
        super().__init__(
            family.n_views, family.n_outputs, n_components, hidden_layer_sizes
        )
        self.share(family)

    def encode(self, x):
        """Map rows to the mean and log-variance of the posterior."""
        return Posterior(*super().encode(self.family.view(x)))

    def start(self, rows):
        """Start at independent columns, and blind to what is missing.

        That a site is missing can be learned, and so counts for nothing where it never
        is.
        """
        super().start(rows)
        if self.family.masked:
            with torch.no_grad():
                self.encoder[0].weight[:, -self.family.n_sites :] = 0.0
