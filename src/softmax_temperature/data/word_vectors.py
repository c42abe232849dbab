"""Word vectors from a file that the user provides.

The file is in GloVe's text form, where each line has a word and the entries of its
vector, or it is an npz file with `words` and `vectors`.
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

from softmax_temperature.data.image_files import digest_of_user_file
from softmax_temperature.data.tokens import PADDING, RESERVED
from softmax_temperature.runner.errors import InputError, MissingInput

_REMEDY = (
    "Get glove.6B.zip or glove.840B.300d.zip (nlp.stanford.edu/projects/glove; PDDL "
    "1.0), unpack it into data.root and name one of its files in `embeddings`, or "
    "leave `embeddings` out to learn them."
)


class WordVectors(NamedTuple):
    """The vectors of a vocabulary.

    Attributes:
        vectors: A float32 tensor of shape (words + 2, width), with a row of 0 for each
            word that the file lacks.
        known: Whether the file has each word, a bool tensor of shape (words + 2,).
    """

    vectors: Tensor
    known: Tensor

    @property
    def share(self) -> float:
        """The fraction of the words that have a vector."""
        return float(self.known[RESERVED:].double().mean())

    def share_of_tokens(self, numbers: Tensor) -> float:
        """The fraction of tokens that have a vector.

        Args:
            numbers: Token IDs of any shape, padded with PADDING.
        """
        tokens = numbers[numbers != PADDING]
        return float(self.known[tokens].double().mean())


def word_vectors_digest(path: Path) -> str | None:
    """Compute the sha256 of a file of word vectors; None if the file is missing.

    The digest is computed once per version of the file, because the file may be
    gigabytes large.
    """
    if not path.is_file():
        return None
    return _digest(path, path.stat().st_mtime_ns)


@lru_cache
def _digest(path: Path, modified: int) -> str:  # noqa: ARG001
    return digest_of_user_file(path)


def require_word_vectors(path: Path) -> None:
    """Raise MissingInput unless the file `path` exists."""
    if not path.is_file():
        raise MissingInput(
            "no such file of word vectors", where=str(path), remedy=_REMEDY
        )


def read_word_vectors(path: Path, words: Sequence[str], *, width: int) -> WordVectors:
    """Read the vectors of `words`; word k has the ID k + RESERVED.

    Args:
        path: A file in GloVe's form, or an npz.
        words: The vocabulary.
        width: The number of entries of a vector.

    Raises:
        InputError: If the file is missing, contains none of the words, or has a word
            without `width` finite numbers.
    """
    require_word_vectors(path)
    numbers = {word: number for number, word in enumerate(words, start=RESERVED)}
    vectors = torch.zeros(len(words) + RESERVED, width)
    has_vector = torch.zeros(len(vectors), dtype=torch.bool)
    entries = _npz(path, width) if path.suffix == ".npz" else _lines(path, width)
    for word, values in entries:
        number = numbers.pop(word, None)  # Use a repeated word's first vector only.
        if number is None:
            continue
        has_vector[number] = True
        vectors[number] = math.nan
        with suppress(ValueError):  # An entry that is not a number stays NaN.
            vectors[number] = torch.from_numpy(np.asarray(values, dtype=np.float32))
    _check(path, words, vectors, has_vector)
    return WordVectors(vectors, has_vector)


def _check(
    path: Path, words: Sequence[str], vectors: Tensor, has_vector: Tensor
) -> None:
    is_wrong = ~vectors.isfinite().all(1)
    if is_wrong.any():
        number = int(is_wrong.nonzero()[0])
        raise InputError(
            f"the word {words[number - RESERVED]!r} has a number that is not finite",
            where=str(path),
            remedy=_REMEDY,
        )
    if words and not has_vector.any():
        raise InputError(
            f"has none of the {len(words):,} words with the {vectors.shape[1]} "
            "numbers that the network's embedding needs",
            where=str(path),
            remedy=_REMEDY,
        )


def _lines(path: Path, width: int) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the words of a file in GloVe's form, with their vectors as texts."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as file:
        for line_number, line in enumerate(file, start=1):
            entry = line.rstrip("\r\n ")
            if not entry:
                continue
            word, *values = entry.rsplit(" ", width)
            if len(values) != width:
                raise InputError(
                    f"does not have the {width} numbers after the word that the "
                    "network's embedding needs",
                    where=f"{path}, line {line_number}",
                    remedy=_REMEDY,
                )
            yield word, values


def _npz(path: Path, width: int) -> Iterator[tuple[str, Sequence[Any]]]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            words = file["words"].tolist()
            vectors = file["vectors"]
    except (
        OSError,
        ValueError,
        EOFError,
        TypeError,
        KeyError,
        zipfile.BadZipFile,
    ) as error:
        raise InputError(
            f"is not an npz with words and vectors ({error})",
            where=str(path),
            remedy=_REMEDY,
        ) from error
    if vectors.shape != (len(words), width):
        raise InputError(
            f"has vectors of shape {vectors.shape}, expected {(len(words), width)}",
            where=str(path),
            remedy=_REMEDY,
        )
    return zip(words, vectors, strict=True)
