"""WhitenICA: what a user relies on."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skident import WhitenICA
from skident.metrics import amari_distance


def planted(seed, n=3000, p=4):
    """Independent sources of alternating tails, and a mixing matrix."""
    rng = np.random.default_rng(seed)
    S = np.where(np.arange(p) % 2, rng.uniform(-1, 1, (n, p)), rng.laplace(size=(n, p)))
    A = rng.standard_normal((p, p))
    return S @ A.T + rng.standard_normal(p), A


def quiet(estimator, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimator.fit(X)


@pytest.mark.parametrize("contrast", ["logcosh", "exp", "cube"])
@pytest.mark.parametrize("seed", range(3))
def test_planted_sources_and_unit_variance(seed, contrast):
    X, A = planted(seed, n=10_000)
    ica = WhitenICA(contrast=contrast).fit(X)
    # An angle has standard error about 2 / sqrt(10,000); the bound is over 3 of them.
    assert amari_distance(ica.mixing_, A) < 0.07
    Y = ica.transform(X)
    np.testing.assert_allclose(Y.std(axis=0), 1.0, rtol=1e-10)
    np.testing.assert_allclose(np.cov(Y.T, bias=True), np.eye(4), atol=1e-10)


def test_attributes_are_one_map():
    X, _ = planted(0)
    ica = WhitenICA().fit(X)
    np.testing.assert_allclose(
        ica.transform(X), (X - ica.mean_) @ ica.components_.T, atol=1e-12
    )
    np.testing.assert_allclose(ica.rotation_ @ ica.rotation_.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(ica.rotation_ @ ica.whitening_, ica.components_)
    np.testing.assert_allclose(ica.components_ @ ica.mixing_, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(ica.explained_variance_.sum(), X.var(axis=0).sum())
    assert ica.converged_ and ica.criterion_ <= ica.tol and ica.n_iter_ >= 1
    assert ica.rank_ == ica.n_components_ == 4
    assert not hasattr(ica, "stability_")


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-12, 1e-3, 1.0, 1e12]),
    shift=st.floats(-10, 10),
)
def test_equivariance_under_affine_maps(seed, scale, shift):
    """Sources do not notice an invertible map of the input but in order and sign."""
    X, _ = planted(seed, n=800, p=3)
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    B = Q @ np.diag([1.0, 3.0, 10.0]) @ Q[::-1] * scale
    one = WhitenICA(tol=1e-8).fit(X).transform(X)
    other = (
        WhitenICA(tol=1e-8).fit(X @ B + shift * scale).transform(X @ B + shift * scale)
    )
    match = np.abs(one.T @ other) / len(X)
    np.testing.assert_allclose(np.sort(match, axis=None)[-3:], 1.0, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), p=st.integers(1, 6), rank=st.integers(1, 6))
def test_round_trip_within_any_rank(seed, p, rank):
    rng = np.random.default_rng(seed)
    rank = min(rank, p)
    X = rng.laplace(size=(100, rank)) @ rng.standard_normal((rank, p))
    X = (X + 1.0) * 10.0 ** rng.integers(-12, 13, p)
    ica = quiet(WhitenICA(), X)
    Y = ica.transform(X)
    assert np.isfinite(Y).all() and Y.shape == (100, ica.rank_)
    assert ica.rank_ <= rank
    back = ica.inverse_transform(Y)
    # Exact but for directions below rank_tol, which are cut.
    assert np.all(np.abs(back - X) <= 1e-5 * X.std(axis=0))


def test_order_and_sign_are_canonical():
    X, _ = planted(1)
    ica = WhitenICA().fit(X)
    assert np.all(np.diff(ica.explained_variance_) < 0)
    peak = np.abs(ica.mixing_).argmax(axis=0)
    assert np.all(ica.mixing_[peak, range(4)] > 0)


@pytest.mark.parametrize("seed", range(3))
def test_seeds_row_order_and_float_type_agree(seed):
    X, _ = planted(5, n=4000)
    X = X.astype(np.float32)
    reference = WhitenICA().fit(X.astype(np.float64)).mixing_
    shuffled = np.random.default_rng(seed).permutation(X)
    for other in (
        WhitenICA(random_state=seed, n_restarts=3).fit(X),
        WhitenICA(random_state=seed).fit(shuffled),
        WhitenICA(whiten_solver="svd").fit(X),
    ):
        # tol=1e-4 leaves an angle of tol / curvature, here below 1e-3.
        np.testing.assert_allclose(other.mixing_, reference, atol=2e-3)


def test_float_types():
    X, _ = planted(0, n=500)
    X = np.clip(np.round(X * 8), -127, 127)
    reference = WhitenICA().fit(X).components_
    for dtype in (np.float32, np.float16, np.int8):
        ica = WhitenICA().fit(X.astype(dtype))
        np.testing.assert_array_equal(ica.components_, reference)
    Y = ica.transform(X.astype(np.float32))
    assert Y.dtype == np.float32
    assert ica.inverse_transform(Y).dtype == np.float32
    assert ica.transform(X).dtype == np.float64


def test_bit_equal_fits_and_persistence():
    X, _ = planted(0)
    a, b = (WhitenICA(n_restarts=3, random_state=0).fit(X) for _ in range(2))
    assert joblib.hash(a) == joblib.hash(b)
    assert joblib.hash(pickle.loads(pickle.dumps(a))) == joblib.hash(a)
    np.testing.assert_array_equal(clone(a).fit(X).components_, a.components_)


def test_same_fixed_point_as_fastica():
    X, _ = planted(3)
    ours = WhitenICA(tol=1e-8).fit(X)
    theirs = FastICA(tol=1e-14, max_iter=1000, random_state=0).fit(X)
    match = np.abs(ours.transform(X).T @ theirs.transform(X)) / len(X)
    np.testing.assert_allclose(np.sort(match, axis=None)[-4:], 1.0, atol=1e-6)


def test_rank_warning_is_one_and_names_constant_columns():
    X, _ = planted(0, n=300, p=3)
    frame = pd.DataFrame(np.c_[X, X[:, 0] - X[:, 1], np.full(300, 7.0)])
    frame.columns = ["a", "b", "c", "difference", "fixed"]
    with pytest.warns(UserWarning, match=r"rank 3 of 5.*column 4 \('fixed'\)") as seen:
        ica = WhitenICA(n_components=4).fit(frame)
    assert len(seen) == 1 and "n_components=4 is cut to 3" in str(seen[0].message)
    assert ica.rank_ == ica.n_components_ == 3
    back = ica.inverse_transform(ica.transform(frame))
    np.testing.assert_allclose(back, frame, atol=1e-9)


def test_fewer_rows_than_columns():
    X = np.random.default_rng(0).standard_normal((6, 20))
    with pytest.warns(UserWarning, match="rank 5 of 20"):
        ica = WhitenICA().fit(X)
    np.testing.assert_allclose(ica.inverse_transform(ica.transform(X)), X, atol=1e-9)


def test_number_of_components():
    X, _ = planted(0)
    variances = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    for k in (1, 2, 3):
        ica = WhitenICA(n_components=k).fit(X)
        assert ica.n_components_ == k and ica.transform(X).shape == (3000, k)
        assert ica.explained_variance_.sum() == pytest.approx(variances[:k].sum())
        part = variances[:k].sum() / variances.sum()
        assert WhitenICA(n_components=part - 1e-6).fit(X).n_components_ == k


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[0.0, 1], [np.nan, 2], [1, 1]]), "NaN.*column 0.*row 1"),
        (np.array([[0.0, 1], [1, np.inf], [1, 1]]), "infinity.*column 1.*row 1"),
        (np.full((4, 2), 3.0), r"constant \(column 0 is 3\)"),
        (np.ones((1, 3)), "minimum of 2"),
        (sparse.csr_array(np.eye(3)), "sparse"),
        (np.ones(3), "1D array"),
    ],
)
def test_bad_input(X, message):
    with pytest.raises(ValueError, match=message):
        WhitenICA().fit(X)


def test_bad_widths_and_parameters():
    X, _ = planted(0, n=100)
    ica = WhitenICA(n_components=2).fit(X)
    with pytest.raises(ValueError, match="3 features, but WhitenICA is expecting 4"):
        ica.transform(X[:, :3])
    with pytest.raises(ValueError, match=r"\(100, 4\), but inverse_transform needs 2"):
        ica.inverse_transform(X)
    with pytest.raises(ValueError, match="n_components=5 is more than the 4"):
        WhitenICA(n_components=5).fit(X)
    with pytest.raises(ValueError, match="contrast"):
        WhitenICA(contrast="tanh").fit(X)


def test_one_column():
    X = np.random.default_rng(0).laplace(size=(50, 1)) * 3 + 1
    ica = WhitenICA(n_restarts=2, random_state=0).fit(X)
    np.testing.assert_allclose(ica.mixing_, [[X.std()]])
    np.testing.assert_allclose(ica.transform(X), (X - X.mean()) / X.std())


def test_non_convergence_is_visible():
    X, _ = planted(0, n=200)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        ica = WhitenICA(max_iter=1, tol=1e-12).fit(X)
    assert not ica.converged_ and ica.n_iter_ == 1 and ica.criterion_ > 1e-12


def test_stability_tells_sources_from_gaussian_noise():
    rng = np.random.default_rng(0)
    S = np.c_[rng.laplace(size=(9000, 2)), rng.standard_normal((9000, 3))]
    # Sources have variances 8 and 4.5, noise 1: it is in the last three places.
    X = S * [2.0, 1.5, 1, 1, 1]
    with pytest.warns(UserWarning, match=r"component\(s\) .*2.*Gaussian"):
        ica = WhitenICA(n_restarts=6, random_state=0).fit(X)
    assert np.all(ica.stability_[:2] > 0.95)
    assert np.all(ica.stability_[2:] < 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = ica.set_params(n_restarts=1).fit(X)
    assert not hasattr(again, "stability_")


def test_score_is_the_log_density_of_a_unit_mass():
    """The density integrates to one over the plane of the data."""
    X, _ = planted(0, n=2000, p=2)
    for n_components in (1, 2):
        ica = WhitenICA(n_components=n_components).fit(X)
        reach, n = 14 * np.abs(X - X.mean(0)).max(), 1601
        line = np.linspace(-reach, reach, n)
        grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2) + X.mean(axis=0)
        mass = np.exp(ica.score_samples(grid)).sum() * (line[1] - line[0]) ** 2
        assert mass == pytest.approx(1.0, abs=0.01)
    assert ica.score(X) == pytest.approx(ica.score_samples(X).mean())


def test_score_prefers_the_true_rotation_and_changes_with_units():
    X, _ = planted(0)
    fitted = WhitenICA().fit(X)
    turned = clone(fitted).fit(X)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    turned.components_ = turn @ fitted.components_
    assert fitted.score(X) > turned.score(X)
    scaled = WhitenICA().fit(10 * X)
    assert scaled.score(10 * X) == pytest.approx(
        fitted.score(X) - 4 * np.log(10), abs=1e-6
    )


def test_grid_search_finds_the_number_of_sources():
    rng = np.random.default_rng(0)
    S = rng.laplace(size=(1500, 2))
    X = S @ rng.standard_normal((2, 6)) * 3 + 0.3 * rng.standard_normal((1500, 6))
    search = GridSearchCV(WhitenICA(), {"n_components": [1, 2, 4]}, cv=3, n_jobs=2)
    assert search.fit(X).best_params_ == {"n_components": 2}


def test_pipeline_and_frames():
    X, _ = planted(0, n=200)
    y = X @ np.arange(4.0)
    pipeline = make_pipeline(WhitenICA(), LinearRegression()).fit(X, y)
    assert pipeline.score(X, y) == pytest.approx(1.0)
    frame = pd.DataFrame(X, columns=list("abcd"), index=range(100, 300))
    ica = WhitenICA(n_components=2).set_output(transform="pandas").fit(frame)
    out = ica.transform(frame)
    assert list(out.columns) == ["whitenica0", "whitenica1"]
    assert list(out.index) == list(frame.index)
    out = ica.set_output(transform="polars").transform(frame)
    assert isinstance(out, pl.DataFrame) and out.columns == ["whitenica0", "whitenica1"]
    batches = np.concatenate(
        [ica.transform(frame[k : k + 7]) for k in range(0, 200, 7)]
    )
    np.testing.assert_allclose(batches, out.to_numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Not identified")
def test_memory_map_and_random_state_instance(tmp_path):
    X, _ = planted(0, n=3000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        WhitenICA().fit(mapped).components_, WhitenICA().fit(X).components_
    )
    state = np.random.RandomState(0)
    WhitenICA(n_restarts=2, random_state=state).fit(X)
    assert state.randint(10**9) != np.random.RandomState(0).randint(10**9)


@pytest.mark.parametrize("contrast", ["logcosh", "exp", "cube"])
@pytest.mark.parametrize("kind", ["cauchy", "outlier", "ties", "rare"])
def test_unkind_data_give_finite_answers(contrast, kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    if kind == "cauchy":
        X = rng.standard_cauchy((400, 4))
    elif kind == "outlier":
        X[0] = 1e12
    elif kind == "ties":
        X = np.round(X)
    else:
        X[:, 0] = np.arange(400) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ica = WhitenICA(contrast=contrast).fit(X)
    Y = ica.transform(X)
    assert np.isfinite(Y).all() and np.isfinite(ica.score_samples(X)).all()
    np.testing.assert_allclose(Y.T @ Y / 400, np.eye(Y.shape[1]), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_planted_sources_for_many_seeds(seed):
    X, A = planted(seed + 1000, n=10_000, p=8)
    ica = WhitenICA().fit(X)
    assert ica.converged_
    # Standard error of an angle about 1.5 / sqrt(10,000).
    assert amari_distance(ica.mixing_, A) < 0.06


def test_sub_gaussian_tells_light_tails_from_heavy_ones():
    rng = np.random.default_rng(0)
    sources = np.c_[3 * rng.uniform(-1, 1, 4000), rng.laplace(size=(4000, 2))]
    ica = WhitenICA().fit(sources)
    heaviest = np.abs(ica.components_).argmax(axis=1)
    np.testing.assert_array_equal(ica.sub_gaussian_, heaviest == 0)
