"""Ising kernels against Python twins, and single updates against enumeration."""

import itertools
import math

import numpy as np
import pytest

from skident._kernels import clusters, gibbs, ising, wolff
from skident._kernels.streams import next_uint64, next_uniform, seed_stream

KEY = np.uint64(99)
COUPLING, FIELD, BETA = -0.8, 0.3, 0.6

# A row of four in which the first is bonded to the third too: a triangle with a tail,
# frustrated for a negative coupling.
SIDES, WRAPS = (1, 4, 4), np.array([[0, 2]], np.int32)
BONDS = np.array([[0, 1], [0, 2], [1, 2], [2, 3]], np.int32)
NEIGHBOURS = np.array(
    [[1, 2, 4, 4], [0, 2, 4, 4], [0, 1, 3, 4], [2, 4, 4, 4]], np.int32
)  # 4 is no neighbour
STAGGERING = np.array([1, -1, 1, -1], np.int8)
STATES = np.array(list(itertools.product((-1, 1), repeat=4)), np.int8)

# Rows of 3 in planes of 6, two planes, closed in each direction.
BLOCK_SIDES, BLOCK = (1, 3, 6), np.arange(12, dtype=np.int32).reshape(2, 2, 3)
BLOCK_WRAPS = np.concatenate(
    [
        np.stack([BLOCK.take(-1, axis).ravel(), BLOCK.take(0, axis).ravel()], axis=1)
        for axis in range(3)
    ]
)


def started(index=0):
    state = np.empty(4, np.uint64)
    seed_stream(KEY, index, state)
    return state


def activation(coupling, beta=BETA):
    return -math.expm1(-2 * beta * abs(coupling))


def limits(beta=BETA, coupling=COUPLING, field=FIELD):
    total = np.arange(-4, 5)
    chances = 1 / (1 + np.exp(-2 * beta * (coupling * total + field)))
    return np.ceil(chances * 2.0**53).astype(np.int64)


def energies():
    products = STATES[:, BONDS[:, 0]] * STATES[:, BONDS[:, 1]]
    return -COUPLING * products.sum(axis=1) - FIELD * STATES.sum(axis=1)


def started_chains(n_chains, n_sites):
    states = np.empty((n_chains, 4), np.uint64)
    spins = np.empty((n_chains, n_sites), np.int8)
    ordered = np.ones(n_sites, np.int8)
    ising.start_ising(KEY, 3, False, ordered, 0, states, spins)
    return states, spins


# Twins: the same random numbers, used by plain rules on sets and dictionaries.


def twin_bonds(sides, wraps, n_sites):
    """Yield (site, bonded site, position of its random byte), in that order."""
    _, width, plane = sides
    for i in range(n_sites):
        if i % width > 0:
            yield i, i - 1, i
    for i in range(n_sites):
        if i % plane >= width:
            yield i, i - width, n_sites + i
    end = 2 * n_sites
    if plane < n_sites:
        for i in range(plane, n_sites):
            yield i, i - plane, end + i
        end += n_sites
    for w, (i, j) in enumerate(wraps):
        yield i, j, end + w


def twin_parts(n_sites, bonds):
    """The connected parts, as a list of sets."""
    parts = [{i} for i in range(n_sites)]
    for i, j in bonds:
        a = next(p for p in parts if i in p)
        b = next(p for p in parts if j in p)
        if a is not b:
            parts.remove(b)
            a |= b
    return parts


