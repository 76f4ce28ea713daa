import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from skident._math import hopfield, hopfield_cut

SHAPES = [(2, 7), (2, 9), (3, 10), (4, 12), (5, 11), (3, 4), (9, 5)]


def random_patterns(n_patterns, n_sites, seed=0):
    random = np.random.default_rng(seed)
    return random.choice(np.array([-1, 1], np.int8), (n_patterns, n_sites))


def all_states(n):
    return np.array(list(itertools.product((-1, 1), repeat=n)))


def by_levels(patterns):
    """A sum by levels, whatever is shorter."""
    classes = hopfield.site_classes(patterns)
    levels = hopfield.class_levels(classes)
    bases = hopfield.slab_bases(levels.totals, patterns.shape[1] // 2)
    terms = hopfield.ClassSum(classes, levels._replace(bases=bases), bases[-1, -1])
    binomials = hopfield.class_binomials(classes.sizes)
    return terms, hopfield.count_levels(terms.levels, binomials)


def by_classes(patterns):
    classes = hopfield.site_classes(patterns)
    n_terms = (math.prod(int(n) + 1 for n in classes.sizes) + 1) // 2
    return hopfield.ClassSum(classes, None, float(n_terms)), None


WAYS = {"levels": by_levels, "classes": by_classes}


def numbers_of_states(patterns, way):
    """Configurations of every vector of overlaps, from a sum."""
    found = {}
    for v, logs in hopfield.blocks_of_terms(*WAYS[way](patterns)):
        for overlaps, log in zip(v.T, logs, strict=True):
            for sign in (1, -1):
                key = tuple(int(x) for x in sign * overlaps)
                found[key] = found.get(key, 0) + np.exp(log) / 2
    return {key: number for key, number in found.items() if number > 0}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_patterns, n_sites", SHAPES)
def test_every_overlap_has_its_number_of_configurations(way, n_patterns, n_sites):
    patterns = random_patterns(n_patterns, n_sites)
    expected = {}
    for overlaps in all_states(n_sites) @ patterns.T.astype(int):
        key = tuple(int(x) for x in overlaps)
        expected[key] = expected.get(key, 0) + 1
    found = numbers_of_states(patterns, way)
    assert found.keys() == expected.keys()
    for key, number in expected.items():
        assert found[key] == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize("n_patterns, n_sites", [(3, 50), (4, 30), (5, 20)])
def test_both_ways_have_the_same_moments(n_patterns, n_sites):
    patterns = random_patterns(n_patterns, n_sites)
    for beta in (0.0, 1.0, 3.0, 1e100):
        first, second = (
            hopfield.moments(terms, beta, counts)
            for terms, counts in (by_levels(patterns), by_classes(patterns))
        )
        for ours, other in zip(first, second, strict=True):
            np.testing.assert_allclose(ours, other, rtol=1e-10, atol=1e-12)


def test_blocks_do_not_matter(monkeypatch):
    patterns = random_patterns(4, 20)
    for terms, counts in (by_levels(patterns), by_classes(patterns)):
        expected = hopfield.moments(terms, 2.0, counts)
        cdf = hopfield.cumulated(terms, 2.0, counts)
        with monkeypatch.context() as patch:
            patch.setattr(hopfield, "_BLOCK", 7)
            for ours, other in zip(
                hopfield.moments(terms, 2.0, counts), expected, strict=True
            ):
                np.testing.assert_allclose(ours, other, rtol=1e-12)
            np.testing.assert_allclose(
                hopfield.cumulated(terms, 2.0, counts), cdf, rtol=1e-12
            )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("beta", [0.0, 1.5, 1e100])
def test_cumulated_probabilities(way, beta):
    patterns = random_patterns(3, 12)
    terms, counts = WAYS[way](patterns)
    blocks = list(hopfield.blocks_of_terms(terms, counts))
    v = np.hstack([v for v, _ in blocks])
    logs = np.hstack([logs for _, logs in blocks])
    square = (v**2).sum(axis=0)
    logs += beta / 24 * (square - square[logs > -np.inf].max())
    cdf = hopfield.cumulated(terms, beta, counts)
    assert cdf[-1] == 1.0
    np.testing.assert_allclose(
        np.diff(cdf, prepend=0), np.exp(logs - logsumexp(logs)), atol=1e-14
    )


def test_the_shorter_way_is_chosen():
    few, many = random_patterns(4, 64), random_patterns(30, 16)
    assert hopfield.class_sum(few).levels is not None
    # 64 sites and 4 patterns: 9^8 states of the classes.
    assert hopfield.class_sum(few).n_terms < 1e6
    assert hopfield.class_sum(many).levels is None
    # Beyond 1000 sites the numbers of configurations overflow.
    assert hopfield.class_sum(random_patterns(3, 1001)).levels is None
    assert hopfield.class_sum(random_patterns(3, 1000)).levels is not None


def test_terms_beyond_all_numbers_are_infinitely_many():
    assert hopfield.class_sum(random_patterns(500, 2000)).n_terms == np.inf
    assert hopfield.class_sum(random_patterns(60, 1000)).n_terms > 1e100


def test_patterns_alike_share_their_level():
    one = random_patterns(3, 30)
    several = np.vstack([one, -one[1], one[0], one[2], one[2]])
    terms, more = (by_levels(patterns)[0] for patterns in (one, several))
    np.testing.assert_array_equal(terms.levels.bases, more.levels.bases)
    overlaps = [
        np.hstack([v for v, _ in hopfield.blocks_of_terms(*by_levels(patterns))])
        for patterns in (one, several)
    ]
    factors = [[0, 1, 2, 1, 0, 2, 2], [1, 1, 1, -1, 1, 1, 1]]
    expected = overlaps[0][factors[0]] * np.array(factors[1])[:, None]
    np.testing.assert_array_equal(overlaps[1], expected)


def information_by_enumeration(patterns, beta):
    n_sites = patterns.shape[1]
    square = ((all_states(n_sites) @ patterns.T.astype(int)) ** 2).sum(axis=1)
    logs = beta / (2 * n_sites) * (square - square.max())
    p = np.exp(logs - logsumexp(logs))
    joint = p.reshape(2 ** (n_sites // 2), -1)
    parts = [joint.sum(axis=1), joint.sum(axis=0), p]
    left, right, both = (-(q[q > 0] @ np.log(q[q > 0])) for q in parts)
    return left + right - both, both


@pytest.mark.parametrize("n_patterns, n_sites", [*SHAPES, (2, 2), (14, 3), (4, 13)])
@pytest.mark.parametrize("beta", [0.0, 1.5, 6.0, 1e100])
def test_half_cut_by_levels_and_by_pairs(n_patterns, n_sites, beta, monkeypatch):
    patterns = random_patterns(n_patterns, n_sites, seed=3)
    expected, entropy = information_by_enumeration(patterns, beta)
    classes = hopfield.site_classes(patterns)
    monkeypatch.setattr(hopfield_cut, "_BLOCK", 50)
    value = hopfield_cut.half_cut_information(classes, beta, entropy, np.inf)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    beta = min(beta, 50.0 * n_sites)
    parts = hopfield_cut._halves(classes)
    levels = hopfield.class_levels(classes)
    for both in (
        hopfield_cut._level_entropies(levels, parts, beta),
        hopfield_cut._pair_entropies(classes, parts, beta / (2 * n_sites)),
    ):
        assert both - entropy == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_too_long_a_half_cut_is_not_begun():
    classes = hopfield.site_classes(random_patterns(4, 64))
    assert hopfield_cut.half_cut_information(classes, 1.0, 40.0, 1e6) is None
    assert hopfield_cut.half_cut_information(classes, 1.0, 40.0, 1e8) is not None
