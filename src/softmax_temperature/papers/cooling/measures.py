"""What the claims of the paper are judged by: values by task and seed, from the records.

Only the recipe of the tables and figures counts, not the ablation. The accuracy of a training is the mean over its last
ten epochs: that of the last epoch alone is twice as noisy. A lost training counts as guessing, and the note says so. A
task is a data set with a network, an activation and a schedule; trainings are paired by task and seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from softmax_temperature.papers.cooling.growth import (
    SLOW_FACTOR,
    crossing_pairs,
    crossings,
    growth,
    never_redistributed,
)
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import (
    COOLED,
    DIVERGED,
    FIGURE_1,
    MODES,
    NO_COOLING,
    NO_SCHEDULE,
    PERIODIC,
    RUN,
    SCHEDULES,
    SEGMENTATION,
    SETTING,
    SIMPLEST,
    TABLE_1,
    TABLE_2,
    cells_of_trainings,
    figure_1_trainings,
    final_segmentation,
    finished,
    guessing,
    guessing_note,
    is_lost,
    joined,
    last_layer_factors,
    lost_by_mode,
    standard,
    trainings,
)
from softmax_temperature.papers.shared.claims import Measurement, NotTested
from softmax_temperature.papers.shared.sources import cells_of
from softmax_temperature.papers.shared.statistics import OverTasks, Share, Task, pooled

# Deviation: CamVid stands in for ADE20K, on which no study here can train; the paper segments nothing else.
DATA = ("cifar10", "cifar100", "ade20k", "camvid")
"""The paper's data sets; parts of them, as "cifar10-10000", count as the paper's too."""
_UNITS = {"mean_iou": "mean IoU", "pixel_accuracy": "pixel accuracy"}
_PLACE = [*SETTING, "schedule"]
_ABSENT = "not trained"


def gain(records: Records, *, mode: str, schedules: Sequence[str]) -> Measurement | NotTested:
    """Accuracy of a mode of Cooling minus that without, schedules being tasks."""
    rows = _standard(records, TABLE_1)
    rows = rows[rows["schedule"].isin(schedules)]
    run = rows["schedule"].nunique()
    some = f"{run} of {len(schedules)} schedules" if 0 < run < len(schedules) else ""
    where = f"with schedule {' or '.join(SCHEDULES[name] for name in schedules)}"
    tasks = {mode: _differences(rows, mode, NO_COOLING)}
    note = joined(some, _last_epoch(rows, mode))
    return _found(
        rows, tasks, "accuracy", mode, NO_COOLING, otherwise=_no_pair(records, mode, NO_COOLING, where), note=note
    )


def on_every_schedule(records: Records, *, mode: str) -> Measurement | NotTested:
    """The same, each schedule by itself."""
    rows = _standard(records, TABLE_1)
    tasks = {
        name: _differences(rows[rows["schedule"] == schedule], mode, NO_COOLING) for schedule, name in SCHEDULES.items()
    }
    otherwise = _no_pair(records, mode, NO_COOLING, "with one schedule")
    return _found(rows, tasks, "accuracy", mode, NO_COOLING, otherwise=otherwise)


def calibration(records: Records) -> Measurement | NotTested:
    """Test ECE of each mode minus that without Cooling, mean over the last ten epochs."""
    rows = finished(_standard(records, TABLE_1, TABLE_2))
    tasks = {MODES[mode]: _differences(rows, mode, NO_COOLING, "ece") for mode in COOLED}
    tasks = {name: some for name, some in tasks.items() if some}
    return _found(rows, tasks, "ECE", *MODES, otherwise=_no_pair(records, SIMPLEST, NO_COOLING, "with one schedule"))


def against_every_schedule(records: Records) -> Measurement | NotTested:
    """Accuracy of last layer Cooling without a schedule minus that without Cooling, with each schedule."""
    rows = _standard(records, TABLE_1)
    cooled = rows[(rows["schedule"] == NO_SCHEDULE) & (rows["mode"] == SIMPLEST)]
    tasks = {}
    for schedule, name in SCHEDULES.items():
        reference = rows[(rows["schedule"] == schedule) & (rows["mode"] == NO_COOLING)]
        if schedule != NO_SCHEDULE:
            both = pd.concat([cooled.assign(schedule=schedule), reference])
            tasks[f"against {name}"] = _differences(both, SIMPLEST, NO_COOLING)
    nothing = f"no experiment trains {MODES[SIMPLEST]} without a schedule and {MODES[NO_COOLING]} with one"
    return _found(rows, tasks, "accuracy", SIMPLEST, NO_COOLING, otherwise=nothing)


def against_modes(
    records: Records, *, mode: str, others: Sequence[str], roles: Sequence[str]
) -> Measurement | NotTested:
    """Accuracy of a mode minus that of each other."""
    rows = _standard(records, *roles)
    # One that was never redistributed is last layer Cooling: equal numbers would pass for an effect of 0.
    rows = rows[~never_redistributed(records, rows)]
    tasks = {f"{MODES[mode]} against {MODES[other]}": _differences(rows, mode, other) for other in others}
    otherwise = _no_pair(records, mode, others[0], "with one schedule")
    return _found(rows, tasks, "accuracy", *COOLED, otherwise=otherwise, absent="no pair that differs")


def over_distributed(records: Records) -> Measurement | NotTested:
    """Accuracy without a schedule of last layer and of periodically redistributed Cooling minus distributed."""
    rows = _standard(records, TABLE_2, TABLE_1)
    rows = rows[rows["schedule"] == NO_SCHEDULE]
    tasks = {MODES[mode]: _differences(rows, mode, "distributed") for mode in (SIMPLEST, PERIODIC)}
    return _found(
        rows, tasks, "accuracy", *COOLED, otherwise=_no_pair(records, SIMPLEST, "distributed", "without a schedule")
    )


def every_factor(records: Records) -> Measurement | NotTested:
    """Accuracy of last layer Cooling with each factor up to 1 minus that without Cooling."""
    rows = figure_1_trainings(records)
    rows = rows[(rows["mode"] == NO_COOLING) | (rows["factor"] <= 1)]
    rows = rows.assign(accuracy=guessing(rows))
    factors = {
        f"{factor:g}": rows[(rows["mode"] == NO_COOLING) | (rows["factor"] == factor)]
        for factor in sorted(rows["factor"].dropna().unique())
    }
    tasks = {name: _differences(some, SIMPLEST, NO_COOLING) for name, some in factors.items()}
    tasks = {name: some for name, some in tasks.items() if some}
    nothing = "no experiment of this profile varies the Cooling factor below 1"
    return _found(rows, tasks, "accuracy, factor", SIMPLEST, NO_COOLING, otherwise=nothing)


def large_factors(records: Records) -> Measurement | NotTested:
    """The share of seeds all of whose trainings with a factor above 1 diverge; a stuck one did not."""
    rows = last_layer_factors(trainings(records, FIGURE_1, TABLE_1))
    rows = rows[(rows["schedule"] == NO_SCHEDULE) & (rows["factor"] > 1)]
    if rows.empty:
        return _untested("no experiment of this profile has a Cooling factor above 1")
    parts = {str(dataset): _share(some, some[DIVERGED]) for dataset, some in rows.groupby("dataset")}
    at_bound = rows[RUN].merge(records.temperatures, on=RUN)["at_bound"]
    count = f"{int(at_bound.sum())} of {len(at_bound)} times" if at_bound.any() else ""
    note = joined(
        lost_by_mode(rows, SIMPLEST), count and f"Cooling did nothing, for want of a best temperature, {count}"
    )
    return Measurement(parts, "of the seeds diverged", note, cells=cells_of_trainings(rows))


def crelu(records: Records, *, modes: Sequence[str], trains: bool) -> Measurement | NotTested:
    """The share of seeds whose network with CReLU trains, or diverges. A stuck one does neither."""
    rows = _standard(records, TABLE_2)
    rows = rows[(rows["activation"] == "crelu") & (rows["schedule"] == NO_SCHEDULE) & rows["mode"].isin(modes)]
    if rows.empty:
        names = ", ".join(MODES[mode] for mode in modes)
        return _untested(f"no experiment of this profile trains a network with CReLU: {names}")
    hits = ~is_lost(rows) if trains else rows[DIVERGED]
    parts = {MODES[str(mode)]: _share(some, hits[some.index]) for mode, some in rows.groupby("mode", sort=False)}
    unit = "of the seeds trained" if trains else "of the seeds diverged"
    return Measurement(parts, unit, lost_by_mode(rows, *modes), cells=cells_of_trainings(rows))


def heating(records: Records) -> Measurement | NotTested:
    """Epoch in which the temperature exceeds its maximum, with factor 1 minus with the slow one."""
    found = crossings(records)
    hot = found[found["limit"] > 1]  # Below 1 a larger factor makes temperatures lower.
    if hot.empty:
        return _untested("no experiment of this profile redistributes temperatures above 1")
    pairs = crossing_pairs(hot)
    if pairs.empty:
        either = f"{MODES[PERIODIC]} with factor 1 or {MODES[SIMPLEST]} with factor {SLOW_FACTOR:g}"
        return _untested(f"no seed of this profile tells which exceeds the maximal temperature first: {either}")
    tasks = _tasks(pairs["difference"].rename("value").reset_index().assign(schedule=NO_SCHEDULE))
    counts = pairs["never"].value_counts()
    late = [f"{MODES[mode]} {counts[mode]} of {len(pairs)}" for mode in (PERIODIC, SIMPLEST) if mode in counts]
    note = f"never exceeded, the epoch after the last counted: {', '.join(late)}" if late else ""
    return Measurement({"epochs": OverTasks(tasks)}, "epochs", note, cells=cells_of_trainings(growth(records)))


def segmentation(records: Records, *, metric: str) -> Measurement | NotTested:
    """A U-Net with last layer Cooling minus one without."""
    rows = final_segmentation(records)
    guess = 0 if metric == "mean_iou" else 1 / rows["classes"]
    rows = rows.assign(score=rows[metric].where(~is_lost(rows), guess), mode=rows["arm"])
    pairs = rows.pivot(index="seed", columns="arm", values="score").reindex(columns=[SIMPLEST, NO_COOLING]).dropna()
    if pairs.empty:
        return _untested("no U-Net of this profile was trained with and without Cooling and the same seed", "paper")
    dataset = str(rows["dataset"].iloc[0])
    values = tuple((pairs[SIMPLEST] - pairs[NO_COOLING]).tolist())
    note = guessing_note(rows, SIMPLEST, NO_COOLING, counted="0" if metric == "mean_iou" else "guessing")
    part = OverTasks((Task(dataset, values, is_own(dataset)),))
    return Measurement({metric: part}, _UNITS[metric], note, cells=cells_of(SEGMENTATION, rows, "arm"))


def cost(records: Records) -> Measurement | NotTested:
    """Seconds of a Cooling over those of an epoch, on each device; the modes are measured one after the other."""
    rows = records.cost
    if rows.empty:
        return NotTested("`make bench` measures it, and has not: see benchmarks/results.json")
    parts = {
        str(device): OverTasks((Task(str(device), tuple(some["share"].tolist())),), each="modes")
        for device, some in rows.groupby("device", sort=False)
    }
    return Measurement(parts, "of an epoch", "measured by `make bench`, whatever the profile")


def is_own(dataset: str) -> bool:
    """Whether the paper has a data set, or one that this is a part of."""
    return dataset.partition("-")[0] in DATA


def _comparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Without periodic arms that redistribute temperatures below 1, the opposite of the paper's regime."""
    return rows[(rows["mode"] != PERIODIC) | ~(rows["max_temperature"].astype(float) <= 1)]


