"""Figures 3(a), B.1, C.1 and C.2: what focal loss does to gradients, to its minimiser, and to a linear model."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING, Protocol

import numpy as np
import seaborn as sns
import torch
from matplotlib.figure import Figure

from softmax_temperature.losses import gradient_ratio
from softmax_temperature.papers.focal.theory import optimal_probability, threshold
from softmax_temperature.papers.shared.plots import WIDTH, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray

GAMMAS_3A = (1, 2, 3, 5, 7, 8, 9)  # As in the authors' plot; the text names none.
LOSSES_B1 = {"cross-entropy": 0.0, "focal, γ = 1": 1.0, "focal, γ = 2": 2.0, "focal, γ = 3": 3.0}
POINTS = 201
CONFIDENT = 0.9  # Section C: cross-entropy errs "almost always with greater than 90% confidence".
EDGES = np.linspace(0.5, 1, 26)
REGIONS, BLUE, RED = "RdBu_r", "#2166ac", "#b2182b"  # Labels in the colours of their regions: others are mistakes.


class LinearRecords(Protocol):
    """The tables of the linear model, as `linear_tables.linear_tables` makes them."""

    @property
    def linear_history(self) -> pd.DataFrame:
        """Columns loss, seed, epoch, weight_norm, logit_norm."""

    @property
    def linear_mistakes(self) -> pd.DataFrame:
        """Columns loss, seed, confidence."""

    @property
    def linear_boundary(self) -> pd.DataFrame:
        """Columns loss, seed, weight_0, weight_1, test_accuracy."""

    @property
    def linear_points(self) -> pd.DataFrame:
        """Columns x_0, x_1, label, of seed 0."""


def figure_3a() -> Figure:
    """g(p, γ), focal loss's gradient over that of the cross-entropy, with the p0 where it falls through 1."""
    probs = torch.linspace(0, 1, POINTS, dtype=torch.float64)
    with style():
        figure = Figure(figsize=(0.75 * WIDTH, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
        for gamma, colour in zip(GAMMAS_3A, sns.color_palette("viridis_r", len(GAMMAS_3A)), strict=True):
            p0 = threshold(gamma)
            label = f"γ = {gamma} (p0 = {p0:.2f})"
            axes.plot(probs, gradient_ratio(probs, gamma), color=colour, label=label)
            axes.plot(p0, 1, "o", color=colour, markersize=4, zorder=3)
        axes.set(xlabel="probability p of the true class", ylabel="g(p, γ)", xlim=(0, 1), ylim=(0, None))
        axes.legend(title="dots: g(p0, γ) = 1")
    return figure


def figure_b1() -> Figure:
    """The predicted probability that minimises each loss, against the class's probability, for two classes."""
    chances = np.linspace(0, 1, POINTS)
    with style():
        figure = Figure(figsize=(0.6 * WIDTH, 3.6), layout="constrained")
        axes = figure.subplots()
        for name, gamma in LOSSES_B1.items():
            axes.plot(chances, [optimal_probability(q, gamma) for q in chances.tolist()], label=name)
        axes.set(xlabel="probability q of the class", ylabel="optimal predicted probability", xlim=(0, 1), ylim=(0, 1))
        axes.set_aspect("equal")
        axes.legend(loc="upper left")
    return figure


def figure_c1(linear: LinearRecords) -> Figure:
    """Norms of the linear model's logits and weights over training: mean ± sd over seeds."""
    history = linear.linear_history
    with style():
        figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        for axes, column in ((left, "logit_norm"), (right, "weight_norm")):
            sns.lineplot(history, x="epoch", y=column, hue="loss", style="loss", errorbar="sd", legend="full", ax=axes)
            axes.set(xlim=(0, history["epoch"].max()), ylim=(0, None))
        handles, labels = left.get_legend_handles_labels()
        left.legend().remove()
        right.legend().remove()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        left.set(title="(a)", ylabel="mean norm of the test logits")
        right.set(title="(b)", ylabel="norm of the weights")
    return figure


def figure_c2(linear: LinearRecords) -> Figure:
    """Confidence of the linear model's mistakes over all seeds, and the decision regions of seed 0, a panel a loss."""
    boundary = linear.linear_boundary
    weights = boundary[boundary["seed"] == 0].set_index("loss")[["weight_0", "weight_1"]]
    with style():
        figure = Figure(figsize=(WIDTH, 5.2), layout="constrained")
        grid = figure.add_gridspec(2, len(weights), height_ratios=(1, 1.2))
        _mistakes(figure.add_subplot(grid[0, :]), linear.linear_mistakes)
        panels = [figure.add_subplot(grid[1, column]) for column in range(len(weights))]
        for axes, (name, pair), letter in zip(panels, weights.iterrows(), ascii_lowercase[1:], strict=False):
            regions = _regions(axes, linear.linear_points, pair.to_numpy(float))
            angle = np.degrees(np.arctan2(pair["weight_1"], pair["weight_0"]))
            axes.set(title=f"({letter}) {name}\nw points to {angle:.1f}°", xlabel="x₀")
        for axes in panels[1:]:
            axes.tick_params(labelleft=False)
        panels[0].set(ylabel="x₁")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        figure.colorbar(regions, ax=panels, label="predicted probability\nof label 1", shrink=0.75)
    return figure


def _mistakes(axes: Axes, mistakes: pd.DataFrame) -> None:
    """Shares of each loss's own mistakes, because the losses need not make equally many."""
    groups = mistakes.groupby("loss", sort=False)["confidence"]
    for (name, confidence), colour in zip(groups, sns.color_palette(n_colors=len(groups)), strict=True):
        share = 100 * np.histogram(confidence, EDGES)[0] / len(confidence)
        axes.stairs(share, EDGES, fill=True, color=colour, alpha=0.25)
        axes.stairs(share, EDGES, color=colour, label=str(name))
    axes.axvline(CONFIDENT, color="0.5", linewidth=0.8, linestyle=":")
    axes.set(
        title="(a)", xlabel="confidence of misclassified test points", ylabel="share of mistakes (%)", xlim=(0.5, 1)
    )
    axes.legend(loc="upper left")


def _regions(axes: Axes, points: pd.DataFrame, weights: NDArray[np.float64]) -> AxesImage:
    """Probability of label 1 over the plane, the lines of one half and of 90 % confidence, and the points."""
    reach = 1.02 * points[["x_0", "x_1"]].abs().to_numpy().max()
    side = np.linspace(-reach, reach, POINTS)
    scores = weights[0] * side[None, :] + weights[1] * side[:, None]
    probs, extent = 1 / (1 + np.exp(-scores)), (-reach, reach, -reach, reach)
    regions = axes.imshow(probs, extent=extent, origin="lower", cmap=REGIONS, vmin=0, vmax=1, alpha=0.4)
    sure = np.log(CONFIDENT / (1 - CONFIDENT))
    axes.contour(side, side, scores, levels=[-sure, 0, sure], colors="black", linestyles=["--", "-", "--"])
    for label, marker, colour in ((0, "o", BLUE), (1, "^", RED)):
        chosen = points[points["label"] == label]
        axes.scatter(
            chosen["x_0"], chosen["x_1"], s=7, marker=marker, color=colour, linewidth=0, label=f"label {label}"
        )
    wrong = points[(points[["x_0", "x_1"]].to_numpy() @ weights > 0) != (points["label"] == 1)]
    axes.plot(wrong["x_0"], wrong["x_1"], "ko", markersize=3.7, fillstyle="none", label="misclassified")
    axes.plot([], [], color="black", label="decision boundary")
    axes.plot([], [], color="black", linestyle="--", label="confidence 90 %")
    return regions
