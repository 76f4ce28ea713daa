import itertools
import math

import numpy as np
import pytest
from scipy import stats

from skident._kernels import directors
from skident._kernels.streams import seed_stream
from skident._math.bingham import normalizer_gradient

KEY = np.uint64(11)
LEVEL = 1e-7
# Standard errors that a right sampler leaves with probability 1e-8.
SIGMAS = 5.7
# The basis of the tensors, written out.
BASIS = np.array([
    np.diag([-1, -1, 2]) / math.sqrt(6),
    np.diag([1, -1, 0]) / math.sqrt(2),
    np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]) / math.sqrt(2),
    np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]]) / math.sqrt(2),
    np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0]]) / math.sqrt(2),
])  # fmt: skip
RANDOM = np.random.default_rng(0)


def started(index=0):
    state = np.empty(4, np.uint64)
    seed_stream(KEY, index, state)
    return state


def unit_vectors(n):
    n = RANDOM.normal(size=(n, 3))
    return n / np.linalg.norm(n, axis=1, keepdims=True)


def bingham(second, third, n, index=0, rotation=None):
    rotation = np.eye(3) if rotation is None else rotation
    drawn = np.empty((n, 3))
    proposals = directors.draw_bingham(second, third, rotation, started(index), drawn)
    return drawn, proposals


def test_tensor_by_its_definition():
    vectors, q = unit_vectors(7), np.empty(5)
    directors.order_tensor(vectors, q)
    Q = 1.5 * (vectors.T @ vectors / 7 - np.eye(3) / 3)
    np.testing.assert_allclose(q, np.tensordot(BASIS, Q), atol=1e-15)
    matrix = np.empty((3, 3))
    directors.tensor_matrix(q, matrix)
    np.testing.assert_allclose(matrix, Q, atol=1e-15)
    assert q @ q == pytest.approx((Q**2).sum())


def test_noise_of_the_field_has_the_covariance_of_a_symmetrised_matrix():
    # G = (G0 + G0') / 2 - I tr(G0) / 3, G0 of independent entries of variance 1.
    symmetric = np.array([
        (np.outer(a, b) + np.outer(b, a)) / 2 - np.eye(3) * (a @ b) / 3
        for a, b in itertools.product(np.eye(3), repeat=2)
    ]).reshape(9, 9)  # fmt: skip
    matrices = np.empty((5, 3, 3))
    for k in range(5):
        directors.tensor_matrix(np.eye(5)[k], matrices[k])
    ours = matrices.reshape(5, 9)
    covariance = ours.T @ ours
    np.testing.assert_allclose(covariance, symmetric.T @ symmetric, atol=1e-15)
    # Variance 2 / 3 on the diagonal, 1 / 2 off it, and -1 / 3 between diagonal entries.
    expected = [2 / 3, 1 / 2, -1 / 3]
    np.testing.assert_allclose(covariance[[0, 1, 0], [0, 1, 4]], expected)


@pytest.mark.parametrize(
    "beta, n_sites, size", [(4.5, 7, 1.0), (0.0, 3, 1.0), (1e100, 64, 0.0)]
)
def test_field_given_directors_has_its_mean_and_covariance(beta, n_sites, size):
    n, state, noise = 40_000, started(), np.empty(5)
    mean = size * np.array([0.3, -0.2, 0.1, 0.0, 0.6])
    fields = np.tile(mean, (n, 1))
    for q in fields:
        directors.draw_field(q, beta, n_sites, state, noise)
    if beta == 0:
        assert (fields == 0).all()
        return
    # In units of the standard deviation of each component.
    rest = (fields - beta * mean) / math.sqrt(1.5 * beta / n_sites)
    assert abs(rest.mean(axis=0)).max() < SIGMAS / math.sqrt(n)
    error = SIGMAS * math.sqrt(2 / n)
    np.testing.assert_allclose(rest.T @ rest / n, np.eye(5), rtol=0, atol=error)


