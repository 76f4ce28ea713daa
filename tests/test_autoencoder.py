import pickle
import warnings

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from skident import AutoencoderEmbedder, WhitenICA

X = load_digits().data
X = X[:, np.ptp(X[:200], axis=0) > 0]
FAST = {"hidden_layer_sizes": (32,), "max_epochs": 5, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    return AutoencoderEmbedder(4, **FAST).fit(X)


def test_same_seed_same_bits_and_global_generators_untouched():
    torch_state = torch.random.get_rng_state()
    first, second = (AutoencoderEmbedder(3, **FAST).fit(X) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    np.testing.assert_array_equal(first.transform(X), second.transform(X))
    assert joblib.hash(first) == joblib.hash(second)
    other = AutoencoderEmbedder(3, **{**FAST, "random_state": 1}).fit(X)
    assert not np.array_equal(first.transform(X), other.transform(X))


def test_fit_twice_is_fit_once(fitted):
    again = clone(fitted).fit(X[:100]).fit(X)
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int64"])
def test_equal_values_of_any_type_give_the_same_answer(fitted, dtype):
    Z = AutoencoderEmbedder(4, **FAST).fit(X.astype(dtype)).transform(X.astype(dtype))
    np.testing.assert_array_equal(Z, fitted.transform(X))


def test_bool_and_tensor_and_frame():
    pd = pytest.importorskip("pandas")
    bits = X > 8
    expected = AutoencoderEmbedder(2, **FAST).fit_transform(bits.astype(float))
    for same in (bits, torch.from_numpy(bits), pd.DataFrame(bits)):
        Z = AutoencoderEmbedder(2, **FAST).fit(same).transform(same)
        np.testing.assert_array_equal(Z, expected)


def test_units_of_the_data_do_not_matter(fitted):
    # a power of two scales every float exactly
    scaled = AutoencoderEmbedder(4, **FAST).fit(X * 2.0**40)
    np.testing.assert_array_equal(scaled.transform(X * 2.0**40), fitted.transform(X))
    assert scaled.score(X * 2.0**40) == pytest.approx(fitted.score(X) * 2.0**80)


def test_round_trip_in_the_units_of_the_data(fitted):
    rows = fitted.inverse_transform(fitted.transform(X))
    assert fitted.score(X) == pytest.approx(-np.mean((rows - X) ** 2))
    assert -fitted.score(X) < 0.9 * X.var(axis=0).mean()


def test_linear_autoencoder_reaches_the_principal_subspace():
    rng = np.random.default_rng(0)
    low_rank = rng.standard_normal((400, 2)) @ rng.standard_normal((2, 6))
    rows = low_rank + 0.1 * rng.standard_normal((400, 6))
    singular = np.linalg.svd(rows - rows.mean(0), compute_uv=False)
    best = (singular[2:] ** 2).sum() / rows.size
    embedder = AutoencoderEmbedder(
        2, hidden_layer_sizes=(), weight_decay=0.0, learning_rate=1e-2, random_state=0
    ).fit(rows)
    assert best <= -embedder.score(rows) < 1.01 * best


def test_transform_does_not_depend_on_batches(fitted):
    whole = fitted.transform(X)
    parts = np.concatenate(
        [fitted.transform(part) for part in np.split(X, [1, 7, 500])]
    )
    np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dump", [pickle.dumps, None])
def test_persistence_keeps_numbers_and_no_network(fitted, dump, tmp_path):
    if dump is None:
        joblib.dump(fitted, tmp_path / "model")
        loaded = joblib.load(tmp_path / "model")
    else:
        data = dump(fitted)
        assert b"torch" not in data.replace(b"skident", b"")
        loaded = pickle.loads(data)
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    assert joblib.hash(loaded) == joblib.hash(fitted)


def test_skops_round_trip(fitted):
    io = pytest.importorskip("skops.io")
    data = io.dumps(fitted)
    untrusted = io.get_untrusted_types(data=data)
    assert all(name.startswith(("skident.", "numpy.")) for name in untrusted)
    loaded = io.loads(data, trusted=untrusted)
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))


