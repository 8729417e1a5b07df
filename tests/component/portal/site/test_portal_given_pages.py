"""The lab that one was given: who sees the lablet of a class as their own, where they land, and what ends it."""

import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.component.controllers.looking import eventually, when
from tests.component.portal.asking import Setting, setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import INSTRUCTOR_ROLE, LEARNER_ROLE, USER_ROLE
from tests.component.portal.site.assigned import opened
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.classroom import ClassRoom, classroom
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.test_live_streams import stream
from tests.support.apiserver import ApiServer
from vkprovider.lablet import names

KEY = b64encode(os.urandom(32)).decode()


@asynccontextmanager
async def class_with(world: PortalWorld) -> AsyncIterator[tuple[Setting, ClassRoom, Browsing]]:
    """Make a class, and a learner bob who has no right anywhere, with his browser."""
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        classroom(made) as room,
        Browsing(made.client.url) as bob,
    ):
        await bob.log_in(await made.people.person("bob"))
        yield made, room, bob


def cookies(browser: Browsing) -> str:
    return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


async def leads(browser: Browsing) -> str:
    """Return where the front page leads."""
    return (await browser.get("/")).headers["location"]


async def test_a_learner_who_was_given_a_lablet_lands_in_it(world: PortalWorld) -> None:
    """Without any right in the portal: the Role that `assign` writes is enough, and what it opens is that lablet."""
    async with class_with(world) as (made, room, bob):
        for name, learner in (("warm-1", "bob"), ("warm-2", "ann"), ("warm-3", "")):
            await room.lablet(name, learner, message="", state="READY", devices="2/2", shown_name="O'Neil, Bob")
        await room.known(3)
        assert await leads(bob) == "/labs", "it is not open to him yet"
        await opened(world.admin, room.namespace, "warm-1", made.people.prefix)
        mine = f"/lablets/{room.namespace}/warm-1"
        await eventually(lambda: is_led(bob, mine), "he is led to his lab")
        page = (await bob.get(mine)).text
        assert "Your lab is ready" in page
        assert "<p>Hello, Bob O&#39;Neil.</p>" in page
        assert f"Class <strong>{room.namespace}</strong>" in page
        assert f'href="{mine}/consoles/r1"' in page
        for act in ("reset", "hand-in"):
            assert f'formaction="{mine}/{act}"' in page
        assert ">Classes<" not in page
        missing = (await bob.get(f"/lablets/{room.namespace}/warm-9")).text
        for pod in ("warm-2", "warm-3"):
            for path in ("", "/consoles/r1", "/configurations"):
                answer = await bob.get(f"/lablets/{room.namespace}/{pod}{path}")
                assert (answer.status_code, answer.text) == (404, missing)
            assert (await bob.post(f"/lablets/{room.namespace}/{pod}/reset")).status_code == 404
        assert (await bob.post(f"{mine}/stop")).status_code == 404
        async with Browsing(made.client.url) as teacher:
            await teacher.log_in(room.teacher)
            assert (await teacher.get(mine)).status_code == 404, "it is the learner's page"


async def is_led(browser: Browsing, path: str) -> bool:
    return await leads(browser) == path


async def test_several_labs_are_a_list_with_messages_that_changes_by_itself(world: PortalWorld) -> None:
    async with class_with(world) as (made, room, bob):
        listed = (await bob.get("/labs")).text
        assert "You have no lab at the moment." in listed
        assert f"<strong>{made.people.prefix}bob</strong>" in listed
        assert "to your instructors <strong>bob</strong>" in listed
        assert "Tell your instructor that name" in listed
        async with stream(made.client.url, f"mine:{made.people.prefix}bob", Cookie=cookies(bob)) as found:
            _, whole = await found.next("change")
            assert whole["lists"]["my-labs"] == {}
            await room.lablet("warm-1", "bob", state="READY")
            binding = await opened(world.admin, room.namespace, "warm-1", made.people.prefix)
            key = f"lab-{room.namespace}_warm-1"
            await until(found, lambda change: key in str(change["lists"]))
            said = {"metadata": {"annotations": {names.ANNOTATION_MESSAGE: "2026-11-26T17:00:00Z Lunch at noon."}}}
            await world.admin.patch(f"/api/v1/namespaces/{room.namespace}/pods/warm-1", said)
            await until(found, lambda change: "Lunch at noon." in str(change["lists"]))
            await room.lablet("warm-2", "bob", state="READY")
            await opened(world.admin, room.namespace, "warm-2", made.people.prefix)
            await until(found, lambda change: f"lab-{room.namespace}_warm-2" in str(change["lists"]))
            assert await leads(bob) == "/labs"
            page = (await bob.get("/labs")).text
            assert "Nothing here is yours yet" not in page
            assert page.index("warm-1") < page.index("warm-2")
            await world.admin.delete(binding)
            await until(found, lambda change: key in str(change["lists"]["my-labs"].get("gone", [])))
        assert await leads(bob) == f"/lablets/{room.namespace}/warm-2"
        async with stream(made.client.url, f"mine:{made.people.prefix}ann", Cookie=cookies(bob)) as refused:
            assert refused.answer.status_code == 404


