"""The learner's page in a real browser, in each state of a lab: what a person reads, and what the judges say."""

import os
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from tests.component.portal.asking import setting
from tests.component.portal.harness import Json, PortalWorld
from tests.component.portal.site.labs import EVIL, LearnersLab
from tests.component.portal.wishes import wanted
from tests.support.page import Page, visiting
from vkprovider.platform.times import iso

KEY = b64encode(os.urandom(32)).decode()


@asynccontextmanager
async def learner(
    world: PortalWorld, config: Json | None = None, **env: str
) -> AsyncIterator[tuple[LearnersLab, Page]]:
    """Log alice in, who has no lab."""
    async with (
        setting(world, config=config, VKPROVIDER_PORTAL_COOKIE_KEY=KEY, LEADER_LEASE_TTL="30", **env) as made,
        visiting(made.client.url) as page,
    ):
        lab = LearnersLab(made)
        await lab.draw()
        await page.log_in(lab.token)
        await page.shows("You have no lab")
        yield lab, page


async def test_from_no_lab_over_its_start_and_a_reset_to_its_end(world: PortalWorld) -> None:
    async with learner(world) as (lab, page):
        assert await page.path() == "/labs/alice"
        assert await page.texts("#lab-start .pick p") == [f"{lab.made.family}: Release 1.0.0", "small (1 CPU, 1Gi)"]
        assert await page.texts("#lab-start select") == [], "what has one answer is not asked"
        await page.judge()
        await page.press("#lab-start button")
        await lab.until_pod()
        await page.shows(EVIL, "#lab-devices")
        assert await page.texts("#lab-devices tbody th") == ["r1", EVIL]
        assert await page.texts("#lab-devices tbody td:nth-child(2) .chip") == ["not started", "not started"]
        assert await page.texts("#lab-start h2") == [""], "there is a lab: no form for another one"
        await page.judge(html=False)

        await lab.booting()
        await page.shows("Your lab is starting", "h1")
        assert await page.text("#lab-words") == "booting"
        assert await page.text("#lab-now") == "Devices boot: 1 of 2"
        # Conditions tell whole seconds, so that two of one second may stand in either order.
        assert any(line.endswith("The lab is imported") for line in await page.texts(".story li"))
        assert await page.texts("#lab-devices tbody td:nth-child(2) .chip") == ["running", "booting"]
        assert await page.texts(".topology text") == ["r1", "running", "sw", "<script…script>", "booting"]
        await page.judge()

        await lab.ready(message=f"2026-11-26T17:00:00Z {EVIL} We go on at 14:00.")
        await page.shows("Your lab is ready", "h1")
        assert f"{EVIL} We go on at 14:00." in await page.text("#lab-message")
        assert (await page.text("#lab-time")).endswith("left")
        assert await page.texts(".ports li") == ["serial: telnet 203.0.113.10 20000", "pat 22: 198.51.100.1:10012"]
        assert await page.texts("#lab-progress h2") == []
        consoles = [link.split("/consoles/")[1] for link in await links(page, "#lab-devices a")]
        assert consoles == ["r1", "%3Cscript%3Ealert%281%29%3C%2Fscript%3E"]
        assert await links(page, ".topology a") == await links(page, "#lab-devices a"), "the picture is the menu"
        assert "kubectl" not in await page.text()
        assert await page.text("#lab-acts .button") == "Open r1"
        await page.judge()
        await page.press("#lab-devices .console-else summary")
        assert "kubectl --namespace nublado-alice exec -it nb-alice -c lab -- console DEVICE" in await page.text()

        before = await page.text("#lab-time")
        await page.press("#lab-acts > .acts > button")
        ends = re.compile(r"Ends (.*): ")
        await page.until(
            lambda driver: ends.findall(driver.find_element("css selector", "#lab-time").text) != ends.findall(before),
            "extended",
        )
        await page.shows("Your lab has more time now.", "#lab-acts .answer")
        await page.press("#lab-acts details:nth-of-type(1) summary")
        assert "What was typed on them is lost" in await page.text("#lab-acts details[open]")
        await page.judge(html=False)
        await page.press("#lab-acts details[open] .cancel")
        await page.until(
            lambda driver: not driver.find_elements("css selector", "details.confirm[open]"), "the question is gone"
        )
        assert await page.run(lambda driver: driver.switch_to.active_element.text) == "Reset the lab …"
        await page.press("#lab-acts details:nth-of-type(1) summary")
        await page.press("#lab-acts details[open] button.danger")
        await page.shows("The devices are being wiped, and start again.", "#lab-acts .answer")
        await lab.world.admin.until(
            lab.world.pod("alice"),
            lambda pod: "vkprovider.io/reset" in pod["metadata"]["annotations"],
            "is to be reset",
        )
        await lab.write(dict.fromkeys(("lab", "r1", "evil"), "Resetting"), devices="0/2")
        await page.shows("Your lab is being reset")
        assert await page.texts("#lab-devices tbody td:nth-child(2) .chip") == ["booting", "booting"]

        assert await page.texts("#lab-acts details[open]") == []
        lab.world.stage.stops = False
        await page.press("#lab-acts details:last-of-type summary")
        await page.press("#lab-acts details[open] button.danger")
        await page.shows("Your lab is being removed")
        assert "The lab is to be deleted" in await page.text(".story")
        await page.judge()
        lab.world.stage.stops = True
        await lab.world.until_gone("alice")
        await page.shows("You have no lab")
        await page.shows("Start a lab")


