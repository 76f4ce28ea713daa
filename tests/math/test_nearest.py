"""Mutual information by counts and by nearest neighbours."""

import numpy as np
import pytest
from scipy.special import digamma
from sklearn.metrics import mutual_info_score

from skident._math import nearest


def by_definition(codes, values, k):
    """Ross (2014), row by row; classes of one row are left out."""
    kept = np.bincount(codes)[codes] > 1
    codes, values = codes[kept], values[kept]
    terms = []
    for i, (code, value) in enumerate(zip(codes, values, strict=True)):
        others = np.delete(np.abs(values - value), i)
        same = np.sort(others[np.delete(codes, i) == code])
        k_class = min(k, len(same))
        m = 1 + (others < same[k_class - 1]).sum()
        terms.append(digamma(k_class) - digamma(len(same) + 1) - digamma(m))
    return digamma(len(values)) + np.mean(terms)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_ross_is_its_definition(seed, exact):
    rng = np.random.default_rng(seed)
    # Classes of many sizes: one row, fewer than k, more than k.
    codes = np.repeat(np.arange(6), [1, 2, 4, 5, 40, 148])
    values = rng.standard_normal(200) + 0.5 * codes
    order = rng.permutation(200)
    column = nearest.sort_column(values[order])
    found = nearest.ross_information(codes[order], column, 4, exact=exact)
    assert found == pytest.approx(by_definition(codes, values, 4), abs=1e-12)


def test_ross_of_k_above_all_class_sizes():
    codes, values = np.repeat([0, 1], 4), np.arange(8.0) ** 2
    found = nearest.ross_information(codes, nearest.sort_column(values), 50)
    assert found == pytest.approx(by_definition(codes, values, 50), abs=1e-12)


def test_classes_of_one_row_tell_nothing():
    column = nearest.sort_column(np.arange(5.0))
    assert nearest.ross_information(np.arange(5), column, 3) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_exact_counts_are_those_of_differences(seed):
    """Sums of a value and a distance are rounded; differences decide."""
    rng = np.random.default_rng(seed)
    values = np.sort(np.round(rng.standard_normal(400), 2) / 3 + 7)
    x = rng.choice(values, 300)
    distance = np.abs(rng.choice(values, 300) - x)
    found = nearest._count_below(values, x, distance)
    expected = (np.abs(values - x[:, None]) < distance[:, None]).sum(axis=1)
    np.testing.assert_array_equal(found, np.maximum(expected, 1))


@pytest.mark.parametrize("scale", [3.7, -1 / 3, 1e-8])
@pytest.mark.parametrize("levels", [3, 40, 10**6])
def test_repeated_and_equally_spaced_values_in_any_unit(levels, scale):
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=500)
    values = np.round(levels * (rng.random(500) + codes / 8)) / levels
    first, second = (
        nearest.ross_information(codes, nearest.sort_column(v), 10)
        for v in (values, scale * (values + 1))
    )
    assert first == pytest.approx(second, abs=1e-12)


def test_repeated_values_count_as_classes():
    """With all values repeated often, Ross is the plug-in, up to psi for ln."""
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=6000)
    values = (codes + rng.integers(2, size=6000)) % 3
    column = nearest.sort_column(values.astype(float))
    found = nearest.ross_information(codes, column, 5)
    assert found == pytest.approx(mutual_info_score(codes, values), abs=2e-3)


def test_well_separated_classes_give_their_entropy():
    rng = np.random.default_rng(0)
    codes = rng.choice(4, size=4000, p=[0.4, 0.3, 0.2, 0.1])
    column = nearest.sort_column(10.0 * codes + rng.random(4000))
    found = nearest.ross_information(codes, column, 10)
    assert found == pytest.approx(nearest.entropy(codes), abs=0.01)


@pytest.mark.parametrize("correlation", [0.0, 0.6, -0.9])
def test_kraskov_of_gaussian_columns(correlation):
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((2, 4000))
    y = correlation * x + np.sqrt(1 - correlation**2) * noise
    truth = -0.5 * np.log(1 - correlation**2)
    columns = nearest.sort_column(np.exp(x)), nearest.sort_column(y)
    assert nearest.kraskov_information(*columns, 5) == pytest.approx(truth, abs=0.03)
    back = nearest.kraskov_information(*columns[::-1], 5)
    assert nearest.kraskov_information(*columns, 5) == pytest.approx(back, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_plug_in_is_that_of_scikit_learn(seed):
    first, second = np.random.default_rng(seed).integers(7, size=(2, 100))
    found = nearest.plug_in_information(first, second)
    assert found == pytest.approx(mutual_info_score(first, second), abs=1e-12)
    assert nearest.entropy(first) == pytest.approx(mutual_info_score(first, first))


def test_equal_values_share_a_rank():
    """So that the order of rows that are equal in a column does not matter."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(6, size=(2, 200)).astype(float)
    order = rng.permutation(200)
    found = [
        nearest.kraskov_information(
            nearest.sort_column(first[rows]), nearest.sort_column(second[rows]), 3
        )
        for rows in (np.arange(200), order)
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-12)
