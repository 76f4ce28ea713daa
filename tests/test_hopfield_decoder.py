import joblib
import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skident import HopfieldPatternDecoder, MeanFieldVAE
from skident.datasets import make_curie_weiss, make_hopfield, make_ising, make_patterns


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
    assert decoder.estimator_.n_components == 3
    assert exact_patterns(decoder.patterns_, patterns) == 3


def test_spectrum_has_a_gap_after_the_patterns(decoder):
    assert decoder.spectrum_[2] > 2 * decoder.spectrum_[3]
    assert (np.diff(decoder.spectrum_) <= 0).all()


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
