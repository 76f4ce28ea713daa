"""Symmetric independent component analysis of white rows.

A rotation is found in three steps: the better of two starts that depend on the data
alone, symmetric fixed-point steps, and safeguarded second-order steps until the
gradient is below the tolerance. Of many rows, the first steps see a sample, and the
last ones all rows: first in float32, then in float64.
"""

from typing import NamedTuple

import numpy as np

from skident._math.contrasts import reference
from skident._math.descent import (
    NEAR,
    History,
    Point,
    Problem,
    Stage,
    descend,
    escape,
)
from skident._math.moments import Contrast, moments
from skident._math.rotations import (
    far_rows_start,
    fourth_order_start,
    polar,
)
from skident._math.rows import Rows, sample, white_rows

SUBSET_ROWS = 20_000
# Numbers in the largest sample that is stored.
SAMPLE_ENTRIES = 2**22
# Components up to which one start is enough.
_FEW = 16
_PATIENCE = 10
_FIXED_POINT_STEPS = 400
_PROGRESS = 1e-3
_SADDLES = 5
_SAMPLE_PASSES = 100
# Gradient below which float32 sums are no guide.
_SINGLE_TOL = 1e-6


class Solution(NamedTuple):
    """A stationary point of the contrast.

    Attributes
    ----------
    rotation : ndarray of shape (n_components, n_components)
        Orthogonal; sources are ``whitened @ rotation.T``.
    n_iter : int
        Passes over all rows by the second-order steps.
    criterion : float
        Largest entry of the gradient at the end.
    converged : bool
        Whether ``criterion <= tol``.
    sub_gaussian : ndarray of bool of shape (n_components,)
        Whether the tails of a source are lighter than Gaussian.
    objective : float
        Sum over sources of the distance of the mean contrast from its value for a
        Gaussian: larger is better.
    excess : ndarray of shape (n_components,)
        ``|E[G''(y)] - E[G'(y) y]|`` in units of what its standard deviation is for a
        row of Gaussian sources: how far a source is from Gaussian, times the root of
        the number of rows a number of standard errors.
    """

    rotation: np.ndarray
    n_iter: int
    criterion: float
    converged: bool
    sub_gaussian: np.ndarray
    objective: float
    excess: np.ndarray


def _problem(name, k, light=None):
    """Return the problem of a contrast whose sources marked ``light`` have y^4/12."""
    light = np.zeros(k, bool) if light is None else light
    values = np.where(light, 0.25, reference(name).value)
    return Problem(Contrast(name, light), values)


def _best_start(rows, problem):
    """Return that of the two starts whose sources are less Gaussian.

    Few sources are found from any start.
    """
    starts = [fourth_order_start(rows)]
    if rows.n_components > _FEW:
        starts.append(far_rows_start(rows))
    states = [
        moments(rows, start, problem.contrast, dtype=rows.dtype) for start in starts
    ]
    best = int(np.argmax([problem.objective(state) for state in states]))
    return Point(starts[best], states[best], 1)


def _fixed_point(rows, point, name, steps):
    """Take symmetric fixed-point steps until Newton's are small, or nothing is gained.

    Returns
    -------
    point : Point
        Of the largest objective.
    problem : Problem
        With "adaptive", the contrast that fits the tails of each source.
    """
    problem = _problem(name, rows.n_components)
    best, largest, waited = (point, problem), -np.inf, 0
    heavy = np.zeros(rows.n_components, bool)
    for _ in range(steps):
        rotation, state = point.rotation, point.state
        if name == "adaptive":
            light = problem.contrast.light
            # Sources whose two contrasts disagree on the tails keep ln cosh.
            heavy |= light & (state.signs < 0)
            fitting = (light | (state.signs < 0)) & ~heavy
            if not np.array_equal(fitting, light):
                problem, largest, waited = _problem(name, len(light), fitting), -1.0, 0
                state = moments(rows, rotation, problem.contrast, dtype=rows.dtype)
                point = Point(rotation, state, 1)
        objective, waited = problem.objective(state), waited + 1
        if objective > largest:
            waited = 0 if objective > (1 + _PROGRESS) * largest else waited
            best, largest = (point, problem), objective
        if state.angle < NEAR:
            return point, problem
        if waited >= _PATIENCE:
            break
        step = state.signs[:, None] * (np.diag(state.curvatures) - state.slopes)
        rotation = polar(step) @ rotation
        state = moments(rows, rotation, problem.contrast, dtype=rows.dtype)
        point = Point(rotation, state, 1)
    return best


