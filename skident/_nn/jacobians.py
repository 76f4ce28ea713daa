"""Jacobians of decoders, by forward-mode differentiation."""

import torch


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
    for axis in range(z.shape[1]):
        tangent = torch.zeros_like(z)
        tangent[:, axis] = 1.0
        columns.append(torch.func.jvp(function, (z,), (tangent,))[1])
    return torch.stack(columns, dim=-1)
