"""Disk full, read-only, not permitted: what a user can mend, in one clear error wherever something is written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softmax_temperature.runner.errors import InputError

_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
_NOT_PERMITTED = frozenset({errno.EACCES, errno.EPERM})


@contextmanager
def disk_faults(place: Path | None = None) -> Iterator[None]:
    """Turn such a fault in the block into one error; other faults pass through.

    Args:
        place: the file or folder that is being written; None for a whole program, whose fault may be anywhere.

    Raises:
        InputError: it cannot be written.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = _reason(error, place)
        if reason is None:
            raise
        raise _mendable(error, reason, place) from error


def _mendable(error: Exception, reason: str, place: Path | None) -> InputError:
    if place is not None:
        remedy = "Free space or choose a folder that can be written."
        return InputError(f"cannot write ({reason})", where=str(place), remedy=remedy)
    where = os.fsdecode(getattr(error, "filename", None) or "the disk")
    return InputError(f"cannot be read or written ({reason})", where=where, remedy="Free space or change permissions.")


def _reason(error: Exception, place: Path | None) -> str | None:
    """What is wrong with the disk, if that is what an error says."""
    if not isinstance(error, OSError) and place is None:  # It may be a report of many errors.
        return None
    if not isinstance(error, OSError) or error.errno is None:
        # Libraries in Rust, as safetensors, and shutil have errors of their own that end with the system's words.
        return next((text for text in map(os.strerror, sorted(_DISK)) if text in str(error)), None)
    ours = error.errno in _DISK or (error.errno in _NOT_PERMITTED and _is_at(error, place))
    return error.strerror if ours else None


def _is_at(error: OSError, place: Path | None) -> bool:
    """Whether what is not permitted is to write there, and not to read somewhere else."""
    if place is None or error.filename is None:
        return True
    return Path(os.fsdecode(error.filename)).parent in {place, place.parent}
