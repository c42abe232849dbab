"""The picture on the front page: one finding per paper, from committed studies.

Dots show our values, with 90 % intervals; crosses of the same colour show the papers'
values. Our values are estimated from the studies' runs and tables. For Cooling, they
are estimated in the same way as for the paper's claims, except in the row that uses all
seeds.

The picture is drawn in two shapes: `summary` has two columns, for the screen of a
desktop, and `summary-tall` has one column, for the screen of a phone. Each of them also
has a version for dark pages, `summary-dark` and `summary-tall-dark`.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy import stats

from softmax_temperature.papers.classifier_temperature import study as collection
from softmax_temperature.papers.cooling import study as cooling
from softmax_temperature.papers.cooling.claims import gain_on_each_schedule
from softmax_temperature.papers.cooling.figures import COLOURS
from softmax_temperature.papers.cooling.tables import printed_table_1
from softmax_temperature.papers.focal import study as focal
from softmax_temperature.papers.shared import figures
from softmax_temperature.papers.shared.contrasts import Mean
from softmax_temperature.papers.shared.display import MODES, SCHEDULE_WORDS, SCHEDULES
from softmax_temperature.papers.shared.factors import dataset_in
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.statistics import (
    Estimate,
    OverTasks,
    Quantity,
    Task,
)
from softmax_temperature.papers.temperature_check import study as temperature_check
from softmax_temperature.papers.temperature_check.figures import sweep_title

WIDE = "summary"
TALL = "summary-tall"
FOCAL = "focal_cifar10/focal"
COOLING = "cooling_cifar10/cooling"
RULES = "collection/classifier_temperature"
SWEEPS = "temperature_check/temperature_check"
"""The folders in results/ from which the panels take their numbers."""

_RULES = {
    "none (1)": "no scaling",
    "square root of dimension": "√dimension",
    "best constant": "best constant",
    "chosen on validation": "search on\nvalidation data",
    "ridge of the logarithm (ours)": "predicted from\nstatistics (ours)",
}
BEFORE_SCALING = "before scaling"
AFTER_SCALING = "after scaling"
_SCALINGS = {
    BEFORE_SCALING: ("ece", 3, 0.16),
    AFTER_SCALING: ("ece_after_scaling", 0, -0.16),
}
"""For each scaling: the metric in the paper's table, the hue, and the vertical shift.
"""
_CROSS: Any = {
    "zorder": 4,
    "marker": "x",
    "ls": "none",
    "markersize": 6,
    "mew": 1.3,
}


@dataclass(frozen=True)
class Page:
    """The look of a picture on one kind of page, light or dark.

    Attributes:
        suffix: The end of the picture's name.
        endings: The formats of the picture.
        settings: matplotlib's settings, in addition to those of `figures.style`.
        ink: The colour of text and axes.
        replaced: Maps each colour that is too faint here to the colour drawn instead.
    """

    suffix: str = ""
    endings: Sequence[str] = ("svg", "png")
    # The type is Any because matplotlib's stubs list every key.
    settings: Any = field(default_factory=dict)
    ink: Any = figures.BLACK
    replaced: Mapping[Any, Any] = field(default_factory=dict)

    def colour(self, colour: Any) -> Any:
        """The colour that is drawn in place of `colour` on this page."""
        return self.replaced.get(colour, colour)


_DARK_PAPER = "#0d1117"
_DARK_INK = "#d1d7e0"
_INKED = (
    "axes.edgecolor",
    "axes.labelcolor",
    "text.color",
    "xtick.color",
    "ytick.color",
)
PAGES = (
    Page(),
    Page(
        suffix="-dark",
        endings=("png",),
        settings={
            "figure.facecolor": _DARK_PAPER,
            "axes.facecolor": _DARK_PAPER,
            **dict.fromkeys(_INKED, _DARK_INK),
        },
        ink=_DARK_INK,
        # Light blue in place of dark blue.
        replaced={figures.HUES[0]: figures.HUES[9]},
    ),
)


@figures.style()
def draw(results: Path, folder: Path) -> list[Path]:
    """Draw the wide and the tall picture for each of `PAGES`.

    Args:
        results: The folder of all results.
        folder: The folder to write the pictures into.

    Returns:
        The paths of the png files.
    """
    measured = _measured(results)
    names = []
    for page in PAGES:
        with mpl.rc_context(page.settings):
            wide, grid = figures.panels(4, columns=2, width=9.5, row=3.7)
            _draw_panels(grid, measured, page)
            figures.save(wide, folder, WIDE + page.suffix, page.endings)
            tall, grid = figures.panels(4, columns=1, width=4.6, row=3.7)
            _draw_panels(grid, measured, page)
            figures.save(tall, folder, TALL + page.suffix, page.endings)
        names += [WIDE + page.suffix, TALL + page.suffix]
    return [folder / f"{name}.png" for name in names]


class _Measured(NamedTuple):
    """What the panels show; measured once, because each panel is drawn four times."""

    errors: dict[tuple[str, str], Quantity]
    """The calibration errors that `calibration` returns."""
    gains: dict[tuple[str, str], Quantity]
    """The gain in accuracy of each mode of Cooling on each schedule."""
    table_1: pd.DataFrame
    """The Cooling study's own Table 1."""
    rules: Runs
    """The runs of the study of rules."""
    temperatures: Runs
    """The runs of the study of inverse temperatures."""


