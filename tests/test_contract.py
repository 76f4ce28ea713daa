"""The contract on inputs and randomness, for every estimator at once."""

import inspect
import pickle

import joblib
import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import skident
from skident import (
    AutoencoderEmbedder,
    CondTotalCorrelation,
    HopfieldPatternDecoder,
    IdentifiabilityStudy,
    LayerEmbedder,
    LinearAligner,
    MeanFieldVAE,
    PermutationAligner,
    RigidAligner,
    WhitenICA,
)
from skident.metrics import alignment_errors

SMALL = {"hidden_layer_sizes": (8,), "max_epochs": 3}
VAE = MeanFieldVAE(**SMALL)
ESTIMATORS = [
    AutoencoderEmbedder(**SMALL),
    CondTotalCorrelation(VAE, n_resamples=100),
    HopfieldPatternDecoder(VAE, min_confidence=0.3),
    IdentifiabilityStudy(WhitenICA(), n_runs=2),
    LayerEmbedder(torch.nn.Identity(), ""),
    LinearAligner(),
    MeanFieldVAE(**SMALL),
    PermutationAligner(),
    RigidAligner(),
    WhitenICA(),
]
TWO_VALUED = (CondTotalCorrelation, HopfieldPatternDecoder, MeanFieldVAE)
SUPERVISED = (LinearAligner, PermutationAligner, RigidAligner)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
every = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def new(estimator):
    estimator = clone(estimator)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    return estimator


def rows(estimator, n=60, width=5, seed=0):
    """Correlated rows that the estimator takes: two-valued or real."""
    rng = np.random.default_rng(seed)
    X = rng.laplace(size=(n, width)) + rng.standard_normal((n, 1))
    return (X > 0).astype(float) if isinstance(estimator, TWO_VALUED) else X


def fit(estimator, X, y=None):
    if isinstance(estimator, SUPERVISED) and y is None:
        y = np.random.default_rng(1).standard_normal((np.shape(X)[0], 5))
    return estimator.fit(X, y)


def answer(estimator, X):
    """Everything that the estimator says of rows, as one array."""
    name = "transform" if hasattr(estimator, "transform") else "score"
    return np.asarray(getattr(estimator, name)(X))


def test_every_public_estimator_is_here():
    public = {
        name
        for name in skident.__all__
        if inspect.isclass(getattr(skident, name))
        and hasattr(getattr(skident, name), "fit")
    }
    assert public == {type(estimator).__name__ for estimator in ESTIMATORS}


@every
def test_two_fits_with_one_seed_are_equal_and_global_generators_untouched(estimator):
    X = rows(estimator)
    torch_state = torch.random.get_rng_state()
    first, second = (fit(new(estimator), X) for _ in range(2))
    np.testing.assert_array_equal(answer(first, X), answer(second, X))
    assert joblib.hash(first) == joblib.hash(second)
    # numpy's generator is watched by a fixture of every test
    assert torch.equal(torch.random.get_rng_state(), torch_state)


@every
def test_no_seed_leaves_global_generators_untouched_too(estimator):
    torch_state = torch.random.get_rng_state()
    fit(clone(estimator), rows(estimator))
    # numpy's generator is watched by a fixture of every test
    assert torch.equal(torch.random.get_rng_state(), torch_state)


@every
def test_random_state_instance_advances(estimator):
    if "random_state" not in estimator.get_params():
        pytest.skip("nothing random")
    source = np.random.RandomState(0)
    first = fit(clone(estimator).set_params(random_state=source), rows(estimator))
    after = source.get_state()[2]
    assert (
        after > 0
        or source.get_state()[1][0] != np.random.RandomState(0).get_state()[1][0]
    )
    assert np.isfinite(answer(first, rows(estimator))).all()


@every
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("container", ["array", "pandas", "polars"])
def test_what_is_not_finite_is_named_with_column_and_row(estimator, value, container):
    X = rows(estimator)
    fitted = fit(new(estimator), X)
    bad = X.copy()
    bad[7, 3] = value
    where = "column 3"
    if container != "array":
        frames = pytest.importorskip(container)
        bad = frames.DataFrame({f"c{k}": bad[:, k] for k in range(5)})
        where = r"column 3 \('c3'\)"
    what = "NaN" if np.isnan(value) else "infinity"
    match = rf"contains {what}.*{where}, row 7"
    with pytest.raises(ValueError, match=match):
        fit(new(estimator), bad)
    if container == "array":
        with pytest.raises(ValueError, match=match):
            answer(fitted, bad)


@every
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_array])
def test_sparse_is_refused_with_a_remedy(estimator, kind):
    with pytest.raises(ValueError, match=r"sparse.*toarray"):
        fit(new(estimator), kind(rows(estimator)))


