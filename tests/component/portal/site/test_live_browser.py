"""Pages that change by themselves, in a real browser: what a person sees of changes, cuts, tabs and rights."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.component.controllers.looking import when
from tests.component.portal.site.livehost import LOST, Host, hosting
from tests.support.page import Page, visiting
from tests.support.proxy import Proxy

NO_ANSWER: Final = r"/live.* - Failed to load resource: net::ERR_"


@asynccontextmanager
async def shown(path: str = "/boards/lab") -> AsyncIterator[tuple[Host, Proxy, Page]]:
    async with hosting() as (host, proxy), visiting(f"http://127.0.0.1:{proxy.port}") as page:
        page.expects(NO_ANSWER)
        await page.open(path)
        await when(lambda: len(host.streams) == 1, "the page has its stream")
        yield host, proxy, page


async def banner(page: Page, words: str) -> None:
    await page.until(
        lambda driver: driver.find_element(By.CSS_SELECTOR, ".live-banner").text == words, f"banner {words!r}"
    )


def tabs_showing(driver: Chrome, words: str) -> list[str]:
    """Return the tabs that show a state; looking at a tab brings it to the front."""
    found = []
    for handle in driver.window_handles:
        driver.switch_to.window(handle)
        if driver.execute_script("return document.getElementById('words').textContent") == words:
            found.append(handle)
    return found


async def test_a_change_appears_by_itself_and_what_a_person_did_stays() -> None:
    async with shown() as (host, _, page):
        await page.press("#state summary")
        await page.fill("#minutes", "45")
        await page.fill("#typed", "show ip route")
        await page.run(lambda driver: driver.execute_script("document.getElementById('typed').setSelectionRange(2, 5)"))
        streams = host.streams_total
        host.write("lab", "ready", r2="on", r1="on", r3="on")
        await page.shows("ready", css="#words")
        assert host.streams_total == streams, "it came by the stream that was there; the page asked for nothing"
        assert await page.texts("#rows li") == ["r2 on", "r1 on", "r3 on"]
        assert await page.text("#state details p") == "about ready"
        assert await page.text("#form p") == "ready"
        state = await page.run(
            lambda driver: driver.execute_script(
                "const at = document.activeElement; return [at.id, at.value, at.selectionStart, at.selectionEnd,"
                " document.getElementById('minutes').value]"
            )
        )
        assert state == ["typed", "show ip route", 2, 5, "45"]
        host.write("lab", "<script>alert(1)</script>", r3="<b>on</b>")
        await page.shows("<script>alert(1)</script>", css="#words")
        assert await page.texts("#rows li") == ["r3 <b>on</b>"]
        await page.judge()


async def test_rows_that_move_come_and_go_end_in_their_order() -> None:
    async with shown() as (host, _, page):
        for rows in (
            {"a": "1", "b": "1", "c": "1", "d": "1"},
            {"d": "1", "a": "1", "b": "2", "e": "1"},
            {},
            {"z": "9", "r1": "1"},
            {"r1": "1", "z": "9"},
        ):
            host.write("lab", f"rows {len(rows)} {list(rows)}", **rows)
            await page.shows(f"rows {len(rows)} {list(rows)}", css="#words")
            assert await page.texts("#rows li") == [f"{key} {words}" for key, words in rows.items()]


async def test_after_a_cut_the_page_says_so_never_that_the_lab_failed_and_is_right_again_without_a_reload() -> None:
    async with shown() as (host, proxy, page):
        await page.run(lambda driver: driver.execute_script("window.same = true"))
        for cut in (proxy.refuse, proxy.cut):
            cut()
            await banner(page, LOST)
            host.write("lab", f"ready after {cut.__name__}", r9="on")
            await asyncio.sleep(1)
            assert "failed" not in (await page.text("body")).lower()
            assert await page.text("#words") != f"ready after {cut.__name__}"
            proxy.heal()
            await page.shows(f"ready after {cut.__name__}", css="#words")
            await banner(page, "")
            assert await page.texts("#rows li") == ["r9 on"]
        assert await page.run(lambda driver: driver.execute_script("return window.same"))


async def test_a_page_says_how_old_it_is_while_the_cluster_is_silent() -> None:
    async with shown() as (host, _, page):
        host.age_s = 70.9
        await banner(page, "The cluster is silent: what you see may be 70 s old. Your lab goes on.")
        host.age_s = 0.0
        await banner(page, "")
        await page.judge()


async def test_after_a_minute_without_a_stream_the_page_equals_one_that_is_loaded_anew() -> None:
    async with shown() as (host, proxy, page):
        proxy.cut()
        await banner(page, LOST)
        for number in range(60):
            host.write("lab", f"state {number}", **{f"r{number % 7}": "on", "r1": f"{number}"})
            await asyncio.sleep(1)
        proxy.heal()
        await banner(page, "")
        await page.shows("state 59", css="#words")
        same = """
            const done = arguments[arguments.length - 1];
            const words = (main) => { main.querySelector("time").textContent = ""; return main.innerHTML; };
            fetch(location.href).then((answer) => answer.text()).then((html) => {
              const fresh = new DOMParser().parseFromString(html, "text/html");
              done([words(document.querySelector("main").cloneNode(true)), words(fresh.querySelector("main"))]);
            });
        """
        now, fresh = await page.run(lambda driver: driver.execute_async_script(same))
        assert now == fresh


async def test_a_replica_that_ends_is_replaced_without_a_word() -> None:
    async with shown() as (host, _, page):
        await page.run(
            lambda driver: driver.execute_script(
                "window.said = []; const banner = document.querySelector('.live-banner');"
                "new MutationObserver(() => said.push(banner.textContent)).observe(banner, {childList: true})"
            )
        )
        streams = host.streams_total
        host.streams.close()
        await when(lambda: host.streams_total > streams, "the page comes back")
        host.streams._places._closed = False
        host.write("lab", "ready")
        await page.shows("ready", css="#words")
        assert [words for words in await page.run(lambda driver: driver.execute_script("return said")) if words] == []


async def test_nine_tabs_have_one_stream_and_all_are_live_also_when_the_one_that_has_it_is_closed() -> None:
    async with shown() as (host, _, page):
        first = await page.run(lambda driver: driver.current_window_handle)
        host.write("other", "elsewhere")

        def open_tabs(driver: Chrome) -> None:
            for number in range(8):
                driver.switch_to.new_window("window" if number % 2 else "tab")
                driver.get(f"{page.url}/boards/{'other' if number == 5 else 'lab'}")

        await page.run(open_tabs)
        await when(lambda: len(host.topics) == 2 and len(host.streams) == 1, "one stream follows both boards")
        host.write("lab", "ready")
        host.write("other", "ready")
        await page.until(lambda driver: len(tabs_showing(driver, "ready")) == 9, "all nine are ready")
        await when(lambda: len(host.streams) == 1, "one stream follows all")

        def close_first(driver: Chrome) -> None:
            driver.switch_to.window(first)
            driver.close()
            driver.switch_to.window(driver.window_handles[-1])

        await page.run(close_first)
        host.write("lab", "working")
        host.write("other", "working")
        await page.until(lambda driver: len(tabs_showing(driver, "working")) == 8, "the other eight go on")
        # That of the closed tab ends when the server finds that nobody reads it.
        await when(lambda: len(host.streams) == 1 and len(host.topics) == 2, "one stream is left, for all")


async def test_a_right_that_is_withdrawn_ends_the_stream_and_the_page_says_so() -> None:
    async with shown() as (host, _, page):
        host.allowed = False
        await banner(page, "You may not see this any more.")
        await when(lambda: len(host.streams) == 0, "the stream has ended")
        host.write("lab", "secret things")
        streams = host.streams_total
        await asyncio.sleep(1.5)
        assert "secret things" not in await page.text("body")
        assert host.streams_total <= streams + 1
        await page.judge(html=False)


async def test_a_topic_that_is_not_the_visitors_leaves_the_others_of_the_browser_alone() -> None:
    async with shown() as (host, _, page):
        host.write("secret", "hush")

        def open_secret(driver: Chrome) -> None:
            driver.switch_to.new_window("tab")
            driver.get(f"{page.url}/boards/secret")

        await page.run(open_secret)
        await banner(page, "You may not see this any more.")
        host.write("secret", "changed")
        host.write("lab", "ready")
        await page.run(lambda driver: driver.switch_to.window(driver.window_handles[0]))
        await page.shows("ready", css="#words")
        await banner(page, "")


async def test_a_login_that_is_over_is_told_and_nothing_is_asked_any_more() -> None:
    async with shown() as (host, proxy, page):
        page.expects(r"/live.* 401")
        host.known = False
        proxy.refuse()
        proxy.heal()
        await banner(page, "Your login is over: load the page again to log in.")
        streams = host.streams_total
        await asyncio.sleep(3)
        assert host.streams_total == streams


async def test_what_is_gone_is_told_and_time_left_counts_down() -> None:
    async with shown() as (host, _, page):
        until = await page.text("#until")
        assert until.endswith(" h left")
        await page.run(
            lambda driver: driver.execute_script(
                "document.getElementById('until').dataset.until = new Date(Date.now() + 95500).toISOString()"
            )
        )
        left: list[str] = []

        def counts(driver: Chrome) -> bool:
            text = driver.find_element(By.ID, "until").text
            if re.fullmatch(r"1:[0-3]\d min left", text) and text not in left:
                left.append(text)
            return len(left) == 2

        await page.until(counts, "it says how much is left, twice")
        assert left == sorted(left, reverse=True)
        host.remove("lab")
        await banner(page, "This is not there any more.")
