"""The consensus of several representations of the same rows, by rigid maps."""

from typing import NamedTuple

import numpy as np

from skident._math.motion import EPS, pad_columns
from skident._math.paired_rows import blocks
from skident._math.procrustes import orthogonal_factor

# Largest entry of a rotation that may still change: far below what rows determine.
_TOL, _MOST_ROUNDS = 1e-9, 1000


class Consensus(NamedTuple):
    """Rigid maps of several sides onto their mean.

    Attributes
    ----------
    rotations : list of ndarray of shape (n_columns, width)
        Of each side, with orthonormal rows; that of the reference is the identity.
    centres : list of ndarray of shape (n_columns,)
        Mean of each side.
    target : ndarray of shape (width,)
        Mean of the reference, which is that of the consensus.
    converged : bool
        Whether the last round changed next to nothing.
    """

    rotations: list
    centres: list
    target: np.ndarray
    converged: bool

    def apply(self, arrays):
        """Return the mean of the mapped rows, float64."""
        total = 0.0
        for Z, R, centre in zip(arrays, self.rotations, self.centres, strict=True):
            total = total + (np.asarray(Z, dtype=np.float64) - centre) @ R
        return total / len(self.rotations) + self.target


def generalized_procrustes(sides, reference):
    r"""Turn representations until they agree as well as they can.

    Maximises :math:`\sum_{r < s} \mathrm{tr}\, R_r' X_r' X_s R_s` over matrices with
    orthonormal rows by turning one side after the other onto the sum of the others
    (ten Berge, Psychometrika 42, 267, 1977): no round lowers it. What is turned are
    cross products, so that rows are read once.

    Parameters
    ----------
    sides : list of Rows
        Representations of the same rows. Narrower ones are padded with zeros.
    reference : int
        Side whose axes and mean the consensus has.

    Returns
    -------
    Consensus
    """
    widths = [side.shape[1] for side in sides]
    width, edges = max(widths), np.cumsum([0, *widths])
    unit = max(side.unit for side in sides)
    products = _products(sides, edges, unit)
    centres = [side.centre * side.unit for side in sides]

    def cross(r, s):
        return products[edges[r] : edges[r + 1], edges[s] : edges[s + 1]]

    noise = EPS * len(sides[0].array) ** 0.5 * np.trace(products)
    rotations = []
    for r, columns in enumerate(widths):
        start = pad_columns(cross(r, reference), width)
        rotations.append(_turn(start, min(columns, widths[reference]), noise))
    rotations[reference] = np.eye(widths[reference], width)
    for _ in range(_MOST_ROUNDS):
        change = 0.0
        for r, columns in enumerate(widths):
            onto = sum(
                (cross(r, s) @ rotations[s] for s in range(len(sides)) if s != r),
                np.zeros((columns, width)),
            )
            turn = _turn(onto, columns, noise)
            change = max(change, np.abs(turn - rotations[r]).max())
            rotations[r] = turn
        if change <= _TOL:
            break
    back = _turn(rotations[reference].T @ np.eye(widths[reference], width), width, 0.0)
    return Consensus(
        [R @ back for R in rotations],
        centres,
        pad_columns(centres[reference][None], width)[0],
        bool(change <= _TOL),
    )


def _turn(cross, real, noise):
    return orthogonal_factor(cross, real, noise)[0]


def _products(sides, edges, unit):
    """Return the products of all centred columns with each other, in one unit."""
    n, total = sides[0].shape[0], edges[-1]
    products = np.zeros((total, total))
    for rows in blocks(n, total):
        block = np.concatenate(
            [side.take(rows, np.float64) * (side.unit / unit) for side in sides], axis=1
        )
        products += block.T @ block
    return products
