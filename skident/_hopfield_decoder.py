"""Stored patterns read off the decoder of a mean-field model."""

import warnings
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skident._compat import Interval, StrOptions, fit_context
from skident._math import interaction
from skident._math.binary_span import SPAN_SOLVERS
from skident._math.information import bernoulli_log_prob
from skident._math.pattern_span import (
    decoder_span,
    entry_confidence,
    find_patterns,
)
from skident._math.resampling import percentile_interval
from skident._mean_field_vae import MeanFieldVAE
from skident._random import draw_seed, generator, new_seed, seeded_clone
from skident._validation import (
    TwoValuedInput,
    all_or_nothing,
    as_group_codes,
    as_rows,
    check_count,
    check_methods,
    to_values,
)

_DEFAULT_COMPONENTS = 8
_N_POINTS = 2000
# Share of the rows whose overlap is smaller than where the tails are looked at.
_TAIL = 0.99
_NEEDED = ("fit", "sample_posterior", "posterior", "logits", "logit_jacobian")


class Expansion(NamedTuple):
    r"""The decoded interaction to fourth order.

    With K the ``cumulant_function`` of a decoder, whose derivatives at 0 these are,
    :math:`P(s) \propto e^{f \cdot s + s'Js/2 + \dots}` with ``couplings_`` J.

    Attributes
    ----------
    field : ndarray of shape (n_features,)
        f, the whole of what is linear in s: ``field_`` and the mean of the pattern
        fields, in units of k_B T.
    mean : ndarray of shape (n_patterns,)
        First cumulants of the pattern fields phi.
    covariance : ndarray of shape (n_patterns, n_patterns)
        Second cumulants: 4 beta / N times the identity for a Hopfield model.
    third, fourth : ndarray of shape (n_patterns,)
        Higher cumulants of each pattern field alone: 0 for a Hopfield model. A positive
        fourth one makes the interaction grow faster than quadratically.
    """

    field: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    third: np.ndarray
    fourth: np.ndarray


