"""Focal loss whose gamma falls during training, FLSc (focal paper, appendix F)."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from torch import Tensor

from softmax_temperature.losses.base import SampleLoss
from softmax_temperature.losses.focal import FocalLoss
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_at_least_zero,
    check_count,
    is_number_between,
)


def scheduled_gamma(
    epoch: int,
    *,
    gammas: Sequence[float] = (5.0, 3.0, 1.0),
    milestones: Sequence[int] = (100, 250),
) -> float:
    """Return the gamma of an epoch; gamma changes at every milestone (appendix F).

    The defaults are the focal paper's FLSc-531 over 350 epochs.

    Args:
        epoch: The epoch, counted from 0.
        gammas: One gamma for the epochs before each milestone, and one for the epochs
            after the last milestone.
        milestones: Epochs, in ascending order, at which the next gamma takes effect.

    Raises:
        ValueError: If a number is negative, `milestones` do not ascend, or `gammas`
            does not have exactly one value more than `milestones`.
    """
    check_count(epoch, "epoch", least=0)
    for name, numbers in (("gammas", gammas), ("milestones", milestones)):
        if not isinstance(numbers, Sequence):
            raise ArgumentError(
                f"{name} must be a list of numbers, got {numbers!r}",
                "Write it in brackets.",
            )
    for gamma in gammas:
        check_at_least_zero(gamma, "gammas")
    for milestone in milestones:
        check_count(milestone, "milestones", least=0)
    if len(gammas) != len(milestones) + 1:
        raise ArgumentError(
            f"gammas must hold one value more than milestones {milestones!r}, got "
            f"{gammas!r}",
            "Give a gamma for the epochs before each milestone, and one for the rest.",
        )
    if list(milestones) != sorted(set(milestones)):
        raise ArgumentError(f"milestones must ascend, got {milestones!r}", "Sort them.")
    passed = sum(epoch >= milestone for milestone in milestones)
    return float(gammas[passed])


class ScheduledFocalLoss(FocalLoss):
    """Focal loss whose gamma depends on the epoch, FLSc (focal paper, appendix F).

    `gammas` and `milestones` are those of `scheduled_gamma`; milestones are epochs of
    the training recipe. The loss must be called with the epoch.
    """

    arguments: ClassVar[tuple[str, ...]] = ("gammas", "milestones")

    def __init__(
        self,
        gammas: Sequence[float] = (5.0, 3.0, 1.0),
        milestones: Sequence[int] = (100, 250),
        weight: Tensor | None = None,
        *,
        ignore_index: int | None = -100,
        reduction: str = "mean",
    ) -> None:
        SampleLoss.__init__(
            self, weight, ignore_index=ignore_index, reduction=reduction
        )
        # Refuse wrong gammas and milestones before training starts.
        scheduled_gamma(0, gammas=gammas, milestones=milestones)
        self.gammas = tuple(gammas)
        self.milestones = tuple(milestones)

    @classmethod
    def from_options(cls, **options: Any) -> Self:
        """Make the loss from `gammas` and `milestones`, which params.yaml must set."""
        for name in ("gammas", "milestones"):
            if name not in options:
                raise TypeError(f"the option {name} is required")
        return super(FocalLoss, cls).from_options(**options)

    def gamma_at(self, epoch: float | None) -> float:
        """Return the gamma at `epoch` of the training recipe."""
        if epoch is None:
            raise ArgumentError(
                "epoch must be given: gamma changes during training",
                "Pass the position in the recipe, in epochs: loss(logits, labels, 3).",
            )
        if not is_number_between(epoch, 0, math.inf):
            raise ArgumentError(
                f"epoch must be a number of at least 0, got {epoch!r}",
                "Give the position in the recipe, in epochs.",
            )
        return scheduled_gamma(
            int(epoch), gammas=self.gammas, milestones=self.milestones
        )
