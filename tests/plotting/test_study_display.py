import numpy as np
import pytest
from matplotlib import pyplot as plt

from skident import IdentifiabilityStudy
from skident.plotting import StudyDisplay


def fit(n_runs, **options):
    rng = np.random.default_rng(0)
    Z = rng.laplace(size=(100, 2))
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    runs = [Z, *(Z @ turn + k * rng.normal(size=Z.shape) for k in range(n_runs - 1))]
    return IdentifiabilityStudy.from_embeddings(
        runs, n_resamples=50, random_state=0, **options
    )


@pytest.fixture(scope="module")
def study():
    return fit(3)


def segments(ax, k):
    return np.array(ax.collections[k].get_segments())[:, :, 0]


def test_errors_with_both_intervals(study):
    ax, *_ = StudyDisplay.from_estimator(study).axes_
    table = study.table_
    over_runs = np.transpose([table["run_lower"], table["run_upper"]])
    over_rows = np.transpose([table["lower"], table["upper"]])
    assert np.array_equal(segments(ax, 0), over_runs)
    assert np.array_equal(segments(ax, 1), over_rows)
    assert np.array_equal(ax.collections[2].get_offsets()[:, 0], table["error"])
    assert np.array_equal(ax.collections[3].get_offsets()[:, 0], table["chance"])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "interval over runs" in labels


def test_matrix_holds_the_rigid_error_of_each_pair(study):
    display = StudyDisplay.from_estimator(study)
    pairs = study.pair_table_
    for i, j, error in zip(
        pairs["first"], pairs["second"], pairs["rigid"], strict=True
    ):
        assert display.matrix_[i, j] == display.matrix_[j, i] == error
    assert np.array_equal(np.diag(display.matrix_), [0, 0, 0])
    ax = display.axes_[1]
    written = sorted(text.get_text() for text in ax.texts)
    assert written == sorted(2 * [f"{error:.2f}" for error in pairs["rigid"]])
    # of runs 0 and 1, one is the other, turned
    assert display.matrix_.argmax() not in (1, 3)


def test_components_by_stability(study):
    bars = StudyDisplay.from_estimator(study).axes_[2].patches
    heights = [bar.get_height() for bar in bars]
    assert heights == study.component_stability_.tolist()
    display = StudyDisplay(study.table_, study.pair_table_, [0.95, 0.5]).plot()
    stable, other = display.axes_[2].patches
    assert stable.get_facecolor() != other.get_facecolor()


def test_two_runs_without_ica():
    display = StudyDisplay.from_estimator(
        fit(2, transformations=["linear", "permutation"], diameter="robust")
    )
    assert len(display.axes_) == 2 and display.transformation_ == "linear"
    assert display.axes_[0].get_xlabel().endswith("(robust)")


def test_equal_runs_and_many_runs():
    display = StudyDisplay.from_estimator(fit(2, transformations=["rigid"]))
    assert display.matrix_.shape == (2, 2)
    display = StudyDisplay.from_estimator(fit(12, transformations=["rigid"]))
    assert len(display.axes_[1].texts) == 0


def test_axes_that_are_given_are_used(study):
    figure, axes = plt.subplots(1, 3)
    assert StudyDisplay.from_estimator(study, ax=axes).figure_ is figure
    with pytest.raises(ValueError, match="3 matplotlib Axes"):
        StudyDisplay.from_estimator(study, ax=axes[:2])


def test_missing_columns_are_named(study):
    table = {k: v for k, v in study.table_.items() if k != "chance"}
    with pytest.raises(ValueError, match="table has no column 'chance'"):
        StudyDisplay(table, study.pair_table_)
    with pytest.raises(ValueError, match="pair_table has no column 'rigid'"):
        StudyDisplay(study.table_, {"first": [0], "second": [1]})
