"""alignment_errors on whole kinds of input, and the routes that large ones take."""

import itertools
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skident import LinearAligner, PermutationAligner, RigidAligner, WhitenICA
from skident._math import alignment, paired_rows
from skident._math.resampling import fold_labels
from skident._random import generator
from skident.metrics import alignment_errors
from skident.metrics._alignment_result import extrapolated
from skident.metrics._crossfit import Folds
from skident.metrics._protocol import efficiency_with_interval

NAMES = ("permutation", "rigid", "linear", "ica")
seeds = st.integers(0, 10**6)
QUICK = {"n_resamples": 10, "random_state": 0}


def latents(seed, n=400, p=3):
    rng = np.random.default_rng(seed)
    return rng.laplace(size=(n, p)) * np.linspace(1, 2, p)


def noisy_pair(seed=0, n=400, p=4, q=4, noise=0.2):
    rng = np.random.default_rng(seed)
    Z = latents(seed, n, max(p, q))
    turn = np.linalg.qr(rng.standard_normal((max(p, q),) * 2))[0]
    return Z[:, :p], ((Z @ turn) + noise * rng.standard_normal(Z.shape))[:, :q]


def quiet_ica(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return WhitenICA().fit(X)


def quiet(Z1, Z2, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return alignment_errors(Z1, Z2, **(QUICK | options))


def is_sane(result):
    arrays = [value for value in result if isinstance(value, np.ndarray)]
    assert all(np.isfinite(array).all() for array in arrays)
    assert np.all(result.error >= 0) and np.all(result.learning_curve >= 0)


@pytest.mark.parametrize("widths", [(4, 4), (3, 5), (5, 3)])
def test_fits_on_moments_are_those_on_rows(widths, monkeypatch):
    pair = noisy_pair(0, 400, *widths)
    on_rows = alignment_errors(*pair, **QUICK)
    monkeypatch.setattr(alignment, "SMALL", 0)
    monkeypatch.setattr(paired_rows, "BLOCK_ENTRIES", 100)
    on_moments = alignment_errors(*pair, **QUICK)
    for name in ("error", "forward", "backward", "chance", "learning_curve"):
        np.testing.assert_allclose(
            getattr(on_moments, name), getattr(on_rows, name), rtol=1e-7
        )


@pytest.mark.parametrize("widths", [(3, 3), (2, 4), (4, 2)])
def test_errors_are_those_of_the_estimators_fold_by_fold(widths):
    """An independent loop over the same folds, padded as the definition says."""
    sides = noisy_pair(1, 150, *widths)
    result = alignment_errors(*sides, **QUICK)
    labels = fold_labels(np.arange(150), 5, generator(0, 0))
    kinds = PermutationAligner, RigidAligner, LinearAligner
    for (X, Y), found, unit in (
        (sides, result.forward, result.max_diameters[1]),
        (sides[::-1], result.backward, result.max_diameters[0]),
    ):
        errors = np.empty((3, 150))
        for fold in range(5):
            test, train = labels == fold, labels != fold
            for k, kind in enumerate(kinds):
                mapped = kind().fit(X[train], Y[train]).transform(X[test])
                target = np.zeros(mapped.shape)
                target[:, : Y.shape[1]] = Y[test]
                errors[k, test] = np.linalg.norm(mapped - target, axis=1)
        np.testing.assert_allclose(found[:3] * unit, errors.mean(axis=1), rtol=1e-9)


def test_large_single_precision_gives_the_answer_of_double(monkeypatch):
    Z1, Z2 = (Z.astype(np.float32) + 100 for Z in noisy_pair(n=2000))
    double = alignment_errors(Z1.astype(float), Z2.astype(float), **QUICK)
    monkeypatch.setattr(alignment, "SMALL", 0)
    monkeypatch.setattr(paired_rows, "LARGE", 1)
    single = alignment_errors(Z1, Z2, **QUICK)
    np.testing.assert_allclose(single.error, double.error, rtol=1e-4)
    np.testing.assert_allclose(single.chance, double.chance, rtol=1e-3)
    np.testing.assert_allclose(single.max_diameters, double.max_diameters, rtol=1e-5)


@pytest.mark.parametrize("small", [0, 2**20])
def test_any_number_of_jobs_gives_the_same(small, monkeypatch):
    monkeypatch.setattr(alignment, "SMALL", small)
    monkeypatch.setattr(paired_rows, "BLOCK_ENTRIES", 2**9)
    pair = noisy_pair(n=1000)
    one, two = (alignment_errors(*pair, n_jobs=n, **QUICK) for n in (1, 2))
    for left, right in zip(one, two, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "bool"])
def test_memory_maps_of_any_type_are_as_arrays(dtype, tmp_path):
    Z1, Z2 = (np.abs(np.round(4 * Z)).clip(0, 100) for Z in noisy_pair(n=300))
    if dtype == "bool":
        Z1, Z2 = Z1 > np.median(Z1), Z2 > np.median(Z2)
    expected = quiet(Z1.astype(float), Z2.astype(float))
    maps = []
    for k, Z in enumerate((Z1, Z2)):
        maps.append(np.memmap(tmp_path / f"Z{k}", dtype, "w+", shape=Z.shape))
        maps[-1][:] = Z
    for left, right in zip(quiet(*maps), expected, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("container", ["pandas", "polars", "list", "int64", "strided"])
def test_containers(container):
    Z1, Z2 = (np.round(8 * Z) for Z in noisy_pair(n=100))
    expected = alignment_errors(Z1, Z2, **QUICK)
    if container in ("pandas", "polars"):
        frames = pytest.importorskip(container)
        Z1, Z2 = (
            frames.DataFrame({f"c{k}": column for k, column in enumerate(Z.T)})
            for Z in (Z1, Z2)
        )
    elif container == "list":
        Z1, Z2 = Z1.tolist(), Z2.tolist()
    elif container == "int64":
        Z1, Z2 = Z1.astype(int), Z2.astype(int)
    else:
        Z1, Z2 = (np.repeat(Z, 2, axis=0)[::2] for Z in (Z1, Z2))
    np.testing.assert_allclose(
        alignment_errors(Z1, Z2, **QUICK).error, expected.error, rtol=1e-12
    )


@settings(max_examples=25, deadline=None)
@given(
    seed=seeds,
    n=st.integers(5, 40),
    p=st.integers(1, 6),
    q=st.integers(1, 6),
    kind=st.sampled_from(
        ["plain", "cauchy", "ties", "duplicate", "constant", "rare", "low rank", "bool"]
    ),
    size=st.sampled_from([1e-300, 1e-12, 1.0, 1e12, 1e300]),
    ratio=st.sampled_from([1e-24, 1.0, 1e24]),
)
def test_every_kind_gives_a_finite_answer(seed, n, p, q, kind, size, ratio):
    rng = np.random.default_rng(seed)
    Z1, Z2 = rng.standard_normal((n, p)), rng.standard_normal((n, q))
    if kind == "cauchy":
        Z1, Z2 = rng.standard_cauchy((n, p)), rng.standard_cauchy((n, q))
    elif kind == "ties":
        Z1, Z2 = np.round(Z1), np.round(Z2)
    elif kind == "duplicate":
        Z1[:, -1] = Z1[:, 0]
    elif kind == "constant":
        Z1 = np.c_[Z1, np.full(n, 0.1)]
    elif kind == "rare":
        # constant in all training rows of some fold
        Z2 = np.c_[Z2, np.arange(n) == 3]
    elif kind == "low rank":
        Z1 = Z1[:, :1] @ rng.standard_normal((1, 7))
    elif kind == "bool":
        Z1 = Z1 > 0
        Z1[0] = ~Z1[1]
    Z1 = Z1 if kind == "bool" else Z1 * size
    size = 1.0 if kind == "bool" else size
    Z2 = Z2 * (size * ratio if 1e-290 < size * ratio < 1e290 else size)
    if np.ptp(Z1.astype(float), axis=0).max() and np.ptp(Z2, axis=0).max():
        is_sane(quiet(Z1, Z2, cv=3))


@pytest.mark.parametrize("n", [4, 5, 8])
def test_few_rows(n):
    is_sane(quiet(latents(0, n), latents(1, n), cv=2))
    with pytest.raises(ValueError, match="minimum of"):
        alignment_errors(latents(0, 3), latents(1, 3), cv=2)


def test_wide_rows_take_no_time_cubic_in_the_width():
    """30 rows of 2100 columns: greedy permutations, maps within the span of rows."""
    rng = np.random.default_rng(0)
    Z1 = rng.standard_normal((30, 2100))
    Z2 = Z1 + 0.1 * rng.standard_normal(Z1.shape)
    result = quiet(Z1, Z2, cv=2, train_fractions=(), transformations=NAMES[:2])
    is_sane(result)
    assert result.error[0] < 0.3 * result.chance[0]


@settings(max_examples=6, deadline=None)
@given(seed=seeds, q=st.sampled_from([2, 3, 4]))
def test_errors_are_invariant_under_their_own_group(seed, q):
    """Moving one side by a map of the group, or of a smaller one, changes nothing."""
    rng = np.random.default_rng(seed)
    Z1, Z2 = noisy_pair(seed, n=120, p=3, q=q)
    moves = {
        "permutation": np.eye(3)[rng.permutation(3)] * rng.choice([-1, 1], 3),
        "rigid": np.linalg.qr(rng.standard_normal((3, 3)))[0],
        "linear": rng.standard_normal((3, 3)) + 3 * np.eye(3),
    }
    options = QUICK | {"train_fractions": ()}
    plain = alignment_errors(Z1, Z2, **options)
    for k, move in enumerate(moves.values()):
        moved = alignment_errors(Z1 @ move + rng.standard_normal(3), Z2, **options)
        # only the first side moved, so its own diameter is left out
        np.testing.assert_allclose(
            moved.forward[k:3], plain.forward[k:3], rtol=1e-6, atol=1e-9
        )
        if k < 2:
            np.testing.assert_allclose(
                moved.backward[k:3], plain.backward[k:3], rtol=1e-6, atol=1e-9
            )
            np.testing.assert_allclose(
                moved.chance[k:3], plain.chance[k:3], rtol=1e-6, atol=1e-9
            )
        # ICA is equivariant up to the tolerance of its solution
        np.testing.assert_allclose(moved.forward[3], plain.forward[3], rtol=0.05)


@settings(max_examples=8, deadline=None)
@given(seed=seeds, p=st.integers(1, 4), q=st.integers(1, 4))
def test_exchange_of_the_sides_exchanges_labels(seed, p, q):
    pair = noisy_pair(seed, n=100, p=p, q=q)
    a, b = quiet(*pair), quiet(*pair[::-1])
    np.testing.assert_allclose(a.forward, b.backward, rtol=1e-6, atol=1e-12)
    for name in ("error", "interval", "chance", "learning_curve", "robust_error"):
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), rtol=1e-6, atol=1e-12
        )


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_order_of_rows_does_not_matter_where_groups_name_them(seed):
    Z1, Z2 = noisy_pair(seed, n=90)
    names = np.array([f"row {k}" for k in range(90)])
    order = np.random.default_rng(seed).permutation(90)
    options = {"transformations": NAMES[:3]}
    a = quiet(Z1, Z2, groups=names, **options)
    b = quiet(Z1[order], Z2[order], groups=names[order], **options)
    for name in ("error", "interval", "chance", "learning_curve"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_known_answer(seed):
    """Noise of deviation s in d dimensions: s E[chi_d], times what fitting adds."""
    d, n, s = 4, 6000, 0.3
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    Z1 = rng.standard_normal((n, d))
    Z2 = Z1 @ turn + s * rng.standard_normal((n, d))
    result = alignment_errors(Z1, Z2, transformations=NAMES[1:3], **QUICK)
    chi = np.sqrt(2) * 1.329340388 / 1.0  # Gamma(5/2) / Gamma(2)
    train = 0.8 * n
    parameters = np.array([1 + (d - 1) / 2, 1 + d])  # a row's share of a column
    expected = s * chi * np.sqrt(1 + parameters / train)
    found = result.forward * result.max_diameters[1]
    # chi_4 has variance 4 - chi^2; the share of fitting is itself known to a third
    bound = 5.4 * s * np.sqrt((4 - chi**2) / n) + expected * parameters / train
    assert np.all(np.abs(found - expected) < bound)


def test_chance_of_a_rigid_map_is_that_of_unrelated_rows():
    """Both isotropic: any rotation gives sqrt(2) times the size of a row."""
    rng = np.random.default_rng(0)
    Z1 = rng.standard_normal((4000, 3))
    result = alignment_errors(Z1, Z1, transformations=["rigid"], **QUICK)
    chance = result.chance[0] * result.max_diameters[0]
    size = np.sqrt(8 / np.pi)  # E chi_3
    # a row's pair has deviation sqrt(2) * .67, and is counted twice
    bound = 5.4 * np.sqrt(2) * 0.67 / np.sqrt(2000)
    assert abs(chance - np.sqrt(2) * size) < bound + 0.02


def test_many_rows_are_scored_in_full_and_the_rest_on_a_part():
    pair = noisy_pair(n=2000)
    full = alignment_errors(*pair, **QUICK)
    part = alignment_errors(*pair, max_samples=400, **QUICK)
    np.testing.assert_array_equal(part.forward[:3], full.forward[:3])
    # the rows that ICA sees are fewer: its maps are less exact, not others
    assert full.error[3] < part.error[3] < 2 * full.error[3]
    np.testing.assert_allclose(part.chance, full.chance, rtol=0.1)
    np.testing.assert_array_equal(part.train_sizes, [80, 160, 1600])
    np.testing.assert_array_equal(full.train_sizes, [400, 800, 1600])
    np.testing.assert_array_equal(part.learning_curve[-1], part.error)


@settings(max_examples=50, deadline=None)
@given(
    seed=seeds,
    n=st.integers(20, 200),
    n_folds=st.integers(2, 7),
    n_rows=st.integers(1, 250),
)
def test_shared_training_rows_are_of_other_folds(seed, n, n_folds, n_rows):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % n_folds)
    sets, used = Folds(labels, rng.random(n)).shared_training_rows(n_rows)
    for fold in range(n_folds):
        rows = sets[used[fold]]
        outside = np.count_nonzero(labels != fold)
        assert not np.any(labels[rows] == fold)
        assert np.all(np.diff(rows) > 0)
        assert len(rows) == n_rows or len(sets) == n_folds
        if len(sets) == n_folds:
            assert len(rows) == min(n_rows, outside)
    assert 2 <= len(sets) <= n_folds


