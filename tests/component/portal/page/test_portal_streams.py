"""The events of a user lab over real HTTP, on the real API server (R002-026 to R002-031, C45)."""

import asyncio
import json

import httpx
import pytest

from tests.component.controllers.looking import when
from tests.component.portal.page.harness import SPAWNER, PageWorld, Running, listening
from tests.component.portal.people import HUB_ROLE, USER_ROLE
from tests.support.apiserver import until
from vkprovider.platform.kube.informer import ALERT
from vkprovider.portal.api.streams import StreamTimes
from vkprovider.portal.pure.record import Ending

IMPORTED, CONVERGED = "vkprovider.io/LabImported", "vkprovider.io/LabConverged"


async def known(running: Running, user: str) -> None:
    await when(lambda: running.index.lab(user), f"the lab of {user} is known")


async def test_a_creation_is_told_from_request_to_end(world: PageWorld) -> None:
    running, user = await world.replica(), world.user("alice")
    alice = await world.person(user, USER_ROLE)
    request = await world.lab(user)
    async with listening(running.url, user, alice) as listener:
        assert listener.answer.headers["X-Accel-Buffering"] == "no"
        assert listener.answer.headers["Cache-Control"] == "no-store"
        first = await listener.until("info")
        assert first.data == "Lab asked for: netlab:1.0"
        pod = await world.pod(user, request)
        await listener.until("info", "objects are created")
        await world.event(pod, "Started", "the lab is asked to start")
        await listener.until("info", "Started: the lab is asked to start")
        await world.event(pod, "ImportWarned", "no such image", type_="Warning")
        last = await listener.until("error", "ImportWarned: no such image")
        await world.waiting(pod, "ImportingLab")
        state = await listener.until("info", "ImportingLab")
        assert state.id == last.id, "a present state moves no position"
        await world.condition(pod, IMPORTED, devices="1/4")
        assert (await listener.until("progress")).data == "35"
        await listener.until("info", "The lab is imported")
        await listener.until("info", "Devices boot: 1 of 4")
        await world.condition(pod, IMPORTED, devices="3/4")
        assert (await listener.until("progress")).data == "65"
        await world.condition(pod, CONVERGED, devices="4/4")
        assert (await listener.until("progress")).data == "80"
        await world.over(user, request)
        assert [(each.event, each.data) for each in await listener.rest()][-2:] == [
            ("progress", "100"),
            ("complete", "complete"),
        ]


async def test_a_replica_that_hears_nothing_finds_the_lab_of_the_one_who_asks(world: PageWorld) -> None:
    """Another replica has made it: neither the stream nor a poll says 404, and nobody asks without a limit."""
    running, user, other = await world.replica(), world.user("alice"), world.user("bob")
    alice, bob = await world.person(user, USER_ROLE), await world.person(other, USER_ROLE)
    running.api.swallow_watches()
    request = await world.lab(user)
    await world.pod(user, request)
    async with listening(running.url, user, alice) as listener:
        assert (await listener.until("info")).data == "Lab asked for: netlab:1.0"
        await listener.until("info", "objects are created")
    async with httpx.AsyncClient(timeout=60) as http:
        polled = await http.get(f"{running.url}{SPAWNER}/user-status", headers=alice)
        assert polled.status_code == 200
        assert polled.json()["username"] == user
        asked = len(running.api.asked)
        for _ in range(20):
            none = await http.get(f"{running.url}{SPAWNER}/user-status", headers=bob)
            assert none.status_code == 404
        looks = [each for each in running.api.asked[asked:] if "vkprovider.io/user" in each.query]
        assert 1 <= len(looks) <= 12, "half a look a second, and five at first"
        assert "Age" not in polled.headers

        async def is_told() -> bool:
            told = await http.get(f"{running.url}{SPAWNER}/user-status", headers=alice)
            return int(told.headers.get("Age", "0")) > 0

        await until(is_told, ALERT.silence_s + 15)


async def test_who_comes_back_to_another_replica_gets_what_follows_and_nothing_twice(world: PageWorld) -> None:
    one, two, user = await world.replica(), await world.replica(), world.user("bob")
    bob = await world.person(user, USER_ROLE)
    request = await world.lab(user)
    pod = await world.pod(user, request)
    await world.event(pod, "Started", "m")
    await known(two, user)
    async with listening(one.url, user, bob) as listener:
        last = await listener.until("info", "Started")
    await world.event(pod, "ImportWarned", "late", type_="Warning")
    async with listening(two.url, user, bob, last_id=last.id) as listener:
        found = await listener.next()
        assert (found.event, found.data) == ("error", "ImportWarned: late")
        await world.over(user, request, "failed", "No worker.")
        rest = await listener.rest()
    assert [(each.event, each.data) for each in rest] == [("error", "No worker."), ("failed", "failed")]
    async with listening(one.url, user, bob, last_id=rest[-1].id, status=204):
        pass
    async with listening(one.url, user, bob) as listener:
        again = await listener.rest()
    lines = [each.data for each in again if each.event != "progress"]
    assert lines[0] == "Lab asked for: netlab:1.0"
    assert lines[-3:] == ["ImportWarned: late", "No worker.", "failed"]
    assert again[-1].id, rest[-1].id


