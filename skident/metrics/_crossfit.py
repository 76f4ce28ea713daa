"""Cross-fitting of maps between two representations, over joblib workers."""

import contextlib

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from skident._math import alignment
from skident._math.paired_rows import chunks, fold_moments, training_moments

# Maps of the learning curve are fitted on no fewer rows.
_FEWEST_ROWS = 4


class Workers:
    """Calls a function on many arguments, in threads unless joblib is told otherwise.

    Parameters
    ----------
    n_jobs : int or None
        As in joblib.
    advance : callable
        Called with a number of finished calls.
    """

    def __init__(self, n_jobs, advance):
        self._parallel = Parallel(n_jobs=n_jobs, prefer="threads")
        self._n_jobs = effective_n_jobs(n_jobs)
        self._advance = advance

    def map(self, function, arguments):
        """Return the results of ``function`` on each tuple of arguments."""
        arguments = list(arguments)
        with self._own_threads():
            results = self._parallel(delayed(function)(*args) for args in arguments)
        self._advance(len(arguments))
        return results

    def _own_threads(self):
        """Keep workers times threads of linear algebra at the number of cores."""
        if self._n_jobs == 1:
            return contextlib.nullcontext()
        limit = max(1, effective_n_jobs(-1) // self._n_jobs)
        return threadpool_limits(limits=limit, user_api="blas")


class Folds:
    """Folds of rows, and a random order of the rows of each.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
        Fold of each row.
    places : ndarray of shape (n_samples,)
        As by :func:`skident._math.resampling.shuffled_places`.
    """

    def __init__(self, labels, places):
        self.labels, self.places = labels, places
        self.sizes = np.bincount(labels)
        self.count = len(self.sizes)

    def subset(self, rows):
        """Return the folds of some rows."""
        return Folds(self.labels[rows], self.places[rows])

    def below(self, bound):
        """Return which rows stand below a bound in the random order of their fold."""
        return self.places < bound

    def training_size(self, kept=None):
        """Return the mean number of training rows, among the rows kept."""
        total = len(self.labels) if kept is None else np.count_nonzero(kept)
        return total * (self.count - 1) / self.count

    def shared_training_rows(self, n_rows):
        """Return sets of rows, and which of them each fold trains on.

        A set serves several folds if there are ``n_rows`` rows outside all of them:
        two may then do for all folds. If there are not, each fold gets all rows of the
        others.

        Parameters
        ----------
        n_rows : int
            Most rows in a set.

        Returns
        -------
        sets : list of ndarray of int
            Ascending rows.
        used : ndarray of int of shape (n_folds,)
        """
        for count in range(2, self.count + 1):
            used = np.arange(self.count) * count // self.count
            apart = np.bincount(used, weights=self.sizes)
            if len(self.labels) - apart.max() >= n_rows:
                break
        sets = []
        for k in range(count):
            rows = np.flatnonzero(used[self.labels] != k)
            if rows.size > n_rows:
                order = np.argsort(self.places[rows], kind="stable")[:n_rows]
                rows = np.sort(rows[order])
            sets.append(rows)
        return sets, used


def unmix_folds(X, Y, folds, n_rows, workers):
    """Solve ICA on each side's training rows.

    Parameters
    ----------
    X, Y : Rows
        Paired rows.
    folds : Folds
        Of the rows.
    n_rows : int
        Most rows on which ICA is solved.
    workers : Workers
        Each solves one side of one set of rows.

    Returns
    -------
    list of pairs of Unmixing
        One pair a fold.
    """
    sets, used = folds.shared_training_rows(n_rows)
    tasks = [(side, rows) for rows in sets for side in (X, Y)]
    found = workers.map(alignment.unmix, tasks)
    return [(found[2 * k], found[2 * k + 1]) for k in used]


def crossfit(X, Y, folds, names, unmixings, workers, trained=None):
    """Fit each map on all folds but one and measure it on that one.

    Parameters
    ----------
    X, Y : Rows
        Paired rows, the wider side first.
    folds : Folds
        Of the rows.
    names : sequence of str
        Groups of transformations.
    unmixings : list of pairs of Unmixing, or None
        As by :func:`unmix_folds`; None without "ica".
    workers : Workers
        Each passes over a part of the rows, or fits the maps of a fold.
    trained : ndarray of bool of shape (n_samples,), optional
        Rows that maps may be fitted on; default all. Errors are taken on all.

    Returns
    -------
    errors : ndarray of shape (2, n_samples, n_transformations)
        Distances in units of the target: X to Y first, then Y to X.
    sound : ndarray of bool of shape (n_transformations,)
        Whether every map was determined by its rows (and ICA converged).
    """
    labels = folds.labels if trained is None else np.where(trained, folds.labels, -1)
    unmixings = [None] * folds.count if unmixings is None else unmixings
    if alignment.fits_on_rows(X.shape, Y.shape):
        fits = workers.map(
            _fit_on_rows,
            ((X, Y, labels, k, names, unmixings[k]) for k in range(folds.count)),
        )
    else:
        parts = _all_moments(X, Y, labels, folds.count, "linear" in names, workers)
        fits = workers.map(
            _fit_on_moments,
            ((parts, k, names, unmixings[k]) for k in range(folds.count)),
        )
    maps = [found for found, _ in fits]
    scores = workers.map(
        alignment.score_rows,
        ((X, Y, folds.labels, maps, rows) for rows in chunks(X.shape)),
    )
    sound = np.all([fine for _, fine in fits], axis=0)
    return np.concatenate(scores, axis=1), sound


def _all_moments(X, Y, labels, count, full, workers):
    chunked = workers.map(
        fold_moments,
        ((X, Y, labels, count, rows, full) for rows in chunks(X.shape)),
    )
    parts = chunked.pop(0)
    for others in chunked:
        for part, other in zip(parts, others, strict=True):
            part.add(other)
    return parts


def _fit_on_moments(parts, fold, names, unmixings):
    sums = training_moments(parts, fold).centred()
    return alignment.fit_maps(names, sums, unmixings)


def _fit_on_rows(X, Y, labels, fold, names, unmixings):
    rows = np.flatnonzero((labels != fold) & (labels >= 0))
    training = X.take(rows, np.float64), Y.take(rows, np.float64)
    return alignment.fit_maps(names, training, unmixings)


class Comparison:
    """Cross-fitted errors between two sides, their chance level and learning curve.

    Inside, the wider side comes first, so that exchanging the sides exchanges the
    results to the last digit where the widths differ, and else up to rounding.

    Parameters
    ----------
    sides : pair of Rows
        Paired rows.
    folds : Folds
        Of the rows.
    names : sequence of str
        Groups of transformations.
    max_samples : int
        Most rows for ICA, chance and the learning curve.
    workers : Workers
        Do the work.

    Attributes
    ----------
    few_rows : ndarray of int
        The rows that chance and the learning curve take.
    few : Folds
        Theirs.
    """

    def __init__(self, sides, folds, names, max_samples, workers):
        self._step = 1 if sides[0].shape[1] >= sides[1].shape[1] else -1
        self._sides = tuple(sides[:: self._step])
        self._names, self._max_samples, self._workers = names, max_samples, workers
        self.folds = folds
        share = min(1.0, max_samples / len(folds.labels))
        self.few_rows = np.flatnonzero(folds.below(share))
        self.few, self._few_sides = folds, self._sides
        if share < 1.0:
            self.few = folds.subset(self.few_rows)
            self.few.places /= share
            self._few_sides = tuple(side.subset(self.few_rows) for side in self._sides)

    def errors(self):
        """Return the error of each row, (2, n_samples, n_transformations), and sound.

        From the first side to the second, then back; see :func:`crossfit`.
        """
        self._unmixings = self._unmix(self._max_samples)
        errors, sound = self._crossfit(self._sides, self.folds, self._unmixings)
        return errors[:: self._step], sound

    def axes_stability(self):
        """Return how well ICA finds the axes of either side again, or None."""
        if self._unmixings is None:
            return None
        sides = list(zip(*self._unmixings, strict=True))
        return np.array([alignment.axes_stability(side) for side in sides])[
            :: self._step
        ]

    def chance(self, swap):
        """Return mean errors, (2, n_transformations), with one side's rows permuted.

        Parameters
        ----------
        swap : ndarray of int
            Permutation of ``few_rows`` within folds, its own inverse.
        """
        X, Y = self._few_sides
        errors, _ = self._crossfit((X, Y.subset(swap)), self.few, self._unmixings)
        return errors.mean(axis=1)[:: self._step]

    def learning_curve(self, fractions):
        """Return numbers of training rows, and mean errors, (2, n_transformations).

        Parameters
        ----------
        fractions : sequence of float
            Parts of ``few_rows``, ascending.
        """
        sizes, points = [], []
        for fraction in fractions:
            trained = self.few.below(fraction)
            counts = np.bincount(self.few.labels[trained], minlength=self.few.count)
            if counts.sum() - counts.max() < _FEWEST_ROWS:
                continue
            sizes.append(self.few.training_size(trained))
            errors, _ = self._crossfit(
                self._few_sides, self.few, self._unmix(int(sizes[-1])), trained
            )
            points.append(errors.mean(axis=1)[:: self._step])
        return sizes, points

    def _unmix(self, n_rows):
        if "ica" not in self._names:
            return None
        n_rows = min(n_rows, self._max_samples)
        return unmix_folds(*self._sides, self.folds, n_rows, self._workers)

    def _crossfit(self, sides, folds, unmixings, trained=None):
        return crossfit(*sides, folds, self._names, unmixings, self._workers, trained)
