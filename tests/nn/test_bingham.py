"""The Bingham distribution in torch, against quadrature by numpy and the sphere."""

import numpy as np
import pytest
import torch

from skident._math.bingham import normalizer_gradient
from skident._nn import bingham
from skident._nn.likelihoods import Bingham
from skident._nn.threads import seeded


def coefficients(n=400, largest=190.0, seed=0):
    """Random ones of every size, some uniaxial of either kind, some tiny, and zero."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, 5))
    A *= largest * rng.random((n, 1)) / np.linalg.norm(A, axis=1, keepdims=True)
    A[: n // 4, [0, 2, 3, 4]] = 0.0
    A[n // 4 : n // 3] *= 1e-4
    A[-1] = 0.0
    return A


def exact(A):
    values, axes = np.linalg.eigh(np.einsum("na,aij->nij", A, bingham.BASIS))
    log_z, moments = normalizer_gradient(values)
    second = np.einsum("nik,nk,njk->nij", axes, moments, axes)
    return log_z, np.einsum("aij,nij->na", bingham.BASIS, second)


def test_basis_is_orthonormal_symmetric_and_traceless():
    flat = bingham.BASIS.reshape(5, 9)
    np.testing.assert_allclose(flat @ flat.T, np.eye(5), atol=1e-15)
    np.testing.assert_array_equal(bingham.BASIS, bingham.BASIS.transpose(0, 2, 1))
    np.testing.assert_allclose(np.trace(bingham.BASIS, axis1=1, axis2=2), 0, atol=1e-16)


@pytest.mark.parametrize("dtype, rtol", [(torch.float64, 2e-7), (torch.float32, 1e-5)])
def test_normaliser_and_its_gradient_are_those_of_quadrature(dtype, rtol):
    A = coefficients()
    log_z, mean = exact(A)
    tensor = torch.tensor(A, dtype=dtype, requires_grad=True)
    value = bingham.log_normalizer(tensor)
    value.sum().backward()
    np.testing.assert_allclose(value.detach(), log_z, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(tensor.grad, mean, atol=2 * rtol)


def test_square_is_the_traceless_part():
    A = torch.tensor(coefficients(20))
    M = bingham.matrices(A)
    expected = torch.einsum("nij,aij->na", M @ M, torch.tensor(bingham.BASIS))
    torch.testing.assert_close(bingham._square(A), expected)


def test_density_integrates_to_one_over_the_sphere():
    nodes, weights = np.polynomial.legendre.leggauss(48)
    phi = 2 * np.pi * np.arange(96) / 96
    sine = np.sqrt(1 - nodes**2)[:, None]
    n = np.stack(
        [sine * np.cos(phi), sine * np.sin(phi), nodes[:, None] + 0 * phi], axis=-1
    ).reshape(-1, 3)
    weight = np.repeat(weights * 2 * np.pi / 96, 96)
    family = Bingham(n_features=3)
    rows = torch.tensor(family.rows(n, None))
    for A in coefficients(12, largest=25.0):
        density = family.log_prob(torch.tensor(A), rows).exp().numpy()
        assert density @ weight == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("k", [5, 60, 130, 200, 398, 399])
def test_draws_are_unit_vectors_with_the_moments(k):
    A = coefficients()[k]
    with seeded(0):
        n = bingham.sample(torch.tensor(A).expand(20_000, 5)).numpy()
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1, atol=1e-12)
    T = bingham.statistics(n)
    error = 6 * T.std(axis=0) / np.sqrt(20_000) + 1e-6
    assert (np.abs(T.mean(axis=0) - exact(A[None])[1][0]) < error).all()
    assert np.abs(n.mean(axis=0)).max() < 6 / np.sqrt(20_000)  # n and -n are one


def test_bound_is_smooth_and_near_the_identity_for_small_ones():
    A = torch.tensor([[1e-3, 0, 0, 0, 0], [1e6, 0, 0, 0, 0]], dtype=torch.float64)
    bounded = bingham.bounded(A)
    torch.testing.assert_close(bounded[0], A[0])
    assert 0.99 * bingham.LARGEST < float(bounded[1, 0]) <= bingham.LARGEST


def test_fit_has_the_moments():
    A = coefficients(40, largest=60.0)
    found = bingham.bounded(bingham.fitted(torch.tensor(exact(A)[1]))).numpy()
    np.testing.assert_allclose(exact(found)[1], exact(A)[1], atol=1e-5)


def test_principal_axis_is_where_the_density_is_largest():
    A = torch.tensor(coefficients(20, largest=5.0)[:-1])
    axes = bingham.principal_axes(A).numpy()
    with seeded(0):
        others = torch.nn.functional.normalize(
            torch.randn(500, 3, dtype=A.dtype), dim=1
        )
    best = (bingham.statistics(axes) * A.numpy()).sum(1)
    assert (bingham.statistics(others.numpy()) @ A.numpy().T).max(0) == pytest.approx(
        best, abs=0.5
    )
    assert ((bingham.statistics(others.numpy()) @ A.numpy().T) <= best + 1e-9).all()
    assert (axes[np.arange(len(axes)), np.abs(axes).argmax(1)] > 0).all()
