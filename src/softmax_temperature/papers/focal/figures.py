"""Figures of training and of the theory: 1 to 3, A.1, B.1, C.1, C.2 and I.1.

Figures of training show the first experiment with the main recipe. Lines are means over
seeds, and bands show one standard deviation. Diverged runs are left out; if no run
remains, the function returns None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
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

from softmax_temperature.losses.propositions import optimal_probability, threshold
from softmax_temperature.losses.theory import gradient_ratio
from softmax_temperature.papers.focal.study import (
    CE,
    CURVE_LOSSES,
    LINEAR,
    shown_experiments,
    title,
)
from softmax_temperature.papers.shared import figures
from softmax_temperature.papers.shared.factors import Where, where
from softmax_temperature.papers.shared.figures import PERCENT
from softmax_temperature.papers.shared.runs import Runs

_BLUE = figures.HUES[0]
_ORANGE = figures.HUES[1]
_GREEN = figures.HUES[2]
_RED = figures.HUES[3]
_GREY = figures.HUES[7]
_CYAN = figures.HUES[9]
COLOURS: Mapping[str, Any] = defaultdict(
    lambda: "0.6",
    {
        "CE": figures.BLACK,
        "Brier": _BLUE,
        "MMCE": _GREY,
        "LS-0.05": _GREEN,
        "LS-0.1": "#8fd6c0",
        "FL-1": "#ebb13f",
        "FL-2": "#c46f00",
        "FL-3": "#6b3f00",
        "FLSc-531": _CYAN,
        "FLSc-532": "#b7e0f7",
        "FLSD-532": "#e3b1e3",
        "FLSD-53": "#a3329a",
    },
)
"""Maps the label of a loss to its colour.

Each family of losses has its own hue; a larger gamma is darker. A loss without an entry
is grey.
"""
GAMMAS_3A = (1, 2, 3, 5, 7, 8, 9)
"""The gammas of Figure 3(a), read from the authors' plot; the text lists none."""
CONFIDENT = 0.9
"""The confidence at which Figure C.2 draws lines. According to appendix C, a model
trained with cross-entropy errs "almost always with greater than 90% confidence".
"""
_CROSS_ENTROPY: Mapping[str, Where] = {"CE": CE}
_RARE = 0.001
"""A bin with at most this share of the samples does not widen the axis."""
_REST = 0.005
"""A diagram counts as one bar if at most this share of the samples is outside the last
bin.
"""
_POINTS = 201
_EDGES = np.linspace(0.5, 1, 26)
_GUIDE: dict[str, Any] = {"color": "0.5", "linewidth": 0.8, "linestyle": ":"}
_SIDES = (
    ("all", "", figures.BLACK),
    ("right", "_right", _GREEN),
    ("wrong", "_wrong", _RED),
)


def finished(runs: Runs, losses: Mapping[str, Where], among: Where) -> pd.DataFrame:
    """The runs with one of `losses` that did not diverge, in the order of `losses`."""
    rows = runs.select(among & where(diverged=False))
    return pd.concat([loss.select(rows) for loss in losses.values()])


