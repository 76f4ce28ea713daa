"""Whitening of latents for probes."""

import numpy as np
import pytest

from skident._math.probes import whiten_columns


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_whitening_reveals_rank_in_any_basis(offset):
    rng = np.random.default_rng(0)
    latents = rng.standard_normal((200, 3)) * [1e-6, 1, 1e6]
    wide = np.c_[latents, latents @ [1.0, 2.0, 0.0], np.full(200, 0.1)] + offset
    white = whiten_columns(wide)
    assert white.shape == (200, 3)
    np.testing.assert_allclose(white.T @ white / 200, np.eye(3), atol=1e-6)
    plain = whiten_columns(latents)
    # Equal up to a rotation: all products of rows are.
    np.testing.assert_allclose(white @ white.T, plain @ plain.T, atol=1e-4)


def test_only_constant_columns_leave_none():
    assert whiten_columns(np.full((5, 2), 0.1)).shape == (5, 0)
