"""What an autoencoder does with what it was not made for: a result or a clear error."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

from skident import AutoencoderEmbedder
from skident._nn import training

X = load_digits().data[:300]
FAST = {"hidden_layer_sizes": (16,), "max_epochs": 3, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore:Constant in X:UserWarning")


def fit(X=X, **options):
    return AutoencoderEmbedder(**{**FAST, **options}).fit(X)


def same(z):
    return z


# Parameters


def test_numbers_of_numpy_are_the_same_network():
    embedder = fit().set_params(
        n_components=np.int64(2), negative_slope=np.float64(0.2),
        hidden_layer_sizes=np.array([16]),
    )  # fmt: skip
    assert embedder.partial_fit(X).n_iter_ == 4


def test_true_is_one():
    assert fit(n_components=True).transform(X).shape == (300, 1)


def test_device_without_numbers_is_refused():
    with pytest.raises(ValueError, match="device='meta' cannot be used"):
        fit(device="meta")


@pytest.mark.filterwarnings("ignore:The validation loss")
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("batch_size", [1, 2, 10**9])
def test_a_few_rows_are_enough(n, batch_size):
    for options in ({}, {"early_stopping": True, "validation_fraction": 1e-9}):
        embedder = fit(X[:n], batch_size=batch_size, isometry=0.1, **options)
        assert np.isfinite(embedder.transform(X)).all()
        assert np.isfinite(embedder.history_["train_loss"]).all()


# Numbers that are too large


@pytest.mark.filterwarnings("error")
def test_what_overflows_is_named():
    embedder = fit()
    far = X[:20].copy()
    far[7] *= 1e300
    for method in (embedder.transform, embedder.score):
        with pytest.raises(ValueError, match=r"encoder returned (nan|-?inf) for row 7"):
            method(far)
    with pytest.raises(ValueError, match=r"decoder returned -?inf for row 1"):
        fit(X * 1e300).inverse_transform([[0.0, 0.0], [1e18, 1e18]])
    with pytest.raises(ValueError, match=r"more than the largest float64, 1\.8e308"):
        fit(np.where(X > 8, 1.7e308, -1.7e308))
    assert fit(X * 1e300).score(X * 1e300) == -np.inf


# Interrupts


@pytest.mark.parametrize("early_stopping", [False, True])
def test_interrupt_before_an_epoch_is_over_leaves_the_estimator(
    early_stopping, monkeypatch
):
    def interrupted(self, batch):
        raise KeyboardInterrupt

    fresh = AutoencoderEmbedder(early_stopping=early_stopping, **FAST)
    fitted = fit()
    before = vars(fresh).copy(), fitted.transform(X)
    monkeypatch.setattr(training.TensorNet, "_descend", interrupted)
    for embedder in (fresh, fitted.set_params(random_state=1)):
        with pytest.raises(KeyboardInterrupt):
            embedder.fit(X[:100])
    assert vars(fresh) == before[0]
    assert fitted.n_iter_ == 3
    np.testing.assert_array_equal(fitted.transform(X), before[1])


@pytest.mark.parametrize(
    "owner, name, n_epochs",
    [
        (training.TensorNet, "_evaluate", 2),
        (training._Best, "on_epoch_end", 2),
        (training._Bar, "on_epoch_end", 3),
    ],
)
@pytest.mark.filterwarnings("ignore:The validation loss:UserWarning")
def test_interrupt_between_epochs_keeps_those_that_the_weights_saw(
    owner, name, n_epochs, monkeypatch
):
    # constant steps, so that two epochs of three are two of two; a batch is an epoch
    monkeypatch.setattr(training._Cosine, "on_epoch_begin", lambda *args, **kw: None)
    options = {"early_stopping": name == "_evaluate", "batch_size": 2000}
    expected = fit(max_epochs=n_epochs, **options)
    calls, original = [], getattr(owner, name)

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, interrupted)
    embedder = AutoencoderEmbedder(**{**FAST, "max_epochs": 4}, **options)
    with pytest.raises(KeyboardInterrupt):
        embedder.fit(X)
    assert embedder.n_iter_ == n_epochs
    assert all(len(losses) == n_epochs for losses in embedder.history_.values())
    np.testing.assert_array_equal(embedder.transform(X), expected.transform(X))


def test_saved_in_the_middle_of_training_is_as_before_it(monkeypatch):
    embedder, saved = fit(warm_start=True), []
    expected, descend = embedder.transform(X), training.TensorNet._descend

    def watched(self, batch):
        saved.append(pickle.dumps(embedder))
        return descend(self, batch)

    monkeypatch.setattr(training.TensorNet, "_descend", watched)
    embedder.fit(X)
    monkeypatch.undo()
    for data in (saved[0], saved[-1]):
        loaded = pickle.loads(data)
        np.testing.assert_array_equal(loaded.transform(X), expected)
        assert loaded.partial_fit(X).n_iter_ == 4
