"""Reading the arrays that a command needs from whatever file the user has."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.array_files.array_file import ArrayFile, BadFile
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = {  # imported when needed: reading an npz does not wait for Parquet
    ".npz": "numpy_files.NpzFile",
    ".npy": "numpy_files.NpyFile",
    ".safetensors": "safetensors_files.SafetensorsFile",
    ".csv": "csv_files.CsvFile",
    ".parquet": "parquet_files.ParquetFile",
}


def read_arrays(
    path: Path, matrix: str, *, required: Sequence[str], optional: Sequence[str] = (), rows: int | None = None
) -> dict[str, NDArray[Any]]:
    """Read named arrays, after a look at the headers that refuses what is absent, damaged or beyond memory.

    Args:
        path: an npz, npy, safetensors, csv or parquet file.
        matrix: the name of the array of rows, for types that give it none: "logits" or "embeddings".
        required: what must be there, some of `matrix`, "labels" and further names.
        optional: what is read too if it is there.
        rows: how many rows each of them must have, where that is known: a file of billions of labels for a thousand
            rows is refused, and not read first.

    Returns:
        By name, the arrays; labels of tables as int64, shape (n,).

    Raises:
        InputError: the file is not there, of another type, damaged, too large, of other rows, or lacks an array.
    """
    _check_place(path)
    module, _, kind = KINDS[path.suffix.lower()].partition(".")
    reader: type[ArrayFile] = getattr(import_module(f"{__package__}.{module}"), kind)
    try:
        file = reader(path, matrix)
        file.rows = rows
        return file.load(file.wanted(required, optional))
    except BadFile as error:
        raise InputError(str(error), where=str(path), remedy=reader.form(matrix)) from error
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), remedy="Make it readable.") from error


def _check_place(path: Path) -> None:
    if path.suffix.lower() not in KINDS:
        known = ", ".join(ending.removeprefix(".") for ending in KINDS)
        what = f"unknown file type {path.suffix!r}" if path.suffix else "has no ending that says what type it is"
        raise InputError(what, where=str(path), remedy=f"Give one of {known}.")
    if not path.is_file():
        raise InputError("no such file", where=str(path), remedy="Give the path of a file that is there.")
