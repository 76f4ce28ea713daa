"""IdentifiabilityStudy: errors, intervals, consensus, bounds, factors, resumption."""

import pickle
from itertools import combinations

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import ortho_group
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

from skident import AutoencoderEmbedder, IdentifiabilityStudy, WhitenICA
from skident._math import consensus
from skident._study_pairs import interval_over_runs
from skident.metrics import alignment_errors, bi_lipschitz, mcc_score

NAMES = ("permutation", "rigid", "linear", "ica")


class Turned(TransformerMixin, BaseEstimator):
    """Columns of X, turned and with noise by the seed; counts its fits in a folder."""

    def __init__(self, noise=0.0, folder=None, fail_at=None, random_state=None):
        self.noise = noise
        self.folder = folder
        self.fail_at = fail_at
        self.random_state = random_state

    def fit(self, X, y=None):
        if self.folder is not None:
            done = len(list(self.folder.iterdir()))
            if self.fail_at is not None and done >= self.fail_at:
                raise KeyboardInterrupt
            (self.folder / str(self.random_state)).touch()
        self.n_features_in_ = X.shape[1]
        self.n_rows_ = len(X)
        self.turn_ = ortho_group.rvs(X.shape[1], random_state=self.random_state)
        return self

    def transform(self, X):
        rng = np.random.default_rng([self.random_state, len(X)])
        return X @ self.turn_ + self.noise * rng.standard_normal(np.shape(X))


@pytest.fixture(scope="module")
def sources():
    return np.random.default_rng(0).laplace(size=(400, 3))


@pytest.fixture(scope="module")
def study(sources):
    model = Turned(noise=0.3)
    return IdentifiabilityStudy(model, n_runs=4, random_state=0).fit(sources)


def test_errors_are_those_of_the_pairs(sources, study):
    """Each pair's as by alignment_errors, up to the folds."""
    Z = [model.transform(sources) for model in study.estimators_]
    pairs = list(combinations(range(4), 2))
    assert list(zip(*(study.pair_table_[k] for k in ("first", "second")))) == pairs  # noqa: B905
    alone = np.array(
        [alignment_errors(Z[i], Z[j], random_state=1).error for i, j in pairs]
    )
    for k, name in enumerate(NAMES):
        np.testing.assert_allclose(study.pair_table_[name], alone[:, k], rtol=0.03)
        assert study.table_["error"][k] == pytest.approx(study.pair_table_[name].mean())
    assert study.table_["transformation"] == list(NAMES)
    for run, error in enumerate(study.run_table_["error"]):
        own = [e for e, p in zip(alone[:, 1], pairs, strict=True) if run in p]
        assert error == pytest.approx(np.mean(own), rel=0.03)


def test_known_noise_gives_the_known_error(sources, study):
    """Two turned copies with noise s: mean length of 3 normals of variance 2 s^2."""
    length = 0.3 * np.sqrt(2) * np.sqrt(8 / np.pi)
    Z = study.estimators_[0].transform(sources)
    diameter = max(np.linalg.norm(Z[:, None] - Z[None], axis=2).ravel())
    rigid = study.table_["error"][1]
    assert rigid == pytest.approx(length / diameter, rel=0.1)
    assert study.table_["lower"][1] < rigid < study.table_["upper"][1]
    # 400 rows of relative deviation .42: 2 %
    width = study.table_["upper"][1] - study.table_["lower"][1]
    assert width < 0.2 * rigid


def test_interval_over_runs_by_hand():
    """Pairs of distinct runs, weighted as often as both are drawn."""
    pairs = list(combinations(range(3), 2))
    errors = np.array([[1.0], [2.0], [4.0]])
    rng = np.random.default_rng(0)
    low, high = interval_over_runs(errors, pairs, 4000, 0.9, rng)[0]
    # all three: 7/3 (6 of 24 resamples with two or three runs); two runs: their pair
    assert (low, high) == (1.0, 4.0)
    middle = interval_over_runs(errors, pairs, 4000, 0.01, rng)[0]
    assert middle == pytest.approx([2.0, 7 / 3], abs=0.34)
    assert interval_over_runs(errors[:1], [(0, 1)], 10, 0.9, rng) is None


