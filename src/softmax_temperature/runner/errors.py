"""The two errors that programs report without a traceback: wrong input (exit code 2),
and failed cells (1).
"""

import difflib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten

from safetensors import SafetensorError

_DISK = [
    os.strerror(getattr(errno, code))
    for code in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM")
]


class InputError(Exception):
    """Something the user supplied is wrong; programs print it on one line and exit with
    2.

    `what` is the fault, in a clause; `where` the file, parameter or data set at fault;
    `remedy` what to do about it.
    """

    def __init__(self, what: str, where: str, remedy: str) -> None:
        self.what, self.where, self.remedy = " ".join(what.split()), where, remedy
        super().__init__(
            self.what, where, remedy
        )  # All arguments, so that it passes between processes.

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}{'.' * (not self.what.endswith(('.', '?')))} {self.remedy}"
        # A key or a file's name may hold a line break or control characters.
        return "".join(
            letter if letter.isprintable() else letter.encode("unicode_escape").decode()
            for letter in text
        )


class CellsFailed(Exception):
    """Some cells of a stage failed, `failures` says why; the others finished and are
    kept.
    """

    def __init__(self, stage: str, failures: Mapping[str, str], total: int) -> None:
        lines = [
            f"{stage}: {len(failures)} of {total} cells failed; what is finished is kept and will not run again."
        ]
        for reason in dict.fromkeys(
            failures.values()
        ):  # A wrong file fails every cell that reads it: reported once.
            first, *more = (name for name, own in failures.items() if own == reason)
            lines.append(
                f"  {first}{f' and {len(more)} more' if more else ''}: {reason}"
            )
        super().__init__("\n".join(lines))
        self.failures = dict(failures)


def nearest(name: str, valid: Iterable[str]) -> str:
    """A remedy for an unknown name, as a sentence: the nearest valid one, or the first
    of all.
    """
    choices = sorted(valid)
    if close := difflib.get_close_matches(name, choices, n=1, cutoff=0.5):
        return f"Did you mean {close[0]!r}?"
    # timm has a thousand names.
    return f"Valid: {shorten(', '.join(choices), 1000, placeholder=' ...') or 'none'}."


@contextmanager
def disk_faults(path: Path | None = None) -> Iterator[None]:
    """Report a full, read-only or unwritable disk as an `InputError`; `path` is what
    the block writes, if known.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        # By the system's words, because errors of safetensors have no number.
        if (
            reason := next((text for text in _DISK if text in str(error)), None)
        ) is None:
            raise
        where = os.fsdecode(getattr(error, "filename", None) or path or "the disk")
        remedy = "Free space, or change the permissions or the folder."
        raise InputError(
            f"cannot be read or written ({reason})", where=where, remedy=remedy
        ) from error
