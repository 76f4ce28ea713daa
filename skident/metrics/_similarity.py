"""Similarity of representations: kernels, canonical correlations, shapes."""

import warnings
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from skident._compat import Interval, StrOptions, validate_params
from skident._math import similarity
from skident._math.paired_rows import blocks
from skident.metrics._paired import match_rows

_PAIR = {"Z1": "no_validation", "Z2": "no_validation"}


def _match(Z1, Z2, min_samples):
    """Return two arrays of matched rows; refuse constant ones."""
    Z1, Z2, _ = match_rows(Z1, Z2, None, unmatched="raise", min_samples=min_samples)
    for name, Z in (("Z1", Z1), ("Z2", Z2)):
        first = np.asarray(Z[0])
        if all((Z[part] == first).all() for part in blocks(*Z.shape)):
            raise ValueError(
                f"All rows of {name} are equal (column 0 is {Z[0, 0]:g}): there is "
                "nothing that the other side could be like."
            )
    return Z1, Z2


@validate_params({**_PAIR, "debiased": ["boolean"]}, prefer_skip_nested_validation=True)
def linear_cka(Z1, Z2, *, debiased=True):
    r"""Return the centred kernel alignment of two representations, linear kernels.

    With centred columns,

    .. math:: \mathrm{CKA} = \frac{\lVert Z_1' Z_2 \rVert_F^2}{\lVert Z_1' Z_1
        \rVert_F \, \lVert Z_2' Z_2 \rVert_F} .

    The default puts the unbiased estimate of the Hilbert-Schmidt independence criterion
    in the place of each of the three norms: with :math:`k_i = \lVert z_{1i} \rVert^2`,
    :math:`l_i = \lVert z_{2i} \rVert^2`,

    .. math:: \lVert Z_1' Z_2 \rVert_F^2 - \frac{n}{n - 2} \sum_i k_i l_i +
        \frac{\sum_i k_i \sum_i l_i}{(n - 1)(n - 2)} .

    Parameters
    ----------
    Z1, Z2 : array-like of shape (n_samples, n_features)
        Representations of the same rows in the same order; widths may differ, and may
        be larger than the number of rows. Two pandas frames are joined by their index.
        Memory maps are read in blocks.
    debiased : bool, default=True
        False gives the plain ratio of [1]_, which tends to 1 for *any* two
        representations when columns outnumber rows; a warning then says so.

    Returns
    -------
    float
        Greater is more alike, 1 is best: equal up to rotation, translation and one
        scale. Plain: in [0, 1]. Debiased: in [-1, 1], near 0 for unrelated rows; it is
        not clipped at 0, or its mean there would not be 0. Symmetric.

    Raises
    ------
    ValueError
        For NaN, infinity, other numbers of rows, fewer than 4 rows (plain: 2), constant
        arguments, or (debiased) rows that are all equally far apart, whose centred
        kernel is zero.

    See Also
    --------
    procrustes_distance : A distance with the same invariances.
    cca_similarity : Invariant under any invertible linear map.

    Notes
    -----
    Time is rows times the product of the widths, memory the product of the widths. With
    more columns than rows, rows are first turned into as many columns as rows. No
    kernel of n_samples squared is made otherwise.

    References
    ----------
    .. [1] Kornblith, Norouzi, Lee, Hinton, "Similarity of neural network
       representations revisited", ICML 2019, equation 3 and section 3.
    .. [2] Song, Smola, Gretton, Bedo, Borgwardt, "Feature selection via dependence
       maximization", JMLR 13 (2012), equation 5.
    .. [3] Murphy, Zylberberg, Fyshe, "Correcting biased centered kernel alignment
       measures in biological and artificial neural networks", arXiv:2405.01012 (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import linear_cka
    >>> rng = np.random.default_rng(0)
    >>> Z1, Z2 = rng.standard_normal((2, 100, 200))
    >>> round(linear_cka(Z1, 3 * Z1[:, ::-1] + 1), 12)
    1.0
    >>> abs(linear_cka(Z1, Z2)) < 0.05
    True
    """
    Z1, Z2 = _match(Z1, Z2, 4 if debiased else 2)
    if not debiased and max(Z1.shape[1], Z2.shape[1]) >= len(Z1):
        warnings.warn(
            f"With {len(Z1)} rows and up to {max(Z1.shape[1], Z2.shape[1])} columns, "
            "plain CKA is near 1 for unrelated representations too: use debiased=True.",
            UserWarning,
        )
    sides = [similarity.centred_rows(Z) for Z in (Z1, Z2)]
    product, *own = similarity.kernel_alignment(*sides, debiased=debiased)
    for name, norm in zip(("Z1", "Z2"), own, strict=True):
        if norm <= 0.0:
            raise ValueError(
                f"All rows of {name} are equally far apart: without its diagonal its "
                "centred kernel is zero, and debiased CKA undefined. debiased=False "
                "gives the plain one."
            )
    ratio = product / (np.sqrt(own[0]) * np.sqrt(own[1]))
    return float(np.clip(ratio, -1.0 if debiased else 0.0, 1.0))


