"""Runs stages in this process, and defines the tests that all papers share."""

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import chdir
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from safetensors.torch import load_file, save_file

from softmax_temperature.papers.shared import records
from softmax_temperature.papers.shared.provenance import provenance
from softmax_temperature.papers.shared.records import makers_of_tables
from softmax_temperature.params import Params, validate
from softmax_temperature.runner.artifacts import (
    digest_of_file,
    find_artifacts,
    new_artifact,
    open_artifact,
)
from softmax_temperature.runner.cells import Cell, Job, run_cells

VERDICTS = {"holds", "contradicted", "inconclusive", "not tested"}


def changed(params: Params, changes: dict[str, Any]) -> Params:
    """The parameters, with the values at some paths replaced.

    If a path ends with a slash, the values are added to that mapping.
    """
    content = params.model_dump()
    for path, value in changes.items():
        *sections, name = path.removesuffix("/").split("/")
        place = content
        for section in sections:
            place = place[section]
        place[name] = place[name] | value if path.endswith("/") else value
    return validate(content, where="changed")


def run(params: Params, stage: Any, names: Iterable[str] | None = None) -> None:
    """Run all cells of a stage, or the named ones, below the current folder."""
    cells: Sequence[Cell] = stage.cells(params)
    chosen = (
        cells if names is None else [cell for cell in cells if cell.name in set(names)]
    )
    run_cells(chosen, output=stage.output, compute=params.compute, seed=params.seed)


def slug(paper: Any) -> str:
    """The slug of the paper whose `collect` module is given."""
    return str(paper.__name__.split(".")[-2])


def run_stages(params: Params, paper: Any) -> None:
    """Run a paper's stages in the order of dvc.yaml."""
    for stage in paper.STAGES:
        run(params, stage)


def run_paper(params: Params, paper: Any) -> None:
    """Run a paper's stages in the order of dvc.yaml, and collect its results."""
    run_stages(params, paper)
    paper.collect(params, Path("results/tiny") / slug(paper))


def collect_without_claims(params: Params, paper: Any) -> None:
    """Collect a paper's results without judging its claims: judging takes seconds.

    `TestResults` judges claims of collected results, and the tests of each paper's
    claims judge all kinds of runs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "judge_all", lambda *_, **__: [])
        paper.collect(params, Path("results/tiny") / slug(paper))


def finish(folder: Path, work: Callable[[], Any]) -> Path:
    """Call a function with the folder as the current one, and return the folder."""
    with chdir(folder):
        work()
    return folder


class Killed(BaseException):
    """Simulates a kill: no code catches this exception."""


def with_kills(work: Callable[[], Any], kills: int) -> list[int]:
    """Call `work`, kill it after each of its first `kills` epochs, and call it again.

    Returns the epochs that ran.
    """
    epochs: list[int] = []

    def progress(_: Job, done: int, __: int) -> None:
        epochs.append(done)
        if done <= kills:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "progress", progress)
        for _ in range(kills):
            with pytest.raises(Killed):
                work()
        work()
    return epochs


def stored(stage: Any, cell: str, name: str) -> Any:
    return open_artifact(stage.output / cell).json(f"{name}.json")


def weights(stage: Any, cell: str) -> dict[str, Any]:
    return open_artifact(stage.output / cell).tensors("weights.safetensors")


def without_test_data(value: Any) -> Any:
    """The JSON value without the rows and entries of the test split."""
    if isinstance(value, list):
        rows = [row for row in value if not _is_of_test(row)]
        return [without_test_data(row) for row in rows]
    if isinstance(value, dict):
        return {
            name: without_test_data(entry)
            for name, entry in value.items()
            if not name.startswith("test")
        }
    return value


def _is_of_test(row: Any) -> bool:
    return isinstance(row, dict) and row.get("split") == "test"


def fitted(stage: Any, cell: str, *files: str) -> dict[str, Any]:
    """The contents of a cell's weights and JSON files, without metrics of test data."""
    artifact = open_artifact(stage.output / cell)
    content: dict[str, Any] = {}
    for file in files:
        if file.endswith(".json"):
            content[file] = without_test_data(artifact.json(file))
        else:
            tensors = without_test_data(artifact.tensors(file))
            content |= {name: tensor.tolist() for name, tensor in tensors.items()}
    return content


