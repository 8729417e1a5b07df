"""Forms that a script sends without leaving the page."""

import os
from base64 import b64encode
from collections.abc import Callable

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.support.page import visiting

KEY = b64encode(os.urandom(32)).decode()


async def test_a_refusal_is_said_where_the_visitor_is(world: PortalWorld) -> None:
    """Words beneath the form, focus where it was, and the page as it was; the next try replaces them."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, visiting(made.client.url) as page:
        page.expects(r"Failed to load resource: .* 422")
        await page.log_in(made.alice["Authorization"].removeprefix("Bearer "), "/labs/alice")
        await page.shows("Start a lab")
        await page.run(lambda driver: driver.execute_script("window.stayed = true"))
        await made.client.ask("POST", "/labs/alice/create", made.alice, made.body())
        await page.run(_send_form("/labs/alice/create"))
        await page.shows("That was not done. name the image", ".answer [role=alert]")
        await page.run(_send_form("/labs/alice/create"))
        await page.until(lambda driver: len(driver.find_elements(By.CSS_SELECTOR, ".answer")) == 1, "one answer")
        assert await page.run(lambda driver: driver.execute_script("return window.stayed"))


async def test_what_is_done_shows_without_loading_the_page(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, visiting(made.client.url) as page:
        await page.log_in(made.alice["Authorization"].removeprefix("Bearer "), "/labs/alice")
        await page.shows("Start a lab")
        await page.run(lambda driver: driver.execute_script("window.stayed = true"))
        await page.press("form[action$='/create'] button")
        await made.world.until_phase("alice", "complete")
        await page.shows("Your lab is ready")
        assert await page.run(lambda driver: driver.execute_script("return window.stayed"))
        await page.judge(html=False)


async def test_what_leaves_the_page_is_sent_once(world: PortalWorld) -> None:
    """Two clicks on a button whose answer takes long: the second request would hide what the first one was told."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, visiting(made.client.url) as page:
        await page.log_in(made.alice["Authorization"].removeprefix("Bearer "), "/labs/alice")
        await page.shows("Start a lab")
        script = """
          const sent = [];
          addEventListener("submit", (event) => { sent.push(!event.defaultPrevented); event.preventDefault(); });
          for (const stays of [false, true]) {
            const form = document.createElement("form");
            form.method = "post"; form.action = "/labs/alice/create";
            form.toggleAttribute("data-stays", stays);
            document.querySelector("main").append(form);
            form.requestSubmit();
            form.requestSubmit();
          }
          return sent;
        """
        assert await page.run(lambda driver: driver.execute_script(script)) == [True, False, True, True]


def _send_form(path: str) -> Callable[[Chrome], object]:
    """Send a form of the page's own, as one that was shown before the lab was there."""
    script = """
      const form = document.createElement("form");
      form.method = "post"; form.action = arguments[0]; form.id = "late"; form.dataset.inPlace = "";
      form.innerHTML = '<input type="hidden" name="csrf" value=""><button>Again</button>';
      const there = document.querySelector("#late") ?? (document.querySelector("main").append(form), form);
      there.requestSubmit();
    """
    return lambda driver: driver.execute_script(script, path)
