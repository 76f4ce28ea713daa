"""Likelihoods of a conditionally independent decoder, by name."""

import math

import numpy as np
import torch
from torch.nn import functional

from skident._nn.categorical import Categorical
from skident._nn.directors import Bingham
from skident._nn.exponential import Likelihood, like

# Counts up to here are whole numbers in float32.
_LARGEST_COUNT = 2**24
# Logarithm of the largest and of the smallest rate, in units of the column's mean.
_LOG_RATE_BOUND = 30.0


class Bernoulli(Likelihood):
    """Spins or binary words. The parameters are logits, x is -1 or 1."""

    name = "bernoulli"

    def learn(self, values, present):
        """Tell spins from words: rows of ones alone are words."""
        return {"values": (-1, 1) if (present & (values == -1)).any() else (0, 1)}

    @property
    def rule(self):
        """What it takes."""
        return f"the values {self.values[0]} and {self.values[1]} only"

    def breaches(self, values):
        return (values != self.values[0]) & (values != self.values[1])

    def inward(self, values):
        return 2 * (values == self.values[1]).view(np.int8) - 1

    def outward(self, means):
        return means if self.values[0] == -1 else 0.5 * (means + 1.0)

    def outward_draws(self, draws):
        low, high = self.values
        return np.where(draws > 0, np.int8(high), np.int8(low))

    def natural(self, parameters):
        return 0.5 * parameters, functional.softplus(parameters) - 0.5 * parameters

    def log_prob(self, parameters, x):
        # in fewer steps: sigma(x logit), of which a missing x = 0 would make 1 / 2
        statistics, missing = self.split(x)
        value = functional.logsigmoid(statistics * parameters).sum(-1)
        return value if missing is None else value + math.log(2.0) * missing.sum(-1)

    def mean(self, parameters):
        return torch.tanh(0.5 * parameters)

    def sample(self, parameters):
        return 2.0 * torch.bernoulli(torch.sigmoid(parameters)) - 1.0

    def independent(self, x):
        total, n = self._counted(x)
        return 2.0 * torch.atanh(total / (n + 1.0))


class Gaussian(Likelihood):
    """Real values: means that depend on z, and one variance a column that does not.

    In units of the column's standard deviation the variance is 1e-4 + softplus(r), so
    at least 1e-4 of what the column has.
    """

    name, rule = "gaussian", "finite numbers"
    floor = 1e-4

    def __init__(self, masked=False, n_features=0, **units):
        super().__init__(masked, n_features, **units)
        self.n_shared, self.n_statistics = n_features, 2 * n_features
        self.site_of_statistic = np.tile(self.site_of_column, 2)

    def learn(self, values, present):
        """Learn mean and standard deviation of columns; a constant one has unit 1."""
        values = np.where(present, values, np.nan)
        scale = np.nanstd(values, axis=0, dtype=np.float64)
        return {
            "location": np.nanmean(values, axis=0, dtype=np.float64),
            "scale": np.where(scale > 0, scale, 1.0),
        }

    def breaches(self, values):
        # beyond float32 squares overflow
        return ~(np.abs((values - self.location) / self.scale) <= 1e15)

    def inward(self, values):
        x = (values - self.location) / self.scale
        return np.concatenate([x, x**2], axis=1)

    def outward(self, means):
        return means * self.scale + self.location

    def _variance(self, parameters):
        mean, raw = parameters.split(self.n_features, dim=-1)
        return mean, self.floor + functional.softplus(raw)

    def natural(self, parameters):
        mean, variance = self._variance(parameters)
        natural = torch.cat([mean / variance, -0.5 / variance], -1)
        unit = 0.5 * math.log(2.0 * math.pi) + torch.log(like(self.scale, mean))
        partition = 0.5 * mean.square() / variance + 0.5 * torch.log(variance)
        return natural, partition + unit

    def mean(self, parameters):
        return parameters[..., : self.n_features]

    def sample(self, parameters):
        mean, variance = self._variance(parameters)
        # uniform numbers come in the order of rows, however many there are
        uniform = torch.rand_like(mean, dtype=torch.float64).clamp(min=1e-16)
        return mean + variance.sqrt() * torch.special.ndtri(uniform).to(mean.dtype)

    def independent(self, x):
        total, n = self._counted(x)
        mean, square = (total.view(2, -1) / (n + 0.5)).unbind()
        variance = (square - mean.square() - self.floor).clamp(min=self.floor)
        return torch.cat([mean, variance + torch.log(-torch.expm1(-variance))])

    def fields(self, parameters):
        mean, scale = self.mean(parameters), like(self.scale, parameters)
        return mean * scale + like(self.location, parameters)

    @property
    def n_views(self):
        """Width of a row as the encoder sees it: without squares."""
        return self.n_inputs - self.n_features

    def view(self, x):
        _, missing = self.split(x)
        x = x[..., : self.n_features]
        return x if missing is None else torch.cat([x, missing], -1)


class Poisson(Likelihood):
    """Counts. The parameters are log-rates in units of the column's mean.

    They are bounded smoothly to (-30, 30), so that no rate overflows.
    """

    name = "poisson"
    rule = f"whole numbers from 0 to {_LARGEST_COUNT}"

    def learn(self, values, present):
        """Learn the mean rates, and the scale of log(1 + x) that the encoder sees."""
        logs = np.where(present, np.log1p(np.where(present, values, 0)), np.nan)
        total = np.where(present, values, 0).sum(0, dtype=np.float64)
        spread = np.nanstd(logs, axis=0)
        return {
            "rate": (total + 0.5) / (present.sum(0) + 0.5),
            "centre": np.nanmean(logs, axis=0),
            "spread": np.where(spread > 0, spread, 1.0),
        }

    def breaches(self, values):
        return ~((values >= 0) & (values <= _LARGEST_COUNT) & (values % 1 == 0))

    def inward(self, values):
        return values

    def outward_draws(self, draws):
        return draws.astype(np.int64)

    def _log_ratio(self, parameters):
        return _LOG_RATE_BOUND * torch.tanh(parameters / _LOG_RATE_BOUND)

    def natural(self, parameters):
        ratio = self._log_ratio(parameters)
        return ratio, like(self.rate, ratio) * torch.expm1(ratio)

    def base(self, statistics):
        rate = like(self.rate, statistics)
        return torch.xlogy(statistics, rate) - rate - torch.lgamma(statistics + 1.0)

    def mean(self, parameters):
        return like(self.rate, parameters) * torch.exp(self._log_ratio(parameters))

    def sample(self, parameters):
        return torch.poisson(self.mean(parameters))

    def independent(self, x):
        total, n = self._counted(x)
        ratio = torch.log((total + 0.5) / (n + 0.5) / like(self.rate, x))
        return _LOG_RATE_BOUND * torch.atanh(ratio / _LOG_RATE_BOUND)

    def fields(self, parameters):
        return self._log_ratio(parameters) + torch.log(like(self.rate, parameters))

    def view(self, x):
        statistics, missing = self.split(x)
        scaled = torch.log1p(statistics) - like(self.centre, x)
        scaled = scaled / like(self.spread, x)
        if missing is None:
            return scaled
        return torch.cat([scaled * (1.0 - missing), missing], -1)


LIKELIHOODS = {
    family.name: family()
    for family in (Bernoulli, Bingham, Categorical, Gaussian, Poisson)
}
