"""The losses as modules, in the manner of `torch.nn.CrossEntropyLoss`; what params.yaml
names is made of them too.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.losses.baselines import (
    brier_loss,
    label_smoothing_loss,
    weighted_mmce,
)
from softmax_temperature.losses.focal import (
    check_reduction,
    focal_loss,
    reduced,
    sample_dependent_gamma,
    scheduled_gamma,
    true_class_probs,
)
from softmax_temperature.metrics.checks import (
    as_rows,
    check_count,
    check_flag,
    check_gamma,
    check_positive,
    check_weight,
    check_weighted_classes,
)
from softmax_temperature.runner.errors import InputError, nearest

Weight = Tensor | None
Ignored = int | None


class _ClassifierLoss(nn.Module):
    """A loss of logits (n, classes) and labels (n,), or (n, classes, ...) and (n, ...),
    with ignored labels.

    It is a mean over samples, weighted by `weight` of their classes, unless `forward`
    is another.
    """

    weight: Weight

    def __init__(
        self,
        weight: Weight = None,
        *,
        ignore_index: Ignored = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        check_weight(weight)
        check_reduction(reduction)
        if ignore_index is not None:
            ignore_index = check_count(ignore_index, "ignore_index", least=-(2**63))
        self.register_buffer("weight", weight)
        self.ignore_index, self.reduction = ignore_index, reduction

    def _kept_rows(
        self, logits: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Logits (rows, classes) and labels (rows,) that count, and which of all rows
        these are (None: all).
        """
        logits, labels = as_rows(logits, labels)
        check_weighted_classes(self.weight, logits.shape[1])
        if self.ignore_index is None:
            return logits, labels, None
        # Widened before it is compared: class 156 equals -100 in uint8.
        kept = labels.long() != self.ignore_index
        return logits[kept], labels[kept], kept

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        rows, classes, kept = self._kept_rows(logits, labels)
        losses = self._losses(rows, classes)
        if self.weight is not None:
            weights = self.weight.to(losses.dtype)[classes.long()]
            losses = weights * losses
            if self.reduction == "mean":
                return losses.sum() / weights.sum()
        if self.reduction != "none":
            return reduced(losses, self.reduction)
        if kept is not None:
            losses = losses.new_zeros(len(kept)).masked_scatter(kept, losses)
        return losses.view(labels.shape)

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        raise NotImplementedError


class FocalLoss(_ClassifierLoss):
    """Focal loss, -(1 - p)^gamma log p, nats (focal paper, section 4); see
    `losses.focal_loss`.

    Called with logits (n, classes) and labels (n,), or (n, classes, ...) and (n, ...).
    `weight` is of each class, (classes,), and a mean is over the weights, as in
    `torch.nn.CrossEntropyLoss`. Labels of `ignore_index` do not count; None skips the
    check, which would force a GPU sync. `reduction` is "mean", "sum", or "none".

    >>> FocalLoss(gamma=3.0)(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    tensor(0.2567)
    """

    def __init__(
        self,
        gamma: float = 3.0,
        weight: Weight = None,
        *,
        ignore_index: Ignored = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, ignore_index=ignore_index, reduction=reduction)
        check_gamma(gamma)
        self.gamma = gamma

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return focal_loss(logits, labels, self.gamma, reduction="none")


class SampleDependentFocalLoss(_ClassifierLoss):
    """Focal loss whose gamma depends on the sample, FLSD (focal paper, section 4,
    appendix F); else as `FocalLoss`.

    `policy` "53" has gamma 5 below a probability of 0.2 of the true class and 3 above;
    "532" has 5, 3 and 2.

    >>> SampleDependentFocalLoss()(torch.tensor([[0.0, 3.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    tensor(1.4521)
    """

    def __init__(
        self,
        policy: str = "53",
        weight: Weight = None,
        *,
        ignore_index: Ignored = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, ignore_index=ignore_index, reduction=reduction)
        sample_dependent_gamma(
            torch.empty(0), policy=policy
        )  # Refuses an unknown policy before any training.
        self.policy = policy

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        gamma = sample_dependent_gamma(
            true_class_probs(logits, labels), policy=self.policy
        )
        return focal_loss(logits, labels, gamma, reduction="none")


