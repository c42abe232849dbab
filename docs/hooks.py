"""Hooks that extend mkdocs.

They add pages of executed notebooks and other files outside docs/ to the site, and draw
cards and formulas.
"""

# ruff: noqa: E402 - A slow import is left out before the other imports.
import html
import json
import re
import sys
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

# Leave out a slow import, as `pipeline/own_source.py` does and explains.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

import nbformat
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink, TableOfContents

from softmax_temperature.papers import html as report
from softmax_temperature.papers.html import content
from softmax_temperature.papers.html.cards import plain, with_cards
from softmax_temperature.papers.html.lines import unbroken

ROOT = Path(__file__).resolve().parent.parent
# The scorecard and the pages of the papers' verdicts.
SCORECARD = re.compile(r"scorecard(/\w+)?\.md")
# A verdict, as its page marks it: in bold code.
BADGE = re.compile(r"<strong><code>([^<]+)</code></strong>")
# A claim on a paper's page: from its heading to the next heading, or to the end.
CLAIM = re.compile(r"<h3\b.*?(?=<h[23]\b|\Z)", re.DOTALL)
# The rules that draw the rows of a wide table as cards on a phone.
STYLES = "assets/cards.css"
LINK = re.compile(r"(?<=\]\()[^)#\s]+")
NOTEBOOK = "notebook.ipynb"
NOTEBOOK_PAGE = "notebook.md"
# A notebook's numbers link to records, which the report shows but the site does not.
TO_RECORD = re.compile(r'<a href="records\.json#[^"]*">(.*?)</a>', re.DOTALL)
DISPLAYED = re.compile(r'<math [^>]*display="block".*?</math>', re.DOTALL)
# A picture that has a version for dark pages, with "-dark" in its files' names.
PICTURE = re.compile(r"<picture>.*?</picture>", re.DOTALL)
DARK_SOURCE = re.compile(r"<source[^>]*prefers-color-scheme: dark[^>]*>\s*")
TO_DOCS = re.compile(r'(?<=href=")((?:\.\./)+)docs/([^"#]+)\.md')


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Draw blocks of code in the language `math` as formulas, and write no 404.html.

    The site's tables have the same cards as the report's.

    The theme's 404.html finds its styles only at the root of a server.
    """
    config.theme.static_templates.discard("404.html")
    config.extra_css.append(STYLES)
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "math", "class": "math", "format": _block}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the style of cards, and every file outside docs/ that a page links to."""
    styles = Path(report.__file__).parent / "templates" / Path(STYLES).name
    files.append(File.generated(config, STYLES, abs_src_path=str(styles)))
    for page in [file for file in files if file.src_uri.endswith(".md")]:
        for link in LINK.findall(page.content_string):
            path = _outside(link, page.src_uri)
            if path is not None and _in_site(path) not in files.src_uris:
                files.append(_added(path, config))
                if path.endswith(NOTEBOOK):
                    files.append(_copied(path, config))
    return files


def _copied(path: str, config: MkDocsConfig) -> File:
    """Return an unchanged copy of a file outside docs/, for the site."""
    return File.generated(config, path, abs_src_path=str(ROOT / path))


def _in_site(path: str) -> str:
    """Return the site's path for a file outside docs/; a notebook becomes a page."""
    return path.replace(NOTEBOOK, NOTEBOOK_PAGE)


def _added(path: str, config: MkDocsConfig) -> File:
    """Return the site's file for a file outside docs/: a page if it is a notebook."""
    place = _in_site(path)
    if place == path:
        return _copied(path, config)
    paper = _read(path).cells[0].source.splitlines()[0].lstrip("# ")
    _, study, slug, _ = Path(path).parts
    title = f"{paper}: notebook of {study}"
    of_paper = relpath(f"{slug}.md", Path(place).parent)
    # The search leaves the page out: it would find every number of the page's tables.
    # The page is in no menu, so the menu is hidden to leave more room for the tables.
    text = f"""---
title: {json.dumps(title)}
hide: [navigation]
search:
  exclude: true
---
Executed on the study `{study}` of [{paper}]({of_paper}). The notebook itself, with its
code, is [{path}]({NOTEBOOK}){{: download="{study}.ipynb" }}, for Jupyter.
"""
    outside = InclusionLevel.NOT_IN_NAV
    return File.generated(config, place, content=text, inclusion=outside)


