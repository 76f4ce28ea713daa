"""
Reading stored patterns off a VAE
=================================

A variational autoencoder is trained on nothing but the spins of a Hopfield network.
Which patterns does the network store? They stand in the autoencoder's decoder.
"""

# %%
# Data with a known answer
# ------------------------
# Four random patterns on 64 sites, and samples at a temperature where the network
# remembers them: a sample lies near one pattern or its negative, with one spin in six
# wrong.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from skident import CondTotalCorrelation, HopfieldPatternDecoder, MeanFieldVAE
from skident.datasets import make_hopfield, make_patterns
from skident.plotting import PatternDisplay

patterns = make_patterns(4, 64, random_state=1)
X, overlaps = make_hopfield(6000, patterns, temperature=0.7, random_state=1)
print(f"wrong spins: {(1 - np.abs(overlaps).max(axis=1)).mean() / 2:.1%}")

# %%
# First: is there a mean-field theory to read?
# --------------------------------------------
# Nobody said that there are four patterns. Eight latents are enough for four, and one
# that stays unused in training costs no pattern.

vae = MeanFieldVAE(8, hidden_layer_sizes=(64, 64), max_epochs=30, random_state=1)
litmus = CondTotalCorrelation(vae, n_resamples=100, random_state=1).fit(X)
print(litmus.verdict_, *litmus.reasons_, sep="\n- ")

# %%
# Then: which one?
# ----------------
# Given the fields m of the patterns, the logit of spin i is
# :math:`2 \beta \sum_\mu \xi_i^\mu m_\mu`. Whatever function of the latents the fields
# are, the Jacobian of the decoder's logits has its columns in the span of the patterns,
# and the patterns are the vectors of -1 and 1 in that span. ``data_span=False`` reads
# the decoder alone, without a second look at the data.

decoder = HopfieldPatternDecoder(vae, data_span=False, random_state=1).fit(X)
print("dimension of the span:", decoder.n_dims_)
print("squared cosine of pattern and span:", decoder.confidence_.round(3))

# %%
# With them come the couplings of the network: ``couplings_`` is the quadratic part of
# the interaction that the decoder holds. (The signs of the principal axes of the same
# data are no patterns.)

J = patterns.T.astype(float) @ patterns / (0.7 * 64)
np.fill_diagonal(J, 0)
agreement = np.corrcoef(J.ravel(), decoder.couplings_.ravel())[0, 1]
print(f"correlation of the couplings: {agreement:.3f}")
axes = np.sign(PCA(4).fit(X).components_)
print("overlaps with principal axes:", np.abs(axes @ patterns.T / 64).max(axis=0))

# %%
# Patterns are defined up to order and sign: each planted one is drawn above the decoded
# one that overlaps most with it, turned to the same sign.

display = PatternDisplay.from_estimator(decoder, truth=patterns, shape=(8, 8))
print("overlaps with decoded patterns:", display.overlaps_.max(axis=0))
plt.show()
