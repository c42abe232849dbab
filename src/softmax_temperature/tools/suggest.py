"""A default inverse temperature for a cosine classifier on a user's own embeddings,
without a search or with one.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from softmax_temperature.cosine_classifier import (
    TemperatureGrid,
    train_temperature_grid,
)
from softmax_temperature.data.seeds import generator_for
from softmax_temperature.dataset_statistics import describe
from softmax_temperature.heuristic.pairs import SEARCHED
from softmax_temperature.heuristic.ridge import (
    CONSTANT,
    HEURISTIC,
    SQUARE_ROOT,
    RidgeHeuristic,
    shipped,
)
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_classes,
    check_count,
    check_embeddings,
)
from softmax_temperature.tools.arrays import (
    Arrays,
    Rows,
    as_numpy,
    check_frame,
    class_numbers,
    split_rows,
    whole_numbers,
)

# Of the rows, to measure accuracy on where there are no test rows.
HELD_OUT = 0.25
POINTS = 100  # Of a fraction.
SMALLEST_BATCH = 32


@dataclass(frozen=True)
class Suggestion:
    """The inverse temperature to use, and its cost: losses are points of accuracy
    against the best inverse temperature, as they are printed.
    """

    inverse_temperature: float  # Multiplies the cosines.
    # The rule used: whichever of "heuristic" and "best constant" loses less; or
    # "search".
    rule: str
    # Points of accuracy: mean over the data sets of the study, each left out of the fit.
    expected_loss: float
    # Whether all statistics lie in the range of the study; outside, the heuristic is
    # not used.
    inside: bool
    outside: tuple[str, ...]  # The statistics that do not.
    rules: dict[str, float]  # Every rule's value.
    # By rule: mean, 90th percentile and worst loss in the study, in points.
    lost: dict[str, tuple[float, ...]]
    statistics: dict[str, float]  # The 23 of the paper.
    study: str  # How many pairs of how many data sets it rests on.
    # `plateau`, `best_accuracy` and `standard_error` (fractions), `test_rows`, `epochs`;
    # `lost`: by rule, on these data, in points.
    search: dict[str, Any] | None = None

    def __str__(self) -> str:
        columns = ["points lost in the study: mean", "p90", "worst"]
        table = pd.DataFrame.from_dict(
            {rule: self.lost.get(rule, ()) for rule in self.rules},
            "index",
            columns=columns,
        )
        if search := self.search:
            table["here"] = search["lost"]
            low, high = search["plateau"]
            accuracy = f"{100 * search['best_accuracy']:.1f} ± {100 * search['standard_error']:.1f} %"
            head = f"{self.inverse_temperature:g}, the best of {len(SEARCHED)} that were searched "
            head += f"({low:g} to {high:g} do as well): accuracy {accuracy} on {search['test_rows']:,} rows."
        else:
            name = (
                "the heuristic's"
                if self.rule == "heuristic"
                else "the best constant of the study"
            )
            head = f"{self.inverse_temperature:.3g}, {name}: expected to lose {self.expected_loss:.1f} points of "
            head += "accuracy against the best one; "
            head += (
                "inside the fitted range."
                if self.inside
                else f"outside the fitted range ({', '.join(self.outside)})."
            )
        table = table.map(lambda lost: "" if pd.isna(lost) else f"{lost:.1f}")
        table.insert(0, "value", [f"{value:.3g}" for value in self.rules.values()])
        return f"Inverse temperature {head}\nThe study: {self.study}.\n\n{table}"


def suggest_temperature(
    embeddings: Any,
    labels: Any,
    *,
    heuristic: RidgeHeuristic | None = None,
    seed: int = 0,
) -> Suggestion:
    """Suggest the inverse temperature of a cosine classifier from statistics of its
    embeddings.

    Outside the range of the study that the heuristic was fitted on, the value is the
    best constant of that study.

    Args:
        embeddings: Shape (n, dim), a tensor or an array.
        labels: Classes, shape (n,), whole numbers.
        heuristic: Another one than the one that comes with the package.
        seed: Of the rows that expensive statistics are computed on.

    Raises:
        ValueError: If an array is not as stated, holds fewer than two classes, or no
            class has two rows.

    Examples:
        >>> from sklearn.datasets import load_digits
        >>> found = suggest_temperature(*load_digits(return_X_y=True))
        >>> found.inverse_temperature, round(found.expected_loss, 1), found.inside, found.outside
        (35.0, 1.5, False, ('avg_kurtosis', 'pca_50'))
    """
    seed = check_count(seed, "seed", least=0)
    if heuristic is not None and not isinstance(heuristic, RidgeHeuristic):
        raise TypeError(
            f"heuristic must be a RidgeHeuristic, got {type(heuristic).__name__}"
        )
    heuristic = heuristic or shipped()
    statistics = describe(*checked_rows(embeddings, labels), seed=seed)
    estimate = heuristic.predict(statistics)
    values = {HEURISTIC: estimate.predicted} if estimate.inside else {}
    values[CONSTANT] = heuristic.constant
    means = {rule: heuristic.lost.get(rule, (math.nan,))[0] for rule in values}
    rule = min(values, key=means.__getitem__)
    return Suggestion(
        inverse_temperature=values[rule],
        rule=rule,
        expected_loss=POINTS * means[rule],
        inside=estimate.inside,
        outside=estimate.outside,
        rules={**values, SQUARE_ROOT: math.sqrt(statistics["dim"])},
        lost={
            rule: tuple(POINTS * loss for loss in losses)
            for rule, losses in heuristic.lost.items()
        },
        statistics=statistics,
        study=f"{heuristic.n_pairs} pairs of a backbone and one of {len(heuristic.datasets)} data sets",
    )


def checked_rows(
    embeddings: Any, labels: Any, classes: torch.Tensor | None = None, name: str = ""
) -> Rows:
    """Embeddings, shape (n, dim), float32, and labels as classes, shape (n,), numbered
    in the order of `classes`.
    """
    check_frame(embeddings, labels, f"{name}embeddings")
    raw = as_numpy(embeddings)
    if raw.dtype.kind not in "fiu":
        raise ArgumentError(
            f"{name}embeddings must be numbers of shape (n, dim), "
            f"got {raw.dtype} {raw.shape}",
            "Give one row of numbers per sample.",
        )
    with np.errstate(over="ignore"):  # Refused in the next line.
        values = torch.from_numpy(raw.astype(np.float32))
    check_embeddings(values, f"{name}embeddings")
    raw_labels = as_numpy(labels)
    if raw_labels.shape == (values.shape[1],) != (len(values),):
        raise ArgumentError(
            f"{name}embeddings {tuple(values.shape)} look transposed: there are "
            f"{len(raw_labels)} labels",
            "Give one row per sample, (n, dim).",
        )
    numbers = class_numbers(raw_labels, values.shape, f"{name}labels")
    known = numbers.unique() if classes is None else classes
    if unknown := set(numbers.tolist()) - set(known.tolist()):
        raise ArgumentError(
            f"{name}labels hold {min(unknown)}, a class that the training rows do not "
            "have",
            "Leave its rows out, or number the classes alike.",
        )
    check_classes(
        rows := torch.searchsorted(known, numbers), len(values), f"{name}labels"
    )
    return values, rows


def checked_parts(train: Arrays, test: Arrays | None) -> tuple[Rows, Rows | None]:
    """Checked rows to train on, and to test on if there are any; both of the same
    dimensions and classes.
    """
    rows = checked_rows(train["embeddings"], train["labels"])
    if test is None:
        return rows, None
    held = checked_rows(
        test["embeddings"],
        test["labels"],
        whole_numbers(train["labels"], "labels").unique(),
        "test ",
    )
    if held[0].shape[1] != rows[0].shape[1]:
        raise ArgumentError(
            f"test embeddings have {held[0].shape[1]} dimensions, the others "
            f"{rows[0].shape[1]}",
            "Embed both with the same network.",
        )
    return rows, held


def searched(
    found: Suggestion,
    train: Rows,
    test: Rows | None,
    *,
    epochs: int,
    lr: float,
    seed: int,
    device: str,
) -> Suggestion:
    """The suggestion led by the best of the paper's grid, which is trained beside each
    rule's own value.

    Accuracy is that on the test rows; None holds out a random quarter of the training
    rows, and leaves one of each class. Raises ValueError if there is no row to measure it on, or training
    diverges.
    """
    if test is None:
        generator = generator_for(seed, "suggest", "held out")
        train, test = split_rows(train, HELD_OUT, generator, every_class=True)
        if not len(test[1]):
            raise ArgumentError(
                "labels: no class has a second row to measure accuracy on",
                "Give more rows, or test rows.",
            )
    batch = max(SMALLEST_BATCH, len(train[1]) // 10)
    settings: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch,
        "lr": lr,
        "seed": seed,
        "device": device,
    }
    grid = train_temperature_grid(
        train, test, [*SEARCHED, *found.rules.values()], **settings
    )
    best = TemperatureGrid(
        SEARCHED, grid.curves[:, : len(SEARCHED)], evaluated=len(test[1])
    )
    accuracies = grid.accuracy.double().mean(0).tolist()
    highest = max(accuracies[: len(SEARCHED)])
    search = {
        "plateau": list(best.plateau),
        "best_accuracy": highest,
        "standard_error": math.sqrt(highest * (1 - highest) / len(test[1])),
        "test_rows": len(test[1]),
        "epochs": epochs,
        "lost": {
            rule: POINTS * (highest - one)
            for rule, one in zip(found.rules, accuracies[len(SEARCHED) :], strict=True)
        },
    }
    return replace(
        found,
        inverse_temperature=best.best_inverse_temperature,
        rule="search",
        search=search,
    )
