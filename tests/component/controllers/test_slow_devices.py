"""Labs whose devices boot for long, on a simulated CML whose boots pass a hundred times as fast."""

import re
from typing import Any

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually, requests, waiting
from tests.support.topologies import topology
from vkpsim.cml.server import CmlSimulator
from vkpsim.cml.world.definition_json import from_json, node_definition_json
from vkpsim.cml.world.platforms import DEFINITIONS


def define(simulator: CmlSimulator, name: str, boot_timeout_s: int) -> None:
    """Add a node definition, an Alpine to which CML gives so many seconds to boot."""
    known = node_definition_json(DEFINITIONS["alpine"])
    known |= {"id": name, "boot": {**known["boot"], "timeout": boot_timeout_s}}
    simulator.simulation.system.node_definitions[name] = known
    simulator.simulation.world.definitions[name] = from_json(known)


def boots(simulator: CmlSimulator) -> list[tuple[float, int]]:
    """Return how long each device took until it was BOOTED, and how often it was started."""
    found = [node for lab in simulator.simulation.world.labs.values() for node in lab.nodes.values()]
    return [(round(node.booted_at - node.boots[-1].started_at, 3), len(node.boots)) for node in found]


@pytest.mark.parametrize(("timeout_s", "booted_s", "most"), [(1800, 15.0, "45 min"), (1200, 12.0, "30 min")])
async def test_slow_lab_is_ready_once(world: World, timeout_s: int, booted_s: float, most: str) -> None:
    """R000-120: it boots 1500 s; CML calls it BOOTED then, or at the time-out, and the provider waits longer."""
    await world.replica()
    simulator = await world.simulator(boot_seconds=(1500.0, 1500.0), boot_speed=100.0)
    define(simulator, "slow", timeout_s)
    worker = await world.worker(simulator.url, stats="On")
    told = await world.cmlworker(worker, lambda found: found.get("status", {}).get("bootTimeouts"))
    assert {"name": "slow", "seconds": timeout_s} in told["status"]["bootTimeouts"]
    name = await world.define(topology({"x1": "slow"}))
    await world.definition(name, lambda found: found["status"].get("bootTimeoutSeconds") == timeout_s * 3 // 2)
    first = await world.pod(name, worker)
    message = waiting(await first.until(lambda pod: "at most" in waiting(pod).get("message", "")))["message"]
    assert message.startswith("0 of 1 device booted, waiting for x1 (since ")
    assert message.endswith(f" UTC), {most} at most")
    assert (await first.ready())["status"]["containerStatuses"][0]["restartCount"] == 0
    assert boots(simulator) == [(booted_s, 1)]
    second = await world.pod(name, worker)
    pod = await second.until(lambda pod: "the last such lab took" in waiting(pod).get("message", ""))
    assert re.fullmatch(r"\d+ (s|min)", waiting(pod)["message"].partition("took ")[2])
    assert (await second.ready())["status"]["containerStatuses"][0]["restartCount"] == 0
    assert len(requests(simulator, "PUT", "/start")) == 2
    assert requests(simulator, "PUT", "/wipe") == []


async def test_each_wipe_of_a_lab_for_its_time_has_an_event_of_its_own(world: World) -> None:
    """It says how to wait longer; the second one is no repetition of the first, which nobody would see."""
    await world.replica(LAB_START_TIMEOUT="2")
    simulator = await world.simulator(boot_seconds=(50.0, 50.0))
    worker, definition = await world.worker(simulator.url), await world.define()
    found = await world.definition(definition, lambda found: "bootTimeoutSeconds" in found.get("status", {}))
    assert found["status"]["bootTimeoutSeconds"] == 2, "the setting wins"
    lablet = await world.pod(definition, worker)

    async def twice() -> list[dict[str, Any]]:
        events = await world.events("LabStartTimeout", lablet.name)
        return events if len(events) > 1 else []

    events = await eventually(twice, "a second Event")
    told = "not booted 2 s after the start: h0; to wait longer, raise LAB_START_TIMEOUT of the provider, now 2, or "
    assert sorted(event["message"] for event in events) == [
        f"{told}unset it",
        f"{told}unset it (start again number 2)",
    ]


async def test_a_definition_says_how_long_its_lab_may_boot_also_while_one_does(world: World) -> None:
    """The Event of a wipe says which field to raise, and to raise it is enough."""
    await world.replica()
    simulator = await world.simulator(boot_seconds=(1e6, 1e6))
    worker, definition = await world.worker(simulator.url), await world.define(bootTimeoutSeconds=60)
    assert (await world.definition(definition))["status"]["bootTimeoutSeconds"] == 60
    lablet = await world.pod(definition, worker)
    await lablet.until(lambda pod: waiting(pod).get("message", "").endswith("1 min at most"))
    assert await world.events("LabStartTimeout", lablet.name) == []
    world.slept_s += 61  # the machine was suspended, with the wall clock
    world.ahead_s += 61
    event = await world.until_event("LabStartTimeout", lablet.name)
    how = f"raise spec.bootTimeoutSeconds of LabletDefinition {definition}, now 60"
    assert event["message"] == f"not booted 60 s after the start: h0; to wait longer, {how}"
    await world.change_definition(definition, bootTimeoutSeconds=600)
    await world.definition(definition, lambda found: found["status"]["bootTimeoutSeconds"] == 600)
    pod = await lablet.until(lambda pod: waiting(pod).get("message", "").endswith("10 min at most"))
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
