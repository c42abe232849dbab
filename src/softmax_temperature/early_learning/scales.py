"""The time scales that the theory predicts from a start, in rescaled time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.early_learning.flat_network import FlatNetwork
    from softmax_temperature.early_learning.kernel import KernelSketch

MOVE = 1e-5
"""Of the unit of time, for the rate at which the kernel starts to change."""


@dataclass(frozen=True)
class Scales:
    """What the start of a flow says about its course.

    Attributes:
        logit_norm: ||Z_0||_F, of the tempered logits.
        speed: ||Θ_0 residual(Z_0)||_F, what they change by in a unit of rescaled time.
    """

    logit_norm: float
    speed: float

    @property
    def unit_time(self) -> float:
        """When the logits have changed by 1: about 1 / ||Θ_0||, whatever small Z_0 is."""
        return 1 / self.speed

    @property
    def logit_time(self) -> float:
        """tau_z, when the logits have changed by their own norm: ||Z_0|| / ||Θ_0 residual(Z_0)||."""
        return self.logit_norm / self.speed


def predicted_scales(start: Tensor, velocity: Tensor) -> Scales:
    """The scales of a start.

    Args:
        start: Z_0, (n, classes).
        velocity: Θ_0 residual(Z_0), (n, classes).

    Raises:
        ValueError: the velocity is 0: nothing will ever change.
    """
    speed = velocity.norm().item()
    if not speed > 0:
        raise ValueError(f"velocity must not vanish, got norm {speed}")
    return Scales(start.norm().item(), speed)


def drift_rate(network: FlatNetwork, sketch: KernelSketch, weights: Tensor, unit_time: float) -> float:
    """What the kernel starts to drift by in a unit of rescaled time, for inverse temperature 1.

    The parameters start along (1/β) Jᵀ residual(Z_0), so ||dΘ/ds||_F / ||Θ_0||_F is this number over β, and the time
    tau_nl of leaving the linear regime is β over it. It is a difference quotient, over a move of 1e-5 units of time.

    Args:
        network: whose kernel.
        sketch: of the same network.
        weights: residual(Z_0), (n, classes).
        unit_time: of the start's scales.
    """
    direction = network.pull_back(network.start, weights)
    moved = network.start + MOVE * unit_time * direction
    return sketch.drift(sketch.at(moved), sketch.at(network.start)).value / (MOVE * unit_time)