def test_learning_curve_shows_what_a_linear_map_overfits():
    Z1, Z2 = noisy_pair(n=150, p=20, q=20, noise=1.0)
    result = quiet(Z1, Z2, train_fractions=(0.3, 0.6), transformations=NAMES[1:3])
    curve = result.learning_curve
    np.testing.assert_allclose(result.train_sizes, [36, 72, 120], atol=2)
    assert np.all(np.diff(curve[:, 1]) < 0) and not result.enough_rows[1]
    assert result.expected_error[1] < 0.95 * result.error[1]
    assert "more rows would change" in str(result) and "linear" in str(result)
    table = result.curve_to_dict()
    assert list(table) == ["n_rows", "rigid", "linear"]
    np.testing.assert_array_equal(table["linear"], curve[:, 1])
    # with twenty times the rows the estimate is what is measured
    long = quiet(*noisy_pair(n=3000, p=20, q=20, noise=1.0), transformations=NAMES[1:3])
    assert long.enough_rows.all() and "enough rows" in str(long)
    scale = result.max_diameters.mean() / long.max_diameters.mean()
    assert result.expected_error[1] * scale == pytest.approx(long.error[1], rel=0.15)


@pytest.mark.parametrize("fractions", [None, (), []])
def test_no_learning_curve(fractions):
    result = quiet(*noisy_pair(), train_fractions=fractions)
    assert result.expected_error is None and result.enough_rows is None
    assert result.learning_curve.shape == (1, 4)
    assert "rows would" not in str(result) and "enough" not in result.to_dict()


