import numpy as np
import pytest
from scipy.special import logsumexp

from skident._math import bipartite
from skident._math.information import bernoulli_log_prob, fit_logistic

STATES = (np.arange(2**6)[:, None] >> np.arange(6)) & 1


def pairwise_probabilities(seed, strength):
    rng = np.random.default_rng(seed)
    spins = 2.0 * STATES - 1
    couplings = strength * rng.standard_normal((6, 6))
    weight = np.exp((spins @ couplings * spins).sum(1) + spins @ rng.normal(0, 0.3, 6))
    return weight / weight.sum()


def entropy(p):
    p = p[p > 0]
    return -(p * np.log(p)).sum()


def enumerated_information(p, first):
    table = p.reshape((2,) * 6).transpose(range(5, -1, -1))  # column 0 runs fastest
    left, right = (tuple(np.flatnonzero(part)) for part in (first, ~first))
    return entropy(table.sum(right)) + entropy(table.sum(left)) - entropy(p)


def draw(p, n, seed):
    rng = np.random.default_rng(seed)
    rows = STATES[rng.choice(len(STATES), n, p=p)].astype(np.int8)
    return rows, np.arange(n) % 2 == 0


def error_of(gain):
    return gain.std() / np.sqrt(len(gain))


@pytest.mark.parametrize("strength", [0.2, 0.5])
@pytest.mark.parametrize("columns", [[0, 1, 2], [4], [0, 2, 3, 5]])
def test_enumerated_information_is_reached_from_below(strength, columns):
    p = pairwise_probabilities(1, strength)
    first = bipartite.cut_columns(columns, 6)
    exact = enumerated_information(p, first)
    bits, halves = draw(p, 8000, 0)
    gain = bipartite.cut_gain(bits, first, halves)
    assert exact > 0.02
    assert gain.mean() < exact + 5 * error_of(gain)
    assert gain.mean() > 0.93 * exact - 0.005 - 5 * error_of(gain)


def xor_with_a_hint(n, seed):
    """b3 = b1 xor b2 = b1 + b2 - 2 a with a = b1 and b2: linear once a is known."""
    rng = np.random.default_rng(seed)
    b1, b2 = rng.integers(0, 2, (2, n))
    columns = [b1 & b2, b1, b2, b1 ^ b2]
    return np.stack(columns, axis=1).astype(np.int8)


def test_bound_holds_where_the_difference_of_two_chains_does_not():
    """The chain cannot express b alone, but b given a: it misses ln 2 of H(b) only."""
    bits, exact = xor_with_a_hint(4000, 0), entropy(np.array([0.25, 0.75]))
    fitted = np.arange(4000) < 2000
    conditional, alone = [], []
    for column in (1, 2, 3):
        for start, logs in ((0, conditional), (1, alone)):
            features = np.c_[np.ones(4000), bits[:, start:column]]
            weights = fit_logistic(
                features[fitted], bits[fitted, column], np.zeros(features.shape[1])
            )
            logs.append(bernoulli_log_prob(bits[:, column], features @ weights))
    difference = (np.sum(conditional, axis=0) - np.sum(alone, axis=0))[~fitted].mean()
    assert difference > exact + 0.5 * np.log(2)
    gain = bipartite.cut_gain(bits, np.arange(4) < 1, fitted)
    assert 0.8 * exact < gain.mean() < exact + 5 * error_of(gain)


def test_dependence_that_the_chain_cannot_express_is_missed_not_invented():
    coins = np.random.default_rng(0).integers(0, 2, (4000, 2))
    bits = np.c_[coins, coins[:, 0] ^ coins[:, 1]].astype(np.int8)
    gain = bipartite.cut_gain(bits, np.arange(3) < 2, np.arange(4000) % 2 == 0)
    assert abs(gain.mean()) < 0.01


def test_value_does_not_pass_its_ceiling():
    """Twenty coins and their copies: 20 ln 2 = 13.9 nats, but 500 rows tell ln 250."""
    coins = np.random.default_rng(0).integers(0, 2, (500, 20), dtype=np.int8)
    halves = np.arange(500) % 2 == 0
    gain = bipartite.cut_gain(np.c_[coins, coins], np.arange(40) < 20, halves)
    ceiling = np.log(bipartite.fewest_contrasted(halves))
    assert ceiling == pytest.approx(np.log(250))
    assert 0.98 * ceiling < gain.mean() <= ceiling + 1e-9


def test_many_rows_are_contrasted_in_parts():
    assert bipartite.fewest_contrasted(np.arange(9000) < 4001) == 1333


@pytest.mark.parametrize("seed", range(3))
def test_independent_columns_share_nothing(seed):
    rng = np.random.default_rng(seed)
    bits = (rng.random((3000, 10)) < rng.uniform(0.1, 0.9, 10)).astype(np.int8)
    gain = bipartite.cut_gain(bits, np.arange(10) < 5, np.arange(3000) % 2 == 0)
    assert abs(gain.mean()) < 5 * error_of(gain) + 0.005