async def test_an_open_question_never_becomes_another_one(world: PortalWorld) -> None:
    async with learner(world) as (lab, page):
        await page.press("#lab-start button")
        await lab.until_pod()
        await page.shows("End the lab", "#lab-acts")
        await page.press("#act-stop summary")
        assert await page.texts("#lab-acts details[open] button.danger") == ["End it now"]
        await lab.booting()
        await page.shows("Reset the lab", "#lab-acts")
        assert await page.texts("#lab-acts details[open] button.danger") == ["End it now"]


async def links(page: Page, css: str) -> list[str]:
    """Return where the links that a selector names lead."""
    found = await page.run(lambda driver: driver.find_elements("css selector", css))
    return [str(await page.run(lambda _, each=each: each.get_dom_attribute("href"))) for each in found]  # type: ignore[misc]  # (mypy#15459)


async def test_a_lab_that_failed_says_why_and_can_be_started_again(world: PortalWorld) -> None:
    async with learner(world) as (lab, page):
        await page.press("#lab-start button")
        await lab.until_pod()
        how = {
            "phase": "Failed",
            "reason": "StoppedTooLong",
            "containerStatuses": [
                {
                    "name": "lab",
                    "image": "x",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": {"exitCode": 1, "reason": "StoppedTooLong", "message": f"{EVIL} stopped"}},
                }
            ],
        }
        await lab.world.admin.patch(f"{lab.world.pod('alice')}/status", {"status": how})
        await page.shows("Your lab has failed", "h1")
        ask = "Start a lab again, which replaces this one. If that fails too, ask whoever runs the labs."
        await page.shows(ask, "#lab-failure")  # once the operation has ended as well
        told = await page.text("#lab-failure")
        assert EVIL not in told, "particulars are for those who run the labs"
        assert "Your lab was stopped for too long, and has ended." in told
        assert "StoppedTooLong" in told
        await page.judge()
        await page.press("#lab-start button")
        lab.world.stage.boots = True
        await page.shows("Your lab is ready")


async def test_a_lab_without_a_worker_that_has_room(world: PortalWorld) -> None:
    async with learner(world) as (lab, page):
        lab.world.stage.binds = False
        await page.press("#lab-start button")
        full = "0/3 nodes are available: 3 Insufficient cpu."
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": full}
        await lab.world.admin.until(lab.world.pod("alice"), bool)
        await lab.world.admin.patch(f"{lab.world.pod('alice')}/status", {"status": {"conditions": [condition]}})
        await page.shows("There is no room for your lab at the moment. It starts by itself")
        assert await page.text("h1") == "Your lab waits to be started"
        assert await page.text("#lab-now") == "The lab waits for a worker that can take it."
        assert "nodes are available" not in await page.text()
        await page.judge()


async def test_labs_that_wait_in_the_queue_have_a_place(world: PortalWorld) -> None:
    async with learner(world, VKPROVIDER_PORTAL_STARTS_MAX="1") as (lab, page):
        requests = lab.made.running.replica.requests
        menu = lab.made.running.replica.choices.menu()
        await requests.create(lab.world.caller("bob"), wanted(lab.made.family), menu)
        await lab.world.admin.until(lab.world.pod("bob"), bool)
        await page.press("#lab-start button")
        await page.shows("The lab waits to be started: place 1 in the queue", "#lab-now")
        assert await page.text("#lab-words") == "waiting"
        await page.judge()


async def test_requests_that_are_refused_are_sentences_beneath_the_form(world: PortalWorld) -> None:
    async with learner(world) as (_, page):
        page.expects(r"/labs/alice/create - Failed to load resource: .* 4\d\d")
        for field, value, words in (
            ("image", "gone:1.0", "there is no image 'gone:1.0'; there is"),
            ("image", f"{EVIL}:1", f"there is no image '{EVIL}:1'"),
            ("size", "huge", "has no size 'huge'; there is small"),
        ):
            await page.open("/labs/alice")
            await page.run(lambda driver, what=(field, value): write(driver, *what))  # type: ignore[misc]  # (mypy#15459)
            await page.press("#lab-start button")
            await page.shows(words, "#lab-start .refusal")
        await page.judge(html=False)


def write(driver: Chrome, field: str, value: str) -> None:
    """Change a field that is not asked, as somebody may who writes the request."""
    script = "document.querySelector(`#lab-start [name=${arguments[0]}]`).value = arguments[1]"
    driver.execute_script(script, field, value)


