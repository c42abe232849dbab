"""Cells that are killed, hang, run out of memory or are not finite: named, alone, and mended by the next run."""

from __future__ import annotations

import errno
import multiprocessing
import os
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from softmax_temperature.runner.workers import run_in_workers

from softmax_temperature.data.splits import SPLITS
from softmax_temperature.networks.embeddings import write_embeddings
from softmax_temperature.params import Compute, validate
from softmax_temperature.runner import workers
from softmax_temperature.runner.artifacts import new_artifact, open_artifact, write_json
from softmax_temperature.runner.cells import Cell, Job, run_cells
from softmax_temperature.runner.errors import CellsFailed, InputError
from softmax_temperature.stages import search, train_cooling
from softmax_temperature.training import Trainer
from tests.faults import work
from tests.faults.misbehaviour import misbehave

OUTPUT = Path("data/squares")


def compute(**changes: Any) -> Compute:
    settings = {
        "engine": "serial",
        "workers": 2,
        "threads_per_cell": 1,
        "device": "cpu",
        "checkpoint_seconds": 0,
        "ray_address": None,
        "gpus_per_cell": 0,
    }
    return Compute.model_validate(settings | changes)


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(cells: list[Cell], **changes: Any) -> None:
    run_cells(cells, output=OUTPUT, compute=compute(**changes), seed=0)


# ---- workers


def test_each_task_that_is_lost_is_lost_alone() -> None:
    tasks = ["well", "killed", "terminated", "exits", "well"]
    said = dict(run_in_workers(misbehave, tasks, workers=2, threads=1, minutes=5, patience=0))
    assert "killed, as systems do when memory runs out" in (said[1] or "")
    assert said[2] == "not finished: its process ended by signal 15"
    assert said[3] == "not finished: its process ended with exit code 3"
    assert (said[0] or "").startswith("well in process ")
    assert (said[4] or "").startswith("well in process ")


def test_a_task_that_hangs_is_ended() -> None:
    tasks = ["hangs", "hangs"]
    said = dict(run_in_workers(misbehave, tasks, workers=1, threads=1, minutes=0.02, patience=0))
    assert all("compute.cell_minutes = 0.02" in (text or "") for text in said.values())
    assert len(said) == len(tasks)


def test_a_worker_that_cannot_be_started_is_one_error_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    start = BaseProcess.start

    def start_one(self: BaseProcess) -> None:
        if multiprocessing.active_children():
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        start(self)

    monkeypatch.setattr(BaseProcess, "start", start_one)
    open_files = psutil.Process().num_fds()
    with pytest.raises(InputError, match=r"compute\.workers: cannot start another process \(Resource temporarily"):
        dict(run_in_workers(misbehave, ["hangs", "well"], workers=2, threads=1, minutes=None, patience=0))
    assert not multiprocessing.active_children()
    assert psutil.Process().num_fds() <= open_files + 1  # Python's tracker keeps a pipe.


def test_workers_that_do_not_stop_in_time_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "SECONDS_TO_SAVE", 0.5)
    results = run_in_workers(misbehave, ["hangs", "well"], workers=2, threads=1, minutes=None, patience=0)
    assert next(results)[0] == 1
    began = time.monotonic()
    results.close()
    assert time.monotonic() - began < 60
    assert not multiprocessing.active_children()


# ---- cells


def count_up(job: Job, *, number: int, fault: str | None) -> None:
    """Count to `number`, a checkpoint each step; once, in the middle, what `fault` says happens."""
    checkpointer = job.checkpointer()
    state = checkpointer.load() or {"count": 0}
    while state["count"] < number:
        state = {"count": state["count"] + 1}
        checkpointer.save_if_due(lambda: state)  # noqa: B023
        with Path(f"steps-{number}.txt").open("a") as log:
            log.write(f"{state['count']}\n")
        if fault and state["count"] == 3 and not Path("happened").exists():
            Path("happened").touch()
            misbehave(fault)
    write_json(job.output / "count.json", state)


def steps(number: int) -> list[int]:
    return [int(line) for line in Path(f"steps-{number}.txt").read_text().split()]


def test_a_killed_worker_fails_its_cell_and_the_next_run_goes_on_there() -> None:
    faults = {4: None, 5: "killed", 6: None}
    cells = [Cell(f"n-{number}", count_up, {"number": number, "fault": fault}) for number, fault in faults.items()]
    with pytest.raises(CellsFailed, match="1 of 3 cells failed; the others are kept") as caught:
        run(cells, engine="processes")
    assert list(caught.value.failures) == ["n-5"]
    assert "lower compute.workers; then run again" in str(caught.value)
    assert not OUTPUT.exists()
    run(cells, engine="processes")
    assert {number: steps(number) for number in faults} == {n: list(range(1, n + 1)) for n in faults}
    assert open_artifact(OUTPUT / "n-5").json("count.json") == {"count": 5}


