"""What happens during training, and the theory: Figures 1 to 3, A.1, B.1, C.1, C.2 and
I.1.

Figures of training show the first task with the main recipe. Lines are means over
seeds, bands one standard deviation; runs that diverged are not in them, and where all
did there is no figure.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
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
from softmax_temperature.papers.focal import records as paper
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.shared import plots
from softmax_temperature.papers.shared.plots import PERCENT
from softmax_temperature.params.focal import REFERENCE

CURVES = (
    REFERENCE,
    *paper.FIXED_FOCAL_ARMS,
)  # The methods that the paper shows during training.
_BLUE, _ORANGE, _GREEN, _RED, _GREY, _CYAN = (
    plots.HUES[place] for place in (0, 1, 2, 3, 7, 9)
)
# A hue per family, darker for a larger gamma; losses that the paper does not have are
# grey.
COLOURS = defaultdict(lambda: "0.6", {
    REFERENCE: plots.BLACK, "Brier": _BLUE, "MMCE": _GREY, "LS-0.05": _GREEN, "LS-0.1": "#8fd6c0",
    "FL-1": "#f7cf86", "FL-2": _ORANGE, "FL-3": "#8c5a00", "FLSc-531": _CYAN, "FLSc-532": "#b7e0f7",
    "FLSD-532": "#e3b1e3", "FLSD-53": "#a3329a",
})  # fmt: skip
GAMMAS_3A = (1, 2, 3, 5, 7, 8, 9)  # As in the authors' plot; the text names none.
# Section C: cross-entropy errs "almost always with greater than 90% confidence".
CONFIDENT = 0.9
_RARE = 0.001  # A bin with a smaller share of the samples does not widen the axis.
_POINTS = 201
_EDGES = np.linspace(0.5, 1, 26)
_GUIDE: dict[str, Any] = {"color": "0.5", "linewidth": 0.8, "linestyle": ":"}
_SIDES = (
    ("all", "", plots.BLACK),
    ("right", "_right", _GREEN),
    ("wrong", "_wrong", _RED),
)


def task_title(records: Records, task: str) -> str:
    """Data set, network and variant as the project calls them."""
    row = records.tasks.set_index("task").loc[task]
    return ", ".join(
        part for part in (row["dataset"], row["network"], row["variant"]) if part
    )


def of_first_task(
    table: str, arms: Sequence[str], title: str = "{}"
) -> Callable[[Any], Any]:
    """Makes a drawing of some rows of a table into a figure of the first task, None
    where it has no such rows.
    """

    def decorate(
        draw: Callable[[pd.DataFrame], Figure],
    ) -> Callable[[Records], Figure | None]:
        @plots.style()
        def figure(records: Records) -> Figure | None:
            task = str(paper.main_tasks(records)["task"].iloc[0])
            rows = paper.of_task(paper.finished(records, table), task, arms)
            if rows.empty:
                return None
            made = draw(rows)
            made.suptitle(title.format(task_title(records, task)), fontsize=10)
            return made

        return figure

    return decorate


def curves(
    axes: Axes,
    rows: pd.DataFrame,
    column: str,
    title: str,
    unit: str,
    *,
    by: str = "arm",
    **axis: Any,
) -> None:
    """A panel with the band of each loss over the epochs."""
    for name, some in rows.groupby(by, sort=False):
        plots.band(
            axes, some, "epoch", column, color=COLOURS[str(name)], label=str(name)
        )
    axes.set(xlabel="epoch", title=title, ylabel=unit, **axis)


@of_first_task("history", (REFERENCE,), title="{}: CE")
def figure_1(history: pd.DataFrame) -> Figure:
    """NLL and entropy of right and wrong samples, errors and ECE, while cross-entropy
    trains.
    """
    history = history.assign(error=1 - history["accuracy"])
    train, test = (history[history["split"] == split] for split in ("train", "test"))
    figure, (a, b, c, d) = plots.panels(4, columns=2, row=2.4, extra=0.3)
    for axes, rows, title in (
        (a, train, "(a) training data"),
        (b, test, "(b) test data"),
    ):
        for kind, suffix, colour in _SIDES:
            plots.band(
                axes, rows, "epoch", f"nll{suffix}", color=colour, label=f"NLL, {kind}"
            )
            plots.band(
                axes,
                rows,
                "epoch",
                f"entropy{suffix}",
                color=colour,
                linestyle="--",
                label=f"entropy, {kind}",
            )
        axes.set(title=title, ylabel="nats", ylim=(0, None))
    a.sharey(b)
    plots.band(
        c, train, "epoch", "error", scale=PERCENT, color=_BLUE, label="training data"
    )
    plots.band(
        c, test, "epoch", "error", scale=PERCENT, color=_ORANGE, label="test data"
    )
    plots.band(d, test, "epoch", "ece", scale=PERCENT, color=_ORANGE)
    for axes, title in ((c, "(c) error"), (d, "(d) ECE on test data")):
        axes.set(title=title, xlabel="epoch", ylabel="%", ylim=(0, None))
    c.legend()
    return plots.legend_below(figure, a, columns=3)


@of_first_task("history", CURVES, title="{}: test data")
def figure_2(history: pd.DataFrame) -> Figure:
    """Test NLL, that of right and wrong samples, entropy of wrong ones and the last
    layer's weight norm, by loss.
    """
    test = history[history["split"] == "test"]
    figure, (a, b, c, d, e, legend) = plots.panels(6, row=2.2)
    curves(a, test, "nll", "(a) NLL", "nats")
    curves(b, test, "nll_right", "(b) NLL, right samples", "nats")
    curves(c, test, "nll_wrong", "(c) NLL, wrong samples", "nats")
    curves(d, test, "entropy_wrong", "(d) entropy, wrong samples", "nats")
    curves(e, test, "weight_norm", "(e) weights of the last layer", "norm")
    legend.set_axis_off()
    legend.legend(*a.get_legend_handles_labels(), loc="center", fontsize=9)
    return figure


@plots.style()
def figure_3a() -> Figure:
    """g(p, γ), focal loss's gradient over that of the cross-entropy, with the p0 where
    it falls through 1.
    """
    probs = torch.linspace(0, 1, _POINTS, dtype=torch.float64)
    figure, (axes,) = plots.panels(1, width=0.75 * plots.WIDTH, row=3.2)
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


@of_first_task("gradient_norms", CURVES)
def figure_3bcd(table: pd.DataFrame) -> Figure:
    """Histograms of the last layer's gradient norm over training samples, one panel per
    epoch, seeds together.
    """
    counts = table.groupby(["epoch", "arm", "low", "high"], as_index=False)[
        "count"
    ].sum()
    counts["share"] = counts["count"] / counts.groupby(["epoch", "arm"])[
        "count"
    ].transform("sum")
    epochs = counts.groupby("epoch")
    figure, grid = plots.panels(
        len(epochs), columns=len(epochs), row=2.9, sharex=True, sharey=True
    )
    for axes, (epoch, some), letter in zip(
        grid, epochs, ascii_lowercase[1:], strict=False
    ):
        for arm, rows in some.groupby("arm"):
            edges = [*rows["low"], rows["high"].iloc[-1]]
            axes.stairs(
                PERCENT * rows["share"],
                edges,
                color=COLOURS[str(arm)],
                linewidth=1.2,
                label=str(arm),
            )
        axes.set(
            title=f"({letter}) epoch {epoch}", xlabel="gradient norm", xscale="log"
        )
    # The first bin has all samples below it, too.
    edges, powers = counts[["low", "high"]].min(), np.arange(-4, 3, 2)
    names = [
        f"$\\leq 10^{{{np.log10(edges['high']):.2f}}}$",
        *(f"$10^{{{power}}}$" for power in powers),
    ]
    grid[0].set_xticks([edges.prod() ** 0.5, *10.0**powers], names)
    common = counts[counts["share"] > _RARE]
    grid[0].set(
        xlim=(common["low"].min(), common["high"].max()), ylabel="training samples (%)"
    )
    return plots.legend_below(figure, grid[0], columns=len(CURVES))


@of_first_task("reliability", (REFERENCE,), title="{}: CE, one seed")
def figure_a1(table: pd.DataFrame) -> Figure:
    """Reliability on training data at a few epochs (25 bins), above the share of
    samples in each bin; first seed.
    """
    groups = table[table["seed"] == table["seed"].min()].groupby("epoch")
    figure, grid = plots.panels(
        2 * len(groups), columns=len(groups), row=1.85, sharex=True, sharey="row"
    )
    for upper, lower, (epoch, bins) in zip(
        grid, grid[len(groups) :], groups, strict=False
    ):
        centres, width = (bins["low"] + bins["high"]) / 2, bins["high"] - bins["low"]
        share = bins["count"] / bins["count"].sum()
        for axes, heights, colour in (
            (upper, bins["accuracy"], _BLUE),
            (lower, share, _ORANGE),
        ):
            axes.bar(
                centres,
                PERCENT * heights,
                width,
                color=colour,
                edgecolor="white",
                lw=0.3,
            )
            axes.set(xlim=(0, 1), ylim=(0, PERCENT))
        upper.plot([0, 1], [0, PERCENT], color="0.4", linewidth=0.8, linestyle="--")
        upper.set_title(f"epoch {epoch}")
        lower.set_xlabel("confidence")
    grid[0].set_ylabel("accuracy (%)")
    grid[len(groups)].set_ylabel("training samples (%)")
    return figure


@plots.style()
def figure_b1() -> Figure:
    """The predicted probability that minimises each loss, against the class's
    probability, for two classes.
    """
    chances = np.linspace(0, 1, _POINTS)
    figure, (axes,) = plots.panels(1, width=0.6 * plots.WIDTH, row=3.6)
    for gamma, arm in enumerate(CURVES):
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


@plots.style()
def figure_c1(records: Records) -> Figure:
    """Norms of the linear model's logits and weights over training: mean ± sd over
    seeds.
    """
    figure, (a, b) = plots.panels(2, row=2.9)
    curves(
        a,
        records.linear_history,
        "logit_norm",
        "(a)",
        "mean norm of the test logits",
        by="loss",
        ylim=(0, None),
    )
    curves(
        b,
        records.linear_history,
        "weight_norm",
        "(b)",
        "norm of the weights",
        by="loss",
        ylim=(0, None),
    )
    return plots.legend_below(figure, a, columns=len(CURVES))


@plots.style()
def figure_c2(records: Records) -> Figure:
    """Confidence of the linear model's mistakes over all seeds, and the decision
    regions of seed 0, by loss.
    """
    weights = records.linear_boundary.query("seed == 0").set_index("loss")[
        ["weight_0", "weight_1"]
    ]
    figure = Figure(figsize=(plots.WIDTH, 5.2), layout="constrained")
    grid = figure.add_gridspec(2, len(weights), height_ratios=(1, 1.2))
    above = figure.add_subplot(grid[0, :])
    below = [figure.add_subplot(grid[1, column]) for column in range(len(weights))]
    # Shares of each loss's own mistakes, because the losses need not make equally many.
    for loss, confidence in records.linear_mistakes.groupby("loss", sort=False)[
        "confidence"
    ]:
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
    for axes, (name, pair), letter in zip(
        below, weights.iterrows(), ascii_lowercase[1:], strict=False
    ):
        regions = _regions(axes, records.linear_points, pair.to_numpy(float))
        angle = np.degrees(np.arctan2(pair["weight_1"], pair["weight_0"]))
        axes.set(title=f"({letter}) {name}\nw points to {angle:.1f}°", xlabel="$x_0$")
        axes.tick_params(labelleft=axes is below[0])
    below[0].set(ylabel="$x_1$")
    figure.colorbar(
        regions, ax=below, label="predicted probability\nof label 1", shrink=0.75
    )
    return plots.legend_below(figure, below[0], columns=5)


@of_first_task("history", CURVES)
def figure_i1(history: pd.DataFrame) -> Figure:
    """Norm of the features that enter the last layer, by loss."""
    figure, (axes,) = plots.panels(1, width=0.7 * plots.WIDTH, row=3.0)
    curves(
        axes,
        history[history["split"] == "train"],
        "feature_norm",
        "",
        "mean norm of the features",
        ylim=(0, None),
    )
    axes.legend()
    return figure


def _regions(
    axes: Axes, points: pd.DataFrame, weights: NDArray[np.float64]
) -> AxesImage:
    """Probability of label 1 over the plane, the lines of one half and of 90 %
    confidence, and the points.
    """
    places, labels = points[["x_0", "x_1"]].to_numpy(), points["label"]
    reach = 1.02 * np.abs(places).max()
    side = np.linspace(-reach, reach, _POINTS)
    scores = weights[0] * side[None, :] + weights[1] * side[:, None]
    probs, extent = 1 / (1 + np.exp(-scores)), (-reach, reach, -reach, reach)
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
    # Labels have the colours of their regions: others are mistakes.
    for label, marker, colour in ((0, "o", "#2166ac"), (1, "^", plots.WARNING)):
        x, y = places[labels == label].T
        # As a picture: thousands of elements would make the SVG large.
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
