import decimal
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from skident.datasets._lattice import lattice
from skident.datasets._multispin import (
    MultispinChains,
    flip_probabilities,
    flip_table,
)

# Shape, periodic, J, h, T.
SMALL = [
    ((3, 3), True, 1.0, 0.0, 2.3),
    ((3, 3), True, -1.0, 0.0, 1.5),
    ((2, 3), False, 1.0, 0.4, 1.7),
    ((5,), True, 1.0, 0.0, 1.0),
    ((5,), False, -1.0, 0.3, 1.0),
    ((2, 2, 2), True, 1.0, 0.0, 4.0),
    ((2, 2, 2), False, -1.0, 0.5, 2.0),
    ((2, 2), True, 1.0, 1e-6, 3.0),
    ((3,), True, 0.0, 0.7, 1.0),
    ((1,), True, 1.0, -0.5, 2.0),
]
LEVEL = 1e-7  # as in conftest.py
SWEEPS = 400  # at least 40 times the slowest decay of these models


def chains_of(shape, periodic, coupling, field, temperature):
    graph = lattice(shape, periodic, coupling)
    return MultispinChains(graph, 1 / temperature, coupling, field)


def all_states(n):
    return np.array(list(itertools.product((-1, 1), repeat=n)), dtype=float)


def energies_of(rows, graph, coupling, field):
    rows = np.asarray(rows, dtype=float)
    aligned = (rows[:, graph.bonds[:, 0]] * rows[:, graph.bonds[:, 1]]).sum(axis=1)
    return -coupling * aligned - field * rows.sum(axis=1)


def sweep_matrix(model, p):
    """Transition matrix of a sweep over all states, for given flip probabilities."""
    graph, coupling = lattice(*model[:3]), model[2]
    n_sites = len(graph.staggering)
    states = all_states(n_sites)
    padded = np.hstack([states, np.zeros((len(states), 1))])
    matrix = np.eye(len(states))
    for i in range(n_sites):
        others = graph.neighbours[i]
        missing = (others == n_sites).sum()
        opposite = states[:, [i]] * padded[:, others] == (1 if coupling < 0 else -1)
        unsatisfied = opposite.sum(axis=1) + (missing if coupling < 0 else 0)
        chance = p[missing, (states[:, i] > 0).astype(int), unsatisfied]
        step = np.diag(1 - chance)
        flipped = np.arange(len(states)) ^ (1 << (n_sites - 1 - i))
        step[np.arange(len(states)), flipped] = chance
        matrix = matrix @ step
    return matrix


def second_eigenvalue(matrix):
    return np.sort(np.abs(np.linalg.eigvals(matrix)))[-2]


def probabilities_of(model):
    shape, _, coupling, field, temperature = model
    n = 2 * len(shape)
    return flip_probabilities(1 / temperature, coupling, field, n, np.arange(n + 1))


@pytest.mark.parametrize("model", SMALL)
def test_a_sweep_keeps_the_boltzmann_distribution_and_no_other(model):
    graph = lattice(*model[:3])
    matrix = sweep_matrix(model, probabilities_of(model))
    states = all_states(len(graph.staggering))
    energies = energies_of(states, graph, *model[2:4])
    p = np.exp(-(energies - energies.min()) / model[4])
    p /= p.sum()
    assert np.abs(p @ matrix - p).max() < 1e-15
    assert second_eigenvalue(matrix) < 0.92 or model[0] == (2, 2, 2)
    assert second_eigenvalue(matrix) ** SWEEPS < 1e-7


@pytest.mark.parametrize("model", [SMALL[0], SMALL[3]])
def test_certain_moves_that_cost_nothing_would_not_be_ergodic(model):
    shape, *_, temperature = model
    x = 2 / temperature * (2 * len(shape) - 2 * np.arange(7.0))
    p = np.tile(np.minimum(1, np.exp(-x)), (5, 2, 1))
    assert second_eigenvalue(sweep_matrix(model, p)) > 1 - 1e-12


def exact_chance(x):
    """Probability at a double energy change x, to 50 digits."""
    with decimal.localcontext(prec=50):
        return Fraction(min(decimal.Decimal(1), (-decimal.Decimal(x)).exp()))


