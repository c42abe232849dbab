"""The form in which a training loop takes a loss."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

# Mean loss of a batch from logits (n, classes), labels (n,) and the position in the written recipe, in epochs.
Objective = Callable[[Tensor, Tensor, float], Tensor]


def at_every_epoch(loss: Callable[[Tensor, Tensor], Tensor]) -> Objective:
    """The objective of a loss that does not change during training."""

    def objective(logits: Tensor, labels: Tensor, position: float) -> Tensor:  # noqa: ARG001
        return loss(logits, labels)

    return objective
