"""Checks the README and the pages of docs.

Their Python code runs unchanged and prints what is shown, their commands exist, their
links work, every page is linked, and the site can be read from disk.
"""

import ast
import math
import os
import re
import shlex
import shutil
import sys
import textwrap
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import typer
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

import softmax_temperature
from softmax_temperature.losses import focal
from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
)
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.papers.shared.results import Evidence, evidence
from softmax_temperature.tools import cli, picture
from softmax_temperature.tools.verdicts import (
    secondary_counts,
    secondary_verdict,
    untested_claims,
)
from tests.conftest import ROOT
from tests.programs import run_program

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in PAGES
}
RERUN = "docs/tutorials/rerun_a_number.md"
COMMANDS: Mapping[str, Any] = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def blocks(page: str, *languages: str) -> list[tuple[str, str, str | None]]:
    """The language, code and shown output of each block of a page, without indents."""
    pattern = re.compile(
        rf"^( *)```({'|'.join(languages)})\n(.*?)^\1```\n(?:\n\1```text\n(.*?)^\1```)?",
        re.DOTALL | re.MULTILINE,
    )
    return [
        (language, textwrap.dedent(code), textwrap.dedent(shown) or None)
        for _, language, code, shown in pattern.findall(TEXTS[page])
    ]


def check_shown(printed: str, shown: str) -> None:
    """Check that words are equal, and that numbers differ by at most 10 %, or by one in
    the last digit.

    Other processors round differently, and training amplifies the differences.
    """
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    for ours, other in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        _, _, decimals = other.partition(".")
        last_digit = 1.01 * 10.0 ** -len(decimals)
        assert math.isclose(
            float(ours), float(other), rel_tol=0.1, abs_tol=last_digit
        ), (printed, shown)