def test_two_runs_have_no_interval_over_runs(sources):
    study = IdentifiabilityStudy(Turned(), n_runs=2, random_state=0).fit(sources)
    assert "run_lower" not in study.table_ and "over runs" not in study.summary()


def test_consensus_is_in_the_axes_of_the_reference(sources):
    study = IdentifiabilityStudy(Turned(), n_runs=3, random_state=0).fit(sources)
    reference = study.estimators_[study.reference_run_]
    np.testing.assert_allclose(study.transform(sources), reference.transform(sources))
    np.testing.assert_allclose(study.embedding_, study.transform(sources))
    assert study.score(sources[:50]) == pytest.approx(0, abs=1e-10)


def test_reference_is_the_run_nearest_to_the_others(sources):
    rng = np.random.default_rng(0)
    Z = [sources + s * rng.standard_normal(sources.shape) for s in (0.5, 0.1, 0.4)]
    study = IdentifiabilityStudy.from_embeddings(Z, random_state=0)
    assert study.reference_run_ == np.argmin(study.run_table_["error"]) == 1


def test_consensus_that_does_not_settle_warns(sources, monkeypatch):
    monkeypatch.setattr(consensus, "_MOST_ROUNDS", 1)
    with pytest.warns(ConvergenceWarning, match="did not settle"):
        IdentifiabilityStudy(Turned(noise=0.5), n_runs=3, random_state=0).fit(sources)


def test_consensus_averages_noise_out(sources):
    model = Turned(noise=0.5)
    study = IdentifiabilityStudy(model, n_runs=8, random_state=0).fit(sources)

    def error(Z):
        return alignment_errors(Z, sources, random_state=0).forward[1]

    alone = np.mean([error(m.transform(sources)) for m in study.estimators_])
    # sqrt(8) = 2.8 times less noise, and turns that are estimated
    assert error(study.embedding_) < 0.5 * alone