def _standard(records: Records, *roles: str) -> pd.DataFrame:
    """The trainings that are judged; a lost one has the accuracy of guessing."""
    rows = standard(_comparable(trainings(records, *roles)))
    return rows.assign(accuracy=guessing(rows))


def _differences(rows: pd.DataFrame, mode: str, reference: str, column: str = "accuracy") -> tuple[Task, ...]:
    """One mode minus another, paired by task and seed."""
    table = rows.pivot(index=[*_PLACE, "seed"], columns="mode", values=column)
    pairs = table.reindex(columns=[mode, reference]).dropna()
    return _tasks((pairs[mode] - pairs[reference]).rename("value").reset_index())


def _tasks(rows: pd.DataFrame) -> tuple[Task, ...]:
    values = {
        f"{dataset}, {network}, {SCHEDULES[str(schedule)]}": some["value"].tolist()
        for (dataset, network, _, schedule), some in rows.groupby(_PLACE, sort=False)
    }
    return pooled(values, lambda name: is_own(name.partition(",")[0]))


def _last_epoch(rows: pd.DataFrame, mode: str) -> str:
    """The same after the last epoch alone."""
    last = rows.assign(last=guessing(rows, "test_accuracy"))
    means = [sum(task.values) / len(task.values) for task in _differences(last, mode, NO_COOLING, "last")]
    return f"last epoch alone {sum(means) / len(means):+.3f}" if means else ""


