"""The login in a real browser, and its judges."""

import os
from base64 import b64encode

import httpx

from tests.component.portal.asking import Setting, setting
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


async def test_an_opened_code_logs_in_by_itself_and_asks_before_it_changes_a_session(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, visiting(made.client.url) as page:
        page.expects(r"/nowhere - Failed to load resource: .* 404")
        page.expects(r"/login/[\w-]+ - Failed to load resource: .* 403")
        first, second = await made_code(made, made.alice), await made_code(made, await made.people.person("bob"))
        elsewhere = f"data:text/html,<a id=there href={made.client.url}/login/{first}>there</a>"
        await page.run(lambda driver: driver.get(elsewhere))
        await page.press("#there")
        await page.shows("Go on only if that was you")
        await page.judge()
        await page.open(f"/login/{first}")
        await page.until(lambda driver: driver.current_url == f"{page.url}/labs/alice", "the code logs in by itself")
        await page.open(f"/login/{second}")
        await page.shows(f"You are logged in as {made.people.prefix}alice")
        await page.judge()
        await page.press("main form button")
        await page.until(lambda driver: "/login" not in driver.current_url, "the code logs in")
        await page.open("/nowhere")
        assert await page.text(".who") == "bob"
        await page.open(f"/login/{first}")
        await page.press("main form button")
        await page.shows("This code was used already")
        await page.judge(html=False)


async def made_code(made: Setting, person: dict[str, str]) -> str:
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"{made.client.url}/login/code", headers=person)
        return str(answer.json()["code"])


async def test_log_in_see_who_is_logged_in_and_log_out(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, visiting(made.client.url) as page:
        page.expects(r"/nowhere - Failed to load resource: .* 404")
        page.expects(r"/login - Failed to load resource: .* 401")
        await page.open("/nowhere")
        assert await page.path() == "/login?next=/nowhere"
        await page.judge()
        await page.log_in("<script>alert(1)</script>", "/nowhere")
        await page.shows("The cluster does not know the token, or it has expired.")
        assert "ask who gave you the last one, such as your instructor" in await page.text("div.refusal")
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


async def test_who_logs_out_in_one_tab_is_logged_out_in_the_others(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, visiting(made.client.url) as page:
        page.expects(r"/live.* - Failed to load resource: .* 401")
        await page.open("/labs/alice")
        await page.log_in(made.alice["Authorization"].removeprefix("Bearer "), "/labs/alice")
        await page.shows("You have no lab")
        first = await page.run(lambda driver: driver.current_window_handle)
        await page.run(lambda driver: driver.switch_to.new_window("tab"))
        await page.open("/labs/alice")
        await page.shows("You have no lab")
        await page.press(".bar form button")
        await page.shows("Log in")
        await page.run(lambda driver: driver.switch_to.window(first))
        await page.until(
            lambda driver: "/login?next=/labs/alice" in driver.current_url, "the other tab is at the login"
        )
