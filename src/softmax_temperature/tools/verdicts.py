"""The scorecard of all claims, the command `rejudge`, and the register of claims.

All three read `results/`. The register keeps every version of every claim.
"""

import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, product
from pathlib import Path

import pandas as pd

from softmax_temperature.papers.shared import registry, results
from softmax_temperature.papers.shared.claims import NOT_TESTED
from softmax_temperature.papers.shared.files import round_again, write_csv
from softmax_temperature.papers.shared.records import claims_of, write_derived
from softmax_temperature.papers.shared.results import (
    PAPERS,
    RESULTS,
    STUDIES,
    Evidence,
    evidence,
    study_label,
    tally,
    texts_in_words,
)
from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError, nearest

OPEN = "<!-- scorecard -->"
CLOSE = "<!-- /scorecard -->"
# Width of a terminal in columns.
WIDTH = 80
_COLUMNS = ["verdict", "claim", "where", "studies", "must lie", "printed", "power"]
_BREAK = "<br>"
_EMPTY = "–"
# Stands for a vertical bar, which would end a cell of a Markdown table.
_BAR = "&#124;"
_HOW_TO_READ = (
    "The verdict is the primary study's; below it is what each study measured.",
    "8.6 ± 4.7 [5.3, 11.9]: effect ± standard deviation of the n values, [interval].",
    "must lie: where the interval has to lie; printed: the paper's own number.",
    "power: the distance from the bound that the design detects 4 times in 5.",
    "Stand-in data replace the paper's; our derivations are not a paper's claims.",
)
"""The lines that explain the scorecard in a terminal; docs/scorecard.md says more."""
TITLES = {
    "classifier_temperature": "Fine-tune your classifier",
    "focal": "Calibrating deep neural networks using focal loss",
    "cooling": "How to keep cool while training",
    "temperature_check": "Temperature check",
}
"""The papers' names, without their subtitles."""
_NOTES = {
    "classifier_temperature": (
        "Claims are in the paper's words, whose *temperature* is an inverse "
        "temperature: it multiplies the cosines."
    ),
}
"""A remark that the reader of a paper's claims needs, by paper."""
_HINT = "One paper: softmax-temperature scorecard focal"


def scorecard(results: Path = RESULTS) -> str:
    """The scorecard as Markdown.

    The counts of each paper come first, with the verdict on each tested claim, then a
    description of each study, and then, per paper, a table with one row per claim.
    """
    of_papers = evidence(results)
    counts = [_at_a_glance(paper, claims) for paper, claims in of_papers.items()]
    parts = ["\n".join(counts)] if counts else []
    named = _named_studies(chain.from_iterable(of_papers.values()))
    if named:
        parts.append("The studies:")
        parts.append("\n".join(f"- `{study}`: {words}" for study, words in named))
    for paper, claims in of_papers.items():
        parts.append(f"### {TITLES[paper]}\n\n{_counts(claims)}")
        if not claims:
            continue
        if paper in _NOTES:
            parts[-1] += f". {_NOTES[paper]}"
        lines = [_COLUMNS, ["---"] * len(_COLUMNS)]
        for claim in claims:
            fields = _fields(claim)
            fields["verdict"] = f"**{fields['verdict']}**"
            fields["where"] += f"{_BREAK}`{claim.primary['id']}`"
            fields["studies"] = _BREAK.join(_sides(claim))
            place = f'<a id="claim-{claim.primary["id"]}"></a>'
            fields["claim"] = place + fields["claim"]
            lines.append([fields[column].replace("|", _BAR) for column in _COLUMNS])
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(parts)


def scorecard_text(results: Path = RESULTS, papers: Collection[str] = ()) -> str:
    """The scorecard for a terminal, at most 80 columns wide.

    The counts of all papers and the lines that explain a claim come first, then a
    paragraph per claim.

    Args:
        results: The folder of all studies.
        papers: The papers to show; all if empty.

    Raises:
        InputError: If a paper is unknown.
    """
    for paper in papers:
        if paper not in PAPERS:
            raise InputError(
                f"unknown paper {paper!r}", where="PAPER", remedy=nearest(paper, PAPERS)
            )
    of_papers = {
        paper: claims
        for paper, claims in evidence(results).items()
        if not papers or paper in papers
    }
    parts = []
    if len(of_papers) > 1:
        counts = [_heading(paper, claims) for paper, claims in of_papers.items()]
        parts.append(_wrapped(counts))
    named = _named_studies(chain.from_iterable(of_papers.values()))
    parts.append(_wrapped(_HOW_TO_READ))
    parts.append(_wrapped(f"{study}: {words}" for study, words in named))
    if not papers:
        parts.append(_HINT)
    for paper, claims in of_papers.items():
        lines = textwrap.wrap(_heading(paper, claims), WIDTH)
        parts.append("\n".join([*lines, "=" * max(map(len, lines))]))
        parts += map(_paragraph, claims)
    return "\n\n".join(filter(None, parts))


