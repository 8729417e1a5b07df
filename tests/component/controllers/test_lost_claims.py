"""Claims that someone deleted: rebuilt from the labs, whose tags say which ports learners use."""

import json
from typing import Any

import pytest

from tests.component.controllers.harness import PASSWORD, World
from tests.component.controllers.looking import condition, eventually, imports, is_ready, labs, waiting, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import MORTAL, SHORT, Groups
from tests.support.apiserver import CONFIG_MAPS, SECRETS, SYSTEM
from tests.support.topologies import topology
from vkpsim.cml.server import CmlSimulator
from vkpsim.http.faults import Fault
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

CONTENT = CONFIG_MAPS + "?labelSelector=vkprovider.io%2Fcomponent%3Dcontent"
SIX = topology(
    {"r1": "iosv", "pc": "desktop"},
    {"r1": ["serial:4001", "serial:4002:1", "pat:4003:22", "pat:udp:4004:53"], "pc": ["vnc:4005", "serial:4006"]},
)


async def delete_claims(world: World, worker: str) -> None:
    await world.admin.delete(f"{CONFIG_MAPS}/{worker}-port-allocations")


def told(pod: dict[str, Any]) -> dict[str, int]:
    """Return the ports that a Pod shows, by slot."""
    mappings = json.loads(pod["metadata"]["annotations"]["vkprovider.io/port-mappings"])
    return {slot: info["allocated_port"] for slot, info in mappings.items()}


def opened(simulator: CmlSimulator, lablet: Lablet) -> list[int]:
    """Return the ports in the tags of a lablet's lab."""
    [lab] = [lab for lab in simulator.simulation.world.labs.values() if lab.title.endswith(lablet.uid)]
    parts = [part for node in lab.nodes.values() for tag in node.tags for part in tag.split(":")]
    return sorted(int(part) for part in parts if part.isdigit() and int(part) >= 2000)


async def test_lablets_keep_the_ports_of_their_labs_when_the_claims_were_lost_with_the_owner(world: World) -> None:
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(SIX)
    gone, kept = await world.pod(definition, worker), await world.pod(definition, worker)
    await gone.ready()
    before = told(await kept.ready())
    await kept.claim(lambda row: row.get("labId"))
    await first.crash()
    await delete_claims(world, worker)
    await gone.delete(grace_s=0)
    late = await world.pod(definition, worker)
    await world.replica(MORTAL)
    await late.ready()
    await world.until_event("UnclaimedLab", worker)
    assert any(title.endswith(gone.uid) for title in labs(simulator)), "it may be a copy that somebody saved"
    assert len(imports(simulator)) == 3
    pods = {lablet.name: told(await lablet.ready()) for lablet in (kept, late)}
    assert pods[kept.name] == before

    async def recorded() -> bool:
        return pods == await world.ports(worker)

    await eventually(recorded, "the rows of the living Pods are written")
    for lablet in (kept, late):
        assert sorted(pods[lablet.name].values()) == opened(simulator, lablet)
    assert set(pods[kept.name].values()).isdisjoint(pods[late.name].values())
    tcp = {port for shown in pods.values() for slot, port in shown.items() if "udp" not in slot}
    assert tcp.isdisjoint(opened(simulator, gone)), "the ports of the lab that is left alone are not given away"
    assert (await kept.ready())["status"]["containerStatuses"][0]["restartCount"] == 0


async def test_claims_are_rebuilt_when_the_content_is_stored_that_was_lost_with_them(world: World) -> None:
    """The provider's namespace was deleted, with all that was in it."""
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(SIX)
    lablet = await world.pod(definition, worker)
    before = told(await lablet.ready())
    await lablet.claim(lambda row: row.get("labId"))
    await first.crash()
    await delete_claims(world, worker)
    for found in await world.admin.items(CONTENT):
        await world.admin.delete(f"{CONFIG_MAPS}/{found['metadata']['name']}")
    second = await world.replica(MORTAL)
    second.api.fault(r"^POST .*/configmaps", status=503, count=None)
    await when(lambda: second.replica.queues.claims.failures_total > 0, "the claims wait for the content")
    second.api.heal()
    await lablet.claim(lambda row: row.get("labId"))
    assert told(await lablet.ready()) == before
    assert len(imports(simulator)) == 1


