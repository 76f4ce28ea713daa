"""WhitenICA on tables of every kind: blocks, maps, Dask, types, what is refused."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skident import WhitenICA


def rows(n=3000):
    rng = np.random.default_rng(0)
    return rng.laplace(size=(n, 4)) @ rng.standard_normal((4, 4))


def quiet(estimator, X, sample_weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimator.fit(X, sample_weight=sample_weight)


def test_blocks_are_read_as_one_table():
    X = rows()
    whole = WhitenICA().fit(X)
    for parts in ([X[:7], X[7:2000], X[2000:]], (X,), [pd.DataFrame(X)]):
        ica = WhitenICA().fit(parts)
        np.testing.assert_allclose(ica.mixing_, whole.mixing_, atol=1e-8)
        np.testing.assert_allclose(ica.transform(parts), whole.transform(X), atol=1e-8)
        assert ica.score(parts) == pytest.approx(whole.score(X))
        assert ica.n_features_in_ == 4
    integers = np.clip(np.round(X * 8), -127, 127)
    halves = np.array_split(integers.astype(np.int8), 2)
    expected = WhitenICA().fit(integers).mixing_
    np.testing.assert_allclose(WhitenICA().fit(halves).mixing_, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            [np.ones((3, 2)), np.ones((3, 3))],
            "3 features, but WhitenICA is expecting 2",
        ),
        (
            [np.eye(3), np.full((2, 3), np.nan)],
            r"X\[1\] contains NaN: .*column 0, row 0",
        ),
        ([np.ones((1, 3))], "minimum of 2"),
        ([np.ones((3, 2)), np.ones((4, 2))], "constant"),
    ],
)
def test_bad_blocks(parts, message):
    with pytest.raises(ValueError, match=message):
        WhitenICA().fit(parts)


def test_dask_is_never_gathered(monkeypatch):
    dask = pytest.importorskip("dask.array")
    X = rows(4000)
    computed, whole = [], dask.Array.compute

    def watched(self, **kwargs):
        computed.append(len(self))
        return whole(self, **kwargs)

    monkeypatch.setattr(dask.Array, "compute", watched)
    lazy = dask.from_array(X, chunks=(500, 2))
    ica, expected = WhitenICA().fit(lazy), WhitenICA().fit(X)
    np.testing.assert_allclose(ica.mixing_, expected.mixing_, atol=1e-8)
    np.testing.assert_allclose(ica.transform(lazy), expected.transform(X), atol=1e-8)
    assert set(computed) == {500}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_memory_beyond_the_input_is_bounded(tmp_path, dtype):
    rng = np.random.default_rng(0)
    shape = (400_000, 16)
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", dtype, shape)
    mapped[:] = np.clip(8 * rng.laplace(size=shape), -120, 120)
    mapped.flush()
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    ica = WhitenICA().fit(mapped[:20_000])
    Y = ica.transform(mapped[:20_000])
    rows = {"fit": mapped, "transform": mapped, "score": mapped, "inverse_transform": 0}
    rows["inverse_transform"] = np.resize(Y, shape)
    # Rows are 51 MB in float64; a sample of a quarter in float32 is 6 MB. What is
    # returned comes on top.
    returned = {"fit": 0, "score": 3.2e6, "transform": 51e6, "inverse_transform": 51e6}
    for method, X in rows.items():
        tracemalloc.start()
        try:
            getattr(ica, method)(X)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 35e6 + returned[method], method
    assert ica.converged_


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, bool])
def test_large_tables_are_widened_piece_by_piece(dtype):
    """A table of other type than float64 gives what its float64 copy gives."""
    rng = np.random.default_rng(0)
    X = np.clip(8 * rng.laplace(size=(90_000, 13)), -120, 120)
    X = X > 20 if dtype is bool else X.astype(dtype)
    wide = X.astype(np.float64)
    ica, same = quiet(WhitenICA(), X), quiet(WhitenICA(), wide)
    atol = 1e-4 if dtype == np.float32 else 1e-7
    np.testing.assert_allclose(ica.mixing_, same.mixing_, atol=atol)
    np.testing.assert_allclose(ica.transform(X), ica.transform(wide), atol=1e-5)
    assert ica.score(X) == pytest.approx(ica.score(wide), rel=1e-5)
    weights = rng.integers(0, 3, 90_000)
    np.testing.assert_allclose(
        quiet(WhitenICA(), X, weights).mixing_,
        quiet(WhitenICA(), wide, weights).mixing_,
        atol=atol,
    )


def test_overflow_in_a_later_piece_is_named_by_its_row():
    X = rows()
    ica = WhitenICA().fit(X)
    far = np.zeros((300_000, 4), np.float32)
    far[270_001, 2] = 3e38
    scaled = WhitenICA().fit(X * 1e-3)
    with pytest.raises(ValueError, match=r"row 270001 "):
        scaled.transform(far)
    assert np.isfinite(ica.transform(far[:9])).all()


def test_rounding_of_the_coarsest_block_counts():
    """Order of blocks, and of types among them, does not matter."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.laplace(size=(300, 2)), 1 + 1e-7 * rng.standard_normal(300)]
    blocks = [X[:150].astype(np.float32), X[150:]]
    assert [quiet(WhitenICA(), part).rank_ for part in (blocks, blocks[::-1])] == [2, 2]
    assert WhitenICA().fit(X).rank_ == 3


