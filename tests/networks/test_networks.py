"""Image networks mix no samples, train all parameters, and have the published sizes."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from softmax_temperature.networks.registry import (
    build_network,
    check_network,
    count_parameters,
    network_class,
)
from softmax_temperature.networks.unet import UNet
from softmax_temperature.params.network import Network
from softmax_temperature.runner.errors import InputError
from tests.networks.formulas import images

CLASSES = 5
TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "bottleneck": ("bottleneck_resnet", {"blocks": (2, 1), "width": 3}),
    "bottleneck-crelu": (
        "bottleneck_resnet",
        {"blocks": (2, 1), "width": 3, "activation": "crelu"},
    ),
    "convnet": ("convnet", {"image_size": 16}),
    "densenet": ("densenet", {"blocks": (2, 1, 3), "growth": 4}),
    "mlp": ("mlp", {"image_size": 16}),
    "preactivation": ("preactivation_resnet", {"blocks": (2, 1), "width": 3}),
    "preactivation-crelu": (
        "preactivation_resnet",
        {"blocks": (2, 1), "width": 3, "activation": "crelu"},
    ),
    "vgg": (
        "vgg",
        {
            "widths": (4, 4),
            "dense": 7,
            "image_size": 16,
            "batch_norm": True,
            "activation": "crelu",
        },
    ),
    "wide-released": ("wide_resnet", {"depth": 14, "width": 1, "as_released": True}),
    "wide-unnormalised": (
        "wide_resnet",
        {"depth": 14, "width": 1, "batch_norm": False},
    ),
}


def test_weights_depend_only_on_the_seed() -> None:
    spec = Network(
        architecture="cifar_resnet", arguments={"blocks": 1, "widths": [4, 8, 16]}
    )
    before = torch.get_rng_state()
    first = build_network(spec, classes=4, seed=3).state_dict()
    same_seed = build_network(spec, classes=4, seed=3).state_dict()
    other_seed = build_network(spec, classes=4, seed=4).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in first.items():
        assert torch.equal(value, same_seed[name])
    assert not torch.equal(first["conv1.weight"], other_seed["conv1.weight"])


class Calls(TorchDispatchMode):
    """Records the names of the operators that torch calls."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.names.add(func.name())
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("architecture", "arguments"),
    [
        ("text_cnn", {"vocabulary_size": 9}),
        ("tree_lstm", {"vocabulary_size": 9}),
        ("gru", {"vocabulary_size": 9}),
        ("cifar_resnet", {"blocks": 1, "widths": [4, 8, 16]}),
    ],
)
def test_a_check_draws_no_normal_numbers(
    architecture: str, arguments: dict[str, Any]
) -> None:
    # Normal draws would make torch import its compiler, which takes seconds.
    spec = Network(architecture=architecture, arguments=arguments)
    with Calls() as calls:
        network = check_network(spec)
    assert "aten::empty.memory_format" in calls.names
    assert not any("normal" in name for name in calls.names)
    assert all(parameter.is_meta for parameter in network.parameters())


@pytest.mark.parametrize("name", TINY)
def test_images_are_independent_and_every_parameter_has_a_gradient(name: str) -> None:
    torch.manual_seed(0)
    architecture, arguments = TINY[name]
    network: Any = network_class(architecture)(**arguments, num_classes=CLASSES)
    network.double().eval()
    logits = network(images())
    assert logits.shape == (4, CLASSES)
    assert torch.equal(network.classifier(network.features(images())), logits)
    torch.testing.assert_close(network(images()[1:2]), logits[1:2])
    labels = torch.tensor([0, 3, 4, 1])
    F.cross_entropy(network.train()(images()), labels).backward()
    for parameter in network.parameters():
        assert parameter.grad.abs().max() > 0


