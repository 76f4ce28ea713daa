"""Stored patterns read off the decoder of a mean-field model."""

import warnings
from numbers import Integral, Real

import numpy as np
from scipy.special import logsumexp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from skident._compat import Interval, StrOptions, fit_context
from skident._math.binary_span import SPAN_SOLVERS, decode_span, stacked_span
from skident._math.information import bernoulli_log_prob
from skident._mean_field_vae import MeanFieldVAE
from skident._random import draw_seed, generator, new_seed, seeded_clone
from skident._validation import (
    TwoValuedInput,
    all_or_nothing,
    check_count,
    check_methods,
    to_values,
)

_DEFAULT_COMPONENTS = 8
_N_POINTS = 2000
_NEEDED = ("fit", "sample_posterior", "posterior", "logits", "logit_jacobian")


class HopfieldPatternDecoder(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, TwoValuedInput, BaseEstimator
):
    r"""Stored patterns of a Hopfield-like system, read off a mean-field model.

    The logits of a conditionally independent decoder of such a system are

    .. math:: \mathrm{logit}_i(z) = h_i + \sum_\mu \xi_i^\mu \varphi_\mu(z)

    so that the Jacobians :math:`\partial\,\mathrm{logit}/\partial z` all lie in the
    span of the patterns :math:`\xi^\mu \in \{-1, 1\}^N`, mixed by an unknown matrix.
    The span is estimated from the Jacobians stacked over many latents, and the patterns
    are its vectors with entries :math:`\pm 1`.

    Parameters
    ----------
    estimator : MeanFieldVAE or None, default=None
        A clone is fitted; a fitted one is passed as
        ``sklearn.frozen.FrozenEstimator``. None is a ``MeanFieldVAE`` with
        ``n_patterns`` latents, 8 if that is "auto". Where its ``random_state`` is None,
        the clone gets a seed from ``random_state``.
    n_patterns : int or "auto", default="auto"
        Number of patterns to read, at most the number of latents. "auto" keeps those
        that reach ``min_confidence``, and so none where the data has none.
    solver : {"auto", "ica", "vertex"}, default="auto"
        How the patterns are found in the span: "ica" by the axes of least kurtosis over
        sites, "vertex" by trying all signs on as many sites as there are latents (at
        most 22), "auto" by whichever of the two comes closer.
    min_confidence : float, default=0.85
        Least ``confidence_`` of a pattern when ``n_patterns="auto"``. A random
        direction reaches about 2 / pi = 0.64.
    min_overlap : float, default=0.5
        Least absolute overlap at which :meth:`predict` names a pattern.
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
        Squared cosine of the angle between each pattern and the span; 1 is perfect.
    field_ : ndarray of shape (n_features_in_,)
        Field h / 2 on each site in units of k_B T: half the mean logit, less its part
        in the span of the patterns (the two cannot be told apart there).
    spectrum_ : ndarray of shape (n_features_in_,)
        Root-mean-square singular values of the stacked Jacobians, logits a unit of
        latent, descending.
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
        value), or more patterns than latents.
    TypeError
        For an estimator without the methods of a ``MeanFieldVAE``.

    Warns
    -----
    UserWarning
        If there is no pattern, or fewer than ``n_patterns``.

    See Also
    --------
    MeanFieldVAE : The model.
    CondTotalCorrelation : Whether there is a mean-field theory to read.

    Notes
    -----
    Patterns are defined up to order and sign. The span may also hold :math:`\pm 1`
    vectors that are no patterns (such as a + b - c); they are likely only for few
    sites, in about ``4 C(P, 3) (3/4)**N`` of random draws of P patterns on N sites.

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
        "min_confidence": [Interval(Real, 0, 1, closed="both")],
        "min_overlap": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator=None,
        *,
        n_patterns="auto",
        solver="auto",
        min_confidence=0.85,
        min_overlap=0.5,
        random_state=None,
    ):
        self.estimator = estimator
        self.n_patterns = n_patterns
        self.solver = solver
        self.min_confidence = min_confidence
        self.min_overlap = min_overlap
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Fit the model and read the patterns off its decoder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, all values in {-1, 1} or all in {0, 1}; at least 2.
        y : None
            Ignored.

        Returns
        -------
        HopfieldPatternDecoder
            The fitted decoder.
        """
        with all_or_nothing(self):
            bits, self.values_ = self._two_valued(X, reset=True, min_samples=2)
            rng = generator(draw_seed(self.random_state))
            model = self._new_estimator(rng)
            check_methods(model, _NEEDED)
            self.estimator_ = model.fit(to_values(bits, self.values_), None)
            rows = bits[rng.permutation(len(bits))[:_N_POINTS]]
            latents = self.estimator_.sample_posterior(
                to_values(rows, self.values_), random_state=new_seed(rng)
            )
            self._n_latents = latents.shape[1]
            basis, self.spectrum_ = stacked_span(
                self.estimator_.logit_jacobian(latents), self._n_dims()
            )
            decoded = decode_span(basis, solver=self.solver, seed=new_seed(rng))
            self._keep(decoded, self.estimator_.logits(latents).mean(axis=0))
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

        The decoded model has the model's prior and posterior, and its logits projected
        on the patterns and the field.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.
        n_draws : int, default=64
            Draws of the latents a row, with the same noise for every row and call.

        Returns
        -------
        ndarray of shape (n_samples,)
            ln p(x) in nats, by importance sampling from the posterior: approached from
            below in expectation as ``n_draws`` grows.
        """
        check_count(n_draws, "n_draws")
        bits = self._bits(X)
        mean, deviation = self.estimator_.posterior(to_values(bits, self.values_))
        noise = generator(0).standard_normal((n_draws, mean.shape[1]))
        weights = np.empty((n_draws, len(bits)))
        for weight, shift in zip(weights, noise, strict=True):
            z = mean + deviation * shift
            likelihood = bernoulli_log_prob(bits, self._decoded_logits(z)).sum(axis=1)
            ratio = 0.5 * (shift**2 - z**2) + np.log(deviation)
            weight[:] = likelihood + ratio.sum(axis=1)
        return logsumexp(weights, axis=0) - np.log(n_draws)

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
        n_components = _DEFAULT_COMPONENTS if auto else self.n_patterns
        return seeded_clone(MeanFieldVAE(n_components), rng)

    def _n_dims(self):
        """Return the dimension of the span to search."""
        n_dims = self._n_latents if self.n_patterns == "auto" else self.n_patterns
        if n_dims > self._n_latents:
            raise ValueError(
                f"n_patterns={self.n_patterns} cannot be read off a model with only "
                f"{self._n_latents} latent(s): give it as many n_components."
            )
        return min(n_dims, self.n_features_in_)

    def _keep(self, decoded, mean_logits):
        """Store the patterns, and the field outside their span."""
        confidence = 1.0 - decoded.residuals
        keep = np.ones(len(confidence), dtype=bool)
        if self.n_patterns == "auto":
            keep = confidence >= self.min_confidence
        self.patterns_ = np.array(decoded.patterns[keep], order="C")
        self.confidence_ = np.array(confidence[keep], order="C")
        self.n_patterns_ = len(self.patterns_)
        self.field_ = 0.5 * (mean_logits - self._project(mean_logits))
        if self.n_patterns == "auto" and self.n_patterns_ == 0:
            warnings.warn(
                "No pattern reached min_confidence="
                f"{self.min_confidence:g}: the best have {confidence[:3].round(2)}. "
                "The data stores none, or the model is trained too little.",
                UserWarning,
            )
        elif self.n_patterns not in ("auto", self.n_patterns_):
            warnings.warn(
                f"Only {self.n_patterns_} of n_patterns={self.n_patterns}: the span "
                "holds no more independent vectors of +-1.",
                UserWarning,
            )

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
