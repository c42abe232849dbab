"""Softmax temperature: losses, metrics, calibration and training methods.

The package implements the methods of four papers; the pipeline uses it to reproduce
their experiments.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softmax_temperature.cooling import Cooling as Cooling
    from softmax_temperature.cosine_classifier.module import (
        CosineClassifier as CosineClassifier,
    )
    from softmax_temperature.losses.brier import BrierLoss as BrierLoss
    from softmax_temperature.losses.focal import FocalLoss as FocalLoss
    from softmax_temperature.losses.mmce_loss import MMCELoss as MMCELoss
    from softmax_temperature.losses.sample_dependent_focal import (
        SampleDependentFocalLoss as SampleDependentFocalLoss,
    )
    from softmax_temperature.tools.arrays import sample_logits as sample_logits
    from softmax_temperature.tools.calibrate import calibrate as calibrate
    from softmax_temperature.tools.scaler import TemperatureScaler as TemperatureScaler
    from softmax_temperature.tools.suggest import (
        suggest_temperature as suggest_temperature,
    )

__version__ = version("softmax-temperature")

_MODULES = {
    "BrierLoss": "losses.brier",
    "Cooling": "cooling",
    "CosineClassifier": "cosine_classifier.module",
    "FocalLoss": "losses.focal",
    "MMCELoss": "losses.mmce_loss",
    "SampleDependentFocalLoss": "losses.sample_dependent_focal",
    "TemperatureScaler": "tools.scaler",
    "calibrate": "tools.calibrate",
    "sample_logits": "tools.arrays",
    "suggest_temperature": "tools.suggest",
}

__all__ = [*_MODULES]  # noqa: PLE0604 - its keys are strings


def __getattr__(name: str) -> Any:
    """Import `name` from its module when it is used, because torch imports slowly."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
