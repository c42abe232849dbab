"""A process that ends with its parent: a worker whose stage is gone, a stage whose `dvc repro` is gone."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
"""From Linux's `sys/prctl.h`: the signal that the kernel sends this process when its parent ends."""

SECONDS_BETWEEN_LOOKS = 0.5


def end_with_parent(number: signal.Signals, *, parent: int | None = None) -> None:
    """Have this process sent a signal when its parent ends, even by SIGKILL, which the parent can tell nobody of.

    On Linux the kernel sends it, so a process that hangs in compiled code ends too. Elsewhere a thread of this process
    looks who its parent is.

    Args:
        number: SIGTERM to end in order, SIGKILL to end at once.
        parent: the parent's number, if this process was told it. Otherwise it is whoever is the parent now, unless
            that is of another session: such a one did not start this process, but adopted it.
    """
    if parent is None:
        parent = os.getppid() if os.getsid(os.getppid()) == os.getsid(0) else -1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # It ended before the kernel was asked.
            signal.raise_signal(number)
    else:
        watch_parent(number, parent)


def watch_parent(number: signal.Signals, parent: int) -> None:
    """Start the thread that looks."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os.kill(os.getpid(), number)

    threading.Thread(target=look, daemon=True).start()
