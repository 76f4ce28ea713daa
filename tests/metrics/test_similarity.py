"""Similarity by definitions written out in full, by identities and invariances."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, stats
from scipy.spatial import procrustes

from skident._math import paired_rows, similarity
from skident.metrics import (
    cca_similarity,
    hoyer_sparsity,
    linear_cka,
    procrustes_distance,
)

SEEDS = range(3)
PAIRWISE = {
    "debiased": linear_cka,
    "plain": lambda X, Y: linear_cka(X, Y, debiased=False),
    "cca": lambda X, Y: cca_similarity(X, Y).mean,
    "angular": procrustes_distance,
    "chord": lambda X, Y: procrustes_distance(X, Y, kind="chord"),
}
BEST = {"debiased": 1.0, "plain": 1.0, "cca": 1.0, "angular": 0.0, "chord": 0.0}
every_pairwise = pytest.mark.parametrize("name", PAIRWISE)


def related(seed, n=60, p=5, q=7):
    rng = np.random.default_rng(seed)
    X = rng.laplace(size=(n, p)) + 3
    return X, X @ rng.standard_normal((p, q)) + 2 * rng.standard_normal((n, q))


def rotation(rng, width):
    return stats.ortho_group.rvs(width, random_state=int(rng.integers(2**31)))


def gram(X):
    """Return the kernel without its diagonal, centred without bias."""
    n = len(X)
    K = X @ X.T
    np.fill_diagonal(K, 0)
    rows = K.sum(axis=1)
    K -= (rows[:, None] + rows[None]) / (n - 2) - rows.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(K, 0)
    return K


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width", [3, 40, 90])
def test_cka_against_whole_kernels(seed, width):
    X, Y = related(seed, p=4, q=width)
    U, V = gram(X), gram(Y)
    truth = (U * V).sum() / np.sqrt((U * U).sum() * (V * V).sum())
    assert linear_cka(X, Y) == pytest.approx(truth, abs=1e-12)
    H = np.eye(60) - 1 / 60
    K, L = H @ X @ X.T @ H, H @ Y @ Y.T @ H
    truth = (K * L).sum() / (np.linalg.norm(K) * np.linalg.norm(L))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = linear_cka(X, Y, debiased=False)
    assert found == pytest.approx(truth, abs=1e-12)


def test_debiased_product_is_unbiased():
    """Mean over all samples of four of six rows: the value of the U-statistic."""
    X, Y = related(0, n=6, p=2, q=3)

    def product(rows):
        sides = [similarity.centred_rows(Z[rows]) for Z in (X, Y)]
        n = len(rows)
        return similarity.kernel_alignment(*sides, debiased=True)[0] / (n * (n - 3))

    every = [product(list(rows)) for rows in combinations(range(6), 4)]
    assert np.mean(every) == pytest.approx(product(list(range(6))), rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_unrelated_wide_rows(seed):
    """Plain CKA is near 1 and says so; the debiased one is near 0, on both sides."""
    rng = np.random.default_rng(seed)
    pairs = rng.standard_normal((20, 2, 50, 400))
    values = np.array([linear_cka(*pair) for pair in pairs])
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(20)
    assert values.min() < 0 < values.max() < 0.1
    with pytest.warns(UserWarning, match="50 rows and up to 400 columns, plain CKA"):
        assert linear_cka(*pairs[0], debiased=False) > 0.8


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", [(60, 5, 7), (60, 7, 5), (20, 30, 50), (9, 9, 4)])
def test_procrustes_against_nuclear_norm_and_scipy(seed, shape):
    X, Y = related(seed, *shape)
    A, B = X - X.mean(axis=0), Y - Y.mean(axis=0)
    A, B = A / np.linalg.norm(A), B / np.linalg.norm(B)
    strength = min(1.0, np.linalg.norm(A.T @ B, "nuc"))
    assert procrustes_distance(X, Y) == pytest.approx(np.arccos(strength), abs=1e-7)
    chord = procrustes_distance(X, Y, kind="chord")
    assert chord**2 == pytest.approx(2 - 2 * strength, abs=1e-12)
    width = max(shape[1:])
    padded = [np.pad(Z, ((0, 0), (0, width - Z.shape[1]))) for Z in (X, Y)]
    assert procrustes(*padded)[2] == pytest.approx(1 - strength**2, abs=1e-10)


@pytest.mark.parametrize("kind", ["angular", "chord"])
def test_triangle_inequality(kind):
    rng = np.random.default_rng(0)
    for _ in range(30):
        Z = [rng.standard_normal((6, p)) for p in rng.integers(1, 4, 3)]
        ab, bc, ac = (
            procrustes_distance(Z[i], Z[j], kind=kind)
            for i, j in ((0, 1), (1, 2), (0, 2))
        )
        assert ac <= ab + bc + 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_cca_against_principal_angles(seed):
    X, Y = related(seed)
    A, B = X - X.mean(axis=0), Y - Y.mean(axis=0)
    truth = np.cos(linalg.subspace_angles(A, B))[::-1]
    found = cca_similarity(X, Y)
    assert np.allclose(found.correlations, truth, atol=1e-10)
    assert found.mean == pytest.approx(truth.mean())
    assert found.ranks == (5, 7)
    # weights by the definition, from bases of another kind
    (Q, _), (P, _) = np.linalg.qr(A), np.linalg.qr(B)
    variables = Q @ np.linalg.svd(Q.T @ P)[0][:, :5]
    weights = np.abs(variables.T @ A).sum(axis=1)
    assert found.pwcca == pytest.approx(weights @ truth / weights.sum())
    assert found.pwcca != pytest.approx(cca_similarity(Y, X).pwcca, abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_cca_of_dependent_and_constant_columns(seed):
    X, Y = related(seed)
    wide = np.c_[X, X[:, :2] @ [1.0, 2.0], np.full(60, 4.0), X[:, 0] * 1e6]
    found, truth = cca_similarity(wide, Y), cca_similarity(X, Y)
    assert found.ranks == truth.ranks
    assert np.allclose(found.correlations, truth.correlations, atol=1e-8)
    assert cca_similarity(wide, X).mean == pytest.approx(1, abs=1e-10)
    assert cca_similarity(wide, X).pwcca == pytest.approx(1, abs=1e-10)


def test_cca_tells_of_correlations_that_must_be_1():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20, 12)), rng.standard_normal((20, 10))
    with pytest.warns(UserWarning, match="3 of the canonical correlations are 1"):
        found = cca_similarity(X, Y)
    assert np.isclose(found.correlations, 1).sum() == 3
    with pytest.warns(UserWarning, match="4 of the canonical"):
        wide = cca_similarity(rng.standard_normal((5, 9)), rng.standard_normal((5, 8)))
    assert wide.ranks == (4, 4) and wide.mean == pytest.approx(1)


@every_pairwise
@pytest.mark.parametrize("seed", SEEDS)
def test_itself_is_best_and_order_of_arguments_is_nothing(name, seed):
    X, Y = related(seed)
    measure = PAIRWISE[name]
    assert measure(X, X) == pytest.approx(BEST[name], abs=1e-13)
    assert measure(X, Y) == pytest.approx(measure(Y, X), rel=1e-10)
    unrelated = measure(X, np.random.default_rng(seed + 9).standard_normal((60, 5)))
    assert abs(measure(X, Y) - BEST[name]) < abs(unrelated - BEST[name])


@every_pairwise
@pytest.mark.parametrize("seed", SEEDS)
def test_rotation_scale_translation_and_order_of_rows(name, seed):
    rng = np.random.default_rng(seed)
    X, Y = related(seed)
    measure = PAIRWISE[name]
    moved = 1e-3 * X @ rotation(rng, 5) - 7
    order = rng.permutation(60)
    assert measure(moved, X) == pytest.approx(BEST[name], abs=1e-9)
    assert measure(moved, Y) == pytest.approx(measure(X, Y), rel=1e-8)
    assert measure(X[order], Y[order]) == pytest.approx(measure(X, Y), rel=1e-10)
    wide = np.c_[Y, np.zeros((60, 2))]
    assert measure(X, wide) == pytest.approx(measure(X, Y), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_cca_forgives_a_shear(seed):
    X, Y = related(seed)
    shear = np.random.default_rng(seed).standard_normal((5, 5))
    for name, measure in PAIRWISE.items():
        same = measure(X @ shear, Y) == pytest.approx(measure(X, Y), rel=1e-6)
        assert same == (name == "cca")


@every_pairwise
@pytest.mark.parametrize("power", [-400, -60, 60, 400])
def test_any_unit(name, power):
    X, Y = related(0)
    truth = PAIRWISE[name](X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PAIRWISE[name](X * 2.0**power, Y) == pytest.approx(truth, rel=1e-10)


@every_pairwise
def test_other_types(name):
    X = np.random.default_rng(0).integers(-100, 100, (40, 3)).astype(np.int8)
    Y = np.roll(X, 3, axis=0)
    truth = PAIRWISE[name](X.astype(float), Y.astype(float))
    for dtype in (np.int8, np.float16, np.float32):
        found = PAIRWISE[name](X.astype(dtype), Y.astype(dtype))
        assert found == pytest.approx(truth, rel=1e-6)
    frames = pd.DataFrame(X), pd.DataFrame(Y).iloc[::-1]
    assert PAIRWISE[name](*frames) == pytest.approx(truth, rel=1e-10)


@every_pairwise
def test_large_offsets_cancel(name, monkeypatch):
    """Means of 1e5 standard deviations, in float32: centring is in float64."""
    monkeypatch.setattr(paired_rows, "LARGE", 1)
    X, Y = (Z.astype(np.float32) + np.float32(2**20) for Z in related(0))
    truth = PAIRWISE[name](X.astype(float) - 2**20, Y.astype(float) - 2**20)
    assert PAIRWISE[name](X, Y) == pytest.approx(truth, rel=1e-6)


def test_wide_rows_become_as_many_columns_with_the_same_kernel():
    X = np.random.default_rng(0).standard_normal((7, 50))
    rows = similarity.centred_rows(X)
    H = np.eye(7) - 1 / 7
    assert rows.shape == (7, 7)
    assert np.allclose(
        rows.take(slice(None)) @ rows.take(slice(None)).T, H @ X @ X.T @ H
    )


def test_rows_in_blocks(monkeypatch):
    X, Y = related(0, n=400)
    truth = {name: measure(X, Y) for name, measure in PAIRWISE.items()}
    read = []

    def small(n_rows, width, start=0):
        read.append(n_rows)
        return paired_rows.blocks(n_rows, width, start, entries=64)

    monkeypatch.setattr(similarity, "blocks", small)
    for name, measure in PAIRWISE.items():
        assert measure(X, Y) == pytest.approx(truth[name], rel=1e-12)
    assert read


@every_pairwise
@pytest.mark.parametrize("case", ["nan", "rows", "constant", "few", "text"])
def test_wrong_input_is_named(name, case):
    X, Y = related(0)
    Y = {
        "nan": np.where(np.arange(60)[:, None] == 3, np.nan, Y),
        "rows": Y[:-1],
        "constant": np.full_like(Y, 0.1),
        "few": Y[:1],
        "text": np.array([["a"]] * 60),
    }[case]
    message = {
        "nan": r"Input Z2 contains NaN: first in column 0, row 3",
        "rows": r"Z1 has shape \(60, 5\), Z2 has shape \(59, 7\)",
        "constant": r"All rows of Z2 are equal \(column 0 is 0.1\)",
        "few": "minimum of [24] is required",
        "text": "Z2 cannot be converted to numbers",
    }[case]
    with pytest.raises(ValueError, match=message):
        PAIRWISE[name](X[:1] if case == "few" else X, Y)


def test_debiased_cka_of_rows_equally_far_apart():
    with pytest.raises(ValueError, match="All rows of Z1 are equally far apart"):
        linear_cka(np.eye(8), related(0, n=8)[0])
    assert -1 <= linear_cka(*related(0, n=4)) <= 1


# Sparsity.


def test_hoyer_by_hand():
    w = [3.0, -4.0, 0.0, 0.0]
    assert hoyer_sparsity(w) == pytest.approx((2 - 7 / 5) / (2 - 1))
    assert hoyer_sparsity(np.eye(1, 9)) == 1.0
    assert hoyer_sparsity(np.full((3, 3), -2)) == 0.0
    # half of the entries, of one size
    assert hoyer_sparsity([1] * 8 + [0] * 8) == pytest.approx((4 - 8**0.5) / 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_hoyer_axes_scale_signs_and_order(seed):
    rng = np.random.default_rng(seed)
    W = rng.laplace(size=(6, 9))
    rows = [hoyer_sparsity(row) for row in W]
    assert np.allclose(hoyer_sparsity(W, axis=1), rows)
    assert np.allclose(hoyer_sparsity(W, axis=-1), rows)
    assert np.allclose(hoyer_sparsity(W.T, axis=0), rows)
    assert hoyer_sparsity(W) == pytest.approx(hoyer_sparsity(W.ravel()))
    changed = rng.permuted(W, axis=1) * rng.choice([-1, 1], 9)
    for power in (-1000, 0, 600):
        assert np.allclose(hoyer_sparsity(changed * 2.0**power, axis=1), rows)
    cube = W.reshape(3, 2, 9)
    assert hoyer_sparsity(cube, axis=0).shape == (2, 9)
    # Laplace entries are sparser than Gaussian ones
    assert hoyer_sparsity(rng.laplace(size=9999)) > 0.01 + hoyer_sparsity(
        rng.standard_normal(9999)
    )


def test_hoyer_of_the_lowest_byte():
    assert hoyer_sparsity(np.array([-128, 127], np.int8)) < 1e-4


@pytest.mark.parametrize(
    ("W", "axis", "message"),
    [
        ([[1.0, 2.0], [0.0, 0.0]], 1, "All 2 entries of row 1 of W are zero"),
        ([[1.0, 0.0], [1.0, 0.0]], 0, "All 2 entries of column 1 of W are zero"),
        ([[0.0, 0.0]], None, "All 2 entries of W are zero"),
        (np.zeros((2, 2, 2)), 0, "W at 0, 0 of its other axes are zero"),
        ([[1.0], [2.0]], 1, "at least two entries"),
        ([1.0], None, "at least two entries"),
        ([[1.0, np.nan]], None, r"entry \(0, 1\) is nan"),
        ([1.0, 2.0], 1, r"axis=1 is no axis of W, which has shape \(2,\)"),
        (["a", "b"], None, "real numbers"),
        ([1j, 2], None, "real numbers"),
        ([], None, "no entries"),
        (3.0, None, "no entries"),
    ],
)
def test_hoyer_names_what_is_wrong(W, axis, message):
    with pytest.raises(ValueError, match=message):
        hoyer_sparsity(W, axis=axis)
