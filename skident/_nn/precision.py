"""Mixed precision: layers that compute in half the bits, between float32 tensors."""

import torch

# What a training step may compute in: the type that autocast gives to layers.
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


class ReducedModule:
    """A module as a training step sees it: float32 in and out, fewer bits inside.

    Layers run under autocast, which rounds what enters matrix products and
    convolutions. The weights stay float32, and so do losses and penalties, as they are
    computed outside.

    Parameters
    ----------
    module : nn.Module
        With ``encode``, ``decode`` or ``forward``, of one tensor each. What they return
        is a tensor or a named tuple of tensors.
    precision : {"bfloat16", "float16"}
        Key of ``PRECISIONS``.
    device : torch.device
        Where the module is.

    Raises
    ------
    ValueError
        If torch has no autocast for the device.
    """

    def __init__(self, module, precision, device):
        if not torch.amp.is_autocast_available(device.type):
            raise ValueError(
                f"precision={precision!r} is not available on device {device.type!r}: "
                "use precision='float32'."
            )
        self._module = module
        self._autocast = torch.autocast(device.type, PRECISIONS[precision])

    def __call__(self, x):
        """Run the module on rows (n, n_features)."""
        return self._run(self._module, x)

    def encode(self, x):
        """Encode rows (n, n_features)."""
        return self._run(self._module.encode, x)

    def decode(self, z):
        """Decode latents (n, n_components)."""
        return self._run(self._module.decode, z)

    def _run(self, function, x):
        with self._autocast:
            output = function(x)
        if isinstance(output, torch.Tensor):
            return output.float()
        return output._make(part.float() for part in output)


def loss_scaler(precision, device):
    """Return what keeps small gradients of float16 from vanishing, else does nothing.

    It multiplies the loss by a factor and divides the gradients by it; where they
    overflow, the step is left out and the factor halved.
    """
    # torch starts at 2**16, for means over features; losses here are sums
    return torch.amp.GradScaler(
        device.type, init_scale=2.0**8, enabled=precision == "float16"
    )
