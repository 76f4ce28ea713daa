"""Logistic probes of discrete factors, to a stated gradient, by scikit-learn."""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_sample_weight

from skident._math.probes import ALPHAS, chosen, saved, share, whiten_columns

# Up to so many parameters a step solves with the whole Hessian.
_LARGEST_HESSIAN = 1000
_MAX_ITER = 1000
# With so many rows a parameter the weakest penalty is taken untried: it is within .001
# of the best there.
_PLENTY = 50
_TINY = np.finfo(float).tiny


class Probe(NamedTuple):
    """What a probe finds.

    Attributes
    ----------
    score : float
        Share of the loss of a guess without latents that the probe saves.
    n_iter : int
        Steps of the longest fit; 0 without any.
    gradient : float
        Largest entry of a gradient where a fit ended.
    """

    score: float
    n_iter: int
    gradient: float


NOTHING = Probe(0.0, 0, 0.0)


def in_sample_explicitness(features, codes, tol):
    """Return what an unpenalised balanced logistic probe saves of ln(n_classes).

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_columns)
        Latents.
    codes : ndarray of int of shape (n_samples,)
        Factor, at least two classes, of which each occurs.
    tol : float
        Largest entry of the gradient at the end.

    Returns
    -------
    Probe
    """
    white = whiten_columns(features)
    if not white.shape[1]:
        return NOTHING
    model = _new_model(white, codes, tol)
    gradient = _fit(model, white, codes, 0.0)
    p = model.predict_proba(white)[np.arange(len(codes)), codes]
    loss = -np.log(np.maximum(p, _TINY)).mean()
    return Probe(
        saved(loss, np.log(codes.max() + 1)), int(model.n_iter_.max()), gradient
    )


def held_out_explicitness(features, codes, folds, tol):
    """Return what a balanced logistic probe saves of ln(n_classes) on other rows.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_columns)
        Latents.
    codes : ndarray of int of shape (n_samples,)
        Factor, at least two classes.
    folds : ndarray of int of shape (n_samples,)
        Fold of each row.
    tol : float
        As for :func:`in_sample_explicitness`.

    Returns
    -------
    Probe
        The score is in [0, 1]. Strengths of the penalty are chosen for each fold by
        the losses of the others, from strong ones down to where the loss grows.
    """
    white = whiten_columns(features)
    if not white.shape[1]:
        return NOTHING
    n_parameters = (codes.max() + 1) * (white.shape[1] + 1)
    alphas = ALPHAS[-1:] if len(codes) > _PLENTY * n_parameters else ALPHAS
    models = [_new_model(white, codes, tol) for _ in range(folds.max() + 1)]
    losses, n_iter, largest = [], 0, 0.0
    for alpha in alphas:
        losses.append([])
        for fold, model in enumerate(models):
            loss, steps, gradient = _fold_loss(
                model, white, codes, folds == fold, alpha
            )
            losses[-1].append(loss)
            n_iter, largest = max(n_iter, steps), max(largest, gradient)
        if sum(losses[-1]) > min(map(sum, losses)):
            break
    loss = chosen(np.array(losses).T).sum() / len(codes)
    return Probe(share(saved(loss, np.log(codes.max() + 1))), n_iter, largest)


def _fold_loss(model, white, codes, test, alpha):
    """Return the summed loss on test rows, and steps and gradient of the fit."""
    present, train = np.unique(codes[~test], return_inverse=True)
    n_classes, steps, gradient = codes.max() + 1, 0, 0.0
    p = np.zeros((test.sum(), n_classes))
    if len(present) == 1:
        p[:, present] = 1.0
    else:
        gradient = _fit(model, white[~test], train, alpha)
        steps = int(model.n_iter_.max())
        p[:, present] = model.predict_proba(white[test])
    # A class that training rows lack, or a sure wrong guess, costs ln(K n) and no more.
    floor = 1.0 / (len(train) + 1)
    p = (1.0 - floor) * p[np.arange(len(p)), codes[test]] + floor / n_classes
    return -np.log(p).sum(), steps, gradient


def _new_model(white, codes, tol):
    n_parameters = (codes.max() + 1) * (white.shape[1] + 1)
    return LogisticRegression(
        solver="newton-cholesky" if n_parameters <= _LARGEST_HESSIAN else "newton-cg",
        tol=tol,
        max_iter=_MAX_ITER,
        warm_start=True,
    )


def _fit(model, white, codes, alpha):
    """Fit with balanced classes; return the largest entry of the gradient at the end.

    The penalty is ``alpha / 2`` times the sum of the squared weights of all classes. Of
    two classes scikit-learn has one vector of weights, which is the difference.
    """
    two = codes.max() == 1
    model.set_params(C=np.inf if alpha == 0 else (2.0 if two else 1.0) / alpha)
    weights = compute_sample_weight("balanced", codes)
    with warnings.catch_warnings():
        # Separable classes have no optimum: the gradient tells whether a fit will do.
        warnings.simplefilter("ignore")
        model.fit(white, codes, sample_weight=weights)
    slopes = np.append(-model.coef_, model.coef_, axis=0) / 2 if two else model.coef_
    residual = model.predict_proba(white)
    residual[np.arange(len(codes)), codes] -= 1.0
    residual *= (weights / len(codes))[:, None]
    gradient = residual.T @ white + alpha / len(codes) * slopes
    return float(max(np.abs(gradient).max(), np.abs(residual.sum(axis=0)).max()))
