"""Descent over rotations: safeguarded quasi-Newton steps."""

from typing import NamedTuple

import numpy as np

from skident._math.moments import Contrast, Moments, moments
from skident._math.rotations import cayley
from skident._math.rows import COMPILED_ENTRIES, Rows

# Newton steps of this angle are trusted to converge.
NEAR = 0.03
_MEMORY = 10
_LARGEST_ANGLE = 0.8
_HALVINGS = 11
# Few rows are solved as far as rounding lets them: it costs little, and a repeated
# row, another order or other units then change nothing.
_SMALL_TOL = 1e-11


class Point(NamedTuple):
    """Where a descent stands."""

    rotation: np.ndarray
    state: Moments
    n_iter: int


class Problem(NamedTuple):
    """What every step needs besides rows and rotation."""

    contrast: Contrast
    gaussian: np.ndarray

    def objective(self, state):
        return float(np.abs(state.values - self.gaussian).sum())


class Stage(NamedTuple):
    """Rows to descend on, how precisely and how far.

    Attributes
    ----------
    rows : Rows
        White rows.
    dtype : {float32, float64}
        Precision of a pass.
    tol : float
        Largest gradient accepted.
    whole : bool
        Whether these are all rows.
    """

    rows: Rows
    dtype: type
    tol: float
    whole: bool

    @property
    def last(self):
        """Return whether no other stage follows."""
        return self.whole and self.dtype == np.float64


class History:
    """Limited-memory BFGS over skew-symmetric steps."""

    def __init__(self):
        self.pairs = []

    def push(self, step, change):
        curvature = np.vdot(step, change)
        if curvature > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            self.pairs = [*self.pairs[1 - _MEMORY :], (step, change, 1.0 / curvature)]

    def direction(self, gradient, hessian):
        descent, weights = -gradient, []
        for step, change, rho in reversed(self.pairs):
            weights.append(rho * np.vdot(step, descent))
            descent = descent - weights[-1] * change
        descent = descent / hessian
        for (step, change, rho), weight in zip(
            self.pairs, reversed(weights), strict=True
        ):
            descent = descent + step * (weight - rho * np.vdot(change, descent))
        if np.vdot(descent, gradient) >= 0:
            self.pairs = []
            descent = -gradient / hessian
        return descent * min(1.0, _LARGEST_ANGLE / max(np.abs(descent).max(), 1e-300))


def _line_search(measure, rotation, state, direction, max_passes):
    """Halve the step until the contrast, or at rounding the gradient, falls."""
    slope = 0.5 * np.vdot(state.gradient, direction)
    length = 1.0
    for n_pass in range(1, max_passes + 1):
        turned = cayley(length * direction) @ rotation
        trial = measure(turned, state.signs)
        fall = trial.loss - state.loss
        if fall <= 1e-4 * length * slope:
            return turned, trial, length, n_pass
        if abs(fall) <= state.noise and trial.criterion < state.criterion:
            return turned, trial, length, n_pass
        length *= 0.5
    return None, state, 0.0, n_pass


def descend(stage, rotation, problem, max_iter, history, state=None, *, trust=True):
    """Minimise the contrast over rotations by safeguarded quasi-Newton steps.

    ``state`` is that of the rotation, if it is known. But for the last stage the last
    step is taken on ``trust``: what follows sees whether it was right. In the last one
    a small step from the accepted point follows, which makes its gradient smaller.
    """

    def measure(rotation, signs=None):
        return moments(stage.rows, rotation, problem.contrast, signs, stage.dtype)

    state, n_iter = measure(rotation) if state is None else state, 1
    trusting = trust and not stage.last
    small = stage.last and stage.rows.n_entries < COMPILED_ENTRIES
    aim = min(stage.tol, _SMALL_TOL) if small else stage.tol
    while (trusting or state.criterion > aim) and n_iter < max_iter:
        direction = history.direction(state.gradient, state.hessian)
        angle = np.abs(direction).max()
        if trusting and angle < NEAR and 2 * angle * state.criterion < stage.tol:
            return Point(cayley(direction) @ rotation, state, n_iter)
        passes = min(_HALVINGS, max_iter - n_iter)
        turned, trial, length, n_pass = _line_search(
            measure, rotation, state, direction, passes
        )
        n_iter += n_pass
        if turned is None:
            if not history.pairs:
                break
            history.pairs = []
            continue
        history.push(length * direction, trial.gradient - state.gradient)
        signs = trial.natural_signs()
        if not np.array_equal(signs, state.signs):
            history.pairs = []
        rotation, state = turned, trial._replace(signs=signs)
    if stage.last and state.criterion <= stage.tol:
        direction = history.direction(state.gradient, state.hessian)
        if np.abs(direction).max() < NEAR:
            rotation = cayley(direction) @ rotation
    return Point(rotation, state, n_iter)
