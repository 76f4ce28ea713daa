"""Cross-fitting of maps between two representations, over joblib workers."""

import contextlib

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from skident._math import alignment, resampling
from skident._math.paired_rows import (
    chunks,
    fold_moments,
    in_larger_unit,
    training_moments,
)

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
        self.labels = labels
        self.sizes = np.bincount(labels)
        self.count = len(self.sizes)
        # Each fold starts a little later than the one before it, so that of many folds
        # of one row a bound takes that part as well.
        start = np.arange(self.count) / self.count
        self.places = places + (start / np.maximum(self.sizes, 1))[labels]

    def first(self, n_rows):
        """Return so many rows of least place, or all, ascending."""
        if n_rows >= len(self.places):
            return np.arange(len(self.places))
        return np.sort(np.argsort(self.places, kind="stable")[:n_rows])

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


def ordered_folds(labels, codes, rng):
    """Return folds whose rows are in a random order one by one, whatever their groups.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
        Fold of each row.
    codes : ndarray of int of shape (n_samples,)
        Groups, none in more than one fold.
    rng : Generator
        Draws the order, in which groups follow each other.
    """
    alone = np.argsort(np.argsort(codes, kind="stable"))
    return Folds(labels, resampling.shuffled_places(alone, labels, rng))


def unmix_folds(sides, folds, n_rows, workers):
    """Solve ICA on each side's training rows.

    Parameters
    ----------
    sides : sequence of Rows
        Representations of the same rows.
    folds : Folds
        Of the rows.
    n_rows : int
        Most rows on which ICA is solved.
    workers : Workers
        Each solves one side of one set of rows.

    Returns
    -------
    list of list of Unmixing
        One list a side, of one solution a fold.
    """
    sets, used = folds.shared_training_rows(n_rows)
    found = workers.map(
        alignment.unmix, [(side, rows) for side in sides for rows in sets]
    )
    return [[found[k * len(sets) + j] for j in used] for k in range(len(sides))]


