"""What an executed notebook shows, and what it says about it.

Captions are written once, in the notebooks: the heading and the prose above each table and figure. They are found by
what is shown there: a table by the name that `display.shown` gave it, a figure by its bytes.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbconvert.filters import markdown2html
from nbconvert.preprocessors.sanitize import SanitizeHTML

from softmax_temperature.papers.html.model import Caption, Table, Words
from softmax_temperature.runner.artifacts import digest_of_bytes

if TYPE_CHECKING:
    import nbformat

_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_TABLE = re.compile(r'<table id="T_([\w-]+)"(.*?</table>)', re.DOTALL)
_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
_ASIDE = re.compile(r"<p><em>[^<]+</em></p>")
"""A remark that something was not run, for which the report has words of its own."""

_WORDS = "words"

TAGS = (
    *("a", "b", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "hr", "i", "li", "ol", "p"),
    *("pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"),
)


@dataclass(frozen=True)
class Captions:
    """What a notebook shows.

    Attributes:
        title: its own.
        tables: by their name, in the order of the notebook.
        figures: sha256 of a PNG to its caption, likewise.
        words: sentences made from the numbers.
    """

    title: str
    tables: dict[str, Table]
    figures: dict[str, Caption]
    words: list[Words]


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what could act on a page: no scripts, no styles, no tags but those that Markdown makes.

    Markdown that the code put out becomes HTML first, because its links are checked only then.
    """
    for output in _outputs(notebook):
        if "text/markdown" in output.data:
            output.metadata[_WORDS] = True
            output.data["text/html"] = _html(output.data.pop("text/markdown"))
        if "text/html" in output.data:
            output.data["text/html"] = _STYLE.sub("", output.data["text/html"])
    attributes = {"a": ["href", "title"], "td": ["colspan", "rowspan"], "th": ["colspan", "rowspan"], "table": ["id"]}
    cleaned: nbformat.NotebookNode
    cleaned, _ = SanitizeHTML(tags=list(TAGS), attributes=attributes, strip=False).preprocess(notebook, {})
    return cleaned


def captions(notebook: nbformat.NotebookNode) -> Captions:
    """What a cleaned notebook shows, each with its caption."""
    found = Captions(_title(notebook), {}, {}, [])
    caption = Caption(found.title)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            caption = _caption(cell.source, caption)
        for output in cell.get("outputs", []):
            _add(found, output, caption)
    return found


def _title(notebook: nbformat.NotebookNode) -> str:
    first = next((cell.source for cell in notebook.cells if cell.cell_type == "markdown"), "")
    heading = _HEADING.search(first)
    return heading[1].strip() if heading else ""


def _caption(source: str, before: Caption) -> Caption:
    """The last heading of a cell with what follows it; without a heading the last one stays."""
    *_, last = [None, *_HEADING.finditer(source)]
    if last is None:
        return Caption(before.title, _html(source))
    return Caption(last[1].strip(), _html(source[last.end() :]))


def _add(found: Captions, output: Any, caption: Caption) -> None:
    data = output.get("data", {})
    if "image/png" in data:
        found.figures[digest_of_bytes(base64.b64decode(data["image/png"]))] = caption
    html = data.get("text/html", "").strip()
    for name, rest in _TABLE.findall(html):
        found.tables[name] = Table(name, caption, f"<table{rest}", rest.count("<tr") - rest.count("<thead"))
    if output.get("metadata", {}).get(_WORDS) and html and not _ASIDE.fullmatch(html):
        found.words.append(Words(caption, html))


def _html(text: str) -> str:
    html: str = markdown2html(text.strip()) if text.strip() else ""
    return html


def _outputs(notebook: nbformat.NotebookNode) -> Iterator[Any]:
    for cell in notebook.cells:
        yield from (output for output in cell.get("outputs", []) if "data" in output)