def _read(path: str) -> Any:
    """Read a notebook; `path` is relative to the root of the repository."""
    return nbformat.read(ROOT / path, as_version=4)


def _contents(drawn: str) -> TableOfContents:
    """The headings of a notebook's HTML, for the list beside the page."""
    headings = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', drawn)
    # In a URL, a percent sign starts an escape sequence.
    links = [
        AnchorLink(plain(text), to.replace("%", "%25"), 2) for to, text in headings
    ]
    return TableOfContents(links)


def _notebook(page: str) -> str:
    """Render the notebook that `page` shows as HTML: its texts, tables and figures."""
    drawn = content(_read(page.replace(NOTEBOOK_PAGE, NOTEBOOK)))
    drawn = TO_DOCS.sub(r"\1\2.html", TO_RECORD.sub(r"\1", drawn))
    drawn = DISPLAYED.sub(r'<span class="formula">\g<0></span>', drawn)
    return f'<div class="notebook">{drawn}</div>'


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links to files outside docs/ lead to their copies in the site."""

    def to_copy(link: re.Match[str]) -> str:
        path = _outside(link[0], page.file.src_uri)
        if path is None:
            return link[0]
        return relpath(_in_site(path), Path(page.file.src_uri).parent.as_posix())

    return LINK.sub(to_copy, markdown)


def on_page_content(html_text: str, page: Page, **_: Any) -> str:
    """Draw $`...`$ as formulas, claims as cards, and show notebooks."""
    if page.file.src_uri.endswith(NOTEBOOK_PAGE):
        drawn = _notebook(page.file.src_uri)
        page.toc = _contents(drawn)
        return unbroken(html_text + drawn)
    drawn = re.sub(r"\$<code>([^<]+)</code>\$", _inline, html_text)
    drawn = PICTURE.sub(_by_scheme, drawn)
    if SCORECARD.fullmatch(page.file.src_uri):
        drawn = CLAIM.sub(r'<section class="claim">\g<0></section>', drawn)
        drawn = BADGE.sub(_badge, drawn)
        _leave_out_claims(page.toc)
    return unbroken(with_cards(drawn))


def _outside(link: str, page: str) -> str | None:
    """Return the path of a linked file below the root.

    Return None for a file in docs/, for a file outside the repository and for a URL.
    """
    if link.startswith(("http://", "https://", "mailto:")):
        return None
    folder = (Path("docs") / page).parent.as_posix()
    path = normpath(f"{folder}/{link}")
    if path.startswith(("docs/", "../")) or not (ROOT / path).is_file():
        return None
    return path


def _block(source: str, *_: Any, **__: Any) -> str:
    return (
        f'<div class="formula">{convert(report.spaced(source), display="block")}</div>'
    )


def _inline(code: re.Match[str]) -> str:
    return str(convert(report.spaced(html.unescape(code[1]))))


def _by_scheme(picture: re.Match[str]) -> str:
    """Return a picture twice, for light and for dark pages; site.css shows one.

    A browser would choose the source by the system's colour scheme, but readers of the
    site can choose a different scheme.
    """
    light = DARK_SOURCE.sub("", picture[0])
    if light == picture[0]:
        return light
    dark = light.replace(".png", "-dark.png")
    return "".join(
        one.replace("<picture>", f'<picture class="{scheme}">')
        for scheme, one in (("light", light), ("dark", dark))
    )


def _badge(verdict: re.Match[str]) -> str:
    """Return a verdict as a badge, whose colour depends on the first word."""
    words = verdict[1]
    return f'<b class="verdict {words.split()[0]}">{words}</b>'


def _leave_out_claims(contents: TableOfContents) -> None:
    """Leave the claims out of the list beside the page: they are long sentences."""
    for page in contents:
        for section in page.children:
            section.children.clear()
