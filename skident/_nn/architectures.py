"""Which module an autoencoder is made of: a table of ours, or a class of the user's."""

import copy
import inspect

import torch
from torch import nn
from torch.nn.parameter import is_lazy

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


def check_new_weights(kind, n_features, n_components, options, rows):
    """Raise a ``ValueError`` if two calls of a class of the user's share numbers.

    Numbers that stay as they are in training may be shared.
    """
    first, second = (
        new_module(kind, n_features, n_components, options) for _ in range(2)
    )
    _check_state(first)
    memories = {_memory(tensor) for _, tensor in _named_tensors(second)}
    shared = [
        (name, tensor, tensor.detach().clone())
        for name, tensor in _named_tensors(first)
        if tensor.numel() and _memory(tensor) in memories
    ]
    with torch.no_grad():
        if shared:
            first.train().decode(first.encode(rows.clone()))
        for name, tensor, before in shared:
            if tensor.requires_grad or not torch.equal(tensor, before):
                tensor.copy_(before)
                raise ValueError(
                    f"module={kind!r} gives the same weights to each module that it "
                    f"makes, here {name}: they would pass from one fit to the next. "
                    "Make all layers and tensors in each call, or clone them."
                )
    _check_classes(first)


def _check_state(module):
    """Refuse a state that is not numbers, or not there yet."""
    for name, tensor in _named_tensors(module):
        if is_lazy(tensor):
            raise ValueError(
                f"module: {name} has no size before the first batch: give the layer "
                "its sizes, that of the input is n_features."
            )
    for name, value in module.state_dict().items():
        if not torch.is_tensor(value):
            raise ValueError(
                f"module: {name} in its state_dict is a {type(value).__name__}, and "
                "only tensors are kept: register it as a buffer."
            )


def _check_classes(module):
    """Refuse layers that belong to a class, and so to all modules of it."""
    bases = {base for part in module.modules() for base in type(part).__mro__}
    for base in bases:
        for name, value in vars(base).items():
            if isinstance(value, nn.Parameter) or (
                isinstance(value, nn.Module) and any(_named_tensors(value))
            ):
                raise ValueError(
                    f"module: {base.__name__}.{name} belongs to the class, and would "
                    "pass from one fit to the next: make it in __init__."
                )


def _named_tensors(module):
    yield from module.named_parameters()
    yield from module.named_buffers()


def _memory(tensor):
    return tensor.untyped_storage().data_ptr()


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
    output = module.decode(z.clone())
    _check_tensor(output, two.shape, f"{name}.decode")
    if not output.requires_grad:
        raise ValueError(
            f"module: what {name}.decode returns has no gradient with respect to any "
            "weight (detached, or under no_grad): it cannot be trained."
        )
    with torch.no_grad():
        _check_rows_alone(module.encode, rows, f"{name}.encode")
        z = module.encode(rows.clone())
        _check_rows_alone(module.decode, z, f"{name}.decode")
    module.train(was_training)


def _check_rows_alone(function, rows, name):
    alone = function(rows.clone())
    beside = function(torch.cat([-rows, rows, -rows]))[len(rows) : 2 * len(rows)]
    if _differ(alone, beside):
        raise ValueError(
            f"module: what {name} returns for a row depends on chance or on the other "
            "rows of its batch, in evaluation mode too: recurrent layers and "
            "transformers need batch_first=True, normalisations running statistics, "
            "and dropout training=self.training."
        )


def _differ(one, other):
    """Return whether finite tensors differ by more than rounding."""
    if not torch.isfinite(one).all():
        return False
    return not bool((other - one).abs().max() <= 0.01 * one.abs().max())


def check_rebuilt(module, rebuilt, rows):
    """Raise a ``ValueError`` unless a module is what its ``state_dict`` makes it."""
    with torch.no_grad():
        both = [part.eval().encode(rows.clone()) for part in (module, rebuilt)]
        outputs = [part.decode(both[0].clone()) for part in (module, rebuilt)]
    if _differ(*both) or _differ(*outputs):
        raise ValueError(
            f"module: {type(module).__name__} holds numbers or flags that are not in "
            "its state_dict (a plain attribute, or a buffer with persistent=False): "
            "they would be others after the fit. Register them as buffers, or pass "
            "them as module_params."
        )


def _check_tensor(output, shape, name):
    got = tuple(output.shape) if torch.is_tensor(output) else type(output).__name__
    if got != tuple(shape):
        raise ValueError(
            f"module: {name} must return a tensor of shape {tuple(shape)} here, got "
            f"{got}."
        )
    if not output.is_floating_point():
        raise ValueError(f"module: {name} must return floats, got {output.dtype}.")
