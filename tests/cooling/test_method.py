"""In every mode, Cooling divides any network's logits by the factor that it returns."""

import copy
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from softmax_temperature import cooling
from softmax_temperature.scaling import fit_temperature

Label = Callable[[Tensor], Tensor]
MakeNetwork = Callable[..., nn.Module]
BLOCKS = [
    "convolution",
    "batch norm",
    "ReLU",
    "CReLU",
    "tanh",
    "GELU",
    "SiLU",
    "group norm",
    "average",
    "identity shortcut",
    "normed shortcut",
    "projection",
    "append",
]
# With these low limits, the periodic mode redistributes at once.
MODES: dict[str, dict[str, object]] = {
    "last_layer": {"mode": "last_layer"},
    "distributed": {"mode": "distributed"},
    "periodic": {"mode": "periodic", "max_temperature": 0.01, "reset_temperature": 0.3},
}


@torch.no_grad()
def evaluate(network: nn.Module, images: Tensor) -> Tensor:
    # Some activations work in place; the images are shared by all tests.
    logits: Tensor = network(images.clone())
    return logits


@torch.no_grad()
def disturb(network: nn.Module, seed: int) -> None:
    """Change the parameters, as training does between two Cooling steps."""
    torch.manual_seed(seed)
    for parameter in network.parameters():
        parameter.mul_(1 + 0.2 * torch.rand_like(parameter))


def assert_same_state(network: nn.Module, before: dict[str, Tensor]) -> None:
    after = network.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())


@pytest.mark.parametrize("mode", MODES)
def test_new_logits_are_the_old_ones_divided_by_the_returned_factor(
    network: nn.Module,
    mode: str,
    images_for: Callable[[nn.Module], Tensor],
    uncertain_labels: Label,
) -> None:
    images = images_for(network)
    held = cooling.Cooling(network, factor=0.8, **MODES[mode])
    for period in range(3):
        disturb(network, period)
        old = evaluate(network, images)
        labels = uncertain_labels(old)
        applied = held.cool(old, labels)
        new = evaluate(network, images)
        assert held.last_fit is not None
        assert not held.last_fit.at_bound
        assert applied != 1
        torch.testing.assert_close(
            new,
            old / applied,
            rtol=1e-10,
            atol=1e-12 * old.abs().max().item() / applied,
        )
        assert torch.equal(new.argmax(dim=1), old.argmax(dim=1))


@given(
    blocks=st.lists(st.sampled_from(BLOCKS), max_size=6),
    seed=st.integers(0, 2**31),
    factor=st.floats(0.1, 1.5),
    mode=st.sampled_from(sorted(MODES)),
)
@settings(max_examples=60)
def test_any_stack_of_blocks_is_divided(
    make_network: MakeNetwork,
    images: Tensor,
    uncertain_labels: Label,
    blocks: list[str],
    seed: int,
    factor: float,
    mode: str,
) -> None:
    network = make_network(blocks, seed)
    held = cooling.Cooling(network, factor=factor, **MODES[mode])
    for _ in range(2):
        old = evaluate(network, images)
        applied = held.cool(old, uncertain_labels(old))
        torch.testing.assert_close(
            evaluate(network, images), old / applied, rtol=1e-10, atol=1e-12
        )


@pytest.mark.parametrize("mode", ["distributed", "periodic"])
def test_logits_in_training_mode_are_divided_and_running_statistics_are_unchanged(
    network: nn.Module,
    mode: str,
    images_for: Callable[[nn.Module], Tensor],
    uncertain_labels: Label,
) -> None:
    images = images_for(network)
    held = cooling.Cooling(network, **MODES[mode])
    twin = copy.deepcopy(network)
    old = evaluate(network, images)
    applied = held.cool(old, uncertain_labels(old))
    torch.manual_seed(0)
    before = evaluate(twin.train(), images)
    torch.manual_seed(0)
    after = evaluate(network.train(), images)
    torch.testing.assert_close(after, before / applied, rtol=1e-9, atol=1e-11)
    statistics = {
        name: value for name, value in network.named_buffers() if "running" in name
    }
    for name, value in statistics.items():
        torch.testing.assert_close(value, twin.get_buffer(name), rtol=1e-10, atol=1e-12)


