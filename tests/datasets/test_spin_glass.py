import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skident.datasets import lattice_graph, make_couplings, make_spin_glass
from skident.datasets._couplings import check_couplings
from skident.datasets._spin_glass import _tempered


def complete(n_sites):
    return np.ones((n_sites, n_sites)) - np.eye(n_sites)


def sherrington_kirkpatrick(n_sites, seed=0):
    return make_couplings(
        complete(n_sites), scale=1 / np.sqrt(n_sites), random_state=seed
    )


def edwards_anderson(shape, distribution="binary", seed=0, periodic=True):
    graph = lattice_graph(shape, periodic=periodic)
    return make_couplings(graph, distribution=distribution, random_state=seed)


def random_graph(n_sites, seed):
    rng = np.random.default_rng(seed)
    graph = np.triu(rng.random((n_sites, n_sites)) < 0.3, 1)
    return make_couplings(graph + graph.T, random_state=seed)


def energy_of(couplings, field):
    matrix = np.asarray(sparse.csr_array(couplings).todense(), dtype=float)
    return lambda s: -0.5 * s @ matrix @ s - (np.asarray(field) * s).sum()


# couplings, temperature, field
MODELS = {
    "gaussian sheet": (edwards_anderson((3, 3), "gaussian"), 0.3, 0.0),
    "binary sheet": (edwards_anderson((3, 3)), 0.4, 0.0),
    "binary sheet in a field": (edwards_anderson((3, 3), seed=1), 0.8, 0.4),
    "complete": (sherrington_kirkpatrick(9), 0.25, 0.0),
    "complete in random fields": (
        sherrington_kirkpatrick(8, 1), 0.4, np.random.default_rng(0).normal(size=8) / 2,
    ),
    "sparse": (random_graph(10, 3), 0.35, 0.0),
    "sparse in random fields": (
        random_graph(9, 4), 0.5, np.random.default_rng(1).normal(size=9),
    ),
    "two parts": (sparse.block_diag([3 * complete(3), -complete(4)]), 0.9, 0.1),
    "frustrated triangle": (-complete(3), 0.2, 0.0),
    "ferromagnet": (complete(7) / 7, 0.5, 0.0),
    "chain": (edwards_anderson(8, "gaussian", periodic=False), 0.2, 0.0),
    "free": (np.zeros((5, 5)), 0.7, [0.3, -0.2, 0.0, 1.0, 5.0]),
    "one site": (np.zeros((1, 1)), 2.0, 0.7),
    "infinite temperature": (edwards_anderson((2, 3)), np.inf, 3.0),
}  # fmt: skip


def check_model(spins, assert_boltzmann, assert_distribution, name, seed, n_samples):
    couplings, temperature, field = MODELS[name]
    energy = energy_of(couplings, field)
    X, q, info = make_spin_glass(
        n_samples, couplings, temperature=temperature, field=field, return_info=True,
        random_state=seed,
    )  # fmt: skip
    assert_boltzmann(X, energy, temperature)
    np.testing.assert_allclose(
        info.energies[:40], [energy(s) for s in X[:40].astype(float)], atol=1e-12
    )
    n_sites = X.shape[1]
    s = X.astype(float)
    overlaps = (s[::2] * s[1::2]).mean(axis=1)
    np.testing.assert_array_equal(q[::2], overlaps)
    np.testing.assert_array_equal(q[1::2], overlaps)
    # Replicas are independent: the overlap has the distribution of two states.
    states = spins.all_states(n_sites)
    p = spins.boltzmann(np.array([energy(s) for s in states]), temperature)
    places = np.round((states @ states.T + n_sites) / 2).astype(int)
    weights = np.bincount(places.ravel(), np.outer(p, p).ravel(), n_sites + 1)
    counts = np.round((overlaps * n_sites + n_sites) / 2).astype(int)
    assert_distribution(np.bincount(counts, minlength=n_sites + 1), weights)


