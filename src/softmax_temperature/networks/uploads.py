"""Small tensors on their way to a GPU, for which neither side waits."""

from functools import lru_cache

import torch
from torch import Tensor


def upload(device: torch.device, *tables: Tensor) -> list[Tensor]:
    """Tensors of one dtype on a device, in one copy from pinned memory; those that are there already stay."""
    if device.type != "cuda" or tables[0].is_cuda:
        return [table.to(device) for table in tables]
    packed = torch.cat([table.flatten() for table in tables]).pin_memory().to(device, non_blocking=True)
    parts = packed.split([table.numel() for table in tables])
    return [part.view(table.shape) for part, table in zip(parts, tables, strict=True)]


@lru_cache(maxsize=64)
def channels(values: tuple[float, ...], device: torch.device) -> Tensor:
    """One number for each channel, float32, uploaded once and not to be changed."""
    with torch.inference_mode(False):  # Or a tensor made while embedding could not be used while training.
        return torch.tensor(values, device=device)
