"""The scorecard has one row for each claim.

A row gives the verdict of the primary study, and the results of the other studies.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.papers.shared.results import (
    PAPERS,
    STUDIES,
    evidence,
    studies_with_results,
)
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.cli import app
from softmax_temperature.tools.verdicts import (
    TITLES,
    scorecard,
    scorecard_text,
    write_scorecard,
)

FOUND = {"value": 0.25, "sd": 0.1, "low": 0.1, "high": 0.4, "n": 5}
ROW: dict[str, Any] = {
    "paper": "focal",
    "id": "a",
    "where": "Table 1",
    "statement": "A beats B.",
    "note": "",
    "level": 0.9,
    "compares": "A minus B.",
    "kind": "superiority",
    "region": [0.0, None],
    "bounds": [0.0],
    "some": False,
    "note_template": "",
    "note_values": [],
    "remark": "",
    "parts": [],
    "not_run": [],
    "profile": "two",
    "primary": "two",
    "looks": 1,
    "stand_in": None,
    "derived": False,
    "published": 0.5,
    "each": "seeds",
    "unit": "ECE",
    "verdict": "holds",
    "detectable": 0.15,
    "planned": 0.5,
    "n_for_power": 3,
    **FOUND,
    "tasks": [{"part": "", "task": "t", "pooled": True, **FOUND}],
}
OPEN = {"verdict": "inconclusive", "low": -0.1, "n": 9}
AGAINST = {"verdict": "contradicted", "value": -0.25, "low": -0.4, "high": -0.1}
OF_ECE = "points of ECE"
OF_5 = "(n = 5 seeds, interval at 90 %)"
OF_9 = "(n = 9 seeds, interval at 90 %)"
UNTESTED = {
    "verdict": "not tested",
    "value": None,
    "sd": None,
    "low": None,
    "high": None,
    "n": None,
    "note": "no run",
    "detectable": None,
}

FOCAL = f"### {TITLES['focal']}"


def write(results: Path, profile: str, *rows: dict[str, Any]) -> Path:
    folder = results / profile / "focal"
    folder.mkdir(parents=True)
    (folder / "claims.json").write_text(
        json.dumps([{**ROW, **row, "profile": profile} for row in rows])
    )
    return results


def cells(results: Path, claim: int = 0) -> list[str]:
    rows = [line for line in scorecard(results).splitlines() if line.startswith("| **")]
    return [cell.strip() for cell in rows[claim].split("|")[1:-1]]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write(tmp_path, "mini", {"value": 0.99})
    write(tmp_path, "one", OPEN, {"id": "b", **OPEN}, {"id": "c", **UNTESTED})
    return write(tmp_path, "two", {}, {"id": "b", **OPEN}, {"id": "c", **UNTESTED})


def test_a_row_has_the_verdict_of_the_primary_study_and_names_the_others(
    results: Path,
) -> None:
    row = cells(results)
    assert row[0] == "**holds**"
    assert row[3].split("<br>") == [
        f"holds (two, primary): 25.00 ± 10.00 [10.00, 40.00] {OF_ECE} {OF_5}",
        f"inconclusive (one): 25.00 ± 10.00 [-10.00, 40.00] {OF_ECE} {OF_9}",
    ]
    assert row[2] == "Table 1<br>`a`"
    assert row[4:] == ["above 0", "50", "detects 15; an effect of 50 would need n = 3"]


def test_the_verdicts_come_first_in_a_list_that_links_to_the_rows(
    results: Path,
) -> None:
    shown = scorecard(results)
    lead = shown.partition("\n\n")[0].splitlines()
    counts = next(
        place for place, line in enumerate(lead) if "1 hold, 1 inconclusive" in line
    )
    claim = ROW["statement"]
    assert lead[counts + 1 : counts + 3] == [
        f"    - **holds**: [{claim}](#claim-a)",
        f"    - **inconclusive**: [{claim}](#claim-b)",
    ]
    # A claim that its primary study does not test is only counted.
    assert "(#claim-c)" not in shown
    assert [cells(results, row)[1] for row in range(2)] == [
        f'<a id="claim-a"></a>{claim}',
        f'<a id="claim-b"></a>{claim}',
    ]


def test_a_pilot_is_not_a_study(results: Path) -> None:
    before = scorecard(results)
    write(results, "focal_pilot", AGAINST, {"id": "d"})
    assert scorecard(results) == before


def test_the_primary_study_decides_although_another_has_more_seeds_or_a_verdict(
    tmp_path: Path,
) -> None:
    write(tmp_path, "another", {"n": 50})
    write(tmp_path, "two", OPEN)
    assert cells(tmp_path)[0] == "**inconclusive**"
    assert f"{FOCAL}\n\n1 inconclusive\n" in scorecard(tmp_path)


def test_a_study_that_decides_the_opposite_makes_a_verdict_disputed(
    tmp_path: Path,
) -> None:
    write(tmp_path, "another", AGAINST)
    write(tmp_path, "third", OPEN)
    write(tmp_path, "two", {})
    assert cells(tmp_path)[0] == "**holds, disputed**"
    assert f"{FOCAL}\n\n1 disputed\n" in scorecard(tmp_path)


def test_without_its_primary_study_a_claim_is_not_tested_whatever_others_say(
    tmp_path: Path,
) -> None:
    write(tmp_path, "another", {"primary": "full"})
    row = cells(tmp_path)
    assert row[0] == "**not tested**"
    first, second = row[3].split("<br>")
    assert first == (
        "not tested (full, primary): its primary study, full, has not been run"
    )
    assert second.startswith("holds (another): 25.00")
    assert row[4:6] == ["above 0", "50"]
    assert f"{FOCAL}\n\n1 not tested\n" in scorecard(tmp_path)


def test_an_archived_study_is_shown_as_such_and_disputes(tmp_path: Path) -> None:
    write(tmp_path, "cifar10_cpu_cooling", AGAINST)
    write(tmp_path, "two", {})
    row = cells(tmp_path)
    assert row[0] == "**holds, disputed**"
    assert "<br>contradicted (cifar10_cpu_cooling (archived)): -25.00" in row[3]


def test_stand_in_data_and_our_derivations_are_marked_and_counted_separately(
    tmp_path: Path,
) -> None:
    stand_in = {"stand_in": "CamVid in place of ADE20K", **AGAINST}
    derived = {"id": "b", "derived": True}
    open_one = {"id": "d", "stand_in": "CamVid in place of ADE20K", **OPEN}
    write(tmp_path, "two", stand_in, derived, {"id": "c"}, open_one)
    assert cells(tmp_path, 0)[0] == "**contradicted (stand-in data)**"
    assert cells(tmp_path, 1)[1].endswith("</a>A beats B. (our derivation)")
    assert (
        f"{FOCAL}\n\n1 hold, 2 on stand-in data; of our derivation 1 hold\n"
        in scorecard(tmp_path)
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
    parts = [{"part": part} for part in ("against A", "against B")]
    shown_part = {"unit": "ECE, against A", "tasks": tasks, "parts": parts}
    write(tmp_path, "two", {**OPEN, **shown_part})
    shown = (
        "points of ECE (against A; n = 9 seeds of these 2 tasks, interval at 90 %) |"
    )
    assert shown in scorecard(tmp_path)
    # The sd would mix the tasks' differences with those of the seeds.
    number = scorecard(tmp_path).split(f" {shown}")[0].rpartition(": ")[2]
    assert "[" in number
    assert "±" not in number


def test_a_row_has_the_level_of_its_interval_and_names_in_words(tmp_path: Path) -> None:
    write(tmp_path, "two", {"level": 0.96667, "unit": "|r|, cifar10-10000"})
    of_page = "&#124;r&#124;, CIFAR-10, 10,000 images (n = 5 seeds, interval at 96.7 %)"
    assert of_page in cells(tmp_path)[3]
    shown = " ".join(scorecard_text(tmp_path).split())
    assert "|r|, CIFAR-10, 10,000 images (n = 5 seeds, interval at 96.7 %)" in shown


def test_studies_are_named_in_words_once(tmp_path: Path) -> None:
    write(tmp_path, "focal_cifar10", {"primary": "focal_cifar10"})
    words = "focal loss on CIFAR-10, 10,000 images"
    lines = scorecard(tmp_path).splitlines()
    # The counts of the four papers come first, each with a link to its claims.
    lead = lines[: lines.index("")]
    assert sum(line.startswith("- [") for line in lead) == len(PAPERS)
    assert all(line.startswith(("- [", "    - **")) for line in lead)
    assert "(#calibrating-deep-neural-networks-using-focal-loss): " in lines[1]
    end = len(lead)
    assert lines[end : end + 4] == [
        "",
        "The studies:",
        "",
        f"- `focal_cifar10`: {words}",
    ]
    assert scorecard_text(tmp_path).count(f"\nfocal_cifar10: {words}\n") == 1


def test_every_committed_study_has_words(project_root: Path) -> None:
    shown = studies_with_results(project_root / "results")
    assert set(shown) <= set(STUDIES)


def test_decided_claims_come_before_open_ones_and_these_before_untested(
    results: Path,
) -> None:
    assert [claim.primary["verdict"] for claim in evidence(results)["focal"]] == [
        "holds",
        "inconclusive",
        "not tested",
    ]
    assert f"{FOCAL}\n\n1 hold, 1 inconclusive, 1 not tested\n" in scorecard(results)
    assert "| not tested (two, primary): no run | – |" in scorecard(results)
    assert "99.00" not in scorecard(results), "a direction was used as evidence"


def test_the_terminal_shows_every_claim_within_80_columns(project_root: Path) -> None:
    results = project_root / "results"
    text = scorecard_text(results)
    assert max(map(len, text.splitlines())) <= 80
    shown = " ".join(text.split())
    for claims in evidence(results).values():
        for claim in claims:
            assert claim.primary["statement"] in shown


def test_the_terminal_shows_a_claim_with_its_numbers(results: Path) -> None:
    counts, legend, hint, _, _, first, *_ = scorecard_text(results).split("\n\n")
    assert counts.splitlines() == [
        "Classifier temperature: no study",
        "Focal: 1 hold, 1 inconclusive, 1 not tested",
        "Cooling: no study",
        "Temperature check: no study",
    ]
    assert len(legend.splitlines()) == 5
    assert hint == "One paper: softmax-temperature scorecard focal"
    assert first.splitlines() == [
        "HOLDS: A beats B. (Table 1; a)",
        f"  holds (two, primary): 25.00 ± 10.00 [10.00, 40.00] {OF_ECE} (n = 5 seeds,",
        "      interval at 90 %)",
        f"  inconclusive (one): 25.00 ± 10.00 [-10.00, 40.00] {OF_ECE} (n = 9 seeds,",
        "      interval at 90 %)",
        "  must lie: above 0",
        "  printed:  50",
        "  power:    detects 15; an effect of 50 would need n = 3",
    ]


def test_the_terminal_shows_one_paper_and_refuses_an_unknown_one(results: Path) -> None:
    of_focal = scorecard_text(results, ["focal"])
    assert of_focal.startswith("The verdict is the primary study's;")
    assert of_focal.count("Focal: 1 hold") == 1
    assert "Cooling" not in of_focal
    assert "A beats B." not in scorecard_text(results, ["cooling"])
    with pytest.raises(InputError, match=r"unknown paper 'focl'.*focal"):
        scorecard_text(results, ["focl"])


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


def test_help_names_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["scorecard", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for paper in PAPERS:
        assert paper in shown