@pytest.mark.parametrize("sees", [0, 1])
async def test_claims_are_not_rebuilt_by_a_user_who_does_not_see_all_labs_of_the_worker(
    world: World, sees: int
) -> None:
    mortal: Groups = {**MORTAL, "workers": {**SHORT["workers"], "login_check_s": 0.3}}
    first = await world.replica(mortal)
    simulator = await world.simulator()
    simulator.simulation.accounts.put_user(0.0, "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb", "bert", PASSWORD)
    worker, definition = await world.worker(simulator.url), await world.define(SIX)
    secret = f"{SECRETS}/{worker}"

    async def use(user: str) -> None:
        await world.admin.patch(secret, {"stringData": {"username": user}})
        await world.cmlworker(worker, lambda found: found["status"].get("user") == user)

    for _ in range(sees):
        await use("bert")
        await (await world.pod(definition, worker)).ready()
    await use("admin")
    lablet = await world.pod(definition, worker)
    before = told(await lablet.ready())
    await lablet.claim(lambda row: row.get("readyAt"))
    await first.crash()
    await delete_claims(world, worker)
    await world.admin.patch(secret, {"stringData": {"username": "bert"}})
    await world.replica(mortal)
    found = await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "ClaimsLost")
    message = condition(found, "Ready")["message"]
    assert "user bert at " in message
    assert "does not see all labs that user admin may have seen" in message
    assert len(imports(simulator)) == 1 + sees
    await world.admin.patch(secret, {"stringData": {"username": "admin"}})
    await lablet.claim(lambda row: row.get("labId"))
    assert told(await lablet.ready()) == before
    assert len(imports(simulator)) == 1 + sees


NAME, LEARNER = "vkprovider.io/username", "vkprovider.io/learner"


async def edit(world: World, lablet: Lablet, **annotations: str) -> None:
    """Annotate a Pod as one may where the policies are not installed, which spare the provider alone."""
    values = {f"vkprovider.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    body, provider = {"metadata": {"annotations": values}}, f"system:serviceaccount:{SYSTEM}:vkprovider"
    await world.admin.request("PATCH", lablet.path, body, "application/merge-patch+json", user=provider)


def learner_of(pod: dict[str, Any]) -> tuple[str, str]:
    """Return the learner whom a Pod names, and whose it is reported to be."""
    found = pod["metadata"]["annotations"]
    return found.get(NAME, ""), found.get(LEARNER, "")


@pytest.mark.parametrize("assigned", [False, True])
async def test_lablet_stays_its_learners_when_the_claims_were_lost_and_the_pod_names_another(
    world: World, *, assigned: bool
) -> None:
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(SIX)
    lablet = await world.pod(definition, worker, annotations={} if assigned else {NAME: "alice"})
    await lablet.ready()
    if assigned:
        await lablet.annotate(username="alice")
    await lablet.claim(lambda row: row.get("noted") == "alice")
    await first.crash()
    await delete_claims(world, worker)
    await edit(world, lablet, username="mallory", learner="mallory")
    await world.replica(MORTAL)
    await lablet.until(lambda pod: learner_of(pod) == ("alice", "alice"), "it is alice's again")
    assert (await lablet.claim())["learner"] == "alice"
    assert await world.until_event("UsernameRestored", lablet.name)
    assert len(imports(simulator)) == 1


async def test_session_goes_on_when_the_claims_were_lost_and_the_pod_names_another(world: World) -> None:
    lds = await world.stack.enter_async_context(LdsSimulator(LdsSettings(token="t")))
    first = await world.replica(MORTAL, LDS_API_URL=lds.url, LDS_API_TOKEN="t")
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(SIX)
    lablet = await world.pod(definition, worker, annotations={NAME: "alice"})
    url = (await lablet.ready())["metadata"]["annotations"]["vkprovider.io/lds-login-url"]
    [session] = lds.world.sessions.values()
    lds.world.log_in(lds.now(), session)
    await first.crash()
    await delete_claims(world, worker)
    await edit(world, lablet, username="mallory", learner="mallory", lds_session_id="x")
    await world.replica(MORTAL, LDS_API_URL=lds.url, LDS_API_TOKEN="t")

    def goes_on(pod: dict[str, Any]) -> bool:
        notes = pod["metadata"]["annotations"]
        shown = [notes.get(f"vkprovider.io/{name}") for name in ("lds-session-id", "lds-login-url", "state")]
        return learner_of(pod) == ("alice", "alice") and shown == [session.id, url, "RUNNING"]

    await lablet.until(goes_on, "alice goes on")
    assert [one.username for one in lds.world.sessions.values()] == ["alice"]
    assert not session.archived


async def test_pods_wait_until_every_lab_of_the_worker_was_examined(world: World) -> None:
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(SIX)
    kept = await world.pod(definition, worker)
    before = told(await kept.ready())
    await kept.claim(lambda row: row.get("labId"))
    await first.crash()
    await delete_claims(world, worker)
    late = await world.pod(definition, worker)
    simulator.faults.add(Fault(kind="status", status=503, route="^GET .*/labs/[^/]+/nodes"), simulator.now())
    await world.replica(MORTAL)
    await late.waits("WaitingForClaims")
    found = await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "ClaimsLost")
    assert is_ready(found)
    assert "/nodes" in condition(found, "Ready")["message"]
    assert is_ready(await kept.until(bool)), "nothing is known against it"
    assert len(imports(simulator)) == 1
    simulator.faults.clear()
    await late.ready()
    assert told(await kept.ready()) == before
    await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "WorkerReady")


