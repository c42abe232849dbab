"""Files that numpy writes: one array (npy), or a zip archive of named ones (npz)."""

from __future__ import annotations

import io
import math
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from softmax_temperature.array_files.array_file import LABELS, ArrayFile, BadFile
from softmax_temperature.array_files.memory import BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DAMAGED = (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)
# numpy reads headers with Python's own tokenizer and evaluator of literals.
_NO_HEADER = (ValueError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError)

LONGEST_HEADER = 10_000  # Bytes of an array's, as numpy has it; but numpy reads any header before it compares.
_BEFORE_HEADER = npy.MAGIC_LEN + 4  # With the header's length.
LARGEST_DIRECTORY = 2**22  # Bytes of an archive's; one of ten thousand arrays has a sixth of it.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # What numpy writes; the others unpack without a limit.

_HALVES = range(0xD800, 0xE000)  # Of characters, in another encoding.


@dataclass(frozen=True)
class Header:
    """What an array's header says.

    Attributes:
        shape: of the array.
        bytes: that its values take.
    """

    shape: tuple[int, ...]
    bytes: int

    @property
    def numbers(self) -> int:
        """How many values it holds; texts, which may be of any length, count by their bytes."""
        return max(math.prod(self.shape), self.bytes // BYTES)


class NpyFile(ArrayFile):
    """One array without a name: labels if it is a row, the matrix otherwise."""

    def __init__(self, path: Path, matrix: str) -> None:
        super().__init__(path, matrix)
        with path.open("rb") as file:
            header = _checked_header(file, path.stat().st_size)
        self.headers = {LABELS if len(header.shape) == 1 else matrix: header}

    @staticmethod
    def form(matrix: str) -> str:
        """What the file must hold."""
        return f"Save {matrix} with numpy.save, shape (n, ...), and integer labels, shape (n,), in a file of their own."

    def names(self) -> list[str]:
        """The one array."""
        return list(self.headers)

    def numbers(self, name: str) -> int:
        """How many numbers it holds."""
        return self.headers[name].numbers

    def shape(self, name: str) -> tuple[int, ...]:
        """Its shape."""
        return self.headers[name].shape

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read it."""
        try:
            return {name: _checked_text(np.load(self.path, allow_pickle=False)) for name in names}
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
            with self._archive() as archive:
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
        return self.header(name).numbers

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape that an array's header promises."""
        return self.header(name).shape

    def header(self, name: str) -> Header:
        """What an array's header says.

        Raises:
            BadFile: it is damaged, promises other bytes than the archive has, or the array holds Python objects.
        """
        try:
            with self._open(name) as file:
                return _checked_header(file, self.members[name].file_size)
        except (*_DAMAGED, BadFile) as error:
            raise BadFile(f"{name} {_reason(error)}") from error

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read arrays."""
        return {name: self._array(name) for name in names}

    def _array(self, name: str) -> NDArray[Any]:
        try:
            with self._open(name) as file:
                return _checked_text(npy.read_array(file, allow_pickle=False))
        except _DAMAGED as error:
            raise BadFile(f"{name} {_reason(error)}") from error

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        entry = self.members[name]
        if entry.compress_type not in _METHODS:
            raise BadFile("is compressed in a way that numpy does not use")
        with self._archive() as archive, archive.open(entry) as file:
            yield file

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        with _Pieces(self.path) as file, zipfile.ZipFile(file) as archive:
            yield archive


class _Pieces(io.FileIO):
    """An archive that is read in pieces: zipfile asks for all of a directory, however long it is said to be.

    A longer one then looks as if it were cut short.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        """So many bytes, or as many as a directory may have."""
        return super().read(LARGEST_DIRECTORY if size is None or size < 0 else min(size, LARGEST_DIRECTORY)) or b""


def one_line(error: BaseException) -> str:
    """What an error says, without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, BadFile) else f"is damaged ({one_line(error)})"


def _checked_text(array: NDArray[Any]) -> NDArray[Any]:
    """The array, unless it is of texts and one has a number that is no character: Python would break on it.

    Raises:
        ValueError: it has.
    """
    if array.dtype.kind == "U" and array.dtype.itemsize and array.size:
        codes = np.atleast_1d(array).ravel("K").view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if ((codes > sys.maxunicode) | ((codes >= _HALVES[0]) & (codes <= _HALVES[-1]))).any():
            raise ValueError("holds texts with numbers that are no characters")
    return array


def _checked_header(file: IO[bytes], size: int) -> Header:
    """An array's header, if the file is as long as that says.

    Raises:
        BadFile: it is no array, one of Python objects, or of another length.
    """
    head = io.BytesIO(file.read(_BEFORE_HEADER + LONGEST_HEADER))
    try:
        version = npy.read_magic(head)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(head)
    except _NO_HEADER as error:
        raise BadFile(f"is not an array that numpy saved ({one_line(error)})") from error
    if dtype.hasobject:
        raise BadFile("holds Python objects, not plain numbers")
    values = math.prod(shape) * dtype.itemsize
    if head.tell() + values != size:
        raise BadFile(f"is cut short or damaged: {size:,} bytes, and its header promises {head.tell() + values:,}")
    return Header(tuple(shape), values)
