"""Networks by their description, and their last layer."""

from typing import Any

import pytest
import torch

from softmax_temperature.params.network import Network
from softmax_temperature.runner.errors import InputError
from softmax_temperature.training import build_network, last_layer_inputs
from softmax_temperature.training.samples import normalise


def spec(**arguments: Any) -> Network:
    return Network(architecture="cifar_resnet", arguments={"blocks": 1, "widths": [4, 8, 16]} | arguments)


def test_weights_depend_on_the_seed_alone() -> None:
    before = torch.get_rng_state()
    first, second, other = (build_network(spec(), classes=4, seed=seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert not torch.equal(first["conv1.weight"], other["conv1.weight"])


@pytest.mark.parametrize("arguments", [{"depth": 3}, {"num_classes": 3}])
def test_arguments_that_the_network_does_not_take_are_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=rf"network 'cifar_resnet': does not take .*{next(iter(arguments))}"):
        build_network(spec(**arguments), classes=4, seed=0)


@pytest.mark.parametrize(("name", "head"), [("resnet", "linear"), ("two-layers", "classifier")])
def test_the_last_layer_is_given_with_its_inputs(name: str, head: str, make_network: Any, make_images: Any) -> None:
    network = make_network(name).eval()
    images = normalise(make_images().inputs, [0.5] * 3, [0.25] * 3)
    seen: list[Any] = []
    network.get_submodule(head).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    expected = network(images)
    logits, features = last_layer_inputs(network, images)
    assert torch.equal(logits, expected)
    assert torch.equal(features, seen[0])
