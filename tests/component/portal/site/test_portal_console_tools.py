"""What a person does with a console beside typing, in a real browser."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, Keys

from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.test_portal_console_browser import screen, state, token
from tests.component.portal.site.test_portal_console_keys import chord
from tests.support.apiserver import ApiServer
from tests.support.page import visiting

CATCH = """
window.saved = [];
const make = URL.createObjectURL.bind(URL);
URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return make(blob); };
HTMLAnchorElement.prototype.click = function () { window.saved.push(this.download); };
"""
"""Keeps what is saved, instead of a file."""


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path) as bench:
        yield bench


def size(driver: Chrome) -> float:
    """Return the height of a row."""
    script = 'return document.querySelector(".xterm-rows > div").getBoundingClientRect().height'
    return float(driver.execute_script(script))


def rows(driver: Chrome) -> int:
    return len(driver.find_elements("css selector", ".xterm-rows > div"))


def selected(driver: Chrome) -> bool:
    return bool(driver.find_elements("css selector", ".xterm-selection > div"))


async def test_find_select_save_and_enlarge(bench: Bench) -> None:
    ann = token(await bench.teacher("ann"))
    async with visiting(bench.url) as page:
        await page.log_in(ann, f"{bench.lablet}/consoles/h0?as=type")
        await state(page, "typing")
        await screen(page, "h0:~#")
        await page.keys("echo needle one", Keys.ENTER, "show tech", Keys.ENTER)
        await screen(page, "line 120 of 120")
        await page.keys("echo another needle", Keys.ENTER)
        await screen(page, "echo another needle\nanother needle\nh0:~#")  # what is found is counted once

        await chord(page, Keys.CONTROL, Keys.SHIFT, "f")
        await page.keys("Needle", Keys.ENTER)
        await page.shows("4 of 4", "#console-find-said")
        await page.until(selected, "it is selected")
        await page.keys(Keys.ENTER, Keys.ENTER)
        await page.shows("2 of 4", "#console-find-said")
        await screen(page, "needle one")  # it is scrolled to
        await page.press("#console-newer")
        await page.shows("3 of 4", "#console-find-said")
        await page.judge(changed=False)
        await page.fill("#console-find-words", "haystack")
        await page.keys(Keys.ENTER)
        await page.shows("Not found", "#console-find-said")
        await page.keys(Keys.ESCAPE)
        assert not await page.run(lambda driver: driver.find_element("id", "console-find").is_displayed())
        await page.keys("echo typed again", Keys.ENTER)
        await screen(page, "echo typed again\ntyped again\nh0:~#")

        await page.press("#console-all")
        await page.until(selected, "all of it is selected")
        await page.run(lambda driver: driver.execute_script(CATCH))
        await page.press("#console-save")
        await page.until(lambda driver: len(driver.execute_script("return saved")) == 2, "it is saved")
        saved: list[Any] = await page.run(lambda driver: driver.execute_script("return saved"))
        [text] = [each for each in saved if each != "h0.txt"]
        assert "h0.txt" in saved
        assert [f"line {at} of 120: h0" in text for at in (1, 60, 120)] == [True] * 3, "all of it, not what is seen"
        assert text.endswith("typed again\nh0:~#\n")

        before, lines = await page.run(size), await page.run(rows)
        for _ in range(3):
            await page.press("#console-larger")
        await page.until(lambda driver: size(driver) > before * 1.3 and rows(driver) < lines, "the text is larger")
        large = await page.run(size)
        await page.run(lambda driver: driver.refresh())
        await state(page, "typing")
        await page.until(lambda driver: size(driver) == large, "and stays so")
        await page.press("#console-smaller")
        await page.until(lambda driver: size(driver) < large, "the text is smaller")

        lines, window = await page.run(rows), await page.run(lambda driver: driver.get_window_size())
        await page.run(lambda driver: driver.set_window_size(window["width"], window["height"] + 200))
        await page.until(lambda driver: rows(driver) > lines, "the terminal follows its window")
        await page.run(lambda driver: driver.set_window_size(window["width"], window["height"]))
