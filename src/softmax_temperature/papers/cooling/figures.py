"""Figures 1 and 2, a sweep of learning rates of ours, and what happens during training.

Each function takes the records and returns a figure, or None where nothing was trained for it.
"""

from types import MappingProxyType
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, ScalarFormatter

from softmax_temperature.papers.cooling.growth import LIMIT, SLOW_FACTOR, growth
from softmax_temperature.papers.cooling.records import SLUG, Records
from softmax_temperature.papers.cooling.selection import (
    CROSS_ENTROPY,
    DIVERGED,
    MODES,
    NO_COOLING,
    NO_SCHEDULE,
    OURS,
    PERIODIC,
    SCHEDULES,
    SETTING,
    SIMPLEST,
    STUCK,
    TABLE_1,
    figure_1_trainings,
    finished,
    is_lost,
    of_runs,
    setting_title,
    standard,
    trainings,
)
from softmax_temperature.papers.shared.plots import (
    BLACK,
    PALETTE,
    PERCENT,
    WARNING,
    WIDTH,
    band,
    entry,
    legend_below,
    panels,
    seeds,
    style,
)
from softmax_temperature.papers.shared.tables import published

EFFECTS = (
    ("norms", "weight_norm", "(a) weights, all layers", "norm"),
    ("norms", "gradient_norm", "(b) gradients, all layers", "norm"),
    ("norms", "logit_norm", "(c) logits, validation data", "norm"),
    ("history", "ece", "(d) ECE, test data", "ECE (%)"),
)
CURVES = (("test", "test accuracy (%)"), ("train", "training accuracy (%)"))
MAIN_RATE = 0.01  # Section 4.2; profiles that sweep learning rates keep it.
_HUES = (1, 2, 0)  # Of the palette, for the modes of Cooling in their order.
COLOURS = MappingProxyType(dict(zip(MODES, [BLACK, *(sns.color_palette(PALETTE)[hue] for hue in _HUES)], strict=True)))
_CROSSED = MappingProxyType(
    {
        SIMPLEST: "epoch when 1/tau first exceeds 100, last layer, kappa=0.75",
        PERIODIC: "epoch of first reset, kappa=1.0, tau_max=tau_re=100",
    }
)
_PRINTED: Any = {"linestyle": "none", "marker": "+", "markersize": 9, "markeredgewidth": 1.6, "color": WARNING}


@style()
def figure_1(records: Records) -> Figure | None:
    """Test accuracy against the factor of last layer Cooling without a schedule, a panel per data set and network.

    Circles are seeds, the line is the mean of those that finished; crosses mark factors with trainings that diverged or
    got stuck, triangles those below the scale, which is that of factors up to 1. The dashed line is the mean without
    Cooling, its band one standard deviation.
    """
    rows = figure_1_trainings(records)
    settings = rows[SETTING].drop_duplicates()
    if settings.empty:
        return None
    width = min(1.0, 0.65 * len(settings)) * WIDTH
    figure, grid = panels(len(settings), columns=len(settings), width=width, row=3.1)
    for axes, (_, setting) in zip(grid, settings.iterrows(), strict=True):
        _factors(axes, rows.merge(setting.to_frame().T))
    grid[0].set_ylabel("test accuracy (%)")
    colour = COLOURS[SIMPLEST]
    entries = [
        entry(f"{MODES[SIMPLEST]} Cooling", linewidth=1.2, color=colour, marker="o", markersize=3.5),
        entry(f"{MODES[NO_COOLING]}, mean ± sd", linewidth=1.2, linestyle="--", color=COLOURS[NO_COOLING]),
        _lost(colour),
        entry("below the scale", linestyle="none", marker="v", markersize=5, color=colour),
    ]
    legend_below(figure, entries, columns=2)
    return figure


