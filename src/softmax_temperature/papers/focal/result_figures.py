"""What a trained network does: Figures 4, G.1 to G.4, H.1, K.1, the ROC curves of Table 3, and a summary of ours."""

from __future__ import annotations

from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from softmax_temperature.papers.focal.figures import COLOURS, first_task, task_title
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.focal.selection import (
    ARMS,
    MAIN_ARMS,
    REFERENCE,
    RUN,
    SCALED,
    finished,
    main_tasks,
    of_task,
    other_arms,
)
from softmax_temperature.papers.shared.plots import (
    BLACK,
    HUES,
    PERCENT,
    WARNING,
    entry,
    label_outside,
    legend_below,
    panels,
    style,
)
from softmax_temperature.papers.shared.records import read_pixels

SCALINGS = {"none": "before scaling", SCALED: "after scaling"}
ERRORS = {
    "expected_calibration_error": "ECE",
    "adaptive_calibration_error": "AdaECE",
    "classwise_calibration_error": "Classwise-ECE",
}
QUALITATIVE_ARMS = (REFERENCE, "FLSD-53")
IMAGES, IMAGES_IN_A_ROW = 8, 4  # Four right and four wrong ones in the paper.
_FAINT = 0.45
_LINE = "0.3"


@style()
def figure_4(records: Records, task: str | None = None) -> Figure:
    """ECE, AdaECE and Classwise-ECE with 90 % intervals, before and after scaling; G.1 to G.4 for other tasks.

    Bars are means over seeds, dots the seeds. Lines are the bootstrap intervals over test samples, their bounds
    averaged over seeds; as resampling raises a calibration error, an interval may lie above its bar. Dotted ticks are
    the noise floor: the ECE that a calibrated network would show on as many samples.
    """
    task = task or first_task(records)
    runs = of_task(finished(records, "runs"), task, MAIN_ARMS)
    arms = [arm for arm in MAIN_ARMS if arm in set(runs["arm"])]
    figure, grid = panels(len(ERRORS), row=3.3)
    for axes, (metric, title) in zip(grid, ERRORS.items(), strict=True):
        for position, arm in enumerate(arms):
            _bars(axes, position, runs[runs["arm"] == arm], metric, COLOURS[arm])
        axes.set_xticks(range(len(arms)), arms, rotation=40, ha="right", rotation_mode="anchor")
        axes.set(title=f"{title} (%)")
    figure.suptitle(task_title(records, task), fontsize=10)
    entries = [
        Patch(facecolor=_LINE, label="before scaling"),
        Patch(facecolor=_LINE, alpha=_FAINT, label="after scaling"),
        entry("90 % interval", color=_LINE, linewidth=1),
        entry("noise floor of ECE", color="black", linewidth=1, linestyle=":"),
    ]
    legend_below(figure, entries, columns=4)
    return figure


@style()
def figure_h1(records: Records, pixels: Path, task: str | None = None) -> Figure | None:
    """Test images with their label and what cross-entropy and FLSD-53 predict, before and after scaling; first seed.

    Images that both classify correctly come first, those that both get wrong last.

    Args:
        records: the paper's.
        pixels: the file `panels.safetensors`; its images of a task are in the order in which `panels` first names them.
        task: which.

    Returns:
        The figure; None if there are no pixels or no predictions of the task.
    """
    task = task or first_task(records)
    rows = of_task(finished(records, "panels"), task, QUALITATIVE_ARMS)
    images = read_pixels(pixels).get(task)
    if images is None or rows.empty:
        return None
    rows = rows[rows["seed"] == rows["seed"].min()]
    order = records.panels.query("task == @task")["image"].unique().tolist()
    chosen = _first_and_last(rows)
    figure, grid = panels(len(chosen), columns=IMAGES_IN_A_ROW)
    for axes, number in zip(grid, chosen, strict=True):
        axes.set_axis_off()
        _qualitative(axes, images[order.index(number)], rows[rows["image"] == number])
    figure.suptitle(f"{task_title(records, task)}: confidence before → after scaling", fontsize=10)
    return figure


