"""Lablets that lend their ports to a mux: the slice from the claim, gone before the lab stops, and ports that rest."""

import json
from typing import Any

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.labhistory import MADE, TAKEN_DOWN, history
from tests.component.controllers.looking import condition, eventually, waiting, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import MORTAL, WITH_PASSES
from tests.support.apiserver import ENDPOINT_SLICES, GROUP, SYSTEM, Refused
from tests.support.topologies import topology
from vkprovider.lablet import exposure, names
from vkprovider.mux.pure import muxnames
from vkprovider.platform.shipped import find_manifests
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

PORT = topology({"r1": "iosv"}, {"r1": ["serial:4000"]})
SLICES = "/endpointslices"
MUX = f"system:serviceaccount:{SYSTEM}:{muxnames.MUX_SERVICE_ACCOUNT}"
ONE_LABLET: dict[str, Any] = {"portRange": {"start": 2000, "end": 2000}}
EXPOSE = {"mux": "labs.edge"}
ANSWER = exposure.encode_answer({"r1-serial": exposure.Access("live", "203.0.113.10", 20000)})


def path(lablet: Lablet) -> str:
    return f"{ENDPOINT_SLICES}/{exposure.slice_name(lablet.uid)}"


async def slice_of(lablet: Lablet) -> dict[str, Any]:
    return await lablet.admin.until(path(lablet), bool, "no slice")


async def no_slice(lablet: Lablet) -> None:
    await lablet.admin.until_gone(path(lablet))


def identity(found: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(found["metadata"]["annotations"]["vkprovider.io/exposed"])
    return said


async def test_an_exposed_lablet_has_a_slice_from_its_claim_and_loses_it_before_its_lab_stops(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, address="198.51.100.77", **ONE_LABLET)
    lablet = await world.pod(
        await world.define(PORT, expose=EXPOSE), worker, annotations={"vkprovider.io/username": "ann"}
    )
    await lablet.ready()
    found = await slice_of(lablet)
    assert identity(found) == {
        "worker": worker,
        "mux": "labs.edge",
        "namespace": world.namespace,
        "pod": lablet.name,
        "podUID": lablet.uid,
        "learner": "ann",
        "slots": {"r1-serial": "r1_serial"},
    }
    assert found["ports"] == [{"name": "r1-serial", "protocol": "TCP", "port": 2000}]
    assert found["endpoints"] == [{"addresses": ["198.51.100.77"], "conditions": {"ready": True}}]
    assert found["metadata"]["labels"]["service.kubernetes.io/service-proxy-name"] == "vkprovider-mux"
    assert "kubernetes.io/service-name" not in found["metadata"]["labels"]
    assert (await lablet.claim())["exposed"] == "labs.edge"

    refused = running.api.fault(f"DELETE .*{SLICES}/", count=None, status=503)
    await lablet.delete()
    await when(lambda: refused.met > 2, "tries to withdraw")
    assert history(simulator, lablet.uid) == [*MADE], "the lab runs as long as a mux may lead to it"
    running.api.heal()
    await lablet.gone()
    await no_slice(lablet)
    await when(lambda: history(simulator, lablet.uid) == [*MADE, *TAKEN_DOWN], "the lab is removed")


async def test_the_port_of_a_lablet_that_has_ended_rests_although_no_mux_answers(world: World) -> None:
    """A worker range of exactly one lablet's size: A ends, B starts; nobody plays the mux."""
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, **ONE_LABLET)
    definition = await world.define(PORT, expose=EXPOSE)
    a = await world.pod(definition, worker, annotations={"vkprovider.io/username": "ann"})
    await a.ready()
    await slice_of(a)
    await a.delete()
    await a.gone()
    await no_slice(a)
    await a.unclaimed()
    b = await world.pod(definition, worker, annotations={"vkprovider.io/username": "bob"})
    said = await b.waits("PortsResting")
    assert "1 port that other lablets had lent to a mux must rest" in said["message"]
    await first.crash()
    await world.replica(MORTAL)
    await b.until(lambda pod: waiting(pod).get("reason") == "PortsResting")
    assert await world.ports(worker) == {}
    world.ahead_s = 61.0
    await b.ready()
    assert await world.ports(worker) == {b.name: {"r1_serial": 2000}}
    assert identity(await slice_of(b))["learner"] == "bob"


