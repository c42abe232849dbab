"""The scorecard of all claims, the command `rejudge`, and the register of claims.

All three read `results/`. The register keeps every version of every claim.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from softmax_temperature.papers.shared import registry, results
from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
)
from softmax_temperature.papers.shared.files import round_again, write_csv
from softmax_temperature.papers.shared.records import claims_of, write_derived
from softmax_temperature.papers.shared.results import (
    PAPERS,
    RESULTS,
    STUDIES,
    TITLES,
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
_OF_PRIMARY = "its primary study, {primary}, "
"""The start of the note on a claim whose primary study has no results."""
MIXED = "mixed"
"""The word for a claim that holds in one secondary study and not in another."""
_EMPTY = "–"
# Stands for a vertical bar, which would end a cell of a Markdown table.
_BAR = "&#124;"
_HOW_TO_READ = (
    "The verdict is the primary study's; below it is what each study measured.",
    "8.6 ± 4.7 [5.3, 11.9]: effect ± standard deviation of the n values, [interval].",
    "must lie: where the interval has to lie; printed: the paper's own number.",
    "power: the effect that n values can detect, and the n that would suffice.",
    "Stand-in data replace the paper's; our derivations are not a paper's claims.",
)
"""The lines that explain the scorecard in a terminal; docs/scorecard.md says more."""
_NOTES = {
    "classifier_temperature": (
        "Claims are in the paper's words, whose *temperature* is an inverse "
        "temperature: it multiplies the cosines."
    ),
}
"""Remarks that the reader of a paper's claims needs, keyed by paper."""
_HINT = "One paper: softmax-temperature scorecard focal"
_SECTIONS = {
    "Decided": (HOLDS, CONTRADICTED),
    "Inconclusive": (INCONCLUSIVE,),
    "Not tested": (NOT_TESTED,),
}
"""The sections of a paper's page, with the verdicts of their claims."""
_WRITTEN = (
    "<!-- Written by `softmax-temperature scorecard --write docs/scorecard.md` -->"
)
_SEE = (
    "The [scorecard](../scorecard.md#how-to-read-a-verdict) says how to read this "
    "page, and the [page on the paper](../{paper}.md) has the findings in words."
)


def scorecard(of_papers: Mapping[str, Sequence[Evidence]], folder: str) -> str:
    """The scorecard of all papers as Markdown.

    The counts of each paper come first, then, per paper, the verdict on each tested
    claim, then a description of each study. The text contains no table, so that it fits
    the screen of a phone on a code host.

    Args:
        of_papers: The claims of each paper, from `evidence`.
        folder: The folder of the papers' pages, for the links to them.
    """
    parts = [
        "\n".join(
            f"- [{TITLES[paper]}]({folder}/{paper}.md): {_counts(claims)}"
            for paper, claims in of_papers.items()
        )
    ]
    for paper, claims in of_papers.items():
        if claims:
            verdicts = _verdicts(claims, f"{folder}/{paper}.md")
            parts += [f"## {TITLES[paper]}", verdicts]
    parts += _listed_studies(chain.from_iterable(of_papers.values()), "## The studies")
    return "\n\n".join(parts)


def _verdicts(claims: Sequence[Evidence], page: str) -> str:
    """The verdicts on tested claims as a list with links to `page`.

    Claims that were not tested by their primary study are not listed: the list gives
    only their number and how often secondary studies reached each verdict. Each claim
    has the same anchor here as on `page`.
    """
    lines = []
    untested = untested_claims(claims)
    for claim in claims:
        if claim.primary["verdict"] == NOT_TESTED:
            continue
        name = claim.primary["id"]
        fields = _fields(claim)
        words = re.sub(r"([\[\]])", r"\\\1", fields["claim"])
        badges = _badges(fields["verdict"])
        line = f"- {_place(name)}{badges} [{words}]({page}#claim-{name})"
        if claim.primary["verdict"] == INCONCLUSIVE:
            line += _decided_elsewhere(claim)
        lines.append(line)
    if untested:
        count = len(untested)
        words = "1 claim" if count == 1 else f"{count} claims"
        text = f"{_badges(NOT_TESTED)} [{words}]({page}#not-tested)"
        counts = secondary_counts(untested)
        if counts:
            text += f"; in secondary studies {counts}"
        places = "".join(_place(claim.primary["id"]) for claim in untested)
        lines.append(f"- {places}{text}")
    return "\n".join(lines)


def untested_claims(claims: Iterable[Evidence]) -> list[Evidence]:
    """Return the claims that were not tested by their primary study."""
    return [claim for claim in claims if claim.primary["verdict"] == NOT_TESTED]


