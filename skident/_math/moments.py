"""Sums over white rows: a contrast and its derivatives, and other moments."""

from typing import NamedTuple

import numpy as np

from skident._math import contrasts
from skident._math.rows import (
    COMPILED_ENTRIES,
    block_rows,
    lanes,
    pieces,
    row_blocks,
    standardised,
)

_CURVATURE_FLOOR = 1e-2


class Moments(NamedTuple):
    """What one pass over the rows gives.

    Attributes
    ----------
    signs : ndarray of shape (n_components,)
        +1 where the contrast is to be made small, -1 where large.
    values, curvatures : ndarray of shape (n_components,)
        Means of the contrast and of its second derivative.
    slopes : ndarray of shape (n_components, n_components)
        ``E[G'(y_i) y_j]``.
    gap : ndarray of shape (n_components,)
        ``E[G''(y)] - E[G'(y) y]``, 0 for a Gaussian.
    noise : float
        Rounding of ``loss``.
    """

    signs: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    curvatures: np.ndarray
    gap: np.ndarray
    noise: float

    @property
    def loss(self):
        return float(self.signs @ self.values)

    @property
    def gradient(self):
        signed = self.signs[:, None] * self.slopes
        return signed - signed.T

    @property
    def hessian(self):
        bend = np.abs(self.gap)
        return np.maximum(bend[:, None] + bend, _CURVATURE_FLOOR)

    @property
    def criterion(self):
        return float(np.abs(self.gradient).max())

    @property
    def angle(self):
        """Return the largest angle of a Newton step."""
        return float(np.abs(self.gradient / self.hessian).max())

    def natural_signs(self):
        """Return the signs that make the curvature positive for independent sources."""
        return np.where(self.gap >= 0, 1.0, -1.0)


