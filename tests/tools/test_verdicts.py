"""The scorecard shows the verdict on each claim, and has a page for each paper.

A claim has the verdict of its primary study, and the results of all studies.
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
    paper_page,
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


def write(results: Path, profile: str, *rows: dict[str, Any]) -> Path:
    folder = results / profile / "focal"
    folder.mkdir(parents=True)
    (folder / "claims.json").write_text(
        json.dumps([{**ROW, **row, "profile": profile} for row in rows])
    )
    return results


def index(results: Path) -> str:
    return scorecard(evidence(results), "scorecard")


def page(results: Path) -> str:
    return paper_page("focal", evidence(results)["focal"])


def lines_of(results: Path, claim: int = 0) -> list[str]:
    """The lines of a claim on the focal paper's page, without blank ones."""
    block = page(results).split("\n### ")[1:][claim].partition("\n## ")[0]
    return [line for line in block.splitlines() if line]


def verdict(results: Path, claim: int = 0) -> str:
    """The badges at the start of a claim's second line."""
    return lines_of(results, claim)[1].partition(" Table 1")[0]


def studies(results: Path, claim: int = 0) -> list[str]:
    """The rows of a claim's table, one for each study."""
    return [line for line in lines_of(results, claim) if line.startswith("| `")]


def counted(results: Path) -> str:
    """The counts of the focal paper, which its page and the scorecard show."""
    (line,) = [
        line for line in index(results).splitlines() if "(scorecard/focal.md): " in line
    ]
    counts = line.partition("(scorecard/focal.md): ")[2]
    assert f"\n\n{counts}.\n\n" in page(results)
    return counts


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write(tmp_path, "mini", {"value": 0.99})
    write(tmp_path, "one", OPEN, {"id": "b", **OPEN}, {"id": "c", **UNTESTED})
    return write(tmp_path, "two", {}, {"id": "b", **OPEN}, {"id": "c", **UNTESTED})


def test_a_claim_has_its_primary_studys_verdict_and_a_row_for_each_study(
    results: Path,
) -> None:
    found = "25.00 ± 10.00"
    power = (
        "with n = 5 seeds, there is an 80 % chance of detecting an effect that lies 15 "
        "beyond the bound; if the true effect is 50, n = 3 would suffice"
    )
    assert lines_of(results) == [
        '<a id="claim-a"></a>A beats B.',
        "**`holds`** Table 1; `a`",
        "| study | what it measured |",
        "| --- | --- |",
        f"| `two`, primary | **`holds`** {found} [10.00, 40.00] {OF_ECE} {OF_5} |",
        f"| `one` | **`inconclusive`** {found} [-10.00, 40.00] {OF_ECE} {OF_9} |",
        f"The interval must lie above 0. Printed: 50. Power: {power}.",
    ]


def test_the_scorecard_lists_verdicts_that_link_to_the_papers_pages(
    results: Path,
) -> None:
    claim = ROW["statement"]
    shown = index(results)
    head, _, verdicts = shown.partition(f"\n\n## {TITLES['focal']}\n\n")
    assert [line.partition(": ")[0] for line in head.splitlines()] == [
        f"- [{TITLES[paper]}](scorecard/{paper}.md)" for paper in PAPERS
    ]
    place = "scorecard/focal.md#"
    assert verdicts.splitlines() == [
        f'- <a id="claim-a"></a>**`holds`** [{claim}]({place}claim-a)',
        f'- <a id="claim-b"></a>**`inconclusive`** [{claim}]({place}claim-b)',
        # A claim that was not tested by its primary study is counted and not listed.
        f'- <a id="claim-c"></a>**`not tested`** [1 claim]({place}not-tested)',
    ]
    heads = [lines_of(results, number)[0] for number in range(3)]
    assert heads == [f'<a id="claim-{name}"></a>{claim}' for name in "abc"]
    # Neither page needs a table that is wider than a code host's column.
    assert "\n|" not in shown
    assert {line.count("|") for line in page(results).splitlines()} == {0, 3}