def _wrapped(lines: Iterable[str]) -> str:
    """Wrap `lines` to a terminal's width, with continuation lines indented."""
    wrapper = textwrap.TextWrapper(
        WIDTH, subsequent_indent="  ", break_on_hyphens=False
    )
    return "\n".join(map(wrapper.fill, lines))


def _named_studies(claims: Iterable[Evidence]) -> list[tuple[str, str]]:
    """The name and the description in `STUDIES` of each study that `claims` name."""
    names = {
        row["profile"] for claim in claims for row in (claim.primary, *claim.others)
    }
    return [(name, STUDIES[name]) for name in sorted(names) if name in STUDIES]


def _heading(paper: str, claims: Sequence[Evidence]) -> str:
    """The title of `paper`, with the number of claims for each verdict."""
    return f"{paper.replace('_', ' ').capitalize()}: {_counts(claims)}"


def _counts(claims: Sequence[Evidence]) -> str:
    """The number of claims for each verdict."""
    return tally(claims) or "no study"


def _at_a_glance(paper: str, claims: Iterable[Evidence]) -> str:
    """The verdicts on a paper's claims, as a list that fits a phone on a code host.

    Each tested claim links to its row, in a table that is too wide for a phone.
    """
    claims = list(claims)
    lines = [f"- [{TITLES[paper]}](#{_anchor(TITLES[paper])}): {_counts(claims)}"]
    for claim in claims:
        if claim.primary["verdict"] == NOT_TESTED:
            continue
        fields = _fields(claim)
        words = re.sub(r"([\[\]])", r"\\\1", fields["claim"])
        lines.append(
            f"    - **{fields['verdict']}**: [{words}](#claim-{claim.primary['id']})"
        )
    return "\n".join(lines)


def _anchor(title: str) -> str:
    """The anchor of a heading on the site and on a code host."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _fields(claim: Evidence) -> dict[str, str]:
    """A claim's texts, from its rows in all studies, by column of the scorecard.

    If the primary study does not test the claim, the bound and the printed value are
    those of the first study that tests it.
    """
    primary = claim.primary
    fields = texts_in_words(primary)
    if primary["n"] is None and claim.sides:
        first = texts_in_words(claim.sides[0])
        fields["must lie"] = first["must lie"]
        fields["printed"] = first["printed"]
    if claim.disputed_by:
        fields["verdict"] += ", disputed"
    if primary["derived"]:
        fields["claim"] += " (our derivation)"
    fields["power"] = fields["power"] or _EMPTY
    return fields


def _sides(claim: Evidence) -> list[str]:
    """Each study's result for `claim`, as a line; the primary study comes first."""
    rows = claim.sides
    if claim.primary not in rows:
        rows = [claim.primary, *rows]
    lines = []
    for row in rows:
        said = texts_in_words(row)
        study = study_label(row["profile"])
        if row["profile"] == row["primary"]:
            study += ", primary"
        number = said["note"] if row["n"] is None else said["ours"]
        lines.append(f"{row['verdict']} ({study}): {number}")
    return lines


def _paragraph(claim: Evidence) -> str:
    """A claim as a paragraph for a terminal.

    The verdict and the claim come first, then, indented, each study's result, the
    claim's bound, the printed value and the power.
    """
    fields = _fields(claim)
    verdict, comma, dispute = fields["verdict"].partition(", ")
    place = f"{fields['where']}; {claim.primary['id']}"
    head = f"{verdict.upper()}{comma}{dispute}: {fields['claim']} ({place})"
    wrapper = textwrap.TextWrapper(
        WIDTH, subsequent_indent="  ", break_on_hyphens=False
    )
    lines = wrapper.wrap(head)
    wrapper.initial_indent = "  "
    wrapper.subsequent_indent = " " * 6
    for side in _sides(claim):
        lines += wrapper.wrap(side)
    wrapper.subsequent_indent = " " * 12
    for column in ("must lie", "printed", "power"):
        if fields[column] != _EMPTY:
            lines += wrapper.wrap(f"{column + ':':<10}{fields[column]}")
    return "\n".join(lines)


