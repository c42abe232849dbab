"""Tables as CSV files that are equal byte for byte when their numbers are."""

from pathlib import Path
from typing import Any

import pandas as pd

from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table atomically, its numbers `rounded`."""
    write_text(path, table.map(rounded).to_csv(index=False, lineterminator="\n"))


def rounded(value: Any) -> Any:
    """The value with every float in it, at any depth, to nine significant digits.

    Nine digits tell every float32 from the next, and leave out the last bits, in which
    machines differ.
    """
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table that `write_csv` wrote; one without columns is empty.

    Raises:
        InputError: If there is no such file.
    """
    if not path.is_file():
        raise InputError(
            "no such table",
            where=str(path),
            remedy="Run `dvc repro`, or check the profile's name.",
        )
    try:
        return pd.read_csv(path)
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
