"""Theorem 3: near-isometric data, an autoencoder that reconstructs, then ICA."""

import pytest

from skident import AutoencoderEmbedder, WhitenICA
from skident.datasets import make_nonlinear_mixture
from skident.metrics import infomec_score


@pytest.mark.parametrize("seed", range(2))
def test_ica_parts_factors_that_the_autoencoder_mixes(seed):
    """InfoM and InfoC rise; InfoE, which no affine map changes, stays."""
    X, factors = make_nonlinear_mixture(3000, 3, 20, random_state=seed)
    model = AutoencoderEmbedder(
        6, hidden_layer_sizes=(32,), max_epochs=20, learning_rate=3e-3,
        random_state=seed,
    )  # fmt: skip
    Z = model.fit(X).transform(X[2000:])
    unmixed = WhitenICA(0.99, random_state=0).fit(model.transform(X[:2000]))
    before, after = (
        infomec_score(factors[2000:], latents, n_permutations=5, random_state=0)
        for latents in (Z, unmixed.transform(Z))
    )
    assert before.infom < 0.85 and after.infom > 0.9
    assert before.infoc < 0.6 and after.infoc > 0.9
    assert before.infoe > 0.9
    assert after.infoe == pytest.approx(before.infoe, abs=0.05)
