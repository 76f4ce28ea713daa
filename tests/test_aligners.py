"""RigidAligner, LinearAligner, PermutationAligner: the contract they share."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skident import LinearAligner, PermutationAligner, RigidAligner

ALIGNERS = [RigidAligner(), LinearAligner(), PermutationAligner()]
each_aligner = pytest.mark.parametrize(
    "aligner", ALIGNERS, ids=lambda a: type(a).__name__
)


def rows(seed, n=60, p=3):
    return np.random.default_rng(seed).standard_normal((n, p))


def rotation(seed, p=3):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, p)))[0]


@each_aligner
@pytest.mark.parametrize("q", [1, 3, 5])
def test_one_formula(aligner, q):
    X, Y = rows(0), rows(1, p=q)
    fitted = clone(aligner).fit(X, Y)
    new = rows(2, n=10)
    expected = (
        fitted.scale_ * (new - fitted.source_mean_) @ fitted.rotation_
        + fitted.target_mean_
    )
    np.testing.assert_allclose(fitted.transform(new), expected, atol=1e-12)
    assert fitted.get_feature_names_out().size == fitted.rotation_.shape[1]
    np.testing.assert_allclose(
        fitted.fit_transform(X, Y), fitted.transform(X), atol=1e-12
    )


def test_formula_on_new_points_with_scale_and_asymmetric_rotation():
    X, R = rows(0), rotation(3)
    Y = 2.5 * (X - 1.0) @ R + [1.0, 2.0, 3.0]
    aligner = RigidAligner(scaling=True).fit(X, Y)
    new = rows(5)
    np.testing.assert_allclose(
        aligner.transform(new), 2.5 * (new - 1.0) @ R + [1.0, 2.0, 3.0], atol=1e-12
    )
    assert aligner.scale_ == pytest.approx(2.5)
    np.testing.assert_allclose(aligner.rotation_, R, atol=1e-12)
    unscaled = RigidAligner().fit(X, Y)
    assert unscaled.scale_ == 1.0
    np.testing.assert_allclose(unscaled.rotation_, R, atol=1e-12)


@each_aligner
def test_inverse(aligner):
    X, Y = rows(0), rows(1)
    fitted = clone(aligner).fit(X, Y)
    np.testing.assert_allclose(
        fitted.inverse_transform(fitted.transform(X)), X, atol=1e-9
    )
    wide = clone(aligner).fit(X, rows(1, p=5))
    np.testing.assert_allclose(wide.inverse_transform(wide.transform(X)), X, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_scores_in_sample_are_ordered(seed):
    X, Y = rows(seed), rows(seed + 100) + rows(seed)
    permutation, rigid, linear = (
        clone(aligner).fit(X, Y).score(X, Y)
        for aligner in (PermutationAligner(), RigidAligner(), LinearAligner())
    )
    assert permutation <= rigid + 1e-12 and rigid <= linear + 1e-12


def test_score_is_invariant_under_motions_of_either_side():
    X = rows(0)
    Y = X + 0.5 * rows(1)
    score = RigidAligner().fit(X, Y).score(X, Y)
    moved = X @ rotation(1) + 4
    assert RigidAligner().fit(moved, Y).score(moved, Y) == pytest.approx(score)
    turned = Y @ rotation(2) - 9
    assert RigidAligner().fit(X, turned).score(X, turned) == pytest.approx(score)
    assert RigidAligner().fit(X, X).score(X, X) == pytest.approx(1.0)


def test_planted_permutation():
    X = rows(0)
    Y = X[:, [2, 0, 1]] * [1, -1, 1] + 3
    aligner = PermutationAligner().fit(X, Y)
    np.testing.assert_allclose(aligner.transform(X), Y, atol=1e-12)
    assert aligner.is_reflection_ and aligner.is_unique_
    unsigned = PermutationAligner(signed=False).fit(X, X[:, [2, 0, 1]])
    np.testing.assert_allclose(unsigned.transform(X), X[:, [2, 0, 1]], atol=1e-12)
    assert set(np.unique(unsigned.fit(X, Y).rotation_)) == {0.0, 1.0}


def test_reflections():
    X = rows(0)
    mirror = X * [1, 1, -1]
    assert RigidAligner().fit(X, mirror).is_reflection_
    proper = RigidAligner(allow_reflection=False).fit(X, mirror)
    assert not proper.is_reflection_ and np.linalg.det(proper.rotation_) > 0
    assert proper.score(X, mirror) < 0.99


def test_one_dimensional_target_is_one_column():
    X = rows(0)
    y = X @ [1.0, -2.0, 0.5] + 3
    aligner = LinearAligner().fit(X, y)
    np.testing.assert_allclose(aligner.transform(X)[:, 0], y)
    assert aligner.score(X, y) == pytest.approx(1.0)
    rigid = RigidAligner().fit(X, y)
    assert rigid.transform(X).shape == X.shape
    # What a rotation cannot put into the one column is an error, in padded columns.
    error = np.sum((rigid.transform(X) - np.c_[y, np.zeros((60, 2))]) ** 2)
    spread = np.sum((y - y.mean()) ** 2)
    assert rigid.score(X, y) == pytest.approx(1 - error / spread)
    np.testing.assert_array_equal(
        LinearAligner().fit(X, pd.Series(y)).rotation_, aligner.rotation_
    )


def test_padding():
    X = rows(0)
    wide = np.c_[X @ rotation(0), np.zeros((60, 2))]
    aligner = RigidAligner().fit(X, wide)
    np.testing.assert_allclose(aligner.transform(X), wide, atol=1e-12)
    back = RigidAligner().fit(wide, X)
    np.testing.assert_allclose(back.transform(wide)[:, :3], X, atol=1e-12)
    assert back.score(wide, X) == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"\(60, 3\) and y \(60, 5\).*pad=True"):
        RigidAligner(pad=False).fit(X, wide)


@each_aligner
def test_thin_data_warn_once(aligner):
    X, Y = rows(0, n=3, p=5), rows(1, n=3, p=5)
    if isinstance(aligner, PermutationAligner):
        X[:, 0] = X[:, 1]
    with pytest.warns(UserWarning, match="is_unique_ is False") as seen:
        fitted = clone(aligner).fit(X, Y)
    assert len(seen) == 1 and not fitted.is_unique_
    assert np.isfinite(fitted.transform(X)).all()


@each_aligner
def test_constant_sides_give_finite_answers(aligner):
    X = rows(0)
    fixed = np.full_like(X, 0.1)
    with pytest.warns(UserWarning, match="is_unique_"):
        fitted = clone(aligner).fit(fixed, X)
    assert np.isfinite(fitted.transform(X)).all()
    assert fitted.score(fixed, X) == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(fitted.inverse_transform(X)).all()


@each_aligner
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (rows(0), rows(0)[:50], r"X has shape \(60, 3\), y has shape \(50, 3\)"),
        (rows(0), np.where(rows(0) > 2, np.nan, 1.0), "Input y contains NaN"),
        (np.where(rows(0) > 2, np.inf, 1.0), rows(0), "Input X contains infinity"),
        (rows(0)[:1], rows(0)[:1], "minimum of 2"),
        (sparse.csr_array(rows(0)), rows(0), "sparse"),
        (rows(0), None, "requires y to be passed"),
    ],
)
def test_bad_input(aligner, X, y, message):
    with pytest.raises(ValueError, match=message):
        clone(aligner).fit(X, y)


@each_aligner
def test_bad_widths_after_fit(aligner):
    fitted = clone(aligner).fit(rows(0), rows(1))
    with pytest.raises(ValueError, match="4 features"):
        fitted.transform(rows(0, p=4))
    with pytest.raises(ValueError, match="inverse_transform needs 3 columns"):
        fitted.inverse_transform(rows(0, p=4))
    with pytest.raises(ValueError, match=r"fit saw 3 column"):
        fitted.score(rows(0), rows(1, p=2))


@each_aligner
def test_types_and_persistence(aligner):
    X, Y = np.round(rows(0) * 8), np.round(rows(1) * 8)
    a = clone(aligner).fit(X, Y)
    b = clone(aligner).fit(X.astype(np.int8), Y.astype(np.float16))
    np.testing.assert_array_equal(a.rotation_, b.rotation_)
    assert joblib.hash(a) == joblib.hash(clone(a).fit(X, Y))
    assert joblib.hash(pickle.loads(pickle.dumps(a))) == joblib.hash(a)
    single = a.transform(X.astype(np.float32))
    assert single.dtype == a.inverse_transform(single).dtype == np.float32
    frame = pd.DataFrame(X, columns=list("abc"))
    out = clone(aligner).set_output(transform="pandas").fit(frame, Y).transform(frame)
    assert list(out.columns) == list(a.get_feature_names_out())


def test_search_and_pipeline():
    X = rows(0, n=30, p=12)
    Y = X @ rotation(0, 12) + rows(1, n=30, p=12)
    search = GridSearchCV(LinearAligner(), {"alpha": [0.0, 10.0]}, cv=3, n_jobs=2)
    assert search.fit(X, Y).best_params_ == {"alpha": 10.0}
    pipeline = make_pipeline(StandardScaler(), RigidAligner())
    assert np.isfinite(cross_val_score(pipeline, X, Y, cv=3)).all()


@pytest.mark.parametrize("n", [5, 60, 1000])
@pytest.mark.parametrize("value", [0.1, 0.3, 1e6 + 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_score_of_a_constant_target_is_one(n, value, dtype):
    X = np.random.default_rng(0).standard_normal((n, 2)).astype(dtype)
    y = np.full(n, value, dtype=dtype)
    for aligner in (RigidAligner(), LinearAligner(), PermutationAligner()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            score = aligner.fit(X, y).score(X, y)
        assert 0.0 <= score <= 1.0, (aligner, score)


def test_criterion_of_the_permutation():
    """Squared error looks at sizes, correlation does not."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2000))
    X = np.c_[a, b]
    y = np.c_[10 * (b + 0.1 * a), 0.3 * b + a]
    by_error = PermutationAligner(criterion="error").fit(X, y)
    by_correlation = PermutationAligner(criterion="correlation").fit(X, y)
    for aligner, measure in (
        (by_error, lambda m: -np.sum((y - y.mean(0) - (X - X.mean(0)) @ m) ** 2)),
        (by_correlation, lambda m: np.sum(np.corrcoef(X.T, y.T)[:2, 2:] * m)),
    ):
        options = [
            np.array(rows) * np.array(signs)
            for rows in (np.eye(2), np.eye(2)[::-1])
            for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1))
        ]
        best = max(options, key=measure)
        np.testing.assert_allclose(aligner.rotation_, best)