@pytest.mark.parametrize("name", MODELS)
def test_every_state_has_its_probability(
    spins, assert_boltzmann, assert_distribution, name
):
    check_model(spins, assert_boltzmann, assert_distribution, name, 0, 6000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
@pytest.mark.parametrize(
    "name", ["gaussian sheet", "binary sheet", "complete", "sparse in random fields"]
)
def test_every_state_for_many_seeds(
    spins, assert_boltzmann, assert_distribution, name, seed
):
    check_model(spins, assert_boltzmann, assert_distribution, name, seed, 30_000)


def log_partition(down, right, beta):
    """ln Z of a periodic sheet by its transfer matrix, row by row.

    ``down[i, j]`` couples (i, j) to (i + 1, j), ``right[i, j]`` to (i, j + 1).
    """
    side = down.shape[1]
    rows = np.array(np.meshgrid(*[[-1, 1]] * side, indexing="ij")).reshape(side, -1).T
    product, log_scale = np.eye(len(rows)), 0.0
    for i in range(len(down)):
        inside = (rows * np.roll(rows, -1, axis=1)) @ right[i]
        product = product @ np.exp(beta * (inside[:, None] + (rows * down[i]) @ rows.T))
        scale = product.max()
        product, log_scale = product / scale, log_scale + np.log(scale)
    return log_scale + np.log(np.trace(product))


def sheet_couplings(couplings, side):
    sites = np.arange(side**2).reshape(side, side)
    matrix = couplings.toarray()
    return (matrix[sites, np.roll(sites, -1, axis=axis)] for axis in (0, 1))


@pytest.mark.parametrize("distribution", ["binary", "gaussian"])
@pytest.mark.parametrize("temperature", [0.6, 1.5])
def test_energy_of_a_sheet_agrees_with_its_transfer_matrix(distribution, temperature):
    couplings = edwards_anderson((6, 6), distribution, seed=2)
    down, right = sheet_couplings(couplings, 6)
    beta, step = 1 / temperature, 1e-4
    high, low = (log_partition(down, right, beta + d) for d in (step, -step))
    exact = -(high - low) / (2 * step)
    *_, info = make_spin_glass(
        600, couplings, temperature=temperature, return_info=True, random_state=0
    )
    error = info.energies.std() / np.sqrt(600)
    assert abs(info.energies.mean() - exact) < 5.4 * error + 1e-4


def test_pure_ferromagnet_at_the_critical_point():
    # Exact finite-size value of the 4 x 4 torus at T = 2.269: -1.56577 a site.
    *_, info = make_spin_glass(
        4000, lattice_graph((4, 4)), temperature=2.269, return_info=True, random_state=0
    )
    error = info.energies.std() / np.sqrt(4000) / 16
    assert abs(info.energies.mean() / 16 + 1.56577) < 5.4 * error


def metropolis(matrix, temperature, n_chains, n_sweeps, seed):
    """Energies of an independent twin: single chains, Metropolis, sites at random."""
    rng, n_sites = np.random.default_rng(seed), len(matrix)
    s = rng.choice([-1.0, 1.0], (n_chains, n_sites))
    for _ in range(n_sweeps * n_sites):
        i = rng.integers(n_sites)
        cost = 2 * s[:, i] * (s @ matrix[i])
        s[:, i] *= np.where(rng.random(n_chains) < np.exp(-cost / temperature), -1, 1)
    return -0.5 * ((s @ matrix) * s).sum(axis=1)


def test_complete_graph_of_64_sites_agrees_with_long_single_chains():
    # A little above the transition single chains mix in some ten sweeps.
    couplings = sherrington_kirkpatrick(64)
    twin = metropolis(couplings.toarray(), 0.9, 1000, 150, 0)
    *_, info = make_spin_glass(
        1000, couplings, temperature=0.9, return_info=True, random_state=1
    )
    error = np.hypot(twin.std(), info.energies.std()) / np.sqrt(1000)
    assert abs(twin.mean() - info.energies.mean()) < 5.4 * error


COLD = {
    "complete": (sherrington_kirkpatrick(32), 0.3),
    "sheet": (edwards_anderson((5, 6), "gaussian", seed=3), 0.3),
    "block": (edwards_anderson((3, 3, 3), "gaussian", seed=3), 0.6),
}
LARGE = {
    "large complete": (sherrington_kirkpatrick(64), 0.3),
    "large sheet": (edwards_anderson((10, 10), seed=3), 0.3),
    "large block": (edwards_anderson((5, 5, 5), seed=3), 0.8),
}


@pytest.mark.parametrize(
    "name", [*COLD, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]
)
def test_cold_glass_is_in_equilibrium(monkeypatch, name):
    # The burn-in was measured (no warning), starts agree, and a burn-in four times as
    # long changes nothing.
    couplings, temperature = {**COLD, **LARGE}[name]
    observed = []
    for times in (8, 32):
        monkeypatch.setattr("skident.datasets._pilot._BURN_IN_TIMES", times)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _, q, info = make_spin_glass(
                200, couplings, temperature=temperature, return_info=True,
                random_state=times,
            )  # fmt: skip
        assert info.burn_in >= times * info.tau_int
        assert info.temperatures[0] == temperature
        assert (np.diff(info.temperatures) > 0).all()
        assert (info.exchange_acceptance > 0.1).all()
        assert len(info.exchange_acceptance) == len(info.temperatures) - 1
        # A pair has one overlap: half as many are independent.
        observed.append((info.energies, q[::2] ** 2))
    for first, second in zip(*observed, strict=True):
        error = np.hypot(first.std(), second.std()) / np.sqrt(len(first))
        assert abs(first.mean() - second.mean()) <= 5.4 * error


def test_many_draws_of_a_chain():
    couplings = edwards_anderson((3, 3), "gaussian")
    energy = energy_of(couplings, 0.0)
    X, q, info = make_spin_glass(
        3000, couplings, temperature=0.7, draws_per_chain=100, spacing=3,
        return_info=True, random_state=0,
    )  # fmt: skip
    assert info.ess < 3000
    # Row k is of chain k // 100; its replica is the same draw of the next chain.
    s = X.reshape(15, 2, 100, 9).astype(float)
    np.testing.assert_array_equal(
        q.reshape(15, 2, 100)[:, 0], (s[:, 0] * s[:, 1]).mean(axis=-1)
    )
    error = info.energies.std() / np.sqrt(info.ess)
    single = make_spin_glass(
        3000, couplings, temperature=0.7, return_info=True, random_state=1
    )[2].energies
    assert abs(info.energies.mean() - single.mean()) < 7 * error
    np.testing.assert_allclose(
        info.energies[:9], [energy(s) for s in X[:9].astype(float)]
    )


@pytest.mark.parametrize("n_samples", [1, 2, 7, 8])
def test_rows_come_in_pairs_of_which_the_last_may_be_cut(n_samples):
    couplings = edwards_anderson((4, 4))
    X, q = make_spin_glass(20, couplings, temperature=0.6, random_state=0)
    few, few_q = make_spin_glass(n_samples, couplings, temperature=0.6, random_state=0)
    np.testing.assert_array_equal(few, X[:n_samples])
    np.testing.assert_array_equal(few_q, q[:n_samples])


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e97])
def test_local_fields_are_exact_sums(scale):
    matrix = check_couplings(scale * sherrington_kirkpatrick(30))
    field = scale * np.random.default_rng(0).normal(size=30)
    chains, _ = _tempered(matrix, field, scale * 0.3, 0)
    state = chains.start(np.uint64(1), 0, 4, False)
    for _ in range(50):
        chains.advance(state, 20)
    rounded = matrix.copy()
    rounded.data = chains.values
    np.testing.assert_allclose(chains.values, matrix.data, atol=1e-14 * scale)
    np.testing.assert_allclose(chains.external, field, atol=1e-14 * scale)
    exact = state.spins.astype(float) @ rounded.toarray() + chains.external
    np.testing.assert_array_equal(state.fields, exact)