def links(text: str) -> list[str]:
    """The targets of a page's links, except links in code."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, and the anchors that the page sets itself."""
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    named = set(re.findall(r'<a id="([^"]+)"></a>', text))
    return named | {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


# The programs that shell blocks start. `.` and `softmax-temperature` are also used as
# arguments, as the names of a folder and of an image.
PROGRAMS = {
    ".",
    ".venv/bin/pre-commit",
    "cd",
    "docker",
    "dvc",
    "echo",
    "export",
    "git",
    "ln",
    "make",
    "mv",
    "nvidia-cuda-mps-control",
    "pip",
    "python",
    "ray",
    "rsync",
    "softmax-temperature",
    "timeout",
    "torchrun",
}
STARTS = "|".join(map(re.escape, sorted(PROGRAMS - {".", "softmax-temperature"})))
SECOND_COMMAND = re.compile(
    rf"\s(?:(?:{STARTS})\s|softmax-temperature (?:{'|'.join(COMMANDS)})\b)"
)
FENCE = re.compile(r" *```(?:dockerfile|math|python|sh|text|yaml)?")


def reflowed_commands(code: str) -> list[str]:
    """Lines of a shell block that start with no program, or contain a second command.

    An editor that joins lines also moves commands into the comment of the line above.
    """
    reflowed = []
    for line in code.replace("\\\n", "").splitlines():
        command, _, comment = re.sub("`[^`]*`", "", line).partition("#")
        parts = [part.strip() for part in re.split(r"&&|\|", command)]
        starts = {part.split()[0] for part in parts if part}
        # The last words of `docker run` and `timeout` are a command.
        rest = [
            part for part in parts if not part.startswith(("docker run ", "timeout "))
        ]
        if starts - PROGRAMS or any(
            SECOND_COMMAND.search(f"{text} ") for text in [*rest, f" {comment}"]
        ):
            reflowed.append(line)
    return reflowed


def check_blocks(page: str) -> None:
    """Fail on a code block whose lines an editor has joined."""
    fences = [line for line in TEXTS[page].splitlines() if "```" in line]
    assert [line for line in fences if not FENCE.fullmatch(line)] == [], page
    for language, code, _ in blocks(page, "python", "sh", "yaml"):
        if language == "sh":
            assert reflowed_commands(code) == [], page
        elif language == "yaml":
            assert isinstance(YAML(typ="safe").load(code), dict), page
        else:
            ast.parse(code, page)


@pytest.mark.parametrize("page", TEXTS)
def test_no_editor_has_joined_the_lines_of_a_code_block(page: str) -> None:
    check_blocks(page)


@pytest.mark.parametrize("page", [page for page in TEXTS if page.startswith("docs/")])
def test_code_is_at_most_72_columns_wide(page: str) -> None:
    """On a phone a longer line would have to be scrolled, block by block."""
    long = [
        line
        for _, code, _ in blocks(page, "python", "sh", "yaml")
        for line in code.splitlines()
        if len(line) > 72
    ]
    assert long == []


@pytest.mark.parametrize("page", TEXTS)
def test_no_editor_has_joined_a_heading_with_its_first_paragraph(page: str) -> None:
    prose = re.sub(r"```.*?```", "", TEXTS[page], flags=re.DOTALL)
    assert re.findall(r"^#+ .*\n(?=.)", prose, re.MULTILINE) == []


@pytest.mark.parametrize(
    "lines",
    [
        ["```python", "import math import os", "```"],
        ["```python import math", "print(math.pi)", "```"],
        ["```sh", "make repro make test", "```"],
        ["```sh", "cd softmax-temperature softmax-temperature plan", "```"],
        ["```sh", "dvc params diff softmax-temperature compare", "```"],
        ["```sh", "dvc plots show  # the figures dvc push", "```"],
        [
            "```sh",
            "make data  # which are present, and where to",
            "get make test",
            "```",
        ],
        ["```sh", "make data ```", "Text."],
        ["```yaml", "notebooks: study: mini  # a folder level: 0.95", "```"],
    ],
)
def test_joined_lines_of_a_code_block_are_found(
    lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TEXTS, "page", "\n".join([*lines, ""]))
    with pytest.raises((AssertionError, SyntaxError, YAMLError)):
        check_blocks("page")


WITH_PYTHON = [page for page in TEXTS if page != RERUN and blocks(page, "python")]


# These pages use libraries that raise warnings.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_code_runs_unchanged_and_prints_what_is_shown(
    page: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for _, code, shown in blocks(page, "python"):
        if page == "README.md":
            names = {"__name__": "__main__"}  # Each block must run by itself.
        # The code is our own text.
        exec(compile(code, page, "exec"), names)  # noqa: S102
        printed = capsys.readouterr().out
        if shown is not None:
            check_shown(printed, shown)
        assert printed.strip() or page != "README.md"


@pytest.mark.parametrize("seed", range(8))
def test_cooling_in_the_quick_start_collapses_with_no_seed(
    seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "docs/quick_start.md"
    (code,) = [code for _, code, _ in blocks(page, "python") if "Cooling(" in code]
    assert code.count("manual_seed(0)") == 1
    exec(code.replace("manual_seed(0)", f"manual_seed({seed})"), {})  # noqa: S102
    # The page says 90 to 93 %; other processors round differently.
    accuracy = float(capsys.readouterr().out.split()[-2])
    assert 89 <= accuracy <= 94


def test_the_readme_shows_what_calibrate_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ((code, shown),) = re.findall(
        r"```sh\n(.+)\n```\n\nThe report starts:\n\n```text\n(.+?)```",
        TEXTS["README.md"],
        re.DOTALL,
    )
    monkeypatch.setattr(sys, "argv", shlex.split(code.rpartition("```sh\n")[2]))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    printed = capsys.readouterr().out.split()
    # The page wraps the lines for a phone.
    assert printed[: len(shown.split())] == shown.split()
    assert len(shown.split()) > 15


FASTER = {
    # The cells run in this process too; every engine gives the same bytes.
    "engine: processes": "engine: serial",
    # The tutorial compares the first two of its three losses.
    "{CE: 0.0, FL-1: 1.0, FL-3: 3.0}": "{CE: 0.0, FL-1: 1.0}",
}
"""Replacements that the tutorial's test makes in `params.yaml`."""


def run_command(line: str) -> None:
    """Run a command of the tutorial in this process, which has imported torch already.

    After the command `profile`, make the replacements in `FASTER`.
    """
    program, *arguments = shlex.split(line)
    with pytest.MonkeyPatch.context() as patch:
        if program == "python":
            # Checking each step's batch takes half of the time and changes no loss.
            patch.setattr(focal, "check_batch", lambda *_: None)
            assert run_program(ROOT / arguments[0], *arguments[1:]) == 0, line
            return
        assert program == "softmax-temperature"
        patch.setattr(sys, "argv", [program, *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert not ended.value.code, line
    if arguments[0] == "profile":
        params = Path("params.yaml").read_text()
        for old, new in FASTER.items():
            assert params.count(old) == 1
            params = params.replace(old, new)
        Path("params.yaml").write_text(params)


def test_a_number_is_computed_and_trained_again_as_the_tutorial_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("profiles", "dvc.yaml", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "data/published", tmp_path / "data/published")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for language, code, shown in blocks(RERUN, "sh", "python"):
        if language == "python":
            exec(compile(code, RERUN, "exec"), names)  # noqa: S102
        elif not code.startswith(". .venv"):  # The environment is already active here.
            for line in code.splitlines():
                run_command(line)
        printed = capsys.readouterr().out
        if shown is not None:
            check_shown(printed, shown)


def test_the_readme_has_at_most_1500_words_and_every_page_a_title() -> None:
    assert len(blocks("README.md", "python")) >= 4
    assert len(TEXTS["README.md"].split()) <= 1500
    assert [page for page, text in TEXTS.items() if not text.startswith("# ")] == []


CLAIMS: Mapping[str, list[Evidence]] = evidence(ROOT / "results")
"""The claims of each paper, with the evidence of each study."""


def prose(page: str) -> str:
    """The text of a page on one line."""
    return " ".join(TEXTS[page].split())


NUMBER_WORDS = (
    "none",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def in_words(count: int) -> str:
    """A count as the pages write it: in words up to twelve, then in digits."""
    return NUMBER_WORDS[count] if count < len(NUMBER_WORDS) else str(count)


def assert_says(page: str, wanted: str) -> None:
    """Assert that a page has the text `wanted`, which its line breaks may divide."""
    assert wanted in prose(page), f"{page} must say: {wanted}"


DECIDED = ("hold", "contradicted", "inconclusive")
SCORECARD = "docs/scorecard.md"
CLAIM = re.compile(r'^### <a id="claim-', re.MULTILINE)
SECTIONS = ("decided", "inconclusive", "not-tested")
"""The anchors of the sections of a paper's page of the scorecard."""


def claims_on_pages() -> dict[str, int]:
    """The number of claims on the scorecard's page of each paper."""
    return {
        Path(page).stem: len(CLAIM.findall(text))
        for page, text in TEXTS.items()
        if page.startswith("docs/scorecard/") and CLAIM.search(text)
    }


def test_the_readme_counts_verdicts_as_the_scorecard_does() -> None:
    titles = {
        "classifier_temperature": "Fine-tune your classifier",
        "focal": "Calibrating deep neural networks using focal loss",
        "cooling": "How to keep cool while training",
        "temperature_check": "Temperature check",
    }
    for paper, title in titles.items():
        line = rf"^- \[{title}\]\(scorecard/{paper}\.md\): (.+)$"
        (said,) = re.findall(line, TEXTS[SCORECARD], re.MULTILINE)
        of_paper, _, _ = said.partition("; of our own derivations: ")
        counts = {
            verdict: int(count)
            for count, verdict in re.findall(r"(\d+) ([^,;]+)", of_paper)
        }
        tested = sum(counts.get(verdict, 0) for verdict in DECIDED)
        (row,) = [
            line
            for line in TEXTS["README.md"].splitlines()
            if line.startswith("| [") and f"docs/{paper}.md" in line
        ]
        contradicted = counts.get("contradicted", 0)
        numbers = (sum(counts.values()), tested, counts["hold"], contradicted)
        wanted = f"| {' | '.join(map(str, numbers))} |"
        assert row.endswith(wanted), f"README.md: the row of {paper} must end {wanted}"
    known = [claim for claims in CLAIMS.values() for claim in claims]
    derived = sum(claim.primary["derived"] for claim in known)
    assert_says(
        "README.md", f"all {len(known)} claims, {in_words(derived)} of them ours"
    )
    assert len(known) == sum(claims_on_pages().values())


@pytest.mark.parametrize("paper", ["focal", "cooling"])
def test_pages_count_the_verdicts_of_secondary_studies_as_the_command_does(
    paper: str,
) -> None:
    untested = untested_claims(CLAIMS[paper])
    counts = re.findall(r"(\d+) (\w+)", secondary_counts(untested))
    parts = [rf"{count} (?:are )?{word}" for count, word in counts]
    lead = rf"of the {len(untested)} (?:untested )?claims(?:, one of them ours)?, "
    between = r"(?: in secondary studies)?(?: \(.*?\))?(?:, | and )"
    name = f"docs/{paper}.md"
    assert re.search(rf"{lead}{between.join(parts)}\b", prose(name)), (
        f"{name} must say: of the {len(untested)} claims, {secondary_counts(untested)}"
    )


def test_the_page_on_focal_loss_says_which_verdicts_all_secondary_studies_share() -> (
    None
):
    shared: Counter[str] = Counter()
    untested = untested_claims(CLAIMS["focal"])
    for claim in untested:
        verdicts = {row["verdict"] for row in claim.others} - {NOT_TESTED}
        if len(verdicts) == 1:
            shared.update(verdicts)
    counts = Counter(map(secondary_verdict, untested))
    assert_says(
        "docs/focal.md",
        f"{shared[HOLDS]} of the {counts[HOLDS]} claims hold in every secondary study "
        f"that tests them, and {shared[CONTRADICTED]} of the {counts[CONTRADICTED]} "
        "are contradicted in every one",
    )


HOLDING = [
    claim.primary
    for claim in CLAIMS["focal"]
    if claim.primary["verdict"] == HOLDS and not claim.primary["stand_in"]
]
"""The rows of focal loss's claims that hold on the paper's data."""
LINEAR = [row for row in HOLDING if row["id"].startswith("linear-")]
"""The rows in `HOLDING` of claims on a linear model."""


def test_the_readme_counts_the_claims_of_focal_loss_that_hold_and_are_untested() -> (
    None
):
    two_seeds = [row for row in HOLDING if row["n"] == 2]
    count = len(untested_claims(CLAIMS["focal"]))
    assert_says(
        "README.md",
        f"Of focal loss's claims {count} are untested; of the "
        f"{in_words(len(HOLDING))} that hold, {in_words(len(LINEAR))} concern a linear "
        f"model, and {in_words(len(two_seeds))} rest on two seeds.",
    )
    assert_says("README.md", f"`focal_full` ({count} claims of focal loss")
    verdicts = Counter(map(secondary_verdict, untested_claims(CLAIMS["focal"])))
    assert_says(
        "README.md",
        f"Secondary studies contradict {verdicts[CONTRADICTED]} of the {count}.",
    )


def test_the_page_on_focal_loss_counts_claims_that_hold_and_are_untested() -> None:
    count = len(untested_claims(CLAIMS["focal"]))
    others = len(HOLDING) - len(LINEAR)
    assert_says(
        "docs/focal.md",
        f"so {count} of {len(CLAIMS['focal'])} claims are not tested, including the "
        f"main ones. Of the {in_words(len(HOLDING))} claims that hold, "
        f"{in_words(len(LINEAR))} are about a linear model; the other "
        f"{in_words(others)} are about the order of losses, and were tested with two "
        "seeds.",
    )


def test_focal_loss_holds_with_two_seeds_in_the_claims_on_the_order_of_losses() -> None:
    others = [row for row in HOLDING if row not in LINEAR]
    seeds = {row["id"]: row["n"] for row in others}
    assert seeds == {"gamma-order": 2, "label-smoothing-0.05": 2}, (
        "docs/focal.md and README.md say that these claims, and no others without a "
        "linear model, hold with two seeds"
    )


def test_the_main_claims_of_focal_loss_are_untested() -> None:
    main = {
        "flsd-53-calibrates",
        "flsd-53-calibrates-after-scaling",
        "accuracy-is-kept",
    }
    untested = untested_claims(CLAIMS["focal"])
    assert main <= {claim.primary["id"] for claim in untested}
    assert {claim.primary["primary"] for claim in untested} == {"focal_full"}


def test_the_page_on_adding_names_an_expression_that_selects_the_tests_of_counts() -> (
    None
):
    (expression,) = re.findall(
        r'`pytest tests/test_docs\.py -k "([^"]+)"`', prose("docs/adding.md")
    )
    words = expression.split(" or ")
    counting = [
        name
        for name, test in globals().items()
        if name.startswith("test_") and "assert_says" in test.__code__.co_names
    ]
    assert len(counting) > 3
    for name in counting:
        assert any(word in name for word in words), f"{name} lacks {expression}"


def test_an_inconclusive_claim_of_cooling_is_contradicted_elsewhere() -> None:
    decided = [
        (paper, claim.primary["id"])
        for paper, claims in CLAIMS.items()
        for claim in claims
        if claim.primary["verdict"] == INCONCLUSIVE
        and secondary_verdict(claim) not in (INCONCLUSIVE, "not tested")
    ]
    assert decided == [("cooling", "distributed-is-outperformed")]
    page = prose("docs/cooling.md")
    assert "The paper's order of the modes is not confirmed" in page
    (one,) = (SIDES["cooling_cifar10", name] for _, name in decided)
    assert one["verdict"] == CONTRADICTED
    assert one["unit"] == "accuracy, Periodically redistributed"
    value, low, high = (points(-one[end]) for end in ("value", "high", "low"))
    said = (
        f"At half the width periodic Cooling gains {value} [{low}, {high}] points less"
    )
    assert said in page


def test_the_readme_has_the_hours_and_minutes_of_the_page_on_costs() -> None:
    costs = TEXTS["docs/costs.md"]
    table = costs.partition("Larger studies")[0]
    row = re.compile(r"^\| `(\w+)` \|(?:[^|]*\|){2} (\d+)", re.MULTILINE)
    studies = dict(row.findall(table))
    hours = dict(
        re.findall(r"^- \[(\w+)\]\(.*; (\d\.\d)$", TEXTS["README.md"], re.MULTILINE)
    )
    assert len(hours) == 8
    # The minutes that `mini` takes depend on the processor.
    del hours["mini"]
    # Two cells run at a time.
    for name, said in hours.items():
        assert float(said) == pytest.approx(int(studies[name]) / 120, abs=0.051), name
    section = " ".join(costs.partition("## Minutes of `mini`")[2].split())
    minutes = [float(found) for found in re.findall(r"(\d+\.\d) \(", section)]
    minutes += [float(found) for found in re.findall(r"(\d+\.\d) minutes \(", section)]
    assert len(minutes) == 6
    said = f"{min(minutes):.0f} to {max(minutes):.0f} minutes"
    assert said in prose("README.md")
    assert said in prose("docs/quick_start.md")


def test_the_effects_of_the_readme_are_those_of_the_claims() -> None:
    """Each row of the table has its claim's value in the study that `effects` names,
    and the printed value.

    A sentence below the table states the levels of the intervals.
    """
    effects = {
        "Focal loss (": ("focal_cifar10", "focal", "flsd-53-calibrates"),
        "Focal loss, scaled": (
            "focal_cifar10",
            "focal",
            "flsd-53-calibrates-after-scaling",
        ),
        "Cooling": ("cooling_full", "cooling", "last-layer-helps-without-schedule"),
        "Cosine classifiers": (
            "collection",
            "classifier_temperature",
            "prediction-is-significant",
        ),
        "Temperature check": (
            "temperature_check",
            "temperature_check",
            "accuracy-depends-on-temperature",
        ),
    }
    table = TEXTS["README.md"].partition("| ours | printed |")[2].partition("\n\n")[0]
    levels = {}
    for name, (study, paper, claim) in effects.items():
        start = f"| {name}".replace("(", "([")
        (row,) = [line for line in table.splitlines() if line.startswith(start)]
        (known,) = [one for one in CLAIMS[paper] if one.primary["id"] == claim]
        sides = {one["profile"]: one for one in known.sides}
        effect = row.split("|")[2].strip()
        assert effect.endswith("\\*") == (study != known.primary["primary"])
        scale, digits = (1, 2) if paper == "classifier_temperature" else (100, 1)
        found = sides[study]
        if name != "Focal loss, scaled":
            assert re.search(rf": .*\b{found['n']} (?:seeds|data sets)\b", effect)
        levels[paper] = f"{100 * found['level']:.3g} %"
        for estimate in [found, *(found["tasks"] if "VGG" in row else [])]:
            value, low, high = (
                f"{scale * estimate[end]:.{digits}f}"
                for end in ("value", "low", "high")
            )
            points = " points" if scale == 100 and f"{value} points" in row else ""
            assert f"{value}{points} [{low}, {high}]" in row
        printed = row.rpartition("|")[0].rpartition("|")[2].strip()
        if found["published"] is None:
            assert printed == "not known"
        else:
            assert float(printed) == pytest.approx(
                scale * found["published"], abs=0.5 * 10**-digits
            )
    assert levels["focal"] == levels["temperature_check"]
    texts = 100 * SIDES["text", "flsd-53-calibrates-after-scaling"]["level"]
    said = " ".join(TEXTS["README.md"].split())
    assert (
        f"level {levels['focal']} for focal loss (texts {texts:.0f} %, translation "
        f"95 %) and Temperature check, {levels['cooling']} for Cooling and "
        f"{levels['classifier_temperature']} for cosine classifiers"
    ) in said


SIDES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (side["profile"], claim.primary["id"]): side
    for claims in CLAIMS.values()
    for claim in claims
    for side in claim.sides
}
"""A study's evidence on a claim, keyed by study and claim."""
MODES = ("last-layer", "distributed", "periodic")
FINDINGS = pytest.mark.parametrize("page", ["README.md", "docs/index.md"])


def points(value: float, digits: int = 1) -> str:
    """Format a fraction in percentage points."""
    return f"{100 * value:.{digits}f}"


def ends(values: Iterable[float]) -> str:
    """Format the smallest and largest of the given fractions in percentage points."""
    ordered = sorted(values)
    return f"{points(ordered[0])} to {points(ordered[-1])}"


@FINDINGS
def test_the_findings_of_temperature_check_are_those_of_the_results(page: str) -> None:
    text = prose(page)
    study = "temperature_check"
    tuned = SIDES[study, "tuning-helps-every-architecture"]
    assert tuned["level"] == pytest.approx(0.967, abs=5e-4)
    gru, vgg = sorted(tuned["tasks"], key=itemgetter("value"), reverse=True)
    value, low, high = (points(gru[end]) for end in ("value", "low", "high"))
    assert f"value of 1, it gains {value} points [{low}, {high}]" in text
    assert vgg["low"] < 0 < vgg["high"]
    assert re.search("no gain is shown (for images|on CIFAR-10)", text)
    spread = SIDES[study, "accuracy-depends-on-temperature"]
    low, high = sorted(round(100 * task["value"]) for task in spread["tasks"])
    assert re.search(rf"is {low} to {high} points of accuracy above the worst", text)
    runs = read_csv(ROOT / "results" / study / study / "runs.csv")
    assert "trained for five epochs" in text
    assert set(runs["epochs"].dropna()) == {5}
    table: Any = read_csv(ROOT / "results" / study / study / "tables/accuracies.csv")
    tried: Any = table.query("sweep in ('vgg', 'gru')")["inverse_temperature"]
    assert (tried.min(), tried.max(), tried.nunique()) == (0.01, 10, 7)
    assert re.search(r"best of seven inverse temperatures.*?0\.01 to 10", text)


@FINDINGS
def test_the_findings_of_cooling_are_those_of_the_results(page: str) -> None:
    text = prose(page)
    full = [SIDES["cooling_full", f"{mode}-helps-without-schedule"] for mode in MODES]
    assert {one["n"] for one in full} == {3}
    assert re.search(
        rf"gains {ends(one['value'] for one in full)} points of accuracy.*?"
        r"\(three seeds\)",
        text,
    )
    gains = picture.gains_over_all_seeds(
        read_csv(ROOT / "results" / picture.COOLING / "tables/table_1.csv")
    )
    assert {gain.n for gain in gains.values()} == {15}
    if page == "README.md":
        calibrated = SIDES["cooling_full", "cooling-calibrates"]
        lowered = {round(-100 * part["value"]) for part in calibrated["parts"]}
        assert f"and lowers ECE by {lowered.pop()} points" in text
        assert not lowered
        smaller = [
            SIDES[study, f"{mode}-helps-without-schedule"]["value"]
            for study in ("cooling_cifar10", "cifar10_cpu_cooling")
            for mode in MODES
        ]
        one = SIDES["cooling_ablations", "last-layer-helps-without-schedule"]
        smaller.append(one["value"])
        smaller += [gain.value for gain in gains.values()]
        assert f"In smaller studies, the gain is {ends(smaller)} points." in text
    else:
        assert "fifteen" in text
        for gain in gains.values():
            assert gain.ends
            low, high = map(points, gain.ends)
            assert f"{points(gain.value)} [{low}, {high}]" in text
    assert "has not been shown to make a schedule unnecessary" in text
    assert SIDES["cooling_cifar10", "no-schedule-is-needed"]["verdict"] != HOLDS


def test_the_archived_study_of_cooling_shows_no_gain() -> None:
    text = prose("docs/index.md")
    archived = [
        SIDES["cifar10_cpu_cooling", f"{mode}-helps-without-schedule"] for mode in MODES
    ]
    assert {one["n"] for one in archived} == {2}
    assert all(one["low"] < 0 < one["high"] for one in archived)
    assert re.search("archived study `cifar10_cpu_cooling`.*? shows no gain", text)
    numbers = "{} points with last layer, {} with distributed and {} with periodic"
    assert numbers.format(*(points(one["value"]) for one in archived)) in text


def test_the_findings_at_half_the_width_are_those_of_the_results() -> None:
    text = prose("docs/index.md")
    half, piecewise = (
        [SIDES["cooling_cifar10", f"{mode}-helps-{how}-schedule"] for mode in MODES]
        for how in ("without", "with-piecewise")
    )
    assert {one["n"] for one in half} == {4}
    assert re.search(rf"gains {ends(one['value'] for one in half)} .*?four", text)
    values = ends(one["value"] for one in piecewise)
    assert f"{values} points with the piecewise constant schedule" in text


@FINDINGS
def test_the_findings_of_smooth_schedules_are_those_of_the_results(page: str) -> None:
    text = prose(page)
    smooth = [
        SIDES["cooling_cifar10", f"{mode}-gains-nothing-with-smooth-schedule"]
        for mode in MODES
    ]
    average = ends(one["value"] for one in smooth)
    assert all(one["low"] < 0 < one["high"] for one in smooth)
    fast = [
        task["value"]
        for one in smooth
        for task in one["tasks"]
        if "Exp Decay Fast" in str(task)
    ]
    assert len(fast) == 3
    if page == "README.md":
        assert f"no gain is shown on average ({average} points; on one" in text
        assert f"on one of them, {ends(fast)})" in text
        return
    assert f"{average} points averaged over four smooth schedules" in text
    assert f"include 0, and {ends(fast)} " in text


@FINDINGS
def test_the_findings_of_focal_loss_are_those_of_the_results(page: str) -> None:
    text = prose(page)
    assert re.search(
        r"gives, after the last epoch, a lower (expected )?calibration error", text
    )
    for study in ("focal_cifar10", "focal_cifar100", "text"):
        for claim in ("fl-3-calibrates", "flsd-53-calibrates"):
            assert "last epoch" in SIDES[study, claim]["compares"]
            assert SIDES[study, claim]["verdict"] == HOLDS
    lost = SIDES["focal_cifar10", "accuracy-is-kept"]
    low, high = sorted(abs(lost[end]) for end in ("low", "high"))
    assert re.search(
        rf"costs {points(abs(lost['value']))} (percentage )?points of accuracy "
        rf"\[{points(low)}, {points(high)}\]",
        text,
    )
    scaled = SIDES["text", "flsd-53-calibrates-after-scaling"]
    value, low, high = (points(scaled[end]) for end in ("value", "low", "high"))
    assert (
        f"and on average {value} points [{low}, {high}] on the paper's two text data "
        "sets, which is worse"
        if page == "README.md"
        else f"is worse by {value} points on average [{low}, {high}]"
    ) in text
    chosen_epoch: Any = read_csv(ROOT / "results/text/focal/tables/table_1.csv").query(
        "task in ('newsgroups20-cnn', 'sst-tree-lstm') and "
        "metric == 'ece_after_scaling'"
    )
    means = chosen_epoch.groupby("method")["ours"].mean()
    worse = points(means["FLSD-53"] - means["CE"])
    assert page == "README.md" or f"by {worse} at the epoch" in text
    images = SIDES["focal_cifar10", "flsd-53-calibrates-after-scaling"]
    assert images["low"] <= images["published"] <= images["high"]
    printed = points(abs(images["published"]))
    value, low, high = (points(images[end]) for end in ("value", "low", "high"))
    assert (
        f"minus that of cross-entropy is {value} points [{low}, {high}] on CIFAR-10, "
        "which is undecided,"
        if page == "README.md"
        else f"the paper's {printed} points is not excluded;"
    ) in text
    ablation = read_csv(ROOT / "results/text/focal/tables/ablation.csv").query(
        "dataset == 'newsgroups20' and variant == 'temperature by NLL' "
        "and metric == 'ece_after_scaling'"
    )
    eces: Any = ablation.set_index("method")
    if page == "docs/index.md":
        for loss, words in (("FLSD-53", "an ECE of "), ("CE", "cross-entropy ")):
            assert f"{words}{points(eces.loc[loss, 'changed'])}" in text
        by_ece = " and ".join(
            points(eces.loc[loss, "main"]) for loss in ("FLSD-53", "CE")
        )
        assert f"({by_ece} % with the temperature of lowest ECE)" in text
        chosen = read_csv(ROOT / "results/text/focal/tables/table_1.csv").query(
            "task == 'imdb-cnn' and metric == 'ece'"
        )
        of_imdb: Any = chosen.set_index("method")["ours"]
        assert of_imdb["CE"] < of_imdb["FLSD-53"] < of_imdb["FL-3"]


@FINDINGS
def test_the_findings_of_cosine_classifiers_are_those_of_the_results(page: str) -> None:
    text = prose(page)
    folder = ROOT / "results" / picture.RULES / "tables"
    rules: Any = read_csv(folder / "cost_of_rules.csv").set_index("rule")["mean"]
    lost = points(rules["ridge of the logarithm (ours)"])
    assert re.search(
        rf"lose {lost} points of accuracy (relative to|against) the best", text
    )
    regressions = (
        rules["All Stats, least squares"],
        rules["4-Best Stats, least squares"],
    )
    one = points(rules["none (1)"])
    assert re.search(
        rf"(inverse temperature|factor) 1 they lose {one}"
        rf"|{one} points with inverse temperature 1",
        text,
    )
    table: Any = read_csv(folder / "cost_of_suggest.csv").set_index(["range", "rule"])
    of_suggest: Any = table.xs("suggest", level="rule")
    losses = {
        place: points(of_suggest.loc[place, "mean"], 2) for place in of_suggest.index
    }
    assert re.search(
        rf"loses {losses['all']}(?: points)?, (?:like|as much as) a search", text
    )
    # The difference from that search is compatible with 0.
    search = table.loc["all", "chosen on validation"]
    assert search["low"] < 0 < search["high"]
    assert " and ".join(map(points, regressions)) in text
    if page == "docs/index.md":
        assert f"{losses['inside']} points, on" in text
        assert of_suggest.loc["outside", "pairs"] == 58
        assert f"58 of {of_suggest.loc['all', 'pairs']} pairs" in text
        assert losses["outside"] in text
        ridge = table.loc["outside", "ridge of the logarithm (ours)"]["mean"]
        assert f"where the rule would lose {points(ridge, 2)}" in text


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_to_existing_files_and_headings(page: str) -> None:
    for target in links(TEXTS[page]):
        if target.startswith("https://"):
            continue  # Tests do not use the network.
        place, _, anchor = target.partition("#")
        path = ((ROOT / page).parent / place).resolve() if place else ROOT / page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_every_page_is_linked_from_the_readme_or_an_index() -> None:
    names = ("README.md", "index.md", Path(SCORECARD).name)
    indices = [page for page in TEXTS if Path(page).name in names]
    linked = {
        os.path.normpath(Path(page).parent / target.partition("#")[0])
        for page in indices
        for target in links(TEXTS[page])
    }
    starts = {page for page in indices if page != SCORECARD}
    assert set(TEXTS) - starts <= linked


class Page(HTMLParser):
    """Collects the links, images, scripts and anchors of one page of the site."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.external: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        target = given.get("href") or given.get("src")
        if target is None:
            return
        if re.match("(https?:)?//", target):
            if tag != "a":
                self.external.append(target)
        elif not target.startswith(("data:", "mailto:")):
            self.targets.append(urllib.parse.unquote(target))


def test_the_site_reads_offline_and_all_of_its_links_lead_somewhere(
    site_folder: Path,
) -> None:
    pages = {path: Page(path) for path in site_folder.rglob("*.html")}
    assert len(pages) > 40
    for path, page in pages.items():
        assert page.external == [], path
        for target in page.targets:
            place, _, anchor = target.partition("#")
            other = (path.parent / place).resolve() if place else path
            assert other.exists(), (path, target)
            if anchor and other in pages:
                assert anchor in pages[other].anchors, (path, target)


def test_an_executed_notebook_is_a_page_of_the_site(site_folder: Path) -> None:
    for name in ("classifier_temperature", "cooling", "focal", "temperature_check"):
        docs = TEXTS[f"docs/{name}.md"]
        linked = set(re.findall(r"results/[\w/]+/notebook\.ipynb", docs))
        assert len(linked) >= 2
        title = docs.splitlines()[0].removeprefix("# ")
        _check_notebooks(site_folder, linked, title)


def _check_notebooks(site_folder: Path, notebooks: set[str], title: str) -> None:
    for notebook in notebooks:
        page = (site_folder / notebook).with_suffix(".html")
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"<h1[^>]*>(.*?)</h1>", text) == [
            f"{title}: notebook of {Path(notebook).parts[1]}"
        ]
        # Without `download`, a browser would show the notebook's source instead of
        # saving the notebook.
        assert re.search(r'<a download="\w+\.ipynb" href="notebook\.ipynb">', text)
        assert page.with_suffix(".ipynb").is_file()
        assert text.count("<table") >= 3
        # The list beside the page has the notebook's sections.
        sections = re.findall(r'<h2 id="([^"]+)">', text)
        assert len(sections) >= 3
        contents = text.partition('aria-label="Table of contents"')[2]
        listed = re.findall(r'href="#([^"]+)" class="md-nav__link"', contents)
        assert list(map(urllib.parse.unquote, listed)) == sections
        figures = list((ROOT / notebook).parent.glob("figures/*.svg"))
        assert text.count('<img src="data:image/png;base64,') == len(figures) > 0
        assert Page(page).external == []


def test_every_name_of_the_library_is_on_a_page_of_the_api(site_folder: Path) -> None:
    anchors = set[str]().union(
        *(Page(path).anchors for path in site_folder.glob("api/*.html"))
    )
    names = {f"softmax_temperature.{name}" for name in softmax_temperature.__all__}
    assert names <= anchors


def test_no_placeholder_is_taken_for_a_tag() -> None:
    known = {"a", "br", "details", "div", "img", "picture", "source", "summary"}
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
        tags = set(re.findall(r"</?([a-z]\w*)[ >/]", prose))
        assert tags <= known, page


def test_a_card_is_named_by_the_columns_that_tell_the_rows_apart(
    site_folder: Path,
) -> None:
    page = site_folder / "focal.html"
    tables = re.findall(
        r"<table data-stacked.*?</table>", page.read_text(encoding="utf-8"), re.DOTALL
    )
    fitted = next(table for table in tables if 'data-title="temperature"' in table)
    titles = re.findall(
        r'data-title="data"><span>(.*?)</span></td>\s*'
        r'<td data-title="temperature"><span>(.*?)</span>',
        re.sub(r'<span class="whole">(.*?)</span>', r"\1", fitted),
    )
    assert ("CIFAR-10", "T by ECE") in titles
    assert len(titles) == len(set(titles)) == fitted.count("<tr>") - 1


def test_a_card_of_the_api_names_its_purpose_even_if_the_table_names_it_above(
    site_folder: Path,
) -> None:
    page = (site_folder / "api/index.html").read_text(encoding="utf-8")
    scaler = page.partition("<code>TemperatureScaler</code>")[0].rpartition("<tr>")[2]
    assert 'data-title="for" data-above="your classifier"' in scaler
    assert "assets/cards.css" in page
    styles = (site_folder / "assets/cards.css").read_text(encoding="utf-8")
    assert "attr(data-above)" in styles


def test_claims_are_cards_with_their_verdicts_as_badges(site_folder: Path) -> None:
    counts = claims_on_pages()
    assert len(counts) == 4
    for paper, count in counts.items():
        page = (site_folder / f"scorecard/{paper}.html").read_text(encoding="utf-8")
        cards = re.findall(r'<section class="claim">(.*?)</section>', page, re.DOTALL)
        assert len(cards) == count
        for card in cards:
            head, table, _ = re.split("(<table.*</table>)", card, flags=re.DOTALL)
            assert head.count('<b class="verdict ') >= 1
            # Every study's result has its verdict, and nothing is folded away.
            results = re.findall(r"<tr>\s*<td>.*?</tr>", table, re.DOTALL)
            assert results
            assert [row for row in results if '<b class="verdict ' not in row] == []
            assert ", primary</td>" in results[0]
            assert "<details" not in card
        # The list beside the page contains the page's sections, but no claims.
        beside = page.partition('aria-label="Table of contents"')[2]
        listed = re.findall(r'href="#([^"]+)" class="md-nav__link"', beside)
        shown = [one for one in SECTIONS if f'<h2 id="{one}">' in page]
        assert list(dict.fromkeys(listed)) == shown


def test_the_scorecard_leads_to_every_claim(site_folder: Path) -> None:
    page = Page(site_folder / "scorecard.html")
    of_papers = [
        one
        for paper in claims_on_pages()
        for one in Page(site_folder / f"scorecard/{paper}.html").anchors
        if one.startswith("claim-")
    ]
    # All papers once shared one page, and old links to a claim on that page must still
    # work.
    assert {one for one in page.anchors if one.startswith("claim-")} == set(of_papers)
    text = (site_folder / "scorecard.html").read_text(encoding="utf-8")
    assert text.count('<b class="verdict ') > len(of_papers) / 3


def test_no_list_runs_on_within_a_paragraph(site_folder: Path) -> None:
    """A block in a list item must be indented by four spaces, or it ends the list."""
    marker = re.compile(r"\n\s*(?:- |\d+\. )\S.*")
    for path in sorted(site_folder.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"<(pre|script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert marker.findall(text) == [], path


def test_formulas_are_drawn_without_a_script(site_folder: Path) -> None:
    page = (site_folder / "glossary.html").read_text(encoding="utf-8")
    assert page.count("<math") >= 8
    assert "$<code>" not in page


@pytest.mark.parametrize("page", TEXTS)
def test_commands_and_their_options_exist(page: str) -> None:
    for line in [
        line
        for _, code, _ in blocks(page, "sh")
        for line in code.replace("\\\n", "").splitlines()
    ]:
        words = shlex.split(line, comments=True)
        if words[:1] == ["softmax-temperature"]:
            name, *rest = words[1:]
            # This parses the arguments and does not run the command.
            COMMANDS[name].make_context(name, rest)
        if words[:1] == ["python"]:
            assert (ROOT / words[1]).is_file(), line
        if words[:1] == ["make"]:
            assert re.search(
                rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE
            ), line


def test_no_docstring_has_bare_tags_or_an_example_outside_its_section(
    project_root: Path,
) -> None:
    """API pages would drop bare tags, and show such examples as running text."""
    wrong = []
    for path in sorted((project_root / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            text = ast.get_docstring(node) or ""
            name = f"{path.stem}.{getattr(node, 'name', '')}"
            prose = re.sub(r"`[^`]*`|^ *>>>.*$", "", text, flags=re.MULTILINE)
            wrong += [f"{name}: {tag}" for tag in re.findall(r"<\w[^>\n]*>", prose)]
            if ">>>" in text and "Examples:" not in text:
                wrong.append(f"{name}: no section Examples")
    assert wrong == []
