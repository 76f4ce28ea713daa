"""Dependence between two-valued columns, in nats.

The workhorse is a pairwise chain model: with the columns in order,

    logit p(x_i = 1 | x_1..x_{i-1}, z) = a_i(z) + sum_{j<i} J_ij (x_j - m_j(z)),

fitted column by column (a logistic autoregressive network, Frey 1998). It is a
normalised distribution, so its held-out gain over the same model with J = 0 estimates
the total correlation given z, and at most by the calibration error of a_i(z) from
above:

    gain = TC(x|z) - KL(q(x|z) || chain) + sum_i KL(q(x_i|z) || a_i).
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import expit

from skident._math.resampling import fold_labels

_MAX_NEWTON = 50
# A Hessian is renewed once a step shrinks the decrement by less than this.
_SLOW = 0.2
# Of the chain's regressions: 1e-3 nats of thousands of rows are far below their noise.
_TOL = 1e-3
_CLIP = 1e-6


class Estimate(NamedTuple):
    """A figure with its interval.

    Attributes
    ----------
    value : float
        The figure.
    low, high : float
        Ends of its interval.
    """

    value: float
    low: float
    high: float


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


def split_halves(codes, rng):
    """Split rows into halves that keep groups whole, if there are two groups.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Group of each row.
    rng : Generator
        Shuffles the groups.

    Returns
    -------
    ndarray of shape (n_samples,), bool
    """
    codes = np.unique(codes, return_inverse=True)[1]
    if codes.max() == 0:
        codes = np.arange(len(codes))
    return fold_labels(codes, 2, rng) == 0


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
    logits = np.log(means) - np.log1p(-means)
    n_common = 2 + latents.shape[1]
    features = np.concatenate([np.ones((len(bits), 2)), latents, bits - means], axis=1)
    gain = np.zeros(len(bits))
    for fitted in (halves, ~halves):
        train, test = features[fitted], features[~fitted]
        for column in range(bits.shape[1]):
            train[:, 1], test[:, 1] = logits[fitted, column], logits[~fitted, column]
            gain[~fitted] += _column_gain(
                (train[:, : n_common + column], bits[fitted, column]),
                (test[:, : n_common + column], bits[~fitted, column]),
                n_common,
            )
    return gain


def marginal_gain(bits, halves, rng):
    """Held-out gain of the chain over independent columns, less that on such columns.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_features)
        0 or 1.
    halves : ndarray of shape (n_samples,), bool
        Either half is fitted on the other.
    rng : Generator
        Draws the independent columns, which show what fitting the chain costs.

    Returns
    -------
    ndarray of shape (n_samples,)
        Nats; the mean estimates the total correlation.
    """
    means = np.broadcast_to(smoothed_means(bits), bits.shape)
    nothing = np.zeros((len(bits), 0))
    simulated = (rng.random(means.shape) < means).astype(np.int8)
    null = chain_gain(simulated, means, nothing, halves)
    return chain_gain(bits, means, nothing, halves) - null


def _column_gain(train, test, n_common):
    """Gain of all features over the first ``n_common``, fitted on other rows."""
    (features, target), (new_features, new_target) = train, test
    centre = np.zeros(features.shape[1])
    centre[1] = 1.0  # calibrated means need no correction
    null = fit_logistic(features[:, :n_common], target, centre[:n_common], tol=_TOL)
    start = np.concatenate([null, centre[n_common:]])
    full = fit_logistic(features, target, centre, start, tol=_TOL)
    return bernoulli_log_prob(new_target, new_features @ full) - bernoulli_log_prob(
        new_target, new_features[:, :n_common] @ null
    )


def bernoulli_log_prob(bits, logits):
    """Log-probability, in nats, of 0 or 1 at a logit, without overflow."""
    return bits * logits - np.logaddexp(0.0, logits)


def fit_logistic(features, target, centre, start=None, *, tol=1e-8):
    """Logistic regression with a Gaussian prior, by damped Newton steps.

    Minimises minus the log-likelihood plus ``|w - centre|**2 / 2``. A Hessian serves
    as long as its steps shrink the error fast: it costs far more than they do.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_parameters)
        Columns of the regression.
    target : ndarray of shape (n_samples,)
        0 or 1.
    centre : ndarray of shape (n_parameters,)
        Mean of the prior, of unit variance: what the rows do not inform stays there.
    start : ndarray of shape (n_parameters,), optional
        Where to start; by default at the centre.
    tol : float
        Stop where a step promises to gain less than this, in nats of all rows.

    Returns
    -------
    ndarray of shape (n_parameters,)
    """
    weights = centre if start is None else start

    def evaluate(w):
        logits = features @ w
        fit = bernoulli_log_prob(target, logits).sum()
        return logits, 0.5 * ((w - centre) ** 2).sum() - fit

    logits, value = evaluate(weights)
    factor, last = None, np.inf
    for _ in range(_MAX_NEWTON):
        p = expit(logits)
        gradient = features.T @ (p - target) + weights - centre
        if factor is None:
            factor = _factor_hessian(features, p)
        step = linalg.cho_solve(factor, gradient, check_finite=False)
        decrement = gradient @ step
        if decrement < tol:
            break
        size = 1.0
        logits, new = evaluate(weights - step)
        while new > value - 0.1 * size * decrement and size > 1e-4:
            size *= 0.5
            logits, new = evaluate(weights - size * step)
        weights, value = weights - size * step, new
        if size < 1.0 or decrement > _SLOW * last:
            factor = None
        last = decrement
    return weights


def _factor_hessian(features, p):
    """Cholesky factor of the Hessian of logistic regression, prior included."""
    scaled = features * np.sqrt(p * (1.0 - p))[:, None]
    hessian = scaled.T @ scaled
    hessian[np.diag_indices_from(hessian)] += 1.0
    return linalg.cho_factor(hessian, check_finite=False)


def calibrated_residuals(bits, means, latents):
    """Residuals less what is a quadratic function of the latents.

    A model fitted to few rows has means that are off by a smooth function of the
    latents, d(z), and E[d_i(z) d_j(z)] would pass for a covariance of the residuals.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_features)
        0 or 1.
    means : ndarray of shape (n_samples, n_features)
        Probability of 1 given the latents of that row.
    latents : ndarray of shape (n_samples, n_components)
        Latents; may have no columns.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
    """
    residuals = bits - means
    upper = np.triu_indices(latents.shape[1])
    squares = latents[:, upper[0]] * latents[:, upper[1]]
    smooth = np.concatenate([np.ones((len(bits), 1)), latents, squares], axis=1)
    if 2 * smooth.shape[1] > len(bits):
        smooth = smooth[:, :1]
    smooth = smooth / np.maximum(np.abs(smooth).max(axis=0), _CLIP)
    # The ridge is for latents that are constant.
    gram = smooth.T @ smooth + 1e-9 * len(bits) * np.eye(smooth.shape[1])
    weights = linalg.solve(gram, smooth.T @ residuals, assume_a="pos")
    return residuals - smooth @ weights


def residual_covariance(residuals):
    """Mean of r_i r_j over rows, shape (n_features, n_features)."""
    return residuals.T @ residuals / len(residuals)


def pair_statistic(residuals, means):
    """Sum over pairs of the squared, standardised residual covariance.

    The score statistic of all couplings J_ij at J = 0 in the pairwise chain: of mean
    n (n - 1) / 2 for n columns that are independent with these means.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_features)
        Data less ``means``, as they are or calibrated.
    means : ndarray of shape (n_samples, n_features)
        Probability of 1 given the latents of that row.

    Returns
    -------
    float
    """
    variance = means * (1.0 - means)
    expected = variance.T @ variance
    squared = (residual_covariance(residuals) * len(residuals)) ** 2
    upper = np.triu_indices(residuals.shape[1], 1)
    return float((squared[upper] / np.maximum(expected[upper], 1e-12)).sum())
