"""An API server that refuses, does not answer, or loses its answers while the work goes on."""

import json
from typing import Any

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import imports, is_ready, labs, requests, when
from tests.support.apiserver import CONFIG_MAPS, RUNTIME_CLASSES
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.wellknown import API_VERSION

FAULTS: list[dict[str, Any]] = [{"status": 409}, {"status": 429}, {"status": 500}, {"drop": True}, {"lose": True}]
NAMES = [str(next(iter(fault.values()))) if "status" in fault else next(iter(fault)) for fault in FAULTS]


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
async def test_lablet_comes_and_goes_with_faults_in_every_kind_of_write(world: World, fault: dict[str, Any]) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    met = [running.api.fault(r"^POST .*/configmaps", count=2, **fault)]
    if fault.get("status") != 409:  # which says that another Pod has the name by now: there is nothing to try again
        met.append(running.api.fault(r"^PATCH .*/pods/", count=3, **fault))
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    assert len(imports(simulator)) == 1
    assert len(requests(simulator, "PUT", "/start")) == 1
    met.append(running.api.fault(r"^PUT .*/configmaps", count=2, **fault))
    second = await world.pod(definition, worker)
    await second.ready()
    assert len(imports(simulator)) == 2
    if fault.get("status") != 409:
        met.append(running.api.fault(rf"^DELETE {lablet.path}", count=2, **fault))
    await lablet.delete()
    await lablet.gone()
    assert [title[-36:] for title in labs(simulator)] == [second.uid]
    assert [fault.pattern for fault in met if not fault.met] == []


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
async def test_definition_is_stored_once_with_faults_in_every_write(world: World, fault: dict[str, Any]) -> None:
    running = await world.replica()
    met = [
        running.api.fault(r"^PATCH .*/labletdefinitions/[^/]*$", **fault),
        running.api.fault(r"^PATCH .*/labletdefinitions/[^/]*/status", **fault),
        running.api.fault(r"^POST .*/configmaps", **fault),
    ]
    if fault.get("status") != 409:  # a RuntimeClass that exists all of a sudden is another one's
        met.append(running.api.fault(r"^POST .*/runtimeclasses", **fault))
    name = await world.define()
    assert all(fault.met for fault in met)
    assert len((await world.definition(name))["status"]["versions"]) == 1
    assert await world.admin.get(f"{RUNTIME_CLASSES}/{name}")


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
async def test_node_is_made_and_kept_with_faults_in_every_write(world: World, fault: dict[str, Any]) -> None:
    running = await world.replica()
    met = [
        running.api.fault(r"^POST .*/nodes$", **fault),
        running.api.fault(r"^PATCH .*/nodes/", **fault),
        running.api.fault(r"^POST .*/kube-node-lease/leases", **fault),
        running.api.fault(r"^PATCH .*/cmlworkers/", **fault),
    ]
    worker = await world.worker()
    await world.admin.patch(f"/api/v1/nodes/vnode.{worker}", {"metadata": {"labels": {"vkprovider.io/env": "x"}}})
    node = await world.node(worker, lambda node: node["metadata"]["labels"]["vkprovider.io/env"] == "default")
    assert is_ready(node)
    await world.cmlworker(worker, is_ready)
    assert all(fault.met for fault in met)


async def test_ended_watches_and_late_answers_hide_nothing(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    running.api.fault(r"^GET .*watch=", count=4, delay_s=0.5)
    assert running.api.end_watches() >= 5
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    running.api.fault(r"^GET /api/v1/pods", count=2, status=500)
    running.api.end_watches("/pods")
    await lablet.delete()
    await lablet.gone()
    assert labs(simulator) == {}


async def test_stale_list_of_pods_takes_no_lab_down(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    empty = b'{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}'
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    stale = running.api.fault(r"^GET /api/v1/pods\?(?!.*watch)", answer=empty)
    gone = running.api.fault(r"^GET /api/v1/pods\?.*watch", status=410)
    running.api.end_watches("/pods")
    await when(lambda: stale.met and gone.met, "the informer has listed")
    pods: Informer[Any] = running.replica.objects.pods
    await when(lambda: any(pod.metadata.uid == lablet.uid for pod in pods.items.values()), "the Pod is seen again")
    assert is_ready(await lablet.ready())
    assert len(labs(simulator)) == 1
    assert requests(simulator, "PUT", "/stop") == []


async def test_stale_list_of_cmlworkers_takes_no_node_down(world: World) -> None:
    running = await world.replica()
    worker = await world.worker()
    before = await world.node(worker, is_ready)
    empty = {"kind": "CMLWorkerList", "apiVersion": API_VERSION, "metadata": {"resourceVersion": "1"}, "items": []}
    stale = running.api.fault(r"^GET .*/cmlworkers\?(?!.*watch)", answer=json.dumps(empty).encode())
    gone = running.api.fault(r"^GET .*/cmlworkers\?.*watch", status=410)
    running.api.end_watches("/cmlworkers")
    await when(lambda: stale.met and gone.met, "the informer has listed")
    await when(lambda: worker in running.replica.objects.workers.items, "the CMLWorker is seen again")
    assert await running.replica.queues.workers.drain(10)
    assert (await world.node(worker, is_ready))["metadata"]["uid"] == before["metadata"]["uid"]


async def test_claims_that_others_write_at_the_same_time_are_merged(world: World) -> None:
    running = await world.replica()
    worker, definition = await world.worker(), await world.define()
    first = await world.pod(definition, worker)
    await first.ready()
    await first.claim(lambda row: row.get("labId"))
    path = f"{CONFIG_MAPS}/{worker}-port-allocations"

    async def write_too(_: object) -> None:
        await world.admin.patch(path, {"metadata": {"labels": {"written-by": "others"}}})

    raced = running.api.fault(f"^PUT {path}", first=write_too)
    second = await world.pod(definition, worker)
    await second.ready()
    assert raced.met
    assert (await world.claims(worker)).keys() == {first.uid, second.uid}


async def test_deleted_claims_are_written_again(world: World) -> None:
    await world.replica()
    worker, definition = await world.worker(), await world.define()
    first = await world.pod(definition, worker)
    await first.ready()
    row = await first.claim(lambda row: row.get("labId"))
    await world.admin.delete(f"{CONFIG_MAPS}/{worker}-port-allocations")
    second = await world.pod(definition, worker)
    await second.ready()
    assert (await first.claim())["labId"] == row["labId"]


async def test_claims_that_the_api_server_refuses_are_said_on_the_pod(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    refused = running.api.fault(rf"^POST {CONFIG_MAPS}$", count=None, status=403)
    lablet = await world.pod(definition, worker)
    await lablet.waits("ClaimsRefused")
    assert imports(simulator) == []
    refused.count = 0
    await lablet.ready()
