"""
Do the axes of a representation stand for factors?
==================================================

Five independent factors make fifty measurements through a nonlinear map that nearly
keeps distances. An autoencoder with ten latents reconstructs them: all factors are in
its latents, and each latent is a mixture of all. Whitening and independent component
analysis part them without looking at the factors.

InfoM asks whether each latent tells of one factor only, InfoC whether each factor is
told by one latent only, InfoE whether the factors are there at all.
"""

import matplotlib.pyplot as plt

from skident import AutoencoderEmbedder, WhitenICA
from skident.datasets import make_nonlinear_mixture
from skident.metrics import infomec_score, mcc_score

X, factors = make_nonlinear_mixture(4000, 5, 50, random_state=0)
X_train, X_test, factors = X[:3000], X[3000:], factors[3000:]

# %%
# Twice as many latents as factors; those that stay empty are cut before whitening, as
# they would come back as noise of unit variance.

autoencoder = AutoencoderEmbedder(
    10, hidden_layer_sizes=(64, 64), max_epochs=30, random_state=0
).fit(X_train)
Z = autoencoder.transform(X_test)
ica = WhitenICA(0.99, random_state=0).fit(autoencoder.transform(X_train))
latents = {"autoencoder": Z, "autoencoder + ICA": ica.transform(Z)}

# %%
# On rows that nothing was trained on:

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for panel, (name, values) in zip(axes, latents.items(), strict=True):
    scores = infomec_score(factors, values, random_state=0)
    mcc = mcc_score(factors, values)
    print(
        f"{name:18} InfoM {scores.infom:.2f}  InfoE {scores.infoe:.2f}  "
        f"InfoC {scores.infoc:.2f}  MCC {mcc.mcc:.2f} (chance {mcc.chance:.2f})"
    )
    image = panel.imshow(scores.nmi, vmin=0.0, vmax=1.0, cmap="viridis")
    panel.set(
        title=f"{name}\nInfoM {scores.infom:.2f}, InfoC {scores.infoc:.2f}",
        xlabel="latent",
        ylabel="factor",
        xticks=range(values.shape[1]),
        yticks=range(factors.shape[1]),
    )
figure.colorbar(image, ax=axes, label="information about the factor / its entropy")
plt.show()
