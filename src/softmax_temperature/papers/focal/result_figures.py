"""Figures of trained networks: 4, G.1 to G.4, H.1, K.1, and three of ours.

The ROC curves of Table 3 are one of our own figures.

Bars, points and curves are means over seeds. Bands, and the error bars of points, show
one standard deviation. Crosses are the printed values. The parameter `written` contains
the study's tables by name, such as "table_1". A function returns None if the experiment
has no data for its figure, or if all runs of the experiment diverged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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

from softmax_temperature.papers.focal.figures import COLOURS, finished, of_runs
from softmax_temperature.papers.focal.study import (
    AUROC,
    MAIN,
    MMCE_WRITTEN,
    QUALITATIVE_LOSSES,
    TABLE_1_LOSSES,
    TRANSLATION,
    TRANSLATION_LOSSES,
    at_selected_epoch,
    in_shown_order,
    outlier_sets,
    shifted_sets,
    shown_experiments,
    title,
)
from softmax_temperature.papers.shared import figures
from softmax_temperature.papers.shared.display import dataset_label
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.figures import BLACK, PERCENT, entry
from softmax_temperature.papers.shared.metrics import Metric
from softmax_temperature.papers.shared.runs import Runs

Written = Mapping[str, pd.DataFrame]
SCALINGS = {"none": "before scaling", "ece": "after scaling"}
ERRORS = {
    "ece": "ECE",
    "adaptive_ece": "AdaECE",
    "classwise_ece": "Classwise-ECE",
}
NOISE_FLOOR = "noise_floor"
GUESSING = 1.1
"""A run is at chance level if its accuracy is below this multiple of the accuracy of
guessing.
"""
IMAGES = 4
"""Figure H.1 shows at most this many images that all its models classify correctly, and
at most this many that all of them misclassify. The paper shows this many of each.
"""
_FAINT = 0.45
_FLOOR = figures.HUES[3]
_LINE = "0.3"
_WHITE = {"markerfacecolor": "white"}
_CROSS: dict[str, Any] = {
    "marker": "x",
    "linestyle": "none",
    "markersize": 5,
    "markeredgewidth": 1.2,
}
_POINT: dict[str, Any] = {"color": BLACK, "linestyle": "none"}
_GUIDE: dict[str, Any] = {"color": "0.6", "linewidth": 0.8, "linestyle": ":"}
# ROC curves lie so close to each other that their colours are hard to tell apart.
_DASHES: Mapping[str, Any] = dict(
    zip(
        TABLE_1_LOSSES,
        ("-", "--", ":", "-.", (0, (7, 1, 1, 1, 1, 1)), (0, (2.5, 1))),
        strict=True,
    )
)
"""Maps the label of a loss to the line style of its ROC curve."""
_TRANSLATION_TITLES = {
    "CE": "cross-entropy",
    "LS": "label smoothing",
    "FL": "focal loss",
}


def _evaluation(
    runs: Runs, chosen: pd.DataFrame, *metrics: str, scaled: bool
) -> pd.DataFrame:
    """The `metrics` of the runs `chosen`, evaluated at their selected epochs.

    There is one row per run and one column per metric.
    """
    values = {
        name: at_selected_epoch(Metric(name, scaled=scaled)).of(runs, chosen)
        for name in metrics
    }
    return chosen[["experiment", "arm", "seed"]].assign(**values)


@figures.style()
def figure_4(runs: Runs, written: Written, experiment: str) -> Figure | None:
    """Draw ECE, AdaECE and Classwise-ECE before and after scaling, with 90 % intervals.

    A run's interval shows how much its value depends on the choice of the test samples.
    The ends of a bar's interval are the means, over seeds, of the ends of these
    intervals. A bar's interval does not include the spread over seeds, which the dots
    show.

    Figures G.1 to G.4 show the same metrics for other experiments.
    """
    chosen = finished(runs, TABLE_1_LOSSES, MAIN & where(experiment=experiment))
    if chosen.empty:
        return None
    names = [f"{name}{end}" for name in ERRORS for end in ("", "_low", "_high")]
    names.append(NOISE_FLOOR)
    before = _evaluation(runs, chosen, *names, scaled=False)
    after = _evaluation(runs, chosen, *names, scaled=True)
    printed = written["table_1"]
    printed = printed[printed["task"] == experiment]
    crosses = printed.set_index(["metric", "method"])["published"]
    arms = list(chosen["arm"].unique())
    figure, grid = figures.panels(
        len(ERRORS), columns=1, row=1.8, extra=1.5, sharex=True
    )
    for axes, (metric, text) in zip(grid, ERRORS.items(), strict=True):
        for position, arm in enumerate(arms):
            for rows, shift, name, alpha in (
                (before, -0.2, "ece", 1.0),
                (after, 0.2, "ece_after_scaling", _FAINT),
            ):
                x = position + shift
                bar = rows[rows["arm"] == arm]
                _bar(axes, x, bar, metric, facecolor=COLOURS[arm], alpha=alpha)
                if metric == "ece":
                    y = PERCENT * crosses[name, arm]
                    axes.plot(x, y, color="red", zorder=4, **_CROSS)
        axes.set_xticks(
            range(len(arms)), arms, rotation=40, ha="right", rotation_mode="anchor"
        )
        axes.set(title=f"{text} (%)")
    entries = [
        Patch(facecolor=_LINE, label="mean over seeds, before scaling"),
        Patch(facecolor=_LINE, alpha=_FAINT, label="mean over seeds, after scaling"),
        entry("one seed", marker="o", ms=3, mfc="white", mec="0.2", linestyle="none"),
        entry("90 % interval over test samples", color=_LINE, linewidth=1),
        entry("noise floor of ECE", color="black", linewidth=1, linestyle=":"),
    ]
    if chosen.groupby("arm").size().max() == 1:
        del entries[2]
    if crosses.notna().any():
        entries.append(entry("printed", color="red", **_CROSS))
    return figures.legend_below(
        figure, entries, columns=3, title=title(runs, experiment)
    )


@figures.style()
def calibration_summary(runs: Runs, written: Written) -> Figure | None:
    """Draw the ECE by loss before and after scaling, with the temperatures.

    The paper has no such figure. There is one row of panels per experiment. The left
    panels show the ECE before and after scaling on one scale. The right panels show the
    ECE after scaling on a larger scale, because the values after scaling are small.
    Runs at chance level are left out of the means, because guessing has an ECE near 0;
    the row of their loss says so. Returns None if there are no experiments.
    """
    experiments = shown_experiments(runs)
    if not experiments:
        return None
    numbers = _evaluations(runs)
    printed = _printed_errors(written)
    main = runs.select(MAIN & ~MMCE_WRITTEN)
    losses = {
        name: in_shown_order(main[main["experiment"] == name]["arm"].unique())
        for name in experiments
    }
    rows = [len(arms) + 2 for arms in losses.values()]
    figure, grid = figures.panels(
        2 * len(experiments),
        row=0.22 * sum(rows) / len(rows),
        extra=0.7,
        sharex="col",
        sharey="row",
        height_ratios=rows,
        width_ratios=(3, 2),
    )
    findings = []
    several = len(experiments) > 1
    for left, right, (name, arms) in zip(
        grid[::2], grid[1::2], losses.items(), strict=True
    ):
        here = numbers[numbers["experiment"] == name]
        findings.append(_ece_of_each(title(runs, name), here, arms, several=several))
        ours = here[~here["guesses"]]
        _errors(left, ours, printed.get(name, {}), arms, scaled=False)
        _errors(left, ours, printed.get(name, {}), arms, scaled=True)
        _errors(right, ours, printed.get(name, {}), arms, scaled=True)
        _temperatures(left, here[here["scaled"]], arms)
        left.set_title(title(runs, name).replace("; ", ";\n"))
        right.set_title("after scaling,\nenlarged")
    figure.set_label(" ".join(findings))
    figures.label_outside(grid, x="ECE (%)")
    # Leave room for the temperatures at the right.
    grid[0].set_xlim(0, 1.6 * grid[0].get_xlim()[1])
    grid[1].set_xlim(0, None)
    entries = [
        entry("before scaling, mean ± sd", marker="o", **_POINT),
        entry("after scaling, mean ± sd", marker="o", **_POINT, **_WHITE),
        entry(
            "noise floor",
            marker="|",
            color=_FLOOR,
            markersize=9,
            markeredgewidth=1.6,
            linestyle="none",
        ),
    ]
    if any(printed.get(name) for name in experiments):
        entries.append(entry("printed", color=BLACK, **_CROSS))
    if numbers["guesses"].any():
        entries.append(entry("guesses: never learned, left out", linestyle="none"))
    return figures.legend_below(figure, entries, columns=2)


def any_printed(runs: Runs, written: Written) -> bool:
    """Whether the paper reports an ECE for any shown experiment."""
    names = shown_experiments(runs)
    return bool(names) and any(map(_printed_errors(written).get, names))


def any_guesses(runs: Runs) -> bool:
    """Whether any run of the main recipe is at chance level.

    The ECE of such a run is meaningless.
    """
    return bool(_evaluations(runs)["guesses"].any())


def _ece_of_each(
    name: str, rows: pd.DataFrame, arms: Sequence[str], *, several: bool
) -> str:
    """A sentence with each loss's mean ECE before and after scaling, in percent.

    Runs at chance level are left out, and so are losses without any other run.
    """
    trained = rows[~rows["guesses"]]
    before, after = (
        (PERCENT * trained[trained["scaled"] == scaled].groupby("arm")["ece"].mean())
        for scaled in (False, True)
    )
    texts = [
        f"{arm} {before[arm]:.1f} to {after[arm]:.1f}"
        for arm in arms
        if arm in before and arm in after
    ]
    where_ = f" on {name}" if several else ""
    return f"ECE in % before and after scaling{where_}: {'; '.join(texts)}."


def _evaluations(runs: Runs) -> pd.DataFrame:
    """The evaluations of the main recipe's finished runs.

    Each run has one row before scaling and one after. The column `guesses` tells
    whether the run is at chance level.
    """
    main = runs.select(MAIN & where(diverged=False))
    metrics = ("accuracy", "ece", NOISE_FLOOR, "temperature")
    parts = [
        _evaluation(runs, main, *metrics, scaled=scaled).assign(scaled=scaled)
        for scaled in (False, True)
    ]
    numbers = pd.concat(parts)
    guessing = 1 / main["classes"].reindex(numbers.index)
    return numbers.assign(guesses=numbers["accuracy"] < GUESSING * guessing)


def _printed_errors(written: Written) -> dict[Any, dict[Any, float]]:
    """The printed values from Tables 1 and F.3 for our experiments.

    The result maps each experiment to its values by metric and loss.
    """
    rows = pd.concat([written["table_1"], written["table_f3"]])
    rows = rows.dropna(subset=["task", "published"])
    rows = rows.drop_duplicates(["task", "method", "metric"])
    return {
        task: group.set_index(["metric", "method"])["published"].to_dict()
        for task, group in rows.groupby("task")
    }


def _errors(
    axes: Axes,
    rows: pd.DataFrame,
    printed: Mapping[Any, float],
    arms: Sequence[str],
    *,
    scaled: bool,
) -> None:
    """Draw each loss's ECE, before or after scaling, with its noise floor."""
    metric = "ece_after_scaling" if scaled else "ece"
    shift = 0.17 if scaled else -0.17
    here = rows[rows["scaled"] == scaled].groupby("arm")
    table = pd.DataFrame(
        {"ours": here["ece"].mean(), "ours_sd": here["ece"].std()}
    ).reindex(list(arms))
    table["published"] = [printed.get((metric, arm), np.nan) for arm in arms]
    _dots(axes, table, shift, **(_WHITE if scaled else {}))
    floor = PERCENT * here[NOISE_FLOOR].mean().reindex(list(arms))
    places = np.arange(len(arms)) + shift
    axes.plot(floor, places, "|", color=_FLOOR, markersize=9, markeredgewidth=1.6)


