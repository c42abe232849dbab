"""The report: self-contained HTML pages made from what results/ holds and the README's
picture.

`results/index.html` has the picture and the best evidence for every claim;
`results/<profile>/index.html` the claims of a profile, beside it `pages/` each paper's
tables and figures and the records that its numbers link to. What is missing is left
empty, for the pages to say so.
"""

import base64
import re
from collections.abc import Sequence
from functools import partial
from html import escape, unescape
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from latex2mathml.converter import convert as mathml
from nbconvert.filters import markdown2html
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat.v4 import to_notebook

from softmax_temperature.papers.shared import results as stored
from softmax_temperature.papers.shared.claims import DIRECTIONS_ONLY, texts
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.papers.shared.sources import RECORDS, apart, relinked
from softmax_temperature.params import read_yaml
from softmax_temperature.runner.artifacts import (
    canonical_json,
    digest_of_text,
    write_text,
)

PICTURE = Path(
    "docs/images/summary.png"
)  # From the folder that holds that of the results.
_PAGES = Environment(
    loader=PackageLoader(__name__),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters |= {"json": canonical_json, "tally": stored.tally, "texts": texts}
_PAGES.filters |= {"ranked": partial(sorted, key=stored.rank)}
_PAGES.globals |= {"directions_only": DIRECTIONS_ONLY, "slugs": stored.PAPERS}
_ELSEWHERE = (
    "Claims",
    "Deviations",
)  # Sections of a notebook that pages show in another way.
# The tag of cells that are about the notebook itself and its neighbours.
_OF_NOTEBOOK = "notebook"
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_TEX = re.compile(r"(\$\$?)([^$]+)\1")
_TAGS = (
    *(
        "a",
        "b",
        "blockquote",
        "br",
        "code",
        "del",
        "details",
        "div",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "hr",
        "i",
        "li",
    ),
    *(
        "ol",
        "p",
        "pre",
        "span",
        "strong",
        "sub",
        "summary",
        "sup",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ),
)


class Group(NamedTuple):
    """Cells of a stage, rows of `records.json`, that differ in the last part of their
    name, usually the seed.
    """

    stage: str
    name: str  # What their names share; the name itself where it has one part.
    title: str
    anchor: str  # The name of its place on the page of records.
    cells: list[dict[str, Any]]


class Records(NamedTuple):
    """The content of `records.json`; empty where the results are older."""

    stages: dict[str, list[Group]]  # In the order of the pipeline.
    parameters: dict[str, Any]
    code: dict[str, dict[str, str]]
    places: dict[str, str]  # Digest of a result to the anchor of its cell.

    def behind(self, cells: Sequence[str]) -> list[Group]:
        """The groups that a number comes from, whose names begin with one of `cells`."""
        starts = tuple(f"{each}/" for each in cells)
        groups = (group for some in self.stages.values() for group in some)
        return [
            group
            for group in groups
            if f"{group.stage}/{group.name}/".startswith(starts)
        ]


class Paper(NamedTuple):
    """The results of a paper in a profile; what is missing is empty or None."""

    slug: str
    title: str  # As its notebook has it.
    about: str  # On which data and with which networks.
    claims: list[dict[str, Any]]
    content: str  # The notebook as HTML, without its code.
    downloads: list[
        tuple[str, int, int]
    ]  # The path of each table, from the profile's folder, with rows and columns.
    deviations: pd.DataFrame | None
    records: Records
    environment: dict[str, Any] | None  # Its part of `environment.json`.


class Profile(NamedTuple):
    """The results of a profile: its papers in the project's order, and whether
    `params.yaml` is there.
    """

    name: str
    papers: list[Paper]
    parameters: bool


def read_profile(folder: Path) -> Profile:
    """The results in `results/<profile>`."""
    environment, parameters = (
        stored.read_json(folder / stored.ENVIRONMENT) or {},
        folder / stored.PARAMETERS,
    )
    sections = read_yaml(parameters, kind="safe") if parameters.is_file() else {}
    papers = []
    for slug in stored.PAPERS:
        if (claims := stored.read_json(folder / slug / stored.CLAIMS)) is None:
            continue
        paths = [
            *(folder / slug).glob("runs.csv"),
            *sorted((folder / slug / "tables").glob("*.csv")),
        ]
        tables = {path.relative_to(folder).as_posix(): read_csv(path) for path in paths}
        downloads = [
            (path, *table.shape) for path, table in tables.items() if table.shape[1]
        ]
        if (deviations := tables.get(f"{slug}/tables/deviations.csv")) is not None:
            # The paper's own modules come first.
            deviations = deviations.sort_values(
                "where", key=lambda where: ~where.str.contains(slug), kind="stable"
            )
        title, page = slug.replace("_", " ").capitalize(), ""
        if executed := stored.read_json(folder / slug / "notebook.ipynb"):
            notebook = clean(to_notebook(executed))
            title, page = (
                _HEADING.findall(notebook.cells[0].source)[0],
                content(notebook),
            )
        said, records = about(sections.get(slug, {})), _records(folder / slug / RECORDS)
        papers.append(
            Paper(
                slug,
                title,
                said,
                claims,
                page,
                downloads,
                deviations,
                records,
                environment.get(slug),
            )
        )
    return Profile(folder.name, papers, parameters.is_file())


def about(section: dict[str, Any]) -> str:
    """On which data and with which networks a paper was run, from its section of
    `params.yaml`.
    """
    parts = [
        part
        for name in ("tasks", "experiments", "sweeps")
        for part in (section.get(name) or {}).values()
    ]
    said = {
        "data": section.get("datasets") or [part["dataset"] for part in parts],
        "networks": section.get("backbones") or [part["network"] for part in parts],
    }
    return "; ".join(
        f"{name}: {', '.join(dict.fromkeys(values))}"
        for name, values in said.items()
        if values
    )


def _records(path: Path) -> Records:
    found = stored.read_json(path) or {"cells": [], "parameters": {}, "code": {}}
    records = Records({}, found["parameters"], found["code"], {})
    names = groupby(
        found["cells"],
        lambda cell: (cell["stage"], cell["cell"].rpartition("/")[0] or cell["cell"]),
    )
    for (stage, name), some in names:
        cells, title = list(some), stage.rpartition("/")[2] if name == "." else name
        title += f" ({len(cells)})" if len(cells) > 1 else ""
        group = Group(
            stage,
            name,
            title,
            "cells-" + re.sub(r"[^\w.-]+", "-", f"{stage}-{name}"),
            cells,
        )
        records.stages.setdefault(stage, []).append(group)
        records.places.update((cell["result"], group.anchor) for cell in cells)
    return records


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what could act on a page: no scripts, no styles, no tags but
    those that Markdown makes.
    """
    for data in (
        output.data
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "data" in output
    ):
        # Links in Markdown are checked only once it is HTML.
        if "text/markdown" in data:
            data["text/html"] = _html(data.pop("text/markdown"))
        if "text/html" in data:
            data["text/html"] = re.sub(
                r"<style.*?</style>", "", data["text/html"], flags=re.DOTALL
            )
    attributes = {
        "a": ["href", "title"],
        "td": ["colspan", "rowspan"],
        "th": ["colspan", "rowspan"],
        "table": ["id"],
    }
    cleaned: nbformat.NotebookNode
    cleaned, _ = SanitizeHTML(
        tags=list(_TAGS), attributes=attributes, strip=False
    ).preprocess(notebook, {})
    return cleaned


def content(notebook: nbformat.NotebookNode) -> str:
    """The words, tables and figures of a cleaned notebook as HTML, each figure below
    the words about it.
    """
    parts, title = [], ""
    for cell in notebook.cells:
        is_prose = cell.cell_type == "markdown"
        title = (
            (_HEADING.findall(cell.source) or [title])[-1].strip()
            if is_prose
            else title
        )
        if title in _ELSEWHERE or _OF_NOTEBOOK in cell.metadata.get("tags", []):
            continue
        if is_prose:
            parts.append(f'<div class="prose">{_html(cell.source)}</div>')
        parts += [
            _shown(output, escape(title))
            for output in cell.get("outputs", [])
            if "data" in output
        ]
    return "\n".join(filter(None, parts))


def _shown(output: Any, title: str) -> str:
    """An output as HTML: wider than the window, it is scrolled sideways."""
    html = output.data.get("text/html", "")
    if "image/png" in output.data:
        width = output.get("metadata", {}).get("image/png", {}).get("width", "")
        address = "data:image/png;base64," + output.data["image/png"].replace("\n", "")
        html = f'<img src="{address}" alt="{title}" width="{width}" decoding="async">'
    return (
        html
        and f'<div class="scroll" role="region" aria-label="{title}" tabindex="0">{html}</div>'
    )


def _html(text: str) -> str:
    # Browsers draw MathML themselves; a script for TeX would have to come from a
    # network.
    text = _TEX.sub(
        lambda tex: mathml(
            unescape(tex[2]), display="block" if tex[1] == "$$" else "inline"
        ),
        text,
    )
    html: str = markdown2html(text.strip()) if text.strip() else ""
    return re.sub(r'<a class="anchor-link".*?</a>', "", html)


def write_report(results: Path) -> list[Path]:
    """Write the pages of every profile in the folder of results, and the one over all;
    returns its path and theirs.
    """
    profiles = [
        read_profile(results / name) for name in stored.profiles_with_results(results)
    ]
    for profile in profiles:
        for paper in profile.papers:
            _write_paper(results / profile.name / "pages", paper, profile)
    papers: dict[str, dict[str, Any]] = {}
    for slug, claims in stored.best_evidence(results).items():
        if known := {
            profile.name: paper
            for profile in profiles
            for paper in profile.papers
            if paper.slug == slug
        }:
            papers[slug] = {
                "title": next(iter(known.values())).title,
                "claims": claims,
                "studies": known,
            }
    picture = results.parent / PICTURE
    drawn = base64.b64encode(picture.read_bytes()).decode() if picture.is_file() else ""
    overall = _write(
        results / "index.html",
        "overview",
        papers=papers,
        picture=drawn,
        profiles=profiles,
    )
    return [
        overall,
        *(
            _write(results / each.name / "index.html", "profile", profile=each)
            for each in profiles
        ),
    ]


def _write_paper(folder: Path, paper: Paper, profile: Profile) -> None:
    records, lists = f"{paper.slug}-records.html", dict[str, list[Group]]()

    def address(cells: str) -> str:
        """Where a number leads: to its group of cells, to a list of them if there are
        several, or to the page's top.
        """
        groups = paper.records.behind(apart(cells))
        if len(groups) < 2:
            return "#".join([records, *(group.anchor for group in groups)])
        place = f"numbers-{digest_of_text(cells)[:12]}"
        lists[place] = groups
        return f"{records}#{place}"

    content = relinked(paper.content, address)
    sections = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', content)
    _write(folder / records, "records", paper=paper, profile=profile, lists=lists)
    _write(
        folder / f"{paper.slug}.html",
        "paper",
        paper=paper,
        profile=profile,
        content=content,
        sections=sections,
    )


def _write(path: Path, template: str, **values: Any) -> Path:
    write_text(path, _PAGES.get_template(f"{template}.html.j2").render(**values))
    return path
