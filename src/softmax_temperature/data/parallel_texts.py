"""Parallel texts: `NAME/PART.LANGUAGE` in UTF-8, for instance `wmt/train.en` and `wmt/train.de`; a sentence a line.

PART is train, validation or test. Line k of one language is the translation of line k of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from softmax_temperature.data.splits import SPLITS
from softmax_temperature.data.text_lines import text_lines
from softmax_temperature.runner.artifacts import digest_of_file, digest_of_text
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from softmax_temperature.data.splits import SplitName

_LONGEST = 2**20  # Bytes of a line: what memory must hold at a time.
_LINES = "Put one sentence a line there, in UTF-8."
_WITHOUT = "Take out the pairs that have no sentence on one side, in both files."


@dataclass(frozen=True)
class ParallelTexts:
    """One folder `NAME` below data.root.

    Attributes:
        root: the folder of the raw data.
        name: of the data set.
        languages: the endings of its files, that to translate from first.
    """

    root: Path
    name: str
    languages: tuple[str, str]

    @property
    def path(self) -> Path:
        """The data set's folder."""
        return self.root / self.name

    def files(self, split: SplitName) -> tuple[Path, Path]:
        """The two files of a part.

        Raises:
            InputError: one is not there.
        """
        source, target = (self.path / f"{split}.{language}" for language in self.languages)
        for file in (source, target):
            if not file.is_file():
                _refuse(file, "no such file", _LINES)
        return source, target

    def digest(self) -> str:
        """One sha256 over all files, wherever the folder stands.

        Raises:
            InputError: one is not there.
        """
        files = [file for split in SPLITS for file in self.files(split)]
        return digest_of_text("".join(f"{digest_of_file(file)}  {file.name}\n" for file in files))

    def read(self, split: SplitName) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The sentences of a part in both languages, without white space around them.

        Raises:
            InputError: a file is not there or holds no line, a line is empty or not UTF-8, or there are more lines in
                one file than in the other; the error names file and line.
        """
        files = self.files(split)
        source, target = (_sentences(file) for file in files)
        if len(source) != len(target):
            longer, other = files if len(source) > len(target) else reversed(files)
            few, many = sorted((len(source), len(target)))
            what = f"has no counterpart: {longer.name} has {many:,} lines, {other.name} {few:,}"
            _refuse(
                f"{longer}, line {few + 1}", what, "Make line k of one file the translation of line k of the other."
            )
        return source, target


def _sentences(file: Path) -> tuple[str, ...]:
    lines = text_lines(file, longest=_LONGEST, remedy=_LINES)
    sentences = tuple(_sentence(line, f"{file}, line {number}") for number, line in lines)
    if not sentences:
        _refuse(file, "holds no line", _LINES)
    return sentences


def _sentence(line: bytes, where: str) -> str:
    try:
        text = line.decode().strip()
    except UnicodeDecodeError as error:
        what = f"is not UTF-8 (byte {line[error.start]:#04x} at place {error.start} of the line)"
        _refuse(where, what, "Save the file in UTF-8.")
    if not text:
        _refuse(where, "is empty", _WITHOUT)
    return text


def _refuse(where: Path | str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=str(where), remedy=remedy)
