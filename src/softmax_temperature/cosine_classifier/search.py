"""The search for the best inverse temperature: train, and evaluate after every epoch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softmax_temperature.cosine_classifier.grid import TemperatureGrid
from softmax_temperature.cosine_classifier.trainer import TemperatureGridTrainer


def train_temperature_grid(
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    inverse_temperatures: Sequence[float] | Tensor,
    *,
    epochs: int,
    batch_size: int,
    lr: float,
    momentum: float = 0.9,
    rescale: bool = True,
    optimizer: str = "sgd",
    repeats: int = 1,
    seed: int = 0,
    device: torch.device | str | None = None,
    precision: str = "float32",
) -> TemperatureGrid:
    """Test accuracy of a cosine classifier at each inverse temperature, all trained at once.

    classifier_temperature, sections 3.1 and 4.3: the paper trains 1,000 epochs with batches of 2,048 for alpha in
    {1, 5, 10, ..., 250}, with SGD on the rescaled loss, and takes the best accuracy over the epochs on the test set.

    Args:
        train: embeddings, shape (n, dim), floating point; labels, shape (n,), int64, from 0. Only directions count.
        test: the same for the samples to count accuracy on.
        inverse_temperatures: positive numbers alpha = 1/T that multiply the cosines, shape (temperatures,).
        epochs: passes over the training samples.
        batch_size: samples per step; the last batch of an epoch may be smaller.
        lr: learning rate.
        momentum: of SGD; for Adam its first decay rate.
        rescale: divide the loss by alpha, so that alpha does not scale the gradient (after Eq. 3).
        optimizer: "sgd" or "adam".
        repeats: initialisations of each classifier; batches are the same in all.
        seed: spawns initial weights and batch orders.
        device: where to train; default: where the train embeddings are.
        precision: "float32"; "bfloat16", matrix products of the training in bfloat16, the rest in float32; "float64".

    Raises:
        ValueError: an argument is out of range or a split is malformed; the message names it.
    """
    # Deviation: the paper states no learning rate, momentum or weight decay. The first two are arguments, there is no
    # weight decay: it would change lengths alone, to which cosines are blind, and with them the learning rate.
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, got {epochs}")
    trainer = TemperatureGridTrainer(
        train,
        inverse_temperatures,
        batch_size=batch_size,
        lr=lr,
        momentum=momentum,
        rescale=rescale,
        optimizer=optimizer,
        repeats=repeats,
        seed=seed,
        device=device,
        precision=precision,
    )
    checked_test = trainer.checked_test(*test)
    curves = []
    for _ in range(epochs):
        trainer.epoch()
        curves.append(trainer.evaluate(*checked_test))
    return TemperatureGrid(trainer.inverse_temperatures, torch.stack(curves, dim=2), evaluated=len(test[1]))
