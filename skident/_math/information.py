"""Dependence between two-valued columns, in nats.

The workhorse is a pairwise chain model: with the columns in order,

    logit p(x_i = 1 | x_1..x_{i-1}, z) = a_i(z) + sum_{j<i} J_ij (x_j - m_j(z)),

fitted column by column (a logistic autoregressive network, Frey 1998). It is a
normalised distribution, so its held-out gain over the same model with J = 0 estimates
the total correlation given z, and at most by the calibration error of a_i(z) from
above:

    gain = TC(x|z) - KL(q(x|z) || chain) + sum_i KL(q(x_i|z) || a_i).
"""

import numpy as np
from scipy import linalg
from scipy.special import expit

# Variance of the Gaussian prior on a coupling: logits a full spin flip.
_PRIOR_VARIANCE = 1.0
_MAX_NEWTON = 25
_CLIP = 1e-6


def independent_log_prob(bits, means):
    """Log-probability of each row under independent columns with given means.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_features)
        0 or 1.
    means : ndarray of shape (n_features,) or (n_samples, n_features)
        Probabilities of 1, inside (0, 1).

    Returns
    -------
    ndarray of shape (n_samples,)
        Nats.
    """
    return np.where(bits, np.log(means), np.log1p(-means)).sum(-1)


def smoothed_means(bits):
    """Return column means with half a count added to either value."""
    return (bits.sum(0) + 0.5) / (len(bits) + 1.0)


def chain_gain(bits, means, latents, halves):
    """Held-out gain of the pairwise chain over conditional independence.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_features)
        0 or 1.
    means : ndarray of shape (n_samples, n_features)
        Probability of 1 given the latents of that row.
    latents : ndarray of shape (n_samples, n_components)
        Latents: the calibration of ``means`` may depend on them linearly. May have no
        columns.
    halves : ndarray of shape (n_samples,), bool
        Either half is fitted on the other.

    Returns
    -------
    ndarray of shape (n_samples,)
        ln q(x | z) - sum_i ln q(x_i | z) of each row, nats.
    """
    means = np.clip(means, _CLIP, 1.0 - _CLIP)
    residuals = bits - means
    logits = np.log(means) - np.log1p(-means)
    ones = np.ones((len(bits), 1))
    gain = np.zeros(len(bits))
    for column in range(bits.shape[1]):
        common = np.concatenate([ones, logits[:, [column]], latents], axis=1)
        features = np.concatenate([common, residuals[:, :column]], axis=1)
        for fitted in (halves, ~halves):
            gain[~fitted] += _column_gain(
                features, bits[:, column], fitted, common.shape[1]
            )
    return gain


def _column_gain(features, target, fitted, n_common):
    """Gain of all features over the first ``n_common``, on the rows not fitted."""
    train, test = features[fitted], features[~fitted]
    x_train, x_test = target[fitted], target[~fitted]
    start = np.zeros(features.shape[1])
    start[1] = 1.0
    penalty = np.full(features.shape[1], 1.0 / _PRIOR_VARIANCE)
    null = fit_logistic(
        train[:, :n_common], x_train, penalty[:n_common], start[:n_common]
    )
    start[:n_common] = null
    full = fit_logistic(train, x_train, penalty, start)
    return bernoulli_log_prob(x_test, test @ full) - bernoulli_log_prob(
        x_test, test[:, :n_common] @ null
    )


def bernoulli_log_prob(bits, logits):
    """Log-probability, in nats, of 0 or 1 at a logit, without overflow."""
    return bits * logits - np.logaddexp(0.0, logits)


def fit_logistic(features, target, penalty, start):
    """Penalised logistic regression by damped Newton steps.

    Minimises minus the log-likelihood plus ``penalty @ (w - start0)**2 / 2``, where
    ``start0`` is ``start`` on entry: what is not informed by the rows stays there.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_parameters)
        Columns of the regression.
    target : ndarray of shape (n_samples,)
        0 or 1.
    penalty : ndarray of shape (n_parameters,)
        Positive; makes the problem strictly convex.
    start : ndarray of shape (n_parameters,)
        Start and centre of the penalty.

    Returns
    -------
    ndarray of shape (n_parameters,)
    """
    weights = start

    def objective(w):
        fit = bernoulli_log_prob(target, features @ w).sum()
        return 0.5 * penalty @ (w - start) ** 2 - fit

    value = objective(weights)
    for _ in range(_MAX_NEWTON):
        p = expit(features @ weights)
        gradient = features.T @ (p - target) + penalty * (weights - start)
        hessian = (features * (p * (1.0 - p))[:, None]).T @ features
        hessian[np.diag_indices_from(hessian)] += penalty
        step = linalg.solve(hessian, gradient, assume_a="pos")
        decrement = gradient @ step
        if decrement < 1e-6:
            break
        size = 1.0
        while (
            new := objective(weights - size * step)
        ) > value - 0.1 * size * decrement:
            size *= 0.5
            if size < 1e-4:
                return weights
        weights, value = weights - size * step, new
    return weights


def residual_covariance(bits, means):
    """Mean of (x_i - m_i)(x_j - m_j) over rows, shape (n_features, n_features)."""
    residuals = bits - means
    return residuals.T @ residuals / len(bits)


def pair_statistic(bits, means):
    """Sum over pairs of the squared, standardised residual covariance.

    The score statistic of all couplings J_ij at J = 0 in the pairwise chain: of mean
    n (n - 1) / 2 for n columns that are independent with these means.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_features)
        0 or 1.
    means : ndarray of shape (n_samples, n_features)
        Probability of 1 given the latents of that row.

    Returns
    -------
    float
    """
    variance = means * (1.0 - means)
    expected = variance.T @ variance
    squared = (residual_covariance(bits, means) * len(bits)) ** 2
    upper = np.triu_indices(bits.shape[1], 1)
    return float((squared[upper] / np.maximum(expected[upper], 1e-12)).sum())
