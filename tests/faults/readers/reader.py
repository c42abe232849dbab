"""What a fuzzed reader consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from softmax_temperature.runner.errors import InputError
from tests.faults.mutations import edited

SLOW = 0.05
"""The share of readers that take a tenth of a second."""

Seeds = Callable[[], Sequence[Any]]


@dataclass(frozen=True)
class Reader:
    """Something that reads what somebody else may have written.

    Attributes:
        places: the functions that do the reading, as `reading_places` names them.
        seeds: valid contents; `read` takes each of them without an error.
        read: puts a content where a file is expected, below an empty folder that it is given, and reads it.
        change: contents, valid or not, from valid ones.
        errors: what reading may raise.
        share: of the inputs, compared with other readers.
    """

    places: tuple[str, ...]
    seeds: Seeds
    read: Callable[[Path, Any], object]
    change: Callable[[Sequence[Any]], st.SearchStrategy[Any]] = edited
    errors: tuple[type[Exception], ...] = (InputError,)
    share: float = 1.0