@every
def test_complex_and_text_are_refused(estimator):
    X = rows(estimator)
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        fit(new(estimator), X + 1j)
    with pytest.raises(ValueError, match=r"could not convert|[Cc]annot|string"):
        fit(new(estimator), np.full(X.shape, "up"))


@every
@pytest.mark.parametrize("width", [1, 4, 6])
def test_wrong_width_is_named(estimator, width):
    fitted = fit(new(estimator), rows(estimator))
    with pytest.raises(ValueError, match=rf"X has {width} features.*5 features"):
        answer(fitted, rows(estimator, width=width))


@every
@pytest.mark.parametrize("shape", [(0, 5), (5,), (4, 3, 2), (5, 0)])
def test_wrong_shapes_are_refused(estimator, shape):
    with pytest.raises(ValueError, match=r"sample|dim|array|feature"):
        fit(new(estimator), np.ones(shape), np.ones((max(shape[0], 1), 5)))


@every
@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_images_are_refused_with_a_remedy(estimator, kind):
    images = kind(np.ones((8, 3, 2)))
    with pytest.raises(ValueError, match=r"pass X.reshape\(len\(X\), -1\)"):
        fit(new(estimator), images)


@every
def test_one_row_is_refused_with_its_number(estimator):
    if isinstance(estimator, LayerEmbedder):
        pytest.skip("learns nothing from rows")
    with pytest.raises(ValueError, match=r"1 sample|n_samples"):
        fit(new(estimator), rows(estimator)[:1])


@every
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_few_rows_work_or_are_refused_with_the_least_number(estimator, n):
    X = rows(estimator)[:n]
    try:
        fitted = fit(new(estimator), X)
    except ValueError as error:
        assert "minimum of" in str(error) or "at least" in str(error)
    else:
        assert np.isfinite(answer(fitted, rows(estimator))).all()


@every
@pytest.mark.parametrize(
    "kind", ["constant", "all constant", "duplicate", "one column"]
)
def test_degenerate_columns_give_finite_answers(estimator, kind):
    X = rows(estimator)
    if kind == "constant":
        X[:, 2] = 1.0
    elif kind == "all constant":
        X[:] = 1.0
    elif kind == "duplicate":
        X[:, 2] = X[:, 1]
    else:
        X = X[:, :1]
    try:
        fitted = fit(new(estimator), X)
    except ValueError as error:
        assert kind == "all constant" and "constant" in str(error)
    else:
        assert np.isfinite(answer(fitted, X)).all()


@every
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "int8", "uint8", "int64", "bool"]
)
def test_equal_values_of_any_type_give_the_same_answer(estimator, dtype):
    X = rows(estimator)
    if not isinstance(estimator, TWO_VALUED):
        X = np.clip(np.abs(4 * X).round(), 0, 100)
    if dtype == "bool":
        X = (X > np.median(X)).astype(float)
    expected = answer(fit(new(estimator), X), X)
    typed = X.astype(dtype)
    result = answer(fit(new(estimator), typed), typed)
    # the solving is in float64 for every type; float32 answers are rounded to it
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    assert result.dtype.kind == "f"


@every
@pytest.mark.parametrize("kind", ["tensor", "memmap", "read-only", "strided", "list"])
def test_containers_of_the_same_values_give_the_same_answer(estimator, kind, tmp_path):
    X = rows(estimator)
    expected = answer(fit(new(estimator), X), X)
    if kind == "tensor":
        same = torch.from_numpy(X)
    elif kind == "memmap":
        same = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape)
        same[:] = X
    elif kind == "read-only":
        same = X.copy()
        same.setflags(write=False)
    elif kind == "strided":
        same = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    else:
        same = X.tolist()
    result = answer(fit(new(estimator), same), same)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-7)


@every
def test_gradient_carrying_tensor_is_taken(estimator):
    X = torch.from_numpy(rows(estimator)).requires_grad_()
    assert np.isfinite(answer(fit(new(estimator), X), X)).all()


@every
def test_tensor_on_another_device_is_refused_by_name(estimator):
    X = rows(estimator)
    far = torch.from_numpy(X).to("meta")
    fitted = fit(new(estimator), X)
    for refused in (lambda: fit(new(estimator), far), lambda: answer(fitted, far)):
        with pytest.raises(ValueError, match=r"X is a tensor on meta: pass X\.cpu\(\)"):
            refused()


