"""Parts of the second implementations of networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def images(samples: int = 4, side: int = 16) -> Tensor:
    """Normal pixels, float64."""
    return torch.randn(samples, 3, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def perturbed(network: nn.Module) -> nn.Module:
    """The network in float64 with scales, shifts, biases and running estimates that are not those of a start."""
    for values in network.double().state_dict().values():
        if values.is_floating_point() and values.ndim == 1:
            nn.init.uniform_(values, 0.5, 1.5)
    return network


def normalised(state: dict[str, Tensor], name: str, maps: Tensor, *, training: bool = False) -> Tensor:
    """Batch normalisation with the parameters under a name; nothing where there are none."""
    if f"{name}.weight" not in state:
        return maps
    parts = [state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
    mean, variance, scale, shift = (part[None, :, None, None] for part in parts)
    if training:
        mean, variance = maps.mean((0, 2, 3), keepdim=True), maps.var((0, 2, 3), correction=0, keepdim=True)
    return (maps - mean) / (variance + 1e-5).sqrt() * scale + shift


def rectified(maps: Tensor, *, double: bool = False) -> Tensor:
    """ReLU or, with `double`, CReLU."""
    return torch.cat([maps.clamp(min=0), (-maps).clamp(min=0)], 1) if double else maps.clamp(min=0)
