"""Word vectors: GloVe's text form, one word per line and then its numbers; or an npz
with `words` and `vectors`.
"""

import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from softmax_temperature.data.tokens import PADDING, RESERVED
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

_REMEDY = (
    "Get glove.6B.zip or glove.840B.300d.zip (nlp.stanford.edu/projects/glove; PDDL 1.0), unpack it into data.root and "
    "name one of its files in `embeddings`, or leave `embeddings` out to learn them."
)


class WordVectors(NamedTuple):
    """Vectors (words + 2, width) float32, 0 where the file has none; and which of the
    words it has, (words + 2,).
    """

    vectors: Tensor
    known: Tensor

    @property
    def share(self) -> float:
        """Known words as a fraction of all."""
        return float(self.known[RESERVED:].double().mean())

    def share_of_tokens(self, numbers: Tensor) -> float:
        """Known words as a fraction of the words of texts, each as often as it is
        there; `numbers` of any shape.
        """
        return float(self.known[numbers[numbers != PADDING]].double().mean())


def word_vectors_digest(path: Path) -> str | None:
    """The sha256 of a file of word vectors, or None if it is missing; computed once, as
    it may be gigabytes.
    """
    return _digest(path, path.stat().st_mtime_ns) if path.is_file() else None


@lru_cache
def _digest(path: Path, modified: int) -> str:  # noqa: ARG001
    return digest_of_file(path)


def read_word_vectors(path: Path, words: Sequence[str], *, width: int) -> WordVectors:
    """The vectors of words numbered from RESERVED; InputError for a missing file or not
    `width` finite numbers.
    """
    if not path.is_file():
        raise InputError(
            "no such file of word vectors", where=str(path), remedy=_REMEDY
        )
    wanted = {word: number for number, word in enumerate(words, start=RESERVED)}
    vectors = torch.zeros(len(words) + RESERVED, width)
    known = torch.zeros(len(vectors), dtype=torch.bool)
    for word, values in (
        _npz(path, width) if path.suffix == ".npz" else _lines(path, width)
    ):
        if (number := wanted.pop(word, None)) is not None:
            known[number], vectors[number] = True, math.nan
            with suppress(ValueError):  # It stays NaN.
                vectors[number] = torch.from_numpy(np.asarray(values, dtype=np.float32))
    if len(wrong := (~vectors.isfinite().all(1)).nonzero()):
        what = f"the word {words[int(wrong[0]) - RESERVED]!r} has a number that is not finite"
        raise InputError(what, where=str(path), remedy=_REMEDY)
    if words and not known.any():
        what = f"has none of the {len(words):,} words with {width} numbers after it, as the network's embedding has"
        raise InputError(what, where=str(path), remedy=_REMEDY)
    return WordVectors(vectors, known)


def _lines(path: Path, width: int) -> Iterator[tuple[str, Sequence[Any]]]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            word, *values = line.rstrip("\r\n ").rsplit(" ", width)
            if len(values) != width:
                what = f"does not have {width} numbers after the word, as the network's embedding has"
                raise InputError(what, where=f"{path}, line {number}", remedy=_REMEDY)
            yield word, values


def _npz(path: Path, width: int) -> Iterator[tuple[str, Sequence[Any]]]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            words, vectors = file["words"].tolist(), file["vectors"]
    except (
        OSError,
        ValueError,
        EOFError,
        TypeError,
        KeyError,
        zipfile.BadZipFile,
    ) as error:
        raise InputError(
            f"is no npz with words and vectors ({error})",
            where=str(path),
            remedy=_REMEDY,
        ) from error
    if vectors.shape != (len(words), width):
        what = f"has vectors of shape {vectors.shape} for {len(words):,} words and an embedding of {width} numbers"
        raise InputError(what, where=str(path), remedy=_REMEDY)
    return zip(words, vectors, strict=True)
