"""The heap of a process that computes.

glibc hands large blocks back to the system as soon as they are freed, and the next step of a training faults them in
again, page by page: up to 50 MB a step of the small VGG, whose training takes a tenth longer for it, and that of
ResNet-50 a third. PyTorch's performance tuning guide names other allocators as the remedy, which have to be installed.
"""

from __future__ import annotations

import ctypes
import sys

# malloc.h of glibc; the first value is the largest that mallopt takes.
_TRIM_THRESHOLD, _KEPT_BYTES = -1, 2**31 - 1
_MMAP_THRESHOLD, _BLOCK_BYTES = -3, 2**28


def keep_freed_memory() -> None:
    """From now on this process keeps up to 2 GiB that it has freed, in blocks of up to 256 MiB, and takes them again.

    What is computed does not change. The most that is ever taken may grow: by a quarter for ResNet-50 in batches of
    128, not at all for the small VGG. Does nothing where the C library is not glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _BLOCK_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