def with_other_test_data(project: Path, folder: Path) -> Path:
    """Copy a project's prepared data sets to `folder`, with other test data.

    Every test label becomes the next class, images become their negatives, and nodes of
    a tree get the opposite labels.
    """
    for source in find_artifacts(project / "data" / "prepared"):
        prepared = open_artifact(source)
        target = folder / source.relative_to(project)
        about = {"kind": prepared.kind, "about": prepared.about}
        with new_artifact(target, **about) as new:
            for name in prepared.files:
                shutil.copy(prepared.path(name), new / name)
            rows = load_file(new / "rows.safetensors")
            classes = len(prepared.json("card.json")["class_names"])
            rows["test.labels"] = (rows["test.labels"] + 1) % classes
            save_file(rows, new / "rows.safetensors")
            if "test.safetensors" in prepared.files:
                images = load_file(new / "test.safetensors")["images"]
                save_file({"images": 255 - images}, new / "test.safetensors")
            elif prepared.json("card.json").get("form") == "trees":
                text = (new / "test.jsonl").read_text()
                opposites = str.maketrans("01234", "43210")
                (new / "test.jsonl").write_text(text.translate(opposites))
    return folder


def weights_are_finite(stage: Any, cell: str) -> bool:
    return all(bool(one.isfinite().all()) for one in weights(stage, cell).values())


def digests(folder: Path, *parts: str) -> dict[str, str]:
    """Digests of the files in the given parts of a folder, keyed by path.

    Figures, notebooks and the files of unfinished cells are left out.
    """
    return {
        path.relative_to(folder).as_posix(): digest_of_file(path)
        for part in parts
        for path in sorted((folder / part).rglob("*"))
        if path.is_file()
        and path.parent.name != "figures"
        and path.suffix != ".ipynb"
        and not path.is_relative_to(folder / "data/cells")
    }


class WholePaper:
    """Tests of the results of the paper that the test module's `PAPER` names."""

    @pytest.fixture
    def paper(self, request: pytest.FixtureRequest) -> Any:
        return request.module.PAPER

    @pytest.fixture
    def results(self, paper: Any) -> Path:
        return Path("results/tiny") / slug(paper)

    def test_every_table_and_claim_is_written(self, paper: Any, results: Path) -> None:
        package = f"softmax_temperature.papers.{slug(paper)}"
        claims = import_module(f"{package}.claims")
        derived = {name for name, _ in makers_of_tables(slug(paper))}
        recorded = {"values", *import_module(f"{package}.study").MEASURED_TABLES}
        written = {path.stem for path in (results / "tables").glob("*.csv")}
        assert written == {*recorded, *derived, "deviations"}
        rows = json.loads((results / "claims.json").read_text())
        assert [row["id"] for row in rows] == [claim.id for claim in claims.CLAIMS]
        assert {row["verdict"] for row in rows} <= VERDICTS
        assert {row["profile"] for row in rows} == {"smoke"}

    def test_every_number_names_the_cells_that_it_comes_from(
        self, paper: Any, results: Path
    ) -> None:
        known = provenance([stage.output for stage in paper.STAGES])["cells"]
        parts = [f"{cell['stage']}/{cell['cell']}".split("/") for cell in known]
        names = {
            "/".join(each[:end]) for each in parts for end in range(1, len(each) + 1)
        }
        claims = json.loads((results / "claims.json").read_text())
        numbers = [
            (claim["id"], claim["cells"])
            for claim in claims
            if claim["value"] is not None
        ]
        for path in (results / "tables").glob("*.csv"):
            table = pd.read_csv(path)
            if {"published", "ours"} <= set(table):
                rows = table[table["ours"].notna()].astype({"cells": str})
                numbers += [(path.stem, cells.split("; ")) for cells in rows["cells"]]
        assert numbers
        assert [
            name for name, cells in numbers if not cells or not names.issuperset(cells)
        ] == []

    def test_every_artifact_verifies_and_leads_back_to_the_data(
        self, paper: Any
    ) -> None:
        folders = find_artifacts(Path("data"))
        assert [
            line for folder in folders for line in open_artifact(folder).problems()
        ] == []
        found = provenance([stage.output for stage in paper.STAGES])
        inputs = {
            digest for cell in found["cells"] for digest in cell["inputs"].values()
        }
        assert inputs <= {cell["result"] for cell in found["cells"]}
        assert all(cell["code"] in found["code"] for cell in found["cells"])
