"""Writing the pages below results/, and where their numbers lead: to the records of the cells behind them."""

import base64
import re
from collections.abc import Iterable
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from softmax_temperature.papers.html.reading import Group, Paper, Profile, read_profile
from softmax_temperature.papers.shared.claims import DIRECTIONS_ONLY, NOT_TESTED, texts
from softmax_temperature.papers.shared.results import PAPERS
from softmax_temperature.papers.shared.scorecard import best_evidence, profiles_with_results, rank, tally
from softmax_temperature.papers.shared.sources import apart, linked, relinked
from softmax_temperature.runner.artifacts import canonical_json, digest_of_text, write_text

INDEX = "index.html"
PACKAGE = "softmax_temperature.papers.html"
PICTURE = Path("docs/images/summary.png")
"""From the folder that holds that of the results."""
SENTENCES = {
    "classifier_temperature": "The best temperature of a cosine classifier can be predicted from statistics of its "
    "embeddings.",
    "focal": "Focal loss, with a gamma for each sample, trains better calibrated networks.",
    "cooling": "Correcting the temperature after every epoch improves accuracy and makes a schedule unnecessary.",
    "temperature_check": "The inverse temperature governs the dynamics of training and the final accuracy.",
}
SHORT = 12
"""Characters of a digest that tell it from all others here."""


def write_report(results: Path) -> list[Path]:
    """Write the pages of every profile with results, and the one over all profiles.

    Args:
        results: the folder of all results.

    Returns:
        The index of all profiles, then that of each.

    Raises:
        InputError: there are no results, or a file does not hold what its name says.
    """
    profiles = [read_profile(results / name) for name in profiles_with_results(results)]
    for profile in profiles:
        _write_profile(results / profile.name, profile)
    known = {(profile.name, paper.slug): paper for profile in profiles for paper in profile.papers}
    evidence = best_evidence(results)
    papers = {
        slug: {
            "title": next(paper.title for (_, name), paper in known.items() if name == slug),
            "findings": [
                _finding(known[row["profile"], slug], row, others, folder=f"{row['profile']}/")
                for row, *others in claims
            ],
            "profiles": dict.fromkeys(name for name, paper in known if paper == slug),
        }
        for slug, claims in evidence.items()
        if slug in {name for _, name in known}
    }
    picture = results.parent / PICTURE
    drawn = base64.b64encode(picture.read_bytes()).decode() if picture.is_file() else ""
    page = _render("overview", papers=papers, picture=drawn, profiles=profiles, sentences=SENTENCES)
    write_text(results / INDEX, page)
    return [results / INDEX, *(results / profile.name / INDEX for profile in profiles)]


def _write_profile(folder: Path, profile: Profile) -> None:
    for paper in profile.papers:
        names = {"profile": profile, "paper": paper}
        claims = [(row, texts(row), behind(paper, row)) for row in paper.claims]
        several = {cells: groups for cells in linked(paper.content) if len(groups := _groups(paper, cells)) > 1}
        records = _render("records", **names, claims=claims, numbers=several)
        write_text(folder / "pages" / f"{paper.slug}-records.html", records)
        content = relinked(paper.content, partial(address, paper))
        sections = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', content)
        write_text(
            folder / "pages" / f"{paper.slug}.html", _render("paper", **names, content=content, sections=sections)
        )
    findings = {
        paper.slug: [_finding(paper, row, (), folder="") for row in sorted(paper.claims, key=rank)]
        for paper in profile.papers
    }
    missing = [paper for paper in PAPERS if paper not in findings]
    write_text(folder / INDEX, _render("profile", profile=profile, findings_of=findings, missing=missing))


def _finding(paper: Paper, row: dict[str, Any], others: Iterable[dict[str, Any]], *, folder: str) -> dict[str, Any]:
    """A row of a table of claims; `folder` is the path from the page to the profile, with a slash at its end."""
    records = f"{folder}pages/{paper.slug}-records.html#{anchor(row)}" if behind(paper, row) else ""
    also = {each["profile"]: texts(each)["verdict"] for each in others if each["verdict"] != NOT_TESTED}
    return {"row": row, "said": texts(row), "records": records, "also": also, "paper": paper.slug}


def behind(paper: Paper, row: dict[str, Any]) -> list[Group]:
    """The records that a claim's number comes from."""
    return paper.records.behind(row.get("cells", ()))


def anchor(row: dict[str, Any]) -> str:
    """The name of a claim's place on the page of records."""
    return f"claim-{row['id']}"


def address(paper: Paper, cells: str) -> str:
    """The place, beside the paper's page, of the cells or of the list of several groups; the page if they are unknown.

    Args:
        paper: whose.
        cells: as `sources.together` names them.
    """
    page, groups = f"{paper.slug}-records.html", _groups(paper, cells)
    if not groups:
        return page
    return f"{page}#{groups[0].anchor if len(groups) == 1 else anchor_of_numbers(cells)}"


def anchor_of_numbers(cells: str) -> str:
    """The name of the place that lists several groups of cells."""
    return f"numbers-{digest_of_text(cells)[:SHORT]}"


def _groups(paper: Paper, cells: str) -> list[Group]:
    return paper.records.behind(apart(cells))


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(f"{template}.html.j2").render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"json": canonical_json, "tally": tally, "anchor": anchor}
    environment.filters |= {"short": lambda digest: (digest or "")[:SHORT], "anchor_of_numbers": anchor_of_numbers}
    environment.filters |= {"words": lambda name: str(name).replace("_", " ")}
    environment.tests |= {"directions_only": DIRECTIONS_ONLY.__contains__}
    folder = files(PACKAGE) / "templates"
    assets = {"style": "style.css", "script": "script.js"}
    environment.globals |= {name: (folder / file).read_text("utf-8") for name, file in assets.items()}
    return environment
