"""Likelihoods of a conditionally independent decoder: p(x | z) = prod_i p_i(x_i | z).

A likelihood is a table entry with five functions of tensors. ``parameters`` is what
the decoder puts out, of shape (..., n_outputs); ``x`` is a row in network units, of
shape (..., n_features).
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
    start : callable
        ``start(mean)``: output bias with which the untrained decoder has the columns'
        means.
    """

    n_outputs: Callable
    log_prob: Callable
    mean: Callable
    sample: Callable
    start: Callable


def _bernoulli_log_prob(logits, x):
    # x logit - ln(1 + e^logit), which neither overflows nor saturates
    return (x * logits - functional.softplus(logits)).sum(-1)


LIKELIHOODS = {
    "bernoulli": Likelihood(
        n_outputs=lambda n_features: n_features,
        log_prob=_bernoulli_log_prob,
        mean=torch.sigmoid,
        sample=lambda logits: torch.bernoulli(torch.sigmoid(logits)),
        start=torch.logit,
    ),
}
