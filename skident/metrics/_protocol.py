"""How representations of the same rows are compared: folds, resamples, units."""

import warnings
from typing import NamedTuple

import numpy as np

from skident._math import alignment, resampling
from skident._math.diameters import DIAMETERS, diameters
from skident._random import generator
from skident.metrics._alignment_result import (
    NOTHING,
    AlignmentErrors,
    extrapolated,
    ica_efficiency,
)
from skident.metrics._crossfit import Comparison, ordered_folds, unmix_folds

# A rigid map this near to chance has found nothing that the two sides share.
_CHANCE_LEVEL = 0.95
# Powers of two between the sizes of both sides, for one row.
_LARGEST = 1013
_FOLDS, _CHANCE, _BOOTSTRAP, _ORDER = range(4)


class Compared(NamedTuple):
    """What a comparison gives.

    Attributes
    ----------
    errors : AlignmentErrors
        The table.
    draws : ndarray of shape (n_resamples, n_transformations)
        Mean errors of resampled rows (or groups): those of one protocol are of the same
        resamples, so that the mean over comparisons has draws too.
    """

    errors: AlignmentErrors
    draws: np.ndarray


class Protocol:
    """All that comparisons of the same rows have in common.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Group of each row.
    transformations : sequence of str
        Checked by :func:`check_transformations`.
    cv, n_resamples, max_samples : int
    confidence_level : float
    diameter : str
    fractions : sequence of float
        Ascending: ``train_fractions``. All as in
        :func:`skident.metrics.alignment_errors`.
    seed : int
        Of all random numbers.
    """

    def __init__(  # noqa: PLR0913 - every option by name
        self, codes, transformations, *, cv, n_resamples, confidence_level, diameter,
        fractions, max_samples, seed,
    ):  # fmt: skip
        self.codes, self.transformations = codes, tuple(transformations)
        self.n_resamples, self.confidence_level = n_resamples, confidence_level
        self.diameter, self.fractions = diameter, fractions
        self.max_samples, self.seed = max_samples, seed
        self.labels = resampling.fold_labels(codes, cv, generator(seed, _FOLDS))

    def unmix(self, sides, workers):
        """Solve ICA of every side once, for :meth:`compare`; None without "ica".

        Parameters
        ----------
        sides : sequence of Rows
            Representations of the rows.
        workers : Workers
            Do the work.

        Returns
        -------
        list of list of Unmixing, or None
            One list a side, of one solution a fold.
        """
        if "ica" not in self.transformations:
            return None
        folds = ordered_folds(self.labels, self.codes, generator(self.seed, _ORDER))
        return unmix_folds(sides, folds, self.max_samples, workers)

    def compare(self, first, second, workers, solved=None, names=("Z1", "Z2")):
        """Measure how far two representations of the rows are apart.

        Parameters
        ----------
        first, second : Rows
            The representations.
        workers : Workers
            Do the work.
        solved : pair of list of Unmixing, optional
            Of the two, from :meth:`unmix`.
        names : pair of str
            How errors and warnings call them.

        Returns
        -------
        Compared

        Raises
        ------
        ValueError
            If all rows of a side are equal, or diameters are beyond floats.
        """
        sides = first, second
        sizes = _sizes(sides, names)
        if not alignment.UNITLESS.issuperset(self.transformations):
            _check_ratio(sides, sizes["max"], names)
        pair = Comparison(
            sides, self.labels, self.codes, self.transformations, self.max_samples,
            workers, generator(self.seed, _ORDER), solved,
        )  # fmt: skip
        errors, sound = pair.errors()
        chance = pair.chance(generator(self.seed, _CHANCE))
        sizes_of_training, curve = pair.learning_curve(self.fractions)
        _warn_of_unsound(self.transformations, sound, sides, names)

        # Errors of the map onto Z2 are in units of Z2, and the other way round.
        unit = sizes[self.diameter][::-1, None]
        rows = (errors[0] / unit[0] + errors[1] / unit[1]) / 2
        draws = resampling.bootstrap_means(
            rows, self.codes, self.n_resamples, generator(self.seed, _BOOTSTRAP)
        )
        means = errors.mean(axis=1)
        error, chance = rows.mean(axis=0), (chance / unit).mean(axis=0)
        train_sizes = np.append(sizes_of_training, pair.training_size())
        curve = np.array([*((point / unit).mean(axis=0) for point in curve), error])
        level, names = self.confidence_level, self.transformations
        table = AlignmentErrors(
            names,
            error,
            resampling.percentile_interval(draws, level),
            *means / unit,
            chance,
            *((means / sizes[kind][::-1, None]).mean(axis=0) for kind in DIAMETERS),
            train_sizes,
            curve,
            *extrapolated(train_sizes, curve, max(side.shape[1] for side in sides)),
            *efficiency_with_interval(names, error, draws, chance, level),
            pair.axes_stability(),
            level,
            self.diameter,
            *(sizes[kind] * [side.unit for side in sides] for kind in DIAMETERS),
            len(self.codes),
        )
        return Compared(table, draws)


