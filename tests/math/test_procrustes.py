"""The best map in each group: planted maps, order of errors, uniqueness."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard

from skident._math import motion, procrustes

seeds = st.integers(0, 10**6)


def random_rotation(rng, p):
    return np.linalg.qr(rng.standard_normal((p, p)))[0]


def squared_error(found, X, Y):
    width = max(found.rotation.shape[1], Y.shape[1])
    pad = motion.pad_columns
    return float(np.sum((pad(found.apply(X), width) - pad(Y, width)) ** 2))


@settings(max_examples=60, deadline=None)
@given(seed=seeds, p=st.integers(1, 5), q=st.integers(1, 5), n=st.integers(2, 20))
def test_in_sample_permutation_rigid_linear(seed, p, q, n):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, p)), rng.standard_normal((n, q))
    errors = [
        squared_error(find(X, Y), X, Y)
        for find in (
            procrustes.permutation_map,
            procrustes.rigid_map,
            procrustes.linear_map,
        )
    ]
    slack = 1e-10 * (1 + errors[0])
    assert errors[0] >= errors[1] - slack and errors[1] >= errors[2] - slack
    proper = procrustes.rigid_map(X, Y, allow_reflection=False)
    scaled = procrustes.rigid_map(X, Y, scaling=True)
    assert squared_error(proper, X, Y) >= errors[1] - slack
    assert squared_error(scaled, X, Y) <= errors[1] + slack
    assert p < q or np.linalg.slogdet(proper.rotation)[0] > 0


@settings(max_examples=40, deadline=None)
@given(seed=seeds, p=st.integers(1, 6), scale=st.sampled_from([1e-6, 0.3, 1.0, 1e6]))
def test_planted_motion(seed, p, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((p + 8, p))
    R = random_rotation(rng, p)
    Y = scale * (X - 3.0) @ R + 7.0
    found = procrustes.rigid_map(X, Y, scaling=True)
    np.testing.assert_allclose(found.rotation, R, atol=1e-10)
    assert found.scale == pytest.approx(scale, rel=1e-10)
    assert found.unique
    assert found.reflection == (np.linalg.det(R) < 0)
    np.testing.assert_allclose(found.invert(Y), X, atol=1e-7)
    new = rng.standard_normal((4, p))
    expected = scale * (new - 3.0) @ R + 7.0
    np.testing.assert_allclose(found.apply(new), expected, atol=1e-8 * (1 + scale))


@pytest.mark.parametrize("seed", range(5))
def test_rotation_of_three_points_is_the_best_of_a_grid(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((6, 2)), rng.standard_normal((6, 2))
    found = procrustes.rigid_map(X, Y, allow_reflection=False)
    angles = np.linspace(0, 2 * np.pi, 2001)
    c, s = np.cos(angles), np.sin(angles)
    turns = np.stack([np.stack([c, s], -1), np.stack([-s, c], -1)], 1)
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    grid = np.sum((Xc @ turns - Yc) ** 2, axis=(1, 2))
    assert squared_error(found, X, Y) <= grid.min() + 1e-9
    assert squared_error(found, X, Y) == pytest.approx(grid.min(), rel=1e-4)


def test_mirror_image_is_met_only_with_a_reflection():
    X = np.random.default_rng(0).standard_normal((20, 3))
    mirror = X * [1, 1, -1]
    free = procrustes.rigid_map(X, mirror)
    proper = procrustes.rigid_map(X, mirror, allow_reflection=False)
    assert free.reflection and squared_error(free, X, mirror) < 1e-20
    assert not proper.reflection and squared_error(proper, X, mirror) > 0.1


@pytest.mark.parametrize(
    ("rank", "free", "proper"), [(3, True, True), (2, False, True), (1, False, False)]
)
def test_uniqueness_in_three_dimensions(rank, free, proper):
    """A plane leaves a mirror free, a line a rotation about it."""
    X = np.random.default_rng(0).standard_normal((20, rank)) @ np.eye(rank, 3)
    Y = X @ np.eye(3)[[1, 0, 2]]
    assert procrustes.rigid_map(X, Y).unique == free
    assert procrustes.rigid_map(X, Y, allow_reflection=False).unique == proper


def test_scale_and_uniqueness_of_a_mirror_image_without_reflection():
    X = np.random.default_rng(0).standard_normal((20, 3))
    mirror = 3 * X * [1, 1, -1]
    found = procrustes.rigid_map(X, mirror, allow_reflection=False, scaling=True)
    least = squared_error(found, X, mirror)
    for factor in (0.99, 1.01):
        other = found._replace(scale=factor * found.scale)
        assert squared_error(other, X, mirror) > least
    # Any axis of an octahedron can be the one that is turned over.
    corners = np.r_[np.eye(3), -np.eye(3)]
    assert not procrustes.rigid_map(corners, -corners, allow_reflection=False).unique
    assert procrustes.rigid_map(corners, -corners).unique


def test_what_is_free_stays_nearest_to_the_identity():
    X = np.zeros((10, 4))
    X[:, :2] = np.random.default_rng(0).standard_normal((10, 2))
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    Y = X.copy()
    Y[:, :2] = X[:, :2] @ turn
    R = procrustes.rigid_map(X, Y).rotation
    expected = np.eye(4)
    expected[:2, :2] = turn
    np.testing.assert_allclose(R, expected, atol=1e-12)
    constant = procrustes.rigid_map(np.ones((5, 3)), np.ones((5, 3)))
    np.testing.assert_array_equal(constant.rotation, np.eye(3))
    assert not constant.unique


@pytest.mark.parametrize(("p", "q"), [(2, 4), (4, 2)])
def test_other_widths_are_those_of_padded_arrays(p, q):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, p)), rng.standard_normal((30, q))
    padded = [motion.pad_columns(array, 4) for array in (X, Y)]
    for find in (procrustes.rigid_map, procrustes.permutation_map):
        ours, theirs = find(X, Y), find(*padded)
        assert ours.rotation.shape == (p, 4)
        assert ours.unique and not ours.reflection
        assert squared_error(ours, X, Y) == pytest.approx(
            squared_error(theirs, *padded), rel=1e-12
        )
        np.testing.assert_allclose(
            ours.rotation @ ours.rotation.T, np.eye(p), atol=1e-12
        )


@settings(max_examples=30, deadline=None)
@given(seed=seeds, p=st.integers(1, 4), signed=st.booleans())
def test_permutation_is_the_best_of_all(seed, p, signed):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((6, p)), rng.standard_normal((6, p))
    found = procrustes.permutation_map(X, Y, signed=signed)
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    choices = itertools.product([-1, 1], repeat=p) if signed else [np.ones(p)]
    best = min(
        np.sum((Xc[:, list(order)] * signs - Yc) ** 2)
        for signs in list(choices)
        for order in itertools.permutations(range(p))
    )
    assert squared_error(found, X, Y) == pytest.approx(best, rel=1e-10)


def test_permutation_criteria_differ_where_scales_do():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 200))
    X = np.c_[a, b]
    # Column 0 of Y is nearly b but small; column 1 is large and mostly b as well.
    Y = np.c_[0.1 * b + 0.05 * a, 10 * (b + 0.9 * a)]
    error = procrustes.permutation_map(X, Y, criterion="error")
    correlation = procrustes.permutation_map(X, Y, criterion="correlation")
    np.testing.assert_array_equal(error.rotation, np.eye(2))
    np.testing.assert_array_equal(correlation.rotation, np.eye(2)[::-1])


def test_permutation_uniqueness():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    assert procrustes.permutation_map(X, -X[:, [2, 0, 1]]).unique
    twins = np.c_[X[:, :1], X[:, :1], X[:, 1:2]]
    found = procrustes.permutation_map(twins, twins)
    assert not found.unique
    np.testing.assert_array_equal(found.rotation, np.eye(3))
    # Three columns match the second one equally well: it stays in its place.
    a, b, c, d = hadamard(8)[:, 1:5].T
    found = procrustes.permutation_map(np.c_[a, a, b, a], np.c_[c, a, d, d])
    np.testing.assert_array_equal(found.rotation, np.eye(4))
    dead = np.c_[X[:, :2], np.zeros(30)]
    assert not procrustes.permutation_map(dead, dead).unique


@pytest.mark.parametrize("seed", range(3))
def test_linear_is_least_squares_and_ridge(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 4)) * [1, 10, 1e-3, 1] + 5
    Y = rng.standard_normal((40, 3))
    design = np.c_[X, np.ones(40)]
    expected = design @ np.linalg.lstsq(design, Y, rcond=None)[0]
    found = procrustes.linear_map(X, Y)
    np.testing.assert_allclose(found.apply(X), expected, atol=1e-8)
    assert found.unique
    ridge = procrustes.linear_map(X, Y, alpha=2.5)
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    normal = np.linalg.solve(Xc.T @ Xc + 2.5 * np.eye(4), Xc.T @ Yc)
    np.testing.assert_allclose(ridge.rotation, normal, atol=1e-9)


def test_linear_with_dependent_and_constant_columns():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    wide = np.c_[X, X.sum(axis=1), np.full(40, 0.1)]
    Y = rng.standard_normal((40, 2))
    found = procrustes.linear_map(wide, Y)
    assert not found.unique
    assert np.all(found.rotation[3] == 0)
    np.testing.assert_allclose(
        found.apply(wide), procrustes.linear_map(X, Y).apply(X), atol=1e-10
    )


def test_explained_variance_of_a_constant_target():
    Y = np.full((5, 2), 0.1)
    assert motion.explained_variance(Y, Y) == 1.0
    assert motion.explained_variance(Y, Y + 1) == 0.0


@settings(max_examples=60, deadline=None)
@given(seed=seeds, p=st.integers(1, 9))
def test_sign_of_the_determinant(seed, p):
    """Of signed permutations by their cycles, of all else by elimination."""
    rng = np.random.default_rng(seed)
    signed = np.eye(p)[rng.permutation(p)] * rng.choice([-1.0, 1.0], p)
    assert motion.determinant_is_negative(signed) == (np.linalg.det(signed) < 0)
    turn = random_rotation(rng, p)
    assert motion.determinant_is_negative(turn) == (np.linalg.det(turn) < 0)
    assert not motion.determinant_is_negative(signed[:, :-1])
    rank_one = np.zeros((p + 1, p + 1))
    rank_one[0] = -1.0
    assert not motion.determinant_is_negative(rank_one)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, p=st.integers(1, 7), q=st.integers(1, 7), signed=st.booleans())
def test_permutation_between_other_widths_is_that_of_padded_ones(seed, p, q, signed):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((9, p)), rng.standard_normal((9, q))
    found = procrustes.permutation_map(X, Y, signed=signed)
    padded = [motion.pad_columns(array, max(p, q)) for array in (X, Y)]
    whole = procrustes.permutation_map(*padded, signed=signed)
    np.testing.assert_array_equal(found.rotation[:, :q], whole.rotation[:p, :q])
    np.testing.assert_array_equal(found.rotation @ found.rotation.T, np.eye(p))
    assert found.unique
    # What no column of the target takes stays in place where it may.
    spare = np.flatnonzero(~found.rotation[:, :q].any(axis=1))
    for column in spare[spare >= q]:
        assert found.rotation[column, column] == 1
