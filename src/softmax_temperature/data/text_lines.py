"""Text files line by line, so that a file of any size takes the memory of its longest line, which has a limit."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def text_lines(path: Path, *, longest: int, remedy: str, unit: str = "line") -> Iterator[tuple[int, bytes]]:
    """Number (from 1) and content of each line, its line feed included; nothing else ends a line.

    Unicode has more separators of lines, and real texts have some of them within a sentence or a word.

    Args:
        path: the file.
        longest: bytes of a line, at most.
        remedy: for the error.
        unit: what to call a line in the error.

    Raises:
        InputError: the file is not readable, or a line is too long.
    """
    try:
        with path.open("rb") as file:
            for number in count(1):
                line = file.readline(longest + 1)
                if len(line) > longest:
                    where = f"{path}, {unit} {number}"
                    raise InputError(f"is longer than {longest:,} bytes", where=where, remedy=remedy)
                if not line:
                    return
                yield number, line
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), remedy=remedy) from error
