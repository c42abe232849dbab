"""Runs are read back as written, every value has a run, and a study can grow."""

from dataclasses import dataclass, replace
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
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.runs import (
    NOT_RUN,
    Runs,
    long_form,
    read_runs,
    wide_form,
    write_runs,
)
from softmax_temperature.runner.artifacts import Artifact, write_json, write_sealed
from softmax_temperature.runner.cells import TIMING, work_folder
from softmax_temperature.runner.errors import InputError
from tests.papers.shared.made_runs import runs_of

ROWS = [
    {"loss": "focal", "gamma": "3", "seed": seed, "value": 0.7 + 0.1 * seed}
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


def test_values_of_one_split_before_scaling_become_columns() -> None:
    at = {"run": 0, "epoch": 1, "ece": 0.1, "nll": 0.5}
    rows = [
        {**at, "split": "test", "scaled": False},
        {**at, "split": "test", "scaled": True, "ece": 0.01},
        {**at, "split": "train", "scaled": False, "ece": 0.2},
    ]
    runs = Runs(runs_of(ROWS).table, long_form(pd.DataFrame(rows)))
    table = runs.wide("nll", "ece", split="test")
    assert table.to_dict("records") == [{"run": 0, "epoch": 1, "nll": 0.5, "ece": 0.1}]
    assert runs.measured("ece", split="test", scaled=True)["value"].tolist() == [0.01]
    assert runs.measured("ece", split="train")["value"].tolist() == [0.2]
    assert runs.measured("brier").empty


def test_a_selection_that_is_changed_changes_neither_the_runs_nor_the_next_one() -> (
    None
):
    runs = runs_of(ROWS)
    everything = where()
    selected = runs.select(everything)
    selected["gamma"] = "5"
    selected.loc[0, "seed"] = 7
    assert runs.select(everything)["gamma"].tolist() == ["3", "3"]
    assert runs.select(everything)["seed"].tolist() == [0, 1]
    metric = str(runs.measurements["metric"].iloc[0])
    measured = runs.measured(metric)
    values = measured["value"].tolist()
    measured["value"] = -1.0
    assert runs.measured(metric)["value"].tolist() == values
    assert runs.table["seed"].tolist() == [0, 1]


def test_a_part_of_the_runs_has_its_values_and_tables_alone() -> None:
    tables = {"bins": pd.DataFrame({"run": [0, 1]}), "cost": pd.DataFrame({"s": [1]})}
    whole = Runs(runs_of(ROWS).table, runs_of(ROWS).measurements, tables)
    part = whole.only(where(seed=1))
    assert set(part.measurements["run"]) == {1}
    assert part.tables["bins"]["run"].tolist() == [1]
    assert len(part.tables["cost"]) == 1


def test_missing_values_do_not_count_as_values() -> None:
    at = {"split": "test", "epoch": 1, "scaled": False}
    wide = pd.DataFrame([{"run": 0, **at, "ece": 0.1, "nll": None}])
    assert long_form(wide)["metric"].tolist() == ["ece"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": 7}, "has values but no row"),
        ({"epoch": 3}, "duplicate value for 'accuracy'"),
    ],
)
def test_values_without_a_run_and_duplicate_values_are_refused(
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
    """A stage whose cells contain only a manifest."""

    output: Path

    def result(self, cell: str) -> Artifact:
        about = {"stage": "made", "cell": cell, "fingerprint": "0" * 64}
        return Artifact(self.output / cell, "made", about, {})


def read(run: DeclaredRun, cell: Artifact) -> MeasuredRun:
    assert run.cell == cell.about["cell"]
    row = {"split": "test", "epoch": 1, "accuracy": 0.5 + run.factors["seed"]}
    facts = {"diverged": False, "stuck": False, "epochs_done": 1}
    return MeasuredRun(facts, [row], {"bins": [{"low": run.factors["seed"]}]})


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeStage:
    monkeypatch.setattr(collecting, "label", lambda output: output.name)
    return MadeStage(tmp_path / "training")


def declared(stage: Any, seeds: int, gamma: Any = "3") -> list[DeclaredRun]:
    return [
        DeclaredRun(
            stage,
            f"FL-3/{seed}",
            {"loss": "focal", "gamma": gamma, "seed": seed},
            {"gamma": gamma},
        )
        for seed in range(seeds)
    ]


def train(stage: MadeStage, *seeds: int) -> None:
    for seed in seeds:
        folder = stage.output / f"FL-3/{seed}"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}")


