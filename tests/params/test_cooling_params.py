"""The section `cooling`: what an experiment replaces in the recipe, and its seeds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.params import Params, validate
from softmax_temperature.tools.profiles import render_profile

PROFILES = Path(__file__).parents[2] / "profiles"


@pytest.fixture(scope="module")
def smoke() -> Params:
    _, params = render_profile("smoke", PROFILES)
    return params


def edited(smoke: Params, edit: Callable[[Any], None]) -> Params:
    content = smoke.model_dump()
    edit(content["cooling"])
    return validate(content, where="params.yaml")


def adam(**values: Any) -> Callable[[Any], None]:
    return lambda cooling: cooling["experiments"]["digits-vgg-adam"].update(values)


def test_an_experiment_and_then_its_schedule_replace_values_of_the_recipe(smoke: Params) -> None:
    change = {"lr": 0.2, "schedule": {"name": "linear"}}
    paper = edited(smoke, adam(recipe=change, schedules=["none", "piecewise"])).cooling
    recipes = [paper.recipe_of("digits-vgg-adam", name) for name in ("none", "piecewise")]
    assert [recipe.lr for recipe in recipes] == [0.2, 0.2]
    assert [(recipe.schedule.name, recipe.schedule.milestones) for recipe in recipes] == [
        ("constant", []),
        ("steps", [30.0, 40.0]),
    ]
    assert paper.recipe_of("digits-vgg", "none").lr == smoke.cooling.recipe.lr != 0.2


def test_an_experiment_has_its_own_number_of_seeds_or_that_of_the_section(smoke: Params) -> None:
    def seeds(paper: Any, name: str) -> list[int]:
        return [seed for place, _, arm, seed in paper.trainings() if (place, arm) == (name, "none")]

    assert seeds(smoke.cooling, "digits-vgg-adam") == [0]
    assert seeds(edited(smoke, adam(seeds=3)).cooling, "digits-vgg-adam") == [0, 1, 2]
    assert seeds(edited(smoke, adam(seeds=None)).cooling, "digits-vgg-adam") == [0, 1]
