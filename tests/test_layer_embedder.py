import copy
import pickle

import joblib
import numpy as np
import pytest
import skops.io
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from torch import nn

from skident import LayerEmbedder
from skident._nn import layers


def sequential():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(12, 8), nn.ReLU(), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.Linear(8, 3)
    )


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Transformer(nn.Module):
    def __init__(self, n_tokens=7, width=8):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, width)
        layer = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, n_tokens)

    def forward(self, x):
        return self.head(self.encoder(self.embedding(x)))


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(30, 12))


@pytest.fixture
def tokens():
    return np.random.default_rng(1).integers(7, size=(30, 5))


def by_hand(function, X, dtype=torch.float32):
    with torch.no_grad():
        return function(torch.as_tensor(X, dtype=dtype)).numpy()


def test_output_of_a_layer_of_a_sequential(X):
    net = sequential()
    net.eval()
    for layer, depth in (("0", 1), ("1", 2), ("4", 5), ("", 5)):
        Z = LayerEmbedder(net, layer).fit_transform(X)
        np.testing.assert_allclose(Z, by_hand(net[:depth], X), rtol=1e-6)


def test_pixels_are_averaged_and_flattened():
    X = np.random.default_rng(0).normal(size=(20, 64))
    torch.manual_seed(0)
    net = Convolutional().eval()
    maps = by_hand(net.features, X.reshape(20, 1, 8, 8))
    options = {"input_shape": (1, 8, 8), "batch_size": 7}
    Z = LayerEmbedder(net, "features", **options).fit_transform(X)
    np.testing.assert_allclose(Z, maps.mean((2, 3)), rtol=1e-4, atol=1e-6)
    Z = LayerEmbedder(net, "features", pooling="flatten", **options).fit_transform(X)
    np.testing.assert_allclose(Z, maps.reshape(20, -1), rtol=1e-4, atol=1e-6)
    largest = LayerEmbedder(
        net, "features", pooling=lambda out: out.amax((2, 3)), **options
    )
    np.testing.assert_allclose(
        largest.fit_transform(X), maps.max((2, 3)), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(
    "layer", ["embedding", "encoder", "encoder.layers.0", "encoder.layers.1.linear1"]
)
def test_tokens_of_a_transformer(tokens, layer):
    torch.manual_seed(0)
    net = Transformer().eval()
    caught = []
    handle = net.get_submodule(layer).register_forward_hook(
        lambda part, inputs, output: caught.append(output)
    )
    by_hand(net, tokens, torch.int64)
    handle.remove()
    states = caught[0].numpy()
    assert states.ndim == 3
    for pooling, expected in (
        ("auto", states.mean(1)),
        ("mean", states.mean(1)),
        ("cls", states[:, 0]),
        ("flatten", states.reshape(30, -1)),
    ):
        Z = LayerEmbedder(net, layer, pooling=pooling).fit_transform(tokens)
        np.testing.assert_allclose(Z, expected, rtol=1e-4, atol=1e-5)


def test_batches_do_not_change_the_answer(X):
    net = sequential()
    Z = LayerEmbedder(net, "4").fit_transform(X)
    for batch_size in (1, 7, 1000):
        few = LayerEmbedder(net, "4", batch_size=batch_size).fit_transform(X)
        np.testing.assert_allclose(few, Z, rtol=1e-5, atol=1e-6)


def test_module_is_left_as_found(X):
    net = sequential()
    net.train()
    net[2].eval()
    before = copy.deepcopy(net.state_dict())
    embedder = LayerEmbedder(net, "4")
    embedder.fit_transform(X)
    assert [part.training for part in net] == [True, True, False, True, True]
    assert not any(part._forward_hooks for part in net.modules())
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name])
    with pytest.raises(RuntimeError):
        embedder.set_params(layer="0").fit(X[:, :5])
    assert net.training
    assert not any(part._forward_hooks for part in net.modules())


def test_module_goes_to_the_device_and_back(X, monkeypatch):
    """Also if it fails there. It only notes the moves: there may be no such device."""
    moves, there, home = [], torch.device("cuda:7"), torch.device("cpu")

    class Traveller(nn.Linear):
        def to(self, device):
            moves.append(device)
            return self

        def forward(self, x):
            assert moves[-1] == there
            return super().forward(x)

    monkeypatch.setattr(layers, "resolve_device", lambda name: there)
    embedder = LayerEmbedder(Traveller(12, 2), "", device="cuda:7").fit(X)
    assert moves == [there, home] * 2  # a row alone, and beside another
    embedder.transform(X)
    assert moves == [there, home] * 3
    with pytest.raises(RuntimeError):
        clone(embedder).fit(X[:, :5])
    assert moves == [there, home] * 4


