"""All engines give equal results and lose little in a crash; errors name remedies."""

import shutil
import sys
from pathlib import Path

import pytest
import torch
from joblib.externals.loky import get_reusable_executor

from softmax_temperature.runner import engines
from softmax_temperature.runner.artifacts import open_artifact, write_json
from softmax_temperature.runner.cells import Cell, Job, run_cells
from softmax_temperature.runner.errors import CellsFailed, InputError
from tests.runner import toy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(autouse=True)
def _in_empty_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start each test in the same, emptied folder, so that tests share the workers.

    A worker process stays in the folder in which it was started. Starting one takes
    seconds, because it imports torch.
    """
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    monkeypatch.chdir(folder)


def test_processes_give_the_bytes_of_one_process() -> None:
    toy.run(1, 2, 3)
    expected = toy.results()
    Path("data").rename("serial")
    toy.run(1, 2, 3, engine="processes")
    assert toy.results() == expected


def tell_of_torch(job: Job) -> None:
    """Write the torch settings with which a cell starts in a worker process."""
    found = {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warns": torch.is_deterministic_algorithms_warn_only_enabled(),
        "fills": torch.utils.deterministic.fill_uninitialized_memory,
        "threads": torch.get_num_threads(),
        "compiler": "torch._dynamo" in sys.modules,
    }
    write_json(job.output / "torch.json", found)


@pytest.mark.parametrize("deterministic", [None, False])
def test_a_cell_finds_torch_as_the_parameters_say_and_without_a_compiler(
    deterministic: bool | None,
) -> None:
    cells = [Cell(f"cell-{number}", tell_of_torch, {}) for number in range(2)]
    output = Path("data/told")
    compute = toy.compute("processes", deterministic=deterministic)
    run_cells(cells, output=output, compute=compute, seed=0)
    found = [open_artifact(output / cell.name).json("torch.json") for cell in cells]
    chosen = deterministic is None
    assert found == 2 * [
        {
            "deterministic": chosen,
            "warns": chosen,
            "fills": False,
            "threads": 1,
            "compiler": False,
        }
    ]


def test_a_cell_that_fills_a_gpu_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "softmax_temperature.runner.cells.resolve_device", lambda _: "cuda"
    )
    Path("slow").touch()
    toy.run(1, 2, 3, 4, engine="processes", shares={2: 1.0}, workers=3)
    order = [number for number, _ in toy.steps()]
    alone = order.index(2)
    assert order[alone : alone + toy.STEPS] == [2] * toy.STEPS
    others = [number for number in order if number != 2]
    assert others != sorted(others), "small cells ran one after the other"


def test_processes_stay_for_the_next_stage_and_when_they_grow() -> None:
    for name in ("slow", "grow-3", "grow-4"):
        Path(name).touch()
    toy.run(1, 2, 3, 4, 5, 6, engine="processes")
    Path("data").rename("first")
    toy.run(1, 2, 3, 4, engine="processes")
    assert (
        len({process for each in toy.processes().values() for process, _ in each}) == 2
    )


def test_no_more_workers_start_than_there_are_cells() -> None:
    Path("slow").touch()
    toy.run(1, 2, engine="processes", workers=6)
    assert len(get_reusable_executor(reuse=True)._processes) == 2


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(2, "No such file or directory"), ImportError("no sem_open")],
)
def test_a_machine_without_shared_memory_is_told_to_run_serially(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    # loky fails with this error if there is no /dev/shm.
    def without_semaphores(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(engines, "get_reusable_executor", without_semaphores)
    said = r"^compute.engine: .*/dev/shm.*\. Set it to serial, or mount /dev/shm\.$"
    with pytest.raises(InputError, match=said):
        toy.run(1, 2, engine="processes")


def test_a_killed_worker_ends_the_stage_and_the_next_run_does_the_rest() -> None:
    toy.run(1, 2)
    Path("kill-3").touch()
    with pytest.raises(
        CellsFailed, match=r"n-3.*was killed.* lower compute\.workers; then run again"
    ):
        toy.run(1, 2, 3, 4, 5, engine="processes")
    Path("kill-3").unlink()
    # Finish in this process, which has imported torch already: every engine gives the
    # same results.
    toy.run(1, 2, 3, 4, 5)
    ran = toy.steps()
    # A checkpoint is written before its step is logged: the log lacks at most the step
    # during which the process was killed, and no step runs twice.
    assert len(set(ran)) == len(ran) >= 5 * toy.STEPS - 1
    assert {number for number, _ in ran} == {1, 2, 3, 4, 5}
