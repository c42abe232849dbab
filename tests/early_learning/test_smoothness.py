from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import nn

from softmax_temperature.early_learning.courses import is_smooth


@pytest.mark.parametrize(
    ("name", "smooth"), [("mlp", True), ("mlp-relu", False), ("convnet", True), ("vgg", False), ("wide-resnet", False)]
)
def test_networks_with_kinks(make_network: Callable[..., nn.Module], name: str, *, smooth: bool) -> None:
    assert is_smooth(make_network(name)) == smooth


def test_a_choice_of_a_maximum_is_a_kink() -> None:
    assert is_smooth(nn.Sequential(nn.Conv2d(3, 2, 3), nn.Tanh(), nn.AvgPool2d(2)))
    assert not is_smooth(nn.Sequential(nn.Conv2d(3, 2, 3), nn.Tanh(), nn.MaxPool2d(2)))
