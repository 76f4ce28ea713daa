"""Likelihood of columns with levels."""

import math

import numpy as np
import torch

from skident._nn.exponential import Likelihood, like


class Categorical(Likelihood):
    """Columns of whole numbers, each with its own levels, or groups of one-hot columns.

    The parameters are the logits of all levels, one column after another, and so are
    the statistics: 1 at the level, else 0.
    """

    name = "categorical"

    def __init__(self, masked=False, n_features=0, **units):
        super().__init__(masked, n_features, **units)
        if units:
            self.n_sites, self.n_statistics = len(self.sizes), int(self.sizes.sum())
            self.n_outputs = self.n_statistics
            self._starts = np.cumsum(self.sizes) - self.sizes
            self._site = np.repeat(np.arange(self.n_sites), self.sizes)
            self.site_of_statistic = self._site
            if self.one_hot:
                self.site_of_column = self._site
            # levels of each site, filled up with one that has probability 0
            steps = np.arange(self.sizes.max())
            self._padded = np.where(
                steps < self.sizes[:, None],
                self._starts[:, None] + steps,
                self.n_statistics,
            )

    def learn(self, values, present):
        """Learn the levels of each column, or the groups of one-hot columns."""
        sizes = _one_hot_groups(np.where(present, values, 0), present)
        if sizes is not None:
            return {"one_hot": True, "sizes": sizes, "levels": np.empty(0)}
        levels = [
            np.unique(column[there])
            for column, there in zip(values.T, present.T, strict=True)
        ]
        sizes = np.array([len(level) for level in levels])
        levels = np.concatenate(levels).astype(np.float64)
        return {"one_hot": False, "sizes": sizes, "levels": levels}

    @property
    def rule(self):
        """What it takes."""
        if self.one_hot:
            return "one 1 in each group of one-hot columns, as in the fit"
        return "whole numbers, in each column only those of the fit"

    def breaches(self, values):
        if self.one_hot:
            total = np.add.reduceat(values, self._starts, axis=1)
            wrong = (values != 0) & (values != 1)
            return wrong | (total != 1)[:, self._site]
        return (values % 1 != 0) | ~self._hits(values)[1]

    def _hits(self, values):
        """Return the level of each entry, and whether it is one of the fit."""
        index, known = np.zeros(values.shape, int), np.zeros(values.shape, bool)
        for j, (start, size) in enumerate(zip(self._starts, self.sizes, strict=True)):
            levels = self.levels[start : start + size]
            found = np.searchsorted(levels, values[:, j]).clip(max=size - 1)
            index[:, j], known[:, j] = start + found, levels[found] == values[:, j]
        return index, known

    def inward(self, values):
        if self.one_hot:
            return values
        rows = np.zeros((len(values), self.n_statistics), np.float32)
        np.put_along_axis(rows, self._hits(values)[0], 1.0, axis=1)
        return rows

    def outward(self, means):
        if self.one_hot:
            return means
        return np.add.reduceat(means * self.levels, self._starts, axis=1)

    def outward_draws(self, draws):
        return self.outward(draws).astype(np.int64)

    def natural(self, parameters):
        padded = self._by_site(parameters, -math.inf)
        log_total = torch.logsumexp(padded, -1)
        return parameters - log_total[..., self._site], torch.zeros_like(log_total)

    def _by_site(self, levels, fill):
        """Return what belongs to levels as (..., n_sites, most levels)."""
        more = torch.full_like(levels[..., :1], fill)
        return torch.cat([levels, more], -1)[..., self._padded]

    def mean(self, parameters):
        return torch.exp(self.natural(parameters)[0])

    def sample(self, parameters):
        total = torch.cumsum(self._by_site(self.mean(parameters), 0.0), -1)
        uniform = torch.rand_like(total[..., :1]) * total[..., -1:]
        index = (total <= uniform).sum(-1) + like(self._starts, uniform).long()
        return torch.zeros_like(parameters).scatter_(-1, index, 1.0)

    def independent(self, x):
        total, _ = self._counted(x)
        return torch.log(total + 0.5)

    def fields(self, parameters):
        return self.natural(parameters)[0]


def _one_hot_groups(values, present):
    """Return the sizes of groups of one-hot columns, or None if these are none.

    A group ends where every row has had its one 1 (rows with a missing entry do not
    count); columns of zeros at the end belong to the last group.
    """
    if not np.isin(values, (0, 1)).all():
        return None
    known = present.all(1)
    rows, ends, start = values[known], [], 0
    for j in range(values.shape[1]):
        if (rows[:, start : j + 1].sum(1) == 1).all():
            ends.append(j + 1)
            start = j + 1
    if not ends or rows[:, start:].any():
        return None
    ends[-1] = values.shape[1]
    sizes = np.diff([0, *ends])
    return sizes if len(rows) and sizes.min() > 1 else None
