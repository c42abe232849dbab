"""Networks of images by second implementations: written out, or torchvision's."""

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

from softmax_temperature.networks.bottleneck_resnet import BottleneckResNet
from softmax_temperature.networks.cifar_resnet import BasicBlock
from softmax_temperature.networks.densenet import DenseNet
from softmax_temperature.networks.small import MLP, ConvNet
from softmax_temperature.networks.unet import UNet
from softmax_temperature.networks.vgg import SmallVGG
from softmax_temperature.networks.wide_resnet import WideResNet


def images(samples: int = 4, side: int = 16) -> Tensor:
    """Normal pixels, float64."""
    return torch.randn(
        samples,
        3,
        side,
        side,
        generator=torch.Generator().manual_seed(0),
        dtype=torch.float64,
    )


def perturbed(network: nn.Module) -> nn.Module:
    """The network in float64 with scales, shifts, biases and running estimates that are
    not those of a start.
    """
    for values in network.double().state_dict().values():
        if values.is_floating_point() and values.ndim == 1:
            nn.init.uniform_(values, 0.5, 1.5)
    return network


def normalised(
    state: dict[str, Tensor], name: str, maps: Tensor, *, training: bool = False
) -> Tensor:
    """Batch normalisation with the parameters under a name; nothing where there are
    none.
    """
    if f"{name}.weight" not in state:
        return maps
    parts = [
        state[f"{name}.{part}"]
        for part in ("running_mean", "running_var", "weight", "bias")
    ]
    mean, variance, scale, shift = (part[None, :, None, None] for part in parts)
    if training:
        mean, variance = (
            maps.mean((0, 2, 3), keepdim=True),
            maps.var((0, 2, 3), correction=0, keepdim=True),
        )
    return (maps - mean) / (variance + 1e-5).sqrt() * scale + shift


def rectified(maps: Tensor, *, double: bool = False) -> Tensor:
    """ReLU or, with `double`, CReLU."""
    return (
        torch.cat([maps.clamp(min=0), (-maps).clamp(min=0)], 1)
        if double
        else maps.clamp(min=0)
    )


# ---- VGG


def tiny_vgg(**arguments: object) -> SmallVGG:
    torch.manual_seed(0)
    return SmallVGG(
        **{"num_classes": 5, "widths": (4, 4, 6, 6), "dense": 7, "image_size": 16}
        | arguments
    ).double()


def vgg_formula(
    parameters: dict[str, Tensor], maps: Tensor, *, double: bool, average: bool
) -> Tensor:
    """The network without normalisation as the paper's sentence has it, from weights
    and biases in their order.
    """

    *layers, dense, classifier = zip(*[iter(parameters.values())] * 2, strict=True)
    for number, (weight, bias) in enumerate(layers):
        maps = rectified(F.conv2d(maps, weight, bias, padding=1), double=double)
        maps = F.max_pool2d(maps, 2) if number % 2 else maps
    maps = maps.mean((2, 3)) if average else maps.reshape(len(maps), -1)
    return F.linear(rectified(F.linear(maps, *dense), double=double), *classifier)


@pytest.mark.parametrize("activation", ["relu", "crelu"])
@pytest.mark.parametrize("pooling", ["flatten", "average"])
def test_a_vgg_is_the_paper_s_sentence(activation: str, pooling: str) -> None:
    network = tiny_vgg(activation=activation, pooling=pooling)
    shape = {"double": activation == "crelu", "average": pooling == "average"}
    torch.testing.assert_close(
        network(images()),
        vgg_formula(dict(network.named_parameters()), images(), **shape),
    )


def test_a_vgg_s_weights_start_as_keras_draws_them() -> None:
    network = tiny_vgg(widths=(24, 48), dense=64)
    # A convolution of 24 channels on 48 filters of 3×3: sqrt(6 / (9 · 24 + 9 · 48)).
    weight = network.convolutions[2].weight
    bound = (6 / (9 * 24 + 9 * 48)) ** 0.5
    assert 0.99 * bound < weight.abs().max() <= bound
    assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    assert not any(
        value.any()
        for name, value in network.named_parameters()
        if name.endswith("bias")
    )


# ---- residual networks