class HopfieldPatternDecoder(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, TwoValuedInput, BaseEstimator
):
    r"""Stored patterns of a Hopfield-like system, read off a mean-field model.

    The logits of a conditionally independent decoder of such a system are

    .. math:: \mathrm{logit}_i(z) = h_i + \sum_\mu \xi_i^\mu \varphi_\mu(z)

    so that the Jacobians :math:`\partial\,\mathrm{logit}/\partial z` all lie in the
    span of the patterns :math:`\xi^\mu \in \{-1, 1\}^N`, mixed by an unknown matrix,
    and so do the logits' deviations from their mean. The span is estimated from both
    over many latents, and the patterns are its vectors with entries :math:`\pm 1`. With
    them the decoder is the generalised Hopfield model

    .. math:: P(s) \propto e^{h \cdot s / 2 + K(N m(s) / 2)}, \quad
        m_\mu = \tfrac{1}{N} \xi^\mu \cdot s , \quad
        K(t) = \ln E_w e^{t \cdot \varphi(z)} , \quad
        w(z) \propto \frac{p(z)}{\prod_i 2\cosh(\mathrm{logit}_i(z) / 2)}

    Parameters
    ----------
    estimator : MeanFieldVAE or None, default=None
        A clone is fitted; a fitted one is passed as
        ``sklearn.frozen.FrozenEstimator``. None is a ``MeanFieldVAE`` with twice as
        many latents as ``n_patterns``, 8 if that is "auto": with as many as there are
        patterns, one that collapses costs a pattern. Where its ``random_state`` is
        None, the clone gets a seed from ``random_state``.
    n_patterns : int or "auto", default="auto"
        Number of patterns to read, at most the number of latents. "auto" claims those
        that reach ``min_confidence`` in the part of the spectrum in which patterns
        stand out most, and none if no direction of the data varies more than
        independent columns would make it.
    solver : {"auto", "ica", "vertex"}, default="auto"
        How the patterns are found in the span: "ica" by the axes of least kurtosis over
        sites, "vertex" by trying all signs on as many sites as there are latents (at
        most 22), "auto" by whichever of the two comes closer.
    min_confidence : float or "auto", default="auto"
        Least ``confidence_`` of a pattern that is claimed. "auto" is 0.9, or what a
        random span of as many dimensions hardly reaches if that is more: 0.92 for 8 of
        40, 0.94 for 16 of 64. Plane waves of a lattice reach 0.81 to 0.89.
    min_overlap : float, default=0.5
        Least absolute overlap at which :meth:`predict` names a pattern.
    data_span : bool, default=True
        Whether to try a second span too, from the data alone: the principal axes of up
        to 20,000 rows, polished by regressing each site on the overlaps of all others,
        by turns. It mends what a collapsed latent left out. The span in which patterns
        stand out more wins; False reads the decoder alone.
    n_refits : int, default=0
        Models fitted to bootstrap samples of the rows, to see which patterns and
        entries come back; 20 are plenty. Each costs what the fit costs.
    n_jobs : int or None, default=None
        Number of processes for the refits, as in joblib.
    random_state : int, RandomState instance or None, default=None
        Seed of the model, the latents and the search.

    Attributes
    ----------
    patterns_ : ndarray of shape (n_patterns_, n_features_in_), int8
        Patterns in {-1, 1}, best first, with +1 at the first site: a pattern and its
        negative are the same.
    n_patterns_ : int
        Number of patterns.
    confidence_ : ndarray of shape (n_patterns_,)
        Squared cosine of the angle between each pattern and the span; 1 is perfect,
        and a random direction reaches about 2 / pi = 0.64.
    entry_confidence_ : ndarray of shape (n_patterns_, n_features_in_)
        Probability that each entry is right, from how well the other entries predict
        it through the span. It needs no refit, and takes the span's errors at
        different sites to be independent and equally large.
    stability_ : ndarray of shape (n_patterns_,) or None
        Mean absolute overlap of each pattern with its match in the refits.
    entry_stability_ : ndarray of shape (n_patterns_, n_features_in_) or None
        Share of the refits whose matching pattern, turned to the same sign, has the
        same entry.
    n_dims_ : int
        Dimension of the span: how many of the leading directions were taken.
    from_data_ : bool
        Whether the patterns are those of the span from the data alone.
    spectrum_ : ndarray of shape (n_features_in_,)
        Root-mean-square singular values of Jacobians and logits, descending.
    field_ : ndarray of shape (n_features_in_,)
        Field h / 2 on each site in units of k_B T: half the mean logit, less its part
        in the span of the patterns, which is a matter of where :math:`\varphi = 0` is.
    couplings_ : ndarray of shape (n_features_in_, n_features_in_)
        Couplings J of the quadratic part of the interaction,
        :math:`\tfrac14 \xi^T \kappa_2 \xi` in units of k_B T with
        :math:`\kappa_2` the covariance of :math:`\varphi` under w, so that
        :math:`P(s) \approx e^{f \cdot s + s'Js/2}`. Symmetric; the diagonal, a
        constant, is set to 0. Hopfield: beta / N times the sum of the patterns'
        products.
    expansion_ : Expansion
        ``field`` f, ``mean``, ``covariance``, ``third`` and ``fourth``: the cumulants
        of the pattern fields :math:`\varphi`.
    tail_ratio_ : ndarray of shape (n_patterns_,)
        :math:`[K(t) + K(-t)] / (\kappa_2 t^2)` along each pattern, where its overlap
        exceeds that of 99 % of the rows: 1 is quadratic. Take above 1.5 for heavier and
        below 0.7 for lighter than quadratic: models trained on Curie-Weiss and Hopfield
        data, exactly 1, came out up to 1.26.
    tail_interval_ : ndarray of shape (n_patterns_, 2) or None
        Central 95 % of ``tail_ratio_`` over the refits.
    estimator_ : MeanFieldVAE
        The fitted model.
    values_ : tuple of int
        The two values of the data, ``(-1, 1)`` or ``(0, 1)``.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if ``X`` has any.

    Raises
    ------
    ValueError
        For NaN, sparse input, a value that is not one of two (naming column, row and
        value), more patterns than latents, ``groups`` that do not fit the rows, or
        refits of a frozen estimator.
    TypeError
        For an estimator without the methods of a ``MeanFieldVAE``.

    Warns
    -----
    UserWarning
        If no pattern, or fewer than ``n_patterns``, can be claimed.

    See Also
    --------
    MeanFieldVAE : The model.
    CondTotalCorrelation : Whether there is a mean-field theory to read.

    Notes
    -----
    Patterns are defined up to order and sign. The span may also hold :math:`\pm 1`
    vectors that are no patterns (such as a + b - c); they are likely only for few
    sites, in about ``4 C(P, 3) (3/4)**N`` of random draws of P patterns on N sites.

    K, the likelihood and the couplings are integrals over the latents. Up to 3 latents
    they are done on a grid (``score_samples`` is then exact for posteriors wider than
    0.01, 0.06 and 0.2 standard deviations of the prior). With more, K rests on points
    drawn at many temperatures between the prior and w. Far below a transition w lies
    where there is hardly any data, and the expansion at zero is an extrapolation.

    References
    ----------
    .. [1] Biroli, Welling and Vitelli, "Discovering and decoding latent mean-field
       structure with variational autoencoders", arXiv:2606.08694 (2026).
    .. [2] M. Slawski, M. Hein and P. Lutsik, "Matrix factorization with binary
       components", NeurIPS 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from skident import HopfieldPatternDecoder
    >>> from skident.datasets import make_hopfield, make_patterns
    >>> patterns = make_patterns(2, 48, random_state=0)
    >>> X, _ = make_hopfield(4000, patterns, temperature=0.6, random_state=0)
    >>> decoder = HopfieldPatternDecoder(n_patterns=2, random_state=0).fit(X)
    >>> overlaps = decoder.patterns_.astype(int) @ patterns.T / 48
    >>> np.sort(np.abs(overlaps).max(axis=1)).tolist()
    [1.0, 1.0]
    """

    _parameter_constraints = {  # noqa: RUF012
        "estimator": "no_validation",
        "n_patterns": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "solver": [StrOptions({"auto", *SPAN_SOLVERS})],
        "min_confidence": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "min_overlap": [Interval(Real, 0, 1, closed="both")],
        "data_span": ["boolean"],
        "n_refits": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator=None,
        *,
        n_patterns="auto",
        solver="auto",
        min_confidence="auto",
        min_overlap=0.5,
        data_span=True,
        n_refits=0,
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.n_patterns = n_patterns
        self.solver = solver
        self.min_confidence = min_confidence
        self.min_overlap = min_overlap
        self.data_span = data_span
        self.n_refits = n_refits
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, groups=None):
        """Fit the model and read the patterns off its decoder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, all values in {-1, 1} or all in {0, 1}; at least 2.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together (repeats of a movie, say): the refits draw them
            whole.

        Returns
        -------
        HopfieldPatternDecoder
            The fitted decoder.
        """
        with all_or_nothing(self):
            bits, self.values_ = self._two_valued(X, reset=True, min_samples=2)
            codes = as_group_codes(groups, len(bits))
            rng = generator(draw_seed(self.random_state))
            model = self._new_estimator(rng)
            check_methods(model, _NEEDED)
            self.estimator_ = model.fit(to_values(bits, self.values_), None)
            self._read(bits, rng)
            self._expand(bits, rng)
            self._refit(bits, codes, rng)
        return self

    def transform(self, X):
        """Return the overlap of each row with each pattern.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_patterns_)
            (1/N) sum_i s_i xi_i in [-1, 1], with s in {-1, 1}.
        """
        return self._overlaps(X)

    def predict(self, X):
        """Return the pattern that each row is nearest to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.

        Returns
        -------
        ndarray of shape (n_samples,), int
            Index of the largest absolute overlap, or -1 where none reaches
            ``min_overlap``. The sign is that of the overlap in :meth:`transform`.
        """
        overlaps = np.abs(self._overlaps(X))
        if self.n_patterns_ == 0:
            return np.full(len(overlaps), -1)
        best = overlaps.argmax(axis=1)
        return np.where(overlaps.max(axis=1) >= self.min_overlap, best, -1)

    def sample(self, n_samples=1, *, random_state=None):
        """Draw rows from the decoded model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None takes fresh entropy.

        Returns
        -------
        ndarray of shape (n_samples, n_features), int8
            Independent rows in the convention of the data.
        """
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        seed = draw_seed(random_state)
        latents = generator(seed, 0).standard_normal((n_samples, self._n_latents))
        logits = self._decoded_logits(latents)
        uniform = generator(seed, 1).random(logits.shape)
        # p(1) > u, written so that no logit overflows
        return to_values(logits > np.log(uniform) - np.log1p(-uniform), self.values_)

    def score_samples(self, X, *, n_draws=64):
        """Return the log-likelihood of each row under the decoded model.

        The decoded model has the model's prior, and its logits projected on the
        patterns and the field. Up to 3 latents they are integrated over on a grid; more
        are drawn from the model's posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.
        n_draws : int, default=64
            Draws of the latents a row, if there are more than 3, with the same noise
            for every row and call.

        Returns
        -------
        ndarray of shape (n_samples,)
            ln p(x) in nats. With more than 3 latents approached from below in
            expectation as ``n_draws`` grows.
        """
        check_count(n_draws, "n_draws")
        bits = self._bits(X)
        if self._n_latents in interaction.GRID_SPACING:
            signs = 2.0 * bits - 1.0
            sources = 0.5 * signs @ self.patterns_.T.astype(float)
            integral = interaction.log_integral(self._interaction, sources)
            return signs @ self.field_ + integral
        mean, deviation = self.estimator_.posterior(to_values(bits, self.values_))
        noise = generator(0).standard_normal((n_draws, mean.shape[1]))
        weights = np.empty((n_draws, len(bits)))
        for weight, shift in zip(weights, noise, strict=True):
            z = mean + deviation * shift
            likelihood = bernoulli_log_prob(bits, self._decoded_logits(z)).sum(axis=1)
            ratio = 0.5 * (shift**2 - z**2) + np.log(deviation)
            weight[:] = likelihood + ratio.sum(axis=1)
        return logsumexp(weights, axis=0) - np.log(n_draws)

    def cumulant_function(self, T):
        r"""Return the decoded interaction K at sources t.

        .. math:: P(s) \propto e^{h \cdot s / 2 + K(N m(s) / 2)}

        with m(s) the overlaps of :meth:`transform` and h / 2 the ``field_``.

        Parameters
        ----------
        T : array-like of shape (n_points, n_patterns_)
            Sources t, one column a pattern: half the number of sites times overlaps.

        Returns
        -------
        ndarray of shape (n_points,)
            :math:`K(t) = \ln E_w e^{t \cdot \varphi}`, nats; K(0) = 0. A Hopfield
            model has :math:`2 \beta |t|^2 / N`, with the mean of :math:`\varphi` at 0.
        """
        check_is_fitted(self)
        sources = as_rows(T, name="T").astype(float)
        if sources.shape[1] != self.n_patterns_:
            raise ValueError(
                f"T must have {self.n_patterns_} column(s), one a pattern, but has "
                f"shape {sources.shape}."
            )
        return interaction.cumulant_function(self._interaction, sources)

    def score(self, X, y=None):
        """Return the mean log-likelihood of the rows under the decoded model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.
        y : None
            Ignored.

        Returns
        -------
        float
            Mean of :meth:`score_samples`, nats.
        """
        return float(self.score_samples(X).mean())

    def _new_estimator(self, rng):
        if self.estimator is not None:
            return seeded_clone(self.estimator, rng)
        auto = self.n_patterns == "auto"
        n_components = _DEFAULT_COMPONENTS if auto else 2 * self.n_patterns
        return seeded_clone(MeanFieldVAE(n_components), rng)

    def _read(self, bits, rng):
        """Find the patterns in the span of the decoder, and the field outside it."""
        rows = bits[rng.permutation(len(bits))[:_N_POINTS]]
        latents = self.estimator_.sample_posterior(
            to_values(rows, self.values_), random_state=new_seed(rng)
        )
        self._n_latents = latents.shape[1]
        wanted = None if self.n_patterns == "auto" else self.n_patterns
        if wanted is not None and wanted > self._n_latents:
            raise ValueError(
                f"n_patterns={wanted} cannot be read off a model with only "
                f"{self._n_latents} latent(s): give it as many n_components."
            )
        logits = self.estimator_.logits(latents)
        directions, self.spectrum_ = decoder_span(
            self.estimator_.logit_jacobian(latents), logits
        )
        found = find_patterns(
            directions,
            bits,
            min(self._n_latents, bits.shape[1]),
            n_patterns=wanted and min(wanted, bits.shape[1]),
            min_confidence=self.min_confidence,
            solver=self.solver,
            data_span=self.data_span,
            seed=new_seed(rng),
        )
        kept = found.claimed if wanted is None else slice(None)
        self.patterns_ = np.array(found.patterns[kept], order="C")
        self.confidence_ = np.array(found.confidence[kept], order="C")
        self.n_patterns_, self.n_dims_ = len(self.patterns_), found.basis.shape[1]
        self.from_data_ = found.from_data
        self.entry_confidence_ = entry_confidence(found.basis, self.patterns_)
        mean_logits = logits.mean(axis=0, dtype=np.float64)
        self.field_ = 0.5 * (mean_logits - self._project(mean_logits))
        _warn_of_few(found, wanted)

    def _expand(self, bits, rng):
        """Store the interaction of the patterns, and its expansion."""
        self._interaction = interaction.find_interaction(
            self.estimator_.logits, self._n_latents, self.field_, self.patterns_, rng
        )
        cumulants = interaction.cumulants(self._interaction)
        patterns = self.patterns_.astype(float)
        linear = self.field_ + 0.5 * cumulants.mean @ patterns
        self.expansion_ = Expansion(linear, *cumulants)
        self.couplings_ = 0.25 * patterns.T @ cumulants.covariance @ patterns
        np.fill_diagonal(self.couplings_, 0.0)
        overlaps = np.abs((2.0 * bits - 1.0) @ patterns.T)
        far = 0.5 * np.quantile(overlaps, _TAIL, axis=0)
        self.tail_ratio_ = interaction.tail_ratio(self._interaction, far)

    def _refit(self, bits, codes, rng):
        """Store which patterns and entries come back in models of resampled rows."""
        self.stability_ = self.entry_stability_ = self.tail_interval_ = None
        if self.n_refits == 0:
            return
        if isinstance(self.estimator, FrozenEstimator):
            raise ValueError(
                f"n_refits={self.n_refits} cannot refit a frozen estimator: pass the "
                "estimator itself, or n_refits=0."
            )
        fits = []
        for _ in range(self.n_refits if self.n_patterns_ else 0):
            drawn = rng.integers(codes.max() + 1, size=codes.max() + 1)
            counts = np.bincount(drawn, minlength=codes.max() + 1)
            decoder = clone(self).set_params(
                estimator=self._new_estimator(rng), n_patterns=self.n_patterns_,
                n_refits=0, random_state=new_seed(rng),
            )  # fmt: skip
            rows = np.repeat(np.arange(len(bits)), counts[codes])
            fits.append(delayed(_follow)(decoder, bits, rows, self.patterns_))
        followed = Parallel(self.n_jobs)(fits)
        turned = np.reshape([t for t, _ in followed], (-1, *self.patterns_.shape))
        ratios = np.reshape([r for _, r in followed], (-1, self.n_patterns_))
        self.entry_stability_ = (turned == self.patterns_).mean(axis=0)
        self.stability_ = (turned * self.patterns_).mean(axis=(0, 2))
        self.tail_interval_ = percentile_interval(ratios, 0.95)

    def _overlaps(self, X):
        signs = 2.0 * self._bits(X) - 1.0
        return signs @ self.patterns_.T.astype(float) / self.n_features_in_

    def _project(self, logits):
        """Project logits (..., n_features) on the span of the patterns."""
        patterns = self.patterns_.astype(float)
        return (logits @ np.linalg.pinv(patterns)) @ patterns

    def _decoded_logits(self, latents):
        return 2.0 * self.field_ + self._project(self.estimator_.logits(latents))

    def _bits(self, X):
        check_is_fitted(self)
        return self._two_valued(X, reset=False)[0]

    @property
    def _n_features_out(self):
        return self.n_patterns_


