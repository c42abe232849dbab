"""One process at a time in a folder."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.progress import say


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder's lock; who comes second says who holds it, and waits.

    The kernel frees the lock when its holder dies, however it dies: the file that stays behind locks nobody out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock, holder = FileLock(folder / "lock"), folder / "holder"
    try:
        lock.acquire(timeout=1)
    except Timeout:
        who = holder.read_text(encoding="utf-8", errors="replace") if holder.is_file() else "another process"
        say(f"{folder}: {who} is at work here; waiting for it")
        lock.acquire()
    try:
        who = f"process {os.getpid()} on {platform.node()} ({' '.join(sys.argv)})"
        write_text(holder, who.encode(errors="backslashreplace").decode())
        yield
    finally:
        lock.release()
