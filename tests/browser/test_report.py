"""In a browser, committed reports log no messages, fit the window, and are legible."""

import shutil
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from softmax_temperature.papers.html import write_report
from softmax_temperature.papers.shared.figures import DPI, SMALLEST
from softmax_temperature.papers.shared.results import PAPERS as SLUGS
from tests.browser.conftest import CONTRAST, SCHEMES, WIDTHS, visit

pytestmark = pytest.mark.browser

INDEX = "index.html"
PAGES = (
    INDEX,
    f"mini/{INDEX}",
    "mini/pages/focal-records.html",
    *(f"mini/pages/{paper}.html" for paper in SLUGS),
    "focal_cifar10/pages/focal.html",
    "text/pages/focal.html",
)
SCREENS = {420: 44, 1280: 29}
"""Maximum height of a claims page, in screens, for each window width in pixels.

Under each claim, the page shows all studies that tested it, unfolded. In the font
DejaVu Sans, the page is 40 screens tall at the first width; other fonts are narrower.
Each study that is added makes it taller.
"""
LEGIBLE = 9
"""Smallest allowed height, in pixels, of a figure's text in any window."""

TABLES_THAT_SCROLL = """
return [...document.querySelectorAll(".notebook .scroll")]
  .filter((box) => box.querySelector("table") && box.scrollWidth > box.clientWidth)
  .map((box) => box.innerText.slice(0, 60));
"""
"""A script that returns the notebook tables that are cut off. On a phone, wide tables
are shown as cards.
"""
TALL_ROWS = """
return [...document.querySelectorAll(".notebook tr")]
  .filter((row) => row.offsetHeight > 170)
  .map((row) => row.innerText.slice(0, 60));
"""
"""A script that returns the table rows that are too tall: a long text in a narrow
column leaves the other cells mostly blank.
"""
FIGURES_THAT_SCROLL = """
return [...document.querySelectorAll(".notebook .scroll")]
  .filter((box) => box.querySelector("img") && box.scrollWidth > box.clientWidth)
  .map((box) => box.innerText);
"""
SCALES = """
return [...document.images].map((image) => {
  const style = getComputedStyle(image);
  const margins = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
  return (image.offsetWidth - margins) / image.naturalWidth;
});
"""
"""A script that returns, for each picture, the number of CSS pixels per pixel of its
file.
"""


@pytest.fixture(scope="session")
def site(project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "results"
    shutil.copytree(project_root / "docs", folder.parent / "docs")
    shutil.copytree(
        project_root / "results", folder, ignore=shutil.ignore_patterns("*.html")
    )
    write_report(folder)
    return folder


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_quiet_legible_short_and_no_wider_than_the_window(
    browser: Chrome, site: Path, page: str, width: int, scheme: str
) -> None:
    visit(browser, site / page, width, scheme)
    assert [
        entry for entry in browser.get_log("browser") if entry["level"] != "INFO"
    ] == []
    if page.endswith(INDEX):
        screens = browser.execute_script(
            "return document.documentElement.scrollHeight / innerHeight"
        )
        assert screens <= SCREENS[width]
    images = browser.execute_script(
        "return [...document.images]"
        ".map((image) => image.complete && image.naturalWidth)"
    )
    assert all(width > 100 for width in images)
    assert len(images) >= 11 * page.endswith("focal.html")
    assert browser.execute_script(FIGURES_THAT_SCROLL) == []
    if width == min(WIDTHS):
        assert browser.execute_script(TABLES_THAT_SCROLL) == []
    else:
        assert browser.execute_script(TALL_ROWS) == []
    scales = browser.execute_script(SCALES)
    assert [scale for scale in scales if SMALLEST / 72 * DPI * scale < LEGIBLE] == [], (
        "a figure's text is too small to read"
    )
    found = browser.execute_script(CONTRAST)  # The script unfolds sections.
    assert found["faint"] == []
    assert found["texts"] > 20
    beyond = (
        "const page = document.documentElement; "
        "return [page.scrollWidth - page.clientWidth, innerWidth]"
    )
    assert browser.execute_script(beyond) == [0, width]
