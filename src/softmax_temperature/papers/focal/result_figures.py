"""What a trained network does: Figures 4, G.1 to G.4, H.1, K.1, the ROC curves of Table 3, and two of ours.

Bars, points and curves are means over seeds, error bars of points and bands one standard deviation, crosses what the
paper prints. `written` are the tables of the results, by the name of their file.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from softmax_temperature.papers.focal.figures import COLOURS, task_title
from softmax_temperature.papers.focal.records import (
    FOCAL_ARMS,
    LONG_NAMES,
    MAIN_ARMS,
    QUALITATIVE_ARMS,
    SCALED,
    Records,
    finished,
    main_tasks,
    of_task,
    other_arms,
)
from softmax_temperature.papers.shared import plots
from softmax_temperature.papers.shared.records import read_pixels

Written = Mapping[str, pd.DataFrame]
ECE = LONG_NAMES["ece"]
SCALINGS = {"none": "before scaling", SCALED: "after scaling"}
ERRORS = {ECE: "ECE", "adaptive_calibration_error": "AdaECE", "classwise_calibration_error": "Classwise-ECE"}
IMAGES_IN_A_ROW = 4  # Four right and four wrong ones in the paper.
_FAINT = 0.45
_LINE = "0.3"
_CROSS: dict[str, Any] = {"marker": "x", "linestyle": "none", "markersize": 5, "markeredgewidth": 1.2}
_BEFORE = plots.entry("before scaling", marker="o", color=plots.BLACK, linestyle="none")
_AFTER = plots.entry("after scaling", marker="o", color=plots.BLACK, linestyle="none", markerfacecolor="white")
_PRINTED = plots.entry("printed", color=plots.BLACK, **_CROSS)


@plots.style()
def figure_4(records: Records, written: Written, task: str) -> Figure | None:
    """ECE, AdaECE and Classwise-ECE with 90 % intervals, before and after scaling; G.1 to G.4 for other tasks.

    Dots are the seeds. Lines are the bootstrap intervals over test samples, corrected for their bias, their ends
    averaged over seeds. Dotted ticks are the noise floor: the ECE of a calibrated network on as many samples.
    """
    runs = of_task(finished(records, "runs"), task, MAIN_ARMS)
    if runs.empty:
        return None
    arms = [arm for arm in MAIN_ARMS if arm in set(runs["arm"])]
    printed = written["table_1"].query("task == @task").set_index(["metric", "method"])["published"]
    figure, grid = plots.panels(len(ERRORS), row=3.3)
    for axes, (metric, title) in zip(grid, ERRORS.items(), strict=True):
        for position, arm in enumerate(arms):
            for shift, scaling, name in ((-0.2, "none", "ece"), (0.2, SCALED, "ece_after_scaling")):
                some = runs[(runs["arm"] == arm) & (runs["scaling"] == scaling)]
                _bar(axes, position + shift, some, metric, color=COLOURS[arm], faint=scaling == SCALED)
                if metric == ECE:
                    axes.plot(position + shift, plots.PERCENT * printed[name, arm], color="red", zorder=4, **_CROSS)
        axes.set_xticks(range(len(arms)), arms, rotation=40, ha="right", rotation_mode="anchor")
        axes.set(title=f"{title} (%)")
    figure.suptitle(task_title(records, task), fontsize=10)
    entries = [
        Patch(facecolor=_LINE, label="before scaling"),
        Patch(facecolor=_LINE, alpha=_FAINT, label="after scaling"),
        plots.entry("90 % interval", color=_LINE, linewidth=1),
        plots.entry("noise floor of ECE", color="black", linewidth=1, linestyle=":"),
        *([plots.entry("printed", color="red", **_CROSS)] if printed.notna().any() else []),
    ]
    plots.legend_below(figure, entries, columns=5)
    return figure


@plots.style()
def calibration_summary(records: Records, written: Written) -> Figure:
    """Ours: ECE of every method before and after scaling, with the temperature, a panel per task on one scale."""
    rows = pd.concat([written["table_1"], written["table_f3"]]).drop_duplicates(["task", "method", "metric"])
    floor = finished(records, "runs").query("scaling == 'none'").groupby(["task", "arm"])["noise_floor"].mean()
    known = dict.fromkeys([*MAIN_ARMS[:4], *other_arms(records), *FOCAL_ARMS])
    tasks = main_tasks(records)["task"].tolist()
    arms = {task: [arm for arm in known if arm in set(rows.loc[rows["task"] == task, "method"])] for task in tasks}
    columns = next(count for count in (3, 2, 1) if len(tasks) % count == 0)
    height = 0.24 * max(map(len, arms.values())) + 0.7
    figure, grid = plots.panels(len(tasks), columns=columns, row=height, extra=0.5, sharex=True)
    for axes, (task, some) in zip(grid, arms.items(), strict=True):
        metrics = {metric: part.set_index("method") for metric, part in rows[rows["task"] == task].groupby("metric")}
        _dots(axes, metrics["ece"], some, -0.17)
        _dots(axes, metrics["ece_after_scaling"], some, 0.17, face="white")
        for position, arm in enumerate(some):
            temperature = metrics["temperature"]["ours"][arm]
            text = "diverged" if np.isnan(temperature) else f"T = {temperature:.2g}"
            look: dict[str, Any] = {"va": "center", "fontsize": 6.5, "color": "0.3"}
            axes.text(1.0, position, text, transform=axes.get_yaxis_transform(), ha="right", **look)
            axes.plot(plots.PERCENT * floor.get((task, arm), np.nan), position, "|", color="0.4", markersize=7)
        axes.set(title=task_title(records, task), xlabel="ECE (%)")
        axes.tick_params(labelbottom=True)
    grid[0].set_xlim(0, 1.35 * grid[0].get_xlim()[1])
    floor_entry = plots.entry("noise floor", marker="|", color="0.4", linestyle="none")
    printed = [_PRINTED] if rows.loc[rows["task"].isin(tasks), "published"].notna().any() else []
    plots.legend_below(figure, [_BEFORE, _AFTER, floor_entry, *printed], columns=4)
    return figure


@plots.style()
def figure_shift(records: Records, written: Written, task: str) -> Figure | None:
    """Ours: error and ECE on other pictures of the same classes, a row per set; None if the task has no such set."""
    sets = records.shift.loc[records.shift["task"] == task, "shifted"].unique()
    if not len(sets):
        return None
    rows = written["table_shift"].query("task == @task")
    own = written["table_2"].query("task == @task").set_index("method").assign(published=np.nan)
    arms = [arm for arm in own.index if arm in set(rows["method"])]
    figure, grid = plots.panels(
        2 * len(sets), columns=2, row=0.3 * len(arms) + 0.7, extra=0.5, sharex="col", sharey=True
    )
    for (left, right), name in zip(zip(grid[::2], grid[1::2], strict=True), sets, strict=True):
        some = rows[rows["dataset"].str.endswith(f" vs {name}")]
        metrics = {metric: part.set_index("method") for metric, part in some.groupby("metric")}
        _dots(left, own, arms, -0.17, marker="s")
        _dots(left, metrics["error"], arms, 0.17)
        _dots(right, metrics["ece"], arms, -0.17)
        _dots(right, metrics["ece_after_scaling"], arms, 0.17, face="white")
        left.set(title=f"error: {name}", xlabel="%")
        right.set(title=f"ECE: {name}", xlabel="%", xlim=(0, None))
    figure.suptitle(f"{task_title(records, task)}: shifted test images", fontsize=10)
    look: dict[str, Any] = {"color": plots.BLACK, "linestyle": "none"}
    own_images, others = (
        plots.entry("own images", marker="s", **look),
        plots.entry("shifted images", marker="o", **look),
    )
    plots.legend_below(figure, [own_images, others, _AFTER], columns=3)
    return figure


@plots.style()
def figure_h1(records: Records, pixels: Path, task: str) -> Figure | None:
    """Test images with their label and what four losses predict, before and after scaling; first seed.

    Images that all of these losses classify correctly come first, those that all get wrong last.

    Args:
        records: the paper's.
        pixels: the file `panels.safetensors`; its images of a task are in the order in which `panels` first names them.
        task: which.

    Returns:
        The figure; None if there are no pixels or no predictions of the task.
    """
    rows = of_task(finished(records, "panels"), task, QUALITATIVE_ARMS)
    images = read_pixels(pixels).get(task)
    right = (rows["predicted"] == rows["label"]).groupby(rows["image"], sort=False).mean()
    chosen = [image for share in (1, 0) for image in right.index[right == share][:IMAGES_IN_A_ROW]]
    if images is None or not chosen:
        return None
    order = records.panels.query("task == @task")["image"].unique().tolist()
    figure, grid = plots.panels(len(chosen), columns=IMAGES_IN_A_ROW)
    for axes, number in zip(grid, chosen, strict=True):
        axes.set_axis_off()
        _qualitative(axes, images[order.index(number)], rows[rows["image"] == number])
    figure.suptitle(f"{task_title(records, task)}: confidence before → after scaling, one seed", fontsize=10)
    return figure


@plots.style()
def roc_curves(records: Records, task: str) -> Figure | None:
    """Telling out-of-distribution samples by entropy, before and after scaling: curves and AUROC over seeds.

    A column per set; curves are averaged at equal false positive rates. None if the task has no such set.
    """
    curves = of_task(finished(records, "roc"), task, MAIN_ARMS)
    areas = finished(records, "ood").groupby(["task", "arm", "ood", "scaling"])["auroc"].agg(["mean", "std"])
    sets = list(curves["ood"].unique())
    if not sets:
        return None
    places = [(name, scaling) for scaling in SCALINGS for name in sets]
    columns = max(2, len(sets))
    figure, grid = plots.panels(len(places), columns=columns, row=7.0 / columns, extra=0.2, sharex=True, sharey=True)
    for axes, (name, scaling) in zip(grid, places, strict=True):
        some = curves[(curves["ood"] == name) & (curves["scaling"] == scaling)]
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
        for arm in (arm for arm in MAIN_ARMS if arm in set(some["arm"])):
            mean, sd = (plots.PERCENT * areas.loc[[(task, arm, name, scaling)]].to_numpy(float))[0].tolist()
            label = f"{arm} {mean:.1f}" + ("" if np.isnan(sd) else f" ± {sd:.1f}")
            rows = some[some["arm"] == arm]
            plots.band(axes, rows, "false_positive_rate", "true_positive_rate", color=COLOURS[arm], label=label)
        small: dict[str, Any] = {"fontsize": 6, "title_fontsize": 6, "handlelength": 1, "labelspacing": 0.2}
        legend = axes.legend(title="AUROC (%)", loc="lower right", frameon=True, borderpad=0.1, **small)
        legend.get_frame().set(edgecolor="none", alpha=0.8)  # Curves below the diagonal run behind it.
        axes.set(title=f"{name}, {SCALINGS[scaling]}", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    plots.label_outside(grid, columns=columns, x="false positive rate", y="true positive rate")
    figure.suptitle(task_title(records, task), fontsize=10)
    return figure


@plots.style()
def figure_k1(records: Records) -> Figure | None:
    """Test BLEU above validation ECE over temperatures, by loss: mean over seeds, and each seed as dots.

    The larger marks are the highest BLEU and the least ECE of the mean; the vertical line is temperature 1. The axis of
    BLEU need not begin at 0. None if no model was trained, or all diverged.
    """
    curves = records.translation_curves
    names = {"CE": "cross-entropy", "LS": "label smoothing", "FL": "focal loss"}
    arms = [arm for arm in names if arm in set(curves["arm"])]
    if not arms:
        return None
    figure, grid = plots.panels(2 * len(arms), columns=len(arms), row=1.8, sharex=True, sharey="row")
    for position, (axes, arm) in enumerate(zip(grid, 2 * arms, strict=True)):
        is_bleu = position < len(arms)
        column, colour = ("bleu", plots.HUES[0]) if is_bleu else ("validation_ece", plots.HUES[1])
        rows = curves[curves["arm"] == arm]
        mean = plots.PERCENT * rows.groupby("temperature")[column].mean()
        best = int(mean.argmax() if is_bleu else mean.argmin())
        axes.axvline(1, color="0.6", linewidth=0.8, linestyle=":")
        axes.plot(rows["temperature"], plots.PERCENT * rows[column], ".", color=colour, alpha=0.5, markersize=4)
        axes.plot(mean.index, mean, color=colour, linewidth=1.2)
        axes.plot(mean.index[best], mean.iloc[best], "o", color=colour, markersize=5)
        if is_bleu:
            axes.set_title(f"({ascii_lowercase[position]}) {names[arm]}")
    plots.label_outside(grid, columns=len(arms), x="temperature")
    grid[0].set_ylabel("test BLEU")
    grid[len(arms)].set(ylabel="validation ECE (%)", ylim=(0, None))
    return figure


def _bar(axes: Axes, x: float, runs: pd.DataFrame, metric: str, *, color: Any, faint: bool) -> None:
    values = plots.PERCENT * runs[[metric, f"{metric}_low", f"{metric}_high"]]
    mean, low, high = values.mean()
    axes.bar(x, mean, 0.38, facecolor=color, alpha=_FAINT if faint else 1.0)
    for line, width in (("white", 2.2), (_LINE, 1)):  # White around it, so that it is seen on dark bars too.
        axes.vlines(x, low, high, color=line, linewidth=width)
        axes.hlines([low, high], x - 0.07, x + 0.07, color=line, linewidth=width)
    if len(values) > 1:
        axes.scatter([x] * len(values), values[metric], s=6, facecolor="white", edgecolor="0.2", lw=0.5, zorder=3)
    if metric == ECE:
        floor = plots.PERCENT * runs["noise_floor"].mean()
        axes.hlines(floor, x - 0.19, x + 0.19, color="white", linewidth=2)
        axes.hlines(floor, x - 0.19, x + 0.19, color="black", linewidth=1, linestyle=":")


def _dots(
    axes: Axes, table: pd.DataFrame, arms: Sequence[str], shift: float, *, marker: str = "o", face: str | None = None
) -> None:
    """A point per method with its deviation over seeds, and a cross where a value is printed, one below the other."""
    for position, arm in enumerate(arms):
        numbers = plots.PERCENT * table.loc[[arm], ["ours", "ours_sd", "published"]].to_numpy(float)
        ours, sd, printed = numbers[0].tolist()
        look: dict[str, Any] = {"color": COLOURS[arm], "markerfacecolor": face or COLOURS[arm]}
        axes.errorbar(ours, position + shift, xerr=np.nan_to_num(sd), fmt=marker, markersize=4, lw=1, **look)
        axes.plot(printed, position + shift, color=COLOURS[arm], **_CROSS)
    axes.set_yticks(range(len(arms)), arms)
    axes.set_ylim(len(arms) - 0.5, -0.5)


def _qualitative(axes: Axes, image: NDArray[np.uint8], rows: pd.DataFrame) -> None:
    axes.imshow(image.squeeze(), cmap="gray")
    axes.set_title(f"label {rows['label'].iloc[0]}", fontsize=8)
    for line, arm in enumerate(arm for arm in QUALITATIVE_ARMS if arm in set(rows["arm"])):
        both = rows[rows["arm"] == arm].set_index("scaling")
        before, after = both.loc["none"], both.loc[SCALED]
        text = f"{arm}: {before['predicted']}  {before['confidence']:.2f} → {after['confidence']:.2f}"
        color = plots.BLACK if before["predicted"] == before["label"] else plots.WARNING
        place: Any = {"ha": "center", "va": "top", "fontsize": 7, "transform": axes.transAxes}
        axes.text(0.5, -0.06 - 0.12 * line, text, color=color, **place)
