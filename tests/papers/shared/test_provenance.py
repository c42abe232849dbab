"""The records of the cells behind a paper's numbers say everything that made them, the same from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.papers.shared.provenance import provenance
from softmax_temperature.params import Compute
from softmax_temperature.runner.artifacts import canonical_json, open_artifact, write_json
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.runner.code_digest import code_digest
from softmax_temperature.runner.jobs import Cell, Job, seed_of

SOURCE, SUMS = Path("data/prepared/numbers"), Path("data/sums")


def numbers(job: Job, *, count: int) -> None:
    write_json(job.output / "numbers.json", list(range(count)))


def total(job: Job, *, factor: int) -> None:
    write_json(job.output / "total.json", factor * sum(job.inputs["numbers"].json("numbers.json")))


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made() -> dict[str, Any]:
    settings = {"engine": "serial", "workers": 1, "threads_per_cell": 1, "device": "cpu", "checkpoint_seconds": 0}
    compute = Compute.model_validate(settings | {"ray_address": None, "gpus_per_cell": 0})
    for output, cells in (
        (SOURCE, [Cell(".", numbers, {"count": 4})]),
        (SOURCE.with_name("of-another-paper"), [Cell(".", numbers, {"count": 5})]),
        (SUMS, [Cell(f"sum/{seed}", total, {"factor": 2}, {"numbers": SOURCE}) for seed in (0, 1)]),
    ):
        run_cells(cells, output=output, compute=compute, seed=7)
    return provenance([SOURCE.parent, SUMS])


def test_a_record_says_what_a_cell_was_made_from_and_cells_share_what_they_have_in_common() -> None:
    found = made()
    source, first, second = found["cells"]
    assert source["stage"] == "prepared/numbers", "the data set that nothing read is left out"
    assert (first["stage"], first["cell"], first["project_seed"]) == ("sums", "sum/0", 7)
    assert first["seed"] == seed_of(7, "sums", "sum/0") != second["seed"]
    assert found["parameters"][first["parameters"]] == {"factor": 2}
    assert first["parameters"] == second["parameters"]
    assert first["inputs"] == {"numbers": source["result"]}
    assert first["result"] == open_artifact(SUMS / "sum/0").digest
    assert found["code"][first["code"]] == {total.__module__: code_digest(total.__module__)}


def test_two_runs_from_nothing_give_equal_bytes(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = canonical_json(made())
    monkeypatch.chdir(tmp_path_factory.mktemp("second"))
    assert canonical_json(made()) == first
