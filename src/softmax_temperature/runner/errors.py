"""The one error a user can mend: what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_MOST = 50
"""Names in one error: timm alone knows more than a thousand networks."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DISK = _FULL | {errno.EROFS, errno.EACCES, errno.EPERM}


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
        # A key or a file's name may hold a line break or control characters.
        return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling between processes.
        return _rebuild, (type(self), self.what, self.where, self.remedy)


class CellsFailed(Exception):
    """Some cells of a stage failed; the others finished and are kept."""

    def __init__(self, stage: str, failures: Mapping[str, str], total: int) -> None:
        lines = [f"{stage}: {len(failures)} of {total} cells failed; what is finished is kept and will not run again."]
        names: dict[str, list[str]] = {}  # A wrong file fails every cell that reads it: reported once.
        for name, reason in failures.items():
            names.setdefault(reason, []).append(name)
        for reason, (first, *more) in names.items():
            lines.append(f"  {first}{f' and {len(more)} more' if more else ''}: {reason}")
        super().__init__("\n".join(lines))
        self.failures = dict(failures)


def _rebuild(kind: type[InputError], what: str, where: str, remedy: str) -> InputError:
    return kind(what, where=where, remedy=remedy)


def nearest(name: str, valid: Iterable[str]) -> str:
    """A remedy for an unknown name, as a sentence: the nearest valid one, or all of them, or the first of very many."""
    choices = sorted(valid)
    if close := difflib.get_close_matches(name, choices, n=1, cutoff=0.5):
        return f"Did you mean {close[0]!r}?"
    more = f", and {len(choices) - _MOST:,} more" if len(choices) > _MOST else ""
    return f"Valid: {', '.join(choices[:_MOST]) or 'none'}{more}."


@contextmanager
def disk_faults(path: Path | None = None) -> Iterator[None]:
    """Report a full, read-only or forbidden disk in one line; other errors pass through.

    Args:
        path: the file or folder that the block writes; None where that is not known.

    Raises:
        InputError: the block failed for want of space or permission.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK:
            raise
        where = os.fsdecode(error.filename or path or "the disk")
        raise _disk_fault(str(error.strerror), where) from error
    except Exception as error:
        # Libraries in Rust, such as safetensors, raise errors of their own that quote the system's words.
        reason = next((text for text in map(os.strerror, sorted(_FULL)) if text in str(error)), None)
        if reason is None or path is None or isinstance(error, InputError):
            raise
        raise _disk_fault(reason, str(path)) from error


def _disk_fault(reason: str, where: str) -> InputError:
    remedy = "Free space, or change the permissions or the folder."
    return InputError(f"cannot be read or written ({reason})", where=where, remedy=remedy)
