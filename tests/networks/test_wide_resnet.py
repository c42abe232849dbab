from __future__ import annotations

import math
import operator

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from softmax_temperature.networks.resnets import WideBlock, WideResNet

EITHER = pytest.mark.parametrize("batch_norm", [True, False])


def images(samples: int = 4, side: int = 8) -> Tensor:
    return torch.randn(samples, 3, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def tiny(*, batch_norm: bool) -> WideResNet:
    """Two blocks in each stage, so that both kinds of shortcut are there; running statistics are not the first."""
    torch.manual_seed(0)
    network = WideResNet(14, 1, num_classes=5, batch_norm=batch_norm).double()
    for name, values in network.state_dict().items():
        if "norm" in name and values.is_floating_point():
            nn.init.uniform_(values, 0.5, 1.5)
        elif name.endswith("bias"):
            nn.init.normal_(values)
    return network


def written_out(state: dict[str, Tensor], maps: Tensor) -> Tensor:
    """The network in evaluation."""

    def convolved(name: str, values: Tensor, stride: int = 1) -> Tensor:
        weight = state[f"{name}.weight"]
        return F.conv2d(values, weight, state.get(f"{name}.bias"), stride, weight.shape[-1] // 2)

    def activated(name: str, values: Tensor) -> Tensor:
        if f"{name}.weight" in state:
            parts = [state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
            mean, variance, scale, shift = (part[None, :, None, None] for part in parts)
            values = (values - mean) / (variance + 1e-5).sqrt() * scale + shift
        return values.clamp(min=0)

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


def parameters_by_hand(blocks: int, width: int, classes: int, *, batch_norm: bool) -> int:
    """Layer by layer; one number per map for a bias, or two per map that enters a normalisation."""
    bias, scales = (0, 2) if batch_norm else (1, 0)
    total, inputs = (27 + bias) * 16, 16
    for outputs in (16 * width, 32 * width, 64 * width):
        for _ in range(blocks):
            total += scales * (inputs + outputs) + (9 * inputs + bias) * outputs + (9 * outputs + bias) * outputs
            total += (inputs + bias) * outputs if inputs != outputs else 0
            inputs = outputs
    return total + scales * inputs + (inputs + 1) * classes


@pytest.mark.parametrize(
    ("depth", "classes", "batch_norm", "count"),
    [
        # The number that the usual ports report for depth 28; 26 is the same network without its projections.
        (28, 10, True, 36_479_194),
        (26, 10, True, 36_479_194),
        (26, 100, True, 36_536_884),
        (26, 10, False, 36_471_338),
    ],
)
def test_parameters_and_layers_of_weights(depth: int, classes: int, batch_norm: bool, count: int) -> None:
    with torch.device("meta"):
        network = WideResNet(depth, 10, classes, batch_norm)
    by_hand = parameters_by_hand(4, 10, classes, batch_norm=batch_norm)
    assert sum(parameter.numel() for parameter in network.parameters()) == by_hand == count
    convolutions = [name for name, module in network.named_modules() if isinstance(module, nn.Conv2d)]
    # Both ways to count: convolutions with projections, and layers of weights (one is linear) without them.
    assert len(convolutions) == 28
    assert len([name for name in convolutions if "shortcut" not in name]) + 1 == 26
    normalised = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(normalised) == (25 if batch_norm else 0)


@EITHER
def test_the_network_is_its_formula(batch_norm: bool) -> None:
    network = tiny(batch_norm=batch_norm).eval()
    expected = written_out(network.state_dict(), images())
    torch.testing.assert_close(network(images()), expected)
    torch.testing.assert_close(network.classifier(network.features(images())), expected)


def test_he_s_weights_with_batch_normalisation() -> None:
    torch.manual_seed(0)
    for module in WideResNet(8, 4).modules():
        if isinstance(module, nn.Conv2d) and module.weight.numel() > 5000:
            variance = 2 / (module.kernel_size[0] ** 2 * module.out_channels)
            assert module.weight.var().item() == pytest.approx(variance, rel=0.1)


def test_without_normalisation_the_maps_keep_their_size_and_training_starts() -> None:
    torch.manual_seed(0)
    network = WideResNet(26, 1, batch_norm=False)
    digits, classes = load_digits(return_X_y=True)
    samples = torch.tensor(digits / 8 - 1, dtype=torch.float32).reshape(-1, 1, 8, 8).expand(-1, 3, -1, -1)
    with torch.no_grad():
        stem = network.conv1(samples[:64])
        growth = (network.stages(stem).square().mean() / stem.square().mean()).item()
    # Plain He weights would double the mean square in each of 12 blocks.
    assert 0.5 < growth < 1.5 * math.e
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    curve = []
    for batch in torch.arange(64 * 60).remainder(len(samples)).split(64):
        loss = F.cross_entropy(network(samples[batch]), torch.from_numpy(classes)[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        curve.append(loss.item())
    # Chance is log 10 = 2.3.
    assert math.fsum(curve[-5:]) / 5 < 1.2


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


def test_the_two_later_stages_halve_the_maps() -> None:
    with torch.device("meta"):
        network = WideResNet(num_classes=200)
        for side in (32, 64):
            maps = network.conv1(torch.empty(2, 3, side, side))
            assert [(maps := stage(maps)).shape[2] for stage in network.stages] == [side, side // 2, side // 4]
            assert network(torch.empty(2, 3, side, side)).shape == (2, 200)
    assert network.classifier.in_features == 640


@EITHER
def test_trace_gradients_and_evaluation(batch_norm: bool) -> None:
    torch.manual_seed(0)
    # As they start: the scaled branches must let gradients through.
    network = WideResNet(14, 1, num_classes=5, batch_norm=batch_norm).double()
    F.cross_entropy(network(images()), torch.tensor([0, 3, 4, 1])).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    network.eval()
    graph = torch.fx.symbolic_trace(network)
    logits = network(images())
    assert torch.equal(graph(images()), logits)
    # Nothing but modules and sums, for methods that walk the graph.
    assert {node.target for node in graph.graph.nodes if node.op == "call_function"} == {operator.add}
    assert not [node for node in graph.graph.nodes if node.op == "call_method"]
    # In evaluation no image sees another.
    torch.testing.assert_close(network(images()[1:2]), logits[1:2])


def test_width_one_needs_no_projection_in_the_first_stage() -> None:
    blocks = [module for module in WideResNet(8, 1).modules() if isinstance(module, WideBlock)]
    assert [block.projects for block in blocks] == [False, True, True]


def test_bad_arguments_are_refused_by_name() -> None:
    for arguments, message in (
        ({"depth": 27}, r"depth must be 6 n \+ 2 or 6 n \+ 4, got 27"),
        ({"depth": 24}, r"depth must be 6 n \+ 2 or 6 n \+ 4, got 24"),
        ({"depth": 4}, "depth must be an integer of at least 8, got 4"),
        ({"width": 0}, "width must be an integer of at least 1, got 0"),
        ({"num_classes": 0}, "num_classes must be an integer of at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            WideResNet(**{"depth": 8, "width": 1} | arguments)
