"""Objectives: each is the loss it is named after, and nobody else's business."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import softmax_temperature
from softmax_temperature.losses.objectives import make_objective, objective_module, objective_names
from softmax_temperature.params import Params
from softmax_temperature.runner.cells import Cell
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.fingerprint import import_closure
from softmax_temperature.stages import train_focal
from softmax_temperature.tools.profiles import render_profile

ROOT = Path(__file__).parents[2]
PACKAGE = Path(softmax_temperature.__file__).parent
Rows = list[tuple[list[float], int]]


def batch(count: int = 40, classes: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(count, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (count,), generator=generator)


# ---- the losses, sample by sample


def cross_entropy(probs: list[float], label: int) -> float:
    return -math.log(probs[label])


def brier(probs: list[float], label: int) -> float:
    return sum((p - (number == label)) ** 2 for number, p in enumerate(probs))


def smoothed(mass: float) -> Callable[..., float]:
    def loss(probs: list[float], label: int) -> float:
        others = [math.log(p) for number, p in enumerate(probs) if number != label]
        return -(1 - mass) * math.log(probs[label]) - mass * sum(others) / len(others)

    return loss


def focal(gamma: Callable[[float], float]) -> Callable[..., float]:
    def loss(probs: list[float], label: int) -> float:
        p = probs[label]
        return -math.pow(1 - p, gamma(p)) * math.log(p)

    return loss


def mean(loss: Callable[..., float]) -> Callable[[Rows], float]:
    return lambda rows: sum(loss(probs, label) for probs, label in rows) / len(rows)


def tempered(inverse_temperature: float) -> Callable[..., float]:
    def loss(probs: list[float], label: int) -> float:
        powers = [p**inverse_temperature for p in probs]
        return -math.log(powers[label] / sum(powers))

    return loss


def with_mmce(weight: float) -> Callable[[Rows], float]:
    """Cross-entropy plus the distance of two kernel means, over all pairs."""

    def loss(rows: Rows) -> float:
        tops = [(max(probs), int(np.argmax(probs)) == label) for probs, label in rows]
        right = sum(is_right for _, is_right in tops)
        # What is missing to a right one's confidence pulls up, what a wrong one has pulls down.
        pulls = [(r, (1 - r) / right if is_right else -r / (len(rows) - right)) for r, is_right in tops]
        square = sum(a * b * math.exp(-abs(r - s) / 0.4) for r, a in pulls for s, b in pulls)
        return mean(cross_entropy)(rows) + weight * math.sqrt(square)

    return loss


def below(*steps: tuple[float, float], above: float) -> Callable[[float], float]:
    return lambda p: next((gamma for threshold, gamma in steps if p < threshold), above)


LOSSES: list[tuple[str, dict[str, Any], Callable[[Rows], float]]] = [
    ("cross_entropy", {}, mean(cross_entropy)),
    ("brier", {}, mean(brier)),
    ("label_smoothing", {}, mean(smoothed(0.05))),
    ("label_smoothing", {"smoothing": 0.2}, mean(smoothed(0.2))),
    ("focal", {"gamma": 0.0}, mean(cross_entropy)),
    ("focal", {"gamma": 3.0}, mean(focal(lambda _: 3.0))),
    ("tempered_cross_entropy", {"inverse_temperature": 1.0}, mean(cross_entropy)),
    ("tempered_cross_entropy", {"inverse_temperature": 0.3}, mean(tempered(0.3))),
    ("mmce", {}, with_mmce(2.0)),
    ("mmce", {"weight": 0.0}, mean(cross_entropy)),
    ("mmce", {"weight": 5.0}, with_mmce(5.0)),
    ("sample_dependent_focal", {}, mean(focal(below((0.2, 5.0), above=3.0)))),
    ("sample_dependent_focal", {"policy": "532"}, mean(focal(below((0.2, 5.0), (0.5, 3.0), above=2.0)))),
    ("scheduled_focal", {"gammas": [4.0], "milestones": []}, mean(focal(lambda _: 4.0))),
]


@pytest.mark.parametrize(("name", "options", "expected"), LOSSES)
def test_each_is_the_loss_it_names(name: str, options: dict[str, Any], expected: Callable[[Rows], float]) -> None:
    logits, labels = batch()
    probs = torch.softmax(logits, dim=1).tolist()
    objective = make_objective(name, options)
    value = objective(logits, labels, 0.0)
    assert value.item() == pytest.approx(expected(list(zip(probs, labels.tolist(), strict=True))), rel=1e-9)
    assert all(torch.equal(objective(logits, labels, position), value) for position in (1.5, 349.9))


def test_every_loss_is_tested() -> None:
    assert {name for name, _, _ in LOSSES} == set(objective_names())


def test_mmce_as_released_is_smaller_by_the_pairs_but_not_the_cross_entropy() -> None:
    logits, labels = batch()
    plain, released, written = (
        make_objective("mmce", options)(logits, labels, 0.0).item()
        for options in ({"weight": 0.0}, {"as_released": True}, {})
    )
    assert plain < released < plain + 0.2 * (written - plain)


def test_scheduled_focal_loss_changes_at_its_milestones() -> None:
    logits, labels = batch()
    changing = make_objective("scheduled_focal", {"gammas": [5.0, 3.0, 1.0], "milestones": [100, 250]})
    for position, gamma in ((0, 5), (99.99, 5), (100, 3), (249.99, 3), (250, 1), (350, 1)):
        expected = make_objective("focal", {"gamma": float(gamma)})(logits, labels, 0.0)
        assert torch.equal(changing(logits, labels, position), expected)


# ---- names and options


def test_the_names_are_those_of_the_files() -> None:
    files = {path.name.removesuffix(".py") for path in (PACKAGE / "objectives").iterdir() if path.suffix == ".py"}
    assert objective_names() == sorted(files - {"__init__"})
    assert objective_module("brier") == "softmax_temperature.losses.objectives.brier"


@pytest.mark.parametrize(("name", "meant"), [("fokal", "focal"), ("crossentropy", "cross_entropy"), ("breir", "brier")])
def test_an_unknown_loss_is_answered_with_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(InputError, match=rf"loss '{name}': no such loss\. Did you mean '{meant}'\?"):
        make_objective(name, {})


def test_a_module_that_is_no_loss_is_none() -> None:
    for name in ("__init__", "../losses/focal", "", "objectives.focal"):
        with pytest.raises(InputError, match="no such loss"):
            objective_module(name)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("cross_entropy", {"gamma": 1.0}, "gamma"),
        ("focal", {}, "gamma"),
        ("focal", {"gamma": -1.0}, "gamma must be finite and at least 0, got -1.0"),
        ("focal", {"gamma": "3"}, "gamma"),
        ("focal", {"gamma": math.nan}, "gamma"),
        ("focal", {"gamma": math.inf}, "gamma"),
        ("mmce", {"weight": -1.0}, "weight: -1.0"),
        ("mmce", {"weight": math.nan}, "weight"),
        ("label_smoothing", {"smoothing": 1.0}, "smoothing"),
        ("label_smoothing", {"smoothing": -0.1}, "smoothing"),
        ("sample_dependent_focal", {"policy": "35"}, "'53', '532'"),
        ("sample_dependent_focal", {"policy": 53}, "'53', '532'"),
        ("scheduled_focal", {"gammas": [5.0, 3.0]}, "milestones"),
        ("scheduled_focal", {"gammas": [5.0, 3.0], "milestones": [1, 2]}, "gammas"),
        ("scheduled_focal", {"gammas": [5.0, 3.0, 1.0], "milestones": [250, 100]}, "milestones must ascend"),
        ("scheduled_focal", {"gammas": [-5.0, 3.0], "milestones": [100]}, "gamma"),
        ("scheduled_focal", {"gammas": [5.0, -3.0], "milestones": [100]}, "gamma"),
        ("scheduled_focal", {"gammas": [5.0, "three"], "milestones": [100]}, "gamma"),
    ],
)
def test_a_wrong_option_is_refused_before_any_training(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=rf"loss '{name}': does not take the options .*{says}.*Correct `options`"):
        make_objective(name, options)


def test_every_smoothing_that_the_loss_takes_is_an_option() -> None:
    # Below one, and with five classes below 4/5.
    logits, labels = batch()
    probs = torch.softmax(logits, dim=1).tolist()
    value = make_objective("label_smoothing", {"smoothing": 0.6})(logits, labels, 0.0)
    assert value.item() == pytest.approx(mean(smoothed(0.6))(list(zip(probs, labels.tolist(), strict=True))))


# ---- what makes a cell stale


@pytest.fixture(scope="module")
def smoke() -> Params:
    _, params = render_profile("smoke", ROOT / "profiles")
    return params


def cells_without(smoke: Params, arm: str) -> dict[str, Cell]:
    content = smoke.model_dump()["focal"]
    del content["arms"][arm]
    focal_section = type(smoke.focal).model_validate(content)
    return {cell.name: cell for cell in train_focal.cells(smoke.model_copy(update={"focal": focal_section}))}


def test_a_cell_names_its_networks_and_its_losss_module_and_no_other(smoke: Params) -> None:
    cells = train_focal.cells(smoke)
    assert {cell.name.split("/")[0] for cell in cells} == set(smoke.focal.tasks)
    for cell in cells:
        task, arm, _ = cell.name.split("/")
        architecture = smoke.networks[smoke.focal.tasks[task].network].architecture
        expected = {
            f"softmax_temperature.networks.{architecture}",
            f"softmax_temperature.losses.objectives.{arm_loss(smoke, arm)}",
        }
        assert set(cell.code) == expected
        assert len(cell.code) == 2
    # Another paper's stage trains with the tempered one.
    assert {cell.code[1].rpartition(".")[2] for cell in cells} == set(objective_names()) - {"tempered_cross_entropy"}


def arm_loss(params: Params, arm: str) -> str:
    return params.focal.arms[arm].loss


def test_the_stage_itself_reaches_no_loss_and_no_network(smoke: Params) -> None:
    closure = import_closure("softmax_temperature.stages.train_focal")
    assert "softmax_temperature.losses.objectives" in closure
    assert "softmax_temperature.training.trainer" in closure
    chosen = [name for cell in train_focal.cells(smoke) for name in cell.code]
    assert not set(closure) & set(chosen)
    for prefix in ("softmax_temperature.losses.objectives.", "softmax_temperature.networks."):
        assert not [name for name in closure if name.startswith(prefix)]


@pytest.mark.parametrize("name", objective_names())
def test_no_loss_reaches_another(name: str) -> None:
    own = objective_module(name)
    others = {objective_module(other) for other in objective_names()} - {own}
    assert not set(import_closure(own)) & others


def test_another_arm_leaves_the_cells_of_the_others_as_they_were(smoke: Params) -> None:
    cells = {cell.name: cell for cell in train_focal.cells(smoke)}
    fewer = cells_without(smoke, "Brier")
    assert set(cells) - set(fewer) == {f"digits/Brier/{seed}" for seed in range(smoke.focal.seeds)}
    assert all(cells[name] == cell for name, cell in fewer.items())
