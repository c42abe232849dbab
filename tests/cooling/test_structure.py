"""The modes that scale each layer refuse a network whose layers have since changed."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from softmax_temperature import Cooling

CHANGED = "^the network has changed since Cooling was attached: "
INPUTS = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
LAYERED = ["distributed", "periodic"]


def network(activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), activation(), nn.Linear(16, 4)).eval()


def drawn(logits: Tensor, temperature: float) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    noise = -torch.rand(logits.shape, generator=generator).log()
    return (logits / temperature - noise.log()).argmax(1)


def attached(mode: str, model: nn.Module) -> Cooling:
    """A Cooling object that has cooled `model` once, layer by layer."""
    limits: dict[str, Any] = {}
    if mode == "periodic":
        limits = {"max_temperature": 0.1, "reset_temperature": 0.1}
    cooling = Cooling(model, mode=mode, **limits)
    cool_again(cooling, 0.5)
    return cooling


def cool_again(cooling: Cooling, temperature: float = 0.3) -> None:
    """Cool once, and check that the logits are divided by the returned factor."""
    with torch.no_grad():
        before = cooling.model(INPUTS)
        factor = cooling.cool(before, drawn(before, temperature))
        assert factor != 1
        torch.testing.assert_close(cooling.model(INPUTS), before / factor)


class LowRank(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(16, 2, bias=False)
        self.up = nn.Linear(2, 4, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        total: Tensor = self.layer(values) + self.up(self.down(values))
        return total


def perceptron() -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))


CHANGES: dict[str, Callable[[nn.Sequential], object]] = {
    "append": lambda model: model.append(nn.Linear(4, 4)),
    "insert": lambda model: model.insert(2, nn.Linear(16, 16)),
    "batch norm": lambda model: model.insert(1, nn.BatchNorm1d(16)),
    "activation": lambda model: model.__setitem__(1, nn.Tanh()),
    "perceptron": lambda model: model.__setitem__(2, perceptron()),
    "low rank": lambda model: model.__setitem__(2, LowRank(model[2])),
    "no bias": lambda model: model.__setitem__(2, nn.Linear(16, 4, bias=False)),
    "delete bias": lambda model: setattr(model[2], "bias", None),
    "hook": lambda model: model[1].register_forward_hook(lambda _m, _i, out: out + 1),
    "pre-hook": lambda model: model[1].register_forward_pre_hook(lambda _m, _i: None),
    "forward": lambda model: setattr(model[1], "forward", torch.tanh),
    "prune": lambda model: prune.l1_unstructured(model[2], "weight", 0.2),
    "spectral norm": lambda model: parametrizations.spectral_norm(model[2]),
    "weight norm": lambda model: parametrizations.weight_norm(model[2]),
}


@pytest.mark.parametrize("mode", LAYERED)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_network_is_refused_before_anything_changes(
    change: str, mode: str
) -> None:
    model = network()
    cooling = attached(mode, model)
    CHANGES[change](model)
    model.eval()
    state = copy.deepcopy(model.state_dict())
    logits = model(INPUTS).detach()

    with pytest.raises(ValueError, match=CHANGED) as error:
        cooling.cool(logits, drawn(logits, 0.3))

    assert "\n" not in str(error.value)
    torch.testing.assert_close(model.state_dict(), state, rtol=0, atol=0)


def test_an_activation_that_lost_its_scale_is_refused() -> None:
    model = network(nn.Tanh)
    cooling = attached("distributed", model)
    model[1] = nn.Tanh()
    logits = model(INPUTS).detach()

    with pytest.raises(ValueError, match=f"{CHANGED}module '1' \\(Tanh\\)"):
        cooling.cool(logits, drawn(logits, 0.3))


@pytest.mark.parametrize("change", ["append", "insert", "batch norm", "activation"])
def test_cooling_attached_anew_divides_the_logits_of_the_changed_network(
    change: str,
) -> None:
    model = network()
    attached("distributed", model)
    CHANGES[change](model)
    model.eval()

    cool_again(Cooling(model, mode="distributed"))


TRAINING: dict[str, Callable[[nn.Sequential], object]] = {
    "train and eval": lambda model: model.train().eval(),
    "frozen": lambda model: model[0].requires_grad_(False),
    "double": lambda model: model.double().float(),
    "state": lambda model: model.load_state_dict(copy.deepcopy(model.state_dict())),
    "data parallel": lambda model: nn.DataParallel(model)(INPUTS),
    "step": lambda model: [each.data.mul_(0.9) for each in model.parameters()],
    "new head": lambda model: model.__setitem__(2, nn.Linear(16, 4)),
    "compile": lambda model: model.compile(backend="eager"),
    "counter": lambda model: setattr(model, "epochs", 3),
    "gradient hook": lambda model: model[0].register_full_backward_hook(
        lambda *_: None
    ),
}


@pytest.mark.parametrize("mode", LAYERED)
@pytest.mark.parametrize("activation", [nn.ReLU, nn.GELU])
@pytest.mark.parametrize("change", TRAINING)
def test_changes_that_training_makes_are_accepted(
    change: str, activation: type[nn.Module], mode: str
) -> None:
    model = network(activation)
    cooling = attached(mode, model)
    TRAINING[change](model)

    cool_again(cooling)
