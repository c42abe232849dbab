"""What a Cooling costs, as the benchmark measured it: times are no results of a training, and its record has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter

from softmax_temperature.papers.cooling.selection import COOLED
from softmax_temperature.runner.reading import Form, read_json

BENCHMARKS = Path("benchmarks/results.json")
_COLUMNS = ["device", "mode", "seconds", "epoch_seconds", "share", "rounds", "size"]


class _Step(Form):
    """What `benchmarks.cooling_step` returns."""

    last_layer_seconds: float
    distributed_seconds: float
    periodic_seconds: float
    last_layer_share: float
    distributed_share: float
    periodic_share: float
    epoch_seconds: float
    rounds: int
    size: str


class _Results(Form):
    cooling_step: _Step | None = None


class _Device(Form):
    results: _Results


_DEVICES = TypeAdapter(dict[str, _Device])


def cost_of_cooling(path: Path = BENCHMARKS) -> pd.DataFrame:
    """The table `cost` of `Records`; empty where nothing was measured.

    Raises:
        InputError: the file is not as `make bench` writes it.
    """
    measured = read_json(path, _DEVICES, remedy="Take it from Git, or run `make bench`.") if path.is_file() else {}
    steps = {device: found["results"].get("cooling_step") for device, found in measured.items()}
    rows = [_row(device, mode, step) for device, step in steps.items() if step for mode in COOLED]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _row(device: str, mode: str, step: dict[str, Any]) -> dict[str, Any]:
    of_all = {name: step[name] for name in ("epoch_seconds", "rounds", "size")}
    return {
        "device": device,
        "mode": mode,
        "seconds": step[f"{mode}_seconds"],
        "share": step[f"{mode}_share"],
        **of_all,
    }