@pytest.mark.parametrize("temperature", [0.05, 0.7, 1.0, 2.269, 3.1, 5.0])
@pytest.mark.parametrize(("n_neighbours", "field"), [(2, 0.0), (4, 0.0), (6, 0.3)])
def test_every_acceptance_is_exact_to_fifty_bits(temperature, n_neighbours, field):
    beta = 1 / temperature
    p = flip_probabilities(beta, 1.0, field, n_neighbours, [0, 1])
    table = flip_table(p, n_neighbours)
    half = n_neighbours // 2
    for kind, spin, unsatisfied in np.ndindex(p.shape):
        if unsatisfied > n_neighbours - kind:
            continue
        sign = 2 * spin - 1
        x = 2 * beta * (n_neighbours - kind - 2 * unsatisfied + field * sign)
        expected = exact_chance(x)
        if abs(x) < 0.5:
            expected *= Fraction(15, 16)
        # What the kernel does, in exact numbers.
        t = Fraction(int(table.thresholds[kind, spin, unsatisfied]), 2**table.n_bits)
        kept = Fraction(float(table.kept[kind, spin, unsatisfied]))
        realised = t + (1 - t) * Fraction(table.rate) * kept
        assert abs(realised - expected) < 2.0**-50
        if not table.full and unsatisfied >= half:
            assert realised in (1, Fraction(15, 16))


def test_a_number_of_bits_is_below_a_threshold_as_often_as_it_says():
    # The rule of the kernel's twin (see its test), for every outcome of the bits.
    table = flip_table(probabilities_of(SMALL[0]), 4)
    numbers = np.arange(2**table.n_bits)
    for limit in np.unique(table.thresholds):
        start = min(limit, 2**table.n_bits - 1)
        assert ((numbers ^ start) < limit).sum() == limit


def test_cold_chains_do_without_random_bits_but_for_the_neutral_class():
    p = flip_probabilities(20.0, 1.0, 0.0, 4, [0])
    table = flip_table(p, 4)
    assert table.n_bits == 4
    assert table.rate == p[0, 0, 1] == np.exp(-80.0)


def test_probabilities_at_extremes():
    p = flip_probabilities(1e100, 1.0, 0.0, 4, [0])
    assert p[0, 0].tolist() == [0, 0, 15 / 16, 1, 1, 1, 1]
    p = flip_probabilities(1e100, 1e100, -1e100, 6, [0, 1])
    assert set(p.ravel().tolist()) == {0.0, 15 / 16, 1.0}
    assert (flip_probabilities(0.0, 1e100, 1e100, 6, [0, 3]) == 0.5).all()
    table = flip_table(np.full((1, 2, 7), 0.5), 4)
    assert (table.n_bits, table.rate) == (1, 0.0)


def draw(model, n_chains, key, n_sweeps=SWEEPS, cold=False, first=0):
    chains = chains_of(*model)
    state = chains.start(np.uint64(key), first, n_chains, cold)
    chains.advance(state, n_sweeps)
    return chains, state


def check_boltzmann(model, key, assert_boltzmann):
    chains, state = draw(model, 20_000, key)
    rows, order, energies = chains.read(state)
    graph, coupling, field, temperature = chains.graph, *model[2:]
    expected = energies_of(rows, graph, coupling, field)
    np.testing.assert_allclose(energies, expected, atol=1e-12)
    np.testing.assert_allclose(order, (rows * graph.staggering).mean(axis=1))
    assert_boltzmann(
        rows,
        lambda s: energies_of(s[None], graph, coupling, field)[0],
        temperature,
    )


@pytest.mark.parametrize("model", SMALL)
def test_states_follow_boltzmann(model, assert_boltzmann):
    check_boltzmann(model, 5, assert_boltzmann)


@pytest.mark.slow
@pytest.mark.parametrize("key", range(100, 120))
@pytest.mark.parametrize("model", SMALL)
def test_states_follow_boltzmann_for_every_key(model, key, assert_boltzmann):
    check_boltzmann(model, key, assert_boltzmann)


@pytest.mark.parametrize("shape", [(6,), (3, 2), (2, 2, 2)])
def test_one_sweep_at_infinite_temperature_forgets_the_start(shape, assert_boltzmann):
    model = (shape, True, 1.0, 0.0, np.inf)
    chains, state = draw(model, 20_000, 3, n_sweeps=1, cold=True)
    assert_boltzmann(chains.read(state)[0], lambda s: 0.0, 1.0)


