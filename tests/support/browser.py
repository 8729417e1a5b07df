"""A real browser without a window, driven over WebDriver."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.wait import WebDriverWait

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
GET_IT: Final = "make test INSTALL=1, or: apt-get install -y --no-install-recommends chromium chromium-driver"


@contextmanager
def browser(*, logs: bool = False) -> Iterator[Chrome]:
    """Start a browser that reaches nothing but this machine; skip the test where there is none.

    Args:
        logs: Whether it keeps what pages log, and takes any certificate.
    """
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip(f"no {' or '.join(BROWSERS)} with chromedriver in PATH; get it: {GET_IT}")
    options = Options()
    options.binary_location = program
    options.add_argument("--headless=new")
    options.add_argument("--disable-dev-shm-usage")
    options.add_argument("--disable-background-networking")
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    if logs:
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.accept_insecure_certs = True
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's own sandbox refuses root
    running = Chrome(options=options, service=Service(driver))
    try:
        running.set_page_load_timeout(60)
        yield running
    finally:
        running.quit()


def press(page: Chrome, button: str) -> None:
    """Press the button of an id, and wait for the page that comes of it."""
    found = page.find_element(By.ID, button)
    found.click()
    # While a page goes, chromedriver answers with errors of any kind, not with StaleElementReference only: ask again.
    wait = WebDriverWait(page, 60, poll_frequency=0.05, ignored_exceptions=[WebDriverException])
    wait.until(staleness_of(found))
    wait.until(lambda page: page.execute_script("return document.readyState") == "complete")
