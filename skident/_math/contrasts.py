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


# A contrast whose curvature varies by less, relative to its slopes, is quadratic.
_QUADRATIC = 1e-8
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
        bend = np.tanh(Y)
        np.multiply(bend, bend, out=bend)
        return np.subtract(1.0, bend, out=bend)
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
    if isinstance(contrast, UserContrast):
        return contrast.reference
    return _known(contrast) if isinstance(contrast, str) else _measure(contrast)


@functools.cache
def _known(name):
    return _measure(CONTRASTS[name])


def _measure(function):
    grid = np.linspace(-12.0, 12.0, 4802)[:, None]
    with np.errstate(all="ignore"):
        parts = np.hstack([np.asarray(part, dtype=float) for part in function(grid)])
    # Far out a function may overflow: that matters only to rows that lie there.
    known = np.isfinite(parts).all(axis=1)
    y, (value, slope, bend) = grid[known, 0], parts[known].T
    unit = np.abs(slope[np.abs(y) <= 5.0]).max() or 1.0
    normal = np.exp(-0.5 * y * y)
    normal /= normal.sum()
    gap = bend / unit - slope / unit * y
    # Scaling the rows takes the part along y and y^2 - 1 away.
    line, square = normal @ (gap * y), normal @ (gap * (y * y - 1.0))
    rest = gap - line * y - 0.5 * square * (y * y - 1.0)
    share = normal * rest * rest
    # What the far tail decides has no mean over a Gaussian.
    limited = share[np.abs(y) > 7.0].sum() <= 0.5 * share.sum()
    spread = unit * np.sqrt(share.sum()) if limited else np.inf
    laplace = np.exp(-np.sqrt(2.0) * np.abs(y))
    heavy = 1.0 if laplace @ gap >= 0 else -1.0
    return Reference(float(normal @ value), float(spread), heavy)


class UserContrast:
    """A callable as the solver needs it: checked, and of the scale of ln cosh.

    It is given a copy of the sources in float64, and what it returns is copied, so that
    it may work in place or in buffers of its own. Its values are multiplied with a
    number that makes ``Reference.spread`` that of ln cosh: gradients, and what counts
    as small, then mean the same for every size of the contrast.

    Parameters
    ----------
    function : callable
        ``function(Y)`` returns three arrays of the shape of ``Y``: G, G', G''.

    Raises
    ------
    ValueError
        If it returns something else or, when called too, a value that is not finite; if
        derivatives disagree by 1e-3 of the largest with central differences at 200
        points of [-5, 5]; if it is no more than quadratic, so that no rotation is
        better than another; or if it has no mean over a Gaussian.
    """

    def __init__(self, function):
        self.function, self.factor = function, 1.0
        largest = self._check_derivatives()
        found = _measure(self._anywhere)
        if not _QUADRATIC * largest < found.spread < np.inf:
            raise ValueError(
                f"contrast={function!r} cannot separate sources: it must be more than "
                "quadratic, and grow less fast than a Gaussian density falls."
            )
        known = reference("logcosh")
        self.factor = known.spread / found.spread
        value = found.value * self.factor
        self.reference = Reference(value, known.spread, found.heavy_sign)

    def __call__(self, Y):
        with np.errstate(all="ignore"):
            return self._finite(self._anywhere(Y), Y)

    def _anywhere(self, Y):
        return [self.factor * part.astype(np.float64) for part in self._three(Y)]

    def _three(self, Y):
        """Return copies of the three arrays, or say what is wrong with them."""
        parts = self.function(np.array(Y, dtype=np.float64))
        if not isinstance(parts, tuple | list) or len(parts) != 3:
            raise ValueError(
                f"contrast={self.function!r} must return three arrays: the contrast, "
                "its first and its second derivative at every entry."
            )
        parts = [np.array(part) for part in parts]
        for part in parts:
            if part.shape != Y.shape or part.dtype.kind not in "fiub":
                raise ValueError(
                    f"contrast={self.function!r} must return real arrays of the shape "
                    f"of its argument: {Y.shape} went in, {part.shape} of "
                    f"{part.dtype} came out."
                )
        return parts

    def _finite(self, parts, Y):
        for part, name in zip(parts, ("G", "G'", "G''"), strict=True):
            if not np.isfinite(part).all():
                first = np.flatnonzero(~np.isfinite(part))[0]
                raise ValueError(
                    f"contrast={self.function!r} must return finite arrays: {name} is "
                    f"{part.flat[first]} at y={Y.flat[first]:.4g}."
                )
        return parts

    def _check_derivatives(self):
        """Compare with differences that suit the precision, and return max |G'|."""
        grid = np.linspace(-5.0, 5.0, 200)[:, None]
        at = self._finite(self._three(grid), grid)
        kinds = [part.dtype for part in at if part.dtype.kind == "f"]
        eps = max(np.finfo(kind).eps for kind in [np.dtype(np.float64), *kinds])
        step = float(eps) ** (1 / 3)
        at, up, down = (self._anywhere(grid + shift) for shift in (0.0, step, -step))
        largest = [np.abs(part).max() for part in at]
        for k, name in ((1, "first"), (2, "second")):
            change = (up[k - 1] - down[k - 1]) / (2 * step)
            error = np.abs(change - at[k])
            worst = int(np.argmax(error))
            if not error[worst] <= 1e-3 * largest[k] + 4 * eps / step * largest[k - 1]:
                raise ValueError(
                    f"contrast={self.function!r}: its {name} derivative disagrees with "
                    f"finite differences at y={grid[worst, 0]:.4g}: it says "
                    f"{at[k][worst, 0]:.6g}, the difference is {change[worst, 0]:.6g}."
                )
        return largest[1]


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
