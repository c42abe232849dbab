"""The user's archives in data.root: arrays in `NAME.npz`, texts or trees in `NAME.jsonl`."""

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.splits import SPLITS, SplitName
from softmax_temperature.data.trees import NEUTRAL, SENTIMENTS, parse_tree
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
_SPLIT_NAMES: dict[str, SplitName] = {"train": "train", "test": "test"}
_SPLIT_NAMES |= dict.fromkeys(("dev", "val", "valid", "validation"), "validation")


@dataclass(frozen=True)
class _Archive:
    path: Path

    form: ClassVar[str]

    def digest(self) -> str:
        """The sha256 of the archive file."""
        return digest_of_file(self.path)

    def _refuse(self, what: str, line: int | None = None) -> NoReturn:
        raise InputError(what, where=f"{self.path}, line {line}" if line else str(self.path), remedy=self.form)


class NpzArchive(_Archive):
    """Images: x_train, y_train, x_test, y_test and perhaps class_names."""

    form = (
        "Save it with numpy.savez: x_train and x_test uint8 of shape (n, height, width) or (n, height, width, 1 or 3), "
        "y_train and y_test integers of shape (n,), class_names (optional) text of shape (classes,). Without training "
        "images (n = 0) it can be an out-of-distribution or a shifted set and nothing else."
    )

    def read(self) -> RawDataset:
        """Load the archive; one that is damaged or not of the stated form raises InputError.

        Labels number the `class_names`. Without names, the distinct labels of y_train are the classes, in ascending
        order; those of y_test when there are no training images.
        """
        arrays = self._load()
        images = {part: self._images(arrays[f"x_{part}"], part) for part in ("train", "test")}
        labels = {part: self._labels(arrays[f"y_{part}"], part, len(images[part])) for part in images}
        if images["train"].shape[1:] != images["test"].shape[1:]:
            shapes = " and ".join(str(array.shape[1:]) for array in images.values())
            self._refuse(f"x_train and x_test differ in image shape: {shapes}")
        known = np.unique(labels["train" if len(images["train"]) else "test"])
        names = tuple(str(name) for name in arrays.get("class_names", known))
        known = np.arange(len(names)) if "class_names" in arrays else known
        for part, column in labels.items():
            if unknown := np.setdiff1d(column, known).tolist():
                self._refuse(f"y_{part} has label {unknown[0]}, which is none of {len(names)} classes")
        if len(names) < 2:
            self._refuse("all images are of one class")
        train, test = (RawPart(images[part], np.searchsorted(known, column)) for part, column in labels.items())
        counts = np.bincount(train.labels, minlength=len(names))
        if len(train.labels) and not counts.all():
            self._refuse(f"y_train has no image of {names[int(counts.argmin())]}")
        source = {"how": "archive in data.root", "file": self.path.name}
        return RawDataset(self.path.stem, names, train, test, source)

    def _load(self) -> dict[str, NDArray[Any]]:
        try:
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                if missing := [key for key in _ARRAYS if key not in file.files]:
                    self._refuse(f"has no {', '.join(missing)} (it holds: {', '.join(file.files) or 'nothing'})")
                return {key: file[key] for key in (*_ARRAYS, "class_names") if key in file.files}
        except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
            self._refuse(f"not readable as an npz archive ({error})")

    def _images(self, stored: NDArray[Any], part: str) -> NDArray[np.uint8]:
        images = stored[..., None] if stored.ndim == 3 else stored
        if images.dtype != np.uint8:
            self._refuse(f"x_{part} is {images.dtype}, not uint8 from 0 to 255")
        sizes = images.shape[int(part == "train") :]  # Training images may be missing.
        if images.ndim != 4 or images.shape[-1] not in (1, 3) or 0 in sizes:
            self._refuse(f"x_{part} has shape {stored.shape}")
        return images

    def _labels(self, labels: NDArray[Any], part: str, images: int) -> NDArray[np.int64]:
        if labels.shape != (images,) or (labels.dtype.kind not in "iu" and images):
            self._refuse(f"y_{part} has shape {labels.shape} and is {labels.dtype}, for {images} images")
        return labels.astype(np.int64)


class _Row(NamedTuple):
    line: int
    split: SplitName
    label: Any
    text: str


