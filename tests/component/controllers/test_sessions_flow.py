"""Sessions: provisioned, started and ended by events, collected from, graded, archived; strays."""

import time
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import yaml

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import Running
from tests.support.apiserver import CONFIG_MAPS, LOGINS, SECRETS
from tests.support.topologies import topology
from tunnels.outgoing import Guard
from vkprovider.lablet.inputs import NOTHING
from vkprovider.labs.lds.client import LdsClient, open_deployment
from vkprovider.labs.lds.spi import LabDelivery
from vkprovider.labs.lds.wire import LabSessionInfo
from vkprovider.labs.pure.session.inbox import EventOutcome, SessionEvent
from vkpsim.http.faults import Fault
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

PORT = topology({"r1": "iosv"}, {"r1": ["serial:4000"]})
TOKEN = "token-of-the-lds"
EVENTS = CONFIG_MAPS + "?labelSelector=vkprovider.io%2Fcomponent%3Dsession-events"
CONFIGS = CONFIG_MAPS + "?labelSelector=vkprovider.io%2Fcomponent%3Dconfigs"


@pytest.fixture
async def lds(world: World) -> LdsSimulator:
    return await world.stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN)))


async def start(world: World, lds: LdsSimulator, *, grader: bool = False) -> Running:
    url = f"{lds.url}/grade" if grader else ""
    return await world.replica(
        LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN, VKPROVIDER_GRADER_URL=url, VKPROVIDER_GRADER_TOKEN=TOKEN
    )


async def lend(world: World, **more: Any) -> Lablet:
    """Make a lablet for alice; it has a console port."""
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(PORT, **more)
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    return lablet


def said(lablet: Lablet, session: str, kind: Literal["started", "ended"]) -> SessionEvent:
    return SessionEvent(session, kind, int(time.time()), "https://lds", f"{lablet.uid}-{kind}")


async def test_session_is_made_with_its_devices_before_the_lablet_is_ready(world: World, lds: LdsSimulator) -> None:
    await start(world, lds)
    lablet = await lend(world)
    [session] = lds.world.sessions.values()
    assert session.username == "alice"
    [device] = session.devices
    assert (device.host, device.port) == ("198.51.100.7", 2000)
    pod = await lablet.ready()
    assert pod["metadata"]["annotations"]["vkprovider.io/lds-session-id"] == session.id
    assert condition(pod, "vkprovider.io/SessionReady")["status"] == "True"
    await lablet.delete()
    await lablet.gone()
    assert session.archived


async def test_lablet_whose_definition_is_not_known_yet_is_given_no_session(world: World, lds: LdsSimulator) -> None:
    """It may want none; and one that it has is kept."""
    running = await start(world, lds)
    lablet = await lend(world)
    claim = running.replica.fleet.items[lablet.worker].claims.claims[lablet.uid]
    before = msgspec.structs.replace(claim, session=None)
    unread = {"definition": "not-read-yet"}
    for found, wanted in (
        (before, True),
        (msgspec.structs.replace(before, **unread), False),
        (msgspec.structs.replace(claim, **unread), True),
    ):
        assert running.replica.deliveries.delivery(found, NOTHING, archive_failed=False).wanted is wanted


async def test_events_that_any_replica_hears_reach_the_lablet(world: World, lds: LdsSimulator) -> None:
    running = await start(world, lds)
    listener = await start(world, lds)
    lablet = await lend(world)
    [session] = lds.world.sessions.values()
    for replica in (running, listener):
        await when(lambda inbox=replica.replica.inbox: inbox.known(session.id), "its watch shows the session")  # type: ignore[misc]
        outcome = await replica.replica.inbox.accept(said(lablet, session.id, "started"))
        assert outcome in {EventOutcome.ACCEPTED, EventOutcome.DUPLICATE}
    await lablet.until(lambda pod: pod["metadata"]["annotations"]["vkprovider.io/state"] == "RUNNING")
    pod = await lablet.ready()
    assert condition(pod, "vkprovider.io/SessionStarted")["status"] == "True"
    await listener.replica.inbox.accept(said(lablet, session.id, "ended"))
    await world.until_event("Collected", lablet.name)
    await world.until_event("SessionArchived", lablet.name)


async def test_event_of_an_unknown_session_is_noted_and_asked_for_again(world: World, lds: LdsSimulator) -> None:
    running = await start(world, lds)
    await world.worker()
    stranger = SessionEvent("s-unknown", "started", int(time.time()), "https://lds", "e-1")
    outcome = await running.replica.inbox.accept(stranger)
    assert outcome.retry
    assert len(await world.admin.items(EVENTS)) == 1
    await when(running.replica.inbox.strays, "the stray is known by the watch")
    world.ahead_s = 7 * 86400
    await running.replica.inbox.prune()
    assert await world.admin.items(EVENTS) == []


