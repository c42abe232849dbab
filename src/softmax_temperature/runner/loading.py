"""Faster starts of programs: what imports and declarations of cells need not do."""

import gc
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Turn the garbage collector off while the block imports modules.

    Imports leave no garbage, but they let the collector scan all objects of torch
    repeatedly, and once more at the program's end. This takes a quarter of the time of
    a short program.
    """
    loaded = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        collect_again(freeze=len(sys.modules) > loaded)


def collect_again(*, freeze: bool = True) -> None:
    """Turn the garbage collector on; `freeze` makes it ignore existing objects."""
    if freeze:
        gc.freeze()
    gc.enable()


def undrawn() -> AbstractContextManager[object]:
    """Draw no normal numbers on the device "meta" in the block; it has no numbers.

    Networks are built on this device to check their arguments. For a normal draw there,
    torch would import its compiler, which takes seconds.
    """
    from torch import Tensor, nn
    from torch.overrides import TorchFunctionMode

    class Undrawn(TorchFunctionMode):
        def __torch_function__(  # type: ignore[no-untyped-def]
            self, function, types, args=(), kwargs=None
        ):
            named = kwargs or {}
            if function in (nn.init.normal_, Tensor.normal_):
                tensor = args[0] if args else named["tensor"]
                if tensor.is_meta:
                    return tensor
            return function(*args, **named)

    return Undrawn()
