import itertools

import numpy as np
from scipy.stats import chisquare

from skident._kernels.curie_weiss import draw_exchangeable

KEY = np.uint64(17)


def drawn(function, cdf, n_samples, n_sites, start=0):
    rows, ups = np.empty((n_samples, n_sites), np.int8), np.empty(n_samples, np.int64)
    function(KEY, start, cdf, rows, ups)
    return rows, ups


def test_twin_draws_the_same():
    cdf = np.linspace(0.05, 1, 14)
    for ours, twin in zip(
        drawn(draw_exchangeable, cdf, 30, 13),
        drawn(draw_exchangeable.py_func, cdf, 30, 13),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, twin)


def test_every_arrangement_is_equally_likely():
    for n_ups in range(6):
        cdf = (np.arange(6) >= n_ups).astype(float)
        rows, ups = drawn(draw_exchangeable, cdf, 20_000, 5)
        assert (ups == n_ups).all()
        arrangements = [
            s for s in itertools.product((-1, 1), repeat=5) if s.count(1) == n_ups
        ]
        counts = [(rows == s).all(axis=1).sum() for s in arrangements]
        assert sum(counts) == 20_000
        if len(counts) > 1:
            assert chisquare(counts).pvalue > 1e-7


def test_start_shifts_the_rows():
    cdf = np.linspace(0.05, 1, 14)
    all_rows, _ = drawn(draw_exchangeable, cdf, 30, 13)
    some, _ = drawn(draw_exchangeable, cdf, 10, 13, start=20)
    np.testing.assert_array_equal(some, all_rows[20:])
