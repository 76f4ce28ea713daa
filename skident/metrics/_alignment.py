"""Alignment of two representations of the same rows, out of sample."""

import warnings
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from skident._compat import Interval, StrOptions, validate_params
from skident._math import alignment, resampling
from skident._random import draw_seed, generator
from skident._validation import (
    as_group_codes,
    as_rows,
    check_finite,
    check_same_length,
)

_NOTHING = 1e-12
# A rigid map this near to chance has found nothing that the two sides share.
_CHANCE_LEVEL = 0.95
_FOLDS, _CHANCE, _BOOTSTRAP = range(3)


class AlignmentErrors(NamedTuple):
    """Out-of-sample alignment errors, one entry a group of transformations.

    Errors are mean distances between mapped and target rows in units of the target's
    diameter: 0 is best, and `chance` is what unrelated rows give.

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
    ica_efficiency : float or None
        See :func:`ica_efficiency`; None without "permutation", "rigid" and "ica", and
        where it has no meaning: a rigid map is within 5 % of chance, or is no better
        than a permutation beyond its error (97.5 % of resamples).
    ica_efficiency_interval : ndarray of shape (2,) or None
        Its bootstrap interval.
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
    ica_efficiency: float | None
    ica_efficiency_interval: np.ndarray | None
    diameter: str
    max_diameters: np.ndarray
    robust_diameters: np.ndarray
    n_samples: int

    def to_dict(self):
        """Return the table as columns.

        Returns
        -------
        dict
            "transformation", "error", "lower", "upper", "forward", "backward" and
            "chance", one entry a transformation, as a data frame takes them.
        """
        return {
            "transformation": list(self.transformations),
            "error": self.error,
            "lower": self.interval[:, 0],
            "upper": self.interval[:, 1],
            "forward": self.forward,
            "backward": self.backward,
            "chance": self.chance,
        }

    def __str__(self):
        """Return a table of the errors and the ICA efficiency."""
        lines = [f"{'':12}{'error':>7}  {'interval':^13}  {'chance':>6}"]
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
            lines.append("ICA efficiency not defined: a rigid map gains nothing")
        lines.append(
            f"unit: {self.diameter} diameter of the target; {self.n_samples} rows"
        )
        return "\n".join(lines)


@validate_params(
    {
        "Z1": "no_validation",
        "Z2": "no_validation",
        "transformations": [list, tuple],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "groups": "no_validation",
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "diameter": [StrOptions(set(alignment.DIAMETERS))],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def alignment_errors(  # noqa: PLR0913 - every option by name
    Z1,
    Z2,
    *,
    transformations=alignment.TRANSFORMATIONS,
    cv=5,
    groups=None,
    n_resamples=1000,
    confidence_level=0.95,
    diameter="max",
    random_state=None,
):
    r"""Measure how far two representations of the same rows are apart.

    For each group :math:`H` of transformations, the best map is fitted on all folds but
    one and measured on that one:

    .. math:: e_H(Z_1 \to Z_2) = \frac{1}{n \, \mathrm{diam}(Z_2)} \sum_i
        \lVert h_{-f(i)}(z_{1i}) - z_{2i} \rVert,

    and likewise from :math:`Z_2` to :math:`Z_1`; ``error`` is the mean of the two.

    Parameters
    ----------
    Z1, Z2 : array-like of shape (n_samples, n_features)
        Representations of the same rows in the same order; the widths may differ (the
        narrower is padded with columns of zeros).
    transformations : sequence of str, default=("permutation", "rigid", "linear", "ica")
        Groups. "permutation": order and signs of columns, after centring; "rigid":
        rotation, reflection, translation; "linear": affine; "ica": each side is
        whitened and unmixed by itself, components are matched by order and sign, and
        mixed again by the target's mixing.
    cv : int, default=5
        Number of folds.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together: folds and resamples keep them together.
    n_resamples : int, default=1000
        Number of bootstrap resamples of rows (or groups).
    confidence_level : float, default=0.95
        Of the percentile intervals.
    diameter : {"max", "robust"}, default="max"
        Unit of the errors: the largest distance between two rows of the target (found
        by farthest-point sweeps, a lower bound), or twice the 99th percentile of the
        distance from the mean.
    random_state : int, RandomState instance or None, default=None
        Seed of folds, chance and resamples.

    Returns
    -------
    AlignmentErrors
        Exchanging the arguments exchanges ``forward`` and ``backward`` and the two
        diameters, and leaves the rest as it is, up to rounding.

    Raises
    ------
    ValueError
        For NaN, infinity, sparse data, other numbers of rows, a constant argument,
        fewer than ``max(4, cv)`` rows or than ``cv`` groups, or an unknown
        transformation.

    See Also
    --------
    ica_efficiency : How much of what ICA can gain it gains.
    skident.RigidAligner : The map itself.

    Notes
    -----
    In sample and in mean square, permutation >= rigid >= linear; out of sample, with
    few rows a dimension, a linear map fits noise and may come out worse.

    The intervals treat the fitted maps as given. In chance, rows are swapped in
    pairs within each fold. ICA is solved with "logcosh" to a gradient of 1e-3, far
    below its sampling error.

    References
    ----------
    .. [1] Nelson, Fumero, Karaletsos, Locatello, "Statistical and structural
       identifiability in representation learning", ICLR 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import alignment_errors
    >>> rng = np.random.default_rng(0)
    >>> Z1 = rng.laplace(size=(500, 2))
    >>> Z2 = Z1 @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> result = alignment_errors(Z1, Z2, random_state=0)
    >>> dict(zip(result.transformations, result.error.round(2).tolist()))
    {'permutation': 0.08, 'rigid': 0.0, 'linear': 0.0, 'ica': 0.0}
    """
    _check_transformations(transformations)
    Z1 = as_rows(Z1, name="Z1", min_samples=max(4, cv), one_column=True)
    Z2 = as_rows(Z2, name="Z2", min_samples=max(4, cv), one_column=True)
    check_same_length(Z1, Z2, names=("Z1", "Z2"))
    codes = as_group_codes(groups, len(Z1))
    (Z1, unit1), (Z2, unit2) = _in_range(Z1), _in_range(Z2)
    diameters = _diameters(Z1, Z2)
    seed = draw_seed(random_state)
    folds = resampling.fold_labels(codes, cv, generator(seed, _FOLDS))
    errors, sound = alignment.crossfitted_errors(Z1, Z2, transformations, folds)
    _warn_of_unsound(transformations, sound, Z1, Z2)
    swapped = resampling.paired_shuffle(folds, generator(seed, _CHANCE))
    chance, _ = alignment.crossfitted_errors(Z1, Z2[swapped], transformations, folds)

    # Errors of the map onto Z2 are in units of Z2, and the other way round.
    unit = diameters[diameter][::-1, None]
    rows = (errors / unit[:, None]).mean(axis=0)
    draws = resampling.bootstrap_means(
        rows, codes, n_resamples, generator(seed, _BOOTSTRAP)
    )
    forward, backward = errors.mean(axis=1) / unit
    chance = (chance.mean(axis=1) / unit).mean(axis=0)
    efficiency = _efficiency(transformations, rows.mean(axis=0), draws, chance)
    if efficiency[1] is not None:
        efficiency = (
            efficiency[0],
            resampling.percentile_interval(efficiency[1], confidence_level),
        )
    return AlignmentErrors(
        tuple(transformations),
        rows.mean(axis=0),
        resampling.percentile_interval(draws, confidence_level),
        forward,
        backward,
        chance,
        *efficiency,
        diameter,
        diameters["max"] * [unit1, unit2],
        diameters["robust"] * [unit1, unit2],
        len(Z1),
    )


def _check_transformations(transformations):
    known = alignment.TRANSFORMATIONS
    unknown = [name for name in transformations if name not in known]
    if unknown or not transformations:
        raise ValueError(
            f"transformations must be a non-empty selection of {known}, got "
            f"{tuple(transformations)}."
        )


def _in_range(Z):
    """Return rows whose squares are in the range of floats, and the unit they are in.

    Errors are ratios, so any unit serves; a power of two changes no digit.
    """
    largest = np.abs(Z).max()
    if largest == 0.0 or 1e-15 < largest < 1e15:
        return Z, 1.0
    unit = 2.0 ** np.floor(np.log2(np.float64(largest)))
    return Z / unit, unit


def _diameters(Z1, Z2):
    """Return both kinds of diameter of both sides; refuse constant ones."""
    table = {
        kind: np.array([measure(Z1), measure(Z2)])
        for kind, measure in alignment.DIAMETERS.items()
    }
    for name, size, Z in zip(("Z1", "Z2"), table["max"], (Z1, Z2), strict=True):
        if size == 0:
            raise ValueError(
                f"All rows of {name} are equal (column 0 is {Z[0, 0]:g}): its "
                "diameter, the unit of the errors, is 0."
            )
    return table


def _warn_of_unsound(transformations, sound, Z1, Z2):
    loose = [
        name for name, fine in zip(transformations, sound, strict=True) if not fine
    ]
    if loose:
        warnings.warn(
            f"The rows do not determine every map of {', '.join(loose)} (Z1 has shape "
            f"{Z1.shape}, Z2 {Z2.shape}: too few rows, dependent columns, or ICA did "
            "not converge): out of sample, its error depends on the choice made.",
            UserWarning,
        )


def _efficiency(transformations, means, draws, chance):
    """Return the ICA efficiency and its resamples, or None twice: see Returns."""
    names = ("permutation", "rigid", "ica")
    if not set(names) <= set(transformations):
        return None, None
    columns = [list(transformations).index(name) for name in names]
    permutation, rigid, _ = columns
    gain = draws[:, permutation] - draws[:, rigid]
    equal = abs(means[permutation] - means[rigid]) <= _NOTHING
    unsure = np.quantile(gain, 0.025) <= 0.0 and not equal
    if unsure or means[rigid] > _CHANCE_LEVEL * chance[rigid]:
        return None, None
    return ica_efficiency(*means[columns]), ica_efficiency(*draws[:, columns].T)


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
        For NaN or infinity.

    Examples
    --------
    >>> from skident.metrics import ica_efficiency
    >>> round(ica_efficiency(0.197, 0.109, 0.145), 2)
    0.59
    """
    permutation, rigid, ica = (
        np.asarray(value, dtype=float) for value in (permutation, rigid, ica)
    )
    for value in (permutation, rigid, ica):
        check_finite(np.atleast_2d(value), name="errors")
    gain = permutation - rigid
    reached = permutation - ica
    meaningless = gain <= _NOTHING
    ratio = reached / np.where(meaningless, 1.0, gain)
    ratio = np.where(meaningless, (reached >= -_NOTHING).astype(float), ratio)
    return ratio if ratio.ndim else float(ratio)
