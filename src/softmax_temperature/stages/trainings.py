"""What the training stages share: a cell's plan, prepared data as networks are trained on them, and what is left."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import save_file, save_model
from torch import Tensor, nn

from softmax_temperature import training as loop
from softmax_temperature.data.prepared import PreparedData, open_prepared
from softmax_temperature.data.splits import SPLITS, Part, SplitName
from softmax_temperature.data.tokens import Tokeniser, encode_trees, parse_tree, tree_words
from softmax_temperature.losses import Objective
from softmax_temperature.params import Params
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.shared import Text
from softmax_temperature.runner.artifacts import Artifact, open_artifact, write_json
from softmax_temperature.runner.cells import Job
from softmax_temperature.runner.errors import InputError
from softmax_temperature.training.texts import TokenSet, TreeSet

WEIGHTS, LOGITS = "weights.safetensors", "logits.safetensors"
LAST_LOGITS = "last-logits.safetensors"
"""Of the last epoch, where another one was selected to be evaluated."""
HELD_OUT: tuple[SplitName, ...] = ("validation", "test")


def check_networks(params: Params, trained: Mapping[str, Any]) -> None:
    """Refuse the networks of tasks that do not take their arguments: the parameters are wrong, not a cell."""
    for name in dict.fromkeys(task.network for task in trained.values()):
        loop.check_network(params.networks[name])


def arms_and_seeds(section: Any, arms: Iterable[str]) -> list[tuple[str, int]]:
    """Arm and seed of every training of a section that has `seeds`; none where it is left out."""
    return [(arm, seed) for arm in arms for seed in range(section.seeds)] if section else []


class TrainingSets(NamedTuple):
    """A data set, ready to be trained on; the word `words[number - 2]` has that number, and images have no words."""

    sets: Mapping[SplitName, loop.Samples]
    classes: int
    words: tuple[str, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """By split, how many samples there are."""
        return {split: len(some) for split, some in self.sets.items()}


def training_sets(prepared: Artifact, root: str, text: Text | None = None) -> TrainingSets:
    """All splits of a prepared data set: images, texts as `text` says how they are read, or whole trees.

    Raises InputError if images differ in size, or for texts without `text`.
    """
    data = PreparedData(prepared, root=Path(root))
    if data.form == "images":
        return TrainingSets({split: image_set(prepared, split, root) for split in SPLITS}, data.classes)
    if text is None:
        remedy = "Give the task `text`: {vocabulary, length, keep}."
        raise InputError("holds texts", where=f"data set {data.name}", remedy=remedy)
    return _numbered(prepared.folder, prepared.digest, text)


def image_set(prepared: Artifact, split: SplitName, root: str, size: int | None = None) -> loop.ImageSet:
    """One split of a prepared data set as RGB, brought to the side `size`; InputError for images of several sizes."""
    data = open_prepared(prepared, root=Path(root))
    if not data.one_size:
        what = "images differ in size, and a network that is trained on them needs one"
        raise InputError(what, where=f"data set {data.name}", remedy="Supply it as NAME.npz, resized.")
    images, labels = for_training(data.part(split))
    return loop.ImageSet(loop.to_rgb(images, size), labels)


@lru_cache(maxsize=1)  # Counting and numbering words takes as long as an epoch, and the next cell has the same ones.
def _numbered(folder: Path, digest: str, text: Text) -> TrainingSets:  # noqa: ARG001
    """Texts or trees, with the vocabulary of the training ones; `digest` tells artifacts in the same folder apart."""
    data = PreparedData(open_artifact(folder), root=folder)
    parts: dict[SplitName, Part] = {split: data.texts(split) for split in SPLITS}
    sets: dict[SplitName, loop.Samples] = {}
    if data.form == "trees":
        words = tree_words(map(parse_tree, parts["train"].for_vocabulary()), vocabulary_size=text.vocabulary)
        for split, part in parts.items():
            encoded = encode_trees(list(map(parse_tree, part.data)), words)
            sets[split] = TreeSet(*for_training(replace(part, data=encoded)))
        return TrainingSets(sets, data.classes, words)
    tokeniser = Tokeniser.fit(parts["train"], vocabulary_size=text.vocabulary, length=text.length, keep=text.keep)
    for split, part in parts.items():
        sets[split] = TokenSet(*for_training(tokeniser.encode_part(part)))
    return TrainingSets(sets, data.classes, tokeniser.words)


def for_training(part: Part) -> Any:
    """Data and labels for the one purpose that the split allows in training."""
    return part.for_evaluation() if part.split == "test" else part.for_fitting()


class TrainingRun:
    """A network in training, and the files that its cell leaves.

    `seed` draws order and augmentation, and all arms have the same, so that their differences are paired. A training
    that diverged is a result, which its record says: its weights and rows end where they were last finite, and it has
    no logits.
    """

    def __init__(
        self, job: Job, recipe: Recipe, seed: int, network: nn.Module, objective: Objective, samples: loop.Samples
    ) -> None:
        self.trainer = loop.Trainer(network, objective, samples, recipe, seed=seed, device=job.device)
        self.finite, self._job = True, job

    def run(self, **callbacks: loop.Callback | None) -> None:
        """Train to the end of the recipe, or until it diverges; after each epoch the callbacks follow in this order."""
        called = {name: each for name, each in callbacks.items() if each is not None}
        self.trainer.after_batch += [each.after_batch for each in called.values() if hasattr(each, "after_batch")]
        self.finite = not loop.train(self.trainer, called, self._job)

    def save_logits(
        self, sets: Mapping[str, loop.Samples], outliers: Mapping[str, Tensor] | None = None, file: str = LOGITS
    ) -> None:
        """Write logits and labels of sets, and logits of outliers; nothing if they are not finite."""
        if not self.finite:
            return
        inputs = {name: some.inputs for name, some in sets.items()} | dict(outliers or {})
        labels = {f"{name}.labels": some.labels for name, some in sets.items()}
        try:
            logits = {f"{name}.logits": self.trainer.evaluate(some)[0] for name, some in inputs.items()}
            save_file(logits | labels, self._job.output / file)
        except loop.Diverged:
            self.finite = False

    def save(self, about: Mapping[str, Any], *, weights: bool = True, **rows: Any) -> None:
        """Write `weights.safetensors` if asked, `record.json` with `about` and what became of it, and JSON by name."""
        trainer, recipe = self.trainer, self.trainer.recipe
        record = {
            "epochs": recipe.epochs,
            "planned_epochs": recipe.planned_epochs,
            "epochs_done": trainer.epochs_done,
            "diverged": not self.finite,
            "parameters": loop.count_parameters(trainer.network),
        }
        for name, content in {**rows, "record": {**record, **about}}.items():
            write_json(self._job.output / f"{name}.json", content)
        if weights:
            save_model(trainer.network.cpu(), str(self._job.output / WEIGHTS))