async def test_a_deletion_ends_with_the_namespace_and_who_asks_then_gets_404(world: PageWorld) -> None:
    running, user = await world.replica(), world.user("carol")
    carol = await world.person(user, USER_ROLE)
    request = await world.lab(user, ago_s=300)
    await world.pod(user, request)
    await world.over(user, request)
    await known(running, user)
    await world.note(user, Ending(id="delete-1", at=request.at + 300, by="hub"))
    await when(lambda: (lab := running.index.lab(user)) and lab.record.ending, "the deletion is known")
    async with listening(running.url, user, carol) as listener:
        await listener.until("info", "to be deleted")
        await world.gone(user)
        rest = await listener.rest()
    assert [(each.event, each.data) for each in rest][-2:] == [("progress", "100"), ("complete", "complete")]
    async with listening(running.url, user, carol, status=404) as listener:
        assert json.loads(await listener.answer.aread())["detail"][0]["type"] == "unknown_user"


async def test_a_creation_whose_lab_is_deleted_fails(world: PageWorld) -> None:
    running, user = await world.replica(), world.user("dave")
    dave = await world.person(user, USER_ROLE)
    await world.lab(user)
    async with listening(running.url, user, dave) as listener:
        await listener.until("info")
        await world.note(user, Ending(id="delete-1", at=1, by="hub"))
        rest = await listener.rest()
    assert [each.event for each in rest] == ["error", "failed"]


async def test_a_replica_that_learns_of_an_operation_late_does_not_tell_of_the_one_before(world: PageWorld) -> None:
    """A client that has just been told 202 by one replica asks another, whose watch is late."""
    running, user = await world.replica(times=StreamTimes(settle_s=20.0)), world.user("erin")
    erin = await world.person(user, USER_ROLE)
    request = await world.lab(user, ago_s=300)
    await world.over(user, request)
    await known(running, user)
    async with asyncio.TaskGroup() as group:
        group.create_task(_later(world, user, request.at))
        async with listening(running.url, user, erin) as listener:
            first = await listener.until("info")
    assert first.data == "The lab is to be deleted"


async def _later(world: PageWorld, user: str, at: int) -> None:
    await asyncio.sleep(0.5)
    await world.note(user, Ending(id="delete-1", at=at + 300, by="hub"))


async def test_listeners_ask_the_api_server_for_nothing(world: PageWorld) -> None:
    running, user = await world.replica(), world.user("frank")
    frank = await world.person(user, USER_ROLE)
    request = await world.lab(user)
    pod = await world.pod(user, request)
    await known(running, user)
    async with listening(running.url, user, frank) as listener:
        await listener.until("info")
        before = len(running.api.asked)
        for number in range(5):
            await world.event(pod, f"R{number}", "m")
            await listener.until("info", f"R{number}")
        asked = [each.line for each in running.api.asked[before:]]
    assert [line for line in asked if "reviews" not in line and "/leases" not in line] == []


async def test_a_withdrawn_right_ends_a_stream(world: PageWorld) -> None:
    running, user = await world.replica(), world.user("grace")
    grace = await world.person(user)
    binding = await world.people.allow(user, USER_ROLE)
    await world.lab(user)
    async with listening(running.url, user, grace) as listener:
        await listener.until("info")
        await world.admin.delete(binding)
        async with asyncio.timeout(60):
            assert await listener.rest() == []
    async with listening(running.url, user, grace, status=403):
        pass


@pytest.mark.parametrize("role", ["", HUB_ROLE])
async def test_nobody_else_follows_a_lab(world: PageWorld, role: str) -> None:
    running, user = await world.replica(), world.user("heidi")
    other = await world.person("eve", USER_ROLE, *([role] if role else []))
    await world.lab(user)
    await known(running, user)
    answers = []
    for whose in (user, "nobody-at-all"):
        async with listening(running.url, whose, other, status=403) as listener:
            answers.append(await listener.answer.aread())
    assert answers[0] == answers[1]


async def test_the_end_of_the_process_ends_streams(world: PageWorld) -> None:
    running, user = await world.replica(), world.user("ivan")
    ivan = await world.person(user, USER_ROLE)
    await world.lab(user)
    async with listening(running.url, user, ivan) as listener:
        await listener.until("info")
        stopping = asyncio.create_task(running.stop())
        assert await listener.rest() == []
        await stopping
