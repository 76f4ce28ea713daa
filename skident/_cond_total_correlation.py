"""The litmus test: what is left between the columns once the latents are known."""

from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from skident._compat import Interval, StrOptions, fit_context
from skident._litmus import (
    CHAIN_ROWS,
    BitModel,
    check_model,
    independence_pvalue,
    left_on_rows,
    measure_fold,
)
from skident._math.bipartite import CUTS
from skident._math.information import (
    Estimate,
    independent_log_prob,
    marginal_gain,
    smoothed_means,
)
from skident._math.resampling import (
    bootstrap_means,
    fold_labels,
    percentile_interval,
    upper_pvalue,
)
from skident._mean_field_vae import MeanFieldVAE
from skident._random import draw_seed, generator
from skident._validation import (
    TwoValuedInput,
    all_or_nothing,
    as_group_codes,
    to_values,
)
from skident._verdict import LEVEL, judge, judge_capacity
from skident.metrics._information import check_cut, measure_cut

_FOLDS, _TRAINING, _BOOTSTRAP, _INDEPENDENCE, _CUT = range(5)


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
    partition : {"half", "checkerboard", "random-max"} or array-like, default="half"
        Cut of the columns in two parts whose mutual information the rate R has to
        reach, as in :func:`skident.metrics.bipartite_information`: the first half;
        sites of the lattice ``shape`` with an even sum of coordinates; the best of ten
        random cuts; or a mask or list of the columns of one part.
    shape : int or sequence of int, default=None
        Sides of the lattice that the columns are the sites of, in C order; for
        ``partition="checkerboard"``.
    n_jobs : int, default=None
        Number of folds at once, as in joblib. Each works in one thread, so that any
        number gives the same result.
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
        Why, in words and figures; the last is that of ``capacity_``.
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
        latents fail. E[x|z] is that of the model plus a quadratic function of z, fitted
        to the rows: what the decoder misses by itself is no covariance.
    rate_ : float
        Mean rate R of the models, nats a row.
    bipartite_information_ : BipartiteInformation
        Lower bound of the mutual information of the two parts of ``partition``, nats,
        with ``low`` and ``high``: see :class:`skident.metrics.BipartiteInformation`. 0
        for a single column.
    capacity_ : {"sufficient", "insufficient", "undecided"}
        Whether the latents can carry that information: "sufficient" if R of every model
        is at least ``high``, "insufficient" if R of all is below ``low``.
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
        column, row and value; for ``groups`` or ``entropy`` that do not fit the rows, a
        ``partition`` that does not fit the columns, or an estimator whose
        ``likelihood`` is not that of two-valued data.
    TypeError
        For an estimator without the methods named above.

    See Also
    --------
    MeanFieldVAE : The model.
    HopfieldPatternDecoder : Reads the theory off a model that passed.
    skident.metrics.one_standard_error : Chooses the number of latents in a search.

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

    If A and B are independent given z, I(A; B) <= I(x; z) <= R: latents whose rate is
    below the information between two parts of the columns must fail, whatever the
    decoder. ``bipartite_information_`` is a lower bound (see there), so "insufficient"
    is sure up to its interval, and "sufficient" is about what was found, for this cut.

    Beyond the number of latents that the data has TC(x|z) is flat, and its largest
    ``score`` falls on any of them: in :class:`sklearn.model_selection.GridSearchCV` use
    ``refit=skident.metrics.one_standard_error``. The score is made for it: it varies
    from fold to fold with what there is to explain in the rows, alike for all models
    (if ``random_state`` is an int). What models with latents enough differ by for
    finite rows falls as one over their number, that variation as one over its root.

    The test uses at most 2,000, the chain 10,000 rows a fold, and the information
    10,000 in all, chosen at random.

    References
    ----------
    .. [1] Biroli, Welling and Vitelli, "Discovering and decoding latent mean-field
       structure with variational autoencoders", arXiv:2606.08694 (2026).
    .. [2] B. J. Frey, "Graphical models for machine learning and digital
       communication", MIT Press (1998), section 3.1.
    .. [3] Poole, Ozair, van den Oord, Alemi, Tucker, "On variational bounds of mutual
       information", ICML 2019.

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
        "partition": [StrOptions(set(CUTS)), "array-like"],
        "shape": [Integral, "array-like", None],
        "n_jobs": [Integral, None],
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
        partition="half",
        shape=None,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.estimator = estimator
        self.cv = cv
        self.entropy = entropy
        self.margin = margin
        self.confidence_level = confidence_level
        self.n_resamples = n_resamples
        self.partition = partition
        self.shape = shape
        self.n_jobs = n_jobs
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
            estimator = MeanFieldVAE() if self.estimator is None else self.estimator
            check_model(estimator)
            if isinstance(self.entropy, Real) and not np.isfinite(self.entropy):
                raise ValueError(f"entropy must be finite, got {self.entropy}.")
            cut = check_cut(self.partition, bits.shape[1], self.shape)
            seed = draw_seed(self.random_state)
            codes = as_group_codes(groups, len(bits))
            labels = fold_labels(codes, self.cv, generator(seed, _FOLDS))
            _check_folds(labels)
            folds = Parallel(n_jobs=self.n_jobs)(
                delayed(measure_fold)(
                    estimator, bits, self.values_, codes, labels == k,
                    n_resamples=self.n_resamples, verbose=self.verbose, fold=k,
                    rng=generator(seed, _TRAINING, k),
                )
                for k in range(self.cv)
            )  # fmt: skip
            self.estimators_ = [fold.model for fold in folds]
            self.rate_ = float(np.mean([model.rate_ for model in self.estimators_]))
            # The products are small: threads would wait for each other, not work.
            with threadpool_limits(limits=1, user_api="blas"):
                self._test(folds, bits, seed)
                self._estimate(folds, bits, codes, seed)
                self._measure_capacity(bits, codes, cut, seed)
            self.verdict_, self.reasons_ = judge(self)
            self.capacity_, reason = judge_capacity(
                [model.rate_ for model in self.estimators_], self.bipartite_information_
            )
            self.reasons_.append(reason)
        return self

    def score(self, X, y=None):
        """Return minus the total correlation that the latents leave in new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit; at least 4. At most 10,000 are used, the
            first.
        y : None
            Ignored.

        Returns
        -------
        float
            -TC(x|z) in nats: what the latents explain of these rows, TC(x) - TC(x|z),
            less TC(x) as the fit found it. The mean over the models of the folds.
        """
        check_is_fitted(self)
        bits, _ = self._two_valued(X, reset=False, min_samples=4)
        bits = bits[:CHAIN_ROWS]
        models = [BitModel(model, self.values_) for model in self.estimators_]
        left = np.mean([left_on_rows(m, bits, generator(0)) for m in models])
        # Of the rows, and so the same for all models that are compared on them.
        rng = generator(0)
        halves = rng.permutation(len(bits)) % 2 == 0
        there = marginal_gain(bits, halves, rng).mean()
        return float(there - left - self.marginal_total_correlation_.value)

    def _test(self, folds, bits, seed):
        """Compare pair statistics with those of simulated and of shuffled data."""
        null = np.sum([fold.null_statistics for fold in folds], axis=0)
        self.pvalue_ = upper_pvalue(sum(fold.statistic for fold in folds), null)
        self.marginal_pvalue_ = independence_pvalue(
            bits, self.n_resamples, generator(seed, _INDEPENDENCE)
        )
        scale = (self.values_[1] - self.values_[0]) ** 2
        weights = [len(fold.rows) for fold in folds]
        self.residual_covariance_ = scale * np.average(
            [fold.covariance for fold in folds], axis=0, weights=weights
        )

    def _estimate(self, folds, bits, codes, seed):
        """Turn figures of rows into figures with bootstrap intervals."""
        rows = np.concatenate([fold.rows for fold in folds])
        columns = [
            np.concatenate([fold.gain for fold in folds]),
            np.concatenate([fold.marginal_gain for fold in folds]),
        ]
        if self.entropy is not None:
            known = [self._known(fold.model, bits[fold.rows]) for fold in folds]
            columns += list(np.concatenate(known, axis=1))
        table = np.stack(columns, axis=1)
        codes = np.unique(codes[rows], return_inverse=True)[1]
        rng = generator(seed, _BOOTSTRAP)
        draws = bootstrap_means(table, codes, self.n_resamples, rng)
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
        if self.marginal_pvalue_ < LEVEL:
            self.unexplained_fraction_ = estimate(lambda m: m[0] / m[1])
        if self.entropy is not None:
            self.upper_bound_ = estimate(lambda m: m[2])
            self.known_total_correlation_ = estimate(lambda m: m[3])
            self.unexplained_bound_ = estimate(lambda m: m[2] / m[3])

    def _measure_capacity(self, bits, codes, cut, seed):
        """Bound the information that the latents have to carry."""
        rng = generator(seed, _CUT)
        rows = rng.permutation(len(bits))[:CHAIN_ROWS]
        self.bipartite_information_ = measure_cut(
            bits[rows], codes[rows], cut,
            confidence_level=self.confidence_level, n_resamples=self.n_resamples,
            rng=rng,
        )  # fmt: skip

    def _known(self, model, bits):
        """-ELBO - H(p) and sum_i H(x_i) - H(p) of each row, shape (2, n_rows)."""
        log_prob = self.entropy
        if not callable(log_prob):
            log_prob = -float(log_prob)
        else:
            log_prob = np.asarray(log_prob(to_values(bits, self.values_)), dtype=float)
            if log_prob.shape != (len(bits),) or not np.isfinite(log_prob).all():
                raise ValueError(
                    "entropy(X) must return one finite ln p(x) a row, shape "
                    f"({len(bits)},), got shape {log_prob.shape}."
                )
        independent = independent_log_prob(bits, smoothed_means(bits))
        elbo = BitModel(model, self.values_).elbo(bits)
        return np.stack([log_prob - elbo, log_prob - independent])


def _check_folds(labels):
    """Raise a ``ValueError`` if groups leave a fold fewer than 4 rows."""
    sizes = np.bincount(labels)
    if sizes.min() < 4:
        raise ValueError(
            f"groups leave fold {sizes.argmin()} only {sizes.min()} row(s), and a fold "
            "needs at least 4: lower cv, or use more and smaller groups."
        )
