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
