"""User labs while watches of the portal stay open and deliver nothing: they are made and they end all the same.

With all watches swallowed, later ones too, polls, streams and the class page were right again after 115 to 240 s.
"""

import asyncio
import time
from typing import Any, Final

import aiohttp

from tests.component.portal.harness import PortalWorld, Running
from tests.component.portal.wishes import ask
from tests.support.apiserver import until
from vkprovider.portal.pure.facts import UserLabStatus, status_of

SILENT_S: Final = 45.0
"""The time after which a change is seen although a watch says nothing."""


async def shipped(world: PortalWorld) -> Running:
    """Start a replica with the times that users have."""
    return await world.replica(times={}, LEADER_LEASE_TTL="15")


async def test_a_portal_alone_whose_watches_are_silent_makes_and_ends_labs(portals: PortalWorld) -> None:
    running = await shipped(portals)
    name = await portals.define()
    assert running.api.silence_watches() >= len(running.replica.objects.all())
    await ask(portals, running, "alice", name)

    async def is_ready() -> bool:
        told = running.replica.index.lab("alice")
        return told is not None and status_of(told) is UserLabStatus.RUNNING

    async def is_complete() -> bool:
        found = await portals.note("alice", "operation")
        return found is not None and found["phase"] == "complete"

    await until(is_complete, SILENT_S)
    await until(is_ready, SILENT_S)
    await portals.until_unlocked()
    assert len(portals.stage.made) == 1

    async def watches_again() -> bool:
        return running.api.watching >= len(running.replica.objects.all())

    await until(watches_again, SILENT_S)  # one that was silent too long is listed first
    assert running.api.silence_watches() >= len(running.replica.objects.all())
    await running.replica.requests.delete("alice", "alice")

    async def is_gone() -> bool:
        return not await portals.namespaces()

    async def is_known() -> bool:
        return running.replica.index.lab("alice") is None

    await until(is_gone, SILENT_S)
    await until(is_known, SILENT_S)
    await portals.until_unlocked()


RIGHT_S: Final = 60.0
"""The time after which all that a page, poll or stream shows is right again."""


class Watching:
    """Asks `/ready` each half second, as kubelet does each ten."""

    def __init__(self, running: Running) -> None:
        self._url = f"http://127.0.0.1:{running.page.port}/ready"
        self.statuses: set[int] = set()
        self.notes: set[str] = set()

    async def look(self) -> None:
        """Look for ever."""
        async with aiohttp.ClientSession() as http:
            while True:
                async with http.get(self._url) as answer:
                    told: dict[str, Any] = await answer.json()
                self.statuses.add(answer.status)
                self.notes.update(told.get("notes", ()))
                await asyncio.sleep(0.5)


async def test_all_that_is_shown_is_right_again_within_a_minute_without_any_watch(portals: PortalWorld) -> None:
    """Two replicas, none of which hears anything: a lab begins, a lablet of a class comes, a Pod is deleted."""
    one, two = await shipped(portals), await shipped(portals)
    name = await portals.define()
    class_, pods = f"{name}-small", f"/api/v1/namespaces/class-{portals.run}/pods"
    await portals.stranger(f"class-{portals.run}")
    account = f"/api/v1/namespaces/class-{portals.run}/serviceaccounts"
    await portals.admin.create(account, {"metadata": {"name": "default"}})
    watching = [Watching(one), Watching(two)]
    looking = [asyncio.create_task(each.look()) for each in watching]
    for running in (one, two):
        running.api.swallow_watches()
    began_s, right_s = time.monotonic(), dict[str, float]()

    async def right(what: str, is_right: Any) -> None:
        async def look() -> bool:
            return bool(is_right())

        await until(look, RIGHT_S)
        right_s[what] = round(time.monotonic() - began_s, 1)

    await ask(portals, one, "alice", name)
    assert one.replica.index.lab("alice") is not None, "its own write is shown at once"
    caller = portals.caller("alice")
    await two.replica.requests.find(caller)
    assert two.replica.index.lab("alice") is not None, "the other one finds it when its owner asks"
    lablet = {"runtimeClassName": class_, "containers": [{"name": "lab", "image": f"{name}:1.0.0"}]}
    await portals.admin.create(pods, {"metadata": {"name": "lab-1"}, "spec": lablet})

    def runs(running: Running) -> bool:
        told = running.replica.index.lab("alice")
        return told is not None and status_of(told) is UserLabStatus.RUNNING

    def listed(running: Running) -> bool:
        return running.replica.lablets.pod(f"class-{portals.run}", "lab-1") is not None

    await asyncio.gather(
        right("a lab runs, where it was asked for", lambda: runs(one)),
        right("a lab runs, at the other replica", lambda: runs(two)),
        right("a lablet of a class", lambda: listed(one) and listed(two)),
    )
    began_s = time.monotonic()
    await portals.admin.delete(portals.pod("alice"), grace_s=0)
    await asyncio.gather(
        right("a Pod was deleted, at one", lambda: not runs(one)),
        right("a Pod was deleted, at the other", lambda: not runs(two)),
    )
    for task in looking:
        task.cancel()
    print(right_s)  # noqa: T201 (the figures are the point)
    assert [each.statuses for each in watching] == [{200}, {200}], "silence empties no Service"
    for each in watching:
        assert any(
            "nothing is heard from the API server of" in note and "namespaces for" in note for note in each.notes
        )