def twin_clusters(sides, wraps, coupling, p, push, state, spins):
    """Make one Swendsen-Wang update; return the number of undecided bonds."""
    n_sites = len(spins)
    n_bytes = n_sites * (3 if sides[2] < n_sites else 2) + len(wraps)
    words = [next_uint64(state) for _ in range(-(-n_bytes // 8))]
    draws = np.array(words, np.uint64).view(np.uint8)
    active, undecided, limit = [], 0, round(p * 2**32)
    for i, j, at in twin_bonds(sides, wraps, n_sites):
        if spins[i] * spins[j] * coupling > 0:
            low, draw = 0, int(draws[at])
            if draw == min(limit >> 24, 255):
                undecided += 1
                low = int(next_uint64(state) >> np.uint64(40))
            if (draw << 24) + low < limit:
                active.append((i, j, at))
    linked = {i for i, _, at in active if at < 2 * n_sites}
    fresh = [i for i in range(n_sites) if i not in linked]
    parts = twin_parts(n_sites, [(i, j) for i, j, _ in active])
    parts.sort(key=lambda part: min(k for k, i in enumerate(fresh) if i in part))
    if push == 0:
        words = [next_uint64(state) for _ in range(-(-len(fresh) // 8))]
        draws = np.array(words, np.uint64).view(np.uint8)
    for part in parts:
        members = list(part)
        if push == 0:
            keep = draws[min(k for k, i in enumerate(fresh) if i in part)] % 2 == 0
        else:
            moment = int(spins[members].sum())
            keep = next_uniform(state) < 1 / (1 + math.exp(-push * moment))
        if not keep:
            spins[members] *= -1
    return undecided


def twin_wolff(n_clusters, neighbours, coupling, p, push, state, spins):
    """Make one sweep of Wolff's updates; return how many turned, and were grown."""
    n_clusters += int(next_uint64(state) >> np.uint64(63))
    turned = 0
    for _ in range(n_clusters):
        budget = -math.log(1 - next_uniform(state)) if push else 0.0
        cluster = [int(next_uniform(state) * len(spins))]
        for done, i in enumerate(cluster):
            if coupling > 0 and push * spins[cluster[: done + 1]].sum() > budget:
                break
            for d, j in enumerate(neighbours[i]):
                if d % 2 == 0:
                    halves = divmod(int(next_uint64(state)), 2**32)
                taken = halves[1 - d % 2] < round(p * 2**32)
                if j < len(spins) and j not in cluster and taken:
                    if spins[i] * spins[j] * coupling > 0:
                        cluster.append(int(j))
        if push * spins[cluster].sum() <= budget:
            turned += 1
            spins[cluster] *= -1
    return turned, n_clusters


@pytest.mark.parametrize("coupling, field", [(-0.8, 0.3), (0.8, 0.0), (0.4, -0.2)])
@pytest.mark.parametrize(
    "sides, wraps",
    [
        (SIDES, WRAPS),
        ((1, 3, 12), WRAPS),
        ((1, 1, 4), WRAPS),
        (BLOCK_SIDES, BLOCK_WRAPS),
    ],
)
def test_clusters_agree_with_their_twin(sides, wraps, coupling, field):
    n_sites = 4 if 4 in sides else 12
    states, spins = started_chains(20, n_sites)
    p, push = activation(coupling), 2 * BETA * field
    twin_states, twin_spins = states.copy(), spins.copy()
    scratch = clusters.cluster_scratch(n_sites, sides, len(wraps))
    model = sides, wraps, coupling, p, push, scratch
    clusters.advance_clusters(30, *model, states, spins)
    undecided = 0
    for state, s in zip(twin_states, twin_spins, strict=True):
        for _ in range(30):
            undecided += twin_clusters(sides, wraps, coupling, p, push, state, s)
    np.testing.assert_array_equal(spins, twin_spins)
    np.testing.assert_array_equal(states, twin_states)
    assert undecided > 0


@pytest.mark.parametrize("coupling, field", [(-0.8, 0.3), (0.8, 0.0), (0.4, -0.2)])
def test_wolff_agrees_with_its_twin(coupling, field):
    states, spins = started_chains(20, 4)
    model = coupling, activation(coupling), 2 * BETA * field
    twin_states, twin_spins = states.copy(), spins.copy()
    tally, twin_tally = np.zeros((2, 20, 2), np.int64)
    wolff.advance_wolff(7, 3, NEIGHBOURS, *model, states, spins, tally)
    for k in range(20):
        for _ in range(7):
            twin_tally[k] += twin_wolff(
                3, NEIGHBOURS, *model, twin_states[k], twin_spins[k]
            )
    np.testing.assert_array_equal(spins, twin_spins)
    np.testing.assert_array_equal(states, twin_states)
    np.testing.assert_array_equal(tally, twin_tally)
    assert (tally[:, 0] < tally[:, 1]).any() == (field != 0)


def test_heat_bath_agrees_with_its_twin():
    states, spins = started_chains(10, 4)
    twin_states, twin_spins = states.copy(), spins.copy()
    gibbs.advance_heat_bath(5, NEIGHBOURS, limits(), states, spins)
    for state, s in zip(twin_states, twin_spins, strict=True):
        for _ in range(5):
            for i in range(4):
                total = sum(int(s[j]) for j in NEIGHBOURS[i] if j < 4)
                logit = 2 * BETA * (COUPLING * total + FIELD)
                s[i] = 1 if next_uniform(state) < 1 / (1 + math.exp(-logit)) else -1
    np.testing.assert_array_equal(spins, twin_spins)
    np.testing.assert_array_equal(states, twin_states)


@pytest.mark.parametrize(
    "sides, wraps", [(SIDES, WRAPS), ((1, 1, 2), WRAPS), (BLOCK_SIDES, BLOCK_WRAPS)]
)
def test_energy_and_order_by_their_definition(sides, wraps):
    n_sites = 12 if sides is BLOCK_SIDES else 4
    _, spins = started_chains(9, n_sites)
    signs = np.resize(np.array([1, -1], np.int8), n_sites)
    totals = np.empty((9, 2))
    ising.measure_ising(sides, wraps, signs, COUPLING, FIELD, spins, totals)
    for s, (energy, order) in zip(spins.astype(float), totals, strict=True):
        aligned = sum(s[i] * s[j] for i, j, _ in twin_bonds(sides, wraps, n_sites))
        assert energy == pytest.approx(-COUPLING * aligned - FIELD * s.sum())
        assert order == pytest.approx(s @ signs / n_sites)


def test_starts():
    states, spins = np.empty((200, 4), np.uint64), np.empty((200, 70), np.int8)
    ordered = np.resize(np.array([1, -1, -1], np.int8), 70)
    ising.start_ising(KEY, 5, True, ordered, 0, states, spins)
    signs = spins @ ordered.astype(int) // 70
    assert set(signs) == {-1, 1}
    assert abs(signs.sum()) < 5.4 * np.sqrt(200)
    ising.start_ising(KEY, 5, True, ordered, -1, states, spins)
    assert (spins == -ordered).all()
    ising.start_ising(KEY, 5, False, ordered, -1, states, spins)
    assert (abs(spins.sum(axis=0)) < 5.4 * np.sqrt(200) + 20).all()
    one = started(5)
    ising.random_spins(one, row := np.empty(70, np.int8))
    np.testing.assert_array_equal(row, spins[0])
    np.testing.assert_array_equal(one, states[0])


def test_bonds_are_active_with_their_probability():
    draws = np.append(np.zeros(8, np.uint8), np.arange(256, dtype=np.uint8))
    equal, opposite = np.ones(258, np.int8), np.resize(np.array([1, 1, -1, -1]), 258)
    for spins, unlike, satisfied in (
        (equal, 0, 1),
        (opposite, 0, 0),
        (opposite, -2, 1),
    ):
        active = np.zeros(264, np.uint8)
        model = spins.astype(np.int8), 2, 6, np.int8(unlike), np.uint8(150)
        clusters.mark_bonds(*model, draws, active)
        assert (active[:8] == 0).all()
        expected = (draws < 150) + 128 * (draws == 150)
        np.testing.assert_array_equal(active[8:], satisfied * expected[8:])
    state = started()
    for rest, expected in ((0, 0), (2**24, 4096), (2**22, 1024)):
        bonds = np.full(512, 0x8080808080808080, np.uint64)
        active = bonds.view(np.uint8)
        clusters.decide_bonds(rest, state, bonds, active)
        assert set(active) <= {0, 1}
        assert abs(int(active.sum()) - expected) <= 5.4 * np.sqrt(768) * (rest == 2**22)


@pytest.mark.parametrize("sides", [(1, 30, 30), (1, 6, 30), (1, 5, 15), (1, 1, 30)])
def test_clusters_are_the_connected_components(sides):
    random = np.random.default_rng(1)
    width = sides[1]
    for share in np.linspace(0, 1, 50):
        wraps = random.integers(0, 30, (3, 2)).astype(np.int32)
        bonds = list(twin_bonds(sides, wraps, 30))
        chosen = [bond for bond in bonds if random.random() < share]
        active = np.zeros(93, np.uint8)
        active[[at for _, _, at in chosen]] = 1
        links, labels = np.empty(30, np.uint8), np.empty(width + 30, np.uint32)
        pairs, parents = np.empty((2, 94), np.uint32), np.empty(30, np.uint32)
        clusters.encode_links(active, width, links)
        n_labels, count = clusters.label_sites(links, width, labels, *pairs)
        assert count <= 30
        count = clusters.more_pairs(30, sides, wraps, labels, active, count, *pairs)
        clusters.join_labels(*pairs, count, int(n_labels), parents)
        for r in range(int(n_labels)):
            assert parents[r] <= r
            parents[r] = parents[parents[r]]
        roots = parents[labels[width:]]
        parts = twin_parts(30, [(i, j) for i, j, _ in chosen])
        assert len(set(roots)) == len(parts)
        assert all(len(set(roots[list(part)])) == 1 for part in parts)


def number(spins):
    return (spins > 0) @ np.array([8, 4, 2, 1])


def heat_bath_update(states, spins, beta=BETA):
    gibbs.advance_heat_bath(1, NEIGHBOURS, limits(beta), states, spins)


def cluster_update(states, spins, beta=BETA):
    p, push = activation(COUPLING, beta), 2 * beta * FIELD
    scratch = clusters.cluster_scratch(4, SIDES, 1)
    model = SIDES, WRAPS, COUPLING, p, push, scratch
    clusters.advance_clusters(1, *model, states, spins)


def wolff_update(states, spins, beta=BETA):
    p, push = activation(COUPLING, beta), 2 * beta * FIELD
    tally = np.zeros((len(spins), 2), np.int64)
    wolff.advance_wolff(1, 1, NEIGHBOURS, COUPLING, p, push, states, spins, tally)


UPDATES = [heat_bath_update, cluster_update, wolff_update]


def flows(update, beta, n=200_000):
    """Counts of (state, next state) of a chain in equilibrium."""
    p = np.exp(-beta * energies())
    before = np.random.default_rng(0).choice(16, n, p=p / p.sum())
    states, _ = started_chains(n, 4)
    spins = STATES[before]
    update(states, spins, beta)
    return p / p.sum(), np.histogram2d(before, number(spins), bins=np.arange(17))[0]


@pytest.mark.parametrize("update", UPDATES)
def test_one_update_leaves_the_distribution_alone(update):
    p, counts = flows(update, BETA)
    n = counts.sum()
    assert (abs(counts.sum(axis=0) - n * p) < 5.7 * np.sqrt(n * p * (1 - p)) + 20).all()


@pytest.mark.parametrize(
    "update, beta",
    [(cluster_update, BETA), (wolff_update, BETA), *((u, 0.0) for u in UPDATES)],
)
def test_detailed_balance(update, beta):
    """The heat bath has it only where the order of the sites does not matter."""
    _, counts = flows(update, beta)
    both = counts + counts.T
    assert (abs(counts - counts.T) < 6.2 * np.sqrt(both) + 6).all()


def test_the_order_of_the_sites_would_be_seen():
    _, counts = flows(heat_bath_update, BETA)
    both = counts + counts.T
    assert (abs(counts - counts.T) > 6.2 * np.sqrt(both) + 6).any()


@pytest.mark.parametrize("update", [heat_bath_update, cluster_update])
def test_one_sweep_forgets_at_infinite_temperature(update):
    _, counts = flows(update, 0.0)
    assert (abs(counts - counts.sum() / 256) < 6.2 * np.sqrt(counts.sum() / 256)).all()


def test_wolff_forgets_the_parity_at_infinite_temperature():
    _, counts = flows(wolff_update, 0.0)
    parity = STATES.prod(axis=1)
    same = counts[parity[:, None] == parity].sum()
    assert abs(same - counts.sum() / 2) < 5.4 * np.sqrt(counts.sum()) / 2