def test_units_of_energy_do_not_matter():
    # A power of two changes no rounding, so nothing at all but the energies.
    couplings, field = sherrington_kirkpatrick(20), np.linspace(-1, 1, 20)
    X, _, info = make_spin_glass(
        30, couplings, temperature=0.5, field=field, return_info=True, random_state=0
    )
    for power in (-9, 60, 300):
        scale = 2.0**power
        other, _, scaled = make_spin_glass(
            30, scale * couplings, temperature=scale * 0.5, field=scale * field,
            return_info=True, random_state=0,
        )  # fmt: skip
        np.testing.assert_array_equal(other, X)
        np.testing.assert_array_equal(scaled.energies, scale * info.energies)


def test_all_kinds_of_matrices_are_one():
    couplings = edwards_anderson((3, 4))
    expected = make_spin_glass(10, couplings, temperature=0.7, random_state=0)[0]
    for kind in (
        couplings.toarray(), couplings.toarray().astype(np.int8).tolist(),
        couplings.astype(np.float32), sparse.coo_matrix(couplings),
        sparse.lil_array(couplings),
    ):  # fmt: skip
        X, _ = make_spin_glass(10, kind, temperature=0.7, random_state=0)
        np.testing.assert_array_equal(X, expected)
    before = couplings.copy()
    make_spin_glass(2, couplings, temperature=0.7)
    assert (couplings != before).nnz == 0


def test_field_of_each_site_and_of_all():
    couplings = edwards_anderson((3, 4))
    arguments = {"temperature": 0.7, "random_state": 0}
    one, _ = make_spin_glass(10, couplings, field=0.5, **arguments)
    for field in (np.full(12, 0.5), [0.5] * 12, np.float32(0.5), np.array(0.5)):
        X, _ = make_spin_glass(10, couplings, field=field, **arguments)
        np.testing.assert_array_equal(X, one)


@pytest.mark.parametrize("temperature", [1e-100, 1e-3])
def test_cold_limit_is_the_ground_state(spins, temperature):
    for name in ("gaussian sheet", "complete in random fields", "two parts"):
        couplings, _, field = MODELS[name]
        energy = energy_of(couplings, field)
        lowest = min(energy(s) for s in spins.all_states(couplings.shape[0]))
        *_, info = make_spin_glass(
            40, couplings, temperature=temperature, field=field, return_info=True,
            random_state=0,
        )  # fmt: skip
        np.testing.assert_allclose(info.energies, lowest, rtol=1e-12)


