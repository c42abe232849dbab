"""Whether to scale the logits of a classifier, in one sentence with its numbers.

Everything that gives this advice (text, page, JSON) takes it from here.
"""

import math
from typing import NamedTuple


class Evidence(NamedTuple):
    """What a report knows about a temperature; errors are fractions."""

    temperature: float  # By likelihood, and its 90 % interval.
    low: float
    high: float
    before: float  # ECE as the logits are.
    after: float  # ECE with the logits divided by the temperature.
    change: tuple[float, float]  # 90 % interval of the change of the true ECE.
    noise_floor: float  # ECE that a calibrated model shows on so many rows.


class Advice(NamedTuple):
    """Whether to divide the logits by the temperature, and why."""

    scale: bool
    sentence: str


def advise(evidence: Evidence) -> Advice:
    """Advise to scale only where the temperature is not 1, the error is more than noise,
    and scaling makes it smaller: each beyond doubt, at 90 %.
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
            # The likelihood finds what the ECE of so few rows does not show.
            reason = f"by NLL, T = {temperature}, but {reason}; more rows may decide"
        return Advice(
            scale=False,
            sentence=f"No miscalibration found; leave the logits as they are: {reason}.",
        )
    state = "Overconfident" if evidence.temperature > 1 else "Underconfident"
    after = f"{100 * evidence.after:.1f}"
    return Advice(
        scale=True,
        sentence=f"{state}: divide the logits by {temperature}; "
        f"ECE {before} → {after} % (change {change}).",
    )


def three_digits(value: float) -> str:
    """A positive number as text, of at least three significant digits."""
    if not 1e-4 <= value < 1e7:
        return f"{value:.2e}" if 0 < value < math.inf else f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{decimals}f}"


def _points(share: float) -> str:
    """A change in points, with its sign; never -0.0."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"