class JsonlArchive(_Archive):
    """Texts or trees, one JSON object per line, in UTF-8; it holds trees if its first line does.

    Texts have `split`, `label` (a whole number from 0, or a name) and `text`. Trees have `split` and `tree`, a sentence
    with its parse in brackets, whose label is that of its root. Sentences whose root is neutral are counted and left
    out: what remains is negative (0 or 1) or positive (3 or 4), as in section 5 of the focal paper.
    """

    form = (
        'Write one JSON object per line in UTF-8: {"split": "train", "label": 0, "text": "..."} or {"split": "train", '
        '"tree": "(3 (2 a) (4 joy))"}, with the split train, test or dev, and labels that are either whole numbers '
        "from 0 or names; in the brackets a label from 0 to 4 before a word or two nodes."
    )

    def read(self) -> RawDataset:
        """Check every line; one that is not of the stated form raises InputError with its number.

        The classes of texts are the labels of the train part, in ascending order; numbers count from 0 without gaps.
        Texts without a word are counted and left out.
        """
        with self.path.open("rb") as file:
            first = file.readline()
        return self._read_trees() if b'"tree"' in first and b'"text"' not in first else self._read_texts()

    def _read_texts(self) -> RawDataset:
        every = list(self._rows("label", "text"))
        for row in every:
            if not isinstance(row.label, int | str) or not isinstance(row.text, str):
                self._refuse("the label is neither a whole number nor a name, or the text is not a string", row.line)
        rows = [row for row in every if row.text.strip()]
        names = self._class_names(rows)
        numbers = {label: number for number, label in enumerate(names)}
        if unknown := next((row for row in rows if row.label not in numbers), None):
            self._refuse(f"the label is {unknown.label!r}, not one of {len(names)} classes", unknown.line)
        rows = [row._replace(label=numbers[row.label]) for row in rows]
        return self._dataset(tuple(map(str, names)), rows, "texts", {"empty_texts_left_out": len(every) - len(rows)})

    def _read_trees(self) -> RawDataset:
        rows = []
        for row in self._rows("tree", "tree"):
            try:
                rows.append(row._replace(label=SENTIMENTS[parse_tree(row.text).labels[0]]))
            except (ValueError, TypeError) as error:
                self._refuse(f"the tree is malformed: {error}", row.line)
        kept = [row for row in rows if row.label != NEUTRAL]
        if {row.label for row in kept if row.split == "train"} != {0, 1}:
            self._refuse("has not both negative and positive sentences of the split train")
        return self._dataset(
            ("negative", "positive"), kept, "trees", {"neutral_sentences_left_out": len(rows) - len(kept)}
        )

    def _rows(self, label: str, text: str) -> Iterator[_Row]:
        """Each line, with the split under its one name."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    record = json.loads(line.decode())
                    yield _Row(number, _SPLIT_NAMES[record["split"]], record[label], record[text])
                except ValueError as error:
                    self._refuse(f"is not JSON in UTF-8 ({error})", number)
                except (KeyError, TypeError) as error:
                    self._refuse(f"has no {label}, {text} and split of the stated form ({error})", number)

    def _class_names(self, rows: list[_Row]) -> list[Any]:
        """The labels of the train part in ascending order."""
        known = {row.label for row in rows if row.split == "train"}
        if len(known) < 2:
            self._refuse("all training texts are of one class" if known else "has no row of the split train")
        if len({type(label) for label in known}) > 1:
            self._refuse("some labels are numbers and others names")
        names = sorted(known)
        if isinstance(names[0], int) and names != list(range(len(names))):
            self._refuse(f"the labels of the training texts are not all of 0 to {names[-1]}")
        return names

    def _dataset(self, names: tuple[str, ...], rows: list[_Row], form: Any, left_out: dict[str, int]) -> RawDataset:
        parts: dict[SplitName, RawPart | None] = dict.fromkeys(SPLITS)
        for split in SPLITS:
            if own := [row for row in rows if row.split == split]:
                parts[split] = RawPart(tuple(row.text for row in own), np.array([row.label for row in own], np.int64))
        source = {"how": "archive in data.root", "file": self.path.name, **left_out}
        train, validation, test = parts.values()
        assert train is not None, "every class has a training sample"
        return RawDataset(self.path.stem, names, train, test, source, validation=validation, form=form)
