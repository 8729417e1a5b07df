"""A learner's link in a real browser: the click, the clean address, a reload, another link, and without scripts."""

from pathlib import Path
from typing import Any

import structlog
from selenium.webdriver import Chrome

from tests.component.controllers.looking import eventually
from tests.component.portal.harness import PortalWorld
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.test_portal_links import OPENS_NOTHING, LinkedClass, lets_in, linked_class
from tests.support.nginx import proxied
from tests.support.page import Page, visiting
from vkprovider.classroom import links


async def ready(the: LinkedClass) -> None:
    """Wait until the link opens: a policy and a role take a moment."""
    async with Browsing(the.made.client.url) as once:
        await eventually(lambda: lets_in(once, the.code.text), "the link opens")


def history_has(driver: Chrome, text: str) -> bool:
    """Return whether an address has a text to which the buttons of this tab lead back."""
    entries: list[dict[str, Any]] = driver.execute_cdp_cmd("Page.getNavigationHistory", {})["entries"]
    return any(text in entry["url"] for entry in entries)


async def test_a_link_is_opened_by_a_click_and_leaves_nothing_in_the_address(world: PortalWorld) -> None:
    async with linked_class(world) as the, visiting(the.made.client.url) as page:
        await ready(the)
        await page.open(f"/link#{the.code.text}")
        await page.shows("Your link is complete")
        assert await page.texts("#link-typed label") == [""], "nothing is to be typed"
        await page.judge()
        await page.press("#link-form button")
        await page.shows("Your lab is ready", "h1")
        assert await page.path() == the.mine
        assert not await page.run(lambda driver: history_has(driver, the.code.secret))
        assert await page.texts("header nav") == []
        assert await page.text(".who") == "bob"
        assert await page.texts("nav[aria-label=Breadcrumb]") == []
        await page.judge()
        await page.run(lambda driver: driver.refresh())
        await page.shows("Your lab is ready", "h1")
        await changes_by_itself(the, page)
        # Each link of the page leads to the same lab.
        paths = await page.run(_paths)
        assert paths
        assert all(path.startswith("/link/") for path in paths), paths
        await page.press(".brand")
        await page.shows("Your lab is ready", "h1")
        assert await page.path() == the.mine
        # Who opens a link that was made again, in the same tab, reads that the one before is over.
        again = (await the.given("warm-1", again=True)).codes["bob"]
        await page.open(f"/link#{the.code.text}")
        await page.press("#link-form button")
        page.expects("403")
        await page.shows(OPENS_NOTHING)
        assert await page.path() == "/link"
        await page.judge()
        await page.run(lambda driver: driver.execute_script("location.hash = arguments[0]", again.text))
        await page.shows("Your link is complete")
        await page.press("#link-form button")
        await page.shows("Your lab is ready", "h1")
        await page.press("header form button")
        await page.shows("Open your lab", "h1")
        assert await page.path() == "/link"


async def changes_by_itself(the: LinkedClass, page: Page) -> None:
    note = {"metadata": {"annotations": {"vkprovider.io/message": "2026-11-26T17:00:00Z Lunch at noon."}}}
    pods = f"/api/v1/namespaces/{the.room.namespace}/pods"
    await the.made.world.admin.patch(f"{pods}/warm-1", note)
    await page.shows("Lunch at noon.")


def _paths(driver: Chrome) -> list[str]:
    script = 'return [...document.querySelectorAll("body a[href]")].map((each) => each.getAttribute("href"))'
    return [path for path in driver.execute_script(script) if not path.startswith("#")]


async def test_without_scripts_the_code_is_typed(world: PortalWorld) -> None:
    async with linked_class(world) as the, visiting(the.made.client.url) as page:
        await ready(the)
        off = {"value": True}
        await page.run(lambda driver: driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", off))
        try:
            await page.open("/link")
            await page.fill("#link-code", links.new_code(the.room.namespace, "bob").text)
            await page.press("#link-form button")
            page.expects("403")
            await page.shows(OPENS_NOTHING)
            await page.fill("#link-code", the.code.text.upper())
            await page.press("#link-form button")
            await page.shows("Your lab is ready", "h1")
            assert await page.path() == the.mine
            await page.press("#lab-acts details summary")
            assert "All devices are wiped" in await page.text("#lab-acts")
        finally:
            on = {"value": False}
            await page.run(lambda driver: driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", on))


async def test_no_log_of_a_proxy_or_of_ours_has_the_secret(world: PortalWorld, tmp_path: Path) -> None:
    """nginx writes path, query and referrer of each request: neither has what stands behind `#`."""
    folder = tmp_path / "nginx"
    settings = f"access_log {folder}/access.log combined; proxy_set_header Host $http_host;"
    with structlog.testing.capture_logs() as ours:
        async with (
            linked_class(world) as the,
            proxied(folder, the.made.client.url, settings) as url,
            visiting(url) as page,
        ):
            await ready(the)
            await page.open(f"/link#{the.code.text}")
            await page.press("#link-form button")
            await page.shows("Your lab is ready", "h1")
            assert await page.path() == the.mine
    theirs = (folder / "access.log").read_text() + (folder / "error.log").read_text()
    for line in ("GET /link HTTP", "POST /link HTTP", f"GET {the.mine} HTTP"):
        assert line in theirs
    assert {line["path"] for line in ours if line.get("event") == "request"} >= {"/link", "/lablets/{namespace}/{pod}"}
    for logged in (theirs, str(ours)):
        assert the.code.secret not in logged
        assert the.code.digest not in logged
