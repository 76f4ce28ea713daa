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
    assert sorted(columns) == list(range(len(worth)))
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
@given(seed=seeds, width=st.integers(1, 12))
def test_greedy_is_the_definition_and_half_of_the_optimum(seed, width):
    worth = np.random.default_rng(seed).random((width, width))
    found = assignment._greedy(worth)
    np.testing.assert_array_equal(found, plain_greedy(worth))
    best = total(worth, assign(worth, "optimal"))
    assert 0.5 * best <= total(worth, found) <= best + 1e-12
    exchanged = total(worth, assign(worth, "greedy"))
    assert total(worth, found) - 1e-12 <= exchanged <= best + 1e-12


@settings(max_examples=60, deadline=None)
@given(seed=seeds, width=st.integers(2, 9))
def test_no_exchange_of_two_helps_the_greedy_one(seed, width):
    worth = np.random.default_rng(seed).integers(0, 5, (width, width)).astype(float)
    columns = assign(worth, "greedy")
    best = total(worth, columns)
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
    assert is_unique(worth, columns, (200, 200), 1e-12, kind)
    worth[0], worth[1] = worth[1], worth[1].copy()
    assert not is_unique(worth, assign(worth, kind), (200, 200), 1e-12, kind)


def test_exchanges_repair_a_greedy_mistake():
    """Taking 1.0 first leaves 0; the other diagonal is worth 1.8."""
    worth = np.array([[1.0, 0.9], [0.9, 0.0]])
    np.testing.assert_array_equal(assignment._greedy(worth.copy()), [0, 1])
    np.testing.assert_array_equal(assign(worth, "greedy"), [1, 0])


@pytest.mark.parametrize("kind", ["optimal", "greedy"])
def test_padding_does_not_count_against_uniqueness(kind):
    worth = np.zeros((5, 5))
    worth[:2, :2] = [[3.0, 1.0], [1.0, 4.0]]
    columns = assign(worth + 1e-12 * np.eye(5), kind)
    assert is_unique(worth, columns, (2, 2), 1e-12, kind)


def test_automatic_choice_by_width():
    limit = assignment.LARGEST_OPTIMAL
    assert choose_assignment("auto", limit) == "optimal"
    assert choose_assignment("auto", limit + 1) == "greedy"
    assert choose_assignment("optimal", limit + 1) == "optimal"
