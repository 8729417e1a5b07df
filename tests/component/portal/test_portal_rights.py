"""Rights used are rights granted, by the audit log of the API server (R002-003, 006)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.component.controllers.looking import eventually
from tests.component.portal.asking import Client
from tests.component.portal.harness import ACCOUNT, SOON, PortalWorld, Running, install, open_world
from tests.component.portal.people import HUB_ROLE, INSTRUCTOR_ROLE, RBAC, People
from tests.component.portal.test_portal_classes import until
from tests.component.portal.test_portal_warm import config, until_warm
from tests.component.portal.wishes import ask
from tests.support import apiserver as real
from tools import rights
from vkprovider.doctor.rights import SHIPPED_NAMESPACE, rights_of
from vkprovider.shipped import find_manifests


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.ApiServer]:
    with real.running(tmp_path_factory.mktemp("audited"), audit=True) as server:
        install(server)
        yield server


async def show_instructors(world: PortalWorld, people: People, running: Running, family: str) -> None:
    """Have the instructors of a class change while there is a lab of it."""
    await world.admin.create("/api/v1/namespaces", {"metadata": {"name": "friday"}})
    await people.allow("teacher", INSTRUCTOR_ROLE, "friday")
    await ask(world, running, "eve", family, class_="friday")
    await until(world, "eve", ["teacher"])
    helper = await people.allow("helper", INSTRUCTOR_ROLE, "friday")
    await until(world, "eve", ["helper", "teacher"])
    await world.admin.delete(helper)
    await world.admin.delete(f"{RBAC}/namespaces/friday/rolebindings")
    await until(world, "eve", None)


async def test_no_right_is_granted_that_is_not_used_and_none_used_beyond(
    audited: real.ApiServer, tmp_path: Path
) -> None:
    async with open_world(audited, tmp_path) as world:
        world.takes_over_s = SOON
        people = People(world.admin)
        await people.open()
        hub = await people.person("hub", HUB_ROLE)
        family = f"warm-{world.run}"
        running = await world.replica(config=config(family, 1))
        dying = await world.replica(config=config(family, 1))
        await world.define(family)
        await until_warm(running, 1)
        await ask(world, running, "alice", family)  # takes the warm one
        world.stage.boots = False
        await ask(world, running, "bob", family)
        await world.admin.until(world.pod("bob"), lambda pod: pod["spec"].get("nodeName"))
        await world.stage.ready(world.pod("bob"), state="False", phase="Failed")
        await world.until_phase("bob", "failed")
        await ask(world, running, "bob", family)  # replaces the failed one
        held = asyncio.Event()
        dying.api.fault(r"^POST .*/pods$", first=lambda _: held.wait())  # what the other replica finds undone
        await ask(world, dying, "dora", family)

        async def asked() -> bool:
            return bool(dying.api.matching(r"^POST .*/pods$"))

        await eventually(asked, "its Pod is about to be made")
        await dying.crash()

        async def told() -> bool:
            events = await world.admin.items(f"{world.namespace('dora')}/events")
            return any(event["reason"] == "UserLabTakenOver" for event in events)

        await eventually(told, "the other replica goes on, and keeps the lock while the lab boots")
        await world.stranger("nublado-carol")
        with pytest.raises(Exception, match="carol"):
            await ask(world, running, "carol", family)
        world.stage.boots = True
        await world.until_phase("bob", "complete")
        assert (await Client(running, "sqr066").ask("GET", "/labs", hub)).status_code == 200
        await show_instructors(world, people, running, family)
        await running.replica.requests.delete("bob", "hub")
        await world.until_gone("bob")
        await people.close()
    manifest = (find_manifests() / "components" / "portal" / "rbac.yaml").read_text()
    lines = audited.audit_log.read_bytes().splitlines()
    offered = rights.offers(manifest)
    uses = rights.uses_of(rights_of(manifest, SHIPPED_NAMESPACE), offered, lines, ACCOUNT)
    assert uses.granted
    # No audit log shows what is bound, and an Event is patched when it is repeated within ten minutes.
    unused = {(right.verb, right.resource) for right in uses.unused}
    assert unused <= {("bind", "clusterroles"), ("patch", "events")}, uses.table()
    assert not uses.beyond, uses.table()
