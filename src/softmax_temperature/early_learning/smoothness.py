"""Whether the function that a network computes has kinks."""

from __future__ import annotations

from torch import nn

KINKED = (
    *(nn.ReLU, nn.Hardtanh, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.Threshold, nn.Hardswish, nn.Hardsigmoid),
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d),
)

# Deviation: the theory expands a network in its parameters and thereby takes it to be smooth. Where a unit of ReLU
# crosses its kink, the kernel jumps: on few samples, the number of crossings during a small move is not in proportion
# to the move. Predictions of the drift are judged apart for smooth networks and for others.


def is_smooth(network: nn.Module) -> bool:
    """Whether no module of a network has a kink; functions that its code calls are not seen."""
    return not any(isinstance(module, KINKED) for module in network.modules())
