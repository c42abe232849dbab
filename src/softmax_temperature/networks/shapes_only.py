"""Networks without their numbers: to look at shapes, or to try arguments, in no time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


@contextmanager
def shapes_only() -> Iterator[None]:
    """Tensors that are made inside the block have a shape and no numbers (torch's device "meta")."""
    with torch.device("meta"), _WithoutNormalDraws():
        yield


class _WithoutNormalDraws(TorchFunctionMode):
    """`normal_` leaves a tensor as it is: on "meta" it would do nothing either, but import torch's compiler for it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0] if func is torch.Tensor.normal_ else func(*args, **(kwargs or {}))
