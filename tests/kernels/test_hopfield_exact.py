import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from skident._kernels import hopfield_exact
from skident._kernels.streams import seed_stream
from skident._math import hopfield

KEY = np.uint64(9)


def started(index=0):
    state = np.empty(4, np.uint64)
    seed_stream(KEY, index, state)
    return state


def random_patterns(n_patterns, n_sites):
    random = np.random.default_rng(n_sites)
    return random.choice(np.array([-1, 1], np.int8), (n_patterns, n_sites))


def by_levels(patterns):
    classes = hopfield.site_classes(patterns)
    levels = hopfield.class_levels(classes)
    bases = hopfield.slab_bases(levels.totals, patterns.shape[1] // 2)
    levels = levels._replace(bases=bases)
    binomials = hopfield.class_binomials(classes.sizes)
    return classes, levels, binomials, hopfield.count_levels(levels, binomials)


@pytest.mark.parametrize("n_patterns, n_sites", [(2, 7), (3, 12), (4, 9)])
def test_places_and_levels_are_inverse(n_patterns, n_sites):
    _, levels, _, counts = by_levels(random_patterns(n_patterns, n_sites))
    for totals, bases in zip(levels.totals, levels.bases, strict=True):
        k, seen = np.empty(len(totals), np.int64), set()
        for place in range(bases[0], bases[-1]):
            hopfield_exact.level_of(place, totals, bases, k)
            assert hopfield_exact.place_of(k, totals, bases) == place
            seen.add(tuple(k))
        assert len(seen) == bases[-1] - bases[0]
    assert len(counts) == bases[-1]
    for wrong in ([-1], [n_sites + 1]):
        outside = np.r_[wrong, np.zeros(len(totals) - 1, int)]
        assert hopfield_exact.place_of(outside, totals, bases) == -1
    outside = np.array([2, 3, *[1] * (len(totals) - 2)])
    assert hopfield_exact.place_of(outside, totals, bases) == -1


def test_counting_agrees_with_its_twin():
    _, levels, binomials, counts = by_levels(random_patterns(3, 14))
    c = len(binomials) - 1
    for up in range(8):
        part = slice(levels.bases[-1, up], levels.bases[-1, up + 1])
        again = counts.copy()
        again[part] = np.nan
        hopfield_exact.fill_slab.py_func(
            up, levels.bits[:, c], binomials[c], levels.totals[c], levels.bases[c],
            levels.totals[c + 1], levels.bases[c + 1], again,
        )  # fmt: skip
        np.testing.assert_array_equal(again, counts)


def test_sum_along_an_axis():
    random = np.random.default_rng(0)
    logs, weights = 400 * random.normal(size=(3, 4, 5)), random.normal(size=9)
    logs[0, :, 0] = -np.inf
    logs[1, 2, 1] = -np.inf
    expected = np.empty((3, 6, 5))
    for j in range(6):
        expected[:, j] = np.logaddexp.reduce(logs + weights[j : j + 4, None], axis=1)
    for pick in (lambda f: f, lambda f: f.py_func):
        total = np.empty((3, 6, 5))
        pick(hopfield_exact.sum_along)(logs, weights, total)
        np.testing.assert_allclose(total, expected, rtol=1e-14)


def draw(patterns, beta, n_samples, way, pick=lambda f: f, start=0):
    rows = np.empty((n_samples, patterns.shape[1]), np.int8)
    overlaps = np.empty((n_samples, len(patterns)), np.int64)
    if way == "levels":
        classes, levels, binomials, counts = by_levels(patterns)
        terms = hopfield.ClassSum(classes, levels, np.inf)
        pick(hopfield_exact.draw_from_levels)(
            KEY, start, hopfield.cumulated(terms, beta, counts), levels.bits, binomials,
            levels.totals, levels.bases, counts, *classes, rows, overlaps,
        )  # fmt: skip
    else:
        classes = hopfield.site_classes(patterns)
        n_terms = (np.prod(classes.sizes + 1) + 1) // 2
        cdf = hopfield.cumulated(hopfield.ClassSum(classes, None, n_terms), beta)
        pick(hopfield_exact.draw_from_classes)(
            KEY, start, cdf, *classes, rows, overlaps
        )
    return rows, overlaps


@pytest.mark.parametrize("way", ["levels", "classes"])
@pytest.mark.parametrize("n_patterns, n_sites", [(2, 7), (3, 9), (5, 8)])
@pytest.mark.parametrize("beta", [0.0, 1.3, 3.0])
def test_every_state_has_its_probability(way, n_patterns, n_sites, beta):
    patterns = random_patterns(n_patterns, n_sites)
    rows, overlaps = draw(patterns, beta, 100_000, way)
    np.testing.assert_array_equal(overlaps, rows.astype(int) @ patterns.T.astype(int))
    states = np.array(list(itertools.product((-1, 1), repeat=n_sites)))
    square = ((states @ patterns.T.astype(int)) ** 2).sum(axis=1)
    p = np.exp(beta / (2 * n_sites) * (square - square.max()))
    expected = len(rows) * p / p.sum()
    counts = np.bincount((rows > 0) @ (1 << np.arange(n_sites)[::-1]), None, len(p))
    # States expected fewer than ten times are pooled.
    rare = expected < 10
    observed = np.r_[counts[~rare], counts[rare].sum()]
    expected = np.r_[expected[~rare], expected[rare].sum()]
    some = expected > 0
    statistic = ((observed - expected)[some] ** 2 / expected[some]).sum()
    assert chi2.sf(statistic, some.sum() - 1) > 1e-7


@pytest.mark.parametrize("way", ["levels", "classes"])
def test_draws_agree_with_their_twin(way):
    patterns = random_patterns(3, 13)
    ours = draw(patterns, 1.4, 20, way)
    with np.errstate(over="ignore"):
        twin = draw(patterns, 1.4, 20, way, lambda f: f.py_func)
    for a, b in zip(ours, twin, strict=True):
        np.testing.assert_array_equal(a, b)


def test_rounding_does_not_lead_to_an_impossible_number():
    # Counts a little too large: the search for the class runs over the end.
    _, levels, binomials, counts = by_levels(random_patterns(3, 12))
    swollen = counts.copy()
    swollen[levels.bases[-1, 0] :] *= 1e6
    k, ups = np.empty(3, np.int64), np.empty(len(binomials), np.int64)
    totals, bases = levels.totals, levels.bases
    for pick in (lambda f: f, lambda f: f.py_func):
        for index, place in enumerate(range(bases[-1, 0], bases[-1, -1])):
            hopfield_exact.level_of(place, totals[-1], bases[-1], k)
            if counts[place] > 0:
                level = k.copy()
                with np.errstate(over="ignore"):
                    pick(hopfield_exact.split_level)(
                        k, levels.bits, binomials, totals, bases, swollen,
                        started(index), ups,
                    )  # fmt: skip
                np.testing.assert_array_equal(levels.bits @ ups, level)
                assert (ups >= 0).all()
                assert (
                    ups <= hopfield.site_classes(random_patterns(3, 12)).sizes
                ).all()
