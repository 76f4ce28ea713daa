"""What a net has learned, as arrays: the optimiser's state, the history of losses."""

import numpy as np
import torch


def as_array(tensor):
    """Return a tensor as an array, of bfloat16, which numpy lacks, as float32."""
    tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    return tensor.detach().cpu().numpy()


def optimizer_arrays(net):
    """Return the state of the optimiser as arrays, by quantity and weight.

    With it goes that of the scale of the loss, under "scaler".
    """
    arrays = {
        f"{quantity}:{name}": as_array(value).copy()
        for name, weight in net.module_.named_parameters()
        for quantity, value in net.optimizer_.state.get(weight, {}).items()
    }
    scale = net.scaler.state_dict()
    return arrays | {f"scaler:{name}": np.array(value) for name, value in scale.items()}


def load_optimizer(net, arrays):
    """Put the arrays of :func:`optimizer_arrays` back into an optimiser."""
    weights, scale = dict(net.module_.named_parameters()), {}
    for key, array in arrays.items():
        quantity, name = key.split(":", 1)
        if quantity == "scaler":
            scale[name] = array.item()
            continue
        weight, value = weights[name], torch.from_numpy(array.copy())
        dtype = value.dtype if quantity == "step" else weight.dtype
        net.optimizer_.state[weight][quantity] = value.to(net.device, dtype)
    if scale:
        net.scaler.load_state_dict(scale)


def history_arrays(net):
    """Return the losses of every finished epoch as arrays, by name."""
    records = [row for row in net.history if "finished" in row]
    names = [k for k in ("train_loss", "valid_loss") if records and k in records[0]]
    return {
        name: np.array([row[name] for row in records if name in row]) for name in names
    }