def secondary_verdict(claim: Evidence) -> str:
    """Return the joint verdict of a claim's secondary studies.

    If the claim holds in some of them and is contradicted in others, the verdict is
    "mixed". An inconclusive study changes nothing if another study decides the claim.
    """
    verdicts = {row["verdict"] for row in claim.others}
    if {HOLDS, CONTRADICTED} <= verdicts:
        return MIXED
    for verdict in (HOLDS, CONTRADICTED, INCONCLUSIVE):
        if verdict in verdicts:
            return verdict
    return NOT_TESTED


def secondary_counts(claims: Iterable[Evidence]) -> str:
    """Count `claims` by the verdict of secondary studies, as in "8 hold, 1 mixed".

    The text is empty if no secondary study tests any of the claims.
    """
    counts = Counter(map(secondary_verdict, claims))
    if set(counts) <= {NOT_TESTED}:
        return ""
    words = {
        HOLDS: "hold",
        CONTRADICTED: CONTRADICTED,
        MIXED: MIXED,
        INCONCLUSIVE: INCONCLUSIVE,
        NOT_TESTED: NOT_TESTED,
    }
    return ", ".join(
        f"{counts[verdict]} {word}"
        for verdict, word in words.items()
        if counts[verdict]
    )


def _decided_elsewhere(claim: Evidence) -> str:
    """Return the secondary studies' verdict as text to append; "" if none decides."""
    verdict = secondary_verdict(claim)
    if verdict in (HOLDS, CONTRADICTED, MIXED):
        return f" ({verdict} in secondary studies)"
    return ""


def paper_page(paper: str, claims: Sequence[Evidence]) -> str:
    """The page of one paper as Markdown: per claim, what each study measured.

    Each claim has a table of two columns with a row for each study. The primary study
    comes first.
    """
    counts = _counts(claims)
    lead = " ".join(filter(None, [f"{counts}.", _NOTES.get(paper)]))
    parts = [f"# Scorecard: {TITLES[paper]}", _WRITTEN, lead]
    parts.append(_SEE.format(paper=paper))
    parts += _listed_studies(claims, "The studies:")
    for title, verdicts in _SECTIONS.items():
        here = [claim for claim in claims if claim.primary["verdict"] in verdicts]
        if here:
            parts.append(f"## {title}")
            counts = secondary_counts(here) if NOT_TESTED in verdicts else ""
            if counts:
                parts.append(
                    "The primary studies of these claims have not tested them. In "
                    f"secondary studies: {counts}."
                )
            parts += map(_block, here)
    return "\n\n".join(parts) + "\n"


def _block(claim: Evidence) -> str:
    """A claim as Markdown: heading, verdict, a row for each study, bound, and power."""
    fields = _fields(claim)
    name = claim.primary["id"]
    rows = ["| study | what it measured |", "| --- | --- |"]
    for study, verdict, number in _sides(claim):
        cell = f"{_badges(verdict)} {number}".replace("|", _BAR)
        name_of_study = re.sub(r"^\w+", r"`\g<0>`", study)
        rows.append(f"| {name_of_study} | {cell} |")
    texts = {
        "The interval must lie": fields["must lie"],
        "Printed:": fields["printed"],
        "Power:": fields["power"],
    }
    notes = [f"{words} {text}." for words, text in texts.items() if text != _EMPTY]
    parts = [
        f"### {_place(name)}{fields['claim']}",
        f"{_badges(fields['verdict'])} {fields['where']}; `{name}`",
        "\n".join(rows),
        " ".join(notes),
    ]
    return "\n\n".join(filter(None, parts))


def _place(claim: str) -> str:
    """The anchor of a claim."""
    return f'<a id="claim-{claim}"></a>'


def _badges(verdict: str) -> str:
    """A verdict as badges: "**`holds`** **`disputed`**" for "holds, disputed".

    docs/hooks.py colours them on the site.
    """
    words = verdict.replace(" (", ", ").replace(")", "").split(", ")
    return " ".join(f"**`{word}`**" for word in words)


def _listed_studies(claims: Iterable[Evidence], title: str) -> list[str]:
    """Return `title` and a Markdown list of the studies of `claims`; [] if none."""
    named = _named_studies(claims)
    if not named:
        return []
    return [title, "\n".join(f"- `{study}`: {words}" for study, words in named)]


def _has_run(row: Mapping[str, Any]) -> bool:
    """Whether a row is from a study that has results."""
    return not str(row["note"]).startswith(_OF_PRIMARY.format(**row))


def _check_papers(papers: Collection[str], *, where: str) -> None:
    """Refuse the name of an unknown paper; `where` is the argument that contains it."""
    for paper in papers:
        if paper not in PAPERS:
            raise InputError(
                f"unknown paper {paper!r}", where=where, remedy=nearest(paper, PAPERS)
            )


