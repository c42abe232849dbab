"""What all networks of images have in common, and the numbers of parameters that the
papers give or imply.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from softmax_temperature.networks.registry import ARCHITECTURES, build_network
from softmax_temperature.networks.unet import UNet
from softmax_temperature.params.network import Network
from softmax_temperature.runner.errors import InputError
from tests.networks.test_formulas import images

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


def test_weights_depend_on_the_seed_alone() -> None:
    spec = Network(
        architecture="cifar_resnet", arguments={"blocks": 1, "widths": [4, 8, 16]}
    )
    before = torch.get_rng_state()
    first, second, other = (
        build_network(spec, classes=4, seed=seed).state_dict() for seed in (3, 3, 4)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert not torch.equal(first["conv1.weight"], other["conv1.weight"])


@pytest.mark.parametrize("name", TINY)
def test_no_image_sees_another_and_every_parameter_has_a_gradient(name: str) -> None:
    torch.manual_seed(0)
    architecture, arguments = TINY[name]
    network: Any = (
        ARCHITECTURES[architecture](**arguments, num_classes=CLASSES).double().eval()
    )
    logits = network(images())
    assert logits.shape == (4, CLASSES)
    assert torch.equal(network.classifier(network.features(images())), logits)
    torch.testing.assert_close(network(images()[1:2]), logits[1:2])
    F.cross_entropy(network.train()(images()), torch.tensor([0, 3, 4, 1])).backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in network.parameters())


@pytest.mark.parametrize(
    ("build", "count", "layers"),
    [
        # 23,520,842 is what the widely used port reports. The layers leave the
        # projections out.
        (ARCHITECTURES["bottleneck_resnet"], 23_520_842, 50),
        (lambda: ARCHITECTURES["bottleneck_resnet"]((3, 4, 26, 3)), 45_864_522, 110),
        (
            lambda: ARCHITECTURES["bottleneck_resnet"](
                num_classes=100, activation="crelu"
            ),
            47_355_556,
            50,
        ),
        (lambda: ARCHITECTURES["cifar_resnet"](3), 269_722, 20),
        (lambda: ARCHITECTURES["cifar_resnet"](18), 1_727_962, 110),
        # What the widely used port reports.
        (ARCHITECTURES["densenet"], 6_956_298, 121),
        # What the usual ports report for depth 28; 26 is the same network without its
        # projections.
        (lambda: ARCHITECTURES["wide_resnet"](28), 36_479_194, 26),
        (lambda: ARCHITECTURES["wide_resnet"](26), 36_479_194, 26),
        # As released: the projections have a batch norm each, and the one behind the
        # last stage is that of the stem.
        (lambda: ARCHITECTURES["wide_resnet"](26, as_released=True), 36_481_434, 26),
        # As released for Tiny-ImageNet: 8,192 features in the place of 2,048 for 200
        # classes.
        (
            lambda: ARCHITECTURES["bottleneck_resnet"](
                num_classes=200, as_released=True
            ),
            25_138_952,
            50,
        ),
        (lambda: ARCHITECTURES["wide_resnet"](26, batch_norm=False), 36_471_338, 26),
        # The paper says approximately 620,000 and gives no layout.
        (ARCHITECTURES["vgg"], 550_570, 8),
        (lambda: ARCHITECTURES["vgg"](pooling="average"), 304_810, 8),
        (lambda: ARCHITECTURES["vgg"](activation="crelu"), 1_099_690, 8),
        (
            lambda: ARCHITECTURES["vgg"](activation="crelu", pooling="average"),
            608_170,
            8,
        ),
        # Batch normalisation has a scale and a shift in the place of each filter's
        # bias: 448 more.
        (lambda: ARCHITECTURES["vgg"](batch_norm=True), 551_018, 8),
        # By hand: 193 · 64 + 65 · 64 + 65 · 10, and (9 · 3 + 1) · 8 + (9 · 8 + 1) · 16
        # + (16 · 4 + 1) · 10.
        (ARCHITECTURES["mlp"], 17_162, 3),
        (ARCHITECTURES["convnet"], 2_042, 3),
        # By hand: 20,002 · 100, three convolutions of width 5 on 128 filters, and two
        # dense layers; released sizes.
        (lambda: ARCHITECTURES["text_cnn"](20_002), 2_247_516, 2),
        # About nine million; the four up-convolutions are not counted as layers.
        (UNet, 8_768_478, 19),
    ],
)
def test_parameters_and_layers_of_weights(
    build: Callable[[], nn.Module], count: int, layers: int
) -> None:
    with torch.device("meta"):
        network = build()
    assert sum(parameter.numel() for parameter in network.parameters()) == count
    weighted = [
        name
        for name, module in network.named_modules()
        if isinstance(module, nn.Conv2d | nn.Linear)
    ]
    assert len([name for name in weighted if "shortcut" not in name]) == layers


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
            "as_released must be false without batch_norm",
        ),
        (
            "wide_resnet",
            {"depth": 27},
            r"depth must be 6 n \+ 2 or 6 n \+ 4 of at least 8, got 27",
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
