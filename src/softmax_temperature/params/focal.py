"""The section of the paper `focal`."""

from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from softmax_temperature.params.implementations import LOSSES, LossName
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.shared import Ascending, Fraction, Momentum, Name, Text
from softmax_temperature.runner.implementations import reference_to
from softmax_temperature.runner.section import Section, all_known

REFERENCE = "CE"
"""The arm that the paper compares with."""


class ArmChange(Section):
    """What one arm does differently on one task: values of its loss's options and of
    the recipe, and how many seeds.
    """

    options: dict[str, Any] = {}
    recipe: dict[str, Any] = {}
    seeds: PositiveInt | None = None


class Arm(Section):
    """A loss with its `options`; `recipe` replaces values of the task's."""

    loss: LossName
    options: dict[str, Any] = {}
    recipe: dict[str, Any] = {}

    def implementations(self) -> tuple[str, ...]:
        """The class of the loss."""
        return (reference_to(self.loss, LOSSES, "loss"),)


class Embeddings(Section):
    """Word vectors in a `file` below data.root, in GloVe's form, which move by plain
    gradient steps of size `step`.
    """

    file: Annotated[str, Field(min_length=1)]
    step: NonNegativeFloat


class TaskTraining(Section):
    """How a task is read and evaluated, whatever trains on it.

    Its test images are scored with noise of the standard deviation `gaussian_noise` too
    (pixels on the scale 0 to 1). Parse trees need the vocabulary of `text` alone; null
    `embeddings` are learned with the rest. `select` is the epoch whose weights are
    evaluated, the last or the first with the best accuracy on validation data.
    """

    gaussian_noise: PositiveFloat | None = None
    text: Text | None = None
    embeddings: Embeddings | None = None
    select: Literal["last", "best_validation"] = "last"


class Task(TaskTraining):
    """A data set with a network, trained with every arm in `arms` (null: all of them).

    Beside its own test images, those of `out_of_distribution` are scored; on those of
    `shifted`, other pictures under the same class names, accuracy and calibration are
    measured. `variant_of` makes a task a part of the ablation: another one's, but for
    its recipe. `printed_...` are the paper's names, if it has numbers; `differs` says
    what else is not as in the paper.
    """

    dataset: Name
    network: Name
    arms: Annotated[list[Name], Field(min_length=1)] | None = None
    out_of_distribution: list[Name] = []
    shifted: list[Name] = []
    recipe: dict[str, Any] = {}
    arm_changes: dict[Name, ArmChange] = {}
    variant_of: Name | None = None
    printed_dataset: str | None = None
    printed_network: str | None = None
    differs: str | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.arms is not None and len(set(self.arms)) < len(self.arms):
            raise ValueError(
                f"arms: {', '.join(self.arms)}: one of them is there twice"
            )
        if (self.printed_dataset is None) != (self.printed_network is None):
            raise ValueError(
                "printed_dataset and printed_network stand together or not at all"
            )
        if self.text and (
            self.out_of_distribution or self.gaussian_noise or self.shifted
        ):
            raise ValueError(
                "text: out_of_distribution, gaussian_noise and shifted are for images"
            )
        if self.embeddings and not self.text:
            raise ValueError("embeddings: only a task with `text` has words")
        return self


class Watching(Section):
    """What is recorded while a network trains; epochs of Figures 3 and A.1 are those of
    the written recipe.

    `train_images` training images are evaluated (null: all), every `every` epochs and
    after the first and the last; after each epoch where the best one is selected.
    """

    train_images: PositiveInt | None
    every: PositiveInt
    gradient_epochs: list[PositiveInt]
    reliability_epochs: list[PositiveInt]


class Evaluation(Section):
    """Intervals from `bootstrap` resamples; `panels` test images are shown per task (0:
    they may not be passed on).
    """

    bootstrap: PositiveInt
    panels: NonNegativeInt


class LinearTraining(Section):
    """Appendix C: a logistic regression on `train` points, tested on `test` others."""

    train: PositiveInt
    test: PositiveInt
    epochs: PositiveInt
    lr: PositiveFloat


class Linear(LinearTraining):
    """It is trained with each gamma in `gammas`, and 0 for cross-entropy."""

    gammas: dict[Name, NonNegativeFloat]
    seeds: PositiveInt

    def trainings(self) -> list[tuple[str, int]]:
        """Arm and seed of every training."""
        return list(product(self.gammas, range(self.seeds)))


