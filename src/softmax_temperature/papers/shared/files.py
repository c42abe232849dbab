"""Files of results. Equal numbers give files that are equal byte for byte.

This module writes the runs, tables and claims in results/, and rounds their numbers to
`DIGITS` significant digits.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from softmax_temperature.runner.artifacts import write_json, write_text
from softmax_temperature.runner.errors import InputError

_IS_FLOAT = re.compile(r"-?\d+(\.\d+)?e[-+]?\d+|-?\d+\.\d+")
DIGITS = 6
"""The number of significant digits to which numbers are rounded when written.

Different processors compute sums that differ in the last bits: the relative difference
is about 1e-7 in float32 and 1e-15 in float64. No conclusion rests on the seventh digit.
"""
ZERO = 1e-12
"""Numbers closer to 0 than this are written as 0, because they are rounding errors."""


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table atomically, with its numbers rounded (see `rounded`)."""
    write_text(path, table.map(rounded).to_csv(index=False, lineterminator="\n"))


def write_results(path: Path, value: Any) -> None:
    """Write JSON atomically, with its numbers rounded (see `rounded`)."""
    write_json(path, rounded(value))


def rounded(value: Any) -> Any:
    """Round every float in `value`, at any depth, to `DIGITS` significant digits."""
    if isinstance(value, float):
        if abs(value) < ZERO:
            return 0.0
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def round_again(path: Path) -> None:
    """Rewrite a CSV or JSON file with its numbers rounded to `DIGITS` digits."""
    if path.suffix == ".json":
        write_results(path, json.loads(path.read_text(encoding="utf-8")))
        return
    try:
        # Read the cells as text, so that only the numbers change.
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except pd.errors.EmptyDataError:
        return
    write_csv(path, table.map(_float_or_text))


def _float_or_text(text: str) -> float | str:
    return float(text) if _IS_FLOAT.fullmatch(text) else text


def read_csv(path: Path, text: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table that `write_csv` wrote; an empty file gives an empty table.

    The columns in `text` are read as text, even if they contain numbers.

    Raises:
        InputError: If there is no such file.
    """
    if not path.is_file():
        raise InputError(
            "table not found",
            where=str(path),
            remedy="Run `dvc repro`, or check the profile's name.",
        )
    try:
        return pd.read_csv(path, dtype=dict.fromkeys(text, str))
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
