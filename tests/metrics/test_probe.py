"""Probes of left-out batches: definitions in full, identities, invariances."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from skident import WhitenICA
from skident._math.variation import top_share, variation_shares
from skident.metrics import _probe, probe_transfer
from skident.metrics._probe import PROBES

QUICK = {"n_resamples": 200, "random_state": 0}


@pytest.fixture(autouse=True)
def _small_forests(monkeypatch):
    monkeypatch.setattr(_probe, "_TREES", 25)


def wells(seed=0, n_batches=5, n_rows=30, width=6, n_labels=2, effect=1.5):
    """Labels move the first features, batches move all."""
    rng = np.random.default_rng(seed)
    batches = np.repeat(np.arange(n_batches), n_rows)
    labels = rng.permuted(np.tile(np.arange(n_labels), 1000)[: len(batches)])
    Z = rng.laplace(size=(len(batches), width))
    Z[:, :n_labels] += effect * np.eye(n_labels)[labels]
    Z += rng.standard_normal((n_batches, width))[batches]
    return Z, np.array(["ctrl", "drug", "heat", "cold"])[labels], batches


def whitened(Z):
    U = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)[0]
    return U * np.sqrt(len(Z))


def rotation(width, seed=0):
    return stats.ortho_group.rvs(width, random_state=seed)


def l2_probe_by_hand(Z, positive, weights):
    """Return weights and offset that minimise the penalised log-loss."""
    sign = np.where(positive, 1.0, -1.0)

    def loss(w):
        margins = sign * (Z @ w[:-1] + w[-1])
        slope = -weights * sign / (1 + np.exp(margins))
        value = weights @ np.logaddexp(0, -margins) + w[:-1] @ w[:-1] / 2
        return value, np.r_[slope @ Z + w[:-1], slope.sum()]

    start = np.zeros(Z.shape[1] + 1)
    found = optimize.minimize(
        loss, start, jac=True, options={"gtol": 1e-9, "maxiter": 2000}
    )
    return found.x[:-1], found.x[-1]


@pytest.mark.parametrize("seed", range(3))
def test_l2_probe_against_a_straightforward_one(seed):
    Z, labels, batches = wells(seed)
    positive = labels == "drug"
    hits, areas, pairs, of_batch = Counter(), 0.0, 0, []
    for batch in np.unique(batches):
        out = batches == batch
        train, truth = Z[~out], positive[~out]
        size = np.sqrt(train.var(axis=0).mean())
        weights = len(truth) / np.where(truth, truth.sum(), (~truth).sum()) / 2
        w, b = l2_probe_by_hand((train - train.mean(axis=0)) / size, truth, weights)
        strength = (Z[out] - train.mean(axis=0)) / size @ w + b
        right = (strength > 0) == positive[out]
        for name, hit in zip(labels[out], right, strict=True):
            hits[name, hit] += 1
        here = positive[out]
        ordered = strength[here][:, None] > strength[~here]
        areas, pairs = areas + ordered.sum(), pairs + ordered.size
        of_batch.append((right[here].mean() + right[~here].mean()) / 2)
    recalls = [hits[c, True] / (hits[c, True] + hits[c, False]) for c in set(labels)]
    found = probe_transfer(Z, labels, batches, probe="l2", **QUICK)
    assert found.score.value == pytest.approx(np.mean(recalls), abs=1e-12)
    assert found.auroc.value == pytest.approx(areas / pairs, abs=1e-12)
    assert np.allclose(found.batch_scores, of_batch)
    assert found.batch_sizes.tolist() == [30] * 5
    assert found.label_scores.mean() == pytest.approx(found.score.value)


@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("seed", range(2))
def test_l2_probe_cannot_tell_whitened_rotations_apart(seed, n_labels):
    Z, labels, batches = wells(seed, n_labels=n_labels, width=8)
    arms = [whitened(Z)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        arms += [WhitenICA(8, random_state=seed).fit_transform(Z)]
    arms += [arms[0] @ rotation(8, seed)]
    runs = [probe_transfer(A, labels, batches, probe="l2", **QUICK) for A in arms]
    for run in runs[1:]:
        assert run.score == runs[0].score
        assert run.auroc == runs[0].auroc
        assert run.batch_share == pytest.approx(runs[0].batch_share, abs=1e-9)
        assert run.label_share == pytest.approx(runs[0].label_share, abs=1e-9)
        assert run.top_share != pytest.approx(runs[0].top_share, abs=1e-3)


def test_l2_strengths_tie_to_numerical_precision():
    """Strengths, not only labels: an lbfgs at its default is off by 1e-3 or so."""
    Z, labels, _ = wells(3, width=8, n_labels=4)
    white = whitened(Z)
    R = rotation(8)
    there, here = (PROBES["l2"](1.0, 0).fit(A, labels) for A in (white, white @ R))
    assert np.allclose(here.coef_ @ R.T, there.coef_, atol=1e-7)
    gap = there.predict_proba(white) - here.predict_proba(white @ R)
    assert np.abs(gap).max() < 1e-7


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("probe", ["l1", "tree"])
def test_other_probes_reward_few_informative_features(probe, seed):
    """The label sits in one feature; a rotation spreads it over all."""
    shape = {"l1": (24, 40), "tree": (60, 10)}[probe]
    Z, labels, batches = wells(seed, n_rows=shape[0], width=shape[1], effect=3.0)
    white = whitened(Z)
    if probe == "tree":  # a forest also finds what is not linear
        labels = np.abs(white[:, 0]) > np.median(np.abs(white[:, 0]))
    there = probe_transfer(white, labels, batches, probe=probe, C=0.1, **QUICK)
    spread = white @ rotation(shape[1])
    here = probe_transfer(spread, labels, batches, probe=probe, C=0.1, **QUICK)
    assert there.score.value > here.score.value + 0.05
    if probe == "l1":
        assert there.top_share > here.top_share + 0.05


@pytest.mark.parametrize("probe", PROBES)
def test_what_is_there_is_found_and_what_is_not_is_chance(probe):
    Z, labels, batches = wells(0, effect=30.0)
    sure = probe_transfer(Z, labels, batches, probe=probe, **QUICK)
    assert sure.score == (1.0, 1.0, 1.0) and sure.auroc == (1.0, 1.0, 1.0)
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((600, 4))
    labels, batches = rng.permuted(np.tile(list("abc"), 200)), np.arange(600) % 10
    none = probe_transfer(noise, labels, batches, probe=probe, **QUICK)
    assert none.chance == pytest.approx(1 / 3)
    assert abs(none.score.value - 1 / 3) < 5 * np.sqrt(2 / 9 / 600)
    assert none.score.low < none.score.value < none.score.high
    assert none.auroc is None and none.batch_share < 0.02 and none.label_share < 0.02


def test_what_only_marks_batches_does_not_transfer():
    """Labels mostly of one batch each: learnt from the batch, they fail in others."""
    rng = np.random.default_rng(0)
    batches = np.repeat(np.arange(4), 50)
    labels = np.where(rng.random(200) < 0.9, batches % 2, 1 - batches % 2)
    Z = 5 * np.eye(4)[batches] + 0.1 * rng.standard_normal((200, 4))
    found = probe_transfer(Z, labels, batches, probe="l2", **QUICK)
    assert found.score.value < 0.65
    assert found.batch_share > 0.9 and found.label_share < 0.01


@pytest.mark.parametrize("probe", ["l1", "l2"])
def test_units_offsets_names_and_order_are_nothing(probe):
    Z, labels, batches = wells(1, n_labels=4)
    truth = probe_transfer(Z, labels, batches, probe=probe, **QUICK)
    order = np.random.default_rng(0).permutation(len(Z))
    renamed = np.array([f"z{name}" for name in labels], dtype=object)
    weeks = np.array(["e", "d", "c", "b", "a"])[batches]
    changes = [
        (1e-6 * Z + 40, labels, batches),
        (Z * 2.0**900, labels, batches),
        (Z * 2.0**-900, labels, batches),
        (Z[order], labels[order], batches[order]),
        (Z, renamed, batches.astype(float)),
        (pd.DataFrame(Z), pd.Series(labels), pd.Series(batches, dtype="category")),
        (Z, labels, weeks),
    ]
    for change in changes:
        found = probe_transfer(*change, probe=probe, **QUICK)
        assert found.score.value == pytest.approx(truth.score.value, abs=1e-9)
        assert found.batch_share == pytest.approx(truth.batch_share, rel=1e-7)
        assert found.top_share == pytest.approx(truth.top_share, rel=1e-7)
    assert found.batch_names.tolist() == list("abcde")
    assert np.allclose(found.batch_scores, truth.batch_scores[::-1])


def test_seeds_and_threads():
    import joblib

    Z, labels, batches = wells(0, n_batches=3)
    one, two = (
        probe_transfer(Z, labels, batches, probe="tree", n_resamples=50, random_state=s)
        for s in (0, 0)
    )
    assert one.score == two.score
    with joblib.parallel_config("threading"):
        other = probe_transfer(
            Z, labels, batches, probe="tree", n_resamples=50, n_jobs=2, random_state=0
        )
    assert other.score == one.score


def test_labels_of_one_batch_are_left_out_by_name():
    Z, labels, batches = wells(0, n_labels=4)
    labels = labels.copy()
    only = (batches == 2) & (labels == "cold")
    labels[(labels == "cold") & ~only] = "ctrl"
    with pytest.warns(UserWarning, match="Labels in one batch only: 'cold'"):
        found = probe_transfer(Z, labels, batches, probe="l2", **QUICK)
    assert found.left_out == ("cold",)
    assert found.label_names.tolist() == ["ctrl", "drug", "heat"]
    assert found.batch_sizes.sum() == len(Z) - only.sum()
    rest = probe_transfer(
        Z[~only], labels[~only], batches[~only], probe="l2", **QUICK
    )  # fmt: skip
    assert found.score == rest.score and rest.left_out == ()
    # a batch all of whose labels are its own is not scored at all
    labels[batches == 4] = "own"
    with pytest.warns(UserWarning, match="'cold', 'own'"):
        found = probe_transfer(Z, labels, batches, probe="l2", **QUICK)
    assert found.batch_names.tolist() == [0, 1, 2, 3]
    assert "not scored (one batch only): 2" in str(found)


def test_intervals_are_of_batches():
    """Copies of one batch leave nothing uncertain, whatever the number of rows."""
    Z, labels, _ = wells(0, n_batches=1, n_rows=40)
    copies = np.concatenate([Z] * 4), np.tile(labels, 4), np.repeat(range(4), 40)
    same = probe_transfer(*copies, probe="l2", **QUICK)
    assert same.score.low == pytest.approx(same.score.high)
    assert same.auroc.low == pytest.approx(same.auroc.high)
    found = probe_transfer(*wells(0), probe="l2", confidence_level=0.5, **QUICK)
    wide = probe_transfer(*wells(0), probe="l2", **QUICK)
    assert wide.score.low < found.score.low <= found.score.high < wide.score.high
    assert wide.score.value == found.score.value


def test_batches_of_one_label_have_no_pairs():
    Z, _, batches = wells(0)
    labels = np.array(["a", "b", "a", "b", "a"])[batches]
    found = probe_transfer(Z, labels, batches, probe="l2", **QUICK)
    assert found.auroc is None and found.label_share == 0.0
    # a batch is scored by the labels that it has
    recalls = [found.batch_scores[[0, 2, 4]].mean(), found.batch_scores[[1, 3]].mean()]
    assert np.allclose(found.label_scores, recalls)
    assert "AUROC" not in str(found)


# Shares of the variation.


def residual(Z, *factors):
    """Sum of squares left by least squares on columns of ones for each label."""
    design = np.concatenate([np.eye(f.max() + 1)[f] for f in factors], axis=1)
    left = Z - design @ np.linalg.lstsq(design, Z, rcond=None)[0]
    return (left**2).sum(axis=0), len(Z) - np.linalg.matrix_rank(design)


@pytest.mark.parametrize("seed", range(3))
def test_shares_against_least_squares(seed):
    Z, names, batches = wells(seed, n_labels=4)
    labels = np.unique(names, return_inverse=True)[1]
    # one label that batches nest, one batch short of two labels
    labels[batches == 3], labels[(batches == 1) & (labels == 2)] = 2, 0
    total, _ = residual(Z, np.zeros(len(Z), int))
    of_batch, free_batch = residual(Z, batches)
    rest, free = residual(Z, batches, labels)
    noise = rest / free
    found = variation_shares(Z, labels, batches)
    assert np.allclose(found.batch, (total - of_batch - 4 * noise) / total)
    degrees = free_batch - free
    assert np.allclose(found.label, (of_batch - rest - degrees * noise) / total)


def test_shares_of_noise_have_mean_zero_and_of_effects_their_size():
    rng = np.random.default_rng(0)
    batches, labels = np.repeat(np.arange(8), 6), np.tile(np.arange(3), 16)
    noise = variation_shares(rng.standard_normal((48, 4000)), labels, batches)
    for share in noise:
        assert abs(share.mean()) < 4 * share.std() / np.sqrt(4000)
    batches, labels = np.repeat(np.arange(200), 60), np.tile(np.arange(60), 200)
    Z = rng.standard_normal((12000, 30)) + np.sqrt(3) * rng.standard_normal((200, 30))[
        batches
    ] + rng.standard_normal((60, 30))[labels]  # fmt: skip
    found = variation_shares(Z, labels, batches)
    assert found.batch.mean() == pytest.approx(3 / 5, abs=0.03)
    assert found.label.mean() == pytest.approx(1 / 5, abs=0.03)


def test_constant_features_have_no_share():
    Z, names, batches = wells(0)
    labels = np.unique(names, return_inverse=True)[1]
    rounding = 0.1 + 1e-15 * np.random.default_rng(0).standard_normal(len(Z))
    both = variation_shares(np.c_[Z, rounding], labels, batches)
    one = variation_shares(Z, labels, batches)
    assert np.allclose(both.label, [*one.label, 0]) and both.batch[-1] == 0
    large = variation_shares(Z * np.logspace(-200, 200, 6), labels, batches)
    assert np.allclose(large.label, one.label) and np.allclose(large.batch, one.batch)


def test_no_degree_of_freedom_no_shares():
    Z = np.random.default_rng(0).standard_normal((8, 2))
    labels, batches = np.tile(range(4), 2), np.repeat([0, 1], 4)
    assert variation_shares(Z[:4], labels[:4], labels[:4]) is None
    assert variation_shares(Z, labels, batches) is not None
    # a chain: each row tells of nothing but its own batch and label
    labels, batches = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])
    lone = probe_transfer(Z[:4], labels, batches, probe="l2", n_resamples=9)
    assert lone.batch_share is None and lone.top_share is None
    assert "variation" not in str(lone)


def test_top_share_by_hand():
    shares = np.array([0.1, -0.2, 0.5, 0.4, 0.0, 0.0, 0.0, 0.0])
    assert top_share(shares, 0.25) == pytest.approx(0.9)
    assert top_share(shares, 1.0) == 1.0
    assert top_share(shares, 0.01) == pytest.approx(0.5)
    assert top_share(np.ones(12), 0.25) == pytest.approx(0.25)
    assert top_share(np.ones(25), 0.28) == pytest.approx(7 / 25)
    assert top_share(-shares * (shares > 0), 0.25) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batches": np.zeros(150)}, "batches has the one value"),
        ({"labels": np.arange(150)}, "Only 0 of the 150 labels occur in two batches"),
        ({"labels": np.zeros(150)}, "Only 1 of the 1 labels"),
        ({"labels": np.zeros(9)}, r"labels must have one label a row, shape \(150,\)"),
        ({"batches": [None] * 150}, "batches has no label in row 0"),
        (
            {"labels": [*"ab" * 74, "a", np.nan]},
            "labels has no label in row 149",
        ),
        ({"labels": [1, *"ab" * 74, "a"]}, "row 0 has 1 and row 1 'a'"),
        ({"labels": np.array([1, *"ab" * 74, "a"], object)}, "row 0 has 1 and row 1"),
        ({"Z": np.full((150, 2), np.nan)}, "Input Z contains NaN: first in column 0"),
        ({"Z": np.full((150, 2), 0.1)}, r"All rows of Z are equal \(column 0 is 0.1"),
        ({"probe": "l3"}, "'probe' parameter"),
        ({"C": 0}, "'C' parameter"),
        ({"top_fraction": 0}, "'top_fraction' parameter"),
    ],
)
def test_wrong_input_is_named(change, message):
    Z, labels, batches = wells(0)
    arguments = {"Z": Z, "labels": labels, "batches": batches, **QUICK, **change}
    with pytest.raises(ValueError, match=message):
        probe_transfer(**arguments)


def test_frames_of_another_index_are_refused():
    Z, labels, batches = wells(0)
    shuffled = pd.Series(labels).sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match=r"labels and Z are pandas.*labels.loc\[Z.ind"):
        probe_transfer(pd.DataFrame(Z), shuffled, batches)


@pytest.mark.data
def test_mechanisms_of_action_of_weeks_left_out(real_data):
    """The L2 probe ties between whitened arms; two mechanisms are of one week."""
    wells_ = real_data("bbbc021_ljosa_wells.npz")
    X = wells_["features"].astype(np.float64)
    X = whitened((X - X.mean(axis=0))[:, X.std(axis=0) > 0][:, ::9])[:, :30]
    with pytest.warns(UserWarning, match="'Cholesterol-lowering', 'Kinase inhibitors'"):
        there, here = (
            probe_transfer(A, wells_["moa"], wells_["week"], probe="l2", **QUICK)
            for A in (X, X @ rotation(30))
        )
    assert there.score == here.score
    assert there.score.value > 3 * there.chance
    assert here.batch_share == pytest.approx(there.batch_share, abs=1e-9)
