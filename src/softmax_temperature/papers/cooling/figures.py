"""Figures 1 and 2, a sweep of learning rates of ours, and what happens during training.

Each function takes the records and returns a figure, or None where nothing was trained for it.
"""

from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, ScalarFormatter

from softmax_temperature.papers.cooling import growth, selection
from softmax_temperature.papers.cooling.records import SLUG, Records
from softmax_temperature.papers.cooling.selection import LAST, MODES, NO_COOLING, PERIODIC, SCHEDULES, SETTING
from softmax_temperature.papers.shared import plots
from softmax_temperature.papers.shared.plots import PERCENT, entry
from softmax_temperature.papers.shared.tables import published

MAIN_RATE = 0.01  # Section 4.2; profiles that sweep learning rates keep it.
COLOURS = dict(zip(MODES, [plots.BLACK, *(plots.HUES[hue] for hue in (1, 2, 0))], strict=True))
_PRINTED: Any = {"ls": "none", "marker": "+", "markersize": 9, "markeredgewidth": 1.6, "color": plots.WARNING}


@plots.style()
def figure_1(records: Records) -> Figure | None:
    """Test accuracy against the factor of last layer Cooling without a schedule, a panel per data set and network.

    Circles are seeds, the line is the mean of those that finished; crosses mark factors with trainings that diverged or
    got stuck, triangles those below the scale, which is that of factors up to 1. The dashed line is the mean without
    Cooling, its band one standard deviation.
    """
    colour = COLOURS[LAST]
    entries = [
        entry(f"{MODES[LAST]} Cooling", linewidth=1.2, color=colour, marker="o", markersize=3.5),
        entry(f"{MODES[NO_COOLING]}, mean ± sd", linewidth=1.2, linestyle="--", color=COLOURS[NO_COOLING]),
        _lost(colour),
        entry("below the scale", linestyle="none", marker="v", markersize=5, color=colour),
    ]
    rows = selection.figure_1_trainings(records)
    return _by_setting(rows, _factors, entries, x="factor", label="Cooling factor", width=0.65, columns=2)


def _factors(axes: Axes, rows: pd.DataFrame) -> None:
    left, right, rows = rows["factor"].min(), rows["factor"].max(), rows[~rows["lost"]]
    accuracies = PERCENT * rows[rows["mode"] == NO_COOLING]["accuracy"]
    if len(accuracies):
        axes.axhline(accuracies.mean(), color=COLOURS[NO_COOLING], linewidth=1.2, linestyle="--")
    if len(accuracies) > 1:
        low, high = accuracies.mean() - accuracies.std(), accuracies.mean() + accuracies.std()
        axes.axhspan(low, high, color=COLOURS[NO_COOLING], alpha=0.12, linewidth=0)
    cooled = rows[rows["mode"] == LAST]
    plots.seeds(axes, cooled[cooled["factor"] <= 1], "factor", "accuracy", color=COLOURS[LAST])
    hot, bottom = cooled[cooled["factor"] > 1], axes.get_ylim()[0]
    values = PERCENT * hot["accuracy"]
    axes.plot(hot["factor"], values.where(values > bottom), "o", ms=3.5, mfc="none", color=COLOURS[LAST])
    axes.plot(hot["factor"], values.where(values <= bottom) * 0 + bottom, "v", ms=5, color=COLOURS[LAST])
    axes.set_xlim(left - 0.15, right + 0.15)


@plots.style()
def learning_rates(records: Records) -> Figure | None:
    """Ours: test accuracy against the learning rate, with and without last layer Cooling, a panel per data set.

    Circles are seeds, lines the means of those that finished; crosses below mark rates with trainings that
    diverged or got stuck.
    """
    entries = [
        entry(MODES[mode], linewidth=1.2, color=COLOURS[mode], marker="o", markersize=3.5)
        for mode in (NO_COOLING, LAST)
    ]
    entries.append(_lost("0.4"))
    rows = _rate_trainings(records)
    return _by_setting(rows, _rates, entries, x="learning_rate", label="learning rate", width=0.55, columns=3)


