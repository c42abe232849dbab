"""The section `cooling` of `params.yaml`."""

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
"""The mode of an arm without Cooling; in segmentation, the name of that arm."""
JUDGED = 10
"""How many of a run's final epochs its accuracy is averaged over.

For a run of fewer than fifty epochs, the average is over the last fifth.
"""
Side = Annotated[int, Field(gt=0, multiple_of=16)]
Sides = Annotated[list[Side], Field(min_length=2, max_length=2)]
"""Height and width in pixels; the U-Net halves them four times."""


class CoolingSettings(Section):
    """Settings for Cooling during training (see `cooling.Cooling`).

    Unless `mode` is "none", the network is cooled once per `period`, which is an epoch
    or a number of batches. `optimizer_state` says whether momentum buffers and moments
    are kept or rescaled when weights are rescaled.
    """

    mode: Literal["none", "last_layer", "distributed", "periodic"]
    factor: NonNegativeFloat = 1.0
    max_temperature: NonNegativeFloat = 100.0
    reset_temperature: PositiveFloat = 100.0
    refit: Literal["whole", "increment"] = "whole"
    period: Literal["epoch"] | PositiveInt = "epoch"
    optimizer_state: Literal["keep", "rescale"] = "keep"


class Arm(CoolingSettings):
    """A mode of Cooling, or "none", with a loss and the loss's `options`."""

    loss: LossName = "cross_entropy"
    options: dict[str, Any] = {}

    def implementations(self) -> tuple[str, ...]:
        """A tuple with only the "module:Class" of `loss`."""
        return (reference_to(self.loss, LOSSES, "loss"),)


class Experiment(Section):
    """A data set with a network, trained with each of `schedules` and each of `arms`.

    `recipe` overrides values of the section's recipe. `seeds` overrides the section's
    number of seeds (null keeps it), and `schedule_seeds` overrides it for individual
    schedules. If the paper's tables have values for the network, `printed_model` is the
    paper's name for it.
    """

    dataset: Name
    network: Name
    schedules: list[Name]
    arms: list[Name]
    recipe: dict[str, Any] = {}
    seeds: PositiveInt | None = None
    schedule_seeds: dict[Name, PositiveInt] = {}
    role: Literal["table_1", "table_2", "figure_1", "figure_2", "ablation", "ours"]
    printed_model: str | None = None


class Watching(Section):
    """Settings for evaluation during training: on which images, and how often.

    After each epoch `train_images` training images are evaluated (null: all). Held-out
    images are evaluated every `every` epochs, after the first epoch, and after each of
    the last `JUDGED` epochs, from which the claims take their values.
    """

    train_images: PositiveInt | None
    every: PositiveInt


class SegmentationTask(Section):
    """Settings for training a U-Net with `width` channels at full resolution.

    `dataset` is "glyph-scenes-N" or a folder below `data.root`. Label maps hold classes
    from 0 to `classes` - 1, and `void` for pixels without a class. Images are cropped
    at the centre to the height and width `crop` (null: not cropped), then resized to
    `size` (null: not resized). `cooling_images` training images are set aside to fit
    the temperature on; if it is null, the temperature is fitted on the data set's own
    validation part. If `train_limit` or `test_limit` is null, all samples are used.
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
    """Section 4.4: the task is trained with and without last-layer Cooling.

    Each of these two arms is trained with `seeds` seeds.

    Cooling raises each fitted temperature to the power `factor`. The results contain
    the pixels of `panels` test images, of which the figure shows at most six; set
    `panels` to 0 if the images may not be redistributed.
    """

    factor: NonNegativeFloat
    seeds: PositiveInt
    panels: Annotated[int, Field(ge=0, le=8)]
    arms: ClassVar[tuple[str, ...]] = (NO_COOLING, "last_layer")

    def trainings(self) -> list[tuple[str, int]]:
        """List the arm and the seed of every training run."""
        return list(product(self.arms, range(self.seeds)))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.void < self.classes:
            raise ValueError(
                f"void: {self.void}, must not be one of the {self.classes} classes"
            )
        if self.recipe.crop_padding or self.recipe.flip:
            raise ValueError(
                "recipe: crop_padding must be 0 and flip false, because label maps are "
                "not cropped or flipped with their images"
            )
        return self


class Cooling(Section):
    """The paper `cooling`: every experiment with each of its schedules and arms.

    An experiment's schedule replaces the schedule in its recipe.
    """

    seeds: PositiveInt
    recipe: Recipe
    schedules: dict[Name, Schedule]
    arms: dict[Name, Arm]
    experiments: dict[Name, Experiment]
    watching: Watching
    segmentation: Segmentation | None

    def recipe_of(self, experiment: str, schedule: str) -> Recipe:
        """The recipe with which `experiment` is trained under `schedule`."""
        change = self.experiments[experiment].recipe
        schedule_change = {"schedule": self.schedules[schedule].model_dump()}
        return self.recipe.changed(
            change, schedule_change, by=f"experiments.{experiment}"
        )

    def trainings(self) -> list[tuple[str, str, str, int]]:
        """List the experiment, schedule, arm and seed of every training run."""
        return [
            (name, schedule, arm, seed)
            for name, experiment in self.experiments.items()
            for schedule in experiment.schedules
            for arm in experiment.arms
            for seed in range(self.seeds_of(experiment, schedule))
        ]

    def seeds_of(self, experiment: Experiment, schedule: str) -> int:
        """The number of seeds with which `experiment` is trained under `schedule`."""
        return experiment.schedule_seeds.get(schedule) or experiment.seeds or self.seeds

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name, experiment in self.experiments.items():
            key = f"experiments.{name}"
            schedules = experiment.schedules
            all_known(f"{key}.schedules", schedules, self.schedules)
            all_known(f"{key}.arms", experiment.arms, self.arms)
            all_known(f"{key}.schedule_seeds", experiment.schedule_seeds, schedules)
            for schedule in experiment.schedules:
                self.recipe_of(name, schedule)
        return self
