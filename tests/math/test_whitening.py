"""The whitening map: identities, rank, units, agreement of solvers."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from skident._math.whitening import (
    _log_evidence,
    centred_product,
    count_components,
    whiten,
)

SOLVERS = ["svd", "eigh"]


def planted(seed, n, p, rank, spread=0.0):
    """Rows of a given rank whose columns have scales 10**(-spread) to 10**spread."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    return (X + rng.standard_normal(p)) * 10.0 ** rng.uniform(-spread, spread, p)


def white_rows(X, white):
    return centred_product(X, white.mean, white.whitening)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 8),
    cut=st.integers(0, 6),
    spread=st.sampled_from([0.0, 3.0, 12.0]),
    solver=st.sampled_from(SOLVERS),
)
def test_any_rank_and_units(seed, p, cut, spread, solver):
    rank = max(1, p - cut)
    X = planted(seed, 60, p, rank, spread)
    white = whiten(X, solver=solver)
    Z = white_rows(X, white)
    assert white.rank <= rank
    k = white.rank
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(Z.T @ Z / len(X), np.eye(k), atol=1e-9)
    np.testing.assert_allclose(
        white.whitening @ white.dewhitening, np.eye(k), atol=1e-7
    )
    # A planted direction below the tolerance is cut, so the round trip is that exact.
    back = Z @ white.dewhitening.T + white.mean
    assert np.all(np.abs(back - X) <= 1e-5 * X.std(axis=0) + 1e-12 * np.abs(X))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", [(200, 6), (20, 30)])
