"""Read users' files with the libraries for their formats, without unpickling.

pandas is imported only for tables, because its import takes half a second.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_DAMAGED = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,
    TypeError,
    BadZipFile,
    SafetensorError,
)
# Words by which errors about pickles are recognised. Such an error advises users to
# unpickle anyway, so its text is not shown.
_PICKLED = ("allow_pickle", "weights_only")


def read_content(path: Path) -> Any:
    """Read a file with the library for its format, and return the library's result.

    Raises InputError if the file cannot be read.
    """
    if not path.exists():
        raise InputError(
            "cannot be read (No such file or folder)",
            where=str(path),
            remedy="Correct the path.",
        )
    if path.is_dir():
        raise InputError(
            "is a folder", where=str(path), remedy="Give the path of a file in it."
        )
    read = _READERS.get(path.suffix.lower())
    if read is None:
        endings = ", ".join(ending.removeprefix(".") for ending in _READERS)
        raise InputError(
            f"unknown file type {path.suffix!r}" if path.suffix else "has no ending",
            where=str(path),
            remedy=f"Save it as one of {endings}.",
        )
    try:
        with warnings.catch_warnings():
            # Libraries warn about contents that later checks refuse anyway.
            warnings.simplefilter("ignore")
            return read(path)
    except ImportError as error:  # Parquet needs pyarrow, which is optional.
        raise InputError(
            "cannot be read without the package pyarrow",
            where=str(path),
            remedy="Install it: pip install pyarrow.",
        ) from error
    except UnpicklingError as error:
        raise _pickled(path) from error
    except _DAMAGED as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    text = " ".join(str(error).split())
    if any(advice in text for advice in _PICKLED):
        return _pickled(path)
    remedy = "Save it again."
    if isinstance(error, UnicodeDecodeError):
        remedy = "Save it as text in UTF-8, not compressed."
    return InputError(
        f"cannot be read ({text[:200] or type(error).__name__})",
        where=str(path),
        remedy=remedy,
    )


def _pickled(path: Path) -> InputError:
    return InputError(
        "cannot be read (it is damaged, or holds Python objects, which are not loaded)",
        where=str(path),
        remedy="Save plain arrays of numbers, for instance as npz or safetensors.",
    )


def read_csv(path: Path) -> pd.DataFrame:
    """Read a csv file. Its columns are numbered if the first line has no names."""
    import pandas as pd

    first = pd.read_csv(path, header=None, nrows=1, dtype=str, skipinitialspace=True)
    cells = first.iloc[0].tolist()
    if len(cells) == 1 and cells[0] == "0":
        return _single_column(path)
    ends_empty = len(cells) > 1 and not isinstance(cells[-1], str)
    header = None if _is_row_of_numbers(cells[:-1] if ends_empty else cells) else 0
    if header == 0:
        _refuse_doubled(cells, path)
    try:
        table = pd.read_csv(path, header=header, skipinitialspace=True)
    except pd.errors.ParserError:
        _refuse_longer_line(path)
        raise
    if ends_empty and bool(table.iloc[:, -1].isna().all()):
        # All lines, or only the first, end with a comma.
        table = table.iloc[:, :-1]
    if header == 0:
        # numpy.savetxt writes "# " in front of its header.
        first_name = str(table.columns[0])
        table = table.rename(columns={first_name: first_name.removeprefix("# ")})
        _refuse_longer_rows(table, path)
        _refuse_repeated_header(table, path)
    return table


def _refuse_longer_rows(table: pd.DataFrame, path: Path) -> None:
    """Refuse rows with more fields than the header has names, unless rows are named.

    pandas takes the first fields of such rows as the names of the rows, so that every
    number ends up in a neighbouring column.
    """
    rows = table.index
    are_named = rows.nlevels == 1 and rows.is_unique and rows.dtype.kind not in "fcb"
    if not are_named:
        _refuse_longer_line(path)


def _refuse_longer_line(path: Path) -> None:
    """Refuse a csv file with a line that has more fields than its first line."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file, skipinitialspace=True)
        first = 0
        for cells in lines:
            fields = len(cells)
            if not any(map(str.strip, cells)):
                continue
            first = first or fields
            if fields > first:
                break
        else:
            return
    ends_empty = not any(map(str.strip, cells[first:]))
    end = " and ends with a comma" if ends_empty else ""
    remedy = "Name every column, and write decimal points rather than commas."
    if ends_empty:
        remedy = "End no line with a comma."
    elif first == 1:
        remedy = "Separate columns with commas, and write decimal points."
    raise InputError(
        f"line {lines.line_num} has {fields} fields{end}, but the first line has "
        f"{first}",
        where=str(path),
        remedy=remedy,
    )