async def test_a_port_that_was_lent_to_nobody_is_given_at_once(world: World) -> None:
    running = await world.replica()
    worker = await world.worker(**ONE_LABLET)
    definition = await world.define(PORT)
    for _ in range(2):
        lablet = await world.pod(definition, worker)
        await lablet.ready()
        await lablet.delete()
        await lablet.gone()
        await lablet.unclaimed()
    asked = {(asked.method, "watch" in asked.params) for asked in running.api.matching(SLICES)}
    assert asked == {("GET", False), ("GET", True)}, "one list and a watch for all, and no write"
    assert len([asked for asked in running.api.matching(SLICES) if "watch" not in asked.params]) == 1


async def test_the_next_replica_withdraws_what_a_dead_one_had_lent(world: World) -> None:
    first = await world.replica(MORTAL)
    worker = await world.worker()
    lablet = await world.pod(await world.define(PORT, expose=EXPOSE), worker)
    await lablet.ready()
    await slice_of(lablet)
    await first.crash()
    await lablet.delete()
    await world.replica(MORTAL)
    await lablet.gone()
    await no_slice(lablet)


async def test_a_slice_that_somebody_deletes_or_falsifies_is_written_again(world: World) -> None:
    await world.replica()
    worker = await world.worker()
    lablet = await world.pod(await world.define(PORT, expose=EXPOSE), worker)
    await lablet.ready()
    before = await slice_of(lablet)
    await world.admin.delete(path(lablet))
    await world.admin.until(path(lablet), lambda found: found["metadata"]["uid"] != before["metadata"]["uid"])
    await world.admin.patch(path(lablet), {"ports": [{"name": "r1-serial", "protocol": "TCP", "port": 22}]})
    await world.admin.until(path(lablet), lambda found: found["ports"] == before["ports"])


@pytest.mark.parametrize("changed", [None, {**EXPOSE, "ports": ["r9_serial"]}], ids=["no more", "other ports"])
async def test_a_definition_that_exposes_otherwise_takes_its_slices_along(
    world: World, changed: dict[str, Any] | None
) -> None:
    await world.replica(WITH_PASSES)
    worker = await world.worker()
    definition = await world.define(PORT, expose=EXPOSE)
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    await slice_of(lablet)
    await world.change_definition(definition, expose=changed)
    await no_slice(lablet)


async def test_a_slice_goes_with_the_address_to_which_a_mux_can_lead(world: World) -> None:
    await world.replica(WITH_PASSES)
    worker = await world.worker()
    lablet = await world.pod(await world.define(PORT, expose=EXPOSE), worker)
    await lablet.ready()
    await slice_of(lablet)
    await world.admin.patch(f"{GROUP}/cmlworkers/{worker}", {"spec": {"address": "127.0.0.1"}})
    await no_slice(lablet)
    await world.until_event("NotExposable", lablet.name)


async def test_a_slice_that_has_lost_its_label_is_made_again(world: World) -> None:
    """No watch shows it any more, and its name is taken."""
    await world.replica()
    worker = await world.worker()
    lablet = await world.pod(await world.define(PORT, expose=EXPOSE), worker)
    await lablet.ready()
    before = await slice_of(lablet)
    await world.admin.patch(path(lablet), {"metadata": {"labels": {names.LABEL_COMPONENT: None}}})
    after = await world.admin.until(path(lablet), lambda found: found["metadata"]["uid"] != before["metadata"]["uid"])
    assert after["metadata"]["labels"] == before["metadata"]["labels"]


