from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

from softmax_temperature.networks.densenet import DenseNet


def images(samples: int = 4, side: int = 16) -> Tensor:
    return torch.randn(samples, 3, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def tiny() -> DenseNet:
    torch.manual_seed(0)
    return DenseNet((2, 1, 3), growth=4, num_classes=5).double()


def torchvision_s(blocks: tuple[int, ...], growth: int, classes: int) -> nn.Module:
    """torchvision's network with the stem of the port: a 3×3 convolution, no normalisation and no pooling."""
    network = torchvision.models.DenseNet(growth, blocks, 2 * growth, num_classes=classes)
    network.features.conv0 = nn.Conv2d(3, 2 * growth, 3, padding=1, bias=False)
    for name in ("norm0", "relu0", "pool0"):
        setattr(network.features, name, nn.Identity())
    return network.double()


def test_parameters_and_layers_of_weights_of_densenet_121() -> None:
    with torch.device("meta"):
        network = DenseNet()
    # What the widely used port reports, and the sum by hand.
    total, channels = 27 * 64, 64
    for number, layers in enumerate((6, 12, 24, 16)):
        if number:
            total += 2 * channels + channels * (channels // 2)
            channels //= 2
        for _ in range(layers):
            total += 2 * channels + channels * 128 + 2 * 128 + 9 * 128 * 32
            channels += 32
    total += 2 * channels + (channels + 1) * 10
    assert sum(parameter.numel() for parameter in network.parameters()) == total == 6_956_298
    assert len([module for module in network.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]) == 121


@pytest.mark.parametrize("training", [False, True])
def test_the_network_is_torchvision_s_but_for_the_stem(training: bool) -> None:
    network, other = tiny(), torchvision_s((2, 1, 3), 4, 5)
    for values in network.state_dict().values():
        if values.is_floating_point() and values.ndim == 1:
            nn.init.uniform_(values, 0.5, 1.5)
    ours, theirs = network.state_dict(), other.state_dict()
    other.load_state_dict(dict(zip(theirs, ours.values(), strict=True)))
    expected = other.train(training)(images())
    torch.testing.assert_close(network.train(training)(images()), expected)
    torch.testing.assert_close(network.classifier(network.features(images())), expected)


def test_each_transition_halves_the_maps_and_their_number() -> None:
    with torch.device("meta"):
        network = DenseNet(num_classes=200)
        for side in (32, 64):
            maps, shapes = network.conv1(torch.empty(2, 3, side, side)), []
            for stage in network.stages:
                maps = stage(maps)
                shapes.append((maps.shape[1], side // maps.shape[2]))
            # Dense block and transition in turn.
            assert shapes == [(256, 1), (128, 2), (512, 2), (256, 4), (1024, 4), (512, 8), (1024, 8)]
            assert network(torch.empty(2, 3, side, side)).shape == (2, 200)
    assert network.classifier.in_features == 1024


def test_transitions_round_down() -> None:
    # 2 x 3 + 3 = 9 maps; a share of 0.4 is 3.6.
    network = DenseNet((1, 1), growth=3, reduction=0.4)
    assert network.stages[1][2].out_channels == 3
    assert DenseNet((1, 1), growth=3, reduction=1.0).stages[1][2].out_channels == 9


def test_trace_gradients_and_evaluation() -> None:
    network = tiny()
    F.cross_entropy(network(images()), torch.tensor([0, 3, 4, 1])).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    network.eval()
    graph = torch.fx.symbolic_trace(network)
    logits = network(images())
    assert torch.equal(graph(images()), logits)
    # Nothing but modules and concatenations, for methods that walk the graph.
    assert {node.target for node in graph.graph.nodes if node.op == "call_function"} == {torch.cat}
    assert not [node for node in graph.graph.nodes if node.op == "call_method"]
    # In evaluation no image sees another.
    torch.testing.assert_close(network(images()[1:2]), logits[1:2])


def test_bad_arguments_are_refused_by_name() -> None:
    for arguments, message in (
        ({"blocks": ()}, r"blocks must hold at least one dense block, got \(\)"),
        ({"blocks": (1, 0)}, "blocks must be an integer of at least 1, got 0"),
        ({"growth": 0}, "growth must be an integer of at least 1, got 0"),
        ({"reduction": 0.0}, r"reduction must be in \(0, 1\], got 0.0"),
        ({"reduction": 1.1}, r"reduction must be in \(0, 1\], got 1.1"),
        ({"reduction": float("nan")}, r"reduction must be in \(0, 1\], got nan"),
        ({"reduction": 0.1}, "reduction must leave a map of the 9 before each transition, got 0.1"),
        ({"num_classes": 0}, "num_classes must be an integer of at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            DenseNet(**{"blocks": (1, 1), "growth": 3} | arguments)
