"""The figures: Figures 1 to 4 of the paper, and two of ours. Each function takes the
records and returns a figure.
"""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.heuristic.pairs import is_trained, pearson
from softmax_temperature.papers.classifier_temperature.records import Records
from softmax_temperature.papers.shared.plots import (
    HUES,
    PERCENT,
    entry,
    label_outside,
    legend_below,
    panels,
    style,
)

INVERSE_TEMPERATURE = "inverse temperature α"
_LOOKS: Any = [
    {"color": hue, "linestyle": dashes}
    for dashes in ("-", "--", ":")
    for hue in HUES[:8]
]


@style()
def figure_1(records: Records) -> Figure:
    """Coverage: every data set (by classes) with every backbone (by dimension), circles
    by best accuracy.
    """
    pairs = records.pairs.sort_values(["dim", "backbone"], kind="stable")
    columns = pairs[["backbone", "dim"]].drop_duplicates("backbone")
    rows = (
        pairs[["dataset", "n_classes"]]
        .drop_duplicates("dataset")
        .sort_values(["n_classes", "dataset"])
    )
    figure, (axes,) = panels(1, row=1.2 + 0.32 * len(rows))
    x = pd.Index(columns["backbone"]).get_indexer(pd.Index(pairs["backbone"]))
    y = pd.Index(rows["dataset"]).get_indexer(pd.Index(pairs["dataset"]))
    best = PERCENT * pairs["best_accuracy"]
    points = axes.scatter(
        x, y, s=20 + 1.8 * best, c=best, cmap="viridis", vmin=0, vmax=100
    )
    axes.set_xticks(
        range(len(columns)),
        [f"{n} ({d:.0f})" for n, d in columns.to_numpy()],
        rotation=35,
        ha="right",
    )
    axes.set_yticks(range(len(rows)), [f"{n} ({c:.0f})" for n, c in rows.to_numpy()])
    axes.set(
        xlabel="backbone (embedding dimension)",
        ylabel="data set (classes)",
        ylim=(-0.7, len(rows) - 0.3),
    )
    figure.colorbar(points, ax=axes, label="best test accuracy (%)", shrink=0.8)
    return figure


@style()
def figure_2(records: Records, pair: str) -> Figure:
    """Impact of the temperature on one pair, by loss and optimizer: mean ± sd; the
    records do not name the pair.
    """
    runs = records.rescaling.assign(
        accuracy=PERCENT * records.rescaling["test_accuracy"]
    )
    figure, grid = panels(2, row=2.9, sharey=True)
    for axes, title in zip(grid, ("SGD", "Adam"), strict=True):
        some = runs[runs["optimizer"] == title.lower()]
        sns.lineplot(
            some,
            x="inverse_temperature",
            y="accuracy",
            hue="loss",
            style="loss",
            errorbar="sd",
            ax=axes,
        )
        axes.set(
            title=title, xlabel=INVERSE_TEMPERATURE, ylabel="best test accuracy (%)"
        )
        axes.legend(title=None)
    figure.suptitle(f"{pair}: {runs['repeat'].nunique()} repeats", fontsize=10)
    return figure


@style()
def figure_3(records: Records) -> Figure:
    """Absolute correlation of each statistic with the best inverse temperature;
    diamonds: trained backbones only.
    """
    table = records.correlations
    figure, (axes,) = panels(1, row=4.6)
    for sign, colour, hatch in (
        ("positive", HUES[0], None),
        ("negative", HUES[1], "//"),
    ):
        rows = table[(table["r"] >= 0) == (sign == "positive")]
        look: Any = {"color": (*colour, 0.55), "hatch": hatch, "edgecolor": "white"}
        axes.barh(rows.index, rows["absolute_r"], label=f"all pairs, {sign} r", **look)
    axes.set_yticks(range(len(table)), table["statistic"])
    errors = [
        table["absolute_r"] - table["absolute_low"],
        table["absolute_high"] - table["absolute_r"],
    ]
    look = {"fmt": "none", "ecolor": "0.1", "elinewidth": 1, "capsize": 2}
    axes.errorbar(
        table["absolute_r"], table.index, xerr=errors, label="90 % interval", **look
    )
    trained = records.pairs[is_trained(records.pairs)]
    absolute = (
        trained[list(STATISTICS)]
        .corrwith(trained["inverse_temperature"])
        .abs()[table["statistic"]]
    )
    axes.plot(
        absolute,
        table.index,
        "D",
        color="0.1",
        markerfacecolor="white",
        ms=5,
        label="trained backbones only",
    )
    axes.invert_yaxis()
    axes.set(
        xlabel="|Pearson r| with the best inverse temperature", ylabel="", xlim=(0, 1)
    )
    axes.legend(loc="lower right")
    return figure


