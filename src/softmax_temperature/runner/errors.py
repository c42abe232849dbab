"""The errors that programs report without a traceback.

These are wrong input (exit code 2) and failed cells (exit code 1).
"""

import difflib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten

from safetensors import SafetensorError

_FULL = "Free space, or put the folder on another disk."
_UNWRITABLE = "Change the permissions, or put the folder elsewhere."
_REMEDIES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "Put the folder on a file system that takes larger files.",
    errno.EROFS: _UNWRITABLE,
    errno.EACCES: _UNWRITABLE,
    errno.EPERM: _UNWRITABLE,
}
"""Remedies for a full, read-only or unwritable disk, by the system's error number."""
# Phrases in the messages of out-of-memory errors.
_OUT_OF_MEMORY = (
    "out of memory",
    "DefaultCPUAllocator",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


class InputError(Exception):
    """An error that the user can correct, such as a wrong parameter or a full disk.

    Programs print it on one line and exit with 2. `what` is a clause that describes the
    fault, `where` names the file, parameter or data set, and `remedy` says how to fix
    it.
    """

    def __init__(self, what: str, where: str, remedy: str) -> None:
        self.what = " ".join(what.split())
        self.where = where
        self.remedy = remedy
        # Pass all arguments on, so that the error can be pickled and sent between
        # processes.
        super().__init__(self.what, where, remedy)

    def __str__(self) -> str:
        stop = "" if self.what.endswith((".", "?")) else "."
        return _printable(f"{self.where}: {self.what}{stop} {self.remedy}")


def _printable(text: str) -> str:
    """Escape the control characters in `text`; keys and file names may contain them."""
    letters = []
    for letter in text:
        if letter.isprintable():
            letters.append(letter)
        else:
            letters.append(letter.encode("unicode_escape").decode())
    return "".join(letters)


class MissingInput(InputError):
    """One of the user's files or folders is missing.

    The programs skip whatever needs it, and list what is missing.
    """


class NotDownloadedError(MissingInput):
    """Missing data or weights that a library downloads if `data.download` is true."""


class CellsFailed(Exception):
    """Raised if cells of a stage failed; `failures` has the reason for each.

    The results of the cells that have finished are kept. Further cells may not have
    been started, for instance after a worker process was killed.
    """

    def __init__(self, stage: str, failures: Mapping[str, str], total: int) -> None:
        counts = f"{len(failures)} of {total} cells failed"
        lines = [
            f"{stage}: {counts}; finished cells are kept and will not run again.",
        ]
        # A wrong file makes every cell that reads it fail; report such a reason once.
        for reason in dict.fromkeys(failures.values()):
            names = [name for name in failures if failures[name] == reason]
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            lines.append(f"  {names[0]}{more}: {reason}")
        super().__init__("\n".join(lines))
        self.failures = dict(failures)


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a sentence that suggests the valid name spelt most like `name`.

    If no valid name is spelt similarly, the sentence lists as many valid names as fit.
    """
    choices = sorted(valid)
    close = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    if close:
        return f"Did you mean {close[0]!r}?"
    # Shorten the list, because timm alone has more than a thousand networks.
    listed = shorten(", ".join(choices), 1000, placeholder=" ...")
    return f"Valid: {listed or 'none'}."


@contextmanager
def disk_faults(path: Path | None = None) -> Iterator[None]:
    """Report a full, read-only or unwritable disk as an InputError.

    `path`, the file that the block writes, is reported if the error names no file.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        # Search for the system's message, because the errors that safetensors raises
        # have no error number.
        codes = [code for code in _REMEDIES if os.strerror(code) in str(error)]
        if not codes:
            raise
        problem = f"cannot be read or written ({os.strerror(codes[0])})"
        where = os.fsdecode(getattr(error, "filename", None) or path or "the disk")
        raise InputError(problem, where=where, remedy=_REMEDIES[codes[0]]) from error


def is_out_of_memory(error: Exception) -> bool:
    """Whether `error` means that memory ran out.

    A MemoryError always does. For other errors the message decides, because cuBLAS and
    cuDNN report a failed allocation as a plain RuntimeError.
    """
    words = any(text in str(error) for text in _OUT_OF_MEMORY)
    return words or isinstance(error, MemoryError)
