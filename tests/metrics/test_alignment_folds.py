"""alignment_errors in any unit, with any number of folds, rows and groups."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skident import LinearAligner, PermutationAligner, RigidAligner
from skident._math import alignment, paired_rows, resampling
from skident._math.paired_rows import open_rows
from skident._random import generator
from skident.metrics import alignment_errors
from skident.metrics._crossfit import Comparison, Folds, Workers

NAMES = ("permutation", "rigid", "linear", "ica")
seeds = st.integers(0, 10**6)
QUICK = {"n_resamples": 10, "random_state": 0}


def pair(seed=0, n=200, p=3, q=3, noise=0.1):
    rng = np.random.default_rng(seed)
    Z = rng.laplace(size=(n, max(p, q)))
    turn = np.linalg.qr(rng.standard_normal((max(p, q),) * 2))[0]
    return Z[:, :p], (Z @ turn + noise * rng.standard_normal(Z.shape))[:, :q]


def grouped(seed=0, n_groups=40, n=20):
    """Rows near the centre of their group, far from other groups."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), n)
    Z = 3 * rng.normal(size=(n_groups, 4))[groups]
    Z = Z + 0.3 * rng.laplace(size=Z.shape)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    return Z, Z @ turn + 0.05 * rng.normal(size=Z.shape), groups


