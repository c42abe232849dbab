"""Rows that alone decide a fitted temperature, such as rows that have diverged."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softmax_temperature.scaling import (
    TemperatureFit,
    sandwich_interval,
    search_temperature,
)
from softmax_temperature.tools.arrays import as_numpy

# At most this share of the rows can be decisive, but one row always can.
MOST_DECISIVE = 0.01
# In a decisive row, the label's logit is this many times as far below the row's largest
# logit as in the rows that cannot be decisive, and as the median logit is in a typical
# row.
FAR = 10


def decisive_rows(
    logits: Tensor, labels: Tensor, fit: TemperatureFit
) -> tuple[Tensor, str]:
    """Find the rows that alone decide the temperature of `fit`, and explain why.

    These rows are few. The logits of their labels are by far the furthest below the
    largest logits of their rows. The temperature fitted without these rows is outside
    the interval of `fit`, or `fit` has no interval.

    Args:
        logits: The fitted logits, shape (n, classes).
        labels: The fitted labels, shape (n,).
        fit: The fit by likelihood.

    Returns:
        The indices of the rows, largest distance first, and the explanation. If no rows
        are decisive, there are no indices, and the explanation is "".
    """
    distances = _distances(logits, labels)
    chosen = _far(distances, logits)
    if fit.separable or not len(chosen) or not _decide(chosen, logits, labels, fit):
        return chosen[:0], ""
    furthest = distances[chosen[0]].item()
    distances[chosen] = 0
    return chosen, (
        f"the logit of its label is {furthest:.3g} below the largest of the row, and "
        f"in other rows at most {distances.max().item():.3g}"
    )


def _distances(logits: Tensor, labels: Tensor) -> Tensor:
    """The distance of each label's logit below its row's largest logit, shape (n,)."""
    of_labels = logits.gather(1, labels[:, None]).squeeze(1)
    return logits.amax(dim=1).double() - of_labels.double()


def _far(distances: Tensor, logits: Tensor) -> Tensor:
    """The few rows with by far the largest distances, largest first."""
    most = max(1, int(MOST_DECISIVE * len(distances)))
    if len(distances) <= most:
        return distances.new_empty(0, dtype=torch.int64)
    highest, rows = distances.topk(most + 1)
    chosen = highest > FAR * highest[-1]
    if bool(chosen.any()):
        # If nearly all rows are predicted correctly, some label's logit is always far
        # below the largest compared with the labels of the other rows.
        ranges = logits.amax(dim=1) - logits.median(dim=1).values
        chosen &= highest > FAR * ranges.median().item()
    return rows[chosen]


def _decide(
    chosen: Tensor, logits: Tensor, labels: Tensor, fit: TemperatureFit
) -> bool:
    """Whether the temperature clearly changes if the `chosen` rows are left out."""
    rest = torch.ones(len(labels), dtype=torch.bool)
    rest[chosen] = False
    if bool((labels[rest] == labels[rest][0]).all()):
        return False
    without = search_temperature(logits[rest], labels[rest])
    if fit.at_bound:
        return without.separable or not without.at_bound
    low, high = sandwich_interval(logits, labels, fit.temperature)
    inside = high < math.inf and low <= without.temperature <= high
    return not (inside or without.at_bound)


def explained_rows(rows: Tensor, reason: str, place: str) -> str:
    """A sentence that says which rows decide the temperature.

    Args:
        rows: The rows' indices.
        reason: Why they decide it; see `decisive_rows`.
        place: The first row's place in the user's data.
    """
    if len(rows) == 1:
        return (
            f"{place[0].upper()}{place[1:]} alone decides the temperature: {reason}. "
            "Check it, or leave it out."
        )
    return (
        f"{len(rows)} rows alone decide the temperature. The first is {place}: "
        f"{reason}. Check them, or leave them out."
    )


def place_of(row: Tensor, logits: Any) -> str:
    """The place of a row in the user's logits, in words.

    Args:
        row: The row's logits, shape (classes,).
        logits: The user's logits, of shape (n, classes, ...), or of shape (n,) or
            (n, 1) with the logit of class 1 of two classes.
    """
    values = as_numpy(logits)
    single = values.ndim == 1 or values.shape[1] == 1
    classes = 1 if single else values.shape[1]
    table = values.reshape(-1, 1)
    if not single:
        table = np.moveaxis(values, 1, -1).reshape(-1, classes)
    found = np.flatnonzero((table == row.numpy()[-classes:]).all(axis=1))
    if not len(found):
        return "a row"
    if values.ndim <= 2:
        return f"row {found[0]}"
    image, *pixel = np.unravel_index(found[0], (len(values), *values.shape[2:]))
    return f"row {image}, pixel {tuple(map(int, pixel))}"