class BrierLoss(_ClassifierLoss):
    """Squared distance of the probabilities to the one-hot label, in [0, 2]; arguments
    and shapes as `FocalLoss`.

    >>> BrierLoss()(torch.zeros(1, 2), torch.tensor([1]))  # 0.5 ** 2 + 0.5 ** 2
    tensor(0.5000)
    """

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return brier_loss(logits, labels, reduction="none")


class MMCELoss(_ClassifierLoss):
    """Cross-entropy plus a multiple of the weighted maximum mean calibration error
    (focal paper, appendix E), nats.

    `penalty` is the multiple, lambda, `weight` of each class in the cross-entropy,
    (classes,); `as_released` uses the penalty of the released code, see
    `losses.weighted_mmce`. The rest is as for `FocalLoss`.

    >>> MMCELoss()(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    tensor(2.0297)
    """

    def __init__(
        self,
        penalty: float = 2.0,
        weight: Weight = None,
        *,
        ignore_index: Ignored = -100,
        as_released: bool = False,
    ) -> None:
        super().__init__(weight, ignore_index=ignore_index)
        if not 0 <= penalty < math.inf:
            raise ValueError(f"penalty must be finite and at least 0, got {penalty}")
        check_flag(as_released, "as_released")
        self.penalty, self.as_released = penalty, as_released

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The mean over the labels that count."""
        rows, classes, _ = self._kept_rows(logits, labels)
        penalty = weighted_mmce(rows, classes, as_released=self.as_released)
        weight = None if self.weight is None else self.weight.to(rows.dtype)
        return F.cross_entropy(rows, classes.long(), weight) + self.penalty * penalty


# ---- what params.yaml names, in the form in which a training loop takes it

# Mean loss of a batch from logits (n, classes), labels (n,) and the position in the
# written recipe, in epochs.
Objective = Callable[[Tensor, Tensor, float], Tensor]


def at_every_epoch(loss: Callable[[Tensor, Tensor], Tensor]) -> Objective:
    """The objective of a loss that does not change during training."""
    return lambda logits, labels, _position: loss(logits, labels)


def _tempered_cross_entropy(*, inverse_temperature: float) -> Objective:
    check_positive(inverse_temperature, "inverse_temperature")
    return at_every_epoch(
        lambda logits, labels: F.cross_entropy(inverse_temperature * logits, labels)
    )


def _label_smoothing(*, smoothing: float = 0.05) -> Objective:
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be in [0, 1), got {smoothing}")
    return at_every_epoch(partial(label_smoothing_loss, smoothing=smoothing))


def _scheduled_focal(
    *, gammas: Sequence[float], milestones: Sequence[int]
) -> Objective:
    for gamma in gammas:
        check_gamma(gamma)
    gamma_of = partial(scheduled_gamma, gammas=gammas, milestones=milestones)
    gamma_of(0)  # Refuses wrong milestones before any training.
    return lambda logits, labels, position: focal_loss(
        logits, labels, gamma_of(int(position))
    )


OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "brier": lambda: at_every_epoch(BrierLoss(ignore_index=None)),
    "cross_entropy": lambda: at_every_epoch(F.cross_entropy),
    "focal": lambda *, gamma: at_every_epoch(FocalLoss(gamma, ignore_index=None)),
    "label_smoothing": _label_smoothing,
    # The weight is the focal paper's lambda.
    "mmce": lambda *, weight=2.0, **options: at_every_epoch(
        MMCELoss(weight, ignore_index=None, **options)
    ),
    "sample_dependent_focal": lambda *, policy="53": at_every_epoch(
        SampleDependentFocalLoss(policy, ignore_index=None)
    ),
    # FLSc of the focal paper, appendix F, over epochs of the recipe.
    "scheduled_focal": _scheduled_focal,
    # Of beta times the logits (temperature_check, abstract).
    "tempered_cross_entropy": _tempered_cross_entropy,
}


def make_objective(name: str, options: dict[str, Any]) -> Objective:
    """A loss by name; raises InputError if no loss has this name, or it does not take
    the options.
    """
    if name not in OBJECTIVES:
        raise InputError(
            "no such loss", where=f"loss {name!r}", remedy=nearest(name, OBJECTIVES)
        )
    try:
        return OBJECTIVES[name](**options)
    except (TypeError, ValueError) as error:
        what = f"does not take the options {options} ({error})"
        raise InputError(
            what, where=f"loss {name!r}", remedy="Correct `options`."
        ) from error