def fail(job: Job, *, leaves_a_trace: bool) -> None:
    if not leaves_a_trace:
        (job.work / "error.txt").mkdir()
    raise ValueError("caf\udce9\nand so on")


def test_a_fault_is_one_line_and_its_cell_s_own_though_its_trace_cannot_be_written() -> None:
    cells = [Cell(f"fails-{trace}", fail, {"leaves_a_trace": trace}) for trace in (True, False)]
    cells.append(Cell("counts", count_up, {"number": 2, "fault": None}))
    with pytest.raises(CellsFailed) as caught:
        run(cells)
    with_trace, without = caught.value.failures.values()
    said, _, trace = with_trace.partition(" (trace: ")
    assert said == without == "ValueError: caf\udce9 and so on"
    assert "caf\\udce9" in Path(trace.removesuffix(")")).read_text(encoding="utf-8")
    run(cells[2:])
    assert steps(2) == [1, 2]


def test_a_cell_that_takes_too_long_is_ended_and_named() -> None:
    cells = [Cell("slow", count_up, {"number": 5, "fault": "hangs"})]
    with pytest.raises(CellsFailed, match=r"slow: ended: it took longer than compute\.cell_minutes = 0\.05") as caught:
        run(cells, cell_minutes=0.05)
    assert "goes on at the last one" in str(caught.value)
    Path("happened").touch()  # Where the machine is busy, the cell may not have come so far.
    run(cells)
    assert steps(5) == sorted(set(steps(5)))  # One may lack: the cell is ended between its checkpoint and its note.
    assert steps(5)[-1] == 5


def allocate(_: Job, *, library: str) -> None:
    if library == "numpy":
        np.ones(2**50)
    if library == "torch":
        torch.ones(2**50)
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


@pytest.mark.parametrize("library", ["numpy", "torch", "cuda"])
def test_a_cell_that_is_refused_memory_says_what_to_do(library: str) -> None:
    with pytest.raises(CellsFailed, match=r"greedy: .*Lower compute\.workers or the size of the batches"):
        run([Cell("greedy", allocate, {"library": library})])


# ---- numbers that are not finite


def test_a_search_that_overflows_fails_and_names_its_learning_rate() -> None:
    """What a training does instead is in tests/training/test_run.py, and for each paper in tests/pipeline/."""
    generator = torch.Generator().manual_seed(0)
    rows = {split: (torch.arange(4).repeat(5), torch.arange(20)) for split in SPLITS}
    with new_artifact(Path("data/embeddings"), kind="embed", about={}) as output:
        write_embeddings(
            output,
            rows,
            lambda _: [torch.randn(20, 3, generator=generator)],
            {"dataset": "noise", "backbone": "none", "embedding": 3},
        )
    parameters = {
        "inverse_temperatures": [1.0, 10.0],
        "epochs": 3,
        "batch_size": 8,
        "momentum": 0.9,
        "repeats": 1,
        "precision": "float32",
    }
    cells = [
        Cell(name, search.run, parameters | {"lr": lr}, {"embeddings": Path("data/embeddings")})
        for name, lr in (("fast", 1e38), ("right", 0.1))
    ]
    with pytest.raises(
        CellsFailed, match=r"fast: ValueError: lr=1e\+38 made the weights overflow in epoch 1"
    ) as caught:
        run(cells)
    assert list(caught.value.failures) == ["fast"]


# ---- a GPU's memory


def test_a_training_that_does_not_fit_the_gpu_says_so_in_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its batches of 16 do not fit; those of 8 do (tests/training/test_memory.py compares the weights)."""

    def limited(trainer: Trainer, inputs: torch.Tensor) -> torch.Tensor:
        if len(inputs) > 8:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return whole(trainer, inputs)

    content = work.content("serial", 0)
    content["cooling"]["recipe"]["epochs"] = 2
    params = validate(content, where="fault tests")
    work.prepare(params)
    cell = train_cooling.cells(params)[0]
    assert params.cooling.recipe.batch_size == 16
    whole = Trainer._logits_at_once
    records = []
    for patched in (False, True):
        if patched:
            monkeypatch.setattr(Trainer, "_logits_at_once", limited)
        output = Path(f"data/training-{patched}")
        run_cells([cell], output=output, compute=params.compute, seed=0)
        records.append(open_artifact(output / cell.name).json("record.json"))
    assert [record["micro_batches"] for record in records] == [1, 2]
    assert [record["epochs_done"] for record in records] == [2, 2]
