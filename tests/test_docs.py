"""README and docs: their Python runs, their commands exist, their links lead somewhere,
and every page is linked.
"""

import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

import softmax_temperature
from softmax_temperature.tools import cli
from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in PAGES
}
COMMANDS: Mapping[str, Any] = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]


def blocks(language: str) -> list[tuple[str, str]]:
    """The page and text of each block of code, without the indent of a list."""
    pattern = re.compile(rf"^( *)```{language}\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
    return [
        (page, textwrap.dedent(code))
        for page, text in TEXTS.items()
        for _, code in pattern.findall(text)
    ]


def links(text: str) -> list[str]:
    """What the links of a page lead to, those in code left out."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def anchors(path: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


@pytest.mark.parametrize(("page", "code"), blocks("python"))
def test_a_snippet_runs_and_prints_what_is_shown(
    page: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Our own text.
    exec(compile(code, page, "exec"), {"__name__": "__main__"})  # noqa: S102
    printed = capsys.readouterr().out.strip()
    assert printed
    if page == "README.md" and "calibrate(" in code:
        (shown,) = [text for other, text in blocks("text") if other == page]
        lines = [line for line in shown.splitlines() if line != "  ..."]
        assert [line for line in lines if line not in printed.splitlines()] == []
    if page == "docs/your_own_data.md" and "calibrate(logits, labels[:, 0])" in code:
        assert (page, f"{printed}\n") in blocks("text")


def test_the_readme_has_at_most_1500_words_and_every_page_a_title() -> None:
    assert len(blocks("python")) >= 3
    assert len(TEXTS["README.md"].split()) <= 1500
    assert [page for page, text in TEXTS.items() if not text.startswith("# ")] == []


def test_the_readme_counts_verdicts_as_the_scorecard_does() -> None:
    scorecard = TEXTS["docs/scorecard.md"]
    for paper in ("classifier_temperature", "focal", "cooling", "temperature_check"):
        (said,) = re.findall(
            rf"^### {paper.replace('_', ' ').capitalize()}: (.+)$",
            scorecard,
            re.MULTILINE,
        )
        (row,) = [
            line
            for line in TEXTS["README.md"].splitlines()
            if f"notebooks/{paper}.ipynb" in line
        ]
        assert f"| {said} |" in row
    claims = re.findall(r"^\| \*\*", scorecard, re.MULTILINE)
    assert f"all {len(claims)} claims" in TEXTS["README.md"]


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_to_files_and_headings_that_are_there(page: str) -> None:
    for target in links(TEXTS[page]):
        if target.startswith("https://"):
            continue  # No test uses the network.
        place, _, anchor = target.partition("#")
        path = ((ROOT / page).parent / place).resolve() if place else ROOT / page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_every_page_is_linked_from_the_readme_or_the_index() -> None:
    linked = {
        *links(TEXTS["README.md"]),
        *(f"docs/{page}" for page in links(TEXTS["docs/index.md"])),
    }
    assert {page for page in TEXTS if page.startswith("docs/")} <= linked | {
        "docs/index.md"
    }


def test_the_site_is_built_without_a_warning_and_reads_offline(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--strict",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    subprocess.run(command, cwd=ROOT, check=True)
    page = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    for name in softmax_temperature.__all__:
        assert f'id="softmax_temperature.{name}"' in page
    assert (
        re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]*', page)
        == []
    )


@pytest.mark.parametrize("page", TEXTS)
def test_commands_and_their_options_exist(page: str) -> None:
    for line in [
        line
        for found, code in blocks("sh")
        if found == page
        for line in code.splitlines()
    ]:
        words = shlex.split(line, comments=True)
        if words[:1] == ["softmax-temperature"]:
            name, *rest = words[1:]
            # Parsing alone: the command itself is not run.
            COMMANDS[name].make_context(name, rest)
        if words[:1] == ["python"]:
            assert (ROOT / words[1]).is_file(), line
        if words[:1] == ["make"]:
            assert re.search(
                rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE
            ), line