async def test_tags_that_were_changed_on_the_worker_are_said_on_the_pod(world: World) -> None:
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(SIX)
    odd, same = await world.pod(definition, worker), await world.pod(definition, worker)
    await odd.ready()
    await same.ready()
    for lablet in (odd, same):
        await lablet.claim(lambda row: row.get("labId"))
    await first.crash()
    await delete_claims(world, worker)
    [lab] = [lab for lab in simulator.simulation.world.labs.values() if lab.title.endswith(odd.uid)]
    node = next(node for node in lab.nodes.values() if node.label == "pc")
    node.tags = ["vnc:2900"]
    await world.replica(MORTAL)
    said = await odd.waits("PortsUnknown")
    assert "delete the pod" in said["message"]
    assert await world.until_event("PortsUnknown", odd.name)
    await same.ready()
    assert len(labs(simulator)) == 2, "a lab is left alone"
    await odd.delete()
    await odd.gone()
    await when(lambda: len(labs(simulator)) == 1, "its lab goes with the Pod")


async def test_lab_that_was_renamed_right_after_its_import_is_not_imported_again(world: World) -> None:
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(SIX)
    lablet = await world.pod(definition, worker)
    await when(lambda: labs(simulator), "the lab is imported")
    await lablet.claim(lambda row: row.get("labId"))  # in the batch after the import, not with some later write
    [lab] = simulator.simulation.world.labs.values()
    lab.title = "renamed by hand"
    await first.crash()
    await delete_claims(world, worker)
    await world.replica(MORTAL)
    await lablet.ready()
    assert len(imports(simulator)) == 1
    await lablet.delete()
    await lablet.gone()
    assert labs(simulator) == {}


async def test_pod_that_a_finalizer_holds_gives_its_row_and_ports_back(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(SIX)
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    await world.admin.patch(lablet.path, {"metadata": {"finalizers": ["example.com/archive"]}})
    await lablet.delete()
    await when(lambda: labs(simulator) == {}, "the lab is deleted")
    await lablet.unclaimed()
    assert waiting(await lablet.until(bool)) == {}
    await eventually(lambda: _without_finalizer(world, worker), "the CMLWorker is free")
    await world.admin.patch(lablet.path, {"metadata": {"finalizers": None}})
    await lablet.gone()


async def _without_finalizer(world: World, worker: str) -> bool:
    found = await world.cmlworker(worker)
    return not found["metadata"].get("finalizers")


@pytest.mark.parametrize(("status", "reason"), [(403, "ApiRefused"), (503, "ApiUnavailable")])
async def test_learner_works_on_while_the_username_cannot_be_put_back(world: World, status: int, reason: str) -> None:
    """The worker is not at fault, and nothing keeps the learner from the lab."""
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(SIX)
    lablet = await world.pod(definition, worker, annotations={NAME: "alice"})
    await lablet.ready()
    await lablet.claim(lambda row: row.get("noted") == "alice")
    seen = len(running.api.asked)
    fault = running.api.fault(rf"^PATCH .*/pods/{lablet.name}/status", status=status)
    await edit(world, lablet, username="mallory")
    event = await world.until_event(reason, lablet.name)
    assert (event["type"], fault.count) == ("Warning", 0)
    pod = await lablet.until(lambda pod: learner_of(pod) == ("alice", "alice"), "it is alice's again")
    assert is_ready(pod)
    sent = [asked.body.decode() for asked in running.api.asked[seen:] if asked.path == f"{lablet.path}/status"]
    assert any(NAME in body for body in sent)
    for body in sent:
        assert not any(word in body for word in ("waiting", "WorkerError", "CredentialsInvalid", "WorkerUnreachable"))
    for word in ("WorkerError", "CredentialsInvalid", "WorkerUnreachable"):
        assert await world.events(word, lablet.name) == []
