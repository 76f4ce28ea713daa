"""Variational autoencoder with a conditionally independent decoder."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from skident._compat import Interval, StrOptions, fit_context
from skident._latent_posterior import LatentPosterior
from skident._mean_field_rows import LikelihoodInput
from skident._nn import losses, quadrature
from skident._nn.held import HeldNet, check_layer_sizes
from skident._nn.jacobians import batched_jacobian
from skident._nn.latent_models import EncodedModel
from skident._nn.likelihoods import LIKELIHOODS
from skident._nn.precision import PRECISIONS
from skident._nn.threads import seeded
from skident._nn.training import (
    Schedule,
    build_net,
    resolve_epochs,
)
from skident._random import draw_seed, generator, torch_seed
from skident._validation import TRAINING, all_or_nothing, as_columns, check_count

_N_STEPS = 5000
_BLOCK, _SAMPLE_BLOCK = 8192, 1024
_OBJECTIVES = {"auto", "elbo", "importance", "quadrature"}
_MOST_QUADRATURE = max(quadrature.NODES)


class MeanFieldVAE(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    LatentPosterior,
    LikelihoodInput,
    HeldNet,
    BaseEstimator,
):
    r"""Latent variable model with a conditionally independent decoder.

    The model

    .. math:: p(x) = \int dz\, N(z; 0, I) \prod_i p_i(x_i | z)

    is the mean-field theory of a finite system with a fluctuating field
    :math:`\mathrm{logit}_i(z)`. The decoder is a fully connected network. What is
    maximised is, up to three latents, the log-likelihood itself, by quadrature; for
    more a lower bound of it, with a fully connected encoder q(z|x), in nats a row:

    .. math:: \ln p(x) \ge E \ln \frac{1}{k} \sum_{j=1}^k
        \frac{p(x|z_j)\, p(z_j)}{q(z_j|x)}
        \ge E_{q(z|x)} \ln p(x|z) - KL(q(z|x) \| N(0, I))

    Parameters
    ----------
    n_components : int, default=1
        Number of latents.
    likelihood : str, default="auto"
        Distribution of a column given the latents; see Notes for what each takes.

        - "bernoulli": spins or binary words.
        - "bingham": directors, unit vectors of which n and -n are one.
        - "categorical": columns with levels, as whole numbers or one-hot.
        - "gaussian": real values.
        - "poisson": counts.
        - "auto": "bernoulli", which refuses other data.
    objective : {"auto", "quadrature", "importance", "elbo"}, default="auto"
        What is maximised.

        - "quadrature": the log-likelihood, by a sum over a lattice of latents; for at
          most 3 latents. There is no encoder: the posterior is p(z|x) on the lattice.
        - "importance": the importance-weighted bound with k = ``n_draws`` [2]_.
        - "elbo": the evidence lower bound, which is "importance" with k = 1.
        - "auto": quadrature for up to 3 latents, else importance.
    n_draws : int, default=3
        Draws of the latents a row while training under "importance".
    missing_values : float or None, default=None
        Value that marks a missing entry, ``np.nan`` or a number; None refuses NaN.
        Missing entries drop out of the likelihood; the encoder sees their mean, and
        that they are missing.
    hidden_layer_sizes : tuple of int, default=(128, 128)
        Widths of the encoder's hidden layers; the decoder has them reversed. ``()``
        makes both linear.
    kl_warmup : float, default=0.0
        Fraction of the training, in [0, 1), during which the weight of the KL term
        rises from 0 to 1. It always ends at 1. Under quadrature, whose posterior is the
        best there is, ln p(x) becomes beta ln E p(x|z)^(1/beta) at a weight beta.
    weight_decay : float, default=0.0
        Decoupled weight decay of AdamW.
    learning_rate : float, default=5e-3
        Step size at the start; it falls to zero along half a cosine.
    batch_size : int, default=256
        Rows a step.
    max_epochs : int or "auto", default="auto"
        Passes over the rows. "auto" makes about 5000 steps, in 20 to 500 passes.
    validation_fraction : float, default=0.1
        Fraction of rows, at least one, not trained on: they choose the best epoch and
        measure ``gain_over_independent_``.
    device : str, default="auto"
        torch device: "auto" is CUDA where there is one, else the CPU. Or a name:
        "cpu", "cuda:1", "mps" (untested). What was fitted on a GPU loads on a CPU.
    precision : {"float32", "bfloat16", "float16"}, default="float32"
        What layers compute in while training. The other two are torch's mixed
        precision, for GPUs that multiply such numbers faster: weights, optimiser and
        losses stay float32, as does all that is computed after training, and so its
        results. float16, for GPUs without bfloat16, scales the loss against underflow
        and leaves steps out that overflow.
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
        The two values of the data, ``(-1, 1)`` or ``(0, 1)``; only of "bernoulli".
    likelihood_, objective_ : str
        The likelihood and the objective used.
    quadrature_nodes_ : int
        Points along each latent; only under quadrature. They are increased by half
        until the mean log-likelihood of held-out rows changes by less than 0.001 nats.
    quadrature_error_ : float
        That last change, nats a row.
    rate_ : float
        The rate R, the mean KL of posterior and prior, nats a row: an upper bound of
        the information that the latents carry about x. Over at most 32,768 rows.
    kl_per_dim_ : ndarray of shape (n_components,)
        The same of each latent's own posterior, nats. For a Gaussian posterior they sum
        to the rate, and to less where latents are correlated given x.
    active_units_ : ndarray of shape (n_components,), bool
        Latents that carry more than 0.05 nats. Under quadrature latents may be turned
        into each other, and carry alike.
    gain_over_independent_ : float
        Held-out :meth:`elbo` minus the held-out log-likelihood of independent columns,
        nats a row. Not above zero means that the latents explain nothing.
    constant_features_ : ndarray of int
        Columns with one value only.
    history_ : dict of ndarray of shape (n_iter_,)
        ``"train_loss"`` and ``"valid_loss"``: minus the objective, nats a row (with
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
        For NaN, sparse input, a wrong width, a column with nothing but missing values,
        or a value that the likelihood does not take, naming column, row and value; for
        quadrature with more than 3 latents.
    FloatingPointError
        If the loss stops being finite, naming the epoch.

    Warns
    -----
    UserWarning
        For constant columns, naming them; if the model is not better than independent
        columns on held-out rows by two standard errors; if the quadrature has not
        converged with as many points as it may have. Once a process, if a worker of
        joblib computes on a GPU, which others may share.

    See Also
    --------
    CondTotalCorrelation : Asks whether the latents explain all dependence.
    HopfieldPatternDecoder : Reads stored patterns off the decoder.

    Notes
    -----
    What a likelihood takes, and what ``inverse_transform`` and ``sample`` give back in
    the same convention:

    - bernoulli: all values in {-1, 1}, or all in {0, 1}.
    - gaussian: numbers. Each column has one variance, learned, that does not depend on
      z and is at least 1e-4 of the variance of the column.
    - poisson: whole numbers from 0 to 2**24. Rates lie within exp(30) of the column's
      mean.
    - categorical: whole numbers, where each column has the levels that the fit saw; the
      mean is that of the numbers. Or zeros and ones where consecutive groups of columns
      have a single 1 in each row; the means are probabilities.
    - bingham: three columns a unit vector, p(n) ~ exp(n'An) with \|A\| < 200. E[n] is
      0, so the axis of largest <nn'> stands for it. Densities are per solid angle:
      -ln(4 pi) nats a director if uniform.

    A row in which all is missing has the log-likelihood 0 and the prior as its
    posterior. Directors and one-hot groups are missing whole or not at all.

    Quadrature uses an equispaced lattice inside a ball of radius 5, on which the model
    is normalised whatever the number of points. While training the lattice is coarser
    and shifted at random at each step. Up to 100 steps with up to 16,384 rows follow,
    which are kept unless held-out rows lose by them.

    The output bias starts where the columns have their means, so that training starts
    at the independent model. Posterior means are float32. An interrupted fit keeps the
    best weights so far and raises ``KeyboardInterrupt``.

    References
    ----------
    .. [1] D. P. Kingma and M. Welling, "Auto-encoding variational Bayes", ICLR 2014,
       arXiv:1312.6114, equation 10.
    .. [2] Y. Burda, R. Grosse and R. Salakhutdinov, "Importance weighted autoencoders",
       ICLR 2016, arXiv:1509.00519, equation 8.
    .. [3] Biroli, Welling and Vitelli, "Discovering and decoding latent mean-field
       structure with variational autoencoders", arXiv:2606.08694 (2026).

    Examples
    --------
    >>> from skident import MeanFieldVAE
    >>> from skident.datasets import make_curie_weiss
    >>> X, m = make_curie_weiss(2000, 32, temperature=0.8, random_state=0)
    >>> vae = MeanFieldVAE(1, max_epochs=20, random_state=0).fit(X)
    >>> vae.transform(X).shape
    (2000, 1)
    >>> vae.objective_, vae.gain_over_independent_ > 1
    ('quadrature', True)
    >>> vae.sample(3, random_state=0).shape
    (3, 32)
    """

    _parameter_constraints = {  # noqa: RUF012
        **TRAINING,
        "likelihood": [StrOptions({"auto", *LIKELIHOODS})],
        "objective": [StrOptions(_OBJECTIVES)],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "missing_values": [Real, None],
        "kl_warmup": [Interval(Real, 0, 1, closed="left")],
        "precision": [StrOptions(set(PRECISIONS))],
    }

    def __init__(
        self,
        n_components=1,
        *,
        likelihood="auto",
        objective="auto",
        n_draws=3,
        missing_values=None,
        hidden_layer_sizes=(128, 128),
        kl_warmup=0.0,
        weight_decay=0.0,
        learning_rate=5e-3,
        batch_size=256,
        max_epochs="auto",
        validation_fraction=0.1,
        device="auto",
        precision="float32",
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.likelihood = likelihood
        self.objective = objective
        self.n_draws = n_draws
        self.missing_values = missing_values
        self.hidden_layer_sizes = hidden_layer_sizes
        self.kl_warmup = kl_warmup
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.device = device
        self.precision = precision
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Train the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that the likelihood takes; at least 2.
        y : None
            Ignored.

        Returns
        -------
        MeanFieldVAE
            The fitted estimator.
        """
        with all_or_nothing(self):
            self.objective_ = self._resolve_objective()
            inputs = self._fit_rows(X)
            check_layer_sizes(self.hidden_layer_sizes)
            self._architecture = {
                "n_components": self.n_components,
                "hidden_layer_sizes": tuple(self.hidden_layer_sizes),
            }
            seed = draw_seed(self.random_state)
            rows, held_out, outcome = self._train(
                inputs,
                torch_seed(seed),
                held_fraction=self.validation_fraction,
                description="mean-field VAE",
                prepare=lambda module, rows: module.start(rows),
            )
            if self.objective_ == "quadrature" and not outcome:
                try:
                    self._polish(rows, held_out, torch_seed(seed, 1))
                except KeyboardInterrupt as interrupt:
                    outcome = interrupt
            self._measure(inputs, rows, held_out)
            self._built = {}  # so that after a fit a card holds nothing
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
        return self.posterior(X)[0]

    def inverse_transform(self, Z):
        """Return the mean of x given the latents.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Latents.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            E[x | z] in units of the data, float32. One-hot rows get probabilities, and
            directors their axis of largest <nn'>, with a positive largest component.
        """
        module, family = self._fitted_module(), self._family()
        means = self._in_blocks(
            lambda z: family.mean(module.decode(z)), self._latents(Z), _BLOCK
        )
        return family.outward(means).astype(np.float32, copy=False)

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
        ndarray of shape (n_samples, n_features)
            Independent rows in the convention of the data: int8 for two-valued data,
            int64 for counts and levels, else float32.
        """
        check_count(n_samples, "n_samples")
        module, family = self._fitted_module(), self._family()
        seed = draw_seed(random_state)
        noise = generator(seed).standard_normal((n_samples, self._n_features_out))
        with seeded(torch_seed(seed)):
            draws = self._in_blocks(
                lambda z: family.sample(module.decode(z)), noise, _SAMPLE_BLOCK
            )
        return family.outward_draws(draws)

    def logit_jacobian(self, Z):
        """Differentiate the decoder's logits, the local fields, by the latents.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Latents.

        Returns
        -------
        ndarray of shape (n_samples, n_logits, n_components)
            d logit_i / d z_a at each row, float32; logits as of :meth:`logits`.
        """
        return self._in_blocks(
            lambda z: batched_jacobian(self._local_fields, z), self._latents(Z), _BLOCK
        )

    def logits(self, Z):
        """Return the decoder's logits, the local fields on the columns given z.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Latents.

        Returns
        -------
        ndarray of shape (n_samples, n_logits)
            Float32. One a column: of two-valued data the logit ln p(high) / p(low), in
            nats, which is twice beta times the local field of a spin; of counts the
            logarithm of the rate; of real values their mean. Of levels the logarithms
            of all probabilities, one column after another. Of directors the five
            coefficients of each A: its diagonal is (a / sqrt(2) - b / sqrt(6),
            -a / sqrt(2) - b / sqrt(6), 2 b / sqrt(6)), and its entries xy, xz, yz are
            c, d, e over sqrt(2).
        """
        return self._in_blocks(self._local_fields, self._latents(Z), _BLOCK)

    def _local_fields(self, z):
        return self._family().fields(self._module().decode(z))

    def _resolve_objective(self):
        """Return the objective; "auto" is the best approximation of ln p(x)."""
        few = self.n_components <= _MOST_QUADRATURE
        if self.objective == "quadrature" and not few:
            raise ValueError(
                f"objective='quadrature' is for at most {_MOST_QUADRATURE} latents, "
                f"but n_components={self.n_components}: use objective='importance'."
            )
        if self.objective == "auto":
            return "quadrature" if few else "importance"
        return self.objective

    def _schedule(self, n_rows):
        return Schedule(
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            max_epochs=resolve_epochs(
                self.max_epochs, n_rows, self.batch_size, n_steps=_N_STEPS
            ),
            kl_warmup=self.kl_warmup,
            precision=self.precision,
        )

    def _new_net(self, schedule, device):
        family, n_components = self._family(), self._n_features_out
        sizes = n_components, self._architecture["hidden_layer_sizes"]
        if self.objective_ == "quadrature":
            module = quadrature.GridModel(family, *sizes)
            criterion = quadrature.NegativeGridLikelihood(family, n_components)
        else:
            module = EncodedModel(family, *sizes)
            criterion = losses.NegativeELBO(family.log_prob)
        if self.objective_ == "importance":
            criterion = losses.NegativeImportanceBound(
                family.log_prob, n_components, self.n_draws
            )
        return build_net(module, criterion, schedule, device)

    def _fitted_module(self):
        check_is_fitted(self)
        return self._module()

    def _latents(self, Z):
        check_is_fitted(self)
        return as_columns(Z, self._n_features_out, name="Z")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