def _measured(results: Path) -> _Measured:
    """Read the four studies below `results`, and measure what the panels show."""
    of_modes = cooling.read(results / COOLING)
    gains = {}
    for mode in cooling.COOLING_MODES:
        on_schedules = gain_on_each_schedule(mode).evidence(of_modes).parts
        for schedule, part in on_schedules.items():
            gains[mode, schedule] = part
    return _Measured(
        errors=calibration(focal.read(results / FOCAL)),
        gains=gains,
        table_1=read_csv(results / COOLING / "tables/table_1.csv"),
        rules=collection.read(results / RULES),
        temperatures=temperature_check.read(results / SWEEPS),
    )


def _draw_panels(grid: Sequence[Axes], measured: _Measured, page: Page) -> None:
    losses, modes, rules, inverse_temperatures = grid
    _losses(losses, measured.errors, page)
    _modes(modes, measured.gains, measured.table_1, page)
    _rules(rules, measured.rules, page)
    _inverse_temperatures(inverse_temperatures, measured.temperatures, page)


def _losses(axes: Axes, parts: Mapping[tuple[str, str], Quantity], page: Page) -> None:
    """Draw the calibration error of each loss, before and after temperature scaling.

    The error is measured after the last epoch. The temperature is the one with the
    lowest calibration error on validation data.
    """
    printed = published("focal", "Table 1").query(
        "dataset == 'CIFAR-10' and model == 'ResNet-50'"
    )
    crosses = printed.astype({"value": float}).set_index(["metric", "method"])["value"]
    losses = list(focal.TABLE_1_LOSSES)
    for scaling, (metric, hue, shift) in _SCALINGS.items():
        dots = [_estimate(parts.get((scaling, loss))) for loss in losses]
        colour = page.colour(figures.HUES[hue])
        _dots(axes, dots, shift, label=scaling, color=colour)
        _crosses(axes, [crosses[metric, loss] for loss in losses], shift, colour)
    title = (
        "Focal loss: calibration error by loss\n"
        f"CIFAR-10, 10,000 images, {_seeds(parts)}"
    )
    unit = "expected calibration error (%)"
    _finish(axes, losses, unit, title)
    _legend_with_crosses(axes, "printed: ResNet-50", page)
    axes.set_xlim(left=0)


def calibration(runs: Runs) -> dict[tuple[str, str], Quantity]:
    """The test ECE of finished runs, keyed by scaling and loss.

    Only runs with the main recipe on CIFAR-10, or on a part of it, are included.
    """
    metrics = {
        BEFORE_SCALING: focal.ECE,
        AFTER_SCALING: focal.after_scaling(focal.ECE),
    }
    parts = {}
    for scaling, metric in metrics.items():
        for label, loss in focal.TABLE_1_LOSSES.items():
            mean = Mean(
                of=metric,
                among=focal.MAIN & dataset_in(["cifar10"]) & loss,
                tasks=focal.EXPERIMENT,
            )
            for part in mean.evidence(runs).parts.values():
                parts[scaling, label] = part
    return parts


