"""Parallel tempering kernels against Python twins, enumeration and exact sums."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from skident._kernels import glass
from skident._kernels.streams import next_uint64, seed_stream

KEY = np.uint64(42)


def started(index=0):
    state = np.empty(4, np.uint64)
    seed_stream(KEY, index, state)
    return state


def couplings(n_sites, density, seed=0):
    """Compressed rows of couplings that are multiples of 2**-20, and fields."""
    rng = np.random.default_rng(seed)
    matrix = np.triu(np.round(rng.normal(size=(n_sites, n_sites)) * 2**20) / 2**20, 1)
    matrix *= np.triu(rng.random((n_sites, n_sites)) < density, 1)
    matrix = matrix + matrix.T
    rows = sparse.csr_array(matrix)
    model = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
    return matrix, model, np.round(rng.normal(size=n_sites) * 2**20) / 2**20


def energy_of(matrix, external):
    return lambda s: -0.5 * s @ matrix @ s - external @ s


def run(model, external, calls, *, py=False, betas=(2.0, 1.0, 0.4), n_pairs=2, **kinds):
    """State after calls of ``advance_glass`` with so many sweeps each."""

    def pick(function):
        return function.py_func if py else function

    n_sites, betas = len(external), np.array(betas)
    shape = (n_pairs, 2, len(betas))
    states = np.empty((n_pairs, 4), np.uint64)
    spins, fields = np.empty((*shape, n_sites), np.int8), np.empty((*shape, n_sites))
    energies, slots = np.empty(shape), np.empty(shape, np.int64)
    marks = np.empty(shape, np.int8)
    accepted = np.zeros((n_pairs, len(betas) - 1), np.int64)
    clock = np.zeros(n_pairs, np.int64)
    state = (states, spins, fields, energies, slots, marks)
    cold = kinds.get("cold", False)
    pick(glass.start_glass)(KEY, 3, cold, *model, external, *state)
    for n_sweeps in calls:
        pick(glass.advance_glass)(
            n_sweeps, kinds.get("clusters", True), kinds.get("exchanges", True), betas,
            *model, external, glass.CHANCES, *state, accepted, clock,
        )  # fmt: skip
    overlaps = np.empty(n_pairs)
    pick(glass.overlaps_glass)(spins, slots, overlaps)
    return (*state, accepted, clock, overlaps)


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


KINDS = [{}, {"cold": True}, {"clusters": False}, {"exchanges": False}]


@pytest.mark.parametrize("kinds", KINDS, ids=str)
@pytest.mark.parametrize("n_sites, density", [(1, 1), (6, 0.5), (7, 1.0), (5, 0.0)])
def test_chains_agree_with_their_twin(n_sites, density, kinds):
    _, *model = couplings(n_sites, density)
    ours = run(*model, [4], **kinds)
    with np.errstate(over="ignore"):
        assert_same(ours, run(*model, [4], py=True, **kinds))


def test_parts_agree_with_their_twins():
    _, model, external = couplings(6, 0.5)
    results = []
    for pick in (lambda f: f, lambda f: f.py_func):
        spins = np.array([1, -1, 1, 1, -1, -1], np.int8)
        other = np.array([1, 1, -1, 1, 1, -1], np.int8)
        fields, other_fields = np.empty(6), np.empty(6)
        words = np.arange(1, 7, dtype=np.uint64) * np.uint64(0x2345678923456789)
        with np.errstate(over="ignore"):
            for s, h in ((spins, fields), (other, other_fields)):
                pick(glass.local_fields)(*model, external, s, h)
            size = pick(glass.swap_cluster)(
                2, *model, spins, fields, other, other_fields, np.empty(6, np.int32),
                np.zeros(6, bool),
            )  # fmt: skip
            pick(glass.heat_bath)(0.7, *model, glass.CHANCES, words, spins, fields)
            pick(glass.turn_spin)(3, *model, spins, fields)
            energy = pick(glass.glass_energy)(external, spins, fields)
            pick(glass.quench)(*model, other, other_fields)
            slots, accepted = np.arange(3), np.zeros(2, np.int64)
            betas, energies = np.array([2.0, 1.0, 0.5]), np.array([1.0, 0.5, 0.6])
            for parity in (0, 1):
                pick(glass.exchange)(
                    betas, parity, started(), energies, slots, accepted
                )
            stay = [pick(glass.stays)(w, 0.3, glass.CHANCES) for w in words]
        results.append(
            (size, spins, fields, other, other_fields, energy, slots, accepted, stay)
        )
    assert_same(*results)


@pytest.mark.parametrize("kinds", KINDS, ids=str)
def test_runs_can_be_cut_anywhere(kinds):
    _, *model = couplings(9, 0.4)
    assert_same(run(*model, [7], **kinds), run(*model, [1, 4, 2], **kinds))


def test_pairs_have_streams_of_their_own():
    _, *model = couplings(9, 0.4)
    many, few = run(*model, [5], n_pairs=5), run(*model, [5], n_pairs=2)
    assert_same([part[:2] for part in many], few)
    assert (many[1][0] != many[1][1]).any()


@pytest.mark.parametrize("density", [0.3, 1.0])
def test_fields_and_energies_never_drift(density):
    matrix, *model = couplings(20, density)
    _, spins, fields, energies, *_ = run(*model, [3000])
    s = spins.astype(float)
    np.testing.assert_array_equal(fields, s @ matrix + model[1])
    exact = -0.5 * ((s @ matrix) * s).sum(axis=-1) - s @ model[1]
    np.testing.assert_allclose(energies, exact, rtol=1e-12)


def test_probability_of_staying_is_exact():
    # The upper 53 bits of a word are the uniform number that 1 / (1 + e^-x) is for.
    rng = np.random.default_rng(0)
    logits = np.r_[rng.uniform(-45, 45, 3000), np.arange(-41, 41), rng.normal(size=500)]
    chances = 1 / (1 + np.exp(-logits.astype(np.longdouble)))
    for logit, chance in zip(logits, chances, strict=True):
        limit = int(chance * np.longdouble(2) ** 53)
        for number in (limit - 2, limit + 2, int(rng.integers(2**53))):
            word = np.uint64(min(max(number, 0), 2**53 - 1)) << np.uint64(11)
            uniform = min(max(number, 0), 2**53 - 1) / 2**53
            if abs(uniform - float(chance)) > 1.5 / 2**53:
                stay = glass.stays(word, logit, glass.CHANCES)
                assert stay == (uniform < chance), logit


def test_certain_spins():
    top, bottom = np.uint64(2**64 - 1), np.uint64(0)
    for logit in (1e3, 1e200, np.inf):
        assert glass.stays(top, logit, glass.CHANCES)
        assert not glass.stays(bottom, -logit, glass.CHANCES)


def swapped(site, model, pair, fields):
    """Copies of two replicas and their fields after a swap, and the cluster's size."""
    pair, fields, seen = pair.copy(), fields.copy(), np.zeros(pair.shape[1], bool)
    size = glass.swap_cluster(
        site, *model, pair[0], fields[0], pair[1], fields[1],
        np.empty(pair.shape[1], np.int32), seen,
    )  # fmt: skip
    assert not seen.any()
    return pair, fields, size