def test_periodic_redistributes_when_it_exceeds_the_maximum(
    make_network: MakeNetwork, images: Tensor, uncertain_labels: Label
) -> None:
    network = make_network("plain")
    logits = evaluate(network, images)
    labels = uncertain_labels(logits)
    best = fit_temperature(logits, labels).temperature
    held = cooling.Cooling(
        network, mode="periodic", max_temperature=3 * best, reset_temperature=1.5 * best
    )
    weights = copy.deepcopy(dict(network.named_parameters()))
    held.cool(logits, labels)
    # Up to the maximum temperature, the periodic mode behaves like the mode last_layer.
    assert held.temperature == pytest.approx(best, rel=1e-6)
    assert all(
        torch.equal(weights[name], value) for name, value in network.named_parameters()
    )
    # The logits grow by a factor of 4, so the temperature becomes 4 * best. It exceeds
    # the reset temperature, 1.5 * best, by a factor of 4 / 1.5.
    with torch.no_grad():
        for parameter in network[-1].parameters():
            parameter.mul_(4)
    hot = evaluate(network, images)
    assert held.cool(hot, labels) == pytest.approx(4, rel=1e-6)
    assert held.temperature == pytest.approx(1.5 * best, rel=1e-12)
    kernel_scale = (4 / 1.5) ** (1 / 4)
    torch.testing.assert_close(
        network[0].weight, weights["0.weight"] / kernel_scale, rtol=1e-6, atol=0
    )
    torch.testing.assert_close(evaluate(network, images), hot / 4, rtol=1e-6, atol=1e-9)
    # After the redistribution, the next period starts from the reset temperature.
    assert held.cool(evaluate(network, images), labels) == pytest.approx(1, rel=1e-6)
    assert held.temperature == pytest.approx(1.5 * best, rel=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_a_fit_without_an_optimum_changes_nothing_and_says_so(
    make_network: MakeNetwork, images: Tensor, uncertain_labels: Label, mode: str
) -> None:
    network = make_network("plain")
    held = cooling.Cooling(network, **MODES[mode])
    logits = evaluate(network, images)
    held.cool(logits, uncertain_labels(logits))
    before = copy.deepcopy(network.state_dict())
    logits = evaluate(network, images)
    # The labels agree with the logits, contradict them, or are independent of them.
    for held_out, labels in (
        (logits, logits.argmax(dim=1)),
        (logits, logits.argmin(dim=1)),
        (torch.zeros_like(logits), logits.argmax(dim=1)),
    ):
        assert held.cool(held_out, labels) == 1
        assert held.last_fit is not None
        assert held.last_fit.at_bound
        assert_same_state(network, before)


def test_resumed_cooling_is_the_uninterrupted_one(
    make_network: MakeNetwork, images: Tensor, uncertain_labels: Label
) -> None:
    def train(network: nn.Module, held: cooling.Cooling, periods: range) -> None:
        for period in periods:
            disturb(network, period)
            logits = evaluate(network, images)
            held.cool(logits, uncertain_labels(logits))

    for arguments in MODES.values():
        whole = make_network("residual with batch norm")
        train(whole, cooling.Cooling(whole, factor=0.9, **arguments), range(4))
        first = make_network("residual with batch norm")
        train(first, cooling.Cooling(first, factor=0.9, **arguments), range(2))
        second = make_network("residual with batch norm", seed=7)
        held = cooling.Cooling(second, factor=0.9, **arguments)
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        train(second, held, range(2, 4))
        assert_same_state(second, whole.state_dict())


@pytest.mark.parametrize("mode", MODES)
def test_bad_input_is_refused_and_changes_nothing(
    make_network: MakeNetwork, images: Tensor, uncertain_labels: Label, mode: str
) -> None:
    network = make_network("U-Net")
    images = images.repeat(1, 1, 2, 2)
    optimizer = torch.optim.RMSprop(network.parameters())
    held = cooling.Cooling(network, **MODES[mode])
    logits = evaluate(network, images)
    labels = uncertain_labels(logits)
    before = copy.deepcopy(network.state_dict())
    wild = logits.clone()
    wild[3, 1, 0, 0] = math.nan
    for call, message in (
        (lambda: held.cool(wild, labels), "logits must be finite, got nan"),
        (
            lambda: held.cool(logits, labels[:, 0]),
            r"labels must have shape \(12, 16, 16\)",
        ),
        (
            lambda: held.cool(logits, labels, optimizer=optimizer, policy="rescale"),
            "got RMSprop",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
        assert_same_state(network, before)
        assert held.last_fit is None


def test_arguments_out_of_range_are_refused_before_the_network_is_touched(
    make_network: MakeNetwork,
) -> None:
    network = make_network("dense")
    for name, value in (
        ("mode", "last"),
        ("refit", "none"),
        ("factor", -0.1),
        ("max_temperature", -1.0),
    ):
        with pytest.raises(ValueError, match=f"{name} must be .* got '?{value}"):
            cooling.Cooling(network, **{name: value})
    assert "cooling_temperature" not in network.state_dict()


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0, 1.3])
@pytest.mark.parametrize("refit", ["whole", "increment"])
def test_the_factor_acts_on_the_whole_temperature_or_on_its_increment(
    make_network: MakeNetwork,
    images: Tensor,
    uncertain_labels: Label,
    refit: str,
    factor: float,
) -> None:
    network = make_network("plain")
    raw_network = copy.deepcopy(network)
    held = cooling.Cooling(network, factor=factor, refit=refit)
    present = 1.0
    for period in range(3):
        disturb(network, period)
        disturb(raw_network, period)
        raw = evaluate(raw_network, images)
        logits = evaluate(network, images)
        labels = uncertain_labels(raw)
        whole = fit_temperature(raw, labels).temperature ** factor
        if refit == "increment":
            whole = present * fit_temperature(logits, labels).temperature ** factor
        assert held.cool(logits, labels) == pytest.approx(whole / present, rel=1e-6)
        assert held.temperature == pytest.approx(whole, rel=1e-6)
        present = whole


@pytest.mark.parametrize("mode", ["last_layer", "distributed"])
@pytest.mark.parametrize("name", ["max_temperature", "reset_temperature"])
def test_a_limit_that_the_mode_does_not_read_is_refused(
    make_network: MakeNetwork, mode: str, name: str
) -> None:
    network = make_network("dense")
    with pytest.raises(ValueError, match=f"{name} is only for mode 'periodic', got 5"):
        cooling.Cooling(network, mode=mode, **{name: 5})  # type: ignore[arg-type]
    assert "cooling_temperature" not in network.state_dict()


def test_small_logits_after_the_first_call_are_not_taken_for_sigmoids() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.rand(30, 3, generator=generator, dtype=torch.float64)
    labels = torch.where(
        torch.rand(30, generator=generator) < 0.7,
        logits.argmax(dim=1),
        logits.argmin(dim=1),
    )
    held = cooling.Cooling(nn.Linear(2, 3), mode="last_layer")
    with pytest.raises(ValueError, match="as a sigmoid's do"):
        held.cool(logits, labels)
    assert held.temperature == 1
    # The smallest of these logits are below 0.
    held.cool(logits - 0.5, labels)
    expected = fit_temperature(logits - 0.5, labels).temperature
    assert held.cool(logits, labels) == pytest.approx(expected, rel=1e-6)


def test_an_average_of_the_weights_is_cooled_if_cooling_was_attached_first() -> None:
    def trained(*, cooling_first: bool, use_buffers: bool) -> tuple[Tensor, Tensor]:
        torch.manual_seed(0)
        network = nn.Linear(4, 3)
        images = torch.randn(200, 4)
        if cooling_first:
            cooler = cooling.Cooling(network)
        average = AveragedModel(network, use_buffers=use_buffers)
        if not cooling_first:
            cooler = cooling.Cooling(network)
        probs = torch.softmax(4 * network(images), dim=1)
        cooler.cool(network(images), torch.multinomial(probs, 1).squeeze(1))
        average.update_parameters(network)
        return network(images), average(images)

    for use_buffers in (False, True):
        cooled, averaged = trained(cooling_first=True, use_buffers=use_buffers)
        torch.testing.assert_close(averaged, cooled)
    cooled, averaged = trained(cooling_first=False, use_buffers=True)
    assert not torch.allclose(averaged, cooled)
    with pytest.raises(ValueError, match="longer"):
        trained(cooling_first=False, use_buffers=False)


@pytest.mark.parametrize("use_buffers", [False, True])
def test_an_average_lags_behind_until_it_is_cooled_itself(use_buffers: bool) -> None:
    torch.manual_seed(0)
    network = nn.Linear(4, 3)
    images = torch.randn(200, 4)
    probs = torch.softmax(4 * network(images), dim=1)
    labels = torch.multinomial(probs, 1).squeeze(1)
    cooler = cooling.Cooling(network)
    average = AveragedModel(network, use_buffers=use_buffers)
    average.update_parameters(network)
    cooler.cool(network(images).detach(), labels)
    assert average.module.cooling_temperature == 1
    average.update_parameters(network)
    held = (1 + cooler.temperature) / 2 if use_buffers else cooler.temperature
    assert average.module.cooling_temperature.item() == pytest.approx(held)

    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3)
    average.update_parameters(network)
    fitted = fit_temperature(average(images), labels).temperature
    assert abs(fitted - 1) > 0.1
    cooling.Cooling(average.module).cool(average(images).detach(), labels)
    fitted = fit_temperature(average(images), labels).temperature
    assert fitted == pytest.approx(1, rel=1e-4)


class Bare(nn.Module):
    """A network whose logits are its input."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, images: Tensor) -> Tensor:
        return self.weight * images


@pytest.mark.parametrize("wrapped", [False, True])
def test_logits_that_skipped_the_division_are_refused(wrapped: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    images = 3 * torch.randn(300, 4, generator=generator)
    labels = (images / 2).softmax(1).multinomial(1, generator=generator).squeeze(1)
    network = nn.DataParallel(Bare()) if wrapped else Bare()
    forward = network.module if wrapped else network.forward
    held = cooling.Cooling(network)
    first = held.cool(forward(images).detach(), labels)
    before = held.temperature
    with pytest.raises(ValueError, match=r"same as before .* not with model\.forward"):
        held.cool(forward(images).detach(), labels)
    assert held.temperature == before == pytest.approx(first)
    # The divided logits have a best temperature of 1, however often they are computed.
    for _ in range(2):
        assert held.cool(evaluate(network, images), labels) == pytest.approx(
            1, abs=1e-4
        )
    # If nothing was divided, the logits are the same as before, and must be accepted.
    again = cooling.Cooling(Bare())
    alone = torch.zeros(300, dtype=torch.long)
    for _ in range(2):
        assert again.cool(images, alone) == 1
