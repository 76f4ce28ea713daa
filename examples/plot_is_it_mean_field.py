"""
Is my data mean-field?
======================

Many variables depend on each other. Is that the work of a few collective variables,
given which all of them are independent? Two systems of 64 spins, one that passes the
test and one that fails it; and where it fails.
"""

# %%
# A system of each kind
# ---------------------
# In a Hopfield network every spin feels every other one, through three stored patterns.
# In an Ising sheet a spin feels its four neighbours only.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from skident import CondTotalCorrelation, MeanFieldVAE
from skident.datasets import make_hopfield, make_ising, make_patterns

side, n_samples = 8, 4000
patterns = make_patterns(3, side**2, random_state=0)
hopfield, _ = make_hopfield(n_samples, patterns, temperature=0.8, random_state=0)
ising, _ = make_ising(n_samples, (side, side), temperature=2.5, random_state=0)
systems = {"Hopfield network": hopfield, "Ising sheet": ising}

# %%
# The test
# --------
# The same model with three latents is trained on one half of the rows. On the other
# half :class:`skident.CondTotalCorrelation` measures which fraction u of the total
# correlation the latents leave. The last reason is a second argument: whether the
# latents hold as many nats as the two colours of a checkerboard know of each other.
# (The ELBO is the quickest objective, and does here.)

model = MeanFieldVAE(3, objective="elbo", hidden_layer_sizes=(64,), max_epochs=40)
litmus = CondTotalCorrelation(
    model, partition="checkerboard", shape=(side, side), n_resamples=100, random_state=0
)
tests = {}
for name, X in systems.items():
    tests[name] = test = clone(litmus).fit(X)
    print(f"{name}: {test.verdict_}", *test.reasons_, sep="\n  - ")

# %%
# Where it fails
# --------------
# Correlations of two spins against their distance on the sheet: in the data, and what
# is left of them once the latents are known. (Places in the network mean nothing, and
# signs depend on the patterns, so the root mean square is drawn.)

place = np.indices((side, side)).reshape(2, -1)
gap = np.abs(place[:, :, None] - place[:, None, :])
distance = np.minimum(gap, side - gap).sum(axis=0)
bonds = np.arange(1, side + 1)


def by_distance(covariance):
    """Return the root mean square correlation at each distance."""
    deviation = np.sqrt(np.diag(covariance))
    square = (covariance / np.outer(deviation, deviation)) ** 2
    return [np.sqrt(square[distance == d].mean()) for d in bonds]


fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, (name, test) in zip(axes, tests.items(), strict=True):
    ax.plot(bonds, by_distance(np.cov(systems[name].T)), "s--", c="0.4", label="data")
    left = by_distance(test.residual_covariance_)
    ax.plot(bonds, left, "o-", c="#D55E00", label="given three latents")
    ax.axhline(n_samples**-0.5, c="0.4", ls=":", lw=1, label="noise of so many rows")
    u = test.unexplained_fraction_.value
    ax.set(title=f"{name}: {test.verdict_}, u = {u:.1%}", xlabel="distance (bonds)")
axes[0].set(ylabel="rms correlation of two spins", ylim=(0, None))
axes[1].legend(frameon=False)
plt.show()

# %%
# In the network next to nothing is left. In the sheet the latents take over what
# distant spins have in common, but neighbours go on knowing of each other. More latents
# would explain more of this sheet, and a larger sheet would need more of them: what two
# of its parts know of each other grows with their boundary.
