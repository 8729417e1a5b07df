"""The login in a real browser, and its judges."""

import os
from base64 import b64encode

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.support.page import visiting

KEY = b64encode(os.urandom(32)).decode()


async def test_a_link_of_another_site_finds_the_session(world: PortalWorld) -> None:
    """A browser sends strict cookies to no page that another site leads to; the second step is the site's own."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, visiting(made.client.url) as page:
        page.expects(r"/nowhere - Failed to load resource: .* 404")
        elsewhere = f"data:text/html,<a id=there href={made.client.url}/nowhere>there</a>"
        await page.run(lambda driver: driver.get(elsewhere))
        await page.press("#there")
        await page.shows("Log in")
        await page.log_in(made.alice["Authorization"].removeprefix("Bearer "), "/nowhere")
        await page.shows("There is nothing here for you")
        await page.run(lambda driver: driver.get(elsewhere))
        await page.press("#there")
        await page.shows("There is nothing here for you")
        assert await page.text(".who") == "alice"


async def test_log_in_see_who_is_logged_in_and_log_out(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, visiting(made.client.url) as page:
        page.expects(r"/nowhere - Failed to load resource: .* 404")
        page.expects(r"/login - Failed to load resource: .* 401")
        await page.open("/nowhere")
        assert await page.path() == "/login?next=/nowhere"
        await page.judge()
        await page.log_in("<script>alert(1)</script>", "/nowhere")
        await page.shows("does not know the token")
        await page.judge()
        await page.log_in(made.alice["Authorization"].removeprefix("Bearer "), "/nowhere")
        await page.shows("There is nothing here for you")
        assert await page.text(".who") == "alice"
        await page.judge()
        cookies = await page.run(lambda driver: driver.get_cookies())
        assert {(each["httpOnly"], each["secure"], each["sameSite"]) for each in cookies} == {(True, True, "Strict")}
        await page.press(".bar form button")
        await page.shows("Log in")
        await page.open("/")
        assert await page.path() == "/login?next=/"