def test_shortcut_takes_every_second_pixel_between_zero_channels() -> None:
    block = BasicBlock(2, 4, stride=2).eval()
    nn.init.zeros_(
        block.bn2.weight
    )  # The residual part is then zero, and the shortcut is what is left.
    maps = torch.arange(32.0).view(1, 2, 4, 4)
    result = block(maps)
    assert result.shape == (1, 4, 2, 2)
    assert torch.equal(result[:, 1:3], maps[:, :, ::2, ::2])
    assert not result[:, [0, 3]].any()


def tiny_bottlenecks(activation: str = "relu") -> BottleneckResNet:
    """Two stages of which the first has a block with an identity shortcut."""
    torch.manual_seed(0)
    return perturbed(
        BottleneckResNet((2, 1), num_classes=5, width=3, activation=activation)
    )


def classical_form(
    state: dict[str, Tensor], maps: Tensor, *, training: bool, double: bool
) -> Tensor:
    """The classical form: a block takes activated maps, and its activation follows the
    sum.
    """
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
            beside = (
                maps[:, : maps.shape[1] // 2] - maps[:, maps.shape[1] // 2 :]
                if double
                else maps
            )
        maps = activate(inner + beside)
    return F.linear(
        maps.mean((2, 3)), state["classifier.weight"], state["classifier.bias"]
    )


@pytest.mark.parametrize("activation", ["relu", "crelu"])
@pytest.mark.parametrize("training", [False, True])
def test_a_bottleneck_resnet_is_its_classical_form(
    activation: str, training: bool
) -> None:
    network = tiny_bottlenecks(activation).train(training)
    state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    expected = classical_form(
        state, images(), training=training, double=activation == "crelu"
    )
    torch.testing.assert_close(network(images()), expected)


def wide_formula(state: dict[str, Tensor], maps: Tensor) -> Tensor:
    """The network in evaluation."""

    def convolved(name: str, values: Tensor, stride: int = 1) -> Tensor:
        weight = state[f"{name}.weight"]
        return F.conv2d(
            values, weight, state.get(f"{name}.bias"), stride, weight.shape[-1] // 2
        )

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
            maps = inner + (
                convolved(f"{block}.shortcut", before, stride) if projects else maps
            )
    pooled = activated("norm", maps).mean((2, 3))
    return F.linear(pooled, state["classifier.weight"], state["classifier.bias"])


@pytest.mark.parametrize("batch_norm", [True, False])
def test_a_wide_resnet_is_its_formula(batch_norm: bool) -> None:
    torch.manual_seed(0)
    # Two blocks in each stage, so that both kinds of shortcut are there.
    network = perturbed(WideResNet(14, 1, num_classes=5, batch_norm=batch_norm)).eval()
    torch.testing.assert_close(
        network(images()), wide_formula(network.state_dict(), images())
    )


def test_the_released_wide_resnet_is_its_formula() -> None:
    torch.manual_seed(0)
    network = perturbed(WideResNet(14, 1, num_classes=5, as_released=True)).eval()
    state = network.state_dict()

    def layer(convolution: str, norm: str, values: Tensor, stride: int = 1) -> Tensor:
        weight = state[f"{convolution}.weight"]
        return normalised(
            state, norm, F.conv2d(values, weight, None, stride, weight.shape[-1] // 2)
        )

    maps = layer("conv1.0", "conv1.1", images()).clamp(min=0)
    for stage, number in ((stage, number) for stage in range(3) for number in range(2)):
        block, stride = f"stages.{stage}.{number}", 2 if stage and not number else 1
        inner = layer(f"{block}.inner.0", f"{block}.inner.1", maps, stride).clamp(min=0)
        inner = layer(f"{block}.inner.3", f"{block}.inner.4", inner)
        projects = f"{block}.shortcut.0.weight" in state
        beside = (
            layer(f"{block}.shortcut.0", f"{block}.shortcut.1", maps, stride)
            if projects
            else maps
        )
        maps = (inner + beside).clamp(min=0)
    expected = F.linear(
        maps.mean((2, 3)), state["classifier.weight"], state["classifier.bias"]
    )
    torch.testing.assert_close(network(images()), expected)


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


# ---- U-Net, DenseNet and small networks


def unet_formula(state: dict[str, Tensor], maps: Tensor) -> Tensor:

    def twice(name: str, values: Tensor) -> Tensor:
        for convolution, norm in ((0, 1), (3, 4)):
            values = F.conv2d(values, state[f"{name}.{convolution}.weight"], padding=1)
            values = normalised(state, f"{name}.{norm}", values).clamp(min=0)
        return values

    def enlarged(name: str, values: Tensor) -> Tensor:
        """Each pixel becomes 2×2: an up-convolution of stride 2 has no overlaps."""
        n, _, height, width = values.shape
        grown = torch.einsum("nihw,ioab->nohawb", values, state[f"{name}.weight"])
        return (
            grown.reshape(n, -1, 2 * height, 2 * width)
            + state[f"{name}.bias"][None, :, None, None]
        )

    down = [twice("stem", maps)]
    for level in range(4):
        down.append(twice(f"encoders.{level}", F.max_pool2d(down[-1], 2)))
    maps = down.pop()
    for level in range(4):
        maps = twice(
            f"decoders.{level}",
            torch.cat([down.pop(), enlarged(f"enlargers.{level}", maps)], 1),
        )
    logits = torch.einsum("nihw,oi->nohw", maps, state["classifier.weight"][:, :, 0, 0])
    return logits + state["classifier.bias"][None, :, None, None]


def test_a_unet_is_its_formula() -> None:
    torch.manual_seed(0)
    network = perturbed(UNet(num_classes=5, width=2)).eval()
    torch.testing.assert_close(
        network(images(2, 32)), unet_formula(network.state_dict(), images(2, 32))
    )


def torchvision_s(blocks: tuple[int, ...], growth: int, classes: int) -> nn.Module:
    """torchvision's network with the stem of the port: a 3×3 convolution, no
    normalisation and no pooling.
    """
    network = torchvision.models.DenseNet(
        growth, blocks, 2 * growth, num_classes=classes
    )
    network.features.conv0 = nn.Conv2d(3, 2 * growth, 3, padding=1, bias=False)
    for name in ("norm0", "relu0", "pool0"):
        setattr(network.features, name, nn.Identity())
    return network.double()


@pytest.mark.parametrize("training", [False, True])
def test_a_densenet_is_torchvision_s_but_for_the_stem(training: bool) -> None:
    torch.manual_seed(0)
    network, other = (
        perturbed(DenseNet((2, 1, 3), growth=4, num_classes=5)),
        torchvision_s((2, 1, 3), 4, 5),
    )
    ours, theirs = network.state_dict(), other.state_dict()
    other.load_state_dict(dict(zip(theirs, ours.values(), strict=True)))
    torch.testing.assert_close(
        network.train(training)(images()), other.train(training)(images())
    )


def pairs(network: nn.Module) -> Any:
    return zip(*[iter(network.parameters())] * 2, strict=True)


@pytest.mark.parametrize(
    ("activation", "function"), [("tanh", torch.tanh), ("relu", torch.relu)]
)
def test_small_networks_written_out(activation: str, function: Any) -> None:
    dense, convolutional = (
        perturbed(MLP(5, (7, 6), activation, 7)),
        perturbed(ConvNet(5, (4, 6), activation, 7)),
    )
    *layers, (weight, bias) = pairs(dense)
    hidden = images(3, 7).reshape(3, 147)
    for own, shift in layers:
        hidden = function(hidden @ own.T + shift)
    torch.testing.assert_close(dense(images(3, 7)), hidden @ weight.T + bias)
    *layers, (weight, bias) = pairs(convolutional)
    maps = images(3, 7)
    for own, shift in layers:
        # All 3 x 3 neighbourhoods, of which a stride of 2 keeps every second.
        maps = function(F.conv2d(maps, own, shift, padding=1)[:, :, ::2, ::2])
    torch.testing.assert_close(
        convolutional(images(3, 7)), maps.reshape(3, 6 * 2 * 2) @ weight.T + bias
    )


@pytest.mark.parametrize(("activation", "factor"), [("tanh", 1.0), ("relu", 2.0)])
def test_weights_start_normal_with_the_variance_that_keeps_the_size(
    activation: str, factor: float
) -> None:
    torch.manual_seed(0)
    network = ConvNet(50, (200, 100), activation, image_size=8)
    for (weight, bias), inputs in zip(
        pairs(network), [27, 9 * 200, 4 * 100], strict=True
    ):
        assert not bias.any()
        scaled = weight * (inputs / factor) ** 0.5
        assert scaled.std().item() == pytest.approx(1, rel=0.03)
        assert scaled.pow(4).mean().item() == pytest.approx(3, rel=0.1)
