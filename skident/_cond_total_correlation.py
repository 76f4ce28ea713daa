"""The litmus test: what is left between the columns once the latents are known."""

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from skident._compat import Interval, fit_context
from skident._math.information import (
    chain_gain,
    independent_log_prob,
    marginal_gain,
    pair_statistic,
    residual_covariance,
    smoothed_means,
)
from skident._math.resampling import (
    bootstrap_means,
    fold_labels,
    percentile_interval,
    upper_pvalue,
)
from skident._mean_field_vae import MeanFieldVAE
from skident._progress import progress_bar
from skident._random import draw_seed, generator, new_seed, seeded_clone
from skident._validation import (
    TwoValuedInput,
    all_or_nothing,
    as_group_codes,
    check_methods,
    to_values,
)

# Rows a fold: enough for 1 % of TC(x) on tens of columns, and minutes at most.
_CHAIN_ROWS = 10_000
_TEST_ROWS = 2_000
_LEVEL = 0.01
_NEEDED = ("fit", "sample_posterior", "inverse_transform", "sample", "elbo")


class Estimate(NamedTuple):
    """A figure with its interval."""

    value: float
    low: float
    high: float


class _Fold(NamedTuple):
    """What one model says of rows that it was not trained on."""

    model: object
    rows: np.ndarray
    gain: np.ndarray
    marginal_gain: np.ndarray
    known: np.ndarray
    covariance: np.ndarray
    statistic: float
    null_gain: np.ndarray
    null_statistics: np.ndarray


