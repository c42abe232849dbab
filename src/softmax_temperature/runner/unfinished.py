"""Files and folders on their way to their place: hidden beside it, held by their writer, cleared away when it died."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from softmax_temperature.runner.disk_faults import disk_faults

ENDING = ".unfinished"


@contextmanager
def unfinished_file(place: Path) -> Iterator[Path]:
    """An empty file beside a place; what is left of it after the block is removed.

    Args:
        place: where it shall be moved when it is written. What writers that are gone had begun for it is removed first.

    Raises:
        InputError: the disk is full or the folder cannot be written.
    """
    with _beside(place, _make_file) as path:
        yield path


@contextmanager
def unfinished_folder(place: Path) -> Iterator[Path]:
    """The same for a folder."""
    with _beside(place, _make_folder) as path:
        yield path


@contextmanager
def _beside(place: Path, make: Callable[[Path], str]) -> Iterator[Path]:
    with ExitStack() as stack:
        with disk_faults(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            _clear(place)
            path = _begin(place, make, stack)
        yield path


def _begin(place: Path, make: Callable[[Path], str], stack: ExitStack) -> Path:
    while True:
        path = Path(make(place))
        stack.callback(_remove, path)
        with suppress(FileNotFoundError):
            stack.enter_context(_held(path, wait=True))
        if path.exists():  # Another writer may have cleared it away before it was held.
            return path


def _make_file(place: Path) -> str:
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=ENDING)
    os.close(descriptor)
    return name


def _make_folder(place: Path) -> str:
    return tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}.", suffix=ENDING)


def _clear(place: Path) -> None:
    for path in place.parent.glob(f".{glob.escape(place.name)}.*{ENDING}"):
        with suppress(FileNotFoundError), _held(path) as free:
            if free:
                _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _held(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold a file or folder while the block runs; the kernel lets go of it when its holder dies.

    Yields:
        Whether it is held: not where another process holds it, or the file system has no locks.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield _lock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True
