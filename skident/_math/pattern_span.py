"""From a decoder to a span, and how far the patterns found in a span can be trusted.

The span comes from a decoder whose logits are ``h_i + sum_a xi_ia phi_a(z)``. Both
their Jacobians and their deviations from the mean lie in the span of the patterns.

Even a random span of ``n_dims`` of ``n_sites`` dimensions holds sign vectors that come
near to it. How near was measured: :func:`random_confidence`.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from skident._math.binary_span import decode_span
from skident._math.cavity import polish_span

# The mean best confidence of random spans is 2 / pi + _SLOPE * sqrt((n_dims - 1) /
# n_sites) up to .03, and the best of 20 spans exceeds that by about _SPREAD /
# sqrt(n_sites * n_dims), for n_dims <= n_sites / 4; beyond, both are too high.
_SLOPE, _SPREAD, _MOST = 0.57, 0.8, 0.97
# Tracy-Widom distribution of real matrices: its 99 % quantile.
_LARGEST_OF_NOISE = 2.02
_LEAST_CONFIDENCE = 0.9
# What a dimension more must gain: a claim that barely stands out does not.
_DIMENSION_COST = 0.15
# Directions beyond the number of patterns asked for: a collapsed latent can put one
# that is noise first.
_MORE_DIMS = 4
# Rows that a span is polished on: the error left is far below what rounding removes.
_MOST_ROWS = 20_000


class FoundPatterns(NamedTuple):
    """The patterns of the best span.

    Attributes
    ----------
    patterns : ndarray of shape (n_patterns, n_sites), int8
        Entries in {-1, 1}, best first.
    confidence : ndarray of shape (n_patterns,)
        Squared cosine of the angle between each pattern and the span.
    claimed : ndarray of shape (n_patterns,), bool
        Whether a pattern stands out from noise.
    basis : ndarray of shape (n_sites, n_dims)
        The span.
    level : float
        The least confidence of a pattern that is claimed.
    from_data : bool
        Whether the span is that from the rows.
    """

    patterns: np.ndarray
    confidence: np.ndarray
    claimed: np.ndarray
    basis: np.ndarray
    level: float
    from_data: bool

    @property
    def gain(self):
        """How far the claims stand out, each 1 at best, less a cost a dimension."""
        above = (self.confidence[self.claimed] - self.level).sum()
        cost = _DIMENSION_COST * self.basis.shape[1]
        return above / max(1.0 - self.level, 1e-9) - cost


def find_patterns(
    directions, bits, n_dims, *, n_patterns, min_confidence, solver, data_span, seed
):
    """Find patterns in the leading directions, and choose how many directions to take.

    Parameters
    ----------
    directions : ndarray of shape (n_sites, n_sites)
        Orthonormal columns, the most important first.
    bits : ndarray of shape (n_samples, n_sites)
        Rows, 0 or 1.
    n_dims : int
        The most directions to take; with ``n_patterns`` never many more than that.
    n_patterns : int or None
        How many patterns to look for, at most ``n_dims``; None takes all.
    min_confidence : float or "auto"
        Least confidence of a pattern that is claimed; "auto" is 0.9, or what a random
        span hardly reaches if that is more.
    solver : str
        As for :func:`skident._math.binary_span.decode_span`.
    data_span : bool
        Whether to try a span from the rows as well: their principal axes, polished
        (see :mod:`skident._math.cavity`).
    seed : int
        Of the search and the choice of rows.

    Returns
    -------
    FoundPatterns
        Those of the span whose claims stand out most: see :attr:`FoundPatterns.gain`.
        Nothing is claimed where :func:`varies_beyond_noise` is False.
    """
    if n_patterns is not None:
        n_dims = min(n_dims, n_patterns + _MORE_DIMS)
    spans = [directions[:, :n_dims]]
    if data_span:
        rows = np.random.default_rng(seed).permutation(len(bits))[:_MOST_ROWS]
        signs = 2.0 * bits[rows] - 1.0
        axes = np.linalg.eigh(np.atleast_2d(np.cov(signs.T)))[1][:, ::-1]
        spans.append(polish_span(signs, axes[:, :n_dims]))
    best, varies = None, varies_beyond_noise(bits)
    for n in range(n_patterns or 1, n_dims + 1):
        for from_data, span in enumerate(spans):
            basis = span[:, :n]
            decoded = decode_span(basis, solver=solver, seed=seed)
            patterns = decoded.patterns[:n_patterns]
            confidence = 1.0 - decoded.residuals[:n_patterns]
            level = min_confidence
            if level == "auto":
                level = max(_LEAST_CONFIDENCE, random_confidence(len(basis), n))
            claimed = (confidence >= level) & varies
            found = FoundPatterns(
                patterns, confidence, claimed, basis, level, bool(from_data)
            )
            best = found if best is None or found.gain > best.gain else best
        if best.claimed.sum() == n_patterns:
            break
    return best


def decoder_span(jacobians, logits):
    """Return the directions in which a decoder moves, over many latents.

    Parameters
    ----------
    jacobians : ndarray of shape (n_points, n_sites, n_latents)
        Jacobians of the decoder's logits.
    logits : ndarray of shape (n_points, n_sites)
        The logits themselves: they know the wells, the Jacobians what lies between.

    Returns
    -------
    directions : ndarray of shape (n_sites, n_sites)
        Orthonormal columns: the left singular vectors of the Jacobians and of the
        logits' deviations from their mean side by side, the largest first.
    spectrum : ndarray of shape (n_sites,)
        Root-mean-square singular values, descending.
    """
    stacked = np.moveaxis(jacobians, 1, 0).reshape(jacobians.shape[1], -1)
    deviations = (logits - logits.mean(axis=0, dtype=np.float64)).T
    second = sum(m @ m.T for m in (stacked.astype(np.float64), deviations))
    variances, vectors = np.linalg.eigh(second / len(logits))
    return vectors[:, ::-1], np.sqrt(np.maximum(variances[::-1], 0.0))


def random_confidence(n_sites, n_dims):
    """Return a confidence that the best sign vector of a random span hardly reaches.

    Parameters
    ----------
    n_sites : int
        Number of sites.
    n_dims : int
        Dimension of the span.

    Returns
    -------
    float
        Squared cosine, at most 0.97; a random span exceeds it in few per cent of cases.
    """
    mean = 2.0 / np.pi + _SLOPE * np.sqrt((n_dims - 1) / n_sites)
    return float(min(mean + _SPREAD / np.sqrt(n_sites * n_dims), _MOST))


def entry_confidence(basis, patterns):
    """Return the probability that each entry of each pattern is right.

    The other entries of a pattern predict each one: 1 where the span is exact, by
    leaving the site out of the projection. The predictions are taken to be +-1 with
    Gaussian noise, of a variance that is the mean squared error of the pattern.

    Parameters
    ----------
    basis : ndarray of shape (n_sites, n_dims)
        Orthonormal columns.
    patterns : ndarray of shape (n_patterns, n_sites)
        Entries in {-1, 1}.

    Returns
    -------
    ndarray of shape (n_patterns, n_sites)
        Probabilities; 0.5 for a site that the others say nothing about.
    """
    signs = patterns.astype(np.float64)
    own = np.einsum("ij,ij->i", basis, basis)
    # A site with a direction of its own is not predicted by the others.
    left = np.maximum(1.0 - own, 1e-9)
    cavity = (signs @ basis @ basis.T * signs - own) / left
    variance = ((1.0 - cavity) ** 2).mean(axis=1, keepdims=True)
    return expit(2.0 * cavity / np.maximum(variance, 1e-12))


def varies_beyond_noise(bits):
    """Tell whether some direction varies more than any of independent columns.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_sites)
        Rows, 0 or 1, independent of each other.

    Returns
    -------
    bool
        Whether the largest eigenvalue of the correlation matrix exceeds what that of
        independent columns does in 1 % of cases (Johnstone 2001).
    """
    deviation = bits.std(axis=0)
    varied = deviation > 0
    n_rows, n_columns = len(bits), int(varied.sum())
    if n_columns == 0:
        return False
    standard = (bits[:, varied] - bits[:, varied].mean(axis=0)) / deviation[varied]
    root = np.sqrt(n_rows) + np.sqrt(n_columns)
    spread = root * (1.0 / np.sqrt(n_rows) + 1.0 / np.sqrt(n_columns)) ** (1.0 / 3.0)
    edge = (root**2 + _LARGEST_OF_NOISE * spread) / n_rows
    return bool(np.linalg.eigvalsh(standard.T @ standard / n_rows)[-1] > edge)
