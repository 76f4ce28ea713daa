"""Contrasts of independent component analysis, and densities of sources.

A contrast takes an array of sources and returns three arrays of its shape: the
contrast itself, its first and its second derivative at every entry.
"""

import functools
from typing import NamedTuple

import numpy as np


def logcosh(Y):
    """Contrast ln cosh(y): robust, for all but very heavy or very light tails."""
    size, slope = np.abs(Y), np.tanh(Y)
    value = size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)
    return value, slope, 1.0 - slope * slope


def exp(Y):
    """Contrast -exp(-y^2/2): for very heavy tails."""
    square = Y * Y
    bell = np.exp(-0.5 * square)
    return -bell, Y * bell, bell - square * bell


def cube(Y):
    """Contrast y^4/4 (kurtosis): for light tails; sensitive to outliers."""
    square = Y * Y
    return 0.25 * square * square, square * Y, 3.0 * square


def light_cube(Y):
    """Contrast y^4/12, which "adaptive" has for sources of light tails."""
    value, slope, bend = cube(Y)
    return value / 3.0, slope / 3.0, bend / 3.0


CONTRASTS = {"logcosh": logcosh, "exp": exp, "cube": cube, "adaptive": logcosh}
# Name of the compiled pass of a contrast, and what the pass adds to its value.
_COMPILED = {
    "logcosh": ("logcosh", -np.log(2.0)),
    "adaptive": ("logcosh", -np.log(2.0)),
    "exp": ("bell", 0.0),
    "cube": ("cube", 0.0),
}


def elementwise(contrast):
    """Return the function of a contrast given by name, or the callable itself."""
    return contrast if callable(contrast) else CONTRASTS[contrast]


def second_derivative(contrast, Y):
    """Return the second derivative of a contrast by name or callable."""
    if contrast in ("logcosh", "adaptive"):
        slope = np.tanh(Y)
        return 1.0 - slope * slope
    return np.array(elementwise(contrast)(Y)[2], dtype=Y.dtype)


def compiled(contrast):
    """Return the compiled pass of a named contrast, and the constant in its value."""
    from skident._kernels import contrasts as kernels

    name, constant = _COMPILED[contrast]
    return getattr(kernels, name), constant


class Reference(NamedTuple):
    """What a contrast gives for known densities of unit variance.

    Attributes
    ----------
    value : float
        Mean of the contrast over a standard normal variable.
    spread : float
        Standard deviation, times the root of the number of rows, of
        ``mean(G''(y)) - mean(G'(y) y)`` for normal rows scaled to mean 0, variance 1.
    heavy_sign : float
        Sign of that difference for heavy tails (Laplace).
    """

    value: float
    spread: float
    heavy_sign: float


def reference(contrast):
    """Return the :class:`Reference` of a contrast, by the trapezoidal rule."""
    return _known(contrast) if isinstance(contrast, str) else _measure(contrast)


@functools.cache
def _known(name):
    return _measure(CONTRASTS[name])


def _measure(function):
    grid = np.linspace(-12.0, 12.0, 4802)[:, None]
    value, slope, bend = (np.ravel(part) for part in function(grid))
    y = grid.ravel()
    normal = np.exp(-0.5 * y * y)
    normal /= normal.sum()
    gap = bend - slope * y
    # Scaling the rows takes the part along y and y^2 - 1 away.
    line, square = normal @ (gap * y), normal @ (gap * (y * y - 1.0))
    rest = gap - line * y - 0.5 * square * (y * y - 1.0)
    spread = np.sqrt(max(normal @ (rest * rest), 0.0))
    laplace = np.exp(-np.sqrt(2.0) * np.abs(y))
    heavy = 1.0 if laplace @ gap >= 0 else -1.0
    return Reference(float(normal @ value), float(spread), heavy)


def check_contrast(function):
    """Raise a ``ValueError`` unless a callable gives a function and its derivatives.

    Parameters
    ----------
    function : callable
        ``function(Y)`` returns three arrays of the shape of ``Y``: G, G', G''. The two
        derivatives are compared with central differences at 200 points of [-5, 5],
        to 1e-3 of the largest.
    """
    step = 1e-5
    grid = np.linspace(-5.0, 5.0, 200)[:, None]
    at, up, down = (_three(function, Y) for Y in (grid, grid + step, grid - step))
    for k, name in ((1, "first"), (2, "second")):
        change = (up[k - 1] - down[k - 1]) / (2 * step)
        error = np.abs(change - at[k])
        worst = int(np.argmax(error))
        if error[worst] > 1e-3 * max(1.0, np.abs(at[k]).max()):
            raise ValueError(
                f"contrast={function!r}: its {name} derivative disagrees with finite "
                f"differences at y={grid[worst, 0]:.4g}: it says "
                f"{at[k][worst, 0]:.6g}, the difference is {change[worst, 0]:.6g}."
            )


def _three(function, Y):
    """Return the three arrays of a callable, or say what is wrong with them."""
    parts = function(Y)
    if not isinstance(parts, tuple | list) or len(parts) != 3:
        raise ValueError(
            f"contrast={function!r} must return three arrays: the contrast, its first "
            "and its second derivative at every entry."
        )
    parts = [np.asarray(part, dtype=np.float64) for part in parts]
    for part in parts:
        if part.shape != Y.shape or not np.isfinite(part).all():
            raise ValueError(
                f"contrast={function!r} must return finite arrays of the shape of its "
                f"argument: {Y.shape} went in, {part.shape} came out."
            )
    return parts


def log_secant(Y):
    """Log density of the unit-variance hyperbolic secant, 1/(2 cosh(pi y/2))."""
    bend = 0.5 * np.pi * np.abs(Y)
    return -bend - np.log1p(np.exp(-2.0 * bend))


def log_two_peaks(Y):
    """Log density of two equal normals at +-1/sqrt(2), each of variance 1/2."""
    bend = np.sqrt(2.0) * np.abs(Y)
    logcosh = bend + np.log1p(np.exp(-2.0 * bend)) - np.log(2.0)
    return logcosh - Y * Y - 0.5 - 0.5 * np.log(np.pi)


def source_log_density(Y, sub_gaussian):
    """Return the log density of each source in nats, shape of ``Y``."""
    return np.where(sub_gaussian, log_two_peaks(Y), log_secant(Y))