def test_extrapolation():
    sizes = np.array([100.0, 200.0])
    curve = 0.3 + np.outer(1 / sizes, [10.0, 0.0, -5.0])
    expected, enough = extrapolated(sizes, curve, width=2)
    np.testing.assert_allclose(expected, [0.3, 0.3, curve[1, 2]])
    assert enough.tolist() == [False, True, False]
    curve = np.array([[9.0, 1e-9, 0.2], [1.0, 1e-16, 0.22]])
    expected, enough = extrapolated(sizes, curve, width=33)
    assert expected[0] == 0.0 and enough.tolist() == [False, True, False]
    # fewer than three rows a column, and nothing is said
    assert extrapolated(sizes, curve, width=34) == (None, None)


def test_an_error_that_rises_is_said():
    result = quiet(*noisy_pair(n=400), transformations=("rigid", "linear"))
    rising = result._replace(
        enough_rows=np.array([True, False]), expected_error=result.error
    )
    assert str(rising).endswith(
        f"more rows would change linear {result.error[1]:.3f} (it still rises)"
    )
    assert "more rows would change" not in str(result)


def test_too_few_rows_are_said():
    result = quiet(*noisy_pair(n=30, p=8, q=8), transformations=("rigid",))
    assert result.enough_rows is None and len(result.train_sizes) == 3
    assert "fewer than 3 training rows a column: too few to say" in str(result)


