"""InfoMEC: modularity, explicitness and compactness of a code."""

import warnings
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skident._compat import Interval, validate_params
from skident._math import disentanglement, probes
from skident._math.nearest import entropy
from skident._random import draw_seed, generator
from skident.metrics._factors import (
    KINDS,
    factor_kinds,
    latent_kinds,
    one_hot,
    paired,
    problem,
)
from skident.metrics._logistic import (
    NOTHING,
    held_out_explicitness,
    in_sample_explicitness,
)

# Largest gradient of a probe; penalised ones need less to be exact to .0001.
_TOL, _HELD_OUT_TOL = 1e-8, 1e-5
# Breaks ties of standardised latents, as the reference does.
_TIE_NOISE = 1e-10
_REFERENCE_NEIGHBORS = 10
_SHUFFLES, _FOLDS = 1, 2

PARAMETERS = {
    "factors": "no_validation",
    "latents": "no_validation",
    "discrete_factors": KINDS,
    "discrete_latents": KINDS,
    "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    "n_bins": [Interval(Integral, 2, None, closed="left")],
    "n_permutations": [Interval(Integral, 2, None, closed="left")],
    "cv": [Interval(Integral, 2, None, closed="left")],
    "groups": "no_validation",
    "max_samples": [Interval(Integral, 100, None, closed="left"), None],
    "random_state": ["random_state"],
}


class InfoMEC(NamedTuple):
    """Modularity, explicitness and compactness of a code.

    Attributes
    ----------
    infom : float
        Modularity: does each latent tell of one factor only? In [0, 1].
    infoe : float
        Explicitness: what a linear probe on all latents knows of the factors, in
        [0, 1] unless of the reference, which may be negative.
    infoc : float
        Compactness: is each factor told by one latent only? In [0, 1].
    nmi : ndarray of shape (n_factors, n_latents)
        Normalised mutual information.
    active : ndarray of shape (n_latents,), bool
        Latents that count in ``infom`` and ``infoc``.
    infom_per_latent : ndarray of shape (n_latents,)
        Of each active latent, 0 of the others; their mean is ``infom``.
    infoe_per_factor : ndarray of shape (n_factors,)
        Their mean is ``infoe``.
    infoc_per_factor : ndarray of shape (n_factors,)
        Their mean is ``infoc``.
    discrete_factors : ndarray of shape (n_factors,), bool
        Which factors were taken as classes.
    discrete_latents : ndarray of shape (n_latents,), bool
        Which latents were taken as classes.
    n_iter : int
        Steps of the longest fit of a logistic probe; 0 if no factor is discrete.
    gradient : float
        Largest entry of a gradient where such a fit ended; if all converged, at most
        1e-8 in reference mode, 1e-5 otherwise.
    """

    infom: float
    infoe: float
    infoc: float
    nmi: np.ndarray
    active: np.ndarray
    infom_per_latent: np.ndarray
    infoe_per_factor: np.ndarray
    infoc_per_factor: np.ndarray
    discrete_factors: np.ndarray
    discrete_latents: np.ndarray
    n_iter: int
    gradient: float


@validate_params(
    {**PARAMETERS, "reference": ["boolean"]}, prefer_skip_nested_validation=True
)
def infomec_score(  # noqa: PLR0913 - every option by name
    factors,
    latents,
    *,
    reference=False,
    discrete_factors="auto",
    discrete_latents="auto",
    n_neighbors=10,
    n_bins=10,
    n_permutations=20,
    cv=5,
    groups=None,
    max_samples=10_000,
    random_state=None,
):
    r"""Measure modularity, explicitness and compactness of a code.

    With :math:`\mathrm{NMI}_{ij} = I(s_i; z_j) / H(s_i)` of factor i and latent j, S
    factors and D active latents,

    .. math::
        \mathrm{InfoM} &= \Big( \frac1D \sum_j \frac{\max_i \mathrm{NMI}_{ij}}
            {\sum_i \mathrm{NMI}_{ij}} - \frac1S \Big) \Big/ \Big(1 - \frac1S\Big), \\
        \mathrm{InfoC} &= \Big( \frac1S \sum_i \frac{\max_j \mathrm{NMI}_{ij}}
            {\sum_j \mathrm{NMI}_{ij}} - \frac1D \Big) \Big/ \Big(1 - \frac1D\Big), \\
        \mathrm{InfoE} &= \frac1S \sum_i \frac{H_i^0 - H_i}{H_i^0},

    where :math:`H_i` is the log-loss of a linear probe from all latents to factor i and
    :math:`H_i^0` that of a guess without them.

    Parameters
    ----------
    factors : array-like of shape (n_samples, n_factors) or (n_samples,)
        The true factors: numbers or labels, also as a data frame or an array of
        objects. None may be constant.
    latents : array-like of shape (n_samples, n_latents) or (n_samples,)
        The code of the same rows. Constant latents count as inactive.
    reference : bool, default=False
        Whether to do as the reference implementation does, for comparison with
        published tables: in sample, not corrected for bias, latents chosen by their
        range. All options below but ``discrete_latents`` and ``random_state`` are then
        without effect, and all factors must be discrete.
    discrete_factors : "auto", bool or array-like of bool, default="auto"
        Which factors are classes rather than quantities. "auto": labels that are not
        numbers, booleans, and numbers with at most 100 different values, each of which
        has four rows on average (with two values always).
    discrete_latents : "auto", bool or array-like of bool, default="auto"
        Which latents are classes, by the same rule.
    n_neighbors : int, default=10
        Neighbours in the estimate of information with continuous latents.
    n_bins : int, default=10
        Classes of equal size in which a continuous factor is cut for its mutual
        information (not for the probe).
    n_permutations : int, default=20
        Shuffles of the rows that give bias and noise of the mutual information.
    cv : int, default=5
        Folds of the probe.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together: folds keep them together. Shuffles do not.
    max_samples : int or None, default=10_000
        Most rows used, drawn at random; None uses all.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows, shuffles and folds; with ``reference`` of the noise of 1e-10
        that breaks ties.

    Returns
    -------
    InfoMEC
        ``infom``, ``infoe``, ``infoc`` and what they are made of. Never NaN: a factor
        that no latent tells of, or a latent that tells of none, has the ratio of an
        even spread, and so counts 0; with one factor, InfoM of a latent is 1 if it
        tells of it, else 0, and InfoC with one active latent likewise; without any
        active latent both are 0.

    Raises
    ------
    ValueError
        For a constant factor, a missing label, NaN, infinity, other numbers of rows,
        fewer than ``max(4, cv)`` rows or ``cv`` groups, or labels called continuous,
        naming the column.

    Warns
    -----
    ConvergenceWarning
        If a probe did not converge.

    See Also
    --------
    dci_score : The same three questions, answered by trees.
    factor_scorer : One of the three as a score for searches.

    Notes
    -----
    **Default.** Information is estimated by counts (two discrete columns) or nearest
    neighbours [2]_, its mean over shuffled rows is taken off it and off the entropy
    that it is divided by (as in adjusted mutual information). A latent is active if it
    tells of any factor significantly, whatever its scale: any pair does in one of 100
    tables of independent columns. Without such a pair, a factor or latent has NMI 0.
    The probe is a logistic one with balanced classes, or a linear one for continuous
    factors (share of variance explained), scored on rows that it was not fitted on. It
    is penalised in whitened latents, the strength chosen on other folds, so that InfoE
    is the same for every invertible affine map of continuous latents. With as many
    latents as rows any such probe knows nothing. For it, what is far out is brought
    back along the radius of whitened latents (beyond eight median deviations above the
    median radius, and in the farthest hundredth of the rows), so that one outlier
    changes little. No score depends on the order of rows or on the names of labels.

    **Reference.** As [1]_: k = 10; latents standardised; active latents have a range
    above a twentieth of the largest one, discrete ones any; the probe is not penalised
    and is scored on its training rows. It is fitted by Newton steps until the gradient
    is below 1e-8, which the reference's own solver (lbfgs, 100 steps) misses by about
    1e-3. With few rows it rates noise: 50 columns of noise with 60 rows get InfoE 1.

    InfoM by nearest neighbours punishes discrete factors without noise: with 2 % of
    each factor mixed into the others, six factors of about ten values get about .7 at a
    noise of 1e-3 of the range in the latents, and .97 at .03. Add noise to synthetic
    latents.

    After whitening each latent has unit variance, and by range none is inactive: cut
    directions of low variance before it.

    References
    ----------
    .. [1] Hsu, Dorrell, Whittington, Wu, Finn, "Disentanglement via latent
       quantization", NeurIPS 2023.
    .. [2] B. C. Ross, "Mutual information between discrete and continuous data sets",
       PLoS ONE 9(2): e87357 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import infomec_score
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(5, size=(1000, 3))
    >>> latents = factors + 0.1 * rng.standard_normal((1000, 3))
    >>> found = infomec_score(factors, latents, random_state=0)
    >>> [round(score, 1) for score in found[:3]]
    [1.0, 1.0, 1.0]
    >>> turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    >>> mixed = infomec_score(factors, latents @ turn, random_state=0)
    >>> [round(score, 1) for score in mixed[:3]]
    [0.3, 1.0, 0.4]
    """
    seed = draw_seed(random_state)
    kinds = {"discrete_factors": discrete_factors, "discrete_latents": discrete_latents}
    if reference:
        return _reference(factors, latents, seed, **kinds)
    rows = problem(
        factors, latents, **kinds,
        groups=groups, cv=cv, max_samples=max_samples, seed=seed,
    )  # fmt: skip
    nmi = normalised_information(rows, n_neighbors, n_bins, n_permutations, seed)
    features = rows.features()
    found = [
        _explicitness(features, factor, discrete, rows.folds, cv, seed)
        for factor, discrete in zip(rows.factors, rows.discrete, strict=True)
    ]
    kinds = rows.discrete, rows.discrete_latents
    return _result(nmi, nmi.any(axis=0), found, kinds, _HELD_OUT_TOL)


