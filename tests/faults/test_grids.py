"""A grid that shrinks, grows or changes its order runs what is new alone; merged results can be made again."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import TypeAdapter
from ruamel.yaml import YAML

from softmax_temperature.papers.focal.collect import STAGES, collect
from softmax_temperature.papers.html import write_report
from softmax_temperature.papers.shared.results import record_run
from softmax_temperature.papers.shared.scorecard import all_claims
from softmax_temperature.papers.shared.tables import read_csv
from softmax_temperature.params import Params, validate
from softmax_temperature.runner import cells as cells_module
from softmax_temperature.runner.artifacts import digest_of_file, find_artifacts
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import read_json, read_yaml
from softmax_temperature.stages import evaluate_focal, fetch, train_focal
from softmax_temperature.tools.profiles import render_profile
from tests.faults.readers.results import CLAIM, as_json, write_results

ROOT = Path(__file__).parents[2]
RESULTS = Path("results/smoke/focal")
TASK = "digits"


def grid(*arms: str, seeds: int = 1) -> Params:
    """The smallest study of focal losses: one task with these arms."""
    content = render_profile("smoke", ROOT / "profiles")[1].model_dump()
    content["datasets"][TASK] |= {"train_limit": 60, "test_limit": 30}
    content["compute"] |= {"engine": "serial", "workers": 1}
    paper = content["focal"]
    task = paper["tasks"][TASK] | {"arms": list(arms), "out_of_distribution": [], "gaussian_noise": None}
    paper |= {"tasks": {TASK: task}, "seeds": seeds}
    paper["recipe"] |= {"epochs": 1}
    paper["evaluation"] |= {"bootstrap": 5}
    paper["linear"] |= {"epochs": 1, "seeds": 1}
    return validate(content, where="grid")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cells that have run so far: stage and name."""
    names: list[str] = []
    attempt = cells_module._attempt

    def noted(task: Any) -> str | None:
        names.append(f"{task.stage}/{task.cell.name}")
        return attempt(task)

    monkeypatch.setattr(cells_module, "_attempt", noted)
    return names


def run(params: Params) -> None:
    """Every stage of the paper, as `dvc repro` would from the first on."""
    for stage in STAGES:
        items = [TASK] if stage is fetch else [None]
        for item in items:
            found = stage.cells(params, item) if item else stage.cells(params)
            output = stage.OUTPUT / item if item else stage.OUTPUT
            run_cells(found, output=output, compute=params.compute, seed=params.seed)
    shutil.rmtree(RESULTS, ignore_errors=True)  # As DVC does before it runs a stage.
    collect(params, RESULTS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which the grid of two arms has been run."""
    folder = tmp_path_factory.mktemp("grids")
    shutil.copytree(ROOT / "data" / "published", folder / "data" / "published")
    before = Path.cwd()
    os.chdir(folder)
    try:
        run(grid("CE", "FL-3"))
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it."""
    shutil.copytree(made, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def digests() -> dict[str, str]:
    return {path.as_posix(): digest_of_file(path) for path in sorted(RESULTS.rglob("*")) if path.is_file()}


def trainings_of(*names: str) -> set[str]:
    stages = (train_focal.OUTPUT, evaluate_focal.OUTPUT)
    return {f"{stage.relative_to('data').as_posix()}/{TASK}/{name}" for stage in stages for name in names}


def runs() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "runs.csv")


@pytest.mark.usefixtures("project")
def test_a_grid_that_stays_runs_nothing(ran: list[str]) -> None:
    before = digests()
    run(grid("CE", "FL-3"))
    assert ran == []
    assert digests() == before


@pytest.mark.usefixtures("project")
def test_a_grid_that_grows_runs_what_is_new(ran: list[str]) -> None:
    before = runs()
    run(grid("CE", "Brier", "FL-3", seeds=2))
    assert set(ran) == trainings_of("Brier/0", *(f"{arm}/1" for arm in ("CE", "Brier", "FL-3")))
    assert len(ran) == len(set(ran))
    after = runs()
    assert set(zip(after["arm"], after["seed"], strict=True)) == {
        (a, s) for a in ("CE", "Brier", "FL-3") for s in (0, 1)
    }
    old = after[after["arm"].isin(before["arm"]) & (after["seed"] == 0)].reset_index(drop=True)
    pd.testing.assert_frame_equal(old, before, check_exact=True)


@pytest.mark.usefixtures("project")
def test_a_grid_that_shrinks_runs_nothing_and_its_tables_shrink(ran: list[str]) -> None:
    before, results = runs(), digests()
    run(grid("CE"))
    assert ran == []
    pd.testing.assert_frame_equal(runs(), before[before["arm"] == "CE"].reset_index(drop=True), check_exact=True)
    for path in RESULTS.rglob("*.csv"):
        table = pd.read_csv(path)
        ours = table[table["ours"].notna()] if "ours" in table else table
        if "task" in ours and "arm" in ours:
            assert set(ours.loc[ours["task"] == TASK, "arm"]) <= {"CE"}, path
    left = {path.relative_to(train_focal.OUTPUT).as_posix() for path in find_artifacts(train_focal.OUTPUT)}
    assert left == {f"{TASK}/CE/0"}
    run(grid("CE", "FL-3"))
    assert ran == []
    assert digests() == results


@pytest.mark.usefixtures("project")
def test_a_grid_in_another_order_runs_nothing_and_says_the_same(ran: list[str]) -> None:
    before = runs()
    run(grid("FL-3", "CE"))
    assert ran == []
    key = ["arm", "seed", "scaling"]
    pd.testing.assert_frame_equal(
        *(table.sort_values(key, ignore_index=True) for table in (runs(), before)), check_exact=True
    )


# ---- merges


def git(*words: str, check: bool = True) -> str:
    """Git in the current folder, whoever the user is; returns what it says."""
    program = shutil.which("git")
    if program is None:
        pytest.skip("needs git")
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]
    return subprocess.run([program, *who, *words], capture_output=True, text=True, check=check).stdout