@style()
def roc_curves(records: Records, task: str | None = None) -> Figure | None:
    """Telling out-of-distribution samples by entropy, a row per set, before and after scaling, with AUROC; first seed.

    Returns:
        The figure; None if the task has no out-of-distribution set.
    """
    task = task or first_task(records)
    names = [*RUN, "ood", "scaling"]
    curves = of_task(finished(records, "roc"), task, MAIN_ARMS)
    curves = curves.merge(records.ood[[*names, "auroc"]], on=names, how="left")
    sets = list(curves["ood"].unique())
    if not sets:
        return None
    places = [(name, scaling) for name in sets for scaling in SCALINGS]
    figure, grid = panels(len(places), columns=2, row=2.9, extra=0.2, sharex=True, sharey=True)
    for axes, (name, scaling) in zip(grid, places, strict=True):
        some = curves[(curves["ood"] == name) & (curves["scaling"] == scaling)]
        _roc(axes, some[some["seed"] == some.groupby("arm")["seed"].transform("min")])
        axes.set(title=f"{name}, {SCALINGS[scaling]}", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    label_outside(grid, columns=2, x="false positive rate", y="true positive rate")
    figure.suptitle(task_title(records, task), fontsize=10)
    return figure


@style()
def calibration_summary(records: Records) -> Figure:
    """Ours: ECE of every method before and after scaling, with the temperature, a panel per task; means over seeds."""
    names = main_tasks(records)["task"]
    runs = finished(records, "runs")
    known = [*ARMS, *other_arms(records)]
    trained = records.trainings.groupby("task")["arm"].unique()
    arms = {task: [arm for arm in known if arm in trained[task]] for task in names}
    figure, grid = panels(len(names), columns=2, row=0.22 * max(map(len, arms.values())) + 0.7, extra=0.5)
    for axes, (task, some) in zip(grid, arms.items(), strict=True):
        _dumbbells(axes, runs[runs["task"] == task], some)
        axes.set(title=task_title(records, task), xlabel="ECE (%)")
    look: dict[str, Any] = {"color": BLACK, "linestyle": "none"}
    entries = [
        entry("before scaling", marker="o", **look),
        entry("after scaling", marker="o", markerfacecolor="white", **look),
        entry("noise floor: a calibrated network on as many samples", marker="|", **look),
    ]
    legend_below(figure, entries, columns=3)
    return figure


@style()
def figure_k1(records: Records) -> Figure | None:
    """Test BLEU above validation ECE over temperatures, by loss: mean over seeds, and each seed as dots.

    The larger marks are the highest BLEU and the least ECE of the mean; the vertical line is temperature 1. The axis of
    BLEU need not begin at 0. None if no model was trained, or all diverged.
    """
    curves = records.translation_curves
    if curves.empty:
        return None
    arms = {"CE": "cross-entropy", "LS": "label smoothing", "FL": "focal loss"}
    figure, grid = panels(2 * len(arms), row=1.8, sharex=True, sharey="row")
    for position, (axes, arm) in enumerate(zip(grid, 2 * [*arms], strict=True)):
        quantity = "bleu" if position < len(arms) else "validation_ece"
        _over_temperatures(axes, curves[curves["arm"] == arm], quantity)
        if quantity == "bleu":
            axes.set_title(f"({ascii_lowercase[position]}) {arms[arm]}")
    label_outside(grid, x="temperature")
    grid[0].set_ylabel("test BLEU")
    grid[3].set(ylabel="validation ECE (%)", ylim=(0, None))
    return figure


def _bars(axes: Axes, position: int, rows: pd.DataFrame, metric: str, colour: Any) -> None:
    for shift, scaling in ((-0.2, "none"), (0.2, SCALED)):
        runs, x = rows[rows["scaling"] == scaling], position + shift
        values = PERCENT * runs[[metric, f"{metric}_low", f"{metric}_high"]]
        mean, low, high = values.mean()
        axes.bar(x, mean, 0.38, facecolor=colour, alpha=1.0 if scaling == "none" else _FAINT)
        for line, width in (("white", 2.2), (_LINE, 1)):  # White around it, so that it is seen on dark bars too.
            axes.vlines(x, low, high, color=line, linewidth=width)
            axes.hlines([low, high], x - 0.07, x + 0.07, color=line, linewidth=width)
        if len(values) > 1:
            axes.scatter([x] * len(values), values[metric], s=6, facecolor="white", edgecolor="0.2", lw=0.5, zorder=3)
        if metric == "expected_calibration_error":
            floor = PERCENT * runs["noise_floor"].mean()
            axes.hlines(floor, x - 0.19, x + 0.19, color="white", linewidth=2)
            axes.hlines(floor, x - 0.19, x + 0.19, color="black", linewidth=1, linestyle=":")


def _first_and_last(rows: pd.DataFrame) -> list[int]:
    """Half of the images from those that most methods get right, half from those that most get wrong."""
    right = (rows["predicted"] == rows["label"]).groupby(rows["image"], sort=False).mean()
    order = right.sort_values(ascending=False, kind="stable").index.tolist()
    half = IMAGES // 2
    return order if len(order) <= IMAGES else order[:half] + order[-half:]


def _qualitative(axes: Axes, image: NDArray[np.uint8], rows: pd.DataFrame) -> None:
    axes.imshow(image.squeeze(), cmap="gray")
    axes.set_title(f"label {rows['label'].iloc[0]}", fontsize=8)
    for line, arm in enumerate(QUALITATIVE_ARMS):
        both = rows[rows["arm"] == arm].set_index("scaling")
        if len(both):
            before, after = both.loc["none"], both.loc[SCALED]
            text = f"{arm}: {before['predicted']}  {before['confidence']:.2f} → {after['confidence']:.2f}"
            look: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 7.5, "transform": axes.transAxes}
            look["color"] = BLACK if before["predicted"] == before["label"] else WARNING
            axes.text(0.5, -0.06 - 0.13 * line, text, **look)


