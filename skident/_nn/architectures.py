"""Which module an autoencoder is made of: a table of ours, or a class of the user's."""

import copy
import inspect

from torch import nn

from skident._nn.convolutions import SMALLEST_SIDE, ConvolutionalAutoencoder
from skident._nn.modules import Autoencoder

ARCHITECTURES = {"mlp": Autoencoder, "conv": ConvolutionalAutoencoder}


def check_image_shape(image_shape, n_features):
    """Return an image shape as a tuple of ints that has as many pixels as columns."""
    shape = tuple(image_shape)
    whole = all(isinstance(side, int) or hasattr(side, "__index__") for side in shape)
    if len(shape) not in (2, 3) or not whole or any(side < 1 for side in shape):
        raise ValueError(
            "image_shape must be (height, width) or (height, width, channels), "
            f"positive integers, got {image_shape!r}."
        )
    shape = tuple(int(side) for side in shape)
    n_pixels = shape[0] * shape[1] * (shape[2] if len(shape) == 3 else 1)
    if n_pixels != n_features:
        raise ValueError(
            f"image_shape={shape} has {n_pixels} values, but X has {n_features} "
            "columns: each row must be one flattened image."
        )
    return shape


def check_conv_shape(image_shape):
    """Raise a ``ValueError`` unless there is an image large enough to be halved."""
    if image_shape is None:
        raise ValueError(
            "architecture='conv' needs image_shape=(height, width) or (height, width, "
            "channels), got None."
        )
    if min(image_shape[:2]) < SMALLEST_SIDE:
        raise ValueError(
            f"architecture='conv' needs images of at least {SMALLEST_SIDE} x "
            f"{SMALLEST_SIDE} pixels, got image_shape={image_shape}: use 'mlp'."
        )


def new_module(kind, n_features, n_components, options):
    """Return a module with new weights.

    Parameters
    ----------
    kind : str or class
        A name of ``ARCHITECTURES``, or what is called in its place.
    n_features, n_components : int
        Width of the data and of the representation.
    options : dict
        Further arguments by name.

    Returns
    -------
    Module
        With ``encode`` and ``decode``.

    Raises
    ------
    TypeError
        If it cannot be called so, naming the call and the parameters that there are.
    ValueError
        If what it makes is no such module, or has no weights to train.
    """
    make = ARCHITECTURES[kind] if isinstance(kind, str) else kind
    # modules among the options stay as they are: each call trains a copy
    own = copy.deepcopy(options)
    try:
        module = make(n_features, n_components, **own)
    except TypeError as error:
        name = getattr(make, "__name__", type(make).__name__)
        given = "".join(f", {option}=..." for option in options)
        raise TypeError(
            f"module was called as {name}({n_features}, {n_components}{given}), that "
            f"is (n_features, n_components, **module_params), and failed: {error}. "
            f"Its parameters are {_signature(make)}."
        ) from error
    if not isinstance(module, nn.Module) or not all(
        callable(getattr(module, name, None)) for name in ("encode", "decode")
    ):
        raise ValueError(
            f"module={make!r} made a {type(module).__name__}, but a torch module with "
            "the methods encode and decode is needed."
        )
    if not any(weight.requires_grad for weight in module.parameters()):
        raise ValueError(f"module={make!r} made a module with no weights to train.")
    return module


def _signature(make):
    try:
        return str(inspect.signature(make))
    except ValueError:  # some of Python's own
        return "not known"
