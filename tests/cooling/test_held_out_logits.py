"""Cooling notices logits that its network did not return in evaluation mode."""

import copy
import io
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature import Cooling
from softmax_temperature.scaling import fit_temperature

INPUTS = torch.randn(200, 4, generator=torch.manual_seed(0))
LABELS = torch.arange(200) % 3
Label = Callable[[Tensor], Tensor]
IN_TRAINING = "evaluation mode, but seem .* training mode, where the model's {}"


class DropPath(nn.Module):
    """Stands for timm's module of this name, but only stores the probability."""

    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs


class Last(nn.Module):
    """The output of a recurrent layer, without its hidden state."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        # torch warns that dropout has no effect if there is only one layer.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.layer = nn.GRU(4, 4, layers, dropout=0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        numbers: Tensor = self.layer(inputs)[0]
        return numbers


DIFFERENT: dict[str, Callable[[], nn.Module]] = {
    "Dropout": lambda: nn.Dropout(0.5),
    "AlphaDropout": lambda: nn.AlphaDropout(0.1),
    "BatchNorm1d": lambda: nn.BatchNorm1d(4),
    "RReLU": nn.RReLU,
    "DropPath": lambda: DropPath(0.1),
    "GRU": lambda: Last(2),
}
SAME: dict[str, Callable[[], nn.Module]] = {
    "no dropout": nn.ReLU,
    "dropout of 0": lambda: nn.Dropout(0.0),
    "batch norm without running statistics": lambda: nn.BatchNorm1d(
        4, track_running_stats=False
    ),
    "layer norm": lambda: nn.LayerNorm(4),
    "path that is never dropped": lambda: DropPath(0.0),
    "one recurrent layer": lambda: Last(1),
}


def network_with(part: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), part, nn.Linear(4, 3))


def run(network: Callable[[Tensor], Tensor]) -> Tensor:
    with torch.no_grad():
        return network(INPUTS)


@pytest.mark.parametrize("kind", DIFFERENT)
@pytest.mark.parametrize("back", [False, True])
def test_logits_in_training_mode_are_warned_of(kind: str, back: bool) -> None:
    network = network_with(DIFFERENT[kind]())
    cooling = Cooling(network)
    for _ in range(2):
        logits = run(network.train()).clone()
        # The mode that is set after the forward pass does not matter.
        network.train(not back)
        with pytest.warns(UserWarning, match=IN_TRAINING.format(kind)) as caught:
            cooling.cool(logits, LABELS)
        assert caught[0].filename == __file__
    run(network.train())
    cooling.cool(run(network.eval()), LABELS)


@pytest.mark.parametrize("kind", DIFFERENT)
@pytest.mark.parametrize("detached", [False, True])
def test_the_last_output_in_training_mode_is_warned_of(
    kind: str, detached: bool
) -> None:
    network = network_with(DIFFERENT[kind]())
    cooling = Cooling(network)
    # An earlier pass in evaluation mode does not hide that the logits were computed in
    # training mode.
    run(network.eval())
    logits = network.train()(INPUTS)
    with pytest.warns(UserWarning, match=f"but come from training mode.* {kind}"):
        cooling.cool(logits.detach() if detached else logits, LABELS)


def test_a_copy_of_an_output_after_a_pass_in_evaluation_mode_is_accepted() -> None:
    network = network_with(nn.Dropout(0.5))
    cooling = Cooling(network)
    run(network.eval())
    cooling.cool(run(network.train()).clone(), LABELS)


@pytest.mark.parametrize("kind", SAME)
def test_networks_that_are_the_same_in_training_mode_are_not_warned_of(
    kind: str, uncertain_labels: Label
) -> None:
    network = network_with(SAME[kind]())
    cooling = Cooling(network)
    logits = run(network.train())
    labels = uncertain_labels(logits)
    expected = fit_temperature(logits, labels).temperature
    assert cooling.cool(logits, labels) == pytest.approx(expected, rel=1e-6)


def test_frozen_parts_are_not_warned_of() -> None:
    network = network_with(nn.BatchNorm1d(4))
    cooling = Cooling(network)
    network.train()[1].eval()
    cooling.cool(run(network), LABELS)


def test_logits_in_evaluation_mode_are_accepted_whatever_the_mode_is_now() -> None:
    network = network_with(nn.Dropout(0.5))
    cooling = Cooling(network)
    for _ in range(2):
        run(network.train())
        network.eval()
        logits = torch.cat([network(batch).detach() for batch in INPUTS.split(70)])
        run(network.train())
        cooling.cool(logits, LABELS)
    # Cooling cannot tell in which mode logits were computed elsewhere, so it accepts
    # them.
    cooling.cool(torch.randn(200, 3), LABELS)
    # A new Cooling object does not know of passes that ran before it was created.
    run(network.train())
    Cooling(network).cool(logits, LABELS)


def saved(network: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(network, file)
    file.seek(0)
    loaded: nn.Module = torch.load(file, weights_only=False)
    return loaded


@pytest.mark.parametrize("remake", [copy.deepcopy, saved])
def test_a_copy_has_passes_of_its_own(remake: Callable[[Any], Any]) -> None:
    network = network_with(nn.Dropout(0.5))
    cooling = Cooling(network)
    run(network.train())
    twin = remake(network)
    run(twin.eval())
    with pytest.warns(UserWarning, match=IN_TRAINING.format("Dropout")):
        cooling.cool(run(network).clone(), LABELS)
    assert "_cooling_passes" not in network.state_dict()


@pytest.mark.parametrize("mode", ["compiled", "inference mode", "functional"])
def test_evaluation_passes_of_other_kinds_are_seen(mode: str) -> None:
    network = network_with(nn.Dropout(0.5))
    cooling = Cooling(network)
    compiled = torch.compile(network, backend="eager", fullgraph=True)
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "compiled": compiled,
        "inference mode": torch.inference_mode()(network.__call__),
        "functional": lambda inputs: torch.func.functional_call(
            network, dict(network.named_parameters()), inputs
        ),
    }
    for _ in range(2):
        network.train()
        run(calls[mode])
        network.eval()
        cooling.cool(run(calls[mode]), LABELS)
    network.train()
    logits = run(calls[mode]).clone()
    with pytest.warns(UserWarning, match=IN_TRAINING.format("Dropout")):
        cooling.cool(logits, LABELS)


def test_logits_of_a_head_after_the_network_are_refused(
    uncertain_labels: Label,
) -> None:
    backbone = nn.Sequential(nn.Linear(4, 32), nn.ReLU())
    model = nn.Sequential(backbone, nn.Linear(32, 3)).eval()
    cooling = Cooling(backbone)
    with pytest.raises(
        ValueError,
        match=r"output has shape \(200, 32\), got logits of 3 .* Cooling\(model\)",
    ):
        cooling.cool(run(model), LABELS)
    assert cooling.temperature == 1
    # The remedy that the message names works.
    labels = uncertain_labels(run(model))
    assert Cooling(model).cool(run(model), labels) != 1


def test_classes_may_be_left_out_with_masks(uncertain_labels: Label) -> None:
    network = nn.Linear(4, 5).eval()
    cooling = Cooling(network)
    logits = run(network)
    labels = uncertain_labels(logits[:, :3])
    with pytest.raises(ValueError, match="with -inf in those of the classes"):
        cooling.cool(logits[:, :3], labels)
    masked = logits.clone()
    masked[:, 3:] = -torch.inf
    expected = fit_temperature(logits[:, :3], labels).temperature
    assert cooling.cool(masked, labels) == pytest.approx(expected, rel=1e-6)


SHAPES: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
    "maps": ((200, 3, 2, 2), lambda it: it),
    "rows of pixels": ((50, 3, 2, 2), lambda it: it.movedim(1, -1).flatten(0, -2)),
    "tokens": ((20, 10, 3), lambda it: it.movedim(-1, 1)),
    "rows of tokens": ((20, 10, 3), lambda it: it.flatten(0, 1)),
    "one logit": ((200, 1), lambda it: torch.cat([torch.zeros_like(it), it], 1)),
    "vector": ((200,), lambda it: torch.stack([torch.zeros_like(it), it], 1)),
    "binary maps": ((50, 2, 2), lambda it: torch.stack([torch.zeros_like(it), it], 1)),
    "one channel": ((9, 1, 5, 5), lambda it: torch.cat([torch.zeros_like(it), it], 1)),
}


@pytest.mark.parametrize("case", SHAPES)
def test_logits_may_be_moved_and_flattened(case: str, uncertain_labels: Label) -> None:
    shape, rearrange = SHAPES[case]
    outputs = torch.randn(shape, generator=torch.manual_seed(1))
    network = nn.Identity().eval()
    cooling = Cooling(network)
    logits = rearrange(network(outputs))
    labels = uncertain_labels(logits)
    rows = logits.movedim(1, -1).flatten(0, -2)
    expected = fit_temperature(rows, labels.flatten()).temperature
    assert cooling.cool(logits, labels) == pytest.approx(expected, rel=1e-6)
    torch.testing.assert_close(network(outputs), outputs / cooling.temperature)
