"""Exact sums over the states of a narrow Ising lattice, by transfer matrix."""

import math
from typing import NamedTuple

import numpy as np

from skident._kernels.transfer import (
    count_layer,
    expect_layer,
    moments_layer,
    shift_moments,
)
from skident._math.transfer import (
    Weights,
    closing_weights,
    count_classes,
    layer_symmetries,
    layer_weights,
    make_strip,
    neighbour_sums,
    normalise,
    signs_of,
    spins_of,
    split_sides,
    symmetries,
    times,
    walk_back,
)

# Layers in one step of the sums over neighbours times words: bounds the memory.
_BLOCK = 1 << 20
# Sites of a layer beyond which the cost is astronomic, symmetries or not.
_WIDEST = 24


class Sums(NamedTuple):
    r"""What the sums give; N sites, entropies in nats.

    ``log_z`` is (bonds, spins, log), ln Z = beta (J bonds + h spins) + log. ``moments``
    are <M>, <\|M\|>, <M^2> and <M^4> of the sum M of the spins times their signs; the
    second one is NaN where the distribution of M was not asked for.
    ``bond_sum`` is the mean of the sum of s_i s_j over bonds, ``n_bonds`` their number,
    ``spin_means`` (N,) the mean of each spin, ``conditional`` the sum over sites of the
    entropy of a spin given its neighbours. ``entropies`` are those of the first half
    of the layers, of the other half and of the whole.
    """

    log_z: Weights
    moments: np.ndarray
    bond_sum: float
    n_bonds: int
    spin_means: np.ndarray
    conditional: float
    entropies: np.ndarray


def transfer_cost(shape, periodic, staggered, reversal):
    """Return what :func:`transfer_sums` takes, roughly.

    Parameters
    ----------
    shape : tuple of int
        One to three sides.
    periodic : bool
        Whether the lattice closes on itself.
    staggered : bool
        Whether the signs of neighbours in the order parameter differ.
    reversal : bool
        Whether there is no field.

    Returns
    -------
    seconds : float
        All but the distribution of M, on one core.
    more : float
        Seconds for the distribution of M.
    size : float
        Bytes.
    """
    n_sites, (_, cross) = math.prod(shape), split_sides(shape)
    width, n_layers = math.prod(cross), max(shape)
    # A float: it may be astronomic.
    n_words, closed = 2.0 ** min(width, 999), periodic and n_layers > 1
    n_starts = n_words if closed else 1
    if closed and width <= _WIDEST:
        signs = signs_of(cross, staggered)
        group = layer_symmetries(cross, closed=True, reversal=reversal, signs=signs)
        n_starts = count_classes(group)
    steps = n_starts * n_sites * n_words
    size = 16 * n_words * n_sites + (0 if closed else 32 * n_words * n_sites)
    return 1e-7 * steps + 2e-5 * n_starts * n_layers, 5e-10 * steps * n_sites, size


def transfer_sums(shape, periodic, betas, *, staggered, distribution=True):
    """Sum over all states of an Ising lattice.

    Parameters
    ----------
    shape : tuple of int
        One to three sides.
    periodic : bool
        Whether the lattice closes on itself.
    betas : tuple of float
        J / T and h / T.
    staggered : bool
        Whether the signs of neighbours in the order parameter differ.
    distribution : bool
        Whether to find the distribution of M.

    Returns
    -------
    Sums
    """
    strip = make_strip(shape, periodic)
    signs = signs_of(shape, staggered)[strip.sites]
    solve = _closed_sums if strip.closed else _open_sums
    return solve(strip, betas, signs, distribution)


class _Rest(NamedTuple):
    """What follows the first layer, by its word.

    ``entropies`` (n_words, 3) is that of the first half of the layers, of the other
    half and of all; ``order`` (n_words, ...) the distribution, or the moments, of M
    without the first layer. ``kept`` has chances and weights, as of
    :func:`walk_back`, of layers 1, 2, ...
    """

    weights: Weights
    entropies: np.ndarray
    order: np.ndarray
    kept: list


