"""Symmetric independent component analysis of white rows.

A rotation is found in three steps: the better of two starts that depend on the data
alone, symmetric fixed-point steps, and safeguarded second-order steps until the
gradient is below the tolerance. Of many rows, the first steps see a sample, and the
last ones all rows: first in float32, then in float64. Where that ends at dependent
sources, better points are looked for in planes of two sources and from more starts, on
the rows of the first steps.
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
)
from skident._math.moments import Contrast, moments, skewness
from skident._math.planes import LEAST_ROWS, Survey, escapes, survey
from skident._math.rotations import (
    apart_rows_start,
    far_rows_start,
    fourth_order_start,
    polar,
    third_order_start,
)
from skident._math.rows import (
    Rows,
    sample,
    white_rows,
    whitened_again,
)

SUBSET_ROWS = 20_000
# Numbers in the largest sample that is stored.
SAMPLE_ENTRIES = 2**22
# Components up to which the first start is one, and dependent ones get more.
_FEW = 16
_PATIENCE = 10
# Changes of sign a source that end the fixed-point steps of few sources.
_FLIPS = 3.0
_FIXED_POINT_STEPS = 400
_PROGRESS = 1e-3
# Improvements of a point of the first stage; starts besides the first of dependent
# sources, and of coupled ones.
_ROUNDS = 10
_MORE_STARTS = 4
_MOST_STARTS = 8
_SAME = 1e-5
_JUDGED = 3
_DECOUPLINGS = 5
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
        Largest entry of the gradient before the last step.
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
    coupled : bool
        Whether the curvature of a source is strongly correlated with the square of
        another one, so that they cannot be independent.
    """

    rotation: np.ndarray
    n_iter: int
    criterion: float
    converged: bool
    sub_gaussian: np.ndarray
    objective: float
    excess: np.ndarray
    coupled: bool


def _problem(name, k, light=None):
    """Return the problem of a contrast whose sources marked ``light`` have y^4/12."""
    light = np.zeros(k, bool) if light is None else light
    values = np.where(light, 0.25, reference(name).value)
    return Problem(Contrast(name, light), values)


def _at(rows, rotation, problem):
    """Return a rotation with its moments."""
    state = moments(rows, rotation, problem.contrast, dtype=rows.dtype)
    return Point(rotation, state, 1)


def _best_start(rows, problem):
    """Return that of the two starts whose sources are less Gaussian.

    Of few sources the second is seldom the better one.
    """
    if rows.n_repeats < LEAST_ROWS * rows.n_components:
        return _at(rows, apart_rows_start(rows), problem)
    points = [_at(rows, fourth_order_start(rows), problem)]
    if rows.n_components > _FEW:
        points.append(_at(rows, far_rows_start(rows), problem))
    return max(points, key=lambda point: problem.objective(point.state))


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
    best, largest, waited, flips = (point, problem), -np.inf, 0, 0
    signs = point.state.signs
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
        # Where most signs keep changing, steps wander, and blow up the rounding.
        flips, signs = flips + (signs != state.signs).mean(), state.signs
        if waited >= _PATIENCE or (flips >= _FLIPS and rows.n_components <= _FEW):
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
        samples = [whitened_again(sample(rows, largest))]
        if largest >= 2 * least:
            samples.insert(0, whitened_again(sample(samples[0], least)))
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


class _Found(NamedTuple):
    """A stationary point on the rows of a stage, with what led there."""

    point: Point
    problem: Problem
    history: History
    seen: Survey

    @property
    def objective(self):
        return self.problem.objective(self.point.state)

    @property
    def rank(self):
        """Return what a better point has more of."""
        return not self.seen.coupled, self.objective

    def rank_on(self, stage):
        contrast = self.problem.contrast
        state = moments(stage.rows, self.point.rotation, contrast, dtype=stage.dtype)
        return not self.seen.coupled, self.problem.objective(state)

    def same(self, other):
        return abs(self.objective / other.objective - 1) < _SAME


