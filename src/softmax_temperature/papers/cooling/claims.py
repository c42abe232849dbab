"""What the paper says, as criteria that were fixed before the runs.

Section 4.2 with Tables 1 and 2 and Figures 1 and 2 speaks of image classification, section 4.4 of segmentation, section
3.1 of cost. Every criterion looks at the recipe of the tables and figures alone, not at the ablation. Trainings are
compared in pairs of one data set, network, schedule and seed; one that diverged counts as guessing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from softmax_temperature.claims import Claim, Evidence, NotTested
from softmax_temperature.effects import Effect
from softmax_temperature.papers.cooling.effects import (
    diverged_note,
    factor_gains,
    figure_1_trainings,
    gains,
    with_accuracy,
)
from softmax_temperature.papers.cooling.growth import SLOW_FACTOR, crossings
from softmax_temperature.papers.cooling.selection import (
    COOLED,
    FIGURE_1,
    MAIN_ROLES,
    MODES,
    NO_COOLING,
    NO_SCHEDULE,
    PERIODIC,
    PIECEWISE,
    SCHEDULES,
    SETTING,
    SIMPLEST,
    SMOOTH,
    TABLE_1,
    TABLE_2,
    final_segmentation,
    last_layer_factors,
    standard,
    trainings,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from softmax_temperature.papers.cooling.records import Records

NEGLIGIBLE = 0.01  # A difference of accuracy below one point is none.


def _raises_accuracy(records: Records, *, mode: str, schedule: str) -> Evidence | NotTested:
    rows = _table_1(records)
    rows = rows[rows["schedule"] == schedule]
    found = gains(rows, mode, NO_COOLING)
    if found.empty:
        return _no_pair(mode, NO_COOLING, f"with schedule {SCHEDULES[schedule]}")
    effect, note = Effect.of(found), diverged_note(rows, mode, NO_COOLING)
    return effect.evidence(holds=effect.above(0), unit="accuracy", note=note)


def _smooth_schedules_gain_nothing(records: Records, *, mode: str) -> Evidence | NotTested:
    rows = _table_1(records)
    rows = rows[rows["schedule"].isin(SMOOTH)]
    found = gains(rows, mode, NO_COOLING)
    if found.empty:
        return _no_pair(mode, NO_COOLING, "with a smooth schedule")
    effect, means = Effect.of(found), found.groupby("schedule").mean()
    parts = [f"{SCHEDULES[str(schedule)]} {gain:+.3f}" for schedule, gain in means.items()]
    note = "; ".join(filter(None, [", ".join(parts), diverged_note(rows, mode, NO_COOLING)]))
    holds = effect.below(NEGLIGIBLE) and bool((means < NEGLIGIBLE).all())
    return effect.evidence(holds=holds, unit="accuracy", note=note)


def _no_schedule_is_needed(records: Records) -> Evidence | NotTested:
    rows = _table_1(records)
    unscheduled = rows["schedule"] == NO_SCHEDULE
    cooled, scheduled = (
        rows[unscheduled & (rows["mode"] == SIMPLEST)],
        rows[~unscheduled & (rows["mode"] == NO_COOLING)],
    )
    means = scheduled.groupby([*SETTING, "schedule"])["accuracy"].mean().reset_index()
    best = means.sort_values(by="accuracy").drop_duplicates(SETTING, keep="last")[[*SETTING, "schedule"]]
    pairs = cooled.merge(best.merge(scheduled), on=[*SETTING, "seed"], suffixes=("", "_best"))
    if pairs.empty:
        pair = f"{MODES[SIMPLEST]} without a schedule and {MODES[NO_COOLING]} with one"
        return NotTested(f"no experiment of this profile trains {pair}")
    effect = Effect.of(pairs["accuracy"] - pairs["accuracy_best"])
    names = ", ".join(SCHEDULES[name] for name in pairs["schedule_best"].unique())
    return effect.evidence(holds=effect.above(-NEGLIGIBLE), unit="accuracy", note=f"best schedule: {names}")


def _every_factor_helps(records: Records) -> Evidence | NotTested:
    found = factor_gains(figure_1_trainings(records))
    found = found[found.index.get_level_values("factor") <= 1]
    effects = {place: Effect.of(pairs) for place, pairs in found.groupby(["dataset", "network", "factor"])}
    if not effects:
        return NotTested("no experiment of this profile varies the Cooling factor below 1")
    worst = min(effects, key=lambda place: effects[place].value)
    note = ", ".join(f"{place[0]} {place[2]:g}: {effect.value:+.3f}" for place, effect in effects.items())
    holds = all(effect.above(0) for effect in effects.values())
    return effects[worst].evidence(holds=holds, unit=f"accuracy, factor {worst[2]:g}", note=note)


def _large_factors_diverge(records: Records) -> Evidence | NotTested:
    rows = last_layer_factors(trainings(records, FIGURE_1, TABLE_1))
    rows = rows[(rows["schedule"] == NO_SCHEDULE) & (rows["factor"] > 1)]
    if rows.empty:
        return NotTested("no experiment of this profile has a Cooling factor above 1")
    counts = rows.groupby(["dataset", "factor"])["diverged"].agg(["sum", "size"])
    note = ", ".join(
        f"{dataset} {factor:g}: {lost} of {runs}" for (dataset, factor), lost, runs in counts.itertuples(name=None)
    )
    return _share(rows["diverged"], "that diverged", note)


def _crelu(records: Records, *, modes: Sequence[str], trains: bool) -> Evidence | NotTested:
    rows = standard(trainings(records, TABLE_2))
    rows = rows[(rows["activation"] == "crelu") & (rows["schedule"] == NO_SCHEDULE) & rows["mode"].isin(modes)]
    if rows.empty:
        names = ", ".join(MODES[mode] for mode in modes)
        return NotTested(f"no experiment of this profile trains a network with CReLU: {names}")
    counted = rows["diverged"] ^ trains
    counts = counted.groupby(rows["mode"], sort=False).agg(["sum", "size"])
    note = ", ".join(f"{MODES[str(mode)]}: {count} of {runs}" for mode, count, runs in counts.itertuples(name=None))
    return _share(counted, "that trained" if trains else "that diverged", note)


def _last_layer_is_best(records: Records) -> Evidence | NotTested:
    rows = with_accuracy(standard(trainings(records, *MAIN_ROLES)))
    found = {mode: gains(rows, SIMPLEST, mode) for mode in COOLED if mode != SIMPLEST}
    for mode, pairs in found.items():
        if pairs.empty:
            return _no_pair(SIMPLEST, mode, "with one schedule")
    effects = {mode: Effect.of(pairs) for mode, pairs in found.items()}
    closest = min(effects, key=lambda mode: effects[mode].value)
    note = ", ".join(f"against {MODES[mode]} {effect.value:+.3f}" for mode, effect in effects.items())
    holds = all(effect.above(0) for effect in effects.values())
    return effects[closest].evidence(holds=holds, unit=f"accuracy, against {MODES[closest]}", note=note)


def _larger_factors_heat_faster(records: Records) -> Evidence | NotTested:
    found = crossings(records)
    hot = found[found["limit"] > 1]  # Below 1 a larger factor makes temperatures lower.
    if hot.empty:
        return NotTested("no experiment of this profile redistributes temperatures above 1")
    table = hot.pivot(index=[*SETTING, "seed"], columns="mode", values="epoch")
    pairs = table.reindex(columns=[PERIODIC, SIMPLEST]).dropna()
    if pairs.empty:
        both = f"{MODES[PERIODIC]} with factor 1 and {MODES[SIMPLEST]} with factor {SLOW_FACTOR:g}"
        return NotTested(f"no seed of this profile has {both} exceed the maximal temperature")
    effect = Effect.of(pairs[PERIODIC] - pairs[SIMPLEST])
    note = f"maximal temperature {', '.join(f'{limit:g}' for limit in sorted(hot['limit'].unique()))}"
    return effect.evidence(holds=effect.below(0), unit="epochs", note=note)


def _segmentation(records: Records, *, metric: str) -> Evidence | NotTested:
    table = final_segmentation(records).pivot(index="seed", columns="arm", values=metric)
    pairs = table.reindex(columns=[SIMPLEST, NO_COOLING]).dropna()
    if pairs.empty:
        return NotTested("no U-Net of this profile was trained with and without Cooling and the same seed")
    effect = Effect.of(pairs[SIMPLEST] - pairs[NO_COOLING])
    return effect.evidence(holds=effect.above(0), unit=metric.replace("_", " "))


def _cost(_: Records) -> NotTested:
    return NotTested("times are no results of a training: `make bench` measures this one, see benchmarks/results.json")


def _table_1(records: Records) -> pd.DataFrame:
    return with_accuracy(standard(trainings(records, TABLE_1)))


def _no_pair(mode: str, reference: str, where: str) -> NotTested:
    return NotTested(f"no experiment of this profile trains {MODES[mode]} and {MODES[reference]} {where} and one seed")


def _share(counted: pd.Series[bool], what: str, note: str) -> Evidence:
    return Evidence(bool(counted.all()), float(counted.mean()), len(counted), f"of trainings {what}", note=note)


_INTERVAL = "the 90 % interval of the mean over pairs (a single pair: its value)"
_ABOVE = f"holds if {_INTERVAL} lies above 0."
_GAIN = "Test accuracy of {} minus that without Cooling, {}: {}"
_PRINTED = {"distributed": (0.029, 0.011), PERIODIC: (0.045, 0.011), SIMPLEST: (0.045, 0.012)}  # None, Piecewise Const.


def _of_mode(mode: str) -> tuple[Claim[Records], ...]:
    name, slug = f"{MODES[mode]} Cooling", mode.replace("_", "-")
    return (
        Claim(
            f"{slug}-helps-without-schedule",
            "section 4.2, Table 1",
            f"{name} improves a network that is trained without a learning-rate schedule.",
            _GAIN.format(name, "no schedule", _ABOVE) + " Printed: the difference of the means in Table 1.",
            partial(_raises_accuracy, mode=mode, schedule=NO_SCHEDULE),
            published=_PRINTED[mode][0],
        ),
        Claim(
            f"{slug}-helps-with-piecewise-schedule",
            "section 4.2, Table 1",
            f"{name} improves a network that is trained with a piecewise constant schedule.",
            _GAIN.format(name, "piecewise constant schedule", _ABOVE) + " Printed: likewise.",
            partial(_raises_accuracy, mode=mode, schedule=PIECEWISE),
            published=_PRINTED[mode][1],
        ),
        Claim(
            f"{slug}-gains-nothing-with-smooth-schedule",
            "section 4.2, Table 1",
            f"Networks that are trained with a smooth schedule hardly benefit from {name}.",
            _GAIN.format(name, "cosine, exponential and linear schedules", f"holds if {_INTERVAL}, and the mean of ")
            + "each schedule, lie below 0.01, one point.",
            partial(_smooth_schedules_gain_nothing, mode=mode),
        ),
    )


CLAIMS: tuple[Claim[Records], ...] = (
    *(claim for mode in COOLED for claim in _of_mode(mode)),
    Claim(
        "no-schedule-is-needed",
        "section 4.2, Table 1",
        "With Cooling and without a schedule a network is as good as with the best schedule and without Cooling.",
        "Test accuracy of Last layer Cooling without a schedule minus that without Cooling with the schedule of the "
        f"best mean: holds if {_INTERVAL} lies above -0.01, one point. Printed: the difference of the means in Table "
        "1, best schedule Linear.",
        _no_schedule_is_needed,
        published=0.005,
    ),
    Claim(
        "last-layer-is-best",
        "abstract, Tables 1 and 2",
        "Last layer Cooling, the simplest variant, is the best-performing one.",
        "Test accuracy of Last layer Cooling minus that of each other variant, over all schedules and activations: "
        f"holds if for both {_INTERVAL} lies above 0. The value is that of the closer one.",
        _last_layer_is_best,
    ),
    Claim(
        "factors-up-to-1-help",
        "sections 4.2 and 4.3, Figure 1",
        "All Cooling factors up to 1 outperform the network without Cooling.",
        "Test accuracy of Last layer Cooling minus that without Cooling, no schedule: holds if for every factor up to "
        f"1, on every data set, {_INTERVAL} lies above 0. The value is that of the worst.",
        _every_factor_helps,
    ),
    Claim(
        "factors-above-1-diverge",
        "sections 4.2 and 4.3, Figure 1",
        "Cooling factors above 1 make the training diverge.",
        "Last layer Cooling, no schedule: holds if every training with a factor above 1 diverges: something is no "
        "longer finite, or the network ends at guessing.",
        _large_factors_diverge,
    ),
    Claim(
        "crelu-diverges-without-cooling",
        "section 4.2, Table 2",
        "Without Cooling and without a schedule, a network with CReLU diverges.",
        "Holds if every training without Cooling diverges, as above.",
        partial(_crelu, modes=(NO_COOLING,), trains=False),
    ),
    Claim(
        "crelu-trains-with-cooling",
        "section 4.2, Table 2",
        "With Cooling and without a schedule, a network with CReLU trains.",
        "Holds if no training of any mode of Cooling diverges, as above.",
        partial(_crelu, modes=COOLED, trains=True),
    ),
    Claim(
        "larger-factors-heat-faster",
        "section 4.2, Figure 2",
        "A larger Cooling factor makes the temperature grow faster.",
        "Epoch after which the last-layer temperature first exceeds the maximal one (the paper's: 100), with factor 1 "
        f"(periodically redistributed) minus that with factor 0.75 (last layer), no schedule: holds if {_INTERVAL} "
        "lies below 0. Printed: epochs 9 and 19.",
        _larger_factors_heat_faster,
        published=-10,
    ),
    Claim(
        "segmentation-iou",
        "section 4.4",
        "Last layer Cooling improves segmentation: the mean intersection over union.",
        "Mean intersection over union on test images after the last epoch, Last layer Cooling minus no Cooling, paired "
        f"by seed: {_ABOVE} Printed: on ADE20K.",
        partial(_segmentation, metric="mean_iou"),
        published=0.011,
    ),
    Claim(
        "segmentation-accuracy",
        "section 4.4",
        "Last layer Cooling improves segmentation: the accuracy of pixels.",
        "The same with the pixel accuracy. Printed: on ADE20K.",
        partial(_segmentation, metric="pixel_accuracy"),
        published=0.01,
    ),
    Claim(
        "cooling-is-cheap",
        "section 3.1",
        "Cooling takes about 1.9 % of the time of one training epoch.",
        "Seconds of one Cooling over seconds of one epoch: holds if at most 0.019.",
        _cost,
        published=0.019,
    ),
)
