"""beta-VAE and beta-TCVAE, as small as they can be, with the networks of skident."""

import math

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from torch import nn

from skident._nn.convolutions import ConvolutionalAutoencoder
from skident._nn.modules import Autoencoder


class BetaVAE(TransformerMixin, BaseEstimator):
    r"""Variational autoencoder whose loss weighs KL and total correlation.

    .. math:: -E \ln p(x|z) + \beta \, KL(q(z|x) \| p(z)) + w \, TC(z)

    per row, with binary cross-entropy for values in [0, 1] and else the squared error
    in units of the variance; TC(z) by minibatch-weighted sampling (Chen et al.,
    NeurIPS 2018, equation S3). beta = 1, w = 0 is a plain VAE (Higgins et al., ICLR
    2017).

    Parameters
    ----------
    n_components : int
    beta, tc_weight : float
    image_shape : tuple of int or None
        None takes fully connected layers.
    max_epochs, batch_size : int
    learning_rate : float
    random_state : int
    """

    def __init__(
        self,
        n_components=10,
        *,
        beta=1.0,
        tc_weight=0.0,
        image_shape=None,
        max_epochs=20,
        batch_size=128,
        learning_rate=1e-3,
        random_state=0,
    ):
        self.n_components = n_components
        self.beta = beta
        self.tc_weight = tc_weight
        self.image_shape = image_shape
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X, y=None):
        with torch.random.fork_rng():
            torch.manual_seed(self.random_state)
            self._train(torch.as_tensor(X, dtype=torch.float32))
        return self

    def _network(self, n_features, n_components):
        if self.image_shape is None:
            return Autoencoder(n_features, n_components, (256, 256), 0.2)
        return ConvolutionalAutoencoder(
            n_features, n_components, self.image_shape, 32, (256,), 0.2
        )

    def _train(self, X):
        n, width = X.shape
        binary = X.min() >= 0 and X.max() <= 1
        scale = X.var(0).mean()
        self.encoder_ = self._network(width, 2 * self.n_components)
        decoder = self._network(width, self.n_components)
        weights = [*self.encoder_.parameters(), *decoder.parameters()]
        optimiser = torch.optim.AdamW(weights, self.learning_rate)
        for _ in range(self.max_epochs):
            for rows in torch.randperm(n).split(self.batch_size):
                if len(rows) < 2:
                    continue
                x = X[rows]
                mean, log_variance = self.encoder_.encode(x).chunk(2, dim=1)
                z = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
                out = decoder.decode(z)
                if binary:
                    left = nn.functional.binary_cross_entropy_with_logits(
                        out, x, reduction="sum"
                    )
                else:
                    left = (out - x).square().sum() / (2 * scale)
                kl = (mean.square() + log_variance.exp() - 1 - log_variance).sum() / 2
                loss = (left + self.beta * kl) / len(x)
                if self.tc_weight:
                    tc = total_correlation(z, mean, log_variance, n)
                    loss = loss + self.tc_weight * tc
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()

    def transform(self, X):
        with torch.inference_mode():
            parts = torch.as_tensor(X, dtype=torch.float32).split(1024)
            latents = [self.encoder_.encode(x).chunk(2, dim=1)[0] for x in parts]
        return np.concatenate([part.numpy() for part in latents])


def total_correlation(z, mean, log_variance, n_rows):
    """Return KL(q(z) || prod_j q(z_j)) by minibatch-weighted sampling, nats."""
    away = z[:, None] - mean[None]
    log_q = -(
        away.square() / log_variance.exp() + log_variance + math.log(2 * math.pi)
    ).div(2)
    size = math.log(n_rows * len(z))
    joint = torch.logsumexp(log_q.sum(2), 1) - size
    single = (torch.logsumexp(log_q, 1) - size).sum(1)
    return (joint - single).mean()