def test_untested_claims_are_counted_by_the_verdicts_of_secondary_studies(
    tmp_path: Path,
) -> None:
    verdicts: list[dict[str, Any]] = [AGAINST, {}, {}, OPEN, UNTESTED, {}]
    rows: list[dict[str, Any]] = [
        {"id": name, "primary": "full", **row}
        for name, row in zip("abcdef", verdicts, strict=True)
    ]
    write(tmp_path, "another", *rows)
    # The third claim holds in one of two studies; the sixth holds in the study that
    # decides.
    other = [{**rows[2], **AGAINST}, rows[3], {**rows[5], **OPEN}]
    write(tmp_path, "third", *other)
    counts = "2 hold, 1 contradicted, 1 mixed, 1 inconclusive, 1 not tested"
    assert index(tmp_path).endswith(
        f"[6 claims](scorecard/focal.md#not-tested); in secondary studies {counts}"
    )
    assert f"In secondary studies: {counts}.\n\n### " in page(tmp_path)
    shown = " ".join(scorecard_text(tmp_path).split())
    assert f"(of those not tested, in secondary studies {counts})" in shown


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ([AGAINST], " (contradicted in secondary studies)"),
        ([{}, OPEN], " (holds in secondary studies)"),
        ([AGAINST, {}], " (mixed in secondary studies)"),
        ([OPEN, UNTESTED], ""),
    ],
)
def test_an_inconclusive_claim_names_what_secondary_studies_decide(
    others: list[dict[str, Any]], says: str, tmp_path: Path
) -> None:
    write(tmp_path, "two", OPEN)
    for number, row in enumerate(others):
        write(tmp_path, f"study_{number}", row)
    assert index(tmp_path).endswith(f"[A beats B.](scorecard/focal.md#claim-a){says}")


def test_a_study_without_results_is_listed_as_not_run(tmp_path: Path) -> None:
    write(tmp_path, "text", {"primary": "focal_full"})
    lines = index(tmp_path).splitlines()
    assert f"- `focal_full`: {STUDIES['focal_full']}; not run" in lines
    assert f"- `text`: {STUDIES['text']}" in lines


def test_a_pilot_is_not_a_study(results: Path) -> None:
    before = index(results), page(results)
    write(results, "focal_pilot", AGAINST, {"id": "d"})
    assert (index(results), page(results)) == before


def test_the_primary_study_decides_although_another_has_more_seeds_or_a_verdict(
    tmp_path: Path,
) -> None:
    write(tmp_path, "another", {"n": 50})
    write(tmp_path, "two", OPEN)
    assert verdict(tmp_path) == "**`inconclusive`**"
    assert counted(tmp_path) == "1 inconclusive"


def test_a_study_that_decides_the_opposite_makes_a_verdict_disputed(
    tmp_path: Path,
) -> None:
    write(tmp_path, "another", AGAINST)
    write(tmp_path, "third", OPEN)
    write(tmp_path, "two", {})
    assert verdict(tmp_path) == "**`holds`** **`disputed`**"
    assert "**`holds`** **`disputed`** [A beats B.]" in index(tmp_path)
    assert counted(tmp_path) == "1 disputed"


def test_without_its_primary_study_a_claim_is_not_tested_whatever_others_say(
    tmp_path: Path,
) -> None:
    write(tmp_path, "another", {"primary": "full"})
    assert verdict(tmp_path) == "**`not tested`**"
    first, second = studies(tmp_path)
    assert first == "| `full`, primary | **`not tested`** has not been run |"
    assert second.startswith("| `another` | **`holds`** 25.00")
    last = "The interval must lie above 0. Printed: 50."
    assert lines_of(tmp_path)[-1] == last
    assert counted(tmp_path) == "1 not tested"


def test_an_archived_study_is_shown_as_such_and_disputes(tmp_path: Path) -> None:
    write(tmp_path, "cifar10_cpu_cooling", AGAINST)
    write(tmp_path, "two", {})
    assert verdict(tmp_path) == "**`holds`** **`disputed`**"
    archived = "| `cifar10_cpu_cooling` (archived) | **`contradicted`** -25.00"
    assert studies(tmp_path)[1].startswith(archived)


def test_stand_in_data_and_our_derivations_are_marked_and_counted_separately(
    tmp_path: Path,
) -> None:
    stand_in = {"stand_in": "CamVid in place of ADE20K", **AGAINST}
    derived = {"id": "b", "derived": True}
    open_one = {"id": "d", "stand_in": "CamVid in place of ADE20K", **OPEN}
    write(tmp_path, "two", stand_in, derived, {"id": "c"}, open_one)
    assert verdict(tmp_path, 0) == "**`contradicted`** **`stand-in data`**"
    assert lines_of(tmp_path, 1)[0].endswith("</a>A beats B (our derivation).")
    assert counted(tmp_path) == (
        "1 hold, 2 on stand-in data; of our own derivations: 1 hold"
    )


