"""Training losses: focal losses, their baselines, and tempered cross-entropies.

All losses take logits of shape (n, classes), where -inf masks a class, and integer
labels of shape (n,). Losses that are defined for soft labels also accept class
probabilities of shape (n, classes) as labels. A loss is computed on the device of the
logits, in their dtype or in float32 if that dtype is narrower. By default it returns
the mean over the batch, which is differentiable and has the dtype of the logits. The
unit is nats unless the docstring says otherwise. The gradient with respect to the
logits is finite wherever the differences between the logits are finite. Whether logits
are finite and labels in range is checked on the CPU only, because on an accelerator
each such check would make the host wait for the device.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softmax_temperature.losses.base import Loss as Loss
    from softmax_temperature.losses.base import SampleLoss as SampleLoss
    from softmax_temperature.losses.brier import BrierLoss as BrierLoss
    from softmax_temperature.losses.brier import brier_loss as brier_loss
    from softmax_temperature.losses.cross_entropy import (
        CrossEntropyLoss as CrossEntropyLoss,
    )
    from softmax_temperature.losses.focal import FocalLoss as FocalLoss
    from softmax_temperature.losses.focal import focal_loss as focal_loss
    from softmax_temperature.losses.label_smoothing import (
        LabelSmoothingLoss as LabelSmoothingLoss,
    )
    from softmax_temperature.losses.label_smoothing import (
        label_smoothing_loss as label_smoothing_loss,
    )
    from softmax_temperature.losses.mmce_loss import MMCELoss as MMCELoss
    from softmax_temperature.losses.mmce_loss import mmce as mmce
    from softmax_temperature.losses.mmce_loss import weighted_mmce as weighted_mmce
    from softmax_temperature.losses.registry import make_loss as make_loss
    from softmax_temperature.losses.sample_dependent_focal import (
        SampleDependentFocalLoss as SampleDependentFocalLoss,
    )
    from softmax_temperature.losses.sample_dependent_focal import (
        sample_dependent_gamma as sample_dependent_gamma,
    )
    from softmax_temperature.losses.sample_dependent_focal import (
        true_class_probs as true_class_probs,
    )
    from softmax_temperature.losses.scheduled_focal import (
        ScheduledFocalLoss as ScheduledFocalLoss,
    )
    from softmax_temperature.losses.scheduled_focal import (
        scheduled_gamma as scheduled_gamma,
    )
    from softmax_temperature.losses.tempered_cross_entropy import (
        TemperedCrossEntropyLoss as TemperedCrossEntropyLoss,
    )
    from softmax_temperature.losses.tempered_cross_entropy import (
        rescaled_cross_entropy as rescaled_cross_entropy,
    )
    from softmax_temperature.losses.theory import gamma_star as gamma_star
    from softmax_temperature.losses.theory import gradient_ratio as gradient_ratio

_MODULES = {
    "BrierLoss": "brier",
    "CrossEntropyLoss": "cross_entropy",
    "FocalLoss": "focal",
    "LabelSmoothingLoss": "label_smoothing",
    "Loss": "base",
    "MMCELoss": "mmce_loss",
    "SampleDependentFocalLoss": "sample_dependent_focal",
    "SampleLoss": "base",
    "ScheduledFocalLoss": "scheduled_focal",
    "TemperedCrossEntropyLoss": "tempered_cross_entropy",
    "brier_loss": "brier",
    "focal_loss": "focal",
    "gamma_star": "theory",
    "gradient_ratio": "theory",
    "label_smoothing_loss": "label_smoothing",
    "make_loss": "registry",
    "mmce": "mmce_loss",
    "rescaled_cross_entropy": "tempered_cross_entropy",
    "sample_dependent_gamma": "sample_dependent_focal",
    "scheduled_gamma": "scheduled_focal",
    "true_class_probs": "sample_dependent_focal",
    "weighted_mmce": "mmce_loss",
}

__all__ = [*_MODULES]  # noqa: PLE0604 - its keys are strings


def __getattr__(name: str) -> Any:
    """Import the module that defines `name` when `name` is used, and return the object.

    The pipeline imports the modules directly, so that a cell's code digest covers only
    its own loss.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
