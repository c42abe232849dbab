"""The plan counts what a run would do, from nothing to finished, and changes nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.cost.forecast import forecast
from softmax_temperature.params import Params, validate
from softmax_temperature.runner.artifacts import read_sealed, write_sealed
from softmax_temperature.runner.cells import Cell, run_cells
from softmax_temperature.stages import describe, embed, fetch, search
from softmax_temperature.tools.plan import StagePlan, plan
from softmax_temperature.tools.plan_text import as_json, summary


def run(params: Params, cells: list[Cell], output: Path) -> None:
    run_cells(cells, output=output, compute=params.compute, seed=params.seed)


@pytest.fixture(scope="module")
def planned(make_project: Callable[[str], Path], project_root: Path, tiny: Params) -> Path:
    """A project in which the stages up to embed have been run, with a record of minutes."""
    folder = make_project("planned")
    shutil.copy(project_root / "dvc.yaml", folder)
    shutil.copytree(project_root / "pipeline", folder / "pipeline")
    minutes = {"prepared": 3.0, "embeddings": 2.0, "statistics": 9.0, "search": None}
    (folder / "results" / tiny.profile).mkdir(parents=True)
    record = {
        "classifier_temperature": {"machines": [], "cell_minutes": minutes},
        "focal": {"machines": [], "cell_minutes": {"training": 5.0}},
    }
    (folder / "results" / tiny.profile / "environment.json").write_text(json.dumps(record))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for dataset in tiny.datasets:
            run(tiny, fetch.cells(tiny, dataset), fetch.OUTPUT / dataset)
        run(tiny, embed.cells(tiny), embed.OUTPUT)
    return folder


@pytest.fixture(autouse=True)
def _in_project(planned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(planned)


def by_stage(params: Params) -> dict[str, StagePlan]:
    return {stage.stage: stage for stage in plan(params)}


def changed(params: Params, **sections: Any) -> Params:
    return validate(params.model_dump() | sections, where="test")


def contents() -> dict[str, tuple[int, bytes]]:
    files = [path for path in Path().rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.as_posix(): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_what_stands_is_finished_and_what_follows_has_to_run(tiny: Params) -> None:
    before = contents()
    found = by_stage(tiny)
    assert contents() == before
    assert (found["fetch"].cells, found["fetch"].to_run) == (len(tiny.datasets), ())
    assert found["embed"].to_run == ()
    pairs = tuple(f"{dataset}/{backbone}" for dataset, backbone in tiny.embedded_pairs())
    assert (found["describe"].cells, found["describe"].to_run) == (len(pairs), pairs)
    assert found["heuristic"].to_run == (".",)
    assert found["code"].cells is None


def test_an_edit_reaches_what_reads_it_and_no_more(tiny: Params) -> None:
    first = next(iter(tiny.datasets))
    limits = {name: limit.model_dump() for name, limit in tiny.datasets.items()}
    fewer = changed(tiny, datasets=limits | {first: limits[first] | {"train_limit": 77}})
    found = by_stage(fewer)
    assert found["fetch"].to_run == (first,)
    assert found["fetch"].minutes == round(3.0 / len(tiny.datasets), 2)
    assert {name.partition("/")[0] for name in found["embed"].to_run} == {first}
    other_seed = by_stage(changed(tiny, seed=tiny.seed + 1))
    assert len(other_seed["embed"].to_run) == other_seed["embed"].cells


def test_a_result_of_these_parameters_counts_though_another_is_published(tiny: Params) -> None:
    first = next(iter(tiny.datasets))
    limits = {name: limit.model_dump() for name, limit in tiny.datasets.items()}
    fewer = changed(tiny, datasets=limits | {first: limits[first] | {"train_limit": 88}})
    run(fewer, fetch.cells(fewer, first), fetch.OUTPUT / first)
    assert by_stage(tiny)["embed"].to_run == ()
    run(tiny, fetch.cells(tiny, first), fetch.OUTPUT / first)


def test_minutes_are_the_recorded_share_and_megabytes_those_of_cells_that_stand(tiny: Params) -> None:
    found = by_stage(tiny)
    assert found["describe"].minutes == 9.0
    assert (found["embed"].minutes, found["embed"].megabytes) == (0.0, 0.0)
    search = found["search"]
    assert search.foretold
    assert search.minutes == search.foretold[1] > search.foretold[8] > 0
    assert "foretold from shapes" in search.note
    assert found["heuristic"].minutes is None
    assert "not recorded" in found["heuristic"].note
    assert found["train-focal"].minutes == 5.0
    cells = describe.cells(tiny)
    run(tiny, cells, describe.OUTPUT)
    shutil.rmtree(Path("data/work/classifier_temperature/statistics") / cells[0].name)
    again = by_stage(tiny)["describe"]
    assert again.to_run == (cells[0].name,)
    assert again.minutes == round(9.0 / len(cells), 2)
    assert again.megabytes is not None
    assert 0 < again.megabytes < 0.1
    shutil.rmtree("data/work/classifier_temperature/statistics")


@pytest.mark.parametrize("stage", [fetch, embed])
def test_disk_is_foretold_within_a_tenth(tiny: Params, stage: Any) -> None:
    cells = fetch.cells(tiny, next(iter(tiny.datasets))) if stage is fetch else embed.cells(tiny)
    place = fetch.OUTPUT / next(iter(tiny.datasets)) if stage is fetch else embed.OUTPUT
    written = sum(path.stat().st_size for path in place.rglob("*.safetensors")) / 1e6
    foretold = forecast(stage.__name__.rpartition(".")[2], cells, {}, tiny).megabytes
    assert foretold == pytest.approx(written, rel=0.1)


def test_what_cells_took_scales_the_others(tiny: Params) -> None:
    cells = search.cells(tiny)
    before = by_stage(tiny)["search"]
    run(tiny, cells, search.OUTPUT)
    work = Path("data/work/classifier_temperature/search")
    for path in work.rglob("timing.json"):
        write_sealed(path, read_sealed(path) | {"seconds": 3600.0})
    shutil.rmtree(work / cells[0].name)
    after = by_stage(tiny)["search"]
    assert after.minutes == pytest.approx(60.0, rel=0.5)  # Cells of one size.
    assert before.minutes is not None
    assert before.minutes < 1
    shutil.rmtree(work)


def test_sums_say_what_is_missing_in_them(tiny: Params) -> None:
    plans = plan(tiny)
    total = as_json(plans, tiny)["total"]
    assert total["cells"] == total["finished"] + total["to_run"]
    assert total["to_run"] == sum(len(stage.to_run) for stage in plans)
    assert "heuristic" in total["minutes_unknown"]
    assert "search" not in total["minutes_unknown"]
    assert "describe" in total["megabytes_unknown"]
    assert total["foretold_minutes"][64] <= total["foretold_minutes"][8] <= total["foretold_minutes"][1]
    assert 0 < total["foretold_cells"] < total["to_run"]
    text = summary(plans, tiny)
    assert f"{total['to_run']:,} of {total['cells']:,} cells have to run" in text
    assert all(stage.stage in text for stage in plans)


def test_weights_that_are_not_there_are_said_and_not_fetched(tiny: Params) -> None:
    backbones = {name: spec.model_dump() for name, spec in tiny.backbones.items()}
    name = next(iter(backbones))
    missing = backbones | {name: backbones[name] | {"weights": "file", "file": "none.safetensors"}}
    data = tiny.data.model_dump() | {"download": True}
    found = by_stage(changed(tiny, backbones=missing, data=data))
    assert found["embed"].cells is None
    assert "none.safetensors: no such file" in found["embed"].note
