"""Matching of columns: greedy against optimal, exchanges, uniqueness."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skident._math import assignment
from skident._math.assignment import assign, choose_assignment, is_unique

seeds = st.integers(0, 10**6)


def total(worth, columns):
    assert len(set(columns)) == len(worth) and max(columns) < worth.shape[1]
    return worth[np.arange(len(worth)), columns].sum()


def plain_greedy(worth):
    """The definition: the largest entry, then the largest of what is left."""
    columns = np.full(len(worth), -1)
    for flat in np.argsort(-worth, axis=None, kind="stable"):
        i, j = np.unravel_index(flat, worth.shape)
        if columns[i] < 0 and j not in columns:
            columns[i] = j
    return columns


@settings(max_examples=60, deadline=None)
@given(seed=seeds, width=st.integers(1, 12), more=st.integers(0, 6))
def test_greedy_is_the_definition_and_half_of_the_optimum(seed, width, more):
    worth = np.random.default_rng(seed).random((width, width + more))
    found = assignment._greedy(worth)
    np.testing.assert_array_equal(found, plain_greedy(worth))
    best = total(worth, assign(worth, "optimal"))
    assert 0.5 * best <= total(worth, found) <= best + 1e-12
    exchanged = total(worth, assign(worth, "greedy"))
    assert total(worth, found) - 1e-12 <= exchanged <= best + 1e-12


@settings(max_examples=60, deadline=None)
@given(seed=seeds, width=st.integers(2, 9), more=st.integers(0, 4))
def test_no_exchange_helps_the_greedy_one(seed, width, more):
    rng = np.random.default_rng(seed)
    worth = rng.integers(0, 5, (width, width + more)).astype(float)
    columns = assign(worth, "greedy")
    best = total(worth, columns)
    for i, free in itertools.product(range(width), range(width + more)):
        if free not in columns:
            other = columns.copy()
            other[i] = free
            assert total(worth, other) <= best + 1e-9
    for i, k in itertools.combinations(range(width), 2):
        other = columns.copy()
        other[[i, k]] = columns[[k, i]]
        assert total(worth, other) <= best + 1e-9


@pytest.mark.parametrize("kind", ["optimal", "greedy"])
def test_clear_matches_are_found_by_both(kind):
    rng = np.random.default_rng(0)
    planted = rng.permutation(200)
    worth = 0.5 * rng.random((200, 200))
    worth[np.arange(200), planted] += 1
    columns = assign(worth, kind)
    np.testing.assert_array_equal(columns, planted)
    assert is_unique(worth, columns, 1e-12, kind)
    worth[0], worth[1] = worth[1], worth[1].copy()
    assert not is_unique(worth, assign(worth, kind), 1e-12, kind)


def test_exchanges_repair_a_greedy_mistake():
    """Taking 1.0 first leaves 0; the other diagonal is worth 1.8."""
    worth = np.array([[1.0, 0.9], [0.9, 0.0]])
    np.testing.assert_array_equal(assignment._greedy(worth.copy()), [0, 1])
    np.testing.assert_array_equal(assign(worth, "greedy"), [1, 0])


@settings(max_examples=60, deadline=None)
@given(seed=seeds, count=st.integers(1, 5), more=st.integers(0, 2))
def test_optimal_is_the_best_of_all(seed, count, more):
    """Negative entries too; every row takes a column whatever it is worth."""
    worth = np.random.default_rng(seed).standard_normal((count, count + more))
    totals = sorted(
        worth[np.arange(count), order].sum()
        for order in itertools.permutations(range(count + more), count)
    )
    columns = assign(worth, "optimal")
    assert total(worth, columns) == pytest.approx(totals[-1], abs=1e-12)
    if len(totals) > 1:
        # The second best is behind by a gap, which is told from rounding.
        gap = totals[-1] - totals[-2]
        assert is_unique(worth, columns, gap / (8 * worth.size), "optimal")
        assert not is_unique(worth, columns, gap, "optimal")


@settings(max_examples=60, deadline=None)
@given(seed=seeds, count=st.integers(2, 9), more=st.integers(0, 5))
def test_gains_are_brought_up_to_date(seed, count, more):
    rng = np.random.default_rng(seed)
    worth = rng.standard_normal((count, count + more))
    order = rng.permutation(count + more)
    gains = assignment._exchange_gains(worth, order)
    for row, k in itertools.product(range(count), range(count + more)):
        if row != k:
            other = order.copy()
            other[[row, k]] = order[[k, row]]
            gain = total(worth, other[:count]) - total(worth, order[:count])
            assert gains[row, k] == pytest.approx(gain, abs=1e-12)
    row = rng.integers(count)
    k = rng.choice(np.setdiff1d(np.arange(count + more), row))
    order[[row, k]] = order[[k, row]]
    assignment._update_gains(gains, worth, order, np.array([row, k]))
    np.testing.assert_allclose(gains, assignment._exchange_gains(worth, order))


@pytest.mark.parametrize("kind", ["optimal", "greedy"])
def test_columns_that_no_row_takes_count_where_they_do_as_well(kind):
    worth = np.zeros((2, 5))
    worth[:, :2] = [[3.0, 1.0], [1.0, 4.0]]
    assert is_unique(worth, assign(worth, kind), 1e-12, kind)
    worth[:, 4] = worth[:, 1]
    assert not is_unique(worth, assign(worth, kind), 1e-12, kind)


def test_automatic_choice_by_width():
    limit = assignment.LARGEST_OPTIMAL
    assert choose_assignment("auto", limit) == "optimal"
    assert choose_assignment("auto", limit + 1) == "greedy"
    assert choose_assignment("optimal", limit + 1) == "optimal"
