"""Likelihood of directors, by the Bingham distribution."""

import math

import numpy as np

from skident._nn import bingham
from skident._nn.exponential import Likelihood, like


class Bingham(Likelihood):
    """Directors: unit vectors of which n and -n are one, three columns a site.

    The parameters are the five coefficients of the traceless symmetric matrix A of each
    site, of which p(n) ~ exp(n'An), with the norm of A bounded smoothly.
    """

    name, rule = "bingham", "unit vectors, three columns each"
    tolerance = 1e-3

    def __init__(self, masked=False, n_features=0, **units):
        super().__init__(masked, n_features, **units)
        self.n_sites = n_features // 3
        self.n_statistics = self.n_outputs = 5 * self.n_sites
        self.site_of_column = np.repeat(np.arange(self.n_sites), 3)
        self.site_of_statistic = np.repeat(np.arange(self.n_sites), 5)

    def learn(self, values, present):
        if values.shape[1] % 3:
            raise ValueError(
                "likelihood='bingham' takes three columns a unit vector, but X has "
                f"{values.shape[1]} columns."
            )
        return {}

    def breaches(self, values):
        length = np.linalg.norm(_vectors(values), axis=-1)
        return np.repeat(~(np.abs(length - 1.0) <= self.tolerance), 3, axis=1)

    def inward(self, values):
        vectors = _vectors(np.asarray(values, dtype=np.float64))
        length = np.linalg.norm(vectors, axis=-1, keepdims=True)
        # what is missing has no length and is masked later
        vectors = vectors / np.where(length > 0, length, 1.0)
        return bingham.statistics(vectors).reshape(len(values), -1)

    def _sites(self, parameters):
        return parameters.unflatten(-1, (self.n_sites, 5))

    def natural(self, parameters):
        coefficients = bingham.bounded(self._sites(parameters))
        partition = bingham.log_normalizer(coefficients) + math.log(4.0 * math.pi)
        return coefficients.flatten(-2), partition

    def mean(self, parameters):
        return bingham.principal_axes(self._sites(self.fields(parameters))).flatten(-2)

    def sample(self, parameters):
        return bingham.sample(self._sites(self.fields(parameters))).flatten(-2)

    def independent(self, x):
        total, n = self._counted(x)
        n = like(n, x).reshape(-1, 1)
        return bingham.fitted(self._sites(total) / (n + 0.5)).flatten()

    def fields(self, parameters):
        return bingham.bounded(self._sites(parameters)).flatten(-2)


def _vectors(values):
    """Return rows of flattened vectors as (n, n_sites, 3)."""
    return values.reshape(len(values), -1, 3)
