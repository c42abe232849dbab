"""The picture on the front page: three findings from the committed studies, printed values as crosses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from softmax_temperature.papers.shared import plots
from softmax_temperature.papers.shared.statistics import OverTasks, Task
from softmax_temperature.papers.shared.tables import published, read_csv
from softmax_temperature.runner.errors import InputError

NAME = "summary"
FOCAL = ("focal_cifar10/focal", "cifar10_cpu/focal")
COOLING = ("cooling_cifar10/cooling", "cifar10_cpu_cooling/cooling")
RULES = ("collection/classifier_temperature",)
"""Where below results/ the numbers of a panel come from: the first folder that is there."""

_LOSSES = ("CE", "Brier", "MMCE", "LS-0.05", "FL-3", "FLSD-53")
_RULES = {
    "none (1)": "no scaling",
    "square root of dimension": "√dimension",
    "best constant": "best constant",
    "chosen on validation": "search on\nvalidation data",
    "ridge of the logarithm (ours)": "predicted from\nstatistics (ours)",
}
_MODES = {"last_layer": "Last layer", "distributed": "Distributed", "periodic": "Periodically redistributed"}
_SCHEDULES = {"none": "None", "piecewise": "Piecewise Const", "linear": "Linear", "cosine": "Cosine"}
_LAST_EPOCHS = 10
_CROSS: Any = {"marker": "x", "linestyle": "none", "markersize": 5, "markeredgewidth": 1.1}


@plots.style()
def draw(results: Path, folder: Path) -> Path:
    """Draw `summary.svg` and `summary.png` into a folder from the folder of all results; returns the latter's path."""
    figure, (losses, rules, modes) = plots.panels(3, width=10.5, row=3.6)
    _losses(losses, read_csv(_first(results, FOCAL) / "runs.csv"))
    _rules(rules, read_csv(_first(results, RULES) / "tables" / "rules.csv"))
    _modes(modes, read_csv(_first(results, COOLING) / "tables" / "history.csv"))
    return plots.save(figure, folder, NAME)


def _first(results: Path, names: Sequence[str]) -> Path:
    found = [results / name for name in names if (results / name / "claims.json").is_file()]
    if not found:
        raise InputError(f"none of {', '.join(names)}", where=str(results), remedy="Take the results from Git.")
    return found[0]


def _losses(axes: Axes, runs: pd.DataFrame) -> None:
    """Calibration error of each loss, before scaling and at the temperature with the least of it on held-out data."""
    printed = published("focal", "Table 1")
    printed = printed[(printed["dataset"] == "CIFAR-10") & (printed["model"] == "ResNet-50")]
    for scaling, metric, hue, shift in (("none", "ece", 3, 0.16), ("ece", "ece_after_scaling", 0, -0.16)):
        look = {"color": plots.HUES[hue], "label": "before scaling" if scaling == "none" else "after scaling"}
        rows = runs[runs["scaling"] == scaling].groupby("arm")["expected_calibration_error"]
        _estimates(axes, [rows.get_group(loss) for loss in _LOSSES], shift, **look)
        values = printed[printed["metric"] == metric].set_index("method")["value"].astype(float)
        _printed(axes, [values[loss] for loss in _LOSSES], shift, look["color"])
    title = f"Calibration by loss\nCIFAR-10, {runs['seed'].nunique()} seeds"
    _finish(axes, _LOSSES, "expected calibration error (%)", title)
    axes.set_xlim(left=0)
    _legend(axes, "printed: ResNet-50")


def _rules(axes: Axes, rules: pd.DataFrame) -> None:
    """What each rule for the temperature loses against the best one of a full search, data sets being the values."""
    lost = rules.groupby(["rule", "dataset"])["accuracy_lost"].mean()
    _estimates(axes, [lost[rule] for rule in _RULES], 0.0, color=plots.HUES[0])
    title = f"Cosine classifier by rule for T\n{rules['dataset'].nunique()} data sets"
    _finish(axes, [*_RULES.values()], "accuracy lost (points)", title)
    axes.set_xlim(left=0)


def _modes(axes: Axes, history: pd.DataFrame) -> None:
    """What each mode of Cooling adds to each schedule: the mean of the last epochs, paired by seed."""
    history = history[(history["split"] == "test") & (history["experiment"] == history["experiment"].iloc[0])]
    late = history[history["epoch"] > history["epoch"].max() - _LAST_EPOCHS]
    runs = late.groupby(["arm", "schedule", "seed"])["accuracy"].mean()
    schedules = {name: its for name, its in _SCHEDULES.items() if name in set(late["schedule"])}
    printed = published("cooling", "Table 1").set_index("method")["value"].astype(float)
    for number, (mode, name) in enumerate(_MODES.items()):
        hue, shift = plots.HUES[number], 0.22 - 0.22 * number
        gains = [runs[mode, schedule] - runs["none", schedule] for schedule in schedules]
        _estimates(axes, [gain.dropna() for gain in gains], shift, color=hue, label=name.lower())
        with_it, without = (
            np.array([printed[f"{arm} | LR schedule: {its}"] for its in schedules.values()])
            for arm in (name, "No Cooling")
        )
        _printed(axes, with_it - without, shift, hue)
    axes.axvline(0, color=plots.BLACK, linewidth=0.7)
    names = [{"none": "constant\nrate"}.get(name, name) for name in schedules]
    title = f"Cooling on each schedule\nCIFAR-10, {late['seed'].nunique()} seeds"
    _finish(axes, names, "accuracy gained (points)", title)
    _legend(axes, "printed")


def _estimates(axes: Axes, samples: Sequence[pd.Series], shift: float, **look: Any) -> None:
    """Means with their 90 % intervals, in percent, one below the other."""
    means = [OverTasks((Task("", tuple(plots.PERCENT * values)),)).estimate() for values in samples]
    halves = [mean.value - (mean.low or mean.value) for mean in means]
    places = shift - np.arange(len(means))
    axes.errorbar([mean.value for mean in means], places, xerr=halves, fmt="o", markersize=4, linewidth=1.2, **look)


def _printed(axes: Axes, values: Any, shift: float, color: Any) -> None:
    axes.plot(values, shift - np.arange(len(values)), color=color, **_CROSS)


def _finish(axes: Axes, names: Sequence[str], unit: str, title: str) -> None:
    axes.set_yticks(-np.arange(len(names)), names)
    axes.set_xlabel(unit)
    axes.set_title(title, loc="left")


def _legend(axes: Axes, printed: str) -> None:
    axes.plot([], [], color=plots.BLACK, label=printed, **_CROSS)
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.18), ncols=2, fontsize=7.5)
