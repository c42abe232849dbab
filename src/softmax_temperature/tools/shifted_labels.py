"""Refuse labels that are shifted by one row, or by one token of a sequence."""

import math

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import (
    CLEAR_DIFFERENCE,
    SHIFTED_RATIO,
    ArgumentError,
)
from softmax_temperature.metrics.probability_check import FEW_ROWS

# The predictions must match the shifted labels at least `SHIFTED_RATIO` times as often
# as the labels as given, and as labels in random order. The lead of the shifted labels
# must also be this many standard deviations. This number is large because neighbouring
# rows may depend on each other.
CLEAR_SHIFT = 2 * CLEAR_DIFFERENCE
# Labels are refused only if the accuracy on the labels as given exceeds chance by at
# most this share of the amount by which the accuracy on the shifted labels does. A
# model that often repeats the previous label is thus accepted unless it is hardly
# better than chance.
MOST_KEPT = 1 / 8


def check_not_late(labels: Tensor, scores: Tensor, name: str, *, tokens: bool) -> None:
    """Refuse labels that agree with the scores of the previous or the next row.

    If the labels of a language model were not shifted, they agree with the scores of
    the previous token. Two classes are not judged, because a bad model of alternating
    labels may mistake each for the other.

    Args:
        labels: Shape (n,), in [0, classes).
        scores: Logits or probabilities, shape (n, classes), in their order in the data.
        name: Name of the labels in messages.
        tokens: Whether the rows are tokens, taken from scores of shape (n, classes, T).
    """
    rows, classes = scores.shape
    if rows <= FEW_ROWS or classes == 2:
        return
    numbers = labels.long()
    predicted = scores.detach().argmax(dim=1)
    right = int((predicted == numbers).sum())
    shares = torch.bincount(numbers, minlength=classes).double()
    guesses = torch.bincount(predicted, minlength=classes).double()
    by_chance = (shares @ guesses).item() / rows
    for before in (True, False):
        pair = (
            (predicted[:-1], numbers[1:]) if before else (predicted[1:], numbers[:-1])
        )
        shifted = int((pair[0] == pair[1]).sum())
        if (
            shifted >= SHIFTED_RATIO * max(right, by_chance)
            and shifted - right > CLEAR_SHIFT * math.sqrt(shifted + right)
            and right - by_chance <= MOST_KEPT * (shifted - by_chance)
        ):
            given = 100 * right / rows
            raise _late(given, 100 * shifted / (rows - 1), name, before, tokens)


def _late(
    given: float, shifted: float, name: str, before: bool, tokens: bool
) -> ArgumentError:
    """The error for labels that match `given` percent of the predictions."""
    place = f"{'position' if tokens else 'row'} {'before' if before else 'after'}"
    axes = ":, :, " if tokens else ""
    parts = (f"[{axes}:-1]", "[:, 1:]" if tokens else "[1:]")
    if not before:
        parts = (f"[{axes}1:]", "[:, :-1]" if tokens else "[:-1]")
    return ArgumentError(
        f"{name} agree with the logits of the {place} ({shifted:.0f} % instead "
        f"of {given:.0f} %)",
        f"Shift them: logits{parts[0]} and labels{parts[1]}.",
    )
