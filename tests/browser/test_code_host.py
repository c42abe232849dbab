"""On a code host, no table in the docs is wider than the column of text."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from selenium.webdriver import Chrome

from tests.browser.conftest import visit
from tests.conftest import ROOT

pytestmark = pytest.mark.browser

COLUMN = 830
"""The width of a Markdown page on a code host with a wide window, in pixels."""
# The CSS rules of a code host that determine how wide a table is.
STYLE = """
body { font: 16px/1.5 sans-serif; margin: 0; }
table { border-collapse: collapse; display: block; max-width: 100%; overflow: auto; }
table { width: max-content; }
td, th { border: 1px solid; padding: 6px 13px; }
code { font: 85% monospace; padding: .2em .4em; white-space: break-spaces; }
"""
WIDE = """
return [...document.querySelectorAll("table")]
  .filter((table) => table.scrollWidth > table.clientWidth)
  .map((table) => `${table.scrollWidth}: ${table.innerText.slice(0, 60)}`);
"""
PAGES = [
    page
    for page in (*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")))
    if "\n|" in page.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_table_is_wider_than_its_column(
    browser: Chrome, tmp_path: Path, page: Path
) -> None:
    reader = MarkdownIt("gfm-like", {"linkify": False})
    drawn = reader.render(page.read_text(encoding="utf-8"))
    assert "<table>" in drawn
    # Remove the pictures: some would be loaded from the network, but no table has any.
    drawn = re.sub("<(?:img|source)[^>]*>", "", drawn)
    file = tmp_path / "page.html"
    file.write_text(f"<meta charset=utf-8><style>{STYLE}</style>{drawn}")
    visit(browser, file, COLUMN, "light")
    assert browser.execute_script(WIDE) == []
