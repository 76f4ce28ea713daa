import pickle

import joblib
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linear_sum_assignment

from skident import WhitenICA
from skident.datasets import make_nonlinear_mixture


def make(n_samples=400, n_factors=3, n_features=7, **options):
    options = {"random_state": 0, "return_info": True, **options}
    return make_nonlinear_mixture(n_samples, n_factors, n_features, **options)


def singular_values(mixing, y):
    return np.linalg.svd(mixing.jacobian(y), compute_uv=False)


SHAPES = [(1, 1), (1, 4), (2, 2), (3, 7), (8, 8)]


@pytest.mark.parametrize("n_layers", [1, 2, 5])
@pytest.mark.parametrize("bi_lipschitz", [1.0, 1.05, 1.5, 4.0, 1000.0])
@pytest.mark.parametrize("n_factors, n_features", SHAPES)
def test_constant_is_kept_and_reached(n_factors, n_features, bi_lipschitz, n_layers):
    _, y, info = make(
        n_factors=n_factors, n_features=n_features, bi_lipschitz=bi_lipschitz,
        n_layers=n_layers,
    )  # fmt: skip
    # Beyond the factors too.
    points = np.concatenate([y, 100 * y, info.extremes])
    values = singular_values(info.map, points)
    assert values.max() <= bi_lipschitz * (1 + 1e-9)
    assert values.min() >= (1 - 1e-9) / bi_lipschitz
    reached = singular_values(info.map, info.extremes)
    np.testing.assert_allclose(reached[0], bi_lipschitz, rtol=1e-9)
    np.testing.assert_allclose(reached[1], 1 / bi_lipschitz, rtol=1e-9)
    assert abs(info.extremes).max() < np.sqrt(3)


@pytest.mark.parametrize("seed", range(5))
def test_constant_is_nearly_reached_among_the_samples(seed):
    _, y, info = make(2000, bi_lipschitz=1.5, random_state=seed)
    values = singular_values(info.map, y)
    share = np.log(values.max() / values.min()) / (2 * np.log(1.5))
    assert 0.9 < share <= 1


def test_distances_keep_the_constant():
    X, y, _ = make(1000, bi_lipschitz=1.3)
    inside, outside = (
        np.linalg.norm(a[:, None] - a, axis=2)[np.triu_indices(1000, 1)] for a in (y, X)
    )
    ratio = outside / inside
    assert ratio.max() <= 1.3
    assert ratio.min() >= 1 / 1.3
    assert ratio.max() / ratio.min() > 1.2


@pytest.mark.parametrize("n_layers", [1, 3])
def test_jacobian_agrees_with_differences(n_layers):
    _, y, info = make(50, bi_lipschitz=3.0, n_layers=n_layers)
    jacobian, step = info.map.jacobian(y), 1e-5
    for j in range(3):
        move = step * np.eye(3)[j]
        difference = (info.map(y + move) - info.map(y - move)) / (2 * step)
        np.testing.assert_allclose(jacobian[:, :, j], difference, atol=1e-8)


@pytest.mark.parametrize("bi_lipschitz", [1.0, 1.2, 30.0, 1000.0])
@pytest.mark.parametrize("n_factors, n_features", SHAPES)
def test_inverse_finds_the_factors(n_factors, n_features, bi_lipschitz):
    X, y, info = make(
        n_factors=n_factors, n_features=n_features, bi_lipschitz=bi_lipschitz,
        distribution="laplace",
    )  # fmt: skip
    np.testing.assert_array_equal(info.map(y).shape, X.shape)
    np.testing.assert_allclose(info.map(y), X, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(info.map.inverse(X), y, atol=1e-9 * bi_lipschitz)


def test_inverse_is_the_nearest_point():
    X, y, info = make()
    beside = np.random.default_rng(0).normal(size=X.shape)
    beside -= beside @ info.map.embedding @ info.map.embedding.T
    np.testing.assert_allclose(info.map.inverse(X + beside), y, atol=1e-9)


def test_one_is_an_isometry():
    X, y, info = make(bi_lipschitz=1.0, n_features=9)
    np.testing.assert_allclose(
        np.linalg.norm(X[:-1] - X[1:], axis=1), np.linalg.norm(y[:-1] - y[1:], axis=1)
    )
    matrix = info.map.jacobian(y[:1])[0]
    np.testing.assert_allclose(X - X[0], (y - y[0]) @ matrix.T, atol=1e-12)


def best_correlations(y, z):
    table = abs(np.corrcoef(y.T, z.T)[: y.shape[1], y.shape[1] :])
    return table[linear_sum_assignment(-table)].mean()


def test_ica_alone_fails_by_more_the_larger_the_constant():
    errors, nonlinear = [], []
    for bi_lipschitz in (1.0, 1.2, 2.0, 4.0):
        X, y, _ = make(5000, n_features=3, bi_lipschitz=bi_lipschitz)
        z = WhitenICA(random_state=0).fit_transform(X)
        errors.append(1 - best_correlations(y, z))
        design = np.column_stack([X, np.ones(len(X))])
        fit = design @ np.linalg.lstsq(design, y, rcond=None)[0]
        nonlinear.append(((y - fit) ** 2).mean())
    # No linear map undoes it, and none that permutes is enough.
    assert nonlinear[0] < 1e-20
    assert (np.diff(nonlinear) > 0.002).all()
    assert nonlinear[-1] > 0.08
    assert errors[0] < 1e-3
    assert errors[0] < errors[1] < errors[2] < errors[3]
    assert errors[3] > 0.04


def test_every_feature_depends_on_every_factor():
    _, y, info = make(bi_lipschitz=1.5)
    assert abs(info.map.jacobian(y)).max(axis=0).min() > 0.05


CDFS = {
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)).cdf,
    "laplace": stats.laplace(scale=np.sqrt(0.5)).cdf,
    "exponential": stats.expon(-1).cdf,
    "gaussian": stats.norm.cdf,
}


