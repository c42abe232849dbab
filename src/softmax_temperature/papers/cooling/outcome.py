"""The outcome of a training: diverged, stuck or trained."""

from collections.abc import Sequence

# Deviation: the paper prints "divergence" and does not say how it is told (section 4.2,
# Table 2). Here a training has diverged when its loss, a logit, a weight, the norm of
# its gradients or a temperature is no longer finite, and also when its last accuracy on
# training images is at most so many times that of guessing although it was once above:
# the paper sets "diverged" against "converged". One that never was above, after any
# epoch, did not diverge from anything: it is called stuck.
CHANCE = 1.5
"""The multiple of the accuracy of guessing above which a network has learned."""


def outcome(
    accuracies: Sequence[float], classes: int, *, is_finite: bool
) -> dict[str, bool]:
    """Whether a training diverged, and whether it got stuck.

    Args:
        accuracies: On training images, after each epoch.
        classes: The number of classes.
        is_finite: Whether everything stayed finite.
    """
    limit = CHANCE / classes
    stuck = is_finite and max(accuracies) <= limit
    ends_at_guessing = is_finite and accuracies[-1] <= limit
    diverged = not is_finite or (ends_at_guessing and not stuck)
    return {"diverged": diverged, "stuck": stuck}
