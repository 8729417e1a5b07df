"""Pods that ask for what is not there: they stay Pending with a reason, and CML hears nothing of them."""

from typing import Any

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition, eventually, imports, is_ready, waiting
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import MORTAL
from tests.support.apiserver import GROUP
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology
from vkpsim.http.faults import Fault

CAPACITY = {"cpu": "64", "memory": "256Gi", "labs": 200, "labNodes": 400}
PORT = topology({"r1": "iosv"}, {"r1": ["serial:4000"]})


@pytest.fixture
async def simulator(world: World) -> CmlSimulator:
    return await world.simulator()


async def warnings(lablet: Lablet) -> list[dict[str, Any]]:
    """List the warnings about a Pod."""
    selector = f"type=Warning,involvedObject.name={lablet.name}"
    return await lablet.admin.items(f"/api/v1/events?fieldSelector={selector}")


async def refused(lablet: Lablet, reason: str) -> str:
    """Wait until a Pod is refused with a reason, stays Pending and said so once; return the message."""
    message: str = (await lablet.waits(reason))["message"]
    assert (await lablet.until(bool))["status"]["phase"] == "Pending"
    found = await eventually(lambda: warnings(lablet), f"a warning about {lablet.name}")
    assert [(event["reason"], event["message"], event["count"]) for event in found] == [(reason, message, 1)]
    return message


async def test_pod_without_a_definition_is_not_a_lablet(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    worker, definition = await world.worker(simulator.url), await world.define()
    strange = await world.pod(definition, worker, runtimeClassName=None)
    ended = await strange.until(lambda pod: pod["status"]["phase"] == "Failed")
    assert ended["status"]["reason"] == "NotALablet"
    assert imports(simulator) == []


async def test_pod_of_a_daemonset_counts_as_available(world: World, simulator: CmlSimulator) -> None:
    """It came by a toleration of everything; without an address no Service leads to it."""
    await world.replica()
    worker = await world.worker(simulator.url)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "network", "uid": "1-2-3", "controller": True}
    pods = f"/api/v1/namespaces/{world.namespace}/pods"
    spec = {"containers": [{"name": "main", "image": "cni:1"}], "tolerations": [{"operator": "Exists"}]}
    made = await world.admin.create(pods, {"metadata": {"name": "net", "ownerReferences": [owner]}, "spec": spec})
    target = {"apiVersion": "v1", "kind": "Node", "name": f"vnode.{worker}"}
    await world.admin.create(f"{pods}/net/binding", {"metadata": {"name": "net"}, "target": target})
    lablet = Lablet(world.admin, world.namespace, worker, "net", made["metadata"]["uid"])
    found = await lablet.ready()
    assert (found["status"]["phase"], condition(found, "Ready")["reason"]) == ("Pending", "NotALablet")
    assert condition(found, "ContainersReady")["status"] == "False"
    assert "podIP" not in found["status"]
    said = waiting(found, "main")
    assert said["reason"] == "NotALablet"
    assert "nodeSelector {kubernetes.io/os: linux}" in said["message"]
    events = await eventually(lambda: warnings(lablet), "a warning")
    assert [(event["reason"], event["message"]) for event in events] == [("NotALablet", said["message"])]
    assert imports(simulator) == []
    await lablet.delete()
    await lablet.gone()


async def test_what_the_definition_does_not_have_is_named_with_what_it_has(
    world: World, simulator: CmlSimulator
) -> None:
    await world.replica()
    worker = await world.worker(simulator.url)
    name = await world.define(topology({"h0": "alpine", "h1": "alpine"}))
    await world.change_definition(name, version="1.1.0")
    await world.definition(name, lambda found: len(found["status"]["versions"]) == 2)
    pinned = await world.pod(name, worker, version="2.0.0")
    message = await refused(pinned, "UnknownVersion")
    assert message == f"definition {name} has no version '2.0.0'; it keeps 1.1.0, 1.0.0"
    device = await world.pod(name, worker, devices=["h0", "r9"])
    message = await refused(device, "UnknownDevice")
    known = "call it 'lab' for the whole lab, or one of h0, h1"
    assert message == f"container 'r9' names no device of {name} 1.1.0; {known}"
    initial = await world.pod(name, worker, initContainers=[{"name": "i", "image": "busybox"}])
    assert "remove them, or the injector that adds them" in await refused(initial, "NotALablet")
    assert imports(simulator) == []
    await device.delete()
    await device.gone()