@pytest.mark.parametrize("seed", range(3))
def test_independent_components_are_stable_and_gaussian_ones_are_not(seed):
    """Axes of a Gaussian plane in four dimensions are arbitrary on either half."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.laplace(size=(2000, 2)), rng.standard_normal((2000, 4))]
    study = IdentifiabilityStudy(Turned(noise=0.1), n_runs=3, random_state=seed).fit(X)
    stability = study.component_stability_
    assert np.all(np.diff(stability) <= 0)
    assert stability[1] > 0.9 and stability[2:].mean() < 0.9
    assert np.all(study.component_lowest_ <= stability)
    found = (study.embedding_ - study.component_mean_) @ study.components_.T
    assert mcc_score(X[:, :2], found[:, :2]).mcc > 0.97


def test_bound_of_theorem_one():
    X = load_digits().data[:300] / 16
    ae = AutoencoderEmbedder(2, hidden_layer_sizes=(16,), max_epochs=3)
    study = IdentifiabilityStudy(ae, n_runs=3, random_state=0).fit(X)
    L = [m.bi_lipschitz(X).L for m in study.estimators_]
    np.testing.assert_allclose(study.run_table_["lipschitz"], L, rtol=1e-5)
    bounds = [
        np.sqrt((1 + L[i]) ** 2 * (1 + L[j]) ** 2 - 1)
        for i, j in combinations(range(3), 2)
    ]
    np.testing.assert_allclose(study.pair_table_["bound"], bounds, rtol=1e-5)
    assert study.bound_ == pytest.approx(np.mean(bounds), rel=1e-5)
    assert "theorem 1" in study.summary()


def test_bound_of_a_pipeline_is_that_of_its_representation():
    """The decoder from ICA components: Jacobian times mixing, by finite differences."""
    X = load_digits().data[:200] / 16
    ae = AutoencoderEmbedder(2, hidden_layer_sizes=(16,), max_epochs=3)
    model = Pipeline([("scale", StandardScaler()), ("ae", ae), ("ica", WhitenICA())])
    study = IdentifiabilityStudy(model, n_runs=2, random_state=0).fit(X)
    fitted = study.estimators_[0]
    step, S = 1e-2, fitted.transform(X)

    def decoded(S):
        return fitted[1].inverse_transform(fitted[2].inverse_transform(S)).astype(float)

    jacobians = np.stack(
        [
            (decoded(S + step * np.eye(2)[k]) - decoded(S - step * np.eye(2)[k]))
            / (2 * step)
            for k in range(2)
        ],
        axis=2,
    )
    expected = bi_lipschitz(jacobians, quantile=0.05).L
    model = clone(study).set_params(bound_quantile=0.05).fit(X)
    assert model.run_table_["lipschitz"][0] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("last", [PCA(2), FastICA(2), "passthrough"])
def test_affine_steps_are_looked_through(last):
    X = load_digits().data[:100] / 16
    ae = AutoencoderEmbedder(2, hidden_layer_sizes=(8,), max_epochs=2)
    model = Pipeline([("ae", ae), ("last", last)])
    study = IdentifiabilityStudy(model, n_runs=2, random_state=0).fit(X)
    assert study.bound_ > 0


def test_no_bound_without_a_decoder_or_behind_a_bend(study):
    assert study.bound_ is None and "bound" not in study.pair_table_
    X = load_digits().data[:100] / 16
    ae = AutoencoderEmbedder(2, hidden_layer_sizes=(8,), max_epochs=2)
    bent = IdentifiabilityStudy(
        make_pipeline(ae, PowerTransformer()), n_runs=2, random_state=0
    ).fit(X)
    assert bent.bound_ is None


def test_factors_are_scored_before_and_after_ica(sources):
    study = IdentifiabilityStudy(Turned(), n_runs=3, random_state=0)
    study.fit(sources, sources)
    table = study.factor_table_
    assert table["score"] == [
        "infom", "infoe", "infoc",
        "disentanglement", "completeness", "informativeness", "mcc",
    ]  # fmt: skip
    mcc = table["score"].index("mcc")
    assert table["value_ica"][mcc] > 0.98 > table["value"][mcc]
    Z = [m.transform(sources) for m in study.estimators_]
    by_hand = [mcc_score(sources, z).mcc for z in Z]
    np.testing.assert_allclose(study.run_table_["mcc"], by_hand)
    assert table["value"][mcc] == pytest.approx(np.mean(by_hand))
    assert table["lower"][mcc] >= min(by_hand) and table["upper"][mcc] <= max(by_hand)
    assert "after ICA" in study.summary()


def test_runs_that_were_finished_are_found_again(sources, tmp_path):
    folder, memory = tmp_path / "fits", tmp_path / "memory"
    folder.mkdir()
    model = Turned(folder=folder, fail_at=2)
    study = IdentifiabilityStudy(model, n_runs=4, memory=memory, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        study.fit(sources)
    assert len(list(folder.iterdir())) == 2 and not hasattr(study, "table_")
    # the same study as one whose fits are allowed to go on
    class_fit = Turned.fit
    seen = []

    def fit(self, X, y=None):
        seen.append(self.random_state)
        return class_fit(clone(self).set_params(folder=None), X)

    try:
        Turned.fit = fit
        study.fit(sources)
    finally:
        Turned.fit = class_fit
    assert len(seen) == 2
    whole = IdentifiabilityStudy(Turned(), n_runs=4, random_state=0).fit(sources)
    np.testing.assert_array_equal(study.table_["error"], whole.table_["error"])


def test_more_runs_keep_those_that_there_are(sources):
    few, many = (
        IdentifiabilityStudy(Turned(), n_runs=n, random_state=0).fit(sources)
        for n in (2, 4)
    )
    seeds = [m.random_state for m in many.estimators_]
    assert [m.random_state for m in few.estimators_] == seeds[:2]
    assert len(set(seeds)) == 4


def test_every_nested_seed_is_replaced(sources):
    model = Pipeline([("a", Turned(random_state=3)), ("b", FastICA(random_state=3))])
    study = IdentifiabilityStudy(model, n_runs=2, random_state=0).fit(sources)
    seeds = [(m["a"].random_state, m["b"].random_state) for m in study.estimators_]
    assert len({*seeds[0], *seeds[1], 3}) == 5
    assert model["a"].random_state == 3 and not hasattr(model["a"], "turn_")


def test_a_model_without_seeds_is_warned_of(sources):
    with pytest.warns(UserWarning, match="no random_state"):
        same = IdentifiabilityStudy(StandardScaler(), n_runs=2).fit(sources)
    assert same.table_["error"].max() < 1e-12


def test_subsamples_keep_groups_whole(sources):
    groups = np.repeat(np.arange(40), 10)
    model = Turned()
    study = IdentifiabilityStudy(model, n_runs=3, subsample=0.5, random_state=0).fit(
        sources, groups=groups
    )
    assert [m.n_rows_ for m in study.estimators_] == [200] * 3
    assert study.embedding_.shape == (400, 3)


def test_intervals_resample_groups_whole(sources):
    """Errors that ten rows share: an interval sqrt(10) times as wide."""
    groups = np.repeat(np.arange(40), 10)
    noise = np.repeat(np.random.default_rng(1).standard_normal((40, 3)), 10, axis=0)
    widths = [
        np.ptp(
            [
                IdentifiabilityStudy.from_embeddings(
                    [sources, sources + noise], groups=g, random_state=0
                ).table_[end][1]
                for end in ("lower", "upper")
            ]
        )
        for g in (None, groups)
    ]
    assert 2 < widths[1] / widths[0] < 5


def test_deterministic_models_differ_by_their_rows(sources):
    study = IdentifiabilityStudy(
        StandardScaler(), n_runs=3, subsample=0.5, random_state=0
    ).fit(sources)
    assert study.table_["error"][1] > 1e-4


def test_study_of_embeddings_is_that_of_the_models(sources, study):
    Z = [model.transform(sources) for model in study.estimators_]
    ready = IdentifiabilityStudy.from_embeddings(Z, random_state=0)
    np.testing.assert_array_equal(ready.table_["error"], study.table_["error"])
    np.testing.assert_array_equal(ready.embedding_, study.embedding_)
    assert ready.estimators_ is None
    with pytest.raises(ValueError, match="embedding_ holds the consensus"):
        ready.transform(sources)


def test_embeddings_of_other_widths_and_with_factors(sources):
    Z = [sources, sources[:, :2], np.c_[sources, sources[:, :1]]]
    study = IdentifiabilityStudy.from_embeddings(
        Z, sources, transformations=("rigid",), random_state=0
    )
    assert study.embedding_.shape == (400, 4)
    assert study.components_ is None and study.component_stability_ is None
    assert study.run_table_["mcc"][0] == pytest.approx(1)
    assert study.ica_efficiency_ is None


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        ([np.eye(5)], "two embeddings, got 1"),
        ([np.eye(5), np.eye(6)], r"one number of rows, got \[5, 6\]"),
        ([np.eye(5), np.full((5, 2), np.nan)], r"embeddings\[1\].*NaN"),
        ([np.eye(5), np.ones((5, 2))], "All rows of run 1 are equal"),
        ([np.eye(3), np.eye(3)], "minimum of 5 is required"),
        (
            [pd.DataFrame(np.eye(6)), pd.DataFrame(np.eye(6), index=range(1, 7))],
            r"embeddings\[1\] has another index",
        ),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(embeddings, message):
    with pytest.raises(ValueError, match=message):
        IdentifiabilityStudy.from_embeddings(embeddings)


def test_wrong_estimators_and_options_are_refused(sources):
    with pytest.raises(TypeError, match="has no transform"):
        IdentifiabilityStudy(LogisticRegression()).fit(sources)
    with pytest.raises(ValueError, match="selection of"):
        IdentifiabilityStudy(Turned(), transformations=("affine",)).fit(sources)
    with pytest.raises(ValueError, match="minimum of 5"):
        IdentifiabilityStudy(Turned()).fit(sources[:4])
    with pytest.raises(ValueError, match="n_runs"):
        IdentifiabilityStudy(Turned(), n_runs=1).fit(sources)
    with pytest.raises(TypeError, match="from_embeddings"):
        IdentifiabilityStudy(None).fit(sources)


def test_an_error_names_the_run(sources):
    class Fails(Turned):
        def fit(self, X, y=None):
            raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing") as caught:
        IdentifiabilityStudy(Fails(), random_state=0).fit(sources)
    assert "run 0 of the study" in caught.value.__notes__[0]


def test_a_failed_fit_leaves_the_study_as_it_was(sources, study):
    """It fails at the factors, which come last."""
    changed = clone(study).fit(sources)
    before = {name: joblib.hash(value) for name, value in vars(changed).items()}
    with pytest.raises(ValueError, match="constant"):
        changed.fit(sources[:200], np.ones(200))
    after = {name: joblib.hash(value) for name, value in vars(changed).items()}
    assert after == before


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_number_of_jobs_does_not_change_the_answer(sources, backend):
    ae = AutoencoderEmbedder(2, hidden_layer_sizes=(8,), max_epochs=2)
    studies = []
    for n_jobs in (1, 2):
        with joblib.parallel_config(backend=backend):
            studies.append(
                IdentifiabilityStudy(
                    make_pipeline(ae, WhitenICA()), n_runs=3, n_jobs=n_jobs,
                    random_state=0,
                ).fit(sources)
            )  # fmt: skip
    one, two = studies
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    np.testing.assert_array_equal(one.table_["upper"], two.table_["upper"])
    np.testing.assert_array_equal(one.components_, two.components_)


def test_equal_studies_hash_equally_and_survive_a_pickle(sources, study):
    again = clone(study).fit(sources)
    for name in ("table_", "pair_table_", "run_table_", "embedding_"):
        assert joblib.hash(getattr(again, name)) == joblib.hash(getattr(study, name))
    loaded = pickle.loads(pickle.dumps(study))
    np.testing.assert_array_equal(loaded.transform(sources), study.transform(sources))


def test_output_names_and_frames(sources, study):
    named = clone(study).set_output(transform="pandas").fit(pd.DataFrame(sources))
    frame = named.transform(pd.DataFrame(sources))
    assert list(frame) == [f"identifiabilitystudy{k}" for k in range(3)]
    np.testing.assert_allclose(frame, study.embedding_)


def test_progress_is_shown_only_if_asked_for(sources, capsys):
    IdentifiabilityStudy(Turned(), n_runs=2, random_state=0).fit(sources)
    assert capsys.readouterr().err == ""
    study = IdentifiabilityStudy(Turned(), n_runs=2, verbose=1, random_state=0)
    study.fit(sources)
    err = capsys.readouterr().err
    assert "runs" in err and "pairs" in err


def test_grid_search_over_a_pipeline_in_two_jobs():
    X = load_digits().data[:300] / 16
    ae = AutoencoderEmbedder(2, hidden_layer_sizes=(16,), max_epochs=2)
    model = Pipeline([("ae", ae), ("ica", WhitenICA())])
    study = IdentifiabilityStudy(model, n_runs=2, random_state=0)
    grid = {"estimator__ae__weight_decay": [0.0, 1.0]}
    one, two = (
        GridSearchCV(study, grid, cv=2, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2)
    )
    scores = one.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(scores, two.cv_results_["mean_test_score"])
    assert np.all(scores < 0) and np.all(np.isfinite(scores))
    np.testing.assert_array_equal(
        one.best_estimator_.embedding_, two.best_estimator_.embedding_
    )
