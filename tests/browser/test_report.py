"""The report in a browser: quiet, as wide as the window, legible, and usable by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

pytestmark = pytest.mark.browser

Visit = Callable[[str, int, str], Chrome]
WIDTHS, SCHEMES = (390, 1280), ("light", "dark")
OVERVIEW, PROFILE = "index.html", "mini/index.html"
PAGES = (OVERVIEW, PROFILE, "mini/pages/focal-records.html", "mini/pages/focal-notebook.html")
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()


def fits(browser: Chrome, width: int) -> bool:
    """Whether nothing of the page is beyond the window, and the window was not made wider for it."""
    page = "const page = document.documentElement; return [page.scrollWidth - page.clientWidth, innerWidth]"
    return browser.execute_script(page) == [0, width]


def shown(browser: Chrome) -> list[WebElement]:
    return [row for row in browser.find_elements(By.CSS_SELECTOR, ".scorecard tbody tr") if row.is_displayed()]


def column(browser: Chrome, number: int) -> list[str]:
    """The keys of a column of the scorecard, from above."""
    script = "return arguments[0].map((row) => row.cells[arguments[1]].dataset.key)"
    return browser.execute_script(script, shown(browser), number)


def button(browser: Chrome, name: str) -> WebElement:
    return browser.find_element(By.XPATH, f"//button[normalize-space()='{name}']")


def tab_to(browser: Chrome, target: WebElement) -> None:
    """Press Tab until the target has the focus, as someone without a mouse would."""
    for _ in range(60):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if browser.switch_to.active_element == target:
            return
    raise AssertionError(f"Tab does not reach {target.text!r}")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_quiet_and_no_wider_than_the_window(visit: Visit, page: str, width: int) -> None:
    browser = visit(page, width, "light")
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    assert fits(browser, width)
    browser.execute_script("document.querySelectorAll('details').forEach((part) => { part.open = true })")
    assert fits(browser, width)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_all_text_stands_out_from_its_ground(visit: Visit, page: str, width: int, scheme: str) -> None:
    found = visit(page, width, scheme).execute_script(CONTRAST)
    assert found["faint"] == []
    assert found["texts"] > 20


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_schemes_differ(visit: Visit, scheme: str) -> None:
    browser = visit(OVERVIEW, 1280, scheme)
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (min(map(int, ground[4:-1].split(","))) > 200) is (scheme == "light")


@pytest.mark.parametrize("width", WIDTHS)
def test_filters_by_mouse(visit: Visit, width: int) -> None:
    browser = visit(OVERVIEW, width, "light")
    everything = len(shown(browser))
    button(browser, "inconclusive").click()
    button(browser, "collection").click()
    rows = shown(browser)
    assert 0 < len(rows) < everything
    assert {(row.get_attribute("data-verdict"), row.get_attribute("data-profile")) for row in rows} == {
        ("inconclusive", "collection")
    }
    assert browser.find_element(By.CSS_SELECTOR, "[role=status]").text == f"{len(rows)} of {everything} claims"
    assert button(browser, "collection").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("width", WIDTHS)
def test_filters_by_keyboard(visit: Visit, width: int) -> None:
    browser = visit(PROFILE, width, "light")
    chosen = button(browser, "focal")
    tab_to(browser, chosen)
    assert chosen.value_of_css_property("outline-style") == "solid"
    ActionChains(browser).send_keys(Keys.SPACE).perform()
    assert {row.get_attribute("data-paper") for row in shown(browser)} == {"focal"}


@pytest.mark.parametrize("width", WIDTHS)
def test_sorting_by_mouse(visit: Visit, width: int) -> None:
    browser = visit(OVERVIEW, width, "light")
    head = button(browser, "Ours")
    for direction in ("ascending", "descending"):
        head.click()
        numbers = [float(key) for key in column(browser, 3) if key]
        assert numbers == sorted(numbers, reverse=direction == "descending")
        assert column(browser, 3)[-1] == "", "claims without a number come last in both directions"
        assert head.find_element(By.XPATH, "..").get_attribute("aria-sort") == direction


@pytest.mark.parametrize("width", WIDTHS)
def test_sorting_by_keyboard(visit: Visit, width: int) -> None:
    browser = visit(OVERVIEW, width, "light")
    tab_to(browser, button(browser, "Verdict"))
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    verdicts = column(browser, 0)
    assert verdicts == sorted(verdicts)
    sorts = [head.get_attribute("aria-sort") for head in browser.find_elements(By.CSS_SELECTOR, ".scorecard thead th")]
    assert sorts == ["ascending", *["none"] * 6]


def test_the_page_is_whole_without_its_script(visit: Visit) -> None:
    browser = visit(OVERVIEW, 1280, "light")
    count = len(shown(browser))
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.refresh()
        assert len(shown(browser)) == count
        assert not browser.find_element(By.CSS_SELECTOR, ".filters").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_every_figure_is_drawn(visit: Visit) -> None:
    browser = visit(PROFILE, 1280, "light")
    images = browser.execute_script("return [...document.images].map((image) => image.complete && image.naturalWidth)")
    assert len(images) > 20
    assert all(width > 100 for width in images)