def test_layer_itself_is_refused_and_its_name_given(X):
    net = nn.Sequential(nn.Linear(12, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 3)))
    named = r"give its name, as in module\.named_modules\(\)"
    for layer, message in (
        (net[1][1], rf"layer must be a str, got Linear: {named}, here '1\.1'\.$"),
        (net, rf"layer must be a str, got Sequential: {named}, here ''\.$"),
        (nn.ReLU(), rf"layer must be a str, got ReLU: {named}\.$"),
        (1, rf"layer must be a str, got int: {named}\.$"),
    ):
        with pytest.raises(TypeError, match=message):
            LayerEmbedder(net, layer).fit(X)


def test_what_lies_above_the_layer_does_not_run(X):
    class Broken(nn.Module):
        def forward(self, x):
            raise AssertionError("ran")

    net = nn.Sequential(nn.Linear(12, 4), Broken())
    assert LayerEmbedder(net, "0").fit_transform(X).shape == (30, 4)
    with pytest.raises(AssertionError, match="ran"):
        LayerEmbedder(net, "1").fit(X)


def test_clones_share_the_module_and_pipelines_work(X):
    net = sequential()
    embedder = LayerEmbedder(net, "0", batch_size=9)
    assert clone(embedder).module is net
    assert clone(embedder).get_params() == embedder.get_params()
    pipeline = make_pipeline(embedder, PCA(2))
    assert pipeline.fit_transform(X).shape == (30, 2)
    names = embedder.fit(X).get_feature_names_out()
    assert names[0] == "layerembedder0"
    assert len(names) == 8
    framed = clone(embedder).set_output(transform="pandas").fit_transform(X)
    assert framed.shape == (30, 8)


def test_saving_keeps_every_number(X, tokens):
    for net, layer, rows in (
        (sequential(), "4", X),
        (Transformer(), "encoder", tokens),
    ):
        embedder = LayerEmbedder(net, layer).fit(rows)
        Z = embedder.transform(rows)
        for again in (pickle.loads(pickle.dumps(embedder)), copy.deepcopy(embedder)):
            assert again.module is not net
            np.testing.assert_array_equal(again.transform(rows), Z)
            state = again.module.state_dict()
            for name, value in net.state_dict().items():
                assert torch.equal(value, state[name])
            assert all(p.requires_grad for p in again.module.parameters())


def test_saving_keeps_ties_types_and_hidden_buffers():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    net[1].weight = net[0].weight
    net[2].requires_grad_(False)
    net.register_buffer("hidden", torch.arange(3), persistent=False)
    net.register_buffer("short", torch.tensor([1.5, -2.0]).bfloat16())
    again = pickle.loads(pickle.dumps(LayerEmbedder(net, "2"))).module
    assert again[1].weight is again[0].weight
    assert not again[2].weight.requires_grad
    assert torch.equal(again.hidden, net.hidden)
    assert torch.equal(again.short, net.short)
    assert again.short.dtype == torch.bfloat16


def test_hash_is_that_of_the_numbers(X):
    first, second = (LayerEmbedder(sequential(), "0").fit(X) for _ in range(2))
    assert joblib.hash(first) == joblib.hash(second)
    assert joblib.hash(pickle.loads(pickle.dumps(first))) == joblib.hash(first)
    with torch.no_grad():
        second.module[0].bias[0] += 1
    assert joblib.hash(first) != joblib.hash(second)


def test_skops_is_refused_with_a_remedy(X):
    with pytest.raises(TypeError, match="pickle or joblib"):
        skops.io.dumps(make_pipeline(LayerEmbedder(sequential(), "0").fit(X)))


def test_double_precision_stays_and_half_becomes_float32(X):
    for dtype, expected in (
        (torch.float64, np.float64), (torch.float32, np.float32),
        (torch.bfloat16, np.float32),
    ):  # fmt: skip
        Z = LayerEmbedder(sequential().to(dtype), "0").fit_transform(X)
        assert Z.dtype == expected


