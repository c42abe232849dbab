"""Archives of texts and of trees: `NAME.jsonl`, one JSON object per line, in UTF-8.

Texts have `split`, `label` (a whole number from 0, or a name) and `text`. Trees have `split` and `tree`, a sentence
with its parse in brackets, whose label is that of its root. Sentences whose root is neutral are counted and left out:
what remains is negative (0 or 1) or positive (3 or 4), as section 5 of the focal paper has the Stanford Sentiment
Treebank.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from softmax_temperature.data.catalogue import CATALOGUE
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.splits import SPLITS, SplitName
from softmax_temperature.data.trees import NEUTRAL, SENTIMENTS, parse_tree
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

Label = int | str

_SPLIT_NAMES: dict[str, SplitName] = {
    "train": "train",
    "test": "test",
    **dict.fromkeys(("dev", "val", "valid", "validation"), "validation"),
}
_TEXT_FORM = (
    'Write one JSON object per line in UTF-8: {"split": "train", "label": 0, "text": "..."}, with the split train, '
    "test or dev, and labels that are either whole numbers from 0 or names."
)
_TREE_FORM = (
    'Write one JSON object per line in UTF-8: {"split": "train", "tree": "(3 (2 a) (4 joy))"}, with the split train, '
    "test or dev, and in the brackets a label from 0 to 4 before a word or two nodes."
)


class _Row(NamedTuple):
    number: int
    split: SplitName
    label: Label
    text: str


@dataclass(frozen=True)
class JsonlArchive:
    """One `NAME.jsonl` below data.root; it holds trees if its first line does."""

    root: Path
    name: str

    @property
    def path(self) -> Path:
        """The archive file."""
        return self.root / f"{self.name}.jsonl"

    def digest(self) -> str:
        """The sha256 of the archive file."""
        return digest_of_file(self.path)

    def read(self) -> RawDataset:
        """Check every line.

        The classes of texts are the labels of the train part, in ascending order. Numbers count from 0 without gaps;
        if the catalogue has the data set, there are as many classes as it says.

        Raises:
            InputError: a line is not of the stated form, or its label is not a class; the error names the line. Or the
                train part lacks a class.
        """
        with self.path.open("rb") as file:
            first = file.readline()
        return self._read_trees() if b'"tree"' in first and b'"text"' not in first else self._read_texts()

    def _read_texts(self) -> RawDataset:
        entry = CATALOGUE.get(self.name)
        rows, empty = [], 0
        for number, record in self._records(("split", "label", "text"), _TEXT_FORM):
            label, text = record["label"], record["text"]
            if isinstance(label, bool) or not isinstance(label, int | str) or label == "":
                self._refuse(number, f"the label is {label!r}, neither a whole number nor a name")
            if not isinstance(text, str):
                self._refuse(number, f"the text is {text!r}, not a string")
            if text.strip():
                rows.append(_Row(number, record["split"], label, text))
            elif entry is not None and entry.leaves_out_empty_texts:
                empty += 1
            else:
                self._refuse(number, "the text is empty")
        names = self._class_names(rows, entry.classes if entry else None)
        numbers = {label: number for number, label in enumerate(names)}
        rows = [row._replace(label=numbers[row.label]) for row in rows]
        return self._dataset(tuple(map(str, names)), rows, {"empty_texts_left_out": empty})

    def _read_trees(self) -> RawDataset:
        rows, neutral = [], 0
        for number, record in self._records(("split", "tree"), _TREE_FORM):
            try:
                root = parse_tree(record["tree"]).labels[0]
            except (ValueError, TypeError) as error:
                self._refuse(number, f"the tree is malformed: {error}", _TREE_FORM)
            if record.get("label", root) != root:
                what = f"the label is {record['label']!r}, that of the tree's root {root}"
                self._refuse(number, what, _TREE_FORM)
            neutral += SENTIMENTS[root] == NEUTRAL
            if SENTIMENTS[root] != NEUTRAL:
                rows.append(_Row(number, record["split"], SENTIMENTS[root], record["tree"]))
        names = ("negative", "positive")
        for label, name in enumerate(names):
            if not any(row.split == "train" and row.label == label for row in rows):
                self._refuse(None, f"has no {name} sentence of the split train", _TREE_FORM)
        return self._dataset(names, rows, {"neutral_sentences_left_out": neutral}, trees=True)

    def _records(self, keys: tuple[str, ...], form: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number, from 1, and object of each line, with the split under its one name."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    record = json.loads(line.decode())
                except ValueError as error:
                    self._refuse(number, f"is not JSON in UTF-8 ({error})", form)
                if not isinstance(record, dict):
                    self._refuse(number, f"is {record!r}, not a JSON object", form)
                if missing := [key for key in keys if key not in record]:
                    found = ", ".join(record) or "nothing"
                    self._refuse(number, f"has no {', '.join(missing)} (it holds: {found})", form)
                if (split := _SPLIT_NAMES.get(str(record["split"]))) is None:
                    what = f"the split is {record['split']!r}, not one of {', '.join(_SPLIT_NAMES)}"
                    self._refuse(number, what, form)
                yield number, {**record, "split": split}

    def _class_names(self, rows: list[_Row], declared: int | None) -> list[Any]:
        """The labels of the train part in ascending order, after all checks of labels."""
        known = {row.label for row in rows if row.split == "train"}
        if len(known) < 2:
            self._refuse(None, "all training texts are of one class" if known else "has no row of the split train")
        if all(isinstance(label, int) for label in known):
            classes = declared or len(known)
            if known != set(range(classes)):
                found = f"numbers from {min(known)} to {max(known)}"
                self._refuse(None, f"the labels of the training texts are {found}, must be all of 0 to {classes - 1}")
        elif declared is not None and len(known) > declared:
            self._refuse(None, f"the training texts have {len(known)} labels, not {declared}")
        for row in rows:
            if row.label not in known or type(row.label) is not type(rows[0].label):
                self._refuse(row.number, f"the label is {row.label!r}, not one of {len(known)} classes of one kind")
        return sorted(known)

    def _dataset(
        self, names: tuple[str, ...], rows: list[_Row], left_out: dict[str, int], *, trees: bool = False
    ) -> RawDataset:
        parts: dict[SplitName, RawPart] = {}
        for split in SPLITS:
            if own := [row for row in rows if row.split == split]:
                parts[split] = RawPart(tuple(row.text for row in own), np.array([row.label for row in own], np.int64))
        source = {"how": "archive in data.root", "file": self.path.name, **left_out}
        return RawDataset(
            name=self.name,
            class_names=names,
            train=parts["train"],
            test=parts.get("test"),
            source=source,
            validation=parts.get("validation"),
            form="trees" if trees else "texts",
        )

    def _refuse(self, number: int | None, what: str, form: str = _TEXT_FORM) -> NoReturn:
        where = str(self.path) if number is None else f"{self.path}, row {number}"
        raise InputError(what, where=where, remedy=form)
