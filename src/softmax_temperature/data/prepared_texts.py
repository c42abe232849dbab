"""Prepared data sets of texts: what stages after fetch read.

The artifact of kind "fetch" holds

    card.json           name, source, licence, classes, splits, rules and limits, form ("texts" or "trees")
    rows.safetensors    {split}.labels and {split}.index
    {split}.jsonl       one JSON string a line, in UTF-8, in the order of the labels
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from softmax_temperature.data.prepared import CARD, ROWS
from softmax_temperature.data.splits import SPLITS, LeakError, SplitName
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.runner.artifacts import Artifact


def texts_file(split: str) -> str:
    """The name of the file that holds a split's texts."""
    return f"{split}.jsonl"


def to_line(text: str) -> bytes:
    """A text as a line of that file."""
    return json.dumps(text, ensure_ascii=False).encode() + b"\n"


@dataclass(frozen=True, eq=False)
class StoredTexts:
    """The texts of a split, read from their file anew each time, one at a time."""

    artifact: Artifact
    split: SplitName

    def __iter__(self) -> Iterator[str]:
        """The texts in the order of the labels.

        Raises:
            ArtifactError: the file is missing or damaged; it is compared with its digest before the first text.
        """
        with self.artifact.path(texts_file(self.split)).open("rb") as file:
            for line in file:
                yield json.loads(line)


@dataclass(frozen=True, eq=False)
class TextPart:
    """One split of one data set, as `splits.Part` before texts have become numbers.

    Attributes:
        dataset: its name.
        split: which part of it this is.
        texts: n of them; may be iterated more than once.
        labels: (n,) int64.
        index: (n,) int64, the texts' numbers in the original part, empty ones not counted.
    """

    dataset: str
    split: SplitName
    texts: Iterable[str]
    labels: Tensor
    index: Tensor

    def for_vocabulary(self) -> Iterable[str]:
        """Texts whose words may become a vocabulary.

        Raises:
            LeakError: these are not the training texts. A word that only validation or test texts use is one that a
                new text may bring as well: nothing may know it.
        """
        if self.split != "train":
            raise LeakError(f"{self.dataset}: the {self.split} split was asked for to make a vocabulary")
        return self.texts


@dataclass(frozen=True, eq=False)
class PreparedTexts:
    """A prepared data set of texts, read as a stream.

    Attributes:
        artifact: where it is stored.
        card: what is known about it.
    """

    artifact: Artifact
    card: dict[str, Any]
    _rows: dict[str, Tensor] = field(repr=False)

    @property
    def name(self) -> str:
        """The data set's name."""
        return str(self.card["name"])

    @property
    def classes(self) -> int:
        """The number of classes; a split need not hold all of them."""
        return len(self.card["class_names"])

    @property
    def class_names(self) -> tuple[str, ...]:
        """One name a class, in the order of the labels."""
        return tuple(self.card["class_names"])

    @property
    def trees(self) -> bool:
        """Whether the texts are trees in brackets."""
        return bool(self.card["form"] == "trees")

    @property
    def splits(self) -> tuple[SplitName, ...]:
        """The splits, in the order train, validation, test."""
        return SPLITS

    def part(self, split: SplitName) -> TextPart:
        """One split; its texts stay on the disk.

        Raises:
            ValueError: unknown split.
        """
        if split not in self.splits:
            raise ValueError(f"split: {split!r}, must be one of {', '.join(self.splits)}")
        labels, index = (self._rows[f"{split}.{column}"] for column in ("labels", "index"))
        return TextPart(self.name, split, StoredTexts(self.artifact, split), labels, index)


def holds_texts(artifact: Artifact) -> bool:
    """Whether what the fetch stage made is a data set of texts."""
    return texts_file("train") in artifact.files


def open_texts(artifact: Artifact) -> PreparedTexts:
    """Open a prepared data set; card and labels are verified and read now, texts when they are asked for.

    Raises:
        ArtifactError: card or labels are missing or damaged.
        InputError: it is a data set of images.
    """
    card = artifact.json(CARD)
    if not holds_texts(artifact):
        raise InputError("holds images, not texts", where=f"data set {card['name']}", remedy="Choose another one.")
    return PreparedTexts(artifact, card, artifact.tensors(ROWS))
