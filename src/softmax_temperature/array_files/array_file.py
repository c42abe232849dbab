"""What every type of file has in common: names, sizes that are known before anything is read, and arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.array_files.memory import too_large

if TYPE_CHECKING:
    from numpy.typing import NDArray

LABELS = "labels"


class BadFile(Exception):
    """A file is not what it should be; says why, in a clause."""


class ArrayFile(ABC):
    """A file of arrays, opened: its headers are checked, its numbers are not read yet.

    Args:
        path: the file.
        matrix: what to call an array of rows that has no name of its own.

    Raises:
        BadFile: the file is of another type, or cut short.
    """

    def __init__(self, path: Path, matrix: str) -> None:
        self.path, self.matrix = path, matrix

    @staticmethod
    @abstractmethod
    def form(matrix: str) -> str:
        """A sentence that says what a file of this type must hold."""

    @abstractmethod
    def names(self) -> list[str]:
        """The arrays."""

    @abstractmethod
    def numbers(self, name: str) -> int:
        """How many numbers an array holds, or about so many.

        Raises:
            BadFile: its header is damaged, or it holds Python objects.
        """

    @abstractmethod
    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read arrays.

        Raises:
            BadFile: one is damaged.
        """

    def lacks(self, names: Sequence[str]) -> str:
        """How to say that there are no such arrays."""
        return f"has no {' and no '.join(names)} (it holds: {', '.join(self.names()) or 'nothing'})"

    def wanted(self, required: Sequence[str], optional: Sequence[str]) -> list[str]:
        """Those of the names that there are, once it is clear that memory can hold them.

        Raises:
            BadFile: a required one is not there, or they are too large.
        """
        there = self.names()
        if absent := [name for name in required if name not in there]:
            raise BadFile(self.lacks(absent))
        wanted = [name for name in (*required, *optional) if name in there]
        if excess := too_large(sum(map(self.numbers, wanted))):
            raise BadFile(excess)
        return wanted
