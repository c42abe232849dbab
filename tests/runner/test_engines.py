"""Engines give equal results, lose little when a process ends, and say what to change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from softmax_temperature.runner.engines import refuse_unsuitable_nodes
from softmax_temperature.runner.errors import CellsFailed, InputError
from tests.conftest import ROOT
from tests.runner import toy


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_processes_give_the_bytes_of_one_process() -> None:
    toy.run(1, 2, 3)
    expected = toy.results()
    Path("data").rename("serial")
    toy.run(1, 2, 3, engine="processes")
    assert toy.results() == expected


def on_ray(program: str) -> None:
    """Run a program that starts Ray, in a process of its own: Ray leaves its children to the interpreter's end."""
    pytest.importorskip("ray")
    path = os.pathsep.join([str(ROOT), *sys.path])
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    command = [sys.executable, "-c", f"from tests.runner import toy\n{program}"]
    subprocess.run(command, env={**environment, "PYTHONPATH": path}, check=True)


def test_ray_gives_the_bytes_of_one_process() -> None:
    on_ray("toy.run(1, 2, 3, engine='ray')")
    found = toy.results()
    Path("data").rename("ray")
    toy.run(1, 2, 3)
    assert toy.results() == found


def test_on_ray_no_two_cells_that_use_a_gpu_share_a_process() -> None:
    """CUDA keeps the device of its first use, whichever one Ray assigns to a later cell."""
    start = "import ray; ray.init(address='local', num_cpus=2, num_gpus=2, include_dashboard=False)"
    on_ray(f"{start}\ntoy.run(0, 1, 2, 3, engine='ray', gpus_per_cell=1)")
    processes = [process for found in toy.processes().values() for process in found]
    assert len(set(processes)) == len(processes) == 4


def test_a_killed_worker_ends_the_stage_and_the_next_run_does_the_rest() -> None:
    toy.run(1, 2)
    Path("kill-3").touch()
    with pytest.raises(CellsFailed, match=r"n-3.*was killed.* lower compute\.workers; then run again"):
        toy.run(1, 2, 3, 4, 5, engine="processes")
    Path("kill-3").unlink()
    toy.run(1, 2, 3, 4, 5, engine="processes")
    assert sorted(set(toy.steps())) == [(number, step) for number in range(1, 6) for step in range(1, toy.STEPS + 1)]
    assert [step for number, step in toy.steps() if number < 3] == [*range(1, toy.STEPS + 1)] * 2


def test_no_cell_runs_in_a_process_that_lost_its_gpu() -> None:
    Path("assert-1").touch()
    with pytest.raises(CellsFailed, match=r"1 of 5 cells failed.*\n  n-1: AcceleratorError: device-side assert"):
        toy.run(1, 2, 3, 4, 5, engine="processes")
    ran, lost = toy.processes(), int(Path("lost.txt").read_text())
    assert set(ran) == {2, 3, 4, 5}
    assert not any(lost in ran[number] for number in (3, 4, 5))


def test_an_unreachable_cluster_is_one_error() -> None:
    pytest.importorskip("ray")
    with pytest.raises(InputError, match=r"compute\.ray_address: cannot connect to Ray at 127\.0\.0\.1:1 .*ray start"):
        list(_engine_results(ray_address="127.0.0.1:1"))


def _engine_results(**changes: object) -> list[object]:
    from softmax_temperature.runner.engines import run_tasks

    return list(run_tasks(print, [1], toy.compute("ray", **changes)))  # type: ignore[arg-type]


NODES = [{"CPU": 16.0, "GPU": 8.0}, {"CPU": 64.0}]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"threads_per_cell": 65}, "no node has 65 CPUs .* threads_per_cell to at most 64"),
        ({"threads_per_cell": 32, "gpus_per_cell": 0.25}, "no node has 32 CPUs and 0.25 GPUs for a cell"),
        ({"gpus_per_cell": 9}, "gpus_per_cell to at most 8"),
        ({"device": "auto"}, r"compute\.gpus_per_cell: is 0, and all cells .* would use the first one"),
        ({"device": "cuda"}, r"compute\.gpus_per_cell: is 0"),
    ],
)
def test_cells_that_no_node_suits_are_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        refuse_unsuitable_nodes(NODES, toy.compute("ray", **changes))


def test_cells_that_a_node_suits_are_not_refused() -> None:
    refuse_unsuitable_nodes(NODES, toy.compute("ray", device="auto", gpus_per_cell=0.5, threads_per_cell=16))
    refuse_unsuitable_nodes(NODES, toy.compute("ray", device="cpu", threads_per_cell=64))
    refuse_unsuitable_nodes([{"CPU": 8.0, "GPU": 1.0}], toy.compute("ray", device="auto"))
