"""Folds, bootstrap and pairings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skident._math import resampling
from skident._validation import as_group_codes

seeds = st.integers(0, 10**6)


@settings(max_examples=50, deadline=None)
@given(seed=seeds, n=st.integers(6, 60), n_groups=st.integers(3, 6))
def test_folds_keep_groups_whole(seed, n, n_groups):
    rng = np.random.default_rng(seed)
    groups = np.r_[np.arange(n_groups), rng.integers(n_groups, size=n - n_groups)]
    codes = as_group_codes(groups, n)
    folds = resampling.fold_labels(codes, 3, rng)
    assert set(folds) == {0, 1, 2}
    for group in range(n_groups):
        assert len(set(folds[groups == group])) == 1
    alone = resampling.fold_labels(as_group_codes(None, n), 3, rng)
    assert np.ptp(np.bincount(alone)) <= 1


@pytest.mark.parametrize("seed", range(10))
def test_unequal_groups_are_balanced(seed):
    codes = np.repeat(np.arange(11), [5] * 5 + [50] + [5] * 5)
    folds = resampling.fold_labels(codes, 2, np.random.default_rng(seed))
    assert np.bincount(folds).tolist() == [50, 50]


def test_too_few_groups():
    with pytest.raises(ValueError, match="3 folds need at least as many groups, got 2"):
        resampling.fold_labels(np.array([0, 0, 1, 1]), 3, np.random.default_rng(0))


def test_bootstrap_error_is_that_of_independent_groups():
    """Groups of equal rows: the error is that of the groups, not of the rows."""
    rng = np.random.default_rng(0)
    values = np.repeat(rng.standard_normal((100, 1)), 25, axis=0)
    codes = np.repeat(np.arange(100), 25)
    grouped = resampling.bootstrap_means(values, codes, 2000, rng).std()
    rows = resampling.bootstrap_means(values, np.arange(2500), 2000, rng).std()
    # A standard deviation over 2000 draws is known to 1.6 %: the bound is 5 times that.
    assert grouped == pytest.approx(values.std() / 10, rel=0.08)
    assert rows == pytest.approx(values.std() / 50, rel=0.08)


def test_weights_of_unequal_groups():
    """A resample of one group only is that group's own mean."""
    values, codes = np.array([[1.0], [2.0], [3.0]]), np.array([0, 0, 1])
    draws = resampling.bootstrap_means(values, codes, 200, np.random.default_rng(0))
    assert set(draws.ravel().round(9)) == {1.5, 2.0, 3.0}


def test_percentile_interval():
    draws = np.linspace(0, 1, 1001)[:, None] * [1, 2]
    np.testing.assert_allclose(
        resampling.percentile_interval(draws, 0.9), [[0.05, 0.95], [0.1, 1.9]]
    )


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n=st.integers(4, 40))
def test_paired_shuffle_is_its_own_inverse_within_labels(seed, n):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    swap = resampling.paired_shuffle(labels, rng)
    np.testing.assert_array_equal(swap[swap], np.arange(n))
    np.testing.assert_array_equal(labels[swap], labels)
    assert np.sum(swap == np.arange(n)) <= 2


def test_pvalue_counts_the_observed_statistic():
    assert resampling.upper_pvalue(10, [1, 2, 3]) == 0.25
    assert resampling.upper_pvalue(2, [1, 2, 3]) == 0.75


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n=st.integers(10, 60), n_groups=st.integers(5, 10))
def test_places_are_an_order_of_each_fold_that_keeps_groups_together(seed, n, n_groups):
    rng = np.random.default_rng(seed)
    codes = as_group_codes(rng.integers(n_groups, size=n), n)
    folds = resampling.fold_labels(codes, 2, rng)
    places = resampling.shuffled_places(codes, folds, rng)
    for fold in range(2):
        mine = np.sort(places[folds == fold])
        np.testing.assert_allclose(mine, np.arange(len(mine)) / len(mine))
        in_order = codes[folds == fold][np.argsort(places[folds == fold])]
        assert np.count_nonzero(np.diff(in_order)) == len(set(in_order)) - 1


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_no_row_is_swapped_with_its_own_group(seed):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(8), 6))
    labels = codes % 2
    swap = resampling.paired_shuffle(labels, rng, codes)
    np.testing.assert_array_equal(labels[swap], labels)
    assert np.all(codes[swap] != codes)


def test_many_groups_are_resampled_in_bins(monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4000, 1))
    monkeypatch.setattr(resampling, "MOST_UNITS", 500)
    means = resampling.bootstrap_means(values, np.arange(4000), 2000, rng)
    # 500 bins know the variance to 6.3 %, 2000 draws to 3.2 %: 5 standard errors of
    # the deviation, half of that of the variance
    expected = values.std() / np.sqrt(4000)
    assert means.std() == pytest.approx(expected, rel=5 * np.hypot(0.032, 0.016))
    assert means.mean() == pytest.approx(values.mean(), abs=5 * expected / 44)