def _temperatures(axes: Axes, rows: pd.DataFrame, arms: Sequence[str]) -> None:
    """Write each loss's mean temperature at the right end of its row.

    The mean is over the runs that learned. If some runs are at chance level, their
    number precedes the mean; if no run learned, the text is "guesses" or "diverged"
    instead.

    Args:
        axes: The panel.
        rows: The rows from `_evaluations` after scaling, one per run.
        arms: The losses, in the order of their rows.
    """
    for position, arm in enumerate(arms):
        of_arm = rows[rows["arm"] == arm]
        guessing = int(of_arm["guesses"].sum())
        temperature = of_arm.loc[~of_arm["guesses"], "temperature"].mean()
        text = f"T = {temperature:.2f}"
        if guessing == len(of_arm):
            text = "guesses" if guessing else "diverged"
        elif guessing:
            text = f"{guessing} of {len(of_arm)} guesses; {text}"
        axes.text(
            1.0,
            position,
            text,
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            color="0.3",
        )


@figures.style()
def figure_shift(runs: Runs, written: Written, experiment: str) -> Figure | None:
    """Draw error and ECE on images from another data set with the same classes.

    The paper has no such figure. Squares show the error on the experiment's own test
    images.
    """
    sets = shifted_sets(runs, MAIN & where(experiment=experiment))
    if not sets:
        return None
    rows = written["table_shift"]
    rows = rows[rows["task"] == experiment]
    unshifted = written["table_2"]
    is_shown = unshifted["method"].isin(rows["method"])
    unshifted = unshifted[(unshifted["task"] == experiment) & is_shown]
    unshifted = unshifted.assign(published=np.nan).set_index("method")
    unshifted = unshifted.loc[in_shown_order(unshifted.index)]
    figure, grid = figures.panels(
        2 * len(sets),
        columns=2,
        row=0.3 * len(unshifted) + 0.7,
        extra=0.5,
        sharex="col",
        sharey=True,
    )
    for left, right, name in zip(grid[::2], grid[1::2], sets, strict=True):
        on_set = rows[rows["dataset"].str.endswith(f" vs {name}")]
        tables = _by_metric(on_set, unshifted.index.tolist())
        _dots(left, unshifted, -0.17, fmt="s")
        _dots(left, tables["error"], 0.17)
        _dots(right, tables["ece"], -0.17)
        _dots(right, tables["ece_after_scaling"], 0.17, **_WHITE)
        label = dataset_label(name)
        left.set(title=label, xlabel="error (%)", xlim=(0, None))
        right.set(title=label, xlabel="ECE (%)", xlim=(0, None))
    entries = [
        entry("own test images, mean ± sd", marker="s", **_POINT),
        entry("the other images, mean ± sd", marker="o", **_POINT),
        entry("the same after scaling", marker="o", **_POINT, **_WHITE),
    ]
    text = f"{title(runs, experiment)}: shifted test images"
    return figures.legend_below(figure, entries, columns=3, title=text)