def test_axes_that_ica_does_not_find_again_are_said():
    rng = np.random.default_rng(0)
    for draw, low, high in ((rng.laplace, 0.97, 1.0), (rng.standard_normal, 0.0, 0.9)):
        Z = draw(size=(1500, 5))
        turn = np.linalg.qr(rng.standard_normal((5, 5)))[0]
        result = quiet(Z, Z @ turn, n_resamples=2)
        assert np.all((low < result.ica_stability) & (result.ica_stability <= high))
        assert ("ICA finds other axes" in str(result)) == (high < 1)
    assert quiet(Z, Z, transformations=("rigid",)).ica_stability is None


def test_stability_of_axes_against_correlations():
    rng = np.random.default_rng(1)
    sources = rng.standard_normal((6000, 4))
    sources[:, 0] = rng.laplace(size=6000)
    X = sources @ rng.standard_normal((4, 4))
    solutions = [
        alignment.Unmixing(ica.mean_, ica.components_, ica.mixing_, True)
        for ica in (quiet_ica(half) for half in (X[::2], X[1::2]))
    ]
    one, other = ((X - s.mean) @ s.components.T for s in solutions)
    square = np.corrcoef(one.T, other.T)[:4, 4:] ** 2
    expected = max(square[range(4), p].mean() for p in itertools.permutations(range(4)))
    found = alignment.axes_stability(solutions)
    # the halves are white up to 1/sqrt(3000) = 0.02
    assert found == pytest.approx(expected, abs=0.06) and found < 0.98
    assert alignment.axes_stability(solutions[:1] * 3) == 1.0


