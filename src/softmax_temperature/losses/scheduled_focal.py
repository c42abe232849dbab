"""Focal loss whose gamma falls during training, FLSc (focal paper, appendix F)."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from torch import Tensor

from softmax_temperature.losses.base import SampleLoss
from softmax_temperature.losses.focal import FocalLoss
from softmax_temperature.metrics.checks import check_at_least_zero, check_count


def scheduled_gamma(
    epoch: int,
    *,
    gammas: Sequence[float] = (5.0, 3.0, 1.0),
    milestones: Sequence[int] = (100, 250),
) -> float:
    """Gamma of an epoch, from 0: the first until the first milestone, then the next
    (focal paper, appendix F).

    The defaults are FLSc-531 over 350 epochs. Raises ValueError for a negative epoch or
    milestones that do not fit.
    """
    check_count(epoch, "epoch", least=0)
    if len(gammas) != len(milestones) + 1:
        raise ValueError(
            f"gammas must hold one value more than {milestones!r}, got {gammas!r}"
        )
    if list(milestones) != sorted(set(milestones)):
        raise ValueError(f"milestones must ascend, got {milestones!r}")
    return float(gammas[sum(epoch >= milestone for milestone in milestones)])


class ScheduledFocalLoss(FocalLoss):
    """Focal loss with the gamma of the epoch, FLSc (focal paper, appendix F).

    `gammas` and `milestones`, in epochs of the written recipe, are those of
    `losses.scheduled_gamma`. It has to be called with the epoch.
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
        for gamma in gammas:
            check_at_least_zero(gamma, "gammas")
        self.gammas = tuple(gammas)
        self.milestones = tuple(milestones)
        self.gamma_at(0.0)  # Refuses wrong milestones before any training.

    @classmethod
    def from_options(cls, **options: Any) -> Self:
        """The loss with the options `gammas` and `milestones`, which an arm states."""
        for name in ("gammas", "milestones"):
            if name not in options:
                raise TypeError(f"{name} is missing")
        return super(FocalLoss, cls).from_options(**options)

    def gamma_at(self, epoch: float | None) -> float:
        """Gamma at a position in the recipe."""
        if epoch is None:
            raise ValueError("epoch must be given: gamma changes during training")
        return scheduled_gamma(
            int(epoch), gammas=self.gammas, milestones=self.milestones
        )
