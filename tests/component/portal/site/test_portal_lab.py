"""Who sees a lab's page and what it answers, without a browser that runs scripts."""

import os
from base64 import b64encode
from urllib.parse import quote

import pytest

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import INSTRUCTOR_ROLE, LEARNER_ROLE, USER_ROLE
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.labs import EVIL, LearnersLab
from tests.component.portal.site.test_live_streams import stream
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.requests import Rejected

KEY = b64encode(os.urandom(32)).decode()
POSTS = ("create", "extend", "reset", "stop")


async def test_everything_works_without_scripts(world: PortalWorld) -> None:
    """Forms lead back to the page, which shows what came of them."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        lab = LearnersLab(made)
        await lab.draw()
        await browser.log_in(made.alice)
        assert "You have no lab" in (await browser.get("/labs/alice")).text
        image = f"{made.family}:1.0.0"
        refused = await browser.post("/labs/alice/create", image="gone:1", size="small")
        assert refused.status_code == 400
        assert "there is no image &#39;gone:1&#39;" in refused.text
        await browser.get("/labs/alice")
        begun = await browser.post("/labs/alice/create", image=image, size="small")
        assert (begun.status_code, begun.headers["location"]) == (303, "/labs/alice")
        again = await browser.post("/labs/alice/create", image=image)
        assert again.status_code == 409
        assert "is being made; wait" in again.text
        await lab.until_pod()
        await lab.ready()
        page = (await browser.get("/labs/alice")).text
        assert "Your lab is ready" in page
        assert "<script>alert" not in page
        assert made.alice["Authorization"].removeprefix("Bearer ") not in "".join(browser.texts)
        assert (await browser.post("/labs/alice/extend")).headers["location"] == "/labs/alice"
        assert (await browser.post("/labs/alice/reset")).headers["location"] == "/labs/alice"
        assert (await browser.post("/labs/alice/stop")).headers["location"] == "/labs/alice"
        await world.until_gone("alice")


async def test_a_lab_is_for_its_user_its_teachers_and_managers(world: PortalWorld) -> None:
    """Everybody else gets the same page whether there is a lab or not, and changes nothing."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made:
        lab = LearnersLab(made)
        class_ = made.people.namespace
        await made.people.allow("alice", LEARNER_ROLE, class_)
        teacher = await made.people.person("teacher")
        await made.people.allow("teacher", INSTRUCTOR_ROLE, class_)
        bob = await made.people.person("bob", USER_ROLE)
        async with Browsing(made.client.url) as browser:
            await browser.log_in(made.alice)
            assert f"for the class <strong>{class_}</strong>" in (await browser.get(f"/labs/alice?class={class_}")).text
            asked = {"image": f"{made.family}:1.0.0", "class": class_}
            assert (await browser.post("/labs/alice/create", None, **asked)).status_code == 303
            await lab.until_pod()
            await lab.ready()
        seen: dict[str, tuple[int, str]] = {}
        for name, person in (("bob", bob), ("teacher", teacher), ("hub", made.hub)):
            async with Browsing(made.client.url) as browser:
                await browser.log_in(person)
                answer = await browser.get("/labs/alice")
                seen[name] = answer.status_code, answer.text
                nobody = await browser.get("/labs/zoe")
                assert nobody.status_code == (404 if name != "hub" else 200)
                if name == "bob":
                    assert answer.text == nobody.text, "nobody learns that there is a lab"
                    await browser.get("/labs/bob")
                    for path in POSTS:
                        assert (await browser.post(f"/labs/alice/{path}")).status_code == 404
        assert seen["bob"][0] == 404
        assert "The lab of alice" in seen["teacher"][1]
        assert 'formaction="/labs/alice/reset"' in seen["teacher"][1]
        assert "Start a lab" not in seen["teacher"][1]
        assert 'formaction="/labs/alice/stop"' in seen["hub"][1]
        assert 'formaction="/labs/alice/reset"' not in seen["hub"][1]
        async with Browsing(made.client.url) as browser:
            await browser.log_in(made.hub)
            await browser.get("/labs/alice")
            assert (await browser.post("/labs/alice/reset")).status_code == 404
            assert (await browser.post("/labs/alice/stop")).status_code == 303
        await world.until_gone("alice")


