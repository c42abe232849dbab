"""What the records say about each claim of the paper: its evidence, or which profile would have it.

Every judge looks at the recipe of the tables and figures alone, not at the ablation. Trainings are compared in pairs of
one data set, network, schedule and seed, and pairs of one seed count once, with their mean. A lost training counts as
guessing where accuracies are compared, and the note says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.papers.cooling.effects import factor_gains, figure_1_trainings, gains, with_accuracy
from softmax_temperature.papers.cooling.growth import (
    SLOW_FACTOR,
    crossing_pairs,
    crossings,
    growth,
    never_redistributed,
)
from softmax_temperature.papers.cooling.notes import (
    bound_note,
    guessing_note,
    joined,
    lost_by_mode,
    redistribution_note,
)
from softmax_temperature.papers.cooling.outcomes import is_lost, lost_in
from softmax_temperature.papers.cooling.selection import (
    COOLED,
    FIGURE_1,
    MAIN_ROLES,
    MODES,
    NO_COOLING,
    NO_SCHEDULE,
    PERIODIC,
    SCHEDULES,
    SEGMENTATION,
    SETTING,
    SIMPLEST,
    SMOOTH,
    TABLE_1,
    TABLE_2,
    cells_of_trainings,
    final_segmentation,
    last_layer_factors,
    standard,
    trainings,
)
from softmax_temperature.papers.shared.claims import Evidence, NotTested
from softmax_temperature.papers.shared.effects import Effect
from softmax_temperature.papers.shared.sources import cells_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from softmax_temperature.papers.cooling.records import Records

NEGLIGIBLE = 0.01  # A difference of accuracy below one point is none.
LEAST = 0.001  # What segmentation gains at least: two seeds may agree in a gain of nothing to many digits.
CHEAP = 0.019  # Section 3.1: a Cooling over an epoch.
_UNITS = {"mean_iou": "mean IoU", "pixel_accuracy": "pixel accuracy"}


def raises_accuracy(records: Records, *, mode: str, schedule: str) -> Evidence | NotTested:
    """Whether a mode of Cooling is better than none with one schedule."""
    rows = _table_1(records)
    rows = rows[rows["schedule"] == schedule]
    found = gains(rows, mode, NO_COOLING)
    if found.empty:
        return _no_pair(mode, NO_COOLING, f"with schedule {SCHEDULES[schedule]}")
    effect = Effect.over_seeds(found)
    cells, note = _cells(rows, mode, NO_COOLING), guessing_note(rows, mode, NO_COOLING)
    return effect.evidence(holds=effect.above(0), unit="accuracy", cells=cells, note=note)


def smooth_schedules_gain_nothing(records: Records, *, mode: str) -> Evidence | NotTested:
    """Whether a mode of Cooling gains less than a point with each smooth schedule."""
    rows = _table_1(records)
    rows = rows[rows["schedule"].isin(SMOOTH)]
    found = gains(rows, mode, NO_COOLING)
    if found.empty:
        return _no_pair(mode, NO_COOLING, "with a smooth schedule")
    effect, means = Effect.over_seeds(found), found.groupby("schedule").mean()
    parts = [f"{SCHEDULES[str(schedule)]} {gain:+.3f}" for schedule, gain in means.items()]
    some = f"{len(parts)} of {len(SMOOTH)} smooth schedules" if len(parts) < len(SMOOTH) else ""
    note = joined(", ".join(parts), some, guessing_note(rows, mode, NO_COOLING))
    holds = effect.below(NEGLIGIBLE) and bool((means < NEGLIGIBLE).all())
    cells, bounds = _cells(rows, mode, NO_COOLING), (NEGLIGIBLE,)
    return effect.evidence(holds=holds, unit="accuracy", cells=cells, note=note, bounds=bounds)


def no_schedule_is_needed(records: Records) -> Evidence | NotTested:
    """Whether last layer Cooling without a schedule is as good as the best schedule without Cooling."""
    rows = _table_1(records)
    unscheduled = rows["schedule"] == NO_SCHEDULE
    cooled, scheduled = (
        rows[unscheduled & (rows["mode"] == SIMPLEST)],
        rows[~unscheduled & (rows["mode"] == NO_COOLING)],
    )
    means = scheduled.groupby([*SETTING, "schedule"])["accuracy"].mean().reset_index()
    best = means.sort_values(by="accuracy").drop_duplicates(SETTING, keep="last")[[*SETTING, "schedule"]]
    scheduled = best.merge(scheduled)
    pairs = cooled.merge(scheduled, on=[*SETTING, "seed"], suffixes=("", "_best")).set_index("seed")
    if pairs.empty:
        pair = f"{MODES[SIMPLEST]} without a schedule and {MODES[NO_COOLING]} with one"
        return _untested(f"no experiment of this profile trains {pair}")
    effect = Effect.over_seeds(pairs["accuracy"] - pairs["accuracy_best"])
    names = ", ".join(SCHEDULES[name] for name in pairs["schedule_best"].unique())
    lost = joined(guessing_note(cooled, SIMPLEST), guessing_note(scheduled, NO_COOLING))
    return effect.evidence(
        holds=effect.above(-NEGLIGIBLE),
        unit="accuracy",
        cells=_cells(cooled, SIMPLEST) + _cells(scheduled, NO_COOLING),
        note=joined(f"best schedule: {names}", lost),
        bounds=(-NEGLIGIBLE,),
    )


def every_factor_helps(records: Records) -> Evidence | NotTested:
    """Whether each Cooling factor up to 1 is better than no Cooling."""
    rows = figure_1_trainings(records)
    rows = rows[(rows["mode"] == NO_COOLING) | (rows["factor"] <= 1)]
    found = factor_gains(rows)
    effects = {place: Effect.over_seeds(pairs) for place, pairs in found.groupby(["dataset", "network", "factor"])}
    if not effects:
        return _untested("no experiment of this profile varies the Cooling factor below 1")
    worst = min(effects, key=lambda place: effects[place].lowest)
    parts = [f"{place[0]} {place[2]:g}: {effect.value:+.3f}" for place, effect in effects.items()]
    note = joined(", ".join(parts), guessing_note(rows, SIMPLEST, NO_COOLING))
    holds = all(effect.above(0) for effect in effects.values())
    cells = _cells(rows, SIMPLEST, NO_COOLING)
    return effects[worst].evidence(holds=holds, unit=f"accuracy, factor {worst[2]:g}", cells=cells, note=note)


def large_factors_diverge(records: Records) -> Evidence | NotTested:
    """Whether each training with a factor above 1 diverges; a stuck one did not."""
    rows = last_layer_factors(trainings(records, FIGURE_1, TABLE_1))
    rows = rows[(rows["schedule"] == NO_SCHEDULE) & (rows["factor"] > 1)]
    if rows.empty:
        return _untested("no experiment of this profile has a Cooling factor above 1")
    parts = [
        f"{dataset} {factor:g}: {lost_in(some) or 'none lost'}"
        for (dataset, factor), some in rows.groupby(["dataset", "factor"])
    ]
    return _share(rows, rows["diverged"], "that diverged", joined(", ".join(parts), bound_note(records, rows)))


def crelu(records: Records, *, modes: Sequence[str], trains: bool) -> Evidence | NotTested:
    """Whether each training with CReLU in some modes trains, or diverges. A stuck one does neither."""
    rows = standard(trainings(records, TABLE_2))
    rows = rows[(rows["activation"] == "crelu") & (rows["schedule"] == NO_SCHEDULE) & rows["mode"].isin(modes)]
    if rows.empty:
        names = ", ".join(MODES[mode] for mode in modes)
        return _untested(f"no experiment of this profile trains a network with CReLU: {names}")
    hits = ~is_lost(rows) if trains else rows["diverged"]
    return _share(rows, hits, "that trained" if trains else "that diverged", lost_by_mode(rows, *modes))


def last_layer_is_best(records: Records) -> Evidence | NotTested:
    """Whether last layer Cooling is better than each other mode."""
    rows = with_accuracy(standard(trainings(records, *MAIN_ROLES)))
    left_out = redistribution_note(records, rows)
    rows = rows[~never_redistributed(records, rows)]  # Equal numbers would pass for an effect of 0.
    found = {mode: gains(rows, SIMPLEST, mode) for mode in COOLED if mode != SIMPLEST}
    effects = {mode: Effect.over_seeds(pairs) for mode, pairs in found.items() if len(pairs)}
    holds = all(effect.above(0) for effect in effects.values())
    if holds and len(effects) < len(found):
        missing = next(mode for mode in found if mode not in effects)
        return _no_pair(SIMPLEST, missing, "with one schedule")
    closest = min(effects, key=lambda mode: effects[mode].lowest)
    parts = [f"against {MODES[mode]} {effect.value:+.3f}" for mode, effect in effects.items()]
    note = joined(", ".join(parts), left_out and f"left out: {left_out}", guessing_note(rows, *COOLED))
    unit, cells = f"accuracy, against {MODES[closest]}", _cells(rows, *COOLED)
    return effects[closest].evidence(holds=holds, unit=unit, cells=cells, note=note)


def larger_factors_heat_faster(records: Records) -> Evidence | NotTested:
    """Whether the temperature exceeds its maximum earlier with factor 1 than with the slow one."""
    found = crossings(records)
    hot = found[found["limit"] > 1]  # Below 1 a larger factor makes temperatures lower.
    if hot.empty:
        return _untested("no experiment of this profile redistributes temperatures above 1")
    pairs = crossing_pairs(hot)
    if pairs.empty:
        either = f"{MODES[PERIODIC]} with factor 1 or {MODES[SIMPLEST]} with factor {SLOW_FACTOR:g}"
        return _untested(f"no seed of this profile tells which exceeds the maximal temperature first: {either}")
    effect = Effect.over_seeds(pairs["difference"])
    limits = f"maximal temperature {', '.join(f'{limit:g}' for limit in sorted(hot['limit'].unique()))}"
    counts = pairs["never"].value_counts()
    late = [f"{MODES[mode]} {counts[mode]} of {len(pairs)}" for mode in (PERIODIC, SIMPLEST) if mode in counts]
    never = f"never exceeded, the epoch after the last counted: {', '.join(late)}" if late else ""
    cells = cells_of_trainings(growth(records))
    return effect.evidence(holds=effect.below(0), unit="epochs", cells=cells, note=joined(limits, never))


def segmentation(records: Records, *, metric: str) -> Evidence | NotTested:
    """Whether a U-Net is better with last layer Cooling than without."""
    rows = final_segmentation(records)
    guess = 0 if metric == "mean_iou" else 1 / rows["classes"]
    rows = rows.assign(score=rows[metric].where(~is_lost(rows), guess), mode=rows["arm"])
    pairs = rows.pivot(index="seed", columns="arm", values="score").reindex(columns=[SIMPLEST, NO_COOLING]).dropna()
    if pairs.empty:
        missing = "no U-Net of this profile was trained with and without Cooling and the same seed"
        return _untested(missing, "cifar10_cpu_cooling (CamVid) or paper (ADE20K)")
    effect = Effect.over_seeds(pairs[SIMPLEST] - pairs[NO_COOLING])
    counted = "0" if metric == "mean_iou" else "guessing"
    note = guessing_note(rows, SIMPLEST, NO_COOLING, counted=counted)
    cells = cells_of(SEGMENTATION, rows, "arm")
    return effect.evidence(holds=effect.above(LEAST), unit=_UNITS[metric], cells=cells, note=note, bounds=(LEAST,))


def cost(records: Records) -> Evidence | NotTested:
    """Whether a Cooling takes no more of an epoch than the paper says, in every mode and on every device measured."""
    rows = records.cost
    if rows.empty:
        return NotTested("`make bench` measures it, and has not: see benchmarks/results.json")
    dearest = max(rows.to_dict("records"), key=lambda row: row["share"])
    each = ", ".join(f"{MODES[row['mode']]} on {row['device']} {row['share']:.4f}" for row in rows.to_dict("records"))
    note = f"measured by `make bench`, whatever the profile: {each}"
    unit = f"of an epoch, {MODES[dearest['mode']]}"
    return Evidence(dearest["share"] <= CHEAP, dearest["share"], dearest["rounds"], unit, note=note)


def _table_1(records: Records) -> pd.DataFrame:
    return with_accuracy(standard(trainings(records, TABLE_1)))


def _untested(reason: str, profile: str = "cifar10") -> NotTested:
    return NotTested(f"{reason}; profile {profile} would test it")


def _no_pair(mode: str, reference: str, where: str) -> NotTested:
    return _untested(f"no experiment of this profile trains {MODES[mode]} and {MODES[reference]} {where} and one seed")


def _share(rows: pd.DataFrame, hits: pd.Series[bool], what: str, note: str) -> Evidence:
    cells = _cells(rows, *MODES)
    return Evidence(bool(hits.all()), float(hits.mean()), len(hits), f"of trainings {what}", note=note, cells=cells)


def _cells(rows: pd.DataFrame, *modes: str) -> tuple[str, ...]:
    """The trainings of some modes."""
    return cells_of_trainings(rows[rows["mode"].isin(modes)])