def _roc(axes: Axes, curves: pd.DataFrame) -> None:
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
    for arm in (name for name in MAIN_ARMS if name in set(curves["arm"])):
        rows = curves[curves["arm"] == arm]
        label = f"{arm} {PERCENT * rows['auroc'].iloc[0]:.1f}"
        axes.plot(rows["false_positive_rate"], rows["true_positive_rate"], color=COLOURS[arm], lw=1.2, label=label)
    legend = axes.legend(title="AUROC (%)", loc="lower right", fontsize=7, title_fontsize=7, frameon=True)
    legend.get_frame().set(edgecolor="none", alpha=0.8)  # Curves below the diagonal run behind it.


def _dumbbells(axes: Axes, runs: pd.DataFrame, arms: list[str]) -> None:
    before, after = (runs[runs["scaling"] == scaling].groupby("arm").mean(numeric_only=True) for scaling in SCALINGS)
    small: dict[str, Any] = {"va": "center", "fontsize": 6.5, "color": "0.3"}
    for position, arm in enumerate(arms):
        if arm not in before.index:
            axes.text(0, position, " diverged", **small)
            continue
        ends = [PERCENT * float(table["expected_calibration_error"][arm]) for table in (before, after)]
        axes.plot(ends, [position, position], color=COLOURS[arm], linewidth=1)
        axes.plot(ends[0], position, "o", color=COLOURS[arm], markersize=5)
        axes.plot(ends[1], position, "o", color=COLOURS[arm], markersize=5, markerfacecolor="white")
        axes.plot(PERCENT * float(before["noise_floor"][arm]), position, "|", color="0.4", markersize=7)
        text, beside = f"T = {after['temperature'][arm]:.3g}", (max(ends), position)
        axes.annotate(text, beside, (6, 0), textcoords="offset points", **small)
    axes.set_yticks(range(len(arms)), arms)
    axes.set_xlim(0, 1.2 * axes.get_xlim()[1])
    axes.set_ylim(len(arms) - 0.5, -0.5)


def _over_temperatures(axes: Axes, rows: pd.DataFrame, quantity: str) -> None:
    axes.axvline(1, color="0.6", linewidth=0.8, linestyle=":")
    if rows.empty:
        axes.text(0.5, 0.5, "diverged", transform=axes.transAxes, ha="center")
        return
    colour = HUES[0] if quantity == "bleu" else HUES[1]
    mean = PERCENT * rows.groupby("temperature")[quantity].mean()
    best = int(mean.argmax() if quantity == "bleu" else mean.argmin())
    axes.plot(rows["temperature"], PERCENT * rows[quantity], ".", color=colour, alpha=0.5, markersize=4)
    axes.plot(mean.index, mean, color=colour, linewidth=1.2)
    axes.plot(mean.index[best], mean.iloc[best], "o", color=colour, markersize=5)
