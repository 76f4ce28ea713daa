"""The rotation: planted sources, stationarity, curvature, order and densities."""

import numpy as np
import pytest
from scipy import integrate, linalg
from sklearn.decomposition import FastICA

from skident._math import contrasts, frames, ica, restarts, rotations, rows
from skident._math.moments import Contrast, moments
from skident._math.whitening import centred_product, whiten
from skident.metrics import amari_distance


def sources(seed, n, kinds):
    rng = np.random.default_rng(seed)
    draw = {
        "laplace": lambda: rng.laplace(size=n),
        "uniform": lambda: rng.uniform(-1, 1, n),
        "student": lambda: rng.standard_t(5, n),
        "two": lambda: rng.choice([-1.0, 1.0], n) + 0.2 * rng.standard_normal(n),
    }
    return np.stack([draw[kind]() for kind in kinds], axis=1)


def white_rows(X):
    white = whiten(X)
    return white, centred_product(X, white.mean, white.whitening)


def measure(Z, rotation, signs=None, contrast="logcosh", **options):
    name = Contrast(contrast, np.zeros(Z.shape[1], bool))
    return moments(rows.white_rows(Z), rotation, name, signs, **options)


@pytest.mark.parametrize("contrast", contrasts.CONTRASTS)
@pytest.mark.parametrize("seed", range(4))
def test_planted_sources_come_back(seed, contrast):
    kinds = ["laplace", "uniform", "laplace", "two"]
    S = sources(seed, 8000, kinds)
    A = np.random.default_rng(seed + 100).standard_normal((4, 4))
    white, Z = white_rows(S @ A.T)
    solution = ica.solve(Z, contrast=contrast)
    assert solution.converged
    mixing = white.dewhitening @ solution.rotation.T
    # One angle has standard error about c / sqrt(8000), c = 1 to 2.5 ("cube", Laplace);
    # the distance averages 12 of them: .012 to .03. The bound is over 3 of the largest.
    assert amari_distance(mixing, A) < 0.1
    match = np.abs(np.corrcoef((Z @ solution.rotation.T).T, S.T)[:4, 4:])
    light = np.isin(np.array(kinds)[match.argmax(axis=1)], ["uniform", "two"])
    np.testing.assert_array_equal(solution.sub_gaussian, light)


@pytest.mark.parametrize("start_seed", range(5))
def test_same_point_from_any_start_and_as_fastica(start_seed):
    S = sources(0, 5000, ["laplace", "uniform", "student", "two", "laplace"])
    X = S @ np.random.default_rng(1).standard_normal((5, 5))
    _, Z = white_rows(X)
    start = rotations.random_rotation(np.random.default_rng(start_seed), 5)
    ours = ica.solve(Z, start=start, tol=1e-8).rotation
    default = ica.solve(Z, tol=1e-8).rotation
    theirs = FastICA(
        whiten=False, fun="logcosh", tol=1e-15, max_iter=2000, random_state=start_seed
    ).fit(Z)
    for other in (default, theirs.components_):
        match = np.abs(ours @ other.T)
        np.testing.assert_allclose(np.sort(match.max(axis=1)), 1.0, atol=1e-6)


def test_solution_is_stationary_and_a_minimum_in_every_plane():
    S = sources(2, 4000, ["laplace", "uniform", "student", "two"])
    _, Z = white_rows(S @ np.random.default_rng(3).standard_normal((4, 4)))
    solution = ica.solve(Z, tol=1e-7)
    state = measure(Z, solution.rotation)
    for i, j in zip(*np.triu_indices(4, 1), strict=True):
        A = np.zeros((4, 4))
        A[i, j], A[j, i] = 1.0, -1.0
        losses = [
            measure(Z, linalg.expm(t * A) @ solution.rotation, state.signs).loss
            for t in (-1e-3, 0.0, 1e-3)
        ]
        assert (losses[2] - losses[0]) / 2e-3 == pytest.approx(0, abs=1e-6)
        assert losses[0] + losses[2] - 2 * losses[1] > 0


def test_gradient_by_finite_differences():
    S = sources(2, 1000, ["laplace", "uniform", "two"])
    _, Z = white_rows(S)
    rotation = rotations.random_rotation(np.random.default_rng(0), 3)
    state = measure(Z, rotation)
    A = np.array([[0.0, 0.3, -0.2], [-0.3, 0.0, 0.7], [0.2, -0.7, 0.0]])
    up, down = (
        measure(Z, linalg.expm(t * A) @ rotation, state.signs).loss
        for t in (1e-5, -1e-5)
    )
    expected = 0.5 * np.vdot(state.gradient, A)
    assert (up - down) / 2e-5 == pytest.approx(expected, abs=1e-8)


