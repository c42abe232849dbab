"""What the cells of a stage that have to run will take, on one machine and on several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from softmax_temperature.cost.cells import cell_cost
from softmax_temperature.cost.rates import seconds, spread
from softmax_temperature.runner.cells import TIMING, read_timing
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from softmax_temperature.cost.cells import CellCost
    from softmax_temperature.cost.rates import Device
    from softmax_temperature.params import Params
    from softmax_temperature.runner.cells import Cell

MACHINES = (1, 8, 64)


@dataclass(frozen=True)
class Forecast:
    """What shapes say of the cells of a stage that have to run; None where they do not tell.

    Attributes:
        minutes: by the number of GPUs (or cores, without one) that share the cells.
        timed: the cells that these minutes are of; texts and data sets of unknown size are left out.
        megabytes: that all cells write; a data set of unknown size counts as an average one.
        gpu_gigabytes: the most that one needs at a time.
    """

    minutes: Mapping[int, float] | None = None
    timed: int = 0
    megabytes: float | None = None
    gpu_gigabytes: float | None = None


def forecast(stage: str, cells: Sequence[Cell], standing: Mapping[str, Path], params: Params) -> Forecast:
    """Foretell a stage.

    Args:
        stage: its module below `softmax_temperature.stages`.
        cells: all of them.
        standing: results of those that have not to run, by name; what these took scales the others' minutes.
        params: all parameters.
    """
    if len(standing) == len(cells):
        return Forecast()
    costs = {cell.name: _cost(stage, cell, params) for cell in cells}
    ahead = [cost for name, cost in costs.items() if name not in standing]
    known = [cost for cost in ahead if cost is not None]
    if not known:
        return Forecast()
    slowness, device = _slowness(costs, standing, params), _device(params)
    durations = [slowness * each / 60 for cost in known if (each := seconds(cost, device)) is not None]
    memory = [cost.gpu_bytes for cost in known if cost.gpu_bytes is not None]
    return Forecast(
        {machines: round(spread(durations, machines), 4) for machines in MACHINES} if durations else None,
        len(durations),
        round(sum(cost.disk_bytes for cost in known) / len(known) * len(ahead) / 1e6, 4),
        round(max(memory) / 1e9, 2) if memory else None,
    )


def _cost(stage: str, cell: Cell, params: Params) -> CellCost | None:
    try:
        return cell_cost(stage, cell, params)
    except InputError:
        return None  # A network that cannot be built; the cell itself will say why.


def _slowness(costs: Mapping[str, CellCost | None], standing: Mapping[str, Path], params: Params) -> float:
    """What standing cells took, in units of what is foretold of them; 1 where there are none."""
    taken = foretold = 0.0
    for name, result in standing.items():
        timing, cost = read_timing(result.with_name(TIMING)), costs[name]
        expected = seconds(cost, _device(params)) if cost else None
        if expected and timing:
            taken += timing["seconds"]
            foretold += expected
    return taken / foretold if foretold else 1.0


def _device(params: Params) -> Device:
    import torch  # Not before it is needed: `--help` must not wait for it.

    if params.compute.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return params.compute.device