@pytest.mark.parametrize("distribution", CDFS)
def test_factors_are_independent_with_unit_variance(distribution):
    _, y, _ = make(20_000, distribution=distribution)
    n = len(y)
    for column in y.T:
        assert stats.kstest(column, CDFS[distribution]).pvalue > 1e-7
        spread = (column**2).std() / np.sqrt(n)
        assert abs((column**2).mean() - 1) < 5.4 * spread
        # Non-Gaussian, but for the control.
        assert (stats.normaltest(column).pvalue < 1e-7) == (distribution != "gaussian")
    for function in (np.asarray, np.abs, np.square):
        table = np.corrcoef(function(y).T)
        assert abs(table[np.triu_indices(3, 1)]).max() < 5.4 / np.sqrt(n)


def test_row_does_not_depend_on_how_many_are_asked():
    X, y, _ = make(700, noise=0.1, random_state=5)
    for n in (1, 255, 256, 257, 600):
        few, few_y, _ = make(n, noise=0.1, random_state=5)
        np.testing.assert_array_equal(few, X[:n])
        np.testing.assert_array_equal(few_y, y[:n])


def test_same_for_any_number_of_jobs(monkeypatch):
    expected = make(1500, noise=0.1)
    monkeypatch.setattr("skident.datasets._chains.CALL_NS", 1e3)
    for n_jobs in (1, 2, -1):
        with joblib.parallel_config(backend="threading"):
            got = make(1500, noise=0.1, n_jobs=n_jobs)
        for a, b in zip(got[:2], expected[:2], strict=True):
            np.testing.assert_array_equal(a, b)


def test_map_depends_on_the_seed_only():
    _, y, info = make(10)
    for changes in ({"n_samples": 900}, {"noise": 1.0}, {"distribution": "laplace"}):
        _, _, other = make(**{"n_samples": 10, **changes})
        np.testing.assert_array_equal(other.map(y), info.map(y))
    assert (make(10, random_state=1)[2].map(y) != info.map(y)).all()


def test_noise_is_added():
    clean, y, _ = make(3000)
    noisy, same_y, _ = make(3000, noise=0.5)
    np.testing.assert_array_equal(y, same_y)
    z = (noisy - clean).ravel() / 0.5
    assert abs(z.mean()) < 5.4 / np.sqrt(z.size)
    assert abs(z.var() - 1) < 5.4 * np.sqrt(2 / z.size)


def test_outputs(tmp_path):
    assert len(make(5, return_info=False)) == 2
    out = np.memmap(tmp_path / "X", np.float64, "w+", shape=(600, 7))
    X, _, info = make(600, out=out)
    assert X is out
    np.testing.assert_array_equal(out, make(600)[0])
    copy = pickle.loads(pickle.dumps(info))
    np.testing.assert_array_equal(copy.map(info.extremes), info.map(info.extremes))


def test_random_state_of_each_kind():
    X, *_ = make(20)
    assert (X != make(20, random_state=1)[0]).all()
    assert (X != make(20, random_state=None)[0]).all()
    states = [np.random.RandomState(3), np.random.RandomState(3)]
    first, second = (make(20, random_state=s)[0] for s in states)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"n_samples": 0}, "'n_samples' parameter"),
        ({"n_factors": 0}, "'n_factors' parameter"),
        ({"n_features": 2}, "n_features must be at least n_factors=3, got 2"),
        ({"bi_lipschitz": 0.99}, "'bi_lipschitz' parameter"),
        ({"bi_lipschitz": 1e4}, "'bi_lipschitz' parameter"),
        ({"distribution": "cauchy"}, "'distribution' parameter"),
        ({"n_layers": 0}, "'n_layers' parameter"),
        ({"noise": -0.1}, "'noise' parameter"),
        ({"out": np.empty((400, 7), np.float32)}, "out must have .* float64"),
        ({"random_state": -1}, "'random_state' parameter"),
    ],
)
def test_bad_input_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


@pytest.mark.parametrize("name", ["__call__", "jacobian", "inverse"])
def test_map_names_a_wrong_shape(name):
    mixing = make(5)[2].map
    with pytest.raises(ValueError, match=r"must have shape \(n, [37]\), got \(4, 2\)"):
        getattr(mixing, name)(np.zeros((4, 2)))