@style()
def figure_4(records: Records) -> Figure:
    """Best against predicted inverse temperature: fitted on all pairs as printed, and
    with the data set left out.
    """
    table = records.predictions
    best = table["inverse_temperature"]
    figure, grid = panels(2, row=3.9, sharex=True, sharey=True)
    kinds = {"fitted": "fitted on all pairs", "left_out": "data set left out"}
    # Some predictions are far outside of the searched range.
    grid[0].set_yscale("symlog", linthresh=250, linscale=2)
    for axes, (column, title) in zip(grid, kinds.items(), strict=True):
        for place, (dataset, rows) in enumerate(table.groupby("dataset")):
            look: Any = {
                "marker": "osD^vP"[place % 6],
                "edgecolor": HUES[place % 8],
                "s": 16,
            }
            for filled, some in rows.groupby(is_trained(rows)):
                look |= (
                    {"facecolor": look["edgecolor"], "label": dataset}
                    if filled
                    else {"facecolor": "none"}
                )
                axes.scatter(some["inverse_temperature"], some[column], **look)
        axes.plot([-5, 260], [-5, 260], color="0.5", linewidth=0.8, linestyle=":")
        found = pearson(best.to_numpy(float), table[column].to_numpy(float))
        note = f"all statistics, {title}\n{f'r = {found.r:.2f}' if found else 'r undefined'}"
        axes.set(title=note, xlabel=f"best {INVERSE_TEMPERATURE}", xlim=(-5, 260))
    low, high = grid[0].get_ylim()
    ticks = [
        tick
        for tick in (-10_000, -1000, -200, -100, 0, 100, 200, 1000, 10_000)
        if low < tick < high
    ]
    grid[0].set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    untrained = entry(
        "open: untrained",
        ls="none",
        marker="o",
        color="0.4",
        markerfacecolor="none",
        markersize=4,
    )
    legend_below(
        figure,
        [*grid[1].get_legend_handles_labels()[0], untrained],
        columns=7,
        fontsize=7,
    )
    grid[0].set_ylabel(f"predicted {INVERSE_TEMPERATURE}")
    return figure


@style()
def accuracy_curves(records: Records) -> Figure:
    """Ours: best test accuracy over the grid; a panel per data set, a line per
    backbone, dots at recorded optima.
    """
    datasets = records.pairs.sort_values(["n_classes", "dataset"])["dataset"].unique()
    figure, grid = panels(len(datasets), row=1.9, extra=0.7, sharex=True)
    looks = dict(zip(sorted(records.pairs["backbone"].unique()), _LOOKS, strict=False))
    optima = records.pairs.set_index(["dataset", "backbone"])["inverse_temperature"]
    for axes, dataset in zip(grid, datasets, strict=True):
        runs = records.runs[records.runs["dataset"] == dataset]
        for backbone, rows in runs.groupby("backbone"):
            accuracy = PERCENT * rows.set_index("inverse_temperature")["test_accuracy"]
            look, best = looks[str(backbone)], optima[dataset, backbone]
            axes.plot(accuracy.index, accuracy, **look, linewidth=1, label=backbone)
            axes.plot(
                best,
                np.interp(best, accuracy.index, accuracy),
                "o",
                color=look["color"],
                markersize=3,
            )
        axes.set_title(dataset)
    label_outside(grid, x=INVERSE_TEMPERATURE)
    figure.supylabel("best test accuracy (%)", fontsize=9)
    legend_below(figure, grid[0], columns=4, fontsize=7)
    return figure


@style()
def cost_of_rules(records: Records) -> Figure:
    """Ours: how much accuracy each rule for choosing a temperature loses against the
    best of the grid, over pairs.
    """
    table = records.rules.assign(points=PERCENT * records.rules["accuracy_lost"])
    order = table.groupby("rule")["points"].mean().sort_values().index
    figure, (axes,) = panels(1, row=0.34 * len(order) + 0.9)
    sns.boxplot(
        table,
        y="rule",
        x="points",
        order=order,
        whis=(5, 95),
        color="0.85",
        showfliers=False,
        ax=axes,
    )
    rows = order.get_indexer(pd.Index(table["rule"]))
    # Seeded, which seaborn's own jitter is not: the file must be the same from run to
    # run.
    jitter = np.random.default_rng(0).uniform(-0.25, 0.25, len(table))
    axes.scatter(table["points"], rows + jitter, s=5, alpha=0.6, zorder=3)
    axes.set(
        xlabel="accuracy lost against the best temperature (points, logarithmic from 1 on)",
        ylabel="",
    )
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(left=0)
    ticks = (0, 0.5, 1, 2, 5, 10, 20, 50)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    return figure