def awkward_matrices():
    """Symmetric matrices, among them equal, close, tiny and huge eigenvalues."""
    frames = [np.linalg.qr(RANDOM.normal(size=(3, 3)))[0] for _ in range(6)]
    spectra = [
        (1, 0, -1), (2, -1, -1), (1, 1, -2), (0, 0, 0), (1, 1, 1), (1, 1 - 1e-15, -2),
        (1e-8, 0, -1e-8), (1, 1e-17, -1), (2e100, -1e100, -1e100), (1e-120, 0, 0),
        (3.3, -1.2, -2.1),
    ]  # fmt: skip
    for values, frame in itertools.product(spectra, [np.eye(3), *frames]):
        matrix = frame @ np.diag(values) @ frame.T
        yield (matrix + matrix.T) / 2
    for _ in range(200):
        matrix = RANDOM.normal(size=(3, 3))
        yield matrix + matrix.T


def test_eigenvalues_agree_with_lapack():
    values = np.empty(3)
    for matrix in awkward_matrices():
        expected = np.linalg.eigvalsh(matrix)[::-1]
        size = abs(expected).max()
        directors.eigenvalues(matrix.copy(), values)
        np.testing.assert_allclose(values, expected, rtol=0, atol=3e-15 * size)
        assert values[0] >= values[1] >= values[2]


@pytest.mark.parametrize("second", [0.0, 1e-9, 0.3, 7.0, 1e5, 1e100])
@pytest.mark.parametrize("ratio", [1.0, 1.5, 1e3])
def test_envelope_solves_its_equation(second, ratio):
    third = max(second, 1e-9) * ratio
    b = directors.envelope_scale(second, third)
    assert 1 <= b <= 3
    left = 1 / b + 1 / (b + 2 * second) + 1 / (b + 2 * third)
    assert left == pytest.approx(1, abs=1e-14)


def test_rotations_are_uniform():
    state, rotations = started(), np.empty((20_000, 3, 3))
    for rotation in rotations:
        directors.random_rotation(state, rotation)
    products = rotations @ rotations.transpose(0, 2, 1)
    np.testing.assert_allclose(products, np.broadcast_to(np.eye(3), products.shape),
                               atol=1e-14)  # fmt: skip
    np.testing.assert_allclose(np.linalg.det(rotations), 1)
    # Each entry is the height of a uniform direction; the trace is 1 + 2 cos(angle),
    # with density (1 - cos) / pi of the angle.
    for i, j in itertools.product(range(3), repeat=2):
        p = stats.kstest(rotations[:, i, j], stats.uniform(-1, 2).cdf).pvalue
        assert p > LEVEL
    trace = np.trace(rotations, axis1=1, axis2=2)
    angle = np.arccos(np.clip((trace - 1) / 2, -1, 1))
    cdf = stats.kstest(angle, lambda t: (t - np.sin(t)) / math.pi)
    assert cdf.pvalue > LEVEL


def check_bingham(second, third, seed):
    n = 50_000
    frame = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    if third > 1e8:
        # Rounding along a slanted axis would be larger than the components across it.
        frame = np.eye(3)[:, [2, 0, 1]]
    drawn, proposals = bingham(second, third, n, seed, frame)
    np.testing.assert_allclose((drawn**2).sum(axis=1), 1, rtol=1e-14)
    # Not below 0.52, and never more than all.
    assert 0.52 < n / proposals <= 1
    components = drawn @ frame
    _, moments = normalizer_gradient(np.array([0, -second, -third]))
    square = components**2
    error = square.std(axis=0, ddof=1) / math.sqrt(n)
    assert (abs(square.mean(axis=0) - moments) < SIGMAS * error + 1e-13 * moments).all()
    # <n_i^2> - <n_j^2> = 2 (a_i - a_j) <n_i^2 n_j^2>: the fourth moments too.
    for i, j, gap in ((0, 1, second), (0, 2, third), (1, 2, third - second)):
        x = square[:, i] - square[:, j] - 2 * gap * square[:, i] * square[:, j]
        assert abs(x.mean()) < SIGMAS * x.std() / math.sqrt(n) + 1e-14
    # A director or its reverse, in each of the eight octants.
    octant = (components > 0) @ [1, 2, 4]
    counts = np.bincount(octant, minlength=8)
    assert stats.chisquare(counts).pvalue > LEVEL


