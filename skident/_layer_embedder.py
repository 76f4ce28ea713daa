"""A layer of any trained torch module as a scikit-learn transformer."""

import copyreg
from numbers import Integral

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from skident._compat import Interval, StrOptions, fit_context
from skident._nn.layers import (
    POOLINGS,
    Apart,
    as_input,
    borrowed,
    holds_embedding,
    layer_device,
    layer_output,
    named_layer,
    pooled,
    put_together,
    take_apart,
)
from skident._nn.threads import warn_of_sharing
from skident._nn.user_modules import check_alone
from skident._validation import all_or_nothing, validate_rows


class LayerEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Representation of any trained torch module at a named layer.

    Nothing is trained: ``fit`` looks at one row to learn the width, and ``transform``
    runs the module up to the layer. So a pretrained model enters a ``Pipeline``, and
    two of them can be compared. Modules of TorchScript take no hooks; those with
    parametrized weights work, but torch does not pickle them.

    Parameters
    ----------
    module : torch.nn.Module
        Trained module. It is kept by reference, never copied and never changed: mode
        and device are as before after every call. ``sklearn.base.clone`` shares it.
    layer : str
        Name of the layer as in ``module.named_modules()``, for instance
        ``"encoder.layers.1"``; ``""`` is the module itself. If the layer is called more
        than once in a pass, the first answer counts.
    pooling : {"auto", "mean", "cls", "flatten"} or callable, default="auto"
        How one vector a row is made of what the layer returns. "mean" averages over
        tokens, (n, tokens, d), or pixels, (n, channels, height, width), "cls" takes the
        first token, "flatten" keeps everything. "auto" is "mean" where there is
        something to average; three axes are always (n, tokens, d), so that signals
        (n, channels, length) need a callable. It takes the tensor and returns (n, d).
    input_shape : tuple of int, default=None
        Shape to which each row is brought before it enters the module, for instance
        ``(1, 28, 28)`` for images that come as rows; None leaves rows as they are.
    input_dtype : {"auto", "float", "int"}, default="auto"
        "int" passes rows on as int64, as tokens; "float" in the floating type of the
        module. "auto" is "int" if the module holds an ``nn.Embedding`` and all values
        in the fit are whole numbers, else "float".
    batch_size : int, default=256
        Rows a pass.
    device : str, default="auto"
        torch device to run on: "auto" is the module's own if that is no CPU, else CUDA
        where there is one, else the CPU. Or a name: "cpu", "cuda:1", "mps" (untested).

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of ``X``.
    n_components_ : int
        Width of the representation.
    tokens_ : bool
        Whether rows are passed on as integers.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if ``X`` has any.

    Raises
    ------
    ValueError
        If the layer does not exist (naming those that do), is not called, or returns
        something that cannot be pooled, or that depends on the other rows of a batch;
        for NaN or infinity in ``X``, or a wrong width.
    TypeError
        If ``module`` is no ``torch.nn.Module``, or ``layer`` no name (giving that of a
        layer itself); on an attempt to save with skops.

    Warns
    -----
    UserWarning
        Once a process, if a worker of joblib computes on a GPU: others may share it.

    See Also
    --------
    skident.metrics.alignment_errors : Compares two representations of the same rows.

    Notes
    -----
    The representation is float32, or float64 for a module in double precision.

    Saving: pickle and joblib store the module with the estimator, numbers as numpy
    arrays, and load it on the CPU; its class must be importable there. skops refuses
    it, as a module is code. ``joblib.hash`` is that of its numbers and structure.

    Examples
    --------
    >>> import torch
    >>> from sklearn.datasets import load_digits
    >>> from skident import LayerEmbedder
    >>> net = torch.nn.Sequential(
    ...     torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)
    ... )
    >>> X = load_digits().data
    >>> LayerEmbedder(net, "1").fit_transform(X).shape
    (1797, 16)
    """

    _parameter_constraints = {  # noqa: RUF012
        "module": "no_validation",
        "layer": "no_validation",
        "pooling": [StrOptions(set(POOLINGS)), callable],
        "input_shape": ["array-like", None],
        "input_dtype": [StrOptions({"auto", "float", "int"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "device": [str],
    }

    def __init__(
        self,
        module,
        layer,
        *,
        pooling="auto",
        input_shape=None,
        input_dtype="auto",
        batch_size=256,
        device="auto",
    ):
        self.module = module
        self.layer = layer
        self.pooling = pooling
        self.input_shape = input_shape
        self.input_dtype = input_dtype
        self.batch_size = batch_size
        self.device = device

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Check module, layer and rows, and learn the width of the representation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        LayerEmbedder
            The fitted estimator.
        """
        if not isinstance(self.module, torch.nn.Module):
            raise TypeError(
                "module must be a trained torch.nn.Module, got "
                f"{type(self.module).__name__}."
            )
        named_layer(self.module, self.layer)
        with all_or_nothing(self):
            X = validate_rows(self, X, reset=True)
            self._check_input_shape(X.shape[1])
            auto = self.input_dtype == "auto" and holds_embedding(self.module)
            self.tokens_ = self.input_dtype == "int" or (auto and _whole(X).all())
            # of two rows the second, which sees the first also where time runs forward
            last = self._embedded(X[:2][-1:])[0]
            self.n_components_ = len(last)
            beside = self._embedded(X[:2])[-1]
            # a width that depends on the batch is told when all rows are there
            if beside.shape == last.shape:
                check_alone(
                    *map(torch.from_numpy, (last, beside)),
                    f"layer={self.layer!r}",
                    tolerance=0.05,  # a module may compute in bfloat16
                )
        return self

    def transform(self, X):
        """Run rows up to the layer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            One vector a row.
        """
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False)
        Z = self._embedded(X)
        if Z.shape[1] != self.n_components_:
            raise ValueError(
                f"The layer gave {Z.shape[1]} numbers a row, but {self.n_components_} "
                "in the fit: module or pooling has changed. Fit again."
            )
        return Z

    def _embedded(self, X):
        if self.tokens_ and not (whole := _whole(X)).all():
            row, column = np.argwhere(~whole)[0]
            raise ValueError(
                f"Tokens must be whole numbers, but X has {X[row, column]:g} in column "
                f"{column}, row {row}."
            )
        device, parts = layer_device(self.module, self.device), []
        warn_of_sharing(device)
        with borrowed(self.module, device) as module:
            for start in range(0, len(X), self.batch_size):
                rows = X[start : start + self.batch_size]
                batch = as_input(module, rows, self.input_shape, self.tokens_)
                output = layer_output(module, self.layer, batch)
                vectors = pooled(output, self.pooling, len(rows))
                parts.append(_as_floats(vectors))
                if parts[-1].shape[1] != parts[0].shape[1]:
                    raise ValueError(
                        f"The layer gave {parts[0].shape[1]} numbers a row in the "
                        f"first batch and {parts[-1].shape[1]} in another: choose a "
                        "pooling whose width does not depend on the batch."
                    )
        Z = np.concatenate(parts)
        wrong = np.argwhere(~np.isfinite(Z))
        if len(wrong):
            raise ValueError(
                f"layer={self.layer!r} returned {Z[tuple(wrong[0])]} for row "
                f"{wrong[0][0]}, component {wrong[0][1]}: the module overflows there. "
                "Scale X as in its training."
            )
        return Z

    def _check_input_shape(self, n_features):
        if self.input_shape is None:
            return
        if any(not isinstance(n, Integral) or n < 1 for n in self.input_shape):
            raise ValueError(
                f"input_shape must be a tuple of ints, got {self.input_shape!r}."
            )
        if np.prod(self.input_shape, dtype=int) != n_features:
            raise ValueError(
                f"input_shape={self.input_shape!r} has "
                f"{np.prod(self.input_shape, dtype=int)} entries, but X has "
                f"{n_features} columns."
            )

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_clone__(self):
        return type(self)(**self.get_params(deep=False))

    def __getstate__(self):
        state = dict(super().__getstate__())
        if isinstance(self.module, torch.nn.Module):
            state["module"] = take_apart(self.module)
        return state

    def __setstate__(self, state):
        state = dict(state)
        if isinstance(state.get("module"), Apart):
            state["module"] = put_together(*state["module"])
        super().__setstate__(state)

    def __reduce_ex__(self, protocol):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __reduce__(self):
        # pickle and joblib ask for __reduce_ex__, skops asks for this.
        raise TypeError(
            "LayerEmbedder holds a torch module, which is code: save it with pickle or "
            "joblib, or save the module's state_dict by itself."
        )


def _as_floats(vectors):
    kept = vectors.dtype in (torch.float32, torch.float64)
    return (vectors if kept else vectors.float()).cpu().numpy()


def _whole(X):
    return np.floor(X) == X
