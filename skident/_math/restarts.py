"""Independent component analysis from many starts: the best, and how it recurs."""

import functools

import numpy as np
from scipy import optimize

from skident._math.ica import SAMPLE_ENTRIES, solve
from skident._math.rotations import random_rotation
from skident._math.rows import Rows, sample, white_rows

_SAME = 1e-6


def restart(whitened, rng, **options):
    """Solve from a random start on half of the rows, then on all.

    The other half is solved from a start of its own. Rows of more than
    ``2 * SAMPLE_ENTRIES`` numbers are halved after a sample of so many.

    Parameters
    ----------
    whitened : ndarray of shape (n_samples, n_components) or Rows
        White rows.
    rng : Generator
        Of the start and the halves.
    **options : dict
        ``contrast``, ``max_iter`` and ``tol`` of :func:`solve`.

    Returns
    -------
    solution : Solution
    pair : list of two ndarray of shape (n_components, n_components)
        The rotations found on the halves: their difference is that of both the
        optimisation and the sample.
    """
    rows = whitened if isinstance(whitened, Rows) else white_rows(whitened)
    k = rows.n_components
    stored = rows
    if not rows.is_stored or rows.single:
        stored = sample(rows, min(rows.n_rows, 2 * SAMPLE_ENTRIES // k))
    shuffled = rng.permutation(stored.n_rows)
    middle = (stored.n_rows + 1) // 2
    pair = []
    for half in (np.sort(shuffled[:middle]), np.sort(shuffled[middle:])):
        start = random_rotation(rng, k)
        pair.append(solve(stored.take(half), start=start, **options).rotation)
    return solve(rows, start=pair[0], **options), pair


def solve_often(whitened, rngs, run=map, **options):
    """Solve from the start of the data and from random ones, and keep the best.

    A later start replaces an earlier one only if its objective is larger by 1e-6
    relative, so that starts that agree leave the answer alone; one with coupled sources
    never replaces one without.

    Parameters
    ----------
    whitened : ndarray of shape (n_samples, n_components) or Rows
        White rows.
    rngs : iterable of Generator
        One a random start.
    run : callable
        ``map``, or one in parallel, over the restarts.
    **options : dict
        ``contrast``, ``max_iter`` and ``tol`` of :func:`solve`.

    Returns
    -------
    best : Solution
    halves : list of pairs of ndarray of shape (n_components, n_components)
        What :func:`restart` found on the halves of the rows.
    """
    best, halves = solve(whitened, **options), []
    for trial, pair in run(functools.partial(restart, whitened, **options), rngs):
        enough = not best.coupled, best.objective * (1 + _SAME)
        if (not trial.coupled, trial.objective) > enough:
            best = trial
        halves.append(pair)
    return best, halves


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
