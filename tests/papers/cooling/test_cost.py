"""The cost of a Cooling, from what the benchmark wrote."""

import json
from pathlib import Path

import pytest

from softmax_temperature.papers.cooling.collect import cost_of_cooling


def test_the_committed_benchmark_is_read(project_root: Path) -> None:
    path = project_root / "benchmarks" / "results.json"
    table = cost_of_cooling(path).set_index(["device", "mode"])
    step = json.loads(path.read_text())["cpu"]["results"]["cooling_step"]
    assert table.loc["cpu", "share"].to_dict() == {
        mode: step[f"{mode}_share"] for mode in ("last_layer", "distributed", "periodic")
    }
    # Each is a median over rounds.
    assert (table["seconds"] / table["epoch_seconds"]).tolist() == pytest.approx(table["share"].tolist(), rel=0.2)
    assert step["share"] == table.loc["cpu", "share"].max()


def test_without_a_measurement_it_is_empty(tmp_path: Path) -> None:
    assert cost_of_cooling(tmp_path / "results.json").empty
    (tmp_path / "results.json").write_text('{"cpu": {"results": {}}}')
    assert cost_of_cooling(tmp_path / "results.json").empty