async def test_work_is_collected_graded_and_the_lablet_ends(world: World, lds: LdsSimulator) -> None:
    running = await start(world, lds, grader=True)
    lablet = await lend(world)
    await lablet.annotate(desired_state="COLLECTING")
    await world.until_event("Collected", lablet.name)
    graded = await world.until_event("Graded", lablet.name)
    assert "passed" in graded["message"]
    [kept] = await world.admin.items(CONFIGS)
    assert lablet.uid in str(kept["metadata"])
    await running.replica.archive.sweep()
    assert len(await world.admin.items(CONFIGS)) == 1
    world.ahead_s = 8 * 86400
    await running.replica.archive.sweep()
    assert await world.admin.items(CONFIGS) == []


async def test_nobody_is_graded_without_the_answers_that_the_lds_has_while_it_is_away(
    world: World, lds: LdsSimulator
) -> None:
    running = await start(world, lds, grader=True)
    lablet = await lend(world)
    lds.faults.add(Fault(kind="status", status=503, route="/responses$"), lds.now())
    await lablet.annotate(desired_state="COLLECTING")
    steps = running.replica.counters.steps
    await when(lambda: steps.get("COLLECT", 0) > 8, "it is asked for again and again")
    await lablet.waits("LDSUnavailable")
    left = await running.replica.archive.find(lablet.uid)
    assert left is not None
    assert (set(left.configs), left.grade) == ({"r1"}, None), "the configurations wait for nobody"
    lds.faults.clear()
    await world.until_event("Graded", lablet.name)
    left = await running.replica.archive.find(lablet.uid)
    assert left is not None
    assert left.responses is not None
    assert left.grade is not None


async def test_collecting_takes_a_slot_of_the_worker_only_when_the_lds_has_answered(
    world: World, lds: LdsSimulator
) -> None:
    running = await start(world, lds)
    lablet = await lend(world)
    slots, steps = running.replica.fleet.items[lablet.worker].slots, running.replica.counters.steps
    lds.faults.add(Fault(kind="delay", delay_s=2.0, route="/responses$", count=1), lds.now())
    await lablet.annotate(desired_state="COLLECTING")
    await when(lambda: steps.get("COLLECT"), "the LDS is asked for the answers")
    held = [other for other in map(str, range(13)) if slots.acquire(other)]
    assert len(held) == 12, "all slots of the worker"
    await when(lambda: lablet.uid in slots._waiting, "the LDS has answered, and the worker has no slot")
    assert (await lablet.claim()).get("collected", 0) == 0
    freed = [slots.release(other) for other in held]
    assert lablet.uid in freed
    running.replica.queues.lablets.add(lablet.uid)
    await world.until_event("Collected", lablet.name)
    await lablet.claim(lambda row: row["collected"])


async def test_lds_that_is_away_holds_the_session_up_and_nothing_else(world: World, lds: LdsSimulator) -> None:
    await start(world, lds)
    lds.faults.add(Fault(kind="status", status=503, route="^POST .*/sessions$", count=3), lds.now())
    lablet = await lend(world)
    assert len(lds.world.sessions) == 1
    lds.faults.add(Fault(kind="status", status=503, route="/archive$", count=2), lds.now())
    await lablet.delete()
    await lablet.gone()
    [session] = lds.world.sessions.values()
    await when(lambda: session.archived, "the session is archived")


async def test_lost_answer_to_a_create_makes_no_second_session(world: World, lds: LdsSimulator) -> None:
    await start(world, lds)
    lds.faults.add(Fault(kind="lost_answer", route="^POST .*/sessions$", count=1), lds.now())
    await lend(world)
    assert len(lds.world.sessions) == 1


async def test_crash_while_a_session_is_being_created_leaves_one_session(world: World, lds: LdsSimulator) -> None:
    """R000-110: the claim has the client key; the next replica asks again and receives the session that exists."""
    first = await start(world, lds)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(PORT)
    lds.faults.add(Fault(kind="lost_answer", route="^POST .*/sessions$"), lds.now())
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await when(lambda: bool(lds.world.sessions), "the session exists, and no replica knows its id")
    await first.crash()
    row = await lablet.claim()
    assert (row["session"]["key"], row["session"].get("id")) == (lablet.uid, None)
    lds.faults.clear()
    await start(world, lds)
    pod = await lablet.ready()
    [session] = lds.world.sessions
    assert pod["metadata"]["annotations"]["vkprovider.io/lds-session-id"] == session


async def test_credentials_of_devices_come_from_the_definitions_secret(world: World, lds: LdsSimulator) -> None:
    await start(world, lds)
    await world.admin.create(
        SECRETS,
        {
            "metadata": {"name": "devices", "labels": {"vkprovider.io/used-for": "devices"}},
            "stringData": {"username": "cisco", "password": "secret-of-devices"},
        },
    )
    lablet = await lend(world, deviceSecretName="devices")
    [session] = lds.world.sessions.values()
    assert {device.password for device in session.devices} == {"secret-of-devices"}
    assert "secret-of-devices" not in str(await lablet.ready())


