"""The table of alignment errors, and what follows from it."""

from typing import NamedTuple

import numpy as np

from skident._math.alignment import STABLE
from skident._validation import check_finite

NOTHING = 1e-12
# Rows are enough if no number of them would lower the error by more than this part.
_ENOUGH = 0.05
# Fewer training rows a column than this, and a curve says nothing of its end.
_ROWS_A_COLUMN = 3
# Diameters that are further apart are named in the table, as are outliers that make the
# largest distance so many times the robust one.
_UNEQUAL, _OUTLIERS = 1.5, 3.0
_ALL_BUT_EXACT = 1e-6


class AlignmentErrors(NamedTuple):
    """Out-of-sample alignment errors, one entry a group of transformations.

    Errors are mean distances between mapped and target rows in units of the target's
    diameter: 0 is best, and `chance` is what unrelated rows give. ``forward *
    max_diameters[1]`` and ``backward * max_diameters[0]`` are in the units of the rows
    (with ``diameter="robust"``: ``robust_diameters``).

    Attributes
    ----------
    transformations : tuple of str
        Names of the groups; the order of the arrays below.
    error : ndarray of shape (n_transformations,)
        Mean of both directions.
    interval : ndarray of shape (n_transformations, 2)
        Bootstrap interval of ``error``: lower and upper end.
    forward : ndarray of shape (n_transformations,)
        Error of the map from the first argument to the second.
    backward : ndarray of shape (n_transformations,)
        Error of the map from the second argument to the first.
    chance : ndarray of shape (n_transformations,)
        ``error`` with the rows of one side permuted.
    max_error : ndarray of shape (n_transformations,)
        ``error`` in units of the largest distance between two rows.
    robust_error : ndarray of shape (n_transformations,)
        ``error`` in units of the robust diameter.
    train_sizes : ndarray of shape (n_sizes,)
        Mean number of rows on which maps were fitted, ascending; the last is that of
        ``error``.
    learning_curve : ndarray of shape (n_sizes, n_transformations)
        Error at each of them; the last row is ``error``.
    expected_error : ndarray of shape (n_transformations,) or None
        Estimate of the error with any number of rows: the last two points of the
        learning curve continued along a + b / n_rows, and at most ``error``. None
        without a learning curve, and where its last point but one has fewer than three
        training rows a column: then nothing can be said.
    enough_rows : ndarray of bool of shape (n_transformations,) or None
        Whether ``expected_error`` is within 5 % of ``error`` and the curve does not
        rise by more than that, or ``error`` is below 1e-6.
    ica_efficiency : float or None
        See :func:`ica_efficiency`; None without "permutation", "rigid" and "ica", and
        where it has no meaning: a rigid map is within 5 % of chance, or is no better
        than a permutation beyond its error (97.5 % of resamples).
    ica_efficiency_interval : ndarray of shape (2,) or None
        Its bootstrap interval.
    ica_stability : ndarray of shape (2,) or None
        How well ICA finds the axes of the first and of the second argument again on
        other folds: the mean squared correlation of matched components, 1 at best.
        Folds share rows, so that it flatters; below 0.9 the axes are not identified.
        None without "ica".
    confidence_level : float
        Of the intervals.
    diameter : str
        Which diameter is the unit, "max" or "robust".
    max_diameters : ndarray of shape (2,)
        Largest distance between two rows of either argument, in its own units.
    robust_diameters : ndarray of shape (2,)
        Twice the 99th percentile of the distance from the mean.
    n_samples : int
        Number of rows.
    """

    transformations: tuple
    error: np.ndarray
    interval: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    chance: np.ndarray
    max_error: np.ndarray
    robust_error: np.ndarray
    train_sizes: np.ndarray
    learning_curve: np.ndarray
    expected_error: np.ndarray | None
    enough_rows: np.ndarray | None
    ica_efficiency: float | None
    ica_efficiency_interval: np.ndarray | None
    ica_stability: np.ndarray | None
    confidence_level: float
    diameter: str
    max_diameters: np.ndarray
    robust_diameters: np.ndarray
    n_samples: int

    def to_dict(self):
        """Return the table as columns.

        Returns
        -------
        dict
            "transformation", "error", "lower", "upper", "forward", "backward",
            "chance", "max_error", "robust_error" and, with a learning curve,
            "expected_error" and "enough_rows", one entry a transformation, as a data
            frame takes them.
        """
        columns = {
            "transformation": list(self.transformations),
            "error": self.error,
            "lower": self.interval[:, 0],
            "upper": self.interval[:, 1],
            "forward": self.forward,
            "backward": self.backward,
            "chance": self.chance,
            "max_error": self.max_error,
            "robust_error": self.robust_error,
        }
        if self.expected_error is not None:
            columns["expected_error"] = self.expected_error
            columns["enough_rows"] = self.enough_rows
        return columns

    def curve_to_dict(self):
        """Return the learning curve as columns.

        Returns
        -------
        dict
            "n_rows", the mean number of training rows, and one column of errors a
            transformation, as a data frame takes them.
        """
        curves = zip(self.transformations, self.learning_curve.T, strict=True)
        return {"n_rows": self.train_sizes, **dict(curves)}

    def __str__(self):
        """Return a table of the errors and the ICA efficiency."""
        level = f"{self.confidence_level:.4g}".removeprefix("0")
        lines = [f"{'':12}{'error':>7}  {level + ' interval':^14} {'chance':>6}"]
        for k, name in enumerate(self.transformations):
            low, high = self.interval[k]
            lines.append(
                f"{name:12}{self.error[k]:7.3f}  [{low:.3f}, {high:.3f}]"
                f"{self.chance[k]:8.3f}"
            )
        if self.ica_efficiency is not None:
            low, high = self.ica_efficiency_interval
            lines.append(
                f"ICA efficiency {self.ica_efficiency:.0%} [{low:.0%}, {high:.0%}]"
            )
        elif {"permutation", "rigid", "ica"} <= set(self.transformations):
            lines.append(
                "ICA efficiency not defined: a rigid map gains nothing over a "
                "permutation"
            )
        lines.append(
            f"unit: {self.diameter} diameter of the target; {self.n_samples} rows"
        )
        if len(self.train_sizes) > 1:
            lines.append(self._verdict_on_rows())
        return "\n".join([*lines, *self._cautions()])

    def _cautions(self):
        """Return what else a reader must know, in words."""
        lines = []
        if self.ica_stability is not None and self.ica_stability.min() < STABLE:
            lines.append(
                "ICA finds other axes on other folds (stability {:.2f} and {:.2f}): "
                "its error depends on the seed".format(*self.ica_stability)
            )
        first, second = self.max_diameters
        ratio = max(first, second) / min(first, second)
        if ratio > _UNEQUAL:
            wider = "first" if first > second else "second"
            lines.append(
                f"the {wider} side is {ratio:.3g} times as wide, and rigid maps keep "
                "lengths: divide each side by its diameter to compare shapes"
            )
        if (self.max_diameters > _OUTLIERS * self.robust_diameters).any():
            lines.append('outliers set the largest distance: see diameter="robust"')
        return lines

    def _verdict_on_rows(self):
        """Say which errors would fall with more rows."""
        if self.enough_rows is None:
            return f"fewer than {_ROWS_A_COLUMN} training rows a column: too few to say"
        short = [
            f"{name} {error:.3f} ({_end(error, expected)})"
            for name, error, expected, enough in zip(
                self.transformations,
                self.error,
                self.expected_error,
                self.enough_rows,
                strict=True,
            )
            if not enough
        ]
        if not short:
            return "enough rows: errors change by less than 5 % with more"
        return f"more rows would change {', '.join(short)}"


