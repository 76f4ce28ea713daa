import re

import numpy as np
import pytest

from skident.metrics import bi_lipschitz


def orthonormal(n, rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return np.linalg.qr(rng.standard_normal((n, rows, columns)))[0]


@pytest.mark.parametrize("scale", [0.1, 1.0, 1e200])
def test_scaled_isometry_has_no_excess(scale):
    result = bi_lipschitz(scale * orthonormal(20, 7, 3))
    assert result.L == pytest.approx(0, abs=1e-12)
    assert result.bound == pytest.approx(0, abs=1e-6)
    assert result.scale == pytest.approx(scale)


def test_planted_singular_values_at_different_points():
    frames, turns = orthonormal(2, 6, 2), orthonormal(2, 2, 2, seed=1)
    values = np.array([[0.5, 1.0], [2.0, 4.5]])
    result = bi_lipschitz(frames * values[:, None] @ turns)
    assert (result.smallest, result.largest) == pytest.approx((0.5, 4.5))
    assert result.L == pytest.approx(2.0)
    assert result.scale == pytest.approx(1.5)
    assert result.bound == pytest.approx(np.sqrt(8))


def test_the_scale_is_the_best():
    frames = orthonormal(50, 5, 2) * np.random.default_rng(2).uniform(1, 3, (50, 1, 2))
    result = bi_lipschitz(frames)
    values = np.linalg.svd(frames, compute_uv=False).ravel()

    def excess(scale):
        return max((values / scale).max(), (scale / values).max()) - 1

    grid = [excess(scale) for scale in np.linspace(1, 3, 2001)]
    assert result.L == pytest.approx(excess(result.scale))
    assert result.L <= min(grid) + 1e-12 < result.L + 1e-3


def test_quantile_leaves_out_odd_points():
    frames = orthonormal(100, 5, 2)
    frames[3] *= 1e3
    assert bi_lipschitz(frames).L > 30
    assert bi_lipschitz(frames, quantile=0.02).L == pytest.approx(0, abs=1e-9)


def test_lost_directions_are_infinite_and_no_direction_is_refused():
    lost = np.zeros((3, 4, 2))
    lost[:, 0, 0] = 1
    assert bi_lipschitz(lost).L == bi_lipschitz(lost).bound == np.inf
    assert bi_lipschitz(orthonormal(3, 4, 2).transpose(0, 2, 1)).L == np.inf
    with pytest.raises(ValueError, match="decoder is constant"):
        bi_lipschitz(np.zeros((3, 4, 2)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 3), (20, 5), (200, 40)])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_dependent_columns_are_infinite_to_rounding(dtype, shape, scale):
    """By products and by repeats; independent ones of condition 1e4 are not."""
    rng = np.random.default_rng(0)
    rows, columns = shape
    for lost in (1, 2):
        left = rng.standard_normal((50, rows, columns - lost))
        right = rng.standard_normal((50, columns - lost, columns))
        dependent = (scale * (left @ right)).astype(dtype)
        assert bi_lipschitz(dependent).L == bi_lipschitz(dependent).bound == np.inf
        assert bi_lipschitz(dependent).smallest == 0
    repeated = orthonormal(50, rows, columns)
    repeated[..., -1] = repeated[..., 0]
    assert bi_lipschitz((scale * repeated).astype(dtype)).L == np.inf
    values = np.geomspace(1e-4, 1, columns)
    thin = (scale * orthonormal(50, rows, columns) * values).astype(dtype)
    assert bi_lipschitz(thin).L == pytest.approx(99, rel=1e-2)


def test_tensors():
    torch = pytest.importorskip("torch")
    jacobians = orthonormal(4, 5, 2)
    expected = bi_lipschitz(jacobians)
    tensor = torch.tensor(jacobians, requires_grad=True)
    assert bi_lipschitz(tensor) == expected
    half = bi_lipschitz(tensor.to(torch.bfloat16))
    assert half.L == pytest.approx(0, abs=0.02)
    for other in (tensor.reshape(4, 10), tensor[:0], tensor[0, 0, 0]):
        with pytest.raises(
            ValueError, match=rf"got {re.escape(str(tuple(other.shape)))}"
        ):
            bi_lipschitz(other)


@pytest.mark.parametrize(
    "jacobians, options, match",
    [
        (np.ones((3, 2)), {}, r"got \(3, 2\)"),
        ([np.eye(2), np.eye(3)], {}, "of one shape"),
        (np.ones((0, 2, 2)), {}, r"got \(0, 2, 2\)"),
        (np.full((2, 2, 2), np.nan), {}, "sample 0 are not finite"),
        (np.ones((2, 2, 2), complex), {}, "real numbers"),
        (np.ones((2, 2, 2)), {"quantile": 0.5}, "quantile must be in"),
    ],
)
def test_wrong_input_is_named(jacobians, options, match):
    with pytest.raises(ValueError, match=match):
        bi_lipschitz(jacobians, **options)
