"""What the study shows, in sentences made from its numbers, so that every profile's notebook speaks of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.heuristic import correlations
from softmax_temperature.papers.classifier_temperature import tables

if TYPE_CHECKING:
    from softmax_temperature.papers.classifier_temperature.records import Records


def findings(records: Records) -> str:
    """Markdown: does the heuristic hold here, what does following it cost, and how wide are the plateaus."""
    parts = (_coverage, _heuristic, _fragility, _cost, _width)
    return "\n".join(f"- {part(records)}" for part in parts)


def _coverage(records: Records) -> str:
    pairs = records.pairs
    classes, dims = pairs["n_classes"], pairs["dim"]
    return (
        f"**Coverage.** {len(pairs)} pairs: {pairs['dataset'].nunique()} data sets with {classes.min():.0f} to "
        f"{classes.max():.0f} classes, {pairs['backbone'].nunique()} backbones with {dims.min():.0f} to "
        f"{dims.max():.0f} dimensions. None of the paper's own embeddings are among them."
    )


def _heuristic(records: Records) -> str:
    table = records.leave_one_out
    rows = table[(table["subset"] == "all pairs") & (table["method"] == "least_squares")].set_index("row")
    parts = [
        f"{name}: median r {row['median_r']:.2f}, mean {row['mean_r']:.2f} ± {row['sd_r']:.2f}, "
        f"pooled r {row['pooled_r']:.2f}"
        for name, row in rows.iterrows()
    ]
    first = records.correlations.iloc[0]
    return (
        f"**The heuristic with a data set left out.** {'; '.join(parts)}. The strongest single statistic is "
        f"`{first['statistic']}` (r = {first['r']:.2f})."
    )


def _fragility(records: Records) -> str:
    """How much of the strongest correlation hangs on one backbone."""
    first = records.correlations.iloc[0]
    without = {
        name: correlations(records.pairs[records.pairs["backbone"] != name]).set_index("statistic")["r"]
        for name in records.pairs["backbone"].unique()
    }
    backbone = min(without, key=lambda name: abs(without[name][first["statistic"]]))
    now = str(without[backbone].abs().idxmax())
    return (
        f"**One backbone can carry a correlation.** Without `{backbone}` the r of `{first['statistic']}` goes from "
        f"{first['r']:.2f} to {without[backbone][first['statistic']]:.2f}, and the strongest statistic is `{now}` "
        f"(r = {without[backbone][now]:.2f}). The other backbones matter less."
    )


def _cost(records: Records) -> str:
    cost = tables.cost_of_rules(records).set_index("rule")
    mean, p90 = (100 * cost[column].astype(float) for column in ("mean", "p90"))
    names = ["4-Best Stats, least squares", "All Stats, least squares", "median of other data sets", "none (1)"]
    chosen = [name for name in names if name in cost.index]
    parts = [f"{name}: {mean[name]:.1f} (90th percentile {p90[name]:.1f})" for name in chosen]
    best = cost.index[0]
    return (
        "**What a user loses** in test accuracy against the best temperature of the grid, in percentage points, mean "
        f"over pairs: {'; '.join(parts)}. The cheapest rule is “{best}” with {mean.iloc[0]:.1f}."
    )


def _width(records: Records) -> str:
    pairs = records.pairs
    width = pairs["plateau_high"] - pairs["plateau_low"]
    wide = (width > 0.5 * (records.runs["inverse_temperature"].max() - 1)).mean()
    return (
        f"**Plateaus.** The inverse temperatures within one standard error of the best span {width.median():.0f} in "
        f"the median pair (quartiles {width.quantile(0.25):.0f} and {width.quantile(0.75):.0f}); in {100 * wide:.0f} % "
        "of the pairs they cover more than half of the grid, so that the optimum there is hardly a number."
    )
