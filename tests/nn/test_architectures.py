import pytest
import torch

from skident._nn.convolutions import ConvolutionalAutoencoder
from skident._nn.jacobians import batched_jacobian

SHAPES = [(8, 8), (8, 13, 3), (9, 9), (28, 28), (32, 64), (64, 64, 3), (128, 128, 3)]


def new(shape, n_filters=4):
    n = torch.Size(shape).numel()
    return ConvolutionalAutoencoder(n, 2, shape, n_filters, (16,), 0.2), n


@pytest.mark.parametrize("shape", SHAPES)
def test_images_of_any_size_come_back_in_size(shape):
    module, n = new(shape)
    z = module.encode(torch.randn(3, n))
    assert z.shape == (3, 2) and module(torch.randn(3, n)).shape == (3, n)
    assert min(module.smallest[1:]) in (4, 5, 6, 7)


def test_blocks_are_as_many_as_halve_the_side_and_filters_are_bounded():
    module, _ = new((128, 128))
    filters = [part.out_channels for part in module.blocks[::2]]
    assert filters == [4, 8, 16, 16, 16]


def test_channels_stand_last_in_a_row():
    """A module of one colour sees only that colour."""
    module, n = new((8, 8, 3))
    with torch.no_grad():
        module.blocks[0].weight[:, 1:] = 0
    x = torch.randn(2, n)
    other = x.reshape(2, 64, 3).clone()
    other[..., 1:] += 1
    torch.testing.assert_close(module.encode(x), module.encode(other.reshape(2, n)))
    other[..., 0] += 1
    assert not torch.allclose(module.encode(x), module.encode(other.reshape(2, n)))


def test_neighbours_in_a_row_are_neighbours_in_the_image():
    """Moving an image by two pixels moves the first feature map by one."""
    module, _ = new((16, 16))
    image = torch.zeros(1, 16, 16)
    image[0, 6:8, 4:6] = 1
    maps = [
        module.blocks[:2](i.reshape(1, 1, 16, 16)) for i in (image, image.roll(2, 2))
    ]
    torch.testing.assert_close(maps[0].roll(1, 3)[..., 2:-2], maps[1][..., 2:-2])


def test_slope_of_one_is_an_affine_decoder():
    module, _ = new((8, 8))
    linear = ConvolutionalAutoencoder(64, 2, (8, 8), 4, (16,), 1.0)
    for decoder, flat in ((linear, True), (module, False)):
        jacobian = batched_jacobian(decoder.decode, torch.randn(5, 2) * 10)
        spread = (jacobian - jacobian[:1]).detach().abs().max()
        assert (float(spread) < 1e-5) is flat


def test_multiplications_are_counted():
    module, _ = new((8, 8))
    # one block to 4 x 4 and back, 4 filters of 16 weights; 64 -> 16 -> 2 and back
    assert module.multiplications == 2 * 4 * 16 * 16 + (65 * 16 + 17 * 2) + (
        3 * 16 + 17 * 64
    )
