"""Autoencoder as a scikit-learn transformer."""

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from skident._compat import Interval, StrOptions, fit_context
from skident._math.lipschitz import bi_lipschitz_constant, singular_extremes
from skident._nn.architectures import ARCHITECTURES
from skident._nn.held_autoencoder import HeldAutoencoder
from skident._nn.losses import ERRORS
from skident._nn.precision import PRECISIONS
from skident._nn.rows import blocks, is_mapped
from skident._random import draw_seed, torch_seed
from skident._validation import (
    TRAINING,
    all_or_nothing,
    as_columns,
    check_finite,
    validate_rows,
    warn_constant,
)


class AutoencoderEmbedder(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, HeldAutoencoder, BaseEstimator
):
    r"""Nonlinear embedding by an autoencoder.

    Trains an encoder :math:`f` and a decoder :math:`g` to minimise

    .. math:: \frac{1}{n} \sum_k \| g(f(x_k)) - x_k \|^2

    (or a cross-entropy) with AdamW and a step size that falls to zero along half a
    cosine. Rows are centred and divided by one common scale before they enter the
    network, so that the fit does not depend on the units of ``X`` while the geometry
    between columns is kept. Input may be masked, and ``isometry`` keeps the decoder
    near a scaled isometry: trainings that reconstruct alike then agree up to a rigid
    map.

    Parameters
    ----------
    n_components : int, default=2
        Width of the representation.
    hidden_layer_sizes : tuple of int, default=(256, 256)
        Widths of the encoder's hidden layers; the decoder has them reversed. For
        "conv" the fully connected layers between the blocks and the representation.
    architecture : {"mlp", "conv"}, default="mlp"
        "mlp" has fully connected layers only. "conv" first halves images, in blocks of
        one convolution of 4 x 4 pixels with stride 2, until their shorter side is below
        8 pixels; the decoder mirrors it.
    image_shape : tuple of int or None, default=None
        (height, width) or (height, width, channels) of the images that rows are, each
        flattened in C order. Needed for "conv", whose images have at least 8 x 8
        pixels.
    n_filters : int, default=32
        Channels behind the first block of "conv"; each further block has twice as
        many, up to four times ``n_filters``.
    negative_slope : float, default=0.2
        Slope of LeakyReLU below zero, in (0, 1]. At 1 the autoencoder is linear; the
        nearer to 1, the nearer the decoder is to bi-Lipschitz constant 1.
    loss : {"auto", "mse", "bce"}, default="auto"
        "mse" is the squared error. "bce" is the binary cross-entropy in nats, for
        values in [0, 1]: the decoder then puts out logits, and ``inverse_transform``
        probabilities. "auto" is "bce" if ``X`` has the values 0 and 1 and no others,
        else "mse".
    isometry : float, default=0.0
        Weight of the relative distortion of the decoder [3]_,
        :math:`d\,E[v'(J'J)^2 v] / E[v'J'Jv]^2 - 1` with J its Jacobian and v uniform
        on the sphere of radius :math:`\sqrt d`, at latents between and a little
        beyond random pairs of rows: 0 exactly for a scaled isometry. It counts in
        units of the loss of a constant reconstruction, so that one value suits data
        of any scale and width; **0.1 is recommended**. A step takes about twice as
        long. What torch cannot differentiate twice, the decoder cannot contain.
    mask_ratio : float, default=0.0
        Share of the features, or of the patches of images, of each row that are hidden
        from the encoder in training, in [0, 1). All features are reconstructed.
    patch_size : int, default=1
        Side in pixels of the squares that ``mask_ratio`` hides, if there is an
        ``image_shape``.
    weight_decay : float, default=1e-4
        Decoupled weight decay of AdamW.
    learning_rate : float, default=1e-3
        Step size at the start.
    batch_size : int, default=128
        Rows a step. A last batch of one row joins the one before.
    max_epochs : int or "auto", default="auto"
        Passes over the rows. "auto" makes about 3000 steps, in 20 to 500 passes.
    max_grad_norm : float or None, default=None
        Length that the gradient is cut to; None leaves it.
    early_stopping : bool, default=False
        Whether to hold out ``validation_fraction`` of the rows, to stop after
        ``n_iter_no_change`` epochs without a smaller loss there, and to keep the
        weights of the best epoch.
    validation_fraction : float, default=0.1
        Fraction of rows held out with ``early_stopping``; at least one row.
    n_iter_no_change : int, default=20
        Patience, in epochs, of ``early_stopping``.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the weights, the optimiser's state and the units
        (``mean_``, ``scale_``) of the fit before, with the step size high again, and
        appends to ``history_``.
    module : class or None, default=None
        What to train instead of an ``architecture``: called as
        ``module(n_features, n_components, **module_params)``, a torch module with the
        methods ``encode`` and ``decode``, both of rows. ``hidden_layer_sizes``,
        ``architecture``, ``n_filters`` and ``negative_slope`` are then not used. An
        instance is refused: its weights would pass from one fit to the next.
    module_params : dict or None, default=None
        Further arguments of ``module``. Each fit copies them: a trained part among them
        is where each starts from.
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
        Seed of weights and batches. An int gives the same fit each time on one
        machine with one thread count; None takes fresh entropy. numpy's and torch's
        global generators are left as found.

    Attributes
    ----------
    weights_ : dict of ndarray
        Weights of the network by name: the fitted truth.
    net_ : skorch.NeuralNet
        Network with these weights, built on demand; not pickled.
    optimizer_state_ : dict of ndarray
        State of the optimiser, from which ``partial_fit`` and ``warm_start`` go on.
    loss_ : str
        The loss used.
    history_ : dict of ndarray of shape (n_iter_,)
        ``"train_loss"``, and for epochs with ``early_stopping`` ``"valid_loss"``: the
        objective a row, in units of ``scale_`` squared, or in nats for "bce".
    n_iter_ : int
        Number of epochs trained.
    mean_ : ndarray of shape (n_features_in_,)
        Means of the columns.
    scale_ : float
        Root mean square of the centred data; 1 if that is zero.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if ``X`` has any.

    Raises
    ------
    ValueError
        For NaN or infinity (naming column and row), sparse input or a wrong width; for
        images of another size than the columns; for "bce" and values beyond [0, 1];
        for a ``module`` with outputs of another shape or type, without gradients, whose
        weights are not its own or not all in its ``state_dict``, whose answer to a row
        depends on the others of a batch, or that normalises over a batch of one row;
        for rows or latents so far from those of the fit that the network's numbers
        overflow.
    TypeError
        If ``module`` cannot be called as it is, naming the call and its parameters.
    FloatingPointError
        If the loss stops being finite, naming the epoch.

    Warns
    -----
    UserWarning
        For constant columns, naming them; they are reconstructed as they are. Once a
        process, if a worker of joblib computes on a GPU, which others may share.
    ConvergenceWarning
        If ``early_stopping`` did not stop the training.

    See Also
    --------
    WhitenICA : Resolves the rotation that an autoencoder leaves open.
    skident.metrics.alignment_errors : Compares two embeddings of the same rows.

    Notes
    -----
    The representation is float32 whatever the type of ``X``. An interrupted fit keeps
    the weights of its last (or best) full epoch and raises ``KeyboardInterrupt``; one
    interrupted in its first epoch, and a ``partial_fit``, leave the estimator as it
    was. A memory-mapped ``X`` of any type of numbers is read batch by batch and never
    copied as a whole. Masked entries are set to the columns' means, and what stays
    visible is divided by its share, as in dropout.

    References
    ----------
    .. [1] G. E. Hinton and R. R. Salakhutdinov, "Reducing the dimensionality of data
       with neural networks", Science 313, 504 (2006).
    .. [2] Nelson, Fumero, Karaletsos and Locatello, "Statistical and
       structural identifiability in representation learning", ICLR 2026,
       arXiv:2603.11970.
    .. [3] Y. Lee, S. Yoon, M. Son and F. C. Park, "Regularized autoencoders for
       isometric representation learning", ICLR 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skident import AutoencoderEmbedder
    >>> X = load_digits().data
    >>> ae = AutoencoderEmbedder(4, max_epochs=20, random_state=0).fit(X)
    >>> ae.transform(X).shape
    (1797, 4)
    >>> error = ((ae.inverse_transform(ae.transform(X)) - X) ** 2).sum()
    >>> bool(error < 0.7 * ((X - X.mean(0)) ** 2).sum())
    True
    """

    _parameter_constraints = {  # noqa: RUF012
        **TRAINING,
        "architecture": [StrOptions(set(ARCHITECTURES))],
        "image_shape": ["array-like", None],
        "n_filters": [Interval(Integral, 1, None, closed="left")],
        "negative_slope": [Interval(Real, 0, 1, closed="right")],
        "loss": [StrOptions({"auto", *ERRORS})],
        "isometry": [Interval(Real, 0, None, closed="left")],
        "mask_ratio": [Interval(Real, 0, 1, closed="left")],
        "patch_size": [Interval(Integral, 1, None, closed="left")],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "early_stopping": ["boolean"],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "precision": [StrOptions(set(PRECISIONS))],
        "module": "no_validation",
        "module_params": [dict, None],
    }

    def __init__(
        self,
        n_components=2,
        *,
        hidden_layer_sizes=(256, 256),
        architecture="mlp",
        image_shape=None,
        n_filters=32,
        negative_slope=0.2,
        loss="auto",
        isometry=0.0,
        mask_ratio=0.0,
        patch_size=1,
        weight_decay=1e-4,
        learning_rate=1e-3,
        batch_size=128,
        max_epochs="auto",
        max_grad_norm=None,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=20,
        warm_start=False,
        module=None,
        module_params=None,
        device="auto",
        precision="float32",
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.hidden_layer_sizes = hidden_layer_sizes
        self.architecture = architecture
        self.image_shape = image_shape
        self.n_filters = n_filters
        self.negative_slope = negative_slope
        self.loss = loss
        self.isometry = isometry
        self.mask_ratio = mask_ratio
        self.patch_size = patch_size
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.max_grad_norm = max_grad_norm
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.module = module
        self.module_params = module_params
        self.device = device
        self.precision = precision
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Train the autoencoder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; at least 2.
        y : None
            Ignored.

        Returns
        -------
        AutoencoderEmbedder
            The fitted estimator.
        """
        with all_or_nothing(self):
            resume = self.warm_start and hasattr(self, "weights_")
            X = self._continued(X) if resume else self._started(X)
            _, _, outcome = self._train(
                self._network_rows(X),
                torch_seed(self._seed),
                held_fraction=self.validation_fraction if self.early_stopping else 0.0,
                description="autoencoder",
                prepare=self._check_module,
                finish=self._check_trained,
                resume=resume,
            )
            if isinstance(outcome, KeyboardInterrupt) and not self.n_iter_:
                raise outcome
        if isinstance(outcome, KeyboardInterrupt):
            raise outcome
        if self.early_stopping and not outcome:
            warnings.warn(
                f"The validation loss was still falling after {self.n_iter_} epochs: "
                "raise max_epochs, or n_iter_no_change if it is noisy.",
                ConvergenceWarning,
            )
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None):
        """Train for one more pass over some rows, with a step size that stays.

        The first call fixes the network, and from its rows ``mean_``, ``scale_`` and
        the loss: let them stand for all. Nothing is held out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; at least 2 in the first call.
        y : None
            Ignored.

        Returns
        -------
        AutoencoderEmbedder
            The estimator.
        """
        with all_or_nothing(self):
            resume = hasattr(self, "weights_")
            X = self._continued(X) if resume else self._started(X)
            _, _, outcome = self._train(
                self._network_rows(X),
                torch_seed(self._seed, *([self.n_iter_] if resume else [])),
                held_fraction=0.0,
                description="autoencoder",
                prepare=self._check_module,
                finish=self._check_trained,
                schedule=self._schedule(X.shape[0])._replace(
                    max_epochs=1, patience=None, constant=True
                ),
                resume=resume,
            )
            if isinstance(outcome, KeyboardInterrupt):
                raise outcome
        return self

    def transform(self, X):
        """Encode rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Latents, float32.
        """
        check_is_fitted(self)
        return self._encoded(self._rows(X, reset=False))

    def inverse_transform(self, Z):
        """Decode latents.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Latents.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rows in the units of the training data, float64.
        """
        check_is_fitted(self)
        return self._decoded(self._latents(Z))

    def decoder_jacobian(self, Z):
        """Differentiate the decoder.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Latents.

        Returns
        -------
        ndarray of shape (n_samples, n_features, n_components)
            d x / d z at each row, in units of ``X`` a unit of latent.
        """
        check_is_fitted(self)
        Z = self._latents(Z)
        return self._jacobians(Z).astype(np.float64) * self.scale_

    def bi_lipschitz(self, X, *, quantile=0.0):
        r"""Return how far the decoder is from an isometry at encoded rows.

        The latents are rescaled by the one scalar that makes L least; then
        :math:`1 + L = \sqrt{\max s / \min s}`, s the singular values of the decoder's
        Jacobian at all rows. A common factor of the decoder, which says nothing about
        the shape of the representation, so drops out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, best not those of the fit.
        quantile : float, default=0.0
            Fraction of rows, in [0, 0.5), to leave out at either end.

        Returns
        -------
        BiLipschitz
            Named tuple of ``L``, ``scale``, ``smallest``, ``largest`` and ``bound``, as
            of :func:`skident.metrics.bi_lipschitz`.
        """
        check_is_fitted(self)
        if not isinstance(quantile, Real) or not 0 <= quantile < 0.5:
            raise ValueError(f"quantile must be in [0, 0.5), got {quantile!r}.")
        Z = self._encoded(self._rows(X, reset=False))
        n_rows = self._jacobian_rows()
        parts = [
            singular_extremes(self.decoder_jacobian(Z[start : start + n_rows]))
            for start in range(0, Z.shape[0], n_rows)
        ]
        smallest, largest = (np.concatenate(p) for p in zip(*parts, strict=True))
        return bi_lipschitz_constant(smallest, largest, quantile)

    def score(self, X, y=None):
        """Return minus the mean squared error of reconstruction.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        float
            Minus the squared error, averaged over rows and columns, in units of
            ``X`` squared; at most 0, and minus infinity where squares overflow.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        with np.errstate(over="ignore"):
            total = sum(
                np.square(self._decoded(self._encoded(part)) - part).sum()
                for part in (X[start:stop] for start, stop in blocks(X))
            )
        return -float(total / X.size)

    def _started(self, X):
        """Return rows for a new fit, and fix network, units and seed by them."""
        X = self._rows(X, reset=True, min_samples=2)
        self._seed = draw_seed(self.random_state)
        self._architecture = self._new_architecture(X.shape[1])
        columns = self._fix_units(X)
        constant = np.flatnonzero(columns.smallest == columns.largest)
        warn_constant(self, constant, "they carry nothing and do no harm.")
        return X

    def _continued(self, X):
        """Return rows for the network that is there."""
        X = self._rows(X, reset=False)
        loss = self.loss_ if self.loss == "auto" else self.loss
        now = {**self._new_architecture(X.shape[1]), "loss": loss}
        before = {**self._architecture, "loss": self.loss_}
        changed = [k for k in now if str(now[k]) != str(before[k])]
        if changed:
            k = changed[0]
            raise ValueError(
                f"Training cannot go on: {k} was {before[k]!r} in the fit and is "
                f"{now[k]!r} now. Set it back, or fit a clone."
            )
        self._check_range(X)
        return X

    def _rows(self, X, *, reset, min_samples=1):
        """Return finite rows; those mapped from a file in their own type."""
        if not is_mapped(X) or X.dtype.kind not in "fiub" or X.ndim > 2:
            return validate_rows(self, X, reset=reset, min_samples=min_samples)
        X = validate_data(
            self,
            X,
            reset=reset,
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=min_samples,
        )
        check_finite(X)
        return X

    def _latents(self, Z):
        return as_columns(Z, self._n_features_out, name="Z")

    @property
    def _n_features_out(self):
        return self._architecture["n_components"]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