# Number of parameters, and number of layers without the projections.
SIZES: dict[str, tuple[str, dict[str, Any], int, int]] = {
    # These are the counts of the widely used PyTorch versions of these networks.
    "resnet50": ("bottleneck_resnet", {}, 23_520_842, 50),
    "resnet110": ("bottleneck_resnet", {"blocks": (3, 4, 26, 3)}, 45_864_522, 110),
    "resnet20": ("cifar_resnet", {"blocks": 3}, 269_722, 20),
    "resnet110-classic": ("cifar_resnet", {"blocks": 18}, 1_727_962, 110),
    "densenet121": ("densenet", {}, 6_956_298, 121),
    # The PyTorch versions call this network WRN-28; its depth without projections is
    # 26.
    "wide-28-10": ("wide_resnet", {"depth": 28}, 36_479_194, 26),
    "wide-26-10": ("wide_resnet", {"depth": 26}, 36_479_194, 26),
    # A batch norm follows each projection, but none follows the last stage.
    "wide-released": ("wide_resnet", {"as_released": True}, 36_481_434, 26),
    "wide-unnormalised": ("wide_resnet", {"batch_norm": False}, 36_471_338, 26),
    "resnet50-crelu": (
        "bottleneck_resnet",
        {"num_classes": 100, "activation": "crelu"},
        47_355_556,
        50,
    ),
    # The Cooling paper reports 23.5 million parameters without the last layer, which
    # has 204,900.
    "resnet50-preactivation": (
        "preactivation_resnet",
        {"num_classes": 100},
        23_492_672 + 204_900,
        50,
    ),
    # The network has 8,192 features instead of 2,048, for 200 classes.
    "resnet50-tiny-imagenet": (
        "bottleneck_resnet",
        {"num_classes": 200, "as_released": True},
        25_138_952,
        50,
    ),
    # The paper gives about 620,000 parameters but no layout.
    "vgg": ("vgg", {}, 550_570, 8),
    "vgg-average": ("vgg", {"pooling": "average"}, 304_810, 8),
    "vgg-crelu": ("vgg", {"activation": "crelu"}, 1_099_690, 8),
    "vgg-crelu-average": (
        "vgg",
        {"activation": "crelu", "pooling": "average"},
        608_170,
        8,
    ),
    # Batch normalisation replaces each filter's bias by a scale and a shift: 448 more
    # parameters.
    "vgg-batch-norm": ("vgg", {"batch_norm": True}, 551_018, 8),
    # By hand: 193 · 64 + 65 · 64 + 65 · 10.
    "mlp": ("mlp", {}, 17_162, 3),
    # By hand: (9 · 3 + 1) · 8 + (9 · 8 + 1) · 16 + (16 · 4 + 1) · 10.
    "convnet": ("convnet", {}, 2_042, 3),
    # By hand: an embedding of 20,002 · 100, three convolutions of width 5 with 128
    # filters, and two dense layers. These are the released sizes.
    "text-cnn": ("text_cnn", {"vocabulary_size": 20_002}, 2_247_516, 2),
}


def layers_with_weights(network: nn.Module) -> list[str]:
    return [
        name
        for name, module in network.named_modules()
        if isinstance(module, nn.Conv2d | nn.Linear) and "shortcut" not in name
    ]


@pytest.mark.parametrize("name", SIZES)
def test_a_network_has_its_published_parameters_and_layers(name: str) -> None:
    architecture, arguments, parameters, layers = SIZES[name]
    with torch.device("meta"):
        network = network_class(architecture)(**arguments)
    assert count_parameters(network) == parameters
    assert len(layers_with_weights(network)) == layers


def test_a_unet_has_about_nine_million_parameters() -> None:
    with torch.device("meta"):
        network = UNet()
    assert count_parameters(network) == 8_768_478
    # The four up-convolutions are not counted as layers.
    assert len(layers_with_weights(network)) == 19


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "bottleneck_resnet",
            {"activation": "elu"},
            "activation must be 'relu' or 'crelu', got 'elu'",
        ),
        (
            "mlp",
            {"activation": "gelu"},
            "activation must be 'tanh' or 'relu', got 'gelu'",
        ),
        (
            "vgg",
            {"pooling": "max"},
            "pooling must be 'flatten' or 'average', got 'max'",
        ),
        (
            "wide_resnet",
            {"batch_norm": False, "as_released": True},
            "as_released requires batch_norm",
        ),
        (
            "wide_resnet",
            {"depth": 27},
            r"at least 8 and equal 6 n \+ 2 or 6 n \+ 4, got 27",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(
    name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(
        InputError, match=rf"network '{name}': does not take .*{message}"
    ):
        build_network(
            Network(architecture=name, arguments=arguments), classes=2, seed=0
        )
