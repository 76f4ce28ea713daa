"""Symmetric independent component analysis of whitened rows.

A rotation is found in three steps: a start that depends on the data alone, a few
symmetric fixed-point steps (on a subset if there are many rows), and safeguarded
second-order steps on all rows until the gradient is below the tolerance.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

from skident._math.contrasts import CONTRASTS, GAUSSIAN_VALUES
from skident._math.whitening import row_blocks

SUBSET_ROWS = 20_000
_FIXED_POINT_STEPS = 30
_MEMORY = 10
_CURVATURE_FLOOR = 1e-2
_LARGEST_ANGLE = 0.8
_SADDLES = 5
_HALVINGS = 11
_SAME = 1e-6


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
    """

    rotation: np.ndarray
    n_iter: int
    criterion: float
    converged: bool
    sub_gaussian: np.ndarray
    objective: float


class _Moments(NamedTuple):
    """What one pass over the rows gives."""

    signs: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    curvatures: np.ndarray

    @property
    def loss(self):
        return float(self.signs @ self.values)

    @property
    def gradient(self):
        signed = self.signs[:, None] * self.slopes
        return signed - signed.T

    @property
    def hessian(self):
        bend = np.abs(self.curvatures - np.diag(self.slopes))
        return np.maximum(bend[:, None] + bend, _CURVATURE_FLOOR)

    @property
    def criterion(self):
        return float(np.abs(self.gradient).max())


def moments(whitened, rotation, contrast, signs=None):
    """Sum a contrast and its derivatives over the rows.

    ``signs`` are +1 where the contrast is to be made small, -1 where large; default:
    what makes the curvature positive for independent sources.
    """
    k = rotation.shape[0]
    values, curvatures, slopes = np.zeros(k), np.zeros(k), np.zeros((k, k))
    for rows in row_blocks(whitened):
        Y = whitened[rows] @ rotation.T
        slope, curvature, value = contrast(Y)
        slopes += slope.T @ Y
        curvatures += len(Y) * curvature
        values += len(Y) * value
    n = whitened.shape[0]
    slopes, curvatures, values = slopes / n, curvatures / n, values / n
    if signs is None:
        signs = np.where(curvatures >= np.diag(slopes), 1.0, -1.0)
    return _Moments(signs, values, slopes, curvatures)


def fourth_order_start(whitened):
    """Return the eigenvectors of E[|z|^2 z z'] as a start (Cardoso 1989).

    It depends on the data alone and turns with them, so that fits do not depend on a
    seed, and are equivariant under affine maps of the input.
    """
    k = whitened.shape[1]
    total = np.zeros((k, k))
    for rows in row_blocks(whitened):
        Z = whitened[rows]
        total += (Z * np.einsum("ij,ij->i", Z, Z)[:, None]).T @ Z
    return linalg.eigh(total / whitened.shape[0])[1].T[::-1].copy()


def random_rotation(rng, k):
    """Return an orthogonal matrix from the uniform distribution."""
    Q, R = np.linalg.qr(rng.standard_normal((k, k)))
    return (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).T


def _polar(matrix):
    U, _, Vt = linalg.svd(matrix)
    return U @ Vt


def _fixed_point(whitened, rotation, contrast, max_iter):
    """Take symmetric fixed-point steps until the gradient is moderate."""
    best, best_criterion = rotation, np.inf
    for _ in range(min(max_iter, _FIXED_POINT_STEPS)):
        state = moments(whitened, rotation, contrast)
        if state.criterion < best_criterion:
            best, best_criterion = rotation, state.criterion
        if state.criterion < 1e-2:
            break
        step = state.signs[:, None] * (np.diag(state.curvatures) - state.slopes)
        rotation = _polar(step) @ rotation
    return best


class _History:
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


