"""Files that numpy writes: one array (npy), or a zip archive of named ones (npz)."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from softmax_temperature.array_files.array_file import LABELS, ArrayFile, BadFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DAMAGED = (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


class NpyFile(ArrayFile):
    """One array without a name: labels if it is a row, the matrix otherwise."""

    def __init__(self, path: Path, matrix: str) -> None:
        super().__init__(path, matrix)
        with path.open("rb") as file:
            shape = _checked_shape(file, path.stat().st_size)
        self.sizes = {LABELS if len(shape) == 1 else matrix: math.prod(shape)}

    @staticmethod
    def form(matrix: str) -> str:
        """What the file must hold."""
        return f"Save {matrix} with numpy.save, shape (n, ...), and integer labels, shape (n,), in a file of their own."

    def names(self) -> list[str]:
        """The one array."""
        return list(self.sizes)

    def numbers(self, name: str) -> int:
        """How many numbers it holds."""
        return self.sizes[name]

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read it."""
        try:
            return {name: np.load(self.path, allow_pickle=False) for name in names}
        except _DAMAGED as error:
            raise BadFile(f"cannot be read ({one_line(error)})") from error

    def lacks(self, names: Sequence[str]) -> str:
        """How to say that another file is needed too."""
        return f"holds one array, which can only be {self.names()[0]}, and no {' and no '.join(names)}"


class NpzFile(ArrayFile):
    """Named arrays in a zip archive."""

    def __init__(self, path: Path, matrix: str) -> None:
        super().__init__(path, matrix)
        if not zipfile.is_zipfile(path):
            raise BadFile("is not an npz archive, or cut short")
        try:
            with zipfile.ZipFile(path) as archive:
                found = archive.infolist()
        except _DAMAGED as error:
            raise BadFile(f"cannot be read ({one_line(error)})") from error
        self.members = {entry.filename.removesuffix(".npy"): entry for entry in found}

    @staticmethod
    def form(matrix: str) -> str:
        """What the file must hold."""
        return f"Save it with numpy.savez: {matrix} floating point of shape (n, ...), labels integers of shape (n,)."

    def names(self) -> list[str]:
        """The arrays."""
        return list(self.members)

    def numbers(self, name: str) -> int:
        """How many numbers an array's header promises, as many as the archive holds bytes for."""
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.members[name]) as file:
                return math.prod(_checked_shape(file, self.members[name].file_size))
        except (*_DAMAGED, BadFile) as error:
            raise BadFile(f"{name} {_reason(error)}") from error

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read arrays."""
        return {name: self._array(name) for name in names}

    def _array(self, name: str) -> NDArray[Any]:
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.members[name]) as file:
                return np.asarray(npy.read_array(file, allow_pickle=False))
        except _DAMAGED as error:
            raise BadFile(f"{name} {_reason(error)}") from error


def one_line(error: BaseException) -> str:
    """What an error says, without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, BadFile) else f"is damaged ({one_line(error)})"


def _checked_shape(file: IO[bytes], size: int) -> tuple[int, ...]:
    """The shape in an array's header, if the file is as long as that says.

    Raises:
        BadFile: it is no array, one of Python objects, or of another length.
    """
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
    except ValueError as error:
        raise BadFile(f"is not an array that numpy saved ({one_line(error)})") from error
    if dtype.hasobject:
        raise BadFile("holds Python objects, not plain numbers")
    promised = file.tell() + math.prod(shape) * dtype.itemsize
    if promised != size:
        raise BadFile(f"is cut short or damaged: {size:,} bytes, and its header promises {promised:,}")
    return tuple(shape)
