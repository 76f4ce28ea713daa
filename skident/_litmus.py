"""One fold of the litmus test: a model, and what it leaves on rows it never saw."""

from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from skident._math.information import (
    calibrated_residuals,
    chain_gain,
    marginal_gain,
    pair_statistic,
    residual_covariance,
    smoothed_means,
    split_halves,
)
from skident._math.resampling import upper_pvalue
from skident._progress import progress_bar
from skident._random import new_seed, seeded_clone
from skident._validation import check_methods, to_values

# Rows a fold: enough for 1 % of TC(x) on tens of columns, and minutes at most.
CHAIN_ROWS = 10_000
_TEST_ROWS = 2_000
# Of a score, each with its own latents and simulated rows, over which it is averaged.
_PASSES = 4
_NEEDED = ("fit", "sample_posterior", "inverse_transform", "sample", "elbo")


class Fold(NamedTuple):
    """What one model says of rows that it was not trained on."""

    model: object
    rows: np.ndarray
    gain: np.ndarray
    null_gain: np.ndarray
    marginal_gain: np.ndarray
    covariance: np.ndarray
    statistic: float
    null_statistics: np.ndarray


class BitModel:
    """A fitted model seen through rows in {0, 1}.

    Parameters
    ----------
    model : estimator
        Fitted. Its own ``values_`` count if it has any: where all training rows are
        ones, they say (0, 1) even if other rows of the data hold -1.
    values : tuple of int
        The two values of the data.
    """

    def __init__(self, model, values):
        self.model = model
        self.values = getattr(model, "values_", values)

    def condition(self, bits, seed):
        """Draw latents of rows; return the probabilities of 1 given them, and them."""
        low, high = self.values
        rows = to_values(bits, self.values)
        latents = self.model.sample_posterior(rows, random_state=seed)
        means = np.asarray(self.model.inverse_transform(latents), dtype=float)
        return (means - low) / (high - low), np.asarray(latents, dtype=float)

    def simulate(self, n_rows, rng):
        """Draw rows from the model and condition them as if they were data."""
        low, high = self.values
        rows = self.model.sample(n_rows, random_state=new_seed(rng))
        bits = ((rows - low) // (high - low)).astype(np.int8)
        return bits, *self.condition(bits, new_seed(rng))

    def elbo(self, bits):
        """Return the evidence lower bound of each row, nats."""
        return self.model.elbo(to_values(bits, self.values))


def check_model(estimator):
    """Raise unless an estimator has the methods, and is for two-valued data.

    Raises
    ------
    TypeError
        For missing methods, naming them.
    ValueError
        For a likelihood of other than two-valued columns.
    """
    check_methods(estimator, _NEEDED)
    likelihood = getattr(estimator, "likelihood", "bernoulli")
    if likelihood not in {"auto", "bernoulli"}:
        raise ValueError(
            f"estimator has likelihood={likelihood!r}, but the litmus test is for "
            'two-valued data: use likelihood="bernoulli" with rows of two values (for '
            "instance X > numpy.median(X, axis=0)), or compare score() of models with "
            "more and more latents on held-out rows."
        )


def measure_fold(
    estimator, bits, values, codes, held_out, *, n_resamples, verbose, fold, rng
):
    """Train a clone on all rows but those held out, and measure on these.

    Parameters
    ----------
    estimator : estimator
        Checked by :func:`check_model`.
    bits : ndarray of shape (n_samples, n_features)
        Rows, 0 or 1.
    values : tuple of int
        The two values that the estimator is given.
    codes : ndarray of int of shape (n_samples,)
        Group of each row.
    held_out : ndarray of shape (n_samples,), bool
        Rows not to train on.
    n_resamples : int
        Simulated data sets behind the null statistics.
    verbose : int
        Whether a progress bar shows these.
    fold : int
        Number of the fold, for the bar.
    rng : Generator
        Draws all random numbers.

    Returns
    -------
    Fold
        The same whatever runs beside it: one thread does all.
    """
    with threadpool_limits(limits=1):
        fitted = seeded_clone(estimator, rng)
        fitted.fit(to_values(bits[~held_out], values), None)
        model = BitModel(fitted, values)
        rows = rng.permutation(np.flatnonzero(held_out))[:CHAIN_ROWS]
        halves = split_halves(codes[rows], rng)
        test = bits[rows], *model.condition(bits[rows], new_seed(rng))
        null_gain = chain_gain(*model.simulate(len(rows), rng), halves)
        few = [part[:_TEST_ROWS] for part in test]
        null_statistics = []
        with progress_bar(
            n_resamples, f"litmus, fold {fold + 1}", verbose=verbose
        ) as advance:
            for _ in range(n_resamples):
                simulated = model.simulate(len(few[0]), rng)
                null_statistics.append(_statistic(*simulated))
                advance()
        return Fold(
            model=fitted,
            rows=rows,
            gain=chain_gain(*test, halves) - null_gain,
            null_gain=null_gain,
            marginal_gain=marginal_gain(bits[rows], halves, rng),
            covariance=residual_covariance(calibrated_residuals(*test)),
            statistic=_statistic(*few),
            null_statistics=np.array(null_statistics),
        )


def left_on_rows(model, bits, rng):
    """Return TC(x|z) on rows, less the mean of its estimate on the model's own, nats.

    Parameters
    ----------
    model : BitModel
        What is tested.
    bits : ndarray of shape (n_samples, n_features)
        Rows that it was not trained on.
    rng : Generator
        Draws latents, halves and simulated rows.
    """
    passes = []
    for _ in range(_PASSES):
        halves = rng.permutation(len(bits)) % 2 == 0
        gain = chain_gain(bits, *model.condition(bits, new_seed(rng)), halves)
        null = chain_gain(*model.simulate(len(bits), rng), halves)
        passes.append(gain.mean() - null.mean())
    return float(np.mean(passes))


def _statistic(bits, means, latents):
    return pair_statistic(calibrated_residuals(bits, means, latents), means)


def independence_pvalue(bits, n_resamples, rng):
    """Return the p-value of the pair covariances under independent columns."""
    rows = bits[rng.permutation(len(bits))[:_TEST_ROWS]]
    means = np.broadcast_to(smoothed_means(rows), rows.shape)

    def statistic(sample):
        return pair_statistic(sample - means, means)

    shuffled = [statistic(rng.permuted(rows, axis=0)) for _ in range(n_resamples)]
    return upper_pvalue(statistic(rows), shuffled)
