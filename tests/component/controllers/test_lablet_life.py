"""A lablet from bound to gone: what the API server shows, and what CML is asked for."""

import asyncio
from typing import Final

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.labhistory import MADE, TAKEN_DOWN, crash, history
from tests.component.controllers.looking import condition, eventually, imports, is_ready, labs, requests, waiting, when
from tests.component.controllers.running import MORTAL
from tests.support.apiserver import CONFIG_MAPS
from tests.support.faultyapi import Asked
from tests.support.topologies import topology
from vkpsim.http.faults import Fault

STATUS_WRITE: Final = r"^PATCH .*/pods/[^/]*/status"
TAGGED = topology({"r1": "iosv", "h0": "alpine"}, {"r1": ["serial:4000"]})


async def test_bound_pod_becomes_ready_on_a_null_worker(world: World) -> None:
    await world.replica()
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker)
    pod = await lablet.ready()
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["podIP"] == "198.51.100.7"
    await lablet.annotate(desired_state="STOPPED")
    await lablet.waits("LabStopped")
    await lablet.annotate(desired_state=None)
    await lablet.ready()
    await lablet.delete()
    await lablet.gone()


async def test_pod_deleted_while_its_status_is_written_goes_at_once(world: World) -> None:
    running = await world.replica()
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    await lablet.claim(lambda row: row.get("readyAt"))
    known = running.replica.index.items[lablet.uid]

    async def delete() -> None:
        await lablet.delete()
        await when(lambda: known.pod and known.pod.metadata.deletion_timestamp, "the watch shows all of it")

    met = running.api.fault(STATUS_WRITE, then=delete)
    await lablet.annotate(desired_state="STOPPED")
    async with asyncio.timeout(15):  # not when something else happens to look at it
        await lablet.gone()
    assert met.met == 1


