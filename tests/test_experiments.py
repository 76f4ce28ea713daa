"""The experiments of the documentation, at small size."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from skident.metrics import probe_transfer

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "benchmarks"


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pairs():
    pytest.importorskip("torch")
    return load_script("exp_pretrained_pairs")


@pytest.fixture(scope="module")
def batches():
    return load_script("exp_batch_effects")


# Pretrained pairs


def test_efficiencies_are_those_of_the_paper(pairs):
    found = [pairs.efficiency(errors) for errors in pairs.PAPER.values()]
    assert np.round(found, 2).tolist() == [0.25, 0.59, 0.38, 0.40]


def test_leading_directions_hold_the_share_and_no_fewer_would(pairs):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((500, 6)) * [5.0, 4.0, 3.0, 0.1, 0.1, 0.1] + 7.0
    Z = Z @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
    variance = np.sort(np.linalg.eigvalsh(np.cov(Z.T)))[::-1]
    share = variance[:2].sum() / variance.sum()
    assert pairs.leading(Z, share - 1e-6).shape == (500, 2)
    assert pairs.leading(Z, share + 1e-6).shape == (500, 3)
    cut = pairs.leading(Z, 0.99)
    assert cut.var(axis=0).sum() == pytest.approx(1)
    assert np.abs(cut.mean(axis=0)).max() < 1e-12


def test_row_of_a_turned_copy_shows_what_each_group_can(pairs, capsys):
    rng = np.random.default_rng(0)
    Z = rng.laplace(size=(800, 4)) * [4.0, 3.0, 2.0, 1.0]
    turned = 9.0 * Z @ np.linalg.qr(rng.standard_normal((4, 4)))[0] + 3.0
    kind, errors, chance = pairs.compare("copy", "turned", Z, turned, 20)
    permutation, ica, rigid, linear = errors
    assert kind == "copy"
    assert max(rigid, linear) < 1e-10
    assert ica < 0.03 < permutation < chance
    shown = capsys.readouterr().out
    assert "copy" in shown and "1.00  enough rows" in shown  # CKA, verdict


def test_networks_trained_here_agree_better_than_chance(pairs, tmp_path, capsys):
    images, digit, name = pairs.load_images("")
    assert name == "digits" and images.max() == 1
    networks = pairs.train(images[:600], digit[:600], range(2), 4)
    assert {kind: Z.shape[1] for kind, (Z, _) in networks.items()} == {
        "autoencoder": 16, "masked": 16, "small": 8, "classifier": 16,
    }  # fmt: skip
    listed = list(pairs.pairs_of(networks))
    assert [name for _, name, *_ in listed] == ["0 and 1"] * 3 + ["seed 0", "seed 1"]
    rows = [pairs.compare(*pair, 10) for pair in (listed[0], listed[2], listed[3])]
    for _, errors, chance in rows:
        assert errors[2] < 0.8 * chance
    means = pairs.summarise(rows)
    assert list(means) == [kind for kind, *_ in rows]
    np.testing.assert_allclose(means[rows[0][0]][:4], rows[0][1])
    assert "MAE, two releases" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    pairs.draw(tmp_path / "pairs.png", means)
    assert (tmp_path / "pairs.png").stat().st_size > 1000


def test_study_of_words_takes_representations_of_any_width(pairs, capsys):
    rng = np.random.default_rng(0)
    Z = rng.laplace(size=(300, 4))
    wide = np.c_[Z @ np.linalg.qr(rng.standard_normal((4, 4)))[0], np.zeros((300, 3))]
    study = pairs.study_of_words({"4-d": Z, "7-d": wide}, 0.999, 10)
    assert study.pair_table_["rigid"].max() < 1e-10
    assert "(4, 4 columns)" in capsys.readouterr().out


def test_words_are_left_out_where_there_are_none(pairs, tmp_path):
    assert pairs.load_words("") == pairs.load_words(tmp_path) == {}


@pytest.mark.data
def test_words_that_differ_more_in_width_agree_beyond_chance(pairs, real_data, capsys):
    words = pairs.load_words(Path(real_data("mnist_t10k.npz").fid.name).parent)
    assert [Z.shape for Z in words.values()] == [(5000, d) for d in (50, 100, 150, 200)]
    cut = [pairs.leading(Z, 0.8)[:1000] for Z in words.values()][:2]
    _, errors, chance = pairs.compare("chars2vec", "first two", *cut, 10)
    assert errors[3] < errors[2] < errors[0] < chance


# Batch effects


def screen(seed, effect, n_wells=360):
    """Traits of wells: drugs act by rows of ``effect``, weeks shift everything."""
    rng = np.random.default_rng(seed)
    week, moa = rng.integers(6, size=n_wells), rng.integers(5, size=n_wells)
    traits = rng.laplace(size=(n_wells, 8)) + effect[moa]
    traits += 0.5 * rng.standard_normal((6, 8))[week]
    names = np.array(["DMSO", "a", "b", "c", "d"])
    return traits, names[moa], np.char.add("Week", week.astype(str)), rng


@pytest.fixture(scope="module")
def sparse_screen():
    """One trait a drug: 20 mixtures of the traits and a little noise."""
    traits, moa, week, rng = screen(
        0, 4.0 * np.eye(8)[:5] * (np.arange(5) > 0)[:, None]
    )
    X = traits @ rng.standard_normal((8, 20))
    return X + 0.01 * rng.standard_normal(X.shape), moa, week


def test_arms_are_whitened_within_the_share(batches, sparse_screen):
    arms = batches.make_arms(sparse_screen[0], 0.9999, range(2))
    assert {name: len(versions) for name, versions in arms.items()} == {
        "PCA": 1, "whitened": 1, "ICA": 2, "rotated": 2,
    }  # fmt: skip
    for name in batches.WHITE:
        for Z in arms[name]:
            assert Z.shape[1] == 8  # the noise beyond the traits is cut
            np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(8), atol=1e-9)
    plain = arms["PCA"][0].var(axis=0)
    assert plain[0] > 2 * plain[-1]
    assert np.abs(arms["rotated"][0] - arms["rotated"][1]).max() > 0.1


def test_l2_probe_ties_over_whitened_arms_only(batches, sparse_screen):
    X, moa, week = sparse_screen
    arms = batches.make_arms(X, 0.9999, range(2))
    assert batches.largest_difference(arms, moa, week) < 1e-6
    scores = {
        batches.measure(arms[name], moa, week, ("l2",), 10)["score"]["l2"][0]
        for name in batches.WHITE
    }
    assert len(scores) == 1
    # Planted faults: an arm that is scaled after the rotation, one that is not white.
    for fault in (arms["ICA"][0] * np.linspace(0.3, 1.0, 8), arms["PCA"][0]):
        broken = arms | {"ICA": [fault]}
        assert batches.largest_difference(broken, moa, week) > 1e-3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ica_concentrates_biology_that_acts_along_components(batches, seed):
    effect = np.zeros((5, 8))
    effect[1:3, 0] = effect[3:, 1] = 4.0, -4.0  # two traits of eight
    traits, moa, week, rng = screen(seed, effect)
    X = traits @ rng.standard_normal((8, 20))
    arms = batches.make_arms(X, 0.99999, range(2))
    ica, rotated = (
        batches.measure(arms[name], moa, week, ("l1",), 10)
        for name in ("ICA", "rotated")
    )
    assert ica["top"] > 0.9 and rotated["top"] < 0.75
    assert ica["weights"] > rotated["weights"] + 0.1


def test_area_is_that_of_one_mechanism_against_controls(batches, sparse_screen):
    X, moa, week = sparse_screen
    areas = batches.against_control(X, moa, week)
    assert areas.shape == (4,) and areas.min() > 0.8
    shuffled = np.random.default_rng(0).permutation(moa)
    assert abs(batches.against_control(X, shuffled, week).mean() - 0.5) < 0.15
    rows = np.isin(moa, ("a", "DMSO"))
    alone = probe_transfer(X[rows], moa[rows], week[rows], random_state=0)
    assert areas[0] == pytest.approx(alone.auroc.value)


def test_controls_of_each_plate_come_to_zero(batches):
    rng = np.random.default_rng(0)
    X, plate = rng.standard_normal((60, 3)), np.repeat(["p", "q"], 30)
    moa = np.tile(["DMSO", "a", "b"], 20)
    corrected = batches.less_controls(X + (plate == "q")[:, None] * 5.0, moa, plate)
    for name in "pq":
        controls = corrected[(plate == name) & (moa == "DMSO")]
        np.testing.assert_allclose(controls.mean(axis=0), 0, atol=1e-12)
    # One shift a plate and nothing else.
    shift = corrected - X
    assert np.ptp(shift[:30], axis=0).max() < 1e-12 < np.ptp(shift, axis=0).max()


def test_interval_of_differences_holds_their_mean(batches):
    mean, low, high = batches.interval(np.linspace(-1.0, 2.0, 12), 500)
    assert mean == pytest.approx(0.5) and low < 0.5 < high
    assert batches.interval(np.full(5, 0.25), 10) == (0.25, 0.25, 0.25)


def test_whole_experiment_runs_on_a_small_file(
    batches, sparse_screen, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("matplotlib")
    X, moa, week = (values[:150] for values in sparse_screen)
    alone = moa.astype("<U25")
    alone[:5] = batches.ONE_WEEK[0]
    np.savez(
        tmp_path / "bbbc021_ljosa_wells.npz",
        features=np.c_[X, np.ones(len(X))].astype(np.float32), moa=alone, week=week,
        plate=week,
    )  # fmt: skip
    figure = tmp_path / "batches.png"
    options = f"--data {tmp_path} --seeds 1 --variance 0.99 --resamples 10"
    options += f" --probes l1 l2 --figure {figure}"
    monkeypatch.setattr(sys, "argv", ["exp_batch_effects.py", *options.split()])
    batches.main()
    shown = capsys.readouterr().out
    assert shown.startswith("145 wells")
    assert shown.count("whitened arms differ in L2 scores by 0.0e+00") == 2
    assert figure.stat().st_size > 1000


@pytest.mark.data
def test_weeks_of_the_real_wells_leave_ten_mechanisms(batches, real_data):
    folder = Path(real_data("mnist_t10k.npz").fid.name).parent
    features, moa, week, plate = batches.load(folder)
    assert features.shape == (604, 516)
    treated = moa != batches.CONTROL
    assert len(np.unique(moa[treated])) == 10
    weeks = [len(np.unique(week[moa == name])) for name in np.unique(moa[treated])]
    assert min(weeks) == 2 and max(weeks) == 3
    X = batches.standardised(batches.less_controls(features, moa, plate))
    arms = batches.make_arms(X, 0.8, range(1))
    assert batches.largest_difference(arms, moa, week) < 1e-6
    found = batches.measure(arms["ICA"], moa, week, ("l1",), 10)
    assert found["score"]["l1"][1] > 0.2  # chance is 0.1
