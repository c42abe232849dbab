"""Tables as text (csv): a column of labels and one column of numbers for each class or dimension."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature.array_files.array_file import BadFile
from softmax_temperature.array_files.memory import too_large
from softmax_temperature.array_files.numpy_files import one_line
from softmax_temperature.array_files.table_columns import TableFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST_LINE = 2**24  # bytes, a million numbers; pandas would look for the end of a longer one through the whole file
NUMBER_BYTES = 48  # No writer takes more for one.
PART_ROWS, PART_BYTES = 4096, 2**26  # What is read at a time.
BLOCK = 2**18  # Bytes that pandas asks for.


class CsvFile(TableFile):
    """Numbers with commas between them, below a line of names; without names all columns are the matrix."""

    def __init__(self, path: Path, matrix: str) -> None:
        first, second = _first_lines(path)
        fields = _fields(first)
        self.has_names = not all(map(_is_number, fields))
        super().__init__(path, matrix, fields if self.has_names else [str(place) for place in range(len(fields))])
        self.part_rows = min(max(1, PART_BYTES // (NUMBER_BYTES * len(fields))), PART_ROWS)
        # Lines of numbers are much the same length.
        self.estimated_rows = path.stat().st_size // len((second or first).encode())

    @staticmethod
    def form(matrix: str) -> str:
        """What the file must hold."""
        return f"A CSV file has a line of names and then numbers: a column label, and the others are {matrix}."

    def numbers(self, name: str) -> int:
        """About how many numbers there are."""
        return self.estimated_rows * len(self.columns_of(name))

    def shape(self, name: str) -> None:
        """Known when all lines are read."""

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read all columns, some rows at a time."""
        parts: list[NDArray[np.float64]] = []
        for part in self._parts():
            parts.append(part.to_numpy())
            if excess := too_large(len(parts) * parts[0].size):
                raise BadFile(excess)
            if self.rows is not None and sum(map(len, parts)) > self.rows:
                raise BadFile(f"has more than {self.rows} rows, as many as there are {self.matrix}")
        if not any(map(len, parts)):
            raise BadFile("has no rows")
        table = pd.DataFrame(np.concatenate(parts), columns=self.columns)
        return {name: self.array(name, table[self.columns_of(name)].to_numpy()) for name in names}

    def _parts(self) -> Iterator[pd.DataFrame]:
        options: Any = {"dtype": np.float64, "encoding": "utf-8-sig", "low_memory": False}  # Parts are small enough.
        options |= {"header": 0 if self.has_names else None, "index_col": False, "chunksize": self.part_rows}
        try:
            with (
                warnings.catch_warnings(),
                _ShortLines(self.path, len(self.columns)) as file,
                pd.read_csv(file, **options) as parts,
            ):
                warnings.simplefilter("error", pd.errors.ParserWarning)  # Lines that are longer than the first.
                for part in parts:
                    file.left = PART_BYTES
                    yield part
        except (ValueError, OSError, pd.errors.ParserWarning) as error:
            raise BadFile(f"cannot be read as a table of numbers ({one_line(error)})") from error


class _ShortLines(io.FileIO):
    """A file for pandas, which reads on until a line, a quotation and all rows of a part have ended.

    Attributes:
        left: bytes that it may still read before the part is complete.
    """

    def __init__(self, path: Path, columns: int) -> None:
        super().__init__(path)
        self.longest = min(max(BLOCK, NUMBER_BYTES * columns), LONGEST_LINE)
        self.open = 0  # Bytes so far of the line that has not ended.
        self.left = PART_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        """The next block, or what is asked for of it.

        Raises:
            BadFile: a line or a part is too long.
        """
        block = super().read(BLOCK if size is None or size < 0 else min(size, BLOCK)) or b""
        # No line that both begins and ends in a block is too long.
        end = block.find(b"\n")
        line = self.open + (len(block) if end < 0 else end)
        self.open = line if end < 0 else len(block) - 1 - block.rfind(b"\n")
        self.left -= len(block)
        if line > self.longest or self.left < 0:
            raise BadFile("is not a text of short lines")
        return block


def _first_lines(path: Path) -> tuple[str, str]:
    """The first two lines, the second perhaps empty.

    Raises:
        BadFile: the file is empty, or no text.
    """
    with path.open("rb") as file:
        lines = [file.readline(LONGEST_LINE), file.readline(LONGEST_LINE)]
    if not lines[0].strip():
        raise BadFile("is empty, or begins with an empty line")
    if any(b"\0" in line or len(line) == LONGEST_LINE for line in lines):
        raise BadFile("is not a text of short lines")
    try:
        first, second = (line.decode("utf-8-sig") for line in lines)
    except UnicodeDecodeError as error:
        raise BadFile("is not text in UTF-8") from error
    return first, second


def _fields(line: str) -> list[str]:
    try:
        return next(csv.reader([line]))
    except csv.Error as error:
        raise BadFile(f"cannot be read as a table ({one_line(error)})") from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
