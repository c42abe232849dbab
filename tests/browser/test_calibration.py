"""In a browser, the page of `calibrate` shows every column and is legible."""

from pathlib import Path

import pytest
from selenium.webdriver import Chrome

import softmax_temperature as st
from tests.browser.conftest import CONTRAST, SCHEMES, WIDTHS, visit

pytestmark = pytest.mark.browser

CUT = """
return [document.documentElement, ...document.querySelectorAll(".scroll")]
  .filter((box) => box.scrollWidth > box.clientWidth)
  .map((box) => `${box.tagName} ${box.scrollWidth}`);
"""
BRIGHTNESS = "return getComputedStyle(document.querySelector('figure')).filter"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logits, labels = st.sample_logits()
    file = tmp_path_factory.mktemp("calibration") / "page.html"
    file.write_text(st.calibrate(logits, labels, bootstrap=100).html())
    return file


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_a_calibration_shows_all_columns_and_is_legible(
    browser: Chrome, page: Path, width: int, scheme: str
) -> None:
    visit(browser, page, width, scheme)
    assert browser.execute_script(CUT) == []
    found = browser.execute_script(CONTRAST)
    assert found["faint"] == []
    assert found["texts"] > 40
    dimmed = browser.execute_script(BRIGHTNESS) != "none"
    assert dimmed is (scheme == "dark")