def of_runs(table: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """The rows of `table` that belong to the runs `chosen`, in the order of the runs.

    The columns `arm` and `seed` are added.
    """
    about = chosen[["arm", "seed"]]
    return about.join(table.set_index("run"), how="inner").rename_axis(index="run")


def curves_of(
    runs: Runs, losses: Mapping[str, Where], *metrics: str, split: str, among: Where
) -> pd.DataFrame:
    """The `metrics` on `split` for the finished runs with one of `losses`.

    There is one row per run and epoch.
    """
    table = runs.wide(*metrics, split=split)
    return of_runs(table, finished(runs, losses, among))


def first_experiment(runs: Runs) -> str:
    """The first experiment, which the training figures show; "" if there is none."""
    names = shown_experiments(runs)
    return names[0] if names else ""


def in_first_experiment(runs: Runs) -> Where:
    """A predicate that selects the classification runs of the first experiment."""
    return where(task="classification", experiment=first_experiment(runs))


def curves(axes: Axes, rows: pd.DataFrame, column: str, **labels: Any) -> None:
    """Draw the mean of `column` over epochs for each loss, with a band.

    `labels` are the settings of the panel, such as its title.
    """
    for arm, band in rows.groupby("arm", sort=False):
        figures.over_epochs(axes, band, column, color=COLOURS[str(arm)], label=str(arm))
    axes.set(xlabel="epoch", **labels)


@figures.style()
def figure_1(runs: Runs) -> Figure | None:
    """Draw NLL, entropy, error and ECE over epochs of training with cross-entropy.

    NLL and entropy are shown for all samples, for the correctly classified ones, and
    for the misclassified ones.
    """
    sides = [f"{name}{end}" for name in ("nll", "entropy") for _, end, _ in _SIDES]
    train, test = (
        curves_of(
            runs,
            _CROSS_ENTROPY,
            *sides,
            "accuracy",
            "ece",
            split=split,
            among=in_first_experiment(runs),
        )
        for split in ("train", "test")
    )
    if test.empty:
        return None
    figure, (a, b, c, d) = figures.panels(4, columns=2, row=2.4, extra=0.3)
    _nll_and_entropy(a, train, "(a) training data")
    _nll_and_entropy(b, test, "(b) test data")
    a.sharey(b)
    errors = {"training data": (train, _BLUE), "test data": (test, _ORANGE)}
    for label, (rows, colour) in errors.items():
        error = rows.assign(error=1 - rows["accuracy"])
        figures.over_epochs(c, error, "error", scale=PERCENT, color=colour, label=label)
    figures.over_epochs(d, test, "ece", scale=PERCENT, color=_ORANGE)
    for axes, text in ((c, "(c) error"), (d, "(d) ECE on test data")):
        axes.set(title=text, xlabel="epoch", ylabel="%", ylim=(0, None))
    c.legend()
    name = f"{title(runs, first_experiment(runs))}: CE"
    figures.legend_below(figure, a, columns=3)
    figures.headline(figure, name)
    return figure


def _nll_and_entropy(axes: Axes, rows: pd.DataFrame, text: str) -> None:
    """Draw the NLL as solid lines and the entropy as dashed lines.

    Each kind of sample has its own colour.
    """
    for kind, suffix, colour in _SIDES:
        nll = f"nll{suffix}"
        entropy = f"entropy{suffix}"
        figures.over_epochs(axes, rows, nll, color=colour, label=f"NLL, {kind}")
        figures.over_epochs(
            axes,
            rows,
            entropy,
            color=colour,
            linestyle="--",
            label=f"entropy, {kind}",
        )
    axes.set(title=text, ylabel="nats", ylim=(0, None))


@figures.style()
def figure_2(runs: Runs) -> Figure | None:
    """Draw test NLL, entropy of misclassified samples, and last-layer weight norm.

    The NLL is shown for all samples, for the correctly classified ones, and for the
    misclassified ones.
    """
    test = curves_of(
        runs,
        CURVE_LOSSES,
        "nll",
        "nll_right",
        "nll_wrong",
        "entropy_wrong",
        "weight_norm",
        split="test",
        among=in_first_experiment(runs),
    )
    if test.empty:
        return None
    figure, (a, b, c, d, e, legend) = figures.panels(6, row=1.9)
    curves(a, test, "nll", title="(a) NLL", ylabel="nats")
    curves(b, test, "nll_right", title="(b) NLL, right samples", ylabel="nats")
    curves(c, test, "nll_wrong", title="(c) NLL, wrong samples", ylabel="nats")
    curves(d, test, "entropy_wrong", title="(d) entropy, wrong samples", ylabel="nats")
    curves(e, test, "weight_norm", title="(e) weights of the last layer", ylabel="norm")
    legend.set_axis_off()
    legend.legend(*a.get_legend_handles_labels(), loc="center")
    name = f"{title(runs, first_experiment(runs))}: test data"
    figures.headline(figure, name)
    return figure


@figures.style()
def figure_3a() -> Figure:
    """Draw g(p, γ), the ratio of the gradients of focal loss and cross-entropy.

    Dots mark p0, where the ratio falls below 1.
    """
    probs = torch.linspace(0, 1, _POINTS, dtype=torch.float64)
    figure, (axes,) = figures.panels(1, row=3.4)
    axes.axhline(1, **_GUIDE)
    for gamma, colour in zip(
        GAMMAS_3A, sns.color_palette("viridis_r", len(GAMMAS_3A)), strict=True
    ):
        p0 = threshold(gamma)
        axes.plot(
            probs,
            gradient_ratio(probs, gamma),
            color=colour,
            label=f"γ = {gamma} ($p_0$ = {p0:.2f})",
        )
        axes.plot(p0, 1, "o", color=colour, markersize=4, zorder=3)
    axes.set(
        xlabel="probability p of the true class",
        ylabel="g(p, γ)",
        xlim=(0, 1),
        ylim=(0, None),
    )
    axes.legend(title="dots: g($p_0$, γ) = 1")
    return figure


@figures.style()
def figure_3bcd(runs: Runs) -> Figure | None:
    """Draw histograms of the last layer's gradient norm over training samples.

    There is one panel per recorded epoch. Each panel pools the seeds.
    """
    shown = finished(runs, CURVE_LOSSES, in_first_experiment(runs))
    table = of_runs(runs.tables["gradient_norms"], shown)
    if table.empty:
        return None
    counts = table.groupby(["epoch", "arm", "low", "high"], as_index=False)[
        "count"
    ].sum()
    counts["share"] = counts["count"] / counts.groupby(["epoch", "arm"])[
        "count"
    ].transform("sum")
    epochs = counts.groupby("epoch")
    figure, grid = figures.panels(
        len(epochs), columns=1, row=1.5, extra=0.6, sharex=True, sharey=True
    )
    for axes, (epoch, bins), letter in zip(
        grid, epochs, ascii_lowercase[1:], strict=False
    ):
        for arm, rows in bins.groupby("arm"):
            edges = [*rows["low"], rows["high"].iloc[-1]]
            axes.stairs(
                PERCENT * rows["share"],
                edges,
                color=COLOURS[str(arm)],
                linewidth=1.2,
                label=str(arm),
            )
        axes.set(title=f"({letter}) epoch {epoch}", xscale="log")
    # The first bin also counts all samples whose norm is below the bin.
    edges = counts[["low", "high"]].min()
    powers = np.arange(-4, 3, 2)
    names = [
        f"$\\leq 10^{{{np.log10(edges['high']):.2f}}}$",
        *(f"$10^{{{power}}}$" for power in powers),
    ]
    grid[0].set_xticks([edges.prod() ** 0.5, *10.0**powers], names)
    common = counts[counts["share"] > _RARE]
    grid[0].set_xlim(common["low"].min(), common["high"].max())
    grid[-1].set_xlabel("gradient norm")
    figure.supylabel("training samples (%)", fontsize=figures.SMALLEST)
    figures.legend_below(figure, grid[0], columns=len(CURVE_LOSSES))
    figures.headline(figure, title(runs, first_experiment(runs)))
    return figure


@figures.style()
def figure_a1(runs: Runs) -> Figure | None:
    """Draw the first seed's reliability on training data at a few epochs, in 25 bins.

    The row below shows the share of samples in each bin. If at most a share `_REST` of
    an epoch's samples is outside the last bin, the epoch's diagram would be a single
    bar. Such an epoch is not drawn, only mentioned above the panels. If all epochs are
    like this, the first one is drawn.
    """
    shown = finished(runs, _CROSS_ENTROPY, in_first_experiment(runs))
    table = of_runs(runs.tables["reliability"], shown)
    if table.empty:
        return None
    table = table[table["seed"] == table["seed"].min()].sort_values(["epoch", "low"])
    totals = table.groupby("epoch")["count"].sum()
    last = table.groupby("epoch")[["count", "accuracy"]].last()
    full = last[last["count"] >= (1 - _REST) * totals]
    drawn = [epoch for epoch in totals.index if epoch not in full.index]
    drawn = drawn or [totals.index[0]]
    named = full.drop(index=drawn, errors="ignore")
    groups = [(epoch, table[table["epoch"] == epoch]) for epoch in drawn]
    count = len(groups)
    figure, grid = figures.panels(
        2 * count,
        columns=count,
        row=1.85,
        extra=0.3 if len(named) else 0.0,
        sharex=True,
        sharey="row",
    )
    for upper, lower, (epoch, bins) in zip(grid, grid[count:], groups, strict=False):
        _reliability(upper, lower, bins)
        upper.set_title(f"epoch {epoch}")
        lower.set_xlabel("confidence")
    grid[0].set_ylabel("accuracy (%)")
    grid[count].set_ylabel("training samples (%)")
    name = f"{title(runs, first_experiment(runs))}: CE, one seed"
    if len(named):
        name += f"\n{_in_the_last_bin(named['count'] / totals[named.index])}"
    figures.headline(figure, name)
    return figure


def _reliability(upper: Axes, lower: Axes, bins: pd.DataFrame) -> None:
    """Draw each bin's accuracy in `upper`, and its share of the samples in `lower`."""
    centres = (bins["low"] + bins["high"]) / 2
    width = bins["high"] - bins["low"]
    share = bins["count"] / bins["count"].sum()
    for axes, heights, colour in (
        (upper, bins["accuracy"], _BLUE),
        (lower, share, _ORANGE),
    ):
        axes.bar(
            centres, PERCENT * heights, width, color=colour, edgecolor="white", lw=0.3
        )
        axes.set(xlim=(0, 1), ylim=(0, PERCENT))
    upper.plot([0, 1], [0, PERCENT], color="0.4", linewidth=0.8, linestyle="--")


def _in_the_last_bin(shares: pd.Series[float]) -> str:
    """Name the epochs that are not drawn, with the share of samples in the last bin.

    If there are several such epochs, the smallest of their shares is given.
    """
    epochs = [str(epoch) for epoch in shares.index]
    named = epochs[-1]
    if len(epochs) > 1:
        named = f"{', '.join(epochs[:-1])} and {named}"
    least = np.floor(10 * PERCENT * shares.min()) / 10
    text = (
        "all samples" if shares.min() == 1 else f"at least {least:g} % of the samples"
    )
    return f"epoch{'s' * (len(epochs) > 1)} {named}: {text} in the last bin"


@figures.style()
def figure_b1() -> Figure:
    """Draw the predicted probability that minimises each loss, for two classes.

    The x axis is the true probability of the class.
    """
    chances = np.linspace(0, 1, _POINTS)
    figure, (axes,) = figures.panels(1, row=4.2)
    for gamma, arm in enumerate(CURVE_LOSSES):
        best = [optimal_probability(q, gamma) for q in chances.tolist()]
        axes.plot(
            chances,
            best,
            color=COLOURS[arm],
            label=f"focal, γ = {gamma}" if gamma else "cross-entropy",
        )
    axes.set(
        xlabel="probability q of the class",
        ylabel="optimal predicted probability",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    axes.set_aspect("equal")
    axes.legend(loc="upper left")
    return figure


@figures.style()
def figure_c1(runs: Runs) -> Figure | None:
    """Draw norms of the linear model's logits and weights over epochs.

    Lines are means over seeds, and bands show one standard deviation.
    """
    rows = of_runs(
        runs.wide("logit_norm", "weight_norm", split="test"), runs.select(LINEAR)
    )
    if rows.empty:
        return None
    figure, (a, b) = figures.panels(2, row=2.5, extra=0.3)
    logits = "mean norm of the test logits"
    curves(a, rows, "logit_norm", title="(a)", ylabel=logits, ylim=(0, None))
    curves(
        b,
        rows,
        "weight_norm",
        title="(b)",
        ylabel="norm of the weights",
        ylim=(0, None),
    )
    return figures.legend_below(figure, a, columns=len(CURVE_LOSSES))


@figures.style()
def figure_c2(runs: Runs) -> Figure | None:
    """Draw the confidence of the linear model's mistakes, and its decision regions.

    Mistakes are pooled over seeds; regions are those of seed 0.
    """
    models = runs.select(LINEAR)
    mistakes = of_runs(runs.tables["linear_mistakes"], models)
    points = runs.tables["linear_points"]
    if mistakes.empty or points.empty:
        return None
    first_seed = where(seed=0).select(models)
    weights = of_runs(runs.wide("weight_0", "weight_1", split="test"), first_seed)
    weights = weights.dropna().set_index("arm")[["weight_0", "weight_1"]]
    rows = -(-len(weights) // 2)
    figure = Figure(figsize=(figures.WIDTH, 3.6 + 2.4 * rows), layout="constrained")
    grid = figure.add_gridspec(1 + rows, 2)
    above = figure.add_subplot(grid[0, :])
    below = [
        figure.add_subplot(grid[1 + place // 2, place % 2])
        for place in range(len(weights))
    ]
    # Show shares of the mistakes with each loss, because the number of mistakes differs
    # between losses.
    for loss, confidence in mistakes.groupby("arm", sort=False)["confidence"]:
        share = PERCENT * np.histogram(confidence, _EDGES)[0] / len(confidence)
        above.stairs(share, _EDGES, fill=True, color=COLOURS[str(loss)], alpha=0.25)
        above.stairs(share, _EDGES, color=COLOURS[str(loss)], label=str(loss))
    above.axvline(CONFIDENT, **_GUIDE)
    above.set(
        title="(a)",
        xlabel="confidence of misclassified test points",
        ylabel="share of mistakes (%)",
    )
    above.set_xlim(0.5, 1)
    above.legend(loc="upper left")
    letters = ascii_lowercase[1:]
    for axes, (name, pair), letter in zip(
        below, weights.iterrows(), letters, strict=False
    ):
        regions = _regions(axes, points, pair.to_numpy(float))
        angle = np.degrees(np.arctan2(pair["weight_1"], pair["weight_0"]))
        axes.set_title(f"({letter}) {name}\nw points to {angle:.1f}°")
    figures.label_outside(below, x="$x_0$", y="$x_1$")
    figure.colorbar(
        regions,
        ax=below,
        label="predicted probability of label 1",
        location="bottom",
        shrink=0.75,
        aspect=40,
    )
    return figures.legend_below(figure, below[0], columns=5)


@figures.style()
def figure_i1(runs: Runs) -> Figure | None:
    """Draw the norm of the features that enter the last layer, by loss."""
    rows = curves_of(
        runs,
        CURVE_LOSSES,
        "feature_norm",
        split="train",
        among=in_first_experiment(runs),
    )
    if rows.empty:
        return None
    figure, (axes,) = figures.panels(1, row=3.0)
    curves(
        axes,
        rows,
        "feature_norm",
        title="",
        ylabel="mean norm of the features",
        ylim=(0, None),
    )
    axes.legend()
    figures.headline(figure, title(runs, first_experiment(runs)))
    return figure


def _regions(
    axes: Axes, points: pd.DataFrame, weights: NDArray[np.float64]
) -> AxesImage:
    """Draw the probability of label 1 as colour over the plane, and the test points.

    Lines mark a probability of one half and a confidence of 90 %. Returns the coloured
    image, for the colour bar.
    """
    places = points[["x_0", "x_1"]].to_numpy()
    labels = points["label"]
    reach = 1.02 * np.abs(places).max()
    side = np.linspace(-reach, reach, _POINTS)
    scores = weights[0] * side[None, :] + weights[1] * side[:, None]
    probs = 1 / (1 + np.exp(-scores))
    extent = (-reach, reach, -reach, reach)
    regions = axes.imshow(
        probs, extent=extent, origin="lower", cmap="RdBu_r", vmin=0, vmax=1, alpha=0.4
    )
    sure = np.log(CONFIDENT / (1 - CONFIDENT))
    axes.contour(
        side,
        side,
        scores,
        levels=[-sure, 0, sure],
        colors="black",
        linestyles=["--", "-", "--"],
    )
    # Points have the colour of their label's region, so points in the region of the
    # other colour are mistakes.
    for label, marker, colour in ((0, "o", "#2166ac"), (1, "^", figures.WARNING)):
        x, y = places[labels == label].T
        # Rasterise the points, because thousands of elements would make the SVG large.
        axes.scatter(
            x,
            y,
            s=7,
            marker=marker,
            color=colour,
            linewidth=0,
            label=f"label {label}",
            rasterized=True,
        )
    wrong = (places @ weights > 0) != (labels == 1)
    axes.plot(
        *places[wrong].T, "ko", markersize=3.7, fillstyle="none", label="misclassified"
    )
    axes.plot([], [], color="black", label="decision boundary")
    axes.plot([], [], color="black", linestyle="--", label="confidence 90 %")
    return regions