def test_format_of_the_future_is_refused(fitted):
    state = fitted.__getstate__()
    state["_skident_format"] = 99
    with pytest.raises(ValueError, match=r"saved in format 99, and this version"):
        AutoencoderEmbedder().__setstate__(state)


def test_jacobian_equals_finite_differences(fitted):
    Z = fitted.transform(X[:5]).astype(float)
    jacobian = fitted.decoder_jacobian(Z)
    step = 0.01
    for axis in range(4):
        shift = step * np.eye(4)[axis]
        up, down = (
            fitted.inverse_transform(Z + shift),
            fitted.inverse_transform(Z - shift),
        )
        # piecewise linear: exact but for kinks and float32 rounding
        np.testing.assert_allclose(
            jacobian[:, :, axis], (up - down) / (2 * step), atol=0.5, rtol=0.2
        )


def test_early_stopping_keeps_the_best_epoch():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embedder = AutoencoderEmbedder(
            8,
            hidden_layer_sizes=(64,),
            early_stopping=True,
            n_iter_no_change=3,
            learning_rate=2e-2,
            max_epochs=300,
            random_state=0,
        ).fit(X[:200])
    losses = embedder.history_["valid_loss"]
    assert embedder.n_iter_ == len(losses) == losses.argmin() + 4 < 300


def test_early_stopping_that_never_stops_warns():
    embedder = AutoencoderEmbedder(2, early_stopping=True, **FAST)
    with pytest.warns(ConvergenceWarning, match="raise max_epochs"):
        embedder.fit(X)


def test_what_a_missing_device_fitted_loads_on_the_cpu(fitted):
    loaded = pickle.loads(pickle.dumps(fitted)).set_params(device="cuda:7")
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    assert loaded.net_.device == torch.device("cpu")


def test_device_can_be_changed_after_the_fit(fitted):
    loaded = pickle.loads(pickle.dumps(fitted))
    loaded.transform(X[:2])
    before = loaded.net_
    assert loaded.set_params(device="cpu").net_ is not before
    with pytest.raises(ValueError, match="device='abacus' cannot be used"):
        loaded.set_params(device="abacus").transform(X)


@pytest.mark.filterwarnings("ignore:The validation loss:UserWarning")
def test_options_of_the_training():
    def fit(**options):
        return AutoencoderEmbedder(2, **{**FAST, **options}).fit(X)

    assert fit(batch_size=16).score(X) > fit().score(X)
    size = max(
        np.abs(w).max()
        for k, w in fit(weight_decay=1e3).weights_.items()
        if k.endswith("weight")
    )
    assert size < 0.2
    held = fit(early_stopping=True, validation_fraction=0.5, n_iter_no_change=99)
    assert set(held.history_) == {"train_loss", "valid_loss"}


def test_slope_of_one_is_a_linear_map():
    embedder = AutoencoderEmbedder(2, negative_slope=1.0, **FAST).fit(X)
    Z = embedder.transform(np.array([X[0], X[1], 0.5 * (X[0] + X[1])]))
    np.testing.assert_allclose(Z[2], 0.5 * (Z[0] + Z[1]), atol=1e-5)


@pytest.mark.filterwarnings("ignore:The validation loss:UserWarning")
def test_interrupted_fit_is_consistent_and_raises(monkeypatch):
    from skident._nn import training

    steps, descend = [], training.TensorNet._descend

    def interrupted(self, batch):
        steps.append(1)
        if len(steps) == 40:
            raise KeyboardInterrupt
        return descend(self, batch)

    monkeypatch.setattr(training.TensorNet, "_descend", interrupted)
    embedder = AutoencoderEmbedder(2, **FAST)
    with pytest.raises(KeyboardInterrupt):
        embedder.fit(X)
    assert embedder.n_iter_ == len(embedder.history_["train_loss"]) == 2
    assert np.isfinite(embedder.transform(X)).all()


