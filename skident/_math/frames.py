"""From white coordinates to components of the input: order, signs, own scale."""

from typing import NamedTuple

import numpy as np
from scipy import linalg

_SAME = 1e-6


class Frame(NamedTuple):
    """Components of rows, and the way back.

    Attributes
    ----------
    basis : ndarray of shape (n_components, n_features)
        Maps centred rows to coordinates that a rotation turns to components.
    rotation : ndarray of shape (n_components, n_components)
        That rotation.
    mixing : ndarray of shape (n_features, n_components)
        Right inverse of ``rotation @ basis``.
    variances : ndarray of shape (n_components,)
        What each component adds to the variance of the rows.
    to_unit : ndarray of shape (n_components, n_components) or None
        Maps components to independent ones of unit variance; None if they are.
    order : ndarray of int of shape (n_components,)
        Where each component was among those of the solver.
    """

    basis: np.ndarray
    rotation: np.ndarray
    mixing: np.ndarray
    variances: np.ndarray
    to_unit: np.ndarray | None
    order: np.ndarray


def unit_variance(white, rotation):
    """Return the frame of independent components of unit variance.

    Parameters
    ----------
    white : Whitening
        Whitening of the rows.
    rotation : ndarray of shape (n_components, n_components)
        Orthogonal; white rows to sources.

    Returns
    -------
    Frame
        In canonical order.
    """
    mixing = white.dewhitening @ rotation.T
    order, signs = canonical_order(mixing)
    mixing = mixing[:, order] * signs
    return Frame(
        white.whitening,
        signs[:, None] * rotation[order],
        mixing,
        np.sum(mixing**2, axis=0),
        None,
        order,
    )


def own_scale(white, rotation):
    r"""Return the frame of components that only turn the rows.

    The mixing matrix of unit-variance components has the polar decomposition
    :math:`A = C^{1/2} Q`, :math:`C` the covariance of the rows and :math:`Q` the
    rotation of their symmetric (Mahalanobis) whitening :math:`C^{-1/2} (x - \mu)`:
    components are :math:`Q' (x - \mu)`. Of all orthonormal frames :math:`Q` has the
    largest sum of covariances between components and the unit-variance ones.

    Parameters
    ----------
    white : Whitening
        Whitening of the rows.
    rotation : ndarray of shape (n_components, n_components)
        Orthogonal; white rows to sources.

    Returns
    -------
    Frame
        In canonical order, by the variance of the components.
    """
    k = len(rotation)
    mixing = white.dewhitening @ rotation.T
    turn = linalg.polar(mixing)[0]
    stretch = turn.T @ mixing
    variances = np.sum(stretch**2, axis=1)
    order, signs = canonical_order(turn * np.sqrt(variances / variances.max()))
    turn = turn[:, order] * signs
    to_unit = rotation @ white.whitening @ turn
    basis = white.axes[:, :k].T
    return Frame(
        basis,
        (basis @ turn).T,
        turn,
        variances[order],
        signs[:, None] * to_unit[order],
        order,
    )


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


FRAMES = {"unit-variance": unit_variance, "rotation": own_scale}
