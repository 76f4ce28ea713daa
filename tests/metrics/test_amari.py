import warnings

import numpy as np
import pytest

from skident.metrics import amari_distance


def test_directions_that_the_other_side_lacks_are_worst():
    assert amari_distance(np.eye(4)[:, :2], np.eye(4)[:, 2:]) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_signed_permutation_and_scale_are_nothing(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 4))
    B = A[:, rng.permutation(4)] * rng.choice([-2.0, 0.5], 4)
    assert amari_distance(A, B) == pytest.approx(0, abs=1e-12)
    assert 0.05 < amari_distance(A, rng.standard_normal((6, 4))) <= 1


@pytest.mark.parametrize("power", [-1000, -515, 515, 1000])
def test_any_unit(power):
    """Of a matrix, or of one column; numpy's warnings are errors."""
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 5, 3))
    one = np.array([2.0**power, 1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for unit in (2.0**power, one):
            assert amari_distance(A * unit, A) == pytest.approx(0, abs=1e-12)
            assert amari_distance(A * unit, B) == pytest.approx(amari_distance(A, B))
    # numbers of three digits
    assert amari_distance(A, A * 1e-320) < 0.01


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_dependent_to_rounding_are_refused(dtype):
    A = np.random.default_rng(0).standard_normal((6, 3))
    A[:, 2] = A[:, 0] / 3 + A[:, 1] / 7
    with pytest.raises(ValueError, match=r"columns of A, shape \(6, 3\), are depend"):
        amari_distance(A.astype(dtype), np.eye(6)[:, :3])