def test_blocks_without_rows_are_skipped():
    X = rows(400)
    whole = WhitenICA().fit(X)
    parts = [X[:0], X[:150], X[:0], pd.DataFrame(X[150:]), X[:0]]
    ica = WhitenICA().fit(parts)
    np.testing.assert_allclose(ica.mixing_, whole.mixing_, atol=1e-8)
    Y = ica.transform(parts)
    np.testing.assert_allclose(Y, whole.transform(X), atol=1e-8)
    back = ica.inverse_transform([Y[:0], Y[:5], Y[5:]])
    np.testing.assert_allclose(back, X, atol=1e-12)
    assert ica.score_samples(parts).shape == (400,)
    for call in (WhitenICA().fit, ica.transform, ica.inverse_transform):
        with pytest.raises(ValueError, match=r"Found 0 sample\(s\)"):
            call([X[:0], X[:0]])


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_dask_rows_that_were_chosen(kind):
    dask = pytest.importorskip("dask")
    X = rows(900)
    if kind == "array":
        array = pytest.importorskip("dask.array")
        chosen = array.from_array(np.arange(900) >= 350, chunks=100)
        lazy = array.from_array(X, chunks=(100, 2))[chosen]
    else:
        frame = pytest.importorskip("dask.dataframe")
        lazy = frame.from_pandas(pd.DataFrame(X), npartitions=9).loc[350:]
    with dask.config.set(scheduler="synchronous"):
        found = WhitenICA().fit(lazy)
        np.testing.assert_allclose(found.transform(lazy), found.transform(X[350:]))
    expected = WhitenICA().fit(X[350:])
    np.testing.assert_allclose(found.mixing_, expected.mixing_, atol=1e-8)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda X: X[:, :2], r"block X\[1\]: X has 2 features"),
        (lambda X: X[0], r"block X\[1\]: Expected 2D"),
        (lambda X: None, r"block X\[1\]: Expected 2D"),
        (lambda X: "text", r"X\[1\] is a path"),
    ],
)
def test_a_bad_block_is_named(bad, message):
    X = rows(100)
    ica = WhitenICA().fit(X)
    for call in (WhitenICA().fit, ica.transform, ica.score_samples):
        with pytest.raises(ValueError, match=message):
            call([X[:50], bad(X[50:])])
    with pytest.raises(ValueError, match=r"block X\[1\]: X has shape \(50, 3\)"):
        ica.inverse_transform([X[:50], X[50:, :3]])


def test_what_can_be_read_once_is_refused():
    X = rows(100)
    with pytest.raises(ValueError, match="X is a generator, which can be read once"):
        WhitenICA().fit(part for part in (X, X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"lazy frame: pass X.collect\(\)"):
            WhitenICA().fit(pl.DataFrame(X).lazy())


DATES = pd.date_range("2020", periods=50)
OTHERS = {
    "date": (DATES, TypeError),
    "date with zone": (DATES.tz_localize("UTC"), TypeError),
    "period": (DATES.to_period("D"), TypeError),
    "span": (DATES - DATES[0], TypeError),
    "interval": (pd.interval_range(0, 50, periods=50), TypeError),
    "text": (["a"] * 50, ValueError),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_columns_that_are_no_numbers_are_named(kind):
    values, error = OTHERS[kind]
    frame = pd.DataFrame({"a": np.arange(50.0), "b": values})
    with pytest.raises(error, match=r"first in column 1 \('b'\), row 0 is"):
        WhitenICA().fit(frame)


@pytest.mark.parametrize("share", [2e-4, 0.5])
def test_rows_of_weight_zero_cost_nothing_and_change_nothing(share):
    rng = np.random.default_rng(0)
    X = rng.laplace(size=(200_000, 4)) @ rng.standard_normal((4, 4))
    weights = (rng.random(len(X)) < share) * 1.0
    ica = quiet(WhitenICA(), X, weights)
    alone = quiet(WhitenICA(), X[weights > 0])
    np.testing.assert_allclose(ica.mixing_, alone.mixing_, rtol=1e-5)
    np.testing.assert_allclose(ica.non_gaussianity_, alone.non_gaussianity_, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_what_float32_cannot_hold_is_named(scale):
    X = rows(200)
    ica = WhitenICA().fit(X * scale)
    call = ica.transform if scale < 1 else ica.inverse_transform
    what = "component" if scale < 1 else "column"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=rf"overflows float32, first in {what} 0"):
            call(X.astype(np.float32))
        assert np.isfinite(call(X)).all()
