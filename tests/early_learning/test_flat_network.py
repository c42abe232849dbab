from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev

from softmax_temperature.early_learning.pair import CorrelatedPair, frozen_parameters
from softmax_temperature.early_learning.tangent_kernel import FlatNetwork, refuse_batch_norm

MakeNetwork = Callable[..., nn.Module]
EVERY = pytest.mark.parametrize("name", ["mlp", "mlp-relu", "convnet", "vgg", "wide-resnet"])
CHUNKS = pytest.mark.parametrize("chunk", [1, 4, 6, 100])


def jacobian(network: nn.Module, images: Tensor) -> Tensor:
    """By torch alone, parameter by parameter: (n, classes, p)."""
    own = copy.deepcopy(network).double().eval()
    named = {name: value.detach() for name, value in own.named_parameters()}
    parts = jacrev(lambda values: functional_call(own, values, (images,)))(named)
    return torch.cat([parts[name].flatten(2) for name in named], dim=2)


@EVERY
@CHUNKS
def test_products_are_those_of_the_jacobian(make_network: MakeNetwork, images: Tensor, name: str, chunk: int) -> None:
    flat, expected = FlatNetwork(make_network(name), images, chunk=chunk), jacobian(make_network(name), images)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(flat.shape, generator=generator, dtype=torch.float64)
    direction = torch.randn(flat.start.shape, generator=generator, dtype=torch.float64)
    pulled = torch.einsum("nkp,nk->p", expected, weights)
    torch.testing.assert_close(flat.jacobian(flat.start), expected)
    torch.testing.assert_close(flat.pull_back(flat.start, weights), pulled)
    torch.testing.assert_close(flat.push_forward(flat.start, direction), expected @ direction)
    torch.testing.assert_close(flat.kernel_product(flat.start, weights), expected @ pulled)
    logits, descended = flat.descend(flat.start, lambda some, rows: some.square() + weights[rows])
    torch.testing.assert_close(logits, flat.logits(flat.start))
    squared = torch.einsum("nkp,nk->p", expected, logits.square() + weights)
    torch.testing.assert_close(descended, squared)


@EVERY
def test_products_hold_away_from_the_start(make_network: MakeNetwork, images: Tensor, name: str) -> None:
    flat, moved = FlatNetwork(make_network(name, 0), images), make_network(name, 1).double()
    parameters = torch.cat([value.detach().flatten() for value in moved.parameters()])
    torch.testing.assert_close(flat.logits(parameters), moved(images).detach())
    torch.testing.assert_close(flat.jacobian(parameters), jacobian(moved, images))


@EVERY
@CHUNKS
def test_a_pair_is_its_network_minus_a_constant(
    make_network: MakeNetwork, images: Tensor, name: str, chunk: int
) -> None:
    first, second = make_network(name, 0).double(), make_network(name, 1).double()
    flat = FlatNetwork(first, images, frozen=frozen_parameters(first, second, 0.5), chunk=chunk)
    torch.testing.assert_close(flat.logits(flat.start), CorrelatedPair(first, second, 0.5)(images).detach())
    torch.testing.assert_close(flat.jacobian(flat.start), jacobian(first, images))
    centred = FlatNetwork(first, images, frozen=frozen_parameters(first, second, 1.0), chunk=chunk)
    assert (centred.logits(centred.start) == 0).all()


def test_the_network_is_not_touched(make_network: MakeNetwork, images: Tensor) -> None:
    network = make_network().train()
    flat = FlatNetwork(network, images.float())
    assert flat.start.dtype == torch.float64
    assert all(value.dtype == torch.float32 and value.requires_grad for value in network.parameters())
    assert network.training


def test_bad_arguments_are_refused_by_name(make_network: MakeNetwork, images: Tensor) -> None:
    with pytest.raises(ValueError, match=r"must not have batch normalisation, got BatchNorm2d at 'stages.0.0.norm1'"):
        FlatNetwork(make_network("wide-resnet-bn"), images)
    with pytest.raises(ValueError, match="got BatchNorm1d at '1'"):
        refuse_batch_norm(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    with pytest.raises(ValueError, match="chunk must be an integer of at least 1, got 0"):
        FlatNetwork(make_network(), images, chunk=0)