def _found(
    rows: pd.DataFrame,
    tasks: Mapping[str, tuple[Task, ...]],
    unit: str,
    *modes: str,
    otherwise: str,
    note: str = "",
    absent: str = _ABSENT,
) -> Measurement | NotTested:
    """The parts that have tasks, and why others have none; without any part, why nothing is tested."""
    parts = {name: OverTasks(some) for name, some in tasks.items() if some}
    if not parts:
        return _untested(otherwise)
    missing = {name: absent for name in tasks if name not in parts}
    cells = cells_of_trainings(rows[rows["mode"].isin(modes)])
    return Measurement(parts, unit, joined(note, guessing_note(rows, *modes)), missing, cells)


def _share(rows: pd.DataFrame, hits: pd.Series[bool]) -> Share:
    """Seeds that hit with all of their trainings: trainings of one seed start alike and count once."""
    seeds = hits.groupby(rows["seed"]).all()
    return Share(int(seeds.sum()), len(seeds), own=is_own(str(rows["dataset"].iloc[0])))


def _untested(reason: str, profile: str = "cooling_cifar10") -> NotTested:
    return NotTested(f"{reason}; profile {profile} would test it")


def _no_pair(records: Records, mode: str, reference: str, where: str) -> str:
    if mode == PERIODIC and (records.arms["max_temperature"].astype(float) <= 1).any():
        return f"not comparable: {MODES[mode]} here means temperatures below 1, the opposite of the paper's"
    return f"no experiment of this profile trains {MODES[mode]} and {MODES[reference]} {where} and one seed"