def test_efficiency_of_one_column_is_not_defined():
    rng = np.random.default_rng(0)
    Z = rng.laplace(size=(200, 1))
    result = quiet(Z, Z + 0.1 * rng.standard_normal(Z.shape))
    assert result.error[0] == pytest.approx(result.error[1], rel=1e-9)
    assert result.ica_efficiency is None and result.ica_efficiency_interval is None


def test_interval_of_the_efficiency_by_hand():
    rng = np.random.default_rng(0)
    draws = [0.3, 0.1, 0.2] + 0.01 * rng.standard_normal((500, 3))
    efficiency = (draws[:, 0] - draws[:, 2]) / (draws[:, 0] - draws[:, 1])
    names, chance = ("rigid", "permutation", "ica"), np.ones(3)
    columns = [1, 0, 2]
    value, interval = efficiency_with_interval(
        names, np.array([0.1, 0.3, 0.2]), draws[:, columns], chance, 0.8
    )
    assert value == pytest.approx(0.5)
    np.testing.assert_allclose(interval, np.quantile(efficiency, [0.1, 0.9]))


def test_unequal_sizes_outliers_and_level_are_said():
    Z1, Z2 = noisy_pair()
    text = str(quiet(Z1, 100 * Z2, confidence_level=0.8))
    assert "the second side is" in text and "divide each side by its diam" in text
    assert ".8 interval" in text and "outliers" not in text
    Z2[0] = 1e4
    assert 'outliers set the largest distance: see diameter="robust"' in str(
        quiet(Z1, Z2)
    )