def test_a_row_counts_the_tasks_of_the_shown_part_behind_its_interval(
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
    # No sd is shown, because it would mix the differences between tasks with those
    # between seeds.
    (row,) = studies(tmp_path)
    assert row == (
        "| `two`, primary | **`inconclusive`** 25.00 [-10.00, 40.00] points of ECE "
        "(against A; n = 9 seeds of these 2 tasks, interval at 90 %) |"
    )


def test_a_row_has_the_level_of_its_interval_and_names_in_words(tmp_path: Path) -> None:
    write(tmp_path, "two", {"level": 0.96667, "unit": "|r|, cifar10-10000"})
    of_page = "&#124;r&#124;, CIFAR-10, 10,000 images (n = 5 seeds, interval at 96.7 %)"
    assert of_page in studies(tmp_path)[0]
    shown = " ".join(scorecard_text(tmp_path).split())
    assert "|r|, CIFAR-10, 10,000 images (n = 5 seeds, interval at 96.7 %)" in shown


def test_studies_are_named_in_words_once(tmp_path: Path) -> None:
    write(tmp_path, "focal_cifar10", {"primary": "focal_cifar10"})
    words = "focal loss on CIFAR-10, 10,000 images"
    line = f"- `focal_cifar10`: {words}"
    assert index(tmp_path).endswith(f"\n\n## The studies\n\n{line}")
    assert page(tmp_path).count(f"\n\nThe studies:\n\n{line}\n\n") == 1
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
    assert counted(results) == "1 hold, 1 inconclusive, 1 not tested"
    assert studies(results, 2) == ["| `two`, primary | **`not tested`** no run |"]
    titles = [line for line in page(results).splitlines() if line.startswith("## ")]
    assert titles == ["## Decided", "## Inconclusive", "## Not tested"]
    assert "99.00" not in page(results), "a direction was used as evidence"


def test_the_terminal_shows_every_claim_within_80_columns(project_root: Path) -> None:
    results = project_root / "results"
    text = scorecard_text(results)
    assert max(map(len, text.splitlines())) <= 80
    shown = " ".join(text.split())
    for claims in evidence(results).values():
        for claim in claims:
            assert claim.primary["statement"].removesuffix(".") in shown


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
        (
            "  power:    with n = 5 seeds, there is an 80 % chance of detecting an "
            "effect"
        ),
        (
            "            that lies 15 beyond the bound; if the true effect is 50, "
            "n = 3 would"
        ),
        "            suffice",
    ]


def test_the_terminal_shows_one_paper_and_refuses_an_unknown_one(results: Path) -> None:
    of_focal = scorecard_text(results, ["focal"])
    assert of_focal.startswith("The verdict is the primary study's;")
    assert of_focal.count("Focal: 1 hold") == 1
    assert "Cooling" not in of_focal
    assert "A beats B." not in scorecard_text(results, ["cooling"])
    with pytest.raises(InputError, match=r"unknown paper or claim 'focl'.*focal"):
        scorecard_text(results, ["focl"])


def test_the_terminal_shows_one_claim(project_root: Path) -> None:
    text = scorecard_text(project_root / "results", ["cooling-calibrates"])
    assert text.count("; cooling-calibrates)") == 1
    assert text.count("must lie: ") == 2  # In the legend and in the claim.
    assert "Focal" not in text


def test_only_what_is_between_the_markers_is_replaced_and_a_file_without_them_refused(
    results: Path,
) -> None:
    file = results / "verdicts.md"
    file.write_text("above\n<!-- scorecard -->\nstale\n<!-- /scorecard -->\nbelow\n")
    write_scorecard(file, results)
    shown = scorecard(evidence(results), "verdicts")
    assert "(verdicts/focal.md#claim-a)" in shown
    assert file.read_text() == (
        f"above\n<!-- scorecard -->\n{shown}\n<!-- /scorecard -->\nbelow\n"
    )
    assert (results / "verdicts" / "focal.md").read_text() == page(results)
    file.write_text("nothing")
    with pytest.raises(InputError, match="no scorecard markers"):
        write_scorecard(file, results)


def test_the_committed_pages_are_those_that_the_command_writes(
    project_root: Path, tmp_path: Path
) -> None:
    docs = project_root / "docs"
    file = tmp_path / "scorecard.md"
    file.write_text((docs / file.name).read_text())
    write_scorecard(file, project_root / "results")
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.md")}
    pages = {Path("scorecard") / f"{paper}.md" for paper in PAPERS}
    assert written == {Path(file.name), *pages}
    for path in written:
        assert (docs / path).read_text() == (tmp_path / path).read_text()


def test_help_names_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["scorecard", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for paper in PAPERS:
        assert paper in shown
