"""What a trained network does: Figures 4, G.1 to G.4 and H.1, the ROC curves behind Table 3, and a summary of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from softmax_temperature.array_files import read_arrays
from softmax_temperature.papers.focal.figures import COLOURS, PERCENT, first_task, task_title
from softmax_temperature.papers.focal.selection import (
    ARMS,
    MAIN_ARMS,
    REFERENCE,
    SCALED,
    finished,
    main_tasks,
    of_task,
    other_arms,
)
from softmax_temperature.papers.shared.plots import WIDTH, style

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from softmax_temperature.papers.focal.records import Records

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


def figure_4(records: Records, task: str | None = None) -> Figure:
    """ECE, AdaECE and Classwise-ECE with 90 % intervals, before and after scaling; G.1 to G.4 for other tasks.

    Bars are means over seeds, dots the seeds. Lines are the bootstrap intervals over test samples, their bounds
    averaged over seeds; as resampling raises a calibration error, an interval may lie above its bar. Dotted ticks are
    the noise floor: the ECE that a calibrated network would show on as many samples.
    """
    task = task or first_task(records)
    runs = of_task(finished(records, "runs"), task, MAIN_ARMS)
    arms = [arm for arm in MAIN_ARMS if arm in set(runs["arm"])]
    with style():
        figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
        panels = figure.subplots(1, len(ERRORS))
        for axes, (metric, title) in zip(panels, ERRORS.items(), strict=True):
            for place, arm in enumerate(arms):
                _bars(axes, place, runs[runs["arm"] == arm], metric, arm)
            axes.set_xticks(range(len(arms)), arms, rotation=40, ha="right", rotation_mode="anchor")
            axes.set(title=f"{title} (%)")
        figure.suptitle(task_title(records, task), fontsize=10)
        figure.legend(handles=_bar_legend(), loc="outside lower center", ncols=4)
    return figure


def figure_h1(records: Records, pixels: Path, task: str | None = None) -> Figure | None:
    """Test images with their label and what cross-entropy and FLSD-53 predict, before and after scaling; first seed.

    Images that both classify correctly come first, those that both get wrong last.

    Args:
        records: the paper's.
        pixels: the file `panels.npz`; its images of a task are in the order in which `panels` first names them.
        task: which.

    Returns:
        The figure; None if there are no pixels or no predictions of the task.
    """
    task = task or first_task(records)
    panels = of_task(finished(records, "panels"), task, QUALITATIVE_ARMS)
    images = _images(pixels, task)
    if images is None or panels.empty:
        return None
    places = {number: place for place, number in enumerate(records.panels.query("task == @task")["image"].unique())}
    panels = panels[panels["seed"] == panels["seed"].min()]
    chosen = _first_and_last(panels)
    with style():
        figure = Figure(figsize=(WIDTH, 2.5 * -(-len(chosen) // IMAGES_IN_A_ROW)), layout="constrained")
        grid = figure.subplots(-(-len(chosen) // IMAGES_IN_A_ROW), IMAGES_IN_A_ROW, squeeze=False).ravel()
        for axes in grid:
            axes.set_axis_off()
        for axes, number in zip(grid, chosen, strict=False):
            _qualitative(axes, images[places[number]], panels[panels["image"] == number])
        figure.suptitle(f"{task_title(records, task)}: confidence before → after scaling", fontsize=10)
    return figure


def roc_curves(records: Records, task: str | None = None) -> Figure | None:
    """Telling out-of-distribution samples by entropy, a row a set, before and after scaling, with AUROC; first seed.

    Returns:
        The figure; None if the task has no out-of-distribution set.
    """
    task = task or first_task(records)
    curves = of_task(finished(records, "roc"), task, MAIN_ARMS)
    sets = list(curves["ood"].unique())
    if not sets:
        return None
    with style():
        figure = Figure(figsize=(WIDTH, 2.9 * len(sets) + 0.2), layout="constrained")
        grid = figure.subplots(len(sets), len(SCALINGS), sharex=True, sharey=True, squeeze=False)
        for row, name in zip(grid, sets, strict=True):
            for axes, (scaling, title) in zip(row, SCALINGS.items(), strict=True):
                chosen = (curves["ood"] == name) & (curves["scaling"] == scaling)
                _roc(axes, curves[chosen], _areas(records, task, name, scaling))
                axes.set(title=f"{name}, {title}", xlim=(0, 1), ylim=(0, 1), aspect="equal")
            row[0].set_ylabel("true positive rate")
        for axes in grid[-1]:
            axes.set_xlabel("false positive rate")
        figure.suptitle(task_title(records, task), fontsize=10)
    return figure


def calibration_summary(records: Records) -> Figure:
    """Ours: ECE of every method before and after scaling, with the temperature, a panel a task; means over seeds."""
    names = main_tasks(records)["task"]
    runs = finished(records, "runs")
    columns = min(2, len(names))
    height = -(-len(names) // columns)
    arms = [arm for arm in ARMS if arm in set(records.trainings["arm"])] + other_arms(records)
    with style():
        figure = Figure(figsize=(WIDTH, (0.22 * len(arms) + 0.7) * height + 0.5), layout="constrained")
        grid = figure.subplots(height, columns, sharey=True, squeeze=False)
        for axes in grid.ravel()[len(names) :]:
            axes.set_visible(False)
        for axes, task in zip(grid.ravel(), names, strict=False):
            trained = records.trainings.loc[records.trainings["task"] == task, "arm"]
            _dumbbells(axes, runs[runs["task"] == task], arms, set(trained))
            axes.set(title=task_title(records, task), xlabel="ECE (%)")
        figure.legend(handles=_dumbbell_legend(), loc="outside lower center", ncols=3)
    return figure


def _bars(axes: Axes, place: int, rows: pd.DataFrame, metric: str, arm: str) -> None:
    for shift, scaling in ((-0.2, "none"), (0.2, SCALED)):
        runs, x = rows[rows["scaling"] == scaling], place + shift
        values = PERCENT * runs[[metric, f"{metric}_low", f"{metric}_high"]]
        mean, low, high = values.mean()
        look = {"facecolor": COLOURS[arm], "alpha": 1.0 if scaling == "none" else _FAINT}
        axes.bar(x, mean, 0.38, **look)
        for colour, width in (("white", 2.2), (_LINE, 1)):  # White around it, so that it is seen on dark bars too.
            axes.vlines(x, low, high, color=colour, linewidth=width)
            axes.hlines([low, high], x - 0.07, x + 0.07, color=colour, linewidth=width)
        if len(values) > 1:
            axes.scatter([x] * len(values), values[metric], s=6, facecolor="white", edgecolor="0.2", lw=0.5, zorder=3)
        if metric == "expected_calibration_error":
            floor = PERCENT * runs["noise_floor"].mean()
            axes.hlines(floor, x - 0.19, x + 0.19, color="white", linewidth=2)
            axes.hlines(floor, x - 0.19, x + 0.19, color="black", linewidth=1, linestyle=":")


def _bar_legend() -> list[Patch | Line2D]:
    return [
        Patch(facecolor="0.3", label="before scaling"),
        Patch(facecolor="0.3", alpha=_FAINT, label="after scaling"),
        Line2D([], [], color=_LINE, linewidth=1, label="90 % interval"),
        Line2D([], [], color="black", linewidth=1, linestyle=":", label="noise floor of ECE"),
    ]


def _images(pixels: Path, task: str) -> NDArray[np.uint8] | None:
    if not pixels.is_file():
        return None
    return read_arrays(pixels, "images", required=(), optional=(task,)).get(task)


def _first_and_last(panels: pd.DataFrame) -> list[int]:
    """Half of the images from those that most methods get right, half from those that most get wrong."""
    right = (panels["predicted"] == panels["label"]).groupby(panels["image"], sort=False).mean()
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
            colour = "0.15" if before["predicted"] == before["label"] else "#b2182b"
            look: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 7.5, "color": colour}
            axes.text(0.5, -0.06 - 0.13 * line, text, transform=axes.transAxes, **look)


def _areas(records: Records, task: str, ood: str, scaling: str) -> pd.Series[float]:
    rows = of_task(finished(records, "ood"), task, MAIN_ARMS)
    rows = rows[(rows["ood"] == ood) & (rows["scaling"] == scaling)]
    return rows.set_index(["arm", "seed"])["auroc"]


def _roc(axes: Axes, curves: pd.DataFrame, areas: pd.Series[float]) -> None:
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
    for arm in MAIN_ARMS:
        rows = curves[curves["arm"] == arm]
        if len(rows):
            seed = rows["seed"].min()
            rows = rows[rows["seed"] == seed]
            label = f"{arm} {PERCENT * areas[arm, seed]:.1f}"
            axes.plot(rows["false_positive_rate"], rows["true_positive_rate"], color=COLOURS[arm], lw=1.2, label=label)
    legend = axes.legend(title="AUROC (%)", loc="lower right", fontsize=7, title_fontsize=7, frameon=True)
    legend.get_frame().set(edgecolor="none", alpha=0.8)  # Curves below the diagonal run behind it.


def _dumbbells(axes: Axes, runs: pd.DataFrame, arms: list[str], trained: set[str]) -> None:
    before, after = (runs[runs["scaling"] == scaling].groupby("arm").mean(numeric_only=True) for scaling in SCALINGS)
    small: dict[str, Any] = {"va": "center", "fontsize": 6.5, "color": "0.3"}
    for place, arm in enumerate(arms):
        if arm not in before.index:
            axes.text(0, place, " diverged" if arm in trained else " not trained", **small)
            continue
        ends = [PERCENT * float(table["expected_calibration_error"][arm]) for table in (before, after)]
        axes.plot(ends, [place, place], color=COLOURS[arm], linewidth=1)
        axes.plot(ends[0], place, "o", color=COLOURS[arm], markersize=5)
        axes.plot(ends[1], place, "o", color=COLOURS[arm], markersize=5, markerfacecolor="white")
        axes.plot(PERCENT * float(before["noise_floor"][arm]), place, "|", color="0.4", markersize=7)
        text, beside = f"T = {after['temperature'][arm]:.3g}", (max(ends), place)
        axes.annotate(text, beside, (6, 0), textcoords="offset points", **small)
    axes.set_yticks(range(len(arms)), arms)
    axes.set_xlim(0, 1.2 * axes.get_xlim()[1])
    axes.set_ylim(len(arms) - 0.5, -0.5)


def _dumbbell_legend() -> list[Line2D]:
    look: dict[str, Any] = {"color": "0.15", "linestyle": "none"}
    return [
        Line2D([], [], marker="o", label="before scaling", **look),
        Line2D([], [], marker="o", markerfacecolor="white", label="after scaling", **look),
        Line2D([], [], marker="|", label="noise floor: a calibrated network on as many samples", **look),
    ]
