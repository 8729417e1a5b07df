"""Screens through the portal: noVNC in a browser and the stream of its page, with a simulated screen behind them."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By

from tests.component.controllers.looking import eventually
from tests.component.controllers.running import SHORT
from tests.component.portal.people import INSTRUCTOR_ROLE, USER_ROLE
from tests.component.portal.site.assigned import opened
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.test_portal_console_browser import token
from tests.component.portal.site.test_portal_links import assigning, cookies, shows
from tests.support.apiserver import ApiServer
from tests.support.page import Page, visiting
from tests.support.rfb import ASK, ASK_CHANGES, BLOCK_BYTES, HELLO, WHOLE_BYTES, click, hello_bytes, pixel
from vkprovider.classroom.sharing import share
from vkprovider.lablet import names
from vkprovider.lablet.guests import GuestMode
from vkpsim.cml.consoles.screen import BARS, WHITE, WIDTH, bar_at, colour_of

_PIXEL = """
const canvas = document.querySelector("#screen canvas");
const [red, green, blue] = canvas.getContext("2d").getImageData(arguments[0], arguments[1], 1, 1).data;
return red << 16 | green << 8 | blue;
"""


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path, SHORT, 0, None, "open") as bench:
        yield bench


class Viewer:
    """The other end of a screen, as noVNC is for the portal."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.got = bytearray()
        self.texts: list[dict[str, Any]] = []

    async def sent(self, data: bytes, count: int) -> bytes:
        """Send bytes; return so many that come."""
        await self.socket.send_bytes(data)
        async with asyncio.timeout(60):
            while len(self.got) < count:
                message = await self.socket.receive()
                if message.type is aiohttp.WSMsgType.TEXT:
                    self.texts.append(json.loads(message.data))
                else:
                    assert message.type is aiohttp.WSMsgType.BINARY, (message, self.texts)
                    self.got += message.data
        taken = bytes(self.got[:count])
        del self.got[:count]
        return taken

    async def ends(self, within_s: float = 60.0) -> tuple[int | None, str, str]:
        """Wait for the end; return the code, and the last message's word and sentence."""
        async with asyncio.timeout(within_s):
            async for message in self.socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    self.texts.append(json.loads(message.data))
        return self.socket.close_code, self.texts[-1]["why"], self.texts[-1]["text"]


async def dial(bench: Bench, cookie: str, device: str = "h0", *, lab: str = "", **headers: str) -> Viewer:
    sent = {"Origin": bench.url, **({"Cookie": cookie} if cookie else {}), **headers}
    where = f"{bench.url}{lab or bench.lablet}/screens/{device}/stream"
    return Viewer(await bench.http.ws_connect(where, headers=sent))


