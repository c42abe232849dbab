"""Writing the pages below results/, and where their numbers lead: to the records of the cells behind them."""

import base64
import re
from functools import cache
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
    """Write the pages of every profile in the folder of results, and the one over all; returns its path, then theirs.

    Raises:
        InputError: there are no results, or a file does not hold what its name says.
    """
    profiles = [read_profile(results / name) for name in profiles_with_results(results)]
    for profile in profiles:
        _write_profile(results / profile.name, profile)
    papers: dict[str, dict[str, Any]] = {}
    for slug, claims in best_evidence(results).items():
        known = {profile.name: paper for profile in profiles for paper in profile.papers if paper.slug == slug}
        rows = [_finding(known[row["profile"]], row, others, f"{row['profile']}/") for row, *others in claims]
        if known:
            title = next(iter(known.values())).title
            papers[slug] = {"title": title, "findings": rows, "profiles": list(known)}
    picture = results.parent / PICTURE
    drawn = base64.b64encode(picture.read_bytes()).decode() if picture.is_file() else ""
    values = {"papers": papers, "picture": drawn, "profiles": profiles, "sentences": SENTENCES}
    _write(results / INDEX, "overview", **values)
    return [results / INDEX, *(results / profile.name / INDEX for profile in profiles)]


def _write_profile(folder: Path, profile: Profile) -> None:
    for paper in profile.papers:
        page, names = folder / "pages" / paper.slug, {"profile": profile, "paper": paper}
        claims = [(row, texts(row), _behind(paper, row)) for row in paper.claims]
        groups = {cells: paper.records.behind(apart(cells)) for cells in linked(paper.content)}
        several = {cells: some for cells, some in groups.items() if len(some) > 1}
        _write(page.with_name(f"{paper.slug}-records.html"), "records", **names, claims=claims, numbers=several)
        places = {cells: _address(paper.slug, cells, some) for cells, some in groups.items()}
        content = relinked(paper.content, places.__getitem__)
        sections = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', content)
        _write(page.with_suffix(".html"), "paper", **names, content=content, sections=sections)
    findings = {
        paper.slug: [_finding(paper, row, [], "") for row in sorted(paper.claims, key=rank)] for paper in profile.papers
    }
    missing = [paper for paper in PAPERS if paper not in findings]
    _write(folder / INDEX, "profile", profile=profile, findings_of=findings, missing=missing)


def _finding(paper: Paper, row: dict[str, Any], others: list[dict[str, Any]], folder: str) -> dict[str, Any]:
    """A row of a table of claims; `folder` is the path from the page to the profile, with a slash at its end."""
    records = f"{folder}pages/{paper.slug}-records.html#{_anchor(row)}" if _behind(paper, row) else ""
    also = {each["profile"]: texts(each)["verdict"] for each in others if each["verdict"] != NOT_TESTED}
    return {"row": row, "said": texts(row), "records": records, "also": also, "paper": paper.slug}


def _behind(paper: Paper, row: dict[str, Any]) -> list[Group]:
    """The records that a claim's number comes from."""
    return paper.records.behind(row.get("cells", ()))


def _anchor(row: dict[str, Any]) -> str:
    """The name of a claim's place on the page of records."""
    return f"claim-{row['id']}"


def _address(slug: str, cells: str, groups: list[Group]) -> str:
    """The place of some cells, beside the paper's page: of their group, of the list of several, or of none."""
    anchors = [group.anchor for group in groups] if len(groups) < 2 else [_anchor_of_numbers(cells)]
    return "#".join([f"{slug}-records.html", *anchors])


def _anchor_of_numbers(cells: str) -> str:
    """The name of the place that lists several groups of cells."""
    return f"numbers-{digest_of_text(cells)[:SHORT]}"


def _write(path: Path, template: str, **values: Any) -> None:
    write_text(path, _environment().get_template(f"{template}.html.j2").render(**values))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "json": canonical_json,
        "tally": tally,
        "anchor": _anchor,
        "anchor_of_numbers": _anchor_of_numbers,
        "short": lambda digest: (digest or "")[:SHORT],
        "words": lambda name: str(name).replace("_", " "),
    }
    environment.tests |= {"directions_only": DIRECTIONS_ONLY.__contains__}
    for name, file in (("style", "style.css"), ("script", "script.js")):
        environment.globals[name] = (files(PACKAGE) / "templates" / file).read_text("utf-8")
    return environment
