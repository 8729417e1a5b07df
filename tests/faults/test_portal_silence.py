"""User labs while a watch of the portal stays open and delivers nothing: they are made, and they end, all the same."""

from typing import Final

from tests.component.portal.harness import PortalWorld, Running
from tests.component.portal.wishes import ask
from tests.support.apiserver import until
from vkprovider.domain.userlab.state import UserLabStatus, status_of

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

    assert running.api.silence_watches() >= len(running.replica.objects.all())
    await running.replica.requests.delete("alice", "alice")

    async def is_gone() -> bool:
        return not await portals.namespaces()

    async def is_known() -> bool:
        return running.replica.index.lab("alice") is None

    await until(is_gone, SILENT_S)
    await until(is_known, SILENT_S)
    await portals.until_unlocked()
