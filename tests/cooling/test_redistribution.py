"""Cooling redistributes the temperature in each kind of network, or refuses the
network.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import timm
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature import cooling
from softmax_temperature.cooling.redistribution import redistribute

MakeNetwork = Callable[..., nn.Module]


def test_a_chain_shares_evenly(make_network: MakeNetwork) -> None:
    plan = cooling.plan_redistribution(make_network("plain"))
    assert plan.layers == 4
    weights = dict.fromkeys(("0.weight", "3.weight", "8.weight", "10.weight"), 0.25)
    assert plan.parameters == weights | {
        "0.bias": 0.25,
        "3.bias": 0.5,
        "8.bias": 0.75,
        "10.bias": 1.0,
    }


def test_batch_norm_carries_the_power_and_the_layer_before_undoes_its_inputs_power(
    make_network: MakeNetwork,
) -> None:
    plan = cooling.plan_redistribution(make_network("plain with batch norm"))
    assert plan.layers == 4
    # Layers 0 and 4 are convolutions, 1 and 5 are batch norms, and 10 and 12 are dense.
    weights = {
        "1.weight": 0.25,
        "4.weight": -0.25,
        "5.weight": 0.5,
        "10.weight": 0.25,
        "12.weight": 0.25,
    }
    assert plan.parameters == weights | {
        "1.bias": 0.25,
        "5.bias": 0.5,
        "10.bias": 0.75,
        "12.bias": 1.0,
    }


def test_both_ends_of_a_skip_have_the_same_power(make_network: MakeNetwork) -> None:
    plan = cooling.plan_redistribution(make_network("residual"))
    # The layers that share the temperature are the stem, the two convolutions of the
    # block with a projection, and the classifier. The other blocks have identity skips,
    # so they do not count.
    assert plan.layers == 4
    assert plan.parameters["0.weight"] == 0.25
    assert (
        plan.parameters["2.conv1.weight"] == plan.parameters["2.conv2.weight"] == 0.25
    )
    assert plan.parameters["2.shortcut.weight"] == 0.5
    assert plan.parameters["6.weight"] == 0.25
    assert not any(
        name.endswith("weight") and name[0] in "13" for name in plan.parameters
    )
    assert plan.parameters["1.conv1.bias"] == plan.parameters["1.conv2.bias"] == 0.25
    assert plan.parameters["3.conv1.bias"] == plan.parameters["3.conv2.bias"] == 0.75


def test_other_homogeneous_operations_are_supported() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.deep = nn.Conv1d(2, 4, 1)
            self.wide = nn.ConvTranspose1d(4, 4, 1)
            self.pads = nn.ZeroPad1d(1)
            self.classifier = nn.Linear(8, 3)

        def forward(self, rows: Tensor) -> Tensor:
            height = rows.shape[-1] // 2 * 2
            first, second = self.deep(rows).chunk(2, dim=1)
            joined = torch.cat(
                [torch.maximum(first, second), sum([first, -second])], dim=1
            )
            joined = self.pads(self.wide(joined)).abs().transpose(1, 2)
            folded = F.pad(joined, (0, 4), value=0.0).mean(1) * height - F.pad(
                joined, (2, 2), "reflect"
            ).amax(1)
            folded.add_(folded, alpha=0.5)
            scores: Tensor = self.classifier(folded / (height + 1))
            return scores

    torch.manual_seed(0)
    network = Odd().double()
    rows = torch.randn(5, 2, 6, dtype=torch.float64)
    before = network(rows)
    redistribute(network, cooling.plan_redistribution(network), 7.0)
    torch.testing.assert_close(network(rows), before / 7)


@pytest.mark.parametrize("training", [False, True])
def test_batch_norms_of_timm_with_an_activation_inside_are_supported(
    training: bool, uncertain_labels: Callable[[Tensor], Tensor]
) -> None:
    torch.manual_seed(0)
    network = (
        timm.create_model("regnetx_002", pretrained=False, num_classes=4)
        .double()
        .eval()
    )
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.3)
    images = torch.randn(12, 3, 32, 32, dtype=torch.float64)
    held = cooling.Cooling(network, mode="distributed")
    twin = copy.deepcopy(network)
    logits = network(images).detach()
    applied = held.cool(logits, uncertain_labels(logits))
    assert held.redistribution is not None
    # The layers that share the temperature are the stem, four blocks of three
    # convolutions, and the classifier: 1 + 4 x 3 + 1 = 14 layers.
    assert held.redistribution.layers == 14
    assert applied != 1
    torch.testing.assert_close(
        network.train(training)(images),
        twin.train(training)(images) / applied,
        rtol=1e-9,
        atol=0,
    )


class Around(nn.Module):
    """A network with the given function between a convolution and the classifier."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.conv = nn.Conv2d(3, 4, 1)
        self.classifier = nn.Conv2d(4, 2, 1)
        self.offset = nn.Parameter(torch.zeros(()))

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.classifier(self.function(self.conv(images)))
        return scores


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            torch.tanh,
            "'tanh' in the network's own forward .* use torch.nn.Tanh",
        ),
        (lambda maps: maps.sigmoid_(), "'sigmoid_' .* use torch.nn.Sigmoid"),
        (lambda maps: F.layer_norm(maps, (8, 8)), "use torch.nn.LayerNorm"),
        (
            lambda maps: F.scaled_dot_product_attention(maps, maps, maps),
            "'scaled_dot_product_attention' .* queries and keys are scaled",
        ),
        (lambda maps: maps.softmax(1), "'softmax' .* normalises exponentials"),
        (lambda maps: maps + 1, "'add'"),
        (lambda maps: 1 / maps, "'truediv'"),
        (lambda maps: maps * maps, "'mul'"),
        (lambda maps: F.pad(maps, (1, 1), value=1.0), "'pad'"),
        (lambda maps: maps * torch.tensor(2.0), "'_tensor_constant0'"),
        (lambda maps: torch.cat([maps, maps.new_ones(12, 1, 8, 8)], 1), "'new_ones'"),
        (lambda maps: (F.silu(maps, inplace=True), maps)[1], "'silu'"),
        (lambda maps: maps * (1 if maps.sum() > 0 else 2), "no fixed graph"),
    ],
)
def test_functions_that_cannot_be_scaled_are_refused_by_name(
    function: Callable[[Tensor], Tensor], message: str
) -> None:
    network = Around(function)
    attributes = set(vars(network))
    with pytest.raises(ValueError, match=message):
        cooling.Cooling(network, mode="distributed")
    assert "cooling_temperature" not in network.state_dict()
    assert set(vars(network)) == attributes


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Softmax(1), r"module '1' \(Softmax\) normalises exponentials"),
        (nn.MultiheadAttention(8, 2), r"module '1' \(MultiheadAttention\) weights by"),
        (
            nn.InstanceNorm2d(4, track_running_stats=True),
            r"module '1' \(InstanceNorm2d\) does not pass",
        ),
        (nn.LocalResponseNorm(2), r"module '1' \(LocalResponseNorm\)"),
        (nn.MaxPool2d(1, return_indices=True), r"module '1' \(MaxPool2d\)"),
        (nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 4, 1)), "'1"),
    ],
)
def test_modules_that_cannot_be_scaled_are_refused_by_name(
    module: nn.Module, message: str
) -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 1), module, nn.Flatten(), nn.Linear(256, 2))
    for mode in ("distributed", "periodic"):
        with pytest.raises(ValueError, match=message):
            cooling.Cooling(network, mode=mode)
    cooling.Cooling(network, mode="last_layer")


def test_hooks_and_replaced_forward_functions_are_refused_except_coolings() -> None:
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    cooling.Cooling(network, mode="last_layer")
    cooling.Cooling(network, mode="distributed")
    handle = network[1].register_forward_pre_hook(lambda *_: None)
    with pytest.raises(ValueError, match=r"module '1' \(ReLU\) has a hook"):
        cooling.Cooling(network, mode="distributed")
    handle.remove()
    network[0].forward = lambda rows: rows[:, :2].tanh()
    with pytest.raises(
        ValueError, match=r"module '0' \(Linear\) has a replaced forward function"
    ):
        cooling.Cooling(network, mode="distributed")


class ShorterInEvaluation(nn.Module):
    """Two layers, one of which is skipped in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, rows: Tensor) -> Tensor:
        rows = self.first(rows)
        scores: Tensor = self.second(rows) if self.training else rows
        return scores


@pytest.mark.parametrize("training", [True, False])
def test_networks_that_differ_in_training_are_refused(training: bool) -> None:
    network = nn.Sequential(
        nn.Linear(3, 4), ShorterInEvaluation(), nn.Linear(4, 2)
    ).train(training)
    network[0].eval()
    with pytest.raises(
        ValueError, match="Sequential computes different functions in training"
    ):
        cooling.Cooling(network, mode="distributed")
    assert [module.training for module in network] == [False, training, training]


def test_layers_used_twice_and_shared_weights_are_refused() -> None:
    shared = nn.Linear(4, 4)
    with pytest.raises(ValueError, match=r"module '0' \(Linear\) shares a parameter"):
        cooling.plan_redistribution(nn.Sequential(shared, nn.ReLU(), shared))
    tied = nn.Linear(4, 4)
    tied.weight = shared.weight
    with pytest.raises(
        ValueError, match=r"module '2' \(Linear\) shares a parameter with module '0'"
    ):
        cooling.plan_redistribution(nn.Sequential(shared, nn.ReLU(), tied))


class Branching(nn.Module):
    """A function that torch.fx cannot trace."""

    def forward(self, rows: Tensor) -> Tensor:
        return rows * (1 if rows.sum() > 0 else 2)


def tied() -> nn.Module:
    network = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    network[2].weight = network[0].weight
    return network


def tanh_of_two_scales() -> nn.Module:
    tanh = nn.Tanh()
    return nn.Sequential(nn.Linear(3, 4), tanh, nn.Linear(4, 4), tanh, nn.Linear(4, 2))


REFUSED: dict[str, Callable[[], nn.Module]] = {
    "tied weights": tied,
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)),
    "spectral norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2)),
    "spectral norm by a hook": lambda: nn.utils.spectral_norm(nn.Linear(3, 2)),
    "no trace": lambda: nn.Sequential(nn.Linear(3, 2), Branching()),
    "no layer": lambda: nn.Sequential(nn.Flatten(), nn.ReLU()),
    "two scales": tanh_of_two_scales,
    "other function": lambda: nn.Sequential(
        nn.Linear(3, 2), nn.LocalResponseNorm(2), nn.Linear(2, 2)
    ),
    "modes that differ": lambda: nn.Sequential(nn.Linear(3, 4), ShorterInEvaluation()),
}


@pytest.mark.parametrize("mode", ["distributed", "periodic"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_the_mode_that_accepts_the_network(
    name: str, mode: str
) -> None:
    network = REFUSED[name]()
    with pytest.raises(
        ValueError,
        match=r"[^.]\. Mode 'last_layer' .* this network: Cooling\(model, mode=",
    ):
        cooling.Cooling(network, mode=mode)
    assert cooling.Cooling(network, mode="last_layer").temperature == 1


@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_network_is_refused_as_such_in_all_modes(in_place: bool) -> None:
    network: Any = nn.Linear(3, 2)
    if in_place:
        network.compile(backend="eager")
    else:
        network = torch.compile(network, backend="eager")
    for mode in ("last_layer", "distributed", "periodic"):
        with pytest.raises(ValueError, match="must be passed before torch"):
            cooling.Cooling(network, mode=mode)


def test_networks_without_a_layer_behind_the_last_fixed_scale_are_refused() -> None:
    with pytest.raises(
        ValueError, match="no layer between the input 'input' and the logits"
    ):
        cooling.plan_redistribution(nn.Sequential(nn.Flatten(), nn.ReLU()))
    bare = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, affine=False))
    with pytest.raises(
        ValueError, match=r"no layer between module '1' \(BatchNorm1d\) and the logits"
    ):
        cooling.plan_redistribution(bare)
