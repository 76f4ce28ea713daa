"""Alignment of two representations of the same rows, out of sample."""

import warnings
from numbers import Integral, Real

import numpy as np

from skident._compat import Interval, StrOptions, validate_params
from skident._math import alignment, resampling
from skident._math.diameters import DIAMETERS, diameters
from skident._math.paired_rows import open_rows
from skident._progress import progress_bar
from skident._random import draw_seed, generator
from skident._validation import as_group_codes
from skident.metrics._alignment_result import (
    NOTHING,
    AlignmentErrors,
    extrapolated,
    ica_efficiency,
)
from skident.metrics._crossfit import Comparison, Workers
from skident.metrics._paired import match_rows

# A rigid map this near to chance has found nothing that the two sides share.
_CHANCE_LEVEL = 0.95
_FEWEST = 4
# Powers of two between the sizes of both sides, for one row.
_LARGEST = 1013
_FOLDS, _CHANCE, _BOOTSTRAP, _ORDER = range(4)


@validate_params(
    {
        "Z1": "no_validation",
        "Z2": "no_validation",
        "transformations": [list, tuple],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "groups": "no_validation",
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "diameter": [StrOptions(set(DIAMETERS))],
        "train_fractions": ["array-like", None],
        "max_samples": [Interval(Integral, 100, None, closed="left")],
        "unmatched": [StrOptions({"raise", "drop"})],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
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
    train_fractions=(0.25, 0.5),
    max_samples=30_000,
    unmatched="raise",
    n_jobs=None,
    verbose=0,
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
        narrower is padded with columns of zeros); one-dimensional ones are one column.
        Two pandas frames are joined by their index, in its order (by position if both
        have the same index). Memory maps are read in blocks.
    transformations : sequence of str, default=("permutation", "rigid", "linear", "ica")
        Groups. "permutation": order and signs of columns, after centring; "rigid":
        rotation, reflection, translation; "linear": affine; "ica": each side is
        whitened and unmixed by itself, components are matched by order and sign, and
        mixed again by the target's mixing.
    cv : int, default=5
        Number of folds.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together: folds and resamples keep them together. A pandas
        series is joined to ``Z1`` by index, all else follows the rows of ``Z1``.
    n_resamples : int, default=1000
        Number of bootstrap resamples of rows (or groups).
    confidence_level : float, default=0.95
        Of the percentile intervals.
    diameter : {"max", "robust"}, default="max"
        Unit of the errors: the largest distance between two rows of the target (found
        by farthest-point sweeps, a lower bound), or twice the 99th percentile of the
        distance from the mean. Both are in the result.
    train_fractions : sequence of float in (0, 1), default=(0.25, 0.5)
        Parts of the training rows at which the learning curve is taken besides all of
        them; parts of fewer than four training rows, of all rows, or of as many as
        another part are left out. None, ``()``: no curve.
    max_samples : int, default=30_000
        Most rows on which ICA is solved, and most rows that chance and the learning
        curve take, drawn at random one by one, whatever their groups. Maps are fitted
        and scored on all rows.
    unmatched : {"raise", "drop"}, default="raise"
        What becomes of ids that only one of two frames has: an error that names them,
        or a warning that does, and the rows are left out.
    n_jobs : int, default=None
        Number of threads, as in joblib; any number gives the same result.
    verbose : int, default=0
        1 shows a progress bar.
    random_state : int, RandomState instance or None, default=None
        Seed of folds, chance, resamples, and of the rows drawn.

    Returns
    -------
    AlignmentErrors
        Exchanging the arguments exchanges ``forward`` and ``backward`` and the two
        diameters, and leaves the rest as it is, up to rounding and to the choice among
        maps that do equally well, of which a warning tells.

    Raises
    ------
    ValueError
        For NaN, infinity, sparse data, other numbers of rows, a constant argument,
        fewer than ``max(4, cv)`` rows or than ``cv`` groups, an unknown
        transformation, a path instead of an array, ids of frames that differ and occur
        twice or on one side only, rows further apart than the largest float, or sizes
        of ``Z1`` and ``Z2`` so far apart that errors in units of the smaller are.

    See Also
    --------
    ica_efficiency : How much of what ICA can gain it gains.
    skident.RigidAligner : The map itself.

    Notes
    -----
    In sample and in mean square, permutation >= rigid >= linear; out of sample, with
    few rows a dimension, a linear map fits noise and may come out worse: compare the
    learning curve.

    The best permutation and rigid map back are the inverse of those there, with the
    same errors, so that ``forward`` and ``backward`` differ by the diameters alone.
    Permutations are optimal up to 2000 columns of the narrower side, greedy beyond.

    The intervals treat the fitted maps as given; where ``ica_stability`` is low, the
    error of "ica" and the ICA efficiency vary from seed to seed by far more.

    In chance, rows are swapped in pairs within each fold, never within a group where
    that can be; folds of a few rows or of one group are joined for it, and a row
    without a partner is left out. In the learning curve, groups stay whole.

    ICA is solved with "logcosh" to a gradient of 1e-3 in at most 200 passes. Where rows
    times the square of the width is above 1e8, half of the sampling error, 0.5 /
    sqrt(n_rows), will do if that is larger, and above 5e8 fewer passes, down to 30; a
    warning says if they were not enough. With more than ``max_samples`` training rows,
    folds share solutions that saw none of their rows.

    Time grows as n_samples times the square of the width, plus its cube once a fold and
    size of training; nothing of size n_samples squared is made. Arrays are read in
    blocks, in float64; large float32 ones (2 ** 24 numbers) are scored in float32.

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
    fractions = _check_fractions(train_fractions)
    Z1, Z2, groups = match_rows(
        Z1, Z2, groups, unmatched=unmatched, min_samples=max(_FEWEST, cv)
    )
    codes = as_group_codes(groups, len(Z1))
    seed = draw_seed(random_state)
    labels = resampling.fold_labels(codes, cv, generator(seed, _FOLDS))
    sides = open_rows(Z1), open_rows(Z2)
    sizes = _sizes(sides)
    if not alignment.UNITLESS.issuperset(transformations):
        _check_ratio(sides, sizes["max"])
    with progress_bar(1, "alignment", verbose=verbose) as advance:
        pair = Comparison(
            sides, labels, codes, transformations, max_samples,
            Workers(n_jobs, advance), generator(seed, _ORDER),
        )  # fmt: skip
        errors, sound = pair.errors()
        chance = pair.chance(generator(seed, _CHANCE))
        sizes_of_training, curve = pair.learning_curve(fractions)
    _warn_of_unsound(transformations, sound, Z1, Z2)

    # Errors of the map onto Z2 are in units of Z2, and the other way round.
    unit = sizes[diameter][::-1, None]
    rows = (errors[0] / unit[0] + errors[1] / unit[1]) / 2
    draws = resampling.bootstrap_means(
        rows, codes, n_resamples, generator(seed, _BOOTSTRAP)
    )
    means = errors.mean(axis=1)
    error, chance = rows.mean(axis=0), (chance / unit).mean(axis=0)
    train_sizes = np.append(sizes_of_training, pair.training_size())
    curve = np.array([*((point / unit).mean(axis=0) for point in curve), error])
    return AlignmentErrors(
        tuple(transformations),
        error,
        resampling.percentile_interval(draws, confidence_level),
        *means / unit,
        chance,
        *((means / sizes[kind][::-1, None]).mean(axis=0) for kind in DIAMETERS),
        train_sizes,
        curve,
        *extrapolated(train_sizes, curve, max(Z1.shape[1], Z2.shape[1])),
        *_efficiency(transformations, error, draws, chance, confidence_level),
        pair.axes_stability(),
        confidence_level,
        diameter,
        *(sizes[kind] * [side.unit for side in sides] for kind in DIAMETERS),
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


def _check_fractions(fractions):
    """Return parts of the training rows in ascending order."""
    if np.ndim(() if fractions is None else fractions) != 1:
        raise ValueError(
            "train_fractions must be a list of numbers in (0, 1), or None, got "
            f"{fractions!r}."
        )
    fractions = [] if fractions is None else list(fractions)
    for value in fractions:
        if not (isinstance(value, Real) and 0 < value < 1):
            raise ValueError(f"train_fractions must be in (0, 1), got {value!r}.")
    return sorted(set(fractions))


def _sizes(sides):
    """Return both kinds of diameter of both sides; refuse constant ones."""
    table = np.array([diameters(side) for side in sides])
    for name, side, (largest, _) in zip(("Z1", "Z2"), sides, table, strict=True):
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


def _check_ratio(sides, diameters):
    """Refuse sides whose errors in units of the smaller one have no finite sum."""
    powers = np.log2(diameters) + np.log2([side.unit for side in sides])
    room = _LARGEST - 2 * np.log2(len(sides[0].array))
    if abs(powers[1] - powers[0]) > room:
        first, second = np.exp2(powers)
        raise ValueError(
            f"The diameters of Z1 ({first:.3g}) and Z2 ({second:.3g}) are so far apart "
            "that errors of maps that keep lengths, in units of the smaller one, are "
            "beyond the range of floats: rescale one of them."
        )


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


def _efficiency(transformations, means, draws, chance, confidence_level):
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
