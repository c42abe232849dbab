"""The last-layer temperature is copied, saved and compiled with its network."""

import copy
import io
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature import cooling
from softmax_temperature.cooling.last_layer import set_last_layer_temperature

MakeNetwork = Callable[..., nn.Module]


@pytest.fixture
def held(make_network: MakeNetwork) -> nn.Module:
    """A float32 network with the last-layer temperature 3."""
    network = make_network("plain").float()
    cooling.Cooling(network)
    set_last_layer_temperature(network, 3.0)
    return network


@pytest.fixture
def raw(held: nn.Module, images: Tensor) -> Tensor:
    """Uncooled logits: the network, at temperature 3, returns a third of them."""
    logits: Tensor = held.forward(images.float()).detach()
    return logits


def test_attaching_cooling_changes_no_logit(
    network: nn.Module, images_for: Callable[[nn.Module], Tensor]
) -> None:
    images = images_for(network)
    before = network(images)
    held = cooling.Cooling(network)
    assert torch.equal(network(images), before)
    assert held.temperature == 1
    assert network.state_dict()["cooling_temperature"].item() == 1


def test_logits_are_divided_and_gradients_too(
    held: nn.Module, raw: Tensor, images: Tensor
) -> None:
    logits = held(images.float())
    torch.testing.assert_close(logits, raw / 3)
    assert not held.get_buffer("cooling_temperature").requires_grad
    (cooled,) = torch.autograd.grad(logits.sum(), held[0].weight)
    (uncooled,) = torch.autograd.grad(
        held.forward(images.float()).sum(), held[0].weight
    )
    torch.testing.assert_close(cooled, uncooled / 3)


def test_the_state_carries_the_temperature_to_another_network(
    held: nn.Module, raw: Tensor, images: Tensor, make_network: MakeNetwork
) -> None:
    file = io.BytesIO()
    torch.save(held.state_dict(), file)
    file.seek(0)
    loaded = make_network("plain", seed=5).float()
    loaded_cooling = cooling.Cooling(loaded)
    loaded.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(loaded(images.float()), raw / 3)
    assert loaded_cooling.temperature == 3
    # Loading the state into a network without Cooling fails, which is better than a
    # network that silently returns uncooled logits.
    with pytest.raises(RuntimeError, match="cooling_temperature"):
        make_network("plain").load_state_dict(held.state_dict())


def test_a_copy_has_a_temperature_of_its_own_and_is_not_divided_twice(
    held: nn.Module, raw: Tensor, images: Tensor
) -> None:
    twin = copy.deepcopy(held)
    set_last_layer_temperature(held, 5.0)
    torch.testing.assert_close(twin(images.float()), raw / 3)
    assert cooling.Cooling(twin).temperature == 3
    torch.testing.assert_close(twin(images.float()), raw / 3)


def test_modules_made_from_parts_of_a_network_are_not_divided(images: Tensor) -> None:
    network = nn.Sequential(nn.Flatten(), nn.LazyLinear(8), nn.ReLU(), nn.Linear(8, 3))
    raw = network(images.float())
    cooling.Cooling(network)
    set_last_layer_temperature(network, 3.0)
    torch.testing.assert_close(network(images.float()), raw / 3)

    for made in (network[:], nn.Sequential(*network), torch.fx.symbolic_trace(network)):
        torch.testing.assert_close(made(images.float()), raw)
        assert cooling.last_layer.BUFFER not in made.state_dict()
    torch.testing.assert_close(copy.deepcopy(network)(images.float()), raw / 3)


def test_compiled_networks_see_each_cooling(
    held: nn.Module, raw: Tensor, images: Tensor
) -> None:
    compiled = torch.compile(held, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(images.float()), raw / 3)
    set_last_layer_temperature(held, 7.0)
    torch.testing.assert_close(compiled(images.float()), raw / 7)
    with pytest.raises(ValueError, match=r"passed before torch.compile"):
        cooling.Cooling(compiled)


def test_a_part_of_a_network_is_refused_while_the_compiled_network_exists(
    make_network: MakeNetwork, images: Tensor
) -> None:
    # The compiled forward function of the outer network would not run the inner
    # network's hook.
    inner = make_network("plain")
    outer = nn.Sequential(inner)
    compiled = torch.compile(outer, backend="eager")
    expected = compiled(images)
    with pytest.raises(
        ValueError, match=r"got a part of Sequential, which is compiled"
    ):
        cooling.Cooling(inner)
    torch.testing.assert_close(outer(images), expected)
    del compiled
    cooling.Cooling(inner)
    in_place = nn.Sequential(make_network("plain"))
    in_place.compile(backend="eager")
    for model, message in ((in_place, "a compiled one"), (in_place[0], "a part of")):
        with pytest.raises(ValueError, match=message):
            cooling.Cooling(model)
    # If only a part of the network is compiled, the hook runs outside that part.
    whole = nn.Sequential(torch.compile(make_network("plain"), backend="eager"))
    raw = whole(images)
    cooling.Cooling(whole)
    set_last_layer_temperature(whole, 3.0)
    torch.testing.assert_close(whole(images), raw / 3)


def test_more_than_one_output_is_refused(images: Tensor) -> None:
    class Pair(nn.Module):
        def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
            return images, images

    network = Pair()
    cooling.Cooling(network)
    with pytest.raises(
        TypeError,
        match=r"one tensor of logits to be cooled, got tuple\. .*model\.classifier\.$",
    ):
        network(images)
    with pytest.raises(ValueError, match="model must return one tensor of logits"):
        cooling.plan_redistribution(Pair())


# torch deprecates `torch.jit.script` and `torch.jit.trace`, but many users still have
# networks made by them.
@pytest.mark.filterwarnings("ignore:.torch.jit:FutureWarning")
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("mode", ["last_layer", "periodic"])
def test_a_scripted_or_traced_network_is_refused(mode: str) -> None:
    network = nn.Linear(3, 2)
    for convert in (torch.jit.script, lambda it: torch.jit.trace(it, torch.ones(1, 3))):
        with pytest.raises(ValueError, match=r"torch.jit, got .* Pass the"):
            cooling.Cooling(convert(network), mode=mode)
