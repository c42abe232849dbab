"""The report: self-contained HTML pages made from what results/ holds, and from nothing else.

`results/index.html` has the picture and the best evidence for every claim; `results/<profile>/index.html` the claims of
a profile, beside it `pages/` each paper's tables and figures and the records that its numbers link to.
"""

import base64
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from softmax_temperature.papers.html.reading import Group, Paper, Profile, read_profile
from softmax_temperature.papers.shared.claims import DIRECTIONS_ONLY, NOT_TESTED, texts
from softmax_temperature.papers.shared.results import PAPERS
from softmax_temperature.papers.shared.scorecard import best_evidence, profiles_with_results, rank, tally
from softmax_temperature.papers.shared.sources import apart, linked, relinked
from softmax_temperature.runner.artifacts import canonical_json, digest_of_text, write_text

PICTURE = Path("docs/images/summary.png")
"""From the folder that holds that of the results."""
SENTENCES = {
    "classifier_temperature": "The best temperature of a cosine classifier can be predicted from statistics of its "
    "embeddings.",
    "focal": "Focal loss, with a gamma for each sample, trains better calibrated networks.",
    "cooling": "Correcting the temperature after every epoch improves accuracy and makes a schedule unnecessary.",
    "temperature_check": "The inverse temperature governs the dynamics of training and the final accuracy.",
}
_PAGES = Environment(
    loader=PackageLoader(__name__), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_PAGES.filters |= {"json": canonical_json, "tally": tally}
_PAGES.globals |= {"directions_only": DIRECTIONS_ONLY, "sentences": SENTENCES}


def write_report(results: Path) -> list[Path]:
    """Write the pages of every profile in the folder of results, and the one over all; returns its path, then theirs.

    Raises:
        InputError: there are no results, or a file does not hold what its name says.
    """
    profiles = [read_profile(results / name) for name in profiles_with_results(results)]
    written = [_write_profile(results / profile.name, profile) for profile in profiles]
    papers: dict[str, dict[str, Any]] = {}
    for slug, claims in best_evidence(results).items():
        known = {profile.name: paper for profile in profiles for paper in profile.papers if paper.slug == slug}
        rows = [_finding(known[row["profile"]], row, others, f"{row['profile']}/") for row, *others in claims]
        if known:
            papers[slug] = {"title": next(iter(known.values())).title, "findings": rows, "profiles": list(known)}
    picture = results.parent / PICTURE
    drawn = base64.b64encode(picture.read_bytes()).decode() if picture.is_file() else ""
    return [_write(results / "index.html", "overview", papers=papers, picture=drawn, profiles=profiles), *written]


def _write_profile(folder: Path, profile: Profile) -> Path:
    for paper in profile.papers:
        records, names = f"{paper.slug}-records.html", {"profile": profile, "paper": paper}
        claims = [(row, texts(row), paper.records.behind(row.get("cells", ()))) for row in paper.claims]
        # A number links to its group of cells, to a list of them if there are several, or to the page's beginning.
        places: dict[str, str] = {}
        lists: dict[str, list[Group]] = {}
        for cells in linked(paper.content):
            groups = paper.records.behind(apart(cells))
            anchor = f"numbers-{digest_of_text(cells)[:12]}" if len(groups) > 1 else "".join(g.anchor for g in groups)
            lists |= {anchor: groups} if len(groups) > 1 else {}
            places[cells] = f"{records}#{anchor}" if anchor else records
        content = relinked(paper.content, places.__getitem__)
        sections = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', content)
        _write(folder / "pages" / records, "records", **names, claims=claims, lists=lists)
        _write(folder / "pages" / f"{paper.slug}.html", "paper", **names, content=content, sections=sections)
    findings = {
        paper.slug: [_finding(paper, row, [], "") for row in sorted(paper.claims, key=rank)] for paper in profile.papers
    }
    missing = [paper for paper in PAPERS if paper not in findings]
    return _write(folder / "index.html", "profile", profile=profile, findings_of=findings, missing=missing)


def _finding(paper: Paper, row: dict[str, Any], others: list[dict[str, Any]], folder: str) -> dict[str, Any]:
    """A row of a table of claims; `folder` is the path from the page to the profile, with a slash at its end."""
    is_recorded = bool(paper.records.behind(row.get("cells", ())))
    records = f"{folder}pages/{paper.slug}-records.html#claim-{row['id']}" if is_recorded else ""
    also = {each["profile"]: texts(each)["verdict"] for each in others if each["verdict"] != NOT_TESTED}
    return {"row": row, "said": texts(row), "records": records, "also": also, "paper": paper.slug}


def _write(path: Path, template: str, **values: Any) -> Path:
    write_text(path, _PAGES.get_template(f"{template}.html.j2").render(**values))
    return path
