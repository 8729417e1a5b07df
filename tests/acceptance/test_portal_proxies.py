"""The site behind nginx, Apache httpd and HAProxy as they come: pages, what changes by itself, consoles, downloads.

Each stands for a kind: nginx rewrites Host, Apache does and takes a part of the path away as well, HAProxy leaves both
as they are, with a path that the site has itself. What they keep to themselves the first page names.
"""

import io
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from tests.component.portal.asking import setting
from tests.component.portal.harness import install, open_world
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.consolebench import KEY, Bench, console_bench
from tests.support import apiserver as real
from tests.support.apiserver import ApiServer
from tests.support.mosquitto import free_port
from tests.support.nginx import proxied
from tests.support.page import Page, kept_browsers, visiting
from tests.support.proxies import apache, haproxy
from vkprovider.platform.siteaddress import address_of
from vkprovider.portal.checks.road import ask_road

_OPENED: Final = "return performance.getEntriesByType('resource').length > 0 && document.readyState === 'complete'"
UPGRADES: Final = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;"


@pytest.fixture(scope="module", autouse=True)
def browsers() -> Iterator[None]:
    """One browser for all visitors of the module."""
    with kept_browsers():
        yield


@pytest.fixture(scope="module")
def portal_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server with the rights of the portal."""
    with real.running(tmp_path_factory.mktemp("apiserver")) as server:
        install(server)
        yield server


@pytest.fixture
async def fronts(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[tuple[Bench, list[str]]]:
    """A lablet with devices, a portal, and its addresses at three proxies."""
    ports = [free_port() for _ in range(3)]
    urls = [f"http://127.0.0.1:{port}{base}" for port, base in zip(ports, ("", "/training", "/labs"), strict=True)]
    async with (
        console_bench(portal_server, tmp_path, VKPROVIDER_PORTAL_URLS=", ".join(urls)) as bench,
        AsyncExitStack() as stack,
    ):
        host = bench.url.removeprefix("http://")
        for front in (
            proxied(tmp_path / "nginx", bench.url, UPGRADES, port=ports[0]),
            apache(tmp_path / "apache", f"{bench.url}/", "upgrade=websocket", below="/training/", port=ports[1]),
            haproxy(tmp_path / "haproxy", host, port=ports[2]),
        ):
            await stack.enter_async_context(front)
        yield bench, urls


async def shows(page: Page, text: str) -> None:
    await page.until(
        lambda driver: text in driver.find_element(By.CSS_SELECTOR, ".xterm-rows").text, f"the terminal shows {text!r}"
    )


async def test_all_of_the_site_works_behind_each(fronts: tuple[Bench, list[str]]) -> None:
    bench, urls = fronts
    header = await bench.teacher("ann")
    token = header["Authorization"].removeprefix("Bearer ")
    pod = f"/api/v1/namespaces/{bench.site.lablet.namespace}/pods/{bench.site.lablet.name}"
    for number, url in enumerate(urls):
        async with visiting(url) as page:
            await page.log_in(token, f"{bench.lablet}/consoles/h0?as=type")
            await shows(page, "h0:~#")
            await page.keys("ls", Keys.ENTER)
            await shows(page, "backup.tgz")
            await page.open(bench.lablet)
            said = {"vkprovider.io/message": f"2026-11-26T17:00:00Z Hello {number}."}
            await bench.portal.admin.patch(pod, {"metadata": {"annotations": said}})
            await page.shows(f"Hello {number}.", "#lab-message")
        async with Browsing(url) as browser:
            front = urlsplit(url).path
            slash = await browser.get(f"{url}/classes/")
            assert (slash.status_code, slash.headers["location"]) == (308, f"{front}/classes"), url
            await browser.get(f"{url}/login")
            sent = {"Origin": url.removesuffix(front)}
            fields = {"csrf": browser.csrf, "token": token, "next": "/"}
            done = await browser.ask("POST", f"{url}/login", sent, data=fields)
            assert (done.status_code, done.headers["location"]) == (303, f"{front}/"), url
            answer = await browser.get(f"{url}{bench.lablet}/configurations")
            assert answer.status_code == 200, url
            assert any("r1" in name for name in zipfile.ZipFile(io.BytesIO(answer.content)).namelist())


async def test_the_first_page_names_what_a_proxy_keeps_to_itself(portal_server: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "portal").mkdir()
    async with (
        open_world(portal_server, tmp_path / "portal") as world,
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        proxied(tmp_path / "nginx", made.client.url, UPGRADES) as rewriting,
        apache(tmp_path / "apache", f"{made.client.url}/", preserved=True) as closed,
        apache(tmp_path / "open", f"{made.client.url}/", "upgrade=websocket", preserved=True) as right,
    ):
        async with visiting(rewriting) as page:
            await page.open("/login")
            await page.shows("the proxy in front of it rewrites the header Host", "#proxy-said")
            await page.shows(f"names {rewriting} in VKPROVIDER_PORTAL_URLS", "#proxy-said")
            await page.judge()
        async with visiting(closed) as page:
            page.expects(r"WebSocket connection to .* failed")
            page.expects(r"/login/upgrade - Failed to load resource: .* 426")
            await page.open("/login")
            await page.shows("has it pass on the headers Upgrade and Connection", "#proxy-said")
        asked = [(await ask_road(address_of(url))).status for url in (closed, right, "http://127.0.0.1:1")]
        assert asked == [426, 101, 0], "what the doctor finds"
        async with visiting(right) as page:
            await page.open("/login")
            await page.until(lambda driver: driver.execute_script(_OPENED), "a WebSocket was opened")
            assert await page.texts("#proxy-said") == [""]