async def test_claim_is_written_before_the_import_and_the_lab_imported_once(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    pod = await lablet.ready()
    [imported] = imports(simulator)
    claims = [
        asked
        for asked in running.api.matching(r"^(POST|PUT) .*/configmaps")
        if lablet.uid.encode() in asked.body and asked.status < 300
    ]
    assert claims[0].answered_s <= imported.arrived_s
    assert imported.title.endswith(lablet.uid)
    assert pod["metadata"]["annotations"]["vkprovider.io/lab-id"] == imported.lab
    assert pod["metadata"]["annotations"]["vkprovider.io/state"] == "READY"
    assert len(requests(simulator, "PUT", "/start")) == 1


async def test_graceful_deletion_stops_wipes_and_deletes_the_lab_before_the_pod_goes(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(TAGGED)
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    ports = (await world.ports(worker))[lablet.name]
    assert ports
    await lablet.delete()
    await lablet.gone()
    assert labs(simulator) == {}
    [stop], [wipe] = requests(simulator, "PUT", "/stop"), requests(simulator, "PUT", "/wipe")
    [delete] = [entry for entry in requests(simulator, "DELETE", "") if "/labs/" in entry.path]

    def answered() -> list[Asked]:  # the watch may be faster than the answer
        return [asked for asked in running.api.matching(f"^DELETE {lablet.path}$") if asked.status == 200]

    [confirmed] = await when(answered, "the deletion of the Pod is answered")
    assert stop.arrived_s < wipe.arrived_s < delete.arrived_s < confirmed.began_s
    second = await world.pod(definition, worker)  # the ports of the first are free, and its row leaves with this write
    await second.ready()
    assert await world.ports(worker) == {second.name: ports}
    assert lablet.uid not in await world.claims(worker)


async def test_pod_deleted_while_no_replica_ran_leaves_no_lab(world: World) -> None:
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    await lablet.claim(lambda row: row.get("labId"))
    await first.crash()
    await lablet.delete(grace_s=0)
    second = await world.replica(MORTAL)
    await when(lambda: labs(simulator) == {}, "the lab is deleted")
    assert second.api.matching(f"^GET {lablet.path}$"), "the API server was not asked whether the Pod is gone"


async def test_replica_that_crashes_between_import_and_answer_does_not_import_twice(world: World) -> None:
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    simulator.faults.add(Fault(kind="lost_answer", route="^POST .*/import", count=1), simulator.now())
    simulator.faults.add(Fault(kind="status", status=503, route="^GET .*/labs", skip=1), simulator.now())
    lablet = await world.pod(definition, worker)
    await when(lambda: labs(simulator), "the lab is imported, without an answer")
    await first.crash()
    simulator.faults.clear()
    await world.replica(MORTAL)
    await lablet.ready()
    assert len(imports(simulator)) == 1
    assert await world.until_event("Adopted", lablet.name)


async def test_replica_that_stops_in_the_middle_is_continued_without_a_second_start(world: World) -> None:
    first = await world.replica()
    simulator = await world.simulator(boot_seconds=(7.0, 7.0))
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.waits("StartingNodes")
    await first.stop()
    await world.replica()
    await lablet.ready()
    assert len(imports(simulator)) == 1
    assert len(requests(simulator, "PUT", "/start")) == 1


async def test_lost_answer_to_an_import_makes_no_second_lab(world: World) -> None:
    """C31: the lab is there, its id is not: it is found by mark and title."""
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    simulator.faults.add(Fault(kind="lost_answer", route="^POST .*/import", count=1), simulator.now())
    lablet = await world.pod(definition, worker)
    pod = await lablet.ready()
    assert await world.until_event("Adopted", lablet.name)
    assert len(labs(simulator)) == len(imports(simulator)) == len(requests(simulator, "PUT", "/start")) == 1
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.parametrize("deleted", [False, True], ids=["it runs", "it is deleted"])
async def test_lost_answer_to_an_import_fails_no_job_and_leaves_no_lab(world: World, *, deleted: bool) -> None:
    """The last observation is older than the lab, and says nothing about it."""
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    simulator.faults.add(Fault(kind="lost_answer", route="^POST .*/import", count=1), simulator.now())
    lablet = await world.pod(definition, worker, restartPolicy="Never")
    if deleted:
        await when(lambda: labs(simulator), "the lab is imported, without an answer")
    else:
        assert (await lablet.ready())["status"]["phase"] == "Running"
    await lablet.delete()
    await lablet.gone()
    await when(lambda: labs(simulator) == {}, "the lab is deleted")


@pytest.mark.parametrize("killed", [False, True], ids=["graceful", "killed"])
async def test_every_step_survives_the_end_of_the_replica(world: World, *, killed: bool) -> None:
    """R000-022, R000-067, R004-033: whatever is under way is finished once, by this replica or by the next."""
    first = await world.replica(MORTAL)
    simulator = await world.simulator(boot_seconds_by_definition={"iosv": (7.0, 7.0)})
    worker, fast = await world.worker(simulator.url), await world.define()
    whole, crashed, stopping, forced = [await world.pod(fast, worker) for _ in range(4)]
    for lablet in (whole, crashed, stopping, forced):
        before = await lablet.ready()
    before = await whole.ready()
    starting = await world.pod(await world.define(topology({"r1": "iosv"})), worker)
    await starting.waits("StartingNodes")
    for route in ("/import$", "/stop$"):
        simulator.faults.add(Fault(kind="delay", route=route, delay_s=3.0, count=100), simulator.now())
    steps = first.replica.counters.steps
    imported = steps["IMPORT"]
    await stopping.delete()
    importing = await world.pod(fast, worker)
    await when(lambda: steps["IMPORT"] > imported and steps.get("STOP"), "an import and a stop begin")
    await (first.crash() if killed else first.stop())
    late = await world.pod(fast, worker)
    await forced.delete(grace_s=0)
    crash(simulator, crashed.uid, "h0")
    simulator.faults.clear()
    await world.replica(MORTAL)
    await crashed.until(lambda pod: is_ready(pod) and "(number 1)" in str(pod["status"]["containerStatuses"]))
    for lablet in (whole, starting, importing, late):
        await lablet.ready()
        assert history(simulator, lablet.uid) == MADE
    assert history(simulator, crashed.uid) == [*MADE, "start"]
    for lablet in (stopping, forced):
        await lablet.gone()
        await when(lambda uid=lablet.uid: history(simulator, uid) == [*MADE, *TAKEN_DOWN], "a lab stays")  # type: ignore[misc]
    assert len(labs(simulator)) == 5
    assert (await whole.ready())["status"]["containerStatuses"] == before["status"]["containerStatuses"]


async def test_worker_that_refuses_a_step_is_asked_again_and_the_pod_says_why(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    simulator.faults.add(Fault(kind="status", status=500, route="^PUT .*/start$", count=4), simulator.now())
    lablet = await world.pod(definition, worker)
    pod = await lablet.until(lambda pod: "trying again" in waiting(pod).get("message", ""))
    assert not is_ready(pod)
    await lablet.ready()
    assert [entry.status for entry in simulator.log.entries if entry.path.endswith("/start")] == [500] * 4 + [204]
    assert len(imports(simulator)) == 1


async def test_device_containers_report_their_devices(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(TAGGED)
    lablet = await world.pod(definition, worker, devices=["r1"])
    pod = await lablet.ready()
    statuses = {status["name"]: status for status in pod["status"]["containerStatuses"]}
    assert statuses.keys() == {"lab", "r1"}
    assert all(status["ready"] for status in statuses.values())
    assert condition(pod, "vkprovider.io/LabConverged")["status"] == "True"
    assert "2000" in pod["metadata"]["annotations"]["vkprovider.io/port-mappings"]


async def test_slow_step_shows_on_the_pod_while_it_lasts(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    simulator.faults.add(Fault(kind="delay", route="^POST .*/import", delay_s=7.0, count=1), simulator.now())
    lablet = await world.pod(definition, worker)
    await lablet.waits("ImportingLab")
    await lablet.ready()


async def test_changed_image_is_ignored_with_an_event(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    body = {"spec": {"containers": [{"name": "lab", "image": f"{definition}:9.9.9"}]}}
    await world.admin.request("PATCH", lablet.path, body, "application/strategic-merge-patch+json")
    assert f"{definition}:9.9.9" in (await world.until_event("ImageChangeIgnored", lablet.name))["message"]
    pod = await lablet.until(lambda pod: pod["status"]["observedGeneration"] == 2)
    assert is_ready(pod)
    assert pod["status"]["containerStatuses"][0]["image"] == f"{definition}:1.0.0"
    await lablet.annotate(desired_state="nonsense")
    await world.until_event("AnnotationInvalid", lablet.name)
    assert is_ready(await lablet.ready())
    assert history(simulator, lablet.uid) == MADE


async def test_collected_configurations_outlive_the_lablet(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(TAGGED)
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()

    async def kept() -> list[str]:
        found = await world.admin.items(CONFIG_MAPS + "?labelSelector=vkprovider.io%2Fcomponent%3Dconfigs")
        return sorted(item["metadata"]["name"] for item in found)

    await lablet.annotate(desired_state="COLLECTING")
    await world.until_event("Collected", lablet.name)
    [first] = await eventually(kept, "a ConfigMap with what alice left")
    await lablet.delete()
    await lablet.gone()
    assert first in await kept()
