"""Recipes: their clock, their changes, and the overrides of tasks and arms in `params.yaml`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from softmax_temperature import losses, networks
from softmax_temperature.params import Params, validate
from softmax_temperature.params.network import ARCHITECTURES
from softmax_temperature.params.recipe import LOSSES, Recipe, Schedule
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.profiles import render_profile

ROOT = Path(__file__).parents[2]
VALUES: dict[str, Any] = {
    "epochs": 70,
    "planned_epochs": 350,
    "batch_size": 128,
    "optimizer": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "beta2": 0.999,
    "weight_decay": 0.0005,
    "epsilon": 1e-8,
    "schedule": {"name": "steps", "milestones": [150.0, 250.0], "factor": 0.1, "warmup": 0.0},
    "reduction": "sum",
    "clip_norm": 2.0,
    "crop_padding": 4,
    "flip": True,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
    "precision": "float32",
}


@pytest.fixture
def recipe() -> Recipe:
    return Recipe.model_validate(VALUES)


# ---- the clock


def test_a_shorter_training_passes_the_same_places(recipe: Recipe) -> None:
    assert [recipe.position(epoch) for epoch in (0, 1, 30, 50, 69.5, 70)] == [0, 5, 150, 250, 347.5, 350]
    assert recipe.changed({"epochs": 350}).position(123.25) == 123.25
    assert recipe.changed({"epochs": 700}).position(300) == 150


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 1000), st.data())
def test_no_step_is_outside_the_written_recipe_and_epochs_begin_where_they_should(
    epochs: int, planned: int, steps: int, data: st.DataObject
) -> None:
    recipe = Recipe.model_validate(VALUES | {"epochs": epochs, "planned_epochs": planned})
    epoch = data.draw(st.integers(0, epochs - 1))
    assert recipe.position(epoch + (steps - 1) / steps) < planned
    # A milestone that falls on an epoch's beginning is reached there, whatever rounding does.
    if epoch * planned % epochs == 0:
        assert recipe.position(epoch) == epoch * planned // epochs


# ---- changes


def test_changes_replace_values_and_the_last_word_wins(recipe: Recipe) -> None:
    changed = recipe.changed({"lr": 0.5, "clip_norm": None}, {}, {"lr": 0.2})
    assert changed.model_dump() == VALUES | {"lr": 0.2, "clip_norm": None}
    assert recipe.model_dump() == VALUES
    assert recipe.changed() == recipe


def test_a_schedule_is_replaced_as_a_whole(recipe: Recipe) -> None:
    """A mixture of two schedules would have milestones that nobody wrote for it."""
    changed = recipe.changed({"schedule": {"name": "cosine", "warmup": 5.0}})
    assert changed.schedule == Schedule(name="cosine", milestones=[], factor=0.1, warmup=5.0)


@pytest.mark.parametrize(
    "change",
    [
        {"learning_rate": 0.1},
        {"lr": 0.0},
        {"std": [0.2, 0.2]},
        {"schedule": {"name": "polynomial"}},
        {"schedule": {"name": "steps", "milestone": [3.0]}},
        {"schedule": {"name": "inverse_square_root"}},
    ],
)
def test_a_wrong_change_is_refused(recipe: Recipe, change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        recipe.changed({"lr": 0.3}, change)
    assert next(iter(change)) in str(caught.value)


# ---- overrides in params.yaml


@pytest.fixture(scope="module")
def smoke() -> Params:
    _, params = render_profile("smoke", ROOT / "profiles")
    return params


def edited(smoke: Params, edit: Callable[[Any], None]) -> Params:
    content = smoke.model_dump()
    edit(content["focal"])
    return validate(content, where="params.yaml")


def digits(**values: Any) -> Callable[[Any], None]:
    return lambda focal: focal["tasks"]["digits"].update(values)


def test_a_task_an_arm_and_an_arm_on_a_task_override_in_this_order(smoke: Params) -> None:
    def edit(focal: Any) -> None:
        focal["recipe"]["lr"] = 0.4
        focal["tasks"]["digits"]["recipe"] = {"lr": 0.3, "momentum": 0.5, "batch_size": 7}
        focal["arms"]["Brier"]["recipe"] = {"lr": 0.2, "momentum": 0.6}
        focal["tasks"]["digits"]["arm_changes"] = {"Brier": {"recipe": {"lr": 0.1}}}

    paper = edited(smoke, edit).focal
    pairs = [("digits", "Brier"), ("digits", "CE"), ("digits-as-written", "CE")]
    recipes = {pair: paper.recipe_of(*pair) for pair in pairs}
    seen = {pair: (chosen.lr, chosen.momentum, chosen.batch_size) for pair, chosen in recipes.items()}
    assert seen == {
        ("digits", "Brier"): (0.1, 0.6, 7),
        ("digits", "CE"): (0.3, 0.5, 7),
        ("digits-as-written", "CE"): (0.4, 0.9, 128),
    }


@pytest.mark.parametrize(
    ("edit", "key"),
    [
        (digits(recipe={"momentun": 0.5}), "tasks.digits"),
        (lambda focal: focal["arms"]["CE"].update(recipe={"momentun": 0.5}), "arms.CE|tasks.digits"),
        (digits(arm_changes={"CE": {"recipe": {"momentun": 0.5}}}), "tasks.digits"),
    ],
    ids=["task", "arm", "arm on a task"],
)
def test_an_unknown_override_is_named_with_its_place_and_the_nearest_key(
    smoke: Params, edit: Callable[[Any], None], key: str
) -> None:
    with pytest.raises(InputError, match="momentun") as caught:
        edited(smoke, edit)
    message = str(caught.value)
    assert any(place in message for place in key.split("|")), message
    assert "Did you mean 'momentum'?" in message, message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (digits(recipe={"lr": -1.0}), "lr.*greater than 0"),
        (digits(arm_changes={"CE": {"recipes": {}}}), "recipes: unknown parameter"),
        (digits(arm_changes={"Breir": {"recipe": {}}}), "'Breir'. Did you mean 'Brier'"),
        (digits(arms=["CE", "FL3"]), "'FL3'. Did you mean 'FL-3'"),
        (digits(variant_of="digit"), "'digit'. Did you mean 'digits'"),
        (digits(arms=["CE", "CE"]), "there twice"),
        (lambda focal: focal["arms"]["CE"].update(loss="cros_entropy"), "arms.CE.loss.*Did you mean 'cross_entropy'"),
        (lambda focal: focal["tasks"]["digits-as-written"].update(dataset="glyphs-12"), "variant_of.*digits, resnet8"),
        (digits(printed_dataset="CIFAR-10"), "stand together"),
        (digits(out_of_distribution=["svnh"]), "out_of_distribution: unknown name 'svnh'"),
        (lambda focal: focal["recipe"].update(epoch=3), "recipe.epoch: unknown parameter.*'epochs'"),
    ],
)
def test_a_wrong_override_is_refused(smoke: Params, edit: Callable[[Any], None], says: str) -> None:
    with pytest.raises(InputError, match=says):
        edited(smoke, edit)


def test_the_names_in_params_are_those_of_the_registries() -> None:
    assert tuple(sorted(networks.ARCHITECTURES)) == ARCHITECTURES
    assert tuple(losses.objective_names()) == LOSSES
