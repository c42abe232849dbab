"""The cost of a Cooling, as the benchmark measured it: times do not belong to the records of trainings."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from softmax_temperature.papers.cooling.selection import COOLED

BENCHMARKS = Path("benchmarks/results.json")


def cost_of_cooling(path: Path = BENCHMARKS) -> pd.DataFrame:
    """The table `cost` of `Records`, from the file that `make bench` writes; empty where nothing was measured."""
    devices = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    steps = {device: found["results"].get("cooling_step") for device, found in devices.items()}
    rows = [
        {
            "device": device,
            "mode": mode,
            "seconds": step[f"{mode}_seconds"],
            "epoch_seconds": step["epoch_seconds"],
            "share": step[f"{mode}_share"],
            "rounds": step["rounds"],
            "size": step["size"],
        }
        for device, step in steps.items()
        if step
        for mode in COOLED
    ]
    return pd.DataFrame(rows, columns=["device", "mode", "seconds", "epoch_seconds", "share", "rounds", "size"])
