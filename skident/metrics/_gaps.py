"""Scores of the gap between the best and the second latent of each factor."""

import numpy as np

from skident._compat import validate_params
from skident._math import disentanglement, probes
from skident._random import draw_seed, generator
from skident.metrics._factors import FARTHEST, problem
from skident.metrics._infomec import PARAMETERS, normalised_information

_SHUFFLES, _FOLDS = 1, 2
_INFORMATION = {
    name: PARAMETERS[name]
    for name in (
        "factors", "latents", "discrete_factors", "discrete_latents", "n_neighbors",
        "n_bins", "n_permutations", "max_samples", "random_state",
    )
}  # fmt: skip


@validate_params(
    {
        **{k: v for k, v in _INFORMATION.items() if k != "n_bins"},
        "n_permutations": [*PARAMETERS["n_permutations"], None],
    },
    prefer_skip_nested_validation=True,
)
def mutual_information(
    factors,
    latents,
    *,
    discrete_factors="auto",
    discrete_latents="auto",
    n_neighbors=10,
    n_permutations=20,
    max_samples=10_000,
    random_state=None,
):
    """Estimate the mutual information of each factor with each latent.

    Two discrete columns: by the frequencies of pairs; a discrete and a continuous one:
    nearest neighbours within classes [1]_; two continuous ones: nearest neighbours in
    the plane of their ranks [2]_. The mean estimate between shuffled rows is taken off.

    Parameters
    ----------
    factors : array-like of shape (n_samples, n_factors) or (n_samples,)
        Numbers or labels, also as a data frame or an array of objects; none constant.
    latents : array-like of shape (n_samples, n_latents) or (n_samples,)
        Numbers of the same rows.
    discrete_factors, discrete_latents : "auto", bool or array-like, default="auto"
        Which columns are classes, as in :func:`infomec_score`.
    n_neighbors : int, default=10
        Neighbours; fewer give less bias and more noise.
    n_permutations : int or None, default=20
        Shuffles of the rows, at least 2. None: no correction.
    max_samples : int or None, default=10_000
        Most rows used, drawn at random; None uses all.
    random_state : int, RandomState instance or None, default=None
        Seed of rows and shuffles.

    Returns
    -------
    ndarray of shape (n_factors, n_latents)
        Nats; at least 0, at most the entropy of a discrete column. Between continuous
        columns there is no upper bound: information of a column with itself grows with
        the number of rows, so do not divide by it.

    Raises
    ------
    ValueError
        As by :func:`infomec_score`.

    See Also
    --------
    infomec_score : Scores made of it.

    References
    ----------
    .. [1] B. C. Ross, "Mutual information between discrete and continuous data sets",
       PLoS ONE 9(2): e87357 (2014).
    .. [2] Kraskov, Stögbauer, Grassberger, "Estimating mutual information", Phys. Rev.
       E 69, 066138 (2004), equation 8.

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import mutual_information
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(2000)
    >>> y = 0.8 * x + 0.6 * rng.standard_normal(2000)
    >>> found = mutual_information(x, y, random_state=0)
    >>> round(float(found[0, 0]), 1), round(float(-0.5 * np.log(1 - 0.8**2)), 1)
    (0.5, 0.5)
    """
    seed = draw_seed(random_state)
    rows = problem(
        factors, latents, discrete_factors=discrete_factors,
        discrete_latents=discrete_latents, max_samples=max_samples, seed=seed,
    )  # fmt: skip
    columns = [
        disentanglement.as_column(f, d)
        for f, d in zip(rows.factors, rows.discrete, strict=True)
    ]
    latent_columns = rows.latent_columns()
    rng = generator(seed, _SHUFFLES)
    shuffles = [rng.permutation(len(rows.latents)) for _ in range(n_permutations or 0)]
    table = disentanglement.dependence(columns, latent_columns, n_neighbors, shuffles)
    return disentanglement.corrected(table, columns, latent_columns)


