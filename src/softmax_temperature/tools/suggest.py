"""A default inverse temperature for a cosine classifier on a user's own embeddings, without a search or with one."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from softmax_temperature.cosine_classifier import TemperatureGrid, train_temperature_grid
from softmax_temperature.data.seeds import generator_for
from softmax_temperature.dataset_statistics import describe
from softmax_temperature.heuristic.ridge import RidgeHeuristic, shipped
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.arrays import Arrays, Rows, as_numpy, read_rows, split_rows

HELD_OUT = 0.25  # Of every class, to measure accuracy on where there are no test rows.
GRID = (1.0, *map(float, range(5, 251, 5)))  # Section 4.3.
SMALLEST_BATCH = 32
_FORM = "Embeddings are floats of shape (n, dim), labels whole numbers of shape (n,)."


@dataclass(frozen=True)
class Suggestion:
    """What to use, and what it is worth; losses are fractions of accuracy, against the best inverse temperature."""

    inverse_temperature: float  # Multiplies the cosines.
    rule: str  # The rule used: whichever of "heuristic" and "best constant" loses less; or "search".
    expected_loss: float  # Mean over the data sets of the study, each left out of the fit.
    inside: bool  # Whether all statistics lie in the range of the study; outside, the heuristic is not used.
    outside: tuple[str, ...]  # The statistics that do not.
    rules: dict[str, float]  # Every rule's value.
    lost: dict[str, tuple[float, float, float]]  # By rule: mean, 90th percentile and worst loss in the study.
    statistics: dict[str, float]  # The 23 of the paper.
    study: str  # How many pairs of how many data sets it rests on.
    # `plateau`, `best_accuracy`, `standard_error`, `test_rows`, `epochs`; `lost`: by rule, on these data.
    search: dict[str, Any] | None = None

    def __str__(self) -> str:
        here = {rule: (lost,) for rule, lost in self.search["lost"].items()} if self.search else {}
        rows = {
            rule: [f"{value:.3g}", *(f"{100 * lost:.1f}" for lost in (*self.lost.get(rule, ()), *here.get(rule, ())))]
            for rule, value in self.rules.items()
        }
        columns = ["value", "points lost in the study: mean", "p90", "worst", *["here"][: len(here)]]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).to_string()
        if self.search:
            low, high = self.search["plateau"]
            accuracy = f"{100 * self.search['best_accuracy']:.1f} ± {100 * self.search['standard_error']:.1f} %"
            head = f"{self.inverse_temperature:g}, the best of {len(GRID)} that were searched "
            head += f"({low:g} to {high:g} do as well): accuracy {accuracy} on {self.search['test_rows']:,} rows."
        else:
            name = "the heuristic's" if self.rule == "heuristic" else "the best constant of the study"
            place = (
                "inside the fitted range" if self.inside else f"outside the fitted range ({', '.join(self.outside)})"
            )
            head = f"{self.inverse_temperature:.3g}, {name}: expected to lose {100 * self.expected_loss:.1f} points of "
            head += f"accuracy against the best one; {place}."
        return f"Inverse temperature {head}\nThe study: {self.study}.\n\n{table}"


def suggest_temperature(
    embeddings: Any, labels: Any, *, heuristic: RidgeHeuristic | None = None, seed: int = 0
) -> Suggestion:
    """Suggest the inverse temperature of a cosine classifier from statistics of its embeddings.

    Outside the range of the study that the heuristic was fitted on, the value is the best constant of that study.

    Args:
        embeddings: Shape (n, dim), a tensor or an array.
        labels: Classes, shape (n,), whole numbers.
        heuristic: Another one than the one that comes with the package.
        seed: Of the rows that expensive statistics are computed on.

    Raises:
        ValueError: If an array is not as stated, holds fewer than two classes, or no class has two rows.

    Examples:
        >>> from sklearn.datasets import load_digits
        >>> found = suggest_temperature(*load_digits(return_X_y=True))
        >>> found.inverse_temperature, round(found.expected_loss, 3), found.inside, found.outside
        (35.0, 0.013, False, ('avg_kurtosis', 'pca_50'))
    """
    heuristic = heuristic or shipped()
    statistics = describe(*checked_rows(embeddings, labels), seed=seed)
    estimate = heuristic.predict(statistics)
    values = {"heuristic": estimate.predicted, "best constant": heuristic.constant}
    if not estimate.inside:
        del values["heuristic"]
    means = {rule: heuristic.lost.get(rule, (math.nan,))[0] for rule in values}
    rule = min(values, key=lambda rule: means[rule])
    return Suggestion(
        inverse_temperature=values[rule],
        rule=rule,
        expected_loss=means[rule],
        inside=estimate.inside,
        outside=estimate.outside,
        rules={**values, "square root of dimension": math.sqrt(statistics["dim"])},
        lost=heuristic.lost,
        statistics=statistics,
        study=f"{heuristic.n_pairs} pairs of {len(heuristic.datasets)} data sets and backbones",
    )


def read_heuristic(path: Path) -> RidgeHeuristic:
    """A heuristic from a file, as a run of the pipeline leaves it."""
    try:
        return RidgeHeuristic.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        remedy = "Give results/PROFILE/classifier_temperature/heuristic.json."
        raise InputError(f"is no heuristic ({str(error)[:120]})", where=str(path), remedy=remedy) from error


def checked_rows(embeddings: Any, labels: Any, classes: list[Any] | None = None) -> Rows:
    """Embeddings, shape (n, dim), float32, and classes, shape (n,), int64, numbered in the order of their labels."""
    values, names = as_numpy(embeddings), as_numpy(labels)
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


def checked_parts(train: Arrays, test: Arrays | None, where: str) -> tuple[Rows, Rows | None]:
    """Checked rows to train on, and to test on if there are any; raises InputError, naming the file or folder."""
    try:
        rows = checked_rows(train["embeddings"], train["labels"])
        held = test and checked_rows(test["embeddings"], test["labels"], np.unique(train["labels"]).tolist())
    except ValueError as error:
        raise InputError(str(error), where=where, remedy=_FORM) from error
    if held and held[0].shape[1] != rows[0].shape[1]:
        what = f"test embeddings have {held[0].shape[1]} dimensions, the others {rows[0].shape[1]}"
        raise InputError(what, where=where, remedy="Give embeddings of one backbone.")
    return rows, held or None


def rows_of_files(
    embeddings: Path, labels: Path | None = None, test: Path | None = None, test_labels: Path | None = None
) -> tuple[Rows, Rows | None]:
    """Rows to describe and train on, and rows to test on if there are any; see `arrays.read_rows`."""
    return checked_parts(*read_rows("embeddings", embeddings, labels, "test", test, test_labels), str(embeddings))


def searched(
    found: Suggestion, train: Rows, test: Rows | None, *, epochs: int, lr: float, seed: int, device: str
) -> Suggestion:
    """The suggestion led by the best of the paper's grid, which is trained beside each rule's own value.

    Accuracy is that on the test rows; None holds out a quarter of every class of the training rows. Raises ValueError
    if there is no row to measure it on, or training diverges.
    """
    if test is None:
        train, test = split_rows(train, HELD_OUT, generator_for(seed, "suggest", "held out"))
        if not len(test[1]):
            raise ValueError("no class has a second row to measure accuracy on")
    batch = max(SMALLEST_BATCH, len(train[1]) // 10)
    settings: dict[str, Any] = {"epochs": epochs, "batch_size": batch, "lr": lr, "seed": seed, "device": device}
    grid = train_temperature_grid(train, test, [*GRID, *found.rules.values()], **settings)
    searched = TemperatureGrid(GRID, grid.curves[:, : len(GRID)], evaluated=len(test[1]))
    accuracies = grid.accuracy.double().mean(0).tolist()
    best = max(accuracies[: len(GRID)])
    error = math.sqrt(best * (1 - best) / len(test[1]))
    search = {"plateau": list(searched.plateau), "best_accuracy": best, "standard_error": error}
    lost = {rule: best - one for rule, one in zip(found.rules, accuracies[len(GRID) :], strict=True)}
    search |= {"test_rows": len(test[1]), "epochs": epochs, "lost": lost}
    return replace(found, inverse_temperature=searched.best_inverse_temperature, rule="search", search=search)