def crossfit(X, Y, folds, names, unmixings, workers, trained=None, check=True):
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
    check : bool
        Whether ``sound`` is asked for; if not, it means nothing.

    Returns
    -------
    errors : ndarray of shape (2, n_samples, n_transformations)
        Distances in units of the target: X to Y first, then Y to X.
    sound : ndarray of bool of shape (n_transformations,)
        Whether every map was determined by its rows (and ICA converged).
    """
    labels = folds.labels if trained is None else np.where(trained, folds.labels, -1)
    unmixings = [None] * folds.count if unmixings is None else unmixings
    how = in_larger_unit(X, Y), check
    if alignment.fits_on_rows(X.shape, Y.shape):
        fits = workers.map(
            _fit_on_rows,
            ((X, Y, labels, k, names, unmixings[k], *how) for k in range(folds.count)),
        )
    else:
        parts = _all_moments(X, Y, labels, folds.count, "linear" in names, workers)
        fits = workers.map(
            _fit_on_moments,
            ((parts, k, names, unmixings[k], *how) for k in range(folds.count)),
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


def _fit_on_moments(parts, fold, names, unmixings, units, check):
    sums = training_moments(parts, fold).centred()
    return alignment.fit_maps(names, sums, unmixings, units, check)


def _fit_on_rows(X, Y, labels, fold, names, unmixings, units, check):
    rows = np.flatnonzero((labels != fold) & (labels >= 0))
    training = X.take(rows, np.float64), Y.take(rows, np.float64)
    return alignment.fit_maps(names, training, unmixings, units, check)


class Comparison:
    """Cross-fitted errors between two sides, their chance level and learning curve.

    Inside, the wider side comes first, so that exchanging the sides exchanges the
    results to the last digit where the widths differ, and else up to rounding.

    Parameters
    ----------
    sides : pair of Rows
        Paired rows.
    labels : ndarray of int of shape (n_samples,)
        Fold of each row.
    codes : ndarray of int of shape (n_samples,)
        Groups, none in more than one fold.
    names : sequence of str
        Groups of transformations.
    max_samples : int
        Most rows for ICA, chance and the learning curve.
    workers : Workers
        Do the work.
    rng : Generator
        Draws the rows of those, and the order of groups in the learning curve.
    solved : pair of list of Unmixing, optional
        Solutions of :func:`unmix_folds` with the folds of :func:`ordered_folds` at the
        same state of ``rng``, if they are there already.
    """

    def __init__(
        self, sides, labels, codes, names, max_samples, workers, rng, solved=None
    ):
        self._step = 1 if sides[0].shape[1] >= sides[1].shape[1] else -1
        self._sides = tuple(sides[:: self._step])
        self._solved = None if solved is None else solved[:: self._step]
        self._names, self._max_samples, self._workers = names, max_samples, workers
        self._folds = ordered_folds(labels, codes, rng)
        rows = self._folds.first(max_samples)
        self._few_labels, self._few_codes, self._few_sides = labels, codes, self._sides
        if len(rows) < len(labels):
            self._few_labels, self._few_codes = labels[rows], codes[rows]
            self._few_sides = tuple(side.subset(rows) for side in self._sides)
        few = np.unique(self._few_labels, return_inverse=True)[1]
        places = resampling.shuffled_places(self._few_codes, few, rng)
        self._few = Folds(few, places)

    def errors(self):
        """Return the error of each row, (2, n_samples, n_transformations), and sound.

        From the first side to the second, then back; see :func:`crossfit`.
        """
        if self._solved is None:
            self._unmixings = self._unmix(self._sides, self._folds, self._max_samples)
        else:
            self._unmixings = list(zip(*self._solved, strict=True))
        errors, sound = crossfit(
            *self._sides, self._folds, self._names, self._unmixings, self._workers
        )
        return errors[:: self._step], sound

    def axes_stability(self):
        """Return how well ICA finds the axes of either side again, or None."""
        if self._unmixings is None:
            return None
        sides = list(zip(*self._unmixings, strict=True))
        return np.array([alignment.axes_stability(side) for side in sides])[
            :: self._step
        ]

    def chance(self, rng):
        """Return mean errors, (2, n_transformations), with one side's rows permuted.

        Rows change places in pairs within folds, which are joined where they are too
        small for that; what has no partner is left out.

        Parameters
        ----------
        rng : Generator
            Draws the pairs.
        """
        labels = resampling.join_folds(self._few.labels, self._few_codes, rng)
        swap = resampling.paired_shuffle(labels, rng, self._few_codes)
        moved = swap != np.arange(len(swap))
        counts = np.bincount(labels[moved])
        if counts.max() == counts.sum():  # else one fold would have no training rows
            moved[:] = True
        unmixings = self._unmixings
        if unmixings is not None:
            # ICA knows of no pairing: the solution of any of the joined folds will do.
            first = np.unique(labels, return_index=True)[1]
            unmixings = [unmixings[fold] for fold in self._few_labels[first]]
        X, Y = self._few_sides
        folds = Folds(labels, self._few.places)
        errors = self._on_part((X, Y.subset(swap)), folds, unmixings, moved)
        return errors[:, moved].mean(axis=1)[:: self._step]

    def learning_curve(self, fractions):
        """Return numbers of training rows, and mean errors, (2, n_transformations).

        The last of each are those of all rows; parts that come to the same number of
        rows as another are left out.

        Parameters
        ----------
        fractions : sequence of float
            Parts of the rows, ascending.

        Returns
        -------
        sizes : list of float
            Ascending, below :meth:`training_size`.
        points : list of ndarray
        """
        sizes, points = [0.0], []
        for fraction in fractions:
            trained = self._few.below(fraction)
            counts = np.bincount(self._few.labels[trained], minlength=self._few.count)
            size = self._few.training_size(trained)
            few = counts.sum() - counts.max() < _FEWEST_ROWS
            if few or not sizes[-1] < size < self.training_size():
                continue
            unmixings = self._unmix(self._few_sides, self._few, int(size))
            errors = self._on_part(self._few_sides, self._few, unmixings, trained)
            sizes.append(size)
            points.append(errors.mean(axis=1)[:: self._step])
        return sizes[1:], points

    def training_size(self):
        """Return the mean number of training rows of :meth:`errors`."""
        return self._folds.training_size()

    def _unmix(self, sides, folds, n_rows):
        if "ica" not in self._names:
            return None
        n_rows = min(n_rows, self._max_samples)
        return list(zip(*unmix_folds(sides, folds, n_rows, self._workers), strict=True))

    def _on_part(self, sides, folds, unmixings, trained):
        return crossfit(
            *sides, folds, self._names, unmixings, self._workers, trained, check=False
        )[0]
