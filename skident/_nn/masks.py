"""Masked input of masked autoencoders."""

import torch


class RandomMask:
    """Set the same share of random pieces of each row to the columns' means.

    What stays visible is divided by its share, as in dropout, so that whole rows are in
    the units that the encoder was trained on.

    Parameters
    ----------
    ratio : float
        Share of the pieces to mask, in [0, 1); at least one stays visible.
    image_shape : tuple of int or None
        Height and width, and the number of channels if there are any, of images.
    patch_size : int
        Side of the squares of pixels that are masked together, with all their channels;
        those at the lower and right edge may be smaller. Without images, pieces are
        features.
    """

    def __init__(self, ratio, image_shape=None, patch_size=1):
        self.ratio, self.image_shape, self.patch_size = ratio, image_shape, patch_size

    def __call__(self, x):
        """Return masked rows (n, n_features) in network units."""
        if self.image_shape is None:
            visible = self._visible(x.shape[0], x.shape[1], x)
        else:
            visible = self._visible_patches(x)
        share = visible.mean(1, keepdim=True)
        return x * visible / share

    def _visible(self, n, n_pieces, like):
        """Return 1 for what stays and 0 for what is masked, (n, n_pieces)."""
        n_masked = min(round(self.ratio * n_pieces), n_pieces - 1)
        order = torch.rand(n, n_pieces, device=like.device).argsort(1)
        visible = torch.ones(n, n_pieces, device=like.device, dtype=like.dtype)
        return visible.scatter_(1, order[:, :n_masked], 0.0)

    def _visible_patches(self, x):
        (height, width), size = self.image_shape[:2], self.patch_size
        down, across = -(-height // size), -(-width // size)
        grid = self._visible(x.shape[0], down * across, x).reshape(-1, down, across)
        pixels = grid.repeat_interleave(size, 1).repeat_interleave(size, 2)
        pixels = pixels[:, :height, :width].reshape(x.shape[0], -1)
        return pixels.repeat_interleave(x.shape[1] // (height * width), 1)
