"""Prepared data as networks are trained on them: images as RGB, texts and trees as numbers."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from softmax_temperature.data.prepared import PreparedData, open_prepared
from softmax_temperature.data.splits import SPLITS, Part, SplitName
from softmax_temperature.data.tokens import Keep, Tokeniser
from softmax_temperature.data.trees import encode_trees, parse_tree, tree_words
from softmax_temperature.runner.artifacts import Artifact, open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.training import ImageSet, Samples, to_rgb
from softmax_temperature.training.texts import TokenSet, TreeSet


class TrainingSets(NamedTuple):
    """A data set, ready to be trained on; the word `words[number - 2]` has that number, and images have no words."""

    sets: Mapping[SplitName, Samples]
    classes: int
    words: tuple[str, ...]


def training_sets(prepared: Artifact, root: str, text: Mapping[str, Any] | None) -> TrainingSets:
    """All splits of a prepared data set of images, texts or trees; `root` is data.root.

    `text` says how texts are read: `vocabulary`, `length` and `keep`; trees are read whole.

    Raises:
        InputError: the data set's images differ in size, or it holds texts and `text` does not say how to read them.
    """
    data = PreparedData(prepared, root=Path(root))
    if data.form == "images":
        return TrainingSets({split: image_set(prepared, split, root) for split in SPLITS}, data.classes, ())
    if text is None:
        remedy = "Give the task `text`: {vocabulary, length, keep}."
        raise InputError("holds texts", where=f"data set {data.name}", remedy=remedy)
    return _numbered(prepared.folder, prepared.digest, **text)


def image_set(prepared_images: Artifact, split: SplitName, root: str, size: int | None = None) -> ImageSet:
    """One split of a prepared data set as RGB, brought to the side `size`; InputError for images of several sizes."""
    data = open_prepared(prepared_images, root=Path(root))
    if not data.one_size:
        what = "images differ in size, and a network that is trained on them needs one"
        raise InputError(what, where=f"data set {data.name}", remedy="Supply it as NAME.npz, resized.")
    images, labels = _ledgered(data.part(split))
    return ImageSet(to_rgb(images, size), labels)


@lru_cache(maxsize=1)  # Counting and numbering words takes as long as an epoch, and the next cell has the same ones.
def _numbered(folder: Path, digest: str, *, vocabulary: int, length: int, keep: Keep) -> TrainingSets:
    """The texts or trees of an artifact; its digest is there to tell it from another in the same folder."""
    prepared = open_artifact(folder)
    assert prepared.digest == digest, "the caller has just opened it"
    data = PreparedData(prepared, root=folder)
    if data.form == "trees":
        return _tree_sets(data, vocabulary)
    tokeniser = Tokeniser.fit(data.texts("train"), vocabulary_size=vocabulary, length=length, keep=keep)
    sets = {split: TokenSet(*_ledgered(tokeniser.encode_part(data.texts(split)))) for split in SPLITS}
    return TrainingSets(sets, data.classes, tokeniser.words)


def _tree_sets(data: PreparedData, vocabulary: int) -> TrainingSets:
    """Trees with the labels of their roots; the vocabulary is that of the training trees."""
    words = tree_words(map(parse_tree, data.texts("train").for_vocabulary()), vocabulary_size=vocabulary)
    sets = {}
    for split in SPLITS:
        part = data.texts(split)
        trees = encode_trees([parse_tree(text) for text in part.data], words)
        sets[split] = TreeSet(*_ledgered(replace(part, data=trees)))
    return TrainingSets(sets, data.classes, words)


def _ledgered(part: Part) -> Any:
    """Data and labels for the one purpose that the split allows in training."""
    return part.for_evaluation() if part.split == "test" else part.for_fitting()