class CondTotalCorrelation(TwoValuedInput, BaseEstimator):
    r"""Litmus test of mean-field structure: total correlation given the latents.

    If a few latents z make the columns independent, the data has a latent mean-field
    theory. What is left is the conditional total correlation

    .. math:: TC(x|z) = E_z KL\Big(q(x|z) \,\Big\|\, \prod_i q(x_i|z)\Big)

    measured in nats with z drawn from the encoder q(z|x), always on rows that the model
    was not trained on, and compared with what there was to explain, TC(x).

    Parameters
    ----------
    estimator : estimator, default=None
        Model with ``fit``, ``sample_posterior``, ``inverse_transform`` (mean of x given
        z), ``sample``, ``elbo`` and ``rate_``; None is ``MeanFieldVAE()``. Clones are
        fitted. Where its ``random_state`` is None, each gets a seed from
        ``random_state``.
    cv : int, default=2
        Number of folds. Each is measured by a model trained on the others.
    entropy : float, callable or None, default=None
        Entropy H(p) of the data in nats a row, or ``entropy(X)`` = ln p(x) of each row
        (n_samples,), where they are known: they give the upper bound -ELBO - H(p). The
        callable is far more precise, since it is compared row by row.
    margin : float, default=0.05
        Largest fraction TC(x|z) / TC(x) that counts as mean-field.
    confidence_level : float, default=0.95
        Of all intervals.
    n_resamples : int, default=200
        Simulated data sets behind the p-value and bootstrap resamples behind the
        intervals; at least 100, so that p < 0.01 can occur.
    verbose : int, default=0
        1 shows a progress bar of the simulations of each fold, 0 is silent. That of the
        training is the estimator's own.
    random_state : int, RandomState instance or None, default=None
        Seed of folds, latents, simulated data and resamples.

    Attributes
    ----------
    verdict_ : {"mean-field", "not mean-field", "undecided"}
        The answer, for models of this size and training.
    reasons_ : list of str
        Why, in words and figures.
    unexplained_fraction_ : Estimate
        u = TC(x|z) / TC(x), with ``low`` and ``high``; not clipped.
    total_correlation_ : Estimate
        TC(x|z), nats.
    marginal_total_correlation_ : Estimate
        TC(x), nats: what there is to explain.
    upper_bound_ : Estimate or None
        -ELBO - H(p) >= TC(x|z), nats; None without ``entropy``.
    unexplained_bound_ : Estimate or None
        ``upper_bound_`` / (sum_i H(x_i) - H(p)); None without ``entropy``.
    null_gain_ : float
        Mean of the estimator of TC(x|z) on data simulated from the models, nats: what
        was subtracted.
    known_total_correlation_ : Estimate or None
        sum_i H(x_i) - H(p), nats: TC(x) itself; None without ``entropy``.
    pvalue_ : float
        Of the residual pair covariances, under the fitted model.
    marginal_pvalue_ : float
        Of the pair covariances, under independent columns.
    residual_covariance_ : ndarray of shape (n_features_in_, n_features_in_)
        E[(x_i - E[x_i|z])(x_j - E[x_j|z])] in units of the data squared: where the
        latents fail.
    rate_ : float
        Mean rate R of the models, nats a row.
    estimators_ : list of estimators
        The fitted models, one a fold.
    values_ : tuple of int
        The two values of the data, ``(-1, 1)`` or ``(0, 1)``.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if ``X`` has any.

    Raises
    ------
    ValueError
        For NaN, sparse input, too few rows, or a value that is not one of two, naming
        column, row and value; for ``groups`` or ``entropy`` that do not fit the rows.
    TypeError
        For an estimator without the methods named above.

    See Also
    --------
    MeanFieldVAE : The model.
    HopfieldPatternDecoder : Reads the theory off a model that passed.

    Notes
    -----
    TC(x|z) is estimated by the held-out gain in log-likelihood of a pairwise chain
    model (logistic regression of each column on the residuals of those before it) over
    calibrated conditional independence, less its mean on data simulated from the
    fitted model, which removes the effect of a poor encoder and of overfitting. TC(x)
    is the same gain without latents, so that the fraction compares like with like. The
    intervals are over rows, simulated ones included, for the models as fitted.
    Dependence that shows in no pair of residuals is not seen without ``entropy``.

    The verdict is "mean-field" if the upper end of u lies below ``margin`` (with
    ``entropy``: the upper end of the upper bound's fraction), "not mean-field" if the
    lower end of u lies above it and ``pvalue_`` < 0.01, else "undecided". If TC(x)
    itself is not above zero (``marginal_pvalue_`` >= 0.01, and with ``entropy`` the
    interval of the known TC(x) reaches 0) there is nothing to explain: "mean-field"
    with u = 0. A model that is no better than independent columns does not convict.

    The test uses at most 2,000, the chain 10,000 rows a fold, chosen at random.

    References
    ----------
    .. [1] Biroli, Welling and Vitelli, "Discovering and decoding latent mean-field
       structure with variational autoencoders", arXiv:2606.08694 (2026).
    .. [2] B. J. Frey, "Graphical models for machine learning and digital
       communication", MIT Press (1998), section 3.1.

    Examples
    --------
    >>> from skident import CondTotalCorrelation, MeanFieldVAE
    >>> from skident.datasets import make_curie_weiss
    >>> X, m = make_curie_weiss(4000, 16, temperature=1.0, random_state=0)
    >>> test = CondTotalCorrelation(MeanFieldVAE(1, max_epochs=30), random_state=0)
    >>> test.fit(X).verdict_
    'mean-field'
    """

    _parameter_constraints = {  # noqa: RUF012
        "estimator": "no_validation",
        "cv": [Interval(Integral, 2, None, closed="left")],
        "entropy": [Real, callable, None],
        "margin": [Interval(Real, 0, 1, closed="neither")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 100, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator=None,
        *,
        cv=2,
        entropy=None,
        margin=0.05,
        confidence_level=0.95,
        n_resamples=200,
        verbose=0,
        random_state=None,
    ):
        self.estimator = estimator
        self.cv = cv
        self.entropy = entropy
        self.margin = margin
        self.confidence_level = confidence_level
        self.n_resamples = n_resamples
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, groups=None):
        """Cross-fit the model and measure what it leaves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, all values in {-1, 1} or all in {0, 1}; at least 4 a fold.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together (repeats of a movie, say): folds keep them whole
            and the bootstrap resamples them whole.

        Returns
        -------
        CondTotalCorrelation
            The fitted test.
        """
        with all_or_nothing(self):
            bits, self.values_ = self._two_valued(
                X, reset=True, min_samples=4 * self.cv
            )
            seed = draw_seed(self.random_state)
            codes = as_group_codes(groups, len(bits))
            labels = fold_labels(codes, self.cv, generator(seed, 0))
            _check_folds(labels)
            # The products are small: threads would wait for each other, not work.
            with threadpool_limits(limits=1, user_api="blas"):
                folds = [
                    self._measure(bits, labels == k, seed, k) for k in range(self.cv)
                ]
            self.estimators_ = [fold.model for fold in folds]
            self.rate_ = float(np.mean([model.rate_ for model in self.estimators_]))
            self._test(folds, bits, seed)
            self._estimate(folds, codes, seed)
            self.verdict_, self.reasons_ = _judge(self)
        return self

    def score(self, X, y=None):
        """Return minus the total correlation that the latents leave on these rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit; at least 4.
        y : None
            Ignored.

        Returns
        -------
        float
            -TC(x|z) in nats, the mean over the models of the folds.
        """
        check_is_fitted(self)
        bits, _ = self._two_valued(X, reset=False, min_samples=4)
        halves = generator(0).permutation(len(bits)) % 2 == 0
        gains = [
            chain_gain(bits, *_conditioned(model, bits, self.values_, 0), halves).mean()
            for model in self.estimators_
        ]
        return float(self.null_gain_ - np.mean(gains))

    def _measure(self, bits, held_out, seed, fold):
        """Train on all rows but those held out, and measure on these."""
        rng = generator(seed, 1, fold)
        default = MeanFieldVAE() if self.estimator is None else self.estimator
        model = seeded_clone(default, rng)
        check_methods(model, _NEEDED)
        model.fit(to_values(bits[~held_out], self.values_), None)
        rows = rng.permutation(np.flatnonzero(held_out))[:_CHAIN_ROWS]
        test = bits[rows]
        halves = np.arange(len(rows)) % 2 == 0
        means, latents = _conditioned(model, test, self.values_, new_seed(rng))
        n_test = min(len(rows), _TEST_ROWS)
        null_gain = chain_gain(*self._simulate(model, len(rows), rng), halves)
        null_statistics = []
        with progress_bar(self.n_resamples, "litmus", verbose=self.verbose) as advance:
            for _ in range(self.n_resamples):
                simulated = self._simulate(model, n_test, rng)
                null_statistics.append(pair_statistic(*simulated[:2]))
                advance()
        return _Fold(
            model=model,
            rows=rows,
            gain=chain_gain(test, means, latents, halves) - null_gain,
            null_gain=null_gain,
            marginal_gain=marginal_gain(test, halves, rng),
            covariance=residual_covariance(test, means),
            statistic=pair_statistic(test[:n_test], means[:n_test]),
            known=self._known(model, test),
            null_statistics=np.array(null_statistics),
        )

    def _simulate(self, model, n_rows, rng):
        """Draw rows from the model and condition them as if they were data."""
        low, high = self.values_
        rows = model.sample(n_rows, random_state=new_seed(rng))
        bits = ((rows - low) // (high - low)).astype(np.int8)
        return bits, *_conditioned(model, bits, self.values_, new_seed(rng))

    def _test(self, folds, bits, seed):
        """Compare pair statistics with those of simulated and of shuffled data."""
        null = np.sum([fold.null_statistics for fold in folds], axis=0)
        self.pvalue_ = upper_pvalue(sum(fold.statistic for fold in folds), null)
        rng = generator(seed, 3)
        rows = bits[rng.permutation(len(bits))[:_TEST_ROWS]]
        means = np.broadcast_to(smoothed_means(rows), rows.shape)
        shuffled = [
            pair_statistic(rng.permuted(rows, axis=0), means)
            for _ in range(self.n_resamples)
        ]
        self.marginal_pvalue_ = upper_pvalue(pair_statistic(rows, means), shuffled)
        scale = (self.values_[1] - self.values_[0]) ** 2
        weights = [len(fold.rows) for fold in folds]
        self.residual_covariance_ = scale * np.average(
            [fold.covariance for fold in folds], axis=0, weights=weights
        )

    def _estimate(self, folds, codes, seed):
        """Turn figures of rows into figures with bootstrap intervals."""
        rows = np.concatenate([fold.rows for fold in folds])
        columns = [
            np.concatenate([fold.gain for fold in folds]),
            np.concatenate([fold.marginal_gain for fold in folds]),
        ]
        columns += list(np.concatenate([fold.known for fold in folds], axis=1))
        table = np.stack(columns, axis=1)
        codes = np.unique(codes[rows], return_inverse=True)[1]
        draws = bootstrap_means(table, codes, self.n_resamples, generator(seed, 2))
        mean = table.mean(0)

        def estimate(figure):
            low, high = percentile_interval(figure(draws.T), self.confidence_level)
            return Estimate(float(figure(mean)), float(low), float(high))

        self.null_gain_ = float(np.mean([fold.null_gain.mean() for fold in folds]))
        self.total_correlation_ = estimate(lambda m: m[0])
        self.marginal_total_correlation_ = estimate(lambda m: m[1])
        self.unexplained_fraction_ = Estimate(0.0, 0.0, 0.0)
        self.upper_bound_ = self.unexplained_bound_ = None
        self.known_total_correlation_ = None
        if self.marginal_pvalue_ < _LEVEL:
            self.unexplained_fraction_ = estimate(lambda m: m[0] / m[1])
        if self.entropy is not None:
            self.upper_bound_ = estimate(lambda m: m[2])
            self.known_total_correlation_ = estimate(lambda m: m[3])
            self.unexplained_bound_ = estimate(lambda m: m[2] / m[3])

    def _known(self, model, bits):
        """-ELBO - H(p) and sum_i H(x_i) - H(p) of each row, shape (2, n_rows)."""
        if self.entropy is None:
            return np.zeros((2, len(bits)))
        rows = to_values(bits, self.values_)
        if not callable(self.entropy):
            log_prob = -float(self.entropy)
            if not np.isfinite(log_prob):
                raise ValueError(f"entropy must be finite, got {self.entropy}.")
        else:
            log_prob = np.asarray(self.entropy(rows), dtype=float)
            if log_prob.shape != (len(rows),) or not np.isfinite(log_prob).all():
                raise ValueError(
                    "entropy(X) must return one finite ln p(x) a row, shape "
                    f"({len(rows)},), got shape {log_prob.shape}."
                )
        independent = independent_log_prob(bits, smoothed_means(bits))
        return np.stack([log_prob - model.elbo(rows), log_prob - independent])


def _check_folds(labels):
    """Raise a ``ValueError`` if groups leave a fold fewer than 4 rows."""
    sizes = np.bincount(labels)
    if sizes.min() < 4:
        raise ValueError(
            f"groups leave fold {sizes.argmin()} only {sizes.min()} row(s), and a fold "
            "needs at least 4: lower cv, or use more and smaller groups."
        )


def _conditioned(model, bits, values, seed):
    """Draw latents of rows; return the probabilities of 1 given them, and them."""
    latents = model.sample_posterior(to_values(bits, values), random_state=seed)
    low, high = values
    means = (np.asarray(model.inverse_transform(latents), float) - low) / (high - low)
    return means, np.asarray(latents, float)


def _judge(test):
    """Return the verdict and its reasons: see Notes of the class."""
    margin, u = test.margin, test.unexplained_fraction_
    bound, known = test.unexplained_bound_, test.known_total_correlation_
    paired = test.marginal_pvalue_ < _LEVEL
    pairs = f"pairwise independent (p = {test.marginal_pvalue_:.2g})"
    if not paired and (known is None or known.low <= 0.0):
        return "mean-field", [f"There is nothing to explain: the columns are {pairs}."]
    least = 1.0 / (1 + test.n_resamples)
    sign = "<=" if test.pvalue_ <= least else "="
    reasons = [
        f"Residual pair covariances against data drawn from the fitted model: p {sign} "
        f"{test.pvalue_:.2g}."
    ]
    if paired:
        reasons.insert(
            0,
            f"The latents leave {u.value:.1%} [{u.low:.1%}, {u.high:.1%}] of the total "
            f"correlation unexplained; the margin is {margin:.1%}.",
        )
    else:
        reasons.insert(
            0,
            f"The columns are {pairs}, but not independent: their total correlation is "
            f"{known.value:.3g} nats.",
        )
    if known is None:
        reasons.append(
            "Without entropy= only dependence that shows in pairs of residuals was "
            "looked for."
        )
    else:
        reasons.append(
            f"-ELBO - H(p) bounds the unexplained fraction by {bound.value:.1%} "
            f"[{bound.low:.1%}, {bound.high:.1%}]; the margin is {margin:.1%}."
        )
    untrained = sum(
        getattr(model, "gain_over_independent_", 1.0) <= 0.0
        for model in test.estimators_
    )
    if untrained:
        reasons.append(
            f"{untrained} of {len(test.estimators_)} models are no better than "
            "independent columns (gain_over_independent_ <= 0), and convict nothing: "
            "train longer, or with more rows."
        )
    convicted = u.low > margin and test.pvalue_ < _LEVEL and not untrained
    acquitted = (u if bound is None else bound).high < margin
    if convicted == acquitted:
        return "undecided", reasons
    return ("mean-field" if acquitted else "not mean-field"), reasons
