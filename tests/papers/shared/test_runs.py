"""Runs are read as they were written, every value belongs to one run, and a study grows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softmax_temperature.papers.shared import collecting
from softmax_temperature.papers.shared.collecting import (
    DeclaredRun,
    MeasuredRun,
    gather,
)
from softmax_temperature.papers.shared.runs import (
    Runs,
    long_form,
    read_runs,
    wide_form,
    write_runs,
)
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.errors import InputError
from tests.papers.shared.made_runs import runs_of

ROWS = [
    {"loss": "focal", "gamma": 3.0, "seed": seed, "value": 0.7 + 0.1 * seed}
    for seed in (0, 1)
]


def written(folder: Path, runs: Runs) -> Runs:
    folder.mkdir(parents=True, exist_ok=True)
    write_runs(folder, runs)
    return read_runs(folder, list(runs.tables))


def test_runs_read_back_are_the_same(tmp_path: Path) -> None:
    bins = pd.DataFrame({"run": [0, 1], "low": [0.0, 0.5]})
    runs = Runs(runs_of(ROWS).table, runs_of(ROWS).measurements, {"bins": bins})
    again = written(tmp_path / "study/paper", runs)
    assert set(again.table["study"]) == {"study"}
    plain = again.table.drop(columns="study")
    pd.testing.assert_frame_equal(plain, runs.table.drop(columns="study"))
    pd.testing.assert_frame_equal(again.tables["bins"], bins)
    first = wide_form(again.measurements)
    pd.testing.assert_frame_equal(first, wide_form(runs.measurements))


def test_missing_values_are_no_values() -> None:
    at = {"split": "test", "epoch": 1, "scaled": False}
    wide = pd.DataFrame([{"run": 0, **at, "ece": 0.1, "nll": None}])
    assert long_form(wide)["metric"].tolist() == ["ece"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": 7}, "values without a run"),
        ({"epoch": 3}, "accuracy is there twice"),
    ],
)
def test_values_without_a_run_and_values_that_are_there_twice_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    runs = runs_of(ROWS)
    write_runs(tmp_path, runs)
    path = tmp_path / "tables/values.csv"
    values = pd.read_csv(path)
    values.iloc[0] = values.iloc[2]
    values.assign(**change).to_csv(path, index=False) if "run" in change else (
        values.to_csv(path, index=False)
    )
    with pytest.raises(InputError, match=message):
        read_runs(tmp_path)


@dataclass(frozen=True)
class MadeStage:
    """A stage below a folder, whose cells hold nothing but a manifest."""

    output: Path

    def result(self, cell: str) -> str:
        return cell


def read(run: DeclaredRun, cell: Any) -> MeasuredRun:
    assert run.cell == cell
    row = {"split": "test", "epoch": 1, "accuracy": 0.5 + run.factors["seed"]}
    facts = {"diverged": False, "stuck": False, "epochs_done": 1}
    return MeasuredRun(facts, [row], {"bins": [{"low": run.factors["seed"]}]})


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeStage:
    monkeypatch.setattr(collecting, "label", lambda output: output.name)
    return MadeStage(tmp_path / "training")


def declared(stage: Any, seeds: int, gamma: Any = 3.0) -> list[DeclaredRun]:
    return [
        DeclaredRun(
            stage,
            f"FL-3/{seed}",
            {"loss": "focal", "gamma": gamma, "seed": seed},
            {"gamma": gamma, "root": "/here"},
        )
        for seed in range(seeds)
    ]


def train(stage: MadeStage, *seeds: int) -> None:
    for seed in seeds:
        folder = stage.output / f"FL-3/{seed}"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}")


def record(folder: Path, runs: Runs, gamma: Any = 3.0) -> None:
    write_runs(folder, runs)
    cells = [
        {"stage": "training", "cell": f"FL-3/{seed}", "parameters": "digest"}
        for seed in runs.table["seed"]
    ]
    parameters = {"digest": {"gamma": gamma, "root": "/there"}}
    write_json(folder / "records.json", {"cells": cells, "parameters": parameters})


def gathered(folder: Path, runs: list[DeclaredRun]) -> Runs:
    return gather(folder, runs, read, tables={"bins": ["low"]})


def test_a_study_grows_by_the_cells_of_another_machine(
    tmp_path: Path, stage: MadeStage, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "results/study/paper"
    train(stage, 0, 1)
    record(folder, gathered(folder, declared(stage, 2)))
    other = MadeStage(tmp_path / "another/training")
    train(other, 2)
    runs = gathered(folder, declared(other, 3))
    assert runs.table["seed"].tolist() == [0, 1, 2]
    assert runs.measurements["value"].tolist() == [0.5, 1.5, 2.5]
    assert runs.tables["bins"].to_numpy().tolist() == [[0, 0], [1, 1], [2, 2]]
    said = "1 runs from cells on this machine, 2 recorded before, from another machine"
    assert said in capsys.readouterr().err


def test_a_run_that_is_no_longer_declared_goes(
    tmp_path: Path, stage: MadeStage
) -> None:
    folder = tmp_path / "results/study/paper"
    train(stage, 0, 1)
    record(folder, gathered(folder, declared(stage, 2)))
    other = MadeStage(tmp_path / "another/training")
    assert len(gathered(folder, declared(other, 1)).table) == 1


@pytest.mark.parametrize("recorded", [3.0, 5.0])
def test_a_run_with_other_factors_or_parameters_does_not_stand_for_the_declared_one(
    tmp_path: Path, stage: MadeStage, recorded: float
) -> None:
    folder = tmp_path / "results/study/paper"
    train(stage, 0)
    record(folder, gathered(folder, declared(stage, 1)), gamma=recorded)
    other = MadeStage(tmp_path / "another/training")
    asked = 5.0 if recorded == 3.0 else 3.0
    with pytest.raises(InputError, match="1 of 1 runs are neither in a cell here nor"):
        gathered(folder, declared(other, 1, gamma=asked))


@pytest.mark.parametrize(("asked", "stays"), [("53", True), ("5", False)])
def test_a_factor_that_is_a_text_of_digits_is_known_again(
    tmp_path: Path, stage: MadeStage, asked: str, stays: bool
) -> None:
    folder = tmp_path / "results/study/paper"
    train(stage, 0, 1)
    # Beside a run without gamma, a file's column has the number 53.0.
    without_gamma = declared(stage, 2, gamma=None)[1:]
    runs = [*declared(stage, 1, gamma="53"), *without_gamma]
    record(folder, gathered(folder, runs), gamma=asked)
    other = declared(MadeStage(tmp_path / "another/training"), 1, gamma=asked)
    if not stays:
        with pytest.raises(InputError, match="1 of 1 runs are neither"):
            gathered(folder, other)
        return
    assert gathered(folder, other).table["gamma"].tolist() == ["53"]
