import pickle
import warnings

import joblib
import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.base import clone
from sklearn.decomposition import FactorAnalysis
from sklearn.model_selection import GridSearchCV, cross_val_score

from skident import MeanFieldVAE
from skident.datasets import make_curie_weiss
from skident.exact import curie_weiss

FAST = {"hidden_layer_sizes": (16,), "max_epochs": 20, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_curie_weiss(2000, 16, temperature=0.8, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return MeanFieldVAE(1, **FAST).fit(data[0])


@pytest.fixture(scope="module")
def encoded(data):
    return MeanFieldVAE(1, objective="importance", **FAST).fit(data[0])


def quadrature_log_likelihood(vae, X):
    """Exact ln p(x) of a model with one latent: an independent implementation."""
    grid = np.linspace(-8, 8, 2001)
    logits = vae.logits(grid[:, None]).astype(float)
    signs = np.where(X == vae.values_[1], 1.0, -1.0)
    log_p = -np.logaddexp(0, -signs[:, None, :] * logits[None]).sum(-1)
    log_prior = -0.5 * grid**2 - 0.5 * np.log(2 * np.pi)
    peak = log_p.max(axis=1, keepdims=True)
    weights = np.exp(log_p - peak + log_prior)
    return np.log(np.trapezoid(weights, grid, axis=1)) + peak[:, 0]


def test_objectives_and_their_choice(data, fitted, encoded):
    assert fitted.objective_ == "quadrature" and encoded.objective_ == "importance"
    assert MeanFieldVAE(4, **FAST).fit(data[0][:99]).objective_ == "importance"
    assert not any("encoder" in name for name in fitted.weights_)
    with pytest.raises(ValueError, match="at most 3 latents, but n_components=4"):
        MeanFieldVAE(4, objective="quadrature").fit(data[0])


def test_quadrature_likelihood_is_exact(fitted, data):
    X = data[0][:300]
    value, error = fitted.score_samples(X, return_std=True)
    np.testing.assert_allclose(value, quadrature_log_likelihood(fitted, X), atol=2e-4)
    assert 0 <= fitted.quadrature_error_ < 1e-3 and error.max() < 1e-2
    np.testing.assert_array_equal(fitted.elbo(X), value)
    assert fitted.score(X) == pytest.approx(value.mean())


def test_elbo_below_importance_sampling_equal_to_exact_likelihood(encoded, data):
    X = data[0][:300]
    exact = quadrature_log_likelihood(encoded, X)
    elbo = encoded.elbo(X)
    # Monte Carlo with common noise: 64 draws leave some 0.2 nats on a row
    assert np.mean(elbo) < np.mean(exact) and np.all(elbo < exact + 0.5)
    value, error = encoded.score_samples(X, n_draws=2000, return_std=True)
    deviation = np.abs(value - exact) / error
    assert np.median(deviation) < 1.5 and deviation.max() < 8
    assert error.max() < 0.2
    assert encoded.score(X) == pytest.approx(exact.mean(), abs=0.05)
    assert np.isinf(encoded.score_samples(X, n_draws=1, return_std=True)[1]).all()


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_likelihood_of_all_words_sums_to_one(n_components):
    X, _ = make_curie_weiss(300, 6, temperature=0.8, random_state=0)
    vae = MeanFieldVAE(n_components, **FAST | {"max_epochs": 3}).fit(X)
    words = 2 * np.array(list(np.ndindex(*(2,) * 6))) - 1
    assert np.exp(vae.score_samples(words)).sum() == pytest.approx(1, abs=1e-10)


def test_likelihood_by_draws_sums_to_one():
    X, _ = make_curie_weiss(500, 6, temperature=0.8, random_state=0)
    vae = MeanFieldVAE(1, objective="elbo", **FAST).fit(X)
    words = 2 * np.array(list(np.ndindex(*(2,) * 6))) - 1
    assert np.exp(quadrature_log_likelihood(vae, words)).sum() == pytest.approx(1)
    total = np.exp(vae.score_samples(words, n_draws=2000)).sum()
    assert total == pytest.approx(1, abs=0.02)


@pytest.fixture(scope="module")
def trained():
    X, _ = make_curie_weiss(8000, 16, temperature=0.8, random_state=0)
    return MeanFieldVAE(1, hidden_layer_sizes=(32,), max_epochs=30, random_state=0).fit(
        X
    )


def test_cross_entropy_is_above_the_entropy_and_near_it(trained):
    """-ELBO >= H(p), and a mean-field system is within reach of one latent."""
    fresh, _ = make_curie_weiss(4000, 16, temperature=0.8, random_state=1)
    entropy = curie_weiss(16, 0.8).entropy
    gap = -trained.elbo(fresh) - entropy
    error = gap.std() / np.sqrt(len(gap))
    assert gap.mean() > -5 * error
    assert gap.mean() < 0.05 + 5 * error


def test_samples_have_the_moments_of_the_data(trained):
    drawn = trained.sample(20_000, random_state=0)
    assert drawn.dtype == np.int8 and set(np.unique(drawn)) == {-1, 1}
    exact = curie_weiss(16, 0.8)
    assert np.abs(drawn.mean(axis=1)).mean() == pytest.approx(
        exact.abs_magnetization, abs=0.05
    )


def test_samples_follow_the_model_of_the_quadrature():
    X, _ = make_curie_weiss(500, 4, temperature=0.8, random_state=0)
    vae = MeanFieldVAE(1, **FAST).fit(X)
    words = 2 * np.array(list(np.ndindex(*(2,) * 4))) - 1
    expected = np.exp(quadrature_log_likelihood(vae, words))
    n = 40_000
    codes = ((vae.sample(n, random_state=3) > 0) @ (2 ** np.arange(3, -1, -1))).astype(
        int
    )
    counts = np.bincount(codes, minlength=16)
    statistic = ((counts - n * expected) ** 2 / (n * expected)).sum()
    assert statistic < 57  # chi-square of 15 degrees at p = 1e-6


def test_same_seed_same_bits_and_global_generators_untouched(data):
    before = torch.random.get_rng_state()
    first, second = (MeanFieldVAE(2, **FAST).fit(data[0]) for _ in range(2))
    for vae in (first, second):
        vae.sample(5, random_state=1), vae.sample_posterior(data[0], random_state=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert joblib.hash(first) == joblib.hash(second)
    np.testing.assert_array_equal(
        first.sample(9, random_state=1), second.sample(9, random_state=1)
    )
    assert not np.array_equal(
        first.sample(9, random_state=2), first.sample(9, random_state=1)
    )


def test_conventions_give_the_same_model(data):
    X = data[0]
    bits = (X > 0).astype(float)
    spins, words = MeanFieldVAE(1, **FAST).fit(X), MeanFieldVAE(1, **FAST).fit(bits)
    np.testing.assert_array_equal(spins.transform(X), words.transform(bits))
    np.testing.assert_allclose(spins.score_samples(X), words.score_samples(bits))
    Z = spins.transform(X[:9])
    np.testing.assert_allclose(
        spins.inverse_transform(Z), 2 * words.inverse_transform(Z) - 1, atol=1e-6
    )
    assert spins.values_ == (-1, 1) and words.values_ == (0, 1)
    assert set(np.unique(words.sample(99, random_state=0))) == {0, 1}
    boolean = MeanFieldVAE(1, **FAST).fit(X > 0)
    np.testing.assert_array_equal(boolean.transform(X > 0), words.transform(bits))


def test_mean_given_latents_is_that_of_the_logits(fitted):
    Z = np.linspace(-2, 2, 7)[:, None]
    expected = 2 * expit(fitted.logits(Z).astype(float)) - 1
    np.testing.assert_allclose(fitted.inverse_transform(Z), expected, atol=1e-6)


def test_logit_jacobian_equals_finite_differences(fitted):
    Z, step = np.array([[-1.0], [0.0], [0.5]]), 1e-2
    slope = (fitted.logits(Z + step) - fitted.logits(Z - step)) / (2 * step)
    np.testing.assert_allclose(
        fitted.logit_jacobian(Z)[:, :, 0], slope, rtol=0.02, atol=0.01
    )


@pytest.mark.parametrize("objective", ["quadrature", "importance"])
def test_posterior_and_its_draws(fitted, encoded, data, objective):
    vae = fitted if objective == "quadrature" else encoded
    X = np.repeat(data[0][:2], 20_000, axis=0)
    mean, deviation = vae.posterior(X)
    np.testing.assert_array_equal(mean, vae.transform(X))
    draws = vae.sample_posterior(X, random_state=0)
    assert draws.dtype == np.float32
    for rows in (slice(0, 20_000), slice(20_000, None)):
        standard = (draws - mean)[rows] / deviation[rows]
        assert abs(standard.mean()) < 6 / np.sqrt(20_000)
        assert standard.std() == pytest.approx(1, abs=12 / np.sqrt(40_000))


def test_grid_posterior_is_that_of_bayes(fitted, data):
    X, z = data[0][:5], np.linspace(-6, 6, 3001)
    logits = fitted.logits(z[:, None]).astype(float)
    log_p = -np.logaddexp(0, -X[:, None] * logits).sum(-1) - 0.5 * z**2
    p = np.exp(log_p - log_p.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    mean, deviation = fitted.posterior(X)
    np.testing.assert_allclose(mean[:, 0], p @ z, atol=1e-4)
    variance = p @ z**2 - (p @ z) ** 2
    np.testing.assert_allclose(deviation[:, 0], np.sqrt(variance), atol=1e-4)
    prior = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    vae = MeanFieldVAE(1, **FAST).fit(data[0])
    rate = (p * np.log(np.maximum(p, 1e-300) / prior)).sum(1)
    got = vae._on_grid(vae._grid().divergences, vae._grid(), vae._rows(X))
    np.testing.assert_allclose(got[:, 0], rate, atol=1e-3)


def test_rate_of_an_encoder_is_the_sum_of_its_kl(encoded, data):
    mean, deviation = encoded.posterior(data[0])
    kl = 0.5 * (mean**2 + deviation**2 - 1) - np.log(deviation)
    np.testing.assert_allclose(encoded.kl_per_dim_, kl.mean(axis=0), rtol=1e-4)
    assert encoded.rate_ == pytest.approx(encoded.kl_per_dim_.sum())


def test_rate_of_a_grid_is_likelihood_given_latents_less_likelihood(fitted, data):
    """R = E[ln p(x|z)] - ln p(x) under the posterior."""
    X = data[0]
    z = fitted.sample_posterior(X, random_state=0)
    signs = X * fitted.logits(z).astype(float)
    known = -np.logaddexp(0, -signs).sum(axis=1) - fitted.score_samples(X)
    error = known.std() / np.sqrt(len(X))
    assert fitted.rate_ == pytest.approx(known.mean(), abs=5 * error)
    assert fitted.kl_per_dim_[0] == pytest.approx(fitted.rate_)


def test_unused_latents_are_seen(data):
    vae = MeanFieldVAE(4, objective="elbo", **FAST).fit(data[0])
    assert vae.active_units_.shape == vae.kl_per_dim_.shape == (4,)
    assert 1 <= vae.active_units_.sum() < 4
    np.testing.assert_array_equal(vae.active_units_, vae.kl_per_dim_ > 0.05)


def test_nothing_to_learn_warns_with_the_gain():
    X = np.random.default_rng(0).integers(0, 2, (600, 8))
    with pytest.warns(UserWarning, match=r"no better than independent columns"):
        vae = MeanFieldVAE(2, **FAST).fit(X)
    assert vae.gain_over_independent_ < 0.5


def test_gain_is_held_out_elbo_above_independence(data):
    vae = MeanFieldVAE(1, **FAST).fit(data[0])
    fresh, _ = make_curie_weiss(4000, 16, temperature=0.8, random_state=5)
    gain = vae.elbo(fresh).mean() + 16 * np.log(2)
    # 200 held-out rows: some 0.2 nats of standard error
    assert vae.gain_over_independent_ == pytest.approx(gain, abs=1.2)
    assert gain > 1


def test_linear_decoder_starts_at_independence():
    """Without a start at the columns' logits a linear decoder stays below it."""
    rng = np.random.default_rng(0)
    X = (rng.random((1000, 20)) < np.linspace(0.01, 0.3, 20)).astype(int)
    vae = MeanFieldVAE(
        1, hidden_layer_sizes=(), max_epochs=1, learning_rate=1e-8, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        vae.fit(X)
    mean = vae.inverse_transform(np.zeros((1, 1)))[0]
    np.testing.assert_allclose(mean, X.mean(axis=0), atol=0.02)


def test_constant_columns_are_listed_and_harmless(data):
    X = np.c_[np.ones(2000, int), data[0], -np.ones(2000, int)]
    vae = MeanFieldVAE(1, **FAST).fit(X)
    assert vae.constant_features_.tolist() == [0, 17]
    assert np.isfinite(vae.logits(np.linspace(-3, 3, 9)[:, None])).all()
    means = vae.inverse_transform(vae.transform(X))
    assert means[:, 0].min() > 0.95 and means[:, -1].max() < -0.95


@pytest.mark.parametrize("objective", ["elbo", "importance", "quadrature"])
def test_warm_up_changes_the_start_and_ends_as_the_true_bound(data, objective):
    plain, warm = (
        MeanFieldVAE(1, objective=objective, kl_warmup=share, **FAST).fit(data[0])
        for share in (0.0, 0.5)
    )
    # the KL term costs next to nothing at first
    losses = [vae.history_["valid_loss"] for vae in (plain, warm)]
    assert losses[1][1] < losses[0][1] - 0.05
    assert warm.net_.criterion_.beta == 1.0
    assert warm.gain_over_independent_ > 1


def test_last_steps_take_the_options_of_the_training(data, monkeypatch):
    from skident import _latent_posterior

    seen, train = [], _latent_posterior.train

    def watched(net, rows, held_out, schedule, **options):
        train(net, rows, held_out, schedule, **options)
        seen.append((net.reduced is not None, net.criterion_.beta, schedule.precision))

    monkeypatch.setattr(_latent_posterior, "train", watched)
    options = FAST | {"max_epochs": 2, "kl_warmup": 0.5}
    vae = MeanFieldVAE(1, precision="bfloat16", **options).fit(data[0])
    MeanFieldVAE(1, **options).fit(data[0])
    assert seen == [(True, 1.0, "bfloat16"), (False, 1.0, "float32")]
    assert {w.dtype for w in vae.weights_.values()} == {np.dtype("float32")}


@pytest.mark.parametrize("objective", ["quadrature", "importance"])
def test_fit_keeps_the_weights_once_as_arrays(data, objective):
    vae = MeanFieldVAE(1, objective=objective, **FAST).fit(data[0])

    def held(thing):
        if isinstance(thing, dict):
            return [kind for value in thing.values() for kind in held(value)]
        return [type(thing).__module__.split(".")[0]]

    assert not {"torch", "skorch", "skident"} & set(held(vars(vae)))
    before = joblib.hash(vae)
    net = vae.net_
    assert vae.net_ is net and joblib.hash(vae) == before
    assert all(p.grad is None for p in net.module_.parameters())


def test_persistence(fitted, data):
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.elbo(data[0]), fitted.elbo(data[0]))
    assert joblib.hash(loaded) == joblib.hash(fitted)
    io = pytest.importorskip("skops.io")
    dumped = io.dumps(fitted)
    loaded = io.loads(dumped, trusted=io.get_untrusted_types(data=dumped))
    np.testing.assert_array_equal(loaded.transform(data[0]), fitted.transform(data[0]))


def test_scores_do_not_depend_on_the_batch(fitted, encoded, data):
    X = data[0][:50]
    for method in (
        *(fitted.score_samples, fitted.elbo),
        *(encoded.score_samples, encoded.elbo),
    ):
        parts = np.concatenate([method(X[:1]), method(X[1:20]), method(X[20:])])
        np.testing.assert_allclose(parts, method(X), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
def test_grid_search_and_cross_validation(data):
    search = GridSearchCV(MeanFieldVAE(**FAST), {"n_components": [1, 2]}, cv=2)
    search.fit(data[0][:400])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert np.isfinite(
        cross_val_score(clone(search.best_estimator_), data[0][:200])
    ).all()


@pytest.mark.parametrize(
    "bad, match",
    [
        (0.5, r"column 1, row 2 is 0\.5\. MeanFieldVAE is for two-valued data"),
        (2.0, r"column 1, row 2 is 2\.0"),
        (np.nan, r"contains NaN: first in column 1, row 2"),
    ],
)
def test_values_that_are_no_spins_are_named(bad, match):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, bad], [0.0, 0.0]])
    with pytest.raises(ValueError, match=match):
        MeanFieldVAE(**FAST).fit(X)


def test_mixed_conventions_are_named(fitted, data):
    with pytest.raises(ValueError, match=r"column 0, row 1 is 0"):
        MeanFieldVAE(**FAST).fit([[-1, 1], [0, 1], [1, 1]])
    with pytest.raises(ValueError, match=r"values -1 and 1 only, as in the fit"):
        fitted.transform((data[0] > 0).astype(int))


def test_interrupted_refit_leaves_nothing_of_the_fit_before(data, monkeypatch):
    from skident._nn import training

    X = data[0]
    vae = MeanFieldVAE(2, **FAST).fit(X)
    descend, steps = training.TensorNet._descend, []

    def interrupted(self, batch):
        steps.append(1)
        if len(steps) == 20:
            raise KeyboardInterrupt
        return descend(self, batch)

    monkeypatch.setattr(training.TensorNet, "_descend", interrupted)
    for model in (vae.set_params(n_components=1), MeanFieldVAE(1, **FAST)):
        steps.clear()
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
        assert model.kl_per_dim_.shape == (model.n_components,)
        assert model.rate_ >= model.kl_per_dim_.max() - 1e-9
        assert model.n_iter_ == len(model.history_["valid_loss"]) == 2
        assert np.isfinite(model.gain_over_independent_)


def test_history_and_options(data):
    X = data[0]
    seen = []

    class Recorder(MeanFieldVAE):
        def _measure(self, inputs, rows, held_out):
            seen.append((len(rows), len(held_out)))
            super()._measure(inputs, rows, held_out)

    vae = Recorder(1, validation_fraction=0.3, likelihood="bernoulli", **FAST).fit(X)
    assert seen == [(1400, 600)]
    assert vae.likelihood_ == "bernoulli" == MeanFieldVAE(1, **FAST).fit(X).likelihood_
    assert vae.n_iter_ == 20
    for name in ("train_loss", "valid_loss"):
        assert vae.history_[name].shape == (20,)
        assert vae.history_[name][-1] < vae.history_[name][0]
    few = {"objective": "elbo"}
    vae, small, decayed = (
        MeanFieldVAE(1, **options, **FAST).fit(X)
        for options in (
            few,
            few | {"batch_size": 16},
            {"weight_decay": 1e3, "learning_rate": 1e-3},
        )
    )
    assert small.gain_over_independent_ > vae.gain_over_independent_
    # a decay of 1e3 at a step of 1e-3 wipes out every weight
    size = max(np.abs(w).max() for k, w in decayed.weights_.items() if "weight" in k)
    assert size < 0.1


def test_error_lists_the_likelihoods():
    with pytest.raises(ValueError, match="choose from: bernoulli, bingham, categor"):
        MeanFieldVAE(**FAST).fit([[0.5, 1], [1, 0]])


FACTOR = np.random.default_rng(0).standard_normal((1200, 1))


def make_rows(name, seed=1):
    """Rows of one common factor for each likelihood."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((1200, 6))
    if name == "gaussian":
        return FACTOR * [1, 2, -1, 0.5, 3, 1] + 0.7 * noise + 5
    if name == "poisson":
        return rng.poisson(np.exp(0.8 * FACTOR + [0, 1, 2, -1, 3, 0]))
    if name == "categorical":
        level = (FACTOR > 0) + (FACTOR > 1) + 0 * noise.astype(int)
        return np.where(
            rng.random((1200, 6)) < 0.7, level, rng.integers(0, 3, (1200, 6))
        )
    if name == "one-hot":
        return np.eye(3)[make_rows("categorical")].reshape(1200, 18)
    if name == "bingham":
        axis = np.stack([np.cos(FACTOR), np.sin(FACTOR), 0 * FACTOR], axis=2)
        vectors = 3 * axis + noise.reshape(1200, 2, 3)
        return (vectors / np.linalg.norm(vectors, axis=2, keepdims=True)).reshape(-1, 6)
    return np.where(2 * FACTOR + noise > 0, 1, -1)


FAMILIES = ["bernoulli", "bingham", "categorical", "gaussian", "one-hot", "poisson"]
family = pytest.mark.parametrize("name", FAMILIES)


def fit_rows(name, X, **options):
    likelihood = "categorical" if name == "one-hot" else name
    return MeanFieldVAE(1, likelihood=likelihood, **FAST | options).fit(X)


@family
@pytest.mark.parametrize("objective", ["quadrature", "importance"])
def test_every_family_learns_its_factor(name, objective):
    X = make_rows(name)
    vae = fit_rows(name, X, objective=objective, batch_size=32)
    assert vae.gain_over_independent_ > 0.1
    z = vae.transform(X)[:, 0]
    if name != "bingham":  # its factor is an angle
        assert abs(np.corrcoef(z, FACTOR[:, 0])[0, 1]) > 0.65
    assert vae.inverse_transform(z[:3, None]).shape == (3, X.shape[1])
    drawn = vae.sample(500, random_state=0)
    vae._rows(drawn)  # what is drawn is legal data
    assert (drawn.dtype.kind == "f") == (name in ("bingham", "gaussian"))
    assert vae.logit_jacobian(z[:3, None]).shape[::2] == (3, 1)


@family
def test_jacobian_of_every_family_is_that_of_its_logits(name):
    vae = fit_rows(name, make_rows(name), max_epochs=3)
    Z, step = np.array([[-0.7], [0.4]]), 1e-2
    slope = (vae.logits(Z + step) - vae.logits(Z - step)) / (2 * step)
    np.testing.assert_allclose(
        vae.logit_jacobian(Z)[:, :, 0], slope, atol=0.05, rtol=0.02
    )


@family
@pytest.mark.parametrize("gap", [np.nan, -99.0])
def test_missing_entries_count_as_if_their_columns_were_not_there(name, gap):
    """The likelihood of what is there: compared with the posterior predictive."""
    X = make_rows(name).astype(float)
    n_site = {"bingham": 3, "one-hot": 3}.get(name, 1)
    holes = X.copy()
    holes[::3, :n_site] = gap
    vae = fit_rows(name, holes, missing_values=gap, max_epochs=8)
    nodes = np.linspace(-5, 5, 801)
    weights = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()
    likelihood = vae._family()
    rows = torch.tensor(vae._rows(holes[:6])).double()
    parameters = vae._module().decode(torch.tensor(nodes[:, None]).float()).double()
    with torch.no_grad():
        each = likelihood.log_prob(parameters, rows[:, None]).numpy()
    expected = np.log(np.exp(each) @ weights)
    np.testing.assert_allclose(vae.score_samples(holes[:6]), expected, atol=2e-3)
    nothing = np.full((2, X.shape[1]), gap)
    np.testing.assert_allclose(vae.score_samples(nothing), 0, atol=1e-6)
    np.testing.assert_allclose(vae.transform(nothing), 0, atol=1e-5)


def test_marginal_of_missing_spins_is_the_sum_over_their_values(data):
    X = data[0][:, :6].astype(float)
    X[::2, 0], X[::5, 3] = np.nan, np.nan
    vae = MeanFieldVAE(2, missing_values=np.nan, **FAST | {"max_epochs": 4}).fit(X)
    row = np.array([[np.nan, 1.0, -1.0, np.nan, 1.0, 1.0]])
    completed = np.repeat(row, 4, axis=0)
    completed[:, 0], completed[:, 3] = [1, 1, -1, -1], [1, -1, 1, -1]
    total = np.exp(vae.score_samples(completed)).sum()
    assert vae.score_samples(row)[0] == pytest.approx(np.log(total), abs=1e-9)


def test_column_that_is_always_missing_is_refused_and_part_of_a_site_too():
    X = make_rows("bingham")
    X[:, 4] = np.nan
    with pytest.raises(ValueError, match=r"only missing values in column 4"):
        fit_rows("bingham", X, missing_values=np.nan)
    X = make_rows("bingham")
    X[7, 4] = np.nan
    with pytest.raises(
        ValueError, match=r"together or not at all, but column 4, row 7"
    ):
        fit_rows("bingham", X, missing_values=np.nan)
    with pytest.raises(ValueError, match=r"contains NaN: first in column 4, row 7"):
        fit_rows("bingham", X)


def test_missing_values_by_number_and_by_nan_are_one_model(data):
    X = data[0].astype(float)
    X[::4, 2] = np.nan
    marked = np.where(np.isnan(X), 0, X)
    one = MeanFieldVAE(1, missing_values=np.nan, **FAST).fit(X)
    other = MeanFieldVAE(1, missing_values=0, **FAST).fit(marked.astype(np.int8))
    np.testing.assert_array_equal(one.transform(X), other.transform(marked))
    assert one.values_ == other.values_ == (-1, 1)


def test_missing_entries_reach_the_encoder_as_no_value(data):
    X = data[0].astype(float)
    X[::4, 2] = np.nan
    vae = MeanFieldVAE(1, objective="importance", missing_values=np.nan, **FAST).fit(X)
    value, error = vae.score_samples(X[:200], n_draws=1000, return_std=True)
    complete = [np.where(np.isnan(X[:200]), v, X[:200]) for v in (-1, 1)]
    two = np.logaddexp(*(vae.score_samples(c, n_draws=1000) for c in complete))
    gaps = np.isnan(X[:200, 2])
    assert np.abs(value - two)[gaps].max() < 8 * error.max()
    # in a column that never was missing, a gap is the mean
    hole = X[1:2].copy()
    hole[0, 5] = np.nan
    assert np.isfinite(vae.transform(hole)).all()


@pytest.mark.parametrize(
    "name, bad, match",
    [
        (
            "poisson",
            -1.0,
            r"whole numbers from 0 to 16777216, but column 1, row 2 is -1",
        ),
        ("categorical", 0.5, r"only those of the fit, but column 1, row 2 is 0\.5"),
        ("bingham", 3.0, r"unit vectors, three columns each, but column 0, row 2"),
        ("gaussian", np.inf, r"contains infinity.*column 1, row 2"),
    ],
)
def test_values_that_a_family_does_not_take_are_named(name, bad, match):
    X = make_rows(name).astype(float)
    X[2, 1] = bad
    with pytest.raises(ValueError, match=match):
        fit_rows(name, X)


def test_level_that_the_fit_did_not_see_is_named():
    X = make_rows("categorical")
    vae = fit_rows("categorical", X, max_epochs=1)
    X[4, 3] = 7
    with pytest.raises(ValueError, match=r"column 3, row 4 is 7"):
        vae.transform(X)


@family
def test_row_k_of_a_sample_is_the_same_however_many_are_drawn(name):
    vae = fit_rows(name, make_rows(name), max_epochs=1)
    np.testing.assert_array_equal(
        vae.sample(5, random_state=0), vae.sample(50, random_state=0)[:5]
    )


def test_linear_gaussian_model_is_factor_analysis():
    X = make_rows("gaussian")
    peer = FactorAnalysis(1, tol=1e-6).fit(X)
    vae = fit_rows(
        "gaussian", X, hidden_layer_sizes=(), max_epochs=100, learning_rate=3e-2
    )
    assert vae.score(X) == pytest.approx(peer.score(X), abs=0.01)
    covariance = np.cov(vae.sample(40_000, random_state=0).T)
    np.testing.assert_allclose(covariance, peer.get_covariance(), rtol=0.1, atol=0.1)


def test_gaussian_density_is_per_unit_of_the_data():
    X = make_rows("gaussian")
    one, other = fit_rows("gaussian", X), fit_rows("gaussian", 1000.0 * X)
    shift = 6 * np.log(1000.0)
    np.testing.assert_allclose(
        other.score_samples(1000.0 * X), one.score_samples(X) - shift, atol=1e-2
    )


def test_directors_have_no_head():
    X = make_rows("bingham")
    vae = fit_rows("bingham", X)
    flipped = X * np.repeat(
        np.sign(np.random.default_rng(3).normal(size=(1200, 2))), 3, 1
    )
    np.testing.assert_allclose(vae.transform(flipped), vae.transform(X), atol=1e-6)
    axes = vae.inverse_transform([[0.3]]).reshape(2, 3)
    np.testing.assert_allclose(np.linalg.norm(axes, axis=1), 1, atol=1e-5)


def test_quadrature_that_does_not_converge_says_so(data, monkeypatch):
    from skident import _latent_posterior

    monkeypatch.setattr(_latent_posterior, "NODES", {1: (4, 6)})
    with pytest.warns(UserWarning, match="has not converged: at most, 6 points"):
        vae = MeanFieldVAE(1, **FAST).fit(data[0])
    assert vae.quadrature_nodes_ == 6 and vae.quadrature_error_ > 1e-3


def test_last_steps_are_dropped_where_held_out_rows_lose(data, monkeypatch):
    from skident import _latent_posterior

    plain = MeanFieldVAE(1, **FAST).fit(data[0])

    def spoil(net, *args, **options):
        with torch.no_grad():
            net.module_.decoder[-1].bias.add_(3.0)

    monkeypatch.setattr(_latent_posterior, "train", spoil)
    kept = MeanFieldVAE(1, **FAST).fit(data[0])
    bias = [m.weights_["decoder.2.bias"] for m in (plain, kept)]
    assert np.abs(bias[0] - bias[1]).max() < 0.5
    assert kept.score(data[0]) == pytest.approx(plain.score(data[0]), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.8, 1.0, 1.25])
def test_curie_weiss_is_learned_exactly(temperature):
    """<|m|> and N<m^2> within 1.5 %, Binder within .012, KL <= .01 nats."""
    n_sites, exact = 64, curie_weiss(64, temperature)
    X, _ = make_curie_weiss(50_000, n_sites, temperature=temperature, random_state=0)
    fresh, _ = make_curie_weiss(
        20_000, n_sites, temperature=temperature, random_state=1
    )
    vae = MeanFieldVAE(1, random_state=0).fit(X)
    log_p = (
        fresh.sum(axis=1, dtype=float) ** 2 / (2 * n_sites * temperature)
        + exact.free_energy / temperature
    )
    gap = log_p - vae.score_samples(fresh)
    assert gap.mean() < 0.01
    m = vae.sample(400_000, random_state=0).mean(axis=1, dtype=float)
    assert np.abs(m).mean() == pytest.approx(exact.abs_magnetization, rel=0.015)
    assert n_sites * (m**2).mean() == pytest.approx(exact.susceptibility, rel=0.015)
    binder = 1 - (m**4).mean() / (3 * (m**2).mean() ** 2)
    assert binder == pytest.approx(exact.binder, abs=0.012)


@pytest.mark.slow
@pytest.mark.data
def test_retina_beats_independence_by_far(real_data):
    """40 most active cells, even repeats train, odd test: independent is 10.408."""
    spikes = real_data("retina_fishmovie32_160.npz")["bint"]
    cells = np.argsort(-spikes.mean((0, 2)), kind="stable")[:40]
    words = spikes[:, cells].transpose(0, 2, 1)
    train, test = (words[k::2].reshape(-1, 40) for k in (0, 1))
    p = train.mean(axis=0)
    independent = -(test * np.log(p) + (1 - test) * np.log1p(-p)).sum(axis=1).mean()
    assert independent == pytest.approx(10.408, abs=0.001)
    vae = MeanFieldVAE(n_components=2, max_epochs=4, random_state=0).fit(train)
    assert -vae.score(test) <= 8.45
    assert vae.active_units_.all()
