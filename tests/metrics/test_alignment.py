"""alignment_errors, ica_efficiency, amari_distance."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist
from sklearn.decomposition import FastICA
from sklearn.model_selection import KFold

from skident._math.diameters import diameters
from skident._math.paired_rows import open_rows
from skident.metrics import alignment_errors, amari_distance, ica_efficiency

NAMES = ("permutation", "rigid", "linear", "ica")


def max_diameter(X):
    return diameters(open_rows(X))[0]


def robust_diameter(X):
    return diameters(open_rows(X))[1]


def rotation(seed, p):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, p)))[0]


def latents(seed, n=600, p=3):
    rng = np.random.default_rng(seed)
    S = np.where(np.arange(p) % 2, rng.uniform(-1, 1, (n, p)), rng.laplace(size=(n, p)))
    return S * np.linspace(1, 2, p)


PLANTED = {
    "permutation": lambda Z: Z[:, [2, 0, 1]] * [1, -1, -1] + 5,
    "rigid": lambda Z: Z @ rotation(0, 3) - 2,
    "linear": lambda Z: Z @ (rotation(0, 3) * [1, 0.3, 2]) @ rotation(1, 3),
}
# Which groups reach an error of zero; ICA does for all, as it is equivariant.
EXACT = {
    "permutation": {"permutation", "rigid", "linear", "ica"},
    "rigid": {"rigid", "linear", "ica"},
    "linear": {"linear", "ica"},
}


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_maps_are_found_by_the_right_groups(planted):
    Z = latents(0)
    result = alignment_errors(Z, PLANTED[planted](Z), random_state=0)
    for name, error, chance in zip(NAMES, result.error, result.chance, strict=True):
        if name in EXACT[planted]:
            assert error < 2e-3
        else:
            assert error > 0.02
        assert chance > 0.05
    assert result.transformations == NAMES


def test_errors_by_hand():
    """Without a fit to speak of, the error is the mean distance over the diameter."""
    rng = np.random.default_rng(0)
    Z1 = latents(0, n=4000)
    noise = 0.05 * rng.standard_normal(Z1.shape)
    Z2 = Z1 + noise
    result = alignment_errors(Z1, Z2, random_state=0)
    distance = np.linalg.norm(noise, axis=1)
    expected = distance.mean() / np.array([max_diameter(Z2), max_diameter(Z1)])
    error = distance.std() / np.sqrt(4000) / max_diameter(Z2)
    for k in (0, 1):
        assert result.forward[k] == pytest.approx(expected[0], abs=5 * error)
        assert result.backward[k] == pytest.approx(expected[1], abs=5 * error)
    np.testing.assert_allclose(result.error, (result.forward + result.backward) / 2)
    assert np.all(result.interval[:, 0] < result.error)
    assert np.all(result.error < result.interval[:, 1])
    # The half-width of the interval is 1.96 standard errors, to the 3 % of 1000 draws.
    half = np.diff(result.interval[0])[0] / 2
    assert half == pytest.approx(1.96 * error, rel=0.15)
    robust = alignment_errors(Z1, Z2, diameter="robust", random_state=0)
    np.testing.assert_allclose(
        robust.forward, result.forward * max_diameter(Z2) / robust_diameter(Z2)
    )
    np.testing.assert_array_equal(robust.max_diameters, result.max_diameters)


def test_chance_of_a_linear_map_is_the_distance_from_the_mean():
    Z1, Z2 = latents(0, n=4000), latents(1, n=4000)
    result = alignment_errors(Z1, Z2, transformations=["linear"], random_state=0)
    spread = np.linalg.norm(Z2 - Z2.mean(axis=0), axis=1).mean() / max_diameter(Z2)
    # Both the independent rows and the swapped ones: 12 fitted parameters on 3200 rows.
    assert result.forward[0] == pytest.approx(spread, rel=0.02)
    assert result.chance[0] == pytest.approx(
        (result.forward[0] + result.backward[0]) / 2, rel=0.02
    )


@pytest.mark.parametrize("widths", [(3, 3), (2, 4)])
def test_swapping_the_arguments_changes_only_the_labels(widths):
    rng = np.random.default_rng(0)
    Z = latents(0, n=301, p=4)
    Z1 = Z[:, : widths[0]] + 0.1 * rng.standard_normal((301, widths[0]))
    Z2 = Z[:, : widths[1]] @ rotation(0, widths[1])
    a = alignment_errors(Z1, Z2, random_state=3)
    b = alignment_errors(Z2, Z1, random_state=3)
    np.testing.assert_allclose(a.forward, b.backward, rtol=1e-6)
    np.testing.assert_allclose(a.backward, b.forward, rtol=1e-6)
    np.testing.assert_allclose(a.error, b.error, rtol=1e-6)
    np.testing.assert_allclose(a.interval, b.interval, rtol=1e-6)
    np.testing.assert_allclose(a.chance, b.chance, rtol=1e-2)
    np.testing.assert_array_equal(a.max_diameters, b.max_diameters[::-1])
    assert a.ica_efficiency == pytest.approx(b.ica_efficiency, abs=1e-5)


def test_reproducible():
    Z1, Z2 = latents(0), latents(1)
    a, b = (alignment_errors(Z1, Z2, random_state=0) for _ in range(2))
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(left, right)


def test_float16_and_other_types():
    Z1, Z2 = np.round(latents(0) * 8), np.round(latents(1) * 8)
    a = alignment_errors(Z1, Z2, random_state=0)
    b = alignment_errors(Z1.astype(np.float16), Z2.astype(np.int8), random_state=0)
    np.testing.assert_array_equal(a.error, b.error)


def test_groups_widen_the_interval_and_are_held_out_whole():
    """Repeats of the same rows: without groups a fold has seen its own test rows."""
    rng = np.random.default_rng(0)
    base1, base2 = rng.standard_normal((2, 40, 20))
    Z1, Z2 = np.repeat(base1, 10, axis=0), np.repeat(base2, 10, axis=0)
    groups = np.repeat(np.arange(40), 10)
    options = {"transformations": ["linear"], "random_state": 0}
    leaky = alignment_errors(Z1, Z2, **options)
    whole = alignment_errors(Z1, Z2, groups=groups, **options)
    assert whole.error[0] > 1.3 * leaky.error[0]
    assert np.diff(whole.interval[0])[0] > 2 * np.diff(leaky.interval[0])[0]
    # Ordered as a single row a group would be.
    alone = alignment_errors(base1, base2, groups=np.arange(40), **options)
    assert whole.error[0] == pytest.approx(alone.error[0], rel=0.5)


def test_thin_data_warn_and_stay_finite():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="do not determine every map") as seen:
        result = alignment_errors(
            rng.standard_normal((12, 20)), rng.standard_normal((12, 20)), cv=2
        )
    assert len(seen) == 1
    for values in (result.error, result.interval, result.chance):
        assert np.isfinite(values).all()


def test_dead_and_duplicate_columns():
    Z = latents(0)
    Z1 = np.c_[Z, Z[:, 0], np.zeros(600)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = alignment_errors(Z1, Z1 @ rotation(0, 5), random_state=0)
    assert np.isfinite(result.error).all()
    assert result.error[1] < 1e-10 and result.error[2] < 1e-6
    assert result.error[3] < 2e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Z2": latents(0)[:9]}, r"Z1 has shape \(600, 3\), Z2 has shape \(9, 3\)"),
        ({"Z2": np.ones((600, 3))}, "All rows of Z2 are equal"),
        ({"Z1": np.where(latents(0) > 3, np.nan, 0)}, "Input Z1 contains NaN"),
        ({"transformations": ["affine"]}, "selection of"),
        ({"transformations": []}, "non-empty"),
        ({"groups": np.zeros(600)}, "5 folds need at least as many groups, got 1"),
        ({"groups": np.zeros(5)}, r"one label a row, shape \(600,\)"),
        ({"cv": 1}, "cv"),
        ({"diameter": "mean"}, "diameter"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        alignment_errors(**({"Z1": latents(0), "Z2": latents(1)} | arguments))


def test_table_and_text():
    result = alignment_errors(latents(0), latents(1), random_state=0)
    columns = result.to_dict()
    assert columns["transformation"] == list(NAMES)
    assert {len(column) for column in columns.values()} == {4}
    text = str(result)
    assert all(name in text for name in NAMES) and "ICA efficiency" in text
    short = alignment_errors(
        latents(0), latents(1), transformations=("rigid",), random_state=0
    )
    assert short.ica_efficiency is None and "efficiency" not in str(short)


@pytest.mark.parametrize("p", [1, 2, 10])
def test_diameters(p):
    X = np.random.default_rng(0).standard_normal((300, p))
    true = pdist(X).max()
    assert 0.95 * true <= max_diameter(X) <= true * (1 + 1e-12)
    moved = X @ rotation(0, p) + 3
    assert max_diameter(moved) == pytest.approx(max_diameter(X))
    assert robust_diameter(moved) == pytest.approx(robust_diameter(X))
    away = np.linalg.norm(X - X.mean(axis=0), axis=1)
    assert np.mean(away <= robust_diameter(X) / 2) == pytest.approx(0.99, abs=0.005)


def test_diameter_takes_more_than_two_sweeps():
    """From the farthest of the mean, and from the farthest of that: .84 and .91."""
    X = np.array([[3.0, 6.0], [8.0, -4.0], [0.0, 4.0], [-4.0, -5.0], [-3.0, -7.0]])
    assert max_diameter(X) == pytest.approx(pdist(X).max())


def test_ica_drops_the_columns_that_whiten_ica_drops():
    """Noise on a large constant is none of the components."""
    Z = latents(0)
    near = 1e5 * (1 + 1e-9 * np.random.default_rng(0).standard_normal((600, 1)))
    result = alignment_errors(
        np.c_[Z, near], np.c_[Z, near[::-1]], transformations=("ica",), random_state=0
    )
    assert result.error[0] < 1e-3
    with pytest.raises(ValueError, match="less than 1e-7 of its values"):
        alignment_errors(near, Z, transformations=("ica",))


@pytest.mark.parametrize(
    ("permutation", "rigid", "ica", "percent"),
    [
        (0.219, 0.150, 0.202, 25),
        (0.197, 0.109, 0.145, 59),
        (0.218, 0.104, 0.175, 38),
        (0.382, 0.206, 0.312, 40),
    ],
)
def test_efficiency_reproduces_the_paper(permutation, rigid, ica, percent):
    assert round(100 * ica_efficiency(permutation, rigid, ica)) == percent


def test_efficiency_without_a_gain():
    assert ica_efficiency(0.1, 0.1, 0.1) == 1.0
    assert ica_efficiency(0.1, 0.1, 0.2) == 0.0
    assert ica_efficiency(0.1, 0.2, 0.05) == 1.0
    assert ica_efficiency(0.0, 0.0, 0.0) == 1.0
    np.testing.assert_array_equal(
        ica_efficiency([0.2, 0.1], [0.1, 0.1], [0.1, 0.3]), [1.0, 0.0]
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 5), extra=st.integers(0, 3))
def test_amari_distance(seed, k, extra):
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((2, k + extra, k))
    d = amari_distance(A, B)
    assert 0 <= d <= 1
    assert amari_distance(B, A) == pytest.approx(d)
    same = A[:, rng.permutation(k)] * rng.choice([-1, 1], k) * rng.uniform(0.1, 9, k)
    assert amari_distance(A, same) == pytest.approx(0, abs=1e-9)
    assert amari_distance(same, B) == pytest.approx(d)


def test_amari_distance_refuses():
    with pytest.raises(ValueError, match="one shape"):
        amari_distance(np.eye(3), np.eye(2))
    with pytest.raises(ValueError, match="columns of B"):
        amari_distance(np.eye(2), np.ones((2, 2)))


def test_ica_error_by_another_solver():
    """FastICA on either side, matched by correlation, mixed again, on other folds."""
    rng = np.random.default_rng(0)
    S = rng.laplace(size=(4000, 3)) * [1.0, 2.0, 3.0]
    noisy = S + 0.2 * rng.standard_normal(S.shape)
    sides = S @ rng.standard_normal((3, 3)), noisy @ rng.standard_normal((3, 4))
    found = alignment_errors(*sides, transformations=("ica",), random_state=0)
    for result, X, Y in ((found.forward, *sides), (found.backward, *sides[::-1])):
        away = np.empty(4000)
        for train, test in KFold(5, shuffle=True, random_state=1).split(X):
            one, other = (
                FastICA(3, tol=1e-8, max_iter=1000, random_state=0).fit(side[train])
                for side in (X, Y)
            )
            cross = one.transform(X[train]).T @ other.transform(Y[train])
            match = linear_sum_assignment(np.abs(cross), maximize=True)
            turn = np.zeros((3, 3))
            turn[match] = np.sign(cross[match])
            mapped = other.inverse_transform(one.transform(X[test]) @ turn)
            away[test] = np.linalg.norm(mapped - Y[test], axis=1)
        # Folds differ: each is a mean over the same rows by maps that differ by 1 %.
        assert result[0] == pytest.approx(away.mean() / pdist(Y).max(), rel=0.01)


@pytest.mark.data
def test_pair_of_word_embeddings(real_data):
    """Two networks of one architecture: aligned far better than chance, in order."""
    words = real_data("words_chars2vec_4models_5000.npz")
    rows = np.random.default_rng(0).permutation(5000)[:2000]
    result = alignment_errors(
        words["c2v50"][rows], words["c2v100"][rows], cv=2, random_state=0
    )
    permutation, rigid, linear, ica = result.error
    assert permutation > rigid > linear > 0
    # ICA gains nothing here, to 2 % of the permutation: components are near Gaussian
    assert ica < 1.02 * permutation
    assert np.all(result.error < result.chance)
    assert -0.1 < result.ica_efficiency < 0.5


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-20, 1e20, 1e200, 1e300])
def test_units_of_either_side_do_not_matter(scale):
    rng = np.random.default_rng(0)
    Z1 = rng.laplace(size=(100, 2))
    Z2 = Z1 @ np.array([[0.6, 0.8], [-0.8, 0.6]]) + 0.1 * rng.standard_normal((100, 2))
    plain = alignment_errors(Z1, Z2, n_resamples=10, random_state=0)
    scaled = alignment_errors(Z1 * scale, Z2, n_resamples=10, random_state=0)
    linear = plain.transformations.index("linear")
    np.testing.assert_allclose(scaled.error[linear], plain.error[linear], rtol=1e-6)
    np.testing.assert_allclose(
        scaled.max_diameters / [scale, 1], plain.max_diameters, rtol=1e-9
    )
    assert np.isfinite(scaled.error).all() and np.isfinite(scaled.chance).all()


def test_efficiency_of_other_shapes_is_refused():
    message = r"of one shape, got shapes \(2,\), \(3,\), \(\)"
    with pytest.raises(ValueError, match=message):
        ica_efficiency([0.2, 0.3], [0.1, 0.1, 0.1], 0.2)
    assert ica_efficiency([0.2, 0.3], 0.1, [[0.1], [0.2]]).shape == (2, 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_efficiency_of_what_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="errors contains"):
        ica_efficiency(0.3, bad, 0.2)


def test_level_of_the_intervals():
    rng = np.random.default_rng(0)
    Z1, Z2 = rng.laplace(size=(2, 200, 2))
    widths = [
        np.ptp(
            alignment_errors(Z1, Z2, confidence_level=level, random_state=0).interval,
            axis=1,
        )
        for level in (0.5, 0.99)
    ]
    assert (widths[1] > 1.5 * widths[0]).all()


def test_efficiency_is_not_defined_where_nothing_is_shared():
    rng = np.random.default_rng(0)
    Z1, Z2 = rng.laplace(size=(300, 4)), rng.standard_normal((300, 4))
    errors = alignment_errors(Z1, Z2, random_state=0)
    assert errors.ica_efficiency is None and errors.ica_efficiency_interval is None
    assert "not defined: a rigid map gains nothing" in str(errors)
