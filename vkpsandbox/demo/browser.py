"""A person in front of a browser: Chromium without a window, driven by Selenium."""

import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from vkpsandbox.demo.terminal import DemoError

_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.1
_REMEMBER: Final = """
if (location.protocol.startsWith("http")) new MutationObserver(() => {
  const seen = JSON.parse(sessionStorage.getItem("seen") ?? "[]");
  for (const { textContent } of document.querySelectorAll("%s")) {
    const line = textContent.trim();
    if (line && !seen.includes(line)) seen.push(line);
  }
  sessionStorage.setItem("seen", JSON.stringify(seen));
}).observe(document, { childList: true, subtree: true, characterData: true });
"""
"""Keeps what stood on a page for any moment: the next page of the same site may follow at once."""


class Person:
    """Somebody who looks at pages, and presses what is there.

    Attributes:
        driver: Of their browser.
    """

    def __init__(self, driver: Any, url: str) -> None:
        """Open no page yet; all paths are below the URL."""
        self.driver = driver
        self._url = url

    def open(self, path: str) -> None:
        """Type an address."""
        self.driver.get(self._url + path)

    def fill(self, css: str, text: str) -> None:
        """Type into a field."""
        self._found(css).send_keys(text)

    def press(self, css: str) -> None:
        """Press a button or a link."""
        self._wait(lambda: self._pressed(css), f"{css} to press")

    def press_until(self, css: str, sign: str) -> None:
        """Press a button until something is on the page: scripts that come late have not taken the button yet."""

        def pressed() -> bool:
            return self._pressed(css) and bool(self.driver.find_elements("css selector", sign))

        self._wait(pressed, f"{sign} after {css} is pressed")

    def reads(self, words: str, css: str = "body") -> str:
        """Wait until some words are on the page; return the text around them.

        Raises:
            DemoError: They do not come.
        """
        return str(self._wait(lambda: text if words in (text := self._text(css)) else "", f"{words!r} in {css}"))

    def remember(self, css: str) -> None:
        """Remember from now on, on all pages, each text that a selector finds, also hidden ones."""
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _REMEMBER % css})

    @property
    def remembered(self) -> list[str]:
        """The texts that were on pages since `remember`, each once; none while a page is changing."""
        seen = self._quietly(lambda: self.driver.execute_script("return sessionStorage.getItem('seen')"), None)
        return [str(text) for text in json.loads(seen or "[]")]

    def within(self, css: str) -> None:
        """Go on in a frame of the page; `open` leaves it."""
        self.driver.switch_to.frame(self._found(css))

    @property
    def path(self) -> str:
        """The address that is shown, without the host."""
        return str(self.driver.current_url).removeprefix(self._url)

    def await_path(self, path: str) -> None:
        """Wait until an address is shown.

        Raises:
            DemoError: It is not.
        """
        self._wait(lambda: self.path.startswith(path), f"the page {path}")

    # ------------------------------------------------------------------------------------------ how
    def _found(self, css: str) -> Any:
        return self._wait(lambda: self.driver.find_elements("css selector", css), f"{css} on the page")[0]

    def _pressed(self, css: str) -> bool:
        if self.driver.execute_script("return document.readyState") != "complete":
            return False  # its scripts may not have begun
        self.driver.find_element("css selector", css).click()
        return True

    def _text(self, css: str) -> str:
        return str(self.driver.find_element("css selector", css).text)

    def _quietly(self, look: Callable[[], Any], otherwise: Any) -> Any:
        from selenium.common.exceptions import WebDriverException  # noqa: PLC0415 (optional)

        try:
            return look()
        except WebDriverException:  # while a page goes and the next one comes, it may be any of them
            return otherwise

    def _wait(self, look: Callable[[], Any], what: str) -> Any:
        until = time.monotonic() + _PATIENCE_S
        while not (found := self._quietly(look, None)):
            if time.monotonic() > until:
                shown = self._quietly(lambda: self._text("body"), "")
                raise DemoError(f"{self.path} does not show {what} after {_PATIENCE_S:.0f} s, but:\n{shown}")
            time.sleep(_POLL_S)
        return found


def require_browser() -> tuple[str, str]:
    """Return the programs of browser and driver.

    Raises:
        DemoError: One of them is missing, or Selenium.
    """
    program, driver = next(filter(None, map(shutil.which, _BROWSERS)), None), shutil.which("chromedriver")
    if program is None or driver is None:
        raise DemoError("this demo needs chromium and chromedriver: apt-get install -y chromium chromium-driver")
    if importlib.util.find_spec("selenium") is None:
        raise DemoError("this demo needs selenium: pip install selenium")
    return program, driver


@contextmanager
def person(url: str) -> Iterator[Person]:
    """Yield somebody with a browser of their own.

    Raises:
        DemoError: There is no browser.
    """
    with chromium() as driver:
        yield Person(driver, url)


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield the driver of a browser that reaches nothing but this machine.

    Raises:
        DemoError: There is no browser.
    """
    program, driver = require_browser()
    from selenium.webdriver import Chrome  # noqa: PLC0415 (optional)
    from selenium.webdriver.chrome.options import Options  # noqa: PLC0415 (optional)
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415 (optional)

    options = Options()
    options.binary_location = program
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--disable-background-networking"):
        options.add_argument(argument)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's own sandbox refuses root
    running = Chrome(options=options, service=Service(driver))
    try:
        yield running
    finally:
        running.quit()
