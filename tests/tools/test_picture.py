"""The front page's picture shows the numbers by which the claims are judged."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from softmax_temperature.papers.focal.records import MAIN_ARMS, SCALED, read_records
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import picture


@pytest.fixture
def results(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project_root)
    return project_root / "results"


def test_the_committed_studies_are_drawn_and_one_that_is_missing_is_named(
    results: Path, tmp_path: Path
) -> None:
    picture.draw(results, tmp_path / "drawn")
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == [
        "summary.png",
        "summary.svg",
    ]
    assert (tmp_path / "drawn" / "summary.png").stat().st_size > 20_000
    with pytest.raises(InputError, match="no such table"):
        picture.draw(tmp_path, tmp_path / "drawn")


def test_calibration_errors_are_those_of_the_scorecard_and_of_finished_trainings_only(
    results: Path,
) -> None:
    folder = results / picture.FOCAL
    records = read_records(folder)
    parts = picture.calibration(read_records(folder))
    assert set(parts) == {
        (scaling, loss) for scaling in ("none", SCALED) for loss in MAIN_ARMS
    }
    rows = {row["id"]: row for row in json.loads((folder / "claims.json").read_text())}
    for scaling, claim in (
        ("none", "flsd-53-calibrates"),
        (SCALED, "flsd-53-calibrates-after-scaling"),
    ):
        values = [parts[scaling, loss].estimate().value for loss in ("FLSD-53", "CE")]
        assert values[0] - values[1] == pytest.approx(rows[claim]["value"])
    trainings = records.trainings.assign(
        diverged=records.trainings["diverged"] | (records.trainings["arm"] == "MMCE")
    )
    without_mmce = picture.calibration(replace(records, trainings=trainings))
    assert without_mmce == {
        key: part for key, part in parts.items() if key[1] != "MMCE"
    }
