"""The report: self-contained HTML pages made from results/ and the README's picture.

`results/index.html` shows the picture and the verdict on every claim.
`results/<profile>/index.html` shows the claims of a profile. The folder `pages/` next
to that file has two pages per paper: one with the paper's tables and figures, and one
with the records that the numbers link to. If results are missing, the pages say so.
"""

import base64
import re
from collections.abc import Sequence
from functools import partial
from html import escape, unescape
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import nbformat
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from latex2mathml.converter import convert_to_element as mathml
from nbconvert.filters import markdown2html
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat.v4 import to_notebook

from softmax_temperature.papers.html.cards import with_cards
from softmax_temperature.papers.html.lines import unbroken
from softmax_temperature.papers.shared import results as stored
from softmax_temperature.papers.shared.claims import DIRECTIONS_ONLY
from softmax_temperature.papers.shared.display import (
    backbone_label,
    dataset_label,
    network_label,
)
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.papers.shared.sources import RECORDS, apart, relinked
from softmax_temperature.params import read_yaml
from softmax_temperature.runner.artifacts import (
    canonical_json,
    digest_of_text,
    write_text,
)

# Path of the picture, relative to the folder that holds results/.
PICTURE = Path("docs/images/summary.png")
TALL_PICTURE = Path("docs/images/summary-tall.png")
_PAGES = Environment(
    loader=PackageLoader(__name__),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters |= {
    "json": canonical_json,
    "alone": partial(map, stored.alone),
    "capitalize_first": lambda text: text[:1].upper() + text[1:],
    "ranked": stored.ranked,
    "study_label": stored.study_label,
    "tally": stored.tally,
    "texts": stored.texts_in_words,
}
_PAGES.globals |= {
    "archived": stored.ARCHIVED,
    "pilots": stored.PILOTS,
    "directions_only": DIRECTIONS_ONLY,
    "slugs": stored.PAPERS,
    "about_studies": stored.STUDIES,
    "titles": stored.TITLES,
}
# Sections of a notebook that the pages leave out, because the pages have their own
# sections on these subjects.
_ELSEWHERE = ("Claims", "Deviations")
# Tag of cells that explain the notebook itself.
_OF_NOTEBOOK = "notebook"
# Matches a link to a page of the docs, because these pages are not part of the report.
_DOCS_LINK = re.compile(r"\[(docs/[^]]+\.md)\]\([^)]+\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_TEX = re.compile(r"(\$\$?)([^$]+)\1")
# The tags and attributes that Markdown and pandas generate. Other tags are escaped, and
# other attributes are removed.
_TAGS = [
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
]
_ATTRIBUTES = {
    "a": ["href", "title"],
    **{heading: ["id"] for heading in ("h1", "h2", "h3", "h4")},
    "td": ["colspan", "rowspan"],
    "th": ["colspan", "rowspan"],
    "table": ["id"],
}
_SANITIZER = SanitizeHTML(tags=_TAGS, attributes=_ATTRIBUTES, strip=False)
# The tags of presentation MathML. The attributes that control the layout follow below.
_MATHML = frozenset(
    {
        "math",
        "menclose",
        "mfrac",
        "mi",
        "mn",
        "mo",
        "mover",
        "mpadded",
        "mphantom",
        "mroot",
        "mrow",
        "mspace",
        "msqrt",
        "mstyle",
        "msub",
        "msubsup",
        "msup",
        "mtable",
        "mtd",
        "mtext",
        "mtr",
        "munder",
        "munderover",
    }
)
_MATHML_ATTRIBUTES = frozenset(
    {
        "accent",
        "columnalign",
        "depth",
        "display",
        "displaystyle",
        "fence",
        "form",
        "height",
        "linethickness",
        "lspace",
        "mathvariant",
        "maxsize",
        "minsize",
        "movablelimits",
        "rowspacing",
        "rspace",
        "scriptlevel",
        "separator",
        "stretchy",
        "width",
        "xmlns",
    }
)
# Matches a function's name before an argument without brackets, as in "\log p". TeX
# sets a thin space between them, which the converter leaves out.
_BARE_ARGUMENT = re.compile(
    r"\\(cos|exp|lg|ln|log|sin|tan|tanh)\s+(?=[A-Za-z]|\\(?!left))"
)
# Characters that no text contains. They enclose the number of a formula where the
# formula will be inserted.
_OPEN = "\ue000"
_CLOSE = "\ue001"


class Group(NamedTuple):
    """Cells of one stage; their names differ only in the last part, usually the seed.

    Attributes:
        stage: Name of the stage.
        name: The common part of the cells' names, or the whole name of a cell if that
            name has only one part.
        title: The group's heading on the page of records.
        anchor: The group's anchor on the page of records.
        cells: Rows of `records.json`.
    """

    stage: str
    name: str
    title: str
    anchor: str
    cells: list[dict[str, Any]]


class Records(NamedTuple):
    """The content of `records.json`; empty if the file is missing.

    Attributes:
        stages: Groups of cells, keyed by stage in the order of the pipeline.
        parameters: Parameters of the cells, keyed by the digest of the parameters.
        code: Digests of the modules behind a cell, keyed by the digest of the cell's
            code.
        places: Anchor of a cell's group, keyed by the digest of the cell's result.
    """

    stages: dict[str, list[Group]]
    parameters: dict[str, Any]
    code: dict[str, dict[str, str]]
    places: dict[str, str]

    def behind(self, cells: Sequence[str]) -> list[Group]:
        """The groups behind a number: those whose names begin with one of `cells`."""
        prefixes = tuple(f"{cell}/" for cell in cells)
        return [
            group
            for group in chain.from_iterable(self.stages.values())
            if f"{group.stage}/{group.name}/".startswith(prefixes)
        ]


class Paper(NamedTuple):
    """The results of a paper in a profile; missing results are empty or None.

    Attributes:
        slug: Name of the paper's folder.
        title: Title of the paper's notebook, or of the paper if the notebook was not
            executed.
        about: Data sets and networks of the study.
        claims: Rows of `claims.json`.
        content: The notebook as HTML, without its code.
        downloads: Path of each table, relative to the profile's folder, with its
            numbers of rows and columns.
        deviations: The deviations, with the columns `where` and `what`.
        records: Records of the cells.
        environment: The paper's part of `environment.json`.
    """

    slug: str
    title: str
    about: str
    claims: list[dict[str, Any]]
    content: str
    downloads: list[tuple[str, int, int]]
    deviations: pd.DataFrame | None
    records: Records
    environment: dict[str, Any] | None


class Profile(NamedTuple):
    """The results of a profile.

    Attributes:
        name: Name of the profile.
        papers: Its papers, in the project's order.
        parameters: Whether the profile's `params.yaml` is present.
    """

    name: str
    papers: list[Paper]
    parameters: bool


def read_profile(folder: Path) -> Profile:
    """Read the results in `results/<profile>`."""
    environment = stored.read_json(folder / stored.ENVIRONMENT) or {}
    parameters = folder / stored.PARAMETERS
    sections = {}
    if parameters.is_file():
        sections = read_yaml(parameters, kind="safe")
    papers = []
    for slug in stored.PAPERS:
        claims = stored.read_json(folder / slug / stored.CLAIMS)
        if claims is None:
            continue
        section = sections.get(slug, {})
        papers.append(_read_paper(folder, slug, claims, section, environment.get(slug)))
    return Profile(folder.name, papers, parameters.is_file())


def _read_paper(
    folder: Path,
    slug: str,
    claims: list[dict[str, Any]],
    section: dict[str, Any],
    environment: dict[str, Any] | None,
) -> Paper:
    """Read the results of a paper from `results/<profile>`."""
    paths = [
        *(folder / slug).glob("runs.csv"),
        *sorted((folder / slug / "tables").glob("*.csv")),
    ]
    tables = {path.relative_to(folder).as_posix(): read_csv(path) for path in paths}
    downloads = [
        (path, *table.shape) for path, table in tables.items() if table.shape[1]
    ]
    deviations = tables.get(f"{slug}/tables/deviations.csv")
    if deviations is not None:
        # Sort the deviations of the paper's own modules before the others.
        deviations = deviations.sort_values(
            "where", key=lambda where: ~where.str.contains(slug), kind="stable"
        )
    title = stored.TITLES[slug]
    page = ""
    executed = stored.read_json(folder / slug / "notebook.ipynb")
    if executed:
        notebook = to_notebook(executed)
        title = _HEADING.findall(notebook.cells[0].source)[0]
        page = content(notebook)
    return Paper(
        slug=slug,
        title=title,
        about=about(section),
        claims=claims,
        content=page,
        downloads=downloads,
        deviations=deviations,
        records=_records(folder / slug / RECORDS),
        environment=environment,
    )


def about(section: dict[str, Any]) -> str:
    """Describe the data sets and networks in a paper's section of `params.yaml`.

    Studies of translation also train tasks with a single loss, to fill tables; such
    tasks are left out.
    """
    parts = [
        part
        for name in ("tasks", "experiments", "sweeps")
        for part in (section.get(name) or {}).values()
    ]
    translation = section.get("translation")
    if translation:
        parts = [part for part in parts if len(part.get("arms") or ()) != 1]
    datasets = section.get("datasets") or [part["dataset"] for part in parts]
    data = [dataset_label(name) for name in datasets]
    networks = [network_label(part["network"]) for part in parts]
    backbones = section.get("backbones")
    if backbones:
        networks = [backbone_label(name) for name in backbones]
    if translation:
        data.append(dataset_label(translation["dataset"]))
        networks.append("Transformer")
    # Join with semicolons, because names contain commas.
    return "; ".join(
        f"{kind}: {' · '.join(dict.fromkeys(values))}"
        for kind, values in (("data", data), ("networks", networks))
        if values
    )


def _records(path: Path) -> Records:
    """Read the records at `path`, and group neighbouring cells with a common name."""
    stored_records = stored.read_json(path) or {
        "cells": [],
        "parameters": {},
        "code": {},
    }
    records = Records(
        stages={},
        parameters=stored_records["parameters"],
        code=stored_records["code"],
        places={},
    )
    for (stage, name), group_cells in groupby(stored_records["cells"], _group_name):
        cells = list(group_cells)
        title = stage.rpartition("/")[2] if name == "." else name
        if len(cells) > 1:
            title += f" ({len(cells)})"
        anchor = "cells-" + re.sub(r"[^\w.-]+", "-", f"{stage}-{name}")
        records.stages.setdefault(stage, []).append(
            Group(stage, name, title, anchor, cells)
        )
        records.places.update((cell["result"], anchor) for cell in cells)
    return records


def _group_name(cell: dict[str, Any]) -> tuple[str, str]:
    """The stage of a cell, and the cell's name without its last part.

    A name that has only one part is returned whole.
    """
    name: str = cell["cell"]
    return cell["stage"], name.rpartition("/")[0] or name


def content(notebook: nbformat.NotebookNode) -> str:
    """The text, tables and figures of a notebook as HTML, in the notebook's order.

    The HTML contains no active content, whatever the notebook contains: every piece is
    sanitised, and images are decoded and encoded again. The only change made afterwards
    is that table cells are labelled with escaped text.
    """
    parts = []
    title = ""
    for cell in notebook.cells:
        is_prose = cell.cell_type == "markdown"
        if is_prose:
            headings = _HEADING.findall(cell.source) or [title]
            title = headings[-1].strip()
        if title in _ELSEWHERE or _OF_NOTEBOOK in cell.metadata.get("tags", []):
            continue
        if is_prose:
            text = _DOCS_LINK.sub(r"\1", cell.source)
            parts.append(f'<div class="prose">{_html(text)}</div>')
        parts += [
            _shown(output, escape(title))
            for output in cell.get("outputs", [])
            if "data" in output
        ]
    return with_cards("\n".join(filter(None, parts)))


def _shown(output: Any, title: str) -> str:
    """Put `output`, as HTML, into a box that scrolls if the output is too wide."""
    html = _of_output(output, title)
    if not html:
        return ""
    return (
        f'<div class="scroll" role="region" aria-label="{title}" tabindex="0">'
        f"{html}</div>"
    )


def _of_output(output: Any, title: str) -> str:
    """Convert an image, a table or text to HTML; "" for any other output."""
    data = output.data
    if "image/png" in data:
        return _image(data["image/png"], output.get("metadata", {}), title)
    if "text/markdown" in data:
        return _html(data["text/markdown"])
    html = re.sub(r"<style.*?</style>", "", data.get("text/html", ""), flags=re.DOTALL)
    return _sanitised(html)


def _image(content: str, metadata: dict[str, Any], title: str) -> str:
    """An image element with the width in the metadata; "" if `content` is not base64.

    The alternative text is the section's title, followed by the alternative text in the
    metadata, if there is one.
    """
    try:
        pixels = base64.b64decode("".join(content.split()), validate=True)
    except ValueError:
        return ""
    about = metadata.get("image/png", {})
    width = about.get("width")
    shown_width = f' width="{width}"' if isinstance(width, int) else ""
    seen = about.get("alt")
    alt = f"{title}. {escape(seen)}" if isinstance(seen, str) and seen else title
    return (
        f'<img src="data:image/png;base64,{base64.b64encode(pixels).decode()}" '
        f'alt="{alt}"{shown_width} decoding="async">'
    )


def _html(text: str) -> str:
    """Convert Markdown to sanitised HTML, with formulas as MathML."""
    formulas: list[str] = []

    def place(match: re.Match[str]) -> str:
        formulas.append(_formula(match))
        return f"{_OPEN}{len(formulas) - 1}{_CLOSE}"

    # Browsers draw MathML themselves; a script for TeX would need network access.
    # Formulas are inserted last, because the sanitiser does not know MathML.
    text = _TEX.sub(place, text.replace(_OPEN, "").replace(_CLOSE, "")).strip()
    if not text:
        return ""
    html = re.sub(r'<a class="anchor-link".*?</a>', "", markdown2html(text))

    def formula_or_tag(match: re.Match[str]) -> str:
        return formulas[int(match[1])] if match[1] else match[0]

    # Match tags as well, so that numbers of formulas within a tag are not replaced.
    pattern = rf"<[^>]*>|{_OPEN}(\d+){_CLOSE}"
    return re.sub(pattern, formula_or_tag, _sanitised(html))


def _sanitised(html: str) -> str:
    """Escape tags that are not in `_TAGS`; drop attributes not in `_ATTRIBUTES`."""
    cleaned: str = _SANITIZER.sanitize_html_tags(html)
    return cleaned


def _formula(match: re.Match[str]) -> str:
    """Convert a formula in TeX to MathML.

    Tags that are not in `_MATHML` become `mtext`, and attributes that are not in
    `_MATHML_ATTRIBUTES` are removed.
    """
    display = "block" if match[1] == "$$" else "inline"
    root = mathml(spaced(match[2]), display=display)
    for element in root.iter():
        if element.tag not in _MATHML:
            element.tag = "mtext"
        # Undo the converter's escapes, which cover only some characters, because
        # `tostring` escapes all characters that need it.
        element.text = unescape(element.text or "")
        for name in set(element.attrib) - _MATHML_ATTRIBUTES:
            del element.attrib[name]
    return ElementTree.tostring(root, encoding="unicode")


def spaced(tex: str) -> str:
    """Return the formula with a thin space between a function and its argument."""
    return _BARE_ARGUMENT.sub(r"\\\1\,", tex)


def write_report(results: Path) -> list[Path]:
    """Write the pages of every profile and the overview into the folder of results.

    Returns:
        The path of the overview, followed by the path of each profile's page.
    """
    profiles = [
        read_profile(results / name) for name in stored.profiles_with_results(results)
    ]
    everything = stored.evidence(results)
    for profile in profiles:
        for paper in profile.papers:
            folder = results / profile.name / "pages"
            _write_paper(folder, paper, profile, everything[paper.slug])
    papers: dict[str, dict[str, Any]] = {}
    for slug, claims in everything.items():
        studies = _studies_by_paper(profiles).get(slug)
        if studies:
            first_study = next(iter(studies.values()))
            papers[slug] = {
                "title": first_study.title,
                "claims": claims,
                "studies": studies,
            }
    overview = _write(
        results / "index.html",
        "overview",
        papers=papers,
        picture=_encoded(results.parent / PICTURE),
        tall=_encoded(results.parent / TALL_PICTURE),
        profiles=profiles,
    )
    pages = [
        _write(
            results / profile.name / "index.html",
            "profile",
            profile=profile,
            claims={
                paper.slug: stored.in_study(paper.claims, everything[paper.slug])
                for paper in profile.papers
            },
            everything=everything,
            studies=_studies_by_paper(profiles),
        )
        for profile in profiles
    ]
    return [overview, *pages]


def _encoded(picture: Path) -> str:
    """A picture's bytes in base64; "" if there is no such file."""
    if not picture.is_file():
        return ""
    return base64.b64encode(picture.read_bytes()).decode()


def _studies_by_paper(profiles: Sequence[Profile]) -> dict[str, dict[str, Paper]]:
    """The results of each paper, keyed by paper and then by study."""
    studies: dict[str, dict[str, Paper]] = {}
    for profile in profiles:
        for paper in profile.papers:
            studies.setdefault(paper.slug, {})[profile.name] = paper
    return studies


def _write_paper(
    folder: Path, paper: Paper, profile: Profile, everything: list[stored.Evidence]
) -> None:
    """Write the page of a paper and the page of its records.

    Args:
        folder: The folder of the pages.
        paper: The paper in the profile.
        profile: The profile.
        everything: The paper's claims in all studies.
    """
    records = f"{paper.slug}-records.html"
    lists: dict[str, list[Group]] = {}

    def address(cells: str) -> str:
        """The address of a number's link: a group, a list of groups, or the page.

        A number without a known group links to the whole page of records.
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
        everything=everything,
        sections=sections,
    )


def _write(path: Path, template: str, **values: Any) -> Path:
    drawn = _PAGES.get_template(f"{template}.html.j2").render(**values)
    write_text(path, unbroken(drawn))
    return path
