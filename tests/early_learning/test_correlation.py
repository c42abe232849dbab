from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.early_learning.pair import CorrelatedPair, correlation_for_norm

MakeNetwork = Callable[..., nn.Module]
EVERY = pytest.mark.parametrize("name", ["mlp", "convnet", "vgg", "wide-resnet"])


@EVERY
@pytest.mark.parametrize(("inverse_temperature", "share"), [(0.01, 0.9), (1.0, 0.1), (1000.0, 1e-3)])
def test_the_pair_starts_with_the_wanted_norm(
    make_network: MakeNetwork, images: Tensor, name: str, inverse_temperature: float, share: float
) -> None:
    first, second = make_network(name, 0).double().eval(), make_network(name, 1).double().eval()

    def norm(correlation: float) -> float:
        return inverse_temperature * CorrelatedPair(first, second, correlation)(images).norm().item()

    wanted = share * norm(0.0)
    found = correlation_for_norm(first, second, images, wanted, inverse_temperature=inverse_temperature)
    assert 0 <= found <= 1
    assert norm(found) == pytest.approx(wanted, rel=1e-4)


@EVERY
def test_norms_over_more_than_three_decades_are_reached_at_one_inverse_temperature(
    make_network: MakeNetwork, images: Tensor, name: str
) -> None:
    first, second = make_network(name, 0).double().eval(), make_network(name, 1).double().eval()
    wanted = [0.03, 0.3, 3.0, 30.0, 300.0]
    correlations = [correlation_for_norm(first, second, images, norm, inverse_temperature=1000.0) for norm in wanted]
    # The larger the norm, the less alike the networks.
    assert correlations == sorted(correlations, reverse=True)
    for norm, correlation in zip(wanted, correlations, strict=True):
        reached = 1000 * CorrelatedPair(first, second, correlation)(images).norm().item()
        assert reached == pytest.approx(norm, rel=1e-4)


def test_the_ends_of_the_range(make_network: MakeNetwork, images: Tensor) -> None:
    first, second = make_network("mlp", 0).double(), make_network("mlp", 1).double()
    assert correlation_for_norm(first, second, images, 0.0, inverse_temperature=2.0) == 1
    largest = 2 * (first(images) - second(images)).norm().item()
    assert correlation_for_norm(first, second, images, largest, inverse_temperature=2.0) == pytest.approx(0, abs=1e-6)
    for wanted in (-1.0, 1.001 * largest, float("nan")):
        with pytest.raises(ValueError, match=rf"logit_norm must be in \[0, {largest:g}\] .* temperature 2, got"):
            correlation_for_norm(first, second, images, wanted, inverse_temperature=2.0)
    with pytest.raises(ValueError, match="inverse_temperature must be finite and positive, got 0"):
        correlation_for_norm(first, second, images, 1.0, inverse_temperature=0.0)


def test_the_networks_are_only_looked_at(make_network: MakeNetwork, images: Tensor) -> None:
    first, second = make_network("wide-resnet-bn", 0).double(), make_network("wide-resnet-bn", 1).double()
    before = [copy.deepcopy(network.state_dict()) for network in (first, second)]
    found = correlation_for_norm(first, second, images, 1.0, inverse_temperature=1.0)
    for network, state in zip((first, second), before, strict=True):
        assert network.training
        assert all(torch.equal(value, state[name]) for name, value in network.state_dict().items())
    # In training, as the networks are: normalised by the batch.
    assert CorrelatedPair(first, second, found)(images).norm().item() == pytest.approx(1.0, rel=1e-4)
