"""The section `focal` of `params.yaml`."""

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
"""The arm with which `evaluate_focal` compares the other arms of a task."""


class ArmChange(Section):
    """Changes that one task makes to an arm's options, recipe and number of seeds."""

    options: dict[str, Any] = {}
    recipe: dict[str, Any] = {}
    seeds: PositiveInt | None = None


class Arm(Section):
    """A loss with its `options`; `recipe` overrides values of the task's recipe."""

    loss: LossName
    options: dict[str, Any] = {}
    recipe: dict[str, Any] = {}

    def implementations(self) -> tuple[str, ...]:
        """A tuple with only the "module:Class" of `loss`."""
        return (reference_to(self.loss, LOSSES, "loss"),)


class Embeddings(Section):
    """Word vectors in a `file` below data.root (see `data.word_vectors`).

    If `step` is 0, the vectors are frozen. Otherwise they are trained further: after
    each batch, `step` times their gradient is subtracted from them, without the
    optimizer.
    """

    file: Annotated[str, Field(min_length=1)]
    step: NonNegativeFloat


class TaskTraining(Section):
    """Settings for a task's data and evaluation.

    If `gaussian_noise` is given, noisy test images are an out-of-distribution set. They
    come from CIFAR-10-C if the task's data are CIFAR-10 and data.root holds CIFAR-10-C.
    Otherwise noise is added whose standard deviation is `gaussian_noise` for pixels on
    the scale 0 to 1. For parse trees, only `vocabulary` in `text` has an effect. If
    `embeddings` is null, word vectors are learned with the other weights. `select`
    chooses the epoch whose weights are evaluated: the last epoch, or the first one with
    the best validation accuracy.
    """

    gaussian_noise: PositiveFloat | None = None
    text: Text | None = None
    embeddings: Embeddings | None = None
    select: Literal["last", "best_validation"] = "last"


class Task(TaskTraining):
    """A data set with a network, trained with every arm in `arms` (null: all of them).

    Test images of the data sets in `out_of_distribution` are also scored, to measure
    how well the scores distinguish them from the task's own test images. Accuracy and
    calibration are also measured on the data sets in `shifted`, which contain other
    pictures of the same classes. A task with `variant_of` belongs to the ablation: it
    repeats the task `variant_of` with another recipe or network. If the paper prints
    values for the data set and the network, `printed_dataset` and `printed_network` are
    the paper's names for them. `differs` describes further differences from the paper.
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
            names = ", ".join(self.arms)
            raise ValueError(f"arms: {names}: duplicate arm")
        if (self.printed_dataset is None) != (self.printed_network is None):
            raise ValueError(
                "printed_dataset and printed_network must be given together"
            )
        for_images = self.out_of_distribution or self.gaussian_noise or self.shifted
        if self.text and for_images:
            raise ValueError(
                "out_of_distribution, gaussian_noise and shifted need images, and the "
                "task has `text`"
            )
        if self.embeddings and not self.text:
            raise ValueError("embeddings: requires `text`")
        return self


class Watching(Section):
    """Settings for evaluation during training: on which images, and how often.

    `train_images` training images (null: all) and all held-out samples are evaluated
    every `every` epochs, after the first and the last epoch, and after the epochs of
    the figures. If the best epoch is selected, they are evaluated after every epoch.
    Figure 3 shows the epochs in `gradient_epochs`, Figure A.1 those in
    `reliability_epochs`.
    """

    train_images: PositiveInt | None
    every: PositiveInt
    gradient_epochs: list[PositiveInt]
    reliability_epochs: list[PositiveInt]


class Evaluation(Section):
    """Settings for evaluation.

    The intervals of scores and of areas under ROC curves are computed from `bootstrap`
    resamples; a 90 % interval needs at least 19. The results contain the pixels of up
    to `panels` test images per task for Figure H.1; set `panels` to 0 if the images may
    not be redistributed.
    """

    bootstrap: Annotated[int, Field(ge=19)]
    panels: NonNegativeInt


class LinearTraining(Section):
    """Appendix C: a logistic regression on `train` training and `test` test points."""

    train: PositiveInt
    test: PositiveInt
    epochs: PositiveInt
    lr: PositiveFloat


class Linear(LinearTraining):
    """Appendix C's models, one for each gamma in `gammas`; gamma 0 is cross-entropy."""

    gammas: dict[Name, NonNegativeFloat]
    seeds: PositiveInt

    def trainings(self) -> list[tuple[str, int]]:
        """List the arm and the seed of every training run."""
        return list(product(self.gammas, range(self.seeds)))


