"""The program of a stage runs the cells of the parameters, and names those that failed."""

from pathlib import Path

import pytest

from softmax_temperature.runner.artifacts import open_artifact, write_json
from softmax_temperature.stages import fetch
from softmax_temperature.stages.programs import stage_program
from softmax_temperature.tools.profiles import render_profile

PROFILES = Path(__file__).parents[2] / "profiles"


def test_all_are_prepared_and_no_other_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    content = render_profile("smoke", PROFILES)[1].model_dump(mode="json")
    datasets = content["datasets"]
    write_json(Path("params.yaml"), content)  # YAML holds JSON.
    (fetch.OUTPUT / "yesterday").mkdir(parents=True)
    assert stage_program("fetch", None, ()) == 0
    assert {path.name for path in fetch.OUTPUT.iterdir()} == set(datasets)
    assert [line for name in datasets for line in open_artifact(fetch.OUTPUT / name, kind="fetch").problems()] == []
    datasets["cifar10"] = {}
    write_json(Path("params.yaml"), content)
    assert stage_program("fetch", None, ()) == 1
    said = capsys.readouterr().err
    assert f"1 of {len(datasets)} cells failed" in said
    assert "  cifar10: data set cifar10: not found in" in said
