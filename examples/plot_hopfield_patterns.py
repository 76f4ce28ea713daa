"""
Stored patterns, read off a decoder
===================================

Spins of a Hopfield network, a variational autoencoder trained on nothing but the
spins, and the patterns that the network stores read off the decoder's weights.
"""

# %%
# Data with a known answer
# ------------------------
# Four random patterns on 64 sites, and samples at a temperature where the network
# remembers them.

import matplotlib.pyplot as plt

from skident import CondTotalCorrelation, HopfieldPatternDecoder, MeanFieldVAE
from skident.datasets import make_hopfield, make_patterns
from skident.plotting import PatternDisplay

patterns = make_patterns(4, 64, random_state=0)
X, overlaps = make_hopfield(6000, patterns, temperature=0.7, random_state=0)

# %%
# Is it a mean-field system?
# --------------------------
# The litmus test trains the model on one half of the rows and asks, on the other half,
# whether the spins are independent once the latents are known.

vae = MeanFieldVAE(4, max_epochs=40, random_state=0)
litmus = CondTotalCorrelation(vae, n_resamples=100, random_state=0).fit(X)
print(litmus.verdict_)
for reason in litmus.reasons_:
    print("-", reason)

# %%
# Which one?
# ----------
# The Jacobians of the decoder's logits span the patterns. The decoder finds the vectors
# of -1 and 1 in that span.

decoder = HopfieldPatternDecoder(vae, random_state=0).fit(X)
print("confidence:", decoder.confidence_.round(3))

# %%
# Patterns are defined up to order and sign: each planted one is drawn above the decoded
# one that overlaps most with it, turned to the same sign.

display = PatternDisplay.from_estimator(decoder, truth=patterns, shape=(8, 8))
print("overlaps:", display.overlaps_.max(axis=0))
plt.show()
