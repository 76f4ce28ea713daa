import time

import numpy as np
import pytest

from skident._math import binary_span
from skident._math.binary_span import MAX_VERTEX_DIMS, SPAN_SOLVERS, decode_span

SOLVERS = ["auto", *SPAN_SOLVERS]


def plant(n_dims, n_sites, seed, noise=0.0):
    """Return patterns and an orthonormal basis of their span, mixed and shaken."""
    rng = np.random.default_rng(seed)
    patterns = rng.choice([-1, 1], size=(n_dims, n_sites))
    basis, _ = np.linalg.qr(patterns.T @ rng.standard_normal((n_dims, n_dims)))
    shaken = basis + noise * rng.standard_normal(basis.shape) / np.sqrt(n_sites)
    return patterns, np.linalg.qr(shaken)[0]


def as_set(patterns):
    """Return the patterns as a set, a pattern and its negative being one."""
    return {tuple(int(v) for v in p * p[0]) for p in patterns}


def residuals_of(patterns, basis):
    return 1 - ((patterns @ basis) ** 2).sum(axis=1) / basis.shape[0]


def brute_force(basis):
    """Return every +-1 vector, +1 at the first site, that lies in the span."""
    n_sites = basis.shape[0]
    codes = np.arange(2 ** (n_sites - 1))[:, None]
    vectors = 1 - 2 * ((codes >> np.arange(n_sites - 1)) & 1)
    vectors = np.c_[np.ones(len(vectors), dtype=int), vectors]
    return vectors[residuals_of(vectors, basis) < 1e-9]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_dims", range(1, 13))
def test_planted_patterns_come_back(n_dims, solver):
    for seed in range(3):
        patterns, basis = plant(n_dims, 64, seed)
        decoded = decode_span(basis, solver=solver)
        assert as_set(decoded.patterns) == as_set(patterns)
        np.testing.assert_allclose(decoded.residuals, 0, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_dims", [1, 2, 4, 8, 11])
def test_noise_of_a_sixth_is_rounded_away(n_dims, solver):
    for seed in range(3):
        patterns, basis = plant(n_dims, 64, seed, noise=0.15)
        decoded = decode_span(basis, solver=solver)
        assert as_set(decoded.patterns) == as_set(patterns)
        assert (np.diff(decoded.residuals) >= 0).all()
        np.testing.assert_allclose(
            decoded.residuals, residuals_of(decoded.patterns, basis), atol=1e-12
        )


@pytest.mark.parametrize("n_dims", [4, 8, 10])
def test_noise_that_hides_the_patterns_leaves_a_better_fit(n_dims):
    # With noise of a third of a spin the planted patterns no longer fit best, so no
    # search can be asked to return them: it is asked to fit at least as well.
    for seed in range(5):
        patterns, basis = plant(n_dims, 64, seed, noise=0.3)
        decoded = decode_span(basis)
        planted = residuals_of(patterns, basis)
        assert len(decoded.patterns) == n_dims
        assert decoded.residuals.sum() <= planted.sum() + 1e-12


@pytest.mark.parametrize("solver", SOLVERS)
def test_brute_force_agrees_on_few_sites(solver):
    n_spurious = 0
    for seed in range(30):
        n_sites, n_dims = 8 + seed % 5, 1 + seed % 4
        patterns, basis = plant(n_dims, n_sites, seed)
        if np.linalg.matrix_rank(patterns) < n_dims:
            continue
        truth = brute_force(basis)
        decoded = decode_span(basis, solver=solver)
        assert as_set(decoded.patterns) <= as_set(truth)
        assert len(decoded.patterns) == n_dims == np.linalg.matrix_rank(truth)
        n_spurious += len(truth) > n_dims
    # Spans with more +-1 vectors than dimensions are among the cases.
    assert n_spurious > 0


def test_best_sign_vector_of_a_noisy_span_is_that_of_brute_force():
    for seed in range(20):
        _, basis = plant(3, 11, seed, noise=0.5)
        codes = np.arange(2**11)[:, None]
        vectors = 1 - 2 * ((codes >> np.arange(11)) & 1)
        best = residuals_of(vectors, basis).min()
        assert decode_span(basis).residuals[0] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.15])
def test_result_does_not_depend_on_the_basis_of_the_span(noise):
    for seed in range(5):
        _, basis = plant(6, 64, seed, noise)
        rng = np.random.default_rng(100 + seed)
        rotation, _ = np.linalg.qr(rng.standard_normal((6, 6)))
        decoded, rotated = decode_span(basis), decode_span(basis @ rotation)
        np.testing.assert_array_equal(decoded.patterns, rotated.patterns)
        np.testing.assert_allclose(decoded.residuals, rotated.residuals, atol=1e-12)


def test_permuting_and_flipping_sites_does_so_to_the_patterns():
    rng = np.random.default_rng(0)
    _, basis = plant(5, 64, 0, noise=0.1)
    order, flips = rng.permutation(64), rng.choice([-1, 1], size=64)
    moved = decode_span((flips[:, None] * basis)[order]).patterns
    expected = (flips * decode_span(basis).patterns)[:, order]
    assert as_set(moved) == as_set(expected)


