"""Brent's method for the root of a function of one number.

It is `scipy.optimize.brentq`, number for number, without the import of scipy.optimize,
which takes half as long as a whole report of a small table.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# scipy's defaults.
ABSOLUTE_TOLERANCE = 2e-12
RELATIVE_TOLERANCE = 4 * sys.float_info.epsilon
MOST_STEPS = 100


def brent_root(
    function: Callable[..., float],
    low: float,
    high: float,
    *arguments: Any,
    tolerance: float = ABSOLUTE_TOLERANCE,
) -> float:
    """Find a root of `function(x, *arguments)` for x between two ends.

    Brent, "Algorithms for minimization without derivatives" (1973), chapter 4.

    Args:
        function: A continuous function.
        low: One end.
        high: The other end, at which the function has the other sign.
        *arguments: Further arguments of the function.
        tolerance: The largest absolute error of the root.

    Raises:
        ValueError: If the function has the same sign at both ends.
    """
    previous = low
    current = high
    at_previous = function(previous, *arguments)
    at_current = function(current, *arguments)
    if at_previous == 0:
        return previous
    if at_current == 0:
        return current
    if not _differ_in_sign(at_previous, at_current):
        raise ValueError(
            f"function must have different signs at {low:g} and {high:g}, got "
            f"{at_previous:g} and {at_current:g}"
        )
    search = _Search(previous, current, at_previous, at_current)
    for _ in range(MOST_STEPS):
        search.order()
        smallest = (tolerance + RELATIVE_TOLERANCE * abs(search.current)) / 2
        if search.at_current == 0 or abs(search.half) < smallest:
            break
        search.move(smallest)
        search.at_current = function(search.current, *arguments)
    return search.current


@dataclass
class _Search:
    """The state of a search.

    Attributes:
        previous: The best point before `current`.
        current: The best point.
        at_previous: The function at `previous`.
        at_current: The function at `current`.
        opposite: The other end of the interval with the root.
        at_opposite: The function at `opposite`.
        step: The last step.
        step_before: The step before the last.
    """

    previous: float
    current: float
    at_previous: float
    at_current: float
    opposite: float = 0.0
    at_opposite: float = 0.0
    step: float = 0.0
    step_before: float = 0.0

    @property
    def half(self) -> float:
        """The step to the middle of the interval."""
        return (self.opposite - self.current) / 2

    def order(self) -> None:
        """Put the root between `current` and `opposite`; `current` is better."""
        if self.at_current != 0 and _differ_in_sign(self.at_previous, self.at_current):
            self.opposite = self.previous
            self.at_opposite = self.at_previous
            self.step = self.current - self.previous
            self.step_before = self.step
        if abs(self.at_opposite) < abs(self.at_current):
            self.previous = self.current
            self.current = self.opposite
            self.opposite = self.previous
            self.at_previous = self.at_current
            self.at_current = self.at_opposite
            self.at_opposite = self.at_previous

    def move(self, smallest: float) -> None:
        """Move `current` by interpolation, or to the middle if that is safer."""
        trial = math.inf
        if abs(self.step_before) > smallest and (
            abs(self.at_current) < abs(self.at_previous)
        ):
            trial = self._interpolated()
        if 2 * abs(trial) < min(abs(self.step_before), 3 * abs(self.half) - smallest):
            self.step_before = self.step
            self.step = trial
        else:
            self.step_before = self.half
            self.step = self.half
        taken = self.step
        if abs(taken) <= smallest:
            taken = math.copysign(smallest, self.half)
        self.previous = self.current
        self.at_previous = self.at_current
        self.current += taken

    def _interpolated(self) -> float:
        """The step to the root of the curve through the known points."""
        past = self.at_previous
        here = self.at_current
        across = self.at_opposite
        if self.previous == self.opposite:
            # The secant through both ends.
            return -here * (self.current - self.previous) / (here - past)
        # The inverse parabola through three points.
        first = (past - here) / (self.previous - self.current)
        second = (across - here) / (self.opposite - self.current)
        numerator = -here * (across * second - past * first)
        # The product of tiny numbers may be 0; the search then takes the middle.
        denominator = second * first * (across - past)
        return numerator / denominator if denominator else math.inf


def _differ_in_sign(value: float, other: float) -> bool:
    return math.copysign(1, value) != math.copysign(1, other)
