"""Turns in planes of two sources: off saddles, and to better optima across them."""

import math
from typing import NamedTuple

import numpy as np

from skident._math.moments import Contrast, half_curvatures
from skident._math.rows import row_blocks, sample

# Rows a source from which the sources may be told from single rows.
LEAST_ROWS = 10
_FLAT = 0.1
_ANGLES = np.radians([22.5, 45.0, 67.5])
# A plane whose gain is below this part of the mean objective of a source is left.
_GAIN = 0.02
# Squared correlation.
_COUPLED = 0.04
# What the search by objective looks at: planes, rows, and their product.
_MOST_PLANES = 2**10
_MOST_ROWS = 10_000
_MOST_VALUES = 2**21


class Survey(NamedTuple):
    """How the sources of a stationary point depend on each other in pairs.

    Attributes
    ----------
    half : ndarray of shape (n_components, n_components)
        See :func:`half_curvatures`.
    square : ndarray of shape (n_components, n_components)
        Squared correlation of ``G''(y_i)`` and ``y_j^2``, 0 on the diagonal.
    n_rows : float
        Number of rows, or as many times the smallest weight as all weights.
    """

    half: np.ndarray
    square: np.ndarray
    n_rows: float

    @property
    def dependent(self):
        """Return whether some correlation is too large for independent sources.

        Of ``m`` standard normal numbers the largest exceeds ``sqrt(2 ln m) + 1`` once
        in some twenty cases. With less than ten rows a source it says nothing.
        """
        k = len(self.half)
        level = 1 + math.sqrt(2 * math.log(max(1, k * (k - 1))))
        enough = self.n_rows >= LEAST_ROWS * k
        return bool(enough and self.n_rows * self.square.max() > level**2)

    @property
    def coupled(self):
        """Return whether some correlation is too large for nearly independent sources.

        Two sources turned by 45 degrees have one of a half and more.
        """
        return bool(self.dependent and self.square.max() > _COUPLED)

    def decouple(self, rotation):
        """Turn the planes of coupled sources by 45 degrees."""
        square = np.maximum(self.square, self.square.T)
        return _turned(rotation, square - _COUPLED, _half_right(square))


def survey(rows, point, problem):
    """Return the :class:`Survey` of a stationary point."""
    half, square = half_curvatures(rows, point.rotation, problem.contrast, point.state)
    np.fill_diagonal(square, 0.0)
    return Survey(half, square, rows.n_repeats)


def escapes(rows, point, problem, seen, noise):
    """Yield rotations from which a descent may end at a better point.

    By objective, only if sources are dependent: planes are turned by the angle at
    which they have more of it. By curvature: planes that hold no minimum are turned by
    45 degrees. It is negative at a saddle, and vanishes where the two sources have
    opposite signs and undo each other: a mixture of two light tails that looks like a
    light and a heavy one.

    Parameters
    ----------
    rows : Rows
        White rows, stored.
    point : Point
        Stationary on them.
    problem : Problem
        Contrast and objective.
    seen : Survey
        Of that point.
    noise : float
        Curvature that may be zero.
    """
    if seen.dependent:
        gain, angle = _gains(rows, point, problem, seen.square)
        if gain.max() > 0:
            yield _turned(point.rotation, gain, angle)
    curvature = np.triu(seen.half + seen.half.T, 1)
    size = np.triu(np.abs(seen.half) + np.abs(seen.half.T), 1)
    level = np.where(size > 4 * noise, np.maximum(_FLAT * size, -noise), -noise)
    if (level > curvature).any():
        yield _turned(point.rotation, level - curvature, _half_right(size))


def _half_right(like):
    return np.full(like.shape, 0.25 * np.pi)


def _turned(rotation, gain, angle):
    """Turn planes i < j of positive gain, largest first, no source twice."""
    turn, used = np.eye(len(gain)), set()
    order = np.argsort(-gain, axis=None, kind="stable")
    for i, j in zip(*np.unravel_index(order, gain.shape), strict=True):
        if gain[i, j] <= 0:
            break
        if i < j and not used & {i, j}:
            used |= {i, j}
            c, s = np.cos(angle[i, j]), np.sin(angle[i, j])
            turn[np.ix_([i, j], [i, j])] = [[c, s], [-s, c]]
    return turn @ rotation


def _gains(rows, point, problem, square):
    """Return what turning each plane i < j adds to the objective, and the angle."""
    k = len(point.rotation)
    planes = np.flatnonzero(np.triu(np.ones((k, k)), 1))
    if len(planes) > _MOST_PLANES:
        larger = np.triu(np.maximum(square, square.T), 1)
        planes = np.argsort(-larger, axis=None, kind="stable")[:_MOST_PLANES]
    i, j = np.unravel_index(planes, (k, k))
    pair = Contrast(problem.contrast.name, problem.contrast.light[np.r_[i, j]])
    size = min(rows.n_rows, _MOST_ROWS, _MOST_VALUES // len(i))
    part = sample(rows, size, np.float32)
    Z, weights = part.source[0], part.weights
    matrix = point.rotation.T.astype(Z.dtype)
    angles = np.array([0.0, *_ANGLES], Z.dtype)
    values = np.zeros((len(angles), 2, len(i)))
    for cut in row_blocks(np.broadcast_to(Z[:, :1], (len(Z), 2 * len(i)))):
        Y = Z[cut] @ matrix
        a, b = Y[:, i], Y[:, j]
        share = None if weights is None else weights[cut, None].astype(Z.dtype)
        for n, (c, s) in enumerate(zip(np.cos(angles), np.sin(angles), strict=True)):
            turned = np.hstack([c * a + s * b, c * b - s * a])
            values[n] += pair.slopes(turned, share)[2].reshape(2, -1)
    total = len(Z) if weights is None else weights.sum()
    objective = np.abs(values / total - problem.gaussian[[i, j]]).sum(axis=1)
    more = objective[1:] - objective[0]
    gain, angle = np.zeros((2, k, k))
    gain[i, j] = more.max(axis=0) - _GAIN / k * problem.objective(point.state)
    angle[i, j] = _ANGLES[np.argmax(more, axis=0)]
    return gain, angle