def _named_claims(
    of_papers: Mapping[str, list[Evidence]], names: Collection[str]
) -> dict[str, list[Evidence]]:
    """The claims of each paper that `names` has, by paper or by claim; all if empty."""
    claims = {
        claim.primary["id"]: paper
        for paper, of_paper in of_papers.items()
        for claim in of_paper
    }
    for name in names:
        if name not in of_papers and name not in claims:
            raise InputError(
                f"unknown paper or claim {name!r}",
                where="NAME",
                remedy=nearest(name, [*of_papers, *claims]),
            )
    shown = {
        paper: [
            claim
            for claim in of_paper
            if not names or paper in names or claim.primary["id"] in names
        ]
        for paper, of_paper in of_papers.items()
    }
    return {
        paper: of_paper
        for paper, of_paper in shown.items()
        if of_paper or not names or paper in names
    }


def scorecard_text(results: Path = RESULTS, names: Collection[str] = ()) -> str:
    """The scorecard for a terminal, at most 80 columns wide.

    The counts of all papers and the lines that explain a claim come first, then a
    paragraph per claim.

    Args:
        results: The folder of all studies.
        names: The papers and claims to show; all if empty.

    Raises:
        InputError: If there is no paper or claim of such a name.
    """
    of_papers = _named_claims(evidence(results), names)
    parts = []
    if len(of_papers) > 1:
        counts = [_heading(paper, claims) for paper, claims in of_papers.items()]
        parts.append(_wrapped(counts))
    named = _named_studies(chain.from_iterable(of_papers.values()))
    parts.append(_wrapped(_HOW_TO_READ))
    parts.append(_wrapped(f"{study}: {words}" for study, words in named))
    if not names:
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
    """Return the name and the description of each study with a row in `claims`.

    The descriptions are those in `STUDIES`; "not run" is added if a study has not been
    run.
    """
    rows = [row for claim in claims for row in (claim.primary, *claim.others)]
    run = {row["profile"] for row in rows if _has_run(row)}
    return [
        (name, STUDIES[name] + ("" if name in run else "; not run"))
        for name in sorted({row["profile"] for row in rows})
        if name in STUDIES
    ]


def _heading(paper: str, claims: Sequence[Evidence]) -> str:
    """The title of `paper`, with the number of claims for each verdict.

    Claims that are not tested are also counted by the verdict of secondary studies.
    """
    text = f"{paper.replace('_', ' ').capitalize()}: {_counts(claims)}"
    counts = secondary_counts(untested_claims(claims))
    if counts:
        text += f" (of those not tested, in secondary studies {counts})"
    return text


def _counts(claims: Sequence[Evidence]) -> str:
    """The number of claims for each verdict."""
    return tally(claims) or "no study"


def _fields(claim: Evidence) -> dict[str, str]:
    """Return a claim's texts, keyed by the column of the scorecard.

    The texts are those of the primary study. If that study does not test the claim, the
    bound and the printed value are those of the first study that tests it.
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
        fields["claim"] = f"{fields['claim'].rstrip('.')} (our derivation)."
    fields["power"] = fields["power"] or _EMPTY
    return fields


def _sides(claim: Evidence) -> list[tuple[str, str, str]]:
    """Each study's name, verdict and result; the primary study comes first."""
    rows = claim.sides
    if claim.primary not in rows:
        rows = [claim.primary, *rows]
    sides = []
    for row in rows:
        texts = texts_in_words(row)
        study = study_label(row["profile"])
        if row["profile"] == row["primary"]:
            study += ", primary"
        number = texts["ours"]
        if row["n"] is None:
            # The note need not name the study, because the name is shown beside it.
            number = texts["note"].removeprefix(_OF_PRIMARY.format(**row))
        sides.append((study, row["verdict"], number))
    return sides


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
    for study, side_verdict, number in _sides(claim):
        lines += wrapper.wrap(f"{side_verdict} ({study}): {number}")
    wrapper.subsequent_indent = " " * 12
    for column in ("must lie", "printed", "power"):
        if fields[column] != _EMPTY:
            lines += wrapper.wrap(f"{column + ':':<10}{fields[column]}")
    return "\n".join(lines)


def write_scorecard(path: Path, results: Path = RESULTS) -> None:
    """Write the scorecard into a Markdown file, and a page for each paper beside it.

    Only the text between the scorecard's markers is replaced in the file. The papers'
    pages are in a folder named after the file: scorecard/focal.md for scorecard.md.

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
    of_papers = evidence(results)
    folder = path.with_suffix("")
    folder.mkdir(exist_ok=True)
    for paper, claims in of_papers.items():
        write_text(folder / f"{paper}.md", paper_page(paper, claims))
    shown = scorecard(of_papers, folder.name)
    write_text(path, f"{before}{OPEN}\n{shown}\n{CLOSE}{after}")


def _measured_files(folder: Path) -> list[Path]:
    """The measured files in `folder`, from which a paper's other files are derived."""
    tables = sorted((folder / "tables").glob("*.csv"))
    return [*folder.glob("runs.csv"), *tables, *folder.glob("heuristic.json")]


