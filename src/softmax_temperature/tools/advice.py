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
    """The values in a report that determine the advice; ECEs are fractions.

    Attributes:
        temperature: The temperature that minimises the NLL.
        low: Lower end of the 90 % interval for the temperature.
        high: Upper end of the 90 % interval for the temperature.
        before: ECE of the unscaled logits.
        after: ECE of the logits divided by the temperature.
        change: 90 % interval for the change in true ECE due to scaling.
        noise_floor: Mean ECE of a perfectly calibrated model on as many rows.
        before_low: Lower end of the 90 % interval for the true ECE of the unscaled
            logits.
        nll_change: Change in NLL due to scaling, nats.
        nll_interval: 90 % interval for that change.
    """

    temperature: float
    low: float
    high: float
    before: float
    after: float
    change: tuple[float, float]
    noise_floor: float
    before_low: float
    nll_change: float
    nll_interval: tuple[float, float]


class Advice(NamedTuple):
    """Whether to divide the logits by the temperature, and why."""

    scale: bool
    sentence: str


def advise(evidence: Evidence) -> Advice:
    """Decide whether to scale the logits, and give the reason.

    The advice is to scale only if the interval for the temperature excludes 1, the ECE
    is above its noise floor, and the interval for the change in ECE lies below 0. If
    the interval for the temperature has no upper end, the logits may carry no
    information about the labels, and the advice is to check the columns. If the advice
    is not to scale, the logits can still be miscalibrated, for instance because the
    class frequencies were different in training. With few rows, the temperature and the
    NLL can show a miscalibration that the ECE does not show; the sentence then says so.
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
    change = _change(evidence)
    before = f"{100 * evidence.before:.1f}"
    doubts = _doubts(evidence, temperature, change)
    if doubts:
        return Advice(scale=False, sentence=_leave(evidence, temperature, doubts))
    after = f"{100 * evidence.after:.1f}"
    return Advice(
        scale=True,
        sentence=f"{_state(evidence)}: divide the logits by {temperature}; "
        f"ECE {before} -> {after} % (change {change}).",
    )


def _doubts(evidence: Evidence, temperature: str, change: str) -> list[str]:
    """The reasons not to scale."""
    doubts = []
    if evidence.low <= 1 <= evidence.high:
        doubts.append(f"T = {temperature} may be 1")
    if evidence.before <= evidence.noise_floor:
        before = f"{100 * evidence.before:.1f}"
        floor = f"{100 * evidence.noise_floor:.1f}"
        doubts.append(f"an ECE of {before} % is not above its noise floor, {floor} %")
    if evidence.change[0] > 0:
        doubts.append(f"scaling by T raises the ECE (change {change} points)")
    elif evidence.change[1] >= 0:
        doubts.append(f"scaling by T may not lower the ECE (change {change} points)")
    return doubts


def _leave(evidence: Evidence, temperature: str, doubts: list[str]) -> str:
    """The sentence that advises against scaling, for the reasons in `doubts`."""
    reason = "; ".join(doubts)
    if not evidence.low <= 1 <= evidence.high:
        # With few rows, the likelihood can show a miscalibration that the ECE does not
        # show.
        if evidence.nll_interval[1] < 0 and evidence.change[0] < 0:
            return _probably(evidence, temperature, reason)
        outlook = "more rows may decide"
        if evidence.change[0] > 0:
            outlook = "the rows on which T was fitted may differ from these"
        reason = f"by NLL, T = {temperature}, but {reason}; {outlook}"
    # The interval for the ECE of a calibrated model excludes 0 now and then, but its
    # lower end hardly ever exceeds the noise floor.
    if evidence.before_low <= evidence.noise_floor:
        return f"{_LEAVE}: {reason}."
    before = f"{100 * evidence.before:.1f}"
    low = f"{100 * evidence.before_low:.2g}"
    return f"{_NO_TEMPERATURE}: ECE {before} %, at least {low}; {reason}."


def _state(evidence: Evidence) -> str:
    return "Overconfident" if evidence.temperature > 1 else "Underconfident"


def _change(evidence: Evidence) -> str:
    low, high = map(_points, evidence.change)
    return f"{_points(evidence.after - evidence.before)} [{low}, {high}]"


def _probably(evidence: Evidence, temperature: str, doubts: str) -> str:
    """The sentence if the NLL shows a miscalibration that the ECE does not show."""
    low, high = evidence.nll_interval
    return (
        f"Probably {_state(evidence).lower()}, but these rows are too few to advise "
        f"scaling: T = {temperature} lowers the NLL (change {evidence.nll_change:.3g} "
        f"[{low:.3g}, {high:.3g}] nats), but {doubts}. Get more rows, and leave the "
        "logits as they are until then."
    )


def three_digits(value: float) -> str:
    """Format the positive number `value` with at least three significant digits."""
    if not 1e-4 <= value < 1e7:
        return f"{value:.2e}" if 0 < value < math.inf else f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{decimals}f}"


def _unlike_one(value: float) -> str:
    """Format `value` with enough digits that only 1 itself is shown as 1."""
    text = three_digits(value)
    decimals = 3
    while float(text.replace(",", "")) == 1 != value and decimals < MOST_DECIMALS:
        text = f"{value:.{decimals}f}"
        decimals += 1
    return text


def _points(share: float) -> str:
    """Format a change in a fraction as percentage points with a sign.

    A change is shown as 0 only if it is exactly 0.
    """
    points = 100 * share
    # Show one digit of a small change, because its sign decides the advice.
    return f"{points:+.1f}" if abs(points) >= 0.05 or not points else f"{points:+.1g}"
