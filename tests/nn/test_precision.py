"""Mixed precision, as far as a CPU shows it: its autocast knows both types."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from skident import AutoencoderEmbedder, MeanFieldVAE
from skident._nn.losses import Reconstruction, SquaredError
from skident._nn.modules import Autoencoder, Encoded, VariationalAutoencoder
from skident._nn.precision import ReducedModule
from skident._nn.threads import seeded
from skident._nn.training import Schedule, build_net
from skident.datasets import make_curie_weiss

CPU = torch.device("cpu")
TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
X = load_digits().data
ROWS = torch.from_numpy((X[:64] - X.mean(0)) / X.std()).float()
FAST = {"hidden_layer_sizes": (32,), "max_epochs": 5, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore:Constant in X:UserWarning")


def fit(precision, X=X, **options):
    options = {**FAST, "n_components": 4, "precision": precision, **options}
    return AutoencoderEmbedder(**options).fit(X)


def layer_types(module):
    """Return a list that grows by the type of what each linear layer puts out."""
    seen = []
    for part in module.modules():
        if isinstance(part, nn.Linear):
            part.register_forward_hook(lambda p, i, output: seen.append(output.dtype))
    return seen


@pytest.mark.parametrize("precision", TYPES)
def test_layers_compute_in_it_between_float32_tensors(precision):
    module = Autoencoder(64, 2, (8,), 0.2)
    seen, reduced = layer_types(module), ReducedModule(module, precision, CPU)
    z = reduced.encode(ROWS)
    assert z.dtype == reduced.decode(z).dtype == torch.float32
    assert set(seen) == {TYPES[precision]}
    torch.testing.assert_close(z, module.encode(ROWS), rtol=0.02, atol=0.01)
    encoded = ReducedModule(VariationalAutoencoder(64, 64, 2, (8,)), precision, CPU)(
        ROWS
    )
    assert isinstance(encoded, Encoded)
    assert {part.dtype for part in encoded} == {torch.float32}


@pytest.mark.parametrize("precision", ["float32", *TYPES])
def test_steps_are_reduced_and_nothing_else(precision, monkeypatch):
    from skident._nn import held_autoencoder

    seen, new_module = [], held_autoencoder.new_module

    def watched(**architecture):
        module = new_module(**architecture)
        seen.append(layer_types(module))
        return module

    monkeypatch.setattr(held_autoencoder, "new_module", watched)
    embedder = fit(precision, X[:200], max_epochs=1)
    assert set(seen[0]) == {TYPES.get(precision, torch.float32)}
    Z = embedder.transform(X)
    embedder.inverse_transform(Z)
    embedder.decoder_jacobian(Z[:3])
    assert set(seen[1]) == {torch.float32}
    arrays = [*embedder.weights_.values(), Z]
    arrays += [v for k, v in embedder.optimizer_state_.items() if "exp_avg" in k]
    assert {a.dtype for a in arrays} == {np.dtype("float32")}


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"isometry": 0.2},
        {"mask_ratio": 0.3, "max_grad_norm": 10.0, "early_stopping": True},
        {"architecture": "conv", "image_shape": (8, 8), "n_filters": 4},
    ],
    ids=["mlp", "isometry", "masked", "conv"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_training_is_that_of_float32_but_for_rounding(precision, options):
    # float16 leaves out a few steps at the start, until the scale of its loss fits
    tolerance = {"bfloat16": 0.01, "float16": 0.06}[precision]
    exact, reduced = (fit(p, X[:600], **options) for p in ("float32", precision))
    for name, losses in exact.history_.items():
        np.testing.assert_allclose(reduced.history_[name], losses, rtol=tolerance)
    assert reduced.score(X) == pytest.approx(exact.score(X), rel=tolerance)
    L = [model.bi_lipschitz(X, quantile=0.05).L for model in (exact, reduced)]
    assert L[1] == pytest.approx(L[0], rel=0.1)


@pytest.mark.parametrize("precision", TYPES)
def test_penalty_and_its_gradient_are_those_of_float32(precision):
    with seeded(0):
        module = Autoencoder(64, 3, (32,), 0.2)
    criterion = Reconstruction(SquaredError(torch.zeros(64), 1.0), isometry=1.0)
    losses, gradients = [], []
    for view in (module, ReducedModule(module, precision, CPU)):
        module.zero_grad()
        with seeded(1):
            loss = criterion(view, ROWS)
        loss.backward()
        losses.append(loss.item())
        gradients.append(torch.cat([p.grad.flatten() for p in module.parameters()]))
    assert losses[1] == pytest.approx(losses[0], rel=5e-3)
    distance = (gradients[1] - gradients[0]).norm() / gradients[0].norm()
    assert distance < 0.02


def new_net(precision, factor, rate):
    """Return a net of plain descent on a squared error times a factor."""

    class Scaled(Reconstruction):
        def forward(self, module, x):
            return factor * super().forward(module, x)

    schedule = Schedule(1e-3, 0.0, 64, 1, precision=precision)
    with seeded(0):
        module = Autoencoder(64, 2, (8,), 0.2)
    net = build_net(module, Scaled(SquaredError(torch.zeros(64), 1.0)), schedule, CPU)
    net.optimizer_ = torch.optim.SGD(net.module_.parameters(), lr=rate)
    return net


def move(net):
    """Return how far one step moves the weights, in a row."""
    before = [p.detach().clone() for p in net.module_.parameters()]
    net._descend(ROWS)
    after = net.module_.parameters()
    moves = [(p - b).flatten() for p, b in zip(after, before, strict=True)]
    return torch.cat(moves).detach()


def test_small_gradients_of_float16_do_not_vanish():
    """A loss of 1e-6 has gradients below the least number of float16."""
    exact, scaled = (move(new_net(p, 1e-6, 1e4)) for p in ("float32", "float16"))
    assert (scaled - exact).norm() < 0.01 * exact.norm()


@pytest.mark.parametrize("precision", TYPES)
def test_gradients_are_cut_in_units_of_the_loss(precision):
    net = new_net(precision, 1.0, 1.0)
    net.max_grad_norm = 1e-3
    assert move(net).norm() == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("precision", TYPES)
def test_held_out_rows_are_measured_in_float32(precision):
    net, exact = new_net(precision, 1.0, 1.0), new_net("float32", 1.0, 1.0)
    seen = layer_types(net.module_)
    assert net._evaluate(ROWS) == exact._evaluate(ROWS)
    assert set(seen) == {torch.float32}


def test_scale_of_the_loss_goes_on_with_the_optimiser():
    """Calls of one batch, whose first scale is too large, would never get a step."""
    embedder = AutoencoderEmbedder(4, **FAST, precision="float16")
    for _ in range(30):
        embedder.partial_fit(X[:100])
    scale = embedder.optimizer_state_["scaler:scale"]
    assert 1 < scale < 2**16
    losses = embedder.history_["train_loss"]
    assert losses[-1] < 0.9 * losses[0]
    loaded = pickle.loads(pickle.dumps(embedder))
    for model in (loaded, embedder):
        model.partial_fit(X[:100])
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    embedder.set_params(precision="float32").partial_fit(X[:100])
    assert "scaler:scale" not in embedder.optimizer_state_


@pytest.mark.parametrize("precision", TYPES)
def test_variational_autoencoder_trains_in_it(precision):
    spins, _ = make_curie_weiss(600, 32, temperature=0.7, random_state=0)
    options = {"batch_size": 64, "learning_rate": 1e-2, "max_epochs": 10}
    exact, reduced = (
        MeanFieldVAE(1, **options, precision=p, random_state=0).fit(spins)
        for p in ("float32", precision)
    )
    # its noise in training is another, so that the two agree as two seeds do
    assert reduced.score(spins[:99]) == pytest.approx(exact.score(spins[:99]), rel=0.02)
    assert reduced.score(spins[:99]) != exact.score(spins[:99])
    assert reduced.gain_over_independent_ > 1
    assert {w.dtype for w in reduced.weights_.values()} == {np.dtype("float32")}


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="'precision' parameter"):
        fit("half")
    with pytest.raises(ValueError, match="'precision' parameter"):
        MeanFieldVAE(precision="half").fit(np.where(X > 8, 1, -1))
    with pytest.raises(ValueError, match="not available on device 'meta': use prec"):
        ReducedModule(nn.Linear(2, 2), "bfloat16", torch.device("meta"))
