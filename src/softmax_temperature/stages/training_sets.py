"""Prepared data of any kind as networks are trained on them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softmax_temperature.data.splits import SPLITS
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.data.tokens import Keep
    from softmax_temperature.runner.artifacts import Artifact
    from softmax_temperature.training import Samples


class TrainingSets(NamedTuple):
    """A data set, ready to be trained on.

    Attributes:
        sets: by split.
        classes: how many it has.
        words: the vocabulary; the word `words[number - 2]` has that number. Empty for images.
    """

    sets: Mapping[SplitName, Samples]
    classes: int
    words: tuple[str, ...]


def training_sets(prepared: Artifact, root: str, text: Mapping[str, Any] | None) -> TrainingSets:
    """All splits of a prepared data set.

    Args:
        prepared: images, texts or trees.
        root: the folder of the raw data.
        text: how texts are read, `vocabulary`, `length` and `keep`; trees are read whole, and images are none.

    Raises:
        InputError: the data set's images differ in size, or it holds texts and `text` does not say how to read them.
    """
    from softmax_temperature.data.prepared import open_prepared  # torch, which `--help` must not wait for
    from softmax_temperature.data.prepared_texts import holds_texts, open_texts
    from softmax_temperature.stages.image_sets import image_set

    if not holds_texts(prepared):
        images = {split: image_set(prepared, split, root) for split in SPLITS}
        return TrainingSets(images, open_prepared(prepared, root=Path(root)).classes, ())
    if text is None:
        remedy = "Give the task `text`: {vocabulary, length, keep}."
        raise InputError("holds texts", where=f"data set {open_texts(prepared).name}", remedy=remedy)
    return _numbered(prepared.folder, prepared.digest, **text)


@lru_cache(maxsize=1)  # Counting and numbering words takes as long as an epoch, and the next cell has the same ones.
def _numbered(folder: Path, digest: str, *, vocabulary: int, length: int, keep: Keep) -> TrainingSets:
    """The texts or trees of an artifact; its digest is there to tell it from another in the same folder."""
    from softmax_temperature.data.prepared_texts import open_texts
    from softmax_temperature.stages.token_sets import token_sets
    from softmax_temperature.stages.tree_sets import tree_sets

    prepared = open_artifact(folder)
    assert prepared.digest == digest, "the caller has just opened it"
    texts = open_texts(prepared)
    if texts.trees:
        trees, words = tree_sets(texts, vocabulary_size=vocabulary)
        return TrainingSets(trees, texts.classes, words)
    tokens, tokeniser = token_sets(prepared, vocabulary_size=vocabulary, length=length, keep=keep)
    return TrainingSets(tokens, texts.classes, tokeniser.words)
