"""A calibration report as a person reads it: rows and temperatures in sentences, metrics in columns."""

from __future__ import annotations

from typing import Any, NamedTuple

_ROWS = (
    ("accuracy (%)", "accuracy", 100),
    ("top-5 accuracy (%)", "top5_accuracy", 100),
    ("NLL (nats)", "negative_log_likelihood", 1),
    ("Brier score", "brier_score", 1),
    ("ECE (%)", "expected_calibration_error", 100),
    ("  noise floor (%)", "noise_floor", 100),
    ("  debiased (%)", "debiased_calibration_error", 100),
    ("MCE (%)", "maximum_calibration_error", 100),
    ("AdaECE (%)", "adaptive_calibration_error", 100),
    ("Classwise-ECE (%)", "classwise_calibration_error", 100),
)
_NOTE = "An ECE near the noise floor, which a perfectly calibrated model shows too, is no evidence of miscalibration."
_INTERVALS = (
    "In brackets: 90 % intervals, percentiles over {:,} resamples. Calibration errors are biased upwards, those of\n"
    "resamples twice as much, so an interval may lie above its value."
)


class Row(NamedTuple):
    """One line of the table of metrics.

    Attributes:
        label: what it is, with its unit.
        cells: for each arm the value, and its interval or an empty text.
    """

    label: str
    cells: tuple[tuple[str, str], ...]


def summary(report: dict[str, Any]) -> str:
    """The whole report as text: percent, nats."""
    parts = [[title(report), origin(report)], temperatures(report), _columns(report), notes(report)]
    return "\n\n".join("\n".join(lines) for lines in parts)


def title(report: dict[str, Any]) -> str:
    """The file, and which network of it."""
    source = report["source"]
    file = source["files"]["logits"]["file"]
    return file if source["network"] is None else f"{file}, {source['network']}"


def origin(report: dict[str, Any]) -> str:
    """Which rows the temperature was fitted on, and which were reported on."""
    settings, rows = report["settings"], report["rows"]
    fitted, reported = f"{rows['fitted']:,}", f"{rows['reported']:,}"
    return {
        "validation": f"Temperature fitted on the {fitted} validation rows; metrics of the {reported} rows of logits.",
        "half": f"Temperature fitted on a random half of every class, {fitted} rows (seed {settings['seed']}); "
        f"metrics of the other {reported} rows.",
        "all": f"Temperature fitted on the same {reported} rows that the metrics are of: those after scaling flatter.",
    }[settings["fit_on"]]


def temperatures(report: dict[str, Any]) -> list[str]:
    """The fitted temperatures, a sentence each."""
    return [_temperature(by, fit) for by, fit in report["temperature"].items()]


def heading(report: dict[str, Any], arm: str) -> str:
    """What an arm is."""
    if arm == "before":
        return "before scaling"
    return f"T = {report['temperature'][arm]['temperature']:.4g}, by {arm.upper()}"


def metric_rows(report: dict[str, Any]) -> list[Row]:
    """The metrics, a row each, with a cell for each arm."""
    arms = report["metrics"].values()
    return [Row(label, tuple(_cell(values, key, scale) for values in arms)) for label, key, scale in _ROWS]


def notes(report: dict[str, Any]) -> list[str]:
    """How to read the numbers."""
    bootstrap = report["settings"]["bootstrap"]
    return [_NOTE, _INTERVALS.format(bootstrap)] if bootstrap else [_NOTE]


def _temperature(by: str, fit: dict[str, Any]) -> str:
    at_bound = " (at a bound of the search: not an optimum)" if fit["at_bound"] else ""
    return f"Temperature by {by.upper()}: {fit['temperature']:.4g}{at_bound}"


def _columns(report: dict[str, Any]) -> list[str]:
    """A line for the headings and one for each metric, in columns."""
    lines = [[row.label, *(" ".join(filter(None, cell)) for cell in row.cells)] for row in metric_rows(report)]
    lines.insert(0, ["", *(heading(report, arm) for arm in report["metrics"])])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def _cell(values: dict[str, Any], key: str, scale: int) -> tuple[str, str]:
    digits = 2 if scale == 100 else 4
    value, *bounds = (f"{scale * number:.{digits}f}" for number in (values[key], *values["intervals"].get(key, ())))
    return value, f"[{', '.join(bounds)}]" if bounds else ""
