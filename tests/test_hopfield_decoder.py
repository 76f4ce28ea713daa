import joblib
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr
from sklearn.base import BaseEstimator, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skident import HopfieldPatternDecoder, MeanFieldVAE
from skident._hopfield_decoder import _follow
from skident.datasets import make_curie_weiss, make_hopfield, make_ising, make_patterns


class Mattis(BaseEstimator):
    """The exact decoder of P(s) ~ exp(f . s + beta (xi . s)^2 / 2N).

    One latent is mapped to the Gaussian field of the pattern; others do nothing.
    """

    def __init__(self, pattern=(1,), field=0.0, beta=1.2, n_components=1, bend=0.0):
        self.pattern = pattern
        self.field = field
        self.beta = beta
        self.n_components = n_components
        self.bend = bend

    def fit(self, X, y=None):
        xi, axis = np.asarray(self.pattern, float), np.linspace(-4.0, 4.0, 8001)
        half = self.field + self.beta * axis[:, None] * xi
        logs = np.logaddexp(half, -half).sum(axis=1) - self.beta * len(xi) * axis**2 / 2
        weights = np.exp(logs - logs.max())
        cdf = integrate.cumulative_trapezoid(weights, axis, initial=0)
        self.table_ = cdf / cdf[-1], axis
        return self

    def logits(self, Z):
        xi = np.asarray(self.pattern, float)
        m = np.interp(ndtr(Z[:, 0]), *self.table_)
        return 2 * (self.field + self.beta * (m + self.bend * m**3)[:, None] * xi)

    def logit_jacobian(self, Z):
        step = 1e-4 * np.eye(self.n_components)
        moved = [(self.logits(Z + d) - self.logits(Z - d)) / 2e-4 for d in step]
        return np.stack(moved, axis=-1)

    def posterior(self, X):
        shape = len(X), self.n_components
        return np.zeros(shape), np.ones(shape)

    def sample_posterior(self, X, *, random_state=None):
        rng = np.random.default_rng(random_state)
        return rng.standard_normal((len(X), self.n_components))


PATTERN = np.array([1, -1, 1, 1, -1, -1, 1, 1, 1, -1])


def all_states(n_sites):
    codes = np.arange(2**n_sites)[:, None]
    return 1 - 2 * ((codes >> np.arange(n_sites)) & 1)


def mattis_log_prob(states, pattern, field, beta):
    n_sites = len(pattern)
    logs = states @ np.broadcast_to(field, n_sites)
    logs = logs + beta * (states @ pattern) ** 2 / (2 * n_sites)
    return logs - np.log(np.exp(logs).sum())


def read(model, X, **params):
    """Read one pattern; states of equal weight are independent, which is warned of."""
    params = {"n_patterns": 1, "data_span": False, "random_state": 0, **params}
    with pytest.warns(UserWarning, match="columns that are not independent"):
        return HopfieldPatternDecoder(model, **params).fit(X)


def exact_patterns(found, patterns):
    overlaps = np.abs(found.astype(int) @ patterns.T.astype(int))
    return int((overlaps == patterns.shape[1]).any(axis=0).sum())


@pytest.fixture(scope="module")
def patterns():
    return make_patterns(3, 48, random_state=0)


@pytest.fixture(scope="module")
def X(patterns):
    return make_hopfield(6000, patterns, temperature=0.7, random_state=0)[0]


@pytest.fixture(scope="module")
def model(X):
    return MeanFieldVAE(4, hidden_layer_sizes=(64,), max_epochs=40, random_state=0).fit(
        X
    )


@pytest.fixture(scope="module")
def decoder(model, X):
    return HopfieldPatternDecoder(FrozenEstimator(model), random_state=0).fit(X)


@pytest.mark.parametrize("solver", ["auto", "ica", "vertex"])
def test_patterns_are_exact_and_as_many_as_there_are(model, X, patterns, solver):
    """One latent more than patterns: "auto" finds the number."""
    decoder = HopfieldPatternDecoder(
        FrozenEstimator(model), solver=solver, random_state=0
    ).fit(X)
    assert decoder.n_patterns_ == 3
    assert exact_patterns(decoder.patterns_, patterns) == 3
    assert (decoder.confidence_ > 0.9).all()
    assert (decoder.patterns_[:, 0] == 1).all() and decoder.patterns_.dtype == np.int8


@pytest.mark.slow
def test_given_number_of_patterns_and_default_model(X, patterns):
    decoder = HopfieldPatternDecoder(n_patterns=3, random_state=0).fit(X)
    assert decoder.estimator_.n_components == 6
    assert exact_patterns(decoder.patterns_, patterns) == 3


