"""The site behind nginx as it comes: Host is rewritten, a part of the path taken away, and consoles open there too."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.consolebench import KEY, console_bench
from tests.support.apiserver import ApiServer
from tests.support.mosquitto import free_port
from tests.support.nginx import proxied
from tests.support.page import Page, visiting

UPGRADES: Final = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;"
"""What every WebSocket behind nginx takes; Host stays rewritten."""
FORWARDS: Final = f"{UPGRADES} proxy_set_header X-Forwarded-Host $http_host;"


async def shows(page: Page, text: str) -> None:
    await page.until(
        lambda driver: text in driver.find_element(By.CSS_SELECTOR, ".xterm-rows").text, f"the terminal shows {text!r}"
    )


async def test_consoles_open_at_each_address_of_the_site(portal_server: ApiServer, tmp_path: Path) -> None:
    plain, stripped, kept = (free_port() for _ in range(3))
    urls = [f"http://127.0.0.1:{plain}", f"http://127.0.0.1:{stripped}/training", f"http://127.0.0.1:{kept}/labs/at"]
    async with (
        console_bench(portal_server, tmp_path, VKPROVIDER_PORTAL_URLS=", ".join(urls)) as bench,
        AsyncExitStack() as stack,
    ):
        teacher = (await bench.teacher("ann"))["Authorization"].removeprefix("Bearer ")
        for port, below, to, settings in (
            (plain, "/", "", UPGRADES),
            (stripped, "/training/", "/", FORWARDS),
            (kept, "/labs/at/", "", UPGRADES),
        ):
            front = proxied(tmp_path / f"nginx-{port}", bench.url + to, settings, below=below, port=port)
            await stack.enter_async_context(front)
        for url in urls:
            async with visiting(url) as page:
                await page.log_in(teacher, f"{bench.lablet}/consoles/h0?as=type")
                await shows(page, "h0:~#")
                await page.keys("ls", Keys.ENTER)
                await shows(page, "backup.tgz")
                assert (await page.run(lambda driver: driver.current_url)).startswith(f"{url}/classes/")


@pytest.mark.parametrize("path", ["/labs/alice", "/labs/labs/alice"])
async def test_a_path_of_the_site_itself_may_be_where_all_of_it_is(world: PortalWorld, path: str) -> None:
    """A proxy takes `/labs` away, or leaves it; where both could be meant, what there is decides."""
    url = "https://example.com/labs"
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY, VKPROVIDER_PORTAL_URLS=url) as made,
        Browsing(made.client.url) as browser,
    ):
        there = {"Host": "10.0.0.1:8083", "Sec-Fetch-Site": "same-origin"}
        led = await browser.get(path, **there)
        assert led.headers["location"] == "/labs/login?next=/labs/alice"
        base = path.removesuffix("/labs/alice")
        await browser.get(f"{base}/login?next=/labs/alice", **there)
        sent = {**there, "Origin": "https://example.com"}
        token = made.alice["Authorization"].removeprefix("Bearer ")
        begun = await browser.post(f"{base}/login", sent, token=token, next="/labs/alice")
        assert (begun.status_code, begun.headers["location"]) == (303, "/labs/labs/alice")
        assert "You have no lab" in (await browser.get(path, **there)).text
        assert all("Path=/labs;" in line for line in begun.headers.get_list("set-cookie"))
        assert (await browser.get(f"{base}/", **there)).headers["location"] == "/labs/labs/alice"


async def test_a_proxy_that_keeps_the_upgrade_to_itself_is_named_on_the_page(
    portal_server: ApiServer, tmp_path: Path
) -> None:
    async with (
        console_bench(portal_server, tmp_path) as bench,
        proxied(tmp_path / "nginx", bench.url, "proxy_set_header Host $http_host;") as url,
        visiting(url) as page,
    ):
        page.expects(r"WebSocket connection to .* failed")
        page.expects(r"/stream.* - Failed to load resource: .* 400")
        page.expects(r"/login/upgrade - Failed to load resource: .* 426")
        teacher = (await bench.teacher("ann"))["Authorization"].removeprefix("Bearer ")
        await page.log_in(teacher, f"{bench.lablet}/consoles/h0")
        await page.shows("pass on the headers Upgrade and Connection. Your lab goes on.", "#console-status")


async def test_a_portal_that_does_not_know_its_address_says_so(portal_server: ApiServer, tmp_path: Path) -> None:
    async with (
        console_bench(portal_server, tmp_path) as bench,
        proxied(tmp_path / "nginx", bench.url, UPGRADES) as url,
        Browsing(url) as browser,
    ):
        header = await bench.teacher("ann")
        await browser.get("/login")
        fetched = {"Sec-Fetch-Site": "same-origin"}
        token = header["Authorization"].removeprefix("Bearer ")
        assert (await browser.post("/login", fetched, token=token, next="/")).status_code == 303
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        stream = f"{url}{bench.lablet}/consoles/h0/stream?as=watch"
        for origin, refused in ((url, True), (bench.url, False)):
            asked = {"Origin": origin, "Cookie": cookie}
            async with bench.http.get(stream, headers=asked) as answer:
                text = await answer.text()
                assert (answer.status == 403, "VKPROVIDER_PORTAL_URLS" in text) == (refused, refused), text
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await bench.http.ws_connect(stream, headers={"Origin": url, "Cookie": cookie})
        async with visiting(url) as page:
            page.expects(r"WebSocket connection to .* failed")
            page.expects(r"/stream.* - Failed to load resource: .* 403")
            await page.log_in(token, f"{bench.lablet}/consoles/h0")
            await page.shows(
                "The portal opens no console: a page of another site asks, in your name", "#console-status"
            )
            await page.shows("a proxy in front of it rewrites Host, and whoever runs it", "#console-status")
            await page.shows("names the former in VKPROVIDER_PORTAL_URLS", "#console-status")
