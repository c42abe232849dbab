"""Cooling: the temperature of a network corrected while it trains (cooling paper, section 3), and its theory.

Temperatures divide logits throughout; the paper's τ of section 3.1 is the inverse of one.
"""

from softmax_temperature.cooling.method import Cooling
from softmax_temperature.cooling.optimizer_state import rescale_optimizer_state
from softmax_temperature.cooling.redistribution import Redistribution, plan_redistribution
from softmax_temperature.cooling.theory import (
    MeasuredRatio,
    measured_gradient_ratios,
    measured_gradients,
    measured_output_ratios,
    predicted_gradient_ratios,
    predicted_last_layer_gradients,
    predicted_output_ratios,
    scale_equivalent,
)

__all__ = [
    "Cooling",
    "MeasuredRatio",
    "Redistribution",
    "measured_gradient_ratios",
    "measured_gradients",
    "measured_output_ratios",
    "plan_redistribution",
    "predicted_gradient_ratios",
    "predicted_last_layer_gradients",
    "predicted_output_ratios",
    "rescale_optimizer_state",
    "scale_equivalent",
]
