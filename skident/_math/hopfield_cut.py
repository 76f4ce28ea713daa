"""Mutual information of two halves of the sites of a Hopfield model.

Given the overlaps of a half its spins are uniform over the configurations that have
them, whatever the other half, so that the overlaps carry all the information. The
weight of two halves together, exp(beta |v_1 + v_2|^2 / 2N), is a product over patterns,
so that the sum over one half is done pattern by pattern, not over pairs of overlaps;
but for many patterns on few sites, where pairs are fewer.
"""

import numpy as np
from scipy.special import logsumexp

from skident._kernels.hopfield_exact import sum_along
from skident._math.hopfield import (
    MOST_SITES,
    blocks_of_classes,
    class_binomials,
    class_levels,
    count_levels,
    slab_bases,
    slab_box,
)

# Beyond this times the number of sites all but the ground states weigh nothing, and
# logs of weights, which are large, would round.
_COLDEST = 50.0
# Bounds the memory of the sum over pairs (entries of one block).
_BLOCK = 1 << 20


def half_cut_information(classes, beta, entropy, most_steps):
    """Mutual information of the first half of the sites and the rest.

    Parameters
    ----------
    classes : Classes
        The model.
    beta : float
        Inverse temperature.
    entropy : float
        Entropy of all spins, in nats.
    most_steps : float
        Where more exponentials than this are to be taken the answer is None.

    Returns
    -------
    float or None
        In nats.
    """
    n_sites = len(classes.sites)
    beta = min(beta, _COLDEST * n_sites)
    parts = _halves(classes)
    with np.errstate(over="ignore"):
        n_pairs = np.prod([np.prod(sizes + 1.0) for sizes in parts])
    n_steps = np.inf
    if n_sites <= MOST_SITES:
        levels = class_levels(classes)
        some, other = (_part_totals(levels, sizes)[-1] for sizes in parts)
        n_steps = _n_steps(some, other) + _n_steps(other, some)
    if min(n_pairs, n_steps) > most_steps:
        return None
    if n_pairs < n_steps:
        both = _pair_entropies(classes, parts, beta / (2 * n_sites))
    else:
        both = _level_entropies(levels, parts, beta)
    return max(0.0, float(both - entropy))


