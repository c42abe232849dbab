"""Recipes follow planned epochs; tasks, arms and experiments override a recipe's
values.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmax_temperature.early_learning.courses import log_times
from softmax_temperature.params import Params, read_params, validate
from softmax_temperature.params.recipe import Recipe, Schedule
from softmax_temperature.params.temperature_check import Curves
from softmax_temperature.stages.early_learning import early_learning
from softmax_temperature.training.trainer import planned_epoch
from tests.conftest import ROOT

MINI = read_params(ROOT / "params.yaml")
RECIPE = MINI.focal.recipe.changed({"epochs": 70, "planned_epochs": 350})


def edited(section: str, **changes: Any) -> Params:
    """The parameters of profile mini, with mappings of one section updated.

    For instance, the argument `task__name` updates `section.task.name`.
    """
    content: Any = MINI.model_dump()
    for path, values in changes.items():
        place = content[section]
        for key in path.split("__"):
            place = place[
                key.replace("_", "-")
                if key in ("digits_100", "digits_vgg_adam")
                else key
            ]
        place.update(values)
    return validate(content, where="params.yaml")


def test_a_shorter_training_passes_the_same_points_of_the_planned_one() -> None:
    assert [planned_epoch(RECIPE, epoch) for epoch in (0, 1, 30, 50, 69.5, 70)] == [
        0,
        5,
        150,
        250,
        347.5,
        350,
    ]
    assert planned_epoch(RECIPE.changed({"epochs": 350}), 123.25) == 123.25
    assert planned_epoch(RECIPE.changed({"epochs": 700}), 300) == 150


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 1000), st.data())
def test_no_step_is_outside_the_planned_epochs_and_no_start_of_an_epoch_is_rounded(
    epochs: int, planned: int, steps: int, data: st.DataObject
) -> None:
    recipe = RECIPE.changed({"epochs": epochs, "planned_epochs": planned})
    epoch = data.draw(st.integers(0, epochs - 1))
    assert planned_epoch(recipe, epoch + (steps - 1) / steps) < planned
    # A milestone at the start of an epoch takes effect there, despite rounding.
    if epoch * planned % epochs == 0:
        assert planned_epoch(recipe, epoch) == epoch * planned // epochs


def test_the_last_change_wins_and_a_schedule_is_replaced_as_a_whole() -> None:
    changed = RECIPE.changed(
        {"lr": 0.5, "clip_norm": None}, {}, {"lr": 0.2, "schedule": {"name": "cosine"}}
    )
    expected: dict[str, Any] = {
        "lr": 0.2,
        "clip_norm": None,
        "schedule": Schedule(name="cosine").model_dump(),
    }
    assert changed.model_dump() == RECIPE.model_dump() | expected
    assert (
        changed.schedule.milestones == []
    )  # A merged schedule would have milestones that nobody chose.


def test_a_task_an_arm_and_an_arm_on_a_task_override_in_this_order() -> None:
    paper = edited(
        "focal",
        recipe={"lr": 0.4},
        tasks__digits_100={
            "recipe": {"lr": 0.3, "momentum": 0.5, "batch_size": 7},
            "arm_changes": {"Brier": {"recipe": {"lr": 0.1}}},
        },
        arms__Brier={"recipe": {"lr": 0.2, "momentum": 0.6}},
    ).focal

    def seen(task: str, arm: str) -> tuple[float, float, int]:
        recipe: Recipe = paper.recipe_of(task, arm)
        return recipe.lr, recipe.momentum, recipe.batch_size

    assert seen("digits-100", "Brier") == (0.1, 0.6, 7)
    assert seen("digits-100", "CE") == (0.3, 0.5, 7)
    assert seen("digits-100-as-written", "CE") == (0.4, 0.9, 32)


def test_an_experiment_and_then_its_schedule_replace_values_of_the_recipe() -> None:
    own = {
        "recipe": {"lr": 0.2, "schedule": {"name": "linear"}},
        "schedules": ["none", "piecewise"],
    }
    paper = edited("cooling", experiments__digits_vgg_adam=own).cooling
    recipes = [paper.recipe_of("digits-vgg-adam", name) for name in own["schedules"]]
    seen = [
        (recipe.lr, recipe.schedule.name, recipe.schedule.milestones)
        for recipe in recipes
    ]
    assert seen == [(0.2, "constant", []), (0.2, "steps", [30.0, 40.0])]
    assert paper.recipe_of("digits-vgg", "none").lr == MINI.cooling.recipe.lr != 0.2


def test_early_learning_has_times_on_a_log_axis_and_two_questions_for_each_seed() -> (
    None
):
    curves = Curves(
        inverse_temperatures=[0.1, 1.0], first=0.1, last=10.0, points=3, stride=2
    )
    assert log_times(curves.first, curves.last, curves.points) == pytest.approx(
        [0.1, 1.0, 10.0]
    )
    few = edited(
        "temperature_check", early_learning={"networks": {"wrn-tiny-unnormalised": 2}}
    )
    names = [cell.name for cell in early_learning.cells(few)]
    assert names == [
        f"wrn-tiny-unnormalised/{part}/{seed}"
        for part in ("curves", "norms")
        for seed in (0, 1)
    ]
    none = MINI.temperature_check.model_copy(update={"early_learning": None})
    assert (
        early_learning.cells(MINI.model_copy(update={"temperature_check": none})) == []
    )
