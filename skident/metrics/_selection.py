"""Choice among the candidates of a search."""

import numpy as np


def one_standard_error(cv_results):
    """Return the simplest candidate within one standard error of the best.

    A ``refit=`` for :class:`sklearn.model_selection.GridSearchCV`. **Simplest is
    first**: candidates count in the order in which the search lists them, so give the
    values of a grid from the simplest to the most complex. With several parameters the
    order is that of ``ParameterGrid``: by name, the last one running fastest.

    Parameters
    ----------
    cv_results : dict
        ``cv_results_`` of a search with a single score.

    Returns
    -------
    int
        Index of the candidate: the first whose mean test score is at least the largest
        one, less the standard error of that over the splits. Candidates whose score is
        NaN, because a fit failed, do not count.

    Raises
    ------
    ValueError
        Without a ``mean_test_score`` (a search with several scores), or if all are NaN.

    Notes
    -----
    The largest mean is the largest of several noisy numbers. Beyond the number of
    components that the data has, the true score is flat, and the maximum falls on any
    of them.

    References
    ----------
    .. [1] Breiman, Friedman, Olshen, Stone, "Classification and regression trees",
       Wadsworth (1984), section 3.4.3.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skident.metrics import one_standard_error
    >>> search = GridSearchCV(
    ...     DecisionTreeRegressor(random_state=0),
    ...     {"max_depth": [1, 2, 3, 4]},
    ...     refit=one_standard_error,
    ... )
    >>> search.fit(*load_diabetes(return_X_y=True)).best_params_
    {'max_depth': 2}
    """
    if "mean_test_score" not in cv_results:
        raise ValueError(
            "one_standard_error needs a search with one score, but cv_results has no "
            "mean_test_score."
        )
    means = np.asarray(cv_results["mean_test_score"], dtype=float)
    if np.isnan(means).all():
        raise ValueError(
            f"The mean test scores of all {len(means)} candidates are NaN: each failed "
            "in some split."
        )
    best = np.nanargmax(means)
    n_splits = sum(
        name.startswith("split") and name.endswith("_test_score") for name in cv_results
    )
    # std_test_score divides by n_splits
    error = cv_results["std_test_score"][best] / np.sqrt(max(1, n_splits - 1))
    return int(np.argmax(means >= means[best] - error))
