"""Scorers of transformers against factors that come through y."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skident import WhitenICA
from skident.metrics import factor_scorer, infomec_score, infomec_scorer, mcc_score
from skident.metrics._factor_scorers import FACTOR_SCORES


def mixed_sources(n=300, p=2):
    rng = np.random.default_rng(0)
    factors = rng.random((n, p))
    return factors @ rng.standard_normal((p, p)), factors


@pytest.mark.parametrize("name", FACTOR_SCORES)
def test_every_score_is_a_number_and_can_be_pickled(name):
    X, factors = mixed_sources(120)
    model = PCA(2).fit(X)
    scorer = pickle.loads(pickle.dumps(factor_scorer(name)))
    found = scorer(model, X, factors)
    assert isinstance(found, float) and 0 <= found <= 1
    assert found == scorer(model, X, factors)


def test_score_is_that_of_the_latents_with_the_options():
    X, factors = mixed_sources()
    model = WhitenICA(random_state=0).fit(X)
    scorer = factor_scorer("mcc", method="spearman", random_state=3)
    expected = mcc_score(factors, model.transform(X), method="spearman", random_state=3)
    assert scorer(model, X, factors) == expected.mcc
    expected = infomec_score(factors, model.transform(X), random_state=0)
    assert infomec_scorer(model, X, factors) == dict(
        zip(("infom", "infoe", "infoc"), expected[:3], strict=True)
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_over_pipelines_finds_the_unmixing(n_jobs):
    X, factors = mixed_sources(400)
    pipeline = make_pipeline(StandardScaler(), PCA(2))
    grid = {"pca": [PCA(2), PCA(2, whiten=True), WhitenICA(random_state=0)]}
    search = GridSearchCV(
        pipeline, grid, scoring=factor_scorer("mcc"), cv=2, n_jobs=n_jobs,
        error_score="raise",
    ).fit(X, factors)  # fmt: skip
    assert search.best_index_ == 2
    assert search.best_score_ > 0.95
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_three_scores_at_once_of_text_in_frames():
    rng = np.random.default_rng(0)
    factors = pd.DataFrame({
        "shape": rng.choice(["disc", "square"], 300),
        "size": rng.choice(["S", "M", "L"], 300),
    })  # fmt: skip
    codes = factors.apply(lambda column: pd.factorize(column)[0]).to_numpy()
    X = (codes + 0.05 * rng.standard_normal((300, 2))) @ [[2.0, 1.0], [1.0, 1.0]]
    frame = pd.DataFrame(X, columns=["a", "b"])
    found = cross_validate(
        StandardScaler().set_output(transform="pandas"), frame, factors,
        scoring=infomec_scorer, cv=2, error_score="raise",
    )  # fmt: skip
    assert {"test_infom", "test_infoe", "test_infoc"} <= set(found)
    assert found["test_infoe"].min() > 0.9
    search = GridSearchCV(
        StandardScaler(), {"with_mean": [True, False]}, scoring=infomec_scorer,
        refit="infoe", cv=2, error_score="raise",
    ).fit(frame, factors)  # fmt: skip
    assert search.best_score_ > 0.9


def test_misuse_is_named():
    X, factors = mixed_sources(50)
    with pytest.raises(
        ValueError, match=r"score must be one of \('infom', .*got 'nmi'"
    ):
        factor_scorer("nmi")
    with pytest.raises(ValueError, match="factors are needed: pass them as y"):
        factor_scorer("mcc")(PCA(2).fit(X), X)
    with pytest.raises(TypeError, match=r"LinearRegression\(\) has no transform"):
        infomec_scorer(LinearRegression().fit(X, factors), X, factors)
