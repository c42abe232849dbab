"""Training on target tokens: the loss, logits of a split, and scores after each epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softmax_temperature.training.networks import last_layer_inputs
from softmax_temperature.training.trainer import Diverged
from softmax_temperature.training.translation.calibration import calibration_by_temperature
from softmax_temperature.training.translation.vocabulary import PADDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softmax_temperature.training.trainer import Objective, Trainer
    from softmax_temperature.training.translation.pairs import LengthBatches


def per_token(objective: Objective) -> Objective:
    """The mean loss over the tokens of a batch; padding has none.

    Args:
        objective: of logits (tokens, classes) and labels (tokens,).

    Returns:
        One that takes labels with PADDING after the last of each row, as `LengthBatches` has them.
    """

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:
        return objective(logits, labels[labels != PADDING], position)

    return loss


@torch.no_grad()
def token_logits(trainer: Trainer, batches: LengthBatches) -> Iterator[tuple[Tensor, Tensor]]:
    """Logits of every target token given those before it, in evaluation mode, a batch at a time.

    Args:
        trainer: whose network it is.
        batches: any device.

    Yields:
        (tokens, vocabulary) float32 and (tokens,) int64, on the trainer's device.

    Raises:
        Diverged: logits are not finite.
    """
    trainer.network.eval()
    batches, recipe = batches.to(trainer.device), trainer.recipe
    for number, labels in enumerate(batches.labels):
        inputs = batches.prepare(batches.inputs[number : number + 1], recipe)
        with torch.autocast(trainer.device, torch.bfloat16, enabled=recipe.precision == "bfloat16"):
            logits, _ = last_layer_inputs(trainer.network, inputs)
        if not bool(logits.isfinite().all()):
            raise Diverged(f"logits are not finite after epoch {trainer.epochs_done}")
        yield logits, labels[labels != PADDING]


class TokenScores:
    """Follows a training and scores it after each epoch.

    Attributes:
        history: a row for each epoch: `epoch`, `loss` (of training), and of the tokens of `batches` `nll` (nats),
            `accuracy` and `ece` (fractions), not scaled.

    Args:
        batches: to score.
    """

    def __init__(self, batches: LengthBatches) -> None:
        self._batches = batches
        self.history: list[dict[str, Any]] = []

    def after_epoch(self, trainer: Trainer) -> None:
        """Add the epoch's row.

        Raises:
            Diverged: logits are not finite.
        """
        [row] = calibration_by_temperature(token_logits(trainer, self._batches), [1.0])
        scores = {name: row[name] for name in ("nll", "accuracy", "ece")}
        self.history.append({"epoch": trainer.epochs_done, "loss": trainer.loss, **scores})

    def state_dict(self) -> dict[str, Any]:
        """All rows so far."""
        return {"history": list(self.history)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken."""
        self.history = list(state["history"])