class CCASimilarity(NamedTuple):
    """Canonical correlations between two representations, and two means of them.

    All are in [0, 1], and greater is more alike.

    Attributes
    ----------
    mean : float
        Plain mean of the correlations; symmetric in the arguments.
    pwcca : float
        Mean weighted by how much of the first argument each canonical variable accounts
        for; exchanging the arguments changes it.
    correlations : ndarray of shape (n_pairs,)
        Descending; as many as the smaller rank.
    ranks : tuple of 2 ints
        Ranks of the two arguments.
    """

    mean: float
    pwcca: float
    correlations: np.ndarray
    ranks: tuple


@validate_params(
    {**_PAIR, "rank_tol": [Interval(Real, 0, 1, closed="neither"), None]},
    prefer_skip_nested_validation=True,
)
def cca_similarity(Z1, Z2, *, rank_tol=None):
    r"""Compare the spaces that the columns of two representations span.

    With canonical correlations :math:`\rho_1 \ge \dots \ge \rho_m`, m the smaller rank,
    and canonical variables :math:`h_i` of ``Z1``,

    .. math:: \text{mean} = \frac{1}{m} \sum_i \rho_i, \quad \text{pwcca} =
        \frac{\sum_i \alpha_i \rho_i}{\sum_i \alpha_i}, \quad \alpha_i = \sum_j
        |\langle h_i, z_{1j} \rangle| .

    Parameters
    ----------
    Z1, Z2 : array-like of shape (n_samples, n_features)
        Representations of the same rows in the same order; widths may differ. Two
        pandas frames are joined by their index.
    rank_tol : float in (0, 1), default=None
        Directions of the columns, scaled to unit variance, whose standard deviation is
        below this part of the largest count for nothing; None is 1e-6, as in
        :class:`skident.WhitenICA`. Dependent and constant columns thus change nothing
        but the weights.

    Returns
    -------
    CCASimilarity
        1 for both means if one side is an affine map of the other, and the map is
        invertible on it. The mean and the correlations are invariant under invertible
        affine maps of either side, ``pwcca`` under those of ``Z2`` and rescaling of all
        of ``Z1``.

    Raises
    ------
    ValueError
        For NaN, infinity, other numbers of rows, fewer than 2 rows, or a constant
        argument.

    Warns
    -----
    UserWarning
        If the ranks together exceed ``n_samples - 1``: some correlations are then 1
        whatever the data. Reduce both sides to fewer directions first.

    See Also
    --------
    linear_cka : Weighs directions by their variance.

    Notes
    -----
    In sample, unrelated representations of ranks p and q have correlations of about
    sqrt((p + q) / n_samples): take many more rows than columns. Correlations that are
    equal leave their canonical variables, and so the single weights, undetermined.

    References
    ----------
    .. [1] Raghu, Gilmer, Yosinski, Sohl-Dickstein, "SVCCA", NeurIPS 2017.
    .. [2] Morcos, Raghu, Bengio, "Insights on representational similarity in neural
       networks with canonical correlation", NeurIPS 2018, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import cca_similarity
    >>> rng = np.random.default_rng(0)
    >>> Z1 = rng.standard_normal((1000, 3))
    >>> Z2 = np.c_[Z1[:, :2] @ [[1.0, 2.0], [0.0, 1.0]], rng.standard_normal(1000)]
    >>> cca_similarity(Z1, Z2).correlations[:2].round(12)
    array([1., 1.])
    >>> round(cca_similarity(Z1, Z2).mean, 2)
    0.68
    """
    Z1, Z2 = _match(Z1, Z2, 2)
    found = similarity.canonical_correlations(Z1, Z2, rank_tol)
    forced = sum(found.ranks) - (len(Z1) - 1)
    if forced > 0:
        warnings.warn(
            f"Ranks {found.ranks[0]} and {found.ranks[1]} together exceed "
            f"n_samples - 1 = {len(Z1) - 1}: {min(forced, *found.ranks)} of the "
            "canonical correlations are 1 whatever the data. Reduce both sides first.",
            UserWarning,
        )
    correlations, weights = found.correlations, found.weights
    return CCASimilarity(
        float(correlations.mean()),
        float(min(1.0, weights @ correlations / weights.sum())),
        correlations,
        found.ranks,
    )