@validate_params(_INFORMATION, prefer_skip_nested_validation=True)
def mig_score(  # noqa: PLR0913 - every option by name
    factors,
    latents,
    *,
    discrete_factors="auto",
    discrete_latents="auto",
    n_neighbors=10,
    n_bins=10,
    n_permutations=20,
    max_samples=10_000,
    random_state=None,
):
    r"""Return the mutual information gap of a code.

    .. math:: \mathrm{MIG} = \frac1S \sum_i \frac{I_{(1)i} - I_{(2)i}}{H(s_i)},

    with the largest and the second largest information of a latent on factor i.

    Parameters
    ----------
    factors : array-like of shape (n_samples, n_factors) or (n_samples,)
        The true factors: numbers or labels, also as a data frame or an array of
        objects. None may be constant.
    latents : array-like of shape (n_samples, n_latents) or (n_samples,)
        The code of the same rows.
    discrete_factors, discrete_latents : "auto", bool or array-like, default="auto"
        Which columns are classes, as in :func:`infomec_score`.
    n_neighbors : int, default=10
        Neighbours in the estimate of information with continuous latents.
    n_bins : int, default=10
        Classes of equal size in which a continuous factor is cut.
    n_permutations : int, default=20
        Shuffles of the rows that give bias and noise of the information.
    max_samples : int or None, default=10_000
        Most rows used, drawn at random; None uses all.
    random_state : int, RandomState instance or None, default=None
        Seed of rows and shuffles.

    Returns
    -------
    float
        In [0, 1], larger is better. With one latent the second information is 0.

    Raises
    ------
    ValueError
        As by :func:`infomec_score`.

    See Also
    --------
    infomec_score : Uses all latents of a factor, not two.

    Notes
    -----
    The shares I / H are those of :func:`infomec_score`: corrected for bias, and 0 for
    factors or latents without a significant one.

    References
    ----------
    .. [1] Chen, Li, Grosse, Duvenaud, "Isolating sources of disentanglement in
       variational autoencoders", NeurIPS 2018, equation 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import mig_score
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(4, size=(1000, 2))
    >>> latents = factors + 0.1 * rng.standard_normal((1000, 2))
    >>> round(mig_score(factors, latents, random_state=0), 1)
    1.0
    """
    seed = draw_seed(random_state)
    rows = problem(
        factors, latents, discrete_factors=discrete_factors,
        discrete_latents=discrete_latents, max_samples=max_samples, seed=seed,
    )  # fmt: skip
    nmi = normalised_information(rows, n_neighbors, n_bins, n_permutations, seed)
    return float(disentanglement.top_gaps(nmi).mean())


@validate_params(
    {
        name: PARAMETERS[name]
        for name in (
            "factors", "latents", "discrete_factors", "discrete_latents", "cv",
            "groups", "random_state",
        )
    },
    prefer_skip_nested_validation=True,
)  # fmt: skip
def sap_score(
    factors,
    latents,
    *,
    discrete_factors="auto",
    discrete_latents="auto",
    cv=5,
    groups=None,
    random_state=None,
):
    """Return the gap in predictability between the two best latents of each factor.

    Parameters
    ----------
    factors : array-like of shape (n_samples, n_factors) or (n_samples,)
        The true factors: numbers or labels, also as a data frame or an array of
        objects. None may be constant.
    latents : array-like of shape (n_samples, n_latents) or (n_samples,)
        The code of the same rows.
    discrete_factors, discrete_latents : "auto", bool or array-like, default="auto"
        Which columns are classes, as in :func:`infomec_score`.
    cv : int, default=5
        Folds.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together: folds keep them together.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds.

    Returns
    -------
    float
        Mean over factors of the best score of a single latent less the second best, in
        [0, 1], larger is better. With one latent the second is what a guess scores: the
        frequency of the commonest class, or 0.

    Raises
    ------
    ValueError
        As by :func:`infomec_score`.

    See Also
    --------
    mig_score : The same gap in information.

    Notes
    -----
    All scores are of rows that nothing was fitted on. Discrete factors: accuracy of a
    linear discriminant of the latent (of a table, if that is discrete too); continuous
    ones: variance explained by a line, or by the means of its values. The original
    takes a linear support vector machine and a squared correlation, in sample.

    References
    ----------
    .. [1] Kumar, Sattigeri, Balakrishnan, "Variational inference of disentangled latent
       concepts from unlabeled observations", ICLR 2018, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import sap_score
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.random((1000, 2))
    >>> latents = np.c_[factors, factors[:, :1]]
    >>> round(sap_score(factors[:, :1], latents, random_state=0), 2)
    0.0
    >>> round(sap_score(factors[:, 1:], latents, random_state=0), 1)
    1.0
    """
    seed = draw_seed(random_state)
    rows = problem(
        factors, latents, discrete_factors=discrete_factors,
        discrete_latents=discrete_latents, groups=groups, cv=cv, seed=seed,
    )  # fmt: skip
    near = probes.clip_outliers(rows.latents, FARTHEST)
    latents = np.where(rows.discrete_latents, rows.latents, near)
    gaps = []
    for factor, discrete in zip(rows.factors, rows.discrete, strict=True):
        codes = factor if discrete else np.zeros(len(factor), dtype=np.intp)
        folds = rows.folds(codes, cv, seed, _FOLDS)
        scores = [
            _single_score(z, z_discrete, factor, discrete, folds)
            for z, z_discrete in zip(latents.T, rows.discrete_latents, strict=True)
        ]
        guess = np.bincount(factor).max() / len(factor) if discrete else 0.0
        gaps.append(max(0.0, disentanglement.top_gaps(np.array([scores]), guess)[0]))
    return float(np.mean(gaps))


def _single_score(latent, latent_discrete, factor, discrete, folds):
    cells = np.unique(latent, return_inverse=True)[1] if latent_discrete else None
    if not discrete:
        known = latent[:, None]
        if latent_discrete:
            known = (cells[:, None] == np.arange(cells.max() + 1)).astype(float)
        return probes.held_out_r2(known, factor, folds)
    if latent_discrete:
        return probes.table_accuracy(cells, factor, folds)
    return probes.single_latent_accuracy(latent, factor, folds)
