"""Ray, on this machine, gives the bytes that one process gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.cells import run_cells
from softmax_temperature.jobs import Cell
from softmax_temperature.params import Compute
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


def manifests(engine: str) -> dict[str, bytes]:
    options = {"threads_per_cell": 1, "device": "cpu", "checkpoint_seconds": 0, "ray_address": None, "gpus_per_cell": 0}
    compute = Compute.model_validate({"engine": engine, "workers": 2, **options})
    run_cells(cells(), output=OUTPUT, compute=compute, seed=0)
    return {path.parent.name: path.read_bytes() for path in OUTPUT.rglob("manifest.json")}


@pytest.mark.filterwarnings("ignore")  # Ray's own; what it computes is what is tested.
def test_ray_gives_the_bytes_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    serial = manifests("serial")
    Path("data").rename("serial")
    try:
        assert manifests("ray") == serial
    finally:
        ray.shutdown()
    assert set(serial) == {"first", "second"}