class Contrast(NamedTuple):
    """A contrast as the passes need it.

    Attributes
    ----------
    name : str or callable
        Key of ``contrasts.CONTRASTS``, or a function like those there.
    light : ndarray of bool of shape (n_components,)
        Sources whose contrast is y^4/12 instead.
    """

    name: object
    light: np.ndarray

    def slopes(self, Y, weights):
        """Return slopes of a block of sources, and sums of bends and values.

        ``weights`` are None or of shape (n_rows, 1); slopes are times the weights.
        """
        if weights is None and isinstance(self.name, str):
            if Y.size >= COMPILED_ENTRIES:
                parts = self._compiled(Y)
                return self._of_light(Y, None, *parts)
        value, slope, bend = contrasts.elementwise(self.name)(Y)
        if weights is not None:
            value, slope, bend = value * weights, slope * weights, bend * weights
        slope = np.asarray(slope, dtype=Y.dtype)
        return self._of_light(Y, weights, slope, bend.sum(axis=0), value.sum(axis=0))

    def bends(self, Y):
        """Return the second derivative at every entry of a block of sources."""
        bend = contrasts.second_derivative(self.name, Y)
        if self.light.any():
            bend[:, self.light] = contrasts.light_cube(Y[:, self.light])[2]
        return bend

    def _compiled(self, Y):
        function, constant = contrasts.compiled(self.name)
        n, k = Y.shape
        side = lanes(k, n)
        slope = np.empty_like(Y)
        total = np.zeros((2, side * k), Y.dtype)
        wide = (n // side, side * k)
        function(Y.reshape(wide), slope.reshape(wide), *total)
        bend, value = total.reshape(2, side, k).sum(axis=1)
        return slope, bend, value + n * constant

    def _of_light(self, Y, weights, slope, bend, value):
        if self.light.any():
            parts = contrasts.light_cube(Y[:, self.light])
            if weights is not None:
                parts = [part * weights for part in parts]
            value[self.light], bend[self.light] = (parts[k].sum(axis=0) for k in (0, 2))
            slope[:, self.light] = parts[1]
        return slope, bend, value


def sources(rows, rotation, dtype, use):
    """Yield ``use(Y, weights)`` for blocks of sources ``rotation @ white row``.

    ``weights`` is None or of shape (n_block_rows, 1). What a task gives is added up.
    """
    matrix = np.ascontiguousarray((rotation @ rows.matrix).T, dtype=dtype)
    plain = rows.is_stored and rows.source[0].dtype == dtype
    if plain and rows.weights is None and rows.n_rows <= block_rows(rows.n_components):
        parts = use(rows.source[0] @ matrix, None)
        return [np.asarray(part, np.float64) / rows.n_rows for part in parts]

    def task(piece, start):
        total = None
        for cut in row_blocks(piece):
            block = piece[cut]
            if not plain:
                block = np.empty(block.shape, dtype)
                standardised(piece[cut], rows.mean, rows.inverse, block)
            weights = rows.weights
            if weights is not None:
                weights = weights[start + cut.start : start + cut.stop, None]
                weights = weights.astype(dtype, copy=False)
            parts = use(block @ matrix, weights)
            total = parts if total is None else add(total, parts)
        return total

    total = None
    for parts in pieces(rows.source, rows.run, task):
        parts = [np.asarray(part, dtype=np.float64) for part in parts]
        total = parts if total is None else add(total, parts)
    return [part / rows.n_rows for part in total]


def add(total, parts):
    """Return sums of two sequences entry by entry."""
    return [one + other for one, other in zip(total, parts, strict=True)]


def moments(rows, rotation, contrast, signs=None, dtype=np.float64):
    """Sum a contrast and its derivatives over the rows.

    Parameters
    ----------
    rows : Rows
        White rows.
    rotation : ndarray of shape (n_components, n_components)
        Orthogonal.
    contrast : Contrast
        Which.
    signs : ndarray of shape (n_components,), optional
        Default: :meth:`Moments.natural_signs`.
    dtype : {float64, float32}
        Precision of a block; blocks are added in float64.

    Returns
    -------
    Moments
    """

    def use(Y, weights):
        slope, bend, value = contrast.slopes(Y, weights)
        return slope.T @ Y, bend, value

    slopes, curvatures, values = sources(rows, rotation, dtype, use)
    rounding = 1e-13 if dtype == np.float64 else 1e-6
    noise = rounding * float(np.abs(values).sum())
    gap = curvatures - np.diag(slopes)
    state = Moments(signs, values, slopes, curvatures, gap, noise)
    return state._replace(signs=state.natural_signs()) if signs is None else state


def half_curvatures(rows, rotation, contrast, state):
    """Return how two sources depend on each other by the bend of the contrast.

    Parameters
    ----------
    rows : Rows
        White rows.
    rotation : ndarray of shape (n_components, n_components)
        Orthogonal, at a stationary point.
    contrast : Contrast
        Which.
    state : Moments
        At that point.

    Returns
    -------
    half : ndarray of shape (n_components, n_components)
        What source i adds to the curvature of the loss in the plane of i and j,
        ``s_i (E[G''(y_i) y_j^2] - E[G'(y_i) y_i])``; plus its transpose it is the
        second derivative by the angle.
    dependence : ndarray of shape (n_components, n_components)
        Square of the correlation of ``G''(y_i)`` and ``y_j^2``; 0 where one of them
        hardly varies, by a tenth of its root mean square.
    """

    def use(Y, weights):
        bend = contrast.bends(Y)
        square = np.multiply(Y, Y, out=Y)
        share = bend if weights is None else bend * weights
        part = square if weights is None else square * weights
        fourth = np.einsum("ij,ij->j", part, square)
        return share.T @ square, np.einsum("ij,ij->j", share, bend), fourth

    dtype = rows.source[0].dtype if rows.is_stored else np.float32
    mixed, bends, fourth = sources(rows, rotation, dtype, use)
    half = state.signs[:, None] * (mixed - state.slopes.diagonal()[:, None])
    mean = state.curvatures[:, None]
    bent, spread = bends - state.curvatures**2, fourth - 1.0
    # What is left of a source of two values is the error of its direction.
    bent[bent <= 0.01 * bends] = spread[spread <= 0.01 * fourth] = np.inf
    return half, (mixed - mean) ** 2 / (bent[:, None] * spread)


def tilted_covariance(rows, tilt):
    """Return E[t(z) z z'] of white rows z.

    Parameters
    ----------
    rows : Rows
        White rows.
    tilt : callable
        t: an array of shape (n_rows, n_components) to one of shape (n_rows,).

    Returns
    -------
    ndarray of shape (n_components, n_components)
    """

    def use(Z, weights):
        share = tilt(Z)[:, None]
        return ((Z * (share if weights is None else share * weights)).T @ Z,)

    return sources(rows, np.eye(rows.n_components), np.float64, use)[0]


def skewness(rows, rotation):
    """Return E[y^3] of every source."""

    def use(Y, weights):
        square = Y * Y
        return (
            np.einsum("ij,ij->j", square if weights is None else square * weights, Y),
        )

    return sources(rows, rotation, np.float64, use)[0]
