"""Multinomial logistic regression by Newton steps, to convergence.

The objective is the weighted mean of minus the log-likelihood, plus
``alpha / (2 n) * |W|**2`` without the intercepts. In whitened columns that penalty is
the same for any invertible affine map of the latents.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.sparse import linalg as sparse_linalg

_BLOCK_ENTRIES = 2**20
# Up to so many parameters a step solves with the whole Hessian.
_LARGEST_HESSIAN = 1000
# Damping, as a share of the diagonal of the Hessian. The least only fixes what the
# classes leave free together; a step that fails is taken again with more.
_LEAST, _MORE, _MOST = 1e-10, 1e-3, 1e10
_MAX_ITER = 200
# So many rows a parameter are enough for a first guess from an eighth of them.
_PLENTY, _ROUGH = 40, 1e-3


class Softmax(NamedTuple):
    """A fitted regression.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_columns + 1)
        The intercept last.
    gradient : float
        Largest entry of the last gradient.
    n_iter : int
        Newton steps.
    """

    weights: np.ndarray
    gradient: float
    n_iter: int

    def log_prob(self, features):
        """Return log-probabilities, shape (n_samples, n_classes)."""
        logits = features @ self.weights[:, :-1].T + self.weights[:, -1]
        return log_softmax(logits)


def log_softmax(logits):
    """Return logits less the logarithm of the sum of their exponentials."""
    logits = logits - logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def whiten_columns(latents):
    """Return the standardised principal components of rank-revealing whitening.

    Parameters
    ----------
    latents : ndarray of shape (n_samples, n_columns)
        Finite; constant and dependent columns are fine.

    Returns
    -------
    ndarray of shape (n_samples, rank)
        Uncorrelated, variance 1; the same up to a rotation for every invertible affine
        map of the latents.
    """
    centred = latents - latents.mean(axis=0)
    size = np.abs(centred).max(axis=0)
    # What rounding leaves of a constant column is no direction.
    noise = 1e-12 * np.abs(latents).max(axis=0, initial=0.0)
    centred = centred[:, size > noise]
    centred = centred / centred.std(axis=0)
    variance, axes = linalg.eigh(centred.T @ centred / len(latents))
    kept = variance > 1e-10 * variance.max(initial=0.0)
    return centred @ (axes[:, kept] / np.sqrt(variance[kept]))


def balanced_weights(codes):
    """Return weights of rows, of mean 1, that give each class the same sum."""
    counts = np.bincount(codes)
    return (len(codes) / (len(counts) * counts))[codes]


def fit_softmax(features, codes, weights, *, alpha=0.0, start=None, tol=1e-8):
    """Fit a multinomial logistic regression.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_columns)
        Columns, best whitened.
    codes : ndarray of int of shape (n_samples,)
        Classes 0, 1, ..., of which each occurs.
    weights : ndarray of shape (n_samples,)
        Weights of rows.
    alpha : float
        Strength of the penalty. At 0 with separable classes there is no optimum, and
        the steps end where the gradient is below ``tol``: the loss is then near 0.
    start : ndarray of shape (n_classes, n_columns + 1), optional
        Weights to start from.
    tol : float
        Stop where no entry of the gradient is larger.

    Returns
    -------
    Softmax
    """
    rows = np.append(features, np.ones((len(features), 1)), axis=1)
    shares = weights / weights.sum()
    penalty = np.full(rows.shape[1], alpha / len(rows))
    penalty[-1] = 0.0
    w = _first_guess(rows, codes, weights, alpha) if start is None else start
    solver_of = _newton_steps if w.size <= _LARGEST_HESSIAN else _conjugate_steps

    def evaluate(w):
        log_p = log_softmax(rows @ w.T)
        fit = shares @ log_p[np.arange(len(rows)), codes]
        return log_p, 0.5 * (penalty * w**2).sum() - fit

    log_p, value = evaluate(w)
    damping = _LEAST
    for n_iter in range(_MAX_ITER + 1):  # noqa: B007 - counted for the result
        p = np.exp(log_p)
        residual = p * shares[:, None]
        residual[np.arange(len(rows)), codes] -= shares
        gradient = residual.T @ rows + penalty * w
        if np.abs(gradient).max() <= tol:
            break
        solve = solver_of(rows, p, shares, penalty, gradient)
        while damping < _MOST:
            step = solve(damping)
            log_p, new = evaluate(w - step)
            # Rounding of the value is allowed for near the optimum.
            if new <= value - 1e-4 * (gradient * step).sum() + 1e-14:
                break
            damping = max(10.0 * damping, _MORE)
        else:
            break
        damping = damping / 10.0 if damping > _MORE else _LEAST
        w, value = w - step, new
    return Softmax(w, float(np.abs(gradient).max()), n_iter)


def _first_guess(rows, codes, weights, alpha):
    """Return a rough fit to every eighth row, where those are plenty, else zeros."""
    guess, some = np.zeros((int(codes.max()) + 1, rows.shape[1])), slice(None, None, 8)
    few = len(rows) < _PLENTY * guess.size
    if few or len(np.unique(codes[some])) < len(guess):
        return guess
    # Rough, lest classes that few rows separate get weights that are hard to undo.
    return fit_softmax(
        rows[some, :-1], codes[some], weights[some],
        alpha=alpha, start=guess, tol=_ROUGH,
    ).weights  # fmt: skip


def _newton_steps(rows, p, shares, penalty, gradient):
    """Return a function of the damping that solves with the whole Hessian.

    That is sum_i share_i (diag(p_i) - p_i p_i') x (row_i row_i').
    """
    n_classes, width = gradient.shape
    hessian = np.zeros((n_classes * width,) * 2)
    blocks = np.zeros((n_classes, width**2))
    length = max(1, _BLOCK_ENTRIES // max(width**2, n_classes * width))
    for start in range(0, len(rows), length):
        part = slice(start, start + length)
        x, q, share = rows[part], p[part], shares[part, None]
        squares = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        blocks += (q * share).T @ squares
        outer = ((q * np.sqrt(share))[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        hessian -= outer.T @ outer
    for k, block in enumerate(blocks):
        own = slice(k * width, (k + 1) * width)
        hessian[own, own] += block.reshape(width, width) + np.diag(penalty)
    scale = np.sqrt(np.maximum(np.diag(hessian), np.finfo(float).tiny))
    hessian /= scale[:, None] * scale

    def solve(damping):
        damped = hessian + damping * np.eye(len(scale))
        try:
            factor = linalg.cho_factor(damped, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:  # by rounding, with the least damping
            return solve(100.0 * damping)
        step = linalg.cho_solve(factor, gradient.ravel() / scale, check_finite=False)
        return (step / scale).reshape(gradient.shape)

    return solve


def _conjugate_steps(rows, p, shares, penalty, gradient):
    """Return a function of the damping that solves by conjugate gradients.

    The smaller the gradient, the more exactly.
    """
    size = gradient.size
    weighted = p * shares[:, None]
    diagonal = weighted.T @ rows**2 - (weighted * p).T @ rows**2 + penalty
    diagonal = np.maximum(diagonal, np.finfo(float).tiny)

    def solve(damping):
        def product(v):
            v = v.reshape(gradient.shape)
            t = rows @ v.T
            t = weighted * (t - (p * t).sum(axis=1, keepdims=True))
            return (t.T @ rows + (penalty + damping * diagonal) * v).ravel()

        shape = (size, size)
        operator = sparse_linalg.LinearOperator(shape, product, dtype=float)
        inverse = sparse_linalg.LinearOperator(
            shape, lambda v: v / diagonal.ravel(), dtype=float
        )
        accuracy = min(0.1, np.sqrt(np.linalg.norm(gradient)))
        step = sparse_linalg.cg(
            operator, gradient.ravel(), rtol=accuracy, maxiter=500, M=inverse
        )[0]
        return step.reshape(gradient.shape)

    return solve
