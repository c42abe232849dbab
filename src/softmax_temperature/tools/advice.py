"""Advice on whether to scale a classifier's logits, in one sentence.

The text report, the HTML page and the JSON file all contain this advice. It is plain
ASCII, so that a script can print it whatever the encoding of its output.
"""

import math
from typing import NamedTuple

# Advice for logits that are no better than chance.
CHECK_COLUMNS = (
    "Check that column c holds class c, and that larger logits mean more likely."
)
MOST_DECIMALS = 9
_LEAVE = "No miscalibration found; leave the logits as they are"
_NO_TEMPERATURE = (
    "Miscalibrated, but a temperature is not shown to help; leave the logits as they "
    "are"
)


class Evidence(NamedTuple):
    """The numbers of a report that determine the advice; the ECEs are fractions.

    Attributes:
        temperature: The temperature that minimises the NLL.
        low: Lower end of the temperature's 90 % interval.
        high: Upper end of the temperature's 90 % interval.
        before: ECE of the unscaled logits.
        after: ECE of the logits divided by the temperature.
        change: 90 % interval for the change in true ECE due to scaling.
        noise_floor: Mean ECE of a perfectly calibrated model on as many rows.
        before_low: Lower end of the 90 % interval for the true ECE of the unscaled
            logits.
    """

    temperature: float
    low: float
    high: float
    before: float
    after: float
    change: tuple[float, float]
    noise_floor: float
    before_low: float


class Advice(NamedTuple):
    """Whether to divide the logits by the temperature, and why."""

    scale: bool
    sentence: str


def advise(evidence: Evidence) -> Advice:
    """Decide whether to scale the logits, and give the reason.

    The advice is to scale only if the interval of the temperature excludes 1, the ECE
    is above its noise floor, and the interval of the change in ECE is below 0. If the
    interval of the temperature has no upper end, the logits may carry no information
    about the labels, and the advice is to check the columns. If the advice is not to
    scale, the logits can still be miscalibrated, for instance because the classes had
    other frequencies in training.
    """
    numbers = (evidence.temperature, evidence.low, evidence.high)
    fitted, *ends = (_unlike_one(number) for number in numbers)
    temperature = f"{fitted} [{', '.join(ends)}]"
    if evidence.high == math.inf:
        return Advice(
            scale=False,
            sentence=f"The logits may say nothing about the labels: T = {temperature} "
            f"may be infinite. {CHECK_COLUMNS}",
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
        start = _LEAVE
        # The interval for the ECE of a calibrated model excludes 0 now and then, but
        # its lower end hardly ever exceeds the noise floor.
        if evidence.before_low > evidence.noise_floor:
            start = _NO_TEMPERATURE
            low_percent = f"{100 * evidence.before_low:.2g}"
            reason = f"ECE {before} %, at least {low_percent}; {reason}"
        return Advice(scale=False, sentence=f"{start}: {reason}.")
    state = "Overconfident" if evidence.temperature > 1 else "Underconfident"
    after = f"{100 * evidence.after:.1f}"
    return Advice(
        scale=True,
        sentence=f"{state}: divide the logits by {temperature}; "
        f"ECE {before} -> {after} % (change {change}).",
    )


def three_digits(value: float) -> str:
    """Write the positive number `value` with at least three significant digits."""
    if not 1e-4 <= value < 1e7:
        return f"{value:.2e}" if 0 < value < math.inf else f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{decimals}f}"


def _unlike_one(value: float) -> str:
    """Write `value` with enough digits that only 1 itself looks like 1."""
    text = three_digits(value)
    decimals = 3
    while float(text.replace(",", "")) == 1 != value and decimals < MOST_DECIMALS:
        text = f"{value:.{decimals}f}"
        decimals += 1
    return text


def _points(share: float) -> str:
    """Write the change of a fraction in points, with its sign.

    A change is written as 0 only if it is 0.
    """
    points = 100 * share
    # Show one digit of a small change, because its sign decides the advice.
    return f"{points:+.1f}" if abs(points) >= 0.05 or not points else f"{points:+.1g}"