async def until(found: object, good: object) -> None:
    """Wait for a change."""
    for _ in range(40):
        _, change = await found.next("change")  # type: ignore[attr-defined]  # (the stream of another module)
        if good(change):  # type: ignore[operator]  # (a condition)
            return
    raise AssertionError("it did not come")


async def test_the_page_ends_when_the_lablet_is_the_next_ones(world: PortalWorld) -> None:
    async with class_with(world) as (made, room, bob):
        path = await room.lablet("warm-1", "bob", state="READY")
        await opened(world.admin, room.namespace, "warm-1", made.people.prefix)
        await eventually(lambda: is_led(bob, f"/lablets/{room.namespace}/warm-1"), "he is led to his lab")
        async with stream(made.client.url, f"given:{room.namespace}/warm-1", Cookie=cookies(bob)) as found:
            _, whole = await found.next("change")
            assert "Your lab is ready" in whole["elements"]["lab-state"]
            await world.admin.patch(path, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "ann"}}})
            kind, _ = await found.next("gone", "change")
            assert kind == "gone"
        assert (await bob.get(f"/lablets/{room.namespace}/warm-1")).status_code == 404, "his Role still stands"


async def test_who_attends_the_class_sees_a_lablet_that_names_them_and_opens_nothing(world: PortalWorld) -> None:
    """Such as one that was given before there were Roles; a Pod that names somebody elsewhere is not theirs."""
    async with class_with(world) as (made, room, bob):
        await room.lablet("warm-1", "bob", state="READY")
        await room.known(1)
        mine = f"/lablets/{room.namespace}/warm-1"
        assert (await bob.get(mine)).status_code == 404, "anybody who makes Pods writes names on them"
        await made.people.allow("bob", LEARNER_ROLE, room.namespace)
        await eventually(lambda: is_led(bob, mine), "he is led to his lab")

        async def opens() -> bool:
            return (await bob.get(mine)).status_code == 200

        await eventually(opens, "it is his: a refusal is remembered for seconds")
        page = (await bob.get(mine)).text
        assert "Ask your instructor to give it to you again." in page
        assert "/consoles/r1" not in page
        assert "formaction" not in page
        assert (await bob.post(f"{mine}/reset")).status_code == 404


async def test_who_may_start_labs_and_was_given_one_finds_both(world: PortalWorld) -> None:
    async with class_with(world) as (made, room, bob):
        await made.people.allow("bob", USER_ROLE)
        await eventually(lambda: is_led(bob, "/labs/bob"), "he may start a lab")
        await room.lablet("warm-1", "bob", state="READY")
        await opened(world.admin, room.namespace, "warm-1", made.people.prefix)
        mine = f"/lablets/{room.namespace}/warm-1"
        await eventually(lambda: is_led(bob, mine), "he is led to his lab")
        assert (await bob.get("/labs/bob")).headers["location"] == "/"
        page = (await bob.get("/labs")).text
        assert mine in page
        assert "Start the lab" in page
        begun = await bob.post("/labs/bob/create", image=f"{made.family}:1.0.0", size="small")
        assert begun.headers["location"] == "/labs/bob"
        await when(lambda: made.running.replica.index.lab("bob") is not None, "the lab is known")
        assert await leads(bob) == "/labs"
        page = (await bob.get("/labs")).text
        assert "/labs/bob" in page
        assert "Start the lab" not in page
        assert 'href="/labs">My labs</a> /' in (await bob.get("/labs/bob")).text


