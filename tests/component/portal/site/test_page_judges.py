"""What tests in a browser rest on: judges find what is wrong, and no visitor finds anything of the one before."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from selenium.webdriver import Chrome

from tests.support.page import visiting
from tests.support.tcp import port_of
from vkprovider.platform.http.connections import listen, runner_of

_KEPT = """
    return [document.cookie, localStorage.length, sessionStorage.length, history.length, innerWidth,
            (await indexedDB.databases()).length];
"""
_KEEP = """
    document.cookie = "seen=1";
    localStorage.setItem("seen", 1);
    sessionStorage.setItem("seen", 1);
    indexedDB.open("seen");
    console.error("of the first visitor");
"""


class Pages:
    """A site of one page, whose body a test writes.

    Attributes:
        body: Of the page.
        loaded_total: How often its picture, which may be kept for a day, was loaded.
    """

    def __init__(self) -> None:
        self.body = "<h1>Nothing is wrong</h1>"
        self.loaded_total = 0
        self.url = ""

    async def page(self, request: web.Request) -> web.Response:  # noqa: ARG002 (a handler)
        head = '<!doctype html><html lang="en"><head><title>Pages</title><link rel="icon" href="/icon.svg"></head>'
        return web.Response(
            text=f'{head}<body><main>{self.body}<img src="/picture.svg" alt="A picture"></main></body></html>',
            content_type="text/html",
            headers={"Content-Security-Policy": "default-src 'self'; style-src 'self'"},
        )

    async def picture(self, request: web.Request) -> web.Response:
        self.loaded_total += request.path == "/picture.svg"
        svg = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
        return web.Response(text=svg, content_type="image/svg+xml", headers={"Cache-Control": "max-age=86400"})


@pytest.fixture
async def pages() -> AsyncIterator[Pages]:
    """Serve the page."""
    found, app = Pages(), web.Application()
    app.router.add_get("/", found.page)
    app.router.add_get("/{name}.svg", found.picture)
    runner = runner_of(app, shutdown_s=1.0)
    await runner.setup()
    server = await listen(runner, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{port_of(server)}"
    try:
        yield found
    finally:
        server.close()
        await runner.cleanup()


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<h1>A<p>B</p></h1>", "HTML: /: .*sent:1: .*now:1: "),
        ('<h1>A</h1><input id="name">', "axe, light: /: .*label: <input"),
        ('<h1>A</h1><p style="color: red">B</p>', "pages logged errors.*policy broken: style-src-attr"),
        ('<h1>A</h1><script src="/missing.js"></script>', "pages logged errors.*missing.js"),
    ],
)
async def test_each_judge_finds_what_is_wrong(pages: Pages, body: str, found: str) -> None:
    pages.body = body
    with pytest.raises(AssertionError, match=f"(?s){found}"):
        await judged(pages)


async def judged(pages: Pages) -> None:
    async with visiting(pages.url) as page:
        await page.open("/")
        await page.judge()


async def test_a_page_without_faults_is_judged_right(pages: Pages) -> None:
    await judged(pages)


async def test_a_visitor_finds_nothing_of_the_one_before(pages: Pages) -> None:
    seen: list[list[object]] = []
    browsers: list[int] = []
    for visitor in (1, 2):
        async with visiting(pages.url) as page:
            page.expects("of the first visitor")
            await page.open("/")
            seen.append(await page.run(_kept))
            browsers.append(await page.run(lambda driver: driver.service.process.pid))
            assert pages.loaded_total == visitor, "from the cache of another one"
            assert await page.run(lambda driver: len(driver.window_handles)) == 1
            await page.run(lambda driver: driver.execute_script(_KEEP))
            await page.open("/")
            assert pages.loaded_total == visitor
            await page.run(_small_in_two_tabs)
    assert seen[0] == seen[1]
    assert seen[0][:3] == ["", 0, 0]
    assert browsers[0] == browsers[1]


def _kept(driver: Chrome) -> list[object]:
    """Return what a page finds that was there before it."""
    script = f"const done = arguments[arguments.length - 1]; (async () => {{ {_KEPT} }})().then(done)"
    found: list[object] = driver.execute_async_script(script)
    return found


def _small_in_two_tabs(driver: Chrome) -> None:
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.switch_to.new_window("tab")