@pytest.mark.parametrize("path", ["Z.npy", Path("Z.npy")])
def test_a_path_is_no_array(path):
    with pytest.raises(ValueError, match=r"Z2 is a path, 'Z.npy': pass np.load\("):
        alignment_errors(np.eye(5), path)
    with pytest.raises(ValueError, match=r"X is a path, 'Z.npy': pass np.load\("):
        WhitenICA().fit(path)


def test_an_archive_is_no_array(tmp_path):
    np.savez(tmp_path / "Z.npz", words=np.eye(5))
    archive = np.load(tmp_path / "Z.npz")
    with pytest.raises(ValueError, match=r"arrays words: pass one .* as Z1\['words'\]"):
        alignment_errors(archive, np.eye(5))


def test_both_units_are_reported():
    pair = noisy_pair()
    a, b = (quiet(*pair, diameter=kind) for kind in ("max", "robust"))
    np.testing.assert_allclose(a.error, a.max_error, rtol=1e-12)
    np.testing.assert_allclose(b.error, b.robust_error, rtol=1e-12)
    np.testing.assert_allclose(a.robust_error, b.error, rtol=1e-12)
    np.testing.assert_allclose(b.max_error, a.error, rtol=1e-12)


def frames(n=60):
    Z1, Z2 = noisy_pair(n=n)
    ids = [f"id{k:02}" for k in range(n)]
    return pd.DataFrame(Z1, index=ids), pd.DataFrame(Z2, index=ids)


def test_frames_are_joined_by_index():
    Z1, Z2 = frames()
    expected = quiet(Z1, Z2)
    shuffled = Z2.sample(frac=1, random_state=0)
    np.testing.assert_array_equal(quiet(Z1, shuffled).error, expected.error)
    # nor does it matter which side is in order
    swapped = quiet(shuffled, Z1)
    np.testing.assert_allclose(swapped.error, expected.error, rtol=1e-12)
    np.testing.assert_allclose(swapped.chance, expected.chance, rtol=1e-12)
    np.testing.assert_allclose(swapped.interval, expected.interval, rtol=1e-12)
    mixed = shuffled.rename(index={"id07": 7})
    rows = Z1.rename(index={"id07": 7})
    np.testing.assert_allclose(
        quiet(rows, mixed).error, quiet(mixed, rows).error, rtol=1e-12
    )
    arrays = quiet(Z1.to_numpy(), Z2.to_numpy())
    np.testing.assert_array_equal(arrays.error, expected.error)
    # one frame alone has nothing to be joined to
    alone = quiet(Z1, Z2.to_numpy())
    np.testing.assert_array_equal(alone.error, expected.error)
    column = quiet(Z1[0], shuffled[0])
    np.testing.assert_array_equal(column.error, quiet(Z1[[0]], Z2[[0]]).error)


def test_ids_on_one_side_only_are_named():
    Z1, Z2 = frames()
    short = Z2.drop(index=["id03", "id07"]).rename(index={"id05": "other"})
    message = (
        r"3 are in Z1 only \('id03', 'id05', 'id07'\); 1 are in Z2 only \('other'\)"
    )
    with pytest.raises(ValueError, match=message):
        alignment_errors(Z1, short)
    with pytest.warns(UserWarning, match=message):
        dropped = alignment_errors(Z1, short, unmatched="drop", **QUICK)
    kept = Z1.index.drop(["id03", "id05", "id07"])
    expected = quiet(Z1.loc[kept], Z2.loc[kept])
    assert dropped.n_samples == 57
    np.testing.assert_array_equal(dropped.error, expected.error)
    message = r"60 are in Z1 only \('id00', .* and 55 more\)"
    with pytest.raises(ValueError, match=message):
        alignment_errors(Z1, Z2.reset_index(drop=True), unmatched="drop")
    with pytest.raises(ValueError, match="10 are in Z1 only"):
        alignment_errors(pd.DataFrame(latents(0, 60)), pd.DataFrame(latents(0, 50)))