def _line_search(whitened, rotation, contrast, state, direction, max_passes):
    """Halve the step until the contrast, or at rounding the gradient, falls."""
    slope = 0.5 * np.vdot(state.gradient, direction)
    noise = 1e-13 * np.abs(state.values).sum()
    length = 1.0
    for n_pass in range(1, max_passes + 1):
        turned = linalg.expm(length * direction) @ rotation
        trial = moments(whitened, turned, contrast, state.signs)
        fall = trial.loss - state.loss
        if fall <= 1e-4 * length * slope:
            return turned, trial, length, n_pass
        if abs(fall) <= noise and trial.criterion < state.criterion:
            return turned, trial, length, n_pass
        length *= 0.5
    return None, state, 0.0, n_pass


def _second_order(whitened, rotation, contrast, max_iter, tol):
    """Minimise the contrast over rotations by safeguarded quasi-Newton steps."""
    history, n_iter = _History(), 1
    state = moments(whitened, rotation, contrast)
    while state.criterion > tol and n_iter < max_iter:
        direction = history.direction(state.gradient, state.hessian)
        passes = min(_HALVINGS, max_iter - n_iter)
        turned, trial, length, n_pass = _line_search(
            whitened, rotation, contrast, state, direction, passes
        )
        n_iter += n_pass
        if turned is None:
            if not history.pairs:
                break
            history.pairs = []
            continue
        history.push(length * direction, trial.gradient - state.gradient)
        signs = np.where(trial.curvatures >= np.diag(trial.slopes), 1.0, -1.0)
        if not np.array_equal(signs, state.signs):
            history.pairs = []
        # Exact orthogonality, which a long product of rotations loses slowly.
        rotation, state = _polar(turned), trial._replace(signs=signs)
    return rotation, state, n_iter


def _escape(whitened, rotation, contrast, signs, noise):
    """Turn by 45 degrees in planes of negative curvature; None if there are none."""
    k = rotation.shape[0]
    mixed, own = np.zeros((k, k)), np.zeros(k)
    step = 1e-4
    for rows in row_blocks(whitened):
        Y = whitened[rows] @ rotation.T
        slope = contrast(Y)[0]
        bend = (contrast(Y + step)[0] - contrast(Y - step)[0]) / (2 * step)
        mixed += bend.T @ (Y * Y)
        own += np.einsum("ij,ij->j", slope, Y)
    half = signs[:, None] * (mixed - own[:, None]) / whitened.shape[0]
    curvature = np.triu(half + half.T, 1)
    order = np.argsort(curvature, axis=None, kind="stable")
    turn, used = np.eye(k), set()
    for i, j in zip(*np.unravel_index(order, curvature.shape), strict=True):
        if curvature[i, j] > -noise:
            break
        if not used & {i, j}:
            used |= {i, j}
            turn[np.ix_([i, j], [i, j])] = np.sqrt(0.5) * np.array([[1, 1], [-1, 1]])
    return turn @ rotation if used else None