def test_input_type_can_be_chosen(X, tokens):
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.places, self.read = nn.Embedding(12, 1), nn.Linear(12, 4)

        def forward(self, x):
            return self.read(x + self.places.weight[:, 0])

    whole = np.round(X)
    with pytest.raises(RuntimeError):
        LayerEmbedder(sequential(), "0", input_dtype="int").fit(whole)
    embedder = LayerEmbedder(Positions(), "read", input_dtype="float").fit(whole)
    assert not embedder.tokens_
    assert not LayerEmbedder(Positions(), "read").fit(X).tokens_
    reader = LayerEmbedder(Transformer(), "encoder").fit(tokens)
    assert reader.tokens_
    with pytest.raises(ValueError, match=r"X has 0\.5 in column 2, row 3"):
        broken = tokens.astype(float)
        broken[3, 2] = 0.5
        reader.transform(broken)


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"module": None}, TypeError, "torch.nn.Module, got NoneType"),
        ({"module": nn.Linear}, TypeError, "torch.nn.Module, got type"),
        ({"layer": "9"}, ValueError, "'9' is no layer .* '0', '1', '2', '3', '4'"),
        ({"pooling": "max"}, ValueError, "'pooling' parameter"),
        ({"pooling": "cls"}, ValueError, r"needs tokens .* \(1, 8\)"),
        ({"pooling": lambda out: out.sum()}, ValueError, "pooling must return"),
        ({"pooling": lambda out: 3}, ValueError, "pooling must return .* int"),
        ({"pooling": lambda out: out[:, :0]}, ValueError, "pooling must return"),
        (
            {"module": nn.Linear(12, 2, device="meta"), "layer": ""},
            ValueError,
            "Linear is on device 'meta' and holds no numbers",
        ),
        ({"input_shape": (5, 2)}, ValueError, "10 entries, but X has 12"),
        ({"input_shape": (-1, 2)}, ValueError, "tuple of ints"),
        ({"batch_size": 0}, ValueError, "'batch_size' parameter"),
        ({"device": "cuda:77"}, ValueError, "cannot be used"),
    ],
)
def test_what_is_wrong_is_said(X, changes, error, message):
    parameters = {"module": sequential(), "layer": "0", **changes}
    with pytest.raises(error, match=message):
        LayerEmbedder(**parameters).fit(X)


def test_layers_that_give_nothing_are_named(X):
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = nn.Linear(12, 2), nn.Linear(12, 2)

        def forward(self, x):
            return self.used(x).T

    with pytest.raises(ValueError, match="'idle' was not called"):
        LayerEmbedder(Idle(), "idle").fit(X)
    with pytest.raises(ValueError, match="first axis must count rows"):
        LayerEmbedder(Idle(), "").fit(X)
    with pytest.raises(ValueError, match=r"returned (inf|nan) for row 0"):
        LayerEmbedder(sequential().half(), "0").fit(1e30 * X)


def test_a_changed_module_is_noticed(X):
    net = sequential()
    embedder = LayerEmbedder(net, "0").fit(X)
    net[0] = nn.Linear(12, 5)
    with pytest.raises(ValueError, match="5 numbers a row, but 8 in the fit"):
        embedder.transform(X)


def test_a_pooling_that_loses_rows_or_changes_its_width_is_refused(X):
    loses = LayerEmbedder(sequential(), "0", pooling=lambda out: out[:1])
    with pytest.raises(ValueError, match=r"shape \(2, d\) .* of shape \(1, 8\)"):
        loses.fit(X)
    uneven = LayerEmbedder(
        sequential(), "0", batch_size=7, pooling=lambda out: out[:, : len(out)]
    ).fit(X)
    with pytest.raises(ValueError, match="7 numbers a row in the first batch and 2"):
        uneven.transform(X)


@pytest.mark.parametrize("change", [torch.Tensor.to_sparse, lambda x: x + 1j])
def test_layers_that_give_no_dense_real_numbers_are_named(X, change):
    class Odd(nn.Linear):
        def forward(self, x):
            return change(super().forward(x))

    with pytest.raises(ValueError, match=r"layer='' returns a tensor of .* only dense"):
        LayerEmbedder(Odd(12, 2), "").fit(X)


def test_rows_that_see_each_other_are_refused():
    part = nn.TransformerEncoderLayer(4, 2, 8)  # takes (tokens, n, d)
    rows = np.random.default_rng(0).normal(size=(10, 12))
    embedder = LayerEmbedder(nn.Sequential(part), "0", input_shape=(3, 4))
    with pytest.raises(ValueError, match="transformers need batch_first=True"):
        embedder.fit(rows)
    recurrent = nn.Sequential(nn.Unflatten(1, (3, 4)), nn.LSTM(4, 5))
    with pytest.raises(ValueError, match="recurrent layers and"):
        LayerEmbedder(recurrent, "1").fit(rows)


def test_a_module_that_keeps_tensors_can_still_be_trained(X):
    class Caching(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.kept = nn.Parameter(torch.ones(12)), None

        def forward(self, x):
            self.kept = 2.0 * torch.ones(12) if self.kept is None else self.kept
            return x * self.weight * self.kept

    module = Caching()
    LayerEmbedder(module, "").fit_transform(X)
    module(torch.ones(1, 12)).sum().backward()
    assert torch.equal(module.weight.grad, torch.full((12,), 2.0))


def test_a_device_without_numbers_is_refused_and_the_module_kept(X):
    net = sequential()
    with pytest.raises(ValueError, match="device='meta' cannot be used"):
        LayerEmbedder(net, "0", device="meta").fit(X)
    assert all(p.device.type == "cpu" for p in net.parameters())
    with pytest.raises(ValueError, match="Sequential is on device 'meta' and holds no"):
        LayerEmbedder(net.to("meta"), "0").fit(X)