async def test_a_quota_that_allows_no_lab_is_told_before_one_asks(world: PortalWorld) -> None:
    config = {"quotas": {"default": {"cpu": "0.5", "memory": "1Gi"}}}
    async with learner(world, config=config) as (_, page):
        await page.shows("Your quota allows no lab of any size. Ask whoever runs the labs.", "#lab-start")
        assert await page.texts("#lab-start button") == []
        await page.judge()


async def test_the_page_on_a_phone_does_not_scroll_sideways(world: PortalWorld) -> None:
    async with learner(world) as (lab, page):
        await page.run(
            lambda driver: driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True},
            )
        )
        for step in (None, lab.until_pod, lab.booting, lab.ready):
            if step is not None:
                await step()
            await page.open("/labs/alice")
            wide = await page.run(lambda driver: driver.execute_script("return document.documentElement.scrollWidth"))
            assert wide <= 360
            assert await page.run(lambda driver: driver.execute_script(_BROKEN)) == []
            await page.judge(html=False)
            if step is None:
                lab.world.stage.binds = False
                await page.press("#lab-start button")
                await page.shows("Your lab waits")


_BROKEN = """
const cells = [...document.querySelectorAll("#lab-devices th, #lab-devices td, h1, .chip")];
return cells.filter((cell) => {
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let node; (node = walk.nextNode()); ) {
    for (const word of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((each) => each.top)).size > 1) return true;
    }
  }
  return false;
}).map((cell) => cell.textContent.trim());
"""
"""Returns the cells in which a word stands in two lines."""


async def test_times_are_those_of_the_browser_and_the_end_is_told_before(world: PortalWorld) -> None:
    async with learner(world) as (lab, page):
        await page.press("#lab-start button")
        await lab.until_pod()
        await lab.ready()
        await page.run(
            lambda driver: driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
        )
        await page.open("/labs/alice")
        script = """
            const time = document.querySelector("#lab-time time[data-clock]");
            const at = new Date(time.dateTime);
            const words = at.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"});
            return [time.textContent, words, at.getTimezoneOffset()];
        """
        shown, right, offset = await page.run(lambda driver: driver.execute_script(script))
        assert shown.endswith(right)
        assert offset == -540
        assert await page.texts("#lab-ending") == [""]
        title = await page.run(lambda driver: driver.title)
        soon = iso(int(lab.made.running.replica.ctx.wall()) + 240)
        note = {"metadata": {"annotations": {"vkprovider.io/timeslot-end": soon}}}
        await lab.world.admin.patch(lab.world.pod("alice"), note)
        await page.shows("Your lab ends soon:", "#lab-ending")
        await page.shows("Extend it, or download what you need.", "#lab-ending")
        await page.until(lambda driver: driver.title == f"(4 min left) {title}", "the title says it")
        await page.judge()


async def test_the_page_prints_without_buttons(world: PortalWorld) -> None:
    async with learner(world) as (lab, page):
        await page.press("#lab-start button")
        await lab.until_pod()
        await lab.ready()
        await page.run(lambda driver: driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"}))
        await page.open("/labs/alice")
        printed = await page.text("body")
        assert "Your lab is ready" in printed
        assert "r1" in printed
        assert "Reset" not in printed
        assert "Extend" not in printed


async def test_the_whole_story_by_keyboard_alone(world: PortalWorld) -> None:
    """Tab and Enter, as one who sees no pointer: start, open the console, reset, end."""
    async with learner(world) as (lab, page):
        lab.world.stage.binds = False
        await tab_to(page, "Start the lab")
        await page.keys(Keys.ENTER)
        await page.shows("Your lab waits to be started")
        await lab.until_pod()
        await lab.ready()
        await page.shows("Your lab is ready")
        await tab_to(page, "r1 running")
        await tab_to(page, "r1")
        await page.open("/labs/alice")
        await tab_to(page, "Reset the lab …")
        await page.keys(Keys.ENTER)
        await tab_to(page, "Reset it now")
        await page.keys(Keys.ESCAPE)
        await page.until(
            lambda driver: not driver.find_elements("css selector", "details[open]"), "the question is gone"
        )
        await tab_to(page, "End the lab …")
        await page.keys(Keys.ENTER)
        await tab_to(page, "End it now")
        lab.world.stage.stops = False
        await page.keys(Keys.ENTER)
        await page.shows("Your lab is being removed")
        lab.world.stage.stops = True


async def tab_to(page: Page, words: str) -> None:
    """Press Tab until what has the focus has a name; each piece of the page follows the lab by itself."""
    named = "a => a.textContent.trim().replace(/\\s+/g, ' ')"
    all_ = f"return [...document.querySelectorAll('a, button, summary')].map({named})"
    await page.until(lambda driver: words in driver.execute_script(all_), f"{words} is there")
    for _ in range(60):
        await page.keys(Keys.TAB)
        if await page.run(lambda driver: driver.execute_script(f"return ({named})(document.activeElement)")) == words:
            return
    raise AssertionError(f"{words} cannot be reached")