def check_transformations(transformations):
    """Raise a ``ValueError`` unless these are some of the known groups."""
    known = alignment.TRANSFORMATIONS
    unknown = [name for name in transformations if name not in known]
    if unknown or not transformations:
        raise ValueError(
            f"transformations must be a non-empty selection of {known}, got "
            f"{tuple(transformations)}."
        )


def _sizes(sides, names):
    """Return both kinds of diameter of both sides; refuse constant ones."""
    table = np.array([diameters(side) for side in sides])
    for name, side, (largest, _) in zip(names, sides, table, strict=True):
        if largest == 0:
            raise ValueError(
                f"All rows of {name} are equal (column 0 is {side.array[0, 0]:g}): its "
                "diameter, the unit of the errors, is 0."
            )
        if not np.isfinite(float(largest) * side.unit):
            raise ValueError(
                f"Rows of {name} are further apart than the largest float, so that its "
                "diameter, the unit of the errors, is infinite: rescale it."
            )
    return dict(zip(DIAMETERS, table.T, strict=True))


def _check_ratio(sides, diameters, names):
    """Refuse sides whose errors in units of the smaller one have no finite sum."""
    powers = np.log2(diameters) + np.log2([side.unit for side in sides])
    room = _LARGEST - 2 * np.log2(len(sides[0].array))
    if abs(powers[1] - powers[0]) > room:
        first, second = np.exp2(powers)
        raise ValueError(
            f"The diameters of {names[0]} ({first:.3g}) and {names[1]} ({second:.3g}) "
            "are so far apart that errors of maps that keep lengths, in units of the "
            "smaller one, are beyond the range of floats: rescale one of them."
        )


def _warn_of_unsound(transformations, sound, sides, names):
    loose = [
        name for name, fine in zip(transformations, sound, strict=True) if not fine
    ]
    if loose:
        warnings.warn(
            f"The rows do not determine every map of {', '.join(loose)} ({names[0]} "
            f"has shape {sides[0].shape}, {names[1]} {sides[1].shape}: too few rows, "
            "dependent columns, or ICA did not converge): out of sample, its error "
            "depends on the choice made.",
            UserWarning,
        )


def efficiency_with_interval(transformations, means, draws, chance, confidence_level):
    """Return the ICA efficiency and its interval, or twice None."""
    names = ("permutation", "rigid", "ica")
    if not set(names) <= set(transformations):
        return None, None
    columns = [list(transformations).index(name) for name in names]
    permutation, rigid, _ = columns
    gain = draws[:, permutation] - draws[:, rigid]
    unsure = np.quantile(gain, 0.025) <= NOTHING
    if unsure or means[rigid] > _CHANCE_LEVEL * chance[rigid]:
        return None, None
    resampled = ica_efficiency(*draws[:, columns].T)
    return (
        ica_efficiency(*means[columns]),
        resampling.percentile_interval(resampled, confidence_level),
    )
