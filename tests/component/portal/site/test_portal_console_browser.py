"""Consoles in a real browser: colours, keys, the way out by keyboard, reconnecting; and its judges."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from tests.component.portal.site.consolebench import Bench, console_bench
from tests.support.apiserver import ApiServer
from tests.support.page import Page, visiting

_COLOUR = """
const spans = [...document.querySelectorAll(".xterm-rows span")];
const found = spans.find((each) => each.textContent.includes(arguments[0]));
return found ? getComputedStyle(found).color : "";
"""
PASTE = """
const data = new DataTransfer();
data.setData("text/plain", arguments[0]);
const event = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
document.querySelector(".xterm-helper-textarea").dispatchEvent(event);
"""
RED, BLUE = "rgb(255, 128, 128)", "rgb(180, 215, 250)"


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path) as bench:
        yield bench


def token(header: dict[str, str]) -> str:
    return header["Authorization"].removeprefix("Bearer ")


def rows(driver: Chrome) -> str:
    return driver.find_element(By.CSS_SELECTOR, ".xterm-rows").text


async def screen(page: Page, text: str) -> None:
    await page.until(lambda driver: text in rows(driver), f"the terminal shows {text!r}")


async def state(page: Page, word: str) -> None:
    await page.until(
        lambda driver: driver.find_element(By.ID, "console").get_attribute("data-state") == word, f"it is {word}"
    )


async def test_type_see_red_leave_by_keyboard_and_take_over(bench: Bench) -> None:
    ann, ben = token(await bench.teacher("ann")), token(await bench.teacher("ben"))
    console = f"{bench.lablet}/consoles/h0?as=type"
    async with visiting(bench.url) as page, visiting(bench.url) as other:
        await page.log_in(ann, console)
        await state(page, "typing")
        await screen(page, "h0:~#")
        await page.keys("ls", Keys.ENTER)
        await screen(page, "backup.tgz")
        for word, colour in (("backup.tgz", RED), ("bin", BLUE)):  # which may come in two pieces
            await page.until(
                lambda driver, word=word, colour=colour: driver.execute_script(_COLOUR, word) == colour,  # type: ignore[misc]  # (mypy#15459)
                f"{word} is {colour}",
            )
        await page.keys("never mind", Keys.CONTROL + "c")
        await screen(page, "never mind^C")
        await page.judge(changed=False)
        await page.keys(Keys.F6)
        assert await page.run(lambda driver: driver.switch_to.active_element.get_attribute("id")) == "console-watch"
        offered = [each for each in await page.texts("#console-bar button") if each]
        assert not {"Connect again", "Take over"} & {*offered}, "a button that would do nothing is not there"
        await page.shows("You type since", "#console-status")
        await page.keys(Keys.TAB, Keys.TAB)

        await other.log_in(ben, console)
        await state(other, "watching")
        await other.shows("You watch; ann types since", "#console-status")
        await screen(other, "backup.tgz")
        await other.keys("not typed")
        await other.press("#console-take-over")
        await state(other, "typing")
        await screen(page, "another session has taken over")
        await state(page, "taken")
        await page.shows("ben types since", "#console-status")
        await page.shows("you watch, and type again when it has left", "#console-status")
        await page.run(lambda driver: driver.execute_script(PASTE, "not pasted"))
        await page.shows("You do not type here: nothing was pasted.", "#console-unsent")
        await other.keys("echo by ben", Keys.ENTER)
        await screen(page, "by ben")
        assert "not typed" not in await page.run(rows)
        assert "not pasted" not in await page.run(rows)
        await other.keys(Keys.CONTROL + "]")
        await state(other, "ended")
        await screen(page, "you type again")
        await state(page, "typing")
        await page.shows("You type since", "#console-status")
        await other.press("#console-again")
        await state(other, "watching")
        await other.shows("ann types since", "#console-status")
        await page.press("#console-watch")
        await state(page, "watching")
        await other.shows("You watch; who typed left at", "#console-status")
        await other.judge(html=False)


async def test_a_console_in_a_frame_ends_with_the_login_that_another_tab_leaves(bench: Bench) -> None:
    async with visiting(bench.url) as page:
        page.expects(r"/live.* - Failed to load resource: .* 401")
        await page.log_in(token(await bench.teacher("ann")), f"{bench.lablet}/consoles/h0?panel%26as=type")
        await state(page, "typing")
        await page.keys("echo typed", Keys.ENTER)
        await screen(page, "typed")
        console = await page.run(lambda driver: driver.current_window_handle)
        await page.run(lambda driver: driver.switch_to.new_window("tab"))
        await page.open("/classes")
        await page.press(".bar form button")
        await page.shows("Log in")
        await page.run(lambda driver: driver.switch_to.window(console))
        await state(page, "signed-out")
        await page.shows("You have logged out; your lab goes on.", "#console-status")


async def test_in_a_frame_of_another_page_of_the_site_and_nowhere_else(bench: Bench) -> None:
    ann = token(await bench.teacher("ann"))
    async with visiting(bench.url) as page:
        await page.log_in(ann, f"{bench.lablet}/consoles/r1?panel%26as=type")
        await screen(page, "Escape character")
        await page.keys(Keys.ENTER)
        await screen(page, "r1>")
        assert await page.run(lambda driver: driver.find_elements(By.CSS_SELECTOR, "header")) == []
        await page.judge(changed=False)
    cookie = await bench.cookie({"Authorization": f"Bearer {ann}"})
    async with bench.http.get(f"{bench.url}{bench.lablet}/consoles/r1", headers={"Cookie": cookie}) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'self'" in policy
    assert "script-src 'self';" in policy
    assert "'unsafe-inline'" not in policy


async def test_a_replica_that_goes_is_told_and_reconnected_to(bench: Bench) -> None:
    ann = token(await bench.teacher("ann"))
    async with visiting(bench.url) as page:
        page.expects(r"WebSocket connection to .* failed")
        await page.log_in(ann, f"{bench.lablet}/consoles/r1?as=type")
        await screen(page, "Escape character")
        await bench.site.running.stop()
        await state(page, "lost")
        await page.shows("Connecting again", "#console-status")


async def test_who_is_logged_out_meanwhile_is_told_to_log_in_and_comes_back(bench: Bench) -> None:
    ann = token(await bench.teacher("ann"))
    async with visiting(bench.url) as page:
        page.expects(r"WebSocket connection to .* failed")
        await page.log_in(ann, f"{bench.lablet}/consoles/h0?as=type")
        await screen(page, "h0:~#")
        await page.run(lambda driver: driver.delete_all_cookies())
        await page.press("#console-watch")
        await state(page, "signed-out")
        await page.shows("Your login has ended: log in again. Your lab goes on. Log in", "#console-status")
        await page.press("#console-status a")
        await page.fill("#token", ann)
        await page.press("main form button")
        await screen(page, "h0:~#")


async def test_a_lab_that_has_ended_is_told_instead_of_a_lost_connection(bench: Bench) -> None:
    ann = token(await bench.teacher("ann"))
    async with visiting(bench.url) as page:
        page.expects(r"WebSocket connection to .* failed")
        page.expects(r"/stream - Failed to load resource: .* 404")
        await page.log_in(ann, f"{bench.lablet}/consoles/h0?as=type")
        await screen(page, "h0:~#")
        await bench.portal.admin.delete(bench.site.lablet.path)
        await state(page, "refused")
        await page.shows("The lab has ended", "#console-status")
