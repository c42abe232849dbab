"""What happens during training, and the theory: Figures 1 to 3, A.1, B.1, C.1, C.2 and I.1.

Figures of training show one task, the first with the main recipe if none is named. Lines are means over seeds, bands
one standard deviation; runs that diverged are not in them.
"""

from __future__ import annotations

from collections import defaultdict
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from softmax_temperature.losses import gradient_ratio
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.focal.selection import (
    ARMS,
    FIXED_FOCAL_ARMS,
    REFERENCE,
    finished,
    main_tasks,
    of_task,
    tasks,
)
from softmax_temperature.papers.focal.theory import optimal_probability, threshold
from softmax_temperature.papers.shared.plots import (
    BLACK,
    HUES,
    PALETTE,
    PERCENT,
    WARNING,
    WIDTH,
    band,
    legend_below,
    panels,
    style,
)

CURVES = (REFERENCE, *FIXED_FOCAL_ARMS)
"""The methods that the paper shows during training."""
GAMMAS_3A = (1, 2, 3, 5, 7, 8, 9)  # As in the authors' plot; the text names none.
LOSSES_B1 = {"cross-entropy": 0.0, "focal, γ = 1": 1.0, "focal, γ = 2": 2.0, "focal, γ = 3": 3.0}
CONFIDENT = 0.9  # Section C: cross-entropy errs "almost always with greater than 90% confidence".
_RARE = 0.001  # A bin with a smaller share of the samples does not widen the axis.
_POINTS = 201
_EDGES = np.linspace(0.5, 1, 26)
_BLUE = "#2166ac"  # Labels have the colours of their regions: others are mistakes.
_HUES = (0, 7, 2, 9, 1, 4, 5, 6, 8, 3)  # Of the palette, so that the methods of one figure are far apart.
_QUANTITIES = {
    "nll": ("(a) NLL", "nats"),
    "nll_right": ("(b) NLL, right samples", "nats"),
    "nll_wrong": ("(c) NLL, wrong samples", "nats"),
    "entropy_wrong": ("(d) entropy, wrong samples", "nats"),
    "weight_norm": ("(e) weights of the last layer", "norm"),
}


def _palette() -> dict[str, Any]:
    colours = sns.color_palette(PALETTE)
    return {REFERENCE: BLACK, **{arm: colours[hue] for arm, hue in zip(ARMS[1:], _HUES, strict=True)}}


COLOURS = defaultdict(lambda: "0.6", _palette())
"""Of each method: cross-entropy is black; losses that the paper does not have are grey."""


def first_task(records: Records) -> str:
    """The task that a figure shows when none is named."""
    return str(main_tasks(records)["task"].iloc[0])


def task_title(records: Records, task: str) -> str:
    """Data set and network as the project calls them."""
    row = tasks(records).set_index("task").loc[task]
    return ", ".join(part for part in (row["dataset"], row["network"], row["variant"]) if part)


@style()
def figure_1(records: Records, task: str | None = None) -> Figure:
    """NLL and entropy of right and wrong samples, errors and ECE, while cross-entropy trains."""
    task = task or first_task(records)
    history = of_task(finished(records, "history"), task, (REFERENCE,))
    train, test = (history[history["split"] == split] for split in ("train", "test"))
    figure, grid = panels(3, row=3.2)
    for axes, rows, title in ((grid[0], train, "(a) training data"), (grid[1], test, "(b) test data")):
        _right_and_wrong(axes, rows)
        axes.set(title=title, xlabel="epoch", ylabel="nats")
    _errors(grid[2], train, test)
    figure.suptitle(f"{task_title(records, task)}: {REFERENCE}", fontsize=10)
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower left", ncols=3)
    return figure


