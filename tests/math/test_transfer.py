import itertools
import math

import numpy as np
import pytest

from skident._kernels import transfer as kernels
from skident._math.transfer import (
    Weights,
    closing_weights,
    count_classes,
    layer_symmetries,
    layer_weights,
    make_strip,
    normalise,
    signs_of,
    spins_of,
    symmetries,
    times,
    walk_back,
)
from skident.datasets._lattice import lattice

SHAPES = [(1,), (2,), (5,), (1, 4), (2, 2), (3, 4), (4, 2), (2, 3, 4), (3, 3, 3)]


def all_bonds(strip):
    """Bonds of the whole lattice as a strip has them, sorted pairs."""
    pairs = []
    for t in range(strip.n_layers):
        for i, row in enumerate(strip.earlier):
            pairs += [(strip.sites[t, i], strip.sites[t, j]) for j in row if j >= 0]
        last = t == strip.n_layers - 1
        if not last or strip.closed:
            ahead = strip.sites[(t + 1) % strip.n_layers]
            pairs += zip(strip.sites[t], ahead, strict=True)
    return sorted((min(p), max(p)) for p in pairs)


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_strip_has_the_bonds_of_the_lattice(shape, periodic):
    strip = make_strip(shape, periodic)
    bonds = lattice(shape, periodic, 1.0).bonds.tolist()
    assert all_bonds(strip) == sorted((min(p), max(p)) for p in bonds)
    assert strip.n_layers == max(shape)
    for i, row in enumerate(strip.neighbours):
        found = sorted(j for j in row if j >= 0)
        expected = [j for a, r in enumerate(strip.earlier) for j in r if a == i]
        expected += [a for a, r in enumerate(strip.earlier) for j in r if j == i]
        assert found == sorted(j for j in expected if j >= 0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_signs_are_those_of_the_lattice(shape):
    for coupling in (1.0, -1.0):
        expected = lattice(shape, True, coupling).staggering
        np.testing.assert_array_equal(signs_of(shape, coupling < 0), expected)


def test_words_are_spins():
    np.testing.assert_array_equal(spins_of([0, 5], 3), [[-1, -1, -1], [1, -1, 1]])


def layer_energy_counts(strip, words):
    parts = layer_weights(strip, words)
    return np.stack([parts.bonds, abs(parts.spins)])


@pytest.mark.parametrize("reversal", [True, False])
@pytest.mark.parametrize(
    "shape", [(9, 6), (9, 2), (9, 1), (5, 3, 4), (3, 3, 3)], ids=str
)
def test_symmetries_make_the_words_of_a_class(shape, reversal):
    strip = make_strip(shape, True)
    found = symmetries(strip, reversal=reversal)
    words = np.arange(1 << strip.width)
    assert found.sizes.sum() == len(words)
    assert count_classes(found.elements) == len(found.words)
    start = spins_of(found.words[found.orbit], strip.width)
    elements = found.elements[found.element]
    made = np.empty_like(start)
    np.put_along_axis(made, elements[:, :-1], start * elements[:, -1:], axis=1)
    np.testing.assert_array_equal(made, spins_of(words, strip.width))
    # Energies of a class are the same, up to the sign of the field's part.
    np.testing.assert_array_equal(
        layer_energy_counts(strip, words),
        layer_energy_counts(strip, found.words[found.orbit]),
    )
    if not reversal:
        totals = layer_weights(strip, words).spins
        np.testing.assert_array_equal(totals, totals[found.words[found.orbit]])


def test_number_of_classes_is_that_of_bracelets():
    # Bracelets of 10 beads of two colours: 78; up to exchange of the colours: 44.
    for reversal, number in ((False, 78), (True, 44)):
        elements = layer_symmetries((10,), closed=True, reversal=reversal)
        assert count_classes(elements) == number


def test_symmetries_keep_signs():
    for side, number in ((4, 8), (5, 2)):
        signs = signs_of((side,), True)
        elements = layer_symmetries((side,), closed=True, reversal=False, signs=signs)
        assert len(elements) == number
    assert len(layer_symmetries((4,), closed=False, reversal=True)) == 1


def test_open_strips_have_classes_of_one():
    found = symmetries(make_strip((5, 3), False), reversal=True)
    assert (found.sizes == 1).all()
    np.testing.assert_array_equal(found.words[found.orbit], np.arange(8))


def test_normalise_is_a_softmax():
    rng = np.random.default_rng(0)
    bonds, spins = rng.integers(-20, 20, (2, 3, 50))
    weights = Weights(bonds, spins, rng.normal(size=(3, 50)))
    log_p, total = normalise(weights, (0.4, -0.1))
    logs = 0.4 * bonds - 0.1 * spins + weights.log
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, rtol=1e-14)
    log_sum = np.log(np.exp(logs).sum(axis=1))
    np.testing.assert_allclose(log_p, logs - log_sum[:, None], rtol=1e-12)
    found = 0.4 * total.bonds - 0.1 * total.spins + total.log
    np.testing.assert_allclose(found, log_sum, rtol=1e-13)