def quiet(Z1, Z2, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return alignment_errors(Z1, Z2, **(QUICK | options))


@pytest.mark.parametrize("small", [0, 2**20])
@pytest.mark.parametrize("power", [-1000, -300, -51, -31, 31, 49, 52, 300, 1000])
def test_a_common_unit_changes_nothing(power, small, monkeypatch):
    """The two sides have other sizes, so that either may pass a bound alone."""
    monkeypatch.setattr(alignment, "SMALL", small)
    Z1, Z2 = pair()
    plain, unit = quiet(Z1, 3 * Z2), 2.0**power
    scaled = quiet(unit * Z1, unit * (3 * Z2))
    for name in ("error", "forward", "backward", "interval", "chance", "robust_error"):
        np.testing.assert_allclose(
            getattr(scaled, name), getattr(plain, name), rtol=1e-7, err_msg=name
        )
    np.testing.assert_allclose(scaled.learning_curve, plain.learning_curve, rtol=1e-7)
    np.testing.assert_allclose(scaled.max_diameters / unit, plain.max_diameters)


def test_single_precision_in_any_unit(monkeypatch):
    monkeypatch.setattr(paired_rows, "LARGE", 1)
    Z1, Z2 = (Z.astype(np.float32) for Z in pair())
    plain = quiet(Z1, Z2)
    for unit in (2.0**-120, 2.0**-45, 2.0**45, 2.0**110):
        single = np.float32(unit)
        scaled = quiet(single * Z1, single * Z2)
        np.testing.assert_allclose(scaled.error, plain.error, rtol=1e-4)
        np.testing.assert_allclose(scaled.chance, plain.chance, rtol=1e-4)
        mixed = quiet(single * Z1, unit * Z2.astype(float))
        np.testing.assert_allclose(mixed.error, plain.error, rtol=1e-4)


@pytest.mark.parametrize(
    "sizes", [(1, 1e-14), (1e-14, 1), (1, 1e17), (1e20, 1e16), (1e-120, 1e130)]
)
@pytest.mark.parametrize("widths", [(3, 3), (2, 4)])
def test_each_side_in_its_own_unit_as_by_the_estimators(sizes, widths):
    """An independent loop over the folds; rows of the target are divided first."""
    sides = pair(1, 120, *widths)
    sides = sides[0] * sizes[0], sides[1] * sizes[1]
    result = quiet(*sides, transformations=NAMES[:3], train_fractions=None)
    labels = resampling.fold_labels(np.arange(120), 5, generator(0, 0))
    kinds = PermutationAligner, RigidAligner, LinearAligner
    for (X, Y), found, unit in (
        (sides, result.forward, result.max_diameters[1]),
        (sides[::-1], result.backward, result.max_diameters[0]),
    ):
        errors = np.empty((3, 120))
        for fold in range(5):
            test, train = labels == fold, labels != fold
            for k, kind in enumerate(kinds):
                mapped = kind().fit(X[train], Y[train]).transform(X[test])
                mapped[:, : Y.shape[1]] -= Y[test]
                size = np.abs(mapped).max()
                errors[k, test] = np.linalg.norm(mapped / size, axis=1) * (size / unit)
        np.testing.assert_allclose(found, errors.mean(axis=1), rtol=1e-6)


def test_sizes_beyond_floats_are_refused_where_lengths_are_kept():
    Z1, Z2 = pair()
    with pytest.raises(ValueError, match=r"diameters of Z1 \(.*e\+301\) and Z2"):
        alignment_errors(1e300 * Z1, 1e-300 * Z2)
    with pytest.raises(ValueError, match="keep lengths, in units of the smaller"):
        alignment_errors(1e-300 * Z1, 1e300 * Z2, transformations=["rigid"])
    apart = quiet(1e-300 * Z1, 1e300 * Z2, transformations=NAMES[2:])
    plain = quiet(Z1, Z2, transformations=NAMES[2:])
    np.testing.assert_allclose(apart.error, plain.error, rtol=1e-6)


@pytest.mark.parametrize("name", ["Z1", "Z2"])
def test_infinite_diameter_is_refused(name):
    rng = np.random.default_rng(0)
    sides = {"Z1": rng.standard_normal((20, 2)), "Z2": rng.standard_normal((20, 2))}
    sides[name] = 1.7e308 * np.sign(sides[name])
    with pytest.raises(ValueError, match=f"Rows of {name} are further apart than the"):
        alignment_errors(**sides)


@pytest.mark.parametrize("n", [40, 41, 200])
def test_chance_does_not_depend_on_the_number_of_folds(n):
    """Averaged over seeds: one pairing of 40 rows is known to a tenth."""
    sides = pair(n=n)
    options = {"train_fractions": None, "transformations": NAMES[:2]}
    counts = [5, n // 3, 3 * n // 4, n]
    levels = np.array([
        np.mean([quiet(*sides, cv=cv, **options | {"random_state": seed}).chance
                 for seed in range(6)], axis=0)
        for cv in counts
    ])  # fmt: skip
    assert np.all(np.abs(levels / levels[0] - 1) < 0.12), levels / levels[0]


def test_chance_of_a_wide_map_has_not_seen_its_partners():
    """Of equal sides a map fitted on (i, k) would send k to i: both are held out."""
    Z = np.random.default_rng(0).standard_normal((60, 30))
    options = {"train_fractions": None, "transformations": ["rigid"]}
    level = [
        quiet(Z, Z, cv=cv, **options).chance[0]
        * quiet(Z, Z, **options).max_diameters[0]
        for cv in (5, 20, 60)
    ]
    # Unrelated rows of 30 normal columns are sqrt(60) apart.
    np.testing.assert_allclose(level, np.sqrt(60), rtol=0.05)


@pytest.mark.parametrize("n", [4, 5, 7, 15])
@pytest.mark.parametrize("cv", [2, 3, 5, 15])
def test_chance_of_few_rows_is_finite(n, cv):
    if cv <= n:
        result = quiet(*pair(n=n, p=1, q=1), cv=cv)
        for name in ("error", "chance", "learning_curve", "interval"):
            assert np.isfinite(getattr(result, name)).all(), name


def test_exchange_of_the_sides_leaves_chance_whatever_the_folds():
    for n, cv in ((31, 5), (31, 10), (31, 31)):
        sides = pair(n=n)
        a, b = quiet(*sides, cv=cv), quiet(*sides[::-1], cv=cv)
        for name in ("error", "chance", "learning_curve"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-6)


@settings(max_examples=80, deadline=None)
@given(
    seed=seeds,
    n=st.integers(4, 80),
    n_groups=st.integers(4, 80),
    n_folds=st.integers(2, 80),
)
def test_joined_folds_hold_pairs_of_other_groups(seed, n, n_groups, n_folds):
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_groups, size=n)
    codes = np.unique(codes, return_inverse=True)[1]
    count = codes.max() + 1
    if count < 4:
        return
    labels = resampling.fold_labels(codes, min(n_folds, count), rng)
    joined = resampling.join_folds(labels, codes, rng)
    for fold in np.unique(labels):
        assert len(set(joined[labels == fold])) == 1
    swap = resampling.paired_shuffle(joined, rng, codes)
    np.testing.assert_array_equal(swap[swap], np.arange(n))
    # Unless a group has more than half of its fold, all but an odd row find partners.
    for fold in np.unique(joined):
        mine = np.flatnonzero(joined == fold)
        largest = np.bincount(codes[mine]).max()
        apart = np.count_nonzero(codes[swap[mine]] != codes[mine])
        expected = len(mine) - max(2 * largest - len(mine), len(mine) % 2)
        assert apart == expected
    movable = resampling._movable(labels, codes)
    kept = resampling._movable(joined, codes)
    assert kept.sum() - kept.max() >= movable.sum() - movable.max()


@pytest.mark.parametrize("cv", [5, 20, 40])
def test_rows_are_never_paired_within_a_group_that_is_a_fold(cv):
    Z1, Z2, groups = grouped()
    options = {"train_fractions": None, "transformations": NAMES[:3]}
    result = quiet(Z1, Z2, groups=groups, cv=cv, **options)
    unrelated = quiet(Z1, Z2[::-1], **options).error
    # Forty centres know the level to a few per cent; within groups it is a third.
    assert np.all(result.chance > 0.75 * unrelated)


def test_curve_without_equal_or_complete_points():
    Z1, Z2 = pair()
    sizes = quiet(Z1, Z2, train_fractions=(0.5, 0.5001, 0.9999)).train_sizes
    assert np.all(np.diff(sizes) > 0) and sizes[-1] == 160 and len(sizes) <= 3
    result = quiet(Z1, Z2, train_fractions=(0.9999,))
    assert result.train_sizes.tolist() == [160.0]
    assert result.expected_error is None and result.enough_rows is None


@settings(max_examples=25, deadline=None)
@given(
    seed=seeds,
    n=st.integers(4, 40),
    cv=st.integers(2, 40),
    fractions=st.lists(st.floats(0.01, 0.9999), max_size=4),
)
def test_every_curve_ascends_and_is_finite(seed, n, cv, fractions):
    result = quiet(
        *pair(seed, n, 1, 2), cv=min(cv, n), train_fractions=fractions,
        transformations=NAMES[:3],
    )  # fmt: skip
    assert np.all(np.diff(result.train_sizes) > 0)
    assert np.isfinite(result.learning_curve).all()
    if result.expected_error is not None:
        assert np.isfinite(result.expected_error).all()


def test_curve_of_folds_of_one_row_keeps_its_parts():
    result = quiet(*pair(n=40), cv=40)
    np.testing.assert_allclose(result.train_sizes, [9.75, 19.5, 39])
    folds = Folds(np.arange(40), np.zeros(40))
    for part in (0.1, 0.25, 0.5, 0.7):
        assert np.count_nonzero(folds.below(part)) == pytest.approx(40 * part, abs=1)


@pytest.mark.parametrize("shape", [(40, 20), (4, 200)])
def test_rows_are_drawn_one_by_one_whatever_their_groups(shape):
    """Whole groups would leave most of forty out of a tenth of the rows."""
    Z1, Z2, groups = grouped(0, *shape)
    sides, n = (open_rows(Z1), open_rows(Z2)), len(groups)
    cv = min(5, shape[0])
    labels = resampling.fold_labels(groups, cv, np.random.default_rng(0))
    seen = np.zeros(n)
    for seed in range(30):
        workers, rng = Workers(1, lambda _: None), np.random.default_rng(seed)
        drawn = Comparison(sides, labels, groups, NAMES, n // 4, workers, rng)
        rows = drawn._folds.first(n // 4)
        assert len(np.unique(rows)) == n // 4
        np.testing.assert_array_equal(drawn._few_codes, groups[rows])
        assert len(np.unique(groups[rows])) > 0.9 * shape[0]
        seen[rows] += 1
    # Binomial of 30 at a quarter; a group of 20 or 200 rows has a tenth of its spread.
    share = np.bincount(groups, weights=seen) / np.bincount(groups) / 30
    np.testing.assert_allclose(share, 0.25, atol=0.09)


def test_chance_of_groups_does_not_depend_on_the_rows_taken():
    Z1, Z2, groups = grouped(0, 40, 100)
    options = {"groups": groups, "transformations": NAMES[:3], "train_fractions": None}
    full, *parts = (
        [
            quiet(Z1, Z2, max_samples=most, **options | {"random_state": seed})
            for seed in range(8)
        ]
        for most in (4000, 1000, 200)
    )
    level = np.mean([one.chance for one in full], axis=0)
    for part in parts:
        # Twenty pairs of groups know the level to a tenth, and eight draws are taken.
        found = np.mean([one.chance for one in part], axis=0)
        np.testing.assert_allclose(found, level, rtol=0.12)
        np.testing.assert_array_equal(part[0].error, full[0].error)


@pytest.mark.parametrize("cv", [100, 1000])
def test_no_more_rows_than_asked_for_of_many_small_folds(cv):
    sides = pair(n=1000)
    result = quiet(*sides, cv=cv, max_samples=100, transformations=NAMES[:2])
    np.testing.assert_allclose(result.train_sizes[:2], [25, 50], atol=1)
    usual = quiet(*sides, transformations=NAMES[:2])
    np.testing.assert_allclose(result.chance, usual.chance, rtol=0.2)


def test_no_determinant_is_taken(monkeypatch):
    """Errors do not ask whether a map is a reflection, which is cubic in the width."""

    def forbidden(_):
        raise AssertionError("a determinant")

    sides = pair(n=30, p=20, q=20)
    expected = quiet(*sides)
    monkeypatch.setattr(np.linalg, "slogdet", forbidden)
    np.testing.assert_array_equal(quiet(*sides).error, expected.error)


def test_ties_are_exempt_from_exchange_and_are_said():
    for sides in ((np.eye(30), np.eye(30)[::-1]), (np.eye(30)[::-1], np.eye(30))):
        with pytest.warns(UserWarning, match="every map of permutation, rigid"):
            alignment_errors(*sides, **QUICK)


@pytest.mark.parametrize("value", [0.5, np.array(0.5), np.array([[0.5]]), "half"])
def test_fractions_that_are_no_list_are_named(value):
    with pytest.raises(ValueError, match="train_fractions"):
        alignment_errors(*pair(n=60), train_fractions=value)


@pytest.mark.parametrize(
    ("missing", "dtype"), [(None, "string"), (np.nan, object), (None, object)]
)
def test_rows_without_a_group_are_named(missing, dtype):
    pd = pytest.importorskip("pandas")
    groups = pd.Series(["a", "b", missing, "c"] * 15, dtype=dtype)
    with pytest.raises(ValueError, match="groups has no label in row 2"):
        alignment_errors(*pair(n=60), groups=groups, **QUICK)
    days = pd.Series(pd.date_range("2020", periods=60)).where(np.arange(60) != 7)
    with pytest.raises(ValueError, match="groups has no label in row 7"):
        alignment_errors(*pair(n=60), groups=days, **QUICK)


def test_groups_of_several_types_are_named():
    groups = np.array([1, 2, "a", 3] * 15, dtype=object)
    with pytest.raises(ValueError, match="but row 0 has 1 and row 2 'a': pass them as"):
        alignment_errors(*pair(n=60), groups=groups, **QUICK)
    numbers = np.array([1, 2.0, np.int8(3), True] * 15, dtype=object)
    expected = quiet(*pair(n=60), groups=numbers.astype(float), cv=3)
    np.testing.assert_array_equal(
        quiet(*pair(n=60), groups=numbers, cv=3).error, expected.error
    )
