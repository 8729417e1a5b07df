"""Conditions of others: a Pod is Ready when its lab is and its readiness gates say so, too (KEP-580); Ready is ours."""

from typing import Any, Final

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition, is_ready
from tests.component.controllers.podhandle import Lablet

GATE: Final = "example.com/load-balancer"
STATUS_PATCH: Final = "application/strategic-merge-patch+json"
STATE: Final = "vkprovider.io/state"


async def say(world: World, lablet: Lablet, status: str) -> dict[str, Any]:
    """Write the condition of the gate as a load balancer's controller does; return it as it is stored."""
    found = {"type": GATE, "status": status, "reason": "Probed", "message": f"it is {status}"}
    body = {"status": {"conditions": [found]}}
    return condition(await world.admin.request("PATCH", f"{lablet.path}/status", body, STATUS_PATCH), GATE)


async def test_a_lablet_is_ready_while_its_gates_are(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker, readinessGates=[{"conditionType": GATE}])
    pod = await lablet.until(lambda pod: condition(pod, "ContainersReady")["status"] == "True", "containers not ready")
    ready = condition(pod, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    assert ready["message"] == f'corresponding condition of pod readiness gate "{GATE}" does not exist.'
    assert pod["metadata"]["annotations"][STATE] == "READY", "the lab is, whatever its balancer thinks"

    written = await say(world, lablet, "True")
    assert condition(await lablet.ready(), GATE) == written

    written = await say(world, lablet, "False")
    pod = await lablet.until(lambda pod: not is_ready(pod), "still Ready")
    assert condition(pod, "Ready")["message"] == f'the status of pod readiness gate "{GATE}" is not "True", but False'
    assert condition(pod, "ContainersReady")["status"] == "True"
    assert condition(pod, GATE) == written, "a foreign condition is its writer's"

    written = await say(world, lablet, "True")
    await lablet.ready()
    await lablet.annotate(reset="1")
    await lablet.until(lambda pod: condition(pod, "ContainersReady")["status"] == "False", "not reset")
    pod = await lablet.ready()
    assert condition(pod, GATE) == written


async def test_a_gate_that_opens_while_the_provider_is_away(world: World) -> None:
    first = await world.replica()
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker, readinessGates=[{"conditionType": GATE}])
    await lablet.until(lambda pod: condition(pod, "ContainersReady")["status"] == "True", "containers not ready")
    await first.stop()
    await say(world, lablet, "True")
    await world.replica()
    await lablet.ready()


async def test_ready_that_others_write_is_corrected_and_their_own_condition_stays(world: World) -> None:
    """As the node lifecycle controller writes it of a node that was silent."""
    await world.replica()
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    foreign = {"type": GATE, "status": "True"}
    stolen = {"type": "Ready", "status": "False", "reason": "NodeNotReady"}
    body = {"status": {"conditions": [foreign, stolen]}}
    assert not is_ready(await world.admin.request("PATCH", f"{lablet.path}/status", body, STATUS_PATCH))
    pod = await lablet.ready()
    assert condition(pod, GATE)["status"] == "True"
    assert "reason" not in condition(pod, "Ready")
