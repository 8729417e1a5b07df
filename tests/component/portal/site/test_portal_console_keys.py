"""Keys and connections of consoles in a real browser, by what arrives at the device."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from tests.component.portal.site.consolebench import Bench, console_bench
from tests.support.apiserver import ApiServer
from tests.support.page import Page, visiting
from tests.support.proxy import Proxy
from vkpsim.cml.consoles.shell import Shell


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path) as bench:
        yield bench


@pytest.fixture
def arrived(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the consoles of the simulator are given."""
    found = list[str]()
    press = Shell.press

    def noted(shell: Shell, now: float, keys: str) -> str:
        found.append(keys)
        return press(shell, now, keys)

    monkeypatch.setattr(Shell, "press", noted)
    return found


async def teacher(bench: Bench) -> str:
    return (await bench.teacher("ann"))["Authorization"].removeprefix("Bearer ")


async def screen(page: Page, text: str) -> None:
    await page.until(
        lambda driver: text in driver.find_element(By.CSS_SELECTOR, ".xterm-rows").text, f"the terminal shows {text!r}"
    )


async def state(page: Page, word: str) -> None:
    await page.until(
        lambda driver: driver.find_element(By.ID, "console").get_attribute("data-state") == word, f"it is {word}"
    )


async def chord(page: Page, *keys: str) -> None:
    """Press keys together, the last one after the others."""

    def step(driver: object) -> None:
        actions = ActionChains(driver)  # type: ignore[arg-type]  # (a Chrome)
        for key in keys[:-1]:
            actions.key_down(key)
        actions.send_keys(keys[-1])
        for key in reversed(keys[:-1]):
            actions.key_up(key)
        actions.perform()

    await page.run(step)


async def test_a_key_is_the_devices_or_the_browsers(bench: Bench, arrived: list[str]) -> None:
    async with visiting(bench.url) as page:
        await page.log_in(await teacher(bench), f"{bench.lablet}/consoles/h0?as=type")
        await screen(page, "h0:~#")
        for keys, expected in (
            ((Keys.CONTROL, Keys.SHIFT, "6"), "\x1e"),
            ((Keys.CONTROL, "6"), "\x1e"),
            ((Keys.CONTROL, "c"), "\x03"),
            ((Keys.CONTROL, "z"), "\x1a"),
            ((Keys.ALT, "b"), "\x1bb"),
            ((Keys.F2,), "\x1bOQ"),
            ((Keys.ARROW_UP,), "\x1b[A"),
        ):
            arrived.clear()
            await chord(page, *keys)
            await page.until(lambda _: arrived, f"{keys!r} arrives")
            assert "".join(arrived) == expected, keys
        await chord(page, Keys.CONTROL, "c")
        await page.until(lambda _: arrived[-1] == "\x03", "an empty line")
        arrived.clear()
        for key in (Keys.F11, Keys.F12):
            await chord(page, key)
        await page.keys("ls", Keys.ENTER)
        await screen(page, "backup.tgz")
        assert "".join(arrived) == "ls\r", "the browser's own keys are not the device's"


async def test_a_selection_is_copied_and_does_not_interrupt(bench: Bench, arrived: list[str]) -> None:
    async with visiting(bench.url) as page:
        await page.log_in(await teacher(bench), f"{bench.lablet}/consoles/h0?as=type")
        await screen(page, "h0:~#")
        await page.keys("ls", Keys.ENTER)
        await screen(page, "backup.tgz")
        for keys in ((Keys.CONTROL, "c"), (Keys.CONTROL, Keys.SHIFT, "c")):
            await page.run(
                lambda driver: (
                    ActionChains(driver)
                    .move_to_element_with_offset(driver.find_element(By.CSS_SELECTOR, ".xterm-screen"), 0, 0)
                    .perform()
                )
            )
            row = ".xterm-rows > div:first-child"
            await page.run(
                lambda driver: (
                    ActionChains(driver)
                    .move_to_element(driver.find_element(By.CSS_SELECTOR, row))  # noqa: B023 (called at once)
                    .click()
                    .click()
                    .click()
                    .perform()
                )
            )
            await page.until(
                lambda driver: driver.find_elements(By.CSS_SELECTOR, ".xterm-selection > div"), "a line is selected"
            )
            arrived.clear()
            await chord(page, *keys)
            await page.until(
                lambda driver: not driver.find_elements(By.CSS_SELECTOR, ".xterm-selection > div"), "it is copied"
            )
            await page.keys("x")
            await page.until(lambda _: "x" in "".join(arrived), "what is typed then arrives")
            assert "".join(arrived) == "x", "not an interrupt"
        arrived.clear()
        await chord(page, Keys.CONTROL, "c")
        await page.until(lambda _: "".join(arrived) == "\x03", "without a selection it interrupts")


async def test_a_connection_that_is_half_open_is_noticed_and_made_anew(bench: Bench, arrived: list[str]) -> None:
    """Nothing passes, and nobody says that it ended; what is typed then arrives once, and the history is there once."""
    with Proxy("127.0.0.1", bench.running.page.port) as proxy:
        async with visiting(f"http://127.0.0.1:{proxy.port}") as page:
            page.expects(r"WebSocket connection to .* failed")
            page.expects(r"Failed to load resource")
            await page.log_in(await teacher(bench), f"{bench.lablet}/consoles/h0?as=type")
            await screen(page, "h0:~#")
            await page.keys("ls", Keys.ENTER)
            await screen(page, "backup.tgz")
            proxy.cut()
            await page.shows("The portal has not answered for ten seconds", "#console-status")
            arrived.clear()
            await page.keys("echo kept", Keys.ENTER)
            await page.shows("What you type is kept", "#console-status")
            proxy.heal()
            await state(page, "typing")
            await screen(page, "echo kept\nkept")
            assert "".join(arrived) == "echo kept\r"
            text = await page.run(lambda driver: driver.find_element(By.CSS_SELECTOR, ".xterm-rows").text)
            assert text.count("backup.tgz") == 1


async def test_ones_own_earlier_session_gives_way(bench: Bench) -> None:
    ann = await teacher(bench)
    console = f"{bench.lablet}/consoles/h0?as=type"
    async with visiting(bench.url) as first, visiting(bench.url) as second:
        await first.log_in(ann, console)
        await screen(first, "h0:~#")
        await second.log_in(ann, console)
        await state(second, "typing")
        await state(first, "moved")
        await first.shows("You have opened this console elsewhere", "#console-status")
        await second.keys("echo here", Keys.ENTER)
        await screen(second, "echo here\nhere")