def test_spectrum_has_a_gap_after_the_patterns(decoder):
    assert decoder.spectrum_[2] > 2 * decoder.spectrum_[3]
    assert (np.diff(decoder.spectrum_) <= 0).all()


def test_exact_decoder_gives_back_its_model():
    """Likelihood, interaction, couplings and field against all states of ten spins."""
    states, beta = all_states(10), 1.2
    field = 0.3 * np.random.default_rng(0).standard_normal(10)
    decoder = read(Mattis(PATTERN, field, beta), states)
    np.testing.assert_array_equal(decoder.patterns_, [PATTERN])
    log_p = mattis_log_prob(states, PATTERN, field, beta)
    np.testing.assert_allclose(decoder.score_samples(states), log_p, atol=1e-4)
    np.testing.assert_allclose(np.exp(decoder.score_samples(states)).sum(), 1, 1e-4)
    t = 5 * decoder.transform(states)
    decoded = states @ decoder.field_ + decoder.cumulant_function(t)
    np.testing.assert_allclose(np.ptp(decoded - log_p), 0, atol=1e-3)
    J = beta / 10 * np.outer(PATTERN, PATTERN) * (1 - np.eye(10))
    np.testing.assert_allclose(decoder.couplings_, J, atol=1e-4)
    # The field in the direction of the pattern stands in the first cumulant.
    outside = field - field @ PATTERN * PATTERN / 10
    np.testing.assert_allclose(decoder.field_, outside, atol=1e-6)
    np.testing.assert_allclose(decoder.expansion_.field, field, atol=1e-3)
    np.testing.assert_allclose(decoder.expansion_.covariance, [[4 * beta / 10]], 1e-3)
    np.testing.assert_allclose(decoder.expansion_.third, 0, atol=1e-3)
    np.testing.assert_allclose(decoder.expansion_.fourth, 0, atol=1e-3)
    np.testing.assert_allclose(decoder.tail_ratio_, 1, atol=1e-3)
    words = read(Mattis(PATTERN, field, beta), (states > 0).astype(int))
    np.testing.assert_array_equal(words.couplings_, decoder.couplings_)


def test_curie_weiss_by_its_exact_decoder():
    states = all_states(8)
    decoder = read(Mattis(np.ones(8), 0.0, 0.9), states)
    np.testing.assert_allclose(decoder.couplings_, 0.9 / 8 * (1 - np.eye(8)), atol=1e-4)
    np.testing.assert_allclose(decoder.field_, 0, atol=1e-6)
    log_p = mattis_log_prob(states, np.ones(8), 0.0, 0.9)
    np.testing.assert_allclose(decoder.score_samples(states), log_p, atol=1e-4)


@pytest.mark.parametrize(("bend", "sign"), [(0.6, 1), (-0.06, -1)])
def test_bent_fields_make_the_tails_heavier_or_lighter(bend, sign):
    decoder = read(Mattis(PATTERN, 0.0, 0.8, bend=bend), all_states(10))
    assert np.sign(decoder.expansion_.fourth[0]) == sign
    assert np.sign(decoder.tail_ratio_[0] - 1) == sign


def test_likelihood_with_many_latents_approaches_that_of_the_grid():
    states, field = all_states(10), 0.1
    decoder = read(Mattis(PATTERN, field, n_components=4), states)
    log_p = mattis_log_prob(states, PATTERN, field, 1.2)
    # The proposal is the prior: errors of some per cent with 20,000 draws.
    rows = np.argsort(-log_p)[:50]
    scores = decoder.score_samples(states[rows], n_draws=20_000)
    np.testing.assert_allclose(scores, log_p[rows], atol=0.1)
    J = 0.12 * np.outer(PATTERN, PATTERN) * (1 - np.eye(10))
    np.testing.assert_allclose(decoder.couplings_, J, atol=0.02)


def test_samples_have_the_exact_probabilities():
    pattern = np.array([1, -1, 1, 1, -1])
    states = all_states(5)
    decoder = read(Mattis(pattern, 0.2, 1.1), states)
    drawn = decoder.sample(20_000, random_state=0)
    codes = ((1 - drawn.astype(int)) // 2) @ (1 << np.arange(5))
    observed = np.bincount(codes, minlength=32)
    expected = 20_000 * np.exp(mattis_log_prob(states, pattern, 0.2, 1.1))
    assert stats.chisquare(observed, expected * 20_000 / expected.sum()).pvalue > 1e-3


def test_cumulant_function_checks_its_sources():
    decoder = read(Mattis(PATTERN), all_states(10))
    assert decoder.cumulant_function([[0.0]])[0] == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match=r"T must have 1 column\(s\), one a pattern"):
        decoder.cumulant_function([[0.0, 1.0]])