def test_progress_bar_is_shown_or_not(capsys):
    AutoencoderEmbedder(2, **FAST).fit(X)
    assert capsys.readouterr() == ("", "")
    AutoencoderEmbedder(2, verbose=1, **FAST).fit(X)
    out, err = capsys.readouterr()
    assert out == "" and "autoencoder: 100%" in err


def test_constant_rows_embed_to_a_constant():
    Z = AutoencoderEmbedder(2, **FAST).fit_transform(np.full((10, 3), 7.0))
    assert np.isfinite(Z).all() and np.ptp(Z, axis=0).max() == 0


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
def test_extreme_scales(scale):
    embedder = AutoencoderEmbedder(2, **FAST).fit(X * scale)
    assert np.isfinite(embedder.transform(X * scale)).all()
    np.testing.assert_allclose(embedder.scale_ / scale, X.std(axis=0).mean(), rtol=0.5)


@pytest.mark.parametrize(
    "change, match",
    [
        ({"hidden_layer_sizes": (8, 0)}, r"positive integers, got \(8, 0\)"),
        ({"hidden_layer_sizes": (8, 1.5)}, "positive integers"),
        ({"n_components": 0}, "n_components"),
        ({"negative_slope": 0.0}, "negative_slope"),
        ({"device": "abacus"}, "device='abacus' cannot be used"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_wrong_options_are_named(change, match):
    with pytest.raises(ValueError, match=match):
        AutoencoderEmbedder(**{**FAST, **change}).fit(X)


def test_bad_values_are_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:10, :3], columns=["a", "b", "c"])
    frame.loc[4, "b"] = np.nan
    with pytest.raises(
        ValueError, match=r"contains NaN: first in column 1 \('b'\), row 4"
    ):
        AutoencoderEmbedder(**FAST).fit(frame)
    with pytest.raises(
        ValueError, match=r"infinity \(-inf\): first in column 0, row 2"
    ):
        AutoencoderEmbedder(**FAST).fit([[0.0], [1.0], [-np.inf]])


def test_wrong_width_of_latents(fitted):
    with pytest.raises(ValueError, match=r"Z must have 4 columns.*\(2, 3\)"):
        fitted.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"Z must have 4 columns"):
        fitted.decoder_jacobian(np.zeros((2, 3)))


def test_pipeline_and_grid_search_agree_for_any_n_jobs():
    pipeline = Pipeline([("ae", AutoencoderEmbedder(**FAST)), ("ica", WhitenICA())])
    grid = {"ae__n_components": [2, 3]}
    scores = [
        GridSearchCV(pipeline, grid, cv=2, n_jobs=n_jobs)
        .fit(X[:300])
        .cv_results_["mean_test_score"]
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])


def test_a_pipeline_finds_its_fits_again(tmp_path, monkeypatch):
    """Clones of one embedder have one hash, fitted or not, so a cache knows them."""
    fits, fit = [], AutoencoderEmbedder.fit

    def counted(self, X, y=None):
        fits.append(1)
        return fit(self, X)

    monkeypatch.setattr(AutoencoderEmbedder, "fit", counted)
    rows = []
    for _ in range(2):
        steps = [("ae", AutoencoderEmbedder(2, **FAST)), ("ica", WhitenICA())]
        pipeline = Pipeline(steps, memory=str(tmp_path)).fit(X[:200])
        rows.append(pipeline.transform(X[:200]))
    assert len(fits) == 1
    np.testing.assert_array_equal(*rows)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(container):
    pytest.importorskip(container)
    embedder = AutoencoderEmbedder(2, **FAST).set_output(transform=container)
    frame = embedder.fit_transform(X)
    names = ["autoencoderembedder0", "autoencoderembedder1"]
    assert list(frame.columns) == names
    assert embedder.get_feature_names_out().tolist() == names
