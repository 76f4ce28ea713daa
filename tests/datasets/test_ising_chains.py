"""Chains of the Ising model by themselves, without the driver that plans them."""

import pickle

import numpy as np
import pytest

from skident.datasets._ising_chains import (
    HeatBathChains,
    SwendsenWangChains,
    WolffChains,
)
from skident.datasets._lattice import lattice
from skident.exact import ising

METHODS = [HeatBathChains, SwendsenWangChains, WolffChains]
KEY = np.uint64(12345)

# shape, temperature, field, coupling, periodic
MODELS = {
    "sheet": ((3, 3), 2.3, 0.0, 1.0, True),
    "open sheet in a field": ((2, 3), 2.0, 0.4, 1.0, False),
    "sheet in a field": ((3, 3), 2.5, -0.3, 1.0, True),
    "frustrated ring": ((5,), 1.0, 0.0, -1.0, True),
    "frustrated in a field": ((3, 3), 1.5, 0.5, -0.7, True),
    "double bonds": ((2, 2, 2), 4.0, 0.0, 1.0, True),
    "antiferromagnet in a field": ((2, 2, 2), 3.0, 1.0, -1.0, False),
    "block": ((2, 3, 2), 4.0, 0.2, 1.0, True),
    "sides of one": ((3, 1, 3), 2.0, 0.0, -1.0, False),
    "narrow": ((6, 1), 1.0, 0.2, 1.0, True),
    "no coupling": ((5,), 1.0, 0.3, 0.0, True),
    "one site": ((1,), 1.0, 0.3, 1.0, True),
    "infinite temperature": ((2, 3), np.inf, 1.0, 1.0, True),
}


def chains(method, shape, temperature, field=0.0, coupling=1.0, periodic=True):
    return method(lattice(shape, periodic, coupling), 1 / temperature, coupling, field)


def run(model, n_chains, n_sweeps, cold=False, key=KEY):
    state = model.start(key, 0, n_chains, cold)
    model.advance(state, n_sweeps)
    return state


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MODELS)
def test_every_state_has_its_probability(assert_boltzmann, spins, name, method):
    shape, temperature, field, coupling, periodic = MODELS[name]
    model = chains(method, *MODELS[name])
    X, y, energies = model.read(run(model, 10_000, 40))
    energy = spins.lattice_energy(shape, field, coupling, periodic)
    assert_boltzmann(X, energy, temperature)
    np.testing.assert_allclose(
        energies[:40], [energy(s) for s in X[:40].astype(float)], atol=1e-12
    )
    signs = lattice(shape, periodic, coupling).staggering
    np.testing.assert_allclose(y, X @ signs.astype(float) / X.shape[1], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["sheet", "frustrated in a field", "block"])
def test_every_state_for_many_seeds(assert_boltzmann, spins, name, method, seed):
    shape, temperature, field, coupling, periodic = MODELS[name]
    model = chains(method, *MODELS[name])
    X, *_ = model.read(run(model, 50_000, 60, key=np.uint64(seed)))
    energy = spins.lattice_energy(shape, field, coupling, periodic)
    assert_boltzmann(X, energy, temperature)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("field", [0.0, 0.1])
def test_a_run_can_be_cut_anywhere(method, field):
    model = pickle.loads(pickle.dumps(chains(method, (4, 3, 5), 4.0, field)))
    whole, parts = run(model, 5, 7), model.start(KEY, 0, 5, False)
    for n_sweeps in (1, 0, 4, 2):
        model.advance(parts, n_sweeps)
        model.observe(parts)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cold", [False, True])
def test_a_chain_does_not_depend_on_the_others(method, cold):
    model = chains(method, (6, 6), 2.3)
    some, others = run(model, 9, 3, cold), model.start(KEY, 4, 3, cold)
    model.advance(others, 3)
    for one, other in zip(some, others, strict=True):
        np.testing.assert_array_equal(one[4:7], other)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "shape, temperature, field, coupling",
    [
        ((12, 12), 2.6, 0.0, 1.0),
        ((12, 12), 2.6, 0.3, 1.0),
        ((12, 12), 2.6, 0.3, -1.0),
        ((5, 7, 6), 5.0, 0.0, -1.0),
    ],
)
def test_ordered_and_random_starts_meet(method, shape, temperature, field, coupling):
    model = chains(method, shape, temperature, field, coupling)
    hot, cold = (
        model.observe(run(model, 200, 150, start, np.uint64(start)))
        for start in (False, True)
    )
    error = np.hypot(hot.std(axis=0), cold.std(axis=0)) / np.sqrt(200)
    assert (abs(hot.mean(axis=0) - cold.mean(axis=0)) < 5.7 * error).all()


@pytest.mark.parametrize("method", METHODS)
def test_energy_of_a_sheet_at_the_critical_point(method):
    # Exact finite-size value of the 4 x 4 torus at T = 2.269: -1.56577 a site.
    model = chains(method, (4, 4), 2.269)
    energies = model.observe(run(model, 10_000, 60))[:, 0]
    error = energies.std() / np.sqrt(10_000) / 16
    assert abs(energies.mean() / 16 + 1.56577) < 5.7 * error + 5e-6


@pytest.mark.parametrize("method", [SwendsenWangChains, WolffChains])
def test_random_starts_settle(method):
    """Chains with a short autocorrelation time would else still be coarsening."""
    model = chains(method, (48, 48), 1.5)
    energies = model.observe(run(model, 200, 8))[:, 0] / 48**2
    error = energies.std() / np.sqrt(200)
    assert abs(energies.mean() - ising((48, 48), 1.5).energy) < 5.7 * error


