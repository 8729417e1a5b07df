"""What a learner reads in a real Chromium: the login, the form, the progress, and each refusal."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from hub.tests.portal import HUB_TOKEN, Portal
from hub.tests.realhub import RealHub
from tests.support.browser import browser

pytestmark = pytest.mark.timeout(240)
REFUSALS = [
    (403, "insufficient_quota", "Your quota allows labs of size small. Choose a smaller one."),
    (400, "unknown_image", "There is no lab ospf:9 any more. Choose one of the list."),
    (403, "no_room", "All workers are full. Try again when a lab has ended, or ask your instructor."),
]


@pytest.fixture
async def portal() -> AsyncIterator[Portal]:
    async with Portal().served() as portal:
        yield portal


@pytest.fixture
async def hub(portal: Portal, tmp_path: Path) -> AsyncIterator[RealHub]:
    async with RealHub(tmp_path, portal.url, HUB_TOKEN).running() as hub:
        yield hub


@pytest.fixture
def chromium() -> Iterator[Chrome]:
    with browser() as chromium:
        yield chromium


def waiting(page: Chrome) -> WebDriverWait[Chrome]:
    """Return a wait that outlasts the change from one page to the next."""
    return WebDriverWait(page, 40, poll_frequency=0.1, ignored_exceptions=[WebDriverException])


def text_of(page: Chrome) -> str:
    return page.find_element(By.TAG_NAME, "body").text


def log_in(page: Chrome, hub: RealHub, name: str) -> None:
    page.get(f"{hub.url}/hub/login?next=/hub/spawn")
    page.find_element(By.ID, "username_input").send_keys(name)
    page.find_element(By.ID, "password_input").send_keys("learning")
    page.find_element(By.ID, "login_submit").click()
    waiting(page).until(lambda page: page.find_elements(By.NAME, "image_list"))


def start(page: Chrome) -> None:
    page.find_element(By.CSS_SELECTOR, "#spawn_form button[type=submit]").click()


async def test_a_lab_starts_before_the_learners_eyes_although_its_stream_is_cut(
    hub: RealHub, portal: Portal, chromium: Chrome
) -> None:
    portal.hold, portal.cuts, portal.step_s = asyncio.Event(), [2, 1], 0.1

    def until_the_last_line() -> list[str]:
        log_in(chromium, hub, "anna")
        start(chromium)
        wait = waiting(chromium)
        wait.until(lambda page: page.find_elements(By.ID, "progress-message"))
        wait.until(lambda page: "All devices booted" in text_of(page))
        assert chromium.find_element(By.ID, "progress-bar").get_attribute("aria-valuenow") == "80"
        chromium.find_element(By.TAG_NAME, "summary").click()
        lines = chromium.find_elements(By.CSS_SELECTOR, ".progress-log-event")
        return [line.text for line in lines]

    lines = await asyncio.to_thread(until_the_last_line)
    assert lines == ["Server requested", "Your lab is asked for", "The lab is imported", "All devices booted"]
    portal.silent = True  # binderhub#743
    await asyncio.sleep(3)
    assert "ailed" not in await asyncio.to_thread(text_of, chromium)
    portal.silent = False
    portal.hold.set()

    def at_the_lab() -> str:
        waiting(chromium).until(lambda page: page.current_url.endswith("/user/anna/"))
        return text_of(chromium)

    assert await asyncio.to_thread(at_the_lab) == "/user/anna/"
    assert portal.creations == 1


async def test_home_and_spawn_page_lead_to_the_portals_pages(hub: RealHub, chromium: Chrome) -> None:
    def look() -> list[str]:
        log_in(chromium, hub, "dora")
        led = []
        for page in ("spawn", "home"):
            chromium.get(f"{hub.url}/hub/{page}")
            chromium.find_element(By.ID, "vkprovider-labs").click()
            waiting(chromium).until(lambda page: "/services/vkprovider/" in page.current_url)
            led.append(chromium.current_url)
        return led

    assert await asyncio.to_thread(look) == [f"{hub.url}/services/vkprovider/"] * 2


async def test_each_refusal_is_a_sentence_that_says_what_to_do(hub: RealHub, portal: Portal, chromium: Chrome) -> None:
    await asyncio.to_thread(log_in, chromium, hub, "bert")
    for code, kind, text in REFUSALS:
        portal.refusal = code, {"detail": [{"msg": text, "type": kind, "loc": ["body", "options"]}]}

        def refused(text: str = text) -> None:
            chromium.get(f"{hub.url}/hub/spawn")
            start(chromium)
            waiting(chromium).until(lambda page: text in text_of(page))

        await asyncio.to_thread(refused)
    portal.refusal = None

    def works() -> None:
        chromium.get(f"{hub.url}/hub/spawn")
        start(chromium)
        waiting(chromium).until(lambda page: page.current_url.endswith("/user/bert/"))

    await asyncio.to_thread(works)


async def test_a_failed_lab_is_told_on_the_progress_page(hub: RealHub, portal: Portal, chromium: Chrome) -> None:
    portal.fails, portal.hold = "No worker has the image <b>csr</b>. Ask the author of the lab.", asyncio.Event()

    def waits() -> None:
        log_in(chromium, hub, "carl")
        start(chromium)
        waiting(chromium).until(lambda page: "All devices booted" in text_of(page))

    await asyncio.to_thread(waits)
    portal.hold.set()

    def fails() -> str:
        waiting(chromium).until(lambda page: "Spawn failed" in text_of(page))
        return text_of(chromium)

    assert f"Spawn failed: {portal.fails}" in await asyncio.to_thread(fails)