def _halves(classes):
    """Sizes of the classes among the first half of the sites, and among the rest."""
    labels = np.repeat(np.arange(len(classes.sizes)), classes.sizes)
    first = labels[classes.sites < len(classes.sites) // 2]
    left = np.bincount(first, minlength=len(classes.sizes))
    return left, classes.sizes - left


def _pair_entropies(classes, parts, scale):
    """Sum of the entropies of both halves, over pairs of their overlaps."""
    some, other = (_overlaps(classes, sizes) for sizes in parts)
    v = np.hstack([other[0], -other[0]])
    counts = np.tile(other[1] - np.log(2), 2)
    square = (v**2).sum(axis=0)
    rows, columns = [], np.full(len(counts), -np.inf)
    size = max(1, _BLOCK // len(counts))
    for first in range(0, len(some[1]), size):
        u, own = (part[..., first : first + size] for part in some)
        log_p = 2.0 * u.T @ v + square + (u**2).sum(axis=0)[:, None]
        log_p *= scale
        log_p += own[:, None] + counts
        rows.append(logsumexp(log_p, axis=1))
        columns = np.logaddexp(columns, logsumexp(log_p, axis=0))
    # The overlaps of one half stand for their reverses too.
    columns = np.logaddexp(*np.split(columns, 2))
    return _entropy(np.concatenate(rows), some[1]) + _entropy(columns, other[1])


def _overlaps(classes, sizes):
    """Overlaps of one half, half of them, and log configurations with reverses."""
    some = sizes > 0
    half = classes._replace(columns=classes.columns[:, some], sizes=sizes[some])
    overlaps, logs = zip(*blocks_of_classes(half), strict=True)
    return np.hstack(overlaps), np.concatenate(logs)


def _entropy(log_p, log_counts):
    """Entropy, in nats, of overlaps (not normalised) and the spins that have them."""
    possible = log_counts > -np.inf
    log_p = log_p[possible] - log_p.max()
    log_p -= logsumexp(log_p)
    return np.exp(log_p) @ (log_counts[possible] - log_p)


def _level_entropies(levels, parts, beta):
    """Sum of the entropies of both halves, pattern by pattern."""
    logs = _log_weights(levels, beta)
    some, other = (_tables(levels, sizes) for sizes in parts)
    return _marginal_entropy(some, other, logs) + _marginal_entropy(other, some, logs)


def _part_totals(levels, sizes):
    """As ``levels.totals`` but for classes of other sizes."""
    totals = np.zeros_like(levels.totals)
    np.cumsum((levels.bits * sizes).T, axis=0, out=totals[1:])
    return totals


def _n_steps(some, other):
    """Count the exponentials that :func:`_marginal_entropy` takes, from totals."""
    widths = []
    for total in (some, other):
        low, high = slab_box(np.arange(total[0] + 1)[:, None], total)
        widths.append(high - low + 1.0)
    with np.errstate(over="ignore"):
        done = np.cumprod(widths[0], axis=1).sum(axis=0)
        to_do = np.cumprod(widths[1][:, ::-1], axis=1).sum(axis=0)[::-1]
        return float((done * to_do).sum() + len(widths[0]) * len(widths[1]))


def _tables(levels, sizes):
    """Log configurations of each slab, as boxes, with the lowest levels of each."""
    some = sizes > 0
    totals = _part_totals(levels, sizes)[np.r_[True, some]]
    total = totals[-1]
    bases = slab_bases(totals, total[0])
    part = levels._replace(bits=levels.bits[:, some], totals=totals, bases=bases)
    with np.errstate(divide="ignore"):
        counts = np.log(count_levels(part, class_binomials(sizes[some])))
    tables = []
    for up in range(total[0] + 1):
        low, high = slab_box(up, total)
        slab = counts[bases[-1, up] : bases[-1, up + 1]]
        tables.append((low, slab.reshape(high - low + 1)))
    return tables


def _log_weights(levels, beta):
    """Log weights by number of ups and, but for the first, by the entry of the level.

    Entry b of the list belongs to bit b: shape (n_sites + 1,), then
    (n_sites + 1, n_b + 1).
    """
    total = levels.totals[-1]
    n_sites = total[0]
    n_alike = np.count_nonzero(levels.turn, axis=0)
    n_alike[0] -= n_alike[1:].sum()
    up = np.arange(n_sites + 1)
    scale = beta / (2 * n_sites)
    logs = [scale * n_alike[0] * (2.0 * up - n_sites) ** 2]
    for n, number in zip(total[1:], n_alike[1:], strict=True):
        v = 4.0 * np.arange(n + 1) - 2.0 * up[:, None] + n_sites - 2 * n
        logs.append(scale * number * v**2)
    return logs


def _marginal_entropy(some, other, logs):
    """Entropy, in nats, of the spins of one half; ``other`` is summed over."""
    n_some = len(some) - 1
    log_p, log_counts = [], []
    # The slabs beyond the half have the same entropies.
    for up in range(n_some // 2 + 1):
        low, counts = some[up]
        weight = np.full(counts.shape, -np.inf)
        for more, (other_low, other_counts) in enumerate(other):
            part = _summed(low + other_low, counts.shape, other_counts, logs, up + more)
            weight = np.logaddexp(weight, part)
        log_p.append((weight + counts).ravel() + np.log(2) * (2 * up < n_some))
        log_counts.append(counts.ravel() + np.log(2) * (2 * up < n_some))
    return _entropy(np.concatenate(log_p), np.concatenate(log_counts))


def _summed(low, shape, counts, logs, up):
    """Log of the sum over a slab of one half for each level of a slab of the other."""
    for axis, n_to in enumerate(shape):
        n_from = counts.shape[axis]
        after = counts.shape[axis + 1 :]
        total = np.empty((int(np.prod(shape[:axis])), n_to, int(np.prod(after))))
        reach = slice(low[axis], low[axis] + n_from + n_to - 1)
        sum_along(
            np.ascontiguousarray(counts).reshape(len(total), n_from, -1),
            np.ascontiguousarray(logs[axis + 1][up, reach]), total,
        )  # fmt: skip
        counts = total.reshape(*shape[: axis + 1], *after)
    return counts + logs[0][up]
