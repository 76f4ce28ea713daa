"""White rows in blocks: every way of reading them gives the same sums."""

import itertools

import numpy as np
import pandas as pd
import pytest
import threadpoolctl

from skident._math import contrasts, rows, threads
from skident._math.blocks import LazyBlocks, as_blocks
from skident._math.moments import (
    Contrast,
    half_curvatures,
    moments,
    tilted_covariance,
)
from skident._math.whitening import whiten


def table(n=5000, p=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.laplace(size=(n, p)) @ rng.standard_normal((p, p)) + rng.standard_normal(p)
    return X.astype(dtype)


def contrast(name="logcosh", k=4, light=()):
    return Contrast(name, np.isin(np.arange(k), light))


def by_hand(Z, rotation, name, light, weights):
    """Moments from the definition, in one go."""
    Y = Z @ rotation.T
    value, slope, bend = contrasts.elementwise(name)(Y)
    special = contrasts.light_cube(Y)
    value, slope, bend = (
        np.where(light, new, old)
        for new, old in zip(special, (value, slope, bend), strict=True)
    )
    share = weights / weights.sum()
    return (slope * share[:, None]).T @ Y, share @ bend, share @ value


NAMES = [*contrasts.CONTRASTS, contrasts.cube]
MANY = 300_001
CASES = [
    *itertools.product(NAMES, [(), (1, 3)], [100, 5000], [False, True]),
    *itertools.product(["logcosh", "cube"], [()], [MANY], [False, True]),
]


@pytest.mark.parametrize(("name", "light", "n", "weighted"), CASES)
def test_moments_are_their_definition(name, light, n, weighted):
    rng = np.random.default_rng(1)
    X = table(n)
    weights = rng.integers(0, 4, n).astype(float) if weighted else None
    white = whiten(X, weights=weights)
    Z = (X - white.mean) @ white.whitening.T
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    which = contrast(name, light=light)
    share = np.ones(n) if weights is None else weights
    slopes, bends, values = by_hand(Z, turn, name, which.light, share)
    for dtype, tolerance in ((np.float64, 1e-11), (np.float32, 3e-5)):
        state = moments(white.rows, turn, which, dtype=dtype)
        options = {"atol": tolerance, "rtol": tolerance}
        np.testing.assert_allclose(state.slopes, slopes, **options)
        np.testing.assert_allclose(state.curvatures, bends, **options)
        np.testing.assert_allclose(state.values, values, **options)


def sums(source, weights=None, run=map):
    white = whiten(source, weights=weights, run=run)
    k = white.rows.n_components
    parts = moments(white.rows, np.eye(k), contrast(k=k))
    return white, parts


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_are_the_table(weighted):
    X = table(40_000)
    weights = np.random.default_rng(0).random(len(X)) if weighted else None
    whole = sums(X, weights)
    cuts = [0, 1, 2, 777, 30_000, 40_000]
    parts = [X[a:b] for a, b in itertools.pairwise(cuts)]
    other = sums(parts, weights)
    np.testing.assert_allclose(other[0].whitening, whole[0].whitening, rtol=1e-9)
    np.testing.assert_allclose(other[1].slopes, whole[1].slopes, atol=1e-12)
    for size in (100, 40_000):
        a, b = (rows.sample(one[0].rows, size) for one in (whole, other))
        np.testing.assert_allclose(a.source[0], b.source[0], atol=1e-10)


@pytest.mark.parametrize("order", ["C", "F", "strided", "float32", "read-only"])
def test_layout_of_memory_does_not_matter(order):
    X = table(20_000).astype(np.float32).astype(np.float64)
    same = {
        "C": X.copy(),
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "float32": X.astype(np.float32),
        "read-only": X.copy(),
    }[order]
    same.setflags(write=order != "read-only")
    a, b = sums(X), sums(same)
    np.testing.assert_array_equal(a[0].whitening, b[0].whitening)
    np.testing.assert_array_equal(a[1].slopes, b[1].slopes)


def test_sums_do_not_depend_on_threads():
    X = table(300_000)
    one = sums(X)
    with threadpoolctl.threadpool_limits(2, "blas"), threads.workers(X.size) as run:
        two = sums(X, run=run)
    np.testing.assert_array_equal(one[0].whitening, two[0].whitening)
    np.testing.assert_array_equal(one[1].slopes, two[1].slopes)


def blas_threads():
    found = threadpoolctl.ThreadpoolController().select(user_api="blas").info()
    return [library["num_threads"] for library in found]


def test_one_solver_at_a_time_runs_threads_and_the_limit_is_put_back():
    with threadpoolctl.threadpool_limits(2, "blas"):
        before = blas_threads()
        with threads.workers(10**7) as outer:
            assert outer is not map and set(blas_threads()) == {1}
            with threads.workers(10**7) as inner, threads.workers(10) as small:
                assert inner is map and small is map
        assert blas_threads() == before
    with threadpoolctl.threadpool_limits(1, "blas"), threads.workers(10**7) as run:
        assert run is map


def test_threads_are_put_back_after_an_error():
    with threadpoolctl.threadpool_limits(2, "blas"):
        before = blas_threads()
        for _ in range(2):
            with pytest.raises(ZeroDivisionError), threads.workers(10**7) as run:
                assert run is not map
                list(run(lambda x: 1 / x, [1, 0]))
            assert blas_threads() == before


def test_sample_takes_one_row_of_each_stretch():
    Z = np.arange(1000.0)[:, None]
    drawn = rows.sample(rows.white_rows(Z), 100).source[0][:, 0]
    np.testing.assert_array_equal(drawn // 10, np.arange(100))
    assert len(np.unique(drawn % 10)) > 5
    np.testing.assert_array_equal(rows.sample(rows.white_rows(Z), 10**6).source[0], Z)


def test_half_curvatures_by_finite_differences():
    X = table(3000)
    white = whiten(X)
    which = contrast(light=(2,))
    # A stationary point by symmetry: every row with all signs.
    signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), -1).reshape(-1, 3)
    Z = np.abs(np.random.default_rng(0).laplace(size=(200, 3)))
    Z = (Z[:, None] * signs).reshape(-1, 3)
    plain = rows.white_rows(Z / Z.std(axis=0))
    which = contrast(k=3, light=(2,))
    state = moments(plain, np.eye(3), which)
    assert state.criterion < 1e-12
    found, _ = half_curvatures(plain, np.eye(3), which, state)
    found = found + found.T
    for i, j in ((0, 1), (0, 2), (1, 2)):
        losses = []
        for angle in (-1e-3, 0.0, 1e-3):
            turn = np.eye(3)
            turn[[i, j], [i, j]] = np.cos(angle)
            turn[i, j], turn[j, i] = np.sin(angle), -np.sin(angle)
            losses.append(moments(plain, turn, which, state.signs).loss)
        second = (losses[0] + losses[2] - 2 * losses[1]) / 1e-6
        assert found[i, j] == pytest.approx(second, rel=1e-3)
    assert white.rank == 4