def solve(whitened, *, contrast="logcosh", start=None, max_iter=200, tol=1e-4):
    r"""Rotate white rows to sources whose contrast is stationary and minimal.

    Over orthogonal :math:`R`, with :math:`y = R z`,

    .. math:: \min_R \sum_i s_i \, \mathrm E[G(y_i)], \qquad
        s_i = \mathrm{sign}(\mathrm E[G''(y_i)] - \mathrm E[G'(y_i) y_i]),

    until :math:`\max_{ij} |s_i \mathrm E[G'(y_i) y_j] - s_j \mathrm E[G'(y_j) y_i]|`
    is at most ``tol``.

    Parameters
    ----------
    whitened : ndarray of shape (n_samples, n_components)
        Rows with zero mean and the identity as covariance.
    contrast : {"logcosh", "exp", "cube"}
        Name of :math:`G`.
    start : ndarray of shape (n_components, n_components), optional
        Orthogonal; default :func:`fourth_order_start`.
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
    function = CONTRASTS[contrast]
    rotation = fourth_order_start(whitened) if start is None else start
    subset = _subset(whitened)
    rotation, n_iter = _fixed_point(subset, rotation, function, max_iter), 0
    if len(subset) < len(whitened):
        rotation = _second_order(subset, rotation, function, max_iter, tol)[0]
    noise = 1e-3 if len(subset) == len(whitened) else 10.0 / np.sqrt(len(subset))
    for _ in range(_SADDLES):
        rotation, state, passes = _second_order(
            whitened, rotation, function, max_iter - n_iter, tol
        )
        n_iter += passes
        turned = _escape(subset, rotation, function, state.signs, noise)
        if turned is None or n_iter >= max_iter:
            break
        rotation = turned
    gaussian = GAUSSIAN_VALUES[contrast]
    return Solution(
        rotation,
        n_iter,
        state.criterion,
        state.criterion <= tol,
        state.signs * (-1 if contrast == "cube" else 1) < 0,
        float(np.abs(state.values - gaussian).sum()),
    )


def _subset(whitened):
    """Return at most ``SUBSET_ROWS`` rows, the same for every call of one length."""
    n, k = whitened.shape
    size = max(SUBSET_ROWS, 50 * k)
    if n < 3 * size:
        return whitened
    chosen = np.random.default_rng(n).choice(n, size, replace=False)
    chosen.sort()
    return whitened[chosen]


def solve_often(whitened, rngs, **options):
    """Solve from the start of the data and from random ones, and keep the best.

    A later start replaces an earlier one only if its objective is larger by 1e-6
    relative, so that starts that agree leave the answer alone.

    Parameters
    ----------
    whitened : ndarray of shape (n_samples, n_components)
        White rows.
    rngs : iterable of Generator
        One a random start, which is solved on half of the rows, then on all; the other
        half is solved from a start of its own.
    **options : dict
        ``contrast``, ``max_iter`` and ``tol`` of :func:`solve`.

    Returns
    -------
    best : Solution
    halves : list of pairs of ndarray of shape (n_components, n_components)
        The rotations found from each random start on two halves of the rows: their
        difference is that of both the optimisation and the sample.
    """
    best, halves = solve(whitened, **options), []
    for rng in rngs:
        pair = [
            solve(whitened[rows], start=start, **options).rotation
            for rows, start in _split(whitened.shape, rng)
        ]
        trial = solve(whitened, start=pair[0], **options)
        if trial.objective > best.objective * (1 + _SAME):
            best = trial
        halves.append(pair)
    return best, halves


def _split(shape, rng):
    """Yield the two halves of the rows, each with a random start."""
    shuffled = rng.permutation(shape[0])
    middle = (shape[0] + 1) // 2
    for rows in (shuffled[:middle], shuffled[middle:]):
        yield np.sort(rows), random_rotation(rng, shape[1])


def stability(rotation, halves):
    """Return how well each component is found again, in [0, 1].

    The mean over ``halves`` of the squared correlation between the two components that
    match it, one to one, in the two halves of the rows.
    """
    total = np.zeros(rotation.shape[0])
    for pair in halves:
        one, other = (half[_match(rotation, half)] for half in pair)
        total += np.einsum("ij,ij->i", one, other) ** 2
    return np.minimum(total / len(halves), 1.0)


def _match(rotation, other):
    overlap = np.abs(rotation @ other.T)
    return optimize.linear_sum_assignment(overlap, maximize=True)[1]


def canonical_order(mixing):
    """Return the order and signs that make components comparable between fits.

    Parameters
    ----------
    mixing : ndarray of shape (n_features, n_components)
        Contribution of unit-variance components to the input.

    Returns
    -------
    order : ndarray of int of shape (n_components,)
        Descending explained variance (squared norm of the column). Variances equal
        to 1e-6 relative are ordered by the input column of the largest entry.
    signs : ndarray of shape (n_components,)
        In that order; they make the entry of largest absolute value (the first, if
        several are equal to 1e-6 relative) positive.
    """
    size = np.abs(mixing)
    peak = np.argmax(size >= (1 - _SAME) * size.max(axis=0), axis=0)
    signs = np.where(mixing[peak, np.arange(mixing.shape[1])] < 0, -1.0, 1.0)
    variance = np.sum((mixing / size.max()) ** 2, axis=0)
    order = np.argsort(-variance, kind="stable")
    gaps = variance[order[1:]] < (1 - _SAME) * variance[order[:-1]]
    level = np.concatenate([[0], np.cumsum(gaps)])
    order = order[np.lexsort((peak[order], level))]
    return order, signs[order]