def test_ids_that_occur_twice_are_named():
    Z1, Z2 = frames()
    twice = Z2.rename(index={"id05": "id04"})
    with pytest.raises(ValueError, match=r"Z2 has 1 id\(s\) more than once.*'id04'"):
        alignment_errors(Z1, twice)
    with pytest.raises(ValueError, match="Z1 has 1 id"):
        alignment_errors(twice, Z1)
    # equal indices need no join, whatever is in them
    np.testing.assert_array_equal(
        quiet(Z1.set_axis(twice.index), twice).error, quiet(Z1, Z2).error
    )


def test_groups_follow_the_ids():
    Z1, Z2 = frames()
    labels = pd.Series(np.arange(60) // 6, index=Z1.index)
    expected = quiet(Z1, Z2, groups=labels.to_numpy())
    mixed = labels.sample(frac=1, random_state=1)
    np.testing.assert_array_equal(quiet(Z1, Z2, groups=mixed).error, expected.error)
    np.testing.assert_array_equal(
        quiet(Z1, Z2.sample(frac=1, random_state=2), groups=mixed).error,
        expected.error,
    )
    with pytest.raises(
        ValueError, match=r"no label for 2 id\(s\) of Z1: 'id08', 'id09'"
    ):
        alignment_errors(Z1, Z2, groups=labels.drop(["id08", "id09"]))
    with pytest.raises(ValueError, match="groups has 1 id"):
        alignment_errors(Z1, Z2, groups=labels.rename({"id08": "id09"}))
    short = Z2.drop(index=["id03"])
    kept = quiet(Z1, short, groups=labels.to_numpy(), unmatched="drop")
    again = quiet(Z1.drop(index="id03"), short, groups=labels.drop("id03"))
    np.testing.assert_array_equal(kept.error, again.error)


@pytest.mark.parametrize("state", [0, None, np.random.RandomState(3)])
def test_random_states(state):
    pair = noisy_pair(n=60)
    assert np.isfinite(quiet(*pair, random_state=state).error).all()
    if state == 0:
        again = [quiet(*pair, random_state=0).interval for _ in range(2)]
        np.testing.assert_array_equal(*again)
        other = quiet(*pair, random_state=1)
        assert np.any(other.error != quiet(*pair, random_state=0).error)


def test_progress_bar(capsys):
    alignment_errors(*noisy_pair(n=60), verbose=1, **QUICK)
    assert "alignment" in capsys.readouterr().err
    alignment_errors(*noisy_pair(n=60), **QUICK)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("bad", [[0.0], [1.0], ["half"], [np.nan]])
def test_fractions_are_checked(bad):
    with pytest.raises(ValueError, match=r"train_fractions must be in \(0, 1\)"):
        alignment_errors(*noisy_pair(n=60), train_fractions=bad)


@pytest.mark.slow
def test_coverage_of_the_intervals():
    """90 % intervals hold the mean over replicas: 300 of them, rejection at 1e-7.

    A binomial share of .9 has deviation .017; the intervals of 300 rows are short by
    a few per cent, so .8 to .98 is asked for.
    """
    rng = np.random.default_rng(0)
    ends, errors = [], []
    for _ in range(300):
        Z1 = rng.standard_normal((300, 2))
        Z2 = Z1 + 0.3 * rng.laplace(size=Z1.shape)
        result = alignment_errors(
            Z1, Z2, transformations=["rigid"], cv=3, n_resamples=400,
            confidence_level=0.9, train_fractions=(), random_state=0,
        )  # fmt: skip
        # In units of the rows: the diameters differ between replicas.
        unit = 1 / np.mean(1 / result.max_diameters)
        ends.append(result.interval[0] * unit)
        errors.append(result.error[0] * unit)
    low, high = np.transpose(ends)
    truth = np.mean(errors)
    covered = np.mean((low <= truth) & (truth <= high))
    assert 0.8 < covered < 0.98
