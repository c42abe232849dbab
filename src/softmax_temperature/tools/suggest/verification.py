"""The search that a suggestion saves: every inverse temperature of the grid, and each rule's own, trained at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from softmax_temperature.cosine_classifier import TemperatureGrid, TemperatureGridTrainer
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.progress import counting

if TYPE_CHECKING:
    from softmax_temperature.params.classifier_temperature import Search
    from softmax_temperature.tools.suggest.embedded import Embedded
    from softmax_temperature.tools.suggest.sharded import Sharded


def search_optimum(
    data: Embedded | Sharded, search: Search, rules: Mapping[str, float], *, epochs: int, seed: int, device: str
) -> dict[str, Any]:
    """Train at all inverse temperatures and compare what each rule gives with the best of the grid.

    The value of each rule is trained like those of the grid, from the same initial weights with the same batches, so
    what it loses is measured and not interpolated. Accuracies are the best over the epochs, as in the paper.

    Args:
        data: with test rows.
        search: the grid and the settings of the training.
        rules: by name, an inverse temperature.
        epochs: passes over the training rows.
        seed: of initial weights and batches.
        device: where to train.

    Returns:
        `inverse_temperatures`, `accuracy` (of each), `best_inverse_temperature`, `plateau` (low, high),
        `best_accuracy`, `standard_error` (of it, binomial), `test_rows`, `train_rows`, `epochs`, and `rules`: by name
        `inverse_temperature`, `accuracy`, `accuracy_lost` and `on_plateau`.

    Raises:
        InputError: the training diverges.
    """
    grid = [float(value) for value in search.inverse_temperatures]
    values = [*grid, *rules.values()]
    trainer = TemperatureGridTrainer(
        data.train,
        values,
        batch_size=search.batch_size,
        lr=search.lr,
        momentum=search.momentum,
        repeats=search.repeats,
        seed=seed,
        device=device,
    )
    accuracy = data.accuracy_of(trainer)
    curves = torch.empty(search.repeats, len(values), epochs)
    with counting(f"epochs at {len(values)} inverse temperatures", epochs) as advance:
        for epoch in range(epochs):
            _train(trainer, search.lr)
            curves[..., epoch] = accuracy()
            advance(1)
    searched = TemperatureGrid(tuple(grid), curves[:, : len(grid)], evaluated=data.test_rows)
    accuracies = curves.amax(2).double().mean(0).tolist()
    best = max(accuracies[: len(grid)])
    low, high = searched.plateau
    return {
        "inverse_temperatures": grid,
        "accuracy": accuracies[: len(grid)],
        "best_inverse_temperature": searched.best_inverse_temperature,
        "plateau": [low, high],
        "best_accuracy": best,
        "standard_error": math.sqrt(best * (1 - best) / data.test_rows),
        "train_rows": data.train_rows,
        "test_rows": data.test_rows,
        "epochs": epochs,
        "rules": {
            name: {
                "inverse_temperature": value,
                "accuracy": measured,
                "accuracy_lost": best - measured,
                "on_plateau": low <= value <= high,
            }
            for (name, value), measured in zip(rules.items(), accuracies[len(grid) :], strict=True)
        },
    }


def _train(trainer: TemperatureGridTrainer, lr: float) -> None:
    try:
        trainer.epoch()
    except ValueError as error:
        raise InputError(str(error), where="--verify", remedy=f"Give a --lr below {lr}.") from error