def test_a_row_is_measured_by_what_was_learned_from_the_other_half():
    """Copies in one half, coins in the other: neither learns its own."""
    coins = np.random.default_rng(0).integers(0, 2, (800, 8), dtype=np.int8)
    halves = np.arange(800) < 400
    bits = coins.copy()
    bits[halves, 4:] = bits[halves, :4]
    gain = bipartite.cut_gain(bits, np.arange(8) < 4, halves)
    assert abs(gain[halves].mean()) < 0.2
    assert gain[~halves].mean() < -2


@pytest.mark.parametrize("seed", range(3))
def test_couplings_that_few_rows_cannot_tell_cost_little(seed):
    """225 of them for 150 rows: with the widest prior they cost a nat."""
    bits = np.random.default_rng(seed).integers(0, 2, (300, 30), dtype=np.int8)
    gain = bipartite.cut_gain(bits, np.arange(30) < 15, np.arange(300) % 2 == 0)
    assert -0.05 < gain.mean() < 0.02


def test_naming_either_part_is_the_same_cut():
    bits, halves = draw(pairwise_probabilities(0, 0.4), 1000, 0)
    first = np.arange(6) < 2
    np.testing.assert_array_equal(
        bipartite.cut_gain(bits, first, halves),
        bipartite.cut_gain(bits, ~first, halves),
    )


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_contrast_equals_the_sum_of_logarithms(scale):
    """An independent implementation, pair by pair."""
    rng = np.random.default_rng(0)
    known = rng.integers(0, 2, (40, 5), dtype=np.int8)
    target = rng.integers(0, 2, (40, 11), dtype=np.int8)
    constants = scale * rng.standard_normal(11) / 4
    couplings = scale * rng.standard_normal((5, 11)) / 4
    own = np.triu(scale * rng.standard_normal((11, 11)) / 4, 1)
    expected = []
    for b in target:
        logs = [bernoulli_log_prob(b, constants + a @ couplings + b @ own).sum()
                for a in known]  # fmt: skip
        expected.append(logs[len(expected)] - logsumexp(logs) + np.log(40))
    model = constants, couplings, own
    np.testing.assert_allclose(
        bipartite._contrast(known, target, model), expected, atol=1e-9
    )


def test_random_cut_that_separates_the_pairs_is_found():
    """Columns 0 and 1, and 2 and 3, are equal: two of three cuts separate both."""
    rng = np.random.default_rng(0)
    bits = np.repeat(rng.integers(0, 2, (600, 2), dtype=np.int8), 2, axis=1)
    first = bipartite.largest_random_cut(bits, np.arange(600) % 2 == 0, rng)
    assert first.sum() == 2 and first[0] != first[1] and first[2] != first[3]


def test_named_cuts():
    assert bipartite.cut_columns("half", 5).tolist() == [1, 1, 0, 0, 0]
    board = bipartite.cut_columns("checkerboard", 6, (2, 3))
    assert board.tolist() == [1, 0, 1, 0, 1, 0]
    assert bipartite.cut_columns("checkerboard", 3, 3).tolist() == [1, 0, 1]
    assert bipartite.cut_columns([2, 0], 3).tolist() == [1, 0, 1]
    assert bipartite.cut_columns(np.array([False, True]), 2).tolist() == [0, 1]


@pytest.mark.parametrize(
    "partition, shape, match",
    [
        ("third", None, "one of .*'half'"),
        ("checkerboard", None, "needs shape="),
        ("checkerboard", (2, 3), r"\(2, 3\) has 6 sites, X 4 columns"),
        ("checkerboard", (-2, -2), "at least 1"),
        ("checkerboard", (1.5, 2), "must be ints"),
        ([4], None, "lists column 4, but X has columns 0 to 3"),
        ([-1], None, "lists column -1"),
        ([0, 1, 2, 3], None, "puts 4 of 4 columns"),
        ([False] * 4, None, "puts 0 of 4 columns"),
        ([True] * 3, None, r"shape \(4,\)"),
        ([0.5], None, "float64"),
        ([[0, 1]], None, r"of shape \(1, 2\)"),
        ([], None, "list of column"),
    ],
)
def test_cuts_that_do_not_fit_are_refused(partition, shape, match):
    with pytest.raises(ValueError, match=match):
        bipartite.cut_columns(partition, 4, shape)


def test_calibrated_logits_cannot_overflow():
    """A column that is the sum of others to certainty: still finite."""
    bits = np.tile(np.array([[0, 0], [1, 1]], dtype=np.int8), (3000, 1))
    gain = bipartite.cut_gain(bits, np.arange(2) < 1, np.arange(6000) % 4 < 2)
    assert gain.mean() == pytest.approx(np.log(2), abs=0.01)
