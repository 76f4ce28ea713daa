"""Ising lattices as Markov chains of layers: geometry, symmetries, weights, chances.

The layers lie across the longest side; see :mod:`skident._kernels.transfer` for words
and weights. Where the lattice closes on itself everything depends on the first layer
too, and the symmetries of a layer spare most of the first layers.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from skident._kernels.transfer import layer_chances


class Strip(NamedTuple):
    """A lattice of ``n_layers`` layers of ``width`` sites.

    ``sites`` (n_layers, width) are their numbers in C order; ``earlier`` (width,
    n_earlier) the bonds inside a layer, to sites before; ``neighbours`` (width,
    n_neighbours) those to all sites of the layer. Bonds that are double are named
    twice, and -1 stands for none. ``closed`` says whether the last layer is bonded to
    the first, ``cross`` holds the sides of a layer, ``periodic`` whether these close.
    """

    n_layers: int
    width: int
    sites: np.ndarray
    earlier: np.ndarray
    neighbours: np.ndarray
    closed: bool
    cross: tuple
    periodic: bool


class Symmetries(NamedTuple):
    """Classes of words that symmetries of a layer carry into each other.

    ``elements`` (n_elements, width + 1): site i goes to site ``elements[g, i]``, all
    spins are multiplied by the last column. ``words`` (n_orbits,) is one word of each
    class, ``orbit`` (2**width,) the class of a word and ``element`` the symmetry that
    makes it of the word of its class. ``sizes`` (n_orbits,) counts the words.
    """

    elements: np.ndarray
    words: np.ndarray
    orbit: np.ndarray
    element: np.ndarray
    sizes: np.ndarray


class Weights(NamedTuple):
    """exp(beta (J bonds + h spins) + log), one each; J and h over T beside them."""

    bonds: np.ndarray
    spins: np.ndarray
    log: np.ndarray


def make_strip(shape, periodic):
    """Return the :class:`Strip` of a lattice, cut across its (first) longest side.

    Along an axis each site is bonded to the next one; if ``periodic`` the last one to
    the first, unless they are the same site.
    """
    axis, cross = split_sides(shape)
    n_layers = shape[axis]
    sites = np.moveaxis(np.arange(math.prod(shape)).reshape(shape), axis, 0)
    sites = sites.reshape(n_layers, -1)
    bonds = _layer_bonds(cross, periodic)
    width = sites.shape[1]
    earlier = _table(width, [(max(b), min(b)) for b in bonds])
    neighbours = _table(width, [pair for i, j in bonds for pair in ((i, j), (j, i))])
    closed = bool(periodic) and n_layers > 1
    return Strip(
        n_layers, width, sites, earlier, neighbours, closed, cross, bool(periodic)
    )


def split_sides(shape):
    """Return the axis of the (first) longest side, and the other sides."""
    axis = int(np.argmax(shape))
    return axis, (*shape[:axis], *shape[axis + 1 :]) or (1,)


def signs_of(shape, staggered):
    """Return the sign of each site, (-1)^(sum of its coordinates) if staggered."""
    parity = sum(np.ogrid[tuple(map(slice, shape))]) % 2
    return (1 - 2 * np.int8(staggered) * parity.astype(np.int8)).ravel()


def _layer_bonds(cross, periodic):
    """All bonds (i, j) of a layer."""
    sites = np.arange(math.prod(cross)).reshape(cross)
    bonds = []
    for axis, side in enumerate(cross):
        ahead = np.roll(sites, -1, axis=axis)
        last = side if periodic and side > 1 else side - 1
        here, there = (np.moveaxis(a, axis, 0)[:last].ravel() for a in (sites, ahead))
        bonds += list(zip(here.tolist(), there.tolist(), strict=True))
    return bonds


def _table(width, pairs):
    rows = [[j for i, j in pairs if i == site] for site in range(width)]
    longest = max(1, *map(len, rows))
    return np.array([row + [-1] * (longest - len(row)) for row in rows], np.int64)


def spins_of(words, width):
    """Spins -1 and 1, shape (n_words, width), of words."""
    words = np.asarray(words, np.int64)
    return (2 * ((words[..., None] >> np.arange(width)) & 1) - 1).astype(np.int8)


def neighbour_sums(strip, words):
    """Sum of the neighbours inside the layer, shape (n_words, width)."""
    spins = np.pad(spins_of(words, strip.width), [(0, 0), (0, 1)])
    return spins[:, strip.neighbours].sum(axis=2, dtype=np.int64)


def layer_weights(strip, words):
    """Weights of single layers: their bonds and their spins."""
    spins = spins_of(words, strip.width).astype(np.int64)
    bonds = (spins * neighbour_sums(strip, words)).sum(axis=1) // 2
    return Weights(bonds, spins.sum(axis=1), np.zeros(len(spins)))


def closing_weights(strip, word):
    """Weights of the bonds from the last layer, by its word, to a first layer."""
    n_words = 1 << strip.width
    bonds = np.zeros(n_words, np.int64)
    if strip.closed:
        spins = spins_of(np.arange(n_words), strip.width).astype(np.int64)
        bonds = spins @ spins_of(word, strip.width)
    return Weights(bonds, np.zeros(n_words, np.int64), np.zeros(n_words))


def times(*weights):
    """Product of weights."""
    return Weights(*(sum(parts) for parts in zip(*weights, strict=True)))


def _log_over(weights, reference, betas):
    """Log of weights over the one at ``reference`` along the last axis."""
    at = np.expand_dims(reference, -1)
    bonds, spins, log = (part - np.take_along_axis(part, at, -1) for part in weights)
    by_bonds, by_spins = betas[0] * bonds, betas[1] * spins
    total = by_bonds + by_spins
    # Energies that differ by rounding alone are equal.
    tied = np.abs(total) <= 1e-15 * (np.abs(by_bonds) + np.abs(by_spins))
    return np.where(tied, 0.0, total) + log


def normalise(weights, betas):
    """Turn weights into probabilities, along the last axis.

    Parameters
    ----------
    weights : Weights of arrays of shape (..., n)
    betas : tuple of float
        J / T and h / T.

    Returns
    -------
    log_p : ndarray of shape (..., n)
        Log of the probabilities.
    total : Weights of arrays of shape (...)
        Sum of the weights.
    """
    # The largest but for rounding, then by the exact differences from that one.
    reference = (betas[0] * weights.bonds + betas[1] * weights.spins).argmax(axis=-1)
    reference = _log_over(weights, reference, betas).argmax(axis=-1)
    log_p = _log_over(weights, reference, betas)
    log_sum = logsumexp(log_p, axis=-1)
    at = np.expand_dims(reference, -1)
    largest = (np.take_along_axis(part, at, -1)[..., 0] for part in weights)
    bonds, spins, log = largest
    return log_p - log_sum[..., None], Weights(bonds, spins, log + log_sum)


def symmetries(strip, *, reversal, signs=None):
    """Find the classes of first layers after which the rest is the same but for names.

    Parameters
    ----------
    strip : Strip
        Where it is not closed no two words are of one class.
    reversal : bool
        Whether reversing all spins is a symmetry (there is no field).
    signs : ndarray of shape (width,), optional
        If given, only symmetries that keep them, or reverse all of them, are used.

    Returns
    -------
    Symmetries
    """
    elements = layer_symmetries(
        strip.cross, closed=strip.closed, reversal=reversal, signs=signs
    )
    words = np.arange(1 << strip.width)
    smallest = words.copy()
    for element in elements:
        np.minimum(smallest, _images(words, element), out=smallest)
    words, orbit, sizes = np.unique(smallest, return_inverse=True, return_counts=True)
    made_by = np.empty(len(smallest), np.int64)
    for g, element in enumerate(elements):
        made_by[_images(words, element)] = g
    return Symmetries(elements, words, orbit.ravel(), made_by, sizes)


def layer_symmetries(cross, *, closed, reversal, signs=None):
    """Return ``Symmetries.elements`` for a layer of sides ``cross``."""
    if not closed:
        return np.array([[*range(math.prod(cross)), 1]], np.int64)
    perms = _permutations(cross)
    if signs is not None:
        perms = [p for p in perms if abs((signs[p] * signs).sum()) == len(p)]
    reversals = (1, -1) if reversal else (1,)
    return np.array([[*p, s] for p in perms for s in reversals], np.int64)


def count_classes(elements):
    """Count the classes of words under symmetries, without listing them (Burnside)."""
    fixed = 0
    for *perm, sign in elements.tolist():
        lengths = _cycle_lengths(perm)
        # A word that is its own reverse alternates along every cycle.
        if sign > 0 or all(n % 2 == 0 for n in lengths):
            fixed += 1 << len(lengths)
    return fixed // len(elements)


def _cycle_lengths(perm):
    seen, lengths = set(), []
    for start in range(len(perm)):
        length, site = 0, start
        while site not in seen:
            seen.add(site)
            length, site = length + 1, perm[site]
        if length:
            lengths.append(length)
    return lengths


def _permutations(cross):
    """Shifts and reflections of a layer that closes on itself along every axis."""
    sites = np.arange(math.prod(cross)).reshape(cross)
    axes = range(len(cross))
    perms = set()
    for shifts in itertools.product(*map(range, cross)):
        shifted = np.roll(sites, shifts, axes)
        for n in range(len(cross) + 1):
            for flipped in itertools.combinations(axes, n):
                perms.add(tuple(np.flip(shifted, flipped).ravel().tolist()))
    return [np.array(p) for p in sorted(perms)]


def _images(words, element):
    """Words after a symmetry."""
    out = np.zeros_like(words)
    for i, to in enumerate(element[:-1]):
        out |= ((words >> i) & 1) << to
    return out if element[-1] > 0 else out ^ ((1 << (len(element) - 1)) - 1)


def walk_back(strip, weights, betas, n_layers=1):
    """Go back from the last layer to the first, some layers at a time.

    Parameters
    ----------
    strip : Strip
    weights : Weights of arrays of shape (2**width,)
        What follows the last layer, by its word.
    betas : tuple of float
        J / T and h / T.
    n_layers : int
        How many layers at a time.

    Yields
    ------
    first, last : int
        Layers ``first:last``.
    chances : ndarray of shape (last - first, width, 2**width)
        As :func:`skident._kernels.transfer.layer_chances` gives them, the last layer
        first. Overwritten later.
    weights : Weights
        What follows the layer before ``first``, by its word. Overwritten later.
    """
    weights = Weights(*(part.copy() for part in weights))
    block = np.empty((n_layers, strip.width, 1 << strip.width))
    for last in range(strip.n_layers, 1, -n_layers):
        first = max(1, last - n_layers)
        chances = block[: last - first]
        layer_chances(strip.earlier, *betas, *weights, chances)
        yield first, last, chances, weights
