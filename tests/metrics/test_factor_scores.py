"""What every score against known factors has in common."""

import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import stats

from skident.metrics import (
    dci_score,
    infomec_score,
    mcc_score,
    mig_score,
    mutual_information,
    sap_score,
)

SCORES = {
    "infomec": infomec_score,
    "dci": functools.partial(dci_score, n_estimators=5),
    "mig": mig_score,
    "sap": sap_score,
    "mcc": mcc_score,
    "mi": functools.partial(mutual_information, n_permutations=4),
}
RANDOM = {"random_state": 0}


def numbers(name, factors, latents, **options):
    """Return the scores of a metric as a flat array; numpy's warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = SCORES[name](factors, latents, **(RANDOM | options))
    if isinstance(found, tuple):
        found = [value for value in found if isinstance(value, float)]
        found = found[:-1] if name == "infomec" else found
    found = np.atleast_1d(np.asarray(found, dtype=float)).ravel()
    assert np.isfinite(found).all() and found.min() >= 0
    return found


def mixed_kinds(seed=0, n=240):
    """Two discrete factors and a continuous one; latents mix them a little."""
    rng = np.random.default_rng(seed)
    s = np.c_[rng.integers(3, size=n), rng.integers(5, size=n), 4 * rng.random(n)]
    mixing = np.eye(3, 4) + 0.2 * rng.standard_normal((3, 4))
    return s, s @ mixing + 0.3 * rng.standard_normal((n, 4)), rng


@pytest.mark.parametrize("name", SCORES)
def test_row_order_is_nothing(name):
    s, z, rng = mixed_kinds()
    order = rng.permutation(len(s))
    # The chance level of mcc is that of one set of shuffles, as all the rest.
    np.testing.assert_allclose(
        numbers(name, s[order], z[order]), numbers(name, s, z), atol=1e-9
    )


@pytest.mark.parametrize("name", SCORES)
def test_scale_and_offset_of_latents_are_nothing(name):
    s, z, _ = mixed_kinds()
    scaled = z * [3.7, 1e-5, 1e4, 2.0] + [0, 1e-4, -7e3, 5]
    np.testing.assert_allclose(numbers(name, s, scaled), numbers(name, s, z), atol=1e-9)


@pytest.mark.parametrize("name", SCORES)
def test_sign_of_latents_is_nothing(name):
    s, z, _ = mixed_kinds()
    flipped = z * [-1, 1, -2, 1]
    # Trees break ties between equally good splits by their position.
    tolerance = 0.05 if name == "dci" else 1e-9
    np.testing.assert_allclose(
        numbers(name, s, flipped), numbers(name, s, z), atol=tolerance
    )


@pytest.mark.parametrize("name", SCORES)
def test_names_of_labels_are_nothing(name):
    """Names in another order than the numbers; the type of a table is nothing too."""
    s, z, _ = mixed_kinds()
    s = s[:, :2].astype(int)
    names = np.array(["delta", "alpha", "echo", "bravo", "charlie"])
    texts = names[s]
    expected = numbers(name, texts, z)
    codes = np.argsort(np.argsort(names))[s]
    others = [
        texts.astype(object),
        texts.tolist(),
        pd.DataFrame(texts, columns=["shape", "size"]),
        pd.DataFrame(texts).astype("category"),
        pl.DataFrame({"shape": texts[:, 0], "size": texts[:, 1]}),
        np.array(["x" * (k + 1) for k in range(5)])[s],
    ]
    for table in others:
        np.testing.assert_allclose(numbers(name, table, z), expected, atol=1e-9)
    if name != "mcc":  # numbers have an order, which is what it measures
        for table in (s, codes, -7 * codes, codes.astype(np.int8), torch.tensor(codes)):
            np.testing.assert_allclose(numbers(name, table, z), expected, atol=1e-9)


@pytest.mark.parametrize("name", SCORES)
def test_order_of_columns_is_nothing(name):
    s, z, _ = mixed_kinds()
    if name in ("mi", "dci"):
        pytest.skip("a table; trees draw columns in turn")
    there = numbers(name, s, z)
    np.testing.assert_allclose(
        numbers(name, s[:, ::-1], z[:, [2, 0, 3, 1]]), there, atol=1e-9
    )


@pytest.mark.parametrize("value", [1e3, 1e12])
@pytest.mark.parametrize("name", SCORES)
def test_one_outlier_changes_little(name, value):
    s, z, _ = mixed_kinds(n=1000)
    far = z.copy()
    far[17] = [value, -value, value, value]
    difference = numbers(name, s, far) - numbers(name, s, z)
    assert np.abs(difference).max() < 0.06
    assert np.abs(difference).max() > 0


@pytest.mark.parametrize("name", SCORES)
def test_types_of_equal_numbers_are_nothing(name):
    s, z, _ = mixed_kinds()
    s, z = s[:, :2].astype(int), np.round(z)
    expected = numbers(name, s, z)
    for dtype in (np.float32, np.float16, np.int8):
        found = numbers(name, s.astype(dtype), z.astype(dtype))
        np.testing.assert_array_equal(found, expected)
    frame = pd.DataFrame(z, columns=list("abcd"))
    np.testing.assert_array_equal(numbers(name, s, frame), expected)
    np.testing.assert_array_equal(numbers(name, s, torch.tensor(z)), expected)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("case", ["code", "codes", "one code", "one factor", "ones"])
def test_degenerate_latents_and_widths_have_a_value(name, case):
    s, z, _ = mixed_kinds(n=120)
    cases = {
        "code": (s, np.full(120, 3.0)),
        "codes": (s, np.c_[z, np.zeros(120), np.full(120, 0.1)]),
        "one code": (s, z[:, 0]),
        "one factor": (s[:, 0], z),
        "ones": (s[:, :1], s[:, :1]),
    }
    found = numbers(name, *cases[case])
    if case == "code":
        expected = 0.0
        if name == "dci":  # accuracy of a guess
            expected = [0, 0, found[2]]
        np.testing.assert_allclose(found, expected, atol=1e-8)
    if case == "ones" and name not in ("mi", "sap", "mcc"):
        np.testing.assert_allclose(found, 1.0, atol=0.01)


@pytest.mark.parametrize("name", SCORES)
def test_perfect_beats_mixed_beats_noise(name):
    s, _, rng = mixed_kinds(n=500)
    perfect = s * [1, -2, 0.1] + 0.02 * rng.standard_normal(s.shape)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    first = {"mi": slice(0, 1)}.get(name, slice(None))
    scores = [
        numbers(name, s[:, first], z)[0]
        for z in (perfect, (s / s.std(0)) @ turn, rng.standard_normal(s.shape))
    ]
    assert scores[0] > scores[1] + 0.1 and scores[1] > scores[2]
    assert scores[2] < (0.1 if name != "mcc" else 0.2)


@pytest.mark.parametrize("name", SCORES)
def test_misuse_is_named(name):
    s, z, _ = mixed_kinds(n=40)
    score = SCORES[name]
    constant = s.copy()
    constant[:, 1] = 4
    with pytest.raises(ValueError, match=r"factors, column 1, is constant"):
        score(constant, z)
    frame = pd.DataFrame(constant, columns=["x", "colour", "y"])
    with pytest.raises(ValueError, match=r"column 1 \('colour'\), is constant"):
        score(frame, z)
    broken = s.copy()
    broken[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"factors, column 2, is nan in row 3"):
        score(broken, z)
    labels = np.array(["a", "b"] * 20, dtype=object)
    labels[5] = None
    with pytest.raises(ValueError, match=r"column 0, has no label in row 5"):
        score(labels, z)
    labels[5] = 1
    with pytest.raises(ValueError, match=r"row 0 has 'a' and row 5 1: pass them as"):
        score(labels, z)
    with pytest.raises(ValueError, match=r"latents contains NaN: first in column 2, r"):
        score(s, np.where(np.arange(4) == 2, np.nan, z))
    with pytest.raises(
        ValueError, match=r"factors has shape \(40, 3\), latents has sh"
    ):
        score(s, z[:-1])
    with pytest.raises(ValueError, match="minimum of"):
        score(s[:2], z[:2])
    with pytest.raises(ValueError, match=r"one column a factor, but has shape \(2, 20"):
        score(np.zeros((2, 20, 3)), z)
    with pytest.raises(ValueError, match=r"factors is empty: 0 column\(s\)"):
        score(np.zeros((40, 0)), z)
    with pytest.raises(
        ValueError, match=r"column 0, has numbers or labels of type com"
    ):
        score(s * 1j, z)
    with pytest.raises(
        ValueError, match="entry 1 has a list of 1, entry 0 a list of 2"
    ):
        score([[1, 2], [1]], z)


@pytest.mark.parametrize("name", sorted(set(SCORES) - {"mcc"}))
def test_misused_kinds_and_groups_are_named(name):
    s, z, _ = mixed_kinds(n=40)
    score = SCORES[name]
    with pytest.raises(ValueError, match=r"discrete_factors must be 'auto'"):
        score(s, z, discrete_factors="all")
    with pytest.raises(ValueError, match=r"a bool, or 3 of them, one a column, got"):
        score(s, z, discrete_factors=[True, False])
    labels = np.array(["a", "b"] * 20)
    with pytest.raises(ValueError, match=r"has labels, not numbers, but discrete_fact"):
        score(labels, z, discrete_factors=False)
    if name != "dci":
        with pytest.raises(ValueError, match=r"discrete_latents must be 'auto'"):
            score(s, z, discrete_latents="all")
    if name in ("infomec", "dci", "sap"):
        with pytest.raises(
            ValueError, match=r"groups has 2 group\(s\), fewer than cv="
        ):
            score(s, z, groups=labels)
        groups = np.repeat(np.arange(8), 5)
        assert np.isfinite(numbers(name, s, z, groups=groups)).all()


def test_which_columns_are_discrete_by_default():
    rng = np.random.default_rng(0)
    factors = pd.DataFrame({
        "number": rng.random(200),
        "twice": np.repeat(rng.random(100), 2),
        "level": rng.integers(50, size=200) / 7,
        "flag": rng.random(200) < 0.5,
        "text": rng.choice(list("abcde"), 200),
    })  # fmt: skip
    found = infomec_score(factors, rng.random((200, 1)), cv=2, n_permutations=2)
    np.testing.assert_array_equal(
        found.discrete_factors, [False, False, True, True, True]
    )
    many = np.repeat(np.arange(101.0), 4)
    found = infomec_score(many, np.c_[many, many % 3], cv=2, n_permutations=2)
    assert not found.discrete_factors.any()
    np.testing.assert_array_equal(found.discrete_latents, [False, True])
    one = infomec_score(factors["flag"], rng.random(200), discrete_factors=True)
    assert one.discrete_factors.all() and not one.discrete_latents.any()


def test_two_columns_of_one_name():
    s, z, _ = mixed_kinds(n=60)
    frame = pd.DataFrame(s[:, :2], columns=["a", "a"])
    np.testing.assert_array_equal(numbers("sap", frame, z), numbers("sap", s[:, :2], z))


# Each score on its own.


def test_mcc_counts_all_factors():
    s = np.random.default_rng(0).standard_normal((500, 3))
    found = mcc_score(s, s[:, [2, 0]], **RANDOM)
    assert found.mcc == pytest.approx(2 / 3)
    np.testing.assert_array_equal(found.matching, [1, -1, 0])
    np.testing.assert_allclose(found.per_factor, [1, 0, 1])
    constant = mcc_score(s, np.c_[s[:, :2], np.ones(500)], **RANDOM)
    assert constant.mcc == pytest.approx(2 / 3)
    assert constant.matching[2] == -1


@pytest.mark.parametrize("n, d", [(20, 3), (20, 40), (500, 3)])
def test_chance_of_mcc_is_what_noise_gets(n, d):
    rng = np.random.default_rng(0)
    noise = [
        mcc_score(rng.random((n, 3)), rng.random((n, d)), **RANDOM) for _ in range(20)
    ]
    mean = np.mean([found.mcc for found in noise])
    assert np.mean([found.chance for found in noise]) == pytest.approx(mean, rel=0.15)
    # So it does for latents that are the factors.
    s = rng.random((n, 3))
    same = mcc_score(s, np.c_[s, rng.random((n, d - 3))], **RANDOM)
    assert same.mcc == pytest.approx(1)
    assert same.chance == pytest.approx(mean, rel=0.3)


def test_spearman_sees_monotone_maps():
    s = np.random.default_rng(0).standard_normal((300, 2))
    curved = np.c_[np.exp(3 * s[:, 1]), -(s[:, 0] ** 3)]
    assert mcc_score(s, curved, method="spearman", **RANDOM).mcc == pytest.approx(1)
    assert mcc_score(s, curved, **RANDOM).mcc < 0.9


def test_mcc_of_labels_without_order():
    """A latent at one place per class, in no order, has all of the correlation."""
    s = np.random.default_rng(0).integers(4, size=400)
    latent = np.array([3.0, 0.0, 2.0, 1.0])[s]
    labels = np.array(list("wxyz"))[s]
    assert mcc_score(labels, latent, **RANDOM).mcc == pytest.approx(1)
    assert mcc_score(s, latent, **RANDOM).mcc < 0.6


def test_gaps_close_with_a_copy_of_a_latent():
    s, _, rng = mixed_kinds(n=800)
    s = s[:, :2]
    z = s + 0.02 * rng.standard_normal(s.shape)
    copied = np.c_[z, s[:, 0] + 0.02 * rng.standard_normal(800)]
    for score in (mig_score, sap_score):
        alone, half = score(s, z, **RANDOM), score(s, copied, **RANDOM)
        assert half < 0.7 * alone
    assert mig_score(s, z, **RANDOM) > 0.95
    # One of three classes at random is right a third of the time, of five a fifth.
    assert sap_score(s, z, **RANDOM) == pytest.approx((2 / 3 + 4 / 5) / 2, abs=0.05)
    # With one latent the second is a guess.
    assert sap_score(s[:, 0], z[:, 0], **RANDOM) == pytest.approx(2 / 3, abs=0.05)
    assert mig_score(s[:, 0], z[:, 0], **RANDOM) > 0.95


def test_dci_of_redundant_and_of_shared_latents():
    rng = np.random.default_rng(0)
    s = rng.random((600, 2))
    redundant = dci_score(
        s, np.c_[s, s] + 0.1 * rng.standard_normal((600, 4)), **RANDOM
    )
    assert redundant.disentanglement > 0.9
    assert redundant.completeness < 0.7  # two latents a factor: 1 - ln 2 / ln 4
    shared = dci_score(s, s.sum(axis=1), **RANDOM)
    assert shared.disentanglement < 0.1
    np.testing.assert_array_equal(shared.completeness_per_factor, 1)
    np.testing.assert_allclose(redundant.importances.sum(axis=1), 1)
    # The definition, latent by latent.
    R = redundant.importances.T
    D = [1 - stats.entropy(row, base=2) for row in R]
    C = [1 - stats.entropy(column, base=4) for column in R.T]
    assert redundant.disentanglement == pytest.approx(np.average(D, weights=R.sum(1)))
    assert redundant.completeness == pytest.approx(np.mean(C))


def test_factors_that_are_not_predicted_have_no_importances():
    rng = np.random.default_rng(0)
    s = np.c_[rng.integers(3, size=400), rng.integers(3, size=400)]
    z = np.c_[s[:, 0] + 0.05 * rng.standard_normal(400), rng.standard_normal(400)]
    found = dci_score(s, z, **RANDOM)
    np.testing.assert_array_equal(found.importances[1], 0)
    assert found.disentanglement > 0.9
    assert found.completeness == pytest.approx(0.5, abs=0.05)
    assert found.chance_per_factor[1] == pytest.approx(1 / 3, abs=0.06)


@pytest.mark.parametrize("n_jobs", [2])
def test_number_of_jobs_of_forests_is_nothing(n_jobs):
    s, z, _ = mixed_kinds(n=100)
    one, two = (dci_score(s, z, n_jobs=n, **RANDOM) for n in (1, n_jobs))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
