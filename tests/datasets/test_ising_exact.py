import math
import pickle
from functools import cache

import numpy as np
import pytest

from skident.datasets import _ising_exact
from skident.datasets._ising_exact import LARGEST, exact_draws, table_size
from skident.datasets._lattice import lattice
from skident.exact import ising

KEY = np.uint64(11)
# A right sampler leaves an interval of this many standard errors with probability
# 1e-8, far enough for the normal approximation of 1e4 draws.
SIGMAS = 5.7

# Shape, temperature, field, coupling, periodic.
MODELS = {
    "chain": ((6,), 1.5, 0.3, 1.0, True),
    "open chain": ((5,), 1.5, -0.3, 1.0, False),
    "frustrated ring": ((7,), 0.6, 0.0, -1.0, True),
    "pair": ((2,), 2.0, 0.2, 1.0, True),
    "site": ((1,), 2.0, 0.5, 1.0, True),
    "sheet": ((4, 3), 2.3, 0.0, 1.0, True),
    "sheet in a field": ((3, 4), 2.3, 0.2, 1.0, True),
    "antiferromagnet": ((4, 2), 2.0, 0.4, -1.0, True),
    "frustrated": ((3, 3), 1.0, 0.0, -1.0, True),
    "open sheet": ((3, 4), 2.0, 0.3, 1.0, False),
    "block": ((2, 3, 2), 4.0, 0.1, -1.0, True),
    "open block": ((2, 2, 3), 3.0, 0.0, 1.0, False),
    "hot": ((3, 3), np.inf, 1.0, 1.0, True),
}


lattice_of = cache(lattice)


def energies_of(X, shape, field, coupling, periodic):
    """H by its definition, and the order parameter."""
    graph = lattice_of(shape, periodic, coupling)
    X = np.asarray(X, float)
    bonds = X[:, graph.bonds[:, 0]] * X[:, graph.bonds[:, 1]]
    energies = -coupling * bonds.sum(axis=1) - field * X.sum(axis=1)
    return energies, X @ graph.staggering / X.shape[1]


def draws_of(shape, temperature, field, coupling, periodic):
    return exact_draws(shape, 1 / temperature, coupling, field, periodic)


@pytest.mark.parametrize("model", MODELS)
def test_every_state_has_its_weight(assert_boltzmann, model):
    shape, temperature, field, coupling, periodic = MODELS[model]
    X, y, energies = draws_of(*MODELS[model]).draw(KEY, 0, 100_000)
    options = (shape, field, coupling, periodic)
    assert X.shape == (100_000, math.prod(shape)) and X.dtype == np.int8
    assert set(np.unique(X)) <= {-1, 1}
    expected, order = energies_of(X, *options)
    np.testing.assert_allclose(energies, expected, atol=1e-12)
    np.testing.assert_allclose(y, order, atol=1e-12)
    assert_boltzmann(X, lambda s: energies_of(s[None], *options)[0][0], temperature)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("model", MODELS)
def test_every_state_for_many_keys(assert_boltzmann, model, seed):
    shape, temperature, *rest = MODELS[model]
    X, _, _ = draws_of(*MODELS[model]).draw(np.uint64(1000 + seed), 0, 300_000)
    assert_boltzmann(X, lambda s: energies_of(s[None], shape, *rest)[0][0], temperature)


def z_score(values, expected):
    return (values.mean() - expected) / (values.std(ddof=1) / math.sqrt(len(values)))


@pytest.mark.parametrize(
    "shape, temperature, field, coupling, periodic",
    [
        ((8, 8), 2.269, 0.0, 1.0, True),
        ((8, 8), 1.5, 0.0, -1.0, True),
        ((6, 9), 2.0, 0.1, 1.0, True),
        ((9, 7), 2.0, 0.5, -1.0, True),
        ((12, 9), 2.2, 0.0, 1.0, False),
        ((3, 3, 6), 4.5, 0.0, 1.0, True),
        ((300,), 0.7, 0.05, 1.0, True),
        ((301,), 0.7, 0.0, -1.0, True),
    ],
)
def test_means_agree_with_the_exact_ones(shape, temperature, field, coupling, periodic):
    truth = ising(shape, temperature, field=field, coupling=coupling, periodic=periodic)
    draws = draws_of(shape, temperature, field, coupling, periodic)
    X, y, energies = draws.draw(KEY, 0, 20_000)
    n = math.prod(shape)
    assert abs(z_score(energies / n, truth.energy)) < SIGMAS
    assert abs(z_score(y, truth.magnetization)) < SIGMAS
    assert abs(z_score(abs(y), truth.abs_magnetization)) < SIGMAS
    assert abs(z_score(n * y**2, truth.susceptibility)) < SIGMAS
    graph = lattice(shape, periodic, coupling)
    pairs = X[:, graph.bonds[:, 0]].astype(float) * X[:, graph.bonds[:, 1]]
    assert abs(z_score(pairs.mean(axis=1), truth.pair_correlation)) < SIGMAS
    # All bonds along an axis of a closed lattice are alike: none is singled out.
    spread = pairs.mean(axis=0)
    if periodic:
        error = np.sqrt((1 - spread.mean() ** 2) / len(X))
        for axis in range(len(shape)):
            alike = spread[axis :: len(shape)]
            assert np.ptp(alike) < 2 * SIGMAS * error


