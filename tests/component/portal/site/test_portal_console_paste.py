"""A paste in a real browser, at a device whose serial line carries 9600 bit/s and which drops what comes faster."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys

from tests.component.controllers.running import SHORT
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.test_portal_console_browser import PASTE, screen, state, token
from tests.support.apiserver import ApiServer
from tests.support.page import Page, visiting

BAUD = 9600
STOPPED = 300
"""The lines of a paste that is stopped: so many that the stop comes before its end."""
LINES = [f"ip route 10.{at // 250}.{at % 250}.0 255.255.255.0 192.0.2.{at % 250 + 1}" for at in range(398)]


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path, SHORT, BAUD) as bench:
        yield bench


async def paste(page: Page, text: str) -> None:
    await page.run(lambda driver: driver.execute_script(PASTE, text))


def pastes(driver: Chrome) -> bool:
    return driver.find_element("id", "console-pasting").is_displayed()


@pytest.mark.timeout(240)  # 398 lines go one after the other, each over all hops and back
async def test_a_paste_of_400_lines_arrives_whole_and_can_be_stopped(bench: Bench) -> None:
    ann, node = token(await bench.teacher("ann")), bench.site.node("r1")
    async with visiting(bench.url) as page:
        await page.log_in(ann, f"{bench.lablet}/consoles/r1?as=type")
        await state(page, "typing")
        await screen(page, "Escape character")
        await page.keys(Keys.ENTER, "enable", Keys.ENTER, "configure terminal", Keys.ENTER)
        await screen(page, "r1(config)#")

        for stop in (Keys.ESCAPE, Keys.CONTROL + "c", ""):
            before = len(node.learned)
            await paste(page, "\n".join(LINES[:STOPPED]) + "\n")
            await page.shows(f"of {STOPPED}", "#console-paste-left")
            await page.until(lambda _, before=before: len(node.learned) > before + 3, "some lines arrive")  # type: ignore[misc]  # (mypy#15459)
            await (page.keys(stop) if stop else page.press("#console-paste-stop"))
            await page.until(lambda driver: not pastes(driver), "it stops")
            arrived = len(node.learned) - before
            said = await page.text("#console-unsent")
            left = int(said.removeprefix("The paste was stopped: ").partition(" ")[0])
            assert said.endswith(f"from “{LINES[STOPPED - left]}” on."), said
            assert STOPPED - left - arrived in {0, 1}, "no more than the line that was under way"
            await page.keys("!", Keys.ENTER)
            await page.until(lambda _: node.learned[-1] == "!", "what is typed then comes after it")
            assert node.learned[before:-1] == LINES[: STOPPED - left], "and nothing was interrupted"

        node.learned.clear()
        began = time.monotonic()
        await paste(page, "\r\n".join(LINES) + "\r\nend\r\nshow version\r\n")
        for part in (len(LINES) // 3, 2 * len(LINES) // 3):  # the line alone needs twenty seconds for all of it
            await page.until(lambda _, part=part: len(node.learned) > part, f"{part} lines arrive")  # type: ignore[misc]  # (mypy#15459)
        await page.until(lambda driver: not pastes(driver), "all is sent")
        await screen(page, "Cisco IOS Software")
        took_s = time.monotonic() - began
        assert node.learned == LINES
        assert not await page.run(lambda driver: driver.find_element("id", "console-unsent").is_displayed())
        await page.shows("You type since", "#console-status")
        carried_s = sum(len(line) + 1 for line in LINES) * 10 / BAUD
        print(f"400 lines at {BAUD} bit/s: {took_s:.1f} s, of which the line carries {carried_s:.1f} s")  # noqa: T201 (-rP shows it)
