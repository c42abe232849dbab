"""The outcome of a training run: diverged, stuck or trained."""

import math
from collections.abc import Sequence

# Deviation: we call a run diverged if its loss, a logit, a weight, the norm of its
# gradients or a temperature is no longer finite, or if it collapsed: its last accuracy
# on training images is less than half of its peak, or its final test NLL is within 2 %
# of the NLL of guessing, which is the logarithm of the number of classes. We call a run
# stuck if it did not diverge but was never more than 1.5 times as accurate as guessing.
# The paper prints "divergence" as the opposite of "converged" but does not define it
# (section 4.2, Table 2).
CHANCE = 1.5
"""A network has learned if its accuracy is above this multiple of chance accuracy."""
COLLAPSE = 0.5
"""A run has collapsed if its accuracy ends below this share of its peak."""
NEAR_GUESSING = 0.02
"""A run is at chance level if its NLL differs from the NLL of guessing by at most this
fraction.
"""


def outcome(
    accuracies: Sequence[float],
    classes: int,
    *,
    nll: float = math.nan,
    is_finite: bool = True,
) -> dict[str, bool]:
    """Judge whether a run diverged, and whether it got stuck.

    Args:
        accuracies: Accuracy on training images after each epoch; empty if unknown.
        classes: The number of classes.
        nll: NLL on test images after the last epoch, in nats; NaN if unknown.
        is_finite: Whether all values stayed finite.

    Returns:
        The two answers, under the keys "diverged" and "stuck".
    """
    peak = max(accuracies, default=math.nan)
    collapsed = bool(accuracies) and accuracies[-1] < COLLAPSE * peak
    diverged = not is_finite or collapsed or _guesses(nll, classes)
    return {"diverged": diverged, "stuck": not diverged and peak <= CHANCE / classes}


def _guesses(nll: float, classes: int) -> bool:
    """Whether `nll` is close to the NLL of guessing."""
    return abs(nll / math.log(classes) - 1) <= NEAR_GUESSING
