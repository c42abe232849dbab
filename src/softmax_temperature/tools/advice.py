"""Advice on whether to scale a classifier's logits, in one sentence.

The text report, the HTML page and the JSON file all take the advice from here.
"""

import math
from typing import NamedTuple

_LEAVE = "No miscalibration found; leave the logits as they are"


class Evidence(NamedTuple):
    """The numbers of a report that determine the advice; errors are fractions.

    Attributes:
        temperature: The temperature by likelihood.
        low: Lower end of its 90 % interval.
        high: Upper end of its 90 % interval.
        before: ECE of the undivided logits.
        after: ECE of the logits divided by the temperature.
        change: 90 % interval of the change in true ECE due to scaling.
        noise_floor: Mean ECE of a calibrated model on the same number of rows.
    """

    temperature: float
    low: float
    high: float
    before: float
    after: float
    change: tuple[float, float]
    noise_floor: float


class Advice(NamedTuple):
    """Whether to divide the logits by the temperature, and why."""

    scale: bool
    sentence: str


def advise(evidence: Evidence) -> Advice:
    """Whether to scale the logits, with the reason.

    The advice is to scale only if the interval of the temperature excludes 1, the ECE
    is above its noise floor, and the interval of the change of the ECE is below 0.
    """
    temperature = (
        f"{three_digits(evidence.temperature)} "
        f"[{three_digits(evidence.low)}, {three_digits(evidence.high)}]"
    )
    low, high = evidence.change
    change = (
        f"{_points(evidence.after - evidence.before)} [{_points(low)}, {_points(high)}]"
    )
    before = f"{100 * evidence.before:.1f}"
    doubts = []
    may_be_one = evidence.low <= 1 <= evidence.high
    if may_be_one:
        doubts.append(f"T = {temperature} may be 1")
    if evidence.before <= evidence.noise_floor:
        floor = f"{100 * evidence.noise_floor:.1f}"
        doubts.append(f"an ECE of {before} % is not above its noise floor, {floor} %")
    if high >= 0:
        doubts.append(f"scaling by it may not lower the ECE (change {change} points)")
    if doubts:
        reason = "; ".join(doubts)
        if not may_be_one:
            # With few rows, the likelihood can detect a miscalibration that the ECE
            # does not show.
            reason = f"by NLL, T = {temperature}, but {reason}; more rows may decide"
        return Advice(scale=False, sentence=f"{_LEAVE}: {reason}.")
    state = "Overconfident" if evidence.temperature > 1 else "Underconfident"
    after = f"{100 * evidence.after:.1f}"
    return Advice(
        scale=True,
        sentence=f"{state}: divide the logits by {temperature}; "
        f"ECE {before} → {after} % (change {change}).",
    )


def three_digits(value: float) -> str:
    """A positive number as text, with at least three significant digits."""
    if not 1e-4 <= value < 1e7:
        return f"{value:.2e}" if 0 < value < math.inf else f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{decimals}f}"


def _points(share: float) -> str:
    """A change of a fraction in percentage points, with its sign; never -0.0."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"
