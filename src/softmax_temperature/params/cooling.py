"""The section of the paper `cooling`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, ValidationError, model_validator

from softmax_temperature.params.recipe import Recipe, Schedule
from softmax_temperature.params.section import Name, Section, all_known, some_for
from softmax_temperature.params.segmentation import Segmentation
from softmax_temperature.runner.errors import nearest


class Arm(Section):
    """A way to cool, or not to, as `cooling.Cooling` names it.

    The network is cooled once a `period`, which is an epoch or so many batches; `optimizer_state` says what happens to
    momentum buffers and moments when weights are rescaled. `loss` names a module of `losses.objectives`,
    `options` go to it.
    """

    mode: Literal["none", "last_layer", "distributed", "periodic"]
    factor: NonNegativeFloat = 1.0
    max_temperature: NonNegativeFloat = 100.0
    reset_temperature: PositiveFloat = 100.0
    refit: Literal["whole", "increment"] = "whole"
    period: Literal["epoch"] | PositiveInt = "epoch"
    optimizer_state: Literal["keep", "rescale"] = "keep"
    loss: Name = "cross_entropy"
    options: dict[str, Any] = {}


class Experiment(Section):
    """A data set with a network, trained with each of `schedules` and each of `arms`.

    `recipe` replaces values of `cooling.recipe`; `seeds` is its own number of them, or that of the section. `role` says
    what of the paper it stands for, `change` what an ablation changes, and `printed_model` is the paper's name for the
    network, if its tables have numbers for it.
    """

    dataset: Name
    network: Name
    schedules: list[Name]
    arms: list[Name]
    recipe: dict[str, Any] = {}
    seeds: PositiveInt | None = None
    role: Literal["table_1", "table_2", "figure_1", "figure_2", "ablation", "ours"]
    change: str = ""
    printed_model: str | None = None


class Watching(Section):
    """A sample of `train_images` training images stands for all of them (null: all)."""

    train_images: PositiveInt | None


class Cooling(Section):
    """The paper `cooling`: every experiment with each of its schedules and arms, `seeds` times.

    `rebuild` names the notebook to execute; an empty list, with no experiments, leaves the paper out. `schedules`
    replace that of the recipe. `segmentation` is section 4.4, or null to leave it out.
    """

    rebuild: list[Literal["cooling"]]
    seeds: PositiveInt
    recipe: Recipe
    schedules: dict[Name, Schedule]
    arms: dict[Name, Arm]
    experiments: dict[Name, Experiment]
    watching: Watching
    segmentation: Segmentation | None

    def recipe_of(self, experiment: str, schedule: str) -> Recipe:
        """The recipe of an experiment with one of its schedules."""
        own = {"schedule": self.schedules[schedule].model_dump()}
        return self.recipe.changed(self.experiments[experiment].recipe, own)

    def trainings(self) -> list[tuple[str, str, str, int]]:
        """Experiment, schedule, arm and seed of every training."""
        return [
            (name, schedule, arm, seed)
            for name, experiment in self.experiments.items()
            for schedule in experiment.schedules
            for arm in experiment.arms
            for seed in range(experiment.seeds or self.seeds)
        ]

    @model_validator(mode="after")
    def _names_exist(self) -> Cooling:
        some_for(self.rebuild, "experiments", self.experiments)
        for name, experiment in self.experiments.items():
            all_known(f"experiments.{name}.schedules", experiment.schedules, self.schedules)
            all_known(f"experiments.{name}.arms", experiment.arms, self.arms)
            for schedule in experiment.schedules:
                self._check_recipe(name, schedule)
        return self

    def _check_recipe(self, experiment: str, schedule: str) -> None:
        """Refuse what an experiment replaces in the recipe wrongly, and say where it does."""
        try:
            self.recipe_of(experiment, schedule)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            known = nearest(key, Recipe.model_fields) if first["type"] == "extra_forbidden" else f"{first['msg']}."
            raise ValueError(f"experiments.{experiment}, recipe: {key}: {known}") from error
