"""How a stage's cells scale on Ray: one and two workers against one process, in which they run one after the other.

Eight trainings of a small network, as the stage train-cooling runs them; a round times all three ways. Ray and its
worker processes have been started before, which is timed apart: it happens once a stage, whatever the stage takes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
import warnings
from contextlib import chdir
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from softmax_temperature.params import Params, validate
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.stages import fetch, train_cooling
from softmax_temperature.tools.profiles import render_profile

PROFILES = Path(__file__).resolve().parents[1] / "profiles"
CELLS, EPOCHS, ROUNDS = 8, 60, 3
QUICK = (2, 2, 1)
WAYS = {"serial": ("serial", 1), "one_worker": ("ray", 1), "two_workers": ("ray", 2)}


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Time the ways in turn.

    Args:
        quick: few short cells, one round.

    Returns:
        name, size, rounds; `start_seconds` of Ray with its worker processes; seconds of each way; the efficiencies
        `one_worker_efficiency` and `two_workers_efficiency`, the serial seconds over those of all workers together;
        and whether all ways left the same bytes.
    """
    import ray

    cells, epochs, rounds = QUICK if quick else (CELLS, EPOCHS, ROUNDS)
    params = _params(cells, epochs)
    with TemporaryDirectory() as folder, chdir(folder):
        run_cells(fetch.cells(params, "digits"), output=fetch.OUTPUT / "digits", compute=params.compute, seed=0)
        start = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):  # Ray's own.
            ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        _run(_params(2, 1), *WAYS["two_workers"])
        started = time.perf_counter() - start
        taken: list[dict[str, float]] = []
        left: set[tuple[tuple[str, bytes], ...]] = set()
        try:
            for _ in range(rounds):
                taken.append({})
                for name, way in WAYS.items():
                    taken[-1][name] = _run(params, *way)
                    left.add(
                        tuple(sorted((str(path), path.read_bytes()) for path in Path("data").rglob("manifest.json")))
                    )
        finally:
            ray.shutdown()
    return {
        "name": "Cells on Ray",
        "size": f"{cells} trainings of {epochs} epochs",
        "rounds": rounds,
        "start_seconds": started,
        **{f"{name}_seconds": median(each[name] for each in taken) for name in WAYS},
        "one_worker_efficiency": median(each["serial"] / each["one_worker"] for each in taken),
        "two_workers_efficiency": median(each["serial"] / each["two_workers"] / 2 for each in taken),
        "equal_bytes": len(left) == 1,
    }


def _params(seeds: int, epochs: int) -> Params:
    """Profile smoke, cut down to trainings that differ by their seed."""
    _, smoke = render_profile("smoke", PROFILES)
    content = smoke.model_dump()
    content["compute"] |= {"device": "cpu", "threads_per_cell": 1, "checkpoint_seconds": 60}
    paper = content["cooling"]
    paper["recipe"] |= {"epochs": epochs, "lr": 0.01}
    few = {"schedules": ["none"], "arms": ["none"], "seeds": seeds}
    paper["experiments"] = {"digits-vgg": paper["experiments"]["digits-vgg"] | few}
    return validate(content, where="benchmark")


def _run(params: Params, engine: str, workers: int) -> float:
    """Seconds of all cells from nothing."""
    for folder in (train_cooling.OUTPUT, Path("data/work/cooling")):
        shutil.rmtree(folder, ignore_errors=True)
    compute = params.compute.model_copy(update={"engine": engine, "workers": workers})
    start = time.perf_counter()
    run_cells(train_cooling.cells(params), output=train_cooling.OUTPUT, compute=compute, seed=0)
    return time.perf_counter() - start


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--quick", action="store_true", help="few short cells")
    print(json.dumps(measure(quick=reader.parse_args().quick), indent=1))
