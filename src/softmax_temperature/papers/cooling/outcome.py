"""The outcome of a training: diverged, stuck or trained."""

import math
from collections.abc import Sequence

# Deviation: the paper prints "divergence", sets it against "converged", and does not
# say how it is told (section 4.2, Table 2). Here a training has diverged when its loss,
# a logit, a weight, the norm of its gradients or a temperature is no longer finite, and
# also when it collapsed: its last accuracy on training images is under half of its
# peak, or its test NLL ends within 2 % of that of guessing, the logarithm of the number
# of classes. One that did not diverge and after no epoch was more than 1.5 times as
# accurate as guessing is called stuck.
CHANCE = 1.5
"""The multiple of the accuracy of guessing above which a network has learned."""
COLLAPSE = 0.5
"""The share of the peak accuracy below which a training has collapsed."""
NEAR_GUESSING = 0.02
"""The relative distance from the NLL of guessing."""


def outcome(
    accuracies: Sequence[float],
    classes: int,
    *,
    nll: float = math.nan,
    is_finite: bool = True,
) -> dict[str, bool]:
    """Whether a training diverged, and whether it got stuck.

    Args:
        accuracies: On training images, after each epoch; empty if they are not known.
        classes: The number of classes.
        nll: On test images after the last epoch, in nats; NaN if it is not known.
        is_finite: Whether everything stayed finite.
    """
    peak = max(accuracies, default=math.nan)
    collapsed = bool(accuracies) and accuracies[-1] < COLLAPSE * peak
    diverged = not is_finite or collapsed or _guesses(nll, classes)
    return {"diverged": diverged, "stuck": not diverged and peak <= CHANCE / classes}


def _guesses(nll: float, classes: int) -> bool:
    """Whether the NLL is that of guessing."""
    return abs(nll / math.log(classes) - 1) <= NEAR_GUESSING
