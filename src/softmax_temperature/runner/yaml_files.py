"""YAML files that a person may have written: nothing they say constructs an object, or more than they look like."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 2**22  # Bytes; the record of DVC, the largest such file, has a tenth of it.
DEEPEST = 200  # Brackets that are open at a time.
MOST_VALUES = 200_000  # With every alias written out: a few lines of aliases of aliases can stand for billions.


def read_yaml(path: Path, *, kind: Literal["rt", "safe"] = "rt") -> Any:
    """Read a YAML 1.2 file; no tag constructs an object.

    Args:
        path: the file, in UTF-8.
        kind: "rt" keeps comments and order for writing it back, "safe" gives plain values in less time.

    Raises:
        InputError: the file is missing, too large, or no YAML; or its aliases refer to themselves, or stand for more
            values than any such file has.
    """
    if not path.is_file():
        raise InputError("no such file", where=str(path), remedy="Run this in the project's root folder.")
    if (size := path.stat().st_size) > LARGEST:
        raise InputError(f"is {size:,} bytes long, too long for YAML", where=str(path), remedy="Look at what wrote it.")
    try:
        text = path.read_text(encoding="utf-8")
        _check_depth(text)
        content = YAML(typ=kind).load(text)
        _values(content, {})
    # What is no date, no number, or nested too deeply comes as the error of Python's own; so does a mapping
    # that is merged into itself.
    except (YAMLError, ValueError, RecursionError, AttributeError) as error:
        raise InputError(f"not readable as YAML ({error})", where=str(path), remedy="Mend that line.") from error
    return content


def _check_depth(text: str) -> None:
    """Refuse brackets within brackets within brackets: the parsers take a time that grows with the depth's square.

    Raises:
        ValueError: they are too deep.
    """
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(depth - 1, 0)
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} brackets are open at a time")


def _values(content: Any, known: dict[int, int]) -> int:
    """How many values there are, with every alias written out.

    Args:
        content: what was read.
        known: the counts of mappings and lists so far, by their identity; 0 while one is being counted.

    Raises:
        ValueError: there are too many, or one is a part of itself.
    """
    if not isinstance(content, dict | list):
        return 1
    if id(content) in known:
        return known[id(content)]
    known[id(content)] = 0
    counts = [_values(value, known) for value in (content.values() if isinstance(content, dict) else content)]
    if 0 in counts:
        raise ValueError("an alias refers to what it is a part of")
    total = 1 + sum(counts)
    if total > MOST_VALUES:
        raise ValueError(f"its aliases stand for more than {MOST_VALUES:,} values")
    known[id(content)] = total
    return total
