"""Checks of a user's module: can it be trained, kept, and asked row by row."""

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from skident._nn.architectures import new_module


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
    name, two = type(module).__name__, rows[:2]
    module.eval()
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


def _check_rows_alone(function, rows, name):
    alone = function(rows.clone())
    beside = function(torch.cat([-rows, rows, -rows]))[len(rows) : 2 * len(rows)]
    check_alone(alone, beside, f"module: {name}")


def check_alone(alone, beside, name, tolerance=0.01):
    """Raise a ``ValueError`` if answers to rows alone and among others differ."""
    if _differ(alone, beside, tolerance):
        raise ValueError(
            f"What {name} returns for a row depends on chance or on the other rows of "
            "its batch, in evaluation mode too: recurrent layers and transformers need "
            "batch_first=True, normalisations running statistics, and dropout "
            "training=self.training."
        )


def _differ(one, other, tolerance=0.01):
    """Return whether finite tensors differ by more than a part of the largest."""
    if not torch.isfinite(one).all():
        return False
    return not bool((other - one).abs().max() <= tolerance * one.abs().max())


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
