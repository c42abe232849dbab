"""Writing the pages below results/."""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat
import pandas as pd
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from nbconvert import HTMLExporter
from pandas.io.formats.style import Styler

from softmax_temperature.papers.html import links
from softmax_temperature.papers.html.model import Comparison, Paper, Profile
from softmax_temperature.papers.html.reading import read_profile, shown
from softmax_temperature.papers.shared.claims import DIRECTIONS_ONLY
from softmax_temperature.papers.shared.layout import METRIC, as_printed, layout, number, with_deviation
from softmax_temperature.papers.shared.results import PAPERS
from softmax_temperature.papers.shared.scorecard import profiles_with_results
from softmax_temperature.runner.artifacts import canonical_json, digest_of_bytes, write_text

INDEX = "index.html"
PACKAGE = "softmax_temperature.papers.html"
ASSETS = {"style": "style.css", "script": "script.js"}

_UNUSED = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)


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
    rows = [score for profile in profiles for score in links.scores(profile, folder=f"{profile.name}/")]
    rows.sort(key=lambda score: (PAPERS.index(score.paper), score.rank))
    page = _render("overview", profiles=profiles, papers=PAPERS, tallies=links.tallies(profiles), scores=rows)
    write_text(results / INDEX, page)
    return [results / INDEX, *(results / profile.name / INDEX for profile in profiles)]


def _write_profile(folder: Path, profile: Profile) -> None:
    for paper in profile.papers:
        names = {"profile": profile, "paper": paper}
        claims = [(claim, links.behind(paper, claim)) for claim in paper.claims]
        records = _render("records", **names, claims=claims, numbers=links.several(paper))
        write_text(folder / links.PAGES / f"{paper.slug}-records.html", records)
        if paper.notebook:
            cells = links.with_addresses(_notebook_cells(paper.notebook), paper=paper, folder="")
            notebook = _render("notebook", **names, cells=cells)
            write_text(folder / links.PAGES / f"{paper.slug}-notebook.html", notebook)
    tables = {paper.slug: [_tables(paper, one) for one in paper.comparisons] for paper in profile.papers}
    rows = links.scores(profile)
    page = _render("profile", profile=profile, tables=tables, scores=rows, linked=links.with_addresses)
    write_text(folder / INDEX, page)


def _tables(paper: Paper, comparison: Comparison) -> dict[str, Any]:
    """A comparison with its two parts as HTML, empty where they have no rows."""
    laid_out, link = layout(comparison.numbers), partial(links.address, paper=paper)
    name = f"{paper.slug}-{comparison.name}".replace("_", "-")
    parts = {"measured": laid_out.measured, "not_run": laid_out.not_run}
    made = {
        part: _grid(table, f"{name}-{part}", link, count=not laid_out.count) if len(table) else ""
        for part, table in parts.items()
    }
    return {"comparison": comparison, "layout": laid_out, **made}


class _Grid(Styler):
    """A table whose head is one row: pandas makes two, the upper for columns and the lower for what names the rows."""

    env = Environment(loader=ChoiceLoader([PackageLoader(PACKAGE), Styler.loader]), autoescape=False)  # noqa: S701
    template_html_table = env.get_template("grid.html.j2")


def _grid(table: pd.DataFrame, name: str, link: Callable[[str], str], *, count: bool) -> str:
    """A table of `layout.Number` as HTML; each cell links to its records, and says its count of runs if `count`."""
    cell = _environment().get_template("number.html.j2")
    texts = table.map(lambda value: cell.render(number=value, link=link(value.cells) if value else "", count=count))
    styler = _Grid(texts, uuid=name, cell_ids=False).format_index(escape="html", axis=1)
    for level in table.index.names:
        styler.format_index(_words if level == METRIC else None, escape="html", axis=0, level=level)
    return styler.to_html(table_attributes='class="grid"')


def _notebook_cells(notebook: nbformat.NotebookNode) -> str:
    """The cells of a cleaned notebook as HTML, without nbconvert's own page, which loads MathJax from the net."""
    images, described = {}, copy.deepcopy(notebook)
    captions = shown(notebook).figures
    for output in (output for cell in described.cells for output in cell.get("outputs", [])):
        if "image/png" in output.get("data", {}):
            content = output.data["image/png"].strip()
            digest = digest_of_bytes(base64.b64decode(content))
            output.metadata.setdefault("image/png", {})["alt"] = captions[digest].title
            # The image itself would pass through several parsers of HTML.
            output.data["image/png"] = digest
            images[digest] = content
    html: str = HTMLExporter(template_name="basic", exclude_anchor_links=True).from_notebook_node(described)[0]
    for digest, content in images.items():
        html = html.replace(digest, content)
    return html


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(f"{template}.html.j2").render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "with_deviation": with_deviation, "as_printed": as_printed}
    environment.filters |= {"data_address": _data_address, "json": canonical_json, "short": _short, "words": _words}
    environment.filters |= {"anchor": links.anchor, "anchor_of_numbers": links.anchor_of_numbers}
    environment.tests |= {"directions_only": DIRECTIONS_ONLY.__contains__}
    folder = files(PACKAGE) / "templates"
    environment.globals |= {name: (folder / file).read_text("utf-8") for name, file in ASSETS.items()}
    return environment


def _data_address(svg: str) -> str:
    """An SVG as the address of an image; its characters stay as they are, since base64 is a third longer."""
    text = re.sub(r"\s+", " ", _UNUSED.sub("", svg)).replace("> <", "><").strip()
    return "data:image/svg+xml," + quote(text, safe=" /:;,=()!$*+@'[]{}|^~`<>")


def _short(digest: str | None) -> str:
    return (digest or "")[: links.SHORT]


def _words(name: object) -> str:
    return str(name).replace("_", " ")
