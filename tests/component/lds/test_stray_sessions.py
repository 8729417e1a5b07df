"""Sessions that no row names: archived by the replica that leads, never on doubt; against the simulated LDS."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.support.lds_simulator import FORM, TOKEN
from tests.support.scripted import ScriptedServer, refuse
from vkprovider.lablet import names
from vkprovider.labs.controllers.session.inbox import Inbox
from vkprovider.labs.controllers.session.strays import StraySessions
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.intent import Definition
from vkprovider.labs.pure.session.delivery import Session, Terms
from vkprovider.labs.pure.session.inbox import SessionEvents
from vkprovider.labs.settings.services import LdsSettings as ClientSettings
from vkprovider.platform import wellknown
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import EventRecorder
from vkprovider.platform.runtime.context import Context
from vkpsim.http.faults import Fault
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

HOUR_S = 3600


def strays_of(
    ctx: Context, deployments: Deployments, inbox: Inbox, *, live: Callable[[], list[Session]], leads: bool
) -> StraySessions:
    """Make the collaborator of a replica that knows the definition `d`, whose form is `FORM`."""
    content = Definition("d", "u", "", terms=Terms(form=FORM))
    return StraySessions(ctx, deployments, inbox, {"d": content}, live=live, leads=lambda: leads)


class World:
    """One deployment, one replica that looks after strays, and the rows of everybody."""

    def __init__(
        self, simulator: LdsSimulator, server: ScriptedServer, kube: KubeClient, *, leads: bool = True
    ) -> None:
        self.simulator = simulator
        self.server = server
        self.deployments = Deployments(ClientSettings(path="/nowhere", url=simulator.url, token=TOKEN))
        ctx = Context(kube, EventRecorder(kube, component="test", instance="r"), "i", "r", "n")
        self.inbox = Inbox(ctx, lambda: leads, changed=lambda _: None, claimed=lambda _: False)
        self.mine: list[Session] = []
        self.strays = strays_of(ctx, self.deployments, self.inbox, live=lambda: self.mine, leads=leads)

    async def make(
        self,
        key: str,
        *,
        owner: str = names.mark("i"),
        old: bool = True,
        username: str = "ann",
        start: datetime | None = None,
        form: str = FORM,
    ) -> str:
        now = start or datetime.now(UTC)
        client = self.deployments.client("default")
        made = await client.create_session_with_part(
            username, now, now + timedelta(hours=1), form, client_key=key, owner=owner
        )
        if old:
            self.simulator.world.sessions[made.id].created_unix_s -= HOUR_S
        return made.id

    def rows(self, *sessions: Session, installation: str = "i") -> None:
        """Have the next question after all claims answered."""
        named = {s.key: Claim(s.key, "a", "p", "d", "u", "1", "x", session=s) for s in sessions}
        data, _ = document.write(document.StoredClaims(named), worker="w1", installation="i")
        annotations = {wellknown.ANNOTATION_INSTALLATION: installation}
        item = {"metadata": {"name": names.claims_name("w1"), "annotations": annotations}, "data": data}

        async def answer(_: web.Request) -> web.Response:
            return web.json_response({"metadata": {}, "items": [item]})

        self.no_workers()
        self.server.next(answer, when="GET")

    def no_workers(self) -> None:
        """Have the next question after all CMLWorkers answered."""

        async def answer(_: web.Request) -> web.Response:
            return web.json_response({"metadata": {}, "items": []})

        self.server.next(answer, when="GET")

    @property
    def live(self) -> set[str]:
        return {s.id for s in self.simulator.world.sessions.values() if not s.archived}


@pytest.fixture
async def simulator() -> AsyncIterator[LdsSimulator]:
    async with LdsSimulator(LdsSettings(token=TOKEN)) as simulator:
        yield simulator


@pytest.fixture
async def world(simulator: LdsSimulator, server: ScriptedServer, kube: KubeClient) -> AsyncIterator[World]:
    world = World(simulator, server, kube)
    yield world
    await world.deployments.close()


def session(key: str, **known: Any) -> Session:
    return Session("default", key, "ann", **known)


async def test_only_what_no_row_names_is_archived(world: World) -> None:
    by_id, by_key, stray = [await world.make(f"pod-{number}", username=f"u{number}") for number in range(3)]
    young = await world.make("pod-3", old=False, username="u3")
    others = await world.make("pod-4", owner=names.mark("another"), username="u4")
    world.rows(session("another-key", id=by_id), session("pod-1"))
    await world.strays.sweep()
    assert world.live == {by_id, by_key, young, others}
    assert stray not in world.live


@pytest.mark.parametrize("doubt", ["foreign", "refused"])
async def test_nothing_is_archived_on_doubt(world: World, doubt: str) -> None:
    made = await world.make("pod-0")
    if doubt == "foreign":
        world.rows(installation="another")
    else:
        world.server.next(refuse(503, "not now"), when="GET")
    await world.strays.sweep()
    assert world.live == {made}
    world.rows()
    await world.strays.sweep()
    assert world.live == set(), "the next sweep, which knows, finds it"


async def test_who_does_not_lead_counts_and_archives_nothing(
    simulator: LdsSimulator, server: ScriptedServer, kube: KubeClient
) -> None:
    world = World(simulator, server, kube, leads=False)
    mine, other = await world.make("pod-0", username="u0"), await world.make("pod-1", username="u1")
    world.mine = [session("pod-0", id=mine)]
    await world.strays.sweep()
    assert world.strays.elsewhere == {"default": 1}
    assert world.live == {mine, other}
    assert server.seen == []
    await world.deployments.close()


async def test_one_known_by_its_events_only_is_archived_where_sessions_carry_no_owner(
    server: ScriptedServer, kube: KubeClient
) -> None:
    """Without extensions a create whose answer was lost leaves a session that is known by its events alone."""
    bare = LdsSettings(token=TOKEN, client_keys=False, owners=False)
    async with LdsSimulator(bare) as simulator:
        world = World(simulator, server, kube)
        now = datetime.now(UTC).replace(microsecond=0)
        lost = await world.make("k-1", start=now)
        others = {
            await world.make("k-2", start=now, username="eve"),
            await world.make("k-3", start=now + timedelta(seconds=1)),  # ann's, at another installation
            await world.make("k-4", start=now, form="another"),
        }
        heard = int(now.timestamp()) - HOUR_S
        for each in ("a/b", lost, *others):
            world.inbox.rows[each] = SessionEvents(each, simulator.url, heard, started=heard)
        slot_start = int(now.timestamp())
        world.rows(session("pod-0", id="the-next-one", slot_start=slot_start, slot_end=slot_start + HOUR_S))
        await world.strays.sweep()
        assert world.live == others
        await world.deployments.close()


async def test_one_that_a_claim_names_by_its_key_alone_is_not_archived_when_its_events_are_heard(
    server: ScriptedServer, kube: KubeClient
) -> None:
    """The replica died before the claim had the id; it asks for the session once more, by the key."""
    async with LdsSimulator(LdsSettings(token=TOKEN, owners=False)) as simulator:
        world = World(simulator, server, kube)
        now = datetime.now(UTC).replace(microsecond=0)
        made, stray = await world.make("pod-0", start=now), await world.make("pod-1", start=now)
        heard, slot_start = int(now.timestamp()) - HOUR_S, int(now.timestamp())
        for each in (made, stray):
            world.inbox.rows[each] = SessionEvents(each, simulator.url, heard, started=heard)
        world.rows(session("pod-0", slot_start=slot_start, slot_end=slot_start + HOUR_S))
        await world.strays.sweep()
        assert world.live == {made}
        await world.deployments.close()


async def test_a_deployment_that_does_not_answer_is_asked_once_in_a_sweep(
    server: ScriptedServer, kube: KubeClient
) -> None:
    async with LdsSimulator(LdsSettings(token=TOKEN, client_keys=False, owners=False)) as simulator:
        world = World(simulator, server, kube)
        heard = int(datetime.now(UTC).timestamp()) - HOUR_S
        for number in range(20):
            world.inbox.rows[f"s-{number}"] = SessionEvents(f"s-{number}", simulator.url, heard, started=heard)
        simulator.faults.add(Fault(kind="status", status=400, route="session", count=50), simulator.now())
        world.rows()
        await world.strays.sweep()
        asked = [entry for entry in simulator.log.entries if "/sessions/s-" in entry.path]
        assert len(asked) == 1
        await world.deployments.close()


async def test_a_session_that_cannot_be_archived_stops_no_other(world: World) -> None:
    first, second = await world.make("pod-0", username="u0"), await world.make("pod-1", username="u1")
    world.simulator.faults.add(Fault(kind="status", route="archive", status=400, count=1), world.simulator.now())
    world.rows()
    await world.strays.sweep()
    assert len(world.live & {first, second}) == 1


async def test_deployment_that_is_taken_out_of_the_file_during_a_sweep_is_left_out(
    kube: KubeClient, tmp_path: Path
) -> None:
    path = tmp_path / "deployments.yaml"

    def write(urls: dict[str, str]) -> None:
        entries = [{"id": name, "base_url": url, "capacity": 1} for name, url in urls.items()]
        path.write_text(json.dumps({"lds_deployments": entries}))

    delay = Fault(kind="delay", delay_s=0.3)
    async with LdsSimulator(LdsSettings(token=TOKEN), faults=(delay,)) as simulator:
        write({"a": simulator.url, "b": f"{simulator.url}/b"})
        deployments = Deployments(ClientSettings(path=str(path), token=TOKEN))
        ctx = Context(kube, EventRecorder(kube, component="test", instance="r"), "i", "r", "n")
        inbox = Inbox(ctx, lambda: False, changed=lambda _: None, claimed=lambda _: False)
        strays = strays_of(ctx, deployments, inbox, live=list, leads=False)
        sweep = asyncio.create_task(strays.sweep())
        await asyncio.sleep(0.1)
        write({"a": simulator.url})
        assert await deployments.reload()
        await sweep
        assert set(strays.elsewhere) == {"a"}
        await deployments.close()
