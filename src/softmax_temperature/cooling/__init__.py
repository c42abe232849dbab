"""Cooling: the temperature of a network corrected while it trains (cooling paper,
section 3); `theory` predicts it.

Temperatures divide logits throughout; the paper's τ of section 3.1 is the inverse of
one.
"""

from softmax_temperature.cooling.method import Cooling
from softmax_temperature.cooling.optimizer_state import rescale_optimizer_state
from softmax_temperature.cooling.redistribution import (
    Redistribution,
    plan_redistribution,
)

__all__ = [
    "Cooling",
    "Redistribution",
    "plan_redistribution",
    "rescale_optimizer_state",
]
