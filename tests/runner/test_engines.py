"""Ray, on this machine, gives the bytes that one process gives; progress in a log says what is new."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.params import Compute
from softmax_temperature.runner import engines
from softmax_temperature.runner.cells import Cell, run_cells
from softmax_temperature.stages import fetch

OUTPUT = Path("data/prepared")


def cells() -> list[Cell]:
    """Two small preparations of a built-in data set: functions of the package, which Ray's workers can import."""
    limits = {"train_limit": 100, "test_limit": 50, "class_limit": None, "image_size_limit": None}
    shared: dict[str, Any] = {"source": "digits", "root": "raw", "archive": None, "download": False, **limits}
    return [
        Cell(name, fetch.run, shared | {"dataset": name, "validation_fraction": 0.1, "seed": seed})
        for seed, name in enumerate(("first", "second"))
    ]


def compute(engine: str) -> Compute:
    options = {"threads_per_cell": 1, "device": "cpu", "checkpoint_seconds": 0, "ray_address": None, "gpus_per_cell": 0}
    return Compute.model_validate({"engine": engine, "workers": 2, **options})


def manifests(engine: str) -> dict[str, bytes]:
    run_cells(cells(), output=OUTPUT, compute=compute(engine), seed=0)
    return {path.parent.name: path.read_bytes() for path in OUTPUT.rglob("manifest.json")}


@pytest.mark.usefixtures("patient_ray")
@pytest.mark.filterwarnings("ignore")  # Ray's own; what it computes is what is tested.
def test_ray_gives_the_bytes_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    serial = manifests("serial")
    Path("data").rename("serial")
    assert manifests("ray") == serial
    assert set(serial) == {"first", "second"}


def test_a_log_has_a_line_for_each_step_and_none_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(engines, "say", lines.append)
    monkeypatch.setattr(engines, "SECONDS_BETWEEN_LINES", 0.01)

    def work(place: Path) -> None:
        for step in ("1/2", "2/2"):
            (place / "progress").write_text(step)
            while not any(step in line for line in lines):
                time.sleep(0.01)
            time.sleep(0.05)  # A line that comes twice would come now.

    engines.run_all(work, [tmp_path], [("cell", tmp_path)], title="stage", compute=compute("serial"))
    assert {"stage: 0/1 cells (cell 1/2)", "stage: 0/1 cells (cell 2/2)"} <= set(lines)
    assert lines[-1] == "stage: 1/1 cells"
    assert all(one != other for one, other in pairwise(lines))
