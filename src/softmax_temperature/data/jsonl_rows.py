"""The rows of a `NAME.jsonl`: one JSON object a line, in UTF-8, each with the part that it belongs to.

A file is read line by line; every fault is one error with the file, the row, and the form that the rows should have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

from softmax_temperature.data.text_lines import text_lines
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from softmax_temperature.data.splits import SplitName

SPLIT_NAMES: Mapping[str, SplitName] = MappingProxyType(
    {"train": "train", "test": "test", **dict.fromkeys(("dev", "val", "valid", "validation"), "validation")}
)
"""What the parts of a data set may be called."""

LONGEST = 2**26  # Bytes of a row: what memory must hold at a time.


def lines_of(path: Path, *, form: str) -> Iterator[tuple[int, int, bytes]]:
    """Number (from 1), place in bytes, and content of each row.

    Args:
        path: the file.
        form: what a row should be, for the error.

    Raises:
        InputError: the file is not readable, or a row is too long.
    """
    offset = 0
    for number, line in text_lines(path, longest=LONGEST, remedy=form, unit="row"):
        yield number, offset, line
        offset += len(line)


def record_of(line: bytes, *, keys: Sequence[str], where: str, form: str) -> dict[str, object]:
    """The object of a row.

    Args:
        line: its bytes.
        keys: that it must have.
        where: file and row, for the error.
        form: as above.

    Raises:
        InputError: it is not UTF-8, not a JSON object, or lacks a key.
    """
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError as error:
        refuse(f"is not UTF-8 (byte {line[error.start]:#04x} at place {error.start} of the row)", where, form)
    except (ValueError, RecursionError) as error:
        refuse(f"is not JSON ({error})", where, form)
    if not isinstance(record, dict):
        refuse(f"is {short(record)}, not a JSON object", where, form)
    if missing := [key for key in keys if key not in record]:
        refuse(f"has no {', '.join(missing)} (it holds: {', '.join(map(short, record)) or 'nothing'})", where, form)
    return record


def split_of(value: object, *, where: str, form: str) -> SplitName:
    """The part that a row names.

    Raises:
        InputError: there is none of this name.
    """
    if not isinstance(value, str) or value not in SPLIT_NAMES:
        refuse(f"the split is {short(value)}, not one of {', '.join(SPLIT_NAMES)}", where, form)
    return SPLIT_NAMES[value]


def check_characters(value: object, *, where: str, form: str) -> None:
    """Refuse what JSON can write and UTF-8 cannot.

    Raises:
        InputError: it names the place.
    """
    try:
        str(value).encode()
    except UnicodeEncodeError as error:
        refuse(f"has half a character at place {error.start}, {error.object[error.start]!a}", where, form)


def short(value: object) -> str:
    """A value for a message."""
    text = repr(value)
    return text if len(text) <= 50 else f"{text[:50]}..."


def refuse(what: str, where: str, form: str) -> NoReturn:
    """Raise the one error of this module."""
    raise InputError(what, where=where, remedy=form)
