"""The epoch loop around the batched grid, as cells run it: resumable, with an accuracy curve per evaluated split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softmax_temperature.cosine_classifier import TemperatureGridTrainer
    from softmax_temperature.runner.cells import Job


def train_with_curves(
    job: Job, trainer: TemperatureGridTrainer, evaluations: Mapping[str, tuple[Tensor, Tensor]], epochs: int
) -> dict[str, Tensor]:
    """Train for a number of epochs and record the accuracy on every evaluation set after each.

    An interrupted training goes on where its last checkpoint was, and gives the same bits on a CPU.

    Args:
        job: the running cell.
        trainer: holds the weights of every temperature.
        evaluations: by name, embeddings (n, dim) and labels (n,).
        epochs: how many in all.

    Returns:
        By name, a float32 tensor (repeats, temperatures, epochs) of accuracies.
    """
    checkpointer = job.checkpointer()
    shape = (trainer.settings.repeats, len(trainer.inverse_temperatures), epochs)
    # One block for all epochs: a thousand small tensors that stay, between large ones that come and go, would leave
    # the heap in pieces that grow by megabytes an epoch.
    curves = {name: torch.zeros(shape) for name in evaluations}
    if (state := checkpointer.load()) is not None:
        trainer.load_state_dict(state["trainer"])
        curves = state["curves"]

    def snapshot() -> dict[str, Any]:
        return {"trainer": trainer.state_dict(), "curves": curves}

    for epoch in range(trainer.completed_epochs, epochs):
        trainer.epoch()
        for name, (embeddings, labels) in evaluations.items():
            curves[name][..., epoch] = trainer.evaluate(embeddings, labels)
        checkpointer.save_if_due(snapshot)
        job.progress(epoch + 1, epochs)
    return curves