def _rest(strip, weights, betas, signs, distribution, n_kept):
    n_words = 1 << strip.width
    halves = np.array(_halves(strip))
    entropies = np.zeros((n_words, 3))
    order = np.zeros((n_words, strip.sites.size + 2 if distribution else 5))
    order[:, 1 if distribution else 0] = 1.0
    spare, window, kept = np.zeros_like(order), (0, 1), []
    for t, _, (chances,), following in walk_back(strip, weights, betas):
        weights = following
        expect_layer(chances, entropies, (halves > t).astype(float))
        if distribution:
            window = count_layer(chances, signs[t] > 0, order, spare, *window)
        else:
            moments_layer(chances, signs[t] > 0, order)
        if t <= n_kept:
            kept.append((chances.copy(), Weights(*(part.copy() for part in following))))
    return _Rest(weights, entropies, order, kept[::-1])


def _order_moments(order, first, n_rest, distribution):
    """Moments of M, as in :class:`Sums`, from those of the rest and the first layer.

    Parameters
    ----------
    order : ndarray
        A row of ``_Rest.order``, or a mixture of such rows.
    first : int
        M of the first layer.
    n_rest : int
        Sites of the others.
    distribution : bool
        Whether the row is a distribution.
    """
    if not distribution:
        moments = np.empty(5)
        shift_moments(order, float(first), moments)
        return np.array([moments[1], np.nan, moments[2], moments[4]])
    M = 2.0 * np.arange(n_rest + 1) - n_rest + first
    return np.array([M, abs(M), M**2, M**4]) @ order[1 : n_rest + 2]


def _halves(strip):
    """Return the number of layers in the first half, in the other half, in all."""
    return strip.n_layers // 2, -(-strip.n_layers // 2), strip.n_layers


def _first_entropies(strip, entropy):
    """Share of the first layer in the three entropies."""
    return entropy * (np.array(_halves(strip)) > 0)


