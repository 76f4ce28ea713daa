"""RigidAligner, LinearAligner, PermutationAligner: the contract they share."""

import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skident import LinearAligner, PermutationAligner, RigidAligner
from skident._math import procrustes
from skident._math.affine import RIDGES
from skident._math.motion import pad_columns, pair_rows

ALIGNERS = [RigidAligner(), LinearAligner(), PermutationAligner()]
seeds, widths = st.integers(0, 10**6), st.integers(1, 5)
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


WEIGHTED = [
    RigidAligner(),
    RigidAligner(allow_reflection=False, scaling=True),
    LinearAligner(),
    LinearAligner(alpha=3.0),
    PermutationAligner(),
    PermutationAligner(criterion="correlation", signed=False),
    RigidAligner(center=False, scaling=True),
    LinearAligner(center=False),
    PermutationAligner(center=False),
]


@pytest.mark.parametrize("aligner", WEIGHTED, ids=str)
@settings(max_examples=25, deadline=None)
@given(seed=seeds, p=widths, q=widths)
def test_integer_weights_equal_repeats_and_zero_ones_removal(aligner, seed, p, q):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((30, p)), rng.standard_normal((30, q))
    weights = rng.integers(0, 4, size=30)
    repeated = np.repeat(np.arange(30), weights)
    a = clone(aligner).fit(X, Y, sample_weight=weights)
    b = clone(aligner).fit(X[repeated], Y[repeated])
    for name in ("rotation_", "source_mean_", "target_mean_", "scale_"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-9)
    assert a.score(X, Y, sample_weight=weights) == pytest.approx(
        b.score(X[repeated], Y[repeated]), abs=1e-9
    )
    assert a.is_unique_ == b.is_unique_
    if getattr(aligner, "alpha", 0.0) == 0.0:
        # without a ridge only ratios of weights matter, of any size
        c = clone(aligner).fit(X, Y, sample_weight=1e290 * weights)
        np.testing.assert_allclose(c.rotation_, a.rotation_, atol=1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(59), r"one weight a row, shape \(60,\), got shape \(59,\)"),
        (np.ones((60, 1)), "one weight a row"),
        (np.where(np.arange(60) == 7, -1.0, 1.0), "not negative, but row 7 has -1"),
        (np.where(np.arange(60) == 3, np.nan, 1.0), "row 3 has nan"),
        (np.eye(60)[0], r"all but 1 row\(s\), and at least 2"),
    ],
)
@each_aligner
def test_weights_are_checked(aligner, weights, message):
    with pytest.raises(ValueError, match=message):
        clone(aligner).fit(rows(0), rows(1), sample_weight=weights)