async def status_of(bench: Bench, cookie: str, lab: str = "", **headers: str) -> int:
    """Return the status with which a screen is refused."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await dial(bench, cookie, lab=lab, **headers)
    return refused.value.status


async def colour(page: Page, x: int, y: int, expected: int) -> None:
    await page.until(lambda driver: driver.execute_script(_PIXEL, x, y) == expected, f"({x}, {y}) is {expected:06x}")


async def state(page: Page, word: str) -> None:
    await page.until(
        lambda driver: driver.find_element(By.ID, "screen").get_attribute("data-state") == word, f"it is {word}"
    )


def click_at(driver: Chrome, x: int, y: int) -> None:
    """Click on a pixel of the device, by its distance from the middle of the picture."""
    canvas = driver.find_element(By.CSS_SELECTOR, "#screen canvas")
    scale = canvas.rect["width"] / WIDTH
    ActionChains(driver).move_to_element_with_offset(canvas, (x - 160) * scale, (y - 100) * scale).click().perform()


async def test_a_browser_shows_the_pattern_a_click_and_a_key(bench: Bench) -> None:
    ann = token(await bench.teacher("ann"))
    async with visiting(bench.url) as page:
        await page.log_in(ann, bench.lablet)
        await page.until(
            lambda driver: driver.find_elements(By.CSS_SELECTOR, "a[aria-label^='Screen of']"), "a screen is there"
        )
        links = await page.run(
            lambda driver: [
                each.get_attribute("aria-label")
                for each in driver.find_elements(By.CSS_SELECTOR, "a[aria-label^='Screen of']")
            ]
        )
        assert links == ["Screen of h0"], "no other device has a tag for one"
        await page.judge(html=False)
        await page.press("a[aria-label='Screen of h0']")
        await state(page, "shown")
        await page.shows("You look; your keys and clicks are not sent.", "#console-status")
        for number, expected in enumerate(BARS):
            await colour(page, 20 + 40 * number, 10, expected)
        await page.run(lambda driver: click_at(driver, 45, 45))
        await page.press("#screen-use")
        await page.run(lambda driver: click_at(driver, 165, 105))
        await colour(page, 165, 105, WHITE)
        await colour(page, 45, 45, bar_at(45))
        await page.keys("k")
        await colour(page, 10, 190, colour_of(ord("k")))
        await page.keys(Keys.F6)
        assert await page.run(lambda driver: driver.switch_to.active_element.get_attribute("id")) == "screen-look"
        await page.judge(changed=False)
        page.expects(r"WebSocket connection to .* failed|Failed to load resource")
        await bench.running.stop()
        await state(page, "lost")


async def test_the_learner_uses_it_and_nobody_else_opens_it(bench: Bench) -> None:
    namespace, name, admin = bench.site.lablet.namespace, bench.site.lablet.name, bench.portal.admin
    pod, mine = f"/api/v1/namespaces/{namespace}/pods/{name}", f"/lablets/{namespace}/{name}"
    await admin.patch(pod, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "ada"}}})
    ada = await bench.cookie(await bench.people.person("ada"))
    binding = await opened(admin, namespace, name, bench.people.prefix)
    other = f"{bench.people.namespace}-other"
    await admin.create("/api/v1/namespaces", {"metadata": {"name": other}})
    elsewhere = await bench.people.person("tim")
    await bench.people.allow("tim", INSTRUCTOR_ROLE, other)
    tim, eve = await bench.cookie(elsewhere), await bench.cookie(await bench.people.person("eve", USER_ROLE))

    async def seen() -> bool:
        answer = await bench.http.get(f"{bench.url}{mine}", headers={"Cookie": ada})
        return "Screen of h0" in await answer.text()

    await eventually(seen, "ada has a screen")
    viewer = await dial(bench, ada, lab=mine)
    await viewer.sent(HELLO, hello_bytes("h0"))
    assert pixel(await viewer.sent(ASK, WHOLE_BYTES)) == BARS[0]
    assert pixel(await viewer.sent(ASK_CHANGES + click(1, 1), BLOCK_BYTES)) == WHITE
    for stranger in (eve, tim):
        for lab in (mine, bench.lablet):
            assert await status_of(bench, stranger, lab) == 404, "another learner, the instructor of another class"
    assert await status_of(bench, "", mine) == 401, "nobody, such as with a link that was taken back"
    assert await status_of(bench, f"{ada[:-5]}AAAAA", mine) == 401
    assert await status_of(bench, ada, mine, **{"Sec-Fetch-Site": "cross-site"}) == 403
    await admin.delete(binding)
    code, why, _ = await viewer.ends(62)
    assert (code, why) == (4403, "withdrawn")


async def test_a_guest_who_watches_has_none_and_one_who_types_has(bench: Bench) -> None:
    namespace, name = bench.site.lablet.namespace, bench.site.lablet.name
    pod, mine = f"/api/v1/namespaces/{namespace}/pods/{name}", f"/lablets/{namespace}/{name}"
    await bench.portal.admin.patch(pod, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "ada"}}})
    header, guest = await bench.people.person("bob"), f"{bench.people.prefix}bob"
    async with assigning(bench.portal) as kube, Browsing(bench.url) as bob:
        await share(kube, namespace, name, guest, GuestMode.WATCH)
        await bob.log_in(header)
        await eventually(lambda: shows(bob, mine, "and watch."), "bob is in")
        assert "Screen of h0" not in (await bob.get(mine)).text
        assert (await bob.get(f"{mine}/screens/h0")).status_code == 404
        assert await status_of(bench, cookies(bob), mine) == 404
        await share(kube, namespace, name, guest, GuestMode.TYPE)
        await eventually(lambda: shows(bob, mine, "and work in it, too."), "bob may type")
        viewer = await dial(bench, cookies(bob), lab=mine)
        await viewer.sent(HELLO, hello_bytes("h0"))
        await viewer.socket.close()


async def test_ends_and_refusals_are_sentences(bench: Bench) -> None:
    ann = await bench.cookie(await bench.teacher("ann"))
    async with bench.http.get(f"{bench.url}{bench.lablet}/screens/h0", headers={"Cookie": ann}) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert f"kubectl lablet screen -n {bench.site.lablet.namespace}" in await answer.text()
    assert "script-src 'self'; style-src 'self'; img-src 'self' data:;" in policy
    assert "frame-ancestors 'none'" in policy
    code, why, text = await (await dial(bench, ann, "r1")).ends()
    assert (code, why) == (4400, "refused")
    assert "has no screen here: its topology has no tag `vnc:PORT` for it." in text
    viewer = await dial(bench, ann)
    await viewer.sent(HELLO, hello_bytes("h0"))
    bench.site.simulator.simulation.world.crash(bench.site.simulator.now(), bench.site.node("h0"))
    assert await viewer.ends() == (
        1012,
        "lost",
        "The screen of h0 has ended: its device stopped, or the way to it broke.",
    )
    await bench.site.until_on("h0")
    viewer = await dial(bench, ann)
    await viewer.sent(HELLO, hello_bytes("h0"))
    stopping = asyncio.create_task(bench.running.stop())
    assert await viewer.ends() == (1012, "lost", "This portal restarts; your lab goes on.")
    await stopping
