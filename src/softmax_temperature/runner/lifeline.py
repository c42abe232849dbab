"""A process that ends with another: a worker whose stage is gone, a stage whose `dvc repro` is gone."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from itertools import pairwise

import psutil

_PR_SET_PDEATHSIG = 1
"""From Linux's `sys/prctl.h`: the signal that the kernel sends this process when its parent ends."""

SECONDS_BETWEEN_LOOKS = 0.5


def end_with_parent(number: signal.Signals, *, parent: int) -> None:
    """Have this process sent a signal when its parent ends, even by SIGKILL, which the parent can tell nobody of.

    On Linux the kernel sends it, so a process that hangs in compiled code ends too. Elsewhere a thread of this process
    looks who its parent is.

    Args:
        number: SIGTERM to end in order, SIGKILL to end at once.
        parent: the parent's number. If another is the parent by now, it has ended, and the signal is sent at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # It ended before the kernel was asked.
            signal.raise_signal(number)
    else:
        watch_parent(number, psutil.Process(), parent)


def end_with_starter(number: signal.Signals, *, mark: str) -> None:
    """Have this process sent a signal when the program ends that started it, through a shell or not.

    DVC runs a stage as `sh -c "python ..."`. Some shells make way for the command; others, Debian's /bin/sh among them,
    stay between the two, and live on when DVC is killed. So may whatever else a user puts before the command.

    Args:
        number: SIGTERM to end in order, SIGKILL to end at once.
        mark: a variable of the environment that the starter sets for what it starts and does not have itself: it is
            the nearest ancestor without, or whose variables the system does not show. If that one and its child are of
            different sessions, it did not start the child: it adopted what was left when the starter had ended, so the
            signal is sent at once. In a container the first process adopts too, and may be a shell of the same session:
            it gave the starter a process group of its own.
    """
    line = _ancestors()
    child, starter = next(((child, of) for child, of in pairwise(line) if mark not in _variables(of)), (None, None))
    if child is None or starter is None:
        return  # All of this machine has the mark: nobody set it for this process.
    if _session(starter.pid) != _session(child.pid) or (starter.pid == 1 and _group(1) != _group(child.pid)):
        signal.raise_signal(number)
    elif child.pid == os.getpid():
        end_with_parent(number, parent=starter.pid)
    else:
        watch_parent(number, child, starter.pid)


def watch_parent(number: signal.Signals, child: psutil.Process, parent: int) -> None:
    """Start the thread that looks whether the child, this process or an ancestor of it, still has that parent."""

    def look() -> None:
        while _parent(child) == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os.kill(os.getpid(), number)

    threading.Thread(target=look, daemon=True).start()


def _ancestors() -> list[psutil.Process]:
    """This process, its parent, and so on."""
    while True:
        with suppress(psutil.NoSuchProcess):  # One ended meanwhile: another is the parent of its children now.
            return [psutil.Process(), *psutil.Process().parents()]


def _variables(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:  # Somebody else's, or gone.
        return {}


def _parent(process: psutil.Process) -> int | None:
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return None


def _session(process: int) -> int | None:
    with suppress(ProcessLookupError):
        return os.getsid(process)
    return None


def _group(process: int) -> int | None:
    with suppress(ProcessLookupError):
        return os.getpgid(process)
    return None
