"""What the claims of the paper are judged by: values by task and seed, from the records.

Only the recipe of the tables and figures counts, not the ablation. The accuracy of a training is the mean over its last
ten epochs: that of the last epoch alone is twice as noisy. A lost training counts as guessing, and the note says so. A
task is a data set with a network and a schedule; trainings are paired by task and seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from softmax_temperature.papers.cooling import growth, selection
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import COOLED, LAST, MODES, NO_COOLING, PERIODIC, SCHEDULES, paired
from softmax_temperature.papers.shared.claims import Measurement, NotTested
from softmax_temperature.papers.shared.statistics import OverTasks, Share, Task, pooled

# Deviation: CamVid stands in for ADE20K, on which no study here can train; the paper segments nothing else.
DATA = ("cifar10", "cifar100", "ade20k", "camvid")
"""The paper's data sets; parts of them, as "cifar10-10000", count as the paper's too."""

Found = Measurement | NotTested


def gain(records: Records, *, mode: str, schedules: Sequence[str]) -> Found:
    """Accuracy of a mode of Cooling minus that without, schedules being tasks."""
    rows = _standard(records, "table_1")
    rows = rows[rows["schedule"].isin(schedules)]
    run = rows["schedule"].nunique()
    some = f"{run} of {len(schedules)} schedules" if 0 < run < len(schedules) else ""
    last = [sum(task.values) / len(task.values) for task in _tasks(paired(rows, mode, value="judged_last"))]
    alone = f"last epoch alone {sum(last) / len(last):+.3f}" if last else ""
    nothing = _no_pair(records, mode, f"with schedule {' or '.join(SCHEDULES[name] for name in schedules)}")
    return _differences(
        rows, {mode: paired(rows, mode)}, (mode, NO_COOLING), nothing, note=selection.joined(some, alone)
    )


def on_every_schedule(records: Records, *, mode: str) -> Found:
    """The same, each schedule by itself."""
    rows = _standard(records, "table_1")
    parts = {name: paired(rows[rows["schedule"] == schedule], mode) for schedule, name in SCHEDULES.items()}
    return _differences(rows, parts, (mode, NO_COOLING), _no_pair(records, mode))


def calibration(records: Records) -> Found:
    """Test ECE of each mode minus that without Cooling, mean over the last ten epochs."""
    rows = selection.finished(_standard(records, "table_1", "table_2"))
    parts = {MODES[mode]: paired(rows, mode, value="ece") for mode in COOLED}
    return _differences(rows, parts, tuple(MODES), _no_pair(records, LAST), unit="ECE", absent="")


def against_every_schedule(records: Records) -> Found:
    """Accuracy of last layer Cooling without a schedule minus that without Cooling, with each schedule."""
    rows = _standard(records, "table_1")
    cooled = rows[(rows["schedule"] == selection.NO_SCHEDULE) & (rows["mode"] == LAST)]
    parts = {}
    for schedule, name in SCHEDULES.items():
        if schedule != selection.NO_SCHEDULE:
            reference = rows[(rows["schedule"] == schedule) & (rows["mode"] == NO_COOLING)]
            parts[f"against {name}"] = paired(pd.concat([cooled.assign(schedule=schedule), reference]), LAST)
    nothing = f"no experiment trains {MODES[LAST]} without a schedule and {MODES[NO_COOLING]} with one"
    return _differences(rows, parts, (LAST, NO_COOLING), nothing)


def against_modes(records: Records) -> Found:
    """Accuracy of last layer Cooling minus that of each other mode."""
    rows = _standard(records, *selection.MAIN_ROLES)
    # One that was never redistributed is last layer Cooling: equal numbers would pass for an effect of 0.
    rows = rows[~growth.never_redistributed(records, rows)]
    parts = {f"{MODES[LAST]} against {MODES[other]}": paired(rows, LAST, other) for other in COOLED if other != LAST}
    nothing = _no_pair(records, LAST, reference="distributed")
    return _differences(rows, parts, COOLED, nothing, absent="no pair that differs")


def over_distributed(records: Records) -> Found:
    """Accuracy without a schedule of last layer and of periodically redistributed Cooling minus distributed."""
    rows = _standard(records, "table_2", "table_1")
    rows = rows[rows["schedule"] == selection.NO_SCHEDULE]
    parts = {MODES[mode]: paired(rows, mode, "distributed") for mode in (LAST, PERIODIC)}
    nothing = _no_pair(records, LAST, "without a schedule", reference="distributed")
    return _differences(rows, parts, COOLED, nothing)


def every_factor(records: Records) -> Found:
    """Accuracy of last layer Cooling with each factor up to 1 minus that without Cooling."""
    rows = selection.figure_1_trainings(records)
    rows = rows[(rows["mode"] == NO_COOLING) | (rows["factor"] <= 1)]
    parts = {f"{factor:g}": paired(some, LAST) for factor, some in selection.by_factor(rows).items()}
    nothing = "no experiment of this profile varies the Cooling factor below 1"
    return _differences(rows, parts, (LAST, NO_COOLING), nothing, unit="accuracy, factor", absent="")


def large_factors(records: Records) -> Found:
    """The share of seeds all of whose trainings with a factor above 1 diverge; a stuck one did not."""
    rows = selection.last_layer_factors(selection.trainings(records, "figure_1", "table_1"))
    rows = rows[(rows["schedule"] == selection.NO_SCHEDULE) & (rows["factor"] > 1)]
    if rows.empty:
        return _untested("no experiment of this profile has a Cooling factor above 1")
    at_bound = rows[selection.RUN].merge(records.temperatures)["at_bound"]
    count = f"{int(at_bound.sum())} of {len(at_bound)} times" if at_bound.any() else ""
    note = count and f"Cooling did nothing, for want of a best temperature, {count}"
    parts = {str(dataset): _share(some, "diverged") for dataset, some in rows.groupby("dataset")}
    note = selection.joined(selection.lost_by_mode(rows, LAST), note)
    return Measurement(parts, "of the seeds diverged", note, cells=_cells(rows))


def crelu(records: Records, *, modes: Sequence[str], became: str) -> Found:
    """The share of seeds whose network with CReLU "trained" or "diverged". A stuck one did neither."""
    rows = _standard(records, "table_2")
    rows = rows[(rows["activation"] == "crelu") & (rows["schedule"] == "none") & rows["mode"].isin(modes)]
    if rows.empty:
        names = ", ".join(MODES[mode] for mode in modes)
        return _untested(f"no experiment of this profile trains a network with CReLU: {names}")
    rows = rows.assign(trained=~rows["lost"])
    parts = {MODES[str(mode)]: _share(some, became) for mode, some in rows.groupby("mode", sort=False)}
    return Measurement(parts, f"of the seeds {became}", selection.lost_by_mode(rows, *modes), cells=_cells(rows))


def heating(records: Records) -> Found:
    """Epoch in which the temperature exceeds its maximum, with factor 1 minus with the slow one."""
    found = growth.crossings(records)
    hot = found[found["limit"] > 1]  # Below 1 a larger factor makes temperatures lower.
    if hot.empty:
        return _untested("no experiment of this profile redistributes temperatures above 1")
    pairs = growth.crossing_pairs(hot)
    if pairs.empty:
        either = f"{MODES[PERIODIC]} with factor 1 or {MODES[LAST]} with factor {growth.SLOW_FACTOR:g}"
        return _untested(f"no seed of this profile tells which exceeds the maximal temperature first: {either}")
    counts = pairs["never"].value_counts()
    late = [f"{MODES[mode]} {counts[mode]} of {len(pairs)}" for mode in (PERIODIC, LAST) if mode in counts]
    note = f"never exceeded, the epoch after the last counted: {', '.join(late)}" if late else ""
    tasks = _tasks(pairs.reset_index().assign(schedule=selection.NO_SCHEDULE))
    return Measurement({"epochs": OverTasks(tasks)}, "epochs", note, cells=_cells(growth.growth(records)))


def segmentation(records: Records, *, metric: str, unit: str) -> Found:
    """A U-Net with last layer Cooling minus one without."""
    rows = selection.final_segmentation(records)
    guess, counted = (0, "0") if metric == "mean_iou" else (1 / rows["classes"], "guessing")
    rows = rows.assign(judged=rows[metric].mask(rows["lost"], guess))
    tasks = _tasks(paired(rows, LAST, by=["dataset"]), ["dataset"])
    if not tasks:
        return _untested("no U-Net of this profile was trained with and without Cooling and the same seed", "paper")
    note = selection.lost_by_mode(rows, LAST, NO_COOLING, counted=counted)
    return Measurement({metric: OverTasks(tasks)}, unit, note, cells=_cells(rows))


def cost(records: Records) -> Found:
    """Seconds of a Cooling over those of an epoch, on each device; the modes are measured one after the other."""
    if records.cost.empty:
        return NotTested("`make bench` measures it, and has not: see benchmarks/results.json")
    parts = {
        str(device): OverTasks((Task(str(device), tuple(shares)),), each="modes")
        for device, shares in records.cost.groupby("device", sort=False)["share"]
    }
    return Measurement(parts, "of an epoch", "measured by `make bench`, whatever the profile")


def _standard(records: Records, *roles: str) -> pd.DataFrame:
    """The trainings of the tables, but none that redistributes temperatures below 1, against the paper's regime."""
    rows = selection.trainings(records, *roles)
    return selection.standard(rows[(rows["mode"] != PERIODIC) | ~(rows["max_temperature"].astype(float) <= 1)])


