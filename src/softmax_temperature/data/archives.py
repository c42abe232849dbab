"""The user's archives in data.root: arrays in `NAME.npz`, texts or trees in
`NAME.jsonl`.
"""

import json
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from softmax_temperature.data.splits import SPLITS, RawDataset, RawPart, SplitName
from softmax_temperature.data.tokens import SENTIMENTS, parse_tree
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
_SPLITS: dict[str, SplitName] = {"train": "train", "test": "test"}
_SPLITS |= dict.fromkeys(("dev", "val", "valid", "validation"), "validation")
_CLASS_OF_SENTIMENT = ("negative", "positive", None)


@dataclass(frozen=True)
class _Archive:
    path: Path

    form: ClassVar[str]

    def digest(self) -> str:
        return digest_of_file(self.path)

    def _refuse(self, what: str, line: int | None = None) -> NoReturn:
        raise InputError(
            what,
            where=f"{self.path}, line {line}" if line else str(self.path),
            remedy=self.form,
        )


class NpzArchive(_Archive):
    """Images: x_train, y_train, x_test, y_test and perhaps class_names."""

    form = (
        "Save it with numpy.savez: x_train and x_test uint8 of shape (n, height, width) or (n, height, width, 1 or 3), "
        "y_train and y_test integers of shape (n,), class_names (optional) text of shape (classes,). Without training "
        "images (n = 0) it can be an out-of-distribution or a shifted set and nothing else."
    )

    def read(self) -> RawDataset:
        """Labels number the `class_names`, or else the distinct labels of y_train
        (y_test, if it is all).
        """
        arrays = self._load()
        parts = {
            name: self._part(name, arrays[f"x_{name}"], arrays[f"y_{name}"])
            for name in ("train", "test")
        }
        sizes = [np.shape(part.samples)[1:] for part in parts.values()]
        if sizes[0] != sizes[1]:
            self._refuse(
                f"x_train and x_test differ in image shape: {sizes[0]} and {sizes[1]}"
            )
        known = np.unique(
            parts["train" if len(parts["train"].labels) else "test"].labels
        )
        names = tuple(map(str, arrays.get("class_names", known)))
        known = np.arange(len(names)) if "class_names" in arrays else known
        if len(names) < 2:
            self._refuse("all images are of one class")
        for name, part in parts.items():
            if unknown := np.setdiff1d(part.labels, known).tolist():
                self._refuse(
                    f"y_{name} has label {unknown[0]}, which is none of {len(names)} classes"
                )
        train, test = (
            RawPart(part.samples, np.searchsorted(known, part.labels))
            for part in parts.values()
        )
        source = {"how": "archive in data.root", "file": self.path.name}
        return RawDataset(self.path.stem, names, train, test, source)

    def _load(self) -> dict[str, Any]:
        try:
            with (
                self.path.open("rb") as opened,
                np.load(opened, allow_pickle=False) as file,
            ):
                if missing := [key for key in _ARRAYS if key not in file.files]:
                    self._refuse(
                        f"has no {', '.join(missing)} (it holds: {', '.join(file.files) or 'nothing'})"
                    )
                return {
                    key: file[key]
                    for key in (*_ARRAYS, "class_names")
                    if key in file.files
                }
        except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
            self._refuse(f"not readable as an npz archive ({error})")

    def _part(self, name: str, images: Any, labels: Any) -> RawPart:
        images = images[..., None] if images.ndim == 3 else images
        sizes = images.shape[int(name == "train") :]  # Training images may be missing.
        if (
            images.dtype != np.uint8
            or images.ndim != 4
            or images.shape[-1] not in (1, 3)
            or 0 in sizes
        ):
            self._refuse(f"x_{name} is {images.dtype} of shape {images.shape}")
        if labels.shape != images.shape[:1] or (
            labels.dtype.kind not in "iu" and len(images)
        ):
            self._refuse(
                f"y_{name} is {labels.dtype} of shape {labels.shape}, for {len(images)} images"
            )
        return RawPart(images, labels.astype(np.int64))


class _Row(NamedTuple):
    line: int
    split: SplitName
    label: int | str | None  # None where the text is left out.
    text: str


class JsonlArchive(_Archive):
    """Texts without empty ones or, if the first line has one, trees without neutral
    ones (focal, section 5).
    """

    form = (
        'Write one JSON object per line in UTF-8: {"split": "train", "label": 0, "text": "..."} or {"split": "train", '
        '"tree": "(3 (2 a) (4 joy))"}, with the split train, test or dev, and labels that are either whole numbers '
        "from 0 or names; in the brackets a label from 0 to 4 before a word or two nodes."
    )

    def read(self) -> RawDataset:
        """The classes are the labels of the train part, in ascending order; numbers
        count from 0 without gaps.
        """
        with self.path.open("rb") as file:
            lines = list(file)
        trees = any(b'"tree"' in line and b'"text"' not in line for line in lines[:1])
        every = [
            self._row(number, line, trees) for number, line in enumerate(lines, start=1)
        ]
        rows = [row for row in every if row.label is not None]
        known: set[Any] = {row.label for row in rows if row.split == "train"}
        if len(known) < 2 or not (
            known == {*range(len(known))}
            or all(isinstance(label, str) for label in known)
        ):
            found = ", ".join(map(repr, sorted(known, key=str)[:9])) or "none"
            self._refuse(
                f"labels of the split train: {found}; these are not 0, 1 and so on, or two and more names"
            )
        numbers = {label: number for number, label in enumerate(sorted(known))}
        for row in rows:
            if row.label not in numbers:
                self._refuse(
                    f"the label is {row.label!r}, not one of {len(known)} classes",
                    row.line,
                )
        parts: dict[SplitName, RawPart] = {}
        for split in SPLITS:
            if own := [row for row in rows if row.split == split]:
                labels = np.array([numbers[row.label] for row in own], np.int64)
                parts[split] = RawPart(tuple(row.text for row in own), labels)
        left_out = "neutral_sentences_left_out" if trees else "empty_texts_left_out"
        source = {
            "how": "archive in data.root",
            "file": self.path.name,
            left_out: len(every) - len(rows),
        }
        raw = RawDataset(
            self.path.stem,
            tuple(map(str, numbers)),
            parts["train"],
            parts.get("test"),
            source,
        )
        return replace(
            raw, validation=parts.get("validation"), form="trees" if trees else "texts"
        )

    def _row(self, number: int, line: bytes, trees: bool) -> _Row:
        try:
            row = json.loads(line.decode())
            split, text = _SPLITS[row["split"]], row["tree" if trees else "text"]
            label = (
                _CLASS_OF_SENTIMENT[SENTIMENTS[parse_tree(text).labels[0]]]
                if trees
                else row["label"]
            )
            empty = not text.strip()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._refuse(
                f"is not of the stated form ({type(error).__name__}: {error})", number
            )
        if not (trees or isinstance(label, int | str)):
            self._refuse("the label is neither a whole number nor a name", number)
        return _Row(number, split, None if empty else label, text)
