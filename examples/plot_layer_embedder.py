"""
Two trainings of a classifier, and of a transformer
===================================================

No autoencoder has to be at work: any two trained networks give representations of the
same inputs. Do two trainings of a classifier agree, two of a transformer, and one with
the other?
"""

# %%
# Images, and rows of them as tokens
# ----------------------------------
# The digits of scikit-learn, 8 x 8 pixels; or MNIST, 28 x 28, if the folder in the
# environment variable SKIDENT_TEST_DATA has it.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from skident import LayerEmbedder
from skident.metrics import alignment_errors
from skident.plotting import AlignmentDisplay

mnist = Path(os.environ.get("SKIDENT_TEST_DATA", "")) / "mnist_t10k.npz"
if mnist.is_file():
    archive = np.load(mnist)
    images, digit = archive["images"][:3000] / 255, archive["labels"][:3000]
else:
    images, digit = load_digits().images / 16, load_digits().target
side = images.shape[1]
X = images.reshape(len(images), -1).astype(np.float32)
train, test, digit_train, digit_test = train_test_split(X, digit, random_state=0)


class Classifier(nn.Module):
    """Two convolutions, 16 features, ten answers."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Unflatten(1, (1, side, side)),
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(),
        )  # fmt: skip
        self.features, self.answer = nn.Linear(512, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.answer(self.features(self.body(x)))


class Transformer(nn.Module):
    """Reads the rows of an image as tokens; 16 features, ten answers."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(side, 32)
        self.places = nn.Parameter(0.1 * torch.randn(side, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
        self.features, self.answer = nn.Linear(32, 16), nn.Linear(16, 10)

    def forward(self, x):
        tokens = self.embedding(x.unflatten(1, (side, side))) + self.places
        return self.answer(self.features(self.body(tokens).mean(1)))


def train_once(make, seed, n_epochs=15):
    """Return a network trained from a seed, in plain torch."""
    torch.manual_seed(seed)
    net = make()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    rows, labels = torch.from_numpy(train), torch.from_numpy(digit_train).long()
    for _ in range(n_epochs):
        for batch in torch.randperm(len(rows)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(rows[batch]), labels[batch]).backward()
            optimizer.step()
    return net


# %%
# Features of images that no training saw
# ---------------------------------------
# :class:`skident.LayerEmbedder` runs a trained network up to a named layer. Each
# representation is divided by one number, its spread, since a rigid map changes none.

representations = {}
for make in (Classifier, Transformer):
    for seed in (1, 2):
        net, name = train_once(make, seed), f"{make.__name__.lower()} {seed}"
        Z = LayerEmbedder(net, "features").fit_transform(test)
        representations[name] = Z / Z.std(axis=0).mean()
        answer = LayerEmbedder(net, "answer").fit_transform(test).argmax(axis=1)
        print(f"{name}: {np.mean(answer == digit_test):.1%} right")

# %%
# Who agrees with whom
# --------------------
# Errors of the best map of each group, on rows that it was not fitted on, in units of
# the diameter.

results = {
    f"{one} and {other}": alignment_errors(
        representations[one], representations[other], random_state=0
    )
    for one, other in (
        ("classifier 1", "classifier 2"),
        ("transformer 1", "transformer 2"),
        ("classifier 1", "transformer 1"),
    )
}
groups = ("permutation", "rigid", "linear", "ica")
print(" " * 31 + "".join(f"{group:>12}" for group in groups))
for name, result in results.items():
    print(f"{name:<31}" + "".join(f"{error:>12.3f}" for error in result.error))

# %%
# Two classifiers are near rotations of each other: a linear map, with its larger
# freedom, leaves some three fifths of that error. Single features do not come back, as
# the errors of permutations say. Transformers are further apart, and a transformer is
# about as far from a classifier as from another transformer. All pairs are far below
# chance, which is what unrelated rows give.

fig, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for ax, (name, result) in zip(axes, results.items(), strict=True):
    AlignmentDisplay.from_errors(result, ax=ax, name=name)
plt.setp(axes, xlim=(0, max(ax.get_xlim()[1] for ax in axes)))
for ax in axes[::2]:
    ax.get_legend().remove()
plt.show()
