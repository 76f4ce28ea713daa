"""The Bingham distribution on the sphere, for tensors that carry gradients.

A director n, of which n and -n are one, has the density exp(n'An) / (4 pi z(A)) for a
traceless symmetric A. Both are written in the orthonormal basis B_1 .. B_5 of such
matrices: A = sum_a A_a B_a and the statistics T_a = n'B_a n, so that n'An = sum_a A_a
T_a.

With a_1 >= a_2 >= a_3 the eigenvalues of A, ln z(A) - a_1 and the second moments are
smooth functions of the two gaps g = a_1 - a_2 and h = a_1 - a_3. They are integrated
once, by Gauss and Legendre, and from then on interpolated by Chebyshev polynomials in
g / (g + 7) and h / (h + 7). The derivative

    d ln z / dA = <nn'> = m_1 + m_12 (A - a_1) + m_123 (A - a_1)(A - a_2)

is Newton's form in the divided differences of the moments m_i = <n_i^2>, which are
smooth where eigenvalues meet, as eigenvectors are not.

Bingham, Ann. Statist. 2, 1201 (1974); Kent, Ganeiber and Mardia, J. Comput. Graph.
Statist. 27, 291 (2018).
"""

import functools
import math

import numpy as np
import torch
from scipy.special import i0e, i1e, roots_legendre

# Largest norm of A: directors closer to their axis than 4 degrees look like 4 degrees.
LARGEST = 200.0
# Numbers of polynomials, exact to 1e-7; 14 give 1e-5. They differ, so that no two nodes
# meet.
_DEGREES = (18, 19)
_GAP = 7.0
# Matrices of one block: its polynomials stay in the cache.
_BLOCK = 16384
# Rounds of proposals, of which at least 53 % are accepted: all fail with 1e-16.
_ROUNDS = 48

_S2, _S6 = math.sqrt(0.5), math.sqrt(1 / 6)
# (5, 3, 3): orthonormal, symmetric, traceless
BASIS = np.array(
    [
        [[_S2, 0, 0], [0, -_S2, 0], [0, 0, 0]],
        [[-_S6, 0, 0], [0, -_S6, 0], [0, 0, 2 * _S6]],
        [[0, _S2, 0], [_S2, 0, 0], [0, 0, 0]],
        [[0, 0, _S2], [0, 0, 0], [_S2, 0, 0]],
        [[0, 0, 0], [0, 0, _S2], [0, _S2, 0]],
    ]
)


def statistics(vectors):
    """Return T_a = n'B_a n of vectors (..., 3), numpy, as (..., 5)."""
    return np.einsum("...i,aij,...j->...a", vectors, BASIS, vectors)


def bounded(raw):
    """Return coefficients (..., 5) with a norm below ``LARGEST``, smoothly."""
    return raw * torch.rsqrt(1.0 + raw.square().sum(-1, keepdim=True) / LARGEST**2)


def matrices(coefficients):
    """Return the matrices (..., 3, 3) with the given coefficients (..., 5)."""
    return torch.tensordot(coefficients, _like(BASIS, coefficients), 1)


def log_normalizer(coefficients):
    """Return ln z(A), the log of the mean of exp(n'An) over the sphere.

    Parameters
    ----------
    coefficients : tensor of shape (..., 5)
        Of A, with a norm of at most ``LARGEST``.

    Returns
    -------
    tensor of shape (...)
        Exact to about 1e-6; its gradient is <T>, which has no gradient of its own.
    """
    return _LogNormalizer.apply(coefficients)


class _LogNormalizer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, coefficients):
        square = _square(coefficients)
        largest, middle, third = _eigenvalues(coefficients, square)
        excess, *differences = _interpolated(largest - middle, largest - third)
        ctx.save_for_backward(coefficients, square, largest, middle, *differences)
        return largest + excess

    @staticmethod
    def backward(ctx, gradient):
        coefficients, square, largest, middle, m12, m123 = ctx.saved_tensors
        linear = m12 - m123 * (largest + middle)
        moments = linear.unsqueeze(-1) * coefficients
        moments += m123.unsqueeze(-1) * square
        return gradient.unsqueeze(-1) * moments


