"""Jacobians of decoders, by forward-mode differentiation."""

import contextlib

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


@contextlib.contextmanager
def plain_attention():
    """Let attention take operations that torch can differentiate forward and twice.

    Its fused ones, which transformers otherwise take, have a first backward pass only.
    """
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


def batched_jacobian(function, z):
    """Jacobian of a row-wise function at each row.

    One forward-mode pass a latent, for all rows at once: latents are few and outputs
    many, so this costs ``n_components`` forward passes, whatever the width.

    Parameters
    ----------
    function : callable
        From (n, n_components) to (n, n_outputs), row by row.
    z : tensor of shape (n, n_components)
        Points.

    Returns
    -------
    tensor of shape (n, n_outputs, n_components)
    """
    columns = []
    with plain_attention():
        for axis in range(z.shape[1]):
            tangent = torch.zeros_like(z)
            tangent[:, axis] = 1.0
            # of a copy, which the function may change in place
            moved = torch.func.jvp(lambda at: function(at.clone()), (z,), (tangent,))
            columns.append(moved[1])
    return torch.stack(columns, dim=-1)