def _warn_of_few(found, wanted):
    """Say that fewer patterns than wanted, or none, stand out."""
    n_claimed = int(found.claimed.sum())
    if n_claimed >= (wanted or 1):
        return
    what = f"Only {n_claimed} of n_patterns={wanted}" if wanted else "No pattern"
    warnings.warn(
        f"{what} can be claimed. The best have a confidence of "
        f"{found.confidence[:3].round(2)}; it takes {found.level:.2f}, and columns "
        "that are not independent. The data stores no more, or the model needs more "
        "rows, latents or epochs.",
        UserWarning,
    )


def _follow(decoder, bits, rows, patterns):
    """Fit to resampled rows; return patterns turned to those given, and their tails."""
    with warnings.catch_warnings():
        # The fit to all rows has said it.
        warnings.simplefilter("ignore", UserWarning)
        decoder.fit(bits[rows])
    overlaps = patterns.astype(int) @ decoder.patterns_.T.astype(int)
    own, match = linear_sum_assignment(-np.abs(overlaps))
    turned = np.zeros_like(patterns)
    signs = np.where(overlaps[own, match] < 0, -1, 1)
    turned[own] = signs[:, None] * decoder.patterns_[match]
    ratios = np.full(len(patterns), np.nan)
    ratios[own] = decoder.tail_ratio_[match]
    return turned, ratios
