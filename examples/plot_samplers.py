"""
Do the samplers tell the truth?
===============================

Before a method is believed on data nobody understands, it is tried on data whose
answer is known. Here are independent samples of the Ising model on a 32 x 32 lattice
from below to above its transition, beside Kaufman's exact energy of a lattice of that
size, and directors of the Maier-Saupe model beside its exact order parameter.
"""

import matplotlib.pyplot as plt
import numpy as np

from skident import exact
from skident.datasets import make_ising, make_maier_saupe

# %%
# Energies
# --------
# ``method="auto"`` takes clusters near the transition and 64 chains a machine word
# above it. The error bars are those of independent samples: every row has its own
# chain, and its burn-in was measured.
side, n_samples = 32, 200
temperatures = np.array([1.6, 2.0, 2.269, 2.5, 3.0, 3.6])
energies, errors, sheets = [], [], []
for temperature in temperatures:
    X, m, info = make_ising(
        n_samples, (side, side), temperature=temperature, return_info=True,
        random_state=0,
    )  # fmt: skip
    per_site = info.energies / side**2
    energies.append(per_site.mean())
    errors.append(per_site.std() / np.sqrt(info.ess))
    sheets.append(X[0].reshape(side, side))
    exact_energy = exact.ising((side, side), temperature).energy
    print(
        f"T = {temperature:.3f}  {info.method:14} burn-in {info.burn_in:3} sweeps, "
        f"{(energies[-1] - exact_energy) / errors[-1]:+.1f} errors from the truth"
    )

fine = np.linspace(1.5, 3.7, 100)
kaufman = [exact.ising((side, side), t).energy for t in fine]

# %%
# Order of directors
# ------------------
# Directors that favour parallel neighbours (all are neighbours, with strength U = 1).
# Draws of the Maier-Saupe model are exact at any temperature: no chain at all. ``y``
# holds the tensor Q, and sqrt(2 <tr Q^2> / 3) is the order parameter.
n_sites = 64
cold = np.array([0.15, 0.18, 0.2, 0.22, 0.25, 0.3])
order = []
for temperature in cold:
    _, Q = make_maier_saupe(500, n_sites, temperature=temperature, random_state=0)
    order.append(np.sqrt(2 / 3 * (Q**2).sum(axis=1).mean()))
finer = np.linspace(0.14, 0.31, 40)
truth = [exact.maier_saupe(n_sites, t).order_parameter for t in finer]

# %%
fig, axes = plt.subplots(1, 5, figsize=(13, 3), width_ratios=[1.6, 1, 1, 1, 1.6])
axes[0].plot(fine, kaufman, color="0.5", label="Kaufman, exact")
axes[0].errorbar(temperatures, energies, 2 * np.array(errors), fmt="o", label="samples")
axes[0].set(xlabel=r"$T$ ($J / k_B$)", ylabel="energy a site ($J$)")
axes[0].legend(frameon=False)
for ax, k in zip(axes[1:4], (0, 2, 5), strict=True):
    ax.imshow(sheets[k], cmap="gray", interpolation="nearest")
    ax.set(title=f"T = {temperatures[k]:.2f}", xticks=[], yticks=[])
axes[4].plot(finer, truth, color="0.5", label="exact, 64 directors")
axes[4].plot(cold, order, "o", label="samples")
axes[4].set(xlabel=r"$T$ ($U / k_B$)", ylabel="order parameter")
axes[4].legend(frameon=False)
fig.tight_layout()
plt.show()