def _square(coefficients):
    """Return the coefficients of the traceless part of A^2."""
    a, b, c, d, e = coefficients.unbind(-1)
    de = d.square() - e.square()
    parts = (
        -2 * _S6 * a * b + 0.5 * _S2 * de,
        _S6 * (b.square() - a.square() - c.square())
        + 0.5 * _S6 * (d.square() + e.square()),
        -2 * _S6 * b * c + _S2 * d * e,
        _S6 * b * d + _S2 * (a * d + c * e),
        _S6 * b * e + _S2 * (c * d - a * e),
    )
    return torch.stack(parts, -1)


def _eigenvalues(coefficients, square):
    """Return the three eigenvalues of A, descending, by the cosine formula."""
    norm = coefficients.square().sum(-1).sqrt()
    # tr A^3, and so the cosine of three times the angle: |A|^3 cos / sqrt(6)
    cubic = (coefficients * square).sum(-1)
    tiny = torch.finfo(norm.dtype).tiny ** (1 / 4)
    cosine = (cubic / norm.clamp(min=tiny) ** 3) / _S6
    angle = torch.acos(cosine.clamp(-1.0, 1.0)) / 3.0
    largest = 2 * _S6 * norm * torch.cos(angle)
    third = 2 * _S6 * norm * torch.cos(angle + 2 * math.pi / 3)
    return largest, -largest - third, third


def _interpolated(second_gap, third_gap):
    """Return ln z - a_1, m_12 and m_123 at gaps of any shape."""
    shape = second_gap.shape
    g, h = second_gap.clamp(min=0.0).flatten(), third_gap.clamp(min=0.0).flatten()
    tables = _like(_tables(), g)
    blocks = []
    for first, second in zip(g.split(_BLOCK), h.split(_BLOCK), strict=True):
        rows = (tables @ _chebyshev(first, 0)).unflatten(0, (3, -1))
        blocks.append((rows * _chebyshev(second, 1)).sum(1))
    values = torch.cat(blocks, dim=-1)
    logs, *differences = _scales(g, h, torch)
    excess = values[0] - logs
    m12, m123 = (v / s for v, s in zip(values[1:], differences, strict=True))
    return excess.view(shape), m12.view(shape), m123.view(shape)


def _scales(g, h, library):
    """Return how a_1 - ln z, 1 / m_12 and 1 / m_123 grow; the rest stays finite."""
    logs = 0.5 * (library.log1p(2 * g / 3) + library.log1p(2 * h / 3))
    return logs, 1 + g, (1 + g) * (1 + h)


def _chebyshev(gap, which):
    """Return the Chebyshev polynomials of a flat tensor of gaps, shape (n, m)."""
    x = 2.0 * gap / (gap + _GAP) - 1.0
    values = x.new_empty(_DEGREES[which], x.shape[0])
    values[0], values[1] = 1.0, x
    for k in range(2, len(values)):
        torch.mul(2.0 * x, values[k - 1], out=values[k]).sub_(values[k - 2])
    return values


@functools.cache
def _tables():
    """Coefficients of ln z - a_1, m_12 and m_123, shape (3 n_second, n_first)."""
    (to_first, g), (to_second, h) = (_nodes(n) for n in _DEGREES)
    g, h = np.meshgrid(g, h, indexing="ij")
    excess, m2, m3 = _integrated(g, h)
    m1 = 1.0 - m2 - m3
    m12, m13 = (m1 - m2) / g, (m1 - m3) / h
    logs, first, second = _scales(g, h, np)
    smooth = (excess + logs, m12 * first, (m12 - m13) / (h - g) * second)
    return np.concatenate([to_second @ f.T @ to_first.T for f in smooth])


def _nodes(n):
    """Return the transform from values at n Chebyshev nodes, and gaps there."""
    angles = np.pi * (np.arange(n) + 0.5) / n
    transform = 2.0 / n * np.cos(np.outer(np.arange(n), angles))
    transform[0] /= 2
    x = (np.cos(angles) + 1.0) / 2
    return transform, _GAP * x / (1.0 - x)


