"""Archives of texts: `NAME.jsonl`, one JSON object a line with `split`, `label` and `text`, in UTF-8.

`split` is train, test, or dev (also called val, valid and validation), which a data set need not have. `label` is a
whole number from 0, or a name; all labels of a file are of one kind. Other keys are passed over.

The file is read line by line and its texts are not kept: memory grows by a few numbers a row.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from softmax_temperature.data.catalogue import CATALOGUE
from softmax_temperature.data.jsonl_rows import check_characters, lines_of, record_of, refuse, short, split_of
from softmax_temperature.data.raw_texts import RawTextPart, RawTextSet
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.runner.artifacts import digest_of_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from softmax_temperature.data.splits import SplitName

Label = int | str

_KEYS = ("split", "label", "text")
_MOST_CLASSES = 10_000  # More distinct labels are no classes; they would be remembered all the same.
_FORM = (
    'Write one JSON object a line in UTF-8: {"split": "train", "label": 0, "text": "..."}, with the split train, test '
    "or dev, and labels that are either whole numbers from 0 or names."
)


class Row(NamedTuple):
    """One line of the file."""

    split: SplitName
    label: Label
    text: str


@dataclass(frozen=True)
class TextsOfFile:
    """Texts that stay in their file.

    Attributes:
        path: the file.
        offsets: (n,) int64, where each row starts, in bytes.
    """

    path: Path
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets)

    def read(self, rows: Iterable[int]) -> Iterator[str]:
        """Some of the texts, one at a time."""
        with self.path.open("rb") as file:
            for row in rows:
                file.seek(self.offsets[row])
                yield parse_row(file.readline(), where=str(self.path)).text


@dataclass(frozen=True)
class JsonlTexts:
    """One `NAME.jsonl` below data.root."""

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
        """Check every row.

        The classes are the labels of the train part, in ascending order. Numbers count from 0 without gaps; where the
        catalogue knows the data set, there are as many of them as it says.

        Raises:
            InputError: a row is not of the stated form, its text is empty (only white space), or its label is no class;
                the error names the file and the row. Or the file has no training texts.
        """
        entry = CATALOGUE.get(self.name)
        found, empty = _Found({split: array("q") for split in SPLITS}, {split: array("q") for split in SPLITS}), 0
        for number, offset, line in lines_of(self.path, form=_FORM):
            where = f"{self.path}, row {number}"
            row = parse_row(line, where=where)
            if row.text.strip():
                found.add(row, number, offset, where)
            elif entry is not None and entry.leaves_out_empty_texts:
                empty += 1
            else:
                _refuse("the text is empty", where)
        names = _Classes(self.path, found, entry.classes if entry else None).names()
        train, validation, test = (self._part(found, split, names) for split in SPLITS)
        assert train is not None, "there are classes, so there are training texts"
        source = {"how": "archive in data.root", "file": self.path.name, "empty_texts_left_out": empty}
        return RawTextSet(self.name, tuple(str(name) for name in names), train, validation, test, source)

    def _part(self, found: _Found, split: SplitName, names: list[Label]) -> RawTextPart | None:
        if not found.offsets[split]:
            return None
        numbers = {label: number for number, label in enumerate(names)}
        by_code = np.array([numbers[label] for label in found.codes], dtype=np.int64)
        labels = by_code[np.asarray(found.labels[split], dtype=np.int64)]
        return RawTextPart(TextsOfFile(self.path, np.asarray(found.offsets[split], dtype=np.int64)), labels)


def parse_row(line: bytes, *, where: str) -> Row:
    """Read one line.

    Args:
        line: its bytes.
        where: file and row, for the error.

    Raises:
        InputError: it is not UTF-8, not a JSON object, lacks a key, or holds a value of another kind.
    """
    record = record_of(line, keys=_KEYS, where=where, form=_FORM)
    split, label, text = (record[key] for key in _KEYS)
    part = split_of(split, where=where, form=_FORM)
    if isinstance(label, bool) or not isinstance(label, int | str) or label == "":
        _refuse(f"the label is {short(label)}, neither a whole number nor a name", where)
    if not isinstance(text, str):
        _refuse(f"the text is {short(text)}, not a string", where)
    for value in (text, label):
        check_characters(value, where=where, form=_FORM)
    return Row(part, label, text)


@dataclass
class _Found:
    """What is remembered of the rows: where they start, and which label they have."""

    offsets: dict[SplitName, array[int]]
    labels: dict[SplitName, array[int]]
    codes: dict[Label, int] = field(default_factory=dict)
    first: dict[tuple[SplitName, Label], int] = field(default_factory=dict)

    def add(self, row: Row, number: int, offset: int, where: str) -> None:
        code = self.codes.setdefault(row.label, len(self.codes))
        if code >= _MOST_CLASSES:
            _refuse(f"has the {len(self.codes):,}th distinct label, {short(row.label)}: too many for classes", where)
        self.first.setdefault((row.split, row.label), number)
        self.offsets[row.split].append(offset)
        self.labels[row.split].append(code)

    def rows_of(self, split: SplitName) -> dict[Label, int]:
        """The labels of a part, each with the first row that has it."""
        return {label: number for (part, label), number in self.first.items() if part == split}


@dataclass
class _Classes:
    """Which labels are classes."""

    path: Path
    found: _Found
    declared: int | None

    def names(self) -> list[Label]:
        """The classes in ascending order, after all checks."""
        known = self.found.rows_of("train")
        if not known:
            self._refuse_file("has no row of the split train")
        self._check_one_kind()
        numbers = [label for label in known if isinstance(label, int)]
        if numbers:
            self._check_numbers(numbers, known)
        else:
            self._check_names(known)
        if len(known) < 2:
            self._refuse_file("all training texts are of one class")
        return sorted(known)

    def _check_one_kind(self) -> None:
        first, *others = self.found.codes
        for label in others:
            if type(label) is not type(first):
                number = min(self.found.rows_of(split).get(label, np.inf) for split in SPLITS)
                self._refuse_row(number, f"the label is {label!r}, of another kind than {first!r} before it")

    def _check_numbers(self, numbers: list[int], known: Mapping[Label, int]) -> None:
        classes = max(numbers) + 1 if self.declared is None else self.declared
        for split in SPLITS:
            for label, number in self.found.rows_of(split).items():
                if not 0 <= int(label) < classes:
                    self._refuse_row(number, f"the label is {label}, must be {_range(classes)}")
        missing = next(label for label in count() if label not in known)
        if missing < classes:
            what = f"the label is {max(numbers)}, and no training text has label {missing}"
            self._refuse_row(known[max(numbers)], f"{what}; {_range(classes)} must all be there")

    def _check_names(self, known: Mapping[Label, int]) -> None:
        if self.declared is not None and len(known) > self.declared:
            label = list(known)[self.declared]
            self._refuse_row(known[label], f"the label is {label!r}, one more than the {self.declared} classes")
        for split in SPLITS:
            for label, number in self.found.rows_of(split).items():
                if label not in known:
                    self._refuse_row(number, f"the label is {label!r}, which no training text has")

    def _refuse_row(self, number: float, what: str) -> NoReturn:
        _refuse(what, f"{self.path}, row {number}")

    def _refuse_file(self, what: str) -> NoReturn:
        _refuse(what, str(self.path))


def _range(classes: int) -> str:
    return "0 or 1" if classes == 2 else f"0 to {classes - 1}"


def _refuse(what: str, where: str) -> NoReturn:
    refuse(what, where, _FORM)