def _end(error, expected):
    """Say where a curve that has not settled goes."""
    falls = expected < (1.0 - _ENOUGH) * error
    return f"to about {expected:.3f}" if falls else "it still rises"


def extrapolated(sizes, curve, width):
    """Return the errors expected with any number of rows, and whether rows suffice.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Ascending numbers of training rows.
    curve : ndarray of shape (n_sizes, n_transformations)
        Errors.
    width : int
        Number of columns of the wider side.

    Returns
    -------
    expected : ndarray of shape (n_transformations,) or None
        None for fewer than two sizes, or too few rows at the last but one.
    enough : ndarray of bool of shape (n_transformations,) or None
    """
    if len(sizes) < 2 or sizes[-2] < _ROWS_A_COLUMN * width:
        return None, None
    gain = (curve[-2] - curve[-1]) * sizes[-2] / (sizes[-1] - sizes[-2])
    expected = np.clip(curve[-1] - gain, 0.0, curve[-1])
    small = curve[-1] <= _ALL_BUT_EXACT
    settled = expected >= (1.0 - _ENOUGH) * curve[-1]
    rising = curve[-1] > (1.0 + _ENOUGH) * curve[-2]
    return expected, small | (settled & ~rising)


def ica_efficiency(permutation, rigid, ica):
    r"""Return how much of the gain of a rigid map over a permutation ICA achieves.

    .. math:: \frac{e_\mathrm{permutation} - e_\mathrm{ica}}
        {e_\mathrm{permutation} - e_\mathrm{rigid}}

    Parameters
    ----------
    permutation, rigid, ica : float or array-like
        Alignment errors, as by :func:`alignment_errors`.

    Returns
    -------
    float or ndarray
        1 is best: as good as a supervised rigid map; 0: no better than the axes as they
        are. Above 1 and below 0 are possible. Where a rigid map gains nothing (up to
        1e-12), so that the ratio has no meaning: 1 if ICA loses nothing against the
        permutation either, else 0.

    Raises
    ------
    ValueError
        For NaN, infinity, or shapes that cannot be broadcast to one.

    Examples
    --------
    >>> from skident.metrics import ica_efficiency
    >>> round(ica_efficiency(0.197, 0.109, 0.145), 2)
    0.59
    """
    permutation, rigid, ica = (
        np.asarray(value, dtype=float) for value in (permutation, rigid, ica)
    )
    shapes = permutation.shape, rigid.shape, ica.shape
    try:
        np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ValueError(
            "permutation, rigid and ica must be numbers or arrays of one shape, got "
            f"shapes {', '.join(map(str, shapes))}."
        ) from error
    for value in (permutation, rigid, ica):
        check_finite(np.atleast_2d(value), name="errors")
    gain = permutation - rigid
    reached = permutation - ica
    meaningless = gain <= NOTHING
    ratio = reached / np.where(meaningless, 1.0, gain)
    ratio = np.where(meaningless, (reached >= -NOTHING).astype(float), ratio)
    return ratio if ratio.ndim else float(ratio)
