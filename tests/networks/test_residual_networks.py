"""Residual networks match second implementations; their initial weights are right."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.bottleneck_resnet import BottleneckResNet
from softmax_temperature.networks.cifar_resnet import BasicBlock
from softmax_temperature.networks.preactivation_resnet import PreactivationResNet
from softmax_temperature.networks.wide_resnet import WideResNet
from tests.networks.formulas import images, normalised, perturbed, rectified

State = dict[str, Tensor]
# The names and strides of the blocks in a wide network with two blocks per stage.
WIDE_BLOCKS = {
    "stages.0.0": 1,
    "stages.0.1": 1,
    "stages.1.0": 2,
    "stages.1.1": 1,
    "stages.2.0": 2,
    "stages.2.1": 1,
}


def convolved(state: State, name: str, maps: Tensor, stride: int = 1) -> Tensor:
    weight = state[f"{name}.weight"]
    bias = state.get(f"{name}.bias")
    return F.conv2d(maps, weight, bias, stride, padding=weight.shape[-1] // 2)


def logits_of_means(state: State, maps: Tensor) -> Tensor:
    means = maps.mean((2, 3))
    return F.linear(means, state["classifier.weight"], state["classifier.bias"])


def test_a_shortcut_takes_every_second_pixel_between_zero_channels() -> None:
    block = BasicBlock(2, 4, stride=2).eval()
    # With these weights the residual branch is zero, and only the shortcut remains.
    nn.init.zeros_(block.bn2.weight)
    maps = torch.arange(32.0).view(1, 2, 4, 4)
    result = block(maps)
    assert result.shape == (1, 4, 2, 2)
    assert torch.equal(result[:, 1:3], maps[:, :, ::2, ::2])
    assert not result[:, [0, 3]].any()


def classical_bottlenecks(
    state: State, maps: Tensor, *, training: bool, double: bool
) -> Tensor:
    """The logits of a classical network, whose blocks apply the activation after adding
    the shortcut.

    There are two stages; the first has a block with an identity shortcut.
    """
    activate = partial(rectified, double=double)

    def layer(name: str, norm: str, values: Tensor, stride: int = 1) -> Tensor:
        values = convolved(state, name, values, stride)
        return normalised(state, norm, values, training=training)

    maps = activate(layer("conv1", "bn1", maps))
    for block, stride in (("stages.0.0", 1), ("stages.0.1", 1), ("stages.1.0", 2)):
        inner = activate(layer(f"{block}.conv1", f"{block}.bn1", maps))
        inner = activate(layer(f"{block}.conv2", f"{block}.bn2", inner, stride))
        inner = layer(f"{block}.conv3", f"{block}.bn3", inner)
        if f"{block}.shortcut.0.weight" in state:
            shortcut = layer(f"{block}.shortcut.0", f"{block}.shortcut.1", maps, stride)
        elif double:
            # The sum before the activation is the difference of CReLU's halves.
            positive, negative = maps.chunk(2, dim=1)
            shortcut = positive - negative
        else:
            shortcut = maps
        maps = activate(inner + shortcut)
    return logits_of_means(state, maps)


@pytest.mark.parametrize("activation", ["relu", "crelu"])
@pytest.mark.parametrize("training", [False, True])
def test_a_bottleneck_resnet_equals_its_classical_form(
    activation: str, training: bool
) -> None:
    torch.manual_seed(0)
    network = BottleneckResNet((2, 1), num_classes=5, width=3, activation=activation)
    perturbed(network).train(training)
    # Copy the network, because a forward pass in training mode changes the running
    # means.
    state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    expected = classical_bottlenecks(
        state, images(), training=training, double=activation == "crelu"
    )
    torch.testing.assert_close(network(images()), expected)


def preactivation_bottlenecks(state: State, maps: Tensor, *, double: bool) -> Tensor:
    """The logits, in evaluation mode, of the network of He et al. 2016b, whose
    convolutions read activations.

    There are two stages; the first has a block with an identity shortcut.
    """

    def activated(name: str, values: Tensor) -> Tensor:
        return rectified(normalised(state, name, values), double=double)

    maps = convolved(state, "conv1", maps)
    for block, stride in (("stages.0.0", 1), ("stages.0.1", 1), ("stages.1.0", 2)):
        before = activated(f"{block}.norm1", maps)
        inner = convolved(state, f"{block}.conv1", before)
        inner = activated(f"{block}.norm2", inner)
        inner = convolved(state, f"{block}.conv2", inner, stride)
        inner = convolved(state, f"{block}.conv3", activated(f"{block}.norm3", inner))
        if f"{block}.shortcut.weight" in state:
            maps = inner + convolved(state, f"{block}.shortcut", before, stride)
        else:
            maps = inner + maps
    return logits_of_means(state, activated("norm", maps))


@pytest.mark.parametrize("activation", ["relu", "crelu"])
def test_a_preactivation_resnet_equals_its_formula(activation: str) -> None:
    torch.manual_seed(0)
    network = PreactivationResNet((2, 1), num_classes=5, width=3, activation=activation)
    perturbed(network).eval()
    expected = preactivation_bottlenecks(
        network.state_dict(), images(), double=activation == "crelu"
    )
    torch.testing.assert_close(network(images()), expected)


def wide_resnet(state: State, maps: Tensor) -> Tensor:
    """The logits of a wide network with pre-activation blocks."""

    def activated(name: str, values: Tensor) -> Tensor:
        return rectified(normalised(state, name, values))

    maps = convolved(state, "conv1", maps)
    for block, stride in WIDE_BLOCKS.items():
        before = activated(f"{block}.norm1", maps)
        inner = convolved(state, f"{block}.conv1", before, stride)
        inner = activated(f"{block}.norm2", inner)
        inner = convolved(state, f"{block}.conv2", inner)
        if f"{block}.shortcut.weight" in state:
            maps = inner + convolved(state, f"{block}.shortcut", before, stride)
        else:
            maps = inner + maps
    return logits_of_means(state, activated("norm", maps))


@pytest.mark.parametrize("batch_norm", [True, False])
def test_a_wide_resnet_equals_its_formula(batch_norm: bool) -> None:
    torch.manual_seed(0)
    network = perturbed(WideResNet(14, 1, num_classes=5, batch_norm=batch_norm)).eval()
    expected = wide_resnet(network.state_dict(), images())
    torch.testing.assert_close(network(images()), expected)


def released_wide_resnet(state: State, maps: Tensor) -> Tensor:
    """The logits of the released network, with post-activation blocks."""

    def layer(name: str, first: int, values: Tensor, stride: int = 1) -> Tensor:
        values = convolved(state, f"{name}.{first}", values, stride)
        return normalised(state, f"{name}.{first + 1}", values)

    maps = rectified(layer("conv1", 0, maps))
    for block, stride in WIDE_BLOCKS.items():
        inner = rectified(layer(f"{block}.inner", 0, maps, stride))
        inner = layer(f"{block}.inner", 3, inner)
        if f"{block}.shortcut.0.weight" in state:
            maps = layer(f"{block}.shortcut", 0, maps, stride)
        maps = rectified(inner + maps)
    return logits_of_means(state, maps)


def test_the_released_wide_resnet_equals_its_formula() -> None:
    torch.manual_seed(0)
    network = perturbed(WideResNet(14, 1, num_classes=5, as_released=True)).eval()
    expected = released_wide_resnet(network.state_dict(), images())
    torch.testing.assert_close(network(images()), expected)


def test_last_convolutions_of_branches_are_scaled_without_normalisation() -> None:
    torch.manual_seed(0)
    network = WideResNet(14, 4, batch_norm=False)
    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d):
            assert module.bias is not None
            assert module.bias.abs().max() == 0
            fan_in = module.kernel_size[0] ** 2 * module.in_channels
            branches = 6 if name.endswith("conv2") else 1
            variance = 2 / fan_in / branches
            assert module.weight.var().item() == pytest.approx(variance, rel=0.15), name