@figures.style()
def figure_h1(runs: Runs, pixels: Path, experiment: str) -> Figure | None:
    """Draw test images with labels, and predictions of models trained with four losses.

    The models are those of the first seed. Each prediction has its confidence before
    and after scaling.

    Images that all models classify correctly come first, and images that all models
    misclassify come last. The file `pixels` has the images in the order of the table
    `panels`.
    """
    shown = finished(runs, QUALITATIVE_LOSSES, MAIN & where(experiment=experiment))
    rows = of_runs(runs.tables["panels"], shown)
    images = load_file(pixels).get(experiment) if pixels.is_file() else None
    is_right = rows["predicted"] == rows["label"]
    right = is_right.groupby(rows["image"], sort=False).mean()
    chosen = [
        image for share in (1, 0) for image in right.index[right == share][:IMAGES]
    ]
    if images is None or not chosen:
        return None
    order = rows["image"].unique().tolist()
    figure, grid = figures.panels(len(chosen), row=2.2, extra=0.4)
    for axes, number in zip(grid, chosen, strict=True):
        predictions = rows[rows["image"] == number].set_index("scaling")
        axes.set_axis_off()
        axes.imshow(images[order.index(number)].squeeze(), cmap="gray")
        axes.set_title(f"label {predictions['label'].iloc[0]}")
        by_arm = predictions.groupby("arm", sort=False)
        for line, (arm, both) in enumerate(by_arm):
            _predicted(axes, line, str(arm), both.loc["none"], both.loc["ece"])
    text = f"{title(runs, experiment)}: confidence before → after scaling, one seed"
    figures.headline(figure, text)
    return figure