def test_extreme_couplings():
    X, q = make_spin_glass(6, 1e100 * complete(4), temperature=1e-100, random_state=0)
    assert (abs(X.astype(int).sum(axis=1)) == 4).all()
    assert set(q) <= {-1.0, 1.0}
    X, _ = make_spin_glass(
        2000, 1e-300 * complete(4), temperature=1.0, field=1e-320, random_state=0
    )
    assert abs(X.astype(float).mean()) < 5.4 / np.sqrt(X.size)
    X, _ = make_spin_glass(4, complete(4), temperature=1.0, field=-1e100)
    assert (X == -1).all()


def test_single_temperature_where_single_spins_mix():
    *_, info = make_spin_glass(
        10, lattice_graph((6, 6)), temperature=4.5, return_info=True, random_state=0
    )
    np.testing.assert_array_equal(info.temperatures, [4.5])
    assert info.exchange_acceptance.shape == (0,)
    assert info.acceptance == 1.0
    assert info.method == "parallel tempering with isoenergetic clusters"
    *_, info = make_spin_glass(
        10, sherrington_kirkpatrick(12), temperature=0.5, return_info=True,
        random_state=0,
    )  # fmt: skip
    assert info.method == "parallel tempering"
    assert info.acceptance == pytest.approx(info.exchange_acceptance.mean(), abs=0.1)


def test_slow_mixing_is_said(monkeypatch):
    monkeypatch.setattr("skident.datasets._pilot._PILOT_NS", 1e6)
    with pytest.warns(ConvergenceWarning, match="mix slowly") as record:
        make_spin_glass(1, sherrington_kirkpatrick(100), temperature=0.2)
    assert record[0].filename == __file__


def test_too_large_a_glass_is_refused(monkeypatch):
    monkeypatch.setattr("skident.datasets._spin_glass._MOST_BYTES", 10_000)
    with pytest.raises(ValueError, match="64 sites need 32 temperatures"):
        make_spin_glass(1, sherrington_kirkpatrick(64), temperature=0.2)
    make_spin_glass(1, sherrington_kirkpatrick(64), temperature=5.0)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"couplings": [1.0, 2.0]}, r"shape \(n_sites, n_sites\), got \(2,\)"),
        ({"couplings": np.ones((2, 3))}, r"got \(2, 3\)"),
        ({"couplings": np.ones((0, 0))}, r"got \(0, 0\)"),
        ({"couplings": [[0, 1], [2, 0]]}, "1.0 in row 0, column 1 and 2.0 in row 1"),
        ({"couplings": [[0, 1], [0, 0]]}, "1.0 in row 0, column 1 and 0.0 in row 1"),
        ({"couplings": [[0, 1], [1, 3]]}, "diagonal .* got 3.0 in row 1, column 1"),
        ({"couplings": [[0, np.nan], [np.nan, 0]]}, "finite, got nan in row 0"),
        ({"couplings": [[0, np.inf], [np.inf, 0]]}, "finite, got inf in row 0"),
        ({"couplings": [[0, 1e200], [1e200, 0]]}, "at most 1e[+]100 in size"),
        ({"couplings": [[0, 1j], [-1j, 0]]}, "real numbers, got type complex128"),
        ({"couplings": [["a", "b"], ["b", "a"]]}, "real numbers"),
        ({"couplings": 3}, "'couplings' parameter"),
        ({"field": [1.0, 2.0]}, r"field must be a number or an array of shape \(9,\)"),
        ({"field": [0.0] * 8 + [np.nan]}, "field must be finite .* got nan at site 8"),
        ({"field": np.inf}, "field must be finite .* got inf at site 0"),
        ({"field": "up"}, "'field' parameter"),
        ({"temperature": 0}, "'temperature' parameter"),
        ({"draws_per_chain": 0}, "'draws_per_chain' parameter"),
        ({"spacing": 0}, "'spacing' parameter"),
    ],
)  # fmt: skip
def test_bad_input_is_named(changes, message):
    arguments = {"couplings": np.zeros((9, 9)), "temperature": 1.0, **changes}
    with pytest.raises(ValueError, match=message):
        make_spin_glass(3, **arguments)


@pytest.mark.parametrize("unit", [1e-310, 1e-300, 1e90])
def test_couplings_of_any_size(unit):
    couplings = np.diag(np.full(5, unit), 1)
    couplings += couplings.T
    X, _ = make_spin_glass(20, couplings, temperature=1.0, random_state=0)
    if unit > 1:
        assert (X == X[:, :1]).all()
