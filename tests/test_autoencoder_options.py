"""Losses, masks, architectures, isometry, devices, memory maps of the autoencoder."""

import gc
import pickle
import warnings
import weakref

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from torch import nn

from skident import AutoencoderEmbedder, WhitenICA

X = load_digits().data
FAST = {"hidden_layer_sizes": (16,), "max_epochs": 3, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore:Constant in X:UserWarning")


class Linear(nn.Module):
    """A module of a user's, with batch normalisation and an option."""

    def __init__(self, n_features, n_components, bias=True, wrong=None):
        super().__init__()
        self.down = nn.Linear(n_features, n_components, bias=bias)
        self.norm = nn.BatchNorm1d(n_components)
        self.up = nn.Linear(n_components, n_features - (wrong == "decode"))
        if wrong == "encode":
            self.down = nn.Linear(n_features, n_components + 1)
            self.norm = nn.BatchNorm1d(n_components + 1)

    def encode(self, x):
        return self.norm(self.down(x))

    def decode(self, z):
        return self.up(z)

    def forward(self, x):
        return self.decode(self.encode(x))


def fit(X=X, **options):
    return AutoencoderEmbedder(**{**FAST, **options}).fit(X)


# Losses


def test_auto_is_cross_entropy_for_zeros_and_ones_only():
    bits = (X[:200] > 8).astype(float)
    assert fit(bits).loss_ == "bce"
    assert fit(bits / 2).loss_ == fit(bits + 1).loss_ == "mse"
    assert fit(X[:200]).loss_ == fit(X[:200] / 16).loss_ == "mse"
    assert fit(np.zeros((10, 3))).loss_ == "mse"


def test_cross_entropy_gives_probabilities():
    bits = (X > 8).astype(float)
    embedder = fit(bits, hidden_layer_sizes=(64,), max_epochs=10, n_components=8)
    p = embedder.inverse_transform(embedder.transform(bits))
    assert p.min() >= 0 and p.max() <= 1
    assert -embedder.score(bits) < 0.8 * bits.var(0).mean()
    # the history is the cross-entropy in nats a row, here at the last epoch
    p = p.clip(1e-7, 1 - 1e-7)
    nats = -(bits * np.log(p) + (1 - bits) * np.log(1 - p)).sum(1).mean()
    assert embedder.history_["train_loss"][-1] == pytest.approx(nats, rel=0.1)


def test_jacobian_of_probabilities_equals_finite_differences():
    embedder = fit((X > 8).astype(float), negative_slope=1.0)
    Z, step = embedder.transform(X[:5]).astype(float), 0.01
    jacobian = embedder.decoder_jacobian(Z)
    for axis in range(2):
        shift = step * np.eye(2)[axis]
        rise = embedder.inverse_transform(Z + shift)
        rise -= embedder.inverse_transform(Z - shift)
        np.testing.assert_allclose(jacobian[:, :, axis], rise / (2 * step), atol=2e-4)


def test_cross_entropy_refuses_other_values_by_name():
    rows = (X > 8).astype(float)
    rows[7, 3] = 1.5
    with pytest.raises(ValueError, match=r"in \[0, 1\], but column 3, row 7 is 1.5"):
        fit(rows, loss="bce")
    embedder = fit((X > 8).astype(float))
    with pytest.raises(ValueError, match=r"in \[0, 1\], but column 3, row 7 is 1.5"):
        embedder.partial_fit(rows)


# Masks


@pytest.mark.parametrize(
    "options", [{}, {"image_shape": np.array([8, 8]), "patch_size": 2}]
)
def test_masked_training_learns_to_fill_in(options):
    """Hidden features are found from the others better than by their means."""
    embedder = fit(
        mask_ratio=0.5, n_components=8, hidden_layer_sizes=(128,), max_epochs=40,
        **options,
    )  # fmt: skip
    plain = fit(n_components=8, hidden_layer_sizes=(128,), max_epochs=40)
    hidden = np.random.default_rng(0).random(X.shape) < 0.5
    rows = np.where(hidden, X.mean(0), 2 * (X - X.mean(0)) + X.mean(0))

    def error(model):
        filled = model.inverse_transform(model.transform(rows))
        return np.square(filled - X)[hidden].mean() / X.var(0).mean()

    assert error(embedder) < 0.85
    assert error(embedder) < error(plain)


def test_transform_is_not_masked():
    embedder = fit(mask_ratio=0.5)
    np.testing.assert_array_equal(embedder.transform(X), embedder.transform(X))


# Architectures


def test_convolutions_learn_images():
    embedder = fit(
        architecture="conv", image_shape=(8, 8), n_filters=16, max_epochs=10,
        n_components=8, hidden_layer_sizes=(64,), learning_rate=3e-3,
    )  # fmt: skip
    assert -embedder.score(X) < 0.5 * X.var(axis=0).mean()
    Z = embedder.transform(X[:20])
    loaded = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(loaded.transform(X[:20]), Z)
    assert embedder.decoder_jacobian(Z).shape == (20, 64, 8)


def test_module_of_the_user_is_trained_anew_by_each_fit():
    embedder = fit(module=Linear, module_params={"bias": False})
    assert "down.bias" not in embedder.weights_ and "down.weight" in embedder.weights_
    assert embedder.weights_["norm.running_mean"].any()
    again = clone(embedder).fit(X[:200]).fit(X)
    np.testing.assert_array_equal(again.transform(X), embedder.transform(X))
    loaded = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    assert joblib.hash(loaded) == joblib.hash(embedder)


def test_batch_normalisation_takes_a_last_batch_of_one_row():
    for n in (33, 65):
        assert np.isfinite(fit(X[:n], module=Linear, batch_size=32).transform(X)).all()


def test_folds_never_share_weights():
    pipeline = make_pipeline(AutoencoderEmbedder(module=Linear, **FAST), WhitenICA())
    together = cross_val_score(pipeline, X[:300], cv=3)
    alone = [
        clone(pipeline).fit(np.delete(X[:300], part, 0)).score(X[part])
        for part in np.split(np.arange(300), 3)
    ]
    np.testing.assert_allclose(together, alone, rtol=1e-5)


class Bare(nn.Module):
    def __init__(self, n_features, n_components):
        super().__init__()


@pytest.mark.parametrize(
    "options, match",
    [
        ({"module": Linear(64, 2)}, r"must be a class, got an instance of Linear"),
        ({"module": 3}, "module must be a class of torch modules, got 3"),
        ({"module": Bare}, "methods encode and decode is needed"),
        (
            {"module": Linear, "module_params": {"wrong": "encode"}},
            r"Linear.encode must return a tensor of shape \(2, 2\) here, got \(2, 3\)",
        ),
        (
            {"module": Linear, "module_params": {"wrong": "decode"}},
            r"Linear.decode must return a tensor of shape \(2, 64\)",
        ),
        ({"architecture": "conv"}, "needs image_shape="),
        ({"architecture": "conv", "image_shape": (4, 16)}, "at least 8 x 8 pixels"),
        ({"image_shape": (8, 9)}, r"has 72 values, but X has 64 columns"),
        ({"image_shape": (64,)}, r"image_shape must be \(height, width\)"),
        ({"architecture": "cnn"}, "architecture"),
        ({"loss": "mae"}, "loss"),
        ({"isometry": -1.0}, "isometry"),
        ({"mask_ratio": 1.0}, "mask_ratio"),
        ({"patch_size": 0}, "patch_size"),
        ({"n_filters": 0}, "n_filters"),
        ({"max_grad_norm": 0.0}, "max_grad_norm"),
        ({"warm_start": 2}, "warm_start"),
        ({"module_params": 2}, "module_params"),
    ],
)
def test_wrong_options_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        fit(**options)


# Isometry


def curved(n, seed=0):
    """A spiral strip in 10 dimensions: an isometric surface, stretched latents."""
    u = np.random.default_rng(seed).random((n, 2)) * [4.0, 2.0]
    rows = np.c_[np.cos(u[:, 0]), np.sin(u[:, 0]), u[:, 1], np.zeros((n, 7))]
    return rows @ np.linalg.qr(np.random.default_rng(9).standard_normal((10, 10)))[0]


def test_isometry_makes_the_decoder_one_at_any_scale():
    options = {
        "hidden_layer_sizes": (64, 64),
        "max_epochs": 60,
        "learning_rate": 2e-3,
    }
    rows, fresh = curved(1000), curved(300, 1)
    plain, isometric = (fit(rows, isometry=w, **options) for w in (0.0, 0.5))
    scaled = fit(rows / 1024, isometry=0.5, **options)
    spread = [
        np.divide(*model.bi_lipschitz(fresh, quantile=0.05)[3:1:-1])
        for model in (plain, isometric)
    ]
    assert spread[0] > 1.5 and spread[1] < 1.35
    assert isometric.score(rows) > -0.02 * rows.var(0).mean()
    np.testing.assert_array_equal(
        scaled.transform(rows / 1024), isometric.transform(rows)
    )


def test_bi_lipschitz_is_that_of_the_jacobians():
    from skident.metrics import bi_lipschitz

    embedder = fit()
    jacobians = embedder.decoder_jacobian(embedder.transform(X[:50]))
    assert embedder.bi_lipschitz(X[:50]) == bi_lipschitz(jacobians)
    quantile = embedder.bi_lipschitz(X[:50], quantile=0.1)
    assert quantile == bi_lipschitz(jacobians, quantile=0.1)
    with pytest.raises(ValueError, match="quantile must be in"):
        embedder.bi_lipschitz(X, quantile=0.7)


class Tokens(nn.Module):
    """A module of a user's whose decoder is a transformer."""

    def __init__(self, n_features, n_components):
        super().__init__()
        self.down = nn.Linear(n_features, n_components)
        self.up = nn.Linear(n_components, n_features)
        self.mix = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)

    def encode(self, x):
        return self.down(x)

    def decode(self, z):
        return self.mix(self.up(z).unflatten(1, (-1, 8))).flatten(1)


