import pickle
import warnings

import joblib
import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.base import clone
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


def test_elbo_below_importance_sampling_equal_to_exact_likelihood(fitted, data):
    X = data[0][:300]
    exact = quadrature_log_likelihood(fitted, X)
    elbo, sampled = fitted.elbo(X), fitted.score_samples(X, n_draws=2000)
    # Monte Carlo with common noise: 64 draws leave some 0.2 nats on a row
    assert np.mean(elbo) < np.mean(exact) and np.all(elbo < exact + 0.5)
    np.testing.assert_allclose(sampled, exact, atol=0.1)
    assert fitted.score(X) == pytest.approx(exact.mean(), abs=0.02)


def test_likelihood_of_all_words_sums_to_one():
    X, _ = make_curie_weiss(500, 6, temperature=0.8, random_state=0)
    vae = MeanFieldVAE(1, **FAST).fit(X)
    words = 2 * np.array(list(np.ndindex(*(2,) * 6))) - 1
    assert np.exp(quadrature_log_likelihood(vae, words)).sum() == pytest.approx(1)
    total = np.exp(vae.score_samples(words, n_draws=2000)).sum()
    assert total == pytest.approx(1, abs=0.02)


@pytest.fixture(scope="module")
def trained():
    X, _ = make_curie_weiss(8000, 16, temperature=0.8, random_state=0)
    return MeanFieldVAE(1, hidden_layer_sizes=(32,), random_state=0).fit(X)


def test_cross_entropy_is_above_the_entropy_and_near_it(trained):
    """-ELBO >= H(p), and a mean-field system is within reach of one latent."""
    fresh, _ = make_curie_weiss(4000, 16, temperature=0.8, random_state=1)
    entropy = curie_weiss(16, 0.8).entropy
    gap = -trained.elbo(fresh) - entropy
    error = gap.std() / np.sqrt(len(gap))
    assert gap.mean() > -5 * error
    assert gap.mean() < 0.15 + 5 * error


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


def test_posterior_and_its_draws(fitted, data):
    X = np.repeat(data[0][:2], 20_000, axis=0)
    mean, deviation = fitted.posterior(X)
    np.testing.assert_array_equal(mean, fitted.transform(X))
    draws = fitted.sample_posterior(X, random_state=0)
    for rows in (slice(0, 20_000), slice(20_000, None)):
        standard = (draws - mean)[rows] / deviation[rows]
        assert abs(standard.mean()) < 6 / np.sqrt(20_000)
        assert standard.std() == pytest.approx(1, abs=6 / np.sqrt(40_000))


def test_rate_is_the_sum_of_kl_and_bounds_it_by_posterior(fitted, data):
    mean, deviation = fitted.posterior(data[0])
    kl = 0.5 * (mean**2 + deviation**2 - 1) - np.log(deviation)
    np.testing.assert_allclose(fitted.kl_per_dim_, kl.mean(axis=0), rtol=1e-4)
    assert fitted.rate_ == pytest.approx(fitted.kl_per_dim_.sum())


def test_unused_latents_are_seen(data):
    vae = MeanFieldVAE(4, **FAST).fit(data[0])
    assert vae.active_units_.shape == vae.kl_per_dim_.shape == (4,)
    assert 1 <= vae.active_units_.sum() < 4
    np.testing.assert_array_equal(vae.active_units_, vae.kl_per_dim_ > 0.05)


def test_nothing_to_learn_warns_with_the_gain():
    X = np.random.default_rng(0).integers(0, 2, (600, 8))
    with pytest.warns(UserWarning, match=r"no better than independent columns"):
        vae = MeanFieldVAE(2, **FAST).fit(X)
    assert vae.gain_over_independent_ <= 0


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


def test_warm_up_ends_as_the_true_bound(data):
    vae = MeanFieldVAE(1, kl_warmup=0.5, **FAST).fit(data[0])
    assert vae.net_.criterion_.beta == 1.0
    assert vae.gain_over_independent_ > 1


def test_persistence(fitted, data):
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.elbo(data[0]), fitted.elbo(data[0]))
    assert joblib.hash(loaded) == joblib.hash(fitted)
    io = pytest.importorskip("skops.io")
    dumped = io.dumps(fitted)
    loaded = io.loads(dumped, trusted=io.get_untrusted_types(data=dumped))
    np.testing.assert_array_equal(loaded.transform(data[0]), fitted.transform(data[0]))


def test_scores_do_not_depend_on_the_batch(fitted, data):
    X = data[0][:50]
    for method in (fitted.score_samples, fitted.elbo):
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
        mean, deviation = model.posterior(X)
        kl = (0.5 * (mean**2 + deviation**2 - 1) - np.log(deviation)).mean(axis=0)
        np.testing.assert_allclose(model.kl_per_dim_, kl, rtol=1e-4)
        assert (
            model.kl_per_dim_.shape == (1,) and model.rate_ == model.kl_per_dim_.sum()
        )
        assert model.n_iter_ == len(model.history_["valid_loss"]) == 2
        assert np.isfinite(model.gain_over_independent_)


def test_history_and_options(data):
    X = data[0]
    seen = []

    class Recorder(MeanFieldVAE):
        def _measure(self, bits, rows, held_out):
            seen.append((len(rows), len(held_out)))
            super()._measure(bits, rows, held_out)

    vae = Recorder(1, validation_fraction=0.3, likelihood="bernoulli", **FAST).fit(X)
    assert seen == [(1400, 600)]
    assert vae.likelihood_ == "bernoulli" == MeanFieldVAE(1, **FAST).fit(X).likelihood_
    assert vae.n_iter_ == 20
    for name in ("train_loss", "valid_loss"):
        assert vae.history_[name].shape == (20,)
        assert vae.history_[name][-1] < vae.history_[name][0]
    small, decayed = (
        MeanFieldVAE(1, **options, **FAST).fit(X)
        for options in ({"batch_size": 16}, {"weight_decay": 1e3})
    )
    assert small.gain_over_independent_ > vae.gain_over_independent_
    # a decay of 1e3 at a step of 2e-3 wipes out every weight
    size = max(np.abs(w).max() for k, w in decayed.weights_.items() if "weight" in k)
    assert size < 0.1


def test_error_lists_the_likelihoods():
    with pytest.raises(ValueError, match=r"Likelihoods to choose from: bernoulli"):
        MeanFieldVAE(**FAST).fit([[0.5, 1], [1, 0]])


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
    vae = MeanFieldVAE(
        n_components=2,
        batch_size=512,
        learning_rate=4e-3,
        max_epochs=12,
        random_state=0,
    ).fit(train)
    assert -vae.elbo(test).mean() <= 8.80
    assert vae.active_units_.all()