def test_solvers_agree(seed, shape):
    X = planted(seed, *shape, 4, spread=2)
    a, b = (whiten(X, solver=solver) for solver in SOLVERS)
    assert a.rank == b.rank == 4
    np.testing.assert_allclose(a.variances, b.variances, rtol=1e-6)
    turn = white_rows(X, a).T @ white_rows(X, b) / len(X)
    np.testing.assert_allclose(np.abs(turn), np.eye(4), atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_duplicate_with_small_noise_is_cut_and_leaves_the_rest_alone(solver):
    X = planted(0, 300, 4, 4)
    noisy = np.c_[X, X[:, 0] + 1e-8 * np.random.default_rng(1).standard_normal(300)]
    exact = np.c_[X, X[:, 0]]
    a, b = whiten(noisy, solver=solver), whiten(exact, solver=solver)
    assert a.rank == b.rank == 4
    np.testing.assert_allclose(white_rows(noisy, a), white_rows(exact, b), atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_rank_is_of_columns_of_unit_variance_not_unit_range(solver):
    """A rare spike has a small variance for its range."""
    X = np.c_[np.random.default_rng(0).standard_normal(4000), np.arange(4000) == 5]
    assert whiten(X, solver=solver, rank_tol=0.2).rank == 2


@pytest.mark.parametrize("solver", SOLVERS)
def test_ill_conditioned_covariance_is_still_whitened_to_rounding(solver):
    X = planted(0, 500, 3, 3)
    X = np.c_[X, X[:, 0] + 1e-5 * np.random.default_rng(1).standard_normal(500)]
    white = whiten(X, solver=solver)
    Z = white_rows(X, white)
    assert white.rank == 4
    np.testing.assert_allclose(Z.T @ Z / 500, np.eye(4), atol=1e-9)


def test_variances_are_those_of_the_principal_directions():
    X = planted(3, 400, 5, 5, spread=1)
    eigenvalues = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    np.testing.assert_allclose(whiten(X).variances, eigenvalues, rtol=1e-9)
    white = whiten(X, 2)
    energy = np.sum(white.dewhitening**2, axis=0)
    np.testing.assert_allclose(energy, eigenvalues[:2], rtol=1e-9)
    kept = white.dewhitening / np.sqrt(energy)
    np.testing.assert_allclose(np.abs(white.axes[:, :2]), np.abs(kept), atol=1e-9)
    np.testing.assert_allclose(white.axes.T @ white.axes, np.eye(5), atol=1e-9)


def test_constant_columns_are_marked_whatever_their_value():
    X = np.c_[planted(0, 50, 2, 2), np.full(50, 1e9 + 0.1), np.zeros(50)]
    white = whiten(X)
    assert white.constant.tolist() == [False, False, True, True]
    assert np.all(white.dewhitening[2:] == 0) and white.mean[2] == 1e9 + 0.1
    with pytest.raises(ValueError, match=r"constant \(column 0 is 3\)"):
        whiten(np.full((5, 2), 3.0))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "dtype, tol, level", [("d", None, 1e-7), ("d", 1e-9, 1e-10), ("f", None, 9.5e-7)]
)
def test_small_noise_on_a_constant_is_no_direction(solver, dtype, tol, level):
    """Above the level it is one, in whatever unit, and beside whatever columns."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (400, 3))
    for part, rank in ((0.5, 2), (2.0, 3)):
        near = np.c_[X[:, :2], 3e5 * (1.0 + part * level * X[:, 2])].astype(dtype)
        white = whiten(near, solver=solver, rank_tol=tol)
        assert white.rank == rank
        assert white.constant.tolist() == [False, False, rank == 2]
        assert white.mean[2] == pytest.approx(near[:, 2].astype("d").mean(), rel=1e-14)
    centred = np.c_[X[:, :2], near[:, 2] - near[0, 2]]
    assert whiten(centred, solver=solver).rank == 3


def test_large_offset_costs_no_more_than_its_rounding():
    X = planted(0, 300, 3, 3)
    shifted = X + 1e6
    a, b = whiten(X), whiten(shifted)
    np.testing.assert_allclose(white_rows(X, a), white_rows(shifted, b), atol=1e-7)


def test_count_components():
    variances = np.array([5.0, 3.0, 2.0])
    assert [count_components(c, variances) for c in (None, 2, 9)] == [3, 2, 3]
    assert [count_components(c, variances) for c in (0.4, 0.5, 0.51, 0.8, 0.99)] == [
        1,
        1,
        2,
        2,
        3,
    ]


@pytest.mark.parametrize("ties", [False, True])
def test_evidence_is_its_definition(ties):
    """Minka (2000), equation 30, term by term; a tie counts as rounding."""
    v = np.sort(np.random.default_rng(0).exponential(size=9))[::-1]
    v = np.round(v, 1) + 0.1 if ties else v
    v, n, eps = v / v[0], 50.0, np.finfo(float).eps
    found = _log_evidence(v, n)
    for k in range(1, 9):
        noise = v[k:].mean()
        u = np.r_[v[:k], np.full(9 - k, noise)]
        m = 9 * k - k * (k + 1) / 2
        log = -k * np.log(2) + 0.5 * (m + k) * np.log(2 * np.pi) - 0.5 * k * np.log(n)
        for i in range(k):
            log += special.gammaln((9 - i) / 2) - (9 - i) / 2 * np.log(np.pi)
        log -= 0.5 * n * (np.log(v[:k]).sum() + (9 - k) * np.log(noise))
        for i, j in itertools.combinations(range(9), 2):
            if i < k:
                gap = (v[i] - v[j]) * (1 / u[j] - 1 / u[i])
                log -= 0.5 * (np.log(max(gap, eps)) + np.log(n))
        assert found[k - 1] == pytest.approx(log, rel=1e-10)


def test_wide_rows_need_no_square_matrix():
    X = np.random.default_rng(0).standard_normal((10, 3000))
    whiten(X, 2)
    tracemalloc.start()
    try:
        white = whiten(X, 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert white.rank == 9
    # A matrix of all columns is 72 MB, the rows 0.24 MB.
    assert peak < 10e6


def test_number_of_components_does_not_change_with_the_unit_of_weights():
    X = planted(0, 300, 8, 3) + 0.3 * np.random.default_rng(1).standard_normal((300, 8))
    share = np.random.default_rng(2).random(300)
    found = [whiten(X, "mle", weights=share * unit) for unit in (1e-3, 1.0, 1e3)]
    assert [len(white.whitening) for white in found] == [3, 3, 3]


def test_principal_directions_have_signs_of_their_own():
    X = planted(0, 60, 5, 5)
    order = np.random.default_rng(0).permutation(60)
    a, b = whiten(X), whiten(X[order])
    np.testing.assert_allclose(a.whitening, b.whitening, rtol=1e-9)
    peak = np.abs(a.axes).argmax(axis=0)
    assert np.all(a.axes[peak, range(5)] > 0)