async def test_secret_of_a_worker_is_shown_to_no_learner_whatever_its_label_says(
    world: World, lds: LdsSimulator
) -> None:
    await start(world, lds)
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    definition = await world.define(PORT, deviceSecretName=worker)
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    message = f"Secret {LOGINS}/{worker} is a worker's and never shown to learners"
    await lablet.until(lambda pod: message in str(pod["status"]))
    label = {"metadata": {"labels": {"vkprovider.io/used-for": "devices"}}}
    await world.admin.patch(f"{SECRETS}/{worker}", label)
    await world.until_event("SecretNotAllowed", lablet.name)
    [session] = lds.world.sessions.values()
    assert not session.devices
    await world.admin.create(SECRETS, {"metadata": {"name": "plain"}, "stringData": {"password": "x"}})
    plain = await world.define(PORT, deviceSecretName="plain")
    other = await world.pod(plain, worker, annotations={"vkprovider.io/username": "bob"})
    command = f"kubectl -n {LOGINS} label --overwrite secret plain vkprovider.io/used-for=devices"
    await other.until(lambda pod: command in str(pod["status"]))
    await world.admin.patch(f"{SECRETS}/plain", label)
    await other.ready()


async def test_definition_without_delivery_has_no_session(world: World, lds: LdsSimulator) -> None:
    await start(world, lds)
    await lend(world, lds={"enabled": False})
    assert not lds.world.sessions


async def test_stray_session_is_archived_when_it_is_old_and_those_of_others_are_not(
    world: World, lds: LdsSimulator
) -> None:
    running = await start(world, lds)
    await lend(world)
    [mine] = lds.world.sessions
    mark = f"vkprovider installation={running.ctx.installation}"
    hour_ago = lds.now() - 3600
    stray = lds.world.create(hour_ago, username="bob", owner=mark)
    foreign = lds.world.create(hour_ago, username="eve", owner="someone else")
    young = lds.world.create(lds.now(), username="carol", owner=mark)
    strays = running.replica.strays
    assert strays is not None
    await strays.sweep()
    archived = {name for name, session in lds.world.sessions.items() if session.archived}
    assert archived == {stray.id}
    assert {mine, foreign.id, young.id}.isdisjoint(archived)
    assert strays.elsewhere["default"] == 2
    world.ahead_s = 3600.0  # the replica's own clock decides nothing
    await strays.sweep()
    assert not young.archived
    for session in (young, lds.world.sessions[mine]):
        session.created_unix_s -= 3600.0
    await strays.sweep()
    archived = {name for name, session in lds.world.sessions.items() if session.archived}
    assert archived == {stray.id, young.id}, "however old it is, a session that a claim names is not a stray"


async def test_login_url_that_comes_late_is_asked_for_after_the_devices(
    world: World, lds: LdsSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R000-099: create, set devices, get session info; another `LabDelivery` takes the place of the HTTP client."""

    class Late(LdsClient):
        async def create_session_with_part(self, *arguments: Any, **more: Any) -> LabSessionInfo:
            info = await super().create_session_with_part(*arguments, **more)
            return msgspec.structs.replace(info, login_url=None)

        def guarded(self, guard: Guard) -> LdsClient:
            return Late(self.deployment, self._service, guard=guard, known=self._known)

    def opened(*arguments: Any, **more: Any) -> LabDelivery:
        client = open_deployment(*arguments, **more)
        return Late(client.deployment, client._service)

    monkeypatch.setattr("vkprovider.labs.lds.deployments.open_deployment", opened)
    await start(world, lds)
    lablet = await lend(world)
    assert (await lablet.ready())["metadata"]["annotations"]["vkprovider.io/lds-login-url"] == f"{lds.url}/login"
    calls = [
        f"{entry.method} {entry.path.rpartition('/')[2]}" for entry in lds.log.since(0) if "sessions" in entry.path
    ]
    [session] = lds.world.sessions
    assert [call for call in calls if not call.startswith("GET sessions")] == [
        "POST sessions",
        "PUT devices",
        f"GET {session}",
    ]


async def test_new_content_reaches_the_lds_under_the_name_that_sessions_use(world: World, lds: LdsSimulator) -> None:
    """R000-080: also without `formQualifiedName`; not for a definition that wants no sessions."""
    await start(world, lds)
    own, named = await world.define(PORT), await world.define(PORT, formQualifiedName="exams/netlab")
    off = await world.define(PORT, lds={"enabled": False})

    def refreshed() -> bool:
        return {own, "exams/netlab"} <= {name for name, form in lds.world.forms.items() if form.fetched}

    await when(refreshed, "the LDS fetches both forms")
    assert not {named, off} & lds.world.forms.keys()


async def test_sessions_take_turns_over_the_deployments(world: World, lds: LdsSimulator, tmp_path: Path) -> None:
    """R000-095: round-robin is the default; each replica counts its own turns."""
    other = await world.stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN)))
    file = tmp_path / "lds_deployments.yaml"
    entries = [{"id": name, "base_url": one.url, "capacity": 10} for name, one in (("a", lds), ("b", other))]
    file.write_text(yaml.safe_dump({"lds_deployments": entries}))
    await world.replica(LDS_DEPLOYMENTS_CONFIG=str(file), LDS_API_TOKEN=TOKEN)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(PORT)
    for number in range(4):
        lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": f"user-{number}"})
        await lablet.ready()
        assert (len(lds.world.sessions), len(other.world.sessions)) == ((number + 2) // 2, (number + 1) // 2)
