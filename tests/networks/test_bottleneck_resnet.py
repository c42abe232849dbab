from __future__ import annotations

import operator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.resnets import Bottleneck, BottleneckResNet

LAYERS = {50: (3, 4, 6, 3), 110: (3, 4, 26, 3)}


def images(samples: int = 4, side: int = 16) -> Tensor:
    return torch.randn(samples, 3, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def tiny(activation: str = "relu") -> BottleneckResNet:
    """Two stages of which the first has a block with an identity shortcut; its running statistics are not the first."""
    torch.manual_seed(0)
    network = BottleneckResNet((2, 1), num_classes=5, width=3, activation=activation).double()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for values in (module.weight, module.bias, module.running_mean, module.running_var):
                nn.init.uniform_(values, 0.5, 1.5)
    return network


def written_out(state: dict[str, Tensor], maps: Tensor, *, training: bool, double: bool) -> Tensor:
    """The classical form: a block takes activated maps, and its activation follows the sum."""

    def activate(values: Tensor) -> Tensor:
        return torch.cat([values.clamp(min=0), (-values).clamp(min=0)], 1) if double else values.clamp(min=0)

    def layer(name: str, norm: str, values: Tensor, stride: int = 1) -> Tensor:
        weight = state[f"{name}.weight"]
        values = F.conv2d(values, weight, stride=stride, padding=weight.shape[-1] // 2)
        of = [state[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        mean, variance, scale, shift = (part[None, :, None, None] for part in of)
        if training:
            mean = values.mean((0, 2, 3), keepdim=True)
            variance = values.var((0, 2, 3), correction=0, keepdim=True)
        return (values - mean) / (variance + 1e-5).sqrt() * scale + shift

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


def parameters_by_hand(blocks: tuple[int, ...], classes: int, width: int = 64, copies: int = 1) -> int:
    """Weights of convolutions, two numbers per normalised map, and the linear layer."""

    def layer(inputs: int, outputs: int, area: int) -> int:
        return area * inputs * outputs + 2 * outputs

    total, inputs = layer(3, width, 9), width
    for stage, count in enumerate(blocks):
        planes = width << stage
        for number in range(count):
            total += layer(copies * inputs, planes, 1) + layer(copies * planes, planes, 9)
            total += layer(copies * planes, 4 * planes, 1) + (0 if number else layer(copies * inputs, 4 * planes, 1))
            inputs = 4 * planes
    return total + (copies * inputs + 1) * classes


@pytest.mark.parametrize(
    ("layers", "classes", "activation", "count"),
    [
        # The first is the number that the widely used port reports.
        (50, 10, "relu", 23_520_842),
        (50, 100, "relu", 23_705_252),
        (110, 10, "relu", 45_864_522),
        (50, 100, "crelu", 47_355_556),
    ],
)
def test_parameters_and_layers_of_weights(layers: int, classes: int, activation: str, count: int) -> None:
    with torch.device("meta"):
        network = BottleneckResNet(LAYERS[layers], classes, activation=activation)
    by_hand = parameters_by_hand(LAYERS[layers], classes, copies=2 if activation == "crelu" else 1)
    assert sum(parameter.numel() for parameter in network.parameters()) == by_hand == count
    weighted = [name for name, module in network.named_modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    assert len([name for name in weighted if "shortcut" not in name]) == layers


@pytest.mark.parametrize("activation", ["relu", "crelu"])
@pytest.mark.parametrize("training", [False, True])
def test_the_network_is_its_classical_form(activation: str, training: bool) -> None:
    network = tiny(activation).train(training)
    state = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    expected = written_out(state, images(), training=training, double=activation == "crelu")
    torch.testing.assert_close(network(images()), expected)
    torch.testing.assert_close(network.classifier(network.features(images())), expected)


@pytest.mark.parametrize("activation", ["relu", "crelu"])
def test_identity_shortcuts_have_no_parameters(activation: str) -> None:
    blocks = [module for module in tiny(activation).modules() if isinstance(module, Bottleneck)]
    assert [len(list(block.shortcut.parameters())) for block in blocks] == [3, 0, 3]
    # With an empty branch the block is the identity, of the activated maps or, with CReLU, of the sum itself.
    block, total = blocks[1].eval(), torch.randn(2, 12, 4, 4, dtype=torch.float64)
    nn.init.zeros_(block.bn3.weight)
    nn.init.zeros_(block.bn3.bias)
    assert torch.equal(block(total), F.relu(total) if activation == "relu" else total)


def test_each_stage_after_the_first_halves_the_maps() -> None:
    with torch.device("meta"):
        network = BottleneckResNet(num_classes=200)
        for side in (32, 64):
            maps = network.conv1(torch.empty(2, 3, side, side))
            sides = [(maps := stage(maps)).shape[2] for stage in network.stages]
            assert sides == [side, side // 2, side // 4, side // 8]
            assert network(torch.empty(2, 3, side, side)).shape == (2, 200)
    assert network.classifier.in_features == 2048


@pytest.mark.parametrize("activation", ["relu", "crelu"])
def test_trace_gradients_and_evaluation(activation: str) -> None:
    network = tiny(activation)
    F.cross_entropy(network(images()), torch.tensor([0, 3, 4, 1])).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    network.eval()
    graph = torch.fx.symbolic_trace(network)
    logits = network(images())
    assert torch.equal(graph(images()), logits)
    # Nothing but modules, sums and CReLU's two halves, for methods that walk the graph.
    functions = {node.target for node in graph.graph.nodes if node.op == "call_function"}
    assert functions == {operator.add} | ({operator.neg, torch.cat} if activation == "crelu" else set())
    assert not [node for node in graph.graph.nodes if node.op == "call_method"]
    # In evaluation no image sees another.
    torch.testing.assert_close(network(images()[1:2]), logits[1:2])


def test_bad_arguments_are_refused_by_name() -> None:
    for arguments, message in (
        ({"blocks": ()}, r"blocks must hold at least one stage, got \(\)"),
        ({"blocks": (1, 0)}, "blocks must be an integer of at least 1, got 0"),
        ({"num_classes": 0}, "num_classes must be an integer of at least 1, got 0"),
        ({"width": 0}, "width must be an integer of at least 1, got 0"),
        ({"activation": "elu"}, "activation must be 'relu' or 'crelu', got 'elu'"),
    ):
        with pytest.raises(ValueError, match=message):
            BottleneckResNet(**{"blocks": (1,), "width": 2} | arguments)
