"""A real browser without a window, driven over WebDriver."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
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
def browser(*, logs: bool = False, hosts: Mapping[str, str] | None = None) -> Iterator[Chrome]:
    """Start a browser that reaches nothing but this machine; skip the test where there is none.

    Args:
        logs: Whether it keeps what pages log, and takes any certificate.
        hosts: Addresses by name, or by a wildcard such as `*.wb.test`, that it reaches besides.
    """
    running = _started(logs=logs, hosts=hosts or {})
    try:
        yield running
    finally:
        running.quit()


class Browsers:
    """The browsers of one module's tests: one for each visitor of a test, and the same ones in the next test.

    Each visitor comes with a browser that knows nothing: no cookie, no storage, no page and no history of another one.
    """

    def __init__(self) -> None:
        """Start none yet."""
        self._free: list[Chrome] = []

    def take(self) -> Chrome:
        """Return a browser that nobody has; it keeps what pages log, and takes any certificate."""
        return self._free.pop() if self._free else _started(logs=True)

    def give_back(self, used: Chrome, origin: str) -> None:
        """Have a browser forget its visitor, and keep it for the next one.

        Args:
            used: The browser.
            origin: Of the site that the visitor has seen, whose storage is emptied.
        """
        left = used.window_handles
        used.switch_to.new_window("tab")
        fresh = used.current_window_handle
        for handle in left:
            used.switch_to.window(handle)
            used.close()
        used.switch_to.window(fresh)
        used.execute_cdp_cmd("Network.clearBrowserCookies", {})
        used.execute_cdp_cmd("Network.clearBrowserCache", {})
        used.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        used.get_log("browser")  # type: ignore[no-untyped-call]
        self._free.append(used)

    def close(self) -> None:
        """End those that nobody has."""
        while self._free:
            self._free.pop().quit()


def _started(*, logs: bool, hosts: Mapping[str, str] = MappingProxyType({})) -> Chrome:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip(f"no {' or '.join(BROWSERS)} with chromedriver in PATH; get it: {GET_IT}")
    options = Options()
    options.binary_location = program
    options.add_argument("--headless=new")
    options.add_argument("--disable-dev-shm-usage")
    options.add_argument("--disable-background-networking")
    here = ", ".join(f"EXCLUDE {each}" for each in ("127.0.0.1", "localhost", "*.localhost"))
    named = "".join(f"MAP {name} {address}, " for name, address in hosts.items())
    options.add_argument(f"--host-resolver-rules={named}MAP * ~NOTFOUND, {here}")
    if logs:
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.accept_insecure_certs = True
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's own sandbox refuses root
    running = Chrome(options=options, service=Service(driver))
    try:
        running.set_page_load_timeout(60)
    except WebDriverException:
        running.quit()
        raise
    return running


def press(page: Chrome, button: str) -> None:
    """Press the button of an id, and wait for the page that comes of it."""
    found = page.find_element(By.ID, button)
    found.click()
    # While a page goes, chromedriver answers with errors of any kind, not with StaleElementReference only: ask again.
    wait = WebDriverWait(page, 60, poll_frequency=0.05, ignored_exceptions=[WebDriverException])
    wait.until(staleness_of(found))
    wait.until(lambda page: page.execute_script("return document.readyState") == "complete")
