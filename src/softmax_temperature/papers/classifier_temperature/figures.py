"""The figures: Figures 1 to 4 of the paper and two of ours, drawn from the runs."""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.heuristic.pairs import pearson
from softmax_temperature.papers.classifier_temperature.study import (
    BEST_ACCURACY,
    RESCALING,
    TRAINED_PAIR,
    is_trained,
    pairs,
    searches,
)
from softmax_temperature.papers.shared.display import (
    backbone_label,
    dataset_label,
    statistic_label,
)
from softmax_temperature.papers.shared.figures import (
    HUES,
    PERCENT,
    SMALLEST,
    entry,
    label_outside,
    legend_below,
    panels,
    style,
)
from softmax_temperature.papers.shared.runs import Runs

INVERSE_TEMPERATURE = "inverse temperature α"
RESCALED = {"plain": "plain loss", "rescaled": "loss divided by α"}
"""The two losses of Figure 2, in words."""
SEARCHED = (1, 250)
"""The smallest and the largest inverse temperature in the search of section 4.1."""
LARGEST_SHOWN = 500
"""The largest prediction on the axis of Figure 4; larger ones are in a strip above it.
"""
_BELOW = 0.55
_ABOVE = 750
"""The heights at which Figure 4 shows predictions below and above its axis."""
_TICKS = (1, 3, 10, 30, 100, 300)
_LOOKS: Any = [
    {"color": hue, "linestyle": dashes}
    for dashes in ("-", "--", ":")
    for hue in HUES[:8]
]
_MARKERS = "osD^vP"


@style()
def figure_1(runs: Runs) -> Figure:
    """Draw the best accuracy on each data set (row) with each backbone (column).

    Larger circles stand for higher accuracies.
    """
    table = pairs(runs).sort_values(["dim", "backbone"], kind="stable")
    backbones = table[["backbone", "dim"]].drop_duplicates("backbone")
    datasets = table[["dataset", "n_classes", "n_samples"]].drop_duplicates("dataset")
    datasets = datasets.sort_values(["n_classes", "dataset"])
    figure, (axes,) = panels(1, row=2.2 + 0.25 * len(datasets))
    x = pd.Index(backbones["backbone"]).get_indexer(pd.Index(table["backbone"]))
    y = pd.Index(datasets["dataset"]).get_indexer(pd.Index(table["dataset"]))
    best = PERCENT * table["best_accuracy"]
    points = axes.scatter(x, y, s=10 + best, c=best, cmap="viridis", vmin=0, vmax=100)
    columns = [
        f"{backbone_label(name)} ({dim:.0f})" for name, dim in backbones.to_numpy()
    ]
    rows = [
        f"{dataset_label(name)} ({classes:.0f}; {samples:,.0f})"
        for name, classes, samples in datasets.to_numpy()
    ]
    axes.set_xticks(
        range(len(columns)), columns, rotation=50, ha="right", rotation_mode="anchor"
    )
    axes.set_yticks(range(len(rows)), rows)
    axes.set(
        xlabel="backbone (embedding dimension)",
        ylabel="data set (classes; training samples)",
        ylim=(-0.7, len(rows) - 0.3),
    )
    figure.colorbar(
        points,
        ax=axes,
        label="best test accuracy (%)",
        location="top",
        shrink=0.8,
        aspect=40,
    )
    return figure


