"""Does ICA help a probe to carry over to batches that it has not seen?

Nelson, Fumero, Karaletsos and Locatello (ICLR 2026) report that after PCA and ICA a
probe of microscopy embeddings does better on batches it was not trained on, and that
fewer features hold the biology, while a random rotation of the principal components
gains nothing. Here the question is asked of the wells of BBBC021 (CellProfiler features
of MCF-7 cells; Ljosa et al. 2013): the mechanism of action, leaving one week out.

Each treatment was run in one week, so that a probe sees neither the week nor the
treatment of the wells it is scored on. Mechanisms of one week (kinase inhibitors,
cholesterol-lowering) are left out. Control wells (DMSO) are no class of this probe;
they take part in what needs no labels: columns are standardised, and PCA and ICA
fitted, on all wells of all weeks. Everything is done twice: as it is, and with each
plate's mean of its six control wells subtracted first, the usual correction.

Arms: raw; PCA; PCA, whitened; that and ICA; that and random rotations. Directions of
low variance are cut before whitening: those beyond 95 %, and beyond 99 % of the
variance. ICA starts from several seeds (best of three starts), rotations are drawn from
several.

Printed for each arm, means over seeds: balanced accuracy of the L1 probe and of a
forest, with intervals over weeks; of the L2 probe, which cannot tell whitened arms
apart if the harness is right: their largest difference follows. Then the area under the
ROC curve of one mechanism against control wells of the same week, the mean over
mechanisms, L1 probe: the nearest to the paper's. Then the Hoyer sparsity of wells, and
of the weights of an L1 probe of all wells; and the part of the variation between
mechanisms that the top 25 % of features hold. Last, differences of ICA and random
rotations, week by week, with intervals over weeks.

Data is ``bbbc021_ljosa_wells.npz`` in the folder of ``--data`` or $SKIDENT_TEST_DATA.

    python examples/benchmarks/exp_batch_effects.py --data DIR --figure batches.png
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from skident import WhitenICA
from skident.metrics import hoyer_sparsity, probe_transfer

CONTROL = "DMSO"
ONE_WEEK = ("Kinase inhibitors", "Cholesterol-lowering")
PROBES = ("l1", "tree", "l2")
WHITE = ("whitened", "ICA", "rotated")
# Of the paper, on OpenPhenom embeddings of RxRx3-core: area under the ROC curve of one
# gene (EIF3H) against control, and biological variation in the top 25 % of features.
PAPER = {
    "raw": (0.682, 0.163),
    "PCA": (0.724, 0.332),
    "ICA": (0.749, 0.386),
    "rotated": (0.725, 0.287),
}


def load(folder):
    """Return features, mechanisms, weeks and plates of the wells that take part."""
    archive = np.load(Path(folder) / "bbbc021_ljosa_wells.npz")
    kept = ~np.isin(archive["moa"], ONE_WEEK)
    names = ("features", "moa", "week", "plate")
    features, *labels = (archive[name][kept] for name in names)
    return features.astype(float), *labels


def less_controls(features, moa, plate):
    """Subtract from each plate the mean of its control wells."""
    corrected = features.copy()
    for name in np.unique(plate):
        rows = plate == name
        corrected[rows] -= features[rows & (moa == CONTROL)].mean(axis=0)
    return corrected


def standardised(features):
    spread = features.std(axis=0)
    return (features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0]


def make_arms(X, share, seeds):
    """Return the representations of each arm, one a seed, by its name."""
    U, sizes, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    held = np.cumsum(sizes**2) / np.sum(sizes**2)
    k = int(np.searchsorted(held, share)) + 1
    white = U[:, :k] * np.sqrt(len(X))
    arms = {"PCA": [U[:, :k] * sizes[:k]], "whitened": [white]}
    arms |= {"ICA": [], "rotated": []}
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # components found in no half
            ica = WhitenICA(n_restarts=3, random_state=seed).fit(white)
        arms["ICA"].append(ica.transform(white))
        normal = np.random.default_rng(seed).standard_normal((k, k))
        arms["rotated"].append(white @ np.linalg.qr(normal)[0])
    return arms


def scaled(Z):
    Z = Z - Z.mean(axis=0)
    return Z / np.sqrt(np.mean(Z**2))


def sparsity_of_weights(Z, labels):
    """Return the mean Hoyer sparsity of the weights of an L1 probe, class by class."""
    changed = LogisticRegression().get_params()["penalty"] == "deprecated"
    penalty = {"l1_ratio": 1.0} if changed else {"penalty": "l1"}
    probe = OneVsRestClassifier(
        LogisticRegression(
            solver="liblinear", class_weight="balanced", random_state=0, **penalty
        )
    ).fit(scaled(Z), labels)
    weights = np.concatenate([one.coef_ for one in probe.estimators_])
    return hoyer_sparsity(weights[np.abs(weights).max(axis=1) > 0], axis=1).mean()


def against_control(Z, moa, week):
    """Return the area under the ROC curve of each mechanism against control wells."""
    areas = []
    for mechanism in np.unique(moa[moa != CONTROL]):
        weeks = np.unique(week[moa == mechanism])
        rows = np.isin(week, weeks) & np.isin(moa, (mechanism, CONTROL))
        found = probe_transfer(
            Z[rows], moa[rows], week[rows], n_resamples=1, random_state=0
        )
        areas.append(found.auroc.value)
    return np.array(areas)


def measure(versions, moa, week, probes, n_resamples):
    """Return what is measured of one arm: means over its versions, one a seed."""
    treated = moa != CONTROL
    row = {"width": versions[0].shape[1], "weeks": {}, "score": {}, "reach": {}}
    for probe in probes:
        found = [
            probe_transfer(
                Z[treated], moa[treated], week[treated], probe=probe,
                n_resamples=n_resamples, random_state=0,
            )
            for Z in versions
        ]  # fmt: skip
        row["score"][probe] = np.mean([one.score for one in found], axis=0)
        values = [one.score.value for one in found]
        row["reach"][probe] = min(values), max(values)
        row["weeks"][probe] = np.mean([one.batch_scores for one in found], axis=0)
    shares = [(one.batch_share, one.label_share, one.top_share) for one in found]
    row["batch"], row["label"], row["top"] = np.mean(shares, axis=0)
    row["areas"] = np.mean([against_control(Z, moa, week) for Z in versions], axis=0)
    row["wells"] = np.mean(
        [hoyer_sparsity(scaled(Z)[treated], axis=1).mean() for Z in versions]
    )
    row["weights"] = np.mean(
        [sparsity_of_weights(Z[treated], moa[treated]) for Z in versions]
    )
    return row


def largest_difference(arms, moa, week):
    """Return how far probabilities of L2 probes of whitened arms are apart at most."""
    treated, last = moa != CONTROL, week == np.unique(week)[-1]
    found = []
    for name in WHITE:
        for Z in arms[name]:
            probe = LogisticRegression(
                solver="newton-cg", tol=1e-9, max_iter=1000, class_weight="balanced"
            ).fit(Z[treated & ~last], moa[treated & ~last])
            found.append(probe.predict_proba(Z[treated & last]))
    return np.ptp(found, axis=0).max()


def interval(differences, n_resamples):
    """Return mean and bootstrap interval of differences, one a week (or mechanism)."""
    rng = np.random.default_rng(0)
    picks = rng.integers(len(differences), size=(n_resamples, len(differences)))
    low, high = np.quantile(differences[picks].mean(axis=1), (0.025, 0.975))
    return differences.mean(), low, high


def show(name, row):
    scores = "  ".join(
        "{:.3f} [{:.3f}, {:.3f}]".format(*score) for score in row["score"].values()
    )
    print(
        f"{name:<9}{row['width']:4d}  {scores}  {row['areas'].mean():.3f}"
        f"  {row['wells']:.2f} {row['weights']:.2f}"
        f"  {row['batch']:.2f} {row['label']:.2f} {row['top']:.3f}",
        flush=True,
    )


def show_checks(table, arms, moa, week, n_resamples):
    """Print the check of the harness, and ICA against random rotations."""
    if "l2" in table["ICA"]["score"]:
        tied = [table[name]["score"]["l2"] for name in WHITE]
        print(
            f"harness: whitened arms differ in L2 scores by {np.ptp(tied, 0).max():.1e}"
            f", in probabilities by {largest_difference(arms, moa, week):.1e}"
        )
    ica, rotated = table["ICA"], table["rotated"]
    for probe in (name for name in ica["weeks"] if name != "l2"):
        gain = interval(ica["weeks"][probe] - rotated["weeks"][probe], n_resamples)
        reach = (*ica["reach"][probe], *rotated["reach"][probe])
        print(
            f"ICA less rotations, {probe}: "
            + "{:+.3f} [{:+.3f}, {:+.3f}] over weeks; ".format(*gain)
            + "seeds: {:.3f} to {:.3f}, {:.3f} to {:.3f}".format(*reach)
        )
    gain = interval(ica["areas"] - rotated["areas"], n_resamples)
    text = "{:+.3f} [{:+.3f}, {:+.3f}] over mechanisms".format(*gain)
    print(f"ICA less rotations, AUROC: {text}", flush=True)


def draw(path, tables):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, 3, figsize=(10, 3.2), sharey=True, layout="constrained"
    )
    titles = ("L1 probe", "forest", "variation in the top 25 %")
    for shift, (name, table) in zip(
        np.linspace(-0.3, 0.3, len(tables)), tables.items(), strict=True
    ):
        place = np.arange(len(table)) + shift
        for ax, probe in zip(axes, ("l1", "tree"), strict=False):
            if probe not in table["raw"]["score"]:
                continue
            scores = [row["score"][probe] for row in table.values()]
            value, low, high = np.array(scores).T
            ax.errorbar(value, place, xerr=(value - low, high - value), fmt="o", ms=4)
        top = [row["top"] for row in table.values()]
        axes[2].plot(top, place, "o", ms=4, label=name)
    for ax, title in zip(axes, titles, strict=True):
        ax.set(title=title)
    for ax in axes[:2]:
        ax.set_xlabel("balanced accuracy, week left out")
    axes[2].set_xlabel("part of that between mechanisms")
    axes[0].set_yticks(range(len(table)), table)
    axes[0].invert_yaxis()
    figure.legend(*axes[2].get_legend_handles_labels(), loc="outside right center")
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SKIDENT_TEST_DATA", ""))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--variance", type=float, nargs="+", default=[0.95, 0.99])
    parser.add_argument("--probes", nargs="+", default=PROBES, choices=PROBES)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--figure", default="")
    args = parser.parse_args()
    features, moa, week, plate = load(args.data)
    print(f"{len(moa)} wells, {(moa != CONTROL).sum()} of them treated")
    print(
        f"{'arm':<9} width  "
        + "".join(f"{probe + ' [interval]':<22}" for probe in args.probes)
        + "AUROC  Hoyer: wells, weights  shares: week, mechanism, top 25 %"
    )
    tables = {}
    corrected = less_controls(features, moa, plate)
    for name, table in (("as they are", features), ("less controls", corrected)):
        X = standardised(table)
        raw = measure([X], moa, week, args.probes, args.resamples)
        for share in args.variance:
            title = f"{name}, {share:.0%}"
            print(f"\n{title} of the variance")
            tables[title] = {"raw": raw}
            show("raw", raw)
            arms = make_arms(X, share, range(args.seeds))
            for arm, versions in arms.items():
                row = measure(versions, moa, week, args.probes, args.resamples)
                tables[title][arm] = row
                show(arm, row)
            show_checks(tables[title], arms, moa, week, args.resamples)
    print("\nin the paper, on other data: AUROC of one gene, top 25 %")
    for arm, values in PAPER.items():
        print(f"{arm:<9}" + "".join(f"{value:8.3f}" for value in values))
    if args.figure:
        draw(args.figure, tables)


if __name__ == "__main__":
    main()