@settings(max_examples=60, deadline=None)
@given(
    seed=seeds, p=widths, q=widths, n=st.integers(2, 30),
    size=st.sampled_from([1e-290, 1e-12, 1.0, 1e12, 1e290]),
    kind=st.sampled_from(["normal", "cauchy", "ties", "dependent"]),
    weighted=st.booleans(), center=st.booleans(),
)  # fmt: skip
def test_scores_in_sample_are_ordered_always(
    seed, p, q, n, size, kind, weighted, center
):
    """Permutation, rigid, rigid with scale, linear: any widths, weights, units."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, p)), rng.standard_normal((n, q))
    if kind == "cauchy":
        X, Y = rng.standard_cauchy((n, p)), rng.standard_cauchy((n, q))
    elif kind == "ties":
        X, Y = np.round(X), np.round(Y)
    elif kind == "dependent":
        X[:, -1] = X[:, 0]
    X, Y = size * X, size * Y
    options = {"sample_weight": rng.exponential(size=n) if weighted else None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fits = [
            clone(aligner).set_params(center=center).fit(X, Y, **options)
            for aligner in (
                PermutationAligner(assignment="greedy"),
                PermutationAligner(),
                RigidAligner(),
                RigidAligner(scaling=True),
            )
        ]
        linear = LinearAligner(center=center).fit(X, Y, **options)
    w = np.ones(n) if weighted is False else options["sample_weight"]

    def squared(aligner):
        mapped = aligner.transform(X) / size
        mapped[:, :q] -= Y / size
        return np.sum(w[:, None] * mapped**2)

    errors = [squared(aligner) for aligner in (*fits, linear)]
    slack = 1e-9 * (errors[0] + np.sum(w[:, None] * (X / size) ** 2))
    assert np.all(np.diff(errors) <= slack), errors


@pytest.mark.parametrize("aligner", WEIGHTED, ids=str)
@settings(max_examples=15, deadline=None)
@given(seed=seeds, p=widths, q=widths)
def test_maps_that_keep_the_origin(aligner, seed, p, q):
    """They are those of the rows and their mirror images, whose mean is 0."""
    rng = np.random.default_rng(seed)
    X, Y = (rng.standard_normal((30, k)) + rng.uniform(-9, 9, k) for k in (p, q))
    found = clone(aligner).set_params(center=False).fit(X, Y)
    mirrored = clone(aligner)
    if getattr(aligner, "alpha", 0.0):
        mirrored.set_params(alpha=2 * aligner.alpha)
    mirrored.fit(np.vstack([X, -X]), np.vstack([Y, -Y]))
    np.testing.assert_allclose(found.rotation_, mirrored.rotation_, atol=1e-9)
    assert found.scale_ == pytest.approx(mirrored.scale_)
    assert not found.source_mean_.any() and not found.target_mean_.any()
    assert not found.transform(np.zeros((1, p))).any()
    np.testing.assert_allclose(
        found.transform(X), found.scale_ * X @ found.rotation_, atol=1e-12
    )
    if p <= q and not isinstance(aligner, LinearAligner):
        back = found.inverse_transform(found.transform(X))
        np.testing.assert_allclose(back, X, atol=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize(
    "aligner",
    [RigidAligner(), RigidAligner(scaling=True), LinearAligner(), PermutationAligner()],
    ids=str,
)
@pytest.mark.parametrize("q", [2, 3, 5])
def test_units_do_not_matter(aligner, size, q):
    """A power of two changes no digit; numpy's warnings are errors here."""
    size = 2.0 ** round(np.log2(size))
    X, Y = rows(0), rows(1, p=q)
    plain = clone(aligner).fit(X, Y)
    scaled = clone(aligner).fit(size * X, size * Y)
    np.testing.assert_array_equal(scaled.rotation_, plain.rotation_)
    assert scaled.scale_ == plain.scale_ and scaled.is_unique_ == plain.is_unique_
    np.testing.assert_allclose(scaled.transform(size * X) / size, plain.transform(X))
    assert scaled.score(size * X, size * Y) == pytest.approx(plain.score(X, Y))
    back = scaled.inverse_transform(size * plain.transform(X)) / size
    np.testing.assert_allclose(
        back, plain.inverse_transform(plain.transform(X)), atol=1e-9
    )


def test_other_units_of_either_side():
    X, Y = rows(0), rows(1)
    for one, other in ((1e150, 1e-150), (1e-150, 1e140)):
        linear = LinearAligner().fit(one * X, other * Y)
        plain = LinearAligner().fit(X, Y)
        np.testing.assert_allclose(
            linear.rotation_ * (one / other), plain.rotation_, rtol=1e-9
        )
        rigid = RigidAligner().fit(one * X, other * Y)
        np.testing.assert_allclose(
            rigid.rotation_, RigidAligner().fit(X, Y).rotation_, atol=1e-12
        )
    for aligner in (LinearAligner(), RigidAligner(scaling=True)):
        for one, other in ((1e300, 1e-300), (1e-300, 1e300)):
            with pytest.raises(ValueError, match="beyond the range of floats"):
                clone(aligner).fit(one * X, other * Y)


def test_columns_of_very_different_size():
    """A linear map measures each column in its own unit; so does a correlation."""
    X, sizes = rows(0), np.array([1e-140, 1.0, 1e140])
    B = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 1.0], [0.0, 1.0, 3.0]])
    linear = LinearAligner().fit(X * sizes, X @ B)
    np.testing.assert_allclose(linear.rotation_ * sizes[:, None], B, atol=1e-9)
    assert linear.is_unique_
    np.testing.assert_allclose(
        linear.inverse_transform(X @ B) / sizes, X, atol=1e-9, rtol=1e-9
    )
    match = PermutationAligner(criterion="correlation").fit(X * sizes, X[:, [2, 0, 1]])
    np.testing.assert_array_equal(match.rotation_, np.eye(3)[:, [2, 0, 1]])