def test_decoder_with_attention_can_be_differentiated():
    fast = torch.backends.mha.get_fastpath_enabled()
    embedder = fit(X[:200], n_components=2, module=Tokens, isometry=0.1)
    assert torch.backends.mha.get_fastpath_enabled() == fast
    Z = embedder.transform(X[:5]).astype(float)
    jacobian, step = embedder.decoder_jacobian(Z), 0.01
    for axis in range(2):
        shift = step * np.eye(2)[axis]
        up, down = (embedder.inverse_transform(Z + s) for s in (shift, -shift))
        difference = (up - down) / (2 * step)
        error = np.abs(jacobian[:, :, axis] - difference).max(1)
        assert np.median(error) < 1e-2 * np.abs(difference).max()


def test_isometry_counts_in_the_held_out_loss():
    held = fit(isometry=10.0, early_stopping=True, max_epochs=1)
    without = fit(early_stopping=True, max_epochs=1)
    assert held.history_["valid_loss"][0] > without.history_["valid_loss"][0] + 0.1


# Devices


@pytest.mark.parametrize("options", [{}, {"early_stopping": True, "isometry": 0.2}])
def test_nothing_of_the_training_is_left_on_the_device(options, monkeypatch):
    """No wait for the collector of cycles either: the memory of a card is short."""
    from skident._nn import held

    train, left = held.train, []

    def watched(net, rows, held_out, *args, **kwargs):
        outcome = train(net, rows, held_out, *args, **kwargs)
        state = (t for s in net.optimizer_.state.values() for t in s.values())
        things = [net, net.optimizer_, rows, *net.module_.parameters(), *state]
        left.extend(weakref.ref(thing) for thing in things)
        return outcome

    # the first optimiser of a process makes torch import more of itself, which holds
    # on to frames
    embedder = AutoencoderEmbedder(**FAST, **options).fit(X)
    monkeypatch.setattr(held, "train", watched)
    gc.collect()
    gc.disable()
    try:
        for method in (embedder.fit, embedder.partial_fit):
            method(X)
            assert len(left) > 10
            assert [ref() for ref in left if ref() is not None] == []
    finally:
        gc.enable()
    assert embedder._built == {}
    assert embedder.net_ is embedder.net_
    assert all(not p.grad for p in embedder.net_.module_.parameters())