def _climb(stage, point, problem, max_iter, known=()):
    """Descend in the first stage, and on from points that are not the best.

    Where sources are dependent the curvature is not what a Newton step takes it for,
    so that no step is taken on trust. After ``max_iter`` passes no other descent is
    begun. ``known`` are points from which all this was done before.
    """
    rows, spent = stage.rows, 0
    noise = 1e-3 if stage.whole else 10.0 / np.sqrt(rows.n_rows)

    def further(rotation, state=None, trust=False):
        nonlocal spent
        history = History()
        point = descend(stage, rotation, problem, max_iter, history, state, trust=trust)
        spent += point.n_iter
        return _Found(point, problem, history, survey(rows, point, problem))

    best = further(point.rotation, point.state, trust=True)
    if best.seen.dependent and not stage.last and spent < max_iter:
        best = further(best.point.rotation)
    trial = best
    for _ in range(_DECOUPLINGS):
        if not trial.seen.coupled or spent >= max_iter:
            break
        trial = further(trial.seen.decouple(trial.point.rotation))
    best = best if trial.seen.coupled else trial
    for _ in range(_ROUNDS):
        if any(best.same(one) for one in known):
            break
        free, largest = best.rank
        enough = free, (1 + _PROGRESS / rows.n_components) * largest
        for rotation in escapes(rows, best.point, problem, best.seen, noise):
            if spent >= max_iter:
                break
            trial = further(rotation)
            if trial.rank > enough:
                best = trial
                break
        else:
            break
    return best


def _more_starts(rows, rotation):
    """Yield starts by the skewness and by the kurtosis of sources, in turn.

    They weigh the sources found before, by numbers drawn at random. The weights
    do not change with the signs of those, and turn with the rows.
    """
    third = skewness(rows, rotation)
    for seed in range(_MOST_STARTS // 2):
        g = np.random.default_rng(seed).standard_normal(len(rotation))
        yield third_order_start(rows, (g * third) @ rotation)
        yield fourth_order_start(rows, rotation.T @ (g[:, None] * rotation))


def _search(stage, judge, start, contrast, max_iter, steps):
    """Return the best point of the first stage.

    Few sources are searched from more starts if those of the first are dependent, and
    from most as long as all are coupled. A point without coupled sources is better than
    one with them, as mixtures of some sources are further from Gaussian than the
    sources. Then the objective counts, at last that on the rows of the next stage.
    """
    rows = stage.rows
    plain = _problem(contrast, rows.n_components)

    def climb(point, known=()):
        point, problem = _fixed_point(rows, point, contrast, steps)
        return _climb(stage, point, problem, max_iter, known)

    if start is not None:
        return climb(_at(rows, start, plain))
    first = climb(_best_start(rows, plain))
    if not first.seen.dependent or rows.n_components > _FEW:
        return first
    found = [first]
    for n, rotation in enumerate(_more_starts(rows, first.point.rotation)):
        if n >= _MORE_STARTS and not all(one.seen.coupled for one in found):
            break
        trial = climb(_at(rows, rotation, plain), found)
        if not any(trial.same(one) for one in found):
            found.append(trial)
    found = sorted(found, key=lambda one: one.rank, reverse=True)[:_JUDGED]
    return max(found, key=lambda one: one.rank_on(judge)) if found[1:] else found[0]


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
    steps = min(max_iter, _FIXED_POINT_STEPS)
    begun = max_iter if first.whole else _SAMPLE_PASSES
    left = max(1, begun - (len(stages) > 1 and first.whole))
    judge = stages[min(1, len(stages) - 1)]
    point, problem, history, seen = _search(first, judge, start, contrast, left, steps)
    n_iter = point.n_iter if first.whole else 0
    for stage in stages[1:]:
        passes = _SAMPLE_PASSES
        if stage.whole:
            passes = max(1, max_iter - n_iter - (stage.dtype == np.float32))
        point = descend(stage, point.rotation, problem, passes, history)
        n_iter += stage.whole * point.n_iter
    return _solution(point._replace(n_iter=n_iter), problem, tol, seen.coupled)


def _solution(point, problem, tol, coupled):
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
        coupled,
    )


def gaussian_level(k):
    """Return how many standard errors of ``excess`` Gaussian sources reach.

    The excess of one fixed direction of Gaussian rows is half normal. A solver finds
    the largest over the rotations of ``k`` dimensions, which grows as the root of
    ``k`` (as the largest value of a random polynomial on the sphere does): in
    simulations 98 of 100 Gaussian sources lie below this level, two of three or more
    with "cube".
    """
    return 1.0 + 1.3 * np.sqrt(k)
