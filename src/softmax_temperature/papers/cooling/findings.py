"""What the study shows, in sentences made from its numbers, so that every profile's notebook speaks of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.papers.cooling.comparisons import ACCURACIES, MAIN_RECIPE, comparison, wide_comparison
from softmax_temperature.papers.cooling.effects import factor_gains, figure_1_trainings, gains, with_accuracy
from softmax_temperature.papers.cooling.growth import crossings
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
    finished,
    setting_title,
    standard,
    trainings,
)
from softmax_temperature.papers.cooling.table_specs import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from softmax_temperature.papers.cooling.records import Records

PERCENT = 100


def findings(records: Records) -> str:
    """Markdown: what ran, what diverged, and what Cooling changes."""
    about_training = (_coverage, _diverged, _unscheduled, _schedules, _activations, _factors, _growth, _calibration)
    texts = [part(records) for part in (*about_training, _ablation, _ours, _segmentation)]
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
        f"**Coverage.** {len(runs)} trainings: {len(known)} experiments, {runs['schedule'].nunique()} schedules, "
        f"{runs['arm'].nunique()} arms, {runs['seed'].nunique()} seeds. With the main recipe: {'; '.join(parts)}."
    )


def _diverged(records: Records) -> str:
    """Nothing, if nothing did."""
    keys = ["experiment", "schedule", "arm"]
    lost = records.runs[records.runs["diverged"].astype(bool)].groupby(keys, sort=False).size().reset_index(name="runs")
    parts = [f"{row.arm} on {row.experiment}, schedule {row.schedule}: {row.runs}" for row in lost.itertuples()]
    return f"**Diverged**, and in no mean: {'; '.join(parts)}." if parts else ""


def _unscheduled(records: Records) -> str:
    """Nothing, if no training of Table 1 is without a schedule."""
    rows = standard(trainings(records, TABLE_1))
    groups = _by_setting(rows[rows["schedule"] == NO_SCHEDULE])
    parts = [f"{setting}: {_ranked(group, 'test_accuracy', ascending=False)}" for setting, group in groups]
    return f"**Without a schedule.** Test accuracy in percent, best first. {'; '.join(parts)}." if parts else ""


def _schedules(records: Records) -> str:
    """Nothing, if no pair of Table 1 is complete."""
    rows = with_accuracy(standard(trainings(records, TABLE_1)))
    found = gains(rows, SIMPLEST, NO_COOLING).groupby("schedule").mean()
    parts = [f"{SCHEDULES.get(str(name), name)} {PERCENT * gain:+.1f}" for name, gain in found.items()]
    return f"**By schedule**, Last layer Cooling changes it by {', '.join(parts)} points." if parts else ""


def _activations(records: Records) -> str:
    """Nothing, if no network has CReLU."""
    rows = standard(trainings(records, TABLE_2))
    groups = _by_setting(rows[(rows["activation"] == "crelu") & (rows["schedule"] == NO_SCHEDULE)])
    parts = [f"{setting}: {_ranked(group, 'test_accuracy', ascending=False)}" for setting, group in groups]
    return f"**With CReLU**, without a schedule, in the same way. {'; '.join(parts)}." if parts else ""


def _factors(records: Records) -> str:
    """Nothing, if no factor is varied."""
    rows, keys = figure_1_trainings(records), ["dataset", "network", "factor"]
    gained = (PERCENT * factor_gains(finished(rows))).groupby(keys).mean().rename("gain")
    table = rows.groupby(keys)["diverged"].all().to_frame().join(gained).reset_index()
    table = table[table["diverged"] | table["gain"].notna()]
    parts = []
    for (dataset, network), group in table.groupby(keys[:2], sort=False):
        texts = [
            f"{row.factor:g} diverges" if row.diverged else f"{row.factor:g}: {row.gain:+.1f}"
            for row in group.itertuples()
        ]
        parts.append(f"{dataset}, {network}: {', '.join(texts)}")
    return f"**Cooling factors.** Points over no Cooling, by factor. {'; '.join(parts)}." if parts else ""


def _growth(records: Records) -> str:
    """Nothing, if no training of Figure 2 was done."""
    parts = []
    for (mode, limit), rows in crossings(records).groupby(["mode", "limit"], sort=False):
        hot = rows["epoch"].dropna()
        when = f"after epoch {', '.join(f'{epoch:g}' for epoch in hot)}" if len(hot) else "not in this training"
        parts.append(f"{MODES[str(mode)]} exceeds {limit:g} {when}")
    return f"**Temperatures** of Figure 2, by seed: {'; '.join(parts)}." if parts else ""


def _calibration(records: Records) -> str:
    """Nothing, if no training of Table 1 is without a schedule."""
    rows = standard(trainings(records, TABLE_1))
    groups = _by_setting(rows[rows["schedule"] == NO_SCHEDULE])
    parts = [f"{setting}: {_ranked(group, 'test_ece', ascending=True)}" for setting, group in groups]
    return f"**Calibration** without a schedule. Test ECE in percent, best first. {'; '.join(parts)}." if parts else ""


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


def _segmentation(records: Records) -> str:
    """Nothing, if no U-Net was trained."""
    rows = finished(final_segmentation(records))
    means = rows.groupby("arm", sort=False)[["mean_iou", "pixel_accuracy"]].mean()
    parts = [
        f"{MODES[str(arm)]} {PERCENT * iou:.1f} and {PERCENT * accuracy:.1f}"
        for arm, iou, accuracy in means.itertuples(name=None)
    ]
    text = "Mean intersection over union and pixel accuracy in percent, mean over seeds"
    return f"**Segmentation.** {text}: {', '.join(parts)}." if parts else ""


def _by_setting(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each data set with its network, and the means over seeds of its finished trainings, a row a mode."""
    for _, group in finished(rows).groupby(SETTING, sort=False):
        yield setting_title(group.iloc[0]), group.groupby("mode", sort=False).mean(numeric_only=True)


def _ranked(means: pd.DataFrame, column: str, *, ascending: bool) -> str:
    ranked = means[column].sort_values(ascending=ascending, kind="stable")
    return ", ".join(f"{MODES[str(mode)]} {PERCENT * value:.1f}" for mode, value in ranked.items())