@validate_params(
    {**_PAIR, "kind": [StrOptions({"angular", "chord"})]},
    prefer_skip_nested_validation=True,
)
def procrustes_distance(Z1, Z2, *, kind="angular"):
    r"""Return the distance between the shapes of two representations.

    Both are centred and divided by their Frobenius norm, the narrower is padded with
    columns of zeros, and one is rotated or reflected onto the other:

    .. math:: d_\text{angular} = \min_{R'R = I} \arccos \, \langle \bar Z_1 R, \bar Z_2
        \rangle = \arccos \lVert \bar Z_1' \bar Z_2 \rVert_*, \qquad d_\text{chord} =
        \min_{R'R = I} \lVert \bar Z_1 R - \bar Z_2 \rVert_F .

    Parameters
    ----------
    Z1, Z2 : array-like of shape (n_samples, n_features)
        Representations of the same rows in the same order; widths may differ. Two
        pandas frames are joined by their index. Memory maps are read in blocks.
    kind : {"angular", "chord"}, default="angular"
        The angle in radians, the default of netrep's ``LinearMetric(alpha=1)``; or the
        chord below it, ``2 * sin(angle / 2)``, whose square is the "orthogonal
        Procrustes distance" of [2]_.

    Returns
    -------
    float
        Smaller is more alike: 0 if equal up to rotation, reflection, translation and
        one scale, at most pi / 2 (chord: sqrt(2)). Both kinds are metrics: symmetric,
        with the triangle inequality.

    Raises
    ------
    ValueError
        For NaN, infinity, other numbers of rows, fewer than 2 rows, or a constant
        argument.

    See Also
    --------
    alignment_errors : Out of sample, for other groups too, with intervals.
    linear_cka : A similarity with the same invariances.

    Notes
    -----
    The distance is measured after the rotation and not as a difference from 1, so that
    it is right to rounding near 0. It is in sample: with more columns than rows,
    unrelated representations are near each other.

    References
    ----------
    .. [1] Williams, Kunz, Kornblith, Linderman, "Generalized shape metrics on neural
       representations", NeurIPS 2021, equation 4.
    .. [2] Ding, Denain, Steinhardt, "Grounding representation similarity with
       statistical testing", NeurIPS 2021, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import procrustes_distance
    >>> Z = np.random.default_rng(0).standard_normal((100, 3))
    >>> round(procrustes_distance(Z, 2 * Z[:, ::-1] + 1), 12)
    0.0
    >>> round(procrustes_distance(Z, np.roll(Z, 1, axis=0)), 2)
    1.41
    """
    Z1, Z2 = _match(Z1, Z2, 2)
    sides = [similarity.centred_rows(Z) for Z in (Z1, Z2)]
    chord = similarity.procrustes_chord(*sides)
    return float(2 * np.arcsin(chord / 2) if kind == "angular" else chord)