def test_cluster_swap_is_its_own_inverse_and_keeps_the_sum_of_energies():
    matrix, model, external = couplings(30, 0.08)
    energy, rng = energy_of(matrix, external), np.random.default_rng(1)
    sizes = []
    for _ in range(200):
        before = rng.choice(np.array([-1, 1], np.int8), (2, 30))
        fields, site = before.astype(float) @ matrix + external, int(rng.integers(30))
        after, new_fields, size = swapped(site, model, before, fields)
        assert (after != before).sum() == 2 * size
        assert (after[0] == before[1])[after[0] != before[0]].all()
        np.testing.assert_array_equal(
            new_fields, after.astype(float) @ matrix + external
        )
        sums = [sum(energy(s.astype(float)) for s in pair) for pair in (before, after)]
        assert sums[1] == pytest.approx(sums[0], abs=1e-12)
        np.testing.assert_array_equal(
            swapped(site, model, after, new_fields)[0], before
        )
        sizes.append(size)
    assert sizes.count(0) > 50
    # Connected through the couplings only.
    assert 1 < np.mean([size for size in sizes if size]) < 12


def test_quench_ends_where_no_single_spin_gains():
    _, *model = couplings(40, 0.2)
    _, spins, fields, energies, *_ = run(*model, [], cold=True)
    assert (spins * fields >= 0).all()
    hot = run(*model, [])[3]
    assert energies.mean() < hot.mean() - 10