def _rate_trainings(records: Records) -> pd.DataFrame:
    """No Cooling and last layer Cooling without a schedule: several learning rates, that of the main recipe too."""
    rows = selection.trainings(records, "ours")
    rate = rows["change"].str.extract(r"^learning rate ([0-9.e+-]+)$")[0].astype(float)
    changed = rows.assign(learning_rate=rate).dropna(subset=["learning_rate"])
    main = selection.standard(selection.trainings(records, "table_1")).assign(learning_rate=MAIN_RATE)
    rows = pd.concat([changed, main.merge(changed[SETTING].drop_duplicates(), on=SETTING)])
    plain = (rows["loss"] == selection.CROSS_ENTROPY) & (rows["schedule"] == selection.NO_SCHEDULE)
    return rows[plain & rows["mode"].isin([NO_COOLING, LAST])]


def _rates(axes: Axes, rows: pd.DataFrame) -> None:
    axes.set(xscale="log", xmargin=0.15)
    for mode in (NO_COOLING, LAST):
        some = rows[(rows["mode"] == mode) & ~rows["lost"]]
        plots.seeds(axes, some, "learning_rate", "accuracy", color=COLOURS[mode])


def _by_setting(
    rows: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], None],
    entries: list[Line2D],
    *,
    x: str,
    label: str,
    width: float,
    columns: int,
) -> Figure | None:
    """A panel per data set and network, drawn from its trainings, and below everything in it what was lost."""
    settings = [some for _, some in rows.groupby(SETTING, sort=False)]
    if not settings:
        return None
    width = min(1.0, width * len(settings)) * plots.WIDTH
    figure, grid = plots.panels(len(settings), columns=len(settings), width=width, row=3.1)
    for axes, some in zip(grid, settings, strict=True):
        draw(axes, some)
        _crosses(axes, some, x)
        places = sorted(some[x].dropna().unique())
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.minorticks_off()
        axes.set(title=_title(some), xlabel=label)
    grid[0].set_ylabel("test accuracy (%)")
    plots.legend_below(figure, entries, columns=columns)
    return figure


def _crosses(axes: Axes, rows: pd.DataFrame, x: str) -> None:
    """Crosses below everything else where trainings are lost, and how many of them; after all dots are drawn."""
    counts = rows.groupby(["mode", x])["lost"].agg(["sum", "size"])
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


def _lost(colour: Any) -> Line2D:
    return entry("diverged or stuck", linestyle="none", marker="x", markersize=6, color=colour)


@plots.style()
def figure_2(records: Records) -> Figure | None:
    """The last layer's temperature over epochs: with factor 0.75, and periodically redistributed with factor 1.

    One line per seed. The vertical strokes are redistributions: from the temperature that was reached down to the one
    that the last layer keeps. The dotted line is the maximal temperature, the thin dashed one the product of all
    corrections, the plus sign the printed epoch, where the maximal temperature is the printed one. Shows the first data
    set and network that has either.
    """
    rows = growth.growth(records)
    if rows.empty:
        return None
    rows = rows.merge(rows[SETTING].head(1))
    limit, shown = rows["limit"].iloc[0], rows[["limit", "total", "reached", "kept"]].to_numpy()
    modes = [mode for mode in (LAST, PERIODIC) if mode in set(rows["mode"])]
    width = plots.WIDTH * (0.3 + 0.35 * len(modes))
    figure, grid = plots.panels(len(modes), row=2.6, extra=0.8, width=width, sharex=True, sharey=True)
    for axes, mode in zip(grid, modes, strict=True):
        factor = growth.SLOW_FACTOR if mode == LAST else 1
        axes.set(title=f"{MODES[mode]} Cooling, factor {factor:g}", xlabel="epoch", yscale="log")
        axes.set_ylim(0.8 * min(1.0, shown.min()), 1.25 * shown.max())
        axes.axhline(limit, color="0.5", linewidth=0.8, linestyle=":")
        _temperatures(axes, rows[rows["mode"] == mode], COLOURS[mode])
        if limit == growth.LIMIT:
            texts = published(SLUG, "text").set_index("metric")["value"].astype(float)
            axes.plot(texts[growth.PRINTED[mode]], limit, **_PRINTED)
    grid[0].set_ylabel("temperature of the last layer")
    _label_few_decades(grid[0])
    entries = [
        entry("temperature of the last layer, one line per seed", color="0.2", linewidth=1.1),
        entry("maximal temperature", color="0.5", linewidth=0.8, linestyle=":"),
    ]
    if limit == growth.LIMIT:
        entries.append(entry("first above 100, as printed", **_PRINTED))
    if rows["reset"].any():
        falls = "redistributed: falls to the reset temperature"
        entries.append(entry(falls, ls="none", marker="v", ms=3.5, color=plots.WARNING))
        entries.append(entry("product of all corrections", linestyle="--", linewidth=0.7, color=COLOURS[PERIODIC]))
    return _finished(figure, _title(rows), entries, columns=2)


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
    axes.plot(resets["epoch"], resets["reached"], "v", color=plots.WARNING, markersize=3.5)


