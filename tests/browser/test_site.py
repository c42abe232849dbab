"""Read from disk, the site logs no messages, fits the window, and can be searched."""

from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.conftest import CONTRAST, SCHEMES, WIDTHS, resize, visit

pytestmark = pytest.mark.browser

PAGES = (
    "index.html",
    "quick_start.html",
    "tutorials/text_classifier.html",
    "how_to/containers.html",
    "papers.html",
    "focal.html",
    "cooling.html",
    "scorecard.html",
    "scorecard/focal.html",
    "scorecard/cooling.html",
    "scorecard/classifier_temperature.html",
    "scorecard/temperature_check.html",
    "scorecard/criteria.html",
    "protocol.html",
    "protocol_history.html",
    "questions.html",
    "glossary.html",
    "comparison.html",
    "costs.html",
    "calibration_intervals.html",
    "reliability.html",
    "api/index.html",
    "api/losses.html",
    "api/cooling.html",
    "your_own_data.html",
    "results/focal_cifar10/focal/notebook.html",
    "results/temperature_check/temperature_check/notebook.html",
    "CHANGELOG.html",
)
BEYOND = """
const page = document.documentElement;
return [page.scrollWidth - page.clientWidth, innerWidth];
"""
# A notebook's tables have up to twenty columns, so they are allowed to scroll.
WIDE_TABLES = """
return [...document.querySelectorAll(".md-typeset__scrollwrap")]
  .filter((box) => !box.closest(".notebook") && box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.innerText.slice(0, 60));
"""
# Long lines of code must wrap; printed tables may scroll.
CUT_CODE = """
return [...document.querySelectorAll(".highlight:not(.language-text) > pre > code")]
  .filter((code) => code.scrollWidth > code.clientWidth + 1)
  .map((code) => code.innerText.slice(0, 60));
"""
# The mark beside a heading must not wrap onto a line of its own, which would leave a
# gap below the heading.
ALONE = """
return [...document.querySelectorAll("h1, h2, h3")].filter((heading) => {
  const mark = heading.querySelector(".headerlink");
  if (!mark || !mark.offsetParent) return false;
  mark.style.display = "none";
  const height = heading.clientHeight;
  mark.style.display = "";
  return heading.clientHeight > height;
}).map((heading) => heading.innerText);
"""

# A line break must not separate a value from its unit, or the ends of an interval.
BROKEN = r"""
const WHOLE = /\d\s%|±\s[\d.]+|\[-?[\d.]+,\s-?[\d.]+\]|FLSD-53/g;
const linesOf = (text, found) => {
  const range = document.createRange();
  range.setStart(text, found.index);
  range.setEnd(text, found.index + found[0].length);
  return new Set([...range.getClientRects()].map((line) => line.top)).size;
};
const page = document.querySelector("article");
const texts = document.createTreeWalker(page, NodeFilter.SHOW_TEXT);
const broken = [];
for (let text = texts.nextNode(); text; text = texts.nextNode()) {
  const element = text.parentElement;
  if (element.closest("pre, code, math, h1, table")) continue;
  if (!element.checkVisibility()) continue;
  const values = [...text.data.matchAll(WHOLE)];
  broken.push(...values.filter((found) => linesOf(text, found) > 1));
}
return broken.map((found) => found[0]);
"""
# On a wide screen, an identifier in a table breaks only after a punctuation mark.
BROKEN_CODE = r"""
const inTables = [...document.querySelectorAll("article table code")];
const texts = inTables.flatMap((code) => [...code.childNodes]);
const words = texts.filter((text) => text.data && /^[\w.]+$/.test(text.data));
return words.filter((text) => {
  const range = document.createRange();
  range.selectNodeContents(text);
  return new Set([...range.getClientRects()].map((line) => line.top)).size > 1;
}).map((text) => text.data);
"""
# At the foot of a page, the titles of the previous and the next page must not be cut
# off.
CUT_TITLES = """
return [...document.querySelectorAll(".md-footer .md-ellipsis")]
  .filter((title) => title.scrollWidth > title.clientWidth + 1)
  .map((title) => title.innerText);
"""

CLOSED = "return [...document.querySelectorAll('details:not([open])')];"
CLOSE = "for (const part of arguments[0]) part.open = false;"
SETTLE = """
const done = arguments[0];
requestAnimationFrame(() => requestAnimationFrame(done));
"""
"""A script that waits until the theme has switched to a different colour scheme."""
LOADED = {min(WIDTHS): "light", max(WIDTHS): "dark"}
"""The colour scheme in which a page is loaded, keyed by the window's width.

The theme's scripts, which run while a page loads, take most of the test's time. The
other scheme is therefore shown without loading the page again, as when a user switches.
"""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_quiet_and_no_wider_than_the_window(
    browser: Chrome, site_folder: Path, page: str, width: int, scheme: str
) -> None:
    file = site_folder / page
    shown = [browser.current_url, browser.execute_script("return innerWidth")]
    if shown != [file.as_uri(), width]:
        visit(browser, file, width, LOADED[width])
    resize(browser, width, scheme)
    browser.execute_async_script(SETTLE)
    messages = [row for row in browser.get_log("browser") if row["level"] != "INFO"]
    assert messages == []
    assert browser.execute_script(BEYOND) == [0, width]
    assert browser.execute_script(WIDE_TABLES) == []
    assert browser.execute_script(CUT_CODE) == []
    assert browser.execute_script(ALONE) == []
    assert browser.execute_script(BROKEN) == []
    assert browser.execute_script(CUT_TITLES) == []
    if width == max(WIDTHS):
        assert browser.execute_script(BROKEN_CODE) == []
    images = browser.execute_script(
        "return [...document.images]"
        ".map((image) => image.complete && image.naturalWidth)"
    )
    assert all(width > 100 for width in images)
    shown = browser.execute_script(
        "return [...document.querySelectorAll('picture')]"
        ".filter((picture) => picture.querySelector('img').offsetParent)"
        ".map((picture) => picture.querySelector('img').currentSrc)"
    )
    assert all(("-dark" in source) is (scheme == "dark") for source in shown)
    assert len(shown) == (page in ("index.html", "papers.html"))
    closed = browser.execute_script(CLOSED)
    faint = browser.execute_script(CONTRAST)["faint"]
    browser.execute_script(CLOSE, closed)  # CONTRAST unfolds sections.
    # The mark next to a heading is hidden until the pointer is over the heading.
    assert [text for text in faint if not text.endswith("¶")] == []
    dark = browser.execute_script("return document.body.dataset.mdColorScheme")
    assert (dark == "slate") is (scheme == "dark")


def test_the_search_finds_a_page_from_disk(browser: Chrome, site_folder: Path) -> None:
    visit(browser, site_folder / "index.html", max(WIDTHS), "light")
    field = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    field.click()
    field.send_keys("noise floor")
    results = WebDriverWait(browser, 20).until(
        lambda page: page.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
    )
    targets = [link.get_attribute("href") or "" for link in results]
    assert any("glossary.html" in target for target in targets)