def _differences(
    rows: pd.DataFrame,
    parts: Mapping[str, pd.DataFrame],
    modes: Sequence[str],
    nothing: str,
    *,
    unit: str = "accuracy",
    note: str = "",
    absent: str = "not trained",
) -> Found:
    """The parts that have pairs, and why others have none, if that is said; without any, why nothing is tested."""
    found = {name: OverTasks(_tasks(pairs)) for name, pairs in parts.items() if len(pairs)}
    if not found:
        return _untested(nothing)
    missing = {name: absent for name in parts if absent and name not in found}
    note = selection.joined(note, selection.lost_by_mode(rows, *modes, counted="guessing"))
    return Measurement(found, unit, note, missing, _cells(rows[rows["mode"].isin(modes)]))


def _tasks(pairs: pd.DataFrame, by: list[str] = selection.TASK) -> tuple[Task, ...]:
    named = pairs.replace({"schedule": SCHEDULES}) if "schedule" in pairs else pairs
    values = {", ".join(map(str, key)): some.tolist() for key, some in named.groupby(by, sort=False)["difference"]}
    return pooled(values, lambda name: _is_own(name.partition(",")[0]))


def _is_own(dataset: str) -> bool:
    return dataset.partition("-")[0] in DATA


def _share(rows: pd.DataFrame, became: str) -> Share:
    """Of the seeds, those all of whose trainings hit: trainings of one seed start alike and count once."""
    seeds = rows.groupby("seed")[became].all()
    return Share(int(seeds.sum()), len(seeds), own=_is_own(str(rows["dataset"].iloc[0])))


def _cells(rows: pd.DataFrame) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rows["cells"]))


def _untested(reason: str, profile: str = "cooling_cifar10") -> NotTested:
    return NotTested(f"{reason}; profile {profile} would test it")


def _no_pair(records: Records, mode: str, where: str = "with one schedule", *, reference: str = NO_COOLING) -> str:
    if mode == PERIODIC and (records.arms["max_temperature"].astype(float) <= 1).any():
        return f"not comparable: {MODES[mode]} here means temperatures below 1, the opposite of the paper's"
    return f"no experiment of this profile trains {MODES[mode]} and {MODES[reference]} {where} and one seed"
