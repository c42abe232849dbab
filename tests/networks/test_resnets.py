from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.resnets import BasicBlock, BottleneckResNet, WideResNet
from tests.networks.formulas import images, normalised, perturbed, rectified


def test_shortcut_takes_every_second_pixel_between_zero_channels() -> None:
    block = BasicBlock(2, 4, stride=2).eval()
    nn.init.zeros_(block.bn2.weight)  # The residual part is then zero, and the shortcut is what is left.
    maps = torch.arange(32.0).view(1, 2, 4, 4)
    result = block(maps)
    assert result.shape == (1, 4, 2, 2)
    assert torch.equal(result[:, 1:3], maps[:, :, ::2, ::2])
    assert not result[:, [0, 3]].any()


def tiny_bottlenecks(activation: str = "relu") -> BottleneckResNet:
    """Two stages of which the first has a block with an identity shortcut."""
    torch.manual_seed(0)
    return perturbed(BottleneckResNet((2, 1), num_classes=5, width=3, activation=activation))


def classical_form(state: dict[str, Tensor], maps: Tensor, *, training: bool, double: bool) -> Tensor:
    """The classical form: a block takes activated maps, and its activation follows the sum."""
    activate = partial(rectified, double=double)

    def layer(name: str, norm: str, values: Tensor, stride: int = 1) -> Tensor:
        weight = state[f"{name}.weight"]
        values = F.conv2d(values, weight, stride=stride, padding=weight.shape[-1] // 2)
        return normalised(state, norm, values, training=training)

    maps = activate(layer("conv1", "bn1", maps))
    for block, stride in (("stages.0.0", 1), ("stages.0.1", 1), ("stages.1.0", 2)):
        inner = activate(layer(f"{block}.conv1", f"{block}.bn1", maps))
        inner = activate(layer(f"{block}.conv2", f"{block}.bn2", inner, stride))
        inner = layer(f"{block}.conv3", f"{block}.bn3", inner)
        if f"{block}.shortcut.0.weight" in state:
            beside = layer(f"{block}.shortcut.0", f"{block}.shortcut.1", maps, stride)
        else:
            # With CReLU the sum before the activation: the difference of its halves.
            beside = maps[:, : maps.shape[1] // 2] - maps[:, maps.shape[1] // 2 :] if double else maps
        maps = activate(inner + beside)
    return F.linear(maps.mean((2, 3)), state["classifier.weight"], state["classifier.bias"])


@pytest.mark.parametrize("activation", ["relu", "crelu"])
@pytest.mark.parametrize("training", [False, True])
def test_a_bottleneck_resnet_is_its_classical_form(activation: str, training: bool) -> None:
    network = tiny_bottlenecks(activation).train(training)
    state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    expected = classical_form(state, images(), training=training, double=activation == "crelu")
    torch.testing.assert_close(network(images()), expected)


def wide_formula(state: dict[str, Tensor], maps: Tensor) -> Tensor:
    """The network in evaluation."""

    def convolved(name: str, values: Tensor, stride: int = 1) -> Tensor:
        weight = state[f"{name}.weight"]
        return F.conv2d(values, weight, state.get(f"{name}.bias"), stride, weight.shape[-1] // 2)

    def activated(name: str, values: Tensor) -> Tensor:
        return normalised(state, name, values).clamp(min=0)

    maps = convolved("conv1", maps)
    for stage in range(3):
        for number in range(2):
            block, stride = f"stages.{stage}.{number}", 2 if stage and not number else 1
            before = activated(f"{block}.norm1", maps)
            inner = convolved(f"{block}.conv1", before, stride)
            inner = convolved(f"{block}.conv2", activated(f"{block}.norm2", inner))
            projects = f"{block}.shortcut.weight" in state
            maps = inner + (convolved(f"{block}.shortcut", before, stride) if projects else maps)
    pooled = activated("norm", maps).mean((2, 3))
    return F.linear(pooled, state["classifier.weight"], state["classifier.bias"])


@pytest.mark.parametrize("batch_norm", [True, False])
def test_a_wide_resnet_is_its_formula(batch_norm: bool) -> None:
    torch.manual_seed(0)
    # Two blocks in each stage, so that both kinds of shortcut are there.
    network = perturbed(WideResNet(14, 1, num_classes=5, batch_norm=batch_norm)).eval()
    torch.testing.assert_close(network(images()), wide_formula(network.state_dict(), images()))


def test_the_released_wide_resnet_is_its_formula() -> None:
    torch.manual_seed(0)
    network = perturbed(WideResNet(14, 1, num_classes=5, as_released=True)).eval()
    state = network.state_dict()

    def layer(convolution: str, norm: str, values: Tensor, stride: int = 1) -> Tensor:
        weight = state[f"{convolution}.weight"]
        return normalised(state, norm, F.conv2d(values, weight, None, stride, weight.shape[-1] // 2))

    maps = layer("conv1.0", "conv1.1", images()).clamp(min=0)
    for stage, number in ((stage, number) for stage in range(3) for number in range(2)):
        block, stride = f"stages.{stage}.{number}", 2 if stage and not number else 1
        inner = layer(f"{block}.inner.0", f"{block}.inner.1", maps, stride).clamp(min=0)
        inner = layer(f"{block}.inner.3", f"{block}.inner.4", inner)
        projects = f"{block}.shortcut.0.weight" in state
        beside = layer(f"{block}.shortcut.0", f"{block}.shortcut.1", maps, stride) if projects else maps
        maps = (inner + beside).clamp(min=0)
    expected = F.linear(maps.mean((2, 3)), state["classifier.weight"], state["classifier.bias"])
    torch.testing.assert_close(network(images()), expected)


def test_he_s_weights_with_batch_normalisation() -> None:
    torch.manual_seed(0)
    for module in WideResNet(8, 4).modules():
        if isinstance(module, nn.Conv2d) and module.weight.numel() > 5000:
            variance = 2 / (module.kernel_size[0] ** 2 * module.out_channels)
            assert module.weight.var().item() == pytest.approx(variance, rel=0.1)


def test_last_convolutions_of_branches_are_scaled_without_normalisation() -> None:
    torch.manual_seed(0)
    network = WideResNet(14, 4, batch_norm=False)
    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d):
            assert module.bias is not None
            assert module.bias.abs().max() == 0
            inputs = module.kernel_size[0] ** 2 * module.in_channels
            variance = 2 / inputs / (6 if name.endswith("conv2") else 1)
            assert module.weight.var().item() == pytest.approx(variance, rel=0.15), name