def _refuse_repeated_header(table: pd.DataFrame, path: Path) -> None:
    """Refuse a table that repeats its header among its rows, as joined files do."""
    names = list(table.columns)
    repeated = np.ones(len(table), dtype=np.bool_)
    for place, name in enumerate(names):
        column = table.iloc[:, place]
        if column.dtype.kind in "iufb":
            return
        repeated &= (column.astype(str).str.strip() == str(name).strip()).to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        raise InputError(
            f"has its header again in line {_line_of(path, row)}",
            where=str(path),
            remedy="Remove that line; it comes from a file that was joined to another.",
        )


def _line_of(path: Path, row: int) -> int:
    """Return the number of the line that holds row number `row` of a csv file.

    Lines are counted from 1, and rows from 0.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file)
        filled = (lines.line_num for cells in lines if any(map(str.strip, cells)))
        return next(islice(filled, row + 1, None))


def _refuse_doubled(cells: Sequence[Any], path: Path) -> None:
    """Refuse duplicate names in `cells`; pandas would rename the second column."""
    names = [cell.strip() for cell in cells if isinstance(cell, str)]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(
                f"has two columns {name!r}",
                where=str(path),
                remedy="Give each column its own name.",
            )


def counts(numbers: Sequence[int]) -> bool:
    """Whether `numbers`, when sorted, count up from 0 or 1 without a gap."""
    ordered = sorted(numbers)
    return ordered[0] in (0, 1) and ordered == list(
        range(ordered[0], ordered[0] + len(ordered))
    )


def _is_row_of_numbers(cells: Sequence[Any]) -> bool:
    """Whether the first line, `cells`, holds data and not names or column numbers."""
    try:
        [float(cell) for cell in cells]
    except ValueError:
        return False
    if any(not isinstance(cell, str) for cell in cells):  # Empty cells are NaN.
        return False
    if len(cells) > 2:
        # Labels of type float give the names 0.0, 1.0, 2.0, ... If there are only two
        # such cells, they may be a row of probabilities.
        cells = [cell.removesuffix(".0") for cell in cells]
    if len(cells) == 1 or not all(cell.isdigit() for cell in cells):
        return True
    return not counts([int(cell) for cell in cells])


def _single_column(path: Path) -> pd.DataFrame:
    """Read a table of one column whose first cell, 0, may be the column's number.

    The 0 is the column's number if some other cell is not a whole number, because then
    the cells cannot be labels. Otherwise the 0 is a value.
    """
    import pandas as pd

    table = pd.read_csv(path, header=None)
    values = table[0]
    if len(table) > 1 and values.dtype.kind == "f" and (values % 1 != 0).any():
        return table.iloc[1:].reset_index(drop=True)
    return table


def _parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(path)


def _npz(path: Path) -> dict[str, NDArray[Any]]:
    with path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise UnpicklingError("is an npy file with the wrong ending")
        return dict(archive)


TABLE_ENDINGS = (".csv", ".parquet")
_READERS: dict[str, Callable[[Path], Any]] = {
    ".npz": _npz,
    ".npy": lambda path: np.load(path, allow_pickle=False),
    ".safetensors": load_file,
    ".pt": lambda path: torch.load(path, map_location="cpu", weights_only=True),
    ".pth": lambda path: torch.load(path, map_location="cpu", weights_only=True),
    ".csv": read_csv,
    ".parquet": _parquet,
}
