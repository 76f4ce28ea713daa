"""Convolutional autoencoder for images in rows."""

from torch import nn

from skident._nn.modules import perceptron

# Images are halved until their shorter side is below this.
SMALLEST_SIDE = 8


class ConvolutionalAutoencoder(nn.Module):
    """Encoder of blocks that halve the image, decoder of blocks that double it.

    Each block is a convolution of 4 x 4 pixels with stride 2, and LeakyReLU; there are
    as many as bring the shorter side below 8. Fully connected layers lead on to the
    latents. The decoder mirrors the encoder.

    Parameters
    ----------
    n_features, n_components : int
        Width of the data and of the representation.
    image_shape : tuple of int
        Height and width, and the number of channels if there are any.
    n_filters : int
        Channels behind the first block; each further block has twice as many as the one
        before, up to four times ``n_filters``.
    hidden_layer_sizes : tuple of int
        Widths of the fully connected layers between blocks and latents.
    negative_slope : float
        Slope of LeakyReLU below zero.

    Attributes
    ----------
    multiplications : int
        Of one row through both parts.
    """

    def __init__(
        self,
        n_features,
        n_components,
        image_shape,
        n_filters,
        hidden_layer_sizes,
        negative_slope,
    ):
        super().__init__()
        self.image_shape = (*image_shape, 1)[:3]
        sides, channels = [tuple(image_shape[:2])], [self.image_shape[2]]
        while min(sides[-1]) >= SMALLEST_SIDE:
            channels.append(n_filters * min(4, 2 ** (len(sides) - 1)))
            sides.append(tuple(side // 2 for side in sides[-1]))

        def activation():
            return nn.LeakyReLU(negative_slope)

        down, up, self.multiplications = [], [], 0
        for k in range(len(sides) - 1):
            down += [
                nn.Conv2d(channels[k], channels[k + 1], 4, stride=2, padding=1),
                activation(),
            ]
            # the pixel that halving an odd side has lost
            odd = tuple(side % 2 for side in sides[k])
            grow = nn.ConvTranspose2d(
                channels[k + 1], channels[k], 4, 2, 1, output_padding=odd
            )
            up = [activation(), grow, *up]
            places = sides[k + 1][0] * sides[k + 1][1]
            self.multiplications += 2 * down[-2].weight.numel() * places
        self.blocks, self.growth = nn.Sequential(*down), nn.Sequential(*up)
        self.smallest = (channels[-1], *sides[-1])
        flat = channels[-1] * sides[-1][0] * sides[-1][1]
        hidden = tuple(hidden_layer_sizes)
        self.encoder = perceptron((flat, *hidden, n_components), activation)
        self.decoder = perceptron((n_components, *hidden[::-1], flat), activation)
        for part in (self.encoder, self.decoder):
            self.multiplications += sum(p.numel() for p in part.parameters())

    def encode(self, x):
        """Map rows (n, n_features) to latents (n, n_components)."""
        images = x.unflatten(1, self.image_shape).movedim(3, 1)
        return self.encoder(self.blocks(images).flatten(1))

    def decode(self, z):
        """Map latents (n, n_components) to rows (n, n_features)."""
        images = self.growth(self.decoder(z).unflatten(1, self.smallest))
        return images.movedim(1, 3).flatten(1)

    def forward(self, x):
        """Reconstruct rows (n, n_features)."""
        return self.decode(self.encode(x))
