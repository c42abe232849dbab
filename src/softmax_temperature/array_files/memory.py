"""Whether the numbers of a file fit into memory, asked before they are read."""

from __future__ import annotations

import os

COPIES = 7  # What the work on an array takes at its peak, in copies of it as float64; 6.7 were measured for logits.
BYTES = 8


def memory_bytes() -> int:
    """The machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def too_large(numbers: int, *, bytes_each: int = BYTES * COPIES) -> str | None:
    """Why so many numbers cannot be worked on here, in a clause; None if they can."""
    needed, there = numbers * bytes_each, memory_bytes()
    if needed <= there:
        return None
    return f"holds {numbers:,} numbers, which would take {_gibibytes(needed)} of memory; there are {_gibibytes(there)}"


def _gibibytes(count: int) -> str:
    return f"{count / 2**30:,.0f} GiB"