@style()
def figure_2(records: Records, task: str | None = None) -> Figure:
    """Test NLL, that of right and wrong samples, entropy of wrong ones and the last layer's weight norm, by loss."""
    task = task or first_task(records)
    history = of_task(finished(records, "history"), task, CURVES)
    figure, grid = panels(6, row=2.2)
    for axes, (column, (title, unit)) in zip(grid, _QUANTITIES.items(), strict=False):
        _curves_by_arm(axes, history[history["split"] == "test"], column)
        axes.set(title=title, xlabel="epoch", ylabel=unit)
    grid[-1].set_axis_off()
    grid[-1].legend(*grid[0].get_legend_handles_labels(), loc="center", fontsize=9)
    figure.suptitle(f"{task_title(records, task)}: test data", fontsize=10)
    return figure


@style()
def figure_3a() -> Figure:
    """g(p, γ), focal loss's gradient over that of the cross-entropy, with the p0 where it falls through 1."""
    probs = torch.linspace(0, 1, _POINTS, dtype=torch.float64)
    figure, (axes,) = panels(1, width=0.75 * WIDTH, row=3.2)
    axes.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
    for gamma, colour in zip(GAMMAS_3A, sns.color_palette("viridis_r", len(GAMMAS_3A)), strict=True):
        p0 = threshold(gamma)
        axes.plot(probs, gradient_ratio(probs, gamma), color=colour, label=f"γ = {gamma} (p0 = {p0:.2f})")
        axes.plot(p0, 1, "o", color=colour, markersize=4, zorder=3)
    axes.set(xlabel="probability p of the true class", ylabel="g(p, γ)", xlim=(0, 1), ylim=(0, None))
    axes.legend(title="dots: g(p0, γ) = 1")
    return figure


@style()
def figure_3bcd(records: Records, task: str | None = None) -> Figure:
    """Histograms of the last layer's gradient norm over training samples, one panel per epoch, seeds together.

    Bins are equally wide on a logarithmic scale; norms beyond the outermost bins are counted in them.
    """
    task = task or first_task(records)
    table = of_task(finished(records, "gradient_norms"), task, CURVES)
    counts = table.groupby(["epoch", "arm", "low", "high"], as_index=False)["count"].sum()
    counts["share"] = counts["count"] / counts.groupby(["epoch", "arm"])["count"].transform("sum")
    epochs = sorted(counts["epoch"].unique())
    count = max(1, len(epochs))
    figure, grid = panels(count, columns=count, row=2.9, sharex=True, sharey=True)
    for axes, epoch, letter in zip(grid, epochs, ascii_lowercase[1:], strict=False):
        for arm, rows in counts[counts["epoch"] == epoch].sort_values("low").groupby("arm"):
            edges = [*rows["low"], rows["high"].iloc[-1]]
            axes.stairs(PERCENT * rows["share"], edges, color=COLOURS[str(arm)], linewidth=1.2, label=str(arm))
        axes.set(title=f"({letter}) epoch {epoch}", xlabel="gradient norm", xscale="log")
    common = counts[counts["share"] > _RARE]
    if len(common):
        grid[0].set_xlim(common["low"].min(), common["high"].max())
    grid[0].set_ylabel("training samples (%)")
    figure.suptitle(task_title(records, task), fontsize=10)
    legend_below(figure, grid[0], columns=len(CURVES))
    return figure


@style()
def figure_a1(records: Records, task: str | None = None, *, arm: str = REFERENCE) -> Figure:
    """Reliability on training data at a few epochs (25 bins), above the share of samples in each bin; first seed."""
    task = task or first_task(records)
    table = of_task(finished(records, "reliability"), task, (arm,))
    table = table[table["seed"] == table["seed"].min()]
    epochs = sorted(table["epoch"].unique())
    count = max(1, len(epochs))
    figure, grid = panels(2 * count, columns=count, row=1.85, sharex=True, sharey="row")
    look: dict[str, Any] = {"edgecolor": "white", "lw": 0.3}
    for upper, lower, epoch in zip(grid[:count], grid[count:], epochs, strict=False):
        bins = table[table["epoch"] == epoch]
        centres, width = (bins["low"] + bins["high"]) / 2, bins["high"] - bins["low"]
        share = PERCENT * bins["count"] / bins["count"].sum()
        for axes, heights, colour in zip(
            (upper, lower), (PERCENT * bins["accuracy"], share), (HUES[0], HUES[1]), strict=True
        ):
            axes.bar(centres, heights, width, color=colour, **look)
            axes.set(xlim=(0, 1), ylim=(0, PERCENT))
        upper.plot([0, 1], [0, PERCENT], color="0.4", linewidth=0.8, linestyle="--")
        upper.set_title(f"epoch {epoch}")
        lower.set_xlabel("confidence")
    grid[0].set_ylabel("accuracy (%)")
    grid[count].set_ylabel("training samples (%)")
    figure.suptitle(f"{task_title(records, task)}: {arm}", fontsize=10)
    return figure


