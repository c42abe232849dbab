"""Word vectors from a local file in the text form of GloVe: a line a word, then its numbers, apart by single spaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn

import torch

from softmax_temperature.data.text_lines import text_lines
from softmax_temperature.data.tokens import PADDING, UNKNOWN
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

_LONGEST = 2**20  # Bytes of a line: what memory must hold at a time.
_RESERVED = (PADDING, UNKNOWN)
_REMEDY = (
    "Get glove.6B.zip or glove.840B.300d.zip (nlp.stanford.edu/projects/glove) and unpack it into data.root, or leave "
    "`embeddings` out to learn them."
)


@dataclass(frozen=True)
class WordVectors:
    """Vectors for the numbers that a text may hold.

    Attributes:
        vectors: (words + 2, width) float32; 0 for padding, unknown words, and words that the file does not have.
        covered: how many words the file has.
        words: how many were looked for.
    """

    vectors: Tensor
    covered: int
    words: int

    @property
    def share(self) -> float:
        """Covered words as a fraction of all."""
        return self.covered / self.words


def word_vectors_digest(path: Path) -> str | None:
    """The sha256 of a file of word vectors, or None if it is not there; computed once, as it may be gigabytes."""
    if not path.is_file():
        return None
    state = path.stat()
    return _digest(path, state.st_size, state.st_mtime_ns)


@lru_cache
def _digest(path: Path, size: int, modified: int) -> str:
    """With what tells a changed file from the one before."""
    del size, modified
    return digest_of_file(path)


def read_word_vectors(path: Path, words: Sequence[str], *, width: int) -> WordVectors:
    """The vectors of some words; of those that a file has twice, the first.

    The file is read line by line, and only what is asked for is kept. Words of the file may hold spaces, as a few of
    GloVe's do. Numbers of other words are counted and not looked at.

    Args:
        path: the file.
        words: the vocabulary; the word `words[number - 2]` has that number.
        width: numbers of a vector.

    Raises:
        InputError: the file is not there or not readable, a line has not `width` numbers, or one that is asked for is
            no finite number. It names file and line.
    """
    if not path.is_file():
        _refuse("no such file of word vectors", str(path))
    numbers = {word.encode(): number for number, word in enumerate(words, start=len(_RESERVED))}
    vectors = torch.zeros(len(words) + len(_RESERVED), width)
    wanted = dict(numbers)
    for line_number, line in text_lines(path, longest=_LONGEST, remedy=_REMEDY):
        word, values = _split(line.rstrip(b"\r\n"), width, f"{path}, line {line_number}")
        if (number := wanted.pop(word, None)) is not None:
            vectors[number] = torch.tensor(_floats(values, f"{path}, line {line_number}"))
    return WordVectors(vectors, len(numbers) - len(wanted), len(numbers))


def _split(line: bytes, width: int, where: str) -> tuple[bytes, list[bytes]]:
    """Word and numbers of a line."""
    word, *values = line.rstrip(b" ").rsplit(b" ", width)
    found = len(values)
    if found == width:
        *before, last = word.split(b" ")
        found += bool(before) and _float(last) is not None
    if found != width:
        more = "more" if found > width else f"{found}"
        _refuse(f"has {more} numbers after the word, the network's embedding has {width}", where)
    return word, values


def _floats(values: Sequence[bytes], where: str) -> list[float]:
    found = []
    for place, value in enumerate(values, start=1):
        number = _float(value)
        if number is None or not math.isfinite(number):
            _refuse(f"the number {place} is {value[:20].decode(errors='backslashreplace')!r}", where)
        found.append(number)
    return found


def _float(value: bytes) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _refuse(what: str, where: str) -> NoReturn:
    raise InputError(what, where=where, remedy=_REMEDY)