def _rules(axes: Axes, runs: Runs, page: Page) -> None:
    """Draw the accuracy that each rule loses compared with the best value.

    The intervals show the variation over data sets.
    """
    rules = runs.tables["rules"]
    lost = rules.groupby(["rule", "dataset"])["accuracy_lost"].mean()
    parts = [OverTasks((Task(rule, tuple(lost[rule])),)) for rule in _RULES]
    _dots(axes, [*map(_estimate, parts)], 0.0, color=page.colour(figures.HUES[0]))
    datasets = rules["dataset"].nunique()
    title = (
        "Cosine classifier: accuracy lost by each rule\n"
        f"for the inverse temperature, {datasets} data sets"
    )
    _finish(axes, [*_RULES.values()], "accuracy lost (points)", title)
    axes.set_xlim(left=0)


def gains_over_all_seeds(table_1: pd.DataFrame) -> dict[str, Estimate]:
    """The accuracy that each mode of Cooling adds without a schedule, over all seeds.

    Claims pair runs that have the same seed, but some modes have more seeds than the
    network without Cooling. Here all seeds are compared, with Welch's 90 % interval. A
    mode that does not have more seeds is left out.

    Args:
        table_1: The study's own Table 1, with `ours`, `ours_sd` and `seeds`.
    """
    summaries = _without_schedule(table_1)
    without, sd_without, n_without = summaries["none"]
    gains = {}
    for mode in cooling.COOLING_MODES:
        mean, sd, n = summaries[mode]
        if n <= n_without:
            continue
        variance = sd**2 / n
        variance_without = sd_without**2 / n_without
        both = variance + variance_without
        freedom = both**2 / (
            variance**2 / (n - 1) + variance_without**2 / (n_without - 1)
        )
        reach = float(stats.t.ppf(0.95, freedom)) * both**0.5
        gain = mean - without
        gains[mode] = Estimate(gain, n=n, low=gain - reach, high=gain + reach)
    return gains


def _without_schedule(table_1: pd.DataFrame) -> dict[str, tuple[float, float, int]]:
    """Each mode's mean accuracy without a schedule, its SD, and the number of seeds."""
    rows = table_1.query("metric == 'accuracy' and schedule == 'none'")
    return {
        str(row["mode"]): (float(row["ours"]), float(row["ours_sd"]), int(row["seeds"]))
        for row in rows.to_dict("records")
    }


def _modes(
    axes: Axes,
    parts: Mapping[tuple[str, str], Quantity],
    table_1: pd.DataFrame,
    page: Page,
) -> None:
    """Draw the accuracy that each mode of Cooling adds, measured as in the claims.

    The row below the first shows the gains over all seeds. Its label gives the numbers
    of seeds with and without Cooling.
    """
    gains = gains_over_all_seeds(table_1)
    _, _, without = _without_schedule(table_1)["none"]
    trained = {schedule for _, schedule in parts}
    schedules = [name for name in SCHEDULE_WORDS if SCHEDULES[name] in trained]
    names = [SCHEDULE_WORDS[name] for name in schedules]
    most = max(gain.n for gain in gains.values())
    names.insert(1, f"no schedule, {most} vs {without} seeds")
    printed = printed_table_1().pivot(
        index="schedule", columns="mode", values="published"
    )
    gained = figures.PERCENT * printed.sub(printed["none"], axis="index")
    for number, mode in enumerate(reversed(cooling.COOLING_MODES)):
        shift = 0.22 - 0.22 * number
        colour = page.colour(COLOURS[mode])
        dots = [_estimate(parts.get((mode, SCHEDULES[name]))) for name in schedules]
        dots.insert(1, gains.get(mode))
        _dots(axes, dots, shift, label=MODES[mode].lower(), color=colour)
        crosses = gained.loc[[*schedules], mode].tolist()
        crosses.insert(1, np.nan)
        _crosses(axes, crosses, shift, colour)
    axes.axvline(0, color=page.ink, linewidth=0.7)
    title = (
        "Cooling: accuracy gained on each schedule\n"
        f"CIFAR-10, 10,000 images, half width, {_seeds(parts)}"
    )
    shown = [textwrap.fill(name, 13) for name in names]
    _finish(axes, shown, "accuracy gained (points)", title)
    _legend_with_crosses(axes, "printed", page)


