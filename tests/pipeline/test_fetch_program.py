"""The program of the stage `fetch`: each data set stands for itself, and those that nobody names any more go."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.runner.artifacts import open_artifact, write_json
from softmax_temperature.stages import fetch
from softmax_temperature.stages.programs import dataset_program
from softmax_temperature.tools.profiles import render_profile

PROFILES = Path(__file__).parents[2] / "profiles"


@pytest.fixture(autouse=True)
def _undisturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In a folder of its own; the program's handlers of signals end with the test."""
    monkeypatch.chdir(tmp_path)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def datasets(tmp_path: Path) -> Any:
    """Those of profile smoke, in a parameter file."""
    content = render_profile("smoke", PROFILES)[1].model_dump(mode="json")
    content["data"]["root"] = str(tmp_path / "raw")
    write_json(tmp_path / "params.yaml", content)  # YAML holds JSON.
    return content["datasets"]


def add_datasets(*names: str) -> None:
    path = Path("params.yaml")
    content = json.loads(path.read_text())
    content["datasets"] |= {name: {} for name in names}
    write_json(path, content)


def program(*arguments: str) -> int:
    return dataset_program(fetch, None, arguments)


def prepared() -> set[str]:
    return {path.name for path in fetch.OUTPUT.glob("*")}


def test_by_default_all_are_prepared_and_no_other_stays(datasets: Any, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "kept").write_text("the user's")
    assert program() == 0
    assert prepared() == set(datasets)
    assert [line for name in datasets for line in open_artifact(fetch.OUTPUT / name, kind="fetch").problems()] == []
    (fetch.OUTPUT / "yesterday").mkdir()
    (fetch.OUTPUT / "yesterday" / "card.json").write_text("{}")
    (fetch.OUTPUT / "notes.txt").write_text("a file")
    (fetch.OUTPUT / "elsewhere").symlink_to(tmp_path / "raw")
    (fetch.OUTPUT / ".writer.unfinished").mkdir()
    assert program("--dataset", "digits") == 0
    assert prepared() == {*datasets, "yesterday", "notes.txt", "elsewhere", ".writer.unfinished"}
    assert program() == 0
    assert prepared() == {*datasets, ".writer.unfinished"}
    assert (tmp_path / "raw" / "kept").is_file(), "what a link leads to is not the stage's"


@pytest.mark.usefixtures("datasets")
def test_a_wrong_name_is_refused_before_anything_is_prepared(capsys: pytest.CaptureFixture[str]) -> None:
    assert program("--dataset", "digits", "--dataset", "digts") == 2
    assert "Did you mean 'digits'?" in capsys.readouterr().err
    assert not fetch.OUTPUT.exists()


def test_one_that_is_not_there_keeps_none_of_the_others(datasets: Any, capsys: pytest.CaptureFixture[str]) -> None:
    add_datasets("cifar10", "mnist")
    assert program() == 1
    said = capsys.readouterr().err
    assert f"2 of {len(datasets) + 2} cells failed" in said
    assert all(f"  {name}: " in said for name in ("cifar10", "mnist")), "all that is missing is said at once"
    assert prepared() == set(datasets)
    assert program() == 1
    assert prepared() == set(datasets)


def test_a_name_that_nobody_knows_stops_it_before_anything_is_prepared(
    datasets: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    add_datasets("zzz")
    assert min(datasets) < "zzz"
    assert program() == 2
    assert "unknown data set 'zzz'" in capsys.readouterr().err
    assert not fetch.OUTPUT.exists()