@every
def test_pickle_and_skops_give_equal_answers_and_hashes(estimator):
    io = pytest.importorskip("skops.io")
    if isinstance(estimator, LayerEmbedder):
        pytest.skip("a module is code: see its own tests")
    X = rows(estimator)
    fitted = fit(new(estimator), X)
    dumped = io.dumps(fitted)
    untrusted = io.get_untrusted_types(data=dumped)
    assert all(name.startswith("skident.") for name in untrusted), untrusted
    for loaded in (
        pickle.loads(pickle.dumps(fitted)),
        io.loads(dumped, trusted=untrusted),
    ):
        np.testing.assert_array_equal(answer(loaded, X), answer(fitted, X))
    assert joblib.hash(pickle.loads(pickle.dumps(fitted))) == joblib.hash(fitted)


@every
def test_transform_of_rows_one_by_one(estimator):
    """Equal to 1e-6 of the largest answer, however rows are batched."""
    X = rows(estimator)
    fitted = fit(new(estimator), X)
    if not hasattr(fitted, "transform"):
        pytest.skip("no answer a row")
    whole = fitted.transform(X)
    single = np.concatenate([fitted.transform(row[None]) for row in X])
    error = np.abs(single - whole).max(initial=0.0)
    assert error <= 1e-6 * np.abs(whole).max(initial=1.0)


@every
def test_text_is_named_with_column_and_row(estimator):
    pd = pytest.importorskip("pandas")
    text = rows(estimator).astype(object)
    text[3, 2] = "up"
    for bad in (text, pd.DataFrame(text)):
        with pytest.raises(ValueError, match=r"column 2.*row 3.*'up'"):
            fit(new(estimator), bad)


@every
def test_rows_of_other_length_are_named(estimator):
    ragged = rows(estimator).tolist()
    ragged[3] = ragged[3][:2]
    with pytest.raises(ValueError, match=r"X is no rect.*entry 3 has a list of 2"):
        fit(new(estimator), ragged, rows(estimator))


@every
def test_unfitted_use_is_named(estimator):
    with pytest.raises(NotFittedError):
        answer(new(estimator), rows(estimator))


@every
def test_unknown_parameter_value_is_named(estimator):
    for name in estimator.get_params(deep=False):
        if name in {"estimator", "groups"}:
            continue
        wrong = new(estimator).set_params(**{name: object()})
        with pytest.raises((ValueError, TypeError), match=name):
            fit(wrong, rows(estimator))


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3"])
def test_counts_are_checked(wrong):
    X = rows(VAE)
    vae = fit(new(VAE), X)
    decoder = fit(new(HopfieldPatternDecoder(VAE)), X)
    for model in (vae, decoder):
        with pytest.raises(ValueError, match="n_samples must be an integer"):
            model.sample(wrong)
        with pytest.raises(ValueError, match="n_draws must be an integer"):
            model.score_samples(X, n_draws=wrong)
    with pytest.raises(ValueError, match="n_draws must be an integer"):
        vae.elbo(X, n_draws=wrong)


@pytest.mark.parametrize("kind", [CondTotalCorrelation, HopfieldPatternDecoder])
def test_estimator_without_the_methods_is_refused_before_it_is_trained(kind):
    with pytest.raises(TypeError, match=r"has no sample_posterior.*use a MeanFieldVAE"):
        kind(WhitenICA()).fit(rows(VAE))


@pytest.mark.parametrize(
    "groups, match",
    [
        (np.zeros(5), r"one label a row, shape \(60,\), got shape \(5,\)"),
        (np.zeros((60, 2)), r"one label a row"),
        (np.where(np.arange(60) == 7, np.nan, 1.0), "no label in row 7"),
        ([None if k == 3 else "a" for k in range(60)], "no label in row 3"),
        ([[1], 2] * 30, "groups is no rectangular array: entry 1 has one value"),
        (np.zeros(60), "2 folds need at least as many groups, got 1"),
    ],
)
def test_groups_are_checked(groups, match):
    with pytest.raises(ValueError, match=match):
        CondTotalCorrelation(VAE, n_resamples=100).fit(rows(VAE), groups=groups)
    with pytest.raises(ValueError, match=match):
        alignment_errors(
            rows(WhitenICA()), rows(WhitenICA(), seed=1), groups=groups, cv=2
        )


NETS = [AutoencoderEmbedder(**SMALL), MeanFieldVAE(**SMALL)]
nets = pytest.mark.parametrize("estimator", NETS, ids=lambda e: type(e).__name__)


@nets
def test_fits_in_threads_are_those_in_turn(estimator):
    X = rows(estimator)
    expected = answer(fit(new(estimator).set_params(max_epochs=20), X), X)
    before = torch.random.get_rng_state()
    results = joblib.Parallel(4, prefer="threads")(
        joblib.delayed(
            lambda: answer(fit(new(estimator).set_params(max_epochs=20), X), X)
        )()
        for _ in range(8)
    )
    for result in results:
        np.testing.assert_array_equal(result, expected)
    assert torch.equal(torch.random.get_rng_state(), before)


