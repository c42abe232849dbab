"""The figures: Figures 1 to 4 of the paper, and two of ours. Each function takes the records and returns a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure

from softmax_temperature.heuristic import pearson
from softmax_temperature.papers.shared.plots import WIDTH, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from softmax_temperature.papers.classifier_temperature.records import Records

INVERSE_TEMPERATURE = "inverse temperature α"


def figure_1(records: Records) -> Figure:
    """Coverage: every data set (by classes) with every backbone (by dimension), circles by best accuracy."""
    pairs = records.pairs.sort_values(["dim", "backbone"], kind="stable")
    columns = pairs[["backbone", "dim"]].drop_duplicates("backbone")
    rows = pairs[["dataset", "n_classes"]].drop_duplicates("dataset").sort_values(["n_classes", "dataset"])
    with style():
        figure = Figure(figsize=(WIDTH, 1.2 + 0.32 * len(rows)), layout="constrained")
        axes = figure.subplots()
        x = pairs["backbone"].map({name: place for place, name in enumerate(columns["backbone"])})
        y = pairs["dataset"].map({name: place for place, name in enumerate(rows["dataset"])})
        points = axes.scatter(
            x, y, s=20 + 180 * pairs["best_accuracy"], c=pairs["best_accuracy"], cmap="viridis", vmin=0, vmax=1
        )
        axes.set_xticks(range(len(columns)), [f"{n} ({d:.0f})" for n, d in columns.to_numpy()], rotation=35, ha="right")
        axes.set_yticks(range(len(rows)), [f"{n} ({c:.0f})" for n, c in rows.to_numpy()])
        axes.set(xlabel="backbone (embedding dimension)", ylabel="data set (classes)", ylim=(-0.7, len(rows) - 0.3))
        figure.colorbar(points, ax=axes, label="best test accuracy", shrink=0.8)
    return figure


def figure_2(records: Records) -> Figure:
    """Impact of the temperature with the plain and the rescaled cross-entropy, under SGD and Adam: mean ± sd."""
    runs = records.rescaling
    with style():
        figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, optimizer, title in zip(panels, ("sgd", "adam"), ("SGD", "Adam"), strict=True):
            chosen = runs[runs["optimizer"] == optimizer].assign(accuracy=lambda table: 100 * table["test_accuracy"])
            sns.lineplot(
                chosen, x="inverse_temperature", y="accuracy", hue="loss", style="loss", errorbar="sd", ax=axes
            )
            axes.set(title=title, xlabel=INVERSE_TEMPERATURE, ylabel="best test accuracy (%)")
            axes.legend(title=None)
    return figure


def figure_3(records: Records) -> Figure:
    """Absolute correlation of each statistic with the best inverse temperature, with 90 % intervals."""
    table = records.correlations
    with style():
        figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
        axes = figure.subplots()
        colours = sns.color_palette()
        positive = table["r"] >= 0
        for sign, label, colour, hatch in (
            (True, "positive r", colours[0], None),
            (False, "negative r", colours[1], "//"),
        ):
            chosen = table[positive == sign]
            axes.barh(chosen.index, chosen["absolute_r"], color=colour, hatch=hatch, edgecolor="white", label=label)
        axes.set_yticks(range(len(table)), table["statistic"])
        errors = [table["absolute_r"] - table["absolute_low"], table["absolute_high"] - table["absolute_r"]]
        axes.errorbar(table["absolute_r"], table.index, xerr=errors, fmt="none", ecolor="0.3", elinewidth=0.8)
        axes.invert_yaxis()
        axes.set(xlabel="|Pearson r| with the best inverse temperature", ylabel="", xlim=(0, 1))
        axes.legend(loc="lower right")
    return figure


def figure_4(records: Records) -> Figure:
    """Best against predicted inverse temperature: fitted on all pairs as printed, and with the data set left out."""
    table = records.predictions
    with style():
        figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        _against(left, table, "fitted", "all statistics, fitted on all pairs")
        _against(right, table, "left_out", "all statistics, data set left out")
        handles, labels = right.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=7)
        left.set(ylabel=f"predicted {INVERSE_TEMPERATURE}")
    return figure


def accuracy_curves(records: Records) -> Figure:
    """Ours: best test accuracy over the grid, a panel a data set, a line a backbone, a dot at each best."""
    datasets = records.pairs.sort_values(["n_classes", "dataset"])["dataset"].unique()
    columns = 3
    height = -(-len(datasets) // columns)
    with style():
        figure = Figure(figsize=(WIDTH, 1.9 * height + 0.7), layout="constrained")
        panels = figure.subplots(height, columns, sharex=True, squeeze=False).ravel()
        for axes, dataset in zip(panels, datasets, strict=False):
            _curves(axes, records.runs[records.runs["dataset"] == dataset])
            axes.set_title(dataset)
        for axes in panels[len(datasets) :]:
            axes.set_visible(False)
        for axes in panels[: len(datasets)][-columns:]:
            axes.set_xlabel(INVERSE_TEMPERATURE)
        figure.supylabel("best test accuracy (%)", fontsize=9)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7)
    return figure


def cost_of_rules(records: Records) -> Figure:
    """Ours: how much accuracy each rule for choosing a temperature loses against the best of the grid, over pairs."""
    table = records.rules.assign(points=100 * records.rules["accuracy_lost"])
    order = table.groupby("rule")["points"].mean().sort_values().index
    with style():
        figure = Figure(figsize=(WIDTH, 0.34 * len(order) + 0.9), layout="constrained")
        axes = figure.subplots()
        sns.boxplot(table, y="rule", x="points", order=order, whis=(5, 95), color="0.85", showfliers=False, ax=axes)
        rows = table["rule"].map({rule: row for row, rule in enumerate(order)})
        # Seeded, which seaborn's own jitter is not: the file must be the same from run to run.
        jitter = np.random.default_rng(0).uniform(-0.25, 0.25, len(table))
        axes.scatter(table["points"], rows + jitter, s=5, alpha=0.6, zorder=3)
        axes.set(xlabel="accuracy lost against the best temperature (percentage points)", ylabel="")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(left=0)
        axes.set_xticks([0, 0.5, 1, 2, 5, 10, 20, 50], ["0", "0.5", "1", "2", "5", "10", "20", "50"])
    return figure


def _against(axes: Axes, table: pd.DataFrame, column: str, title: str) -> None:
    best, predicted = table["inverse_temperature"], table[column]
    palette = dict(
        zip(sorted(table["dataset"].unique()), sns.color_palette("husl", table["dataset"].nunique()), strict=True)
    )
    for place, (dataset, rows) in enumerate(table.groupby("dataset")):
        marker = "osD^vP"[place % 6]
        axes.scatter(
            rows["inverse_temperature"], rows[column], color=palette[dataset], marker=marker, s=16, label=dataset
        )
    axes.plot([0, 250], [0, 250], color="0.5", linewidth=0.8, linestyle=":")
    found = pearson(best.to_numpy(float), predicted.to_numpy(float))
    note = f"r = {found.r:.2f}" if found else "r undefined"
    axes.set(title=f"{title}\n{note}", xlabel=f"best {INVERSE_TEMPERATURE}", xlim=(-5, 255), ylim=(-5, 255))


def _curves(axes: Axes, runs: pd.DataFrame) -> None:
    for (backbone, rows), colour in zip(
        runs.groupby("backbone"), sns.color_palette("husl", runs["backbone"].nunique()), strict=True
    ):
        accuracy = 100 * rows["test_accuracy"]
        axes.plot(rows["inverse_temperature"], accuracy, color=colour, linewidth=1, label=backbone)
        best = int(accuracy.to_numpy().argmax())
        axes.plot(rows["inverse_temperature"].iloc[best], accuracy.iloc[best], "o", color=colour, markersize=3)
