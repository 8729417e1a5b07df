"""Every key of a US, a UK and a German keyboard in a real Chromium, by what arrives at the device."""

from collections.abc import AsyncIterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from tests.component.controllers.looking import when
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.keyboards import (
    ALT,
    CTRL,
    DE,
    SHIFT,
    UK,
    US,
    Press,
    dead_keys,
    keys_without_characters,
    presses,
)
from tests.component.portal.site.test_portal_console_browser import screen, state, token
from tests.component.portal.site.test_portal_console_keys import arrived
from tests.support.apiserver import ApiServer
from tests.support.page import Page, visiting

MARK = "¶"
BOTHS = """
window.boths = new Set();
addEventListener("keydown", (event) => event.defaultPrevented || window.boths.add(event.key));
"""
"""Notes the keys that are the browser's, too."""
LEAVES = "\x1d"
"""What the provider takes: Ctrl-] leaves a console."""


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path) as bench:
        yield bench


def press(driver: Chrome, event: dict[str, Any]) -> None:
    kind = "keyDown" if event.get("text") else "rawKeyDown"
    driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, **event})


async def judge(page: Page, arrived: list[str], rows: Sequence[tuple[list[dict[str, Any]], str]]) -> None:
    """Press keys, a mark after each, and compare what arrives between the marks."""
    mark = {"code": "", "windowsVirtualKeyCode": 0x7F, "key": MARK, "modifiers": 0, "text": MARK}

    def step(driver: Chrome) -> None:
        for events, _ in rows:
            for event in (*events, mark):
                press(driver, event)

    arrived.clear()
    await page.run(step)
    await when(lambda: "".join(arrived).count(MARK) >= len(rows), "all arrives")
    found = "".join(arrived).split(MARK)[:-1]
    wrong = [(events[-1], sent, got) for (events, sent), got in zip(rows, found, strict=True) if got != sent]
    assert not wrong, f"{len(wrong)} of {len(rows)} (event, expected, arrived): {wrong[:10]}"


def batch(*given: Press) -> list[tuple[list[dict[str, Any]], str]]:
    """Return what a console survives, and its page, which Ctrl-Shift-F leaves for the field of its search."""
    finds = ("KeyF", CTRL | SHIFT)
    return [([e], sent) for e, sent in given if LEAVES not in sent and (e["code"], e["modifiers"]) != finds]


@pytest.mark.timeout(240)  # 1,100 keys, one after the other: chromedriver alone takes half a minute, beside others two
async def test_a_key_sends_what_xterm_sends_on_every_keyboard(bench: Bench, arrived: list[str]) -> None:
    ann = token(await bench.teacher("ann"))
    console = f"{bench.lablet}/consoles/h0?as=type"
    async with visiting(bench.url) as page:
        await page.log_in(ann, console)
        await state(page, "typing")
        await screen(page, "h0:~#")
        on_linux = list(chain.from_iterable(presses(layout, is_windows=False) for layout in (US, UK, DE)))
        rows = batch(*on_linux, *keys_without_characters()) + list(dead_keys())
        await page.run(lambda driver: driver.execute_script(BOTHS))
        await judge(page, arrived, rows)
        boths = await page.run(lambda driver: driver.execute_script("return [...boths]"))
        named = {event["key"] for event, _ in keys_without_characters()} - {"Insert", "Enter", "Backspace", "Escape"}
        assert not named & {*boths}, "a key is the browser's or the device's, and never both"

        agent = await page.run(lambda driver: driver.execute_script("return navigator.userAgent"))
        await page.run(
            lambda driver: driver.execute_cdp_cmd(
                "Network.setUserAgentOverride", {"userAgent": agent, "platform": "Win32"}
            )
        )
        await page.open(console)
        await state(page, "typing")
        await screen(page, "h0:~#")
        assert await page.run(lambda driver: driver.execute_script("return navigator.platform")) == "Win32"
        on_windows = [each for layout in (UK, DE) for each in presses(layout, is_windows=True)]
        both = [each for each in on_windows if each[0]["modifiers"] == ALT | CTRL]
        assert {"@", "{", "[", "]", "}", "\\", "|", "~", "€"} <= {sent for _, sent in both}
        await judge(page, arrived, batch(*both) + list(dead_keys()))
        await page.run(lambda driver: driver.execute_cdp_cmd("Network.setUserAgentOverride", {"userAgent": agent}))
        print(f"{len(rows)} keys on Linux, {len(both)} on Windows")  # noqa: T201 (-rP shows it)

        [leaving] = [event for event, sent in on_linux[: len(on_linux) // 3] if sent == LEAVES and event["key"] == "]"]
        await page.run(lambda driver: press(driver, leaving))
        await state(page, "ended")


__all__ = ["arrived"]