def _inverse_temperatures(axes: Axes, runs: Runs, page: Page) -> None:
    """Draw the test accuracy of each network against the inverse temperature.

    Each point is the mean over fresh seeds, at the learning rate that has the best
    validation accuracy for the point's inverse temperature.
    """
    parts = accuracies(runs)
    networks = dict.fromkeys(network for network, _ in parts)
    for hue, network in enumerate(networks):
        betas = [beta for name, beta in parts if name == network]
        estimates = [parts[network, beta].estimate() for beta in betas]
        values = figures.PERCENT * np.array([estimate.value for estimate in estimates])
        ends = figures.PERCENT * np.array([estimate.ends for estimate in estimates])
        axes.errorbar(
            betas,
            values,
            capsize=2,
            yerr=np.abs(ends.T - values),
            fmt="o-",
            markersize=4,
            linewidth=1.2,
            color=page.colour(figures.HUES[hue]),
            label=sweep_title(network, between="; "),
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("inverse temperature in training")
    axes.set_ylabel("test accuracy (%)")
    axes.set_title(
        f"Temperature check: accuracy by inverse\ntemperature, {_seeds(parts)}",
        loc="left",
    )
    _legend(axes, columns=1)


def accuracies(runs: Runs) -> dict[tuple[str, float], Quantity]:
    """Test accuracies, keyed by network (with its data set) and inverse temperature."""
    rows = temperature_check.numbers(runs, temperature_check.TEMPERATURES)
    parts: dict[tuple[str, float], Quantity] = {}
    for network, sweep in temperature_check.by_sweep(rows):
        for beta, values in sweep.groupby("inverse_temperature")["test_accuracy"]:
            task = Task(network, tuple(values))
            parts[network, float(str(beta))] = OverTasks((task,))
    return parts


def _estimate(part: Quantity | None) -> Estimate | None:
    return None if part is None else part.estimate()


def _dots(
    axes: Axes, estimates: Sequence[Estimate | None], shift: float, **look: Any
) -> None:
    """Draw `estimates` with their 90 % intervals, in percent, one below the other.

    An estimate that is None is not drawn.
    """
    heights = []
    values = []
    reaches = []
    for place, estimate in enumerate(estimates):
        if estimate is None:
            continue
        low, high = estimate.ends or (estimate.value, estimate.value)
        heights.append(shift - place)
        values.append(figures.PERCENT * estimate.value)
        reaches.append(
            (
                figures.PERCENT * abs(low - estimate.value),
                figures.PERCENT * abs(high - estimate.value),
            )
        )
    axes.errorbar(
        values,
        heights,
        xerr=np.reshape(reaches, (-1, 2)).T,
        fmt="o",
        markersize=4,
        linewidth=1.2,
        **look,
    )


def _crosses(axes: Axes, values: Sequence[float], shift: float, colour: Any) -> None:
    axes.plot(values, shift - np.arange(len(values)), color=colour, **_CROSS)


def _seeds(parts: Mapping[Any, Quantity]) -> str:
    counts = [task["n"] for part in parts.values() for task in part.by_task()]
    fewest = min(counts)
    most = max(counts)
    if fewest == most:
        return f"{fewest} seeds"
    return f"{fewest} to {most} seeds"


def _finish(axes: Axes, names: Sequence[str], unit: str, title: str) -> None:
    axes.set_yticks(-np.arange(len(names)), names)
    axes.set_ylim(0.5 - len(names), 0.5)
    axes.set_xlabel(unit)
    axes.set_title(title, loc="left")


def _legend_with_crosses(axes: Axes, printed: str, page: Page) -> None:
    """Add a legend; its entry `printed` is a cross in the colour of text."""
    axes.plot([], [], label=printed, color=page.ink, **_CROSS)
    _legend(axes)


def _legend(axes: Axes, *, columns: int = 2) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.18), ncols=columns)