def _stages(rows, tol):
    """Return samples of growing size, then all rows in float32 and in float64.

    The rows of the first stage are stored.
    """
    n, k = rows.n_rows, rows.n_components
    least, stored = max(SUBSET_ROWS, 50 * k), rows
    samples = []
    if n >= 3 * least:
        largest = max(least, min(n // 4, SAMPLE_ENTRIES // k))
        samples = [sample(rows, largest)]
        if largest >= 2 * least:
            samples.insert(0, sample(samples[0], least))
    elif rows.single or not rows.is_stored:
        stored = sample(rows, n)
    stages = []
    for part in samples:
        level = max(tol, 0.1 / np.sqrt(part.n_rows))
        stages.append(Stage(part, part.dtype, level, False))
    if stored.single:
        stages.append(Stage(stored, np.float32, max(tol, _SINGLE_TOL), True))
        stored = rows
    return [*stages, Stage(stored, np.float64, tol, True)]


def _narrowed(rows):
    """Return a white copy of rows of far more columns than components, if small."""
    k, width = rows.matrix.shape
    if width < 2 * k or rows.n_rows * k > 2 * SAMPLE_ENTRIES:
        return rows
    return sample(rows, rows.n_rows, np.float64)


def _begin(stage, point, problem, history, max_iter):
    """Descend in the first stage, and away from points that are no minimum."""
    noise = 1e-3 if stage.whole else 10.0 / np.sqrt(stage.rows.n_rows)
    rotation, state, n_iter = point.rotation, point.state, 0
    best, largest = None, -np.inf
    for _ in range(_SADDLES):
        passes = max_iter - n_iter
        point = descend(stage, rotation, problem, passes, history, state)
        n_iter += point.n_iter
        value = problem.objective(point.state)
        if best is not None and value <= (1 + _PROGRESS) * largest:
            break
        best, largest = point, value
        rotation, state = escape(stage.rows, point, problem, noise), None
        if rotation is None or n_iter >= max_iter:
            break
        history.pairs = []
    return best._replace(n_iter=n_iter)


def solve(whitened, *, contrast="logcosh", start=None, max_iter=200, tol=1e-4):
    r"""Rotate white rows to sources whose contrast is stationary and minimal.

    Over orthogonal :math:`R`, with :math:`y = R z`,

    .. math:: \min_R \sum_i s_i \, \mathrm E[G_i(y_i)], \qquad
        s_i = \mathrm{sign}(\mathrm E[G_i''(y_i)] - \mathrm E[G_i'(y_i) y_i]),

    until :math:`\max_{ij} |s_i \mathrm E[G_i'(y_i) y_j] -
    s_j \mathrm E[G_j'(y_j) y_i]|` is at most ``tol``.

    Parameters
    ----------
    whitened : ndarray of shape (n_samples, n_components) or Rows
        Rows with zero mean and the identity as covariance.
    contrast : {"logcosh", "exp", "cube", "adaptive"} or callable
        :math:`G`, by name or as in ``contrasts.CONTRASTS``; with "adaptive",
        :math:`G_i` is ln cosh y for heavy tails and y^4/12 for light ones.
    start : ndarray of shape (n_components, n_components), optional
        Orthogonal; default the better of :func:`fourth_order_start` and
        :func:`far_rows_start`.
    max_iter : int
        Most passes over all rows by the second-order steps.
    tol : float
        Largest gradient accepted.

    Returns
    -------
    Solution

    References
    ----------
    Hyvarinen, IEEE Trans. Neural Networks 10 (1999), 626; Ablin, Cardoso, Gramfort,
    "Faster ICA under orthogonal constraint", ICASSP 2018.
    """
    rows = whitened if isinstance(whitened, Rows) else white_rows(whitened)
    stages = _stages(_narrowed(rows), tol)
    first = stages[0]
    problem = _problem(contrast, rows.n_components)
    if start is None:
        point = _best_start(first.rows, problem)
    else:
        state = moments(first.rows, start, problem.contrast, dtype=first.dtype)
        point = Point(start, state, 1)
    steps = min(max_iter, _FIXED_POINT_STEPS)
    point, problem = _fixed_point(first.rows, point, contrast, steps)
    history = History()
    begun = max_iter if first.whole else _SAMPLE_PASSES
    left = begun - (len(stages) > 1 and first.whole)
    point = _begin(first, point, problem, history, max(1, left))
    n_iter = point.n_iter if first.whole else 0
    for stage in stages[1:]:
        passes = _SAMPLE_PASSES
        if stage.whole:
            passes = max(1, max_iter - n_iter - (stage.dtype == np.float32))
        point = descend(stage, point.rotation, problem, passes, history)
        n_iter += stage.whole * point.n_iter
    return _solution(point._replace(n_iter=n_iter), problem, tol)


def _solution(point, problem, tol):
    name, light = problem.contrast
    known, cube = reference(name), reference("cube")
    state = point.state
    spread = np.where(light, cube.spread / 3.0, known.spread)
    heavy_sign = np.where(light, cube.heavy_sign, known.heavy_sign)
    return Solution(
        point.rotation,
        point.n_iter,
        state.criterion,
        state.criterion <= tol,
        state.signs * heavy_sign < 0,
        problem.objective(state),
        np.abs(state.gap) / np.maximum(spread, 1e-300),
    )


def gaussian_level(k):
    """Return how many standard errors of ``excess`` Gaussian sources reach.

    The excess of one fixed direction of Gaussian rows is half normal. A solver finds
    the largest over the rotations of ``k`` dimensions, which grows as the root of
    ``k`` (as the largest value of a random polynomial on the sphere does): in
    simulations three of four Gaussian sources lie below this level.
    """
    return 1.0 + 1.3 * np.sqrt(k)