def test_ties_are_exact_however_cold():
    # 3 J = h: up to rounding, which here is 1e84.
    weights = Weights(np.array([3, 0, 1]), np.array([0, 1, 0]), np.log([1.0, 2, 7]))
    for scale in (1e3, 1e100):
        log_p, total = normalise(weights, (0.1 * scale, 0.1 * 3 * scale))
        np.testing.assert_allclose(np.exp(log_p), [1 / 3, 2 / 3, 0], atol=1e-12)
        assert total.log == pytest.approx(math.log(3))


def test_small_differences_of_large_energies_count():
    # 1e80 is lost beside 1e103, and the logs beside 1e80.
    weights = Weights(np.full(3, 1000), np.array([-1, 1, 1]), np.log([1.0, 1, 3]))
    log_p, _ = normalise(weights, (1e100, 1e80))
    np.testing.assert_allclose(np.exp(log_p), [0, 0.25, 0.75], rtol=1e-14)


def chances_and_weights(strip, word, betas):
    found, last = {}, closing_weights(strip, word)
    for t, _, (chances,), following in walk_back(strip, last, betas):
        found[t], last = chances.copy(), following
    return found, last


@pytest.mark.parametrize(
    "shape, periodic", [((4, 3), True), ((5, 2), True), ((4, 3), False)]
)
def test_weights_are_those_of_the_transfer_matrix(shape, periodic):
    betas = (-0.4, 0.3)
    strip = make_strip(shape, periodic)
    words = np.arange(1 << strip.width)
    spins = spins_of(words, strip.width).astype(float)
    single = layer_weights(strip, words)
    inside = np.exp(betas[0] * single.bonds + betas[1] * single.spins)
    between = np.exp(betas[0] * spins @ spins.T)
    for first in (0, 3):
        after = between[:, first] if periodic else np.ones(len(words))
        for _ in range(strip.n_layers - 1):
            after = between @ (inside * after)
        _, found = chances_and_weights(strip, first, betas)
        logs = betas[0] * found.bonds + betas[1] * found.spins + found.log
        np.testing.assert_allclose(logs, np.log(after), rtol=1e-12)


def test_blocks_of_layers_are_single_layers():
    strip, betas = make_strip((8, 3), True), (0.4, 0.1)
    expected, last = chances_and_weights(strip, 5, betas)
    seen, closing = [], closing_weights(strip, 5)
    for first, stop, block, following in walk_back(strip, closing, betas, 3):
        for t, chances in zip(range(stop - 1, first - 1, -1), block, strict=True):
            np.testing.assert_array_equal(chances, expected[t])
            seen.append(t)
        weights = following
    assert seen == list(range(7, 0, -1))
    for a, b in zip(weights, last, strict=True):
        np.testing.assert_array_equal(a, b)


def test_rare_chances_have_all_their_digits():
    strip = make_strip((2,), False)
    for field in (-30.0, 30.0):
        found, _ = chances_and_weights(strip, 0, (0.0, field))
        rare = math.exp(-60.0) / (1 + math.exp(-60.0))
        expected = rare if field < 0 else -rare
        np.testing.assert_allclose(found[1], expected, rtol=1e-13)
        down, up = kernels.both_chances(found[1][0, 0])
        assert min(down, up) == pytest.approx(rare, rel=1e-13)
        assert down + up == 1.0


def test_a_certain_spin_is_certain():
    strip = make_strip((2,), False)
    for field, up in ((-1e200, 0.0), (1e200, 1.0)):
        found, _ = chances_and_weights(strip, 0, (0.0, field))
        assert kernels.both_chances(found[1][0, 0])[1] == up


def random_layer(width, seed=0):
    rng = np.random.default_rng(seed)
    chances = rng.uniform(-0.5, 0.5, (width, 1 << width))
    return rng, chances


def direct_layer(chances):
    """Probability (old word, new word) of a layer from its chances."""
    width, n_words = chances.shape
    p = np.zeros((n_words, n_words))
    for old, new in itertools.product(range(n_words), repeat=2):
        product = 1.0
        for i in range(width):
            below = (1 << i) - 1
            word = (new & below) | (old & ~below)
            down, up = kernels.both_chances(chances[i, word])
            product *= up if (new >> i) & 1 else down
        p[old, new] = product
    return p


