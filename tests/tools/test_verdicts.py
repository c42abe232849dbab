"""The scorecard has one row per claim, with its best evidence."""

import json
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.papers.shared.results import best_evidence
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.verdicts import (
    scorecard,
    scorecard_text,
    write_scorecard,
)

ROW: dict[str, Any] = {
    "paper": "focal",
    "id": "a",
    "where": "Table 1",
    "statement": "A beats B.",
    "note": "",
}
ROW |= {
    "compares": "A minus B.",
    "kind": "superiority",
    "region": [0.0, None],
    "some": False,
    "note_template": "",
}
ROW |= {
    "note_values": [],
    "profile": "study",
    "published": 0.5,
    "each": "seeds",
    "unit": "ECE",
    "verdict": "holds",
}
FOUND = {"value": 0.25, "sd": 0.1, "low": 0.1, "high": 0.4, "n": 5}
ROW |= {
    **FOUND,
    "n_needed": None,
    "tasks": [{"part": "", "task": "t", "pooled": True, **FOUND}],
}
OPEN = {"verdict": "inconclusive", "low": -0.1, "n": 9, "n_needed": 12}
UNTESTED = {
    "verdict": "not tested",
    "value": None,
    "sd": None,
    "low": None,
    "high": None,
    "n": None,
    "note": "no run",
}


def write(results: Path, profile: str, *rows: dict[str, Any]) -> Path:
    folder = results / profile / "focal"
    folder.mkdir(parents=True)
    (folder / "claims.json").write_text(
        json.dumps([{**ROW, **row, "profile": profile} for row in rows])
    )
    return results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write(tmp_path, "mini", {"value": 0.99})
    write(tmp_path, "one", OPEN, {"id": "b", **OPEN}, {"id": "c", **UNTESTED})
    return write(tmp_path, "two", {}, {"id": "b", **UNTESTED}, {"id": "c", **UNTESTED})


def test_a_row_has_the_best_evidence_and_names_the_others(results: Path) -> None:
    rows = [line for line in scorecard(results).splitlines() if line.startswith("| **")]
    cells = [cell.strip() for cell in rows[0].split("|")]
    assert (len(rows), cells[1]) == (3, "**holds**")
    assert cells[5:8] == [
        "25.00 ± 10.00 [10.00, 40.00] points of ECE (n = 5 seeds)",
        "above 0",
        "two",
    ]
    assert cells[8].startswith(
        "one: inconclusive (12 seeds would decide), 25.00 ± 10.00 [-10.00, 40.00] "
        "points of ECE"
    )


def test_a_row_says_over_how_many_tasks_of_the_part_shown_its_interval_is(
    tmp_path: Path,
) -> None:
    of = [
        ("against A", "t", True),
        ("against A", "u", True),
        ("against A", "other", False),
        ("against B", "v", True),
    ]
    tasks = [{"part": part, "task": task, "pooled": own} for part, task, own in of]
    write(tmp_path, "study", {**OPEN, "unit": "ECE, against A", "tasks": tasks})
    assert "points of ECE, against A (n = 9 seeds of 2 tasks) |" in scorecard(tmp_path)
    assert "inconclusive (12 seeds per task would decide)" in scorecard(tmp_path)


def test_decided_claims_come_before_open_ones_and_these_before_untested(
    results: Path,
) -> None:
    assert [rows[0]["verdict"] for rows in best_evidence(results)["focal"]] == [
        "holds",
        "inconclusive",
        "not tested",
    ]
    assert "### Focal: 1 hold, 1 inconclusive, 1 not tested\n" in scorecard(results)
    assert "| no run | – |" in scorecard(results)
    assert "99.00" not in scorecard(results), "directions are no evidence"


def test_the_terminal_shows_every_claim_within_80_columns(project_root: Path) -> None:
    results = project_root / "results"
    text = scorecard_text(results)
    assert max(map(len, text.splitlines())) <= 80
    shown = " ".join(text.split())
    for claims in best_evidence(results).values():
        for best, *_ in claims:
            assert best["statement"] in shown


def test_the_terminal_shows_a_claim_with_its_numbers(results: Path) -> None:
    _, _, first, *_ = scorecard_text(results).split("\n\n")
    assert first.splitlines()[:5] == [
        "HOLDS: A beats B. (Table 1)",
        "  ours:     25.00 ± 10.00 [10.00, 40.00] points of ECE (n = 5 seeds)",
        "  must lie: above 0",
        "  printed:  50",
        "  study:    two",
    ]


def test_only_what_is_between_the_markers_is_replaced_and_a_file_without_them_refused(
    results: Path,
) -> None:
    page = results / "scorecard.md"
    page.write_text("above\n<!-- scorecard -->\nstale\n<!-- /scorecard -->\nbelow\n")
    write_scorecard(page, results)
    assert page.read_text() == (
        f"above\n<!-- scorecard -->\n{scorecard(results)}\n<!-- /scorecard -->\nbelow\n"
    )
    page.write_text("nothing")
    with pytest.raises(InputError, match="no scorecard markers"):
        write_scorecard(page, results)


def test_the_page_shows_the_committed_results(project_root: Path) -> None:
    page = (project_root / "docs" / "scorecard.md").read_text()
    shown = scorecard(project_root / "results")
    assert f"<!-- scorecard -->\n{shown}\n<!-- /scorecard -->" in page


def test_of_equal_verdicts_the_study_with_more_values_a_task_stands_first(
    tmp_path: Path,
) -> None:
    parts = [{"part": part, "task": part, "pooled": True} for part in ("A", "B", "C")]
    write(tmp_path, "a-few-seeds", {"n": 2, "unit": "accuracy, A", "tasks": parts[:2]})
    write(tmp_path, "more-seeds", {"n": 4, "unit": "accuracy, A", "tasks": parts})
    write(
        tmp_path,
        "of-two-tasks",
        {"n": 6, "tasks": [{**each, "part": ""} for each in parts[:2]]},
    )
    found = [row["profile"] for row in best_evidence(tmp_path)["focal"][0]]
    assert found == ["more-seeds", "of-two-tasks", "a-few-seeds"]
