import math
from fractions import Fraction

import numpy as np
import pytest

from skident._kernels import multispin, streams
from skident.datasets._lattice import lattice
from skident.datasets._multispin import MultispinChains

KEY = np.uint64(17)
# Shape, periodic, J, h, T: every kernel, and sites of every kind.
MODELS = [
    ((5,), True, 1.0, 0.0, 1.5),
    ((4,), False, -1.0, 0.0, 0.8),
    ((3, 3), True, 1.0, 0.0, 2.3),
    ((3, 3), True, -1.0, 0.0, 1.0),
    ((2, 3), False, 1.0, 0.4, 1.7),
    ((3, 4), False, 1.0, 0.0, 2.0),
    ((1, 4), True, 1.0, 0.0, 1.0),
    ((2, 2, 3), True, 1.0, 0.0, 4.5),
    ((2, 3, 2), False, -0.7, 0.3, 1.2),
    ((2, 2, 2), True, 1.0, 0.0, 100.0),
    ((3,), True, 0.0, 0.9, 1.0),
    ((2, 2), True, 1.0, 0.0, 0.3),
]


def chains_of(shape, periodic, coupling, field, temperature):
    graph = lattice(shape, periodic, coupling)
    return MultispinChains(graph, 1 / temperature, coupling, field)


class Twin:
    """One word, lane by lane and spin by spin, from the stream of that word."""

    def __init__(self, chains, word, cold):
        self.chains, self.state = chains, np.empty(4, np.uint64)
        streams.seed_stream(KEY, word, self.state)
        ordered, sign = chains.ordered
        signs = self.draw() if sign == 0 else [1] * 64
        self.spins = []
        for site in ordered:
            mine = [s if site > 0 else 1 - s for s in signs] if cold else self.draw()
            self.spins.append(mine)
        self.gap = self.next_gap()

    def draw(self):
        word = int(streams.next_uint64(self.state))
        return [(word >> lane) & 1 for lane in range(64)]

    def next_gap(self):
        u, rate = streams.next_uniform(self.state), self.chains.table.rate
        return math.floor(math.log1p(-u) / math.log1p(-rate)) if rate > 0 else 2**62

    def group(self, site, lane):
        """Kind of the site, spin, and unsatisfied bonds, with itself where missing."""
        graph, n_sites = self.chains.graph, self.chains.n_sites
        missing = (graph.neighbours == n_sites).sum(axis=1)
        kind = sorted(set(missing.tolist())).index(missing[site])
        spin, unsatisfied = self.spins[site][lane], 0
        for other in graph.neighbours[site]:
            same = other == n_sites or self.spins[other][lane] == spin
            unsatisfied += same == (self.chains.coupling < 0)
        return kind, spin, unsatisfied

    def sweep(self):
        table = self.chains.table
        n_flips = 0
        for site in range(self.chains.n_sites):
            extra = set()
            while self.gap < 64:
                u = streams.next_uniform(self.state)
                if u < table.kept[self.group(site, self.gap)]:
                    extra.add(self.gap)
                self.gap += 1 + self.next_gap()
            self.gap -= 64
            words = [self.draw() for _ in range(table.n_bits)]
            for lane in range(64):
                limit = table.thresholds[self.group(site, lane)]
                # Uniform bits stay uniform when some are complemented.
                number = min(limit, 2**table.n_bits - 1)
                for j, word in enumerate(words):
                    number ^= word[lane] << j
                if number < limit or lane in extra:
                    self.spins[site][lane] ^= 1
                    n_flips += 1
        return n_flips


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_kernel_equals_its_twin_bit_for_bit(model, cold, monkeypatch):
    # The start by clusters is no matter of this kernel.
    monkeypatch.setattr(MultispinChains, "has_stripes", False)
    chains = chains_of(*model)
    state = chains.start(KEY, 128, 600, cold)
    twins = [Twin(chains, 2 + w, cold) for w in (0, 9)]
    n_flips = np.zeros(2, int)
    for _ in range(4):
        rows = chains.read(state)[0]
        for i, twin in enumerate(twins):
            mine = np.array(twin.spins).T[:24] * 2 - 1
            assert (rows[576 * i : 576 * i + 24] == mine).all()
        n_flips += [twin.sweep() for twin in twins]
        chains.advance(state, 1)
    assert state[3].ravel()[[0, 9]].tolist() == n_flips.tolist()


def test_the_twin_meets_every_kernel_and_extra_flips():
    tables = [(len(m[0]), chains_of(*m).table) for m in MODELS]
    assert {(n, t.full) for n, t in tables} == {
        (n, full) for n in (1, 2, 3) for full in (False, True)
    }
    assert max(len(table.kept) for _, table in tables) == 3
    assert sum(table.rate > 0 for _, table in tables) > 6


@pytest.mark.parametrize("rate", [0.3, 0.01, 1.7e-4, 1e-9])
def test_gaps_are_geometric_to_forty_bits(rate):
    log_miss = math.log1p(-rate)

    def chance_of_at_least(g):
        """Share of the 2**53 values of a uniform that lead to a gap of g or more."""
        low, high = 0, 2**53
        while low < high:
            middle = (low + high) // 2
            if multispin.gap(middle * 2.0**-53, log_miss) >= g:
                high = middle
            else:
                low = middle + 1
        return Fraction(2**53 - low, 2**53)

    assert chance_of_at_least(0) == 1
    p = Fraction(rate)
    for g in (0, 1, 2, 3, 7, int(1 / rate), int(3 / rate)):
        here, after = chance_of_at_least(g), chance_of_at_least(g + 1)
        assert abs((here - after) / here - p) < 2.0**-40
        if g < 10:
            assert abs(here - (1 - p) ** g) < 2.0**-50


def test_gap_without_candidates_never_ends():
    assert multispin.gap(0.5, 0.0) == 2**62
    assert multispin.gap(1 - 2.0**-53, -5e-324) == 2**62
    assert multispin.gap(0.0, -1e-3) == 0


@pytest.mark.parametrize("n_pairs", [1, 14, 15, 16, 200, 1000])
def test_differences_are_counted(n_pairs):
    rng = np.random.default_rng(n_pairs)
    spins = rng.integers(0, 2**64, (3, 50, 8), dtype=np.uint64)
    pairs = rng.integers(0, 50, (n_pairs, 2), dtype=np.int32)
    # Rows that differ in every lane reach the highest count.
    spins[1, 0], spins[1, 1] = 0, 2**64 - 1
    pairs[: n_pairs // 2] = 0, 1
    counts = np.empty((3, 8, 64), np.int64)
    multispin.count_differences(pairs, spins, counts)
    differ = spins[:, pairs[:, 0]] ^ spins[:, pairs[:, 1]]
    lanes = np.arange(64, dtype=np.uint64)
    expected = ((differ[..., None] >> lanes) & np.uint64(1)).sum(axis=1)
    assert (counts == expected).all()


@pytest.mark.parametrize("n_chains", [1, 63, 64, 65, 512, 513, 700])
@pytest.mark.parametrize("n_sites", [1, 63, 64, 130])
def test_rows_are_the_lanes(n_chains, n_sites):
    rng = np.random.default_rng(n_chains)
    spins = rng.integers(0, 2**64, (2, n_sites + 2, 8), dtype=np.uint64)
    rows = np.zeros((n_chains, n_sites), np.int8)
    multispin.read_rows(spins, rows)
    for k in rng.integers(0, n_chains, 20):
        words = spins[k // 512, :n_sites, k // 64 % 8]
        bits = (words >> np.uint64(k % 64)) & np.uint64(1)
        assert (rows[k] == 2 * bits.astype(int) - 1).all()
