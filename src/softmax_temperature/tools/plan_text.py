"""A plan as a person reads it, and its sums."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.cost.forecast import MACHINES

if TYPE_CHECKING:
    from softmax_temperature.params import Params
    from softmax_temperature.tools.plan import StagePlan

NOTES_SHOWN = 5


def totals(plans: Sequence[StagePlan], params: Params) -> dict[str, Any]:
    """Sums over the stages; what is not known is counted beside what is.

    Returns:
        `stages`, `cells`, `finished`, `to_run`.
        `cell_minutes`, the known ones, and `minutes`, with so many `workers` at a time.
        `foretold_minutes`, from shapes, by the number of GPUs (or cores) that share the cells of a stage, stage after
        stage; `foretold_cells`, those that these are of; `gpu_gigabytes`, the most that a cell needs.
        `megabytes`, the known ones, and `free_megabytes` on this disk.
        `cells_unknown`, `minutes_unknown` and `megabytes_unknown`: the stages that are missing in these sums.
    """
    cells, to_run = sum(plan.cells or 0 for plan in plans), sum(len(plan.to_run) for plan in plans)
    minutes = round(sum(plan.minutes or 0.0 for plan in plans), 1)
    workers = 1 if params.compute.engine == "serial" else params.compute.workers

    foretold = [plan.foretold for plan in plans if plan.foretold]
    memory = [plan.gpu_gigabytes for plan in plans if plan.gpu_gigabytes is not None]

    def without(attribute: str, among: Callable[[StagePlan], bool]) -> list[str]:
        return [plan.stage for plan in plans if getattr(plan, attribute) is None and among(plan)]

    return {
        "stages": len(plans),
        "cells": cells,
        "finished": cells - to_run,
        "to_run": to_run,
        "cell_minutes": minutes,
        "workers": workers,
        "minutes": round(minutes / workers, 1),
        "foretold_minutes": {count: round(sum(each[count] for each in foretold), 1) for count in MACHINES},
        "foretold_cells": sum(plan.foretold_cells for plan in plans),
        "gpu_gigabytes": max(memory, default=None),
        "megabytes": round(sum(plan.megabytes or 0.0 for plan in plans), 1),
        "cells_unknown": without("cells", lambda plan: plan.minutes is None),
        "minutes_unknown": without("minutes", lambda plan: plan.cells is not None),
        "megabytes_unknown": without("megabytes", lambda plan: plan.cells is not None),
        "free_megabytes": round(shutil.disk_usage(Path()).free / 1e6),
    }


def as_json(plans: Sequence[StagePlan], params: Params) -> dict[str, Any]:
    """The plan as plain values."""
    return {"profile": params.profile, "stages": [asdict(plan) for plan in plans], "total": totals(plans, params)}


def summary(plans: Sequence[StagePlan], params: Params) -> str:
    """A line a stage, and the sums."""
    width = max(len(plan.stage) for plan in plans)
    lines = [f"{'stage':<{width}}{'cells':>8}{'finished':>10}{'to run':>8}{'minutes':>9}{'MB':>9}"]
    lines += [_line(plan, width) for plan in plans]
    total = totals(plans, params)
    record = f"results/{params.profile}/environment.json"
    lines.append(f"\nProfile {params.profile}: {total['to_run']:,} of {total['cells']:,} cells have to run.")
    lines.append(f"About {total['cell_minutes']:,} minutes of cells, as {record} recorded them or shapes foretell:")
    lines.append(f"{total['minutes']:,} with {total['workers']} at a time.")
    lines.append(f"About {total['megabytes']:,} MB to write, by cells that stand or by shapes;")
    lines.append(f"{total['free_megabytes']:,} MB free.")
    lines += _foretold(total)
    for what in ("cells", "minutes", "megabytes"):
        if stages := total[f"{what}_unknown"]:
            some = ", ".join(stages[:NOTES_SHOWN]) + (", …" if len(stages) > NOTES_SHOWN else "")
            lines.append(f"Not known: {what} of {len(stages)} stages ({some}).")
    return "\n".join(lines)


def _foretold(total: dict[str, Any]) -> list[str]:
    """What shapes say of several machines; nothing where all is done or no stage is modelled."""
    if not any(total["foretold_minutes"].values()):
        return []
    shared = ", ".join(f"{minutes:,} on {count}" for count, minutes in total["foretold_minutes"].items())
    cells = f"{total['foretold_cells']:,} of these cells, by shapes alone"
    lines = [f"Minutes of {cells}, by the number of GPUs (of cores, without any): {shared}."]
    if total["gpu_gigabytes"] is not None:
        lines.append(f"A cell needs {total['gpu_gigabytes']:,} GB of a GPU at most.")
    return lines


def _line(plan: StagePlan, width: int) -> str:
    if plan.cells is None:
        return f"{plan.stage:<{width}}   {plan.note}"
    minutes, megabytes = ("?" if value is None else f"{value:,.1f}" for value in (plan.minutes, plan.megabytes))
    finished = plan.cells - len(plan.to_run)
    return f"{plan.stage:<{width}}{plan.cells:>8}{finished:>10}{len(plan.to_run):>8}{minutes:>9}{megabytes:>9}"