SHAPES = [(0.0, 0.0), (0.0, 5.0), (3.0, 3.0), (2.0, 9.0), (30.0, 31.0), (1e-3, 1e4),
          (1e6, 1e6), (1e100, 2e100)]  # fmt: skip


@pytest.mark.parametrize("second, third", SHAPES)
def test_bingham_draws_have_the_moments_of_the_normaliser(second, third):
    check_bingham(second, third, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("second, third", SHAPES)
def test_bingham_draws_for_many_seeds(second, third, seed):
    check_bingham(second, third, seed)


def test_uniform_directions_are_all_accepted():
    drawn, proposals = bingham(0.0, 0.0, 30_000)
    assert proposals == 30_000
    for column in drawn.T:
        assert stats.kstest(column, stats.uniform(-1, 2).cdf).pvalue > LEVEL


def test_height_of_rods_has_its_distribution():
    # exp(-k (1 - x^2)) of the height x, cell by cell.
    drawn, _ = bingham(4.0, 4.0, 100_000)
    edges = np.linspace(-1, 1, 41)
    fine = np.linspace(-1, 1, 40 * 200 + 1)
    middle = (fine[1:] + fine[:-1]) / 2
    p = np.exp(-4 * (1 - middle**2)).reshape(40, 200).sum(axis=1)
    counts, _ = np.histogram(drawn[:, 0], edges)
    assert stats.chisquare(counts, p / p.sum() * len(drawn)).pvalue > LEVEL


def chains(n_chains, n_sites, cold=False, first=0):
    states = np.empty((n_chains, 4), np.uint64)
    vectors = np.empty((n_chains, n_sites, 3))
    directors.start_directors(KEY, first, cold, states, vectors)
    return states, vectors, np.zeros((n_chains, 2), np.int64)


def test_sweeps_can_be_resumed_and_chains_stand_alone():
    once, twice, part = chains(4, 6), chains(4, 6), chains(2, 6, first=2)
    directors.sweep_directors(once[0], once[1], 3.0, 4, once[2])
    for _ in range(2):
        directors.sweep_directors(twice[0], twice[1], 3.0, 2, twice[2])
    directors.sweep_directors(part[0], part[1], 3.0, 4, part[2])
    for a, b, c in zip(once, twice, part, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a[2:], c)
    assert (once[2][:, 1] == 24).all()


def test_starts():
    _, cold, _ = chains(2000, 3, cold=True)
    assert (cold == cold[:, :1]).all()
    _, hot, _ = chains(2000, 3)
    for axis in (cold[:, 0, 2], cold[:, 0, 0], hot[:, 1, 1], hot[:, 2, 0]):
        assert stats.kstest(axis, stats.uniform(-1, 2).cdf).pvalue > LEVEL
    products = (hot[:, 0] * hot[:, 1]).sum(axis=1)
    assert stats.kstest(products, stats.uniform(-1, 2).cdf).pvalue > LEVEL


@pytest.mark.parametrize("cold", [True, False])
@pytest.mark.parametrize("beta", [0.0, 1.0, 12.0])
def test_two_directors_reach_their_distribution(beta, cold):
    # Density exp(beta P_2(c) / 2) of c = n_1 . n_2: a sweep must leave it as it is.
    states, vectors, counts = chains(20_000, 2, cold)
    directors.sweep_directors(states, vectors, beta, 60, counts)
    c = abs((vectors[:, 0] * vectors[:, 1]).sum(axis=1))
    fine = (np.arange(20 * 100) + 0.5) / (20 * 100)
    p = np.exp(beta / 2 * (1.5 * fine**2 - 1.5)).reshape(20, 100).sum(axis=1)
    expected = p / p.sum() * len(c)
    observed, _ = np.histogram(c, np.linspace(0, 1, 21))
    kept = expected >= 10
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert stats.chi2.sf(statistic, kept.sum() - kept.all()) > LEVEL
    # Turned at random: the tensor has no preferred direction.
    q = np.empty((20_000, 5))
    directors.measure_directors(vectors, q)
    covariance = q.T @ q / len(q)
    error = (q**2).max() * SIGMAS / math.sqrt(len(q))
    np.testing.assert_allclose(
        covariance, np.eye(5) * np.trace(covariance) / 5, atol=error
    )


def test_proposals_fall_uniformly_into_their_cells():
    mass = np.array([0.2, 0.5, 0.3])
    cells = np.array([[0, 0, 1, 2], [1, 5, 2, 1e-3], [-4, 1, 0.5, 1]], float)
    tops = np.array([1.0, -2.0, 0.5])
    n = 30_000
    states = np.empty((2 * n, 4), np.uint64)
    directors.seed_rows(KEY, 0, states)
    before = states.copy()
    rows = np.arange(0, 2 * n, 2)
    points, levels = np.empty((n, 2)), np.empty(n)
    directors.propose_cells(states, rows, np.cumsum(mass), cells, tops, points, levels)
    np.testing.assert_array_equal(states[1::2], before[1::2])
    assert (states[::2] != before[::2]).any(axis=1).all()
    which = np.array([0, 1, 2])[
        np.select([points[:, 0] < 0, points[:, 0] < 1], [2, 0], 1)
    ]
    assert stats.chisquare(np.bincount(which), mass * n).pvalue > LEVEL
    for c in range(3):
        inside = which == c
        for axis in (0, 1):
            share = (points[inside, axis] - cells[c, axis]) / cells[c, 2 + axis]
            assert stats.kstest(share, "uniform").pvalue > LEVEL
        fall = tops[c] - levels[inside]
        assert stats.kstest(fall, "expon").pvalue > LEVEL


def test_twins_agree():
    results = []
    for pick in (lambda f: f, lambda f: f.py_func):
        with np.errstate(over="ignore"):
            states, vectors, counts = chains(2, 5)
            pick(directors.start_directors)(KEY, 0, True, states, vectors)
            pick(directors.start_directors)(KEY, 3, False, states, vectors)
            pick(directors.sweep_directors)(states, vectors, 4.0, 3, counts)
            q, matrix, values = np.empty((2, 5)), np.empty((3, 3)), np.empty(3)
            pick(directors.measure_directors)(vectors, q)
            pick(directors.tensor_matrix)(q[0], matrix)
            pick(directors.eigenvalues)(matrix.copy(), values)
            pick(directors.rotate_jacobi)(matrix, 0, 2)
            scale = pick(directors.envelope_scale)(1.0, 2.0)
            rotation, drawn = np.empty((3, 3)), np.empty((9, 3))
            pick(directors.random_rotation)(states[0], rotation)
            pick(directors.draw_bingham)(1.0, 8.0, rotation, states[1], drawn)
            single, noise = np.empty(5), np.empty(5)
            pick(directors.order_tensor)(drawn, single)
            pick(directors.draw_field)(single, 3.0, 4, states[0], noise)
            rows, points, levels = np.array([1]), np.empty((1, 2)), np.empty(1)
            pick(directors.propose_cells)(
                states, rows, np.ones(1), np.ones((1, 4)), np.ones(1), points, levels
            )
            gaps = np.array([1.0, 2.0])
            pick(directors.draw_given_field)(states, gaps, gaps, vectors, q)
            seeded = np.empty((2, 4), np.uint64)
            pick(directors.seed_rows)(KEY, 7, seeded)
        results.append((
            vectors, counts, q, matrix, values, scale, rotation, drawn, single, points,
            levels, seeded, states,
        ))  # fmt: skip
    for ours, twin in zip(*results, strict=True):
        # The compiler may fuse a product and a sum.
        np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(results[0][-1], results[1][-1])
