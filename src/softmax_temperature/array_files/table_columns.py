"""Tables: which of their columns are what. One holds the labels, the others are the matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softmax_temperature.array_files.array_file import LABELS, ArrayFile, BadFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

LABEL_COLUMNS = ("label", LABELS)
SHOWN = 5


class TableFile(ArrayFile):
    """A file of columns with names."""

    def __init__(self, path: Path, matrix: str, columns: Sequence[str]) -> None:
        super().__init__(path, matrix)
        if len(set(columns)) < len(columns):
            raise BadFile("has two columns of one name")
        self.columns = list(columns)
        found = [name for name in columns if name.strip().lower() in LABEL_COLUMNS]
        if len(found) > 1:
            raise BadFile(f"has two columns of labels ({' and '.join(found)})")
        # A single column can only be the labels of rows that lie in another file.
        self.label_columns = found or self.columns if len(columns) == 1 else found

    def names(self) -> list[str]:
        """The labels, the matrix, or both."""
        return [name for name in (self.matrix, LABELS) if self.columns_of(name)]

    def columns_of(self, name: str) -> list[str]:
        """The columns that make up an array."""
        if name == LABELS:
            return self.label_columns
        return [column for column in self.columns if column not in self.label_columns]

    def array(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Columns, shape (n, columns), as the array: labels become integers, shape (n,).

        Raises:
            BadFile: a label is missing or not a whole number.
        """
        return _whole_numbers(values[:, 0].astype(np.float64), self.label_columns[0]) if name == LABELS else values

    def lacks(self, names: Sequence[str]) -> str:
        """How to say that there are no such columns."""
        if LABELS not in names:
            return f"has a column of labels alone, and none of {self.matrix}"
        some = ", ".join(self.columns[:SHOWN]) + (", …" if len(self.columns) > SHOWN else "")
        return f"has no column {' or '.join(LABEL_COLUMNS)} (its columns: {some})"


def _whole_numbers(values: NDArray[np.float64], column: str) -> NDArray[np.int64]:
    wrong = ~(np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2**53))
    if wrong.any():
        row = int(wrong.argmax())
        raise BadFile(f"column {column} must hold whole numbers, got {values[row]} in row {row}, counted from 0")
    return values.astype(np.int64)