@each_aligner
@pytest.mark.parametrize(("p", "q"), [(3, 5), (5, 3), (1, 4), (4, 1)])
def test_inverse_is_the_pseudo_inverse(aligner, p, q):
    X, Y = rows(0, p=p), rows(1, p=q)
    fitted = clone(aligner).fit(X, Y)
    Z = rows(2, p=fitted.rotation_.shape[1])
    back = np.linalg.pinv(fitted.scale_ * fitted.rotation_)
    expected = (Z - fitted.target_mean_) @ back + fitted.source_mean_
    np.testing.assert_allclose(fitted.inverse_transform(Z), expected, atol=1e-9)
    again = fitted.inverse_transform(fitted.transform(fitted.inverse_transform(Z)))
    np.testing.assert_allclose(again, fitted.inverse_transform(Z), atol=1e-9)


@pytest.mark.parametrize("n", [8, 60])
@pytest.mark.parametrize("noise", [1e-6, 1.0, 30.0])
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("center", [True, False])
def test_ridge_by_cross_validation_is_that_of_an_independent_one(n, noise, q, center):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 5)) + 4.0
    Y = X @ rng.standard_normal((5, q)) + noise * rng.standard_normal((n, q))
    fitted = LinearAligner(alpha="cv", center=center).fit(X, Y)
    grid = RIDGES * np.linalg.norm(X - center * X.mean(axis=0), 2) ** 2
    peer = RidgeCV(alphas=grid, fit_intercept=center).fit(X, Y)
    assert fitted.alpha_ == pytest.approx(peer.alpha_, rel=1e-6)
    np.testing.assert_allclose(
        fitted.transform(X), np.reshape(peer.predict(X), (n, q)), rtol=1e-6, atol=1e-6
    )
    same = LinearAligner(alpha=fitted.alpha_, center=center).fit(X, Y)
    np.testing.assert_allclose(same.rotation_, fitted.rotation_, atol=1e-12)
    assert fitted.is_unique_


def test_ridge_by_cross_validation_helps_out_of_sample_and_has_units():
    X = rows(0, n=30, p=20)
    Y = X @ rotation(0, 20) + rows(1, n=30, p=20)
    new = rows(2, n=500, p=20)
    plain, ridge = LinearAligner().fit(X, Y), LinearAligner(alpha="cv").fit(X, Y)
    truth = new @ rotation(0, 20)
    assert ridge.score(new, truth) > plain.score(new, truth) + 0.2
    scaled = LinearAligner(alpha="cv").fit(2.0**20 * X, Y)
    assert scaled.alpha_ == 2.0**40 * ridge.alpha_
    fixed = np.full((30, 2), 0.1)
    with pytest.warns(UserWarning, match="is_unique_"):
        constant = LinearAligner(alpha="cv").fit(fixed, Y)
    assert constant.alpha_ == 0.0 and np.all(constant.rotation_ == 0)
    huge = LinearAligner(alpha="cv").fit(1e250 * X, Y)
    assert np.isfinite(huge.alpha_) and np.isfinite(huge.transform(1e250 * X)).all()


