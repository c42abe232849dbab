"""Calibration of next-token predictions over temperatures (focal paper, appendix K)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softmax_temperature.metrics.binning import CHUNK, binned_sums, equal_width_bins
from softmax_temperature.scaling import TEMPERATURE_GRID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BINS = 15


# Deviation: what the calibration error of a translation is of, the paper does not say. Here, as Müller et al. (2019)
# have it, it is that of the next token given the true tokens before it, over all target tokens and the sentence's end.


def calibration_by_temperature(
    batches: Iterable[tuple[Tensor, Tensor]], temperatures: Sequence[float]
) -> list[dict[str, Any]]:
    """What each temperature does to the calibration of predictions that are too many for the memory.

    Args:
        batches: logits (n, classes) and labels (n,); read once.
        temperatures: divide the logits; finite and positive.

    Returns:
        A row for each temperature: `temperature`, `ece` (15 bins, a fraction), `nll` (mean, nats), and the same on each
        row, `accuracy` (the first largest logit predicts) and `tokens`.
    """
    gaps = torch.zeros(len(temperatures), BINS, dtype=torch.float64)
    losses = torch.zeros(len(temperatures), dtype=torch.float64)
    right = count = 0
    for logits, labels in batches:
        for some, truth in _pieces(logits, labels):
            margins = some.double() - some.double().amax(dim=1, keepdim=True)
            correct = (some.argmax(dim=1) == truth).double()
            of_label = margins.gather(1, truth[:, None]).squeeze(1)
            right, count = right + int(correct.sum()), count + len(truth)
            for number, temperature in enumerate(temperatures):
                sums = torch.exp(margins / temperature).sum(dim=1)
                # The predicted class has margin 0.
                confidences = 1 / sums
                gaps[number] += binned_sums(equal_width_bins(confidences, BINS), correct - confidences, BINS).cpu()
                losses[number] += (sums.log() - of_label / temperature).sum().cpu()
    return [
        {"temperature": temperature, "ece": ece / count, "nll": nll / count, "accuracy": right / count, "tokens": count}
        for temperature, ece, nll in zip(temperatures, gaps.abs().sum(1).tolist(), losses.tolist(), strict=True)
    ]


def best_temperature(rows: Iterable[dict[str, Any]]) -> float:
    """The temperature of the paper's grid, 0.1 to 10.0, with the least calibration error; the first of equal ones.

    Args:
        rows: of one split, as `calibration_by_temperature` returns them; the grid's are among them.
    """
    on_grid = [row for row in rows if row["temperature"] in TEMPERATURE_GRID]
    best: float = min(on_grid, key=lambda row: row["ece"])["temperature"]
    return best


def _pieces(logits: Tensor, labels: Tensor) -> Iterable[tuple[Tensor, Tensor]]:
    """Rows in groups that bound the temporaries."""
    rows = max(1, CHUNK // logits.shape[1])
    return zip(logits.split(rows), labels.split(rows), strict=True)
