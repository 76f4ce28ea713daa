"""Representations inside a trained module: capture, pool, take apart to store."""

import contextlib
import copy
import threading
from typing import NamedTuple

import numpy as np
import torch

from skident._nn.training import resolve_device

# A hook belongs to the module, not to the thread that runs it: calls take turns.
_turn = threading.Lock()


class Apart(NamedTuple):
    """A module without its numbers, and these, from :func:`take_apart`."""

    skeleton: torch.nn.Module
    arrays: list


class _Reached(Exception):
    """The layer has answered: what lies above it need not run."""


def named_layer(module, layer):
    """Return the submodule of a dotted name; an error lists the names there are."""
    names = dict(module.named_modules())
    if not isinstance(layer, str):
        own = [repr(name) for name, part in names.items() if part is layer]
        raise TypeError(
            f"layer must be a str, got {type(layer).__name__}: give its name, as in "
            f"module.named_modules(){', here ' + own[0] if own else ''}."
        )
    if layer not in names:
        known = ", ".join(repr(name) for name in names if name)
        raise ValueError(
            f"layer={layer!r} is no layer of {type(module).__name__}. Its layers are: "
            f"{known or 'none; use the empty name for the module itself'}."
        )
    return names[layer]


@contextlib.contextmanager
def borrowed(module, device):
    """Put a module into evaluation mode on a device, then back as it was."""
    modes = [(part, part.training) for part in module.modules()]
    home = _home(module)
    with _turn:
        try:
            module.eval()
            if home is not None and home != device:
                module.to(device)
            yield module
        finally:
            if home is not None and home != device:
                module.to(home)
            for part, training in modes:
                part.training = training


def layer_device(module, device):
    """Return the device to run a module on: for "auto" its own unless it is the CPU."""
    home = _home(module)
    if home is not None and home.type == "meta":
        raise ValueError(
            f"module={type(module).__name__} is on device 'meta' and holds no numbers: "
            "load its weights first."
        )
    if device == "auto" and home is not None and home.type != "cpu":
        return home
    return resolve_device(device)


def layer_output(module, layer, batch):
    """Return what a layer answers, the first time it is called, to a batch."""
    caught = []

    def catch(part, inputs, output):
        caught.append(output)
        raise _Reached

    handle = named_layer(module, layer).register_forward_hook(catch)
    try:
        # not inference mode: a module may keep tensors that it later trains with
        with torch.no_grad(), contextlib.suppress(_Reached):
            module(batch)
    finally:
        handle.remove()
    if not caught:
        raise ValueError(
            f"layer={layer!r} was not called when {type(module).__name__} ran: choose "
            "one that takes part in its forward pass."
        )
    return _first_tensor(caught[0], layer)


def _first_tensor(output, layer):
    if isinstance(output, dict):
        output = tuple(output.values())
    while isinstance(output, (tuple, list)) and output:
        output = output[0]
    if not isinstance(output, torch.Tensor):
        raise ValueError(
            f"layer={layer!r} returns a {type(output).__name__}, not a tensor: choose "
            "another layer."
        )
    if output.is_complex() or output.layout != torch.strided:
        raise ValueError(
            f"layer={layer!r} returns a tensor of {output.dtype}, {output.layout}: "
            "only dense real ones can be embedded. Choose another layer."
        )
    return output


def _mean(output):
    """Average over tokens (n, tokens, d) or pixels (n, channels, ...)."""
    return output.mean(1) if output.dim() == 3 else output.flatten(2).mean(-1)


def _cls(output):
    """Take the first token of (n, tokens, d)."""
    if output.dim() != 3:
        raise ValueError(
            f"pooling='cls' needs tokens (n, tokens, d), but the layer returns shape "
            f"{tuple(output.shape)}: use 'mean' or 'flatten'."
        )
    return output[:, 0]


