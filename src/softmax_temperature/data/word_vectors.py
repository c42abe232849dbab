"""Word vectors from a local file in the text form of GloVe: one word per line, then its numbers."""

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from softmax_temperature.data.tokens import PADDING, UNKNOWN
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

_RESERVED = (PADDING, UNKNOWN)
_REMEDY = (
    "Get glove.6B.zip or glove.840B.300d.zip (nlp.stanford.edu/projects/glove) and unpack it into data.root, or leave "
    "`embeddings` out to learn them."
)


class WordVectors(NamedTuple):
    """Vectors (words + 2, width) float32, 0 where the file has none; and how many of how many words it has."""

    vectors: Tensor
    covered: int
    words: int

    @property
    def share(self) -> float:
        """Covered words as a fraction of all."""
        return self.covered / self.words


def word_vectors_digest(path: Path) -> str | None:
    """The sha256 of a file of word vectors, or None if it is missing; computed once, as it may be gigabytes."""
    return _digest(path, path.stat().st_mtime_ns) if path.is_file() else None


@lru_cache
def _digest(path: Path, modified: int) -> str:  # noqa: ARG001
    return digest_of_file(path)


def read_word_vectors(path: Path, words: Sequence[str], *, width: int) -> WordVectors:
    """The vectors of some words; the word `words[number - 2]` has that number. Only they are kept in memory.

    Words of the file may hold spaces, as a few of GloVe's do; the first line of a word counts.

    Raises:
        InputError: the file is missing, a line does not have `width` numbers, or one that is used is not a finite
            number; names file and line.
    """
    if not path.is_file():
        raise InputError("no such file of word vectors", where=str(path), remedy=_REMEDY)
    wanted = {word.encode(): number for number, word in enumerate(words, start=len(_RESERVED))}
    vectors = torch.zeros(len(words) + len(_RESERVED), width)
    with path.open("rb") as file:
        for line_number, line in enumerate(file, start=1):
            word, *values = line.rstrip(b"\r\n ").rsplit(b" ", width)
            where = f"{path}, line {line_number}"
            *before, last = word.split(b" ")  # Of a word with spaces, or of one number too many.
            if len(values) != width or (before and math.isfinite(_number(last))):
                what = f"does not have {width} numbers after the word, as the network's embedding has"
                raise InputError(what, where=where, remedy=_REMEDY)
            if (number := wanted.pop(word, None)) is not None:
                vectors[number] = torch.tensor([_number(value) for value in values])
                if not vectors[number].isfinite().all():
                    raise InputError("has a number that is not finite", where=where, remedy=_REMEDY)
    return WordVectors(vectors, len(words) - len(wanted), len(words))


def _number(value: bytes) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan
