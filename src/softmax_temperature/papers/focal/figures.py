"""What happens during training: Figures 1, 2, 3(b) to (d), A.1 and I.1.

Each function takes the records and returns a figure. It shows one task, the first with the main recipe if none is
named. Lines are means over seeds, bands one standard deviation; runs that diverged are not in them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import seaborn as sns
from matplotlib.figure import Figure

from softmax_temperature.papers.focal.selection import (
    ARMS,
    FIXED_FOCAL_ARMS,
    REFERENCE,
    finished,
    main_tasks,
    of_task,
    tasks,
)
from softmax_temperature.papers.shared.plots import PALETTE, WIDTH, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from softmax_temperature.papers.focal.records import Records

CURVES = (REFERENCE, *FIXED_FOCAL_ARMS)
"""The methods that the paper follows during training."""
PERCENT = 100
_BLACK = "0.15"
_RARE = 0.001  # A bin with a smaller share of the samples does not widen the axis.


_HUES = (0, 7, 2, 9, 1, 4, 5, 6, 8, 3)  # Of the palette, so that the methods of one figure are far apart.


def _palette() -> dict[str, Any]:
    """Cross-entropy in black, each other method in a colour of its own."""
    colours = sns.color_palette(PALETTE)
    return {REFERENCE: _BLACK, **{arm: colours[hue] for arm, hue in zip(ARMS[1:], _HUES, strict=True)}}


_OTHER = "0.6"
COLOURS = defaultdict(lambda: _OTHER, _palette())
"""Of each method; losses that the paper does not have are grey."""


def first_task(records: Records) -> str:
    """The task that a figure shows when none is named."""
    return str(main_tasks(records)["task"].iloc[0])


def task_title(records: Records, task: str) -> str:
    """Data set and network as the project calls them."""
    row = tasks(records).set_index("task").loc[task]
    return ", ".join(part for part in (row["dataset"], row["network"], row["variant"]) if part)


def figure_1(records: Records, task: str | None = None) -> Figure:
    """NLL and entropy of right and wrong samples, errors and ECE, while cross-entropy trains."""
    task = task or first_task(records)
    history = of_task(finished(records, "history"), task, (REFERENCE,))
    train, test = (history[history["split"] == split] for split in ("train", "test"))
    with style():
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        panels = figure.subplots(1, 3)
        for axes, rows, title in ((panels[0], train, "(a) training data"), (panels[1], test, "(b) test data")):
            _right_and_wrong(axes, rows)
            axes.set(title=title, xlabel="epoch", ylabel="nats")
        _errors(panels[2], train, test)
        figure.suptitle(f"{task_title(records, task)}: {REFERENCE}", fontsize=10)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=3)
    return figure


def figure_2(records: Records, task: str | None = None) -> Figure:
    """Test NLL, that of right and wrong samples, entropy of wrong ones and the last layer's weight norm, by loss."""
    task = task or first_task(records)
    history = of_task(finished(records, "history"), task, CURVES)
    quantities = {
        "nll": ("(a) NLL", "nats"),
        "nll_right": ("(b) NLL, right samples", "nats"),
        "nll_wrong": ("(c) NLL, wrong samples", "nats"),
        "entropy_wrong": ("(d) entropy, wrong samples", "nats"),
        "weight_norm": ("(e) weights of the last layer", "norm"),
    }
    with style():
        figure = Figure(figsize=(WIDTH, 4.4), layout="constrained")
        panels = figure.subplots(2, 3).ravel()
        for axes, (column, (title, unit)) in zip(panels, quantities.items(), strict=False):
            _curves_by_arm(axes, history[history["split"] == "test"], column)
            axes.set(title=title, xlabel="epoch", ylabel=unit)
        panels[-1].set_axis_off()
        panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center", fontsize=9)
        figure.suptitle(f"{task_title(records, task)}: test data", fontsize=10)
    return figure


def figure_3bcd(records: Records, task: str | None = None) -> Figure:
    """Histograms of the last layer's gradient norm over training samples, a panel an epoch, seeds together.

    Bins are equally wide on a logarithmic scale; norms beyond the outermost bins are counted in them.
    """
    task = task or first_task(records)
    table = of_task(finished(records, "gradient_norms"), task, CURVES)
    counts = table.groupby(["epoch", "arm", "low", "high"], as_index=False)["count"].sum()
    counts["share"] = counts["count"] / counts.groupby(["epoch", "arm"])["count"].transform("sum")
    epochs = sorted(counts["epoch"].unique())
    with style():
        figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
        panels = figure.subplots(1, max(1, len(epochs)), sharex=True, sharey=True, squeeze=False)[0]
        for axes, epoch, letter in zip(panels, epochs, "bcdefgh", strict=False):
            _gradient_norms(axes, counts[counts["epoch"] == epoch])
            axes.set(title=f"({letter}) epoch {epoch}", xlabel="gradient norm", xscale="log")
        common = counts[counts["share"] > _RARE]
        if len(common):
            panels[0].set_xlim(common["low"].min(), common["high"].max())
        panels[0].set_ylabel("training samples (%)")
        figure.suptitle(task_title(records, task), fontsize=10)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(CURVES))
    return figure


def figure_a1(records: Records, task: str | None = None, *, arm: str = REFERENCE) -> Figure:
    """Reliability on training data at a few epochs (25 bins), above the share of samples in each bin; first seed."""
    task = task or first_task(records)
    table = of_task(finished(records, "reliability"), task, (arm,))
    table = table[table["seed"] == table["seed"].min()]
    epochs = sorted(table["epoch"].unique())
    with style():
        figure = Figure(figsize=(WIDTH, 3.7), layout="constrained")
        panels = figure.subplots(2, max(1, len(epochs)), sharex=True, sharey="row", squeeze=False)
        for (upper, lower), epoch in zip(panels.T, epochs, strict=False):
            _reliability(upper, lower, table[table["epoch"] == epoch])
            upper.set_title(f"epoch {epoch}")
            lower.set_xlabel("confidence")
        panels[0, 0].set_ylabel("accuracy (%)")
        panels[1, 0].set_ylabel("training samples (%)")
        figure.suptitle(f"{task_title(records, task)}: {arm}", fontsize=10)
    return figure


def figure_i1(records: Records, task: str | None = None) -> Figure:
    """Norm of the features that enter the last layer, by loss."""
    task = task or first_task(records)
    history = of_task(finished(records, "history"), task, CURVES)
    with style():
        figure = Figure(figsize=(0.7 * WIDTH, 3.0), layout="constrained")
        axes = figure.subplots()
        _curves_by_arm(axes, history[history["split"] == "train"], "feature_norm")
        axes.set(title=task_title(records, task), xlabel="epoch", ylabel="mean norm of the features", ylim=(0, None))
        axes.legend(*axes.get_legend_handles_labels())
    return figure


def _curve(axes: Axes, rows: pd.DataFrame, column: str, *, scale: float = 1, **look: Any) -> None:
    """Mean over seeds and a band of one standard deviation, a value an epoch."""
    values = (scale * rows[column]).groupby(rows["epoch"])
    mean, sd = values.mean(), values.std()
    axes.plot(mean.index, mean, linewidth=1.2, **look)
    if sd.notna().any():
        axes.fill_between(mean.index, mean - sd, mean + sd, color=look["color"], alpha=0.15, linewidth=0)


def _curves_by_arm(axes: Axes, rows: pd.DataFrame, column: str) -> None:
    for arm in (name for name in CURVES if name in set(rows["arm"])):
        _curve(axes, rows[rows["arm"] == arm], column, color=COLOURS[arm], label=arm)


def _right_and_wrong(axes: Axes, rows: pd.DataFrame) -> None:
    colours = sns.color_palette(PALETTE)
    for kind, suffix, colour in (("all", "", _BLACK), ("right", "_right", colours[2]), ("wrong", "_wrong", colours[3])):
        _curve(axes, rows, f"nll{suffix}", color=colour, label=f"NLL, {kind}")
        _curve(axes, rows, f"entropy{suffix}", color=colour, linestyle="--", label=f"entropy, {kind}")
    axes.set_ylim(0, None)


def _errors(axes: Axes, train: pd.DataFrame, test: pd.DataFrame) -> None:
    colours = sns.color_palette(PALETTE)
    for rows, label, colour in ((train, "training error", colours[0]), (test, "test error", colours[1])):
        _curve(axes, rows.assign(error=1 - rows["accuracy"]), "error", scale=PERCENT, color=colour, label=label)
    _curve(axes, test, "ece", scale=PERCENT, color=colours[4], linestyle="--", label="test ECE")
    axes.set(title="(c) errors and ECE", xlabel="epoch", ylabel="%", ylim=(0, None))
    axes.legend()


def _gradient_norms(axes: Axes, counts: pd.DataFrame) -> None:
    for arm in CURVES:
        rows = counts[counts["arm"] == arm].sort_values("low")
        if len(rows):
            edges = [*rows["low"], rows["high"].iloc[-1]]
            axes.stairs(PERCENT * rows["share"], edges, color=COLOURS[arm], linewidth=1.2, label=arm)


def _reliability(upper: Axes, lower: Axes, bins: pd.DataFrame) -> None:
    centres, width = (bins["low"] + bins["high"]) / 2, bins["high"] - bins["low"]
    upper.bar(
        centres, PERCENT * bins["accuracy"], width, color=sns.color_palette(PALETTE)[0], edgecolor="white", lw=0.3
    )
    upper.plot([0, 1], [0, PERCENT], color="0.4", linewidth=0.8, linestyle="--")
    upper.set(xlim=(0, 1), ylim=(0, PERCENT))
    share = PERCENT * bins["count"] / bins["count"].sum()
    lower.bar(centres, share, width, color=sns.color_palette(PALETTE)[1], edgecolor="white", lw=0.3)
    lower.set(ylim=(0, PERCENT))
