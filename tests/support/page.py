"""A page of the portal's site in a real browser, and what judges it: axe, the checker of HTML, and the browser itself.

    async with visiting(url) as page:
        await page.log_in(token)
        await page.open("/labs/alice")
        await page.shows("Your lab is ready")
        await page.judge()

WebDriver blocks, and replicas run in the loop of the test: each call here runs in a thread. When the browser ends, no
page may have logged an error or broken its content security policy, but for those that the test has named by `expects`.
"""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.support.browser import Browsers
from tests.support.htmlchecker import check

_JUDGES: Final = Path(sys.prefix) / "judges" / "page" / "node_modules"
_TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_REPORT: Final = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy broken: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""
_AXE: Final = """
const done = arguments[arguments.length - 1];
axe.run(document, {runOnly: {type: "tag", values: arguments[0]}, resultTypes: ["violations"]}).then(
  (found) => done(found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(" | ")}`)),
  (error) => done([String(error)]));
"""
_SOURCE: Final = """
const done = arguments[arguments.length - 1];
fetch(location.href).then((answer) => answer.text()).then(done, (error) => done(`<p>${error}`));
"""
_WAIT_S: Final = 60.0
_kept: Final[list[Browsers]] = []
V = TypeVar("V")


class Page:
    """One person's browser at one replica.

    Attributes:
        driver: What drives the browser; it blocks: see `run`.
        url: Of the replica.
    """

    def __init__(self, driver: Chrome, url: str) -> None:
        self.driver = driver
        self.url = url
        self._expected: list[re.Pattern[str]] = []
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _REPORT})

    async def run(self, step: Callable[[Chrome], V]) -> V:
        """Run a step that drives the browser, in a thread."""
        return await asyncio.to_thread(step, self.driver)

    # ------------------------------------------------------------------------------------------ what a person does

    async def open(self, path: str) -> None:
        """Open a page of the site."""
        await self.run(lambda driver: driver.get(self.url + path))

    async def log_in(self, token: str, then: str = "/") -> None:
        """Log in with a token by the form; `then` is the page that the visitor wanted."""
        await self.open(f"/login?next={then}")
        await self.fill("#token", token)
        await self.press("main form button")

    async def press(self, css: str) -> None:
        """Press what a selector names, once it can be pressed; if a page comes of it, `shows` waits for that.

        This, `fill` and `keys` wait for the page's scripts: what a page shows is there before them.
        """

        def step(driver: Chrome) -> None:
            found = self._wait(driver, lambda: _enabled(driver, css), f"{css} can be pressed, and the page is loaded")
            driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
            found.click()

        await self.run(step)

    async def fill(self, css: str, text: str) -> None:
        """Type into a field."""

        def step(driver: Chrome) -> None:
            found = self._wait(driver, lambda: _enabled(driver, css), f"{css} can be filled, and the page is loaded")
            found.clear()
            found.send_keys(text)

        await self.run(step)

    async def keys(self, *keys: str) -> None:
        """Type with whatever has the focus."""

        def step(driver: Chrome) -> None:
            self._wait(driver, lambda: _loaded(driver), "the page is loaded")
            driver.switch_to.active_element.send_keys(*keys)

        await self.run(step)

    # ------------------------------------------------------------------------------------------ what a person sees

    async def text(self, css: str = "main") -> str:
        """Return the visible text of the first element that a selector names, once it is there."""
        return await self.run(
            lambda driver: self._wait(driver, lambda: [driver.find_element(By.CSS_SELECTOR, css).text], css)[0]
        )

    async def texts(self, css: str) -> list[str]:
        """Return the visible texts of all elements that a selector names now."""
        return await self.run(lambda driver: [each.text for each in driver.find_elements(By.CSS_SELECTOR, css)])

    async def shows(self, words: str, css: str = "main") -> None:
        """Wait until an element shows some words."""
        await self.until(
            lambda driver: words in driver.find_element(By.CSS_SELECTOR, css).text, f"{css} shows {words!r}"
        )

    async def until(self, true: Callable[[Chrome], Any], what: str) -> None:
        """Wait until something is true; `what` names it if it does not become so."""
        await self.run(lambda driver: self._wait(driver, lambda: true(driver), what))

    async def path(self) -> str:
        """Return path and query of the page."""
        return await self.run(lambda driver: driver.current_url.removeprefix(self.url))

    # ------------------------------------------------------------------------------------------ judges

    def expects(self, pattern: str) -> None:
        """Name an error that pages may log, such as the answer to a request that is to be refused."""
        self._expected.append(re.compile(pattern))

    async def judge(self, *, html: bool = True, changed: bool = True) -> None:
        """Fail unless the page is accessible (WCAG 2.2 AA) in light and dark, and right HTML as sent and as changed.

        Args:
            html: Whether HTML is checked.
            changed: Whether it is also checked as scripts have changed it; xterm puts style elements into the body.
        """
        for scheme in ("light", "dark"):
            found = await self.run(lambda driver, scheme=scheme: _axe(driver, scheme))  # type: ignore[misc]  # (mypy#15459)
            assert found == [], f"axe, {scheme}: {await self.path()}: {found}"
        if html:
            pages = await self.run(lambda driver: {"sent": driver.execute_async_script(_SOURCE)})
            if changed:
                pages["now"] = await self.run(_dom)
            wrong = await asyncio.to_thread(check, pages, _judge("vnu-jar/build/dist/vnu.jar"))
            assert wrong == [], f"HTML: {await self.path()}: {wrong}"

    async def errors(self) -> list[str]:
        """Return the errors that pages have logged since the last call, but for those that are expected."""
        entries = await self.run(lambda driver: driver.get_log("browser"))  # type: ignore[no-untyped-call]
        logged = [entry["message"] for entry in entries if entry["level"] == "SEVERE"]
        return [line for line in logged if not any(each.search(line) for each in self._expected)]

    @staticmethod
    def _wait(driver: Chrome, true: Callable[[], V | None], what: str) -> V:
        # While a page goes, chromedriver answers with errors of any kind.
        wait = WebDriverWait(driver, _WAIT_S, poll_frequency=0.05, ignored_exceptions=[WebDriverException])
        try:
            return wait.until(lambda _: true())  # type: ignore[return-value]
        except TimeoutException as error:
            raise AssertionError(f"not so: {what}; the page: {_seen(driver)}") from error


