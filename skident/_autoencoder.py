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
from sklearn.utils.validation import check_is_fitted

from skident._compat import Interval, fit_context
from skident._nn.held import HeldNet, check_layer_sizes
from skident._nn.jacobians import batched_jacobian
from skident._nn.losses import SquaredError
from skident._nn.modules import Autoencoder
from skident._nn.training import (
    Schedule,
    build_net,
    resolve_epochs,
)
from skident._random import draw_seed, torch_seed
from skident._validation import (
    TRAINING,
    all_or_nothing,
    as_columns,
    validate_rows,
    warn_constant,
)

_N_STEPS = 3000
_BLOCK = 8192


class AutoencoderEmbedder(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, HeldNet, BaseEstimator
):
    r"""Nonlinear embedding by an autoencoder.

    Trains an encoder :math:`f` and a decoder :math:`g`, both of fully connected
    layers, to minimise

    .. math:: \frac{1}{n} \sum_k \| g(f(x_k)) - x_k \|^2

    with AdamW and a step size that falls to zero along half a cosine. Rows are
    centred and divided by one common scale before they enter the network, so that
    the fit does not depend on the units of ``X`` while the geometry between columns
    is kept.

    Parameters
    ----------
    n_components : int, default=2
        Width of the representation.
    hidden_layer_sizes : tuple of int, default=(256, 256)
        Widths of the encoder's hidden layers; the decoder has them reversed.
    negative_slope : float, default=0.2
        Slope of LeakyReLU below zero, in (0, 1]. At 1 the autoencoder is linear; the
        nearer to 1, the nearer the decoder is to bi-Lipschitz constant 1.
    weight_decay : float, default=1e-4
        Decoupled weight decay of AdamW.
    learning_rate : float, default=1e-3
        Step size at the start.
    batch_size : int, default=128
        Rows a step.
    max_epochs : int or "auto", default="auto"
        Passes over the rows. "auto" makes about 3000 steps, in 20 to 500 passes.
    early_stopping : bool, default=False
        Whether to hold out ``validation_fraction`` of the rows, to stop after
        ``n_iter_no_change`` epochs without a smaller loss there, and to keep the
        weights of the best epoch.
    validation_fraction : float, default=0.1
        Fraction of rows held out with ``early_stopping``; at least one row.
    n_iter_no_change : int, default=20
        Patience, in epochs, of ``early_stopping``.
    device : str, default="auto"
        torch device: "auto" is CUDA where there is one, else "cpu".
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
    history_ : dict of ndarray of shape (n_iter_,)
        ``"train_loss"``, and with ``early_stopping`` ``"valid_loss"``: squared error
        a row, in units of ``scale_`` squared.
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
        For NaN or infinity (naming column and row), sparse input or a wrong width.
    FloatingPointError
        If the loss stops being finite, naming the epoch.

    Warns
    -----
    UserWarning
        For constant columns, naming them; they are reconstructed as they are.
    ConvergenceWarning
        If ``early_stopping`` did not stop the training.

    See Also
    --------
    WhitenICA : Resolves the rotation that an autoencoder leaves open.
    skident.metrics.alignment_errors : Compares two embeddings of the same rows.

    Notes
    -----
    The representation is float32 whatever the type of ``X``. An interrupted fit keeps
    the weights of its last (or best) full epoch and raises ``KeyboardInterrupt``.

    References
    ----------
    .. [1] G. E. Hinton and R. R. Salakhutdinov, "Reducing the dimensionality of data
       with neural networks", Science 313, 504 (2006).
    .. [2] Nelson, Fumero, Karaletsos and Locatello, "Statistical and
       structural identifiability in representation learning", ICLR 2026,
       arXiv:2603.11970.

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
        "negative_slope": [Interval(Real, 0, 1, closed="right")],
        "early_stopping": ["boolean"],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components=2,
        *,
        hidden_layer_sizes=(256, 256),
        negative_slope=0.2,
        weight_decay=1e-4,
        learning_rate=1e-3,
        batch_size=128,
        max_epochs="auto",
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=20,
        device="auto",
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.hidden_layer_sizes = hidden_layer_sizes
        self.negative_slope = negative_slope
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.device = device
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
            X = validate_rows(self, X, reset=True, min_samples=2)
            check_layer_sizes(self.hidden_layer_sizes)
            self._architecture = {
                "n_features": X.shape[1],
                "n_components": self.n_components,
                "hidden_layer_sizes": tuple(self.hidden_layer_sizes),
                "negative_slope": self.negative_slope,
            }
            self.mean_, self.scale_ = _centre_and_scale(X)
            constant = np.flatnonzero(X.min(axis=0) == X.max(axis=0))
            warn_constant(self, constant, "they carry nothing and do no harm.")
            _, _, outcome = self._train(
                self._scaled(X),
                torch_seed(draw_seed(self.random_state)),
                held_fraction=self.validation_fraction if self.early_stopping else 0.0,
                description="autoencoder",
            )
        if isinstance(outcome, KeyboardInterrupt):
            raise outcome
        if self.early_stopping and not outcome:
            warnings.warn(
                f"The validation loss was still falling after {self.n_iter_} epochs: "
                "raise max_epochs, or n_iter_no_change if it is noisy.",
                ConvergenceWarning,
            )
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
        X = validate_rows(self, X, reset=False)
        return self._encoded(X)

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
        decode = self._module().decode
        jacobian = self._in_blocks(lambda z: batched_jacobian(decode, z), Z, 1024)
        return jacobian.astype(np.float64) * self.scale_

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
            ``X`` squared; at most 0.
        """
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False)
        return -float(np.mean((self._decoded(self._encoded(X)) - X) ** 2))

    def _schedule(self, n_rows):
        return Schedule(
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            max_epochs=resolve_epochs(
                self.max_epochs, n_rows, self.batch_size, n_steps=_N_STEPS
            ),
            patience=self.n_iter_no_change if self.early_stopping else None,
        )

    def _new_net(self, schedule, device):
        module = Autoencoder(**self._architecture)
        return build_net(module, SquaredError(), schedule, device)

    def _encoded(self, X):
        return self._in_blocks(self._module().encode, self._scaled(X), _BLOCK)

    def _decoded(self, Z):
        rows = self._in_blocks(self._module().decode, Z, _BLOCK)
        return rows.astype(np.float64) * self.scale_ + self.mean_

    def _scaled(self, X):
        return ((X - self.mean_) / self.scale_).astype(np.float32)

    def _latents(self, Z):
        return as_columns(Z, self._n_features_out, name="Z")

    @property
    def _n_features_out(self):
        return self._architecture["n_components"]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _centre_and_scale(X):
    """Return column means and one root-mean-square scale, safe from overflow."""
    mean = X.mean(axis=0, dtype=np.float64)
    largest = np.abs(X - mean).max()
    if largest == 0.0:
        return mean, 1.0
    return mean, float(largest * np.sqrt(np.mean(((X - mean) / largest) ** 2)))
