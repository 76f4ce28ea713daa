"""Variational autoencoder with a conditionally independent decoder."""

import warnings
from numbers import Real

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from skident._compat import Interval, StrOptions, fit_context
from skident._nn import losses
from skident._nn.held import HeldNet, check_layer_sizes
from skident._nn.jacobians import batched_jacobian
from skident._nn.likelihoods import LIKELIHOODS
from skident._nn.modules import VariationalAutoencoder
from skident._nn.threads import seeded
from skident._nn.training import (
    Schedule,
    build_net,
    resolve_epochs,
)
from skident._random import draw_seed, generator, torch_seed
from skident._validation import (
    TRAINING,
    TwoValuedInput,
    all_or_nothing,
    as_columns,
    check_count,
    to_values,
    warn_constant,
)

_N_STEPS = 5000
_BLOCK = 8192
# Numbers a block of the importance sampler may hold: 64 MiB of float32.
_BLOCK_NUMBERS = 2**24
_ACTIVE_KL = 0.05


class MeanFieldVAE(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    TwoValuedInput,
    HeldNet,
    BaseEstimator,
):
    r"""Variational autoencoder for spins or binary words: a latent mean-field theory.

    The decoder is conditionally independent, so the model

    .. math:: p(x) = \int dz\, N(z; 0, I) \prod_i p_i(x_i | z)

    is the mean-field theory of a finite system with a fluctuating field
    :math:`\mathrm{logit}_i(z)`. Encoder and decoder are fully connected; they
    maximise the evidence lower bound, summed over columns and latents and averaged
    over rows, in nats a row:

    .. math:: ELBO(x) = E_{q(z|x)} \ln p(x|z) - KL(q(z|x) \| N(0, I)) \le \ln p(x)

    Parameters
    ----------
    n_components : int, default=1
        Number of latents.
    likelihood : {"auto", "bernoulli"}, default="auto"
        Distribution of a column given the latents. "auto" is "bernoulli" for data
        with two values.
    hidden_layer_sizes : tuple of int, default=(128, 128)
        Widths of the encoder's hidden layers; the decoder has them reversed. ``()``
        makes both linear.
    kl_warmup : float, default=0.0
        Fraction of the training, in [0, 1), during which the weight of the KL term
        rises from 0 to 1. It always ends at 1.
    weight_decay : float, default=0.0
        Decoupled weight decay of AdamW.
    learning_rate : float, default=2e-3
        Step size at the start; it falls to zero along half a cosine.
    batch_size : int, default=256
        Rows a step.
    max_epochs : int or "auto", default="auto"
        Passes over the rows. "auto" makes about 5000 steps, in 20 to 500 passes.
    validation_fraction : float, default=0.1
        Fraction of rows, at least one, not trained on: they choose the best epoch and
        measure ``gain_over_independent_``.
    device : str, default="auto"
        torch device: "auto" is CUDA where there is one, else "cpu".
    verbose : int, default=0
        1 shows a progress bar, 0 is silent.
    random_state : int, RandomState instance or None, default=None
        Seed of weights, batches and noise. An int gives the same fit each time on one
        machine with one thread count; None takes fresh entropy. numpy's and torch's
        global generators are left as found.

    Attributes
    ----------
    weights_ : dict of ndarray
        Weights of the network by name: the fitted truth.
    net_ : skorch.NeuralNet
        Network with these weights, built on demand; not pickled.
    values_ : tuple of int
        The two values of the data, ``(-1, 1)`` or ``(0, 1)``.
    likelihood_ : str
        The likelihood used.
    kl_per_dim_ : ndarray of shape (n_components,)
        Mean KL of each latent over the rows of the fit, nats.
    rate_ : float
        Its sum, the rate R, nats a row: an upper bound of the information that the
        latents carry about x.
    active_units_ : ndarray of shape (n_components,), bool
        Latents that carry more than 0.05 nats.
    gain_over_independent_ : float
        Held-out ELBO minus the held-out log-likelihood of independent columns, nats a
        row. Not above zero means that the latents explain nothing.
    constant_features_ : ndarray of int
        Columns with one value only.
    history_ : dict of ndarray of shape (n_iter_,)
        ``"train_loss"`` and ``"valid_loss"``: minus the ELBO, nats a row (with
        ``kl_warmup`` at the weight of that epoch).
    n_iter_ : int
        Number of epochs trained.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if ``X`` has any.

    Raises
    ------
    ValueError
        For NaN, sparse input, a wrong width, or a value that is not one of two,
        naming column, row and value.
    FloatingPointError
        If the loss stops being finite, naming the epoch.

    Warns
    -----
    UserWarning
        For constant columns, naming them, and if the model is no better than
        independent columns on held-out rows.

    See Also
    --------
    CondTotalCorrelation : Asks whether the latents explain all dependence.
    HopfieldPatternDecoder : Reads stored patterns off the decoder.

    Notes
    -----
    The output bias starts at the logit of the columns' means, so that training starts
    at the independent model. Posterior means are float32. An interrupted fit keeps the
    best weights so far and raises ``KeyboardInterrupt``.

    References
    ----------
    .. [1] D. P. Kingma and M. Welling, "Auto-encoding variational Bayes", ICLR 2014,
       arXiv:1312.6114, equation 10.
    .. [2] Biroli, Welling and Vitelli, "Discovering and decoding latent mean-field
       structure with variational autoencoders", arXiv:2606.08694 (2026).

    Examples
    --------
    >>> from skident import MeanFieldVAE
    >>> from skident.datasets import make_curie_weiss
    >>> X, m = make_curie_weiss(2000, 32, temperature=0.8, random_state=0)
    >>> vae = MeanFieldVAE(1, max_epochs=20, random_state=0).fit(X)
    >>> vae.transform(X).shape
    (2000, 1)
    >>> vae.gain_over_independent_ > 1
    True
    >>> vae.sample(3, random_state=0).shape
    (3, 32)
    """

    _instead = f" Likelihoods to choose from: {', '.join(sorted(LIKELIHOODS))}."

    _parameter_constraints = {  # noqa: RUF012
        **TRAINING,
        "likelihood": [StrOptions({"auto", *LIKELIHOODS})],
        "kl_warmup": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        n_components=1,
        *,
        likelihood="auto",
        hidden_layer_sizes=(128, 128),
        kl_warmup=0.0,
        weight_decay=0.0,
        learning_rate=2e-3,
        batch_size=256,
        max_epochs="auto",
        validation_fraction=0.1,
        device="auto",
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.likelihood = likelihood
        self.hidden_layer_sizes = hidden_layer_sizes
        self.kl_warmup = kl_warmup
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Train the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, all values in {-1, 1} or all in {0, 1}; at least 2.
        y : None
            Ignored.

        Returns
        -------
        MeanFieldVAE
            The fitted estimator.
        """
        with all_or_nothing(self):
            bits, self.values_ = self._two_valued(X, reset=True, min_samples=2)
            check_layer_sizes(self.hidden_layer_sizes)
            auto = self.likelihood == "auto"
            self.likelihood_ = "bernoulli" if auto else self.likelihood
            self._architecture = {
                "n_features": bits.shape[1],
                "n_outputs": self._family().n_outputs(bits.shape[1]),
                "n_components": self.n_components,
                "hidden_layer_sizes": tuple(self.hidden_layer_sizes),
            }
            self.constant_features_ = np.flatnonzero(bits.min(0) == bits.max(0))
            warn_constant(
                self, self.constant_features_, "the model will have them near constant."
            )
            rows, held_out, outcome = self._train(
                2 * bits - 1,
                torch_seed(draw_seed(self.random_state)),
                held_fraction=self.validation_fraction,
                description="mean-field VAE",
                prepare=self._start_independent,
            )
            self._measure(bits, rows, held_out)
        if isinstance(outcome, KeyboardInterrupt):
            raise outcome
        return self

    def transform(self, X):
        """Return the posterior means of the latents.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            E[z | x], float32, in units of the prior's standard deviation.
        """
        encode = self._fitted_module().encode
        return self._in_blocks(lambda x: encode(x)[0], self._inputs(X), _BLOCK)

    def inverse_transform(self, Z):
        """Return the mean of x given the latents.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Latents.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            E[x | z], between the two values of the data, float32.
        """
        decode, mean = self._fitted_module().decode, self._family().mean
        means = self._in_blocks(lambda z: mean(decode(z)), self._latents(Z), _BLOCK)
        return means if self.values_[0] == -1 else 0.5 * (means + 1.0)

    def sample(self, n_samples=1, *, random_state=None):
        """Draw rows from the model.

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
        check_count(n_samples, "n_samples")
        module, draw = self._fitted_module(), self._family().sample
        seed = draw_seed(random_state)
        noise = generator(seed).standard_normal((n_samples, self._n_features_out))
        with seeded(torch_seed(seed)):
            signs = self._in_blocks(lambda z: draw(module.decode(z)), noise, _BLOCK)
        return to_values(signs > 0, self.values_)

    def posterior(self, X):
        """Return mean and standard deviation of the Gaussian posterior q(z | x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.

        Returns
        -------
        mean : ndarray of shape (n_samples, n_components)
            As of :meth:`transform`, float32.
        deviation : ndarray of shape (n_samples, n_components)
            Standard deviations, float32.
        """
        mean, log_var = self._posterior(self._inputs(X))
        return mean, np.exp(0.5 * log_var)

    def sample_posterior(self, X, *, random_state=None):
        """Draw one latent for each row from its posterior q(z | x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None takes fresh entropy.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Latents, float32.
        """
        mean, deviation = self.posterior(X)
        noise = generator(draw_seed(random_state)).standard_normal(mean.shape)
        return (mean + deviation * noise).astype(np.float32)

    def elbo(self, X, *, n_draws=64):
        """Return the evidence lower bound of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.
        n_draws : int, default=64
            Draws of the latents a row, with the same noise for every row and call.

        Returns
        -------
        ndarray of shape (n_samples,)
            ELBO in nats: in expectation at most ln p(x).
        """
        return self._noisy(losses.elbo, self._inputs(X), n_draws)

    def score_samples(self, X, *, n_draws=256):
        """Return the log-likelihood of each row by importance sampling.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.
        n_draws : int, default=256
            Draws of the latents a row, with the same noise for every row and call.

        Returns
        -------
        ndarray of shape (n_samples,)
            ln p(x) in nats, approached from below in expectation as ``n_draws`` grows.
        """
        objective = losses.importance_log_likelihood
        return self._noisy(objective, self._inputs(X), n_draws)

    def score(self, X, y=None):
        """Return the mean log-likelihood of the rows, in nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the convention of the fit.
        y : None
            Ignored.

        Returns
        -------
        float
            Mean of :meth:`score_samples`.
        """
        return float(self.score_samples(X).mean())

    def logit_jacobian(self, Z):
        """Differentiate the decoder's logits, the local fields, by the latents.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Latents.

        Returns
        -------
        ndarray of shape (n_samples, n_features, n_components)
            d logit_i / d z_a at each row, float32.
        """
        decode = self._fitted_module().decode
        return self._in_blocks(
            lambda z: batched_jacobian(decode, z), self._latents(Z), _BLOCK
        )

    def logits(self, Z):
        """Return the decoder's logits, ln p(high) / p(low) of each column given z.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Latents.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Logits in nats, float32: twice beta times the local field of a spin.
        """
        decode = self._fitted_module().decode
        return self._in_blocks(decode, self._latents(Z), _BLOCK)

    def _start_independent(self, module, rows):
        """Start the output bias where the decoder has the columns' means."""
        with torch.no_grad():
            module.decoder[-1].bias.copy_(self._family().independent(rows))

    def _measure(self, bits, rows, held_out):
        """Store what the latents carry, and warn where they carry nothing."""
        mean, log_var = self._posterior(2 * bits - 1)
        kl = 0.5 * (mean**2 + np.exp(log_var) - 1.0 - log_var)
        self.kl_per_dim_ = kl.mean(0, dtype=np.float64)
        self.rate_ = float(self.kl_per_dim_.sum())
        self.active_units_ = self.kl_per_dim_ > _ACTIVE_KL
        family = self._family()
        independent = family.log_prob(family.independent(rows), held_out).mean()
        elbo = self._noisy(losses.elbo, held_out.cpu().numpy(), 64).mean()
        self.gain_over_independent_ = float(elbo) - float(independent)
        if self.gain_over_independent_ <= 0.0:
            warnings.warn(
                f"On {held_out.shape[0]} held-out rows the model is no better than "
                "independent columns (gain_over_independent_ = "
                f"{self.gain_over_independent_:.3g} nats a row): the columns are "
                "independent, or the latents collapsed. Try more rows or epochs, or "
                "kl_warmup=0.3.",
                UserWarning,
            )

    def _schedule(self, n_rows):
        return Schedule(
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            max_epochs=resolve_epochs(
                self.max_epochs, n_rows, self.batch_size, n_steps=_N_STEPS
            ),
            kl_warmup=self.kl_warmup,
        )

    def _new_net(self, schedule, device):
        module = VariationalAutoencoder(**self._architecture)
        criterion = losses.NegativeELBO(self._family().log_prob)
        return build_net(module, criterion, schedule, device)

    def _family(self):
        return LIKELIHOODS[self.likelihood_]

    def _fitted_module(self):
        check_is_fitted(self)
        return self._module()

    def _inputs(self, X):
        check_is_fitted(self)
        bits, _ = self._two_valued(X, reset=False)
        return 2 * bits - 1

    def _latents(self, Z):
        return as_columns(Z, self._n_features_out, name="Z")

    def _posterior(self, signs):
        encode = self._module().encode
        both = self._in_blocks(lambda x: torch.cat(encode(x), -1), signs, _BLOCK)
        return both[:, : self._n_features_out], both[:, self._n_features_out :]

    def _noisy(self, objective, signs, n_draws):
        """Apply an objective with ``n_draws`` points of noise, always the same."""
        check_count(n_draws, "n_draws")
        noise = generator(0).standard_normal((n_draws, self._n_features_out))
        noise, module = self._to_device(noise), self._module()
        log_prob = self._family().log_prob
        hidden = self._architecture["hidden_layer_sizes"]
        width = max(self.n_features_in_, *hidden, 1)
        block = max(1, _BLOCK_NUMBERS // (n_draws * width))
        return self._in_blocks(
            lambda x: objective(module, log_prob, x, noise), signs, block
        ).astype(np.float64)

    @property
    def _n_features_out(self):
        return self._architecture["n_components"]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
