"""Bonds and neighbours of a cubic lattice of one to three dimensions."""

import math
from typing import NamedTuple

import numpy as np

# Beyond, the tables of bonds and neighbours take several GiB.
_MOST_SITES = 2**26


class Lattice(NamedTuple):
    """Bonds (n_bonds, 2), neighbours (n_sites, 2 n_axes), signs (n_sites,).

    ``sides`` is 1 and the number of sites in a row and in a plane, ``wraps``
    (n_wraps, 2) the bonds that close periodic axes: the layout of the kernels.
    """

    bonds: np.ndarray
    neighbours: np.ndarray
    staggering: np.ndarray
    sides: tuple
    wraps: np.ndarray


def lattice(shape, periodic, coupling):
    """Return the :class:`Lattice` of a shape.

    Along an axis each site is bonded to the next one; if ``periodic`` the last one to
    the first, unless they are the same site. Bonds are in the order of their sites.
    A neighbour that is missing has the number n_sites.
    """
    n_sites = math.prod(shape)
    if n_sites > _MOST_SITES:
        raise ValueError(
            f"A lattice of shape={shape} has {n_sites:.2g} sites, whose bonds alone "
            f"take {n_sites * len(shape) * 24 / 2**30:.0f} GiB: at most {_MOST_SITES} "
            "sites are allowed."
        )
    sites = np.arange(n_sites, dtype=np.int32).reshape(shape)
    ahead, behind = [], []
    for axis in range(len(shape)):
        for step, table in ((1, ahead), (-1, behind)):
            other = np.roll(sites, -step, axis=axis)
            if not periodic or shape[axis] == 1:
                edge = -1 if step == 1 else 0
                np.moveaxis(other, axis, 0)[edge, ...] = n_sites
            table.append(other.ravel())
    ahead, behind = np.stack(ahead, axis=1), np.stack(behind, axis=1)
    first, axis = np.nonzero(ahead < n_sites)
    bonds = np.stack([first.astype(np.int32), ahead[first, axis]], axis=1)
    parity = np.indices(shape).sum(axis=0).ravel() % 2
    staggering = np.where((parity == 1) & (coupling < 0), -1, 1).astype(np.int8)
    sides = 1, shape[-1], math.prod(shape[-2:])
    wraps = bonds[bonds[:, 1] < bonds[:, 0]]
    return Lattice(bonds, np.hstack([ahead, behind]), staggering, sides, wraps)