def test_tilted_covariances_count_weights_as_repeats():
    Z = np.random.default_rng(0).standard_normal((50, 3))
    times = np.random.default_rng(1).integers(0, 4, 50)
    scaled = times * (50 / times.sum())
    repeated = rows.white_rows(np.repeat(Z, times, axis=0))
    for power in (1, 2):

        def tilt(Z, power=power):
            return Z[:, 0] ** power

        a, b = (
            tilted_covariance(some, tilt)
            for some in (rows.white_rows(Z, scaled), repeated)
        )
        np.testing.assert_allclose(a, b)


def test_effective_number_of_rows():
    Z = np.zeros((6, 2))
    assert rows.white_rows(Z).n_effective == 6
    assert rows.white_rows(Z, np.array([2.0, 2, 2, 0, 0, 0])).n_effective == 3


def test_what_counts_as_blocks():
    X = np.ones((4, 2))
    assert as_blocks(X) is None and as_blocks(X.tolist()) is None
    assert as_blocks([]) is None and as_blocks(np.ones((2, 3, 4))) is None
    assert len(as_blocks([X, X])) == 2 and len(as_blocks((X,))) == 1
    lazy = LazyBlocks(3, lambda k: X[: k + 1])
    assert as_blocks(lazy) is lazy and [len(block) for block in lazy] == [1, 2, 3]
    with pytest.raises(IndexError):
        lazy[3]


def test_dask_arrays_come_in_blocks_of_rows():
    dask = pytest.importorskip("dask.array")
    X = np.arange(20.0).reshape(10, 2)
    found = as_blocks(dask.from_array(X, chunks=(4, 1)))
    assert [len(block) for block in found] == [4, 4, 2] and len(found) == 3
    np.testing.assert_array_equal(np.concatenate(list(found)), X)
    assert as_blocks(dask.ones(5)) is None


def test_dask_frames_of_chosen_rows_keep_them():
    frames = pytest.importorskip("dask.dataframe")
    X = pd.DataFrame(np.arange(40.0).reshape(20, 2))
    lazy = frames.from_pandas(X, npartitions=4).loc[10:]
    np.testing.assert_array_equal(np.concatenate(list(as_blocks(lazy))), X.loc[10:])


def test_a_list_with_one_table_is_blocks():
    X = np.ones((4, 2))
    assert len(as_blocks([None, X])) == 2 and len(as_blocks([X[0], X])) == 2


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_is_made_white_and_not_turned(weighted):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((900, 3)) @ (np.eye(3) + 0.1) + 0.2
    weights = rng.random(900) if weighted else None
    made = rows.whitened_again(rows.white_rows(Z.copy(), weights))
    share = np.ones(900) if weights is None else weights
    Y = made.source[0]
    np.testing.assert_allclose(np.average(Y, axis=0, weights=share), 0, atol=1e-12)
    covariance = np.cov(Y.T, aweights=share, bias=True)
    np.testing.assert_allclose(covariance, np.eye(3), atol=1e-12)
    matrix = np.linalg.lstsq(np.c_[Z, np.ones(900)], Y, rcond=None)[0][:3]
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > 0
    Z[:, 2] = 0.0
    np.testing.assert_array_equal(
        rows.whitened_again(rows.white_rows(Z.copy())).source[0], Z
    )


@pytest.mark.parametrize("gathered", [10**9, 0])
def test_rows_of_weight_zero_are_left_out(monkeypatch, gathered):
    monkeypatch.setattr(rows, "_GATHERED_ENTRIES", gathered)
    monkeypatch.setattr(rows, "_CUT_ROWS", 100)
    X = table(1000)
    weights = np.random.default_rng(0).integers(0, 2, 1000).astype(float)
    weights[300:400] = 0
    for source in ((X,), [X[:7], X[300:400], X[7:300], X[400:]]):
        each = (
            weights
            if len(source) == 1
            else weights[np.r_[:7, 300:400, 7:300, 400:1000]]
        )
        left, share = rows.counted(source, each)
        whole = np.concatenate(source)
        np.testing.assert_array_equal(np.concatenate(list(left)), whole[each > 0])
        np.testing.assert_array_equal(share, each[each > 0])
        assert all(len(block) for block in left)
        assert (len(left) == 1) == bool(gathered)
