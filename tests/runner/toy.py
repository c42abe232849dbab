"""Runs cells that take milliseconds: python -m tests.runner.toy ENGINE NUMBER..."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from softmax_temperature.runner import progress
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job, run_cells
from softmax_temperature.runner.section import Compute
from softmax_temperature.tools.programs import exit_code
from tests.serial import SERIAL

OUTPUT = Path("data/counts")
STEPS = 20
_kept: list[torch.Tensor] = []
progress.SECONDS_BETWEEN_LINES = (
    0.0  # Log every step, in workers too, because they import this module.
)


def count(job: Job, number: int) -> None:
    """Add a number `STEPS` times, with a checkpoint after each step.

    `steps.txt` logs the steps that ran. Files in the current folder request slow or
    failing cells: `slow` makes each step take 50 ms, `kill-N` kills the process in cell
    N, and `grow-N` keeps 400 MB in memory.
    """
    if Path(f"kill-{number}").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    if Path(f"grow-{number}").exists():
        _kept.append(torch.ones(100_000_000))
    checkpointer = job.checkpointer()
    state = checkpointer.load() or {"done": 0, "sum": torch.zeros(())}
    while state["done"] < STEPS:
        state = {"done": state["done"] + 1, "sum": state["sum"] + number}
        checkpointer.save_if_due(lambda: state)  # noqa: B023
        job.progress(state["done"], STEPS)
        with Path("steps.txt").open("a") as log:
            log.write(
                f"{number} {state['done']} {os.getpid()} "
                f"{os.environ.get('CUDA_VISIBLE_DEVICES', 'all')}\n"
            )
        time.sleep(0.05 * Path("slow").exists())
    found = {
        "sum": float(state["sum"]),
        "seed": job.seed,
        "threads": torch.get_num_threads(),
    }
    write_json(job.output / "count.json", found)


def compute(engine: str = "serial", **changes: Any) -> Compute:
    return Compute.model_validate(
        SERIAL.model_dump() | {"engine": engine, "workers": 2} | changes
    )


def run(
    *numbers: int,
    engine: str = "serial",
    shares: dict[int, float] | None = None,
    **changes: Any,
) -> None:
    known = shares or {}
    cells = [
        Cell(f"n-{number}", count, {"number": number}, {}, known.get(number))
        for number in numbers
    ]
    run_cells(cells, output=OUTPUT, compute=compute(engine, **changes), seed=0)


def steps() -> list[tuple[int, int]]:
    """The cell's number and the step, for every step that ran in the current folder."""
    lines = (
        Path("steps.txt").read_text().splitlines() if Path("steps.txt").exists() else []
    )
    return [(int(number), int(step)) for number, step, *_ in map(str.split, lines)]


def processes() -> dict[int, set[tuple[int, str]]]:
    """The processes that ran each cell and the GPUs that they saw, keyed by cell
    number.
    """
    found: dict[int, set[tuple[int, str]]] = {}
    for number, _, process, devices in map(
        str.split, Path("steps.txt").read_text().splitlines()
    ):
        found.setdefault(int(number), set()).add((int(process), devices))
    return found


def results(folder: Path = OUTPUT) -> dict[str, bytes]:
    """The contents of every published file, keyed by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


if __name__ == "__main__":
    from tests.runner import (
        toy,
    )  # Workers cannot import cells from `__main__`.

    sys.exit(exit_code(lambda: toy.run(*map(int, sys.argv[2:]), engine=sys.argv[1])))
