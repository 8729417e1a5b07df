"""A learner with the lablet of a class, in a real browser: consoles in the address, and the lists of one's labs."""

import os
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.component.controllers.looking import eventually
from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import USER_ROLE
from tests.component.portal.site.assigned import opened
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.classroom import classroom, token_of
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.test_portal_given_pages import is_led
from tests.support.apiserver import ApiServer
from tests.support.page import Page, visiting
from vkprovider.lablet import names

KEY = b64encode(os.urandom(32)).decode()
_OPEN = """
return [...document.querySelectorAll("#console-frames iframe")].map((each) => [each.title, each.hidden]).sort();
"""


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path) as bench:
        yield bench


async def consoles(page: Page, *shown: str, behind: tuple[str, ...] = ()) -> None:
    """Wait until the page shows these consoles, and has others behind them."""
    wanted = sorted([[f"Console of {each}", each in behind] for each in (*shown, *behind)])
    await page.until(lambda driver: driver.execute_script(_OPEN) == wanted, f"the consoles are {wanted}")


async def prompt(page: Page, device: str, text: str) -> None:
    """Wait until the terminal of a device shows a text."""

    def there(driver: Chrome) -> bool:
        driver.switch_to.default_content()
        driver.switch_to.frame(driver.find_element(By.CSS_SELECTOR, f'iframe[title="Console of {device}"]'))
        return text in driver.find_element(By.CSS_SELECTOR, ".xterm-rows").text

    await page.until(there, f"{device} shows {text!r}")
    await page.run(lambda driver: driver.switch_to.default_content())


async def test_consoles_are_tabs_or_side_by_side_and_in_the_address(bench: Bench) -> None:
    lablet = bench.site.lablet
    header = await bench.people.person("bob")
    pod = f"/api/v1/namespaces/{lablet.namespace}/pods/{lablet.name}"
    await bench.portal.admin.patch(pod, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "bob"}}})
    await opened(bench.portal.admin, lablet.namespace, lablet.name, bench.people.prefix)
    mine = f"/lablets/{lablet.namespace}/{lablet.name}"
    async with Browsing(bench.url) as browser:
        await browser.log_in(header)
        await eventually(lambda: is_led(browser, mine), "the portal knows whose the lablet is")
    async with visiting(bench.url) as page:
        await page.log_in(token_of(header))
        await page.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, "#lab-acts a[data-console]"), "a console")
        assert await page.path() == mine
        first = (await page.text("#lab-acts a[data-console]")).removeprefix("Open ")
        others = [each for each in ("r1", "h0", "h1") if each != first]
        await page.press("#lab-acts a[data-console]")
        await consoles(page, first)
        assert await page.path() == f"{mine}#{first}"
        await page.judge(changed=False)
        await page.run(lambda driver: driver.refresh())
        await consoles(page, first)
        await page.press(f'#lab-devices a[data-console="{others[0]}"]')
        await consoles(page, others[0], behind=(first,))
        assert await page.path() == f"{mine}#{others[0]},{first}"
        await page.press("#console-side")
        await consoles(page, first, others[0])
        assert await page.path() == f"{mine}#{others[0]}+{first}"
        await page.judge(html=False)
        await page.run(lambda driver: driver.refresh())
        await consoles(page, first, others[0])
        await prompt(page, others[0], "Escape character")
        await page.run(lambda driver: driver.back())
        await consoles(page, others[0], behind=(first,))
        await page.press(f'#console-tabs button[aria-label="Close {others[0]}"]')
        await consoles(page, first)
        await page.press("#console-close")
        await consoles(page)
        assert await page.path() == mine


async def test_the_lists_of_labs_and_of_somebody_unknown(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, classroom(made) as room:
        bob = await made.people.person("bob")
        async with visiting(made.client.url) as page:
            await page.log_in(token_of(bob))
            await page.shows("Nothing here is yours yet")
            assert await page.path() == "/labs"
            assert await page.texts("nav a") == ["My labs"]
            await page.judge()
            path = await room.lablet("warm-1", "bob", state="READY")
            said = {"metadata": {"annotations": {names.ANNOTATION_MESSAGE: "2026-11-26T17:00:00Z Lunch at noon."}}}
            await world.admin.patch(path, said)
            await opened(world.admin, room.namespace, "warm-1", made.people.prefix)
            await page.shows("Your lab is ready", "#my-labs")
            await page.shows("Lunch at noon.", "#my-labs")
            assert await page.text("#my-labs-nothing") == ""
            await made.people.allow("bob", USER_ROLE)

            async def offered() -> bool:
                await page.open("/labs")
                return bool(await page.texts("#lab-start button"))

            await eventually(offered, "bob may start a lab: a refusal is remembered for seconds")
            await page.judge()
            await page.press("#my-labs a")
            await page.shows("Your lab is ready", "h1")
            assert await page.path() == f"/lablets/{room.namespace}/warm-1"
            await page.judge()