def _predicted(
    axes: Axes, line: int, arm: str, before: pd.Series[Any], after: pd.Series[Any]
) -> None:
    """Write a prediction of the `arm` model below an image, in red if it is wrong."""
    confidence = f"{before['confidence']:.2f} → {after['confidence']:.2f}"
    is_right = before["predicted"] == before["label"]
    axes.annotate(
        f"{arm}: {before['predicted']}  {confidence}",
        (0.5, 0),
        (0, -4 - 12 * line),
        xycoords="axes fraction",
        textcoords="offset points",
        color=BLACK if is_right else figures.WARNING,
        ha="center",
        va="top",
    )


@figures.style()
def roc_curves(runs: Runs, experiment: str) -> Figure | None:
    """Draw ROC curves for detecting out-of-distribution samples by entropy.

    Curves and AUROC, before and after scaling, are means over seeds.
    """
    chosen = finished(runs, TABLE_1_LOSSES, MAIN & where(experiment=experiment))
    curves = of_runs(runs.tables["roc"], chosen)
    if curves.empty:
        return None
    sets = outlier_sets(runs, MAIN & where(experiment=experiment))
    figure, grid = figures.panels(
        2 * len(sets), row=2.75, extra=0.8, sharex=True, sharey=True
    )
    for axes, (name, scaling) in zip(grid, product(sets, SCALINGS), strict=True):
        here = (curves["ood"] == name) & (curves["scaling"] == scaling)
        auroc = replace(AUROC, split=name, scaled=scaling != "none")
        areas = PERCENT * auroc.of(runs, chosen)
        axes.plot([0, 1], [0, 1], **_GUIDE)
        for arm, rows in curves[here].groupby("arm", sort=False):
            figures.band(
                axes,
                rows,
                "false_positive_rate",
                "true_positive_rate",
                color=COLOURS[str(arm)],
                linestyle=_DASHES[str(arm)],
                label=arm,
            )
        _areas(axes, areas.groupby(chosen["arm"], sort=False))
        axes.set(
            title=f"{dataset_label(name)},\n{SCALINGS[scaling]}",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
    figures.label_outside(grid, x="false positive rate", y="true positive rate")
    return figures.legend_below(
        figure,
        grid[0].lines[1:],
        columns=len(TABLE_1_LOSSES),
        title=title(runs, experiment),
        handlelength=2.6,
    )


def _areas(axes: Axes, areas: Any) -> None:
    """Add a legend with the AUROC of each curve, mean ± sd over seeds."""
    texts = []
    for _, values in areas:
        spread = f" ± {values.std():.1f}" if len(values) > 1 else ""
        texts.append(f"{values.mean():.1f}{spread}")
    axes.legend(
        axes.lines[1:],
        texts,
        title="AUROC (%)",
        loc="lower right",
        handlelength=2.6,
        labelspacing=0.15,
        borderpad=0.1,
        # Draw a frame, because curves may pass behind the legend.
        frameon=True,
        framealpha=0.8,
        edgecolor="none",
    )


@figures.style()
def figure_k1(runs: Runs) -> Figure | None:
    """Draw test BLEU and validation ECE over temperatures, in one row per loss.

    Lines are means over seeds; dots are single seeds.

    A larger mark shows the highest mean BLEU or the lowest mean ECE. The vertical line
    is at temperature 1. The axis of BLEU need not begin at 0.
    """
    models = finished(runs, TRANSLATION_LOSSES, TRANSLATION)
    curves = of_runs(runs.tables["translation_curves"], models)
    arms = list(curves["arm"].unique())
    if not arms:
        return None
    figure, grid = figures.panels(
        2 * len(arms), row=1.5, extra=1.2, sharex=True, sharey="col"
    )
    columns = ("bleu", "validation_ece")
    for axes, (arm, column) in zip(grid, product(arms, columns), strict=True):
        rows = curves[curves["arm"] == arm].set_index("temperature")
        values = PERCENT * rows[column]
        mean = values.groupby(level=0).mean()
        best: Any = mean.idxmax() if column == "bleu" else mean.idxmin()
        colour = figures.HUES[column != "bleu"]
        axes.axvline(1, **_GUIDE)
        axes.plot(values, ".", color=colour, alpha=0.5, markersize=4)
        axes.plot(mean, color=colour, linewidth=1.2)
        axes.plot(best, mean[best], "o", color=colour, markersize=5)
    for axes, arm, letter in zip(grid[::2], arms, ascii_lowercase, strict=False):
        axes.set_title(f"({letter}) {_TRANSLATION_TITLES[arm]}")
    figures.label_outside(grid, x="temperature", y="test BLEU")
    for axes in grid[1::2]:
        axes.set(ylabel="validation ECE (%)", ylim=(0, None))
    best = "highest BLEU of the mean, or least ECE"
    entries = [
        entry("mean over seeds", color="0.4", linewidth=1.2),
        entry("one seed", color="0.4", marker=".", linestyle="none", alpha=0.6),
        entry(best, color="0.4", marker="o", markersize=5, linestyle="none"),
        entry("temperature 1", **_GUIDE),
    ]
    if models.groupby("arm").size().max() == 1:
        del entries[1]
    name = f"{dataset_label(models['dataset'].iloc[0])}; Transformer"
    return figures.legend_below(figure, entries, columns=2, title=name)


def _bar(axes: Axes, x: float, runs: pd.DataFrame, metric: str, **look: Any) -> None:
    """Draw the mean over `runs` as a bar with its interval, and seeds as dots.

    A single seed has no dot. For ECE, also draw the noise floor.
    """
    values = PERCENT * runs[[metric, f"{metric}_low", f"{metric}_high"]]
    mean, low, high = values.mean()
    axes.bar(x, mean, 0.38, **look)
    # A white outline makes the interval visible on dark bars too.
    for color, width in (("white", 2.2), (_LINE, 1)):
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
    if metric == "ece":
        floor = PERCENT * runs[NOISE_FLOOR].mean()
        for color, width, style in (("white", 2, "-"), ("black", 1, ":")):
            axes.hlines(
                floor, x - 0.19, x + 0.19, color=color, linewidth=width, linestyle=style
            )


def _by_metric(rows: pd.DataFrame, order: Sequence[str]) -> dict[Any, pd.DataFrame]:
    """The rows of each metric, indexed by method, with the methods in `order`."""
    tables = {}
    for metric, group in rows.groupby("metric"):
        table = group.set_index("method")
        tables[metric] = table.loc[[arm for arm in order if arm in table.index]]
    return tables


def _dots(
    axes: Axes, table: pd.DataFrame, shift: float, *, fmt: str = "o", **look: Any
) -> None:
    """Draw one point per method with its sd over seeds, in one row per method.

    A cross marks a printed value.
    """
    numbers = PERCENT * table[["ours", "ours_sd", "published"]].astype(float)
    for y, (arm, ours, sd, printed) in enumerate(numbers.itertuples(name=None)):
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
