"""What trainings are foretold to write is what they write, for networks of three sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from softmax_temperature.cost.cells import cell_cost

from softmax_temperature.params import Params, validate
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.stages import train_cooling, train_focal, train_temperature_check
from tests.pipeline.whole_runs import prepare

DATASETS = ("digits", "glyphs-12")
NETWORKS: dict[str, tuple[int, dict[str, Any]]] = {  # Epochs, and what is trained.
    "5 thousand parameters": (20, {"architecture": "cifar_resnet", "arguments": {"blocks": 1, "widths": [4, 8, 16]}}),
    "0.4 million": (3, {"architecture": "vgg", "arguments": {"image_size": 8}}),
    "24 million": (1, {"architecture": "bottleneck_resnet", "arguments": {"blocks": [3, 4, 6, 3]}}),
}
CELLS = {
    train_focal: ("resnet8-tiny", "digits/CE/0"),
    train_cooling: ("vgg-tiny", "digits-vgg/none/last_layer/0"),
    train_temperature_check: ("wrn-tiny", "wrn/1/0.1/plain/0"),
}
"""By stage, the network that is replaced and the cell that trains it."""


@pytest.mark.parametrize("size", NETWORKS)
def test_disk_of_trainings_is_foretold_within_an_eighth(
    tiny: Params, size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    epochs, network = NETWORKS[size]
    content = tiny.model_dump()
    content["networks"] |= dict.fromkeys((replaced for replaced, _ in CELLS.values()), network)
    for paper in ("focal", "cooling", "temperature_check"):
        content[paper]["recipe"] |= {"epochs": epochs, "planned_epochs": epochs, "lr": 0.001}
    params = validate(content, where="test")
    prepare(params, DATASETS)
    ratios = {}
    for stage, (_, name) in CELLS.items():
        (cell,) = (each for each in stage.cells(params) if each.name == name)
        run_cells([cell], output=stage.OUTPUT, compute=params.compute, seed=params.seed)
        written = sum(path.stat().st_size for path in (stage.OUTPUT / name).rglob("*") if path.is_file())
        cost = cell_cost(stage.__name__.rpartition(".")[2], cell, params)
        assert cost is not None
        ratios[stage.__name__] = cost.disk_bytes / written
    assert list(ratios.values()) == pytest.approx([1.0] * len(ratios), rel=1 / 8), ratios
