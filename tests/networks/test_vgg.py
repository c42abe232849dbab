"""The small VGG equals a second implementation; its initial weights are right."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.networks.vgg import SmallVGG
from tests.networks.formulas import images, rectified, weights_and_biases


def tiny_vgg(**arguments: object) -> SmallVGG:
    torch.manual_seed(0)
    sizes = {"num_classes": 5, "widths": (4, 4, 6, 6), "dense": 7, "image_size": 16}
    return SmallVGG(**(sizes | arguments)).double()


def written_out(
    network: SmallVGG, maps: Tensor, *, double: bool, average: bool
) -> Tensor:
    """The logits of the network that one sentence of the paper describes.

    The network has pairs of convolutions, pooling after each pair, then a dense layer
    and a layer that returns the logits.
    """
    *convolutions, dense, classifier = weights_and_biases(network)
    for number, (weight, bias) in enumerate(convolutions):
        maps = rectified(F.conv2d(maps, weight, bias, padding=1), double=double)
        if number % 2:
            maps = F.max_pool2d(maps, 2)
    features = maps.mean((2, 3)) if average else maps.reshape(len(maps), -1)
    hidden = rectified(F.linear(features, *dense), double=double)
    return F.linear(hidden, *classifier)


@pytest.mark.parametrize("activation", ["relu", "crelu"])
@pytest.mark.parametrize("pooling", ["flatten", "average"])
def test_a_vgg_is_the_network_that_the_papers_sentence_describes(
    activation: str, pooling: str
) -> None:
    network = tiny_vgg(activation=activation, pooling=pooling)
    expected = written_out(
        network, images(), double=activation == "crelu", average=pooling == "average"
    )
    torch.testing.assert_close(network(images()), expected)


def test_the_weights_of_a_vgg_start_as_keras_draws_them() -> None:
    network = tiny_vgg(widths=(24, 48), dense=64)
    # The convolution has 24 channels and 48 filters of 3×3, so the bound is sqrt(6 / (9
    # · 24 + 9 · 48)).
    weight = network.convolutions[2].weight
    bound = (6 / (9 * 24 + 9 * 48)) ** 0.5
    assert 0.99 * bound < weight.abs().max() <= bound
    assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    for _, bias in weights_and_biases(network):
        assert not bias.any()
