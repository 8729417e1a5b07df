"""*Save and end* on the page of a user lab, and the next lab that begins from what was saved."""

import os
from base64 import b64encode
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import USER_ROLE
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.labs import LearnersLab
from tests.support.page import visiting
from tests.support.scripted import ScriptedServer, answer, refuse

KEY = b64encode(os.urandom(32)).decode()
ID = "00000001-0000-4000-8000-000000000000"


@pytest.fixture
async def page() -> AsyncIterator[ScriptedServer]:
    """The provider's page, which answers as it is told."""
    server = ScriptedServer()
    await server.start()
    yield server
    await server.stop()


async def test_a_lab_is_saved_and_the_next_begins_from_it(world: PortalWorld, page: ScriptedServer) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY, VKPROVIDER_PORTAL_PROVIDER_URL=page.url) as made,
        Browsing(made.client.url) as browser,
    ):
        lab = LearnersLab(made)
        await lab.draw()
        kept = {"id": ID, "namespace": "nublado-alice", "pod": "nb-alice", "at": 0, "version": "0.9.0"}
        mine = {**kept, "definition": f"{made.definition}-small", "devices": ["r1", "r9"]}
        other = {**kept, "definition": "of-no-menu", "devices": ["r1"]}
        await browser.log_in(made.alice)

        page.next(refuse(503, "the archive cannot be listed now"))
        shown = (await browser.get("/labs/alice")).text
        assert "cannot be offered now: try again later" in shown
        assert "the archive cannot be listed now" not in shown, "the log says it to who runs the labs"
        assert 'name="begin_from"' not in shown

        page.next(answer({"items": [mine, other]}))
        shown = (await browser.get("/labs/alice")).text
        assert "0.9.0 of 1970-01-01 00:00 UTC: r1; not in the newest version: r9" in shown
        assert "of-no-menu" not in shown
        assert {seen.headers["Authorization"] for seen in page.seen} == {made.alice["Authorization"]}
        assert {seen.path for seen in page.seen} == {"/archives"}

        page.next(answer({"items": [mine]}))
        assert "r1; not in the newest version: r9" in (await browser.get("/labs")).text

        page.next(answer({"items": [mine, other]}))
        of_hub = (await made.client.ask("GET", "/lab-form/alice", made.alice)).text
        assert 'name="begin_from"' in of_hub
        assert f'<option value="{ID}">what you saved: {made.definition}-small 0.9.0' in of_hub
        page.next(refuse(503, "the archive cannot be listed now"))
        assert 'name="begin_from"' not in (await made.client.ask("GET", "/lab-form/alice", made.alice)).text

        image = f"{made.family}:1.0.0"
        wrong = await browser.post("/labs/alice/create", image=image, size="small", begin_from="../r1")
        assert wrong.status_code == 422
        page.next(answer({"items": []}), times=9)
        begun = await browser.post("/labs/alice/create", image=image, size="small", begin_from=ID)
        assert begun.status_code == 303
        await lab.until_pod()
        pod = await world.admin.get(world.pod("alice"))
        assert pod is not None
        notes = pod["metadata"]["annotations"]
        assert notes["vkprovider.io/begin-from"] == ID
        assert notes["vkprovider.io/owner"] == f"{made.people.prefix}alice"

        await lab.ready()
        asked = len(page.seen)
        shown = (await browser.get("/labs/alice")).text
        assert "Save and end the lab" in shown
        assert len(page.seen) == asked, "nobody can ask for a lab now"
        assert (await browser.post("/labs/alice/stop")).status_code == 303
        await world.until_gone("alice")

        ben = await made.people.person("ben", USER_ROLE)
        async with Browsing(made.client.url) as who:
            await who.log_in(ben)
            await who.get("/labs/ben")
            assert (page.seen[-1].path, page.seen[-1].headers["Authorization"]) == ("/archives", ben["Authorization"])


async def test_who_ends_a_lab_begins_the_next_from_what_was_saved_without_loading_the_page(
    world: PortalWorld, page: ScriptedServer
) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY, VKPROVIDER_PORTAL_PROVIDER_URL=page.url) as made,
        visiting(made.client.url) as tab,
    ):
        lab = LearnersLab(made)
        await lab.draw()
        saved: list[dict[str, object]] = []

        async def archives(_: web.Request) -> web.Response:
            return web.json_response({"items": saved})

        page.next(archives, times=9)
        await tab.log_in(lab.token, "/labs/alice")
        await tab.press("#lab-start button")
        await lab.until_pod()
        await lab.ready()
        await tab.open("/labs/alice")
        await tab.press("#act-stop-saved summary")
        kept = {"id": ID, "namespace": "nublado-alice", "pod": "nb-alice", "at": 0, "version": "0.9.0"}
        saved.append({**kept, "definition": f"{made.definition}-small", "devices": ["r1"]})
        await tab.press("#act-stop-saved button.danger")
        await world.until_gone("alice")
        await tab.shows("You have no lab")
        await tab.shows("what you saved", "#lab-saved")
        await tab.judge(html=False)


async def test_without_the_providers_page_nothing_is_promised(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        lab = LearnersLab(made)
        await lab.draw()
        await browser.log_in(made.alice)
        shown = (await browser.get("/labs/alice")).text
        assert "Start a lab" in shown
        assert "saved" not in shown
        await browser.post("/labs/alice/create", image=f"{made.family}:1.0.0", size="small")
        await lab.until_pod()
        await lab.ready()
        shown = (await browser.get("/labs/alice")).text
        assert "End the lab" in shown
        assert "Save and end" not in shown
