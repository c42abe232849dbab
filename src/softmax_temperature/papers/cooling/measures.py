"""What the claims of the paper are judged by: values by task and seed; a lost training
counts as guessing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from softmax_temperature.papers.cooling import selection
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import (
    COOLED,
    LAST,
    MODES,
    PERIODIC,
    SCHEDULES,
    paired,
)
from softmax_temperature.papers.shared.claims import Measurement, not_tested
from softmax_temperature.papers.shared.statistics import (
    OverTasks,
    Share,
    Task,
    is_part,
    pooled,
)
from softmax_temperature.params.cooling import NO_COOLING

# Deviation: CamVid stands in for ADE20K, on which no study here can train; the paper
# segments nothing else.
DATA = ("cifar10", "cifar100", "ade20k", "camvid")
_NOTHING = (
    "no experiment of this profile trains both sides of the comparison with one seed"
)
_COLD = f"not comparable: {MODES[PERIODIC]} here means temperatures below 1, the opposite of the paper's"


def gain(
    records: Records, *, mode: str, schedules: Sequence[str], each: bool = False
) -> Measurement:
    """Accuracy of a mode of Cooling minus that without, schedules being tasks, or each
    being judged by itself.
    """
    rows = _standard(records, "table_1").query("schedule in @schedules")
    pairs, count = paired(rows, mode), rows["schedule"].nunique()
    is_cold = (
        mode == PERIODIC and (records.arms["max_temperature"].astype(float) <= 1).any()
    )
    about: Any = {
        "modes": (mode, NO_COOLING),
        "nothing": _COLD if is_cold else _NOTHING,
    }
    if each:
        return _differences(
            rows,
            {SCHEDULES[name]: pairs[pairs["schedule"] == name] for name in schedules},
            **about,
        )
    found = _differences(rows, {mode: pairs}, **about)
    if pairs.empty:
        return found
    some = f"{count} of {len(schedules)} schedules" if count < len(schedules) else ""
    last = OverTasks(_tasks(paired(rows, mode, value="judged_last"))).estimate().value
    return replace(
        found,
        note="; ".join(filter(None, (some, "last epoch alone {}", found.note))),
        beside=(last,),
    )


def calibration(records: Records) -> Measurement:
    """Test ECE of each mode minus that without Cooling, mean over the last ten epochs."""
    rows = _standard(records, "table_1", "table_2").query("not lost")
    parts = {MODES[mode]: paired(rows, mode, value="ece") for mode in COOLED}
    return _differences(rows, parts, tuple(MODES), unit="ECE", absent="")


def against_every_schedule(records: Records) -> Measurement:
    """Accuracy of last layer Cooling without a schedule minus that without Cooling,
    with each schedule.
    """
    rows = _standard(records, "table_1")
    cooled = rows.query("mode == @LAST and schedule == 'none'")
    both = [
        rows[rows["mode"] == NO_COOLING],
        *(cooled.assign(schedule=name) for name in SCHEDULES),
    ]
    pairs = paired(pd.concat(both), LAST)
    parts = {
        f"against {name}": pairs[pairs["schedule"] == key]
        for key, name in SCHEDULES.items()
        if name != "None"
    }
    return _differences(rows, parts, (LAST, NO_COOLING))


def against_modes(records: Records) -> Measurement:
    """Accuracy of last layer Cooling minus that of each other mode."""
    # One that was never redistributed is last layer Cooling: equal numbers would pass
    # for an effect of 0.
    rows = _standard(records, *selection.MAIN_ROLES).query("not never")
    parts = {
        f"{MODES[LAST]} against {MODES[other]}": paired(rows, LAST, other)
        for other in COOLED
        if other != LAST
    }
    return _differences(rows, parts, COOLED, absent="no pair that differs")


def over_distributed(records: Records) -> Measurement:
    """Accuracy without a schedule of last layer and of periodically redistributed
    Cooling minus distributed.
    """
    rows = _standard(records, "table_2", "table_1").query("schedule == 'none'")
    return _differences(
        rows,
        {MODES[mode]: paired(rows, mode, "distributed") for mode in (LAST, PERIODIC)},
        COOLED,
    )


def every_factor(records: Records) -> Measurement:
    """Accuracy of last layer Cooling with each factor up to 1 minus that without
    Cooling.
    """
    rows = selection.figure_1_trainings(records).query("not factor > 1")
    parts = {
        f"{factor:g}": paired(some, LAST)
        for factor, some in selection.by_factor(rows).items()
    }
    nothing = "no experiment of this profile varies the Cooling factor below 1"
    return _differences(
        rows,
        parts,
        (LAST, NO_COOLING),
        unit="accuracy, factor",
        absent="",
        nothing=nothing,
    )


def large_factors(records: Records) -> Measurement:
    """The share of seeds all of whose trainings with a factor above 1 diverge; a stuck
    one did not.
    """
    rows = selection.standard(
        selection.trainings(records, "figure_1", "table_1"), any_factor=True
    )
    rows = rows.query("schedule == 'none' and factor > 1")
    at_bound = rows[selection.RUN].merge(records.temperatures)["at_bound"]
    idle = f"Cooling did nothing, for want of a best temperature, {at_bound.sum():.0f} of {len(at_bound)} times"
    nothing = "no experiment of this profile has a Cooling factor above 1"
    return _shares(
        rows, "dataset", (LAST,), "diverged", nothing, note=idle * bool(at_bound.any())
    )


def crelu(records: Records, *, modes: Sequence[str], became: str) -> Measurement:
    """The share of seeds whose network with CReLU "trained" or "diverged". A stuck one
    did neither.
    """
    rows = _standard(records, "table_2").query(
        "activation == 'crelu' and schedule == 'none' and mode in @modes"
    )
    nothing = f"no experiment of this profile trains a network with CReLU: {', '.join(MODES[mode] for mode in modes)}"
    return _shares(rows.assign(trained=~rows["lost"]), "mode", modes, became, nothing)


def heating(records: Records) -> Measurement:
    """Epoch in which the temperature exceeds its maximum, with factor 1 minus with the
    slow one.
    """
    found = selection.crossings(records)
    hot = found[found["limit"] > 1]  # Below 1 a larger factor makes temperatures lower.
    if hot.empty:
        return _untested(
            "no experiment of this profile redistributes temperatures above 1"
        )
    pairs = selection.crossing_pairs(hot)
    if pairs.empty:
        either = f"{MODES[PERIODIC]} with factor 1 or {MODES[LAST]} with factor {selection.SLOW_FACTOR:g}"
        return _untested(
            f"no seed of this profile tells which exceeds the maximal temperature first: {either}"
        )
    counts = pairs["never"].value_counts()
    late = [
        f"{MODES[mode]} {counts[mode]} of {len(pairs)}"
        for mode in (PERIODIC, LAST)
        if mode in counts
    ]
    note = (
        f"never exceeded, the epoch after the last counted: {', '.join(late)}"
        if late
        else ""
    )
    tasks = _tasks(pairs.reset_index().assign(schedule=selection.NO_SCHEDULE))
    return Measurement(
        {"epochs": OverTasks(tasks)},
        "epochs",
        note,
        cells=tuple(found["cells"].unique()),
    )


def segmentation(records: Records, *, metric: str) -> Measurement:
    """A U-Net with last layer Cooling minus one without."""
    rows = selection.final_segmentation(records)
    guess, counted = (
        (0, "0") if metric == "mean_iou" else (1 / rows["classes"], "guessing")
    )
    rows = rows.assign(judged=rows[metric].mask(rows["lost"], guess))
    tasks = _tasks(paired(rows, LAST, by=["dataset"]), ["dataset"])
    if not tasks:
        return _untested(
            "no U-Net of this profile was trained with and without Cooling and the same seed",
            "paper",
        )
    note, unit = (
        selection.lost_by_mode(rows, LAST, NO_COOLING, counted=counted),
        metric.replace("_", " "),
    )
    part, cells = OverTasks(tasks), tuple(rows["cells"].unique())
    return Measurement({metric: part}, unit.replace("iou", "IoU"), note, cells=cells)


def cost(records: Records) -> Measurement:
    """Seconds of a Cooling over those of an epoch, on each device; the modes are
    measured one after the other.
    """
    if records.cost.empty:
        return not_tested(
            "`make bench` measures it, and has not: see benchmarks/results.json"
        )
    shares = records.cost.groupby("device", sort=False)["share"]
    parts = {
        str(name): OverTasks((Task(str(name), tuple(some)),), each="modes")
        for name, some in shares
    }
    return Measurement(
        parts, "of an epoch", "measured by `make bench`, whatever the profile"
    )


def _standard(records: Records, *roles: str) -> pd.DataFrame:
    """The trainings of the tables, but none that redistributes temperatures below 1,
    against the paper's regime.
    """
    rows = selection.trainings(records, *roles)
    return selection.standard(
        rows[(rows["mode"] != PERIODIC) | ~(rows["max_temperature"].astype(float) <= 1)]
    )


def _differences(
    rows: pd.DataFrame,
    parts: Mapping[str, pd.DataFrame],
    modes: Sequence[str],
    *,
    unit: str = "accuracy",
    nothing: str = _NOTHING,
    absent: str = "not trained",
) -> Measurement:
    found = {
        name: OverTasks(_tasks(pairs)) for name, pairs in parts.items() if len(pairs)
    }
    if not found:
        return _untested(nothing)
    missing = {name: absent for name in parts if absent and name not in found}
    note = selection.lost_by_mode(rows, *modes, counted="guessing")
    return Measurement(
        found,
        unit,
        note,
        missing,
        tuple(rows.loc[rows["mode"].isin(modes), "cells"].unique()),
    )


def _tasks(pairs: pd.DataFrame, by: list[str] = selection.TASK) -> tuple[Task, ...]:
    named = pairs.replace({"schedule": SCHEDULES})
    values = {
        ", ".join(map(str, key)): some.tolist()
        for key, some in named.groupby(by, sort=False)["difference"]
    }
    return pooled(values, lambda name: is_part(name.partition(",")[0], DATA))


def _shares(
    rows: pd.DataFrame,
    by: str,
    modes: Sequence[str],
    became: str,
    nothing: str,
    note: str = "",
) -> Measurement:
    parts = {}
    for name, some in rows.groupby(by, sort=False):
        seeds, own = (
            some.groupby("seed")[became].all(),
            is_part(some["dataset"].iloc[0], DATA),
        )
        parts[MODES.get(str(name), str(name))] = Share(
            int(seeds.sum()), len(seeds), own=own
        )
    if not parts:
        return _untested(nothing)
    note = "; ".join(filter(None, (selection.lost_by_mode(rows, *modes), note)))
    return Measurement(
        parts, f"of the seeds {became}", note, cells=tuple(rows["cells"].unique())
    )


def _untested(reason: str, profile: str = "cooling_cifar10") -> Measurement:
    return not_tested(f"{reason}; profile {profile} would test it")