async def test_mixed_images_are_refused(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    worker, name = await world.worker(simulator.url), await world.define()
    for images, message in (
        (("other:1.0.0", name), f"container 'lab' has image 'other:1.0.0', but runtimeClassName is '{name}'"),
        ((name, "other"), f"container 'h0' has image 'other', but runtimeClassName is '{name}'"),
        ((f"{name}:1.0.0", f"{name}:2"), "the containers name versions 1.0.0, 2; a lablet has one"),
    ):
        containers = [{"name": which, "image": image} for which, image in zip(("lab", "h0"), images, strict=True)]
        lablet = await world.pod(name, worker, containers=containers)
        assert message in await refused(lablet, "DefinitionMismatch")
    assert imports(simulator) == []


async def test_provider_that_starts_again_repeats_no_warning(world: World, simulator: CmlSimulator) -> None:
    first = await world.replica(MORTAL)
    worker, name = await world.worker(simulator.url), await world.define()
    wrong = await world.define("lab: [", ready=False)
    told = await world.pod(name, worker, version="9")
    await refused(told, "UnknownVersion")
    await world.until_event("TopologyInvalid", wrong)
    await first.stop()
    await world.replica(MORTAL)
    later = await world.pod(name, worker, version="9")  # it is told after everything that was there before
    await refused(later, "UnknownVersion")
    assert len(await warnings(told)) == 1
    [event] = await world.events("TopologyInvalid", wrong)
    assert event["count"] == 1


async def test_lablet_of_another_environment_is_refused(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    worker, definition = await world.worker(simulator.url), await world.define(environment="exam")
    lablet = await world.pod(definition, worker)
    message = await refused(lablet, "EnvironmentMismatch")
    assert message.startswith(f"definition {definition} runs in environment exam, this worker is in default; ")
    assert imports(simulator) == []


@pytest.mark.parametrize(
    ("capacity", "reason", "message"),
    [
        ({"labs": 1}, "OutOfpods", "the worker holds 1 lablet, at most 1"),
        ({"cpu": "16"}, "OutOfcpu", "the worker cannot hold one more lablet: cpu 20 > 16"),
    ],
)
async def test_full_worker_takes_the_next_lablet_when_one_leaves(
    world: World, simulator: CmlSimulator, capacity: dict[str, Any], reason: str, message: str
) -> None:
    await world.replica()
    worker = await world.worker(simulator.url, capacity={**CAPACITY, **capacity})
    definition = await world.define(resources={"cpu": "10"})
    first = await world.pod(definition, worker)
    await first.ready()
    second = await world.pod(definition, worker)
    assert await refused(second, reason) == message
    assert len(imports(simulator)) == 1
    await first.delete()
    await second.ready()
    await first.gone()


async def test_successor_on_a_full_worker_waits_for_the_release_without_a_warning(
    world: World, simulator: CmlSimulator
) -> None:
    await world.replica()
    capacity = {"cpu": "16", "memory": "256Gi", "labs": 200, "labNodes": 400}
    worker, definition = (
        await world.worker(simulator.url, capacity=capacity),
        await world.define(resources={"cpu": "10"}),
    )
    simulator.faults.add(Fault(kind="delay", route="^DELETE .*/labs/", delay_s=3.0, count=1), simulator.now())
    first = await world.pod(definition, worker)
    await first.ready()
    await first.delete()
    second = await world.pod(definition, worker)
    await second.waits("WaitingForRelease")
    await second.ready()
    assert await warnings(second) == []


async def test_exhausted_ports_are_named_and_the_next_free_one_is_used(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    worker = await world.worker(simulator.url, portRange={"start": 2000, "end": 2000})
    definition = await world.define(PORT)
    first = await world.pod(definition, worker)
    await first.ready()
    second = await world.pod(definition, worker)
    await second.until(lambda pod: pod["status"].get("containerStatuses"))
    assert len(imports(simulator)) == 1
    await first.delete()
    await second.ready()
    assert list((await world.ports(worker))[second.name].values()) == [2000]


async def test_too_many_ports_for_one_lablet(world: World, simulator: CmlSimulator) -> None:
    """The content was stored while more were allowed; new content is refused on its definition."""
    replica = await world.replica()
    worker, definition = await world.worker(simulator.url), await world.define(PORT)
    await replica.stop()
    await world.replica(PORTS_PER_INSTANCE_MAX="0")
    lablet = await world.pod(definition, worker)
    await lablet.waits("TooManyPorts")
    assert imports(simulator) == []
    found = await world.definition(definition, lambda found: not is_ready(found))
    assert condition(found, "Ready")["reason"] == "TooManyPorts"


async def test_lablet_waits_for_a_definition_that_comes_later(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    worker, definition = await world.worker(simulator.url), await world.define()
    pinned = await world.pod(definition, worker, version="2.0.0")
    await pinned.waits("UnknownVersion")
    await world.change_definition(definition, version="2.0.0")
    await pinned.ready()
    assert len(imports(simulator)) == 1


async def test_room_is_used_even_if_the_node_cannot_show_it_at_once(world: World) -> None:
    """The lablets are queued by the turn that finds the room: to the next one it is nothing new."""
    running = await world.replica()
    worker = await world.worker(capacity={**CAPACITY, "labs": 1})
    definition = await world.define()
    first, second = [await world.pod(definition, worker) for _ in range(2)]
    await first.ready()
    await second.waits("OutOfpods")
    refusal = running.api.fault("^PATCH .*/nodes/vnode", status=500)
    await world.admin.patch(f"{GROUP}/cmlworkers/{worker}", {"spec": {"capacity": {"labs": 2}}})
    await second.ready()
    assert refusal.met
