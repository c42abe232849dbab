"""What a trained network does: Figures 4, G.1 to G.4, H.1, K.1, the ROC curves of Table
3, and two of ours.

Bars, points and curves are means over seeds, error bars of points and bands one
standard deviation, crosses what the paper prints. `written` are the tables of the
results, by the name of their file. There is no figure (None) where a task has nothing
for it, or all its trainings diverged.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from safetensors.numpy import load_file

from softmax_temperature.papers.focal import records as paper
from softmax_temperature.papers.focal.figures import COLOURS, task_title
from softmax_temperature.papers.focal.records import ECE, SCALED, Records
from softmax_temperature.papers.shared import plots
from softmax_temperature.papers.shared.plots import BLACK, PERCENT, entry

Written = Mapping[str, pd.DataFrame]
SCALINGS = {"none": "before scaling", SCALED: "after scaling"}
ERRORS = {
    ECE: "ECE",
    "adaptive_calibration_error": "AdaECE",
    "classwise_calibration_error": "Classwise-ECE",
}
IMAGES_IN_A_ROW = 4  # Four right and four wrong ones in the paper.
_FAINT, _LINE, _WHITE = 0.45, "0.3", {"markerfacecolor": "white"}
_CROSS: dict[str, Any] = {
    "marker": "x",
    "linestyle": "none",
    "markersize": 5,
    "markeredgewidth": 1.2,
}
_POINT: dict[str, Any] = {"color": BLACK, "linestyle": "none"}
_GUIDE: dict[str, Any] = {"color": "0.6", "linewidth": 0.8, "linestyle": ":"}
_BEFORE, _AFTER = (
    entry("before scaling", marker="o", **_POINT),
    entry("after scaling", marker="o", **_POINT, **_WHITE),
)


@plots.style()
def figure_4(records: Records, written: Written, task: str) -> Figure | None:
    """ECE, AdaECE and Classwise-ECE with 90 % intervals, before and after scaling; G.1
    to G.4 for other tasks.
    """
    runs = paper.of_task(paper.finished(records, "runs"), task, paper.MAIN_ARMS)
    if runs.empty:
        return None
    printed = (
        written["table_1"]
        .query("task == @task")
        .set_index(["metric", "method"])["published"]
    )
    figure, grid = plots.panels(len(ERRORS), row=3.3)
    arms = runs.groupby("arm", sort=False)
    for axes, (metric, title) in zip(grid, ERRORS.items(), strict=True):
        for position, (arm, rows) in enumerate(arms):
            for shift, scaling, name, alpha in (
                (-0.2, "none", "ece", 1.0),
                (0.2, SCALED, "ece_after_scaling", _FAINT),
            ):
                some, x = rows[rows["scaling"] == scaling], position + shift
                _bar(axes, x, some, metric, facecolor=COLOURS[str(arm)], alpha=alpha)
                if metric == ECE:
                    axes.plot(
                        x, PERCENT * printed[name, arm], color="red", zorder=4, **_CROSS
                    )
        axes.set_xticks(
            range(len(arms)),
            [*map(str, arms.groups)],
            rotation=40,
            ha="right",
            rotation_mode="anchor",
        )
        axes.set(title=f"{title} (%)")
    entries = [
        Patch(facecolor=_LINE, label="before scaling"),
        Patch(facecolor=_LINE, alpha=_FAINT, label="after scaling"),
        entry("90 % interval", color=_LINE, linewidth=1),
        entry("noise floor of ECE", color="black", linewidth=1, linestyle=":"),
        *([entry("printed", color="red", **_CROSS)] if printed.notna().any() else []),
    ]
    return plots.legend_below(
        figure, entries, columns=5, title=task_title(records, task)
    )


@plots.style()
def calibration_summary(records: Records, written: Written) -> Figure:
    """Ours: ECE of every method before and after scaling, with the temperature, a panel
    per task on one scale.
    """
    tasks = paper.main_tasks(records)["task"].tolist()
    rows = pd.concat([written["table_1"], written["table_f3"]]).drop_duplicates(
        ["task", "method", "metric"]
    )
    rows = rows[rows["task"].isin(tasks)]
    floors = (
        paper.finished(records, "runs")
        .groupby(["task", "arm", "scaling"])["noise_floor"]
        .mean()
    )
    order = [*paper.MAIN_ARMS[:4], *paper.other_arms(records), *paper.FOCAL_ARMS]
    metrics = {task: _by_metric(rows[rows["task"] == task], order) for task in tasks}
    columns = next(count for count in (3, 2, 1) if len(tasks) % count == 0)
    height = 0.24 * max(len(tables["ece"]) for tables in metrics.values()) + 0.7
    figure, grid = plots.panels(
        len(tasks), columns=columns, row=height, extra=0.5, sharex=True
    )
    for axes, (task, tables) in zip(grid, metrics.items(), strict=True):
        for scaling, name, shift, fill in (
            ("none", "ece", -0.17, {}),
            (SCALED, "ece_after_scaling", 0.17, _WHITE),
        ):
            _dots(axes, tables[name], shift, **fill)
            floor = [
                PERCENT * floors.get((task, arm, scaling), np.nan)
                for arm in tables[name].index
            ]
            axes.plot(
                floor, np.arange(len(floor)) + shift, "|", color="0.4", markersize=6
            )
        for position, temperature in enumerate(tables["temperature"]["ours"]):
            text = "diverged" if np.isnan(temperature) else f"T = {temperature:.2f}"
            look: dict[str, Any] = {
                "ha": "right",
                "va": "center",
                "fontsize": 6.5,
                "color": "0.3",
            }
            axes.text(1.0, position, text, transform=axes.get_yaxis_transform(), **look)
        axes.set(title=task_title(records, task), xlabel="ECE (%)")
        axes.tick_params(labelbottom=True)
    grid[0].set_xlim(0, 1.35 * grid[0].get_xlim()[1])
    noise = entry("noise floor", marker="|", color="0.4", linestyle="none")
    printed = (
        [entry("printed", color=BLACK, **_CROSS)]
        if rows["published"].notna().any()
        else []
    )
    return plots.legend_below(figure, [_BEFORE, _AFTER, noise, *printed], columns=4)


@plots.style()
def figure_shift(records: Records, written: Written, task: str) -> Figure | None:
    """Ours: error and ECE on other pictures of the same classes, a row per set."""
    sets = records.shift.loc[records.shift["task"] == task, "shifted"].unique()
    if not len(sets):
        return None
    rows = written["table_shift"].query("task == @task")
    own = (
        written["table_2"]
        .query("task == @task and method in @rows.method")
        .assign(published=np.nan)
    )
    own = own.set_index("method")
    look: dict[str, Any] = {
        "columns": 2,
        "row": 0.3 * len(own) + 0.7,
        "extra": 0.5,
        "sharex": "col",
        "sharey": True,
    }
    figure, grid = plots.panels(2 * len(sets), **look)
    for left, right, name in zip(grid[::2], grid[1::2], sets, strict=True):
        tables = _by_metric(
            rows[rows["dataset"].str.endswith(f" vs {name}")], own.index.tolist()
        )
        _dots(left, own, -0.17, fmt="s")
        _dots(left, tables["error"], 0.17)
        _dots(right, tables["ece"], -0.17)
        _dots(right, tables["ece_after_scaling"], 0.17, **_WHITE)
        left.set(title=f"error: {name}", xlabel="%")
        right.set(title=f"ECE: {name}", xlabel="%", xlim=(0, None))
    title = f"{task_title(records, task)}: shifted test images"
    images = [
        entry(f"{name} images", marker=marker, **_POINT)
        for name, marker in (("own", "s"), ("shifted", "o"))
    ]
    return plots.legend_below(figure, [*images, _AFTER], columns=3, title=title)


@plots.style()
def figure_h1(records: Records, pixels: Path, task: str) -> Figure | None:
    """Test images with their label and what four losses predict, before and after
    scaling; first seed.

    Images that all losses classify correctly come first, those that all get wrong last;
    in the file of pixels they are in the order of `panels`.
    """
    rows = paper.of_task(
        paper.finished(records, "panels"), task, paper.QUALITATIVE_ARMS
    )
    images = load_file(pixels).get(task) if pixels.is_file() else None
    right = (
        (rows["predicted"] == rows["label"]).groupby(rows["image"], sort=False).mean()
    )
    chosen = [
        image
        for share in (1, 0)
        for image in right.index[right == share][:IMAGES_IN_A_ROW]
    ]
    if images is None or not chosen:
        return None
    order = records.panels.query("task == @task")["image"].unique().tolist()
    figure, grid = plots.panels(len(chosen), columns=IMAGES_IN_A_ROW)
    for axes, number in zip(grid, chosen, strict=True):
        some = rows[rows["image"] == number].set_index("scaling")
        axes.set_axis_off()
        axes.imshow(images[order.index(number)].squeeze(), cmap="gray")
        axes.set_title(f"label {some['label'].iloc[0]}", fontsize=8)
        for line, (arm, both) in enumerate(some.groupby("arm", sort=False)):
            before, after = both.loc["none"], both.loc[SCALED]
            text = f"{arm}: {before['predicted']}  {before['confidence']:.2f} → {after['confidence']:.2f}"
            color = BLACK if before["predicted"] == before["label"] else plots.WARNING
            look: Any = {
                "ha": "center",
                "va": "top",
                "fontsize": 7,
                "transform": axes.transAxes,
            }
            axes.text(0.5, -0.06 - 0.12 * line, text, color=color, **look)
    figure.suptitle(
        f"{task_title(records, task)}: confidence before → after scaling, one seed",
        fontsize=10,
    )
    return figure


@plots.style()
def roc_curves(records: Records, task: str) -> Figure | None:
    """Telling out-of-distribution samples by entropy, before and after scaling: mean
    curves and AUROC over seeds.
    """
    curves = paper.of_task(paper.finished(records, "roc"), task, paper.MAIN_ARMS)
    if curves.empty:
        return None
    areas = (
        PERCENT
        * paper.finished(records, "ood").set_index(["task", "arm", "ood", "scaling"])[
            "auroc"
        ]
    )
    sets = records.roc.loc[records.roc["task"] == task, "ood"].unique()
    columns = max(2, len(sets))
    figure, grid = plots.panels(
        2 * len(sets),
        columns=columns,
        row=7.0 / columns,
        extra=0.4,
        sharex=True,
        sharey=True,
    )
    for axes, (scaling, name) in zip(grid, product(SCALINGS, sets), strict=True):
        axes.plot([0, 1], [0, 1], **_GUIDE)
        written = []
        for arm, rows in curves[
            (curves["ood"] == name) & (curves["scaling"] == scaling)
        ].groupby("arm", sort=False):
            area = areas.loc[[(task, arm, name, scaling)]]
            written.append(
                f"{area.mean():.1f}" + (f" ± {area.std():.1f}" if len(area) > 1 else "")
            )
            plots.band(
                axes,
                rows,
                "false_positive_rate",
                "true_positive_rate",
                color=COLOURS[str(arm)],
                label=arm,
            )
        small: Any = {
            "fontsize": 8,
            "title_fontsize": 8,
            "handlelength": 0.7,
            "labelspacing": 0.15,
            "borderpad": 0.1,
        }
        frame: Any = {
            "frameon": True,
            "framealpha": 0.8,
            "edgecolor": "none",
        }  # Curves may run behind it.
        axes.legend(
            axes.lines[1:],
            written,
            title="AUROC (%)",
            loc="lower right",
            **small,
            **frame,
        )
        axes.set(
            title=f"{name}, {SCALINGS[scaling]}",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
    plots.label_outside(
        grid, columns=columns, x="false positive rate", y="true positive rate"
    )
    entries, title = grid[0].lines[1:], task_title(records, task)
    return plots.legend_below(
        figure, entries, columns=len(paper.MAIN_ARMS), title=title
    )


@plots.style()
def figure_k1(records: Records) -> Figure | None:
    """Test BLEU above validation ECE over temperatures, by loss: mean over seeds, and
    each seed as dots.

    The larger marks are the highest BLEU and the least ECE of the mean; the vertical
    line is temperature 1. The axis of BLEU need not begin at 0.
    """
    names = {"CE": "cross-entropy", "LS": "label smoothing", "FL": "focal loss"}
    curves = records.translation_curves
    arms = [arm for arm in names if len(curves) and arm in set(curves["arm"])]
    if not arms:
        return None
    figure, grid = plots.panels(
        2 * len(arms), columns=len(arms), row=1.8, sharex=True, sharey="row"
    )
    for axes, (column, arm) in zip(
        grid, product(("bleu", "validation_ece"), arms), strict=True
    ):
        values = PERCENT * curves[curves["arm"] == arm].set_index("temperature")[column]
        mean, colour = values.groupby(level=0).mean(), plots.HUES[column != "bleu"]
        best: Any = mean.idxmax() if column == "bleu" else mean.idxmin()
        axes.axvline(1, **_GUIDE)
        axes.plot(values, ".", color=colour, alpha=0.5, markersize=4)
        axes.plot(mean, color=colour, linewidth=1.2)
        axes.plot(best, mean[best], "o", color=colour, markersize=5)
    for axes, arm, letter in zip(grid, arms, ascii_lowercase, strict=False):
        axes.set_title(f"({letter}) {names[arm]}")
    plots.label_outside(grid, columns=len(arms), x="temperature")
    grid[0].set_ylabel("test BLEU")
    grid[len(arms)].set(ylabel="validation ECE (%)", ylim=(0, None))
    return figure


def _bar(axes: Axes, x: float, runs: pd.DataFrame, metric: str, **look: Any) -> None:
    values = PERCENT * runs[[metric, f"{metric}_low", f"{metric}_high"]]
    mean, low, high = values.mean()
    axes.bar(x, mean, 0.38, **look)
    for color, width in (
        ("white", 2.2),
        (_LINE, 1),
    ):  # White around it, so that it is seen on dark bars too.
        axes.vlines(x, low, high, color=color, linewidth=width)
        axes.hlines([low, high], x - 0.07, x + 0.07, color=color, linewidth=width)
    if len(values) > 1:
        axes.scatter(
            [x] * len(values),
            values[metric],
            s=6,
            facecolor="white",
            edgecolor="0.2",
            lw=0.5,
            zorder=3,
        )
    if metric == ECE:
        floor = PERCENT * runs["noise_floor"].mean()
        for color, width, style in (("white", 2, "-"), ("black", 1, ":")):
            axes.hlines(
                floor, x - 0.19, x + 0.19, color=color, linewidth=width, linestyle=style
            )


def _by_metric(rows: pd.DataFrame, order: Sequence[str]) -> dict[Any, pd.DataFrame]:
    """For each metric its rows, by method in this order."""
    tables = {
        metric: some.set_index("method") for metric, some in rows.groupby("metric")
    }
    return {
        metric: some.loc[[arm for arm in order if arm in some.index]]
        for metric, some in tables.items()
    }


def _dots(
    axes: Axes, table: pd.DataFrame, shift: float, *, fmt: str = "o", **look: Any
) -> None:
    """A point per method with its deviation over seeds, and a cross where a value is
    printed, one below the other.
    """
    numbers = PERCENT * table[["ours", "ours_sd", "published"]].astype(float)
    for y, (arm, ours, sd, printed) in enumerate(
        numbers.itertuples(name=None), start=0
    ):
        color = COLOURS[arm]
        axes.errorbar(
            ours,
            y + shift,
            xerr=np.nan_to_num(sd),
            fmt=fmt,
            markersize=4,
            lw=1,
            color=color,
            **look,
        )
        axes.plot(printed, y + shift, color=color, **_CROSS)
    axes.set_yticks(range(len(table)), table.index)
    axes.set_ylim(len(table) - 0.5, -0.5)