async def test_a_slice_without_a_claim_goes_and_one_of_an_unknown_worker_stays(world: World) -> None:
    await world.replica(WITH_PASSES)
    worker = await world.worker()
    for name, of in (("a", worker), ("b", "unknown")):
        ports = exposure.ports_of([("r1_serial", "TCP", 2000)])
        lost = exposure.Exposure(of, "labs", "team", "pod", name, "", "198.51.100.1", ports)
        await world.admin.create(ENDPOINT_SLICES, exposure.encode(lost, SYSTEM, worker_uid="00000000"))
    await world.admin.until_gone(f"{ENDPOINT_SLICES}/lablet-a")
    assert await world.admin.get(f"{ENDPOINT_SLICES}/lablet-b") is not None


async def test_a_worker_at_an_address_that_no_slice_may_have_is_told(world: World) -> None:
    await world.replica()
    worker = await world.worker(address="127.0.0.1")
    lablet = await world.pod(await world.define(PORT, expose=EXPOSE), worker)
    await lablet.ready()
    event = await world.until_event("NotExposable", lablet.name)
    assert "spec.address of the CMLWorker" in event["message"]
    assert await world.admin.get(path(lablet)) is None


async def test_the_mux_may_answer_and_change_nothing_else(world: World) -> None:
    """The policy of its component, for an account that RBAC lets write every EndpointSlice."""
    world.server.kubectl("apply", "--server-side", "-f", str(find_manifests() / "components" / "mux" / "confine.yaml"))
    await world.replica()
    worker = await world.worker()
    lablet = await world.pod(await world.define(PORT, expose=EXPOSE), worker)
    await lablet.ready()
    found = await slice_of(lablet)
    uid = found["metadata"]["uid"]

    async def mux(method: str, where: str, body: object, kind: str = "application/merge-patch+json") -> None:
        await world.admin.request(method, where, body, kind, user=MUX)

    async def allowed() -> bool:
        """Whether the policy is in force yet: it takes the API server a moment."""
        try:
            await mux("PATCH", f"{path(lablet)}?dryRun=All", {"metadata": {"labels": {"a": "b"}}})
        except Refused as refused:
            return "and nothing else" in str(refused)
        return False

    await eventually(allowed, "the policy")
    answer = exposure.answer_patch(uid, {"r1-serial": exposure.Access("live", "203.0.113.10", 20000)})
    await mux("PATCH", path(lablet), answer, "application/json-patch+json")
    for body in (
        {"metadata": {"annotations": {"vkprovider.io/exposed": "{}"}}},
        {"metadata": {"annotations": {"other": "x"}}},
        {"metadata": {"annotations": {"vkprovider.io/mux-answer": "{}", "other": "x"}}},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"finalizers": ["example.com/x"]}},
        {"metadata": {"labels": {"vkprovider.io/component": None}}},
        {"endpoints": [{"addresses": ["198.51.100.99"]}]},
        {"ports": [{"name": "r1-serial", "protocol": "TCP", "port": 22}]},
    ):
        with pytest.raises(Refused, match="and nothing else"):
            await mux("PATCH", path(lablet), body)
    with pytest.raises(Refused, match="and nothing else"):
        await mux("DELETE", path(lablet), None)
    forged = exposure.Exposure(worker, "labs", "team", "pod", "x", "", "198.51.100.1", ())
    with pytest.raises(Refused, match="and nothing else"):
        await mux("POST", ENDPOINT_SLICES, exposure.encode(forged, SYSTEM, worker_uid="00000000"), "application/json")
    labels = {"app.kubernetes.io/managed-by": muxnames.MUX_PROGRAM}
    own = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "own", "labels": labels}}
    await mux("POST", ENDPOINT_SLICES, {**own, "addressType": "IPv4", "endpoints": []}, "application/json")
    other = exposure.answer_patch("another-uid", {})
    with pytest.raises(Refused, match="422"):
        await mux("PATCH", path(lablet), other, "application/json-patch+json")
    after = await world.admin.get(path(lablet))
    assert after is not None
    assert after["metadata"]["annotations"]["vkprovider.io/mux-answer"] == ANSWER
    assert after["metadata"]["uid"] == uid, "the provider does not write the slice again because of the answer"


