"""The site behind an ingress that names its visitors: nobody logs in here."""

import pytest

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import USER_ROLE
from tests.component.portal.site.browsing import Browsing
from vkprovider.portal.api.callers import GROUPS, PROOF, USER

SECRET = "s" * 32


def named(user: str, *groups: str) -> dict[str, str]:
    return {PROOF: SECRET, USER: user, GROUPS: ",".join(groups)}


async def test_an_ingress_names_the_visitor(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_CALLERS="headers", VKPROVIDER_PORTAL_INGRESS_SECRET=SECRET) as made:
        group = await made.people.allow_group("students", USER_ROLE)
        async with Browsing(made.client.url) as browser:
            front = await browser.get("/", **named("bob", group))
            assert (front.status_code, front.headers["location"]) == (303, "/labs/bob")
            lost = await browser.get("/nowhere", **named("bob", group))
            assert lost.status_code == 404
            assert ">bob</span>" in lost.text
            assert "Log out" not in lost.text
            assert (await browser.get("/login", **named("bob", group))).headers["location"] == "/"
            code = await browser.ask("POST", "/login/code", {**named("bob"), "Accept": "application/json"})
            assert code.status_code == 403
            assert "without a code" in code.json()["message"]
            assert browser.cookies == {}


@pytest.mark.parametrize(
    "headers", [{}, {PROOF: "x" * 32, USER: "bob"}, {PROOF: SECRET}, {PROOF: SECRET, USER: "system:admin"}]
)
async def test_nobody_comes_in_beside_the_ingress(world: PortalWorld, headers: dict[str, str]) -> None:
    running = await world.replica(VKPROVIDER_PORTAL_CALLERS="headers", VKPROVIDER_PORTAL_INGRESS_SECRET=SECRET)
    async with Browsing(f"http://127.0.0.1:{running.page.port}") as browser:
        for path in ("/", "/nowhere"):
            answer = await browser.get(path, **headers)
            assert answer.status_code == 401, path


async def test_a_name_with_markup_is_shown_as_text(world: PortalWorld) -> None:
    running = await world.replica(VKPROVIDER_PORTAL_CALLERS="headers", VKPROVIDER_PORTAL_INGRESS_SECRET=SECRET)
    async with Browsing(f"http://127.0.0.1:{running.page.port}") as browser:
        answer = await browser.get("/nowhere", **named('<script>alert("1")</script>'))
        assert "<script>alert" not in answer.text
        assert "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;" in answer.text
        mine = await browser.get("/labs", **named('<script>alert("1")</script>'))
        assert "<script>alert" not in mine.text
        assert "You are logged in as <strong>&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;</strong>" in mine.text


async def test_a_form_is_bound_to_its_visitor(world: PortalWorld) -> None:
    running = await world.replica(VKPROVIDER_PORTAL_CALLERS="headers", VKPROVIDER_PORTAL_INGRESS_SECRET=SECRET)
    async with Browsing(f"http://127.0.0.1:{running.page.port}") as browser:
        await browser.get("/nowhere", **named("bob"))
        of_bob = browser.csrf
        assert (await browser.post("/logout", named("eve"), csrf=of_bob)).status_code == 403
        assert (await browser.post("/logout", named("bob"), csrf=of_bob)).status_code == 303
