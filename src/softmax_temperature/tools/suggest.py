"""A default inverse temperature for a cosine classifier on a user's own embeddings, without a search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softmax_temperature.cosine_classifier import TemperatureGrid, train_temperature_grid
from softmax_temperature.data.sampling import generator_for, stratified_holdout
from softmax_temperature.dataset_statistics import STATISTICS, describe
from softmax_temperature.heuristic.ridge import RidgeHeuristic, shipped
from softmax_temperature.runner.errors import InputError

Rows = tuple[Tensor, Tensor]

HELD_OUT = 0.25  # Of every class, to measure accuracy on where there are no test rows.
GRID = (1.0, *map(float, range(5, 251, 5)))  # Section 4.3.
LR = 3.0  # As in the study: 1, 3 and 10 all train.
SMALLEST_BATCH = 32
_COLUMNS = 3


@dataclass(frozen=True)
class Suggestion:
    """What to use, and what it is worth.

    Attributes:
        inverse_temperature: Multiplies the cosines.
        expected_loss: Mean accuracy lost against the best inverse temperature by the rule that gave it, on data sets
            left out of its fit: a fraction.
        inside: Whether all statistics lie in the range that the heuristic was fitted on. Outside it the value is the
            best constant of the study.
        outside: The statistics that do not.
        predicted: What the regression says, inside or not.
        rules: Other rules' values, by name.
        statistics: The 23 of the paper.
        lost: By rule, mean, 90th percentile and worst loss in the study.
        study: How many pairs of how many data sets it rests on.
        search: What `search` found, if it was asked for.
    """

    inverse_temperature: float
    expected_loss: float
    inside: bool
    outside: tuple[str, ...]
    predicted: float
    rules: dict[str, float]
    statistics: dict[str, float]
    lost: dict[str, tuple[float, float, float]]
    study: str
    search: dict[str, Any] | None = field(default=None)

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        loss = f"expected to lose {100 * self.expected_loss:.1f} points of accuracy against the best one"
        if self.inside:
            head = f"Inverse temperature {self.inverse_temperature:.3g}: {loss}; inside the fitted range."
        else:
            head = (
                f"Inverse temperature {self.inverse_temperature:.3g}, the best constant of the study ({loss} there): "
            )
            head += f"these data are outside the fitted range ({', '.join(self.outside)})."
        lines = [
            head,
            f"From {self.study}.",
            "",
            f"{'rule':<34}{'value':>8}{'points lost: mean':>20}{'p90':>7}{'worst':>7}",
        ]
        for rule, value in self.rules.items():
            cost = "".join(
                f"{100 * one:{width}.1f}" for one, width in zip(self.lost.get(rule, ()), (20, 7, 7), strict=False)
            )
            lines.append(f"{rule:<34}{value:>8.3g}{cost}")
        if self.search:
            lines += ["", *_search_lines(self.search)]
        cells = [f"{name:<18}{self.statistics[name]:>9.4g}" for name in STATISTICS]
        lines += ["", *("   ".join(cells[start : start + _COLUMNS]) for start in range(0, len(cells), _COLUMNS))]
        return "\n".join(lines)


def suggest_temperature(
    embeddings: Any, labels: Any, *, heuristic: RidgeHeuristic | None = None, seed: int = 0
) -> Suggestion:
    """Suggest the inverse temperature of a cosine classifier from statistics of its embeddings.

    Args:
        embeddings: Shape (n, dim), a tensor or an array.
        labels: Classes, shape (n,), whole numbers.
        heuristic: Another one than the one that comes with the package.
        seed: Of the rows that expensive statistics are computed on.

    Raises:
        ValueError: If an array is not as stated, holds fewer than two classes, or no class has two rows.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> found = suggest_temperature(*load_digits(return_X_y=True))
        >>> found.inverse_temperature, round(found.expected_loss, 3), found.inside, found.outside
        (35.0, 0.013, False, ('avg_kurtosis', 'pca_50'))
    """
    return suggestion(checked_rows(embeddings, labels), heuristic or shipped(), seed=seed)


def read_heuristic(path: Path) -> RidgeHeuristic:
    """A heuristic from a file, as a run of the pipeline leaves it.

    Raises:
        InputError: There is no such file, or it is no heuristic.
    """
    remedy = "Give results/PROFILE/classifier_temperature/heuristic.json."
    if not path.is_file():
        raise InputError("no such file", where=str(path), remedy=remedy)
    try:
        return RidgeHeuristic.model_validate_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"is no heuristic ({str(error)[:120]})", where=str(path), remedy=remedy) from error


def suggestion(rows: Rows, heuristic: RidgeHeuristic, *, seed: int, search: dict[str, Any] | None = None) -> Suggestion:
    """The suggestion for checked rows; see `suggest_temperature`."""
    statistics = describe(*rows, seed=seed)
    estimate = heuristic.predict(statistics)
    rules = {
        "heuristic": estimate.predicted,
        "best constant": heuristic.constant,
        "square root of dimension": math.sqrt(statistics["dim"]),
    }
    rule = "heuristic" if estimate.inside else "best constant"
    return Suggestion(
        inverse_temperature=estimate.inverse_temperature,
        expected_loss=heuristic.lost.get(rule, (math.nan,))[0],
        inside=estimate.inside,
        outside=estimate.outside,
        predicted=estimate.predicted,
        rules=rules,
        statistics=statistics,
        lost=heuristic.lost,
        study=f"{heuristic.n_pairs} pairs of {len(heuristic.datasets)} data sets and backbones",
        search=search,
    )


def checked_rows(embeddings: Any, labels: Any, classes: list[Any] | None = None) -> Rows:
    """Embeddings, shape (n, dim), float32, and classes, shape (n,), int64, numbered in the order of their labels."""
    values = np.asarray(embeddings.detach().cpu().float() if isinstance(embeddings, Tensor) else embeddings)
    names = np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)
    if values.ndim != 2 or values.dtype.kind != "f" or not np.isfinite(values).all():
        raise ValueError(f"embeddings must be finite floats of shape (n, dim), got {values.dtype} {values.shape}")
    if not values.any(axis=1).all():
        raise ValueError(f"embeddings have no direction in row {int((~values.any(axis=1)).argmax())}: all zero")
    if names.shape != (len(values),) or (names.dtype.kind == "f" and not (names == np.floor(names)).all()):
        raise ValueError(f"labels must be whole numbers of shape ({len(values)},), got {names.dtype} {names.shape}")
    known = np.unique(names) if classes is None else np.asarray(classes)
    if classes is None and not 2 <= len(known) < len(names):
        raise ValueError(f"labels hold {len(known)} classes in {len(names)} rows: give two classes, one with two rows")
    if unknown := sorted(set(names.tolist()) - set(known.tolist())):
        raise ValueError(f"test labels hold {unknown[0]}, a class that the training rows do not have")
    return torch.from_numpy(values.astype(np.float32)), torch.from_numpy(np.searchsorted(known, names).astype(np.int64))


def search_best(
    train: Rows, test: Rows | None, rules: Mapping[str, float], *, epochs: int, lr: float, seed: int, device: str
) -> dict[str, Any]:
    """The search that a suggestion saves: the grid of the paper and each rule's own value, trained at once.

    Args:
        train: Rows to train on.
        test: Rows to measure accuracy on; None holds out a quarter of every class.
        rules: By name, an inverse temperature.
        epochs: Passes over the training rows.
        lr: Learning rate.
        seed: Of held-out rows, initial weights and batches.
        device: Where to train.

    Returns:
        JSON values: `best_inverse_temperature`, `plateau`, `best_accuracy`, `standard_error`, `test_rows`, `epochs`,
        and `rules`: by name `inverse_temperature`, `accuracy`, `accuracy_lost`.
    """
    if test is None:
        held_out = torch.from_numpy(
            stratified_holdout(train[1].numpy(), HELD_OUT, generator_for(seed, "suggest", "held out"))
        )
        if not held_out.any():
            raise ValueError("no class has a second row to measure accuracy on")
        train, test = (train[0][~held_out], train[1][~held_out]), (train[0][held_out], train[1][held_out])
    batch = max(SMALLEST_BATCH, len(train[1]) // 10)
    settings: dict[str, Any] = {"epochs": epochs, "batch_size": batch, "lr": lr, "seed": seed, "device": device}
    found = train_temperature_grid(train, test, [*GRID, *rules.values()], **settings)
    searched = TemperatureGrid(GRID, found.curves[:, : len(GRID)], evaluated=len(test[1]))
    accuracies = found.accuracy.double().mean(0).tolist()
    best = max(accuracies[: len(GRID)])
    return {
        "best_inverse_temperature": searched.best_inverse_temperature,
        "plateau": list(searched.plateau),
        "best_accuracy": best,
        "standard_error": math.sqrt(best * (1 - best) / len(test[1])),
        "test_rows": len(test[1]),
        "epochs": epochs,
        "rules": {
            name: {"inverse_temperature": value, "accuracy": accuracy, "accuracy_lost": best - accuracy}
            for (name, value), accuracy in zip(rules.items(), accuracies[len(GRID) :], strict=True)
        },
    }


def _search_lines(found: dict[str, Any]) -> list[str]:
    low, high = found["plateau"]
    accuracy = f"{100 * found['best_accuracy']:.1f} ± {100 * found['standard_error']:.1f} %"
    best = f"{found['best_inverse_temperature']:g} ({low:g} to {high:g} do as well)"
    lines = [f"Searched {len(GRID)}: best at {best}, accuracy {accuracy} on {found['test_rows']:,} rows."]
    lines += [f"  {name}: {100 * one['accuracy_lost']:.1f} points lost" for name, one in found["rules"].items()]
    return lines
