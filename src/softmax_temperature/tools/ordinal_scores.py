"""Scores of ordinal models, whose columns are cumulative, in place of class scores.

An ordinal model, such as CORAL, returns the logits (or probabilities) of "the grade is
above k" for each k. They fall along every row. The softmax of such logits depends only
on the differences between the columns, which may be the same in all rows, so it says
nothing about the grade.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import CLEAR_DIFFERENCE, ArgumentError
from softmax_temperature.metrics.probability_check import FEW_ROWS
from softmax_temperature.metrics.sorted_rows import are_sorted

# The logits of a model that always predicts the first class may also fall along every
# row. Labels therefore have to show that the columns are cumulative. The rows' means,
# which a softmax ignores, must be correlated with the grades by `CLEAR_DIFFERENCE`
# standard deviations. The cumulative reading must explain the labels better than the
# softmax does by `CLEAR_GAIN` standard deviations, each reading at its best scale.
CLEAR_GAIN = 2
# Each scale is the best on this grid, relative to the mean absolute logit. The scale 0
# gives all classes of a softmax equal probabilities.
SCALES = (0.0, *(2.0 ** (step / 2) for step in range(-12, 13)))
# The largest number of scores that are examined.
MOST_SCORES = 1_000_000
SMALLEST = torch.finfo(torch.float32).tiny

STEPS = {
    True: "-np.diff({}, axis=1, prepend=1, append=0)",
    False: "np.diff({}, axis=1, prepend=0, append=1)",
}


def fall_or_rise(scores: Tensor) -> bool:
    """Whether all rows fall, or all rise, from the first column to the last.

    Adjacent scores may be equal, as rounding makes them. The answer is False for few
    rows, and for scores that are infinite or nan.
    """
    rows, columns = scores.shape
    if rows < FEW_ROWS or columns < 2 or not are_sorted(scores):
        return False
    spans = scores[:, 0] - scores[:, -1]
    return bool((spans.isfinite() & (spans != 0)).all())


def end_at_one(probs: Tensor) -> bool:
    """Whether numbers in [0, 1] are cumulative, with 1 at the same end of every row."""
    if not fall_or_rise(probs) or bool((probs.amin(dim=1) < 0).any()):
        return False
    largest = probs[:, 0] if _fall(probs) else probs[:, -1]
    # Class 0 of a saturated softmax also has the probability 1, but then the others
    # have almost none.
    above_one = probs.sum(dim=1).mean().item() > 1 + 1 / FEW_ROWS
    return above_one and bool(((largest - 1).abs() < 1e-6).all())


def logits_of_classes(scores: Tensor) -> str:
    """The remedy for cumulative logits (n, columns) that `fall_or_rise`.

    If all of them lie in [0, 1], they are taken for cumulative probabilities.
    """
    low, high = (bound.item() for bound in torch.aminmax(scores))
    steps = STEPS[_fall(scores)].format("sigmoid(scores)")
    if low >= 0 and high <= 1:
        steps = probs_of_classes(scores)
    return f"Give one logit per class: np.log({steps})."


def probs_of_classes(probs: Tensor) -> str:
    """The expression for the classes' probabilities, from cumulative `probs`.

    Args:
        probs: Shape (n, columns); they `fall_or_rise`.
    """
    steps = STEPS[_fall(probs)].format("probs")
    if end_at_one(probs):
        unneeded = "prepend=1, " if _fall(probs) else ", append=1"
        steps = steps.replace(unneeded, "")
    return steps


def _fall(scores: Tensor) -> bool:
    """Whether sorted rows fall; they rise otherwise."""
    return bool(scores[0, 0] > scores[0, -1])


def check_not_ordinal(labels: Tensor, scores: Tensor, name: str) -> None:
    """Refuse logits of an ordinal model, whose columns are cumulative.

    Args:
        labels: Shape (n,), in [0, classes).
        scores: Logits, shape (n, classes); fewer than three classes are not judged.
        name: Name of the logits in messages.
    """
    if scores.shape[1] > 2 and are_ordinal(labels, scores):
        falls = _fall(scores)
        raise ArgumentError(
            f"{name} {'fall' if falls else 'rise'} from column to column in every row, "
            "as those of an ordinal model do, and their means predict the labels",
            logits_of_classes(scores),
        )


def are_ordinal(labels: Tensor, scores: Tensor) -> bool:
    """Whether labels show that the columns of logits are cumulative.

    Args:
        labels: Shape (n,), int64. The highest grade of an ordinal model has no column
            of its own, so the label `columns` is allowed.
        scores: Logits, shape (n, columns).
    """
    columns = scores.shape[1]
    if not fall_or_rise(scores):
        return False
    stride = max(1, len(scores) * columns // MOST_SCORES)
    table = scores.detach()[::stride].double()
    grades = labels[::stride].long()
    if bool(((grades < 0) | (grades > columns)).any()):
        return False
    if not _fall(scores):
        table = -table  # Logits of "at most k" rise; negated, they are of "above k".
    if _deviations_of_correlation(table.mean(dim=1), grades) < CLEAR_DIFFERENCE:
        return False
    if bool((grades == columns).any()):
        return True
    table = table / table.abs().mean()
    sign = 1.0 if _fall(scores) else -1.0
    gain = _best(_log_probs_of_grades, table, grades)
    gain = gain - _best(_log_probs_of_classes, sign * table, grades)
    spread = gain.std().item() / math.sqrt(len(gain))
    return gain.mean().item() > CLEAR_GAIN * spread


def _deviations_of_correlation(levels: Tensor, grades: Tensor) -> float:
    """The correlation of levels with grades, in standard deviations of chance."""
    pair = torch.stack([levels, grades.double()])
    if len(levels) < 3 or bool((pair.std(dim=1) == 0).any()):
        return 0.0
    correlation = torch.corrcoef(pair)[0, 1].item()
    rest = max(1 - correlation**2, 1e-12)
    return correlation * math.sqrt((len(levels) - 2) / rest)


def _best(
    log_probs: Callable[[Tensor, Tensor], Tensor], table: Tensor, labels: Tensor
) -> Tensor:
    """The log-probability of each label, at the scale that makes the labels likely."""
    found = [log_probs(table * scale, labels) for scale in SCALES]
    return max(found, key=lambda values: float(values.mean()))


def _log_probs_of_grades(table: Tensor, grades: Tensor) -> Tensor:
    """The log-probabilities of the grades, if the columns are those of "above k"."""
    above = torch.sigmoid(table)
    ends = above.new_ones(len(above), 1)
    cumulative = torch.cat([ends, above, torch.zeros_like(ends)], dim=1)
    each = (cumulative[:, :-1] - cumulative[:, 1:]).clamp(min=SMALLEST)
    return each.log().gather(1, grades[:, None]).squeeze(1)


def _log_probs_of_classes(table: Tensor, labels: Tensor) -> Tensor:
    """The log-probabilities of the labels, if the columns are logits of classes."""
    return torch.log_softmax(table, dim=1).gather(1, labels[:, None]).squeeze(1)
