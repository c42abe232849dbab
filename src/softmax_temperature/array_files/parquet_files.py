"""Tables as Parquet: a column of labels, and a column of lists or one column of numbers for each class or dimension."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from softmax_temperature.array_files.array_file import BadFile
from softmax_temperature.array_files.numpy_files import one_line
from softmax_temperature.array_files.table_columns import TableFile

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ParquetFile(TableFile):
    """Columns of numbers, or one column whose entries are lists of one length."""

    def __init__(self, path: Path, matrix: str) -> None:
        try:
            with pq.ParquetFile(path) as file:
                self.schema, metadata = file.schema_arrow, file.metadata
        except (pa.ArrowException, OSError) as error:
            raise BadFile(f"is not a Parquet file, or cut short ({one_line(error)})") from error
        super().__init__(path, matrix, self.schema.names)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
        self.sizes: dict[str, int] = {}
        for chunk in chunks:
            column = chunk.path_in_schema.partition(".")[0]
            self.sizes[column] = self.sizes.get(column, 0) + chunk.num_values

    @staticmethod
    def form(matrix: str) -> str:
        """What the file must hold."""
        return f"A Parquet file has a column label, and {matrix} as one column of lists or as columns of numbers."

    def numbers(self, name: str) -> int:
        """How many numbers the columns hold."""
        return sum(self.sizes.get(column, 0) for column in self.columns_of(name))

    def load(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read the columns that are asked for."""
        wanted = [column for name in names for column in self.columns_of(name)]
        try:
            table = pq.read_table(self.path, columns=wanted)
        except (pa.ArrowException, OSError) as error:
            raise BadFile(f"cannot be read ({one_line(error)})") from error
        return {name: self.array(name, _matrix(table.select(self.columns_of(name)))) for name in names}


def _matrix(table: pa.Table) -> NDArray[Any]:
    """The numbers of the columns, shape (n, numbers)."""
    parts = [_values(table.column(name).combine_chunks(), name) for name in table.column_names]
    return np.concatenate(parts, axis=1)


def _values(column: Any, name: str) -> NDArray[Any]:
    """One column, shape (n, 1), or (n, length) if its entries are lists."""
    rows, width = len(column), 1
    if column.null_count:
        raise BadFile(f"column {name} has {column.null_count} missing values")
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(lengths) > 1:
            raise BadFile(f"column {name} has lists of {min(lengths)} to {max(lengths)} numbers, not of one length")
        width, column = lengths[0] if lengths else 0, column.flatten()
        if column.null_count:
            raise BadFile(f"column {name} has {column.null_count} missing values in its lists")
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise BadFile(f"column {name} holds {column.type}, not numbers")
    return np.asarray(column.to_numpy(zero_copy_only=False)).reshape(rows, width)
