"""A learner's way through the simulated LDS in a real browser: log in, see the devices, answer, finish."""

import asyncio

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.support.browser import browser, press
from tests.support.lds_simulator import TOKEN, lds_client, sink
from vkpsim.lds.events.sender import EventSettings
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

DEVICES = [
    {"name": "workstation", "protocol": "vnc", "host": "10.0.1.50", "port": 10012, "uri": "vnc://10.0.1.50:10012"},
    {"name": "R1", "protocol": "telnet", "host": "10.0.1.50", "port": 10013, "uri": "telnet://10.0.1.50:10013"},
]
LOOKS_OUTSIDE = "return performance.getEntriesByType('resource').map(e => e.name)"


def text(page: Chrome, found_by: str) -> str:
    return str(page.find_element(By.ID, found_by).text)


def log_in(page: Chrome, url: str) -> list[list[str]]:
    """Follow a login URL; give the cells of the devices' table."""
    page.get(url)
    assert text(page, "username") == "alice"
    press(page, "login")
    assert text(page, "state") == "RUNNING"
    rows = page.find_elements(By.CSS_SELECTOR, "#devices tbody tr")
    return [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in rows]


def work(page: Chrome) -> None:
    """Answer the task, and give feedback."""
    page.find_element(By.NAME, "task-1").send_keys("router ospf 1")
    press(page, "answers")
    assert page.find_element(By.NAME, "task-1").text == "router ospf 1"
    Select(page.find_element(By.NAME, "rating")).select_by_visible_text("4")
    page.find_element(By.NAME, "comment").send_keys("<b>short</b>")
    press(page, "feedback")
    assert text(page, "state") == "RUNNING"


def finish(page: Chrome) -> None:
    """Press the button that ends the session."""
    press(page, "finish")
    assert text(page, "state") == "USER_FINISHED"
    assert not page.find_elements(By.ID, "finish")


def reopen(page: Chrome, url: str) -> str:
    page.delete_all_cookies()
    page.get(url)
    return text(page, "problem")


async def test_a_learner_logs_in_works_and_finishes() -> None:
    with browser() as page:
        async with sink() as target:
            events = EventSettings(targets=(target.url,))
            async with LdsSimulator(LdsSettings(token=TOKEN), events=events) as sim, lds_client(sim.url) as lds:
                session = (await lds.create()).body["id"]
                await lds.ask("PUT", f"/sessions/{session}/devices", {"devices": DEVICES})
                url = (await lds.ask("GET", f"/sessions/{session}/login_url")).body["login_url"]

                seen = await asyncio.to_thread(log_in, page, url)
                assert [row[:5] for row in seen] == [
                    [device["name"], device["protocol"], device["host"], str(device["port"]), device["uri"]]
                    for device in DEVICES
                ]
                [started] = await target.take()
                assert (started.event["type"], started.event["subject"]) == ("session.started", session)

                await asyncio.to_thread(work, page)
                [response] = (await lds.ask("GET", f"/sessions/{session}/responses")).body["responses"]
                assert (response["item"], response["answer"]) == ("task-1", "router ospf 1")
                [entry] = (await lds.ask("GET", f"/sessions/{session}/feedback")).body["entries"]
                assert (entry["rating"], entry["comment"]) == (4, "<b>short</b>")

                await asyncio.to_thread(finish, page)
                _, ended = await target.take(2)
                assert (ended.event["type"], ended.event["data"]["reason"]) == ("session.ended", "user")
                assert await lds.state(session) == "USER_FINISHED"

                outside = await asyncio.to_thread(page.execute_script, LOOKS_OUTSIDE)
                assert all(name.startswith(sim.url) for name in outside)
                assert "used already" in await asyncio.to_thread(reopen, page, url)