def test_row_does_not_depend_on_how_many_are_drawn():
    draws = exact_draws((4, 4), 0.4, 1.0, 0.0, True)
    whole, part = draws.draw(KEY, 0, 60), draws.draw(KEY, 20, 50)
    for a, b in zip(whole, part, strict=True):
        np.testing.assert_array_equal(a[20:50], b)
    other = draws.draw(np.uint64(12), 0, 60)[0]
    assert (other != whole[0]).any()


def test_pickle_draws_the_same():
    draws = exact_draws((3, 5), 0.4, -1.0, 0.1, True)
    again = pickle.loads(pickle.dumps(draws))
    for a, b in zip(draws.draw(KEY, 0, 9), again.draw(KEY, 0, 9), strict=True):
        np.testing.assert_array_equal(a, b)


def test_table_does_not_depend_on_how_it_is_filled(monkeypatch):
    whole = exact_draws((9, 3), 0.4, 1.0, 0.1, True).chances
    monkeypatch.setattr(_ising_exact, "_SLICE", 100)
    np.testing.assert_array_equal(
        exact_draws((9, 3), 0.4, 1.0, 0.1, True).chances, whole
    )


@pytest.mark.parametrize("n", [5, 9])
def test_coldest_ring_is_uniform_over_its_ground_states(assert_distribution, n):
    X, _, energies = exact_draws((n,), 1e100, -1.0, 0.0, True).draw(KEY, 0, 20_000)
    assert (energies == -(n - 2)).all()
    # One bond, anywhere, is not satisfied; and the reverse of each.
    broken = (X == np.roll(X, -1, axis=1)).argmax(axis=1)
    counts = np.bincount(2 * broken + (X[:, 0] > 0), minlength=2 * n)
    assert_distribution(counts, np.full(2 * n, 1 / (2 * n)))


def test_coldest_sheets_are_ordered(assert_distribution):
    for coupling in (1.0, -1.0):
        _, y, _ = exact_draws((6, 4), 1e100, coupling, 0.0, True).draw(KEY, 0, 2000)
        assert_distribution([(y == 1).sum(), (y == -1).sum()], [0.5, 0.5])
    X, _, _ = exact_draws((6, 4), 1e100, 1.0, -1e-90, True).draw(KEY, 0, 100)
    assert (X == -1).all()
    X, _, _ = exact_draws((3, 3), 1e100, -1e100, 1e100, False).draw(KEY, 0, 100)
    assert (X == lattice((3, 3), False, -1.0).staggering).all()


def test_very_long_chain():
    n, beta, field = 100_000, 0.8, 0.1
    X, y, energies = exact_draws((n,), beta, 1.0, field, True).draw(KEY, 0, 20)
    # Eigenvalues of the 2 x 2 matrix: <s> and the variance of the sum.
    root = math.sqrt(
        math.exp(2 * beta) * math.sinh(beta * field) ** 2 + math.exp(-2 * beta)
    )
    mean = math.exp(beta) * math.sinh(beta * field) / root
    a = math.exp(beta) * math.cosh(beta * field)
    correlation = (a - root) / (a + root)
    variance = (1 - mean**2) * (1 + correlation) / (1 - correlation) / n
    assert abs(y.mean() - mean) < SIGMAS * math.sqrt(variance / 20)
    np.testing.assert_allclose(
        energies, energies_of(X, (n,), field, 1.0, True)[0], rtol=1e-12
    )


@pytest.mark.parametrize("field", [0.0, 0.2])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("shape", [(1,), (7,), (5, 4), (4, 3, 2)], ids=str)
def test_size_of_the_table_is_known_before(shape, periodic, field):
    draws = exact_draws(shape, 0.4, 1.0, field, periodic)
    assert table_size(shape, periodic, field) == draws.chances.nbytes


@pytest.mark.parametrize(
    "shape, periodic",
    [((12, 12), True), ((17, 17), False), ((512, 512), True), ((1000, 1000, 2), True)],
)
def test_wide_lattices_are_refused(shape, periodic):
    assert table_size(shape, periodic, 0.0) > LARGEST
    with pytest.raises(ValueError, match=r"narrow lattice: shape=.* MiB"):
        exact_draws(shape, 0.4, 1.0, 0.0, periodic)


def test_narrow_lattices_are_taken():
    for shape, periodic, field in [
        ((11, 11), True, 0.0),
        ((10, 10), True, 0.1),
        ((16, 16), False, 0.3),
        ((100_000,), True, 0.1),
        ((3, 3, 100), True, 0.0),
    ]:
        assert table_size(shape, periodic, field) <= LARGEST