POOLINGS = {
    "auto": lambda output: _mean(output) if output.dim() > 2 else output,
    "mean": lambda output: _mean(output) if output.dim() > 2 else output,
    "cls": _cls,
    "flatten": lambda output: output.flatten(1),
}


def pooled(output, pooling, n_rows):
    """Return one vector a row, (n_rows, d), of a layer's output."""
    if output.dim() == 0 or output.shape[0] != n_rows:
        raise ValueError(
            f"The layer returns shape {tuple(output.shape)} for a batch of {n_rows} "
            "rows: the first axis must count rows (batch_first=True in transformers)."
        )
    if output.dim() == 1:
        output = output[:, None]
    vectors = POOLINGS[pooling](output) if isinstance(pooling, str) else pooling(output)
    shape = tuple(getattr(vectors, "shape", ()))
    wanted = isinstance(vectors, torch.Tensor) and len(shape) == 2
    if not wanted or shape[0] != n_rows or not shape[1]:
        raise ValueError(
            f"pooling must return a tensor of shape ({n_rows}, d) of a batch of "
            f"{n_rows} rows, d at least 1, got a {type(vectors).__name__} of shape "
            f"{shape}."
        )
    return vectors


def holds_embedding(module):
    """Return whether a module looks tokens up in a table."""
    return any(isinstance(part, torch.nn.Embedding) for part in module.modules())


def as_input(module, rows, input_shape, tokens):
    """Return rows as a tensor of the type, shape and device that a module takes.

    That is int64 for tokens, else the floating type of the module's parameters.
    """
    tensor = torch.tensor(np.ascontiguousarray(rows))
    if input_shape is not None:
        tensor = tensor.reshape(tensor.shape[0], *input_shape)
    floats = (t.dtype for t in _tensors(module) if t.is_floating_point())
    dtype = torch.int64 if tokens else next(floats, torch.float32)
    return tensor.to(_home(module), dtype)


def _home(module):
    return next((t.device for t in _tensors(module)), None)


def _tensors(thing):
    """Yield the tensors of a module, or of what dicts and lists of them hold."""
    if isinstance(thing, torch.nn.Module):
        yield from thing.parameters()
        yield from thing.buffers()
    elif isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, dict | list | tuple):
        for part in thing.values() if isinstance(thing, dict) else thing:
            yield from _tensors(part)


def holds_tensors(thing):
    """Return whether there are numbers to take apart."""
    return next(_tensors(thing), None) is not None


def take_apart(module):
    """Return a module, or a dict of some, without its numbers, and these as arrays.

    The skeleton is a copy whose parameters and buffers hold a shape and nothing else,
    so that two modules that are equal are equal piece by piece.
    """
    tensors = {id(t): t for t in _tensors(module)}
    memo = {key: t.detach().to("meta") for key, t in tensors.items()}
    for key, t in tensors.items():
        if isinstance(t, torch.nn.Parameter):
            memo[key] = torch.nn.Parameter(memo[key], t.requires_grad)
    arrays = [_to_numpy(t) for t in tensors.values()]
    return Apart(copy.deepcopy(module, memo), arrays)


def put_together(skeleton, arrays):
    """Return the module of :func:`take_apart`, on the CPU."""
    hollow = list({id(t): t for t in _tensors(skeleton)}.values())
    memo = {}
    for t, array in zip(hollow, arrays, strict=True):
        full = torch.from_numpy(array.copy()).view(t.dtype).reshape(t.shape)
        if isinstance(t, torch.nn.Parameter):
            full = torch.nn.Parameter(full, t.requires_grad)
        memo[id(t)] = full
    return copy.deepcopy(skeleton, memo)


def _to_numpy(tensor):
    """Return the numbers; of a type that numpy lacks (bfloat16), the bytes."""
    tensor = tensor.detach().cpu().contiguous()
    try:
        return tensor.numpy().copy()
    except TypeError:
        return tensor.reshape(-1).view(torch.uint8).numpy().copy()
