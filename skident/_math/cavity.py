r"""A span polished on the data: each site is regressed on the overlaps of the others.

Spins with ``P(s) ~ exp(h . s / 2 + s' J s / 4)`` have the conditional logits

    logit P(s_i = 1 | the others) = h_i + sum_{j != i} J_ij s_j,

and for a J of rank d with column space A these are linear in the d overlaps
``u = A's`` less the site's own share. So the logistic regressions of all sites give
``J = W A'``, and the column space of J is the next A: the pseudo-likelihood (Besag
1975) of a low-rank J, maximised by turns. The span of a Hopfield model's patterns stays
where it is. Started at a span that is roughly right it takes few turns.
"""

import numpy as np
from scipy.special import expit

_MOST_TURNS = 15
_TOL = 1e-4  # mean squared sine between a span and the next
_RIDGE = 1.0  # precision of a Gaussian prior of all coefficients, in counts


def polish_span(signs, basis):
    """Return the span that makes each site most likely given the others.

    Parameters
    ----------
    signs : ndarray of shape (n_samples, n_sites)
        Rows of -1 and 1.
    basis : ndarray of shape (n_sites, n_dims)
        Orthonormal columns: where to start.

    Returns
    -------
    ndarray of shape (n_sites, n_dims)
        Orthonormal eigenvectors of J, the largest eigenvalue by size first.
    """
    signs = signs.astype(np.float64)
    mean = signs.mean(axis=0) * (1.0 - 1.0 / len(signs))
    weights = np.zeros((basis.shape[0], 1 + basis.shape[1]))
    weights[:, 0] = 2.0 * np.arctanh(np.clip(mean, -0.999, 0.999))
    for turn in range(_MOST_TURNS):
        # Far from the maximum at first, one Newton step is not enough.
        for _ in range(1 if turn else 2):
            _newton_step(signs, basis, weights)
        couplings = weights[:, 1:] @ basis.T
        values, vectors = np.linalg.eigh(0.5 * (couplings + couplings.T))
        largest = np.argsort(-np.abs(values), kind="stable")[: basis.shape[1]]
        before, basis = basis, vectors[:, largest]
        overlap = before.T @ basis
        weights[:, 1:] = weights[:, 1:] @ overlap
        if 1.0 - (overlap**2).mean() * basis.shape[1] < _TOL:
            break
    return basis


def _newton_step(signs, basis, weights):
    """Improve the regression of each site, (n_sites, 1 + n_dims), in place."""
    overlaps = signs @ basis
    features = np.ones((len(signs), weights.shape[1]))
    for site, row in enumerate(weights):
        features[:, 1:] = overlaps - np.outer(signs[:, site], basis[site])
        p = expit(features @ row)
        gradient = features.T @ ((signs[:, site] > 0) - p) - _RIDGE * row
        scaled = features * np.sqrt(p * (1.0 - p))[:, None]
        hessian = scaled.T @ scaled + _RIDGE * np.eye(len(row))
        row += np.linalg.solve(hessian, gradient)