@every
def test_failed_or_interrupted_refit_leaves_the_fit_before(estimator, monkeypatch):
    X = rows(estimator)
    fitted = fit(new(estimator), X)
    expected, state = answer(fitted, X), set(vars(fitted))
    with pytest.raises(ValueError, match="column 1, row 2"):
        bad = rows(estimator, width=4)
        bad[2, 1] = np.nan
        fit(fitted, bad)
    if isinstance(estimator, (CondTotalCorrelation, HopfieldPatternDecoder)):
        name = "sample_posterior"
        monkeypatch.setattr(MeanFieldVAE, name, lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fit(fitted, rows(estimator, width=4))
        monkeypatch.undo()
    if isinstance(estimator, (AutoencoderEmbedder, MeanFieldVAE)):
        with pytest.raises(FloatingPointError):
            fit(fitted.set_params(learning_rate=1e30), rows(estimator, n=300, width=4))
    if not isinstance(estimator, (*SUPERVISED, WhitenICA)):
        assert set(vars(fitted)) == state
        np.testing.assert_array_equal(answer(fitted, X), expected)


@nets
@pytest.mark.parametrize(
    "change",
    [{"n_components": 3}, {"hidden_layer_sizes": (5,)}, {"learning_rate": "x"}],
)
def test_parameters_set_after_the_fit_do_not_reach_it(estimator, change):
    X = rows(estimator)
    fitted = fit(new(estimator), X)
    expected = answer(fitted, X)
    fitted.set_params(**change)
    for model in (fitted, pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(answer(model, X), expected)
        assert len(model.get_feature_names_out()) == expected.shape[1]
        assert np.isfinite(model.inverse_transform(expected)).all()
        assert np.isfinite(model.score(X))


@every
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_other_methods_do_not_mind_the_output_container(estimator, container):
    pytest.importorskip(container)
    if not hasattr(estimator, "transform"):
        pytest.skip("no transformer")
    X = rows(estimator)
    plain = fit(new(estimator), X)
    framed = fit(new(estimator).set_output(transform=container), X)
    assert type(framed.transform(X)).__module__.startswith(container)
    for name in ("predict", "score_samples"):
        if hasattr(plain, name):
            np.testing.assert_array_equal(
                getattr(framed, name)(X), getattr(plain, name)(X)
            )
    if not hasattr(plain, "score"):
        return
    target = np.random.default_rng(1).standard_normal((60, 5))
    # a frame may lie in memory in another order, and sums round otherwise
    assert framed.score(X, target) == pytest.approx(plain.score(X, target), rel=1e-12)


@every
def test_masked_entries_are_named(estimator):
    X = np.ma.masked_array(rows(estimator), mask=False)
    fit(new(estimator), X)
    X[7, 3] = np.ma.masked
    with pytest.raises(ValueError, match="masked: first in column 3, row 7"):
        fit(new(estimator), X)


@every
def test_times_are_no_numbers(estimator):
    X = rows(estimator).astype("datetime64[s]")
    with pytest.raises(ValueError, match=r"cannot be converted to numbers: first in"):
        fit(new(estimator), X)


def test_bfloat16_tensors_are_taken():
    X = torch.from_numpy(rows(VAE)).to(torch.bfloat16)
    np.testing.assert_array_equal(
        fit(new(VAE), X).transform(X), fit(new(VAE), X.float()).transform(X.float())
    )


def test_latents_beyond_float32_are_named():
    for model in (fit(new(estimator), rows(estimator)) for estimator in NETS):
        width = model.get_feature_names_out().size
        Z = np.zeros((3, width))
        Z[2, 0] = 1e300
        with pytest.raises(ValueError, match=r"column 0, row 2: 1e\+300"):
            model.inverse_transform(Z)


def test_groups_too_large_for_the_folds_are_refused():
    groups = np.repeat([0, 1], [58, 2])
    with pytest.raises(ValueError, match=r"groups leave fold \d only 2 row"):
        CondTotalCorrelation(VAE, n_resamples=100).fit(rows(VAE), groups=groups)


def test_row_k_of_a_sample_does_not_depend_on_how_many_are_drawn():
    X = rows(VAE)
    for model in (fit(new(VAE), X), fit(new(HopfieldPatternDecoder(VAE)), X)):
        np.testing.assert_array_equal(
            model.sample(10, random_state=0), model.sample(100, random_state=0)[:10]
        )
