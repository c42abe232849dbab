"""The section of the paper `focal`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, ValidationError, model_validator

from softmax_temperature.losses import objective_names
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.section import Name, Section, all_known, some_for
from softmax_temperature.params.shared import Text
from softmax_temperature.params.translation import Translation
from softmax_temperature.runner.errors import nearest


class ArmChange(Section):
    """What one arm does differently on one task: values of its loss's options and of the recipe that are replaced."""

    options: dict[str, Any] = {}
    recipe: dict[str, Any] = {}


class Arm(Section):
    """A loss: `loss` names a module of `softmax_temperature.losses.objectives`, `options` go to it.

    `recipe` replaces values of the task's recipe, for a loss that needs its own.
    """

    loss: Name
    options: dict[str, Any] = {}
    recipe: dict[str, Any] = {}


class Embeddings(Section):
    """Word vectors that a network starts from: a `file` below data.root, in the text form of GloVe.

    With `step` 0 they stay as they are; otherwise they move by plain gradient steps of that size, without weight decay.
    """

    file: Annotated[str, Field(min_length=1)]
    step: NonNegativeFloat


class Task(Section):
    """A data set with a network, trained with every arm in `arms` (null: all of them).

    `out_of_distribution` are data sets whose test images are scored beside those of `dataset`, and so are its own with
    noise of the standard deviation `gaussian_noise` (pixels on the scale 0 to 1). `text` says how texts are read, of
    which parse trees need the vocabulary alone; images have no use for it. `embeddings` are the word vectors to start
    from; null learns them with the rest. `select` is the epoch whose weights are evaluated: the last, or the first with
    the best accuracy on validation data. `recipe` replaces values of `focal.recipe`, `arm_changes` those of one arm on
    this task. `variant_of` makes a task a part of the ablation: the same as another one, but for its recipe.
    `printed_dataset` and `printed_network` are the paper's names for the two, if it has numbers for them; `differs`
    says in a few words what is not as in the paper, beside the length of the training and the embeddings.
    """

    dataset: Name
    network: Name
    arms: Annotated[list[Name], Field(min_length=1)] | None = None
    out_of_distribution: list[Name] = []
    gaussian_noise: PositiveFloat | None = None
    text: Text | None = None
    embeddings: Embeddings | None = None
    select: Literal["last", "best_validation"] = "last"
    recipe: dict[str, Any] = {}
    arm_changes: dict[Name, ArmChange] = {}
    variant_of: Name | None = None
    printed_dataset: str | None = None
    printed_network: str | None = None
    differs: str | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Task:
        if self.arms is not None and len(set(self.arms)) < len(self.arms):
            raise ValueError(f"arms: {', '.join(self.arms)}: one of them is there twice")
        if (self.printed_dataset is None) != (self.printed_network is None):
            raise ValueError("printed_dataset and printed_network stand together or not at all")
        if self.text and (self.out_of_distribution or self.gaussian_noise):
            raise ValueError("text: out_of_distribution and gaussian_noise are for images")
        if self.embeddings and not self.text:
            raise ValueError("embeddings: only a task with `text` has words")
        return self


class Watching(Section):
    """What is looked at while a network trains.

    A sample of `train_images` training images stands for all of them (null: all). `every` is the number of epochs from
    one look to the next; the first and the last epoch are always looked at, and of a task that selects the best one all
    are. `gradient_epochs` and `reliability_epochs` are those of Figures 3 and A.1, in epochs of the written recipe.
    """

    train_images: PositiveInt | None
    every: PositiveInt
    gradient_epochs: list[PositiveInt]
    reliability_epochs: list[PositiveInt]


class Evaluation(Section):
    """Metrics with intervals from `bootstrap` resamples.

    `panels` test images a task are shown with their predictions (0 where images may not be passed on).
    """

    bootstrap: PositiveInt
    panels: int = Field(ge=0)


class Linear(Section):
    """Appendix C: a logistic regression with each gamma in `gammas`, and 0 for cross-entropy."""

    gammas: dict[Name, NonNegativeFloat]
    train: PositiveInt
    test: PositiveInt
    epochs: PositiveInt
    lr: PositiveFloat
    seeds: PositiveInt


class Focal(Section):
    """The paper `focal`: every task with each of its arms, `seeds` times.

    `rebuild` names the notebook to execute; an empty list, with no tasks and gammas, leaves the paper out.
    `translation` is appendix K; null leaves it out.
    """

    rebuild: list[Literal["focal"]]
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
        chosen = self.tasks[task].arms
        return list(self.arms) if chosen is None else chosen

    def arm_of(self, task: str, arm: str) -> Arm:
        """One arm as this task changes it."""
        place, general = self.tasks[task], self.arms[arm]
        change = place.arm_changes.get(arm, ArmChange())
        recipe = {**place.recipe, **general.recipe, **change.recipe}
        return Arm(loss=general.loss, options={**general.options, **change.options}, recipe=recipe)

    def recipe_of(self, task: str, arm: str) -> Recipe:
        """The recipe of one arm on one task: the paper's, changed by the task, the arm, and the arm on this task."""
        return self.recipe.changed(self.arm_of(task, arm).recipe)

    @model_validator(mode="after")
    def _names_exist(self) -> Focal:
        some_for(self.rebuild, "tasks", self.tasks)
        for name, task in self.tasks.items():
            all_known(f"tasks.{name}.arms", task.arms or [], self.arms)
            all_known(f"tasks.{name}.arm_changes", list(task.arm_changes), self.arms_of(name))
            all_known(f"tasks.{name}.variant_of", [task.variant_of] if task.variant_of else [], self.tasks)
            for arm in self.arms_of(name):
                self._check_recipe(name, arm)
            self._check_variant(name, task)
        for arm, about in self.arms.items():
            all_known(f"arms.{arm}.loss", [about.loss], objective_names())
        return self

    def _check_variant(self, name: str, task: Task) -> None:
        """Refuse a variant that differs from its task in more than the recipe."""
        main = self.tasks.get(task.variant_of or name, task)
        if (main.dataset, main.network) != (task.dataset, task.network):
            what = f"must have the data set and network of {task.variant_of}: {main.dataset}, {main.network}"
            raise ValueError(f"tasks.{name}.variant_of: {what}")

    def _check_recipe(self, task: str, arm: str) -> None:
        """Refuse what a task or an arm replaces in the recipe wrongly, and say where it does."""
        try:
            self.recipe_of(task, arm)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            known = nearest(key, Recipe.model_fields) if first["type"] == "extra_forbidden" else f"{first['msg']}."
            raise ValueError(f"tasks.{task} with arms.{arm}, recipe: {key}: {known}") from error
