import numpy as np
import pytest

from skident import exact
from skident.datasets import make_curie_weiss, make_hopfield, make_ising, make_patterns
from skident.metrics import bipartite_information, total_correlation

QUICK = {"n_resamples": 200, "random_state": 0}


def curie_weiss_rows(n=4000, n_sites=16, temperature=0.9, seed=0):
    return make_curie_weiss(n, n_sites, temperature=temperature, random_state=seed)[0]


def check_from_below(estimate, truth, share, less=0.0):
    """Not above the truth by 5 standard errors, nor below a share of it, less some."""
    error = 5 * (estimate.high - estimate.low) / 4
    assert share * truth - less - error < estimate.value < truth + error, estimate


@pytest.mark.parametrize("temperature", [0.7, 1.0, 2.0])
def test_curie_weiss_of_16_sites(temperature):
    X, truth = curie_weiss_rows(temperature=temperature), exact.curie_weiss(
        16, temperature
    )  # fmt: skip
    check_from_below(total_correlation(X, **QUICK), truth.total_correlation, 0.93)
    bound = bipartite_information(X, **QUICK)
    check_from_below(bound, truth.bipartite_information, 0.85)
    assert bound.partition == "half" and bound.first.sum() == 8


@pytest.mark.parametrize("temperature", [2.0, 3.0])
def test_ising_of_16_sites_by_cut(temperature):
    X, _ = make_ising(5000, (4, 4), temperature=temperature, random_state=0)
    truth = exact.ising((4, 4), temperature)
    half = bipartite_information(X, **QUICK)
    board = bipartite_information(X, "checkerboard", shape=(4, 4), **QUICK)
    check_from_below(half, truth.bipartite_information, 0.85)
    check_from_below(board, truth.checkerboard_information, 0.95)
    check_from_below(total_correlation(X, **QUICK), truth.total_correlation, 0.93)
    # of balanced cuts the checkerboard has most (at this size by enumeration)
    found = bipartite_information(X, "random-max", **QUICK)
    assert found.partition == "random-max" and found.first.sum() == 8
    assert found.value < truth.checkerboard_information
    assert found.value > 0.9 * half.value


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5])
def test_half_cut_of_curie_weiss_of_64_sites(temperature):
    X = curie_weiss_rows(10_000, 64, temperature)
    truth = exact.curie_weiss(64, temperature).bipartite_information
    bound = bipartite_information(X, **QUICK)
    check_from_below(bound, truth, 0.95, less=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.5, 2.0, 2.269, 2.5, 3.0, 4.0])
def test_cuts_of_ising_of_64_sites(temperature):
    X, _ = make_ising(10_000, (8, 8), temperature=temperature, random_state=0)
    truth = exact.ising((8, 8), temperature)
    half = bipartite_information(X, **QUICK)
    check_from_below(half, truth.bipartite_information, 0.9, less=0.05)
    board = bipartite_information(X, "checkerboard", shape=8 * np.ones(2, int), **QUICK)
    check_from_below(board, truth.checkerboard_information, 0.88)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.5, 0.7, 1.1])
def test_half_cut_of_hopfield_of_64_sites(temperature):
    patterns = make_patterns(4, 64, random_state=0)
    X, _ = make_hopfield(10_000, patterns, temperature=temperature, random_state=1)
    truth = exact.hopfield(patterns, temperature).bipartite_information
    bound = bipartite_information(X, **QUICK)
    check_from_below(bound, truth, 0.93, less=0.05)


@pytest.mark.parametrize("measure", [total_correlation, bipartite_information])
def test_independent_columns_have_none_and_nothing_is_negative(measure):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        found = measure(rng.integers(0, 2, (1000, 8)), **QUICK)
        assert 0.0 <= found.low <= found.value <= found.high < 0.05


@pytest.mark.parametrize("measure", [total_correlation, bipartite_information])
def test_conventions_containers_and_seeds(measure):
    pd = pytest.importorskip("pandas")
    X = curie_weiss_rows(500, 8)
    expected = measure(X, **QUICK)[:3]
    for same in (X > 0, (X > 0).astype(float), pd.DataFrame(X), X.tolist()):
        assert measure(same, **QUICK)[:3] == expected
    assert measure(X, n_resamples=200, random_state=1)[:3] != expected


@pytest.mark.parametrize("measure", [total_correlation, bipartite_information])
def test_groups_widen_the_interval(measure):
    """Every row four times: twice the standard error."""
    X = np.repeat(curie_weiss_rows(500, 8), 4, axis=0)
    groups = np.repeat(np.arange(500), 4)
    together = measure(X, groups=groups, **QUICK)
    alone = measure(X, **QUICK)
    assert 1.5 < (together.high - together.low) / (alone.high - alone.low) < 2.7


def test_most_rows_bound_the_ceiling():
    X = curie_weiss_rows(1000, 8)
    assert bipartite_information(X, max_samples=100, **QUICK).ceiling == np.log(50)
    # half of the rows choose the cut, a quarter is fitted to
    found = bipartite_information(X, "random-max", max_samples=100, **QUICK)
    assert found.ceiling == np.log(25)
    narrow = total_correlation(X, **QUICK)
    wide = total_correlation(X, max_samples=100, **QUICK)
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)
    half = total_correlation(X, confidence_level=0.5, **QUICK)
    assert half.high - half.low < 0.6 * (narrow.high - narrow.low)


def test_a_cut_of_ones_own():
    X = curie_weiss_rows(1000, 8)
    mask = bipartite_information(X, np.arange(8) < 3, **QUICK)
    listed = bipartite_information(X, [2, 0, 1], **QUICK)
    assert mask.partition == listed.partition == "given"
    assert mask[:3] == listed[:3] and listed.first.sum() == 3


@pytest.mark.parametrize("measure", [total_correlation, bipartite_information])
def test_what_is_not_two_valued_is_named(measure):
    X = curie_weiss_rows(100, 4).astype(float)
    X[7, 2] = 0.5
    with pytest.raises(ValueError, match=r"column 2, row 7 is 0\.5.*X > 0"):
        measure(X)
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*column 2, row 7"):
        measure(X)
    with pytest.raises(ValueError, match="minimum of 4"):
        measure(X[:3])


def test_cut_of_one_column_is_refused():
    with pytest.raises(ValueError, match=r"1 column\(s\), and a cut needs at least 2"):
        bipartite_information(np.ones((10, 1)))


@pytest.mark.parametrize("measure", [total_correlation, bipartite_information])
@pytest.mark.parametrize("kind", ["constant", "duplicate", "few rows"])
def test_degenerate_rows_give_finite_answers(measure, kind):
    X = curie_weiss_rows(200, 4)
    if kind == "constant":
        X[:, 1] = 1
    elif kind == "duplicate":
        X[:, 3] = X[:, 0]
    else:
        X = X[:4]
    assert np.isfinite(measure(X, **QUICK)[:3]).all()
