"""How far a decoder is from a scaled isometry, as a penalty for training."""

import torch
from torch.autograd import grad

from skident._nn.jacobians import plain_attention

# How far beyond a pair of latents their mixtures reach, in units of their distance.
_BEYOND = 0.2


def mixed_latents(z):
    """Draw latents on lines through random pairs, a little beyond their ends.

    Parameters
    ----------
    z : tensor of shape (n, n_components)
        Encoded rows.

    Returns
    -------
    tensor of shape (n, n_components)
        ``a z_i + (1 - a) z_j`` with j a permutation and a uniform in [-0.2, 1.2] (Lee
        et al., ICLR 2022), without a gradient.
    """
    n = z.shape[0]
    z = z.detach()
    partner = z[torch.randperm(n, device="cpu").to(z.device)]
    share = torch.rand(n, 1, device=z.device, dtype=z.dtype)
    return torch.lerp(partner, z, share * (1.0 + 2.0 * _BEYOND) - _BEYOND)


def sphere_directions(z):
    """Draw one direction for each latent, uniform on the sphere of radius sqrt(d)."""
    v = torch.randn_like(z)
    return v * (z.shape[1] ** 0.5 / v.norm(dim=1, keepdim=True))


def relative_distortion(decode, z, v):
    r"""Measure how far the decoder's metric is from a constant times the identity.

    .. math:: d \, \frac{E[v^T (J^T J)^2 v]}{E[v^T J^T J v]^2} - 1

    with J the decoder's Jacobian at z. Both means are taken over the batch before they
    are divided: a ratio a point would allow a scale that varies from point to point.

    Parameters
    ----------
    decode : callable
        From (n, n_components) to (n, n_outputs), row by row, twice differentiable.
    z : tensor of shape (n, n_components)
        Points.
    v : tensor of shape (n, n_components)
        Directions of length ``sqrt(n_components)``.

    Returns
    -------
    tensor of shape ()
        At least 0, and 0 exactly if :math:`J^T J v = c v` with one c for all rows.

    References
    ----------
    .. [1] Y. Lee, S. Yoon, M. Son, F. C. Park, "Regularized autoencoders for isometric
       representation learning", ICLR 2022.
    """
    with torch.enable_grad(), plain_attention():
        z = z.detach().requires_grad_()
        x = decode(z.clone())  # which it may change in place
        # J v as the derivative of J^T u, linear in u, along v: forward mode would
        # multiply by the tangents of the weights, which are zeros, at every layer
        u = torch.zeros_like(x, requires_grad=True)
        (back,) = grad(x, z, u, create_graph=True)
        (push,) = grad(back, u, v, create_graph=True)
        (pull,) = grad(x, z, push, create_graph=True)
    tiny = torch.finfo(z.dtype).tiny
    length = push.square().sum(1).mean().clamp_min(tiny)
    return z.shape[1] * (pull.square().sum(1).mean() / length) / length - 1.0
