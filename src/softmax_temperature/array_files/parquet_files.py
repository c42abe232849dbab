"""Tables as Parquet: a column of labels, and a column of lists or one column of numbers for each class or dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from softmax_temperature.array_files.array_file import LABELS, BadFile
from softmax_temperature.array_files.numpy_files import one_line
from softmax_temperature.array_files.parquet_pages import check_footer, column_pages
from softmax_temperature.array_files.table_columns import TableFile

if TYPE_CHECKING:
    from numpy.typing import NDArray


_DAMAGED = (pa.ArrowException, OSError, ValueError, KeyError)  # Names that no text can hold are among the reasons.
BATCH_ROWS = 2**14
# What the pages of numbers may take: eight bytes for each in a dictionary, as many outside of it, its place in lists;
# and the least that a page takes, with the blocks of its encoding.
NUMBER_BYTES, PAGE_BYTES = 24, 2**16


class ParquetFile(TableFile):
    """Columns of numbers, or one column whose entries are lists of one length.

    Nothing is decoded before it is clear that it is numbers, how many there are, and that lists as long as the first
    come to no fewer: one list, and one text of a dictionary, can be of any size in a file of a hundred bytes.
    """

    def __init__(self, path: Path, matrix: str) -> None:
        try:
            check_footer(path)
            with pq.ParquetFile(path) as file:
                self.length: int = file.metadata.num_rows
                super().__init__(path, matrix, file.schema_arrow.names)
                self.kinds = {field.name: field.type for field in file.schema_arrow}
            self.pages = dict(zip(self.columns, column_pages(path), strict=True))
        except _DAMAGED as error:
            raise BadFile(f"is not a Parquet file, or cut short ({one_line(error)})") from error

    @staticmethod
    def form(matrix: str) -> str:
        """What the file must hold."""
        return f"A Parquet file has a column label, and {matrix} as one column of lists or as columns of numbers."

    def numbers(self, name: str) -> int:
        """How many numbers the columns hold.

        Raises:
            BadFile: a column holds something else, or its pages are larger than these can be.
        """
        columns = self.columns_of(name)
        for column in columns:
            _check_kind(column, self.kinds[column])
            pages = self.pages[column]
            if pages.bytes > NUMBER_BYTES * pages.numbers + PAGE_BYTES * pages.count:
                raise BadFile(f"column {column} takes {pages.bytes:,} bytes for {pages.numbers:,} numbers")
        return sum(self.pages[column].numbers for column in columns)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """That of the labels; the length of lists is known when they are read."""
        return (self.length,) if name == LABELS else None

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read the columns that are asked for, some rows at a time."""
        wanted = [column for name in names for column in self.columns_of(name)]
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
        try:
            with pq.ParquetFile(self.path) as file:
                widths = {column: self._width(column, file) for column in wanted}
                for batch in file.iter_batches(BATCH_ROWS, columns=wanted):
                    for name in names:
                        parts[name].append(_matrix(batch, self.columns_of(name), widths))
        except _DAMAGED as error:
            raise BadFile(f"cannot be read ({one_line(error)})") from error
        if not all(parts.values()):
            raise BadFile("has no rows")
        return {name: self.array(name, np.concatenate(found)) for name, found in parts.items()}

    def _width(self, name: str, file: pq.ParquetFile) -> int:
        """How many numbers a row has in a column, going by the first row where they are lists.

        Raises:
            BadFile: the column has more numbers than such rows.
        """
        width = 1
        if _is_list(self.kinds[name]):
            first = next(file.iter_batches(1, columns=[name]), None)
            values = None if first is None else first.column(0)[0].values
            width = 0 if values is None else len(values)
        held, rows = self.pages[name].numbers, f"{self.length:,} rows"
        if held > self.length * max(width, 1):
            raise BadFile(f"column {name} has {held:,} numbers in {rows}, of which the first has {width:,}")
        return width


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _check_kind(name: str, kind: pa.DataType) -> None:
    """Numbers, or lists of them.

    Raises:
        BadFile: something else.
    """
    inner = kind.value_type if _is_list(kind) else kind
    if not (pa.types.is_floating(inner) or pa.types.is_integer(inner)):
        raise BadFile(f"column {name} holds {inner}, not numbers")


def _matrix(batch: pa.RecordBatch, columns: Sequence[str], widths: Mapping[str, int]) -> NDArray[Any]:
    """The numbers of some columns, shape (n, numbers)."""
    return np.concatenate([_values(batch.column(name), name, widths[name]) for name in columns], axis=1)


def _values(column: Any, name: str, width: int) -> NDArray[Any]:
    """One column, shape (n, 1), or (n, width) if its entries are lists."""
    rows = len(column)
    if column.null_count:
        raise BadFile(f"column {name} has {column.null_count} missing values")
    if _is_list(column.type):
        lengths = {width, *pc.unique(pc.list_value_length(column)).to_pylist()}
        if len(lengths) > 1:
            raise BadFile(f"column {name} has lists of {min(lengths)} to {max(lengths)} numbers, not of one length")
        column = column.flatten()
        if column.null_count:
            raise BadFile(f"column {name} has {column.null_count} missing values in its lists")
    return np.asarray(column.to_numpy(zero_copy_only=False)).reshape(rows, width)
