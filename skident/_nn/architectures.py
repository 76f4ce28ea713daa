"""Which module an autoencoder is made of: a table of ours, or a class of the user's."""

import copy
import inspect

import torch
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


def check_module_class(module):
    """Raise a ``ValueError`` if a module is an instance, or cannot be called."""
    if isinstance(module, nn.Module):
        raise ValueError(
            f"module must be a class, got an instance of {type(module).__name__}: its "
            "weights would pass from one fit to the next. Give the class, and its "
            "arguments as module_params."
        )
    if not callable(module):
        raise ValueError(f"module must be a class of torch modules, got {module!r}.")


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


def check_new_weights(kind, n_features, n_components, options):
    """Raise a ``ValueError`` if two calls of a class of the user's share numbers."""
    both = [new_module(kind, n_features, n_components, options) for _ in range(2)]
    first, second = (
        {memory: name for name, memory in _memories(module)} for module in both
    )
    for memory, name in second.items():
        if memory in first:
            raise ValueError(
                f"module={kind!r} gives the same weights to each module that it makes, "
                f"here {name}: they would pass from one fit to the next. Make all "
                "layers and tensors in each call, or clone them."
            )
    for part in {type(part) for part in both[0].modules()}:
        for name, value in vars(part).items():
            if isinstance(value, nn.Module | torch.Tensor):
                raise ValueError(
                    f"module: {part.__name__}.{name} belongs to the class, and would "
                    "pass from one fit to the next: make it in __init__."
                )


def _memories(module):
    """Yield the name of each tensor and where its numbers are."""
    for tensors in (module.named_parameters(), module.named_buffers()):
        for name, tensor in tensors:
            if tensor.numel():
                yield name, tensor.untyped_storage().data_ptr()


def check_widths(module, rows, n_components):
    """Raise a ``ValueError`` unless a module maps as it must, both ways."""
    was_training, name = module.training, type(module).__name__
    module.eval()
    two = rows[:2]
    z = module.encode(two.clone())
    _check_tensor(z, (len(two), n_components), f"{name}.encode")
    if z.dtype != torch.float32:
        raise ValueError(
            f"module: {name}.encode must return float32, got {z.dtype}: end it with "
            ".float()."
        )
    z, again = module.encode(rows.clone()), module.encode(torch.cat([rows, -rows]))
    error = (again[: len(rows)] - z).detach().abs().max()
    if not error <= 0.01 * z.detach().abs().max():
        raise ValueError(
            f"module: what {name}.encode returns for a row depends on chance or on the "
            "other rows of its batch, in evaluation mode too (dropout without "
            "training=self.training, or normalisation without running statistics): "
            "the representation of a row would not be one."
        )
    output = module.decode(z[:2])
    _check_tensor(output, two.shape, f"{name}.decode")
    if not output.requires_grad:
        raise ValueError(
            f"module: what {name}.decode returns has no gradient with respect to any "
            "weight (detached, or under no_grad): it cannot be trained."
        )
    module.train(was_training)


def _check_tensor(output, shape, name):
    got = tuple(output.shape) if torch.is_tensor(output) else type(output).__name__
    if got != tuple(shape):
        raise ValueError(
            f"module: {name} must return a tensor of shape {tuple(shape)} here, got "
            f"{got}."
        )
    if not output.is_floating_point():
        raise ValueError(f"module: {name} must return floats, got {output.dtype}.")
