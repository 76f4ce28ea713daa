"""
Two trainings of one autoencoder
================================

Train the same autoencoder twice, on the same images, from different seeds. The two
representations look different. Up to which transformations are they the same, and how
closely?
"""

# %%
# Two representations
# -------------------
# The data is scikit-learn's digits: 1797 images of 8 x 8 pixels.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skident import AutoencoderEmbedder, RigidAligner
from skident.metrics import alignment_errors

X, digit = load_digits(return_X_y=True)


def train_twice(negative_slope):
    """Return the representations of two trainings that differ by their seeds only."""
    autoencoder = AutoencoderEmbedder(
        2, hidden_layer_sizes=(64,), negative_slope=negative_slope, max_epochs=40
    )
    return [
        autoencoder.set_params(random_state=seed).fit_transform(X) for seed in (0, 1)
    ]


Z1, Z2 = train_twice(negative_slope=0.6)

# %%
# How far apart they are
# ----------------------
# Each map from one to the other is fitted on four fifths of the rows and measured on
# the rest; the unit is the diameter of the representation. ``chance`` is what the same
# procedure gives when rows are paired at random.

errors = alignment_errors(Z1, Z2, random_state=0)
print(errors)

# %%
# A rotation (with a reflection, perhaps) explains most of the difference: signs and
# order of the axes do not suffice, and the freedom of a linear map adds little.
#
# A picture
# ---------
# On the left and in the middle the two representations, on the right the first one
# moved onto the second by the best rotation, reflection and translation.

moved = RigidAligner().fit(Z1, Z2).transform(Z1)
titles = ["first training", "second training", "first, moved onto second"]
fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
for ax, Z, title in zip(axes, (Z1, Z2, moved), titles, strict=True):
    points = ax.scatter(*Z.T, c=digit, cmap="tab10", vmin=-0.5, vmax=9.5, s=4)
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")
fig.colorbar(points, ax=axes, ticks=range(10), label="digit")

# %%
# What decides it
# ---------------
# The closer the decoder is to an isometry, the closer the two trainings must be up to a
# rigid motion. Its LeakyReLU units are straight lines at slope 1; with a slope of 0.2
# below zero they bend more, and the trainings come apart.

bent = alignment_errors(*train_twice(negative_slope=0.2), random_state=0)

fig, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
place = np.arange(len(errors.transformations))
for shift, result, slope in ((-0.2, errors, 0.6), (0.2, bent, 0.2)):
    reach = np.abs(result.interval.T - result.error)
    ax.barh(place + shift, result.error, 0.38, xerr=reach, label=f"slope {slope}")
    ax.plot(result.chance, place + shift, "k|", markersize=12)
ax.set(
    xlabel="error / diameter (ticks: chance)",
    yticks=place,
    yticklabels=errors.transformations,
)
ax.invert_yaxis()
fig.legend(loc="outside right upper")
plt.show()