def _factors(axes: Axes, rows: pd.DataFrame) -> None:
    without, cooled = rows[rows["mode"] == NO_COOLING], rows[rows["mode"] == SIMPLEST]
    accuracies = PERCENT * finished(without)["accuracy"]
    if len(accuracies):
        axes.axhline(accuracies.mean(), color=COLOURS[NO_COOLING], linewidth=1.2, linestyle="--")
    if len(accuracies) > 1:
        low, high = accuracies.mean() - accuracies.std(), accuracies.mean() + accuracies.std()
        axes.axhspan(low, high, color=COLOURS[NO_COOLING], alpha=0.12, linewidth=0)
    trained = finished(cooled)
    seeds(axes, trained[trained["factor"] <= 1], "factor", "accuracy", color=COLOURS[SIMPLEST])
    hot, bottom = trained[trained["factor"] > 1], axes.get_ylim()[0]
    values = PERCENT * hot["accuracy"]
    axes.plot(hot["factor"], values.where(values > bottom), "o", ms=3.5, mfc="none", color=COLOURS[SIMPLEST])
    axes.plot(hot["factor"], values.where(values <= bottom) * 0 + bottom, "v", ms=5, color=COLOURS[SIMPLEST])
    _crosses(axes, cooled, "factor")
    factors = sorted(cooled["factor"].unique())
    axes.set_xticks(factors, [f"{factor:g}" for factor in factors])
    axes.set(xlabel="Cooling factor", xlim=(factors[0] - 0.15, factors[-1] + 0.15), title=setting_title(rows.iloc[0]))


@style()
def figure_2(records: Records) -> Figure | None:
    """The last layer's temperature over epochs: with factor 0.75, and periodically redistributed with factor 1.

    One line per seed. The vertical strokes are redistributions: from the temperature that was reached down to the one
    that the last layer keeps. The dotted line is the maximal temperature, the thin dashed one the product of all
    corrections, the plus sign the printed epoch, where the maximal temperature is the printed one. Shows the first data
    set and network that has either.
    """
    rows = growth(records)
    if rows.empty:
        return None
    rows = rows.merge(rows[SETTING].head(1))
    shown = rows[["limit", "total", "reached", "kept"]].to_numpy()
    arms = [arm for arm in ((SIMPLEST, SLOW_FACTOR), (PERIODIC, 1)) if arm[0] in set(rows["mode"])]
    figure, grid = panels(
        len(arms), row=2.6, extra=0.8, width=WIDTH * (0.3 + 0.35 * len(arms)), sharex=True, sharey=True
    )
    for axes, (mode, factor) in zip(grid, arms, strict=True):
        axes.set(title=f"{MODES[mode]} Cooling, factor {factor:g}", xlabel="epoch", yscale="log")
        axes.set_ylim(0.8 * min(1.0, shown.min()), 1.25 * shown.max())
        axes.axhline(limit := rows["limit"].iloc[0], color="0.5", linewidth=0.8, linestyle=":")
        _temperatures(axes, rows[rows["mode"] == mode], COLOURS[mode])
        if limit == LIMIT:
            axes.plot(_printed_epoch(mode), limit, **_PRINTED)
    grid[0].set_ylabel("temperature of the last layer")
    _label_few_decades(grid[0])
    figure.suptitle(setting_title(rows.iloc[0]), fontsize=10)
    entries = [
        entry("temperature of the last layer, one line per seed", color="0.2", linewidth=1.1),
        entry("maximal temperature", color="0.5", linewidth=0.8, linestyle=":"),
    ]
    if limit == LIMIT:
        entries.append(entry("first above 100, as printed", **_PRINTED))
    if rows["reset"].any():
        entries.append(
            entry("redistributed: falls to the reset temperature", ls="none", marker="v", ms=3.5, color=WARNING)
        )
        entries.append(entry("product of all corrections", linestyle="--", linewidth=0.7, color=COLOURS[PERIODIC]))
    legend_below(figure, entries, columns=2)
    return figure


def _printed_epoch(mode: str) -> float:
    rows = published(SLUG, "text")
    return float(rows.loc[rows["metric"] == _CROSSED[mode], "value"].iloc[0])


