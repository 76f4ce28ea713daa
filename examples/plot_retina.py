"""
Two collective variables of a retina
====================================

The cells of a retina fire together more often than by chance. How much of that do two
collective variables account for?
"""

# %%
# Binary words
# ------------
# A word says which cells fired within 20 ms. Recorded words are those of the 40 most
# active cells of a salamander retina that saw one movie 297 times (Tkacik et al., PLoS
# Comput. Biol. 10:e1003408, 2014; data by Marre et al., doi:10.15479/AT:ISTA:61), if
# the folder that the environment variable SKIDENT_TEST_DATA names has the file.
# **Without it the words are generated**, by a generalised Hopfield model of 40 cells
# with two patterns: the logit of a cell is the sum of a constant and of two fields that
# are cut off at zero. The output and the title of the figure say which it was.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skident import MeanFieldVAE

file = Path(os.environ.get("SKIDENT_TEST_DATA", "")) / "retina_fishmovie32_160.npz"
if file.is_file():
    source, spikes = "recorded words", np.load(file)["bint"]
    spikes = spikes[:, np.argsort(-spikes.mean(axis=(0, 2)))[:40]].transpose(0, 2, 1)
    # every fourth repeat of the movie, and the one after it
    train, test = (spikes[k::4].reshape(-1, 40) for k in (0, 1))
else:
    source, rng = "generated words", np.random.default_rng(0)
    fields = np.maximum(rng.standard_normal((80_000, 2)), 0)
    logits = -4.2 + fields @ rng.gamma(0.6, 2.5, (2, 40))
    words = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.uint8)
    train, test = words[::2], words[1::2]
print(f"{source}: {len(train):,} to train on, {len(test):,} to test on")

# %%
# Two latents
# -----------
# What a model is worth is its log-likelihood of words that it was not trained on. Four
# passes are few: 20, over all even repeats of the recording, gain another 0.2 nats.

p = train.mean(axis=0)
unique, counts = np.unique(test, axis=0, return_counts=True)
models = {"independent cells": unique @ np.log(p) + (1.0 - unique) @ np.log1p(-p)}
for n_latents, name in ((1, "one latent"), (2, "two latents")):
    vae = MeanFieldVAE(n_latents, max_epochs=4, random_state=0).fit(train)
    models[name] = vae.score_samples(unique)
for name, log_p in models.items():
    print(f"{name:20}{-np.average(log_p, weights=counts):7.3f} nats a word")

# %%
# What they account for
# ---------------------
# Left, the collective variables of each word; middle, how many cells fire at once;
# right, how often each word comes that came at least ten times. On the diagonal a model
# predicts it.

drawn = {
    "independent cells": np.random.default_rng(1).random(test.shape) < p,
    "two latents": vae.sample(len(test), random_state=0),
}
styles = {"independent cells": ("0.5", "s"), "two latents": ("#0072B2", "o")}
fig, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
fig.get_layout_engine().set(wspace=0.08)
dots = axes[0].scatter(
    *vae.transform(test[:5000]).T, c=test[:5000].sum(axis=1), cmap="viridis", s=3
)
fig.colorbar(dots, ax=axes[0], label="cells that fire", ticks=range(0, 40, 5))
axes[0].set(xlabel="first latent", ylabel="second latent")
seen = np.bincount(test.sum(axis=1), minlength=41) / len(test)
axes[1].semilogy(seen, "k.", label="test words")
often = counts >= 10
for name, (colour, marker) in styles.items():
    shares = np.bincount(drawn[name].sum(axis=1), minlength=41) / len(test)
    axes[1].semilogy(shares, c=colour, label=name)
    axes[2].loglog(
        counts[often] / len(test), np.exp(models[name][often]), marker, ms=3, c=colour,
        alpha=0.6, mew=0, label=name,
    )  # fmt: skip
axes[2].plot([1e-5, 1], [1e-5, 1], c="k", lw=1)
axes[1].set(xlabel="cells that fire in a word", ylabel="share of words", xlim=(-1, 41))
axes[2].set(xlabel="observed share of a word", ylabel="predicted share", ylim=(1e-8, 1))
axes[1].legend(frameon=False, loc="upper right")
axes[2].legend(frameon=False, loc="upper left")
fig.suptitle(f"40 cells, {source}")
plt.show()
