"""Modules of the user's own: what is taken, and what is refused by name."""

import functools
import pickle

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from torch import nn

from skident import AutoencoderEmbedder

X = load_digits().data[:300]
FAST = {"hidden_layer_sizes": (16,), "max_epochs": 3, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore:Constant in X:UserWarning")


def fit(X=X, **options):
    return AutoencoderEmbedder(**{**FAST, **options}).fit(X)


def same(z):
    return z


class Linear(nn.Module):
    """A module of a user's, whose outputs, weights and buffers can be odd."""

    def __init__(
        self, n_features, n_components, *, encoded=same, decoded=same, **parts
    ):
        super().__init__()
        self.down = parts.get("down") or nn.Linear(n_features, n_components)
        self.up = nn.Linear(n_components, n_features)
        self.encoded, self.decoded = encoded, decoded
        self.register_buffer("short", torch.ones(2, dtype=torch.bfloat16))
        self.requires_grad_(parts.get("trained", True))

    def encode(self, x):
        return self.encoded(self.down(x))

    def decode(self, z):
        return self.decoded(self.up(z))


class HalfDecoder(Linear):
    """A module whose decoder has bfloat16 weights."""

    def __init__(self, n_features, n_components):
        super().__init__(n_features, n_components)
        self.up = self.up.to(torch.bfloat16)

    def decode(self, z):
        return super().decode(z.to(torch.bfloat16)).float()


@pytest.mark.parametrize(
    "params, match",
    [
        ({"encoded": lambda z: z[:, 0]}, r"encode must return .* got \(2,\)"),
        ({"encoded": lambda z: (z, z)}, "encode must return .* got tuple"),
        ({"encoded": torch.Tensor.double}, "must return float32, got torch.float64"),
        ({"encoded": torch.Tensor.long}, "must return floats, got torch.int64"),
        ({"decoded": lambda x: x.T}, r"decode must return .* got \(64, 2\)"),
        ({"decoded": lambda x: x + 1j}, "must return floats, got torch.complex64"),
        ({"decoded": torch.Tensor.detach}, "no gradient with respect to any weight"),
        ({"trained": False}, "made a module with no weights to train"),
    ],
)
def test_odd_modules_are_refused(params, match):
    with pytest.raises(ValueError, match=match):
        fit(module=Linear, module_params=params)


class Narrow(nn.Module):
    def __init__(self, n_features):
        super().__init__()


@pytest.mark.parametrize(
    "module, params, match",
    [
        (
            nn.Linear, {"bais": False},
            r"Linear\(64, 2, bais=\.\.\.\), .* and failed: .*'bais'.*"
            r"parameters are \(in_features: int, .*bias",
        ),
        (Narrow, None, r"Narrow\(64, 2\), .*parameters are \(n_features\)\."),
        (lambda n, d: Narrow(), None, r"<lambda>\(64, 2\), .*'n_features'.*\(n, d\)"),
        (functools.partial(Narrow, 3), None, r"partial\(64, 2\), .*are \(\)\."),
        (dict, None, r"dict\(64, 2\), .*parameters are not known"),
    ],
)  # fmt: skip
def test_class_that_cannot_be_called_so_is_named(module, params, match):
    with pytest.raises(TypeError, match=match) as caught:
        fit(module=module, module_params=params)
    assert isinstance(caught.value.__cause__, TypeError)


class Normalised(Linear):
    def __init__(self, n_features, n_components, part="encode"):
        super().__init__(n_features, n_components)
        self.norms = nn.ModuleDict({part: nn.BatchNorm1d(n_components)})

    def encode(self, x):
        z = super().encode(x)
        return self.norms["encode"](z) if "encode" in self.norms else z

    def decode(self, z):
        return super().decode(self.norms["decode"](z) if "decode" in self.norms else z)


@pytest.mark.parametrize("part", ["encode", "decode"])
def test_one_row_is_refused_where_batches_are_normalised(part):
    options = {"module": Normalised, "module_params": {"part": part}}
    refused = pytest.raises(
        ValueError, match=r"one row: give at least two rows .*\(3 w"
    )
    for few in (
        {"X": X[:10], "batch_size": 1},
        {"X": X[:2], "early_stopping": True},
        *([{"X": X[:2], "isometry": 0.1}] if part == "decode" else []),
    ):
        with refused:
            fit(**few, **options)
    embedder = fit(**options)
    expected = embedder.transform(X)
    with refused:
        embedder.partial_fit(X[:1])
    np.testing.assert_array_equal(embedder.transform(X), expected)
    assert embedder.partial_fit(X[:2]).n_iter_ == 4
    assert fit(X[:3], isometry=0.1, **options).n_iter_ == 3


def test_other_errors_of_a_module_are_passed_on():
    def fails(z):
        if z.shape[0] > 2:  # not in the look at it before the training
            raise ValueError("not today")
        return z

    with pytest.raises(ValueError, match=r"^not today$"):
        fit(module=Linear, module_params={"encoded": fails})


@pytest.mark.parametrize("kind", [torch.Tensor.double, torch.Tensor.bfloat16])
def test_output_of_another_float_is_taken(kind):
    embedder = fit(module=Linear, module_params={"decoded": kind})
    Z = embedder.transform(X)
    assert Z.dtype == np.float32 and np.isfinite(embedder.inverse_transform(Z)).all()


def test_trained_part_among_the_parameters_is_a_start_and_stays():
    part = nn.Linear(64, 2)
    before = part.weight.detach().clone()
    embedder = fit(module=Linear, module_params={"down": part})
    assert torch.equal(part.weight, before)
    first = embedder.transform(X)
    np.testing.assert_array_equal(embedder.fit(X).transform(X), first)
    np.testing.assert_array_equal(clone(embedder).fit(X).transform(X), first)


def test_trained_parts_are_saved_and_hash_by_their_numbers():
    embedder = fit(module=Linear, module_params={"down": nn.Linear(64, 2)})
    expected = embedder.transform(X)
    loaded = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(loaded.transform(X), expected)
    assert loaded.module_params["down"].weight.shape == (2, 64)
    refitted = clone(loaded).fit(X)
    np.testing.assert_array_equal(refitted.transform(X), expected)
    part = nn.Linear(64, 2)
    tied = fit(module=Linear, module_params={"down": part, "more": [{"a": part}]})
    loaded_tied = pickle.loads(pickle.dumps(tied)).module_params
    assert loaded_tied["more"][0]["a"] is loaded_tied["down"]
    assert joblib.hash(pickle.loads(pickle.dumps(tied))) == joblib.hash(tied)
    for other in (loaded, refitted, pickle.loads(pickle.dumps(refitted))):
        assert joblib.hash(other) == joblib.hash(embedder)
    assert joblib.hash(clone(embedder)) == joblib.hash(clone(loaded))


def test_weights_that_modules_share_are_refused():
    part, whole, norm = nn.Linear(64, 2), Linear(64, 2), nn.BatchNorm1d(2, affine=False)

    class SharedMemory(Linear):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.down.weight = nn.Parameter(part.weight.detach())

    class SharedStatistics(Linear):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.encoded = norm

    for make, name in (
        (lambda n, d: Linear(n, d, down=part), "down.weight"),
        (lambda n, d: whole, "down.weight"),
        (SharedMemory, "down.weight"),
        (SharedStatistics, "encoded.running_mean"),
    ):
        match = f"gives the same weights to each module that it makes, here {name}"
        with pytest.raises(ValueError, match=match):
            fit(module=make)


def test_layers_of_the_class_are_refused():
    class Common(Linear):
        norm = nn.BatchNorm1d(2, affine=False)

        def encode(self, x):
            return self.norm(self.down(x))

    class Derived(Common):
        pass

    for module in (Common, Derived):
        with pytest.raises(ValueError, match=r"Common\.norm belongs to the class"):
            fit(module=module)


def test_constants_may_be_shared():
    table = torch.linspace(-1.0, 1.0, 64)

    class Constant(Linear):
        act = nn.Tanh()
        factor = torch.tensor(2.0)

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.register_buffer("table", table)
            self.fixed = nn.Parameter(table, requires_grad=False)

        def encode(self, x):
            return super().encode(self.act(self.factor * x * self.table * self.fixed))

    embedder = fit(module=Constant)
    np.testing.assert_array_equal(
        embedder.transform(X), fit(module=Constant).transform(X)
    )


@pytest.mark.parametrize("part", ["encoded", "decoded"])
@pytest.mark.parametrize(
    "change",
    [
        lambda z: nn.functional.dropout(z),
        lambda z: z - z.mean(0),
        lambda z: z.cumsum(0),
        lambda z: z.flip(0).cumsum(0).flip(0),
    ],
    ids=["chance", "batch", "before", "after"],
)
def test_rows_that_do_not_determine_their_representation_are_refused(part, change):
    match = f"Linear.{part[:-1]} returns for a row depends on chance or on the other"
    with pytest.raises(ValueError, match=match):
        fit(module=Linear, module_params={part: change})


class Shuffled(Linear):
    """A module with a state that is not in its state_dict."""

    def __init__(self, n_features, n_components, kind="attribute"):
        super().__init__(n_features, n_components)
        self.kind, self.started = kind, False
        order = torch.randn(n_features)
        if kind == "buffer":
            self.register_buffer("order", order, persistent=False)
        self.order = order if kind != "flag" else torch.ones(n_features)

    def encode(self, x):
        if self.kind == "flag" and self.training:
            self.started = True
        return super().encode(x * self.order * (3.0 if self.started else 1.0))


@pytest.mark.parametrize("kind", ["attribute", "buffer", "flag"])
def test_state_that_would_be_lost_is_refused(kind):
    with pytest.raises(ValueError, match="flags that are not in its state_dict"):
        fit(module=Shuffled, module_params={"kind": kind})


def test_states_that_are_no_tensors_or_have_no_size_are_refused():
    class Extra(Linear):
        def get_extra_state(self):
            return {"a": 1}

        def set_extra_state(self, state):
            pass

    class Lazy(Linear):
        def __init__(self, *args):
            super().__init__(*args)
            self.down = nn.LazyLinear(2)

    with pytest.raises(ValueError, match="_extra_state in its state_dict is a dict"):
        fit(module=Extra)
    with pytest.raises(ValueError, match=r"down\.weight has no size before"):
        fit(module=Lazy)


def test_decoders_that_work_in_place_are_differentiated():
    class Activated(Linear):
        def __init__(self, n_features, n_components, inplace):
            super().__init__(n_features, n_components)
            self.act = nn.LeakyReLU(0.2, inplace=inplace)

        def decode(self, z):
            return super().decode(self.act(z))

    first, second = (
        fit(module=Activated, module_params={"inplace": inplace}, isometry=0.1)
        for inplace in (False, True)
    )
    Z = first.transform(X[:5])
    np.testing.assert_array_equal(first.decoder_jacobian(Z), second.decoder_jacobian(Z))


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.filterwarnings("ignore:The validation loss:UserWarning")
def test_modules_may_work_in_place(early_stopping):
    class Plain(Linear):
        def encode(self, x):
            return super().encode(x.clamp(-0.5, 0.5))

        def decode(self, z):
            return super().decode(z.clamp(-0.5, 0.5))

    class InPlace(Linear):
        def encode(self, x):
            return super().encode(x.clamp_(-0.5, 0.5))

        def decode(self, z):
            return super().decode(z.clamp_(-0.5, 0.5))

    first, second = (
        fit(module=kind, isometry=0.1, early_stopping=early_stopping)
        for kind in (Plain, InPlace)
    )
    np.testing.assert_array_equal(first.transform(X), second.transform(X))
    for name in first.history_:
        np.testing.assert_array_equal(first.history_[name], second.history_[name])


def test_training_goes_on_in_half_precision_weights():
    embedder = fit(module=HalfDecoder)
    loaded = pickle.loads(pickle.dumps(embedder))
    for one in (embedder, loaded):
        one.partial_fit(X)
    assert joblib.hash(loaded) == joblib.hash(embedder)


def test_numbers_that_numpy_lacks_are_kept():
    embedder = fit(module=Linear)
    loaded = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    assert loaded.net_.module_.short.dtype == torch.bfloat16
    assert joblib.hash(loaded) == joblib.hash(embedder)