@plots.style()
def training_curves(records: Records) -> Figure | None:
    """Accuracy over epochs by mode, mean ± sd: a row per schedule, test data left, training data right.

    Each column has one scale, which leaves out the rise of the first third.
    """
    runs = _shown_runs(records)
    if runs.empty:
        return None
    history = runs.merge(records.history, on=selection.RUN, suffixes=("_judged", ""))
    schedules = [name for name in SCHEDULES if name in set(runs["schedule"])]
    figure, grid = plots.panels(2 * len(schedules), columns=2, row=1.4, extra=0.8, sharex=True, sharey="col")
    for column, (split, title) in enumerate((("test", "test accuracy (%)"), ("train", "training accuracy (%)"))):
        rows = history[history["split"] == split]
        for axes, schedule in zip(grid[column::2], schedules, strict=True):
            _by_mode(axes, rows[rows["schedule"] == schedule], "accuracy", scale=PERCENT)
        later = rows[rows["epoch"] > history["epoch"].max() / 3]
        grid[column].set(title=title, ylim=(PERCENT * later["accuracy"].min() - 2, None))
    for axes, schedule in zip(grid[::2], schedules, strict=True):
        axes.set_ylabel(f"schedule:\n{SCHEDULES[schedule]}")
    plots.label_outside(grid, columns=2, x="epoch")
    return _finished(figure, _title(runs), _modes(runs), columns=len(MODES))


@plots.style()
def effects(records: Records) -> Figure | None:
    """Norms of weights, gradients and logits, and the calibration error, by mode over epochs without a schedule."""
    runs = _shown_runs(records)
    runs = runs[runs["schedule"] == selection.NO_SCHEDULE]
    if runs.empty:
        return None
    norms, tested = records.norms, records.history[records.history["split"] == "test"]
    figure, grid = plots.panels(4, columns=2, row=2.3, sharex=True)
    for axes, table, column, title in (
        (grid[0], norms, "weight_norm", "(a) weights, all layers"),
        (grid[1], norms, "gradient_norm", "(b) gradients, all layers"),
        (grid[2], norms, "logit_norm", "(c) logits, validation data"),
        (grid[3], tested, "ece", "(d) ECE, test data"),
    ):
        unit, scale, kind = ("norm", 1, "log") if table is norms else ("ECE (%)", PERCENT, "linear")
        axes.set(title=title, ylabel=unit, yscale=kind)
        _by_mode(axes, runs[[*selection.RUN, "mode"]].merge(table, on=selection.RUN), column, scale=scale)
        _label_few_decades(axes)
    plots.label_outside(grid, columns=2, x="epoch")
    return _finished(figure, f"{_title(runs)}: no schedule", _modes(runs), columns=len(MODES))


def _shown_runs(records: Records) -> pd.DataFrame:
    """The trainings of the first data set and network of Table 1 that are not lost."""
    runs = selection.standard(selection.trainings(records, "table_1"))
    runs = runs[~runs["lost"]]
    return runs.merge(runs[SETTING].head(1))


def _by_mode(axes: Axes, rows: pd.DataFrame, column: str, *, scale: float) -> None:
    for mode in MODES:
        plots.band(axes, rows[rows["mode"] == mode], "epoch", column, scale=scale, color=COLOURS[mode], linewidth=1.1)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _modes(runs: pd.DataFrame) -> list[Line2D]:
    shown = set(runs["mode"])
    return [entry(name, color=COLOURS[mode], linewidth=1.1) for mode, name in MODES.items() if mode in shown]


def _finished(figure: Figure, title: str, entries: list[Line2D], *, columns: int) -> Figure:
    figure.suptitle(title, fontsize=10)
    plots.legend_below(figure, entries, columns=columns)
    return figure


def _title(rows: pd.DataFrame) -> str:
    """Data set and network of the first row, as the project calls them."""
    return f"{rows['dataset'].iloc[0]}, {rows['network'].iloc[0]}"


def _label_few_decades(axes: Axes) -> None:
    """Several numbers, written out, also on a logarithmic axis that holds few powers of ten."""
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log" and high < 100 * low:
        axes.yaxis.set_major_locator(MaxNLocator(4) if high < 10 * low else LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_locator(NullLocator())
