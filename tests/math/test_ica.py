"""The rotation: planted sources, stationarity, curvature, order and densities."""

import numpy as np
import pytest
from scipy import integrate, linalg
from sklearn.decomposition import FastICA

from skident._math import contrasts, frames, ica, planes, restarts, rotations, rows
from skident._math.descent import Point
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


@pytest.mark.parametrize(
    ("objectives", "coupled", "kept"),
    [
        ([1.0, 2.0, 3.0, 2.0], [0, 0, 0, 0], 2),
        ([3.0, 2.0, 1.0, 2.0], [0, 0, 0, 0], 0),
        ([1.0, 1.0 + 1e-7, 1.0, 1.0], [0, 0, 0, 0], 0),
        ([1.0, 1.0 + 1e-5, 1.0, 1.0], [0, 0, 0, 0], 1),
        ([1.0, 5.0, 0.5, 0.7], [1, 1, 0, 0], 3),
        ([1.0, 5.0, 9.0, 9.0], [0, 1, 1, 1], 0),
    ],
)
def test_the_best_restart_is_kept(monkeypatch, objectives, coupled, kept):
    """Larger by more than 1e-6, and not coupled; the halves of all are handed on."""
    Z = white_rows(sources(0, 40, ["laplace", "uniform"]))[1]
    real = ica.solve(Z)
    solutions = [
        real._replace(objective=objective, coupled=bool(some), n_iter=n)
        for n, (objective, some) in enumerate(zip(objectives, coupled, strict=True))
    ]
    monkeypatch.setattr(restarts, "solve", lambda rows, **options: solutions[0])
    monkeypatch.setattr(
        restarts, "restart", lambda rows, k, **options: (solutions[k], [k, -k])
    )
    best, halves = restarts.solve_often(Z, range(1, 4))
    assert best.n_iter == kept and halves == [[1, -1], [2, -2], [3, -3]]


def test_a_restart_begins_anywhere_and_ends_on_all_rows():
    Z = white_rows(sources(0, 300, ["laplace", "uniform", "student"]))[1]
    best = ica.solve(Z, tol=1e-10)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        found, pair = restarts.restart(Z, rng, contrast="logcosh", tol=1e-10)
        assert found.objective == pytest.approx(best.objective, rel=1e-9)
        overlap = np.abs(found.rotation @ best.rotation.T)
        np.testing.assert_allclose(overlap.max(axis=0), 1.0, atol=1e-9)
        # Halves share no row: their solutions differ, and from that of all rows.
        for one, other in ((pair[0], pair[1]), (pair[0], found.rotation)):
            assert np.abs(np.abs(one @ other.T).max(axis=0) - 1.0).max() > 1e-4


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


DISCRETE = {
    "poisson": lambda rng, shape: rng.poisson(0.3, shape),
    "bernoulli": lambda rng, shape: rng.random(shape) < 0.2,
}


@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.parametrize("kind", DISCRETE)
def test_skewed_discrete_sources_are_found_in_any_order(kind, seed):
    """Many optima are none of the sources; of Bernoulli ones some are even larger."""
    rng = np.random.default_rng(seed)
    S = DISCRETE[kind](rng, (10_000, 10)).astype(float)
    _, Z = white_rows(S @ rng.standard_normal((10, 10)))
    solution = ica.solve(Z)
    assert solution.converged and not solution.coupled
    match = np.abs(np.corrcoef((Z @ solution.rotation.T).T, S.T)[:10, 10:])
    assert match.max(axis=1).min() > 0.95
    # The optimum that a descent from the sources ends at is not larger.
    turn = linalg.polar(np.corrcoef(S.T, Z.T)[:10, 10:])[0]
    assert solution.objective >= ica.solve(Z, start=turn).objective * (1 - 1e-4)
    shuffled = ica.solve(rng.permutation(Z)).rotation
    same = np.abs(shuffled @ solution.rotation.T)
    np.testing.assert_allclose(np.sort(same.max(axis=1)), 1.0, atol=1e-5)


def test_samples_find_what_all_rows_do():
    """Weak sources are chosen by a sample's variances, if it is not whitened."""
    rng = np.random.default_rng(103)
    S = rng.poisson(0.3, (100_000, 10)).astype(float)
    _, Z = white_rows(S @ rng.standard_normal((10, 10)))
    assert ica._stages(rows.white_rows(Z), 1e-4)[0].rows.n_rows < len(Z)
    match = np.abs(np.corrcoef((Z @ ica.solve(Z).rotation.T).T, S.T)[:10, 10:])
    assert match.max(axis=1).min() > 0.999


