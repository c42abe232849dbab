"""What is written of the cells behind a paper's numbers: everything that made them, the same from run to run."""

from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.papers.shared.sources import provenance
from softmax_temperature.params import Compute
from softmax_temperature.params.section import Section
from softmax_temperature.runner.artifacts import canonical_json, open_artifact, write_json
from softmax_temperature.runner.cells import Cell, Job, run_cells, seed_of
from softmax_temperature.runner.fingerprint import code_digest

SOURCE, SUMS = Path("data/prepared/numbers"), Path("data/sums")


class Count(Section):
    count: int


class Factor(Section):
    factor: int


def numbers(job: Job, plan: Count) -> None:
    write_json(job.output / "numbers.json", list(range(plan.count)))


def total(job: Job, plan: Factor) -> None:
    write_json(job.output / "total.json", plan.factor * sum(job.inputs["numbers"].json("numbers.json")))


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(cells: list[Cell], output: Path) -> None:
    settings = {"engine": "serial", "workers": 1, "threads_per_cell": 1, "device": "cpu", "checkpoint_seconds": 0}
    compute = Compute.model_validate(settings | {"ray_address": None, "gpus_per_cell": 0})
    run_cells(cells, output=output, compute=compute, seed=7)


def made() -> dict[str, Any]:
    run([Cell(".", numbers, Count(count=4))], SOURCE)
    run([Cell(".", numbers, Count(count=5))], SOURCE.with_name("of-another-paper"))
    inputs = {"numbers": SOURCE}
    run([Cell(f"sum/{seed}", total, Factor(factor=2), inputs) for seed in (0, 1)], SUMS)
    return provenance([SOURCE.parent, SUMS])


def test_a_record_says_what_a_cell_was_made_from() -> None:
    found = made()
    source, first, second = found["cells"]
    assert source["stage"] == "prepared/numbers", "a data set that nothing read is left out"
    assert first["parameters"] == second["parameters"]
    assert first["seed"] != second["seed"]
    assert first["stage"] == "sums"
    assert first["cell"] == "sum/0"
    assert first["project_seed"] == 7
    assert first["seed"] == seed_of(7, "sums", "sum/0")
    assert found["parameters"][first["parameters"]] == {"factor": 2}
    assert first["inputs"] == {"numbers": source["result"]}
    assert first["result"] == open_artifact(SUMS / "sum/0").digest
    modules = (total.__module__,)
    assert found["code"][first["code"]] == {name: code_digest(name) for name in modules}


def test_two_runs_from_nothing_give_equal_bytes(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = canonical_json(made())
    monkeypatch.chdir(tmp_path_factory.mktemp("second"))
    assert canonical_json(made()) == first
