"""Generalised Procrustes: identities, an independent solution, widths, sizes."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from skident._math.consensus import generalized_procrustes
from skident._math.paired_rows import open_rows


def turned(base, rng, noise=0.0):
    """Return the base turned, shifted and with noise."""
    turn = ortho_group.rvs(base.shape[1], random_state=rng.integers(2**31))
    shift = 5 * rng.standard_normal(base.shape[1])
    return base @ turn + shift + noise * rng.standard_normal(base.shape)


def consensus(arrays, reference=0):
    found = generalized_procrustes([open_rows(Z) for Z in arrays], reference)
    return found, found.apply(arrays)


@pytest.mark.parametrize("seed", range(5))
def test_turned_copies_agree_in_the_frame_of_the_reference(seed):
    rng = np.random.default_rng(seed)
    base = rng.laplace(size=(200, 3))
    arrays = [base, *(turned(base, rng) for _ in range(3))]
    for reference in (0, 2):
        _, mean = consensus(arrays, reference)
        np.testing.assert_allclose(mean, arrays[reference], atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_two_sides_meet_halfway(seed):
    """Of two, the consensus is the mean of one and the other's Procrustes map."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((100, 4))
    B = turned(A, rng, noise=0.5)
    a, b = A - A.mean(0), B - B.mean(0)
    U, _, Vt = np.linalg.svd(b.T @ a)
    np.testing.assert_allclose(
        consensus([A, B])[1], (a + b @ U @ Vt) / 2 + A.mean(0), atol=1e-10
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_small_turn_brings_sides_nearer(seed):
    """At the maximum each X_r R_r has a symmetric product with the sum of others."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((300, 3))
    arrays = [turned(base, rng, noise=1.0) for _ in range(4)]
    found, _ = consensus(arrays)
    mapped = [(Z - Z.mean(0)) @ R for Z, R in zip(arrays, found.rotations, strict=True)]
    for r, side in enumerate(mapped):
        product = side.T @ (sum(mapped) - side)
        np.testing.assert_allclose(product, product.T, atol=1e-6 * 300)
        assert np.linalg.eigvalsh((product + product.T) / 2).min() > 0, r
    for R in found.rotations:
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    # in the axes of the reference, which all turn to and which turns to none
    np.testing.assert_allclose(found.rotations[0], np.eye(3), atol=1e-12)


def test_narrow_sides_are_padded_and_noise_averages_out():
    rng = np.random.default_rng(0)
    base = np.zeros((2000, 4))
    base[:, :2] = 3 * rng.laplace(size=(2000, 2))
    wide = [turned(base, rng, noise=0.2) for _ in range(7)]
    narrow = turned(base[:, :2], rng)
    found, mean = consensus([*wide, narrow], reference=3)
    assert [R.shape for R in found.rotations] == [(4, 4)] * 7 + [(2, 4)]

    def error(Z):
        Z, X = Z - Z.mean(0), base - base.mean(0)
        U, _, Vt = np.linalg.svd(Z.T @ X)
        return np.mean((Z @ U @ Vt - X) ** 2)

    assert error(mean) < 0.3 * error(wide[0])  # an eighth, but for the turns


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_extreme_sizes(scale):
    rng = np.random.default_rng(0)
    base = rng.standard_normal((50, 2))
    arrays = [scale * turned(base, rng, noise=0.1) for _ in range(3)]
    plain = consensus([Z / scale for Z in arrays])[1]
    np.testing.assert_allclose(consensus(arrays)[1] / scale, plain, rtol=1e-6)


def test_a_single_side_is_its_own_consensus():
    Z = np.random.default_rng(0).standard_normal((20, 3))
    np.testing.assert_allclose(consensus([Z])[1], Z)