def record(folder: Path, runs: Runs, gamma: Any = "3") -> None:
    write_runs(folder, runs)
    cells = [
        {"stage": "training", "cell": f"FL-3/{seed}", "parameters": "digest"}
        for seed in runs.table["seed"]
    ]
    # Records of earlier versions also named the folder that held the data.
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
    said = "1 from cells on this machine, 2 from rows that another machine recorded"
    assert said in capsys.readouterr().err


def test_the_device_is_recorded_where_the_timing_is_known(
    tmp_path: Path, stage: MadeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    machines = [("cpu", "NVIDIA T4"), ("cuda", "NVIDIA T4")]
    for seed, (device, accelerator) in enumerate(machines):
        timing = {"device": device, "machine": {"accelerator": accelerator}}
        write_sealed(work_folder("made", f"FL-3/{seed}", "0" * 64) / TIMING, timing)
    train(stage, 0, 1, 2)
    folder = tmp_path / "results/study/paper"
    record(folder, gathered(folder, declared(stage, 3)))
    devices = read_runs(folder).table["device"]
    assert devices.tolist()[:2] == ["cpu", "NVIDIA T4"]
    assert pd.isna(devices[2])


def test_a_training_that_ran_on_two_devices_is_one_training(tmp_path: Path) -> None:
    runs = runs_of([ROWS[0] | {"device": "cpu"}, ROWS[0] | {"device": None}])
    cells = runs.table["cell"].iloc[0]
    write_runs(tmp_path, Runs(runs.table.assign(cell=cells), runs.measurements))
    with pytest.raises(InputError, match="two runs have the same factors"):
        read_runs(tmp_path)


def test_a_recorded_run_lacks_the_factors_that_are_declared_empty(
    tmp_path: Path, stage: MadeStage
) -> None:
    def of(stage: MadeStage, smoothing: float | None) -> list[DeclaredRun]:
        run = declared(stage, 1)[0]
        return [replace(run, factors={**run.factors, "smoothing": smoothing})]

    folder = tmp_path / "results/study/paper"
    train(stage, 0)
    record(folder, gathered(folder, of(stage, None)))
    other = MadeStage(tmp_path / "another/training")
    assert len(gathered(folder, of(other, None)).table) == 1
    with pytest.raises(InputError, match="neither in a cell here nor"):
        gathered(folder, of(other, 0.1))


def test_a_run_that_is_no_longer_declared_is_removed(
    tmp_path: Path, stage: MadeStage
) -> None:
    folder = tmp_path / "results/study/paper"
    train(stage, 0, 1)
    record(folder, gathered(folder, declared(stage, 2)))
    other = MadeStage(tmp_path / "another/training")
    assert len(gathered(folder, declared(other, 1)).table) == 1


@pytest.mark.parametrize("recorded", ["3", "5"])
def test_a_run_with_other_factors_or_parameters_does_not_stand_for_the_declared_one(
    tmp_path: Path, stage: MadeStage, recorded: str
) -> None:
    folder = tmp_path / "results/study/paper"
    train(stage, 0)
    record(folder, gathered(folder, declared(stage, 1)), gamma=recorded)
    other = MadeStage(tmp_path / "another/training")
    asked = "5" if recorded == "3" else "3"
    with pytest.raises(InputError, match="1 of 1 runs are neither in a cell here nor"):
        gathered(folder, declared(other, 1, gamma=asked))


def sweep(stage: Any, factors: list[float]) -> list[DeclaredRun]:
    variants = [{"factor": factor, "seed": None} for factor in factors]
    return [DeclaredRun(stage, "sweep/0", {"loss": "focal"}, {}, variants)]


def read_sweep(run: DeclaredRun, _: Any) -> MeasuredRun:
    rows = [
        {"run": number, "split": "test", "epoch": 1, "accuracy": factors["factor"]}
        for number, factors in enumerate(run.variants)
    ]
    return MeasuredRun({"epochs_done": 1}, rows)


def recorded_sweep(stage: MadeStage, folder: Path) -> MadeStage:
    """Record a sweep over three values, and return a stage that lacks the sweep's
    cells.
    """
    (stage.output / "sweep/0").mkdir(parents=True)
    (stage.output / "sweep/0/manifest.json").write_text("{}")
    write_runs(folder, gather(folder, sweep(stage, [0.1, 1 / 3, 0.5]), read_sweep))
    cells = [{"stage": "training", "cell": "sweep/0", "parameters": "digest"}]
    records = {"cells": cells, "parameters": {"digest": {}}}
    write_json(folder / "records.json", records)
    return MadeStage(folder / "another/training")


def test_all_runs_of_one_cell_stay_in_the_declared_order(
    tmp_path: Path, stage: MadeStage
) -> None:
    elsewhere = recorded_sweep(stage, tmp_path)
    # In the file, the factor 1 / 3 is rounded to six digits.
    runs = gather(tmp_path, sweep(elsewhere, [0.5, 1 / 3]), read_sweep)
    assert runs.table["factor"].tolist() == pytest.approx([0.5, 1 / 3])
    assert runs.measurements["run"].tolist() == [1, 0]
    assert runs.measurements["value"].tolist() == pytest.approx([1 / 3, 0.5])


def test_a_cell_that_lacks_one_of_its_declared_runs_is_missing(
    tmp_path: Path, stage: MadeStage
) -> None:
    elsewhere = recorded_sweep(stage, tmp_path)
    with pytest.raises(InputError, match="1 of 1 runs are neither in a cell here nor"):
        gather(tmp_path, sweep(elsewhere, [0.9]), read_sweep)


def test_seeds_stay_whole_numbers_where_some_runs_have_none(tmp_path: Path) -> None:
    rows = [{"seed": 1, "value": 0.5}, {"seed": None, "value": 0.5}]
    runs = runs_of(rows)
    write_runs(tmp_path, runs)
    assert pd.read_csv(tmp_path / "runs.csv", dtype=str)["seed"][0] == "1"


@pytest.mark.parametrize(("asked", "stays"), [("53", True), ("5", False)])
def test_a_factor_that_is_a_text_of_digits_is_recognised(
    tmp_path: Path, stage: MadeStage, asked: str, stays: bool
) -> None:
    folder = tmp_path / "results/study/paper"
    train(stage, 0, 1)
    # Another run has no gamma, so pandas would read the column as floats, and 53 as
    # 53.0, if it were not told that gamma is text.
    without_gamma = declared(stage, 2, gamma=None)[1:]
    runs = [*declared(stage, 1, gamma="53"), *without_gamma]
    record(folder, gathered(folder, runs), gamma=asked)
    other = declared(MadeStage(tmp_path / "another/training"), 1, gamma=asked)
    if not stays:
        with pytest.raises(InputError, match="1 of 1 runs are neither"):
            gathered(folder, other)
        return
    assert gathered(folder, other).table["gamma"].tolist() == ["53"]


def test_runs_whose_data_are_missing_stay_where_recorded_and_are_named_elsewhere(
    tmp_path: Path, stage: MadeStage
) -> None:
    folder = tmp_path / "results/study/paper"
    train(stage, 0, 1)
    record(folder, gathered(folder, declared(stage, 2)))
    other = MadeStage(tmp_path / "another/training")
    train(other, 0)
    asked = declared(other, 4)
    # On this machine, only the first run is possible, and only with different
    # parameters.
    possible = [replace(asked[0], parameters={"gamma": "3", "files": 1})]
    shapes = {"bins": ["low"]}
    runs = gather(folder, asked, read, possible=possible, tables=shapes)
    assert runs.table["seed"].tolist() == [0, 1]
    assert runs.table["device"].isna().all()
    # Rows name experiments, without their seeds.
    assert runs.tables[NOT_RUN].to_dict("records") == [
        {"loss": "focal", "gamma": "3", "reason": "data missing"}
    ]
    write_runs(folder, runs)
    assert len(read_runs(folder).tables[NOT_RUN]) == 1
    with pytest.raises(InputError, match="2 of 4 runs are neither in a cell here"):
        gather(folder, asked, read, tables=shapes)


def test_an_arm_that_was_declared_after_the_study_was_recorded_is_not_run(
    tmp_path: Path, stage: MadeStage, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "results/study/paper"
    train(stage, 0, 1)
    record(folder, gathered(folder, declared(stage, 2)))
    other = MadeStage(tmp_path / "another/training")
    new_arm = [
        replace(
            run,
            cell=run.cell.replace("FL-3", "FL-5"),
            factors={**run.factors, "gamma": "5"},
        )
        for run in declared(other, 2)
    ]
    runs = gathered(folder, [*declared(other, 2), *new_arm])
    assert runs.table["gamma"].tolist() == ["3", "3"]
    assert runs.tables[NOT_RUN].to_dict("records") == [
        {"loss": "focal", "gamma": "5", "reason": "not trained"}
    ]
    assert "declared runs not trained yet: 2" in capsys.readouterr().err
    # Another seed of a recorded arm would change the set of seeds in the arm's mean.
    with pytest.raises(InputError, match=r"1 of 5 runs are .* recorded: FL-3/2\."):
        gathered(folder, [*declared(other, 3), *new_arm])
    # If there is no record, all runs must have been trained on this machine.
    with pytest.raises(InputError, match=r"2 of 2 runs are .*: FL-5/0, FL-5/1\."):
        gathered(tmp_path / "new", new_arm)
