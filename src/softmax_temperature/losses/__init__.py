"""Training losses of the focal paper (section 5, baselines included) and the rescaled cross-entropy of the others.

All take logits of shape (n, classes) and labels of shape (n,), integers; work in the dtype and on the device of the
logits; are differentiable in them, with finite gradients wherever the differences of the logits are finite; and return
a mean over the batch, in nats, unless said. A ValueError names the argument that has a wrong shape or value.

Values (finite logits, labels in range) are checked on the CPU only: on an accelerator each look at a value would stop
the queue of the training loop. Shapes, dtypes and numbers are checked everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softmax_temperature.losses import brier, cross_entropy, focal, label_smoothing
from softmax_temperature.losses.brier import brier_loss
from softmax_temperature.losses.cross_entropy import rescaled_cross_entropy
from softmax_temperature.losses.focal import focal_loss, sample_dependent_gamma, scheduled_gamma, true_class_probs
from softmax_temperature.losses.focal_theory import gamma_star, gradient_ratio
from softmax_temperature.losses.label_smoothing import label_smoothing_loss
from softmax_temperature.losses.mmce import make as make_mmce
from softmax_temperature.losses.mmce import mmce, weighted_mmce
from softmax_temperature.losses.objective import Objective
from softmax_temperature.runner.errors import InputError, nearest

__all__ = [
    "OBJECTIVES",
    "Objective",
    "brier_loss",
    "focal_loss",
    "gamma_star",
    "gradient_ratio",
    "label_smoothing_loss",
    "make_objective",
    "mmce",
    "objective_names",
    "rescaled_cross_entropy",
    "sample_dependent_gamma",
    "scheduled_gamma",
    "true_class_probs",
    "weighted_mmce",
]

# The losses that params.yaml can name, and how each is made from its options.
OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "brier": brier.make,
    "cross_entropy": cross_entropy.make,
    "focal": focal.make,
    "label_smoothing": label_smoothing.make,
    "mmce": make_mmce,
    "sample_dependent_focal": focal.make_sample_dependent,
    "scheduled_focal": focal.make_scheduled,
    "tempered_cross_entropy": cross_entropy.make_tempered,
}


def objective_names() -> list[str]:
    """The losses that params.yaml can name."""
    return sorted(OBJECTIVES)


def make_objective(name: str, options: dict[str, Any]) -> Objective:
    """A loss by name, as a function of logits (n, classes), labels (n,) and the position in the recipe, in epochs.

    Raises:
        InputError: No loss has this name, or it does not take the options.
    """
    if name not in OBJECTIVES:
        raise InputError("no such loss", where=f"loss {name!r}", remedy=nearest(name, objective_names()))
    try:
        return OBJECTIVES[name](**options)
    except (TypeError, ValueError) as error:
        what = f"does not take the options {options} ({error})"
        raise InputError(what, where=f"loss {name!r}", remedy="Correct `options`.") from error
