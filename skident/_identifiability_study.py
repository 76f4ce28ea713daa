"""A study of whether a model that is trained again learns the same, and the truth."""

import itertools
import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
)
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skident._compat import Interval, StrOptions, fit_context
from skident._entries import check_rectangular
from skident._math.alignment import TRANSFORMATIONS
from skident._math.diameters import DIAMETERS
from skident._math.paired_rows import open_rows
from skident._progress import progress_bar
from skident._random import draw_seed, generator
from skident._study_pairs import compare_pairs
from skident._study_runs import (
    decoder_constant,
    draw_rows,
    seeded_models,
    train,
)
from skident._study_tables import StudyTables, as_embeddings
from skident._study_text import summarize
from skident._validation import all_or_nothing, as_group_codes, as_rows
from skident.metrics._protocol import check_transformations

_RUNS, _ROWS, _BOUND = range(3)
_BOUND_ROWS = 1000


class IdentifiabilityStudy(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    MetaEstimatorMixin,
    StudyTables,
    BaseEstimator,
):
    r"""Train a model several times and measure whether it learns the same each time.

    ``n_runs`` clones get seeds of their own and are trained on the same rows. Every
    pair of representations is aligned by the best map of each group of transformations,
    fitted on some rows and measured on others:

    .. math:: e_H = \frac{1}{n \, \mathrm{diam}(f_s(X))} \sum_i
        \min_{h \in H} \lVert h(f_r(x_i)) - f_s(x_i) \rVert

    That is statistical near-identifiability up to H, in latent diameters [1]_. With
    known factors the runs are compared with the truth as well.

    Parameters
    ----------
    estimator : estimator or None
        Model with ``fit`` and ``transform``, pipelines included. Every ``random_state``
        in it is replaced by a seed of the run. None belongs to
        :meth:`from_embeddings`.
    n_runs : int, default=5
        Number of runs, at least 2.
    transformations : sequence of str, default=("permutation", "rigid", "linear", "ica")
        Groups, as in :func:`skident.metrics.alignment_errors`.
    subsample : float, default=1.0
        Fraction of the rows (or groups), in (0, 1], that each run is trained on, drawn
        anew. Below 1 the question is also whether other rows give the same. Errors are
        measured on all rows.
    cv : int, default=5
        Number of folds of the alignment.
    diameter : {"max", "robust"}, default="max"
        Unit of the errors, as in :func:`skident.metrics.alignment_errors`.
    n_resamples : int, default=1000
        Bootstrap resamples behind the intervals.
    confidence_level : float, default=0.95
        Of the intervals.
    max_samples : int, default=30_000
        Most rows on which ICA is solved and chance is taken.
    bound_quantile : float, default=0.0
        Fraction of rows, in [0, 0.5), left out at either end of the singular values
        behind the bound of theorem 1, which one odd row decides at 0.
    memory : None, path or joblib.Memory, default=None
        Folder where every finished run is kept: a study that was interrupted trains
        only what is missing, and one with more runs adds to them.
    n_jobs : int, default=None
        Number of runs at once, as in joblib. Each is trained in one thread, so that any
        number gives the same result.
    verbose : int, default=0
        1 shows a progress bar over runs and pairs.
    random_state : int, RandomState instance or None, default=None
        Seed of the seeds of the runs, and of folds and resamples.

    Attributes
    ----------
    table_ : dict of column
        One row a group of transformations, as a data frame takes them:
        "transformation"; "error", the mean over pairs and directions; "lower" and
        "upper" of its interval over rows (or groups); "run_lower" and "run_upper" of
        that over runs, from three runs on; "chance"; "max_error" and "robust_error" in
        units of either diameter.
    pair_table_ : dict of column
        One row a pair: "first", "second", the error of each transformation,
        "ica_efficiency" (None where it has no meaning) and, with decoders, "bound".
    run_table_ : dict of column
        One row a run: "run", "error" (the mean rigid error, or that of the first
        transformation, to the other runs); with decoders "lipschitz" (L) and "bound";
        with factors the scores of ``factor_table_``.
    factor_table_ : dict of column or None
        One row a score: "score"; "value", the mean over runs, with "lower" and "upper"
        over runs; and the same after ICA, "value_ica", "lower_ica", "upper_ica". Scores
        are "infom", "infoe", "infoc" (:func:`skident.metrics.infomec_score`),
        "disentanglement", "completeness", "informativeness"
        (:func:`skident.metrics.dci_score`) and "mcc"
        (:func:`skident.metrics.mcc_score`). None without factors.
    ica_efficiency_ : float or None
        Of the mean errors: see :func:`skident.metrics.ica_efficiency`.
    ica_efficiency_interval_ : ndarray of shape (2,) or None
        Its interval over rows.
    bound_ : float or None
        Mean over pairs of :math:`\sqrt{(1 + L)^2 (1 + L')^2 - 1}`, L and L' the
        bi-Lipschitz constants of the two decoders: theorem 1 bounds the rigid error by
        a constant times it, if both reconstruct alike. None without decoders.
    components_ : ndarray of shape (n_components, width) or None
        Independent components of the consensus, the most stable first:
        ``(transform(X) - component_mean_) @ components_.T``. None without "ica".
    component_mean_ : ndarray of shape (width,) or None
        Subtracted before.
    component_stability_ : ndarray of shape (n_components,) or None
        Mean over pairs of runs of the absolute correlation of their own components that
        match this one, one found on one half of the rows, one on the other: 1 for a
        component that every run finds on any rows.
    component_lowest_ : ndarray of shape (n_components,) or None
        The same of the pair that agrees least.
    embedding_ : ndarray of shape (n_samples, width)
        Consensus representation of the rows of the fit.
    reference_run_ : int
        Run nearest to the others, in whose axes the consensus stands.
    estimators_ : list of estimator or None
        The trained clones; None of a study :meth:`from_embeddings`.
    n_features_in_ : int
        Number of columns of ``X``, if the estimator tells.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if the estimator tells.

    Raises
    ------
    TypeError
        For an estimator without ``fit`` or ``transform``.
    ValueError
        For fewer rows than ``max(4, cv)``, a representation that is constant or not
        finite, naming the run, and what the estimator refuses.

    Warns
    -----
    UserWarning
        If the estimator has no ``random_state`` and all runs see the same rows: they
        come out equal, which shows nothing.

    See Also
    --------
    skident.metrics.alignment_errors : Two representations.
    skident.RigidAligner : The map itself.

    Notes
    -----
    The consensus is that of generalised Procrustes analysis [2]_: all representations,
    each centred, turned onto their mean. ``transform`` maps new rows by every run and
    by the turns found in the fit, and takes the mean. ``score`` needs no turns: it
    aligns the representations of its rows anew, out of sample.

    The interval over rows takes the runs as given, that over runs the rows; pairs share
    runs, so that runs are resampled. With fewer than five it is crude.

    The bound is taken at 1000 rows at most, from ``decoder_jacobian`` of the estimator,
    or of a step of a pipeline behind which there are affine steps only.

    Memory grows as n_samples times the widths of all runs, and as the square of the sum
    of the widths.

    References
    ----------
    .. [1] Nelson, Fumero, Karaletsos, Locatello, "Statistical and structural
       identifiability in representation learning", ICLR 2026, arXiv:2603.11970.
    .. [2] J. C. Gower, "Generalized Procrustes analysis", Psychometrika 40, 33 (1975).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from skident import AutoencoderEmbedder, IdentifiabilityStudy, WhitenICA
    >>> X = load_digits().data / 16
    >>> model = make_pipeline(AutoencoderEmbedder(2, max_epochs=5), WhitenICA())
    >>> study = IdentifiabilityStudy(model, n_runs=3, random_state=0).fit(X)
    >>> study.table_["transformation"]
    ['permutation', 'rigid', 'linear', 'ica']
    >>> study.transform(X).shape
    (1797, 2)
    """

    _parameter_constraints = {  # noqa: RUF012
        "estimator": "no_validation",
        "n_runs": [Interval(Integral, 2, None, closed="left")],
        "transformations": [list, tuple],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "diameter": [StrOptions(set(DIAMETERS))],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "max_samples": [Interval(Integral, 100, None, closed="left")],
        "bound_quantile": [Interval(Real, 0, 0.5, closed="left")],
        "memory": "no_validation",
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator,
        *,
        n_runs=5,
        transformations=TRANSFORMATIONS,
        subsample=1.0,
        cv=5,
        diameter="max",
        n_resamples=1000,
        confidence_level=0.95,
        max_samples=30_000,
        bound_quantile=0.0,
        memory=None,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.estimator = estimator
        self.n_runs = n_runs
        self.transformations = transformations
        self.subsample = subsample
        self.cv = cv
        self.diameter = diameter
        self.n_resamples = n_resamples
        self.confidence_level = confidence_level
        self.max_samples = max_samples
        self.bound_quantile = bound_quantile
        self.memory = memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, groups=None):
        """Train all runs and compare them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as the estimator takes them; at least ``max(4, cv)``.
        y : array-like of shape (n_samples, n_factors), default=None
            Known factors, numbers or labels. The estimator never sees them.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together: folds, resamples and ``subsample`` keep them
            whole.

        Returns
        -------
        IdentifiabilityStudy
            The fitted study.
        """
        with all_or_nothing(self):
            _check_estimator(self.estimator)
            check_transformations(self.transformations)
            check_rectangular(X, "X")
            X = X if hasattr(X, "shape") else np.asarray(X)
            codes = as_group_codes(groups, _n_rows(X, max(4, self.cv)))
            seed = draw_seed(self.random_state)
            models, seeded = seeded_models(self.estimator, self.n_runs, seed, _RUNS)
            if not seeded and self.subsample == 1.0:
                warnings.warn(
                    f"estimator={self.estimator!r} has no random_state: runs on the "
                    "same rows may come out equal, which shows nothing. Set subsample "
                    "below 1 to train them on other rows.",
                    UserWarning,
                )
            subsets = [
                draw_rows(codes, self.subsample, generator(seed, _ROWS, k))
                for k in range(self.n_runs)
            ]
            with progress_bar(self.n_runs, "runs", verbose=self.verbose) as advance:
                self.estimators_, embeddings = train(
                    models, X, subsets,
                    memory=self.memory, n_jobs=self.n_jobs, advance=advance,
                )  # fmt: skip
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self.estimators_[0], name):
                    setattr(self, name, getattr(self.estimators_[0], name))
            self._compare(embeddings, codes, seed)
            self._measure_bound(X, seed)
            self._score_factors(y, embeddings, codes, groups, seed)
        return self

    @classmethod
    def from_embeddings(cls, embeddings, factors=None, *, groups=None, **params):
        """Return a study of representations that are there already.

        Parameters
        ----------
        embeddings : sequence of array-like of shape (n_samples, n_columns)
            Representations of the same rows in the same order, at least two; widths may
            differ.
        factors : array-like of shape (n_samples, n_factors), default=None
            Known factors.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together.
        **params
            Parameters of the study, but for those of the training.

        Returns
        -------
        IdentifiabilityStudy
            Fitted; without ``estimators_``, so that it transforms no new rows.

        Raises
        ------
        ValueError
            As of :func:`skident.metrics.alignment_errors`, naming the representation.

        Examples
        --------
        >>> import numpy as np
        >>> from skident import IdentifiabilityStudy
        >>> Z = np.random.default_rng(0).laplace(size=(300, 3))
        >>> turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
        >>> study = IdentifiabilityStudy.from_embeddings(
        ...     [Z, Z @ turn, -Z], random_state=0
        ... )
        >>> study.pair_table_["rigid"].round(6).tolist()
        [0.0, 0.0, 0.0]
        """
        embeddings = list(embeddings)
        study = cls(None, n_runs=max(2, len(embeddings)), **params)
        study._validate_params()
        check_transformations(study.transformations)
        rows = as_embeddings(embeddings, max(4, study.cv))
        codes = as_group_codes(groups, len(rows[0]))
        seed = draw_seed(study.random_state)
        study.estimators_ = None
        study._compare(rows, codes, seed)
        study.bound_ = None
        study._score_factors(factors, rows, codes, groups, seed)
        return study

    def transform(self, X):
        """Return the consensus representation of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as the estimator takes them.

        Returns
        -------
        ndarray of shape (n_samples, width)
            In the axes and units of the reference run.
        """
        representations = self._representations(X)
        return self._consensus.apply(representations)

    def score(self, X, y=None):
        """Return minus the mean rigid error between runs on these rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, at least ``max(4, cv)``.
        y : None
            Ignored.

        Returns
        -------
        float
            In latent diameters; at most 0. The maps are fitted on some of these rows
            and measured on others.
        """
        sides = [open_rows(Z) for Z in self._representations(X)]
        n_rows = _n_rows(sides[0], max(4, self.cv))
        protocol = self._protocol(np.arange(n_rows), ("rigid",), 1, 0)
        found = compare_pairs(
            protocol, sides, list(itertools.combinations(range(len(sides)), 2)), None,
            n_jobs=self.n_jobs, advance=lambda: None,
        )  # fmt: skip
        return -float(np.mean([one.errors.error[0] for one in found]))

    def summary(self):
        """Return the study in words and figures.

        Returns
        -------
        str
            Several lines.
        """
        check_is_fitted(self)
        return summarize(self)

    def _representations(self, X):
        check_is_fitted(self)
        if self.estimators_ is None:
            raise ValueError(
                "This study was made from embeddings, so that there is no model to "
                "transform new rows: embedding_ holds the consensus of its own rows."
            )
        return [
            as_rows(model.transform(X), name=f"the representation of run {k}")
            for k, model in enumerate(self.estimators_)
        ]

    def _measure_bound(self, X, seed):
        """Set what theorem 1 says of the rigid error beside it."""
        self.bound_ = None
        rows = generator(seed, _BOUND).permutation(_n_rows(X))[:_BOUND_ROWS]
        few = X.iloc[np.sort(rows)] if hasattr(X, "iloc") else X[np.sort(rows)]
        constants = [
            decoder_constant(model, few, self.bound_quantile)
            for model in self.estimators_
        ]
        if any(constant is None for constant in constants):
            return
        L = np.array([constant.L for constant in constants])
        first, second = self.pair_table_["first"], self.pair_table_["second"]
        self.run_table_["lipschitz"] = L
        self.run_table_["bound"] = np.array([constant.bound for constant in constants])
        bounds = np.sqrt((1 + L[first]) ** 2 * (1 + L[second]) ** 2 - 1)
        self.pair_table_["bound"] = bounds
        self.bound_ = float(bounds.mean())

    @property
    def _n_features_out(self):
        return self.embedding_.shape[1]

    def __sklearn_tags__(self):
        """Take rows as the estimator takes them."""
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _check_estimator(estimator):
    missing = [name for name in ("fit", "transform") if not hasattr(estimator, name)]
    if missing:
        raise TypeError(
            f"estimator={estimator!r} has no {' and no '.join(missing)}: use a "
            "transformer or a pipeline that ends with one; ready representations go "
            "through IdentifiabilityStudy.from_embeddings."
        )


def _n_rows(X, fewest=1):
    """Return the number of rows; refuse fewer than are needed."""
    shape = X.shape
    if len(shape) == 0:
        raise ValueError(f"X must have rows, got {X!r}.")
    if shape[0] < fewest:
        raise ValueError(
            f"Found array with {shape[0]} sample(s) (shape={tuple(shape)}) while a "
            f"minimum of {fewest} is required by IdentifiabilityStudy."
        )
    return shape[0]
