"""A paper's records below results/: a dataclass with one field per table, and pictures beside them."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save

from softmax_temperature.papers.shared.tables import read_csv
from softmax_temperature.runner.artifacts import atomic_file

Records = TypeVar("Records")
RUNS = "runs"
"""The table at the top of the folder, `runs.csv`; the others are under `tables/`."""


def read_records(form: type[Records], folder: Path) -> Records:
    """The records in a paper's folder, as a dataclass whose fields are named after the tables."""
    return form(**{name: read_csv(table_path(folder, name)) for name in table_names(form)})


def table_names(form: type[Any]) -> tuple[str, ...]:
    """The names of a paper's records."""
    return tuple(field.name for field in fields(form))


def table_path(folder: Path, name: str) -> Path:
    """Where a table of a paper lies."""
    return folder / f"{name}.csv" if name == RUNS else folder / "tables" / f"{name}.csv"


def write_pixels(path: Path, arrays: Mapping[str, NDArray[np.uint8]]) -> None:
    """Write pictures, by name, in a form whose bytes depend on nothing else; no file where there are none."""
    if arrays:
        with atomic_file(path) as file:
            file.write(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def read_pixels(path: Path) -> dict[str, NDArray[np.uint8]]:
    """What `write_pixels` wrote."""
    return load_file(path) if path.is_file() else {}