@validate_params(
    {"W": "no_validation", "axis": [Integral, None]},
    prefer_skip_nested_validation=True,
)
def hoyer_sparsity(W, *, axis=None):
    r"""Return how few entries carry the norm of an array, of each row or column.

    .. math:: \frac{\sqrt n - \lVert w \rVert_1 / \lVert w \rVert_2}{\sqrt n - 1}

    Parameters
    ----------
    W : array-like
        Real and finite, of any shape; a weight matrix or rows of a representation.
    axis : int, default=None
        None: of all entries together. 0: of each column of a matrix (along the rows).
        1, -1: of each row.

    Returns
    -------
    float or ndarray
        In [0, 1]: 0 if all entries have one size, 1 if all but one are zero. A number
        for ``axis=None`` and 1-D arrays, else an array of the shape of W without
        ``axis``. Invariant under scale, signs and order of the entries.

    Raises
    ------
    ValueError
        For NaN, infinity, an axis that W lacks, fewer than two entries, or entries that
        are all zero, naming the first such row or column.

    References
    ----------
    .. [1] Hoyer, "Non-negative matrix factorization with sparseness constraints", JMLR
       5 (2004), section 3.1.

    Examples
    --------
    >>> from skident.metrics import hoyer_sparsity
    >>> hoyer_sparsity([[1.0, 0.0, 0.0, 0.0], [1.0, -1.0, 1.0, 1.0]], axis=1)
    array([1., 0.])
    """
    W = _real_array(W)
    if axis is not None and not -W.ndim <= axis < W.ndim:
        raise ValueError(f"axis={axis} is no axis of W, which has shape {W.shape}.")
    rows = W.reshape(1, -1) if axis is None else np.moveaxis(W, axis, -1)
    shape, n = rows.shape[:-1], rows.shape[-1]
    if n < 2:
        raise ValueError(
            f"Sparsity needs at least two entries, but W has shape {W.shape} and "
            f"axis={axis}."
        )
    rows = np.abs(rows.reshape(-1, n).astype(np.float64))
    largest = rows.max(axis=1, keepdims=True)
    empty = np.flatnonzero(largest == 0)
    if empty.size:
        place = ", ".join(str(i) for i in np.unravel_index(empty[0], shape))
        where = f"W at {place} of its other axes" if shape and axis is not None else "W"
        if W.ndim == 2 and axis is not None:
            where = f"{'row' if axis in (1, -1) else 'column'} {place} of W"
        raise ValueError(
            f"All {n} entries of {where} are zero, which has no sparsity: leave it out."
        )
    rows /= largest
    ratio = rows.sum(axis=1) / np.sqrt((rows**2).sum(axis=1))
    sparsity = np.clip((np.sqrt(n) - ratio) / (np.sqrt(n) - 1.0), 0.0, 1.0)
    if axis is None or not shape:
        return float(sparsity[0])
    return sparsity.reshape(shape)


def _real_array(W):
    W = np.asarray(W)
    if W.dtype.kind not in "fiub":
        raise ValueError(f"W must be an array of real numbers, got type {W.dtype}.")
    wrong = np.argwhere(~np.isfinite(W)) if W.dtype.kind == "f" else ()
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        raise ValueError(f"W must be finite, but entry {place} is {W[place]}.")
    if W.size == 0 or W.ndim == 0:
        raise ValueError(f"W has no entries to compare: its shape is {W.shape}.")
    return W
