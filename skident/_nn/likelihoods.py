"""Likelihoods of a conditionally independent decoder: p(x | z) = prod_i p_i(x_i | z).

A likelihood is a table entry with functions of tensors. ``parameters`` is what the
decoder puts out, of shape (..., n_outputs); ``x`` are rows in network units, of shape
(..., n_features): {-1, 1} for two-valued data.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.nn import functional


class Likelihood(NamedTuple):
    """One family of conditional distributions.

    Attributes
    ----------
    n_outputs : callable
        ``n_outputs(n_features)``: width of the decoder's output.
    log_prob : callable
        ``log_prob(parameters, x)``: log-probability in nats, summed over features.
    mean : callable
        ``mean(parameters)``: the mean of x.
    sample : callable
        ``sample(parameters)``: one draw of x, from torch's current generator.
    independent : callable
        ``independent(x)``: the constant parameters (n_outputs,) of independent columns
        with the distributions that rows x show, kept off the boundary.
    """

    n_outputs: Callable
    log_prob: Callable
    mean: Callable
    sample: Callable
    independent: Callable


def _bernoulli_log_prob(logits, x):
    # p(x) = sigma(x logit), whose logarithm neither overflows nor saturates
    return functional.logsigmoid(x * logits).sum(-1)


def _bernoulli_independent(x):
    # half a count added to either value
    return 2.0 * torch.atanh(x.sum(0) / (x.shape[0] + 1.0))


LIKELIHOODS = {
    "bernoulli": Likelihood(
        n_outputs=lambda n_features: n_features,
        log_prob=_bernoulli_log_prob,
        mean=lambda logits: torch.tanh(0.5 * logits),
        sample=lambda logits: 2.0 * torch.bernoulli(torch.sigmoid(logits)) - 1.0,
        independent=_bernoulli_independent,
    ),
}
