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

    Attributes:
        rows: how many rows every array must have; None where that is not known.

    Raises:
        BadFile: the file is of another type, or cut short.
    """

    def __init__(self, path: Path, matrix: str) -> None:
        self.path, self.matrix = path, matrix
        self.rows: int | None = None

    @staticmethod
    @abstractmethod
    def form(matrix: str) -> str:
        """A sentence that says what a file of this type must hold."""

    @abstractmethod
    def names(self) -> list[str]:
        """The arrays."""

    @abstractmethod
    def numbers(self, name: str) -> int:
        """How many numbers an array holds, or about so many; of texts, how many would take the same memory.

        Raises:
            BadFile: its header is damaged, or it holds Python objects.
        """

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...] | None:
        """An array's shape; None where only reading all of it tells.

        Raises:
            BadFile: as above.
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
            BadFile: a required one is not there, they are too large, or one has not as many rows as it must have.
        """
        there = self.names()
        if absent := [name for name in required if name not in there]:
            raise BadFile(self.lacks(absent))
        wanted = [name for name in (*required, *optional) if name in there]
        for name in wanted:
            shape = self.shape(name)
            if self.rows is not None and shape is not None and shape[:1] != (self.rows,):
                raise BadFile(f"{name} has shape {shape} for {self.rows} rows of {self.matrix}")
        if excess := too_large(sum(map(self.numbers, wanted))):
            raise BadFile(excess)
        return wanted