@style()
def figure_b1() -> Figure:
    """The predicted probability that minimises each loss, against the class's probability, for two classes."""
    chances = np.linspace(0, 1, _POINTS)
    figure, (axes,) = panels(1, width=0.6 * WIDTH, row=3.6)
    for name, gamma in LOSSES_B1.items():
        axes.plot(chances, [optimal_probability(q, gamma) for q in chances.tolist()], label=name)
    axes.set(xlabel="probability q of the class", ylabel="optimal predicted probability", xlim=(0, 1), ylim=(0, 1))
    axes.set_aspect("equal")
    axes.legend(loc="upper left")
    return figure


@style()
def figure_c1(records: Records) -> Figure:
    """Norms of the linear model's logits and weights over training: mean ± sd over seeds."""
    history = records.linear_history
    figure, grid = panels(2, row=2.9)
    for axes, column in zip(grid, ("logit_norm", "weight_norm"), strict=True):
        sns.lineplot(history, x="epoch", y=column, hue="loss", style="loss", errorbar="sd", legend="full", ax=axes)
        axes.set(xlim=(0, history["epoch"].max()), ylim=(0, None))
        entries = axes.get_legend_handles_labels()
        axes.legend().remove()
    figure.legend(*entries, loc="outside lower center", ncols=len(entries[1]))
    grid[0].set(title="(a)", ylabel="mean norm of the test logits")
    grid[1].set(title="(b)", ylabel="norm of the weights")
    return figure


@style()
def figure_c2(records: Records) -> Figure:
    """Confidence of the linear model's mistakes over all seeds, and the decision regions of seed 0, by loss."""
    boundary = records.linear_boundary
    weights = boundary[boundary["seed"] == 0].set_index("loss")[["weight_0", "weight_1"]]
    figure = Figure(figsize=(WIDTH, 5.2), layout="constrained")
    grid = figure.add_gridspec(2, len(weights), height_ratios=(1, 1.2))
    _mistakes(figure.add_subplot(grid[0, :]), records.linear_mistakes)
    below = [figure.add_subplot(grid[1, column]) for column in range(len(weights))]
    for axes, (name, pair), letter in zip(below, weights.iterrows(), ascii_lowercase[1:], strict=False):
        regions = _regions(axes, records.linear_points, pair.to_numpy(float))
        angle = np.degrees(np.arctan2(pair["weight_1"], pair["weight_0"]))
        axes.set(title=f"({letter}) {name}\nw points to {angle:.1f}°", xlabel="x₀")
        axes.tick_params(labelleft=axes is below[0])
    below[0].set(ylabel="x₁")
    legend_below(figure, below[0], columns=5)
    figure.colorbar(regions, ax=below, label="predicted probability\nof label 1", shrink=0.75)
    return figure


@style()
def figure_i1(records: Records, task: str | None = None) -> Figure:
    """Norm of the features that enter the last layer, by loss."""
    task = task or first_task(records)
    history = of_task(finished(records, "history"), task, CURVES)
    figure, (axes,) = panels(1, width=0.7 * WIDTH, row=3.0)
    _curves_by_arm(axes, history[history["split"] == "train"], "feature_norm")
    axes.set(title=task_title(records, task), xlabel="epoch", ylabel="mean norm of the features", ylim=(0, None))
    axes.legend(*axes.get_legend_handles_labels())
    return figure


