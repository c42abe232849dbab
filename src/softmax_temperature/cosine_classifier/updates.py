"""SGD with momentum and Adam on a slice of the problems, in place, as torch.optim defines them."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

# torch.optim.Adam's defaults; the first decay rate is the caller's momentum.
_ADAM_SECOND_DECAY = 0.999
_ADAM_EPSILON = 1e-8


class Update(Protocol):
    """A rule that turns gradients into steps, and what it remembers."""

    state: dict[str, Tensor]

    def apply(self, block: slice, weights: Tensor, gradient: Tensor, step: int) -> None:
        """Move `weights`, the slice `block` of all of them, by step number `step`, counted from 1."""


class MomentumUpdate:
    """velocity = momentum * velocity + gradient; weights -= lr * velocity."""

    def __init__(self, weights: Tensor, lr: float, momentum: float) -> None:
        self.lr, self.momentum = lr, momentum
        self.state = {"velocity": torch.zeros_like(weights)}

    def apply(self, block: slice, weights: Tensor, gradient: Tensor, step: int) -> None:  # noqa: ARG002 - as in Update
        """One step; its number does not matter."""
        velocity = self.state["velocity"][block]
        torch.add(gradient, velocity, alpha=self.momentum, out=velocity)
        weights.sub_(velocity, alpha=self.lr)


class AdamUpdate:
    """Adam without weight decay."""

    def __init__(self, weights: Tensor, lr: float, momentum: float) -> None:
        self.lr, self.momentum = lr, momentum
        self.state = {"first_moment": torch.zeros_like(weights), "second_moment": torch.zeros_like(weights)}

    def apply(self, block: slice, weights: Tensor, gradient: Tensor, step: int) -> None:
        """One step, its moments corrected for having started from zero."""
        first = self.state["first_moment"][block].lerp_(gradient, 1 - self.momentum)
        second = self.state["second_moment"][block].mul_(_ADAM_SECOND_DECAY)
        second.addcmul_(gradient, gradient, value=1 - _ADAM_SECOND_DECAY)
        root = torch.sqrt(second).div_(math.sqrt(1 - _ADAM_SECOND_DECAY**step)).add_(_ADAM_EPSILON)
        weights.addcdiv_(first, root, value=-self.lr / (1 - self.momentum**step))


UPDATES: dict[str, type[MomentumUpdate] | type[AdamUpdate]] = {"sgd": MomentumUpdate, "adam": AdamUpdate}
