"""Labs that CML refuses: the Pod says what CML said, the pauses between attempts grow, nothing is left behind."""

import asyncio
from itertools import pairwise

import pytest
import yaml

from tests.component.controllers.harness import World
from tests.component.controllers.looking import imports, is_ready, labs, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import SHORT, Groups
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology
from vkpsim.http.faults import Fault

GROWING: Groups = {**SHORT, "lablets": {**SHORT["lablets"], "step_retry_first_s": 0.2, "step_retry_cap_s": 30.0}}
"""The first pause is short, and the pauses grow as far as they are shipped to."""


@pytest.fixture
async def simulator(world: World) -> CmlSimulator:
    return await world.simulator()


def attempts(simulator: CmlSimulator, method: str, ending: str) -> list[float]:
    """Return when requests of a kind arrived."""
    entries = [e for e in simulator.log.entries if e.method == method and e.path.rstrip("/").endswith(ending)]
    return [entry.arrived_s for entry in entries]


def is_backing_off(times: list[float]) -> bool:
    """Return whether the pauses between attempts grow, and not only by their jitter, which halves them at most."""
    pauses = [b - a for a, b in pairwise(times)]
    return len(pauses) >= 3 and pauses[-1] > 2.2 * pauses[0]


async def warnings(lablet: Lablet) -> list[str]:
    """List the reasons of the warnings about a Pod."""
    selector = f"type=Warning,involvedObject.name={lablet.name}"
    return [event["reason"] for event in await lablet.admin.items(f"/api/v1/events?fieldSelector={selector}")]


async def test_import_that_cml_refuses_says_what_cml_said(world: World, simulator: CmlSimulator) -> None:
    await world.replica(GROWING)
    link = {"n1": "n0", "i1": "i0", "n2": "n1", "i2": "i1", "label": "x"}
    links = [link | {"id": "l0"}, link | {"id": "l1"}]  # two cables in one socket
    broken = topology({"h0": "alpine", "h1": "alpine"}).replace("links: []", f"links: {links}")
    worker, definition = await world.worker(simulator.url), await world.define(broken)
    lablet = await world.pod(definition, worker)
    assert "POST /import: 400" in (await lablet.waits("ImportRefused"))["message"]
    await when(lambda: is_backing_off(attempts(simulator, "POST", "/import")), "growing pauses between imports")
    assert await warnings(lablet) == ["ImportRefused"]
    assert labs(simulator) == {}
    await lablet.delete()
    await lablet.gone()
    good = await world.pod(await world.define(), worker)
    await good.ready()
    assert [*await world.claims(worker)] == [good.uid], "with the next write the row of the other leaves"


async def test_what_cml_warns_of_at_the_import_is_an_event(world: World, simulator: CmlSimulator) -> None:
    """CML imports a lab whose node definitions or images it lacks; only its warning says so."""
    await world.replica()
    known = {"iosv": "acme-router", "alpine": "acme-host"}
    document = yaml.safe_load(topology({f"{kind}-{n}": kind for kind in known for n in range(2)}))
    for node in document["nodes"]:
        node |= {"node_definition": known[node["node_definition"]], "ram": 512, "cpus": 1}
    worker, definition = await world.worker(simulator.url), await world.define(yaml.safe_dump(document))
    lablet = await world.pod(definition, worker)
    event = await world.until_event("ImportWarned", lablet.name)
    assert event["type"] == "Warning"
    warned = "Unknown node definition: acme-host; Unknown node definition: acme-router"
    assert event["message"] == f"CML warns of the lab that it imported: {warned}"
    await lablet.ready()
    assert await warnings(lablet) == ["ImportWarned"]


async def test_import_that_cml_refuses_is_tried_less_often_than_other_steps(
    world: World, simulator: CmlSimulator
) -> None:
    """The same topology is refused again, unless the worker changes; a licence may come at any time."""
    cap_s = 0.5
    await world.replica({**SHORT, "lablets": {**SHORT["lablets"], "step_retry_cap_s": cap_s}})
    worker, definition = await world.worker(simulator.url), await world.define()
    simulator.faults.add(Fault(kind="status", status=400, route="^POST .*/import"), simulator.now())
    lablet = await world.pod(definition, worker)
    await lablet.waits("ImportRefused")

    def longest_s() -> float:
        return max((b - a for a, b in pairwise(attempts(simulator, "POST", "/import"))), default=0.0)

    await when(lambda: longest_s() > 2 * cap_s, "pauses longer than those of other steps")


@pytest.mark.parametrize(("status", "reason"), [(400, "ImportRefused"), (500, "WorkerError")])
async def test_import_is_tried_again_until_cml_carries_it_out(
    world: World, simulator: CmlSimulator, status: int, reason: str
) -> None:
    await world.replica()
    worker, definition = await world.worker(simulator.url), await world.define()
    simulator.faults.add(Fault(kind="status", status=status, route="^POST .*/import", count=4), simulator.now())
    lablet = await world.pod(definition, worker)
    assert f"POST /import: {status}" in (await lablet.waits(reason))["message"]
    assert is_ready(await world.node(worker)), "the worker answers everything else"
    await lablet.ready()
    assert len(imports(simulator)) == len(labs(simulator)) == 1


async def test_start_without_a_licence_waits_for_it(world: World, simulator: CmlSimulator) -> None:
    await world.replica(GROWING)
    worker, definition = await world.worker(simulator.url), await world.define()
    simulator.simulation.world.registered = False
    lablet = await world.pod(definition, worker)
    assert "/start: 4" in (await lablet.waits("StartRefused"))["message"]
    await when(lambda: is_backing_off(attempts(simulator, "PUT", "/start")), "growing pauses between starts")
    simulator.simulation.world.registered = True
    await lablet.ready()
    assert len(imports(simulator)) == len(labs(simulator)) == 1


async def test_other_lablets_do_not_hurry_one_that_is_held_back(world: World, simulator: CmlSimulator) -> None:
    """Lablets that boot have the worker observed ten times a second; that must not wake one that failed."""
    await world.replica({**SHORT, "lablets": {**SHORT["lablets"], "step_retry_first_s": 1.0, "step_retry_cap_s": 30.0}})
    worker, definition = await world.worker(simulator.url), await world.define()
    simulator.faults.add(Fault(kind="status", status=400, route="^PUT .*/start"), simulator.now())
    stuck = await world.pod(definition, worker)
    await stuck.waits("StartRefused")
    [lab] = simulator.simulation.world.labs.values()
    simulator.faults.clear()
    simulator.faults.add(Fault(kind="status", status=400, route=f"^PUT .*/{lab.id}/start"), simulator.now())
    simulator.simulation.settings.boot_seconds_by_definition["iosv"] = (7.0, 7.0)
    lively = await world.pod(await world.define(topology({"r1": "iosv"})), worker)
    await lively.waits("StartingNodes")
    before = len(attempts(simulator, "PUT", f"/{lab.id}/start"))
    looks = len(attempts(simulator, "GET", "/labs"))
    await asyncio.sleep(2)
    assert len(attempts(simulator, "GET", "/labs")) > looks, "the worker is observed"
    assert len(attempts(simulator, "PUT", f"/{lab.id}/start")) - before <= 2