class Transformer(Section):
    """Encoder and decoder of `layers` each, with `inner` units in their feed-forward
    layers.
    """

    width: Annotated[int, Field(gt=0, multiple_of=2)]
    heads: PositiveInt
    layers: PositiveInt
    inner: PositiveInt
    dropout: Momentum

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.width % self.heads:
            raise ValueError(
                f"width: {self.width}, must be divisible by heads, {self.heads}"
            )
        return self


class BeamSearch(Section):
    """How test sentences are translated; `length_penalty` is the exponent by which long
    translations are favoured.
    """

    beam: PositiveInt
    length_penalty: NonNegativeFloat
    extra_length: (
        NonNegativeInt  # Tokens that a translation may have more than its source.
    )
    sentences: PositiveInt  # At a time.


class TranslationTask(Section):
    """A Transformer that translates `dataset`: "farm" or a folder below `data.root`,
    with files that end in languages.

    Training pairs with more than `longest` tokens are left out. Both languages share
    `vocabulary` pieces of words. `recipe.batch_size` counts tokens of each language,
    padding included. Test sentences are translated at the `temperatures` of Figure K.1,
    at 1 and at the one that validation data choose.
    """

    dataset: Name
    source: Name
    target: Name
    train_limit: PositiveInt | None  # Pairs; null: all.
    validation_limit: PositiveInt | None
    test_limit: PositiveInt | None
    vocabulary: Annotated[int, Field(ge=5)]
    longest: PositiveInt
    network: Transformer
    recipe: Recipe
    temperatures: Ascending
    search: BeamSearch


class Translation(TranslationTask):
    """Appendix K: the task with cross-entropy, label smoothing (`smoothing`) and focal
    loss (`gamma`).
    """

    smoothing: Fraction
    gamma: PositiveFloat
    seeds: PositiveInt

    @property
    def arms(self) -> dict[str, Arm]:
        """The losses by the paper's names for them."""
        return {
            "CE": Arm(loss="cross_entropy"),
            "LS": Arm(loss="label_smoothing", options={"smoothing": self.smoothing}),
            "FL": Arm(loss="focal", options={"gamma": self.gamma}),
        }

    def trainings(self) -> list[tuple[str, int]]:
        """Arm and seed of every training."""
        return list(product(self.arms, range(self.seeds)))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.source == self.target:
            raise ValueError(
                f"target: {self.target}, must be another language than source"
            )
        if (
            self.recipe.crop_padding
            or self.recipe.flip
            or self.recipe.mean
            or self.recipe.std
        ):
            raise ValueError(
                "recipe: crop_padding must be 0, flip false, mean and std null: they are for images"
            )
        return self


class Focal(Section):
    """The paper `focal`: every task with each of its arms, `seeds` times; null
    `translation` leaves out appendix K.
    """

    recipe: Recipe
    arms: dict[Name, Arm]
    tasks: dict[Name, Task]
    seeds: PositiveInt
    watching: Watching
    evaluation: Evaluation
    linear: Linear
    translation: Translation | None

    def arms_of(self, task: str) -> list[str]:
        """The arms of a task."""
        return list(self.tasks[task].arms or self.arms)

    def arm_of(self, task: str, arm: str) -> Arm:
        """One arm as this task changes it."""
        own, general = self.tasks[task], self.arms[arm]
        change = own.arm_changes.get(arm, ArmChange())
        recipe = {**own.recipe, **general.recipe, **change.recipe}
        return Arm(
            loss=general.loss,
            options={**general.options, **change.options},
            recipe=recipe,
        )

    def recipe_of(self, task: str, arm: str) -> Recipe:
        """The recipe of one arm on one task: the paper's, changed by the task, the arm,
        and the arm on this task.
        """
        return self.recipe.changed(
            self.arm_of(task, arm).recipe, by=f"tasks.{task} with arms.{arm}"
        )

    def trainings(self) -> list[tuple[str, str, int]]:
        """Task, arm and seed of every training."""
        return [
            (task, arm, seed)
            for task, about in self.tasks.items()
            for arm in self.arms_of(task)
            for seed in range(
                about.arm_changes.get(arm, ArmChange()).seeds or self.seeds
            )
        ]

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name, task in self.tasks.items():
            all_known(f"tasks.{name}.arms", task.arms or [], self.arms)
            all_known(f"tasks.{name}.arm_changes", task.arm_changes, self.arms_of(name))
            all_known(f"tasks.{name}.variant_of", [task.variant_of or name], self.tasks)
            for arm in self.arms_of(name):
                self.recipe_of(name, arm)
            main = self.tasks[task.variant_of or name]
            if (main.dataset, main.network) != (task.dataset, task.network):
                what = f"must have the data set and network of {task.variant_of}: {main.dataset}, {main.network}"
                raise ValueError(f"tasks.{name}.variant_of: {what}")
        return self
