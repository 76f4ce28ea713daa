"""Alignment of two representations of the same rows, out of sample."""

from numbers import Integral, Real

import numpy as np

from skident._compat import Interval, StrOptions, validate_params
from skident._math import alignment
from skident._math.diameters import DIAMETERS
from skident._math.paired_rows import open_rows
from skident._progress import progress_bar
from skident._random import draw_seed
from skident._validation import as_group_codes
from skident.metrics._crossfit import Workers
from skident.metrics._paired import match_rows
from skident.metrics._protocol import Protocol, check_transformations

_FEWEST = 4


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
    check_transformations(transformations)
    fractions = _check_fractions(train_fractions)
    Z1, Z2, groups = match_rows(
        Z1, Z2, groups, unmatched=unmatched, min_samples=max(_FEWEST, cv)
    )
    codes = as_group_codes(groups, len(Z1))
    protocol = Protocol(
        codes, transformations, cv=cv, n_resamples=n_resamples,
        confidence_level=confidence_level, diameter=diameter, fractions=fractions,
        max_samples=max_samples, seed=draw_seed(random_state),
    )  # fmt: skip
    with progress_bar(1, "alignment", verbose=verbose) as advance:
        workers = Workers(n_jobs, advance)
        return protocol.compare(open_rows(Z1), open_rows(Z2), workers).errors


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