def test_weighted_rows_are_left_out_whole_in_the_ridge():
    """By brute force: fit without the row, weighted error of the row."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((12, 4)), rng.standard_normal((12, 2))
    w = rng.exponential(size=12)
    fitted = LinearAligner(alpha="cv").fit(X, Y, sample_weight=w)
    centred = (X - w @ X / w.sum()) * np.sqrt(w)[:, None]
    grid = RIDGES * np.linalg.norm(centred, 2) ** 2
    losses = []
    for alpha in grid:
        loss = 0.0
        for k in range(12):
            kept = np.arange(12) != k
            other = LinearAligner(alpha=alpha)
            other.fit(X[kept], Y[kept], sample_weight=w[kept])
            loss += w[k] * np.sum((other.transform(X[[k]]) - Y[k]) ** 2)
        losses.append(loss)
    assert fitted.alpha_ == pytest.approx(grid[np.argmin(losses)], rel=1e-6)


def test_greedy_beyond_two_thousand_columns():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2001))
    order = rng.permutation(2001)
    fitted = PermutationAligner().fit(X, -X[:, order])
    assert fitted.assignment_ == "greedy"
    np.testing.assert_array_equal(fitted.rotation_, -np.eye(2001)[:, order])
    assert PermutationAligner().fit(rows(0), rows(1)).assignment_ == "optimal"


@pytest.mark.parametrize(("p", "q"), [(40, 40), (40, 25)])
@pytest.mark.parametrize("proper", [False, True])
def test_few_rows_of_many_columns_as_by_the_whole_matrix(p, q, proper, monkeypatch):
    """The answer within the span of the rows is that of the full decomposition."""
    X, Y = rows(0, n=9, p=p), rows(1, n=9, p=q)
    options = {"allow_reflection": not proper}
    with pytest.warns(UserWarning, match="is_unique_"):
        found = RigidAligner(**options).fit(X, Y)
    pair = pair_rows(X, Y)
    cross = pad_columns(pair.sums().xy, p)
    full = procrustes.orthogonal_factor(cross, q, pair.sums().noise, proper or p != q)[
        0
    ]
    np.testing.assert_allclose(found.rotation_, full, atol=1e-10)
    np.testing.assert_allclose(
        found.rotation_ @ found.rotation_.T, np.eye(p), atol=1e-10
    )


def test_one_table_of_groups():
    kinds = {
        "permutation": PermutationAligner, "rigid": RigidAligner,
        "linear": LinearAligner,
    }  # fmt: skip
    assert list(kinds) == list(procrustes.TRANSFORMATIONS)
    X, Y = rows(0), rows(1)
    for name, kind in kinds.items():
        found = procrustes.TRANSFORMATIONS[name].from_rows(X, Y)
        np.testing.assert_array_equal(kind().fit(X, Y).rotation_, found.rotation)
        sums = pair_rows(X, Y).sums()
        full = sums._replace(xx=pair_rows(X, X).sums().xy, yy=pair_rows(Y, Y).sums().xy)
        again = procrustes.TRANSFORMATIONS[name].from_sums(full)
        units = pair_rows(X, Y)
        size = units.unit_y / units.unit_x if name == "linear" else 1.0
        np.testing.assert_allclose(size * again.rotation, found.rotation, atol=1e-12)
        assert again.unique == found.unique and again.reflection == found.reflection


@each_aligner
def test_frames_in_another_order_are_refused(aligner):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((9, 2)), index=list("abcdefghi"))
    Y = X.iloc[[1, 0, *range(2, 9)]]
    with pytest.raises(
        ValueError, match=r"row 0 is 'a' in X and 'b' in y.*y\.loc\[X\."
    ):
        aligner.fit(X, Y)
    aligner.fit(X, Y.loc[X.index])
    with pytest.raises(ValueError, match="same index in another order"):
        aligner.score(X, Y)
    # other ids say nothing of the order
    aligner.fit(X, Y.reset_index(drop=True))


@each_aligner
def test_rows_of_a_narrower_target_come_back(aligner):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    Y = X[:, :2] + 1.0
    aligner.fit(X, Y)
    width = aligner.rotation_.shape[1]
    padded = np.pad(Y, ((0, 0), (0, width - 2)))
    assert np.array_equal(
        aligner.inverse_transform(Y), aligner.inverse_transform(padded)
    )
    with pytest.raises(ValueError, match="inverse_transform needs"):
        aligner.inverse_transform(Y[:, :1])


@each_aligner
def test_a_fit_that_fails_changes_nothing(aligner):
    aligner = clone(aligner).fit(rows(0), rows(1))
    before = joblib.hash(aligner)
    for X, y in (
        (rows(0, p=2), rows(1)[:9]),
        (pd.DataFrame(rows(0), columns=list("abc")), np.full((60, 2), np.nan)),
        (rows(0, p=4), None),
    ):
        with pytest.raises(ValueError):
            aligner.fit(X, y)
        assert joblib.hash(aligner) == before
    never = clone(aligner)
    with pytest.raises(ValueError):
        never.fit(rows(0), rows(1)[:9])
    assert not hasattr(never, "n_features_in_")


@pytest.mark.parametrize("size", [1.0, 2.0**9, 2.0**-30, 2.0**700])
def test_scale_stays_one_where_nothing_is_shared(size):
    """Orthogonal columns, in the units of either side; to rounding, too."""
    a, b = np.array([1.0, -1, 1, -1]), np.array([1.0, 1, -1, -1])
    for X, Y in ((a[:, None], size * b[:, None]), (rows(0), np.full((60, 2), size))):
        with pytest.warns(UserWarning, match="is_unique_"):
            fitted = RigidAligner(scaling=True).fit(X, Y)
        assert fitted.scale_ == 1.0
    X = rows(0, n=40)
    basis = np.linalg.qr(np.c_[np.ones(40), X, rows(1, n=40)])[0]
    with pytest.warns(UserWarning, match="is_unique_"):
        fitted = RigidAligner(scaling=True).fit(X, size * basis[:, 4:])
    assert fitted.scale_ == 1.0
    shared = RigidAligner(scaling=True).fit(X, size * X)
    assert shared.scale_ == pytest.approx(size)


@each_aligner
def test_results_beyond_single_precision_are_refused(aligner):
    X = rows(0, n=9).astype(np.float32)
    far = clone(aligner).fit(X, 1e100 * rows(1, n=9))
    message = "beyond the range of float32 in row 0: rescale X, or pass it as float64"
    with pytest.raises(ValueError, match=message):
        far.transform(X)
    assert np.isfinite(far.transform(X.astype(float))).all()
    back = clone(aligner).fit(1e100 * rows(1, n=9), X)
    with pytest.raises(ValueError, match="beyond the range of float32"):
        back.inverse_transform(X)
    # A fitted mean near the largest number of the type is no harm by itself.
    near = np.float32(3e38) * np.sign(X)
    fitted = clone(aligner).fit(near, near)
    np.testing.assert_allclose(fitted.transform(near), near, rtol=1e-5)


@each_aligner
def test_results_beyond_floats_are_refused(aligner):
    """And numpy says nothing; the first row that is too far from the mean is named."""
    X = np.random.default_rng(0).uniform(1.5e308, 1.7e308, (30, 3))
    X[4] *= -1
    fitted = clone(aligner).fit(X, X)
    with pytest.raises(ValueError, match=r"float64 in row 4: rescale X\.$"):
        fitted.transform(X)
    with pytest.raises(ValueError, match=r"float64 in row 4: rescale X\.$"):
        fitted.score(X, X)
    near = np.delete(X, 4, axis=0)
    np.testing.assert_allclose(fitted.transform(near), near, rtol=1e-9)


def test_wide_against_narrow_is_matched_in_the_rectangle(monkeypatch):
    """Five thousand columns against three: no square of the wider side is solved."""
    shapes = []
    solve = optimize.linear_sum_assignment

    def spy(worth, **options):
        shapes.append(worth.shape)
        return solve(worth, **options)

    monkeypatch.setattr(optimize, "linear_sum_assignment", spy)
    X = rows(0, n=60, p=5000)
    for one, other in ((X, -X[:, [4000, 7, 1]]), (-X[:, [4000, 7, 1]], X)):
        fitted = PermutationAligner().fit(one, other)
        assert fitted.assignment_ == "optimal" and fitted.is_unique_
        moved = fitted.transform(one)
        places = [0, 1, 2] if one is X else [4000, 7, 1]
        wanted = other if one is X else other[:, places]
        np.testing.assert_allclose(moved[:, places], wanted, atol=1e-12)
    assert set(shapes) == {(3, 5000)}


def test_aligners_need_neither_torch_nor_numba():
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "skorch", "numba"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import numpy as np
from skident import LinearAligner, PermutationAligner, RigidAligner
X = np.random.default_rng(0).standard_normal((50, 3))
for aligner in (RigidAligner(), LinearAligner(), PermutationAligner()):
    assert aligner.fit(X, X[:, ::-1]).score(X, X[:, ::-1]) > 0.999
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
