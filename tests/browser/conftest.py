"""A headless browser, and the window widths and colour schemes to test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

WIDTHS = (420, 1280)
SCHEMES = ("light", "dark")
# A script that returns the texts whose contrast with their background is too low.
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()


@pytest.fixture(scope="session")
def browser(browser_program: str) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = browser_program
    # A container may have too little shared memory, and may not support the browser's
    # sandbox.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = Chrome(options, Service(shutil.which("chromedriver")))
    yield started
    started.quit()


def visit(browser: Chrome, page: Path, width: int, scheme: str) -> None:
    """Load a page in a window of this width, with this preferred colour scheme."""
    resize(browser, width, scheme)
    browser.get(page.as_uri())


def resize(browser: Chrome, width: int, scheme: str) -> None:
    """Set the window's width, and the colour scheme that the browser prefers."""
    size = {
        "width": width,
        "height": 844,
        "deviceScaleFactor": 1,
        "mobile": width < max(WIDTHS),
    }
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    preferred = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preferred]})
