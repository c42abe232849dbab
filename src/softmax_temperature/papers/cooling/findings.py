"""What the study shows, in sentences made from its numbers, so that every profile's notebook speaks of its own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softmax_temperature.papers.cooling.comparisons import ACCURACIES, MAIN_RECIPE, comparison, wide_comparison
from softmax_temperature.papers.cooling.effects import (
    factor_gains,
    figure_1_trainings,
    gains,
    rate_trainings,
    with_accuracy,
)
from softmax_temperature.papers.cooling.growth import crossings
from softmax_temperature.papers.cooling.notes import lost_by_mode
from softmax_temperature.papers.cooling.outcomes import finished, is_lost, lost_in
from softmax_temperature.papers.cooling.printed_tables import MISSING
from softmax_temperature.papers.cooling.selection import (
    ABLATION,
    MODES,
    NO_COOLING,
    NO_SCHEDULE,
    OURS,
    SCHEDULES,
    SETTING,
    SIMPLEST,
    TABLE_1,
    TABLE_2,
    experiments,
    final_segmentation,
    setting_title,
    standard,
    trainings,
)
from softmax_temperature.papers.cooling.table_specs import Comparison

if TYPE_CHECKING:
    import pandas as pd

    from softmax_temperature.papers.cooling.records import Records

PERCENT = 100
NEAR_BEST = 0.02  # A learning rate works if it comes within two points of the best of all.
_ORDER = "best first, modes that lost a training last"


def findings(records: Records) -> str:
    """Markdown: what ran, what was lost, and what Cooling changes.

    Means are over the trainings that finished, differences over the seeds that finished both, as in the tables; what is
    lost is named beside the number that goes without it.
    """
    about_training = (_coverage, _lost, _unscheduled, _schedules, _activations, _factors, _growth, _calibration)
    texts = [part(records) for part in (*about_training, _ablation, _ours, _rates, _segmentation)]
    return "\n".join(f"- {text}" for text in texts if text)


def _coverage(records: Records) -> str:
    known, runs = experiments(records), records.runs
    main = known[known["change"] == ""].drop_duplicates(SETTING)
    parts = [
        f"{row.dataset} with {row.network} ({row.train_images} images, {row.validation_images} for the temperature, "
        f"{row.epochs} of {row.planned_epochs} epochs)"
        for row in main.itertuples()
    ]
    return (
        f"**Coverage.** {len(runs)} trainings of classifiers: {len(known)} experiments, {runs['schedule'].nunique()} "
        f"schedules, {runs['arm'].nunique()} arms, at most {runs['seed'].nunique()} seeds. With the main recipe: "
        f"{'; '.join(parts)}."
    )


def _lost(records: Records) -> str:
    """Nothing, if nothing was."""
    keys, parts = ["experiment", "schedule", "arm"], []
    for (experiment, schedule, arm), rows in records.runs.groupby(keys, sort=False):
        if lost := lost_in(rows):
            parts.append(f"{experiment}, schedule {schedule}, arm {arm}: {lost}")
    return f"**Diverged or stuck**, and in no mean below: {'; '.join(parts)}." if parts else ""


def _unscheduled(records: Records) -> str:
    """Nothing, if no training of Table 1 is without a schedule."""
    rows = standard(trainings(records, TABLE_1))
    text = _ranked(rows[rows["schedule"] == NO_SCHEDULE], "test_accuracy", ascending=False)
    return f"**Without a schedule.** Test accuracy in percent, {_ORDER}. {text}." if text else ""


def _schedules(records: Records) -> str:
    """Nothing, if no schedule of Table 1 has both."""
    rows = standard(trainings(records, TABLE_1)).assign(accuracy=lambda table: table["test_accuracy"])
    found, parts = gains(finished(rows), SIMPLEST, NO_COOLING), []
    for name, some in rows.groupby("schedule"):
        gain = found[found.index.get_level_values("schedule") == name].mean()
        lost = lost_by_mode(some, SIMPLEST, NO_COOLING)
        if {SIMPLEST, NO_COOLING} <= set(some["mode"]):
            parts.append(f"{SCHEDULES.get(str(name), name)} {_points(gain)}" + _remark(lost))
    return f"**By schedule**, Last layer Cooling changes it by, in points: {', '.join(parts)}." if parts else ""


def _activations(records: Records) -> str:
    """Nothing, if no network has CReLU."""
    rows = standard(trainings(records, TABLE_2))
    rows = rows[(rows["activation"] == "crelu") & (rows["schedule"] == NO_SCHEDULE)]
    text = _ranked(rows, "test_accuracy", ascending=False)
    return f"**With CReLU**, without a schedule, in the same way. {text}." if text else ""


def _factors(records: Records) -> str:
    """Nothing, if no factor is varied."""
    rows, parts = figure_1_trainings(records), []
    for (dataset, network), some in rows.groupby(["dataset", "network"], sort=False):
        means = factor_gains(finished(some)).groupby("factor").mean()
        cooled = some[some["mode"] == SIMPLEST]
        texts = [
            f"{factor:g}: {_points(means.get(factor, math.nan))}" + _remark(lost_in(group))
            for factor, group in cooled.groupby("factor")
        ]
        baseline = _remark(lost_by_mode(some, NO_COOLING))
        parts.append(f"{dataset}, {network}{baseline}: {', '.join(texts)}")
    return f"**Cooling factors.** Points over no Cooling, by factor. {'; '.join(parts)}." if parts else ""


def _growth(records: Records) -> str:
    """Nothing, if no training of Figure 2 was done."""
    parts = []
    for (mode, limit), rows in crossings(records).groupby(["mode", "limit"], sort=False):
        times = ["never" if math.isnan(epoch) else f"after epoch {epoch:g}" for epoch in rows["epoch"]]
        parts.append(f"{MODES[str(mode)]} exceeds {limit:g}: {', '.join(times)}")
    return f"**Temperatures** of Figure 2, by seed: {'; '.join(parts)}." if parts else ""


def _calibration(records: Records) -> str:
    """Nothing, if no training of Table 1 is without a schedule."""
    rows = standard(trainings(records, TABLE_1))
    text = _ranked(rows[rows["schedule"] == NO_SCHEDULE], "test_ece", ascending=True)
    return f"**Calibration** without a schedule. Test ECE in percent, {_ORDER}. {text}." if text else ""


def _ablation(records: Records) -> str:
    return _changes(records, ABLATION, "Ablation")


def _ours(records: Records) -> str:
    return _changes(records, OURS, "Beyond the paper")


def _changes(records: Records, role: str, title: str) -> str:
    """Nothing, if no change was measured."""
    table = wide_comparison(comparison(records, Comparison(role)))
    changes = table[table["change"] != MAIN_RECIPE]
    parts = [
        f"{change}, {arm}: {without} → {cooled}"
        for change, arm, without, cooled in changes[["change", "arm", *ACCURACIES]].itertuples(index=False, name=None)
    ]
    return f"**{title}.** Test accuracy in percent, without → with Cooling. {'; '.join(parts)}." if parts else ""


def _rates(records: Records) -> str:
    """Whether Cooling widens the range of learning rates that work; nothing, if none was swept.

    Of the seeds that were trained with every rate in both modes; a lost training counts as guessing.
    """
    parts = []
    for setting, rows in with_accuracy(rate_trainings(records)).groupby(SETTING, sort=False):
        table = rows.pivot_table(index=["mode", "learning_rate"], columns="seed", values="accuracy")
        means = table.dropna(axis="columns").mean(axis="columns")
        near = means[means > means.max() - NEAR_BEST].reset_index()
        texts = [
            f"{MODES[mode]} {', '.join(f'{rate:g}' for rate in near[near['mode'] == mode]['learning_rate']) or 'none'}"
            for mode in (NO_COOLING, SIMPLEST)
        ]
        tried = ", ".join(f"{rate:g}" for rate in sorted(rows["learning_rate"].unique()))
        count = len(table.dropna(axis="columns").columns)
        seeds = "one seed" if count == 1 else f"{count} seeds"
        parts.append(f"{setting[0]}, {setting[1]} (of {tried}; {seeds}): {'; '.join(texts)}")
    text = f"With these it comes within {PERCENT * NEAR_BEST:g} points of the best"
    return f"**Learning rates that work**, ours. {text}. {'. '.join(parts)}." if parts else ""


def _segmentation(records: Records) -> str:
    """Nothing, if no U-Net was trained."""
    parts = []
    for arm, rows in final_segmentation(records).groupby("arm", sort=False):
        means = PERCENT * finished(rows)[["mean_iou", "pixel_accuracy"]].mean()
        scores = " and ".join(f"{mean:.1f}" for mean in means) if means.notna().all() else MISSING
        parts.append(f"{MODES[str(arm)]} {scores}" + _remark(lost_in(rows)))
    text = "Mean intersection over union and pixel accuracy in percent, mean over seeds"
    return f"**Segmentation.** {text}: {', '.join(parts)}." if parts else ""


def _ranked(rows: pd.DataFrame, column: str, *, ascending: bool) -> str:
    """Each data set with its network, and the means over seeds of its finished trainings, a number a mode."""
    parts = []
    for _, some in rows.groupby(SETTING, sort=False):
        table = some.assign(lost=is_lost(some), value=some[column].where(~is_lost(some)))
        means = table.groupby("mode", sort=False).agg(lost=("lost", "any"), value=("value", "mean"))
        means = means.sort_values(["lost", "value"], ascending=[True, ascending])
        texts = [
            f"{MODES[str(mode)]} {MISSING if math.isnan(mean) else f'{PERCENT * mean:.1f}'}"
            + _remark(lost_in(some[some["mode"] == mode]))
            for mode, mean in means["value"].items()
        ]
        parts.append(f"{setting_title(some.iloc[0])}: {', '.join(texts)}")
    return "; ".join(parts)


def _points(gain: float) -> str:
    return MISSING if math.isnan(gain) else f"{PERCENT * gain:+.1f}"


def _remark(text: str) -> str:
    return f" ({text})" if text else ""
