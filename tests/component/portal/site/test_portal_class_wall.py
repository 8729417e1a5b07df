"""Over a shoulder: an instructor watches one console, or a wall of them, and types by a button alone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.component.controllers.looking import when
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.test_portal_console_browser import state, token
from tests.support.apiserver import ApiServer
from tests.support.page import visiting
from vkprovider.lablet.names import ANNOTATION_USERNAME
from vkprovider.lablet.standing import learner_in

_HIDE = """
Object.defineProperty(document, "hidden", {value: Boolean(arguments[0]), configurable: true});
document.dispatchEvent(new Event("visibilitychange"));
"""


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path) as bench:
        yield bench


def in_frame(driver: Chrome) -> str:
    """Return how the console of the first frame is; "" if it has none."""
    driver.switch_to.frame(driver.find_element("css selector", ".wall iframe"))
    try:
        found = driver.find_elements("id", "console")
        return str(found[0].get_attribute("data-state")) if found else ""
    finally:
        driver.switch_to.default_content()


async def test_a_wall_watches_while_it_is_seen_and_a_console_is_typed_at_by_a_button(bench: Bench) -> None:
    teacher, pod = token(await bench.teacher("ann")), bench.site.lablet
    given = {"metadata": {"annotations": {ANNOTATION_USERNAME: "=<b>ben"}}}
    await bench.portal.admin.patch(pod.path, given)
    lablets = bench.running.replica.lablets
    await when(
        lambda: (seen := lablets.pod(pod.namespace, pod.name)) is not None and learner_in(seen), "it is a learner's"
    )
    async with visiting(bench.url) as page:
        await page.log_in(teacher, f"/classes/{pod.namespace}/wall")
        await page.shows("=<b>ben", css=".wall")
        await page.until(lambda driver: in_frame(driver) == "watching", "the console is watched")
        assert await page.run(lambda driver: driver.switch_to.active_element.tag_name) == "body", "it takes no focus"
        await page.judge(changed=False)
        await page.run(lambda driver: driver.execute_script(_HIDE, 1))
        await page.until(lambda driver: not in_frame(driver), "it pauses while nobody sees it")
        await page.run(lambda driver: driver.execute_script(_HIDE, 0))
        await page.until(lambda driver: in_frame(driver) == "watching", "it goes on")
        await page.press(".wall h2 a")
        await page.shows("Devices")

        await page.open(f"{bench.lablet}/consoles/h0")
        await state(page, "watching")
        await page.press("#console-take-over")
        await state(page, "typing")
