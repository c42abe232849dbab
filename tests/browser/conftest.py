"""The report on the committed results, and a browser without a window to read it with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from softmax_temperature.papers.html import write_report

PHONE = 600  # CSS pixels, below which a window is one


@pytest.fixture(scope="session")
def site(project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "results"
    shutil.copytree(project_root / "results", folder, ignore=shutil.ignore_patterns("*.html"))
    write_report(folder)
    return folder


@pytest.fixture(scope="session")
def driver(browser_program: str) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = browser_program
    # In a container there may be no second user to confine it to, and little shared memory.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    yield started
    started.quit()


@pytest.fixture
def visit(driver: webdriver.Chrome, site: Path) -> Callable[[str, int, str], webdriver.Chrome]:
    """Opens a page of the report at a width, in a colour scheme."""

    def open_page(page: str, width: int, scheme: str) -> webdriver.Chrome:
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < PHONE}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        preferred = {"name": "prefers-color-scheme", "value": scheme}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preferred]})
        driver.get((site / page).as_uri())
        return driver

    return open_page