def write_params(params: Params) -> None:
    with Path("params.yaml").open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump(params.model_dump(mode="json"), file)


def commit_run(params: Params) -> None:
    write_params(params)
    run(params)
    record_run("smoke", "focal", Path("params.yaml"), [train_focal.OUTPUT])
    git("add", "params.yaml", "results")
    git("commit", "-m", "a run")


@pytest.fixture(scope="module")
def merged(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in the middle of a merge of two branches, of which each has added an arm."""
    folder = tmp_path_factory.mktemp("merged") / "project"
    shutil.copytree(made, folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        git("init")
        Path(".gitignore").write_text("data/\n")
        git("add", ".gitignore")
        commit_run(grid("CE", "FL-3"))
        git("branch", "other")
        commit_run(grid("CE", "FL-3", "Brier"))
        git("checkout", "other")
        commit_run(grid("CE", "FL-3", "FL-1"))
        git("merge", "main", check=False)
    finally:
        os.chdir(before)
    return folder


READING: dict[str, Callable[[Path], object]] = {
    ".csv": read_csv,
    ".json": lambda path: read_json(path, TypeAdapter(Any), remedy="Take one side."),
    ".yaml": read_yaml,
}


def test_files_in_the_middle_of_a_merge_are_refused_by_name(merged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(merged)
    torn = git("diff", "--name-only", "--diff-filter=U").splitlines()
    assert {"params.yaml", "results/smoke/focal/runs.csv"} <= set(torn)
    for name in torn:
        with pytest.raises(InputError) as caught:
            READING[Path(name).suffix](Path(name))
        assert caught.value.where == name
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"^results/smoke/"):
        write_report(Path("results"))


def test_merged_results_are_made_again_from_the_cells_of_both(
    merged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[str]
) -> None:
    """Whichever side's results lay there in between."""
    both, found = grid("CE", "FL-3", "Brier", "FL-1"), []
    for side in ("--ours", "--theirs"):
        shutil.copytree(merged, tmp_path / side)
        monkeypatch.chdir(tmp_path / side)
        git("checkout", side, ".")
        run(both)
        found.append(digests())
    assert ran == []
    assert set(runs()["arm"]) == {"CE", "FL-3", "Brier", "FL-1"}
    assert found[0] == found[1]


def test_two_profiles_merge_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git("init")
    (tmp_path / ".gitignore").write_text("results/index.html\nresults/*/index.html\nresults/*/pages/\n")
    git("add", ".")
    git("commit", "-m", "start")
    expected = {}
    for branch, value in (("a", -0.1), ("b", -0.2)):
        git("checkout", "-b", branch, "main")
        claim = CLAIM | {"profile": branch, "value": value}
        write_results(tmp_path, {"focal/claims.json": as_json([claim])})
        Path("results/toy").rename(f"results/{branch}")
        git("add", "results")
        git("commit", "-m", "results")
        expected[branch] = {"focal": [claim]}
    git("merge", "a")
    assert all_claims(Path("results")) == expected
    index, *pages = write_report(Path("results"))
    assert [page.parent.name for page in pages] == ["a", "b"]
    shown = index.read_text()
    assert shown.index("−0.1000") < shown.index("−0.2000")
    assert git("status", "--porcelain") == ""