class Transformer(Section):
    """A Transformer whose encoder and decoder have `layers` layers each.

    Each feed-forward block has `inner` hidden units.
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
                f"width: {self.width}, must be a multiple of heads, {self.heads}"
            )
        return self


class BeamSearch(Section):
    """Settings for beam search on test sentences, `sentences` at a time.

    A larger exponent `length_penalty` favours longer translations. A translation may be
    up to `extra_length` tokens longer than its source.
    """

    beam: PositiveInt
    length_penalty: NonNegativeFloat
    extra_length: NonNegativeInt
    sentences: PositiveInt


class TranslationTask(Section):
    """Settings for training a Transformer to translate from `source` to `target`.

    `dataset` is "farm" or a folder below `data.root` (see `data.translation`). A limit
    is a number of sentence pairs; if it is null, all pairs are used. Training pairs
    with more than `longest` tokens in either language are left out. Both languages
    share a vocabulary of at most `vocabulary` word pieces, or more if the training
    sentences have too many distinct characters. `recipe.batch_size` counts the tokens
    of each language, padding included. Test sentences are translated at the
    `temperatures` of Figure K.1, at 1, and at the temperature fitted to validation
    data.
    """

    dataset: Name
    source: Name
    target: Name
    train_limit: PositiveInt | None
    validation_limit: PositiveInt | None
    test_limit: PositiveInt | None
    vocabulary: Annotated[int, Field(ge=5)]
    longest: PositiveInt
    network: Transformer
    recipe: Recipe
    temperatures: Ascending
    search: BeamSearch


class Translation(TranslationTask):
    """Appendix K: translation with three losses.

    The losses are cross-entropy, label smoothing (`smoothing`) and focal loss
    (`gamma`).
    """

    smoothing: Fraction
    gamma: PositiveFloat
    seeds: PositiveInt

    @property
    def arms(self) -> dict[str, Arm]:
        """The arm of each loss, keyed by the paper's name for the loss."""
        return {
            "CE": Arm(loss="cross_entropy"),
            "LS": Arm(loss="label_smoothing", options={"smoothing": self.smoothing}),
            "FL": Arm(loss="focal", options={"gamma": self.gamma}),
        }

    def trainings(self) -> list[tuple[str, int]]:
        """List the arm and the seed of every training run."""
        return list(product(self.arms, range(self.seeds)))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.source == self.target:
            raise ValueError(f"target: {self.target}, must differ from source")
        recipe = self.recipe
        if recipe.crop_padding or recipe.flip or recipe.mean or recipe.std:
            raise ValueError(
                "recipe: crop_padding must be 0, flip false, and mean and std null, "
                "because they apply to images only"
            )
        return self


class Focal(Section):
    """The paper `focal`: every task with each of its arms.

    Each arm is trained with `seeds` seeds, unless the task's `arm_changes` give a
    different number.

    If `linear` is null, appendix C is left out; if `translation` is null, appendix K is
    left out.
    """

    recipe: Recipe
    arms: dict[Name, Arm]
    tasks: dict[Name, Task]
    seeds: PositiveInt
    watching: Watching
    evaluation: Evaluation
    linear: Linear | None
    translation: Translation | None

    def arms_of(self, task: str) -> list[str]:
        """The names of the arms with which `task` is trained."""
        return list(self.tasks[task].arms or self.arms)

    def arm_of(self, task: str, arm: str) -> Arm:
        """The arm called `arm`, with the changes that `task` makes to it."""
        general = self.arms[arm]
        change = self._change(task, arm)
        task_recipe = self.tasks[task].recipe
        return Arm(
            loss=general.loss,
            options={**general.options, **change.options},
            recipe={**task_recipe, **general.recipe, **change.recipe},
        )

    def _change(self, task: str, arm: str) -> ArmChange:
        return self.tasks[task].arm_changes.get(arm, ArmChange())

    def recipe_of(self, task: str, arm: str) -> Recipe:
        """The recipe with which `arm` is trained on `task`.

        The recipe is the section's, changed first by the task, then by the arm, and
        last by the task's changes to this arm.
        """
        return self.recipe.changed(
            self.arm_of(task, arm).recipe, by=f"tasks.{task} with arms.{arm}"
        )

    def trainings(self) -> list[tuple[str, str, int]]:
        """List the task, arm and seed of every training run."""
        return [
            (task, arm, seed)
            for task in self.tasks
            for arm in self.arms_of(task)
            for seed in range(self._change(task, arm).seeds or self.seeds)
        ]

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name, task in self.tasks.items():
            key = f"tasks.{name}"
            all_known(f"{key}.arms", task.arms or [], self.arms)
            all_known(f"{key}.arm_changes", task.arm_changes, self.arms_of(name))
            for arm in self.arms_of(name):
                self.recipe_of(name, arm)
            if task.variant_of is not None:
                all_known(f"{key}.variant_of", [task.variant_of], self.tasks)
                _check_variant(key, task, self.tasks[task.variant_of])
        return self


def _check_variant(key: str, task: Task, main: Task) -> None:
    if main.dataset != task.dataset:
        raise ValueError(
            f"{key}.variant_of: must use the same data set as {task.variant_of}: "
            f"{main.dataset}"
        )
