"""Mutual information of two parts of two-valued columns: a learned lower bound.

One part, b, is predicted from the other, a, by a chain of logistic regressions,

    logit q(b_i = 1 | a, b_1..b_{i-1}) = h_i + sum_j U_ji a_j + sum_{j<i} V_ji b_j,

and each of K other rows is contrasted with the parts a of all K:

    I(A; B) >= E ln [ q(b | a) / (1/K sum_k q(b | a_k)) ].

This holds for any q that was fitted on other rows and for any K (Poole et al. 2019,
"On variational bounds of mutual information", equation 10): a poor q and few rows only
lower it, and it is at most ln K. The plain difference of two chains, ln q(b|a) less
ln q(b), has no such sign: it is too large where q(b) misses more than q(b|a) does.
"""

import numpy as np
from scipy.special import logit

from skident._math.information import (
    bernoulli_log_prob,
    fit_logistic,
    smoothed_means,
)

# Names of the cuts that need no list of columns.
CUTS = ("half", "checkerboard", "random-max")
# Rows that are contrasted with one another.
_MOST_CONTRASTED = 2000
# Standard deviations that the prior may give a coupling; the first is the widest.
_SPREADS = (1.0, 0.3, 0.1, 0.03, 0.01)
# Regressions that choose among them.
_TRIED = 8
# In nats of all rows.
_TOL = 1e-3
# Entries of a block of the contrast: it fits a processor's cache.
_BLOCK = 2**15
# Logits are bounded so that a product of _FACTORS terms 1 + exp(2 * bound) is finite.
_BOUND, _FACTORS = 30.0, 8
_RANDOM_CUTS = 10


def cut_columns(partition, n_columns, shape=None):
    """Return which columns are the first part of a cut.

    Parameters
    ----------
    partition : {"half", "checkerboard"} or ndarray
        "half": the first ``n_columns // 2``. "checkerboard": the sites of a lattice
        with an even sum of coordinates. An array of bool marks the columns of the first
        part, one of ints lists them.
    n_columns : int
        Number of columns, at least 2.
    shape : int or sequence of int, optional
        Sides of the lattice that the columns are the sites of, in C order.

    Returns
    -------
    ndarray of shape (n_columns,), bool

    Raises
    ------
    ValueError
        For a cut that leaves one part empty or names columns that there are not.
    """
    if isinstance(partition, str):
        if partition == "half":
            return np.arange(n_columns) < n_columns // 2
        if partition == "checkerboard":
            return _even_sites(n_columns, shape)
        raise ValueError(
            f"partition must be one of {CUTS}, or a mask or list of columns; got "
            f"{partition!r}."
        )
    columns = np.asarray(partition)
    if columns.dtype == bool and columns.shape == (n_columns,):
        first = columns.copy()
    elif columns.dtype.kind in "iu" and columns.ndim == 1:
        beyond = columns[(columns < 0) | (columns >= n_columns)]
        if beyond.size:
            raise ValueError(
                f"partition lists column {beyond[0]}, but X has columns 0 to "
                f"{n_columns - 1}."
            )
        first = np.zeros(n_columns, dtype=bool)
        first[columns] = True
    else:
        raise ValueError(
            f"partition must be a mask of bool, shape ({n_columns},), or a list of "
            f"column indices; got {columns.dtype} of shape {columns.shape}."
        )
    if first.all() or not first.any():
        raise ValueError(
            f"partition puts {first.sum()} of {n_columns} columns into the first part: "
            "each part needs at least one."
        )
    return first


def _even_sites(n_columns, shape):
    if shape is None:
        raise ValueError(
            'partition="checkerboard" needs shape=, the sides of the lattice that the '
            "columns are the sites of."
        )
    sides = np.atleast_1d(shape)
    if sides.dtype.kind not in "iu" or sides.ndim != 1 or (sides < 1).any():
        raise ValueError(f"shape must be ints, each at least 1; got {shape!r}.")
    if np.prod(sides, dtype=float) != n_columns:
        raise ValueError(
            f"shape must have one site a column: {shape!r} has {np.prod(sides)} sites, "
            f"X {n_columns} columns."
        )
    return np.indices(sides).sum(0).ravel() % 2 == 0


def largest_random_cut(bits, halves, rng):
    """Return the balanced cut with the most information among some random ones.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_columns)
        0 or 1: rows that the information of the cut is not reported on.
    halves : ndarray of shape (n_samples,), bool
        Each cut is fitted on one half and measured on the other.
    rng : Generator
        Draws the cuts.

    Returns
    -------
    ndarray of shape (n_columns,), bool
    """
    n_columns = bits.shape[1]
    cuts = [
        rng.permutation(n_columns) < n_columns // 2
        for _ in range(_RANDOM_CUTS if n_columns > 2 else 1)
    ]
    gains = [_gain_on(bits[~halves], bits[halves], cut).mean() for cut in cuts]
    return cuts[int(np.argmax(gains))]


