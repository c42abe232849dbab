"""The figures of the Cooling paper, and some of ours.

They are Figures 1 and 2, a sweep of learning rates, curves over epochs, and images for
section 4.4.

Each public function takes the runs and returns a figure, or None if there are no runs
to show.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, ScalarFormatter
from numpy.typing import NDArray
from safetensors.numpy import load_file

from softmax_temperature.papers.cooling.study import (
    ACCURACY_OF_FINISHED,
    ANY_FACTOR,
    FIGURE_1,
    LAST_LAYER,
    LIMIT,
    MAIN,
    MEAN_IOU_OF_FINISHED,
    NO_COOLING,
    NO_SCHEDULE,
    SEGMENTATION,
    SLOW_FACTOR,
    SLUG,
    TABLE_1,
    growth,
)
from softmax_temperature.papers.cooling.tables import STANDARD_MODES
from softmax_temperature.papers.cooling.text import CROSSED
from softmax_temperature.papers.shared import figures
from softmax_temperature.papers.shared.display import (
    HUES,
    MODES,
    SCHEDULE_WORDS,
    SCHEDULES,
    task_label,
)
from softmax_temperature.papers.shared.factors import Where, where
from softmax_temperature.papers.shared.figures import PERCENT, entry
from softmax_temperature.papers.shared.metrics import at_last_epoch
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.runs import Runs

Draw = Callable[[Axes, pd.DataFrame], None]
PLAIN = "none"
PERIODIC = "periodic"
LAST = "last_layer"
SETTING = ["dataset", "network"]
COLOURS = {mode: figures.colour(HUES[label]) for mode, label in MODES.items()}
_PRINTED: Any = {
    "ls": "none",
    "marker": "+",
    "markersize": 9,
    "markeredgewidth": 1.6,
    "color": figures.WARNING,
}
_DOT: Any = {"linewidth": 1.2, "marker": "o", "markersize": 3.5}
_SEED: Any = {
    "label": "one seed",
    "linestyle": "none",
    "marker": "o",
    "markersize": 3.5,
    "markerfacecolor": "none",
}
_LOST: Any = {
    "label": "diverged or stuck, of all seeds",
    "linestyle": "none",
    "marker": "x",
    "markersize": 6,
}
_REDISTRIBUTED = (
    entry(
        "redistributed: falls to the reset temperature",
        ls="none",
        marker="v",
        ms=3.5,
        color=figures.WARNING,
    ),
    entry(
        "product of all corrections",
        linestyle="--",
        linewidth=0.7,
        color=COLOURS[PERIODIC],
    ),
)
SHOWN = 6
"""The largest number of images to show for section 4.4."""
_BELOW = "below the scale"
LONE = 0.2
"""The scale does not cover the first evaluated epoch if the gap before the next one is
longer than this share of the run.
"""
_SQUARE: Any = {"ls": "none", "marker": "s"}
# Neighbouring colours in these maps are shades of one hue, so take every second colour
# first.
_ORDER = [*range(0, 20, 2), *range(1, 20, 2)]
_CLASSES = np.concatenate(
    [colormaps[name](_ORDER)[:, :3] for name in ("tab20", "tab20b", "tab20c")]
)


@figures.style()
def figure_1(runs: Runs) -> Figure | None:
    """Plot test accuracy against the factor of last-layer Cooling.

    The runs have no schedule.

    The vertical axis covers the accuracies that were reached with factors up to 1. The
    legend has entries for lost runs, and for accuracies below the axis, only if there
    are any.
    """
    rows = _with_accuracy(runs, FIGURE_1 & (NO_COOLING | ANY_FACTOR))
    # Sort networks whose baseline was trained for this figure before the others.
    rows = rows.sort_values("mode", ascending=False, kind="stable")
    entries = [
        entry(f"{MODES[LAST]} Cooling, mean", color=COLOURS[LAST], **_DOT),
        entry(color=COLOURS[LAST], **_SEED),
        entry(
            f"{MODES[PLAIN]}, mean ± sd",
            linewidth=1.2,
            linestyle="--",
            color=COLOURS[PLAIN],
        ),
    ]
    if rows["lost"].any():
        entries.append(entry(color=COLOURS[LAST], **_LOST))
    return _by_setting(rows, "factor", "Cooling factor", _by_factor, entries)


def _by_factor(axes: Axes, rows: pd.DataFrame) -> None:
    """Plot accuracy against the factor, and the mean without Cooling as a line."""
    factors = rows["factor"]
    rows = rows[~rows["lost"]]
    plain = PERCENT * rows[rows["mode"] == PLAIN]["accuracy"]
    mean = plain.mean()
    if len(plain):
        axes.axhline(mean, color=COLOURS[PLAIN], linewidth=1.2, linestyle="--")
    if len(plain) > 1:
        low = mean - plain.std()
        high = mean + plain.std()
        axes.axhspan(low, high, color=COLOURS[PLAIN], alpha=0.12, linewidth=0)
    cooled = rows[rows["factor"] <= 1]
    figures.seeds(axes, cooled, "factor", "accuracy", color=COLOURS[LAST])
    # Accuracies with factors above 1 do not extend the vertical scale: those below the
    # scale become triangles at its bottom.
    bottom = axes.get_ylim()[0]
    heated = rows[rows["factor"] > 1]
    values = PERCENT * heated["accuracy"]
    inside = values.where(values > bottom)
    below = values.where(values <= bottom) * 0 + bottom
    axes.plot(heated["factor"], inside, "o", ms=3.5, mfc="none", color=COLOURS[LAST])
    if below.notna().any():
        axes.plot(heated["factor"], below, "v", ms=5, color=COLOURS[LAST], label=_BELOW)
    axes.set_xlim(factors.min() - 0.15, factors.max() + 0.15)


@figures.style()
def learning_rates(runs: Runs) -> Figure | None:
    """Plot accuracy against the learning rate, for runs without a schedule.

    The paper has no such figure. One line is for runs with last-layer Cooling, the
    other for runs without Cooling.
    """

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        axes.set(xscale="log", xmargin=0.15)
        for mode in (PLAIN, LAST):
            finished = rows[(rows["mode"] == mode) & ~rows["lost"]]
            figures.seeds(
                axes, finished, "learning_rate", "accuracy", color=COLOURS[mode]
            )

    entries = [
        entry(f"{MODES[mode]}, mean", color=COLOURS[mode], **_DOT)
        for mode in (PLAIN, LAST)
    ]
    both = where(role=("ours", "table_1")) & MAIN & NO_SCHEDULE
    rows = _with_accuracy(runs, both & (NO_COOLING | LAST_LAYER))
    changed = rows[rows["role"] == "ours"]
    rows = rows.merge(changed[SETTING].drop_duplicates(), on=SETTING)
    marks = (_SEED, _LOST) if rows["lost"].any() else (_SEED,)
    entries += [entry(color="0.4", **look) for look in marks]
    return _by_setting(rows, "learning_rate", "learning rate", panel, entries)


def _with_accuracy(runs: Runs, chosen: Where) -> pd.DataFrame:
    """The runs that `chosen` selects, with an `accuracy` that is empty for lost runs.

    Runs that were trained for a figure precede the runs that the figure shares with
    Table 1.
    """
    rows = runs.select(chosen).sort_values("role", kind="stable")
    return rows.assign(accuracy=ACCURACY_OF_FINISHED.of(runs, rows))


def _by_setting(
    rows: pd.DataFrame,
    x: str,
    label: str,
    draw: Draw,
    entries: list[Line2D],
) -> Figure | None:
    """Draw one panel per data set and network, each with `draw`.

    Crosses at the bottom of a panel mark lost runs, with their number.
    """
    groups = rows.groupby(SETTING, sort=False)
    if len(groups) == 0:
        return None
    figure, grid = figures.panels(len(groups), row=2.6, extra=0.6)
    for axes, (_, group) in zip(grid, groups, strict=True):
        draw(axes, group)
        _count_lost(axes, group, x)
        ticks = sorted(group[x].dropna().unique())
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set(title=_title(group), xlabel=label)
    for axes in grid[::2]:
        axes.set_ylabel("test accuracy (%)")
    is_cut = any(
        line.get_label() == _BELOW for axes in grid for line in axes.get_lines()
    )
    if is_cut:
        mark = entry(_BELOW, ls="none", marker="v", ms=5, color=COLOURS[LAST])
        entries = [*entries, mark]
    return figures.legend_below(figure, entries, columns=2)


def _count_lost(axes: Axes, rows: pd.DataFrame, x: str) -> None:
    """Mark lost runs with crosses at the bottom of a panel, in one row per mode.

    Beside each cross is the number of lost runs.
    """
    lost = rows.groupby(["mode", x])["lost"]
    counts = lost.agg(["sum", "size"]).query("sum > 0").reset_index()
    modes = [mode for mode in MODES if mode in set(counts["mode"])]
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.1 * len(modes) * (high - low), high)
    at_bottom = axes.get_xaxis_transform()
    for mode, value, lost_runs, runs in counts.itertuples(index=False, name=None):
        height = 0.04 + 0.07 * modes.index(mode)
        color = COLOURS[mode]
        axes.plot(value, height, "x", markersize=6, transform=at_bottom, color=color)
        axes.annotate(
            f"{lost_runs} of {runs}",
            (value, height),
            (-6, 0),
            xycoords=at_bottom,
            textcoords="offset points",
            ha="right",
            va="center",
            color=color,
        )


@figures.style()
def figure_2(runs: Runs) -> Figure | None:
    """Plot the last layer's temperature over epochs.

    One panel shows last-layer Cooling with factor 0.75, the other periodically
    redistributed Cooling with factor 1.

    The figure shows the first data set and network with runs of either mode. A plus
    sign marks the printed epoch if the maximum temperature equals the paper's.
    """
    rows = growth(runs)
    if rows.empty:
        return None
    rows = rows.merge(rows[SETTING].head(1))
    limit = rows["limit"].iloc[0]
    modes = [mode for mode in (LAST, PERIODIC) if mode in set(rows["mode"])]
    figure, grid = figures.panels(len(modes), row=2.4, extra=1.2, sharex=True)
    dotted: Any = {"color": "0.5", "linewidth": 0.8, "linestyle": ":"}
    entries = [
        entry(
            "temperature of the last layer, one line per seed",
            color="0.2",
            linewidth=1.1,
        )
    ]
    entries.append(entry("maximal temperature of the periodic mode", **dotted))
    for axes, mode in zip(grid, modes, strict=True):
        factor = SLOW_FACTOR if mode == LAST else 1
        axes.set(
            title=f"{MODES[mode]},\nfactor {factor:g}",
            xlabel="epoch",
            yscale="log",
        )
        of_mode = rows[rows["mode"] == mode]
        # All lines begin at temperature 1. The panels have separate scales, because the
        # product of all corrections can grow by a factor of ten per epoch.
        shown = [1.0, *of_mode[["limit", "total", "reached", "kept"]].to_numpy().flat]
        axes.set_ylim(0.8 * min(shown), 1.25 * max(shown))
        axes.axhline(limit, **dotted)
        _temperatures(axes, of_mode, {"color": COLOURS[mode]})
        if limit == LIMIT:
            texts = published(SLUG, "text").set_index("metric")["value"].astype(float)
            axes.plot(texts[CROSSED[mode]], limit, **_PRINTED)
        _label_few_decades(axes)
    grid[0].set_ylabel("temperature of the last layer")
    if limit == LIMIT:
        entries.append(entry("first above 100, as printed", **_PRINTED))
    if rows["reset"].any():
        entries += _REDISTRIBUTED
    return figures.legend_below(figure, entries, columns=2, title=_title(rows))


def _temperatures(axes: Axes, rows: pd.DataFrame, look: Any) -> None:
    for _, seed in rows.groupby(["experiment", "seed"], sort=False):
        epochs = [0.0]
        values = [1.0]
        for row in seed.to_dict("records"):
            epochs.append(row["epoch"])
            values.append(row["reached"])
            if row["reset"]:
                epochs.append(row["epoch"])
                values.append(row["kept"])
        axes.plot(epochs, values, linewidth=1.1, **look)
        if seed["reset"].any():
            axes.plot(
                seed["epoch"],
                seed["total"],
                linewidth=0.7,
                linestyle="--",
                alpha=0.7,
                **look,
            )
    resets = rows[rows["reset"]]
    axes.plot(
        resets["epoch"], resets["reached"], "v", color=figures.WARNING, markersize=3.5
    )


@figures.style()
def training_curves(runs: Runs) -> Figure | None:
    """Plot accuracy over epochs by mode, with one row of panels per schedule.

    If a study evaluated test images after its first epoch and did not evaluate them
    again for a long time, the scale covers only the later epochs. A triangle with the
    accuracy beside it then marks the first epoch.
    """
    shown = _shown(runs)
    if shown.empty:
        return None
    schedules = [name for name in SCHEDULES if name in set(shown["schedule"])]
    figure, grid = figures.panels(
        2 * len(schedules),
        columns=2,
        row=1.6 if len(schedules) > 1 else 2.3,
        extra=0.8,
        sharex=True,
        sharey="col",
    )
    titles = {"test": "test accuracy (%)", "train": "training accuracy (%)"}
    for column, (split, title) in enumerate(titles.items()):
        rows = shown.merge(runs.wide("accuracy", split=split), on="run")
        for axes, schedule in zip(grid[column::2], schedules, strict=True):
            here = rows[rows["schedule"] == schedule]
            _by_mode(axes, here, "accuracy", scale=PERCENT)
        _leave_out_a_lone_start(grid[column::2], schedules, rows)
        grid[column].set_title(title)
    for axes, schedule in zip(grid[::2], schedules, strict=True):
        axes.set_ylabel(SCHEDULE_WORDS[schedule])
    return _over_epochs(figure, grid, shown, _title(shown))


def _leave_out_a_lone_start(
    grid: list[Axes], schedules: list[str], rows: pd.DataFrame
) -> None:
    """Fit the scale to the later epochs if the first evaluated epoch is isolated."""
    rows = rows.dropna(subset="accuracy")
    epochs = np.unique(rows["epoch"])
    if len(epochs) < 2 or epochs[1] - epochs[0] <= LONE * epochs[-1]:
        return
    is_first = rows["epoch"] == epochs[0]
    bottom = PERCENT * rows.loc[~is_first, "accuracy"].min() - 2
    first = rows[is_first].groupby(["schedule", "mode"])["accuracy"].mean()
    for axes, schedule in zip(grid, schedules, strict=True):
        axes.set_ylim(bottom, None)
        low = PERCENT * first[schedule].min()
        high = PERCENT * first[schedule].max()
        if high > bottom:
            continue
        axes.plot(
            epochs[0],
            0.06,
            "v",
            ms=5,
            color="0.4",
            transform=axes.get_xaxis_transform(),
        )
        text = f"{low:.0f}"
        if round(low) < round(high):
            text = f"{low:.0f} to {high:.0f}"
        axes.annotate(
            f"{text} %",
            (epochs[0], 0.06),
            (6, 0),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            va="center",
            color="0.4",
        )


@figures.style()
def effects(runs: Runs) -> Figure | None:
    """Plot norms and calibration error over epochs, by mode, without a schedule.

    The norms are those of weights, gradients and logits.
    """
    shown = _shown(runs).query("schedule == 'none'")
    if shown.empty:
        return None
    splits = {
        "all_weights_norm": "train",
        "gradient_norm": "train",
        "logit_norm": "validation",
        "ece": "test",
    }
    titles = {
        "all_weights_norm": "(a) weights, all layers",
        "gradient_norm": "(b) gradients, all layers",
        "logit_norm": "(c) logits, validation data",
        "ece": "(d) ECE, test data",
    }
    figure, grid = figures.panels(4, columns=2, row=2.3, sharex=True)
    for axes, (column, title) in zip(grid, titles.items(), strict=True):
        is_norm = column != "ece"
        axes.set(
            title=title,
            ylabel="norm" if is_norm else "ECE (%)",
            yscale="log" if is_norm else "linear",
        )
        rows = shown.merge(runs.wide(column, split=splits[column]), on="run")
        rows = rows.dropna(subset=column)
        _by_mode(axes, rows, column, scale=1 if is_norm else PERCENT)
        _label_few_decades(axes)
    return _over_epochs(figure, grid, shown, f"{_title(shown)}: no schedule")


def _shown(runs: Runs) -> pd.DataFrame:
    """The finished runs of Table 1 on the first data set with the first network."""
    rows = runs.select(TABLE_1 & STANDARD_MODES & where(lost=False)).reset_index()
    return rows.merge(rows[SETTING].head(1))


def _by_mode(axes: Axes, rows: pd.DataFrame, column: str, *, scale: float) -> None:
    for mode in MODES:
        figures.over_epochs(
            axes,
            rows[rows["mode"] == mode],
            column,
            scale=scale,
            color=COLOURS[mode],
            linewidth=1.1,
        )
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _over_epochs(
    figure: Figure, grid: list[Axes], runs: pd.DataFrame, title: str
) -> Figure:
    figures.label_outside(grid, columns=2, x="epoch")
    modes = [mode for mode in MODES if mode in set(runs["mode"])]
    entries = [entry(MODES[mode], color=COLOURS[mode], linewidth=1.1) for mode in modes]
    marks = [line for axes in grid for line in axes.lines if line.get_marker() == "o"]
    if marks:
        entries.append(
            entry("evaluated epoch", color="0.4", linestyle="none", marker="o", ms=3)
        )
    if any(line.get_marker() == "v" for axes in grid for line in axes.lines):
        entries.append(entry(_BELOW, color="0.4", linestyle="none", marker="v", ms=5))
    columns = len(entries) if len(entries) < 5 else 3
    return figures.legend_below(figure, entries, columns=columns, title=title)


def _title(rows: pd.DataFrame) -> str:
    return task_label(rows["dataset"].iloc[0], rows["network"].iloc[0])


def _label_few_decades(axes: Axes) -> None:
    """Label several ticks of a short logarithmic axis with plain numbers.

    Such an axis has too few powers of ten to label.
    """
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log" and high < 100 * low:
        axes.yaxis.set_major_locator(
            MaxNLocator(4) if high < 10 * low else LogLocator(subs=(1, 2, 5))
        )
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_locator(NullLocator())


@figures.style()
def segmentation_panel(runs: Runs, pixels: Path) -> Figure | None:
    """Draw images, labels and the first seed's predictions, with one column per image.

    Predictions are from networks trained without Cooling and with last-layer Cooling,
    after the last epoch. On each prediction is its share of correct pixels. Next to a
    row of predictions is the mean IoU of the same network on all test images.

    If no network predicts the largest label, we assume that this label marks pixels
    without a class, and draw them black.

    Args:
        runs: The runs.
        pixels: The file with the pictures; the file may be missing.
    """
    if not pixels.is_file():
        return None
    arrays = {name: array[:SHOWN] for name, array in load_file(pixels).items()}
    labels = arrays["labels"]
    predictions = np.stack([arrays[PLAIN], arrays[LAST]])
    void = _label_without_class(labels, predictions)
    count, height, width = labels.shape
    side = (figures.WIDTH - 0.4) / max(count, 4)
    figure, axes = figures.panels(
        4 * count,
        columns=count,
        width=count * side + 0.4,
        row=side * height / width,
        extra=0.2,
    )
    grid = np.reshape(np.array(axes, dtype=object), (4, count))
    columns = zip(grid.T, arrays["images"], labels, *predictions, strict=True)
    for (top, second, *below), image, label, *answers in columns:
        has_class = label != void
        top.imshow(image)
        top.set_title(f"{len(np.unique(label[has_class]))} classes")
        second.imshow(np.where(has_class[..., None], _class_colours(label), 0))
        for panel, answer in zip(below, answers, strict=True):
            _show_prediction(panel, answer, label, has_class)
    classes = np.union1d(labels, predictions)
    marks = [
        entry(f"class {number}", color=_class_colours(number), **_SQUARE)
        for number in classes[classes != void]
    ]
    if void is not None:
        marks.append(entry("no class", color="black", **_SQUARE))
    figures.legend_below(figure, marks, columns=6)
    for panel in axes:
        panel.set(xticks=[], yticks=[])
        panel.spines[:].set_visible(False)
    names = ("image", "label", *_scored_arms(runs))
    for panel, name in zip(grid[:, 0], names, strict=True):
        panel.set_ylabel(name)
    return figure


def _label_without_class(labels: NDArray[Any], predictions: NDArray[Any]) -> Any:
    """The label that marks pixels without a class: the largest one, if never predicted.

    Returns None if the largest label is predicted.
    """
    largest = labels.max()
    return None if largest in predictions else largest


def _class_colours(numbers: Any) -> Any:
    """The colours of the classes `numbers`, as an array of shape (..., 3)."""
    return _CLASSES[numbers % len(_CLASSES)]


def _show_prediction(
    axes: Axes, answer: NDArray[Any], label: NDArray[Any], has_class: NDArray[np.bool_]
) -> None:
    """Draw a prediction, and write its share of correct pixels."""
    axes.imshow(_class_colours(answer))
    is_right = (answer == label)[has_class]
    share = is_right.mean() if has_class.any() else np.nan
    axes.text(
        0.02,
        0.03,
        f"{PERCENT * share:.0f} % right",
        transform=axes.transAxes,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8},
    )


def _scored_arms(runs: Runs) -> list[str]:
    """The names of the arms without and with Cooling, each with a mean IoU.

    The mean IoU is that of the first seed. If this seed diverged, the name says so
    instead.
    """
    trained = runs.select(SEGMENTATION)
    first = trained[trained["seed"] == trained["seed"].min()]
    scores = at_last_epoch(MEAN_IOU_OF_FINISHED).of(runs, first).dropna()
    texts = dict.fromkeys((PLAIN, LAST), "diverged")
    for run, score in scores.items():
        texts[first["mode"][run]] = f"mIoU {PERCENT * score:.1f} %"
    return [f"{MODES[mode]}\n{texts[mode]}" for mode in (PLAIN, LAST)]
