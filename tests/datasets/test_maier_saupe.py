import math

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from skident._kernels.streams import next_uniform
from skident._math.bingham import log_normalizer
from skident.datasets import _maier_saupe, make_maier_saupe
from skident.exact import maier_saupe, maier_saupe_transition

LEVEL = 1e-7
# A right sampler leaves an interval of this many standard errors with probability
# 1e-8, far enough for the normal approximation of 1e4 draws.
SIGMAS = 5.7
METHODS = ["exact", "block-gibbs"]


def draw(n_samples, n_sites, temperature, method="exact", seed=0, **options):
    """Directors (n_samples, n_sites, 3), tensors and info."""
    X, y, info = make_maier_saupe(
        n_samples, n_sites, temperature=temperature, method=method, return_info=True,
        random_state=seed, **options,
    )  # fmt: skip
    return X.reshape(n_samples, n_sites, 3), y, info


def z_score(sample, expected):
    return (sample.mean() - expected) / (sample.std(ddof=1) / np.sqrt(len(sample)))


def p2(x):
    return 1.5 * x**2 - 0.5


def tensors(directors):
    """Q of each sample by its definition."""
    mean = np.einsum("ski,skj->sij", directors, directors) / directors.shape[1]
    return 1.5 * (mean - np.eye(3) / 3)


def assert_histogram(values, density, edges, cells=100):
    """Chi-square of values against a density given up to a factor."""
    shares = (np.arange(cells) + 0.5) / cells
    middles = edges[:-1, None] + np.diff(edges)[:, None] * shares
    p = (density(middles) * np.diff(edges)[:, None]).sum(axis=1)
    expected = p / p.sum() * len(values)
    observed, _ = np.histogram(values, edges)
    assert observed.sum() == len(values)
    kept = expected >= 10
    observed = np.append(observed[kept], observed[~kept].sum())
    expected = np.append(expected[kept], expected[~kept].sum())
    if expected[-1] < 10:
        observed[-2] += observed[-1]
        expected[-2] += expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, len(expected) - 1) > LEVEL


