"""That what an autoencoder is told reaches its network, which results rarely show."""

import numpy as np
import pytest
import torch
from torch import nn

from skident import AutoencoderEmbedder

X = np.random.default_rng(0).standard_normal((60, 64))


class Watched(nn.Module):
    """A module that shows what goes through it to functions, which are not copied."""

    def __init__(self, n_features, n_components, encoding, decoding):
        super().__init__()
        self.down = nn.Linear(n_features, n_components)
        self.up = nn.Linear(n_components, n_features)
        self.encoding, self.decoding = encoding, decoding

    def encode(self, x):
        self.encoding(self.training, x)
        return self.down(x)

    def decode(self, z):
        self.decoding(self.training, z)
        return self.up(z)


def ignored(training, tensor):
    pass


def fit(encoding=ignored, decoding=ignored, **options):
    return AutoencoderEmbedder(
        module=Watched,
        module_params={"encoding": encoding, "decoding": decoding},
        max_epochs=2,
        random_state=0,
        **options,
    ).fit(X)


def test_optimiser_is_fused():
    """One call a step for all weights."""
    optimizer = fit().net_.optimizer_
    assert optimizer.defaults["fused"]
    assert all(group["fused"] for group in optimizer.param_groups)


def test_fitted_network_runs_in_inference_mode():
    modes = []

    def note(training, tensor):
        modes.append((training, torch.is_inference_mode_enabled()))

    embedder = fit(note, note)
    assert not any(inference for _, inference in modes)
    modes.clear()
    embedder.inverse_transform(embedder.transform(X))
    embedder.score(X)
    assert modes == [(False, True)] * 4


@pytest.mark.parametrize("image_shape", [(4, 16), (16, 4), (4, 8, 2)])
def test_mask_hides_squares_of_the_images(image_shape):
    batches = []

    def note(training, tensor):
        if training:
            batches.append(tensor.detach().clone())

    fit(note, mask_ratio=0.5, patch_size=2, image_shape=image_shape)
    # what is hidden is at the columns' means, zero in the units of the network
    hidden = torch.cat(batches).numpy() == 0
    assert hidden.shape == (2 * 60, 64)
    height, width, *channels = image_shape
    squares = hidden.reshape(-1, height // 2, 2, width // 2, 2, *channels)
    of_square = squares[:, :, :1, :, :1]
    of_square = of_square[..., :1] if channels else of_square
    assert (squares == of_square).all()
    assert (hidden.mean(axis=1) == 0.5).all()
    # not the same ones in each row
    assert (0 < hidden.mean(axis=0)).all() and (hidden.mean(axis=0) < 1).all()


def test_mask_hides_features_one_by_one_where_there_are_no_images():
    batches = []
    fit(lambda training, x: training and batches.append(x.detach()), mask_ratio=0.25)
    hidden = torch.cat(batches).numpy() == 0
    assert (hidden.mean(axis=1) == 0.25).all()
    assert not (hidden[:, ::2] == hidden[:, 1::2]).all()
