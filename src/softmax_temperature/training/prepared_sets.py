"""Data sets as networks are trained on them: images of one size, texts by vocabulary,
whole trees, labelled pixels.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from softmax_temperature.data.prepared import PreparedData, open_prepared
from softmax_temperature.data.segmentation import Form, read_segmentation, set_aside
from softmax_temperature.data.splits import SPLITS, Part, SplitName, limited
from softmax_temperature.data.tokens import Tokeniser
from softmax_temperature.data.trees import encode_trees, parse_tree, tree_words
from softmax_temperature.params.cooling import SegmentationTask
from softmax_temperature.params.shared import Text
from softmax_temperature.runner.artifacts import Artifact, open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.training.samples import ImageSet, Samples, to_rgb
from softmax_temperature.training.texts import TokenSet, TreeSet


class TrainingSets(NamedTuple):
    """A data set, ready to be trained on; the word `words[number - 2]` has that number,
    and images have no words.
    """

    sets: Mapping[SplitName, Samples]
    classes: int
    words: tuple[str, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """By split, how many samples there are."""
        return {split: len(some) for split, some in self.sets.items()}


def training_sets(
    prepared: Artifact, root: str, text: Text | None = None
) -> TrainingSets:
    """All splits of a prepared data set: images, texts as `text` says how they are
    read, or whole trees.

    Raises InputError if images differ in size, or for texts without `text`.
    """
    data = PreparedData(prepared, root=Path(root))
    if data.form == "images":
        return TrainingSets(
            {split: _images(data, split) for split in SPLITS}, data.classes
        )
    if text is None:
        remedy = "Give the task `text`: {vocabulary, length, keep}."
        raise InputError("holds texts", where=f"data set {data.name}", remedy=remedy)
    return _numbered(prepared.folder, prepared.digest, text)


def image_set(
    prepared: Artifact, split: SplitName, root: str, size: int | None = None
) -> ImageSet:
    """One split of a prepared data set as RGB, brought to the side `size`; InputError
    for images of several sizes.
    """
    return _images(open_prepared(prepared, root=Path(root)), split, size)


def _images(data: PreparedData, split: SplitName, size: int | None = None) -> ImageSet:
    if not data.one_size:
        what = "images differ in size, and a network that is trained on them needs one"
        raise InputError(
            what,
            where=f"data set {data.name}",
            remedy="Supply it as NAME.npz, resized.",
        )
    images, labels = for_training(data.part(split))
    return ImageSet(to_rgb(images, size), labels)


@lru_cache(
    maxsize=1
)  # Counting and numbering words takes as long as an epoch, and the next cell has the same ones.
def _numbered(folder: Path, digest: str, text: Text) -> TrainingSets:  # noqa: ARG001
    """Texts or trees, with the vocabulary of the training ones; `digest` tells
    artifacts in the same folder apart.
    """
    data = PreparedData(open_artifact(folder), root=folder)
    parts: dict[SplitName, Part] = {split: data.texts(split) for split in SPLITS}
    sets: dict[SplitName, Samples] = {}
    if data.form == "trees":
        words = tree_words(
            map(parse_tree, parts["train"].for_vocabulary()),
            vocabulary_size=text.vocabulary,
        )
        for split, part in parts.items():
            encoded = encode_trees(list(map(parse_tree, part.data)), words)
            sets[split] = TreeSet(*for_training(replace(part, data=encoded)))
        return TrainingSets(sets, data.classes, words)
    tokeniser = Tokeniser.fit(
        parts["train"],
        vocabulary_size=text.vocabulary,
        length=text.length,
        keep=text.keep,
    )
    for split, part in parts.items():
        sets[split] = TokenSet(*for_training(tokeniser.encode_part(part)))
    return TrainingSets(sets, data.classes, tokeniser.words)


def for_training(part: Part) -> Any:
    """Data and labels for the one purpose that the split allows in training."""
    return part.for_evaluation() if part.split == "test" else part.for_fitting()


def segmentation_sets(
    task: SegmentationTask, root: str, *, seed: int
) -> dict[SplitName, ImageSet]:
    """The images to train on, to fit the temperature on ("validation"), and to report
    on.
    """
    form = Form(task.classes, task.void, task.crop, task.size)
    parts = read_segmentation(task.dataset, form, root=Path(root), seed=seed)
    parts["train"] = limited(parts["train"], task.train_limit, seed=seed)
    parts["test"] = limited(parts["test"], task.test_limit, seed=seed)
    parts = set_aside(parts, task.cooling_images, seed=seed)
    return {split: ImageSet(*for_training(part)) for split, part in parts.items()}