def test_entries_and_patterns_that_come_back_in_refits(X, patterns):
    """Models of 1,500 rows in triples; nearly all entries come back."""
    model = MeanFieldVAE(3, hidden_layer_sizes=(), max_epochs=30)
    rows = X[:1500]
    decoder = HopfieldPatternDecoder(
        model, n_patterns=3, n_refits=3, random_state=0
    ).fit(rows, groups=np.arange(1500) // 3)
    assert exact_patterns(decoder.patterns_, patterns) == 3
    assert decoder.entry_stability_.shape == (3, 48)
    assert (decoder.stability_ > 0.9).all() and (decoder.stability_ <= 1).all()
    agree = 2 * decoder.entry_stability_.mean(axis=1) - 1
    np.testing.assert_allclose(agree, decoder.stability_)
    assert decoder.tail_interval_.shape == (3, 2)
    assert (decoder.entry_confidence_ > 0.5).all()


def test_refit_is_matched_up_to_order_and_sign():
    """A refit with a wrong first site has all the other signs turned."""

    class Refit:
        def fit(self, X):
            wrong = truth * np.r_[-1, np.ones(11, int)]
            self.patterns_ = (wrong * wrong[:, :1])[::-1]
            self.tail_ratio_ = np.array([2.0, 1.0])

    truth = make_patterns(2, 12, random_state=3)
    truth = truth * truth[:, :1]
    turned, ratios = _follow(Refit(), np.zeros((4, 12)), np.arange(4), truth)
    np.testing.assert_array_equal(turned[:, 1:], truth[:, 1:])
    np.testing.assert_array_equal(turned[:, 0], -truth[:, 0])
    np.testing.assert_array_equal(ratios, [1.0, 2.0])


def test_refits_of_noise_do_not_agree():
    noise = np.random.default_rng(0).integers(0, 2, (300, 24))
    model = MeanFieldVAE(2, hidden_layer_sizes=(), max_epochs=5)
    with pytest.warns(UserWarning, match="Only 0 of n_patterns=1 can be claimed"):
        decoder = HopfieldPatternDecoder(
            model, n_patterns=1, n_refits=4, random_state=0
        ).fit(noise)
    assert decoder.stability_[0] < 0.7


def test_refits_are_none_by_default_and_refused_if_frozen(decoder, model, X):
    assert decoder.stability_ is decoder.entry_stability_ is None
    assert decoder.tail_interval_ is None
    frozen = HopfieldPatternDecoder(FrozenEstimator(model), n_refits=2)
    with pytest.raises(ValueError, match="n_refits=2 cannot refit a frozen estimator"):
        frozen.fit(X)


@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
def test_groups_are_drawn_whole_and_checked(X):
    model = MeanFieldVAE(2, hidden_layer_sizes=(), max_epochs=2)
    one = HopfieldPatternDecoder(model, n_patterns=1, n_refits=2, random_state=0)
    with pytest.raises(ValueError, match="one label a row"):
        one.fit(X[:200], groups=np.zeros(5))
    # One group: every refit has all rows, but another seed.
    assert one.fit(X[:200], groups=np.zeros(200)).stability_.shape == (1,)


@pytest.mark.slow
def test_number_of_processes_does_not_change_the_refits(X):
    model = MeanFieldVAE(3, hidden_layer_sizes=(), max_epochs=5)
    first, second = (
        HopfieldPatternDecoder(
            model, n_patterns=3, n_refits=3, n_jobs=n_jobs, random_state=0
        ).fit(X[:1000])
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(first.entry_stability_, second.entry_stability_)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 9, 11])
def test_hard_draws_of_four_patterns(seed):
    """A well that 0.03 % of the rows visit; latents that collapse."""
    patterns = make_patterns(4, 64, random_state=seed)
    X, _ = make_hopfield(20_000, patterns, temperature=0.7, random_state=seed)
    decoder = HopfieldPatternDecoder(n_patterns=4, random_state=0).fit(X)
    assert exact_patterns(decoder.patterns_, patterns) == 4


