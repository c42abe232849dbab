"""Images and layer formulas for the second implementations of networks."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def images(samples: int = 4, side: int = 16) -> Tensor:
    """Float64 images of shape (samples, 3, side, side) with normally distributed
    pixels.
    """
    generator = torch.Generator().manual_seed(0)
    shape = (samples, 3, side, side)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def perturbed(network: nn.Module) -> nn.Module:
    """Draw random scales, shifts, biases and running statistics; return the network.

    The network is converted to float64. The initial values are 0 and 1; with them, a
    test would not notice if an implementation left out a scale or a shift.
    """
    for values in network.double().state_dict().values():
        if values.is_floating_point() and values.ndim == 1:
            nn.init.uniform_(values, 0.5, 1.5)
    return network


def weights_and_biases(network: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """The weight and the bias of every layer of a network whose layers have both."""
    parameters = list(network.parameters())
    return list(zip(parameters[::2], parameters[1::2], strict=True))


def normalised(
    state: dict[str, Tensor], name: str, maps: Tensor, *, training: bool = False
) -> Tensor:
    """Apply the batch normalisation called `name`, if the network has it."""
    if f"{name}.weight" not in state:
        return maps
    if training:
        mean = maps.mean((0, 2, 3))
        variance = maps.var((0, 2, 3), correction=0)
    else:
        mean = state[f"{name}.running_mean"]
        variance = state[f"{name}.running_var"]
    mean, variance, scale, shift = per_channel(
        mean, variance, state[f"{name}.weight"], state[f"{name}.bias"]
    )
    return (maps - mean) / (variance + 1e-5).sqrt() * scale + shift


def per_channel(*values: Tensor) -> Iterable[Tensor]:
    """Values of shape (channels,), reshaped to (1, channels, 1, 1)."""
    return [value[None, :, None, None] for value in values]


def rectified(maps: Tensor, *, double: bool = False) -> Tensor:
    """ReLU, or CReLU if `double` is set."""
    if double:
        return torch.cat([maps.clamp(min=0), (-maps).clamp(min=0)], 1)
    return maps.clamp(min=0)
