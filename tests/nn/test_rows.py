import numpy as np
import pytest
import torch

from skident._nn import rows
from skident._nn.masks import RandomMask
from skident._nn.threads import seeded
from skident._nn.training import hold_out


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(rows, "_BLOCK_NUMBERS", 12)


def data(dtype="float64", n=50):
    X = 100 * np.random.default_rng(0).random((n, 4))
    return X > 50 if dtype == "bool" else X.astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "uint8", "bool"])
def test_statistics_by_blocks_are_those_of_the_whole(dtype, small_blocks):
    X = data(dtype)
    got = rows.column_statistics(X)
    whole = X.astype(np.float64)
    np.testing.assert_allclose(got.mean, whole.mean(0), rtol=1e-12)
    assert got.scale == pytest.approx(np.sqrt(whole.var(0).mean()), rel=1e-12)
    np.testing.assert_array_equal(got.smallest, whole.min(0))
    np.testing.assert_array_equal(got.largest, whole.max(0))


def test_constant_columns_have_their_value_as_mean():
    X = np.full((7, 2), 0.1)
    got = rows.column_statistics(X)
    np.testing.assert_array_equal(got.mean, X[0])
    assert got.scale == 1.0


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_no_overflow(scale):
    X = data() * scale / 100
    got = rows.column_statistics(X)
    assert got.scale / scale == pytest.approx((X / scale).std(0).mean(), rel=0.1)


@pytest.mark.parametrize(
    "X, two_valued",
    [([[0, 1]], True), ([[0, 0]], False), ([[0, 0.5, 1]], False), ([[1, 1]], False)],
)
def test_two_valued(X, two_valued):
    assert rows.column_statistics(np.array(X, float)).two_valued is two_valued


def test_cross_entropy_of_means(small_blocks):
    X = data() / 100
    p = X.mean(0)

    def entropy(p):
        return -p * np.log(p) - (1 - p) * np.log(1 - p)

    expected = entropy(p).sum() - entropy(X).sum(1).mean()
    assert rows.cross_entropy_of_means(X, p) == pytest.approx(expected, rel=1e-12)
    assert rows.cross_entropy_of_means(np.eye(2), np.full(2, 0.5)) == pytest.approx(
        2 * np.log(2)
    )


def test_mapped_rows_are_those_of_the_tensor(tmp_path, small_blocks):
    X = data("uint8")
    file = np.memmap(tmp_path / "x", dtype=np.uint8, mode="w+", shape=X.shape)
    file[:] = X
    assert rows.is_mapped(file) and rows.is_mapped(np.asarray(file)[3:])
    assert not rows.is_mapped(X) and not rows.is_mapped(X.tolist())
    mean, scale, cpu = X.mean(0), 17.0, torch.device("cpu")
    tensor = rows.as_tensor(X, mean, scale, cpu)
    np.testing.assert_allclose(tensor, (X - mean) / scale, rtol=1e-6)
    mapped = rows.MappedRows(file, mean, scale, cpu)
    assert mapped.shape == tensor.shape
    assert torch.equal(mapped[3:9], tensor[3:9])
    with seeded(0):
        parts = hold_out(mapped, 0.2)
    with seeded(0):
        expected = hold_out(tensor, 0.2)
    for part, same in zip(parts, expected, strict=True):
        index = torch.tensor([4, 0, 7])
        assert torch.equal(part[index], same[index])


@pytest.mark.parametrize("ratio, n_masked", [(0.0, 0), (0.5, 4), (0.99, 7)])
def test_mask_hides_its_share_of_features(ratio, n_masked):
    x = torch.ones(30, 8)
    with seeded(0):
        masked = RandomMask(ratio)(x)
    assert ((masked == 0).sum(1) == n_masked).all()
    torch.testing.assert_close(masked.sum(1), x.sum(1))
    if n_masked:
        assert len({tuple(row) for row in masked.tolist()}) > 1


def test_patches_are_masked_as_wholes_with_their_channels():
    with seeded(0):
        masked = RandomMask(0.5, (5, 6, 3), 2)(torch.ones(20, 90))
    hidden = (masked == 0).reshape(20, 5, 6, 3)
    assert (hidden.all(3) == hidden.any(3)).all()
    grid = hidden[:, ::2, ::2, 0]  # 3 x 3 patches, the lowest ones cut
    whole = grid.repeat_interleave(2, 1).repeat_interleave(2, 2)[:, :5]
    assert torch.equal(hidden[..., 0], whole)
    assert (grid.sum((1, 2)) == 4).all()
