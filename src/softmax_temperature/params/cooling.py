"""The section of the paper `cooling`."""

from itertools import product
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from softmax_temperature.params.implementations import LOSSES, LossName
from softmax_temperature.params.recipe import Recipe, Schedule
from softmax_temperature.params.shared import Name
from softmax_temperature.runner.implementations import reference_to
from softmax_temperature.runner.section import Section, all_known

NO_COOLING = "none"
JUDGED = 10
"""Epochs at the end whose mean is the accuracy of a training."""
Sides = Annotated[
    list[Annotated[int, Field(gt=0, multiple_of=16)]], Field(min_length=2, max_length=2)
]


class CoolingSettings(Section):
    """The settings of `cooling.Cooling`, which cools once per `period`, an epoch or a
    number of batches.

    `optimizer_state` says what happens to momentum buffers and moments when weights are
    rescaled.
    """

    mode: Literal["none", "last_layer", "distributed", "periodic"]
    factor: NonNegativeFloat = 1.0
    max_temperature: NonNegativeFloat = 100.0
    reset_temperature: PositiveFloat = 100.0
    refit: Literal["whole", "increment"] = "whole"
    period: Literal["epoch"] | PositiveInt = "epoch"
    optimizer_state: Literal["keep", "rescale"] = "keep"


class Arm(CoolingSettings):
    """A way to cool, or not to (mode "none"). `loss` names a loss, `options` go to it."""

    loss: LossName = "cross_entropy"
    options: dict[str, Any] = {}

    def implementations(self) -> tuple[str, ...]:
        """The class of the loss."""
        return (reference_to(self.loss, LOSSES, "loss"),)


class Experiment(Section):
    """A data set with a network, trained with each of `schedules` and each of `arms`."""

    dataset: Name
    network: Name
    schedules: list[Name]
    arms: list[Name]
    recipe: dict[str, Any] = {}  # In place of values of the section's.
    seeds: PositiveInt | None = None  # Null: those of the section.
    schedule_seeds: dict[
        Name, PositiveInt
    ] = {}  # In place of them, with some of the schedules.
    role: Literal["table_1", "table_2", "figure_1", "figure_2", "ablation", "ours"]
    change: str = ""  # What an ablation changes.
    printed_model: str | None = (
        None  # The paper's name for the network, if its tables have numbers for it.
    )


class Watching(Section):
    """After each epoch `train_images` training images are evaluated (null: all), and
    held-out ones after every `every`.

    Those are also evaluated after the first epoch and each of the last ten, which the
    claims rest on.
    """

    train_images: PositiveInt | None
    every: PositiveInt


class SegmentationTask(Section):
    """A U-Net with `width` channels at full size, on `dataset`: "glyph-scenes-N" or a
    folder below `data.root`.

    Label maps hold classes from 0 to `classes` - 1, and `void` where there is none.
    `crop` is the height and width of the middle of each image, `size` what that is
    resized to. `cooling_images` training images are set aside to fit the temperature on
    (null: those of the data set's own validation part). Limits: null is all.
    """

    dataset: Name
    classes: Annotated[int, Field(ge=2, le=255)]
    void: Annotated[int, Field(ge=0, le=255)]
    crop: Sides | None
    size: Sides | None
    train_limit: PositiveInt | None
    test_limit: PositiveInt | None
    cooling_images: PositiveInt | None
    width: PositiveInt
    recipe: Recipe


class Segmentation(SegmentationTask):
    """Section 4.4: the task trained with and without last-layer Cooling, `seeds` times
    each.
    """

    factor: NonNegativeFloat  # The temperature is raised to it.
    seeds: PositiveInt
    panels: Annotated[
        int, Field(ge=0, le=8)
    ]  # Test images that are shown; 0 where they may not be passed on.
    arms: ClassVar[tuple[str, ...]] = (NO_COOLING, "last_layer")

    def trainings(self) -> list[tuple[str, int]]:
        """Arm and seed of every training."""
        return list(product(self.arms, range(self.seeds)))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.void < self.classes:
            raise ValueError(f"void: {self.void}, is one of the {self.classes} classes")
        if self.recipe.crop_padding or self.recipe.flip:
            raise ValueError(
                "recipe: crop_padding must be 0 and flip false, because labels do not move with images"
            )
        return self


class Cooling(Section):
    """The paper `cooling`: every experiment with each of its schedules (in place of the
    recipe's) and arms.
    """

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
        return self.recipe.changed(
            self.experiments[experiment].recipe, own, by=f"experiments.{experiment}"
        )

    def trainings(self) -> list[tuple[str, str, str, int]]:
        """Experiment, schedule, arm and seed of every training."""
        return [
            (name, schedule, arm, seed)
            for name, experiment in self.experiments.items()
            for schedule in experiment.schedules
            for arm in experiment.arms
            for seed in range(self.seeds_of(experiment, schedule))
        ]

    def seeds_of(self, experiment: Experiment, schedule: str) -> int:
        """The number of seeds of an experiment with one of its schedules."""
        return experiment.schedule_seeds.get(schedule) or experiment.seeds or self.seeds

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name, experiment in self.experiments.items():
            all_known(
                f"experiments.{name}.schedules", experiment.schedules, self.schedules
            )
            all_known(f"experiments.{name}.arms", experiment.arms, self.arms)
            all_known(
                f"experiments.{name}.schedule_seeds",
                experiment.schedule_seeds,
                experiment.schedules,
            )
            for schedule in experiment.schedules:
                self.recipe_of(name, schedule)
        return self