@style()
def learning_rates(records: Records) -> Figure | None:
    """Ours: test accuracy against the learning rate, with and without last layer Cooling, a panel per data set.

    Circles are seeds, lines the means of those that finished; crosses below mark rates with trainings that
    diverged or got stuck.
    """
    rows = _rate_trainings(records)
    settings = rows[SETTING].drop_duplicates()
    if settings.empty:
        return None
    width = min(1.0, 0.55 * len(settings)) * WIDTH
    figure, grid = panels(len(settings), columns=len(settings), width=width, row=3.1)
    for axes, (_, setting) in zip(grid, settings.iterrows(), strict=True):
        some = rows.merge(setting.to_frame().T)
        axes.set(title=setting_title(setting), xlabel="learning rate", xscale="log", xmargin=0.15)
        for mode in (NO_COOLING, SIMPLEST):
            good = finished(some[some["mode"] == mode])
            seeds(axes, good, "learning_rate", "accuracy", color=COLOURS[mode], label=MODES[mode])
        _crosses(axes, some, "learning_rate")
        rates = sorted(some["learning_rate"].unique())
        axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
        axes.minorticks_off()
    grid[0].set_ylabel("test accuracy (%)")
    legend_below(figure, [*grid[0].get_legend_handles_labels()[0], _lost("0.4")], columns=3)
    return figure


def _rate_trainings(records: Records) -> pd.DataFrame:
    """No Cooling and last layer Cooling without a schedule: several learning rates, that of the main recipe too."""
    rows = trainings(records, OURS)
    rate = rows["change"].str.extract(r"^learning rate ([0-9.e+-]+)$")[0].astype(float)
    changed = rows.assign(learning_rate=rate).dropna(subset=["learning_rate"])
    main = standard(trainings(records, TABLE_1)).assign(learning_rate=MAIN_RATE)
    rows = pd.concat([changed, main.merge(changed[SETTING].drop_duplicates(), on=SETTING)])
    plain = (rows["loss"] == CROSS_ENTROPY) & (rows["schedule"] == NO_SCHEDULE)
    return rows[plain & rows["mode"].isin([NO_COOLING, SIMPLEST])]


@style()
def training_curves(records: Records) -> Figure | None:
    """Accuracy over epochs by mode, mean ± sd: a row per schedule, test data left, training data right.

    Each column has one scale, which leaves out the rise of the first third.
    """
    runs = _shown_runs(records)
    if runs.empty:
        return None
    history = of_runs(records.history, runs)
    schedules = [name for name in SCHEDULES if name in set(runs["schedule"])]
    figure, grid = panels(2 * len(schedules), columns=2, row=1.4, extra=0.8, sharex=True, sharey="col")
    places = [(schedule, split) for schedule in schedules for split, _ in CURVES]
    for axes, (schedule, split) in zip(grid, places, strict=True):
        rows = history[(history["schedule"] == schedule) & (history["split"] == split)]
        _by_mode(axes, rows, "accuracy", scale=PERCENT)
    for axes, schedule in zip(grid[::2], schedules, strict=True):
        axes.set_ylabel(f"schedule:\n{SCHEDULES[schedule]}")
    for axes, (split, title) in zip(grid[:2], CURVES, strict=True):
        later = history[(history["split"] == split) & (history["epoch"] > history["epoch"].max() / 3)]
        axes.set(title=title, ylim=(PERCENT * later["accuracy"].min() - 2, None))
    for axes in grid[-2:]:
        axes.set_xlabel("epoch")
    figure.suptitle(setting_title(runs.iloc[0]), fontsize=10)
    legend_below(figure, _modes(runs), columns=len(MODES))
    return figure