def test_result_is_canonical_and_repeats():
    _, basis = plant(5, 64, 3, noise=0.2)
    first, second = decode_span(basis, seed=0), decode_span(basis, seed=0)
    np.testing.assert_array_equal(first.patterns, second.patterns)
    np.testing.assert_array_equal(first.residuals, second.residuals)
    assert first.n_candidates == second.n_candidates
    assert first.patterns.dtype == np.int8
    assert (first.patterns[:, 0] == 1).all()
    assert set(np.unique(first.patterns)) == {-1, 1}


@pytest.mark.parametrize("solver", SOLVERS)
def test_patterns_that_differ_at_one_site_are_both_found(solver):
    rng = np.random.default_rng(1)
    patterns = np.repeat(rng.choice([-1, 1], size=(1, 64)), 2, axis=0)
    patterns[1, 5] *= -1
    basis, _ = np.linalg.qr(patterns.T.astype(float))
    assert as_set(decode_span(basis, solver=solver).patterns) == as_set(patterns)


def test_span_of_no_dimension_holds_no_pattern():
    decoded = decode_span(np.empty((10, 0)))
    assert decoded.patterns.shape == (0, 10)
    assert decoded.patterns.dtype == np.int8
    assert decoded.residuals.shape == (0,)
    assert decoded.n_candidates == 0


def test_whole_space_gives_a_basis_of_sign_vectors():
    decoded = decode_span(np.eye(7))
    assert np.linalg.matrix_rank(decoded.patterns) == 7
    np.testing.assert_allclose(decoded.residuals, 0, atol=1e-12)


def test_patterns_are_independent_on_a_span_without_any():
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((40, 6)))
    decoded = decode_span(basis)
    n_patterns = len(decoded.patterns)
    assert 0 < n_patterns <= 6
    assert np.linalg.matrix_rank(decoded.patterns) == n_patterns
    assert (decoded.residuals > 0.05).all()


def test_refinement_ends_where_no_single_flip_helps():
    _, basis = plant(6, 40, 0, noise=0.5)
    rng = np.random.default_rng(0)
    starts = rng.choice([-1.0, 1.0], size=(50, 40))
    refined = binary_span._refine(basis, starts)
    base = residuals_of(refined, basis)
    for site in range(40):
        flipped = refined.copy()
        flipped[:, site] *= -1
        assert (residuals_of(flipped, basis) >= base - 1e-12).all()


def test_kurtosis_falls_to_one_exactly_at_the_patterns():
    patterns, basis = plant(4, 64, 0)
    rng = np.random.default_rng(0)
    starts = rng.standard_normal((100, 4))
    directions = binary_span._minimise_kurtosis(basis, starts)
    values = 8 * directions @ basis.T
    np.testing.assert_allclose((values**2).mean(axis=1), 1)
    at_minimum = (values**4).mean(axis=1) < 1 + 1e-6
    assert at_minimum.mean() > 0.5
    assert as_set(np.sign(values[at_minimum])) == as_set(patterns)


def test_vertices_hold_the_patterns_before_any_refinement():
    patterns, basis = plant(12, 64, 0)
    rows = binary_span._well_conditioned_rows(basis.T)
    assert np.linalg.cond(basis[rows]) < 100
    vertices = binary_span._best_vertices(basis, rows)
    assert len(vertices) < 2**11
    assert as_set(patterns) <= as_set(vertices)


def test_blocks_do_not_change_the_result(monkeypatch):
    _, basis = plant(9, 64, 0, noise=0.2)
    whole = decode_span(basis, solver="vertex")
    monkeypatch.setattr(binary_span, "_BLOCK_ENTRIES", 64)
    cut = decode_span(basis, solver="vertex")
    np.testing.assert_array_equal(whole.patterns, cut.patterns)


def test_basis_must_be_orthonormal():
    with pytest.raises(ValueError, match="orthonormal"):
        decode_span(2 * np.eye(4))


def test_vertex_search_refuses_many_dimensions_and_auto_goes_on_without_it():
    n_dims = MAX_VERTEX_DIMS + 1
    patterns, basis = plant(n_dims, 128, 0)
    with pytest.raises(ValueError, match="solver='ica'"):
        decode_span(basis, solver="vertex")
    assert as_set(decode_span(basis).patterns) == as_set(patterns)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_dims", [2, 4, 8, 12])
def test_planted_patterns_come_back_for_many_seeds(n_dims, solver):
    for seed in range(30):
        patterns, basis = plant(n_dims, 64, seed, noise=0.1)
        decoded = decode_span(basis, solver=solver, seed=seed)
        assert as_set(decoded.patterns) == as_set(patterns)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(("n_dims", "seconds"), [(16, 2), (20, 30)])
def test_many_patterns_in_bounded_time(n_dims, seconds, noise):
    for seed in range(3):
        patterns, basis = plant(n_dims, 64, seed, noise)
        # Processor time: a busy machine is not a slow search.
        start = time.process_time()
        decoded = decode_span(basis, solver="vertex")
        assert time.process_time() - start < seconds
        assert as_set(decoded.patterns) == as_set(patterns)