@pytest.mark.parametrize("coupling", [1.0, -1.0])
def test_methods_agree_on_a_block(coupling):
    means, errors = [], []
    for method in METHODS:
        model = chains(method, (5, 4, 3), 4.0, 0.1, coupling, False)
        _, m, energies = model.read(run(model, 1000, 80))
        observed = np.stack([energies, m, m**2])
        means.append(observed.mean(axis=1))
        errors.append(observed.std(axis=1) / np.sqrt(1000))
    for mean, error in zip(means, errors, strict=True):
        assert (abs(mean - means[0]) < 5.7 * np.hypot(error, errors[0])).all()


@pytest.mark.parametrize(
    "coupling, field, expected",
    [(1.0, 0.0, 0), (-1.0, 0.0, 0), (1.0, -0.2, -1), (-1.0, 0.2, 0), (-1.0, -9.0, -1)],
)
def test_cold_starts_have_the_lowest_energy(spins, coupling, field, expected):
    """A uniform state has a sign; the others come as themselves and reversed."""
    model = chains(HeatBathChains, (4, 2), 1.0, field, coupling)
    rows, _, energies = model.read(model.start(KEY, 0, 200, True))
    energy = spins.lattice_energy((4, 2), field, coupling)
    lowest = min(energy(s) for s in spins.all_states(8))
    np.testing.assert_allclose(energies, lowest, atol=1e-12)
    if expected:
        assert (rows == expected).all()
    else:
        assert abs(rows[:, 0].sum()) < 5.4 * np.sqrt(200)
        assert len(np.unique(rows, axis=0)) == 2


def test_a_cold_antiferromagnet_of_odd_size_leans_to_the_field():
    model = chains(HeatBathChains, (3, 3), 1.0, 0.1, -1.0, False)
    assert (model.start(KEY, 0, 20, True)[1].sum(axis=1) == 1).all()
    model = chains(HeatBathChains, (3, 3), 1.0, -0.1, -1.0, False)
    assert (model.start(KEY, 0, 20, True)[1].sum(axis=1) == -1).all()


@pytest.mark.parametrize("method", METHODS)
def test_limits_of_temperature_and_field(method):
    for temperature, field in ((1e-100, 5.0), (1e-100, 1e100), (1.0, 1e100)):
        model = chains(method, (2, 3), temperature, field)
        state = run(model, 20, 60)
        assert (model.read(state)[0] == 1).all()
        assert np.isfinite(model.observe(state)).all()
    model = chains(method, (4, 4), 1e-100, 0.0, 1e100)
    state = run(model, 20, 60, cold=True)
    assert (abs(model.read(state)[1]) == 1).all()


@pytest.mark.parametrize("method", METHODS)
def test_what_is_observed(method):
    model = chains(method, (5, 5), 2.0)
    state = run(model, 50, 5)
    rows, order, energies = model.read(state)
    assert rows.dtype == np.int8
    assert not np.shares_memory(rows, state[1])
    np.testing.assert_array_equal(
        model.observe(state), np.stack([energies, abs(order)], axis=1)
    )
    assert (order < 0).any()
    model = chains(method, (5, 5), 2.0, -0.1)
    state = run(model, 50, 5)
    np.testing.assert_array_equal(model.observe(state)[:, 1], model.read(state)[1])


def test_acceptance_is_that_of_clusters_in_a_field():
    for method in (HeatBathChains, SwendsenWangChains):
        model = chains(method, (4, 4), 2.0, 0.1)
        assert model.acceptance(run(model, 3, 5)) == 1.0
    model = chains(WolffChains, (4, 4), 2.0)
    assert model.acceptance(model.start(KEY, 0, 3, True)) == 1.0
    assert model.acceptance(run(model, 3, 5)) == 1.0
    model = chains(WolffChains, (4, 4), 2.0, 0.1)
    state = run(model, 300, 50)
    # Free spins in a field h turn with the share 2 / (1 + exp(2 h / T)).
    assert 0.1 < model.acceptance(state) < 0.9
    model = chains(WolffChains, (50,), 2.0, 0.7, 0.0)
    state = run(model, 300, 50)
    expected, n = 2 / (1 + np.exp(0.7)), state[2][:, 1].sum()
    assert abs(model.acceptance(state) - expected) < 0.01 + 6 / np.sqrt(n)


@pytest.mark.parametrize(
    "shape, temperature, field, expected",
    [
        ((10, 10), np.inf, 0.0, 100),
        ((10, 10), 2.2, 0.0, 1),
        ((10, 10), 2.2, 1.1, 50),
        ((1, 30), 1.0, 0.0, 8),
        ((1,), 1.0, 0.0, 1),
        ((10, 10, 10), 4.5, 0.0, 1),
        ((10, 10, 10), 9.0, 0.0, 417),
    ],
)
def test_a_sweep_of_wolff_visits_about_every_site(shape, temperature, field, expected):
    model = chains(WolffChains, shape, temperature, field)
    assert model.n_clusters == expected
    tally = run(model, 1000, 10)[2]
    assert abs(tally[:, 1].mean() - 10 * (expected + 0.5)) < 5.4 * np.sqrt(2.5 / 1000)


@pytest.mark.parametrize("method", METHODS)
def test_names_and_sizes(method):
    model = chains(method, (4, 5), 2.0)
    assert model.method in ("heat-bath", "swendsen-wang", "wolff")
    assert model.n_sites == 20
    assert model.lanes == 1
    assert 20 < model.sweep_ns < 2000