@style()
def effects(records: Records) -> Figure | None:
    """Norms of weights, gradients and logits, and the calibration error, by mode over epochs without a schedule."""
    runs = _shown_runs(records)
    runs = runs[runs["schedule"] == NO_SCHEDULE]
    if runs.empty:
        return None
    tables = {"norms": records.norms, "history": records.history[records.history["split"] == "test"]}
    figure, grid = panels(len(EFFECTS), columns=2, row=2.3, sharex=True)
    for axes, (table, column, title, unit) in zip(grid, EFFECTS, strict=True):
        is_share = table == "history"
        axes.set(title=title, ylabel=unit, yscale="linear" if is_share else "log")
        _by_mode(axes, of_runs(tables[table], runs), column, scale=PERCENT if is_share else 1)
        _label_few_decades(axes)
    for axes in grid[2:]:
        axes.set_xlabel("epoch")
    figure.suptitle(f"{setting_title(runs.iloc[0])}: no schedule", fontsize=10)
    legend_below(figure, _modes(runs), columns=len(MODES))
    return figure


def _crosses(axes: Axes, rows: pd.DataFrame, x: str) -> None:
    """Crosses below everything else where trainings are lost, and how many of them; after all dots are drawn."""
    counts = rows.assign(lost=is_lost(rows)).groupby(["mode", x])["lost"].agg(["sum", "size"])
    counts = counts[counts["sum"] > 0].reset_index()
    modes = [mode for mode in MODES if mode in set(counts["mode"])]
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.1 * len(modes) * (high - low), high)
    at_bottom = axes.get_xaxis_transform()
    for mode, where, lost, runs in counts.itertuples(index=False, name=None):
        height, colour = 0.04 + 0.07 * modes.index(mode), COLOURS[mode]
        axes.plot(where, height, "x", color=colour, markersize=6, transform=at_bottom)
        look: dict[str, Any] = {"fontsize": 6.5, "va": "center", "ha": "right", "color": colour}
        place: dict[str, Any] = {"xytext": (-6, 0), "textcoords": "offset points", "xycoords": at_bottom}
        axes.annotate(f"{lost} of {runs}", (where, height), **place, **look)


def _temperatures(axes: Axes, rows: pd.DataFrame, colour: Any) -> None:
    for _, seed in rows.groupby(["experiment", "seed"], sort=False):
        epochs, values = [0.0], [1.0]
        for row in seed.to_dict("records"):
            epochs += [row["epoch"]] * (1 + row["reset"])
            values += [row["reached"], row["kept"]][: 1 + row["reset"]]
        axes.plot(epochs, values, color=colour, linewidth=1.1)
        if seed["reset"].any():
            axes.plot(seed["epoch"], seed["total"], color=colour, linewidth=0.7, linestyle="--", alpha=0.7)
    resets = rows[rows["reset"]]
    axes.plot(resets["epoch"], resets["reached"], "v", color=WARNING, markersize=3.5)


def _lost(colour: Any) -> Line2D:
    return entry(f"{DIVERGED} or {STUCK}", linestyle="none", marker="x", markersize=6, color=colour)


def _shown_runs(records: Records) -> pd.DataFrame:
    """The trainings of the first data set and network of Table 1 that are not lost."""
    runs = finished(standard(trainings(records, TABLE_1)))
    return runs.merge(runs[SETTING].head(1))


def _by_mode(axes: Axes, rows: pd.DataFrame, column: str, *, scale: float) -> None:
    for mode in MODES:
        some = rows[rows["mode"] == mode]
        band(axes, some, "epoch", column, scale=scale, color=COLOURS[mode], linewidth=1.1)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _modes(runs: pd.DataFrame) -> list[Line2D]:
    """The modes that were trained, for a legend."""
    shown = set(runs["mode"])
    return [entry(name, color=COLOURS[mode], linewidth=1.1) for mode, name in MODES.items() if mode in shown]


def _label_few_decades(axes: Axes) -> None:
    """Several numbers, written out, also on a logarithmic axis that holds few powers of ten."""
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log" and high < 100 * low:
        axes.yaxis.set_major_locator(MaxNLocator(4) if high < 10 * low else LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_locator(NullLocator())
