"""Independent, exact draws of Ising lattices narrow enough for a transfer matrix."""

import math
from typing import NamedTuple

import numpy as np

from skident._kernels.transfer import draw_layers
from skident._math.transfer import (
    Weights,
    closing_weights,
    count_classes,
    layer_symmetries,
    layer_weights,
    make_strip,
    normalise,
    signs_of,
    split_sides,
    symmetries,
    times,
    walk_back,
)

# Bytes of the table of chances beyond which a lattice is refused.
LARGEST = 2**28
# Entries of the table that one call of a kernel fills, some 0.1 s.
_SLICE = 1 << 21


class ExactDraws(NamedTuple):
    """Exact draws of one model; arrays as for the kernel ``draw_layers``.

    ``row_ns`` is the rough time of a draw in nanoseconds.
    """

    chances: np.ndarray
    cdf: np.ndarray
    orbit: np.ndarray
    frame: np.ndarray
    element: np.ndarray
    elements: np.ndarray
    earlier: np.ndarray
    sites: np.ndarray
    staggering: np.ndarray
    closed: bool
    coupling: float
    field: float
    row_ns: float

    def draw(self, key, start, stop):
        """Draw rows ``start:stop`` of the run of a key.

        Parameters
        ----------
        key : uint64
            Names the streams; row k draws from stream k.
        start, stop : int
            Which rows.

        Returns
        -------
        rows : int8 ndarray of shape (stop - start, n_sites)
            Spins -1 and 1, in C order of the sites.
        y : ndarray of shape (stop - start,)
            Magnetisation a site; staggered if the coupling is negative.
        energies : ndarray of shape (stop - start,)
            Total H.
        """
        n_sites = self.staggering.size
        rows = np.empty((stop - start, n_sites), np.int8)
        totals = np.empty((stop - start, 3), np.int64)
        draw_layers(np.uint64(key), start, *self[:10], rows, totals)
        bonds, spins, order = totals.T
        return rows, order / n_sites, -(self.coupling * bonds + self.field * spins)


def table_size(shape, periodic, field):
    """Return the bytes of the table that draws of a lattice need.

    It holds, for each first layer (one of each class under the symmetries of a layer,
    or a single one if open), a number for each site and each of the 2**w states of a
    layer of w sites.
    """
    n_layers, (_, cross) = max(shape), split_sides(shape)
    width = math.prod(cross)
    # A float: it may be astronomic.
    n_words, n_classes = 2.0 ** min(width, 999), 1
    if periodic and n_layers > 1 and 8 * n_words <= LARGEST:
        group = layer_symmetries(cross, closed=True, reversal=field == 0)
        n_classes = count_classes(group)
    return 8 * n_classes * (n_layers - 1) * width * n_words


def exact_draws(shape, beta, coupling, field, periodic):
    """Prepare exact draws of the Ising model.

    Layer after layer, and site after site in it, a spin is drawn given those before;
    the chances come from a transfer matrix that runs the other way. The first layer
    is drawn from its distribution function.

    Parameters
    ----------
    shape : tuple of 1 to 3 ints
        Sides of the lattice.
    beta : float
        1 / T.
    coupling, field : float
        J and h in H = -J sum_<ij> s_i s_j - h sum_i s_i.
    periodic : bool
        Whether the lattice closes on itself, as in ``make_ising``.

    Returns
    -------
    ExactDraws

    Raises
    ------
    ValueError
        If the table of chances, of :func:`table_size`, is beyond ``LARGEST``.

    References
    ----------
    .. [1] L. Onsager, Phys. Rev. 65, 117 (1944), for the transfer matrix.
    """
    size = table_size(shape, periodic, field)
    if size > LARGEST:
        n_layers = max(shape)
        raise ValueError(
            f'method="exact" needs a narrow lattice: shape={tuple(shape)}, '
            f"periodic={periodic}, {n_layers} layers of {math.prod(shape) // n_layers} "
            f"sites, takes a table of {size / 2**20:.3g} MiB, more than the "
            f"{LARGEST // 2**20} MiB allowed. Choose another method or shorter sides; "
            "the longest one matters least."
        )
    strip, betas = make_strip(shape, periodic), (beta * coupling, beta * field)
    classes = symmetries(strip, reversal=field == 0)
    starts = classes.words if strip.closed else classes.words[:1]
    chances = np.empty((len(starts), strip.n_layers - 1, strip.width, 1 << strip.width))
    following = [_fill(strip, word, betas, chances[k]) for k, word in enumerate(starts)]
    following = Weights(*map(np.array, zip(*following, strict=True)))
    at = (np.arange(len(starts)), starts) if strip.closed else 0
    weights = times(
        layer_weights(strip, classes.words), Weights(*(part[at] for part in following))
    )
    weights = weights._replace(log=weights.log + np.log(classes.sizes))
    p = np.exp(normalise(weights, betas)[0]) / classes.sizes
    cdf = np.cumsum(p[classes.orbit])
    return ExactDraws(
        chances=chances,
        cdf=cdf / cdf[-1],
        orbit=classes.orbit if strip.closed else np.zeros_like(classes.orbit),
        frame=classes.words[classes.orbit],
        element=classes.element,
        elements=classes.elements,
        earlier=strip.earlier,
        sites=strip.sites,
        staggering=signs_of(shape, coupling < 0),
        closed=strip.closed,
        coupling=float(coupling),
        field=float(field),
        row_ns=100.0 + 20.0 * strip.sites.size,
    )


def _fill(strip, word, betas, chances):
    """Fill the chances after a first layer; return what follows each first layer."""
    n_layers, following = strip.n_layers, closing_weights(strip, word)
    at_once = max(1, _SLICE // chances[:1].size) if n_layers > 1 else 1
    for first, last, block, weights in walk_back(strip, following, betas, at_once):
        chances[n_layers - last : n_layers - first] = block
        following = weights
    return following
