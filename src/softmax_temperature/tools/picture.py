"""The picture on the front page: results of three committed studies.

Crosses mark the values that the papers print. The other numbers are those by which the
claims are judged, or those of the papers' tables.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from softmax_temperature.papers.classifier_temperature import study as collection
from softmax_temperature.papers.cooling import study as cooling
from softmax_temperature.papers.cooling.claims import gain_on_each_schedule
from softmax_temperature.papers.cooling.tables import printed_table_1
from softmax_temperature.papers.focal import records as focal
from softmax_temperature.papers.shared import plots
from softmax_temperature.papers.shared.display import MODES, SCHEDULES
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.statistics import OverTasks, Quantity, pooled

NAME = "summary"
# Folders below results/ from which the panels take their numbers.
FOCAL = "focal_cifar10/focal"
COOLING = "cooling_cifar10/cooling"
RULES = "collection/classifier_temperature"

_RULES = {
    "none (1)": "no scaling",
    "square root of dimension": "√dimension",
    "best constant": "best constant",
    "chosen on validation": "search on\nvalidation data",
    "ridge of the logarithm (ours)": "predicted from\nstatistics (ours)",
}
# From no schedule to the smoothest.
_SCHEDULES = {
    "none": "constant\nrate",
    "piecewise": "piecewise",
    "exponential_slow": "exponential,\nslow",
    "exponential_fast": "exponential,\nfast",
    "linear": "linear",
    "cosine": "cosine",
}
_CROSS: Any = {
    "color": plots.BLACK,
    "zorder": 4,
    "marker": "x",
    "ls": "none",
    "markersize": 5,
    "mew": 1.1,
}


class _Scaling(NamedTuple):
    """One series of the first panel: ECE before or after temperature scaling."""

    key: str
    label: str
    published_metric: str
    hue: int
    shift: float


_SCALINGS = (
    _Scaling("none", "before scaling", "ece", hue=3, shift=0.16),
    _Scaling(focal.SCALED, "after scaling", "ece_after_scaling", hue=0, shift=-0.16),
)


@plots.style()
def draw(results: Path, folder: Path) -> Path:
    """Draw `summary.svg` and `summary.png`, and return the path of the latter.

    Args:
        results: Folder of all results.
        folder: Folder for the picture.
    """
    figure, grid = plots.panels(3, width=10.5, row=3.6)
    _losses(grid[0], focal.read_records(results / FOCAL))
    _rules(grid[1], collection.read(results / RULES))
    _modes(grid[2], cooling.read(results / COOLING))
    plots.save(figure, folder, NAME)
    return folder / f"{NAME}.png"


def _losses(axes: Axes, records: focal.Records) -> None:
    """Calibration error of each loss after the last epoch, before and after scaling."""
    printed = published("focal", "Table 1").query(
        "dataset == 'CIFAR-10' and model == 'ResNet-50'"
    )
    printed = printed.astype({"value": float})
    printed_values = printed.set_index(["metric", "method"])["value"]
    parts = calibration(records)
    for scaling in _SCALINGS:
        values = [parts.get((scaling.key, loss)) for loss in focal.MAIN_ARMS]
        _dots(
            axes,
            values,
            scaling.shift,
            label=scaling.label,
            color=plots.HUES[scaling.hue],
        )
        crosses = [
            printed_values[scaling.published_metric, loss] for loss in focal.MAIN_ARMS
        ]
        _crosses(axes, crosses, scaling.shift)
    _finish(
        axes,
        focal.MAIN_ARMS,
        unit="expected calibration error (%)",
        title=f"Calibration by loss\nCIFAR-10, {_seeds(parts)}",
        printed="printed: ResNet-50",
    )
    axes.set_xlim(left=0)


def calibration(records: focal.Records) -> dict[tuple[str, str], OverTasks]:
    """Test ECE by scaling and loss.

    Only finished trainings count, with the main recipe, on CIFAR-10 or a part of it.
    """
    tasks = focal.main_tasks(records)
    dataset_families = tasks["dataset"].str.partition("-")[0]
    cifar10_tasks = tasks.loc[dataset_families == "cifar10", "task"]
    runs = focal.finished(records, "runs", evaluated="last")
    runs = runs[
        runs["task"].isin(cifar10_tasks)
        & runs["arm"].isin(focal.MAIN_ARMS)
        & runs["scaling"].isin([scaling.key for scaling in _SCALINGS])
    ]
    errors = {}
    for (scaling, loss), rows in runs.groupby(["scaling", "arm"]):
        by_task = {
            str(task): values.tolist()
            for task, values in rows.groupby("task")[focal.ECE]
        }
        errors[str(scaling), str(loss)] = OverTasks(pooled(by_task))
    return errors


def _rules(axes: Axes, runs: Runs) -> None:
    """Accuracy that each rule loses against the best temperature of a full search.

    The values of an interval are data sets.
    """
    rules = runs.tables["rules"]
    lost = rules.groupby(["rule", "dataset"])["accuracy_lost"].mean()
    parts = [OverTasks(pooled({rule: lost[rule]})) for rule in _RULES]
    _dots(axes, parts, 0.0, color=plots.HUES[0])
    datasets = rules["dataset"].nunique()
    _finish(
        axes,
        list(_RULES.values()),
        unit="accuracy lost (points)",
        title=f"Cosine classifier by rule for T\n{datasets} data sets",
    )
    axes.set_xlim(left=0)


def _modes(axes: Axes, runs: Runs) -> None:
    """Accuracy that each mode of Cooling adds to each schedule, as claims judge it."""
    parts = {}
    for mode in cooling.MODES:
        on_schedules = gain_on_each_schedule(mode).evidence(runs).parts
        for schedule, part in on_schedules.items():
            parts[mode, schedule] = part
    trained = {schedule for _, schedule in parts}
    schedules = [name for name in _SCHEDULES if SCHEDULES[name] in trained]
    printed = printed_table_1().pivot(
        index="schedule", columns="mode", values="published"
    )
    printed_gains = plots.PERCENT * printed.sub(printed["none"], axis="index")
    for number, mode in enumerate(reversed(cooling.MODES)):
        shift = 0.22 - 0.22 * number
        _dots(
            axes,
            [parts.get((mode, SCHEDULES[name])) for name in schedules],
            shift,
            label=MODES[mode].lower(),
            color=plots.HUES[number],
        )
        _crosses(axes, printed_gains.loc[schedules, mode].tolist(), shift)
    axes.axvline(0, color=plots.BLACK, linewidth=0.7)
    _finish(
        axes,
        [_SCHEDULES[name] for name in schedules],
        unit="accuracy gained (points)",
        title=f"Cooling on each schedule\nCIFAR-10, {_seeds(parts)}",
        printed="printed",
    )


def _dots(
    axes: Axes, parts: Sequence[Quantity | None], shift: float, **look: Any
) -> None:
    """Draw values with their 90 % intervals, in percent, one below the other.

    Nothing is drawn for a value that is None.
    """
    heights = []
    values = []
    ends = []
    for position, part in enumerate(parts):
        if part is None:
            continue
        estimate = part.estimate()
        heights.append(shift - position)
        values.append(estimate.value)
        ends.append(estimate.ends or (estimate.value, estimate.value))
    lengths = np.abs(np.reshape(ends, (-1, 2)).T - np.array(values))
    axes.errorbar(
        plots.PERCENT * np.array(values),
        heights,
        xerr=plots.PERCENT * lengths,
        fmt="o",
        markersize=4,
        linewidth=1.2,
        **look,
    )


def _crosses(axes: Axes, values: Sequence[float], shift: float) -> None:
    axes.plot(values, shift - np.arange(len(values)), **_CROSS)


def _seeds(parts: Mapping[Any, Quantity]) -> str:
    """The number of seeds behind the values, or its range."""
    counts = [task["n"] for part in parts.values() for task in part.by_task()]
    fewest = min(counts)
    most = max(counts)
    if fewest == most:
        return f"{fewest} seeds"
    return f"{fewest} to {most} seeds"


def _finish(
    axes: Axes, names: Sequence[str], *, unit: str, title: str, printed: str = ""
) -> None:
    axes.set_yticks(-np.arange(len(names)), names)
    axes.set_xlabel(unit)
    axes.set_title(title, loc="left")
    if printed:
        axes.plot([], [], label=printed, **_CROSS)
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.45, -0.18), ncols=2, fontsize=7.5
        )
