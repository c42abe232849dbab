"""The user's archives in data.root: image arrays in `NAME.npz`, texts in `NAME.jsonl`.

Each line of a jsonl file holds one text or one parse tree.
"""

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.data.image_files import cannot_be_read, digest_of_user_file
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.splits import SPLITS, SplitName
from softmax_temperature.data.trees import SENTIMENTS, parse_tree
from softmax_temperature.runner.errors import InputError

_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
_CLASS_NAMES = "class_names"
_SPLITS: dict[str, SplitName] = {
    "train": "train",
    "test": "test",
    "dev": "validation",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
}
# The class of each sentiment; neutral sentences have no class.
_CLASS_OF_SENTIMENT = ("negative", "positive", None)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LABELS_SHOWN = 9


@dataclass(frozen=True)
class _Archive:
    path: Path

    form: ClassVar[str]
    """The form that the archive must have; errors about its content quote this text."""

    def digest(self) -> str:
        """Return the sha256 of the archive; raise InputError if it cannot be read."""
        return digest_of_user_file(self.path)

    def _refuse(self, what: str, line: int | None = None) -> NoReturn:
        where = str(self.path)
        if line is not None:
            where = f"{where}, line {line}"
        raise InputError(what, where=where, remedy=self.form)

    def _check_text(self, text: str, name: str, line: int | None = None) -> None:
        """Refuse `text` if UTF-8 cannot encode it; JSON and NumPy accept such text."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            character = ascii(text[error.start])
            self._refuse(f"{name} holds an unpaired surrogate ({character})", line)


class NpzArchive(_Archive):
    """Images in `NAME.npz`: x_train, y_train, x_test, y_test, optional class_names."""

    form = (
        "Save it with numpy.savez: x_train and x_test uint8 of shape (n, height, "
        "width) or (n, height, width, 1 or 3), y_train and y_test integers of shape "
        "(n,), class_names (optional) text of shape (classes,). Without training "
        "images (n = 0) it can only be an out-of-distribution or a shifted set."
    )

    def read(self) -> RawDataset:
        """Read the arrays.

        Labels are indices into `class_names`. If `class_names` is missing, the distinct
        labels of y_train (of y_test, if there are no training images) are renumbered in
        ascending order.

        Raises:
            InputError: If the file cannot be read, does not have the form that `form`
                states, or has fewer than two classes.
        """
        arrays = self._load()
        train = self._part("train", arrays)
        test = self._part("test", arrays)
        train_shape = np.shape(train.samples)[1:]
        test_shape = np.shape(test.samples)[1:]
        if train_shape != test_shape:
            self._refuse(
                f"x_train and x_test differ in image shape: {train_shape} and "
                f"{test_shape}"
            )
        names, numbers = self._classes(arrays, train, test)
        return RawDataset(
            self.path.stem,
            names,
            train=self._renumbered("train", train, numbers),
            test=self._renumbered("test", test, numbers),
            source={"how": "archive in data.root", "file": self.path.name},
        )

    def _load(self) -> dict[str, Any]:
        try:
            with (
                self.path.open("rb") as opened,
                np.load(opened, allow_pickle=False) as file,
            ):
                missing = [key for key in _ARRAYS if key not in file.files]
                if missing:
                    held = ", ".join(file.files) or "nothing"
                    self._refuse(f"has no {', '.join(missing)} (it holds: {held})")
                keys = [key for key in (*_ARRAYS, _CLASS_NAMES) if key in file.files]
                return {key: file[key] for key in keys}
        except OSError as error:
            raise cannot_be_read(self.path, error) from error
        except (ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
            self._refuse(f"is not a readable npz archive ({error})")

    def _part(self, name: str, arrays: Mapping[str, Any]) -> RawPart:
        images = arrays[f"x_{name}"]
        labels = arrays[f"y_{name}"]
        if images.ndim == 3:
            images = images[..., None]
        is_images = (
            images.dtype == np.uint8
            and images.ndim == 4
            and images.shape[-1] in (1, 3)
            and 0 not in images.shape[1:]
        )
        # An empty array is allowed only for the training images.
        if not is_images or (name == "test" and len(images) == 0):
            self._refuse(f"x_{name} is {images.dtype} of shape {images.shape}")
        is_integer = labels.dtype.kind in "iu" or len(images) == 0
        if labels.shape != images.shape[:1] or not is_integer:
            self._refuse(
                f"y_{name} is {labels.dtype} of shape {labels.shape}, for "
                f"{len(images)} images"
            )
        return RawPart(images, labels.astype(np.int64))

    def _classes(
        self, arrays: Mapping[str, Any], train: RawPart, test: RawPart
    ) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Return the names of the classes, and the label of each class in the file."""
        if _CLASS_NAMES in arrays:
            names = tuple(str(name) for name in arrays[_CLASS_NAMES])
            numbers = np.arange(len(names))
        else:
            part = train if len(train.labels) else test
            numbers = np.unique(part.labels)
            names = tuple(str(number) for number in numbers)
        for name in names:
            self._check_text(name, _CLASS_NAMES)
        if len(names) < 2:
            self._refuse("all images are of one class")
        return names, numbers

    def _renumbered(
        self, name: str, part: RawPart, numbers: NDArray[np.int64]
    ) -> RawPart:
        unknown = np.setdiff1d(part.labels, numbers)
        if len(unknown):
            self._refuse(
                f"y_{name} has label {unknown[0]}, which is not one of the "
                f"{len(numbers)} classes"
            )
        return RawPart(part.samples, np.searchsorted(numbers, part.labels))


