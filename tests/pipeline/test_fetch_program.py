"""The program of the stage `fetch` prepares all data sets of the parameters, and names those that it could not."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.runner.artifacts import open_artifact, write_json
from softmax_temperature.stages import fetch
from softmax_temperature.stages.programs import stage_program
from softmax_temperature.tools.profiles import render_profile

PROFILES = Path(__file__).parents[2] / "profiles"


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Those of profile smoke, in a parameter file; the program's handlers of signals end with the test."""
    monkeypatch.chdir(tmp_path)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    content = render_profile("smoke", PROFILES)[1].model_dump(mode="json")
    content["data"]["root"] = str(tmp_path / "raw")
    write_json(tmp_path / "params.yaml", content)  # YAML holds JSON.
    yield content["datasets"]
    for number, handler in before.items():
        signal.signal(number, handler)


def test_all_are_prepared_and_no_other_stays(datasets: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (fetch.OUTPUT / "yesterday").mkdir(parents=True)
    assert stage_program("fetch", None, ()) == 0
    assert {path.name for path in fetch.OUTPUT.iterdir()} == set(datasets)
    assert [line for name in datasets for line in open_artifact(fetch.OUTPUT / name, kind="fetch").problems()] == []
    content = json.loads(Path("params.yaml").read_text())
    content["datasets"]["cifar10"] = {}
    write_json(Path("params.yaml"), content)
    assert stage_program("fetch", None, ()) == 1
    said = capsys.readouterr().err
    assert f"1 of {len(datasets) + 1} cells failed" in said
    assert "  cifar10: data set cifar10: not found in" in said
