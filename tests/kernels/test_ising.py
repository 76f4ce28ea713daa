"""Ising kernels against their Python twins, and single updates against enumeration."""

import itertools
import math

import numpy as np
import pytest

from skident._kernels import clusters, gibbs, ising
from skident._kernels.streams import seed_stream

KEY = np.uint64(99)
COUPLING, FIELD, BETA = -0.8, 0.3, 0.6

# A triangle with a tail: frustrated for a negative coupling.
BONDS = np.array([[0, 1], [0, 2], [1, 2], [2, 3]], np.int32)
NEIGHBOURS = np.array(
    [[1, 2, 4], [0, 2, 4], [0, 1, 3], [2, 4, 4]], np.int32
)  # 4 is no neighbour
STAGGERING = np.array([1, -1, 1, -1], np.int8)
STATES = np.array(list(itertools.product((-1, 1), repeat=4)), np.int8)


def started(index=0):
    state = np.empty(4, np.uint64)
    seed_stream(KEY, index, state)
    return state


def chances():
    total = np.arange(-3, 4)
    return 1 / (1 + np.exp(-2 * BETA * (COUPLING * total + FIELD)))


def energies():
    products = STATES[:, BONDS[:, 0]] * STATES[:, BONDS[:, 1]]
    return -COUPLING * products.sum(axis=1) - FIELD * STATES.sum(axis=1)


def run_heat_bath(function, n_sweeps=5):
    rows, totals = np.empty((6, 4), np.int8), np.empty((6, 2))
    trace = np.empty((6, n_sweeps, 2))
    function(
        KEY, 3, NEIGHBOURS, chances(), BONDS, STAGGERING, COUPLING, FIELD, n_sweeps,
        np.int8(0), np.int8(1), rows, totals, trace,
    )  # fmt: skip
    return rows, totals, trace


def run_clusters(function, n_sweeps=5, field=FIELD, coupling=COUPLING):
    rows, totals = np.empty((6, 4), np.int8), np.empty((6, 2))
    trace = np.empty((6, n_sweeps, 2))
    activation = 1 - math.exp(-2 * BETA * abs(coupling))
    function(
        KEY, 3, BONDS, activation, STAGGERING, coupling, 2 * BETA * field, field,
        n_sweeps, np.int8(0), np.int8(1), rows, totals, trace,
    )  # fmt: skip
    return rows, totals, trace


@pytest.mark.parametrize(
    "run, function",
    [
        (run_heat_bath, gibbs.heat_bath_chains),
        (run_clusters, clusters.swendsen_wang_chains),
    ],
)
def test_chains_agree_with_their_twins(run, function):
    for ours, twin in zip(run(function), run(function.py_func), strict=True):
        np.testing.assert_array_equal(ours, twin)


def test_chains_of_a_ferromagnet_without_field_agree_with_their_twin():
    chains = clusters.swendsen_wang_chains
    options = {"field": 0.0, "coupling": 1.0}
    for ours, twin in zip(
        run_clusters(chains, **options),
        run_clusters(chains.py_func, **options),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, twin)


def test_parts_agree_with_their_twins():
    random = np.random.default_rng(0)
    spins = random.choice(np.array([-1, 1], np.int8), 4)
    words = random.integers(0, 2**32, 4, dtype=np.uint32)
    for push in (0.0, 0.7):
        results = []
        for pick in (lambda f: f, lambda f: f.py_func):
            state, s = started(), spins.copy()
            active, parent = np.empty(4, np.int32), np.empty(4, np.int32)
            turned, totals, row = np.empty(4, np.int32), np.empty(2), np.empty(4)
            fresh, bath = np.empty(70, np.int8), np.append(spins, np.int8(0))
            count = pick(clusters.activate_bonds)(BONDS, -1, 2**31, words, s, active)
            pick(clusters.join_clusters)(BONDS, active, count, parent)
            pick(clusters.turn_clusters)(parent, push, state, s, turned)
            pick(gibbs.heat_bath_sweep)(NEIGHBOURS, chances(), state, bath)
            pick(ising.random_spins)(state, fresh)
            pick(ising.measure)(s, BONDS, STAGGERING, COUPLING, FIELD, totals)
            pick(ising.write_row)(s, np.int8(0), np.int8(1), row)
            results.append((count, active[:count], parent, s, bath, fresh, totals, row))
        for ours, twin in zip(*results, strict=True):
            np.testing.assert_array_equal(ours, twin)


def test_clusters_are_the_connected_components():
    random = np.random.default_rng(1)
    for _ in range(50):
        bonds = random.integers(0, 30, (25, 2)).astype(np.int32)
        active, parent = np.arange(25, dtype=np.int32), np.empty(30, np.int32)
        count = int(random.integers(0, 26))
        clusters.join_clusters(bonds, active, count, parent)
        label = np.arange(30)
        for _ in range(30):
            for i, j in bonds[:count]:
                label[[i, j]] = label[[i, j]].min()
        np.testing.assert_array_equal(parent, label)


def stationary_after(update, n=300_000):
    """Share of each state after one update from the Boltzmann distribution."""
    p = np.exp(-BETA * energies())
    p /= p.sum()
    counts = np.random.default_rng(0).multinomial(n, p)
    shares = np.zeros(16)
    state = started(7)
    for k in range(16):
        for _ in range(counts[k] // 30):
            shares[update(STATES[k].copy(), state)] += 1
    return p, shares / shares.sum(), shares.sum()


def number(spins):
    return int((spins > 0) @ np.array([8, 4, 2, 1]))


def heat_bath_update(spins, state):
    bath = np.append(spins, np.int8(0))
    gibbs.heat_bath_sweep(NEIGHBOURS, chances(), state, bath)
    return number(bath[:4])


def cluster_update(spins, state):
    activation = 1 - math.exp(-2 * BETA * abs(COUPLING))
    words = np.frombuffer(state.tobytes(), np.uint32)[:4].copy()
    ising.random_spins(state, np.empty(128, np.int8))
    active, parent = np.empty(4, np.int32), np.empty(4, np.int32)
    limit = int(activation * 2**32)
    count = clusters.activate_bonds(BONDS, -1, limit, words, spins, active)
    clusters.join_clusters(BONDS, active, count, parent)
    clusters.turn_clusters(
        parent, 2 * BETA * FIELD, state, spins, np.empty(4, np.int32)
    )
    return number(spins)


@pytest.mark.parametrize("update", [heat_bath_update, cluster_update])
def test_one_update_leaves_the_distribution_alone(update):
    p, shares, n = stationary_after(update)
    assert (abs(shares - p) < 5.7 * np.sqrt(p * (1 - p) / n) + 1e-3).all()


def test_heat_bath_at_infinite_temperature_forgets_in_one_sweep():
    bath = np.ones(5, np.int8)
    bath[4] = 0
    state, seen = started(5), np.zeros(16)
    for _ in range(16_000):
        before = number(bath[:4])
        gibbs.heat_bath_sweep(NEIGHBOURS, np.full(7, 0.5), state, bath)
        seen[before ^ number(bath[:4])] += 1
    assert (abs(seen - 1000) < 5.7 * np.sqrt(1000)).all()
