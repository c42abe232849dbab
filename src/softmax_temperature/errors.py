"""The one error a user can mend: what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(Exception):
    """Something the user supplied is wrong; programs print it on one line and exit with 2.

    Args:
        what: the fault, in a clause.
        where: the file, parameter or data set at fault.
        remedy: what to do about it.
    """

    def __init__(self, what: str, *, where: str, remedy: str) -> None:
        super().__init__(what, where, remedy)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling between processes.
        return _rebuild, (type(self), self.what, self.where, self.remedy)


def _rebuild(kind: type[InputError], what: str, where: str, remedy: str) -> InputError:
    return kind(what, where=where, remedy=remedy)


def nearest(name: str, valid: Iterable[str]) -> str:
    """A remedy for an unknown name: the nearest valid one, or all of them.

    Args:
        name: what was given.
        valid: what could have been given.

    Returns:
        A sentence to end an error message with.
    """
    choices = sorted(valid)
    close = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    return f"Did you mean {close[0]!r}?" if close else f"Valid: {', '.join(choices) or 'none'}."
