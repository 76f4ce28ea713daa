"""
Does ICA help a probe across batches?
=====================================

A probe that was trained on some weeks of a screen is to recognise a drug in another
week. PCA, ICA or neither before it? A random rotation is the control: what it does as
well is no merit of ICA.
"""

# %%
# Two screens
# -----------
# Wells of four weeks have 24 hidden traits, mostly near zero and seldom far from it.
# Four drugs act on them, and each week shifts all of them. Measured are 60 mixtures of
# the traits, with noise. In the first screen each drug acts on one trait, in the second
# as strongly on a mixture of all.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from skident import WhitenICA
from skident.metrics import hoyer_sparsity, probe_transfer

n_wells, n_weeks, n_traits, n_drugs = 300, 4, 24, 4
rng = np.random.default_rng(0)
week = rng.integers(n_weeks, size=n_wells)
drug = rng.integers(n_drugs, size=n_wells)
turn = np.linalg.qr(rng.standard_normal((n_traits, n_traits)))[0]
effects = {"one trait": np.eye(n_traits)[:n_drugs], "a mixture": turn[:n_drugs]}
mixing = rng.standard_normal((n_traits, 60))


def measure(effect):
    """Return the features of a screen in which drugs have these effects."""
    traits = rng.laplace(size=(n_wells, n_traits))
    traits *= np.abs(rng.laplace(size=traits.shape))
    traits = traits / traits.std() + 2.0 * effect[drug]
    traits += 0.5 * rng.standard_normal((n_weeks, n_traits))[week]
    return traits @ mixing + rng.standard_normal((n_wells, 60))


def represent(X):
    """Return what a probe is given. Noise is cut before the rest is whitened."""
    white = PCA(n_traits, whiten=True).fit_transform(X)
    turn = np.linalg.qr(rng.standard_normal((n_traits, n_traits)))[0]
    return {
        "raw": X / X.std(axis=0),
        "PCA, whitened": white,
        "PCA, rotated": white @ turn,
        "PCA, ICA": WhitenICA().fit_transform(white),
    }


# %%
# Leave one week out
# ------------------
# :func:`skident.metrics.probe_transfer` trains on all weeks but one and predicts that
# one. An L1 penalty rewards few informative features, and trees split one at a time. An
# L2 penalty cannot tell whitened data from its rotation, ICA included: there its scores
# must tie, or the pipeline is wrong. ``top_share`` is the part of the variation between
# drugs that the best quarter of the features holds.

results = {}
for name, effect in effects.items():
    print(f"drugs act on {name}      L2     L1  forest   top  Hoyer")
    for arm, Z in represent(measure(effect)).items():
        l2, l1, tree = results[name, arm] = [
            probe_transfer(Z, drug, week, probe=probe, random_state=0)
            for probe in ("l2", "l1", "tree")
        ]
        scores = "  ".join(f"{one.score.value:.3f}" for one in (l2, l1, tree))
        sparse = hoyer_sparsity(Z, axis=1).mean()
        print(f"  {arm:<23} {scores}  {tree.top_share:.2f}   {sparse:.2f}")

# %%
# Where a drug acts on one independent trait, ICA finds it, and few features hold the
# biology; where drugs act on mixtures, they do not, though wells are as sparse in
# either screen (last column). The forest gains in both: along independent axes most
# wells are near zero, so that a split sees a small shift. The L1 probe gains nothing
# over the random rotation, and the intervals over so few weeks are wide. What ICA does
# on real wells has to be measured: :doc:`/user_guide/experiments`.

fig, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
for shift, name in ((-0.15, "one trait"), (0.15, "a mixture")):
    found = {arm: probes for (case, arm), probes in results.items() if case == name}
    place = np.arange(len(found)) + shift
    for ax, column in zip(axes, (1, 2), strict=False):
        value, low, high = np.array([one[column].score for one in found.values()]).T
        ax.errorbar(value, place, xerr=(value - low, high - value), fmt="o")
    top = [one[2].top_share for one in found.values()]
    axes[2].plot(top, place, "o", label=f"drugs act on {name}")
axes[0].set(xlabel="L1 probe: balanced accuracy\nin a week left out")
axes[1].set(xlabel="forest: balanced accuracy\nin a week left out")
axes[2].set(xlabel="variation between drugs\nin the top 25 % of features")
axes[0].set_yticks(range(len(found)), found)
axes[0].invert_yaxis()
fig.legend(*axes[2].get_legend_handles_labels(), loc="outside upper center", ncols=2)
plt.show()
