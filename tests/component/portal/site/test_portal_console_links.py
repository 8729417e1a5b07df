"""Who types at a console, over links that break or are slow, and in the time zones of browsers."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from selenium.webdriver import Chrome, Keys

from tests.component.controllers.running import SHORT
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.slowlink import SlowLink
from tests.component.portal.site.test_portal_console_browser import screen, state, token
from tests.component.portal.site.test_portal_console_paste import BAUD, LINES, paste, pastes
from tests.support.apiserver import ApiServer
from tests.support.page import Page, visiting
from tests.support.proxy import Proxy
from tests.support.terminals import Terminal

EACH_WAY_S = 2.0


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path, SHORT, BAUD) as bench:
        yield bench


async def test_a_paste_over_a_slow_link_arrives_whole(bench: Bench) -> None:
    """Two seconds each way: each line takes a round trip, and the page says how long the rest takes."""
    ann, node = token(await bench.teacher("ann")), bench.site.node("r1")
    async with (
        SlowLink(bench.running.page.port).opened() as link,
        visiting(f"http://127.0.0.1:{link.port}") as page,
    ):
        await page.log_in(ann, f"{bench.lablet}/consoles/r1?as=type")
        await state(page, "typing")
        await screen(page, "Escape character")
        await page.keys(Keys.ENTER, "enable", Keys.ENTER, "configure terminal", Keys.ENTER)
        await screen(page, "r1(config)#")
        link.delay_s = EACH_WAY_S
        await page.keys("hostname ", "slow", Keys.ENTER)
        await screen(page, "slow(config)#")
        assert node.learned == ["hostname slow"]
        node.learned.clear()

        began = time.monotonic()
        await paste(page, "\n".join(LINES[:6]) + "\n")
        await page.shows("s left", "#console-paste-left")
        await page.until(lambda driver: not pastes(driver), "all is sent")
        took_s = time.monotonic() - began
        assert node.learned == LINES[:6]
        assert took_s > 6 * 2 * EACH_WAY_S, "one line at a time is under way"
        print(f"a line takes {took_s / 6:.1f} s where bytes take {EACH_WAY_S} s each way")  # noqa: T201 (-rP shows it)
        await page.shows("You type since", "#console-status")


async def test_a_tab_whose_connection_broke_takes_no_keyboard_from_a_later_one(bench: Bench) -> None:
    ann, console = token(await bench.teacher("ann")), f"{bench.lablet}/consoles/h0?as=type"
    with Proxy("127.0.0.1", bench.running.page.port) as proxy:
        async with visiting(f"http://127.0.0.1:{proxy.port}") as old, visiting(bench.url) as new:
            old.expects(r"WebSocket connection to .* failed")
            old.expects(r"Failed to load resource")
            await old.log_in(ann, console)
            await state(old, "typing")
            proxy.cut()
            await state(old, "lost")
            await new.log_in(ann, console)
            await state(new, "typing")
            proxy.heal()
            await state(old, "moved")
            await old.shows("You have opened this console elsewhere", "#console-status")
            await new.keys("echo here", Keys.ENTER)
            await screen(new, "echo here\nhere")
            await asyncio.sleep(2)
            assert [await page.text("#console-status") for page in (old,)] == [
                "You have opened this console elsewhere, where you type now."
            ]
            await state(new, "typing")
            await old.press("#console-again")
            await state(old, "typing")
            await state(new, "moved")


def wall(zone: str) -> set[str]:
    """Return the time in a zone as an American browser writes it, now and in the last minutes."""
    now = datetime.now(UTC).astimezone(ZoneInfo(zone))
    return {(now - timedelta(minutes=ago)).strftime("%I:%M %p") for ago in range(3)}


async def in_zone(page: Page, zone: str) -> None:
    """Have the browser be in a time zone; "" is that of the machine."""
    where = {"timezoneId": zone}
    await page.run(lambda driver: driver.execute_cdp_cmd("Emulation.setTimezoneOverride", where))


async def settled(page: Page, word: str) -> str:
    await state(page, word)
    await page.until(lambda driver: " since " in status(driver), "it says since when")
    return await page.run(status)


def status(driver: Chrome) -> str:
    return driver.find_element("id", "console-status").text.replace("\u202f", " ")


async def test_times_are_those_of_the_browsers_zone(bench: Bench) -> None:
    ann, console = token(await bench.teacher("ann")), f"{bench.lablet}/consoles/h0?as=type"
    for zone in ("Asia/Tokyo", "America/Los_Angeles"):
        async with visiting(bench.url) as page:
            await in_zone(page, zone)
            await page.log_in(ann, console)
            said = await settled(page, "typing")
            assert said.removeprefix("You type since ").removesuffix(".") in wall(zone), said

            other = Terminal()
            typing = bench.site.attach(other, "r1")
            await other.shows("Escape character")
            await page.open(f"{bench.lablet}/consoles/r1?as=type")
            said = await settled(page, "watching")
            begins, _, rest = said.partition(" since ")
            assert begins == "Somebody else types at the console of r1", "its kubectl has no name"
            assert rest.partition(".")[0] in wall(zone), said
            other.leave()
            await typing
            await in_zone(page, "")