@style()
def figure_2(runs: Runs) -> Figure:
    """Draw one pair's accuracy against the inverse temperature.

    There is one panel per optimizer and one line per loss. A line shows the mean over
    repeats, and its band shows the standard deviation.
    """
    chosen = runs.select(RESCALING)
    rows = chosen.assign(accuracy=PERCENT * BEST_ACCURACY.of(runs, chosen))
    figure, grid = panels(2, row=2.4, extra=0.5, sharey=True)
    for axes, title in zip(grid, ("SGD", "Adam"), strict=True):
        sns.lineplot(
            rows[rows["optimizer"] == title.lower()],
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
        axes.legend().remove()
    handles = grid[0].get_legend_handles_labels()[0]
    for handle in handles:
        handle.set_label(RESCALED[str(handle.get_label())])
    pair = rows.iloc[0]
    names = f"{dataset_label(pair['dataset'])}; {backbone_label(pair['backbone'])}"
    repeats = f"mean ± sd over {rows['seed'].nunique()} repeats"
    return legend_below(figure, handles, columns=2, title=f"{names}: {repeats}")


@style()
def figure_3(runs: Runs) -> Figure:
    """Draw |r| of each statistic with the best inverse temperature, over all pairs.

    Diamonds show |r| over the pairs with trained backbones alone.
    """
    table = runs.tables["correlations"]
    figure, (axes,) = panels(1, row=4.6)
    is_positive = table["r"] >= 0
    _bars(axes, table[is_positive], color=(*HUES[0], 0.55), label="positive")
    _bars(axes, table[~is_positive], color=(*HUES[1], 0.55), label="negative")
    axes.set_yticks(range(len(table)), table["statistic"].map(statistic_label))
    below = table["absolute_r"] - table["absolute_low"]
    above = table["absolute_high"] - table["absolute_r"]
    axes.errorbar(
        table["absolute_r"],
        table.index,
        xerr=[below, above],
        label="90 % interval",
        fmt="none",
        ecolor="0.1",
        elinewidth=1,
        capsize=2,
    )
    trained = pairs(runs, runs.select(TRAINED_PAIR))
    r = trained[list(STATISTICS)].corrwith(trained["inverse_temperature"])
    axes.plot(
        r.abs()[table["statistic"]],
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


def _bars(axes: Axes, rows: pd.DataFrame, *, color: Any, label: str) -> None:
    """Draw bars of |r|; bars of a negative r are hatched."""
    axes.barh(
        rows.index,
        rows["absolute_r"],
        label=f"all pairs, {label} r",
        color=color,
        hatch="//" if label == "negative" else None,
        edgecolor="white",
    )


@style()
def figure_4(runs: Runs) -> Figure:
    """Draw the inverse temperature predicted from all statistics against the best one.

    The axes are logarithmic. On the left, the regression is fitted on all pairs, as in
    the paper; on the right, a pair is predicted without the pairs of its data set. A
    grey strip below the axis shows predictions below 1, including negative ones. A
    strip above the axis shows predictions above `LARGEST_SHOWN`.
    """
    table = runs.tables["predictions"]
    order = pairs(runs).sort_values(["n_classes", "dataset"])["dataset"].unique()
    datasets = pd.Categorical(table["dataset"], categories=order)
    table = table.assign(trained=is_trained(runs, table), dataset=datasets)
    figure, grid = panels(2, row=2.5, extra=1.8, sharex=True, sharey=True)
    _predictions(grid[0], table, "fitted", "fitted on all pairs")
    _predictions(grid[1], table, "left_out", "data set left out")
    _outer_strips(grid, table[["fitted", "left_out"]].to_numpy(float))
    untrained = entry(
        "open: untrained",
        ls="none",
        marker="o",
        color="0.4",
        markerfacecolor="none",
        markersize=4,
    )
    handles = [*grid[1].get_legend_handles_labels()[0], untrained]
    legend_below(figure, handles, columns=4)
    grid[0].set_ylabel(f"predicted {INVERSE_TEMPERATURE}")
    return figure


def _predictions(axes: Axes, table: pd.DataFrame, column: str, title: str) -> None:
    """Draw one panel, with a separate marker for each data set.

    Markers are open for untrained backbones.
    """
    axes.set(xscale="log", yscale="log")
    for place, (dataset, rows) in enumerate(table.groupby("dataset", observed=True)):
        hue = HUES[place % 8]
        look: Any = {"marker": _MARKERS[place % 6], "edgecolor": hue, "s": 16}
        best = rows["inverse_temperature"]
        predicted = rows[column].mask(rows[column] < 1, _BELOW)
        predicted = predicted.mask(predicted > LARGEST_SHOWN, _ABOVE)
        for trained, marks in rows.groupby("trained"):
            filled: Any = {"facecolor": "none"}
            if trained:
                filled = {"facecolor": hue, "label": dataset_label(str(dataset))}
            axes.scatter(best[marks.index], predicted[marks.index], **look, **filled)
    axes.plot(SEARCHED, SEARCHED, color="0.5", linewidth=0.8, linestyle=":")
    optima = table["inverse_temperature"].to_numpy(float)
    predictions = table[column].to_numpy(float)
    correlation = pearson(optima, predictions)
    r = "r undefined"
    if correlation is not None:
        r = f"Pearson r of α: {correlation.r:.2f}".replace("-", "−")
    ticks = [tick for tick in _TICKS if tick <= SEARCHED[1]]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set(
        title=f"{title}\n{r}\n{np.sum(predictions < 1)} of {len(table)} below 1",
        xlabel=f"best {INVERSE_TEMPERATURE}",
        xlim=(0.8 * SEARCHED[0], 1.25 * SEARCHED[1]),
    )


def _outer_strips(grid: list[Axes], predictions: Any) -> None:
    """Draw and label the strips for predictions outside the range of the axis.

    A strip without predictions is left out.
    """
    ticks = [float(tick) for tick in _TICKS if tick <= SEARCHED[1]]
    low = 0.8
    high = 1.25 * SEARCHED[1]
    if (predictions > SEARCHED[1]).any():
        high = 1.2 * LARGEST_SHOWN
        ticks = [float(tick) for tick in _TICKS]
    names = [f"{tick:g}" for tick in ticks]
    strips = []
    if (predictions < 1).any():
        low = 0.4
        strips.append((low, 0.75))
        ticks.append(_BELOW)
        names.append("below 1")
    if (predictions > LARGEST_SHOWN).any():
        high = 1000
        strips.append((1.15 * LARGEST_SHOWN, high))
        ticks.append(_ABOVE)
        names.append(f"above {LARGEST_SHOWN}")
    for axes in grid:
        axes.minorticks_off()
        axes.set_ylim(low, high)
        for strip in strips:
            axes.axhspan(*strip, color="0.92", linewidth=0, zorder=0)
    grid[0].set_yticks(ticks, names)


@style()
def accuracy_curves(runs: Runs) -> Figure:
    """Draw the best test accuracy over inverse temperatures.

    The paper has no such figure. There is one panel per data set. Each line shows a
    backbone, and the dot on the line shows the recorded optimum of the pair.
    """
    table = pairs(runs)
    accuracies = searches(runs)
    datasets = table.sort_values(["n_classes", "dataset"])["dataset"].unique()
    figure, grid = panels(len(datasets), columns=3, row=1.3, extra=1.3, sharex=True)
    in_order = table.sort_values(["dim", "backbone"])["backbone"].unique()
    looks = dict(zip(in_order, _LOOKS, strict=False))
    optima = table.set_index(["dataset", "backbone"])["inverse_temperature"]
    for axes, dataset in zip(grid, datasets, strict=True):
        of_dataset = accuracies[accuracies["dataset"] == dataset]
        for backbone in in_order:
            rows = of_dataset[of_dataset["backbone"] == backbone]
            if rows.empty:
                continue
            accuracy = PERCENT * rows.set_index("inverse_temperature")["test_accuracy"]
            look = looks[backbone]
            label = backbone_label(backbone)
            axes.plot(accuracy.index, accuracy, **look, linewidth=1, label=label)
            best = optima[dataset, backbone]
            at_best = np.interp(best, accuracy.index, accuracy)
            axes.plot(best, at_best, "o", color=look["color"], markersize=3)
        axes.set_title(dataset_label(dataset))
    label_outside(grid, columns=3, x="inverse\ntemperature α")
    figure.supylabel("best test accuracy (%)", fontsize=SMALLEST)
    legend_below(figure, grid[0], columns=3)
    return figure


@style()
def cost_of_rules(runs: Runs) -> Figure:
    """Draw a box plot of the accuracy that each rule loses on the pairs.

    The paper has no such figure. A dot shows the accuracy that the rule loses on one
    pair. A box spans the quartiles, and its whiskers span the central 90 % of the
    pairs.
    """
    rules = runs.tables["rules"]
    table = rules.assign(points=PERCENT * rules["accuracy_lost"])
    # Rules with equal mean losses stay in the order of the table.
    means = rules.groupby("rule", sort=False)["accuracy_lost"].mean()
    order = means.sort_values(kind="stable").index
    figure, (axes,) = panels(1, row=0.32 * len(order) + 0.9)
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
    # Draw the jitter with a fixed seed, because seaborn's jitter is not seeded, and
    # equal results must give equal files.
    jitter = np.random.default_rng(0).uniform(-0.25, 0.25, len(table))
    axes.scatter(table["points"], rows + jitter, s=5, alpha=0.6, zorder=3)
    axes.set(
        xlabel="accuracy lost against the best (points)\n"
        "linear up to 1 (dotted), then logarithmic",
        ylabel="",
    )
    axes.set_xscale("symlog", linthresh=1)
    axes.axvline(1, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.set_xlim(left=0)
    ticks = (0, 0.5, 1, 2, 5, 10, 20, 50)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    return figure
