"""Data sets in the form that networks train on.

The forms are images of one size, texts and parse trees as token IDs, and images with
labelled pixels.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

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
    """A data set that is ready for training.

    Token ID k stands for the word `words[k - 2]`. Images have no words.
    """

    sets: Mapping[SplitName, Samples]
    classes: int
    words: tuple[str, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """The number of samples in each split."""
        return {split: len(samples) for split, samples in self.sets.items()}


def training_sets(
    prepared: Artifact, root: str, text: Text | None = None
) -> TrainingSets:
    """Read all splits of the data set `prepared`: images, texts or trees.

    `text` says how to number words; images do not need it. Raises InputError for images
    of different sizes, or if `text` is None for texts or trees.
    """
    data = PreparedData(prepared, root=Path(root))
    if data.form == "images":
        images = {split: _images(data, split) for split in SPLITS}
        return TrainingSets(images, data.classes)
    if text is None:
        remedy = "Set the task's `text`: {vocabulary, length, keep}."
        raise InputError(
            "holds texts, but the task has no `text`",
            where=f"data set {data.name}",
            remedy=remedy,
        )
    return _numbered(prepared.folder, prepared.digest, text)


def image_set(
    prepared: Artifact, split: SplitName, root: str, size: int | None = None
) -> ImageSet:
    """Read one split of a prepared data set as RGB images.

    If `size` is given, the images are resized to `size` × `size` pixels. Raises
    InputError for images of several sizes.
    """
    return _images(open_prepared(prepared, root=Path(root)), split, size)


def _images(data: PreparedData, split: SplitName, size: int | None = None) -> ImageSet:
    if not data.one_size:
        what = (
            "its images differ in size, but a network needs training images of one size"
        )
        remedy = "Resize them and save them as NAME.npz."
        raise InputError(what, where=f"data set {data.name}", remedy=remedy)
    part = data.part(split)
    return ImageSet.of_part(replace(part, data=to_rgb(part.data, size)))


# The result is cached, because numbering the words takes as long as an epoch, and the
# next cell often trains on the same texts.
@lru_cache(maxsize=1)
def _numbered(folder: Path, digest: str, text: Text) -> TrainingSets:  # noqa: ARG001
    """Read texts or trees, and number their words with the training vocabulary.

    `digest` is only part of the cache's key: it distinguishes artifacts that were
    written to the same folder.
    """
    data = PreparedData(open_artifact(folder), root=folder)
    parts: dict[SplitName, Part] = {split: data.texts(split) for split in SPLITS}
    if data.form == "trees":
        return _trees(parts, data.classes, text)
    return _texts(parts, data.classes, text)


def _trees(parts: dict[SplitName, Part], classes: int, text: Text) -> TrainingSets:
    training_trees = map(parse_tree, parts["train"].for_vocabulary())
    words = tree_words(training_trees, vocabulary_size=text.vocabulary)
    sets: dict[SplitName, Samples] = {}
    for split, part in parts.items():
        trees = [parse_tree(line) for line in part.data]
        sets[split] = TreeSet.of_part(replace(part, data=encode_trees(trees, words)))
    return TrainingSets(sets, classes, words)


def _texts(parts: dict[SplitName, Part], classes: int, text: Text) -> TrainingSets:
    tokeniser = Tokeniser.fit(
        parts["train"],
        vocabulary_size=text.vocabulary,
        length=text.length,
        keep=text.keep,
    )
    sets: dict[SplitName, Samples] = {}
    for split, part in parts.items():
        sets[split] = TokenSet.of_part(tokeniser.encode_part(part))
    return TrainingSets(sets, classes, tokeniser.words)


def segmentation_sets(
    task: SegmentationTask, root: str, *, seed: int
) -> dict[SplitName, ImageSet]:
    """Read images for training, for fitting the temperature, and for testing.

    The temperature is fitted on the split "validation".
    """
    form = Form(task.classes, task.void, task.crop, task.size)
    parts = read_segmentation(task.dataset, form, root=Path(root), seed=seed)
    parts["train"] = limited(parts["train"], task.train_limit, seed=seed)
    parts["test"] = limited(parts["test"], task.test_limit, seed=seed)
    parts = set_aside(parts, task.cooling_images, seed=seed)
    return {split: ImageSet.of_part(part) for split, part in parts.items()}
