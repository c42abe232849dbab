"""Reading what results/ holds of a profile. What is missing is left empty, for the pages to say so."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
from nbconvert.filters import markdown2html
from nbconvert.preprocessors.sanitize import SanitizeHTML

from softmax_temperature.papers.html.model import Caption, Comparison, Figure, Group, Paper, Profile, Records, Table
from softmax_temperature.papers.shared.layout import is_comparison
from softmax_temperature.papers.shared.results import PAPERS, read_claims, read_environments, read_provenance
from softmax_temperature.papers.shared.tables import read_csv
from softmax_temperature.runner.artifacts import digest_of_bytes, digest_of_file
from softmax_temperature.runner.errors import InputError

_ELSEWHERE = ("claims", "deviations")
"""Tables of a notebook that the page shows in another way."""
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_TABLE = re.compile(r'<table id="T_([\w-]+)"(.*?</table>)', re.DOTALL)
_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
_TAGS = (
    *("a", "b", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "hr", "i", "li", "ol", "p"),
    *("pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"),
)


@dataclass
class Shown:
    """What a notebook shows: tables by their name, captions of figures by the digest of the PNG, in its order."""

    title: str = ""
    tables: dict[str, Table] = field(default_factory=dict)
    figures: dict[str, Caption] = field(default_factory=dict)


def read_profile(folder: Path) -> Profile:
    """The results of a profile in `results/<profile>`.

    Raises:
        InputError: a file does not hold what its name says.
    """
    there = [paper for paper in PAPERS if (folder / paper / "claims.json").is_file()]
    environment = read_environments(folder)
    papers = [_paper(folder, slug, environment.get(slug)) for slug in there]
    missing = [paper for paper in PAPERS if paper not in there]
    return Profile(folder.name, papers, missing, parameters=(folder / "params.yaml").is_file())


def read_records(folder: Path) -> Records:
    """The records of a paper; without groups where its results are older than `records.json`."""
    content = read_provenance(folder)
    if content is None:
        return Records([], {}, {})
    cells = groupby(content["cells"], lambda cell: (cell["stage"], cell["cell"].rpartition("/")[0] or cell["cell"]))
    groups = [Group(*key, list(some)) for key, some in cells]
    return Records(groups, content["parameters"], content["code"])


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what could act on a page: no scripts, no styles, no tags but those that Markdown makes."""
    for output in _outputs(notebook):
        # Links in Markdown are checked only once it is HTML.
        if "text/markdown" in output.data:
            output.data["text/html"] = _html(output.data.pop("text/markdown"))
        if "text/html" in output.data:
            output.data["text/html"] = _STYLE.sub("", output.data["text/html"])
    attributes = {"a": ["href", "title"], "td": ["colspan", "rowspan"], "th": ["colspan", "rowspan"], "table": ["id"]}
    cleaned: nbformat.NotebookNode
    cleaned, _ = SanitizeHTML(tags=list(_TAGS), attributes=attributes, strip=False).preprocess(notebook, {})
    return cleaned


def shown(notebook: nbformat.NotebookNode) -> Shown:
    """What a cleaned notebook shows. A caption is the last heading with the prose below it."""
    found = Shown()
    caption = Caption("")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            headings = list(_HEADING.finditer(cell.source))
            title = headings[-1][1].strip() if headings else caption.title
            found.title = found.title or title
            caption = Caption(title, _html(cell.source[headings[-1].end() if headings else 0 :]))
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                found.figures[digest_of_bytes(base64.b64decode(data["image/png"]))] = caption
            for name, rest in _TABLE.findall(data.get("text/html", "")):
                found.tables[name] = Table(name, caption, f"<table{rest}", rest.count("<tr") - rest.count("<thead"))
    return found


def _paper(profile: Path, slug: str, environment: dict[str, Any] | None) -> Paper:
    folder = profile / slug
    notebook = _notebook(folder / "notebook.ipynb")
    said = shown(notebook) if notebook else Shown()
    paths = [path for path in (folder / "runs.csv", *sorted((folder / "tables").glob("*.csv"))) if path.is_file()]
    tables = {path: table for path in paths if len((table := read_csv(path)).columns)}
    comparisons = _comparisons(profile, tables, said.tables)
    elsewhere = {*_ELSEWHERE, *(_hyphens(one.name) for one in comparisons)}
    return Paper(
        slug=slug,
        title=said.title or slug,
        claims=read_claims(folder),
        comparisons=comparisons,
        tables=[table for name, table in said.tables.items() if name not in elsewhere],
        figures=_figures(profile, folder / "figures", said.figures),
        downloads=[(_relative(path, profile), *table.shape) for path, table in tables.items()],
        deviations=tables.get(folder / "tables" / "deviations.csv"),
        notebook=notebook,
        records=read_records(folder),
        environment=environment,
    )


def _notebook(path: Path) -> nbformat.NotebookNode | None:
    if not path.is_file():
        return None
    try:
        return clean(nbformat.read(path, as_version=4))
    except (nbformat.ValidationError, ValueError, KeyError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        remedy = "Take the file from Git, or run `dvc repro`."
        raise InputError(f"is not a notebook ({reason})", where=str(path), remedy=remedy) from error


def _comparisons(profile: Path, tables: Mapping[Path, pd.DataFrame], known: Mapping[str, Table]) -> list[Comparison]:
    """In the order of the notebook, which calls a table by the name of its file with hyphens; then those it lacks."""
    order = list(known)
    found = []
    for path, table in tables.items():
        if is_comparison(table):
            name = _hyphens(path.stem)
            caption = known[name].caption if name in known else Caption(_title(path.stem))
            place = order.index(name) if name in known else len(order)
            found.append((place, Comparison(path.stem, _relative(path, profile), caption, table)))
    return [comparison for _, comparison in sorted(found, key=lambda pair: pair[0])]


def _figures(profile: Path, folder: Path, known: Mapping[str, Caption]) -> list[Figure]:
    """In the order of the notebook, which shows the PNG; then those that it does not show."""
    order, found = list(known), []
    for path in sorted(folder.glob("*.svg")):
        drawing = path.with_suffix(".png")
        digest = digest_of_file(drawing) if drawing.is_file() else ""
        place = order.index(digest) if digest in order else len(order)
        caption = known.get(digest, Caption(_title(path.stem)))
        found.append((place, Figure(path.stem, _relative(path, profile), caption, path.read_text(encoding="utf-8"))))
    return [figure for _, figure in sorted(found, key=lambda pair: (pair[0], pair[1].name))]


def _outputs(notebook: nbformat.NotebookNode) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]


def _html(text: str) -> str:
    html: str = markdown2html(text.strip()) if text.strip() else ""
    return html


def _title(name: str) -> str:
    """The caption of a file that the notebook does not show."""
    return name.replace("_", " ").replace("-", " ").capitalize()


def _hyphens(name: str) -> str:
    return name.replace("_", "-")


def _relative(path: Path, profile: Path) -> str:
    return path.relative_to(profile).as_posix()