@pytest.mark.parametrize("device", ["mps", "cuda:7"])
def test_device_that_is_not_there_is_named(device):
    with pytest.raises(ValueError, match=f"device='{device}' cannot be used"):
        fit(device=device)


def test_auto_is_the_card_where_there_is_one(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(ValueError, match="device='cuda' cannot be used"):
        fit()  # it tries, and this process has none
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert fit(X[:50]).net_.device == torch.device("cpu")


# Memory maps


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8"])
def test_memory_map_is_the_array(tmp_path, dtype):
    file = np.memmap(tmp_path / "x", dtype=dtype, mode="w+", shape=X.shape)
    file[:] = X
    file.flush()
    mapped = np.memmap(tmp_path / "x", dtype=dtype, mode="r", shape=X.shape)
    for options in ({}, {"early_stopping": True, "validation_fraction": 0.3}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there, here = fit(mapped, **options), fit(X, **options)
        np.testing.assert_equal(there.weights_, here.weights_)
        np.testing.assert_equal(there.history_, here.history_)
        np.testing.assert_array_equal(there.transform(mapped), here.transform(X))
        assert there.score(mapped) == pytest.approx(here.score(X), rel=1e-12)
    there.partial_fit(mapped)
    here.partial_fit(X)
    np.testing.assert_equal(there.weights_, here.weights_)


def test_memory_map_is_never_copied_whole(tmp_path):
    import tracemalloc

    shape = (160_000, 256)  # 41 MB of bytes, and a copy in float32 takes 164 MB
    mapped = np.memmap(tmp_path / "x", dtype=np.uint8, mode="w+", shape=shape)
    mapped[:] = np.arange(shape[1], dtype=np.uint8)
    mapped[::2] //= 2
    fit(mapped[:100])  # the first optimiser of a process imports more of torch
    tracemalloc.start()
    try:
        embedder = fit(mapped, max_epochs=1, batch_size=2048)
        embedder.transform(mapped)
        embedder.score(mapped)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # a few blocks of 2**21 numbers in float64
    assert peak < 90e6, peak


def test_bad_values_of_a_memory_map_are_named(tmp_path):
    mapped = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=(50, 4))
    mapped[:] = X[:50, 2:6]
    mapped[7, 3] = np.nan
    with pytest.raises(ValueError, match="NaN: first in column 3, row 7"):
        fit(mapped)
