"""A suggestion as a person reads it."""

from __future__ import annotations

from typing import Any

from softmax_temperature.dataset_statistics import STATISTICS

_COLUMNS = 3
_OF_STUDY = {"heuristic": "{}-Best Stats, least squares", "median of the study": "median of other data sets"}


def summary(suggestion: dict[str, Any]) -> str:
    """The whole suggestion; accuracies in percent, inverse temperatures multiply the cosines."""
    parts = [_prediction(suggestion), _range(suggestion), _rules(suggestion)]
    if suggestion["search"]:
        parts.append(_search(suggestion))
    parts.append(_statistics(suggestion["statistics"]))
    return "\n\n".join("\n".join(lines) for lines in parts)


def _prediction(suggestion: dict[str, Any]) -> list[str]:
    found, rows = suggestion["prediction"], suggestion["rows"]
    value, low, high = (f"{found[key]:.3g}" for key in ("inverse_temperature", "low", "high"))
    lines = [f"Inverse temperature {value}, {100 * found['level']:g} % interval {low} to {high}"]
    if found["linear"] != found["inverse_temperature"]:
        lines.append(f"(the regression's own value, {found['linear']:.3g}, lies outside the searched range)")
    drawn = f", drawn at random from {rows['train']:,}" if rows["described"] < rows["train"] else ""
    source = f"from the statistics of {rows['described']:,} rows{drawn}"
    held_out = f"; {rows['test']:,} rows of all classes were held out before" if rows["held_out"] else ""
    return [*lines, source + held_out]


def _range(suggestion: dict[str, Any]) -> list[str]:
    found, study = suggestion["prediction"], suggestion["study"]
    size = f"{study['pairs']} pairs of {len(study['datasets'])} data sets and backbones ({study['profile']})"
    head = f"The heuristic was fitted on {size}, and uses:"
    used = [
        f"  {name:<18}{one['value']:>9.4g}   fitted on {one['low']:.4g} to {one['high']:.4g}"
        + ("" if one["low"] <= one["value"] <= one["high"] else "   OUTSIDE")
        for name, one in found["used"].items()
    ]
    verdict = (
        "All lie inside the range that it was fitted on."
        if found["inside"]
        else "These data lie outside the range that it was fitted on: the interval promises nothing."
    )
    others = [name for name in suggestion["outside"] if name not in found["used"]]
    more = [f"Not used, but outside the study's range too: {', '.join(others)}."] if others else []
    return [head, *used, verdict, *more]


def _rules(suggestion: dict[str, Any]) -> list[str]:
    """Each rule's value, and what it cost on the data sets of the study."""
    lost = suggestion["accuracy_lost"]
    lines = [f"{'rule':<28}{'inverse temperature':>20}{'points lost in the study':>28}"]
    for name, value in suggestion["rules"].items():
        key = _OF_STUDY.get(name, name).format(len(suggestion["prediction"]["used"]))
        cost = f"{100 * lost[key]:.1f}" if key in lost else "–"
        lines.append(f"{name:<28}{value:>20.3g}{cost:>28}")
    return lines


def _search(suggestion: dict[str, Any]) -> list[str]:
    found = suggestion["search"]
    low, high = found["plateau"]
    best, error = 100 * found["best_accuracy"], 100 * found["standard_error"]
    grid, rows = len(found["inverse_temperatures"]), f"{found['test_rows']:,} rows after {found['epochs']:,} epochs"
    lines = [
        f"Searched {grid}: the best is {found['best_inverse_temperature']:g}, and {low:g} to {high:g} are as good;",
        f"accuracy {best:.1f} ± {error:.1f} % on {rows}.",
        f"{'rule':<28}{'accuracy (%)':>20}{'points lost':>28}",
    ]
    for name, one in found["rules"].items():
        place = "   on the plateau" if one["on_plateau"] else ""
        lines.append(f"{name:<28}{100 * one['accuracy']:>20.1f}{100 * one['accuracy_lost']:>28.1f}{place}")
    return lines


def _statistics(statistics: dict[str, float]) -> list[str]:
    cells = [f"{name:<18}{statistics[name]:>9.4g}" for name in STATISTICS]
    return ["   ".join(cells[start : start + _COLUMNS]).rstrip() for start in range(0, len(cells), _COLUMNS)]