def _closed_sums(strip, betas, signs, distribution):
    """Sum over rings of layers, one by one for each class of first layers."""
    classes = symmetries(strip, reversal=betas[1] == 0, signs=signs[0])
    words, sizes = classes.words, classes.sizes
    single = layer_weights(strip, words)
    parts = [_ring(strip, word, betas, signs, distribution) for word in words]
    following, *parts = zip(*parts, strict=True)
    entropies, moments, aligned, conditional = map(np.array, parts)
    weights = times(single, Weights(*map(np.array, zip(*following, strict=True))))
    weights = weights._replace(log=weights.log + np.log(sizes))
    log_p, log_z = normalise(weights, betas)
    p = np.exp(log_p)
    moments[:, 0] *= 1 - 2 * _reversed_share(classes, signs[0])
    first = _first_entropies(strip, p @ (np.log(sizes) - log_p))
    n_layers, width = strip.n_layers, strip.width
    # One of a class stands for its reverse too where there is no field.
    mean = p @ single.spins / width if betas[1] != 0 else 0.0
    return Sums(
        log_z=log_z,
        moments=p @ moments,
        bond_sum=n_layers * (p @ (single.bonds + aligned)),
        n_bonds=n_layers * ((strip.neighbours >= 0).sum() // 2 + width),
        spin_means=np.full(strip.sites.size, mean),
        conditional=n_layers * (p @ conditional),
        entropies=first + p @ entropies,
    )


def _reversed_share(classes, signs):
    """Share of each class that has its order parameter of the other sign."""
    elements = classes.elements
    turned = elements[:, -1] * signs[0] * signs[elements[:, 0]] < 0
    turned = turned[classes.element].astype(float)
    return np.bincount(classes.orbit, turned) / classes.sizes


def _ring(strip, word, betas, signs, distribution):
    """Sum over all that follows one first layer, on a closed strip."""
    rest = _rest(strip, closing_weights(strip, word), betas, signs, distribution, 2)
    head, words = spins_of(word, strip.width), np.arange(1 << strip.width)
    pointing_up = (spins_of(words, strip.width) + 1) / 2
    if strip.n_layers == 2:
        after = [(head, 1.0)]
    else:
        up = _expect(rest.kept[1][0], pointing_up)
        after = [(1, up), (-1, 1 - up)]
    inner = neighbour_sums(strip, words)
    conditional = _spin_entropies(inner, [(head, 1.0)], after, betas)
    columns = np.column_stack([conditional.sum(axis=1), pointing_up])
    conditional, *up = _expect(rest.kept[0][0], columns)[word]
    aligned = head @ (2 * np.array(up) - 1)
    following = tuple(part[word] for part in rest.weights)
    first = (head * signs[0]).sum(dtype=np.int64)
    n_rest = strip.sites.size - strip.width
    moments = _order_moments(rest.order[word], first, n_rest, distribution)
    return following, rest.entropies[word].copy(), moments, aligned, conditional


def _expect(chances, values):
    """Mean of values (n_words, n_values) of a layer given the layer before."""
    values = np.array(values, float)
    expect_layer(chances, values, np.zeros(values.shape[1]))
    return values


def _spin_entropies(inner, before, after, betas):
    """Mean entropy of each spin of a layer given its neighbours.

    ``inner`` is the sum of its neighbours inside the layer; ``before`` and ``after``
    list the values of the neighbours in the other layers and their probabilities.
    """
    total = 0.0
    for old, p_old in before:
        for new, p_new in after:
            by_bonds = betas[0] * (inner + old + new)
            logit = by_bonds + betas[1]
            tied = np.abs(logit) <= 1e-15 * (np.abs(by_bonds) + abs(betas[1]))
            x = 2 * np.abs(np.where(tied, 0.0, logit))
            rare = np.exp(-x)
            total = total + p_old * p_new * (np.log1p(rare) + x * rare / (1 + rare))
    return total


def _open_sums(strip, betas, signs, distribution):
    """Sum over chains of layers, all first layers at once."""
    n_layers, width = strip.n_layers, strip.width
    words = np.arange(1 << width)
    nothing = closing_weights(strip, 0)
    rest = _rest(strip, nothing, betas, signs, distribution, n_layers)
    single = layer_weights(strip, words)
    log_p, log_z = normalise(times(single, rest.weights), betas)
    p = np.exp(log_p)
    following = [*(weights for _, weights in rest.kept), nothing]
    following = Weights(*map(np.array, zip(*following, strict=True)))
    preceding = Weights(*(part[::-1] for part in following))
    p_layers = np.exp(normalise(times(single, following, preceding), betas)[0])
    spins = spins_of(words, width).astype(float)
    up = np.array([_expect(chances, (spins + 1) / 2) for chances, _ in rest.kept])
    bond_sum = (p_layers @ single.bonds).sum()
    if n_layers > 1:
        bond_sum += np.einsum("tx,xi,txi->", p_layers[:-1], spins, 2 * up - 1)
    first = _first_entropies(strip, -(p @ log_p))
    n_rest = strip.sites.size - width
    of_first = (spins @ signs[0]).astype(np.int64)
    moments = sum(
        _order_moments(p[same] @ rest.order[same], n, n_rest, distribution)
        for n in range(-width, width + 1, 2)
        for same in [of_first == n]
    )
    return Sums(
        log_z=log_z,
        moments=moments,
        bond_sum=bond_sum,
        n_bonds=n_layers * (strip.neighbours >= 0).sum() // 2 + width * (n_layers - 1),
        spin_means=_in_c_order(p_layers @ spins, strip),
        conditional=_open_conditional(strip, p_layers, up, betas),
        entropies=first + p @ rest.entropies,
    )


def _in_c_order(values, strip):
    out = np.empty(values.size)
    out[strip.sites] = values
    return out


def _open_conditional(strip, p_layers, up, betas):
    """Sum over sites of the entropy of a spin given its neighbours, on an open strip.

    Given its layer a spin's neighbours before and behind are independent; the chain
    read backwards is the same.
    """
    inner = neighbour_sums(strip, np.arange(1 << strip.width))
    last = strip.n_layers - 1
    alone = [(0, 1.0)]

    def of_layers(layers, before, after):
        entropies = _spin_entropies(inner, before, after, betas)
        return (p_layers[layers] * entropies.sum(axis=-1)).sum()

    if last == 0:
        return of_layers([0], alone, alone)
    ends = [(1, up[0]), (-1, 1 - up[0])]
    total = 2 * of_layers([0], alone, ends)
    size = max(1, _BLOCK // inner.size)
    for first in range(1, last, size):
        layers = np.arange(first, min(first + size, last))
        before, after = up[last - layers], up[layers]
        total += of_layers(
            layers, [(1, before), (-1, 1 - before)], [(1, after), (-1, 1 - after)]
        )
    return total
