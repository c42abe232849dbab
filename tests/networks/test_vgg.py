from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.layers import CReLU
from softmax_temperature.networks.vgg import SmallVGG
from tests.networks.formulas import images, rectified

TINY = (4, 4, 6, 6)


def tiny(**arguments: object) -> SmallVGG:
    torch.manual_seed(0)
    return SmallVGG(**{"num_classes": 5, "widths": TINY, "dense": 7, "image_size": 16} | arguments).double()


def written_out(parameters: dict[str, Tensor], maps: Tensor, *, double: bool, average: bool) -> Tensor:
    """The network without normalisation as the paper's sentence has it, from weights and biases in their order."""

    *layers, dense, classifier = zip(*[iter(parameters.values())] * 2, strict=True)
    for number, (weight, bias) in enumerate(layers):
        maps = rectified(F.conv2d(maps, weight, bias, padding=1), double=double)
        maps = F.max_pool2d(maps, 2) if number % 2 else maps
    maps = maps.mean((2, 3)) if average else maps.reshape(len(maps), -1)
    return F.linear(rectified(F.linear(maps, *dense), double=double), *classifier)


@pytest.mark.parametrize("activation", ["relu", "crelu"])
@pytest.mark.parametrize("pooling", ["flatten", "average"])
def test_the_network_is_the_paper_s_sentence(activation: str, pooling: str) -> None:
    network = tiny(activation=activation, pooling=pooling)
    shape = {"double": activation == "crelu", "average": pooling == "average"}
    torch.testing.assert_close(network(images()), written_out(dict(network.named_parameters()), images(), **shape))


@pytest.mark.parametrize("batch_norm", [False, True])
def test_rectifying_behind_the_pooling_changes_no_bit(batch_norm: bool) -> None:
    network = tiny(batch_norm=batch_norm).float()
    paper = tiny(batch_norm=batch_norm).float()
    layers = list(paper.convolutions)
    for place in [place for place, layer in enumerate(layers) if isinstance(layer, nn.MaxPool2d)]:
        layers[place], layers[place + 1] = layers[place + 1], layers[place]
    paper.convolutions = nn.Sequential(*layers)
    kinds = [type(layer) for layer in layers if isinstance(layer, nn.ReLU | nn.MaxPool2d)]
    assert kinds == [nn.ReLU, nn.ReLU, nn.MaxPool2d] * 2
    logits = [each(images(8).float()) for each in (network, paper)]
    assert torch.equal(*logits)
    for each in logits:
        F.cross_entropy(each, torch.arange(8) % 5).backward()
    gradients = [[parameter.grad for parameter in each.parameters()] for each in (network, paper)]
    assert all(torch.equal(*pair) for pair in zip(*gradients, strict=True))
    assert all(bool(gradient.any()) for gradient in gradients[0])


def test_weights_start_as_keras_draws_them() -> None:
    network = tiny(widths=(24, 48), dense=64)
    # A convolution of 24 channels on 48 filters of 3×3: sqrt(6 / (9 · 24 + 9 · 48)).
    weight = network.convolutions[2].weight
    bound = (6 / (9 * 24 + 9 * 48)) ** 0.5
    assert 0.99 * bound < weight.abs().max() <= bound
    assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    assert not any(value.any() for name, value in network.named_parameters() if name.endswith("bias"))


def test_crelu_keeps_both_signs_and_scales_with_its_input() -> None:
    inputs = torch.tensor([[1.0, -2.0, 0.0], [-0.5, 3.0, 4.0]])
    both = CReLU()(inputs)
    assert both.tolist() == [[1, 0, 0, 0, 2, 0], [0, 3, 4, 0.5, 0, 0]]
    positive, negative = both.chunk(2, dim=1)
    assert torch.equal(positive - negative, inputs)
    # What distributed Cooling rests on: a positive factor passes through unchanged.
    assert torch.equal(CReLU()(4 * inputs), 4 * both)
