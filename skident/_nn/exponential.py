r"""Exponential families of a conditionally independent decoder.

In *network units* a row is what its statistics T are, and with natural parameters
:math:`\eta(z)`

.. math:: \ln p(x | z) = T(x) \cdot \eta - \sum_i A_i(\eta) + \sum_i b_i(x)

so that all rows at all points z are one matrix product. A site i is a column of the
data, three for a director, or a group of columns for one-hot rows. Where entries may be
missing, a row has behind its statistics one number a site, 1 where it is missing, and
its statistics are 0 there.
"""

import numpy as np
import torch


class Likelihood:
    """One family of conditional distributions.

    Parameters
    ----------
    masked : bool
        Whether rows say which sites are missing.
    n_features : int
        Number of columns of the data.
    **units : ndarray or number
        What :meth:`learn` found in the data. It is all that must be kept of a family.

    Attributes
    ----------
    n_sites, n_statistics, n_outputs, n_shared : int
        Number of sites, of statistics, of parameters that depend on z, and of those
        that do not.
    site_of_column, site_of_statistic : ndarray of int
        Site that each belongs to.
    """

    name = rule = remedy = ""

    def __init__(self, masked=False, n_features=0, **units):
        self.masked, self.n_features, self.units = masked, n_features, units
        self.n_sites = self.n_statistics = self.n_outputs = n_features
        self.n_shared = 0
        self.site_of_column = self.site_of_statistic = np.arange(n_features)
        vars(self).update(units)

    @property
    def n_inputs(self):
        """Width of a row in network units."""
        return self.n_statistics + self.masked * self.n_sites

    @property
    def n_views(self):
        """Width of a row as the encoder sees it."""
        return self.n_inputs

    # Arrays of the user: values (n, n_features), of which some may be missing.

    def learn(self, values, present):
        """Return the units of rows of which ``present`` entries are there, a dict."""
        return {}

    def breaches(self, values):
        """Return whether each entry breaks ``rule``, as booleans (n, n_features)."""
        raise NotImplementedError

    def inward(self, values):
        """Return the statistics (n, n_statistics) of values."""
        raise NotImplementedError

    def missing_sites(self, missing):
        """Return whether each site of (n, n_features) entries is missing."""
        starts = np.flatnonzero(np.diff(self.site_of_column, prepend=-1))
        return np.logical_and.reduceat(missing, starts, axis=1)

    def rows(self, values, missing):
        """Return rows in network units; ``missing`` is None if not ``masked``."""
        if missing is None:
            return self.inward(values)
        sites = self.missing_sites(missing)
        statistics = self.inward(np.where(missing, 0, values))
        statistics = np.where(sites[:, self.site_of_statistic], 0, statistics)
        return np.concatenate([statistics, sites], axis=1)

    def outward(self, means):
        """Return means of statistics, of :meth:`mean`, in units of the data."""
        return means

    def outward_draws(self, draws):
        """Return draws of :meth:`sample` in units of the data."""
        return self.outward(draws)

    # Tensors: parameters (..., n_outputs + n_shared), rows (..., n_inputs).

    def natural(self, parameters):
        """Return natural parameters (..., n_statistics) and A_i (..., n_sites)."""
        raise NotImplementedError

    def base(self, statistics):
        """Return b_i (..., n_sites), or None where it is 0."""
        return None

    def mean(self, parameters):
        """Return E[x | z], for :meth:`outward`."""
        raise NotImplementedError

    def sample(self, parameters):
        """Return one draw of x from torch's generator, for :meth:`outward_draws`."""
        raise NotImplementedError

    def independent(self, x):
        """Return the constant parameters of independent columns that rows show.

        Half a count or row is added, which keeps them off the boundary.
        """
        raise NotImplementedError

    def fields(self, parameters):
        """Return the local fields that users see, in units of the data."""
        return parameters

    def view(self, x):
        """Return rows as the encoder sees them."""
        return x

    def split(self, x):
        """Return the statistics of rows, and the missing sites or None."""
        if not self.masked:
            return x, None
        return x[..., : self.n_statistics], x[..., self.n_statistics :]

    def log_prob(self, parameters, x):
        """Return ln p(x | z), summed over sites, in nats."""
        statistics, missing = self.split(x)
        natural, partition = self.natural(parameters)
        if missing is not None:
            partition = partition * (1.0 - missing)
        value = (statistics * natural).sum(-1) - partition.sum(-1)
        return self._add_base(value, statistics, missing)

    def log_joint(self, natural, partition, log_weights, x):
        """Return ln w_g + ln p(x | z_g) of rows (n,) at points (g,), shape (n, g).

        ``natural`` and ``partition`` are what :meth:`natural` returns of the points.
        """
        statistics, missing = self.split(x)
        value = torch.addmm(log_weights - partition.sum(-1), statistics, natural.T)
        if missing is not None:
            value = torch.addmm(value, missing, partition.T)
        return self._add_base(value.T, statistics, missing).T

    def _add_base(self, value, statistics, missing):
        base = self.base(statistics)
        if base is None:
            return value
        return value + (base if missing is None else base * (1.0 - missing)).sum(-1)

    def _counted(self, x):
        """Return the sums of statistics and the number of rows at each site."""
        statistics, missing = self.split(x)
        n = statistics.shape[0]
        return statistics.sum(0), n if missing is None else n - missing.sum(0)


def like(array, tensor):
    """Return an array as a tensor with the type and device of another."""
    return torch.as_tensor(array, dtype=tensor.dtype, device=tensor.device)