@pytest.mark.parametrize("next_class", ["another", None])
async def test_a_page_of_an_instructor_is_over_when_the_lab_is_of_another_class(
    world: PortalWorld, next_class: str | None
) -> None:
    """Who taught the class of the lab before neither sees nor changes the next one, of another class or of none."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        lab, class_ = LearnersLab(made), made.people.namespace
        await made.people.allow("alice", LEARNER_ROLE, class_)
        teacher = await made.people.person("teacher")
        await made.people.allow("teacher", INSTRUCTOR_ROLE, class_)
        asked = made.body(image_list=[f"{made.family}:1.0.0"], **{"class": class_})
        assert (await made.client.ask("POST", "/labs/alice/create", made.alice, asked)).status_code in {201, 303}
        await lab.until_pod()
        await lab.ready()
        await browser.log_in(teacher)
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        async with stream(made.client.url, "lab:alice", Cookie=cookie) as found:
            _, first = await found.next("change")
            assert "/labs/alice/reset" in first["elements"]["lab-acts"]
            record = made.running.replica.index.lab("alice")
            assert record is not None
            path = f"/api/v1/namespaces/{record.record.namespace}"
            await world.admin.patch(path, {"metadata": {"labels": {portalnames.LABEL_CLASS: next_class}}})
            kind, data = await found.next("change", "gone")
            assert (kind, data["topic"]) == ("gone", "lab:alice")
        assert (await browser.get("/labs/alice")).status_code == 404
        requests = made.running.replica.requests
        for ask in (
            requests.extend("alice", "teacher", 60, class_),
            requests.reset("alice", "teacher", class_),
            requests.delete("alice", "teacher", class_),
        ):
            with pytest.raises(Rejected) as refused:
                await ask
            assert refused.value.rejection.grounds is Grounds.UNKNOWN_USER
        assert await world.admin.get(path) is not None
        await requests.extend("alice", "alice", 60, next_class or "")


async def test_a_class_that_does_not_admit_the_learner_refuses_in_a_sentence(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        await browser.log_in(made.alice)
        await browser.get("/labs/alice?class=secret")
        asked = {"image": f"{made.family}:1.0.0", "class": "secret"}
        refused = await browser.post("/labs/alice/create", None, **asked)
        assert refused.status_code == 403
        assert "attend no class &#39;secret&#39;: ask its instructor" in refused.text
        assert await world.namespaces() == []


@pytest.mark.parametrize("path", POSTS)
async def test_nothing_is_done_for_another_site_or_without_a_login(world: PortalWorld, path: str) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        assert (await browser.post(f"/labs/alice/{path}")).status_code == 401
        led = await browser.get("/labs/alice")
        assert led.headers["location"] == "/login?next=/labs/alice"
        await browser.log_in(made.alice)
        await browser.get("/labs/alice")
        assert (await browser.post(f"/labs/alice/{path}", {"Origin": "https://evil.example"})).status_code == 403
        assert (await browser.post(f"/labs/alice/{path}", None, csrf="guessed")).status_code == 403


async def test_an_ingress_without_tokens_has_the_command_in_place_of_consoles(world: PortalWorld) -> None:
    """The page shows everything else; the label of a device is quoted for the shell."""
    secret = "a-secret-of-the-ingress"
    async with (
        setting(world, VKPROVIDER_PORTAL_CALLERS="headers", VKPROVIDER_PORTAL_INGRESS_SECRET=secret) as made,
        Browsing(made.client.url) as browser,
    ):
        lab = LearnersLab(made)
        await lab.draw()
        named = {"X-Portal-Ingress-Secret": secret, "X-Auth-Request-User": "alice"}
        assert "Start a lab" in (await browser.get("/labs/alice", **named)).text
        begun = await browser.post("/labs/alice/create", named, image=f"{made.family}:1.0.0")
        assert begun.status_code == 303
        await lab.until_pod()
        await lab.ready()
        page = (await browser.get("/labs/alice", **named)).text
        await made.people.allow_group("odd-names", USER_ROLE)
        odd = {"X-Portal-Ingress-Secret": secret, "X-Auth-Request-User": EVIL, "X-Auth-Request-Groups": "odd-names"}
        of_odd = await browser.get(f"/labs/{quote(EVIL, safe='')}", **odd)
        assert "You have no lab" in of_odd.text
        assert "<script>alert" not in of_odd.text
        assert "data-console" not in page
        assert "-c lab -- console r1</code>" in page
        assert "-c lab -- console &#39;&lt;script&gt;alert(1)&lt;/script&gt;&#39;</code>" in page