def cut_gain(bits, first, halves):
    """Held-out information between two parts of each row; its mean is a lower bound.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_columns)
        0 or 1.
    first : ndarray of shape (n_columns,), bool
        Columns of one part; all others are the other part.
    halves : ndarray of shape (n_samples,), bool
        Either half is measured by a model fitted on the other.

    Returns
    -------
    ndarray of shape (n_samples,)
        Nats; in expectation the mean is at most the mutual information.
    """
    gain = np.empty(len(bits))
    for fitted in (halves, ~halves):
        gain[~fitted] = _gain_on(bits[fitted], bits[~fitted], first)
    return gain


def _gain_on(train, test, first):
    """Fit the chain on some rows and contrast others."""
    # The smaller part is predicted: fewer regressions.
    if 2 * first.sum() < len(first):
        first = ~first
    known, target = train[:, first], train[:, ~first]
    model = _fit_chain(known, target, _choose_spread(known, target))
    parts = [test[part] for part in _contrasted(len(test))]
    return np.concatenate(
        [_contrast(part[:, first], part[:, ~first], model) for part in parts]
    )


def _contrasted(n_rows):
    """Rows in nearly equal parts, each contrasted within itself."""
    return np.array_split(np.arange(n_rows), -(-n_rows // _MOST_CONTRASTED))


def fewest_contrasted(halves):
    """Return the least K with which :func:`cut_gain` contrasts a row."""
    counts = np.bincount(halves, minlength=2)
    return min(len(part) for n_rows in counts for part in _contrasted(n_rows))


def _choose_spread(known, target):
    """Return the spread of couplings that predicts a quarter of the rows best."""
    kept = np.arange(len(target)) % 4 == 0
    tried = min(_TRIED, target.shape[1])
    columns = np.linspace(0, target.shape[1] - 1, tried).astype(int)
    best, chosen = -np.inf, _SPREADS[0]
    for spread in _SPREADS:
        model = _fit_chain(known[~kept], target[~kept], spread, columns)
        logits = sum(_logits(known[kept], target[kept], model))[:, columns]
        fit = bernoulli_log_prob(target[kept][:, columns], logits).sum()
        if fit < best:
            break
        best, chosen = fit, spread
    return chosen


def _fit_chain(known, target, spread, columns=None):
    """Regress each column of ``target`` on ``known`` and the columns before it.

    Returns
    -------
    constants : ndarray of shape (n_target,)
    couplings : ndarray of shape (n_known, n_target)
    own : ndarray of shape (n_target, n_target)
        Couplings to the columns before, an upper triangle.
    """
    n_known, n_target = known.shape[1], target.shape[1]
    both = np.concatenate([known, target], axis=1)
    means = smoothed_means(both)
    features = np.empty((len(both), 1 + both.shape[1]))
    features[:, 0], features[:, 1:] = 1.0, spread * (both - means)
    weights = np.zeros((features.shape[1], n_target))
    for column in range(n_target) if columns is None else columns:
        n_used = 1 + n_known + column
        centre = np.zeros(n_used)
        centre[0] = logit(means[n_known + column])
        weights[:n_used, column] = fit_logistic(
            features[:, :n_used], target[:, column], centre, tol=_TOL
        )
    weights[1:] *= spread
    constants = weights[0] - means @ weights[1:]
    return constants, weights[1 : 1 + n_known], weights[1 + n_known :]


def _logits(known, target, model):
    """Return the parts of the logits that are due to either side of each row."""
    constants, couplings, own = model
    return known @ couplings, constants + target @ own


def _contrast(known, target, model):
    """Return ln q(b|a) less the log of its mean over the parts a of all rows."""
    n_rows, n_target = target.shape
    given, own = _logits(known, target, model)
    # -ln q(b|a) = sum_i ln(1 + exp(-/+ logit_i)): a product of exponentials, so that
    # no pair of rows needs one of its own.
    sign = 1.0 - 2.0 * target
    factor = np.exp(np.clip(sign * own, -_BOUND, _BOUND))
    given = np.exp(np.clip(given, -_BOUND, _BOUND))
    given = np.stack([given, 1.0 / given]).transpose(2, 0, 1).copy()
    gain = np.empty(n_rows)
    size = max(1, _BLOCK // n_rows)
    for start in range(0, n_rows, size):
        rows = np.arange(start, min(start + size, n_rows))
        log_prob = np.zeros((len(rows), n_rows))
        product = np.ones_like(log_prob)
        for i in range(n_target):
            product *= 1.0 + factor[rows, i, None] * given[i][target[rows, i]]
            if i % _FACTORS == _FACTORS - 1 or i == n_target - 1:
                log_prob -= np.log(product)
                product[:] = 1.0
        largest = log_prob.max(axis=1)
        mean = np.exp(log_prob - largest[:, None]).mean(axis=1)
        gain[rows] = log_prob[np.arange(len(rows)), rows] - largest - np.log(mean)
    return gain