def _integrated(second, third):
    """Return ln z - a_1, <n_2^2> and <n_3^2>: the polar axis is that of least moment.

    exp(-a_1) z = int_0^1 exp(-h x^2) exp(-y) I_0(y) dx, y = g (1 - x^2) / 2, where h is
    the larger and g the smaller gap: a Gaussian times something smooth.
    """
    small, large = np.minimum(second, third), np.maximum(second, third)
    nodes, weights = roots_legendre(40)
    reach = np.sqrt(42.0 / np.maximum(large, 42.0))[..., None]
    square = (reach * (nodes + 1) / 2) ** 2
    y = small[..., None] * (1 - square) / 2
    values = reach * weights / 2 * np.exp(-large[..., None] * square) * i0e(y)
    total = values.sum(-1)
    of_small = (values * (1 - square) / 2 * (1 - i1e(y) / i0e(y))).sum(-1) / total
    of_large = (values * square).sum(-1) / total
    first = second <= third
    moments = np.where(first, of_small, of_large), np.where(first, of_large, of_small)
    return np.log(total), *moments


def sample(coefficients):
    """Draw one director for each A, from torch's generator.

    Parameters
    ----------
    coefficients : tensor of shape (..., 5)
        Of A.

    Returns
    -------
    tensor of shape (..., 3)
        Unit vectors: n and -n are equally likely. By rejection from the angular central
        Gaussian (Kent, Ganeiber and Mardia 2018).
    """
    values, axes = torch.linalg.eigh(matrices(coefficients))
    gaps = values[..., -1:] - values
    tuned = _tuning(gaps)
    precision = 1.0 + 2.0 * gaps / tuned
    shape = (*gaps.shape[:-1], _ROUNDS)
    uniform = torch.rand(*shape, 5, dtype=gaps.dtype, device=gaps.device)
    radius = torch.sqrt(-2.0 * torch.log1p(-uniform[..., :2]))
    angle = 2.0 * math.pi * uniform[..., 2:4]
    # two pairs of normal numbers, of which three are used
    normal = torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], -1)
    y = normal[..., :3] / precision.sqrt().unsqueeze(-2)
    y = y / y.norm(dim=-1, keepdim=True)
    square = y.square()
    energy = (square * gaps.unsqueeze(-2)).sum(-1)
    envelope = 1.5 * torch.log((square * precision.unsqueeze(-2)).sum(-1) * tuned / 3.0)
    accept = envelope - energy + 0.5 * (3.0 - tuned) > torch.log(uniform[..., 4])
    first = accept.to(torch.int8).argmax(-1)[..., None, None]
    chosen = torch.take_along_dim(y, first, -2).squeeze(-2)
    return (axes @ chosen.unsqueeze(-1)).squeeze(-1)


def _tuning(gaps):
    """Solve sum_i 1 / (b + 2 gap_i) = 1 for b in [1, 3], shape (..., 1)."""
    low = torch.ones_like(gaps[..., :1])
    high = 3.0 * low
    for _ in range(40):
        b = 0.5 * (low + high)
        above = (1.0 / (b + 2.0 * gaps)).sum(-1, keepdim=True) > 1.0
        low, high = torch.where(above, b, low), torch.where(above, high, b)
    return 0.5 * (low + high)


def principal_axes(coefficients):
    """Return the axis of the largest eigenvalue (..., 3); its largest entry is > 0."""
    axis = torch.linalg.eigh(matrices(coefficients))[1][..., -1]
    largest = axis.abs().argmax(-1, keepdim=True)
    return axis * torch.take_along_dim(axis, largest, -1).sign()


def fitted(moments, n_steps=300):
    """Return A with <T> as given, the maximum of <T> A - ln z, for each site.

    Parameters
    ----------
    moments : tensor of shape (n_sites, 5)
        Means of T.
    n_steps : int
        Most steps of L-BFGS.

    Returns
    -------
    tensor of shape (n_sites, 5)
    """
    target = moments.double()
    raw = torch.zeros_like(target, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [raw],
        max_iter=n_steps,
        tolerance_grad=1e-8,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def loss():
        optimizer.zero_grad()
        A = bounded(raw)
        value = (log_normalizer(A) - (target * A).sum(-1)).sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(loss)
    return raw.detach().to(moments.dtype)


def _like(array, tensor):
    return torch.as_tensor(array, dtype=tensor.dtype, device=tensor.device)