class Rejudged(NamedTuple):
    """The changes that `rejudge` made, one line for each."""

    files: list[str]
    """The files that were added, changed or removed."""
    verdicts: list[str]
    """The verdicts that changed."""

    def __str__(self) -> str:
        counts = f"{len(self.files)} files and {len(self.verdicts)} verdicts changed"
        return "\n".join([*self.files, *self.verdicts, counts])


def rejudge(profiles: Sequence[str] = (), papers: Collection[str] = ()) -> Rejudged:
    """Rewrite tables, claims and metrics from the recorded runs in results/.

    Measured files are rewritten as well, so that their numbers are rounded by the rules
    of this version. A study's list of deviations stays as it is, because it describes
    the code that ran.

    Args:
        profiles: Profiles to rejudge; if empty, all profiles that have results.
        papers: Papers to rejudge; if empty, all papers.

    Raises:
        InputError: If a paper is unknown, or a profile has no results.
    """
    _check_papers(papers, where="--paper")
    with_results = results.profiles_with_results()
    for profile in set(profiles).difference(with_results):
        raise InputError(
            f"no results of profile {profile!r}",
            where=str(results.RESULTS),
            remedy=nearest(profile, with_results),
        )
    rejudged = Rejudged(files=[], verdicts=[])
    for profile, paper in product(profiles or with_results, papers or PAPERS):
        folder = results.paper_folder(profile, paper)
        rows = results.read_json(folder / results.CLAIMS)
        if not rows:
            continue
        contents = _contents(folder)
        for path in _measured_files(folder):
            round_again(path)
        before = {row["id"]: row["verdict"] for row in rows}
        judged = write_derived(folder, paper, profile)
        after = {row["id"]: row["verdict"] for row in judged}
        for claim in {**after, **before}:
            old = before.get(claim, "no claim")
            new = after.get(claim, "no claim")
            if old != new:
                line = f"{profile}/{paper}, {claim}: {old} -> {new}"
                rejudged.verdicts.append(line)
        rejudged.files.extend(_file_changes(contents, _contents(folder)))
    return rejudged


def _contents(folder: Path) -> dict[Path, bytes]:
    """The content of each file that `rejudge` may write in a paper's folder."""
    paths = [*folder.glob("*.csv"), *folder.glob("*.json"), *folder.glob("tables/*")]
    return {path: path.read_bytes() for path in sorted(paths) if path.is_file()}


def _file_changes(
    before: Mapping[Path, bytes], after: Mapping[Path, bytes]
) -> list[str]:
    """One line for each file that was added, changed or removed."""
    lines = []
    for path in sorted({*before, *after}):
        if path not in before:
            lines.append(f"added {path.as_posix()}")
        elif path not in after:
            lines.append(f"removed {path.as_posix()}")
        elif before[path] != after[path]:
            lines.append(f"changed {path.as_posix()}")
    return lines


def state(root: Path = Path()) -> pd.DataFrame:
    """The current state of every claim in every study, in the register's columns.

    Each claim has a row for each study of its paper that has results, and a row for its
    primary study even if that study has no results.
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


def _check_judged(root: Path) -> None:
    """Refuse studies with results that were not judged by the present claims.

    Otherwise, a claim that was written after a study ran would be registered without
    its result, as if it had been written before.
    """
    folder = root / results.RESULTS
    for study, paper in product(results.studies_with_results(folder), PAPERS):
        path = folder / study / paper / results.CLAIMS
        rows = results.read_json(path)
        if not rows:
            continue
        judged = {row["id"]: row["digest"] for row in rows}
        for claim in claims_of(paper):
            if judged.get(claim.id) != registry.design_digest(claim, study):
                raise InputError(
                    f"was not judged by the present claim {claim.id!r}",
                    where=str(path.relative_to(root)),
                    remedy=f"Run: softmax-temperature rejudge --paper {paper}",
                )


def register(root: Path = Path()) -> list[str]:
    """Add new and changed claims to the register.

    Returns:
        One line for every added row, with the claim and its digest. The line says so if
        docs/protocol_history.md must name the claim and the digest.

    Raises:
        InputError: If a study with results was not judged by the present claims.
    """
    _check_judged(root)
    registered = registry.registered(root)
    added = registry.changed(registered, state(root))
    together = pd.concat([registered, added], ignore_index=True)
    write_csv(root / registry.REGISTERED, together)
    needing = registry.needing_history(together)
    lines = []
    for place, row in added.set_index(registered.index.size + added.index).iterrows():
        needs = ""
        if place in needing.index:
            needs = "; needs a line in docs/protocol_history.md"
        name = f"{row['study']}/{row['paper']}, {row['claim']}"
        lines.append(f"{name}: {row['digest']} {row['result']}{needs}")
    return lines