def _curves_by_arm(axes: Axes, rows: pd.DataFrame, column: str) -> None:
    for arm in (name for name in CURVES if name in set(rows["arm"])):
        band(axes, rows[rows["arm"] == arm], "epoch", column, color=COLOURS[arm], label=arm)


def _right_and_wrong(axes: Axes, rows: pd.DataFrame) -> None:
    for kind, suffix, colour in (("all", "", BLACK), ("right", "_right", HUES[2]), ("wrong", "_wrong", HUES[3])):
        band(axes, rows, "epoch", f"nll{suffix}", color=colour, label=f"NLL, {kind}")
        band(axes, rows, "epoch", f"entropy{suffix}", color=colour, linestyle="--", label=f"entropy, {kind}")
    axes.set_ylim(0, None)


def _errors(axes: Axes, train: pd.DataFrame, test: pd.DataFrame) -> None:
    for rows, label, colour in ((train, "training error", HUES[0]), (test, "test error", HUES[1])):
        band(axes, rows.assign(error=1 - rows["accuracy"]), "epoch", "error", scale=PERCENT, color=colour, label=label)
    band(axes, test, "epoch", "ece", scale=PERCENT, color=HUES[4], linestyle="--", label="test ECE")
    axes.set(title="(c) errors and ECE", xlabel="epoch", ylabel="%", ylim=(0, None))
    axes.legend()


def _mistakes(axes: Axes, mistakes: pd.DataFrame) -> None:
    """Shares of each loss's own mistakes, because the losses need not make equally many."""
    groups = mistakes.groupby("loss", sort=False)["confidence"]
    for (name, confidence), colour in zip(groups, sns.color_palette(n_colors=len(groups)), strict=True):
        share = PERCENT * np.histogram(confidence, _EDGES)[0] / len(confidence)
        axes.stairs(share, _EDGES, fill=True, color=colour, alpha=0.25)
        axes.stairs(share, _EDGES, color=colour, label=str(name))
    axes.axvline(CONFIDENT, color="0.5", linewidth=0.8, linestyle=":")
    axes.set(title="(a)", xlabel="confidence of misclassified test points", ylabel="share of mistakes (%)")
    axes.set_xlim(0.5, 1)
    axes.legend(loc="upper left")


def _regions(axes: Axes, points: pd.DataFrame, weights: NDArray[np.float64]) -> AxesImage:
    """Probability of label 1 over the plane, the lines of one half and of 90 % confidence, and the points."""
    reach = 1.02 * points[["x_0", "x_1"]].abs().to_numpy().max()
    side = np.linspace(-reach, reach, _POINTS)
    scores = weights[0] * side[None, :] + weights[1] * side[:, None]
    probs, extent = 1 / (1 + np.exp(-scores)), (-reach, reach, -reach, reach)
    regions = axes.imshow(probs, extent=extent, origin="lower", cmap="RdBu_r", vmin=0, vmax=1, alpha=0.4)
    sure = np.log(CONFIDENT / (1 - CONFIDENT))
    axes.contour(side, side, scores, levels=[-sure, 0, sure], colors="black", linestyles=["--", "-", "--"])
    for label, marker, colour in ((0, "o", _BLUE), (1, "^", WARNING)):
        some = points[points["label"] == label]
        axes.scatter(some["x_0"], some["x_1"], s=7, marker=marker, color=colour, linewidth=0, label=f"label {label}")
    wrong = points[(points[["x_0", "x_1"]].to_numpy() @ weights > 0) != (points["label"] == 1)]
    axes.plot(wrong["x_0"], wrong["x_1"], "ko", markersize=3.7, fillstyle="none", label="misclassified")
    axes.plot([], [], color="black", label="decision boundary")
    axes.plot([], [], color="black", linestyle="--", label="confidence 90 %")
    return regions