@contextmanager
def kept_browsers() -> Iterator[None]:
    """Have browsers go from one visitor to the next while the block runs; without that, each visitor starts one."""
    _kept.append(Browsers())
    try:
        yield
    finally:
        _kept.pop().close()


@asynccontextmanager
async def visiting(url: str) -> AsyncIterator[Page]:
    """Give one person a browser that knows nothing yet; at its end no page may have logged an error.

    After a failure it is ended: nobody knows in what state it is.
    """
    browsers = _kept[-1] if _kept else Browsers()
    driver = await asyncio.to_thread(browsers.take)
    try:
        page = Page(driver, url)
        yield page
        logged = await page.errors()
        assert logged == [], f"pages logged errors: {logged}"
        await asyncio.to_thread(browsers.give_back, driver, url)
    except BaseException:
        await asyncio.to_thread(driver.quit)
        raise
    if browsers not in _kept:
        await asyncio.to_thread(browsers.close)


def _enabled(driver: Chrome, css: str) -> WebElement | None:
    found = driver.find_element(By.CSS_SELECTOR, css)
    return found if _loaded(driver) and found.is_displayed() and found.is_enabled() else None


def _loaded(driver: Chrome) -> bool:
    return bool(driver.execute_script("return document.readyState") == "complete")


def _seen(driver: Chrome) -> str:
    try:
        return f"{driver.current_url}: {driver.find_element(By.TAG_NAME, 'body').text[:2000]}"
    except WebDriverException:
        return "none"


def _dom(driver: Chrome) -> str:
    return f"<!doctype html>{driver.execute_script('return document.documentElement.outerHTML')}"


def _axe(driver: Chrome, scheme: str) -> list[str]:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.execute_script(_axe_source())
    found: list[str] = driver.execute_async_script(_AXE, _TAGS)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    return found


@cache
def _axe_source() -> str:
    return _judge("axe-core/axe.min.js").read_text(encoding="utf-8")


def _judge(path: str) -> Path:
    """Return a file of a judge; without it the test is skipped, but in CI it fails."""
    found = _JUDGES / path
    if not found.exists():
        why = f"{path} is not installed; get it: make judges, as `make test` does"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return found
