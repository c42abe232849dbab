"""Cooling: correct the temperature of a network while it trains.

Cooling paper, section 3; the module `theory` holds the paper's predictions.
Temperatures divide logits throughout; the τ of the paper's section 3.1 is the inverse
of a temperature.
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