def check_moments(n_samples, n_sites, temperature, method, seed):
    directors, y, info = draw(n_samples, n_sites, temperature, method, seed)
    truth = maier_saupe(n_sites, temperature)
    np.testing.assert_allclose((directors**2).sum(axis=2), 1, rtol=1e-13)
    assert abs(z_score(info.energies, n_sites * truth.energy)) < SIGMAS
    square = (y**2).sum(axis=1)
    assert abs(z_score(square, 1.5 * truth.order_parameter**2)) < SIGMAS
    for i, j in ((0, 1), (0, n_sites - 1), (n_sites // 2, 1)):
        pair = p2((directors[:, i] * directors[:, j]).sum(axis=1))
        assert abs(z_score(pair, truth.pair_correlation)) < SIGMAS
    # No direction is preferred, no head, no site.
    for component in y.T:
        assert abs(z_score(component, 0)) < SIGMAS
        assert abs(z_score(component**2 - square / 5, 0)) < SIGMAS
    for axis in directors[:, [0, -1]].reshape(n_samples, -1).T:
        assert stats.kstest(axis, stats.uniform(-1, 2).cdf).pvalue > LEVEL
    signs = directors[:, 0, 2] * directors[:, 1, 2]
    assert abs(z_score(np.sign(signs), 0)) < SIGMAS


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", [0.15, 0.2202, 0.3])
def test_moments_of_64_sites_within_error(temperature, method):
    check_moments(5000 if method == "exact" else 1500, 64, temperature, method, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", [0.15, 0.18, 0.20, 0.2202, 0.25, 0.30])
def test_moments_for_many_seeds(temperature, method, seed):
    n_samples = 20_000 if method == "exact" else 2000
    check_moments(n_samples, 64, temperature, method, seed)


def test_tensors_and_energies_are_those_of_the_directors():
    directors, y, info = draw(50, 9, 0.2)
    Q = tensors(directors)
    root2, root6 = math.sqrt(2), math.sqrt(6)
    expected = np.stack(
        [
            (2 * Q[:, 2, 2] - Q[:, 0, 0] - Q[:, 1, 1]) / root6,
            (Q[:, 0, 0] - Q[:, 1, 1]) / root2,
            root2 * Q[:, 0, 1],
            root2 * Q[:, 0, 2],
            root2 * Q[:, 1, 2],
        ],
        axis=1,
    )
    np.testing.assert_allclose(y, expected, atol=1e-14)
    np.testing.assert_allclose(np.tensordot(y, _maier_saupe._BASIS, 1), Q, atol=1e-14)
    products = np.einsum("ski,sli->skl", directors, directors)
    energies = -p2(products).sum(axis=(1, 2)) / (2 * 9)
    np.testing.assert_allclose(info.energies, energies, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", [0.02, 0.2202, 2.0])
def test_two_directors_have_their_distribution(temperature, method):
    directors, _, _ = draw(20_000, 2, temperature, method)
    c = abs((directors[:, 0] * directors[:, 1]).sum(axis=1))
    # Narrow cells where the directors are nearly parallel; rounding may pass 1.
    edges = 1 - np.linspace(1, 0, 31) ** 2
    c = np.minimum(c, 1.0)
    assert_histogram(c, lambda x: np.exp((p2(x) - 1) / (2 * temperature)), edges)


@pytest.mark.parametrize("method", METHODS)
def test_three_directors_have_their_distribution(method):
    # By summing over a fine grid of two heights and an azimuth, n_1 along z.
    temperature = 0.2
    _, y, _ = draw(20_000, 3, temperature, method)
    x = (np.arange(150) + 0.5) / 150
    phi = (np.arange(150) + 0.5) * math.pi / 150
    a, b = x[:, None, None], x[:, None]
    c = a * b + np.sqrt((1 - a**2) * (1 - b**2)) * np.cos(phi)
    total = p2(a) + p2(b) + p2(c)
    p = np.exp(total / (3 * temperature)).ravel()
    # tr Q^2 = (3 / 2 N^2) sum_kl P_2 is at most 3 / 2, and zero for a triad.
    grid_square = (1.5 / 9) * (3 + 2 * total).ravel()
    edges = np.linspace(0, 1.5 + 1e-9, 31)
    exact, _ = np.histogram(np.maximum(grid_square, 0), edges, weights=p)
    observed, _ = np.histogram((y**2).sum(axis=1), edges)
    exact *= len(y) / exact.sum()
    # A grid of 3.4e6 points misplaces about 1e-3 of each cell.
    error = exact + (3e-3 * exact) ** 2
    kept = exact >= 10
    statistic = ((observed - exact)[kept] ** 2 / error[kept]).sum()
    assert observed.sum() == len(y)
    assert stats.chi2.sf(statistic, kept.sum()) > LEVEL


def field_eigenvalues(y, n_sites, temperature, seed):
    """Eigenvalues of M = Q + noise, from tensors: those of the field."""
    noise = np.random.default_rng(seed).normal(size=y.shape)
    q = y + math.sqrt(1.5 * temperature / n_sites) * noise
    return np.linalg.eigvalsh(np.tensordot(q, _maier_saupe._BASIS, 1))


def grid_of_the_field(n_sites, temperature, n=500):
    """Eigenvalues on a grid of two of them, with their probabilities."""
    top = 1 + 8 * math.sqrt(temperature / n_sites)
    largest = ((np.arange(n) + 0.5) * top / n)[:, None]
    share = (np.arange(n) + 0.5) / n
    # The second lies between -largest / 2 and largest.
    second = largest * (1.5 * share - 0.5)
    values = np.stack([-largest - second, second, largest + 0 * second], axis=-1)
    gaps = np.abs(np.prod(values - np.roll(values, 1, axis=-1), axis=-1))
    log_p = n_sites * log_normalizer(values / temperature)
    log_p -= n_sites / (3 * temperature) * (values**2).sum(axis=-1)
    p = np.exp(log_p - log_p.max()) * gaps * largest
    return values, p / p.sum()


@pytest.mark.parametrize(
    "method, n_sites, temperature",
    [
        ("exact", 1, 0.3),
        ("exact", 5, 0.1),
        ("exact", 64, 0.2202),
        ("exact", 400, 0.221),
        ("block-gibbs", 5, 0.1),
        pytest.param("block-gibbs", 64, 0.2202, marks=pytest.mark.slow),
    ],
)
def test_field_has_its_distribution(method, n_sites, temperature):
    # The largest eigenvalue, in bins of equal probability, and in each of these the
    # second one: rods or discs.
    _, y, _ = draw(10_000, n_sites, temperature, method, seed=3)
    ours = field_eigenvalues(y, n_sites, temperature, 5)
    values, p = grid_of_the_field(n_sites, temperature)
    cdf = np.cumsum(p.sum(axis=1))
    grid = values[:, 0, 2]
    # Halfway between the points of the grid.
    limits = np.interp(np.arange(1, 16) / 16, cdf, grid) + (grid[1] - grid[0]) / 2
    splits = [-0.4, -0.2, 0.1]

    def cells(v):
        return np.searchsorted(limits, v[..., 2]) * 4 + np.searchsorted(
            splits, v[..., 1] / v[..., 2]
        )

    exact = np.bincount(cells(values).ravel(), p.ravel(), 64) * len(y)
    observed = np.bincount(cells(ours), minlength=64)
    kept = exact >= 10
    # A grid of 500 misplaces up to 1.5 % of a cell.
    error = exact + (0.015 * exact) ** 2
    statistic = ((observed - exact)[kept] ** 2 / error[kept]).sum()
    assert observed[~kept].sum() < 10 + 10 * np.sqrt(exact[~kept].sum() + 1)
    assert stats.chi2.sf(statistic, kept.sum()) > LEVEL


@pytest.mark.parametrize(
    "n_sites, temperature", [(2, 1.0), (7, 0.1), (64, 0.15), (64, 0.2202)]
)
def test_field_is_drawn_from_its_density_and_not_from_the_bound(n_sites, temperature):
    # The two differ by a tenth, which moves some mean by more than six errors.
    n = 200_000
    states = np.empty((n, 4), np.uint64)
    _maier_saupe.seed_rows(np.uint64(1), 0, states)
    bound = _maier_saupe._field_bound(n_sites, temperature)
    u, y = _maier_saupe._draw_field(states, n_sites, temperature, bound)
    values, p = grid_of_the_field(n_sites, temperature)
    scale = np.sqrt(2 / 3 * (values**2).sum(axis=-1))
    exact_y = 1 - 4 * values.prod(axis=-1) / scale**3
    assert abs(z_score(u, (p * (scale - 1)).sum())) < SIGMAS
    assert abs(z_score(y, (p * exact_y).sum())) < SIGMAS
    square = (p * (scale - 1) ** 2).sum()
    assert abs(z_score(u**2, square)) < SIGMAS


def test_both_phases_have_their_weights_at_coexistence():
    # 4000 sites where either phase is likely: two peaks, hardly anything between.
    n_sites = 4000
    temperature = maier_saupe_transition().temperature * (1 + 11 / n_sites)
    n = 800
    _, y, _ = draw(n, n_sites, temperature)
    truth = maier_saupe(n_sites, temperature)
    square = 2 / 3 * (y**2).sum(axis=1)
    assert abs(z_score(square, truth.order_parameter**2)) < SIGMAS
    order = np.sqrt(square)
    low, middle, high = np.histogram(order, [0, 0.12, 0.25, 1])[0]
    assert min(low, high) > 4 * middle > 0
    values, p = grid_of_the_field(n_sites, temperature)
    ours = field_eigenvalues(y, n_sites, temperature, 0)[:, 2]
    share = p.sum(axis=1)[values[:, 0, 2] > 0.2].sum()
    count = (ours > 0.2).sum()
    assert abs(count - n * share) < SIGMAS * math.sqrt(n * share * (1 - share))


@pytest.mark.slow
def test_block_gibbs_crosses_between_the_phases():
    n_sites = 400
    temperature = maier_saupe_transition().temperature * (1 + 6 / n_sites)
    _, y, info = draw(1000, n_sites, temperature, "block-gibbs", n_jobs=2)
    truth = maier_saupe(n_sites, temperature)
    square = 2 / 3 * (y**2).sum(axis=1)
    assert abs(z_score(square, truth.order_parameter**2)) < SIGMAS
    assert info.tau_int > 20


@pytest.mark.parametrize("n_sites", [1, 2, 64, 100_000])
@pytest.mark.parametrize("temperature", [1e-100, 1e-3, 0.1, 0.2202, 0.3, 1e2, 1e32])
def test_density_of_the_field_lies_below_its_bound(n_sites, temperature):
    bound = _maier_saupe._field_bound(n_sites, temperature)
    n = 3000
    states = np.empty((n, 4), np.uint64)
    _maier_saupe.seed_rows(np.uint64(0), 0, states)
    first = np.array([next_uniform(state) for state in states.copy()])
    tops = bound.tops[np.searchsorted(bound.cdf, first, side="right")]
    points, levels = np.empty((n, 2)), np.empty(n)
    _maier_saupe.propose_cells(states, np.arange(n), *bound, points, levels)
    u, y = points.T
    log_p = _maier_saupe._noise_part(u, temperature / n_sites)
    log_p += _maier_saupe.field_depth(n_sites, temperature, u, y)
    assert (log_p <= tops).all()
    assert (levels <= tops).all()
    # What the docstring says of the acceptance.
    assert (log_p >= levels).mean() > 0.8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", [1e6, 1.7e308, np.inf])
def test_infinitely_hot_directors_are_uniform_and_independent(temperature, method):
    directors, y, info = draw(4000, 5, temperature, method)
    assert np.isfinite(info.energies).all()
    for axis in directors.reshape(4000, -1).T:
        assert stats.kstest(axis, stats.uniform(-1, 2).cdf).pvalue > LEVEL
    for k in range(1, 5):
        product = (directors[:, 0] * directors[:, k]).sum(axis=1)
        assert stats.kstest(product, stats.uniform(-1, 2).cdf).pvalue > LEVEL
    # Five components of variance 3 / (10 N).
    assert abs(z_score((y**2).sum(axis=1), 1.5 / 5)) < SIGMAS


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", [1e-100, 1e-8])
def test_cold_directors_are_aligned(temperature, method):
    directors, y, info = draw(500, 20, temperature, method)
    np.testing.assert_allclose((y**2).sum(axis=1), 1.5, rtol=1e-6)
    np.testing.assert_allclose(info.energies, -10, rtol=1e-6)
    # The common axis is uniform, and heads and tails are mixed.
    axis = directors[:, 0]
    for column in axis.T:
        assert stats.kstest(column, stats.uniform(-1, 2).cdf).pvalue > LEVEL
    heads = np.sign((directors * axis[:, None]).sum(axis=2))[:, 1:]
    assert abs(heads.mean()) < SIGMAS / math.sqrt(heads.size)


def test_one_director_is_uniform():
    directors, _, info = draw(5000, 1, 0.1)
    assert stats.kstest(directors[:, 0, 0], stats.uniform(-1, 2).cdf).pvalue > LEVEL
    np.testing.assert_allclose(info.energies, -0.5)


def test_large_system():
    directors, _, info = draw(2, 200_000, 0.15)
    truth = maier_saupe(200_000, 0.15)
    np.testing.assert_allclose(info.energies / 200_000, truth.energy, rtol=0.02)
    assert directors.shape == (2, 200_000, 3)


def test_info_of_both_methods():
    *_, y, info = draw(20, 4, 0.3)
    assert (info.method, info.tau_int, info.ess, info.burn_in) == ("exact", 1, 20, 0)
    assert info.order_parameter is y
    *_, info = draw(20, 4, 0.3, "block-gibbs")
    assert info.method == "block-gibbs"
    assert info.burn_in >= 16
    assert 0.52 < info.acceptance < 1
    assert info.start_disagreement < 0.7


def test_auto_is_exact_and_does_not_look_at_chains():
    X, _ = make_maier_saupe(30, 7, temperature=0.3, random_state=4)
    options = {"method": "exact", "draws_per_chain": 5, "spacing": 3}
    same, _ = make_maier_saupe(30, 7, temperature=0.3, random_state=4, **options)
    np.testing.assert_array_equal(X, same)
    out = np.empty((30, 21))
    written, _ = make_maier_saupe(30, 7, temperature=0.3, random_state=4, out=out)
    assert written is out
    np.testing.assert_array_equal(out, X)


@pytest.mark.parametrize("method", METHODS)
def test_row_depends_on_seed_and_number_only(method, monkeypatch):
    many = draw(60, 6, 0.21, method, seed=2)
    monkeypatch.setattr("skident.datasets._chains.CALL_NS", 5e3)
    for n_jobs, n in ((1, 60), (2, 60), (2, 11)):
        some = draw(n, 6, 0.21, method, seed=2, n_jobs=n_jobs)
        np.testing.assert_array_equal(some[0], many[0][:n])
        np.testing.assert_array_equal(some[1], many[1][:n])
        np.testing.assert_array_equal(some[2].energies, many[2].energies[:n])


def test_draws_of_a_chain_have_the_same_distribution():
    options = {"draws_per_chain": 20, "spacing": 10}
    _, y, info = draw(4000, 16, 0.25, "block-gibbs", **options)
    assert 1000 < info.ess <= 4000
    error = info.energies.std() / math.sqrt(info.ess)
    truth = maier_saupe(16, 0.25)
    assert abs(info.energies.mean() - 16 * truth.energy) < SIGMAS * error
    # The whole is turned at every sweep: orientations do not persist.
    following = (y[:-1] * y[1:]).sum(axis=1) / (y**2).sum(axis=1).mean()
    assert abs(z_score(following, 0)) < SIGMAS
    with pytest.warns(ConvergenceWarning, match="independent ones"):
        draw(2000, 200, 0.2215, "block-gibbs", draws_per_chain=500, spacing=1)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"n_sites": 0}, "'n_sites' parameter of make_maier_saupe"),
        ({"n_sites": 2.5}, "'n_sites' parameter"),
        ({"n_sites": 10**7 + 1}, "'n_sites' parameter"),
        ({"temperature": 0.0}, "'temperature' parameter"),
        ({"temperature": np.nan}, "'temperature' parameter"),
        ({"method": "wolff"}, "'method' parameter"),
        ({"draws_per_chain": 0}, "'draws_per_chain' parameter"),
        ({"spacing": "long"}, "'spacing' parameter"),
        ({"out": np.empty((3, 12), np.float32)}, "out must have shape .* float64"),
        ({"out": np.empty((3, 4))}, r"out must have shape \(3, 12\)"),
    ],
)
def test_bad_input_is_named(changes, message):
    arguments = {"n_samples": 3, "n_sites": 4, "temperature": 1.0, **changes}
    with pytest.raises(ValueError, match=message):
        make_maier_saupe(**arguments)