def stationary(betas, clusters, n=60_000):
    """Counts of pairs of states, at two temperatures, after a sweep from equilibrium.

    Each is a state of three spins at each temperature and in each replica.
    """
    matrix, model, external = couplings(3, 1.0, seed=5)
    states = np.array(list(itertools.product((-1, 1), repeat=3)), np.int8)
    energies = np.array([energy_of(matrix, external)(s.astype(float)) for s in states])
    p = np.exp(-np.multiply.outer(betas, energies))
    p /= p.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    start = np.stack(
        [rng.choice(8, (n, 2), p=row) for row in p], axis=2
    )  # (n, 2 replicas, 2 temperatures)
    spins = states[start]
    fields = spins.astype(float) @ matrix + external
    rngs = np.empty((n, 4), np.uint64)
    for k in range(n):
        seed_stream(KEY, k, rngs[k])
    slots = np.tile(np.arange(2), (n, 2, 1))
    marks = np.ones((n, 2, 2), np.int8)
    accepted, clock = np.zeros((n, 1), np.int64), np.zeros(n, np.int64)
    glass.advance_glass(
        1, clusters, True, np.array(betas), *model, external, glass.CHANCES, rngs,
        spins, fields, energies[start], slots, marks, accepted, clock,
    )  # fmt: skip
    after = np.take_along_axis(spins, slots[..., None], axis=2)
    numbers = (after > 0) @ np.array([4, 2, 1])
    return p, numbers


@pytest.mark.parametrize("clusters", [False, True])
def test_one_sweep_leaves_the_distribution_alone(clusters):
    p, numbers = stationary((1.1, 0.6), clusters)
    n = len(numbers)
    # Replicas at one temperature are independent, and so are temperatures.
    for first, second, weights in [
        (numbers[:, 0, 0], numbers[:, 1, 0], np.outer(p[0], p[0])),
        (numbers[:, 0, 1], numbers[:, 1, 1], np.outer(p[1], p[1])),
        (numbers[:, 0, 0], numbers[:, 0, 1], np.outer(p[0], p[1])),
    ]:
        counts = np.bincount(8 * first + second, minlength=64)
        expected = n * weights.ravel()
        rare = expected < 10
        pooled = np.append(expected[~rare], max(expected[rare].sum(), 10))
        seen = np.append(counts[~rare], counts[rare].sum())
        error = np.sqrt(pooled)
        assert (abs(seen - pooled)[:-1] < 6 * error[:-1]).all()


def test_words_are_used_once():
    # To start one word of marks and one of spins a walker; one a site and walker in a
    # sweep, one for the site of a cluster, one a replica for a mark.
    _, *model = couplings(6, 0.5)
    states = run(*model, [1], betas=(1.0,), n_pairs=1)[0]
    state = started(3)
    for _ in range(2 * (1 + 1) + 2 * 6 + 1 + 2):
        next_uint64(state)
    np.testing.assert_array_equal(states[0], state)
