import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from skident.metrics import one_standard_error


def results(scores):
    """As GridSearchCV makes them: one row of ``scores`` a candidate."""
    scores = np.array(scores, dtype=float)
    splits = {f"split{k}_test_score": column for k, column in enumerate(scores.T)}
    return {
        **splits,
        "mean_test_score": scores.mean(axis=1),
        "std_test_score": scores.std(axis=1),
    }


# The best candidate has mean 4 and standard error std(ddof=1) / sqrt(3) = 1 / sqrt(3).
BEST = [3, 4, 5]


@pytest.mark.parametrize(
    "first, chosen",
    [(4 - 0.57, 0), (4 - 0.59, 1)],
)
def test_one_standard_error_is_that_of_the_mean_over_splits(first, chosen):
    assert one_standard_error(results([[first] * 3, BEST, [3.9] * 3])) == chosen


def test_without_noise_it_is_the_maximum_and_the_first_of_equals():
    assert one_standard_error(results([[1, 1], [3, 3], [3, 3], [2, 2]])) == 1


def test_failed_candidates_do_not_count():
    nan = [np.nan] * 3
    assert one_standard_error(results([nan, [3.9] * 3, BEST, nan])) == 1
    with pytest.raises(ValueError, match="all 2 candidates are NaN"):
        one_standard_error(results([nan, nan]))


def test_one_split_has_no_error():
    assert one_standard_error(results([[1.0], [2.0]])) == 1


def test_several_scores_are_refused():
    with pytest.raises(ValueError, match="no mean_test_score"):
        one_standard_error({"mean_test_r2": [1.0]})


def test_search_refits_the_simplest_candidate():
    """Ridge of noise: all candidates are alike, and the first in the grid wins."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    for alphas in ([1e3, 1e2], [1e2, 1e3]):
        search = GridSearchCV(Ridge(), {"alpha": alphas}, refit=one_standard_error)
        assert search.fit(X, y).best_params_ == {"alpha": alphas[0]}
        assert search.best_estimator_.alpha == alphas[0]