def normalised_information(rows, n_neighbors, n_bins, n_permutations, seed):
    """Return the corrected and normalised information of all pairs of a problem."""
    classes = [disentanglement.as_column(c, True) for c in rows.classes(n_bins)]
    rng = generator(seed, _SHUFFLES)
    shuffles = [rng.permutation(len(rows.latents)) for _ in range(n_permutations)]
    table = disentanglement.dependence(
        classes, rows.latent_columns(), n_neighbors, shuffles
    )
    return disentanglement.normalised(table, classes)


def _explicitness(features, factor, discrete, folds, cv, seed):
    if discrete:
        labels = folds(factor, cv, seed, _FOLDS)
        return held_out_explicitness(features, factor, labels, _HELD_OUT_TOL)
    labels = folds(np.zeros(len(factor), dtype=np.intp), cv, seed, _FOLDS)
    return NOTHING._replace(score=probes.held_out_r2(features, factor, labels))


def _reference(factors, latents, seed, *, discrete_factors, discrete_latents):
    columns, latents = paired(factors, latents, min_samples=2)
    _check_classes(columns, discrete_factors)
    which = latent_kinds(latents, discrete_latents)
    codes = [
        np.unique(column.values, return_inverse=True)[1].reshape(-1)
        for column in columns
    ]
    spread = latents.std(axis=0)
    standard = (latents - latents.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    noise = generator(seed).standard_normal(latents.shape)
    factor_columns = [disentanglement.as_column(c, True) for c in codes]
    latent_columns = [
        disentanglement.as_column(
            np.unique(z, return_inverse=True)[1] if d else z + _TIE_NOISE * e, d
        )
        for z, e, d in zip(standard.T, noise.T, which, strict=True)
    ]
    table = disentanglement.dependence(
        factor_columns, latent_columns, _REFERENCE_NEIGHBORS, exact=True
    )
    entropies = np.array([[entropy(c)] for c in codes])
    nmi = np.maximum(table.raw, 0.0) / entropies
    ranges = np.ptp(latents, axis=0)
    least = ranges[~which].max(initial=0.0) / 20.0
    active = ranges > np.where(which, 0.0, least)
    features = one_hot(standard, which)
    found = [in_sample_explicitness(features, c, _TOL) for c in codes]
    kinds = np.ones(len(codes), bool), which
    return _result(nmi, active, found, kinds, _TOL)


def _check_classes(columns, discrete):
    """Refuse quantities: the reference knows classes only."""
    automatic = isinstance(discrete, str)
    found = factor_kinds(columns, discrete)
    for column, is_discrete in zip(columns, found, strict=True):
        whole = automatic and np.all(column.values == np.round(column.values))
        if not (is_discrete or whole):
            raise ValueError(
                f"{column.name} is continuous, and the reference takes classes only: "
                "leave it out, cut it into classes, or use reference=False."
            )


def _result(nmi, active, found, kinds, tol):
    """Return all scores from the table, the active latents and the probes."""
    pruned = nmi[:, active]
    per_latent = np.zeros(nmi.shape[1])
    per_latent[active] = disentanglement.concentration(pruned.T)
    per_factor = disentanglement.concentration(pruned)
    explicit = np.array([probe.score for probe in found])
    gradient = max(probe.gradient for probe in found)
    if gradient > tol:
        warnings.warn(
            f"A probe of infomec_score did not converge: its gradient is {gradient:.1e}"
            f", not {tol:g}. InfoE may be low; look for latents of very different "
            "sizes.",
            ConvergenceWarning,
        )
    return InfoMEC(
        float(per_latent[active].mean()) if active.any() else 0.0,
        float(explicit.mean()),
        float(per_factor.mean()),
        nmi,
        active,
        per_latent,
        explicit,
        per_factor,
        *kinds,
        max(probe.n_iter for probe in found),
        gradient,
    )