def write_scorecard(path: Path, results: Path = RESULTS) -> None:
    """Replace the text between the scorecard's markers in a Markdown file.

    Raises:
        InputError: If the file lacks `<!-- scorecard -->` or `<!-- /scorecard -->`.
    """
    before, _, rest = path.read_text(encoding="utf-8").partition(OPEN)
    _, closed, after = rest.partition(CLOSE)
    if not closed:
        raise InputError(
            "has no scorecard markers",
            where=str(path),
            remedy=f"Put {OPEN} and {CLOSE} where the scorecard belongs.",
        )
    write_text(path, f"{before}{OPEN}\n{scorecard(results)}\n{CLOSE}{after}")


def _measured_files(folder: Path) -> list[Path]:
    """The measured files in `folder`, from which a paper's other files are derived."""
    tables = sorted((folder / "tables").glob("*.csv"))
    return [*folder.glob("runs.csv"), *tables, *folder.glob("heuristic.json")]


def rejudge(profiles: Sequence[str] = ()) -> list[str]:
    """Rewrite tables, claims and metrics from the recorded runs in results/.

    Measured files are rewritten as well, with their numbers rounded as this version
    rounds them. A study's list of deviations stays as it is, because it belongs to the
    code that ran.

    Args:
        profiles: Profiles to rejudge; if empty, all profiles that have results.

    Returns:
        One line for every changed verdict.

    Raises:
        InputError: If a profile has no results.
    """
    with_results = results.profiles_with_results()
    for profile in set(profiles).difference(with_results):
        raise InputError(
            f"no results of profile {profile!r}",
            where=str(results.RESULTS),
            remedy=nearest(profile, with_results),
        )
    changes: list[str] = []
    for profile, paper in product(profiles or with_results, results.PAPERS):
        folder = results.paper_folder(profile, paper)
        rows = results.read_json(folder / results.CLAIMS)
        if not rows:
            continue
        for path in _measured_files(folder):
            round_again(path)
        before = {row["id"]: row["verdict"] for row in rows}
        judged = write_derived(folder, paper, profile)
        after = {row["id"]: row["verdict"] for row in judged}
        for claim in {**after, **before}:
            old = before.get(claim, "no claim")
            new = after.get(claim, "no claim")
            if old != new:
                changes.append(f"{profile}/{paper}, {claim}: {old} -> {new}")
    return changes


def state(root: Path = Path()) -> pd.DataFrame:
    """The current state of every claim in every study, in the register's columns.

    A claim has a row for each study of its paper that has results, and for its primary
    study even without results.
    """
    rows = []
    folder = root / results.RESULTS
    studies = results.studies_with_results(folder)
    for paper in results.PAPERS:
        judged = {}
        for study in studies:
            for row in results.read_json(folder / study / paper / results.CLAIMS) or []:
                judged[row["id"], study] = row
        of_paper = dict.fromkeys(study for _, study in judged)
        for claim in claims_of(paper):
            for study in dict.fromkeys([claim.primary, *of_paper]):
                row = judged.get((claim.id, study))
                rows.append(registry.current_row(claim, paper, study, row))
    return pd.DataFrame(rows, columns=list(registry.COLUMNS))


def register(root: Path = Path()) -> list[str]:
    """Add new and changed claims to the register.

    Returns:
        One line for every added row, with the claim and its digest. The line says so if
        docs/protocol_history.md must name them.
    """
    known = registry.registered(root)
    added = registry.changed(known, state(root))
    together = pd.concat([known, added], ignore_index=True)
    write_csv(root / registry.REGISTERED, together)
    needing = registry.needing_history(together)
    lines = []
    for place, row in added.set_index(known.index.size + added.index).iterrows():
        needs = ""
        if place in needing.index:
            needs = "; needs a line in docs/protocol_history.md"
        name = f"{row['study']}/{row['paper']}, {row['claim']}"
        lines.append(f"{name}: {row['digest']} {row['result']}{needs}")
    return lines