@pytest.mark.slow
def test_data_gives_the_patterns_that_a_collapsed_model_left_out():
    patterns = make_patterns(16, 64, random_state=0)
    X, _ = make_hopfield(30_000, patterns, temperature=1.1, random_state=0)
    model = MeanFieldVAE(16, max_epochs=10, random_state=0).fit(X)
    found = {
        data_span: exact_patterns(
            HopfieldPatternDecoder(
                FrozenEstimator(model),
                n_patterns=16,
                data_span=data_span,
                random_state=0,
            )
            .fit(X)
            .patterns_,
            patterns,
        )
        for data_span in (False, True)
    }
    assert found[True] == 16 and found[False] < 12


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [2.0, 2.3, 3.0])
def test_ising_sheet_stores_at_most_the_uniform_pattern(temperature):
    X, _ = make_ising(8000, (8, 8), temperature=temperature, random_state=0)
    decoder = HopfieldPatternDecoder(random_state=0).fit(X)
    assert decoder.n_patterns_ <= 1
    assert (decoder.patterns_ == 1).all()


def test_curie_weiss_stores_the_uniform_pattern():
    X, _ = make_curie_weiss(4000, 32, temperature=0.8, random_state=0)
    model = MeanFieldVAE(2, hidden_layer_sizes=(32,), max_epochs=30)
    decoder = HopfieldPatternDecoder(model, random_state=0).fit(X)
    assert decoder.n_patterns_ >= 1
    np.testing.assert_array_equal(decoder.patterns_[0], 1)


def test_no_pattern_is_claimed_where_there_is_none():
    X = np.random.default_rng(0).integers(0, 2, (2000, 48))
    model = MeanFieldVAE(3, hidden_layer_sizes=(16,), max_epochs=5)
    with pytest.warns(UserWarning, match="no better than independent"):
        decoder = HopfieldPatternDecoder(model, random_state=0).fit(X)
    assert decoder.n_patterns_ == 0 and decoder.patterns_.shape == (0, 48)
    assert decoder.transform(X).shape == (2000, 0)
    assert (decoder.predict(X) == -1).all()
    assert decoder.sample(5, random_state=0).shape == (5, 48)
    assert np.isfinite(decoder.score(X))


def test_transform_is_the_overlap(decoder, X):
    expected = np.array(
        [
            [row.astype(int) @ p.astype(int) / 48 for p in decoder.patterns_]
            for row in X[:9]
        ]
    )
    np.testing.assert_allclose(decoder.transform(X[:9]), expected)


def test_predict_names_patterns_either_way_up_and_none(decoder):
    rows = np.concatenate([decoder.patterns_, -decoder.patterns_])
    np.testing.assert_array_equal(decoder.predict(rows), [0, 1, 2, 0, 1, 2])
    signs = np.sign(decoder.transform(rows)[np.arange(6), decoder.predict(rows)])
    np.testing.assert_array_equal(signs, [1, 1, 1, -1, -1, -1])
    noise = np.random.default_rng(5).choice([-1, 1], (50, 48))
    strict = decoder.predict(noise)
    assert (strict[np.abs(decoder.transform(noise)).max(axis=1) < 0.5] == -1).all()
    assert not is_classifier(decoder)


def test_decoded_model_is_as_likely_as_the_model_it_was_read_off(decoder, model, X):
    """The projection on three patterns loses little; independence loses much."""
    loss = model.score(X[:1000]) - decoder.score(X[:1000])
    assert -0.05 < loss < 0.3
    assert decoder.score(X[:1000]) > -48 * np.log(2) + 5


def test_samples_of_the_decoded_model_have_the_overlaps_of_the_model(decoder, model):
    drawn = decoder.sample(6000, random_state=0)
    assert drawn.dtype == np.int8 and set(np.unique(drawn)) == {-1, 1}
    squares = [
        decoder.transform(rows) ** 2
        for rows in (drawn, model.sample(6000, random_state=1))
    ]
    # 5 standard errors of squares of spread 0.3, and what the projection loses
    np.testing.assert_allclose(*(s.mean(axis=0) for s in squares), atol=0.04)


def test_field_is_orthogonal_to_the_patterns(decoder):
    overlap = decoder.patterns_ @ decoder.field_ / 48
    np.testing.assert_allclose(overlap, 0, atol=1e-6)


