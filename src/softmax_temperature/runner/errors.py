"""The one error a user can mend: what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST = 50
"""Names in one error: timm alone knows more than a thousand networks."""


class InputError(Exception):
    """Something the user supplied is wrong; programs print it on one line and exit with 2.

    Args:
        what: the fault, in a clause; line breaks in it, as other libraries' errors have them, become spaces.
        where: the file, parameter or data set at fault.
        remedy: what to do about it.
    """

    def __init__(self, what: str, *, where: str, remedy: str) -> None:
        what = " ".join(what.split())
        super().__init__(what, where, remedy)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}. {self.remedy}"
        # A key or a file's name may hold a line break, or what a terminal obeys.
        return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling between processes.
        return _rebuild, (type(self), self.what, self.where, self.remedy)


def _rebuild(kind: type[InputError], what: str, where: str, remedy: str) -> InputError:
    return kind(what, where=where, remedy=remedy)


def nearest(name: str, valid: Iterable[str]) -> str:
    """A remedy for an unknown name: the nearest valid one, or all of them, or the first of very many.

    Args:
        name: what was given.
        valid: what could have been given.

    Returns:
        A sentence to end an error message with.
    """
    choices = sorted(valid)
    if close := difflib.get_close_matches(name, choices, n=1, cutoff=0.5):
        return f"Did you mean {close[0]!r}?"
    more = f", and {len(choices) - _MOST:,} more" if len(choices) > _MOST else ""
    return f"Valid: {', '.join(choices[:_MOST]) or 'none'}{more}."
