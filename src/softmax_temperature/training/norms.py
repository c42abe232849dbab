"""Norms of logits, weights and gradients over a training (cooling paper, section 3.3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils import get_total_norm

from softmax_temperature.training.trainer import Diverged

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.training.trainer import Trainer


class Norms:
    """Follows a training; put `after_batch` into the trainer's.

    Attributes:
        rows: one for each epoch: `epoch`, `logit_norm` (mean over the inputs, as the network gives logits after the
            epoch), `weight_norm` (of all parameters together, after the epoch), `gradient_norm` (of all parameters
            together, mean over the epoch's batches, as the optimizer used them).

    Args:
        inputs: to evaluate; of the kind that the network is trained on, not the same ones.
    """

    def __init__(self, inputs: Tensor) -> None:
        self._inputs = inputs
        self._gradients: list[Tensor] = []
        self.rows: list[dict[str, Any]] = []

    def after_batch(self, trainer: Trainer) -> None:
        """Note the norm of the gradient; it stays on the device, so that a GPU's queue does not stop."""
        gradients = [each.grad for each in trainer.network.parameters() if each.grad is not None]
        self._gradients.append(get_total_norm(gradients))

    def after_epoch(self, trainer: Trainer) -> None:
        """Add the epoch's row.

        Raises:
            Diverged: logits are not finite, or a norm is beyond what float32 can hold.
        """
        logits, _ = trainer.evaluate(self._inputs)
        gradients = torch.stack(self._gradients).double().mean().item()
        weights = get_total_norm([each.detach() for each in trainer.network.parameters()]).item()
        self._gradients.clear()
        if not (math.isfinite(gradients) and math.isfinite(weights)):
            where = f"after epoch {trainer.epochs_done}"
            raise Diverged(f"norms of gradients and weights are {gradients} and {weights} {where}")
        logit_norm = logits.double().norm(dim=1).mean().item()
        row = {"epoch": trainer.epochs_done, "logit_norm": logit_norm}
        self.rows.append({**row, "weight_norm": weights, "gradient_norm": gradients})

    def state_dict(self) -> dict[str, Any]:
        """All rows so far."""
        return {"rows": list(self.rows)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken: after an epoch, so what is noted of another one goes."""
        self.rows = list(state["rows"])
        self._gradients.clear()
