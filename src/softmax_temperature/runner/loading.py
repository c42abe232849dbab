"""Faster imports for programs."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Turn off the garbage collector for imports in the block, which leave no garbage.

    If the collector stayed on, it would scan all objects of torch repeatedly, and once
    more at the end of the program. This takes a quarter of a short program's time.
    """
    loaded = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > loaded:
            # The collector ignores the objects that exist now.
            gc.freeze()
        gc.enable()
