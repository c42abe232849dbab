"""The losses that params.yaml can name, in the form in which a training loop takes them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses.baselines import label_smoothing_loss
from softmax_temperature.losses.focal import focal_loss, scheduled_gamma
from softmax_temperature.losses.modules import BrierLoss, FocalLoss, MMCELoss, SampleDependentFocalLoss
from softmax_temperature.metrics.checks import check_gamma, check_positive
from softmax_temperature.runner.errors import InputError, nearest

# Mean loss of a batch from logits (n, classes), labels (n,) and the position in the written recipe, in epochs.
Objective = Callable[[Tensor, Tensor, float], Tensor]


def at_every_epoch(loss: Callable[[Tensor, Tensor], Tensor]) -> Objective:
    """The objective of a loss that does not change during training."""
    return lambda logits, labels, _position: loss(logits, labels)


def _tempered_cross_entropy(*, inverse_temperature: float) -> Objective:
    check_positive(inverse_temperature, "inverse_temperature")
    return at_every_epoch(lambda logits, labels: F.cross_entropy(inverse_temperature * logits, labels))


def _label_smoothing(*, smoothing: float = 0.05) -> Objective:
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be in [0, 1), got {smoothing}")
    return at_every_epoch(partial(label_smoothing_loss, smoothing=smoothing))


def _scheduled_focal(*, gammas: Sequence[float], milestones: Sequence[int]) -> Objective:
    for gamma in gammas:
        check_gamma(gamma)
    gamma_of = partial(scheduled_gamma, gammas=gammas, milestones=milestones)
    gamma_of(0)  # Refuses wrong milestones before any training.
    return lambda logits, labels, position: focal_loss(logits, labels, gamma_of(int(position)))


OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "brier": lambda: at_every_epoch(BrierLoss(ignore_index=None)),
    "cross_entropy": lambda: at_every_epoch(F.cross_entropy),
    "focal": lambda *, gamma: at_every_epoch(FocalLoss(gamma, ignore_index=None)),
    "label_smoothing": _label_smoothing,
    # The weight is the focal paper's lambda.
    "mmce": lambda *, weight=2.0, **options: at_every_epoch(MMCELoss(weight, ignore_index=None, **options)),
    "sample_dependent_focal": lambda *, policy="53": at_every_epoch(
        SampleDependentFocalLoss(policy, ignore_index=None)
    ),
    "scheduled_focal": _scheduled_focal,  # FLSc of the focal paper, appendix F, over epochs of the recipe.
    "tempered_cross_entropy": _tempered_cross_entropy,  # Of beta times the logits (temperature_check, abstract).
}


def objective_names() -> list[str]:
    """The losses that params.yaml can name."""
    return sorted(OBJECTIVES)


def make_objective(name: str, options: dict[str, Any]) -> Objective:
    """A loss by name; raises InputError if no loss has this name, or it does not take the options."""
    if name not in OBJECTIVES:
        raise InputError("no such loss", where=f"loss {name!r}", remedy=nearest(name, objective_names()))
    try:
        return OBJECTIVES[name](**options)
    except (TypeError, ValueError) as error:
        what = f"does not take the options {options} ({error})"
        raise InputError(what, where=f"loss {name!r}", remedy="Correct `options`.") from error