async def test_a_definition_that_exposes_a_port_it_does_not_have_says_so(world: World) -> None:
    await world.replica()
    await world.worker()
    name = await world.define(PORT, expose={"mux": "labs", "ports": ["r1_serial", "r9_serial"]})
    found = await world.definition(name, lambda found: condition(found, "Impeded")["status"] == "True")
    assert condition(found, "Impeded")["reason"] == "ExposedPortUnknown"
    assert "'r9_serial'" in condition(found, "Impeded")["message"]


async def test_how_long_a_port_rests_is_a_setting(world: World) -> None:
    await world.replica(VKPROVIDER_EXPOSED_PORT_REST_SECONDS="0")
    worker = await world.worker(**ONE_LABLET)
    definition = await world.define(PORT, expose=EXPOSE)
    for _ in range(2):
        lablet = await world.pod(definition, worker)
        await lablet.ready()
        await slice_of(lablet)
        await lablet.delete()
        await lablet.gone()
        await lablet.unclaimed()


LIVE = exposure.Access("live", "203.0.113.10", 20000)


async def answer(lablet: Lablet, access: exposure.Access) -> None:
    """Answer as the mux does."""
    found = await slice_of(lablet)
    patch = exposure.answer_patch(found["metadata"]["uid"], {"r1-serial": access})
    await lablet.admin.request("PATCH", path(lablet), patch, "application/json-patch+json", user=MUX)


def access(pod: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(pod["metadata"].get("annotations", {}).get("vkprovider.io/access", "{}"))
    return said


async def test_the_pod_reports_what_the_mux_answers_and_nobody_else_may(world: World) -> None:
    await world.replica()
    worker = await world.worker()
    lablet = await world.pod(await world.define(PORT, expose=EXPOSE), worker)
    await lablet.until(lambda pod: access(pod) == {"r1_serial": {"state": "pending"}}, "no answer yet")
    await answer(lablet, exposure.Access("refused", why="the mux is full"))
    await lablet.until(lambda pod: access(pod) == {"r1_serial": {"state": "refused", "why": "the mux is full"}})
    await answer(lablet, LIVE)
    live = {"r1_serial": {"state": "live", "address": "203.0.113.10", "port": 20000}}
    await lablet.until(lambda pod: access(pod) == live)
    with pytest.raises(Refused, match="Only the provider writes"):
        await lablet.annotate(access="{}")
    await lablet.annotate(desired_state="STOPPED")
    await lablet.until(lambda pod: "vkprovider.io/access" not in pod["metadata"]["annotations"], "it is withdrawn")
    await no_slice(lablet)


TOKEN = "token-of-the-lds"


@pytest.fixture
async def lds(world: World) -> LdsSimulator:
    return await world.stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN)))


async def lend(world: World) -> Lablet:
    """Make a lablet for ann, whose session is to name the mux."""
    worker = await world.worker()
    definition = await world.define(PORT, expose={**EXPOSE, "lds": True})
    return await world.pod(definition, worker, annotations={"vkprovider.io/username": "ann"})


async def test_a_session_waits_for_the_mux_and_names_its_address(world: World, lds: LdsSimulator) -> None:
    await world.replica(LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN)
    lablet = await lend(world)
    said = await lablet.waits("WaitingForAccess")
    assert said["message"] == "the session is made when the mux leads to r1_serial"
    assert not lds.world.sessions
    await answer(lablet, LIVE)
    await lablet.ready()
    [session] = lds.world.sessions.values()
    assert [(device.host, device.port) for device in session.devices] == [("203.0.113.10", 20000)]


async def test_a_session_does_not_wait_for_ever(world: World, lds: LdsSimulator) -> None:
    await world.replica(LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN, VKPROVIDER_ACCESS_WAIT_SECONDS="1")
    lablet = await lend(world)
    await lablet.ready()
    [session] = lds.world.sessions.values()
    assert [device.port for device in session.devices] == [2000]
    event = await world.until_event("AccessMissing", lablet.name)
    assert (
        event["message"] == "mux labs.edge does not lead to r1_serial (pending): the session has the worker's address"
    )