async def test_an_instructor_lands_in_the_one_class(world: PortalWorld) -> None:
    async with class_with(world) as (made, room, _), Browsing(made.client.url) as teacher:
        await room.lablet("warm-1", "bob")
        await room.known(1)
        await teacher.log_in(room.teacher)
        assert await leads(teacher) == room.path
        assert 'href="/classes">Classes</a>' in (await teacher.get(room.path)).text
        async with classroom(made, "monday") as other:
            await made.people.allow("teacher-of-friday", INSTRUCTOR_ROLE, other.namespace)
            await eventually(lambda: is_led(teacher, "/labs"), "there are two classes")
            page = (await teacher.get("/labs")).text
            assert "My classes" in page
            assert f'href="{other.path}"' in page
            assert "Nothing here is yours yet" not in page


@pytest.fixture
async def bench(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with console_bench(portal_server, tmp_path) as bench:
        yield bench


async def test_a_learner_types_resets_and_hands_in_with_the_own_token(bench: Bench) -> None:
    """The provider writes what they ask for; a learner whose Role is gone does none of it."""
    lablet = bench.site.lablet
    header = await bench.people.person("bob")
    pod = f"/api/v1/namespaces/{lablet.namespace}/pods/{lablet.name}"
    await bench.portal.admin.patch(pod, {"metadata": {"annotations": {names.ANNOTATION_USERNAME: "bob"}}})
    binding = await opened(bench.portal.admin, lablet.namespace, lablet.name, bench.people.prefix)
    mine = f"/lablets/{lablet.namespace}/{lablet.name}"
    async with Browsing(bench.url) as bob:
        await bob.log_in(header)
        await eventually(lambda: is_led(bob, mine), "he is led to his lab")
        assert "formaction" in (await bob.get(mine)).text
        async with await bench.screen(cookies(bob), "h0", lab=mine) as screen:
            await screen.shows("h0:~# ")
        archive = await bob.get(f"{mine}/configurations")
        assert archive.headers["content-type"] == "application/zip"
        for act, device in (("explode", "h0"), ("stop", "")):
            assert (await bob.post(f"{mine}/devices/{act}", device=device)).status_code == 404
        unknown = await bob.post(f"{mine}/devices/stop", device="h9")
        assert (unknown.status_code, "Nothing was done." in unknown.text) == (409, True), unknown.text
        stopped = await bob.post(f"{mine}/devices/stop", device="h0")
        assert (stopped.status_code, stopped.headers["location"]) == (303, mine), stopped.text
        await eventually(lambda: shows(bob, mine, "Start it"), "h0 is off on the page")
        assert "Your lab is ready" in (await bob.get(mine)).text
        assert (await bob.post(f"{mine}/devices/start", device="h0")).status_code == 303
        await eventually(lambda: shows(bob, mine, "Start it", there=False), "h0 runs again")
        done = await bob.post(f"{mine}/reset")
        assert (done.status_code, done.headers["location"]) == (303, mine), done.text
        found = await bench.portal.admin.get(pod)
        assert found is not None
        assert names.ANNOTATION_RESET in found["metadata"]["annotations"]
        await bench.portal.admin.delete(binding)
        await eventually(lambda: answers(bob, f"{mine}/reset", 404), "the right is gone")
        await opened_again(bench, lablet.namespace, lablet.name)
        await eventually(lambda: answers(bob, f"{mine}/hand-in", 303), "it is handed in")
        await bench.portal.admin.until(
            pod,
            lambda it: it["metadata"]["annotations"].get(names.ANNOTATION_DESIRED_STATE) == "COLLECTING",
            "is collected",
        )


async def shows(browser: Browsing, path: str, text: str, *, there: bool = True) -> bool:
    return (text in (await browser.get(path)).text) is there


async def answers(browser: Browsing, path: str, status: int) -> bool:
    return (await browser.post(path)).status_code == status


async def opened_again(bench: Bench, namespace: str, name: str) -> None:
    base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles"
    await bench.portal.admin.delete(f"{base}/{quote(names.assignment_name(name))}")
    await opened(bench.portal.admin, namespace, name, bench.people.prefix)
