from itertools import combinations
from math import prod

import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy.sparse.csgraph import shortest_path
from sklearn.exceptions import NotFittedError

from skident import CondTotalCorrelation
from skident.datasets._lattice import lattice
from skident.plotting import TotalCorrelationDisplay
from skident.plotting._pairs import lattice_distances


def walked_distances(shape, periodic):
    """Fewest bonds of ``make_ising`` between two sites, by search."""
    graph = np.zeros((prod(shape),) * 2)
    for i, j in lattice(shape, periodic, 1.0).bonds:
        graph[i, j] = graph[j, i] = 1
    return shortest_path(graph, unweighted=True)


@pytest.fixture
def covariance():
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(12, 40))
    return factors @ factors.T


@pytest.fixture
def fitted(covariance):
    """A litmus test with the attributes that a fit leaves, without the fit."""
    test = CondTotalCorrelation()
    test.residual_covariance_ = covariance
    test.verdict_ = "not mean-field"
    test.unexplained_fraction_ = (0.312, 0.29, 0.334)
    return test


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("shape", [(7,), (2,), (4, 3), (1, 5), (3, 2, 4), (6, 6)])
def test_distance_is_the_number_of_bonds_between(shape, periodic):
    found = lattice_distances(shape, periodic)
    assert np.array_equal(found, walked_distances(shape, periodic))


def test_an_int_is_a_chain():
    assert lattice_distances(4).tolist()[0] == [0, 1, 2, 1]


@pytest.mark.parametrize("shape", [(), (2, 0), (2.5,), "ab"])
def test_bad_lattice_is_refused(shape):
    with pytest.raises(ValueError, match="shape must be ints, each at least 1"):
        lattice_distances(shape)


@pytest.mark.parametrize("periodic", [True, False])
def test_means_and_errors_by_distance(covariance, periodic):
    display = TotalCorrelationDisplay(covariance, shape=(3, 4), periodic=periodic)
    distances = walked_distances((3, 4), periodic)
    lists = {}
    for i, j in combinations(range(12), 2):
        value = covariance[i, j] / np.sqrt(covariance[i, i] * covariance[j, j])
        lists.setdefault(distances[i, j], []).append(value)
    assert display.distances_.tolist() == sorted(lists)
    for k, distance in enumerate(sorted(lists)):
        values = lists[distance]
        assert np.isclose(display.correlations_[k], np.mean(values))
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert np.isclose(display.standard_errors_[k], error)


def test_one_pair_has_no_error():
    display = TotalCorrelationDisplay([[1, 0.5], [0.5, 1]], shape=2)
    assert display.correlations_.tolist() == [0.5]
    assert display.standard_errors_.tolist() == [0.0]


def test_without_a_lattice_all_pairs_by_size(covariance):
    display = TotalCorrelationDisplay(covariance).plot()
    upper = display.residual_correlation_[np.triu_indices(12, 1)]
    assert display.distances_ is None
    assert display.standard_errors_ is None
    assert np.array_equal(display.correlations_, np.sort(upper)[::-1])
    assert np.allclose(display.residual_correlation_, _correlation(covariance))
    drawn = display.axes_[1].lines[1]
    assert np.array_equal(drawn.get_ydata(), display.correlations_)
    assert np.array_equal(drawn.get_xdata(), np.arange(1, 67))


def _correlation(covariance):
    """Correlation by numpy, from rows that have this covariance."""
    rows = np.linalg.cholesky(covariance)
    return (rows @ rows.T) / np.outer(*[np.linalg.norm(rows, axis=1)] * 2)


def test_what_is_drawn_is_the_fit(fitted):
    display = TotalCorrelationDisplay.from_estimator(fitted, shape=(4, 3))
    left, right = display.axes_[:2]
    image = left.images[0]
    drawn = image.get_array()
    assert np.array_equal(np.ma.getmaskarray(drawn), np.eye(12, dtype=bool))
    off = ~np.eye(12, dtype=bool)
    assert np.array_equal(drawn[off], display.residual_correlation_[off])
    largest = np.abs(display.residual_correlation_[off]).max()
    assert image.get_clim() == (-largest, largest)
    line = right.containers[0].lines[0]
    assert np.array_equal(line.get_xdata(), display.distances_)
    assert np.array_equal(line.get_ydata(), display.correlations_)
    bars = np.array(right.containers[0].lines[2][0].get_segments())[:, :, 1]
    assert np.allclose(np.diff(bars)[:, 0], 2 * display.standard_errors_)
    assert left.get_title(loc="left").splitlines() == [
        "not mean-field", "unexplained: u = 31.2% [29.0%, 33.4%]"
    ]  # fmt: skip
    assert right.get_xlabel() == "lattice distance (bonds)"


def test_options_of_the_figure(fitted):
    figure, axes = plt.subplots(1, 2)
    display = TotalCorrelationDisplay.from_estimator(
        fitted, shape=12, periodic=False, ax=axes, cmap="PuOr", vmax=0.5
    )
    assert display.distances_.tolist() == list(range(1, 12))
    assert display.figure_ is figure
    assert display.axes_.tolist() == axes.tolist()
    assert axes[0].images[0].get_clim() == (-0.5, 0.5)
    assert axes[0].images[0].get_cmap().name == "PuOr"
    assert len(plt.get_fignums()) == 1
    plt.close(display.figure_)
    assert plt.get_fignums() == []


def test_columns_without_variance_or_correlation_are_drawn():
    display = TotalCorrelationDisplay(np.diag([1.0, 0.0, 2.0])).plot()
    assert np.array_equal(display.residual_correlation_, np.eye(3))
    assert display.axes_[0].images[0].get_clim() == (-1.0, 1.0)
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3)[:2], r"must be square .* got shape \(2, 3\)"),
        (np.ones(4), r"got shape \(4,\)"),
        (np.eye(1), "at least 2 columns"),
        ([[1, np.nan], [0, 1]], "not finite at row 0, column 1"),
        ([[1, 0], [0, -1]], "negative variance: column 1"),
        ([[1, 0.5], [0.2, 1]], "must be symmetric"),
    ],
)
def test_bad_matrix_is_refused(matrix, message):
    with pytest.raises(ValueError, match=f"residual_covariance .*{message}"):
        TotalCorrelationDisplay(matrix)


def test_other_bad_arguments_are_refused(fitted):
    with pytest.raises(ValueError, match=r"\(5, 2\) has 10 sites, .* 12 columns"):
        TotalCorrelationDisplay.from_estimator(fitted, shape=(5, 2))
    with pytest.raises(ValueError, match=r"unexplained_fraction must be .* got 0\.3"):
        TotalCorrelationDisplay(np.eye(2), unexplained_fraction=0.3)
    with pytest.raises(ValueError, match="ax must be 2 matplotlib Axes"):
        TotalCorrelationDisplay.from_estimator(fitted, ax=plt.subplots()[1])
    with pytest.raises(NotFittedError):
        TotalCorrelationDisplay.from_estimator(CondTotalCorrelation())
