"""Archives of parsed sentences: `NAME.jsonl`, one JSON object a line with `split` and `tree`, in UTF-8.

`tree` is a tree in brackets with labels from 0 to 4, as `brackets` reads it. The label of the sentence
is that of its root; `label`, where a row has it, says the same. `split` is as for texts. Sentences whose root is
neutral are counted and left out: what remains is negative (0 or 1) or positive (3 or 4), as section 5 of the focal
paper has the Stanford Sentiment Treebank.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from softmax_temperature.data.brackets import NEUTRAL, SENTIMENTS, parse_tree
from softmax_temperature.data.jsonl_rows import check_characters, lines_of, record_of, refuse, short, split_of
from softmax_temperature.data.raw_texts import RawTextPart, RawTextSet
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.runner.artifacts import digest_of_file

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from softmax_temperature.data.splits import SplitName

CLASSES = ("negative", "positive")

_KEYS = ("split", "tree")
_FORM = (
    'Write one JSON object a line in UTF-8: {"split": "train", "tree": "(3 (2 a) (4 joy))"}, with the split train, '
    "test or dev, and in the brackets a label from 0 to 4 before a word or two nodes."
)


class Row(NamedTuple):
    """One line of the file; the label is the root's class, of `SENTIMENTS`."""

    split: SplitName
    label: int
    tree: str


@dataclass(frozen=True)
class TreesOfFile:
    """Trees in brackets that stay in their file.

    Attributes:
        path: the file.
        offsets: (n,) int64, where each row starts, in bytes.
    """

    path: Path
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets)

    def read(self, rows: Iterable[int]) -> Iterator[str]:
        """Some of the trees, one at a time."""
        with self.path.open("rb") as file:
            for row in rows:
                file.seek(self.offsets[row])
                yield _parse_row(file.readline(), where=str(self.path)).tree


@dataclass(frozen=True)
class JsonlTrees:
    """One `NAME.jsonl` of trees below data.root."""

    root: Path
    name: str

    @property
    def path(self) -> Path:
        """The archive file."""
        return self.root / f"{self.name}.jsonl"

    def digest(self) -> str:
        """The sha256 of the archive file."""
        return digest_of_file(self.path)

    def read(self) -> RawTextSet:
        """Check every row; the texts of the data set are the trees.

        Raises:
            InputError: a row is not of the stated form; the error names the file, the row, and the character of the
                tree. Or the training part lacks a class.
        """
        offsets: dict[SplitName, array[int]] = {split: array("q") for split in SPLITS}
        labels: dict[SplitName, array[int]] = {split: array("q") for split in SPLITS}
        neutral = 0
        for number, offset, line in lines_of(self.path, form=_FORM):
            row = _parse_row(line, where=f"{self.path}, row {number}")
            neutral += row.label == NEUTRAL
            if row.label != NEUTRAL:
                offsets[row.split].append(offset)
                labels[row.split].append(row.label)
        for label, name in enumerate(CLASSES):
            if label not in labels["train"]:
                _refuse(f"has no {name} sentence of the split train", str(self.path))
        parts = (self._part(offsets[split], labels[split]) for split in SPLITS)
        train, validation, test = parts
        assert train is not None, "there are sentences of both classes"
        source = {"how": "archive in data.root", "file": self.path.name, "neutral_sentences_left_out": neutral}
        return RawTextSet(self.name, CLASSES, train, validation, test, source, trees=True)

    def _part(self, offsets: array[int], labels: array[int]) -> RawTextPart | None:
        if not offsets:
            return None
        places, classes = (np.asarray(numbers, dtype=np.int64) for numbers in (offsets, labels))
        return RawTextPart(TreesOfFile(self.path, places), classes)


def holds_trees(path: Path) -> bool:
    """Whether the first row of a `NAME.jsonl` has a tree and no text."""
    for _, _, line in lines_of(path, form=_FORM):
        return b'"tree"' in line and b'"text"' not in line
    return False


def _parse_row(line: bytes, *, where: str) -> Row:
    record = record_of(line, keys=_KEYS, where=where, form=_FORM)
    split, text = split_of(record["split"], where=where, form=_FORM), record["tree"]
    if not isinstance(text, str):
        _refuse(f"the tree is {short(text)}, not a string", where)
    check_characters(text, where=where, form=_FORM)
    try:
        root = parse_tree(text).labels[0]
    except ValueError as error:
        _refuse(f"the tree is malformed: {error}", where)
    if record.get("label", root) != root:
        _refuse(f"the label is {short(record['label'])}, that of the tree's root {root}", where)
    return Row(split, SENTIMENTS[root], text)


def _refuse(what: str, where: str) -> NoReturn:
    refuse(what, where, _FORM)