@pytest.mark.parametrize("width", [1, 2, 3])
def test_expectations_of_a_layer(width):
    rng, chances = random_layer(width)
    p = direct_layer(chances)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    values = rng.normal(size=(1 << width, 3))
    found = values.copy()
    kernels.expect_layer(chances, found, np.array([0.0, 1.0, 0.0]))
    expected = p @ values
    expected[:, 1] -= (p * np.log(p)).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_counts_and_moments_of_a_layer(width):
    rng, chances = random_layer(width, 1)
    n_words, n_rest = 1 << width, 4
    counted_up = rng.random(width) < 0.5
    counts = np.zeros((n_words, n_rest + width + 2))
    counts[:, 1 : n_rest + 2] = rng.dirichlet(np.ones(n_rest + 1), n_words)
    ups = ((spins_of(np.arange(n_words), width) > 0) == counted_up).sum(axis=1)
    shifted = np.array([np.roll(row, n) for row, n in zip(counts, ups, strict=True)])
    expected = direct_layer(chances) @ shifted
    found, spare = counts.copy(), np.zeros_like(counts)
    window = kernels.count_layer(chances, counted_up, found, spare, 0, n_rest + 1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert window == (0, n_rest + width + 1)
    powers = np.arange(5)
    M = 2.0 * np.arange(n_rest + 1) - n_rest
    moments = counts[:, 1 : n_rest + 2] @ M[:, None] ** powers
    kernels.moments_layer(chances, counted_up, moments)
    M = 2.0 * np.arange(n_rest + width + 1) - n_rest - width
    np.testing.assert_allclose(
        moments, expected[:, 1:] @ M[:, None] ** powers, atol=1e-11
    )


def test_window_of_counts_follows_what_weighs():
    # Nearly all spins point up: few of the numbers matter, others are set to zero.
    width, n_words = 2, 4
    chances = np.full((width, n_words), -1e-30)
    counts = np.zeros((n_words, 202))
    counts[:, 1], spare, window = 1.0, np.full((n_words, 202), np.nan), (0, 1)
    spare[:, 0] = 0.0
    for layer in range(100):
        window = kernels.count_layer(chances, np.ones(2, bool), counts, spare, *window)
        assert window[1] == 2 * layer + 3
    assert window[0] == 197  # three exceptions weigh 1e-90 each, four are nothing
    np.testing.assert_allclose(counts[:, 201], 1, rtol=1e-14)
    np.testing.assert_allclose(counts[:, 200], 200e-30, rtol=1e-12)
    np.testing.assert_allclose(counts[:, 198], math.comb(200, 3) * 1e-90, rtol=1e-12)


def copies(arguments):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


def kernel_arguments():
    """One call of every kernel that fills arrays."""
    width, n_words = 3, 8
    rng, chances = random_layer(width, 2)
    earlier = make_strip((4, 3), True).earlier
    weights = (
        rng.integers(-3, 4, n_words), rng.integers(-3, 4, n_words),
        rng.normal(size=n_words),
    )  # fmt: skip
    counts = np.zeros((n_words, 9))
    counts[:, 1] = 1.0
    counted = np.array([True, False, True])
    table = rng.uniform(-0.5, 0.5, (1, 3, width, n_words))
    elements = np.array([[0, 1, 2, 1], [1, 2, 0, -1]])
    draws = (
        np.uint64(5), 3, table, np.linspace(0.1, 1, n_words), np.zeros(n_words, int),
        np.arange(n_words), np.arange(n_words) % 2, elements, earlier,
        np.arange(12).reshape(4, 3), np.ones(12, np.int8), True,
        np.empty((20, 12), np.int8), np.empty((20, 3), int),
    )  # fmt: skip
    return {
        "layer_chances": (earlier, 0.4, -0.2, *weights, np.empty((2, 3, n_words))),
        "expect_layer": (chances, rng.normal(size=(n_words, 2)), np.array([1.0, 0.0])),
        "count_layer": (chances, counted, counts, counts * 0, 0, 1),
        "moments_layer": (chances, counted, rng.normal(size=(n_words, 5))),
        "draw_layers": draws,
    }


@pytest.mark.parametrize("name", list(kernel_arguments()))
def test_twin_does_the_same(name):
    ours, twins = copies(kernel_arguments()[name]), copies(kernel_arguments()[name])
    function = getattr(kernels, name)
    assert function(*ours) == function.py_func(*twins)
    for a, b in zip(ours, twins, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


def test_product_of_weights():
    a = Weights(np.array([1, 2]), np.array([0, 1]), np.array([0.5, 0.0]))
    for found, expected in zip(times(a, a), a, strict=True):
        np.testing.assert_array_equal(found, 2 * expected)
