"""The inverse temperature of a cosine classifier on a user's own embeddings."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from softmax_temperature.cosine_classifier import (
    TemperatureGrid,
    train_temperature_grid,
)
from softmax_temperature.cosine_classifier.trainer import normalise
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
from softmax_temperature.metrics.label_column import check_no_label_column
from softmax_temperature.tools.arrays import (
    NESTED_REMEDY,
    Arrays,
    Rows,
    as_numpy,
    check_exact_labels,
    check_frame,
    check_not_sparse,
    check_other_rows,
    class_numbers,
    split_rows,
)
from softmax_temperature.tools.columns import is_nested
from softmax_temperature.tools.label_leaks import check_no_leak

# Fraction of the rows that are held out to measure accuracy if there are no test rows.
HELD_OUT = 0.25
# Factor from fractions to percentage points.
POINTS = 100
SMALLEST_BATCH = 32
# The function that searches, for users of Python.
SEARCH = "cosine_classifier.train_temperature_grid"
# Embeddings count as lying on one line if their float32 directions deviate from it by
# less than this.
ON_LINE = 1e-6
# Labels count as no better than chance if at least one of this many permutations
# separates the embeddings equally well. Fewer than `FEWEST_JUDGED` rows are not judged.
# Of many rows, only a part is judged: at most `MOST_OF_CLASS` of a class, and
# `MOST_JUDGED` in total.
PERMUTATIONS = 99
FEWEST_JUDGED = 20
MOST_OF_CLASS = 50
MOST_JUDGED = 2000
NOT_SEPARATED = (
    "The labels do not separate the embeddings better than chance: check that both are "
    "in the same order."
)


@dataclass(frozen=True)
class Suggestion:
    """The suggested inverse temperature, and the accuracy that it is expected to lose.

    A loss is the accuracy at the best inverse temperature minus the accuracy at the
    value of a rule, in percentage points.

    Attributes:
        inverse_temperature: The suggested value, which multiplies the cosines.
        rule: The rule used: "search" after a search; otherwise "best constant" outside
            the range, and inside it "heuristic" or "best constant", whichever loses
            less in the study.
        expected_loss: Mean loss, in the study, of the rule that is suggested without a
            search. If the given embeddings lie inside the range, this is the mean over
            the pairs inside it, and otherwise over the pairs outside it; if the
            heuristic does not distinguish the two kinds, it is the mean over all pairs.
            Each pair's data set is left out of the fit and of the range.
        inside: Whether all statistics lie in the range of the study; if not, the
            heuristic is not used.
        outside: Names of the statistics outside that range.
        rules: The inverse temperature that each rule gives, keyed by rule.
        lost: Mean, 90th percentile and worst loss over the same pairs, keyed by rule.
        statistics: The 23 statistics of the paper.
        study: A text with the numbers of pairs and of data sets in the study, and the
            number of pairs behind the losses.
        search: Results of the search: `plateau`, `best_accuracy` and `standard_error`
            (fractions), `test_rows`, `epochs`, and `lost`, the loss by rule on the
            user's data. None if there was no search.
        separated: Whether the labels separate the embeddings better than labels in
            random order do.
    """

    inverse_temperature: float
    rule: str
    expected_loss: float
    inside: bool
    outside: tuple[str, ...]
    rules: dict[str, float]
    lost: dict[str, tuple[float, ...]]
    statistics: dict[str, float]
    study: str
    search: dict[str, Any] | None = None
    separated: bool = True

    def __str__(self) -> str:
        table = pd.DataFrame.from_dict(
            {rule: self.lost.get(rule, ()) for rule in self.rules},
            orient="index",
            columns=["points lost in the study: mean", "p90", "worst"],
        )
        if self.search is None:
            headline = self._headline_of_rule()
        else:
            headline = self._headline_of_search(self.search)
            table["here"] = self.search["lost"]
        table = table.map(lambda lost: "" if pd.isna(lost) else f"{lost:.1f}")
        table.insert(0, "value", [f"{value:.3g}" for value in self.rules.values()])
        if not self.separated:
            headline += f" {NOT_SEPARATED}"
        return f"Inverse temperature {headline}\nThe study: {self.study}.\n\n{table}"

    def _headline_of_rule(self) -> str:
        name = "the best constant of the study"
        if self.rule == HEURISTIC:
            name = "the heuristic's"
        fitted_range = "inside the fitted range"
        advice = ""
        if not self.inside:
            advice = f" A search may find a better value: try {SEARCH}."
            fitted_range = f"outside the fitted range ({', '.join(self.outside)})"
        return (
            f"{self.inverse_temperature:.3g}, {name}: expected to lose "
            f"{self.expected_loss:.1f} points of accuracy against the best one; "
            f"{fitted_range}.{advice}"
        )

    def _headline_of_search(self, search: dict[str, Any]) -> str:
        low, high = search["plateau"]
        accuracy = f"{100 * search['best_accuracy']:.1f}"
        error = f"{100 * search['standard_error']:.1f}"
        return (
            f"{self.inverse_temperature:g}, the best of {len(SEARCHED)} that were "
            f"searched ({low:g} to {high:g} do as well): accuracy {accuracy} +/- "
            f"{error} % on {search['test_rows']:,} rows."
        )


def suggest_temperature(
    embeddings: Any,
    labels: Any,
    *,
    heuristic: RidgeHeuristic | None = None,
    seed: int = 0,
) -> Suggestion:
    """Suggest the inverse temperature of a cosine classifier for given embeddings.

    The heuristic predicts the value from statistics of the embeddings. If a statistic
    lies outside the range of the study that the heuristic was fitted on, the suggestion
    is the best constant of that study. The constant is also suggested if it loses less
    accuracy in the study than the heuristic.

    Args:
        embeddings: A tensor or an array of shape (n, dim).
        labels: Classes as whole numbers of shape (n,).
        heuristic: Replaces the heuristic that comes with the package.
        seed: Seed of the random rows used for expensive statistics.

    Raises:
        ValueError: If an array is malformed, there are fewer than two classes, no class
            has two rows, or all embeddings point in one direction or its opposite.
        TypeError: If `heuristic` is not a RidgeHeuristic.

    Examples:
        >>> from sklearn.datasets import load_digits
        >>> suggestion = suggest_temperature(*load_digits(return_X_y=True))
        >>> suggestion.inverse_temperature, round(suggestion.expected_loss, 1)
        (30.0, 1.8)
        >>> suggestion.inside, suggestion.outside
        (False, ('pca_50',))
    """
    seed = check_count(seed, "seed", least=0)
    if heuristic is not None and not isinstance(heuristic, RidgeHeuristic):
        raise TypeError(
            f"heuristic must be a RidgeHeuristic, got {type(heuristic).__name__}"
        )
    heuristic = heuristic or shipped()
    rows = checked_rows(embeddings, labels)
    statistics = describe(*rows, seed=seed)
    _check_directions(rows[0])
    estimate = heuristic.predict(statistics)
    values = {}
    if estimate.inside:
        values[HEURISTIC] = estimate.predicted
    values[CONSTANT] = heuristic.constant
    lost, study = _losses(heuristic, inside=estimate.inside)
    means = {rule: lost.get(rule, (math.nan,))[0] for rule in values}
    rule = min(values, key=means.__getitem__)
    return Suggestion(
        inverse_temperature=values[rule],
        rule=rule,
        expected_loss=POINTS * means[rule],
        inside=estimate.inside,
        outside=estimate.outside,
        rules={**values, SQUARE_ROOT: math.sqrt(statistics["dim"])},
        lost={
            name: tuple(POINTS * loss for loss in losses)
            for name, losses in lost.items()
        },
        statistics=statistics,
        study=study,
        separated=_are_separated(*rows),
    )


def _are_separated(embeddings: torch.Tensor, labels: torch.Tensor) -> bool:
    """Whether the labels separate the embeddings better than their permutations do.

    The measure is the scatter of the class means of the normalised embeddings, which
    orders permutations like an F statistic. Classes with one row are not judged.
    """
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(labels), generator=generator)
    # Put the classes in random order, too, and count the rows within each class.
    classes = torch.randperm(int(labels.max()) + 1, generator=generator)[labels[order]]
    classes, places = classes.sort(stable=True)
    counts = classes.bincount()
    starts = counts.cumsum(0) - counts
    ranks = torch.arange(len(classes)) - starts[classes]
    chosen = (counts[classes] > 1) & (ranks < MOST_OF_CLASS)
    rows = order[places[chosen]][:MOST_JUDGED]
    kinds, numbers, sizes = labels[rows].unique(return_inverse=True, return_counts=True)
    if len(rows) < FEWEST_JUDGED or len(kinds) < 2:
        return True
    units = normalise(embeddings[rows])
    units = units - units.mean(dim=0)

    def scatter(numbers: torch.Tensor) -> float:
        sums = units.new_zeros(len(kinds), units.shape[1])
        sums.index_add_(0, numbers, units)
        return float((sums.square().sum(dim=1) / sizes).sum())

    return scatter(numbers) > max(
        scatter(numbers[torch.randperm(len(rows), generator=generator)])
        for _ in range(PERMUTATIONS)
    )


def _losses(
    heuristic: RidgeHeuristic, *, inside: bool
) -> tuple[dict[str, tuple[float, float, float]], str]:
    """Each rule's losses on pairs inside or outside the range, and the study as text.

    If the heuristic does not separate these pairs, the losses are those on all pairs.
    """
    datasets = len(heuristic.datasets)
    study = f"{heuristic.n_pairs} pairs of a backbone and one of {datasets} data sets"
    side = heuristic.inside if inside else heuristic.outside
    if side is None:
        return heuristic.lost, study
    where = "inside" if inside else "outside"
    return side.lost, (
        f"{study}; losses are of the {side.pairs} pairs {where} the range of the others"
    )


def checked_rows(
    embeddings: Any, labels: Any, classes: torch.Tensor | None = None, name: str = ""
) -> Rows:
    """Check embeddings and labels, and return them as tensors.

    Args:
        embeddings: Numbers of shape (n, dim).
        labels: Whole numbers of shape (n,), or one-hot.
        classes: Sorted labels that class indices refer to; by default all labels in
            `labels`.
        name: Prefix of the arguments' names in messages.

    Returns:
        Float32 embeddings of shape (n, dim), and class indices of shape (n,).

    Raises:
        ValueError: If an array is malformed, or a label is not in `classes`.
    """
    check_not_sparse(embeddings, f"{name}embeddings")
    check_not_sparse(labels, f"{name}labels")
    check_frame(embeddings, labels, f"{name}embeddings", classes=False)
    raw = as_numpy(embeddings)
    if raw.dtype.kind not in "fiu":
        raise ArgumentError(
            f"{name}embeddings must be numbers of shape (n, dim), "
            f"got {raw.dtype} {raw.shape}",
            NESTED_REMEDY if is_nested(raw) else "Give one row of numbers per sample.",
        )
    # Numbers that are too large for float32 become infinite, and are refused below.
    with np.errstate(over="ignore"):
        values = torch.from_numpy(raw.astype(np.float32))
    largest = float(np.abs(raw).max(initial=0))
    if largest > torch.finfo(values.dtype).max and np.isfinite(largest):
        raise ArgumentError(
            f"{name}embeddings must fit float32, got {largest:.3g}",
            "Divide all of them by one number, which leaves their cosines as they are.",
        )
    check_embeddings(values, f"{name}embeddings")
    check_exact_labels(labels, f"{name}labels")
    raw_labels = as_numpy(labels)
    if raw_labels.shape == (values.shape[1],) != (len(values),):
        raise ArgumentError(
            f"{name}embeddings of shape {tuple(values.shape)} look transposed, "
            f"because there are {len(raw_labels)} labels",
            "Give one row per sample, (n, dim).",
        )
    numbers = _class_numbers(raw_labels, len(values), f"{name}labels")
    check_no_label_column(values, numbers, f"{name}embeddings")
    arrays = (values.numpy(), numbers.numpy())
    check_no_leak(*arrays, f"{name}embeddings", classes=False)
    # -1 is a class only if the other label is 1. Otherwise it means "no class", like
    # -100.
    if bool((numbers < 0).any()) and numbers.unique().tolist() != [-1, 1]:
        raise ArgumentError(
            f"{name}labels must not be negative, got {int(numbers.min())}",
            "Remove rows without a class.",
        )
    if classes is None:
        classes = numbers.unique()
    unknown = set(numbers.tolist()) - set(classes.tolist())
    if unknown:
        raise ArgumentError(
            f"{name}labels hold {min(unknown)}, a class that the training rows do not "
            "have",
            "Remove its rows, or number the classes the same way.",
        )
    indices = torch.searchsorted(classes, numbers)
    check_classes(indices, len(values), f"{name}labels")
    return values, indices


def _class_numbers(labels: NDArray[Any], rows: int, name: str) -> torch.Tensor:
    """Call `class_numbers` for labels of embeddings, which have no column per class."""
    shape = labels.shape if labels.ndim == 2 else (rows,)
    return class_numbers(labels, shape, name)


def _check_directions(embeddings: torch.Tensor) -> None:
    """Refuse embeddings on one line, such as constant rows or single numbers.

    The cosine of any two such embeddings is 1 or -1, so at most two classes can be told
    apart, whatever the inverse temperature.
    """
    units = normalise(embeddings)
    first = units[0]
    from_line = torch.addr(units, units @ first, first, alpha=-1)
    if from_line.abs_().max().item() < ON_LINE:
        raise ArgumentError(
            f"embeddings of shape {tuple(embeddings.shape)} all lie on one line, so "
            "their cosines cannot separate classes",
            "Give the outputs of a trained layer, at least two numbers per sample.",
        )


def checked_parts(train: Arrays, test: Arrays | None) -> tuple[Rows, Rows | None]:
    """Check the training rows and, if given, the test rows, and return them.

    The test rows may only have classes that the training rows have.
    """
    train_rows = checked_rows(train["embeddings"], train["labels"])
    if test is None:
        return train_rows, None
    labels = as_numpy(train["labels"])
    classes = _class_numbers(labels, len(train_rows[0]), "labels").unique()
    test_rows = checked_rows(test["embeddings"], test["labels"], classes, "test ")
    train_dimensions = train_rows[0].shape[1]
    test_dimensions = test_rows[0].shape[1]
    if test_dimensions != train_dimensions:
        raise ArgumentError(
            f"test embeddings have {test_dimensions} dimensions, but training "
            f"embeddings have {train_dimensions}",
            "Embed both with the same network.",
        )
    check_other_rows(
        test_rows[0],
        train_rows[0],
        names=("test embeddings", "embeddings to train on"),
        remedy="Give other test rows, or none; then a quarter of the training rows is "
        "held out.",
    )
    return train_rows, test_rows


def searched(
    suggestion: Suggestion,
    train: Rows,
    test: Rows | None,
    *,
    epochs: int,
    lr: float,
    seed: int,
    device: str,
) -> Suggestion:
    """Return `suggestion` with the best value that a search finds on the paper's grid.

    Cosine classifiers are trained at all values of the grid and at the value of each
    rule. Accuracy is measured on the test rows, or else on a random quarter of the
    training rows, which leaves at least one row of each class for training.

    Args:
        suggestion: The suggestion without a search.
        train: Embeddings (n, dim) and class indices (n,).
        test: Rows to measure accuracy on, or None.
        epochs: Training epochs.
        lr: Learning rate.
        seed: Seed for holding out rows and for training.
        device: Device to train on.

    Raises:
        ValueError: If there is no row to measure accuracy on, or training diverges.
    """
    if test is None:
        generator = generator_for(seed, "suggest", "held out")
        train, test = split_rows(train, HELD_OUT, generator, every_class=True)
        if not len(test[1]):
            raise ArgumentError(
                "labels: every class has only one row, so none can be held out to "
                "measure accuracy",
                "Give more rows per class, or separate test rows.",
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
        train, test, [*SEARCHED, *suggestion.rules.values()], **settings
    )
    test_rows = len(test[1])
    best = TemperatureGrid(
        SEARCHED, grid.curves[:, : len(SEARCHED)], evaluated=test_rows
    )
    accuracies = grid.accuracy.double().mean(0).tolist()
    highest = max(accuracies[: len(SEARCHED)])
    of_rules = accuracies[len(SEARCHED) :]
    search = {
        "plateau": list(best.plateau),
        "best_accuracy": highest,
        "standard_error": math.sqrt(highest * (1 - highest) / test_rows),
        "test_rows": test_rows,
        "epochs": epochs,
        "lost": {
            rule: POINTS * (highest - accuracy)
            for rule, accuracy in zip(suggestion.rules, of_rules, strict=True)
        },
    }
    return replace(
        suggestion,
        inverse_temperature=best.best_inverse_temperature,
        rule="search",
        search=search,
    )
