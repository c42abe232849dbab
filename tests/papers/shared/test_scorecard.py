"""The scorecard shows every profile with results, and the README's is the present one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from softmax_temperature.papers.shared.scorecard import END, START, scorecard, write_scorecard
from softmax_temperature.runner.errors import InputError

ROW = {
    "paper": "classifier_temperature",
    "id": "a",
    "criterion": "The difference is above 0.",
    "profile": "mini",
    "note": "",
    "statement": "A beats B.",
    "where": "Table 1",
    "published": 0.5,
    "value": 0.25,
    "sd": 0.1,
    "low": 0.1,
    "high": 0.4,
    "n": 5,
    "unit": "accuracy",
    "verdict": "holds",
}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for profile in ("mini", "collection"):
        folder = tmp_path / "results" / profile / "classifier_temperature"
        folder.mkdir(parents=True)
        row = ROW if profile == "mini" else ROW | {"verdict": "not tested", "value": None, "low": None, "high": None}
        (folder / "claims.json").write_text(json.dumps([row]))
    return tmp_path / "results"


def test_one_row_a_claim_one_column_a_profile(results: Path) -> None:
    head, _, row = scorecard(results).splitlines()
    assert head == "| claim | where | printed | collection | mini (directions only) |"
    assert "| **not tested** |" in row
    assert "| **holds** 0.250 ± 0.100 [0.100, 0.400] accuracy (n = 5) |" in row


def test_a_verdict_from_too_few_runs_says_so(results: Path) -> None:
    path = results / "mini" / "classifier_temperature" / "claims.json"
    path.write_text(json.dumps([ROW | {"verdict": "does not hold", "low": -0.1}]))
    assert "| **does not hold (interval includes 0)** 0.250 ± 0.100 [-0.100, 0.400]" in scorecard(results)


def test_only_what_is_between_the_markers_is_replaced(results: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"above\n{START}\nstale\n{END}\nbelow\n")
    write_scorecard(readme, results)
    text = readme.read_text()
    assert text.startswith("above\n")
    assert text.endswith("below\n")
    assert "stale" not in text
    assert "A beats B." in text


def test_a_file_without_markers_is_refused(results: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("nothing")
    with pytest.raises(InputError, match="no scorecard markers"):
        write_scorecard(tmp_path / "README.md", results)


def test_the_readme_shows_the_committed_results(project_root: Path) -> None:
    shown = (project_root / "README.md").read_text().partition(START)[2].partition(END)[0].strip()
    assert shown == scorecard(project_root / "results")