def test_field_shows_a_site_that_is_held():
    rng = np.random.default_rng(0)
    X, _ = make_curie_weiss(3000, 24, temperature=0.8, random_state=0)
    X[:, 5] = np.where(rng.random(3000) < 0.98, 1, -1)
    model = MeanFieldVAE(1, hidden_layer_sizes=(32,), max_epochs=30)
    decoder = HopfieldPatternDecoder(model, n_patterns=1, random_state=0).fit(X)
    assert decoder.field_.argmax() == 5
    # logit(.98) / 2 less its share in the pattern's direction
    assert decoder.field_[5] == pytest.approx(0.5 * np.log(49), abs=0.5)


def test_conventions_give_the_same_patterns(decoder, X):
    words = (X > 0).astype(int)
    same = HopfieldPatternDecoder(
        MeanFieldVAE(4, hidden_layer_sizes=(64,), max_epochs=40, random_state=0),
        random_state=0,
    ).fit(words)
    np.testing.assert_array_equal(same.patterns_, decoder.patterns_)
    np.testing.assert_array_equal(same.transform(words), decoder.transform(X))
    assert set(np.unique(same.sample(20, random_state=0))) == {0, 1}


@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
def test_same_seed_same_bits(X):
    model = MeanFieldVAE(3, hidden_layer_sizes=(16,), max_epochs=5)
    first, second = (
        HopfieldPatternDecoder(model, random_state=0).fit(X[:500]) for _ in range(2)
    )
    assert joblib.hash(first) == joblib.hash(second)
    assert model.random_state is None


@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
def test_more_patterns_than_latents_is_refused(X):
    with pytest.raises(ValueError, match=r"n_patterns=5 .* only 2 latent"):
        HopfieldPatternDecoder(
            MeanFieldVAE(2, hidden_layer_sizes=(8,), max_epochs=1), n_patterns=5
        ).fit(X[:100])


def test_real_values_are_named_through_a_pipeline(X):
    with pytest.raises(ValueError, match=r"column 0, row \d+ is"):
        make_pipeline(StandardScaler(), HopfieldPatternDecoder()).fit(
            X[:100].astype(float)
        )


def test_feature_names(decoder):
    names = [f"hopfieldpatterndecoder{k}" for k in range(3)]
    assert decoder.get_feature_names_out().tolist() == names


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_four_patterns_with_the_default_network(seed):
    patterns = make_patterns(4, 64, random_state=seed)
    X, _ = make_hopfield(20_000, patterns, temperature=0.7, random_state=seed)
    model = MeanFieldVAE(4, max_epochs=20)
    decoder = HopfieldPatternDecoder(model, random_state=seed).fit(X)
    assert exact_patterns(decoder.patterns_, patterns) == decoder.n_patterns_ == 4


@pytest.mark.slow
def test_eight_patterns_by_stacked_jacobians():
    patterns = make_patterns(8, 64, random_state=1)
    X, _ = make_hopfield(30_000, patterns, temperature=0.7, random_state=1)
    decoder = HopfieldPatternDecoder(
        MeanFieldVAE(8, max_epochs=30), n_patterns=8, random_state=0
    ).fit(X)
    assert exact_patterns(decoder.patterns_, patterns) >= 7


def test_thresholds(model, X):
    frozen = FrozenEstimator(model)
    strict = HopfieldPatternDecoder(frozen, min_confidence=1.0, random_state=0).fit(X)
    loose = HopfieldPatternDecoder(frozen, min_confidence=0.0, random_state=0).fit(X)
    assert strict.n_patterns_ == 0 and loose.n_patterns_ == 4
    never, always = (
        HopfieldPatternDecoder(frozen, min_overlap=value, random_state=0).fit(X)
        for value in (1.0, 0.0)
    )
    noise = np.random.default_rng(5).choice([-1, 1], (50, 48))
    assert never.predict(noise).max() == -1 and (always.predict(noise) >= 0).all()
    assert strict.values_ == (-1, 1)


@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
def test_pipeline_and_grid_search(X):
    decoder = HopfieldPatternDecoder(
        MeanFieldVAE(3, hidden_layer_sizes=(8,), max_epochs=2), random_state=0
    )
    search = GridSearchCV(
        make_pipeline(FunctionTransformer(), decoder),
        {"hopfieldpatterndecoder__n_patterns": [1, 3]},
        cv=2,
    ).fit(X[:200])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_ising_sheet_has_no_span_of_patterns():
    """Local order is no stored pattern, but for the uniform one."""
    X, _ = make_ising(3000, (6, 6), temperature=2.5, random_state=0)
    model = MeanFieldVAE(4, hidden_layer_sizes=(32,), max_epochs=20)
    decoder = HopfieldPatternDecoder(model, random_state=0).fit(X)
    assert decoder.n_patterns_ <= 1