@pytest.mark.parametrize("coupling", [1.0, -1.0])
def test_starts_are_symmetric(coupling, assert_boltzmann):
    model = ((2, 3), False, coupling, 0.0, 3.0)
    chains, state = draw(model, 20_000, 8, n_sweeps=0)
    assert_boltzmann(chains.read(state)[0], lambda s: 0.0, 1.0)
    chains, state = draw(model, 20_000, 8, n_sweeps=0, cold=True)
    _, order, energies = chains.read(state)
    assert (energies == -7).all()
    assert (np.abs(order) == 1).all()
    assert abs(order.sum()) < 6 * math.sqrt(20_000)


def test_in_a_field_a_cold_start_is_the_ground_state():
    chains, state = draw(((4, 4), True, 1.0, -0.5, 1.0), 70, 8, 0, cold=True)
    assert (chains.read(state)[0] == -1).all()
    chains, state = draw(((4, 4), True, -1.0, 9.0, 1.0), 70, 8, 0, cold=True)
    assert (chains.read(state)[0] == 1).all()


@pytest.mark.parametrize("model", SMALL[:5])
def test_chains_resume_bit_for_bit(model):
    chains, once = draw(model, 700, 9, n_sweeps=40)
    twice = chains.start(np.uint64(9), 0, 700, False)
    for n_sweeps in (1, 0, 20, 19):
        chains.advance(twice, n_sweeps)
    for a, b in zip(once, twice, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("model", SMALL[:5])
def test_a_chain_is_the_same_however_many_are_run(model):
    rows = chains_of(*model).read(draw(model, 1500, 4, 30)[1])[0]
    for first, n_chains in ((0, 1), (0, 70), (64, 600), (1344, 156)):
        chains, state = draw(model, n_chains, 4, 30, first=first)
        some, order, energies = chains.read(state)
        assert some.shape == (n_chains, chains.n_sites)
        assert order.shape == energies.shape == (n_chains,)
        assert (some == rows[first : first + n_chains]).all()


def test_chains_must_start_at_a_word():
    with pytest.raises(ValueError, match="multiple of 64, got 65"):
        draw(SMALL[0], 10, 1, first=65)


@pytest.mark.parametrize("n_chains", [64, 512, 1100])
def test_acceptance_is_the_share_of_spins_that_flip(n_chains):
    chains = chains_of(*SMALL[2])
    state = chains.start(np.uint64(2), 0, n_chains, False)
    assert chains.acceptance(state) == 1.0
    n_flips, n_words = 0, -(-n_chains // 64)
    for _ in range(10):
        before = state[1].copy()
        chains.advance(state, 1)
        changed = np.bitwise_count(before ^ state[1]).sum(axis=1)
        n_flips += changed.ravel()[:n_words].sum()
    assert chains.acceptance(state) == n_flips / (10 * 6 * 64 * n_words)


def test_observables_are_energy_and_symmetric_order():
    for model in SMALL[:5]:
        chains, state = draw(model, 100, 6)
        _, order, energies = chains.read(state)
        observed = chains.observe(state)
        assert (observed[:, 0] == energies).all()
        assert (observed[:, 1] == (abs(order) if model[3] == 0 else order)).all()


def test_chains_survive_pickling():
    chains, state = draw(SMALL[2], 100, 6)
    again = pickle.loads(pickle.dumps(chains))
    assert again.method == "multispin"
    assert (again.read(state)[0] == chains.read(state)[0]).all()
    again.advance(state, 1)


@pytest.mark.slow
def test_lanes_of_a_word_are_independent():
    model = ((8, 8), True, 1.0, 0.0, 2.269185)
    _, state = draw(model, 64 * 10_000, 12, n_sweeps=300)
    energies = chains_of(*model).observe(state)[:, 0].reshape(10_000, 64)
    r = np.corrcoef(energies.T)[np.triu_indices(64, 1)]
    # Under independence r has mean -1/n or less and variance 1/n, n = 10,000.
    error = 1 / math.sqrt(len(r) * 10_000)
    assert abs(r.mean()) < 6 * error
    statistic = 10_000 * (r**2).sum()
    assert LEVEL < chi2.sf(statistic, len(r)) < 1 - LEVEL
    # Nor do words that stand side by side know of each other.
    r = np.corrcoef(energies[:-1].ravel(), energies[1:].ravel())[0, 1]
    assert abs(r) < 6 / math.sqrt(640_000)