def test_a_saddle_is_left():
    """On a full grid the start can be exactly between two equal sources."""
    grid = np.linspace(-1, 1, 21)
    S = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    Z = S / S.std(axis=0)
    between = np.sqrt(0.5) * np.array([[1.0, 1.0], [-1.0, 1.0]])
    assert measure(Z, between).criterion < 1e-12
    found = np.abs(ica.solve(Z, start=between).rotation)
    np.testing.assert_allclose(np.sort(found.ravel()), [0, 0, 1, 1], atol=1e-6)


def test_start_turns_with_the_rows():
    S = sources(0, 3000, ["laplace", "uniform", "student"])
    _, Z = white_rows(S)
    turn = rotations.random_rotation(np.random.default_rng(0), 3)
    for start in (rotations.fourth_order_start, rotations.far_rows_start):
        a, b = start(rows.white_rows(Z)), start(rows.white_rows(Z @ turn))
        np.testing.assert_allclose(np.abs(a @ turn @ b.T), np.eye(3), atol=1e-8)


def test_subset_start_ends_at_the_point_of_all_rows():
    n = 70_000
    S = sources(0, n, ["laplace", "uniform", "two"])
    _, Z = white_rows(S @ np.random.default_rng(3).standard_normal((3, 3)))
    assert ica._stages(rows.white_rows(Z), 1e-8)[0].rows.n_rows < n
    rotation = ica.solve(Z, tol=1e-8).rotation
    state = measure(Z, rotation)
    assert state.criterion <= 1e-8


def test_gaussian_rows_converge_and_are_unstable():
    Z = white_rows(np.random.default_rng(0).standard_normal((1500, 8)))[1]
    rngs = [np.random.default_rng(k) for k in range(5)]
    options = {"contrast": "logcosh", "max_iter": 500, "tol": 1e-4}
    best, halves = restarts.solve_often(Z, rngs, **options)
    assert best.converged
    assert restarts.stability(best.rotation, halves).max() < 0.8


def test_stability_by_hand():
    """Components 0 and 1 turned against each other by 60 degrees, 2 left alone."""
    turn = linalg.block_diag([[0.5, np.sqrt(0.75)], [-np.sqrt(0.75), 0.5]], 1.0)
    half = linalg.sqrtm(turn).real
    pair = (half, -half.T[[2, 0, 1]])
    np.testing.assert_allclose(restarts.stability(np.eye(3), [pair]), [0.25, 0.25, 1.0])


def test_canonical_order_undoes_permutation_and_sign():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((5, 4))
    # Two columns with one variance: ordered by the input of their largest entry.
    M[:, 1] = [0, 0, 0, 2, 0]
    M[:, 2] = [0, 2, 0, 0, 0]
    results = []
    for _ in range(10):
        mixed = M[:, rng.permutation(4)] * rng.choice([-1, 1], 4)
        order, signs = frames.canonical_order(
            mixed * (1 + 1e-9 * rng.standard_normal(4))
        )
        results.append(mixed[:, order] * signs)
    for result in results:
        np.testing.assert_allclose(result, results[0])
        variance = np.sum(result**2, axis=0)
        assert np.all(np.diff(variance) <= 1e-6 * variance[0])
        assert np.all(result[np.abs(result).argmax(axis=0), range(4)] > 0)


@pytest.mark.parametrize("density", [contrasts.log_secant, contrasts.log_two_peaks])
def test_densities_have_unit_mass_and_variance(density):
    mass, variance = (
        integrate.quad(lambda y, k=k: y**k * np.exp(density(y)), -40, 40)[0]
        for k in (0, 2)
    )
    assert mass == pytest.approx(1, abs=1e-9)
    assert variance == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("k", [2, 3])
def test_binary_sources_are_not_left_half_turned(k):
    """Turned by 45 degrees two of them look like one light and one heavy tail."""
    for seed in range(30):
        S = np.random.default_rng(seed).choice([-1.0, 1.0], (2000, k))
        _, Z = white_rows(S)
        rotation = ica.solve(Z).rotation
        match = np.abs(np.corrcoef((Z @ rotation.T).T, S.T)[:k, k:])
        assert match.max(axis=1).min() > 0.99
