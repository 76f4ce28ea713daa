"""Training on after a fit, a pickle or an interrupt; steps that go astray."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from skident import AutoencoderEmbedder

X = load_digits().data
FAST = {"hidden_layer_sizes": (16,), "max_epochs": 3, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore:Constant in X:UserWarning")


def fit(X=X, **options):
    return AutoencoderEmbedder(**{**FAST, **options}).fit(X)


def equal(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def test_fit_pickle_partial_fit_is_fit_partial_fit():
    for start in ("fit", "partial_fit"):
        first, second = (AutoencoderEmbedder(**FAST) for _ in range(2))
        getattr(first, start)(X), getattr(second, start)(X)
        second = pickle.loads(pickle.dumps(second))
        for part in (X[:500], X[500:900]):
            first.partial_fit(part)
            second.partial_fit(part)
        assert equal(first.weights_, second.weights_)
        assert equal(first.optimizer_state_, second.optimizer_state_)
        assert joblib.hash(first) == joblib.hash(second)


def test_partial_fit_goes_on_with_optimizer_history_and_units():
    embedder = AutoencoderEmbedder(**FAST).partial_fit(X)
    mean, steps = embedder.mean_.copy(), -(-len(X) // 128)
    for n in range(2, 30):
        embedder.partial_fit(X)
        assert embedder.n_iter_ == len(embedder.history_["train_loss"]) == n
    np.testing.assert_array_equal(embedder.mean_, mean)
    assert embedder.optimizer_state_["step:encoder.0.weight"] == 29 * steps
    losses = embedder.history_["train_loss"]
    assert losses[-1] < 0.8 * losses[0]
    assert embedder.partial_fit(X[:1]).n_iter_ == 30


def test_partial_fit_differs_from_pass_to_pass():
    """Batches are drawn anew: two passes are not one pass twice."""
    one = AutoencoderEmbedder(**FAST).partial_fit(X)
    two = clone(one).partial_fit(X).partial_fit(X)
    assert not equal(one.weights_, two.weights_)


def test_warm_start_goes_on_and_a_plain_fit_does_not():
    embedder = fit(warm_start=True)
    before = embedder.history_["train_loss"]
    embedder.fit(X)
    after = embedder.history_["train_loss"]
    np.testing.assert_array_equal(after[:3], before)
    assert embedder.n_iter_ == 6 and after[3] < before[0]
    cold = fit().fit(X)
    assert cold.n_iter_ == 3


def test_warm_start_is_never_worse_than_its_start():
    rows = np.random.default_rng(0).normal(size=(60, 16))
    embedder = AutoencoderEmbedder(
        2,
        hidden_layer_sizes=(64,),
        early_stopping=True,
        n_iter_no_change=3,
        max_epochs=300,
        warm_start=True,
        random_state=0,
    ).fit(rows)
    weights = embedder.weights_
    least = embedder.history_["valid_loss"].min()
    embedder.set_params(learning_rate=0.3).fit(rows)
    assert embedder.history_["valid_loss"][-3:].min() > least
    assert equal(embedder.weights_, weights)


@pytest.mark.parametrize(
    "change, name",
    [
        ({"n_components": 3}, "n_components was 2"),
        ({"hidden_layer_sizes": (4,)}, "options was"),
        ({"loss": "bce"}, "loss was 'mse'"),
    ],
)
def test_another_network_cannot_go_on(change, name):
    embedder = fit(X / 16, warm_start=True).set_params(**change)
    for method in (embedder.fit, embedder.partial_fit):
        with pytest.raises(ValueError, match=f"cannot go on: {name}"):
            method(X / 16)
    with pytest.raises(ValueError, match="63 features"):
        fit(warm_start=True).fit(X[:, 1:])


def test_interrupted_partial_fit_leaves_the_estimator_as_it_was(monkeypatch):
    from skident._nn import training

    embedder = fit()
    expected = embedder.transform(X)

    def interrupted(self, batch):
        raise KeyboardInterrupt

    monkeypatch.setattr(training.TensorNet, "_descend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        embedder.partial_fit(X)
    assert embedder.n_iter_ == 3
    np.testing.assert_array_equal(embedder.transform(X), expected)


def test_fit_interrupted_in_its_first_epoch_keeps_what_it_started_from(monkeypatch):
    from skident._nn import training

    embedder, steps = fit(warm_start=True), []
    expected, descend = embedder.transform(X), training.TensorNet._descend

    def interrupted(self, batch):
        steps.append(1)
        if len(steps) == 5:
            raise KeyboardInterrupt
        return descend(self, batch)

    monkeypatch.setattr(training.TensorNet, "_descend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        embedder.fit(X)
    assert embedder.n_iter_ == 3
    np.testing.assert_array_equal(embedder.transform(X), expected)


def test_rows_held_out_stay_held_out_in_a_warm_start(monkeypatch):
    from skident._nn import held

    seen, hold_out = [], held.hold_out

    def watched(rows, fraction):
        parts = hold_out(rows, fraction)
        seen.append(parts[1])
        return parts

    monkeypatch.setattr(held, "hold_out", watched)
    options = {"early_stopping": True, "warm_start": True, "random_state": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(**options).fit(X)
    assert (seen[0] == seen[1]).all()


def test_epoch_of_a_loss_that_is_not_finite_counts_on():
    embedder = fit().set_params(learning_rate=1e30)
    with pytest.raises(FloatingPointError, match="in epoch 4"):
        embedder.partial_fit(X)


def test_gradient_clipping_tames_a_wild_column():
    rows = X.copy()
    rows[0, 0] = 1e6
    plain, cut = (fit(rows, max_grad_norm=norm) for norm in (None, 0.1))
    assert not equal(plain.weights_, cut.weights_)