class _Row(NamedTuple):
    line: int
    split: SplitName
    label: int | str | None  # None if the text is left out.
    text: str


class JsonlArchive(_Archive):
    """Texts in `NAME.jsonl`, or parse trees if the first line holds a tree.

    Empty texts and neutral sentences (focal paper, section 5) are left out.
    """

    form = (
        "Write one JSON object per line in UTF-8: "
        '{"split": "train", "label": 0, "text": "..."} or '
        '{"split": "train", "tree": "(3 (2 a) (4 joy))"}, with the split train, test '
        "or dev, and labels that are either whole numbers from 0 or names; in the "
        "brackets a label from 0 to 4 before a word or two nodes."
    )

    def read(self) -> RawDataset:
        """Read the texts; the classes are the sorted labels of the train part.

        Labels that are numbers must count from 0 without gaps.

        Raises:
            InputError: If the file cannot be read, or a line or a label does not have
                the form that `form` states.
        """
        lines = self._lines()
        first_line = lines[0] if lines else b""
        are_trees = b'"tree"' in first_line and b'"text"' not in first_line
        all_rows = [
            self._row(number, line, are_trees)
            for number, line in enumerate(lines, start=1)
        ]
        rows = [row for row in all_rows if row.label is not None]
        numbers = self._numbers(rows)
        parts = _parts(rows, numbers)
        left_out = "neutral_sentences_left_out" if are_trees else "empty_texts_left_out"
        raw = RawDataset(
            self.path.stem,
            tuple(str(label) for label in numbers),
            train=parts["train"],
            test=parts.get("test"),
            source={
                "how": "archive in data.root",
                "file": self.path.name,
                left_out: len(all_rows) - len(rows),
            },
        )
        return replace(
            raw,
            validation=parts.get("validation"),
            form="trees" if are_trees else "texts",
        )

    def _lines(self) -> list[bytes]:
        """Read the lines, without a byte order mark or empty lines at the end."""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise cannot_be_read(self.path, error) from error
        content = content.removeprefix(_BYTE_ORDER_MARK).rstrip()
        return content.split(b"\n") if content else []

    def _row(self, number: int, line: bytes, are_trees: bool) -> _Row:
        try:
            row = json.loads(line.decode())
            split = _SPLITS[row["split"]]
            text = row["tree" if are_trees else "text"]
            label = _class_of_tree(text) if are_trees else row["label"]
            is_empty = not text.strip()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._refuse(
                f"does not have the required form ({type(error).__name__}: {error})",
                number,
            )
        except RecursionError:
            self._refuse("does not have the required form (too deeply nested)", number)
        if not (are_trees or isinstance(label, int | str)):
            self._refuse("the label is neither a whole number nor a name", number)
        self._check_text(text, "the text", number)
        if isinstance(label, str):
            self._check_text(label, "the label", number)
        return _Row(number, split, None if is_empty else label, text)

    def _numbers(self, rows: Sequence[_Row]) -> dict[Any, int]:
        """Number the sorted labels of the train part; refuse labels not among them."""
        labels: set[Any] = {row.label for row in rows if row.split == "train"}
        are_names = all(isinstance(label, str) for label in labels)
        are_numbers = labels == set(range(len(labels)))
        if len(labels) < 2 or not (are_names or are_numbers):
            in_order = sorted(labels, key=str)[:_LABELS_SHOWN]
            shown = ", ".join(repr(label) for label in in_order) or "none"
            self._refuse(
                "labels of the split train must be 0, 1 and so on, or at least two "
                f"names, got {shown}"
            )
        numbers = {label: number for number, label in enumerate(sorted(labels))}
        for row in rows:
            if row.label not in numbers:
                self._refuse(
                    f"the label is {row.label!r}, not one of {len(numbers)} classes",
                    row.line,
                )
        return numbers


def _class_of_tree(text: str) -> str | None:
    root_label = parse_tree(text).labels[0]
    return _CLASS_OF_SENTIMENT[SENTIMENTS[root_label]]


def _parts(
    rows: Sequence[_Row], numbers: Mapping[Any, int]
) -> dict[SplitName, RawPart]:
    parts: dict[SplitName, RawPart] = {}
    for split in SPLITS:
        rows_of_split = [row for row in rows if row.split == split]
        if rows_of_split:
            labels = [numbers[row.label] for row in rows_of_split]
            texts = tuple(row.text for row in rows_of_split)
            parts[split] = RawPart(texts, np.array(labels, dtype=np.int64))
    return parts