def test_mixtures_further_from_gaussian_than_their_sources_are_taken_apart():
    """Two Bernoulli(.2) sources turned by 45 degrees are a larger strict optimum."""
    S = (np.random.default_rng(0).random((8000, 4)) < 0.2) - 0.2
    _, Z = white_rows(S)
    pairs = np.kron(np.eye(2), [[1, 1], [-1, 1]]) * np.sqrt(0.5)
    turn = linalg.polar(np.corrcoef(S.T, Z.T)[:4, 4:])[0]
    problem = ica._problem("logcosh", 4)
    mixed, apart = measure(Z, pairs @ turn), measure(Z, turn)
    assert problem.objective(mixed) > 1.2 * problem.objective(apart)
    found = ica.solve(Z, start=pairs @ turn)
    np.testing.assert_allclose(
        np.sort(np.abs(found.rotation @ turn.T)[:, 0])[-1], 1, atol=0.02
    )
    assert not found.coupled
    white = rows.white_rows(Z)
    assert planes.survey(white, Point(pairs @ turn, mixed, 1), problem).coupled
    assert not planes.survey(white, Point(turn, apart, 1), problem).coupled


def test_dependence_is_a_squared_correlation():
    S = sources(0, 500, ["laplace", "uniform", "student"])
    _, Z = white_rows(S**3)
    problem = ica._problem("logcosh", 3)
    point = Point(np.eye(3), measure(Z, np.eye(3)), 1)
    seen = planes.survey(rows.white_rows(Z), point, problem)
    expected = np.corrcoef((1 - np.tanh(Z) ** 2).T, (Z**2).T)[:3, 3:] ** 2
    np.fill_diagonal(expected, 0)
    # Sums of float32 numbers.
    np.testing.assert_allclose(seen.square, expected, atol=1e-5)
    # A source of two values has one square.
    two = np.c_[np.tile([1.0, -1.0], 250), Z[:, 0]]
    two[:, 1] -= two[:, 0] * (two[:, 0] @ two[:, 1]) / 500
    pair = rows.white_rows(two / two.std(axis=0))
    point = Point(np.eye(2), measure(pair.source[0], np.eye(2)), 1)
    assert planes.survey(pair, point, ica._problem("logcosh", 2)).square.max() == 0


@pytest.mark.parametrize("contrast", ["logcosh", "adaptive"])
def test_gain_of_a_turn_is_the_difference_of_objectives(contrast):
    rng = np.random.default_rng(0)
    _, Z = white_rows((rng.random((3000, 3)) < 0.2) + 0.0)
    light = np.array([contrast == "adaptive", False, False])
    problem = ica._problem(contrast, 3, light)

    def state(turn):
        return moments(rows.white_rows(Z), turn, problem.contrast)

    point = Point(np.eye(3), state(np.eye(3)), 1)
    gain, angle = planes._gains(rows.white_rows(Z), point, problem, np.ones((3, 3)))
    least = planes._GAIN / 3 * problem.objective(point.state)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        alone = np.zeros((3, 3))
        alone[i, j] = 1.0
        turn = planes._turned(np.eye(3), alone, angle)
        more = problem.objective(state(turn)) - problem.objective(point.state)
        # The gain is of float32 rows.
        assert gain[i, j] == pytest.approx(more - least, abs=2e-5)


@pytest.mark.parametrize("seed", range(3))
def test_starts_tell_sources_of_one_distribution_apart(seed):
    """The cumulants of independent sources are diagonal, whatever they weigh."""
    grid = np.array([-1.0, 0, 0, 4.0]) - 0.75
    S = np.stack(np.meshgrid(*[grid] * 3), axis=-1).reshape(-1, 3) / grid.std()
    rng = np.random.default_rng(seed)
    Z = rows.white_rows(S @ rotations.random_rotation(rng, 3))
    for start in (
        rotations.third_order_start(Z, rng.standard_normal(3)),
        rotations.fourth_order_start(Z, rng.standard_normal((3, 3))),
    ):
        match = np.abs(start @ Z.source[0].T @ S) / len(S)
        np.testing.assert_allclose(match.max(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_start_of_few_rows_does_not_change_with_their_order_and_repeats(seed):
    """Rows of one weight are equals, which rounding must not choose from."""
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 4, 12)
    X = rng.random((12, 30))
    order = rng.permutation(12)
    weighted = whiten(X[order], weights=times[order].astype(float))
    repeated = whiten(np.repeat(X, times, axis=0))
    one, other = (
        rotations.apart_rows_start(rows.sample(white.rows, 100)) @ white.whitening
        for white in (weighted, repeated)
    )
    np.testing.assert_allclose(one, other, atol=1e-9)
