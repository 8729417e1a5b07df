"""Recovery never destroys work: what stops is started again without a wipe, and what cannot be is kept (C07, C48).

What was done to a lab is read from the worker's own access log.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.labhistory import (
    MADE,
    TAKEN_DOWN,
    crash,
    existing_lab,
    history,
    lab_of,
    take_away,
)
from tests.component.controllers.looking import is_ready, requests, waiting, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import MORTAL, SHORT, Groups
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology

POLICIES = ("Always", "OnFailure", "Never")
TWO_HOSTS = topology({"h0": "alpine", "h1": "alpine"})
ROUTER = topology({"r1": "iosv"})
NEVER_S = 86400.0
SOON: Groups = {**SHORT, "lablets": {**SHORT["lablets"], "start_retry_first_s": 0.2, "start_retry_cap_s": 1.0}}
"""Starts follow one another within a second."""


def impatient(start_timeout_s: float) -> Groups:
    """Return settings under which a lab has so long to boot."""
    return {**SOON, "lablets": {**SOON["lablets"], "start_timeout_s": start_timeout_s}}


def container(pod: dict[str, Any], name: str = "lab") -> dict[str, Any]:
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return next((entry for entry in statuses if entry["name"] == name), {})


def last_end(pod: dict[str, Any], name: str = "lab") -> dict[str, Any]:
    """Return the `lastState.terminated` of a container; empty if it never ended."""
    ended: dict[str, Any] = container(pod, name).get("lastState", {}).get("terminated", {})
    return ended


async def restarted(lablet: Lablet, times: int) -> dict[str, Any]:
    """Wait until a lablet is Ready and its lab was started again so many times."""
    number = f"number {times})" if times else ""
    return await lablet.until(
        lambda pod: is_ready(pod) and last_end(pod).get("message", "").rpartition("(")[2] == number,
        f"not Ready after {times} restarts",
    )


async def failed(lablet: Lablet, simulator: CmlSimulator, reason: str) -> dict[str, Any]:
    """Wait until a lablet has failed for a reason; its lab is gone by then. Return how its container ended."""
    pod = await lablet.until(lambda pod: pod["status"].get("phase") == "Failed", "not Failed")
    assert lab_of(simulator, lablet.uid) is None, "Failed is reported when the lab is gone"
    ended: dict[str, Any] = container(pod)["state"]["terminated"]
    assert (pod["status"]["reason"], ended["exitCode"], ended["reason"]) == (reason, 1, reason)
    return ended


async def until_done(simulator: CmlSimulator, lablet: Lablet, good: Callable[[list[str]], bool]) -> None:
    """Wait until what was done to a lablet's lab satisfies a condition."""
    await when(lambda: good(history(simulator, lablet.uid)), f"what was done to the lab of {lablet.name}")


async def test_crashing_device_is_started_three_times_then_a_person_must_look(world: World) -> None:
    """The fourth time the lab is kept as it is; whoever starts the device on the worker has the lablet Ready again."""
    await world.replica(SOON)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(TWO_HOSTS)
    lablet = await world.pod(definition, worker, devices=("h0", "h1"))
    await lablet.ready()
    for times in (1, 2, 3):
        crash(simulator, lablet.uid, "h1")
        now = await restarted(lablet, times)
        assert history(simulator, lablet.uid) == MADE + ["start"] * times
        assert [container(now, n)["restartCount"] for n in ("lab", "h0", "h1")] == [0, 0, 0], "nothing failed"
        assert (last_end(now)["reason"], last_end(now, "h1")["reason"]) == ("DeviceStopped", "DeviceStopped")
        for name in ("lab", "h1"):
            assert last_end(now, name)["message"] == f"h1 stopped on the worker (number {times})"
        assert last_end(now)["startedAt"] <= last_end(now)["finishedAt"]
        assert last_end(now, "h0") == {}

    crash(simulator, lablet.uid, "h1")
    message = (await lablet.waits("NeedsAttention"))["message"]
    for words in ("h1 stopped", "did not come back after 3 starts", "is kept as it is", "or delete the pod"):
        assert words in message
    now = await lablet.until(bool)
    assert (now["status"]["phase"], is_ready(now)) == ("Running", False)
    assert waiting(now, "h1")["reason"] == "DeviceStopped"
    assert container(now, "h0")["ready"]
    await world.until_event("NeedsAttention", lablet.name)
    await asyncio.sleep(2)  # the time of twenty observations, in which nothing may happen
    assert history(simulator, lablet.uid) == MADE + ["start"] * 3

    lab = existing_lab(simulator, lablet.uid)
    simulator.simulation.world.start_lab(simulator.now(), lab)  # a person looks
    await restarted(lablet, 3)
    await lablet.delete()
    await lablet.gone()
    assert history(simulator, lablet.uid) == [*MADE, *["start"] * 3, *TAKEN_DOWN]


async def test_lab_that_crashes_while_it_boots_follows_the_restart_policy(world: World) -> None:
    """Nobody can have worked in it: after three starts without a wipe it is made afresh, or ends."""
    await world.replica(SOON)
    simulator = await world.simulator(boot_seconds_by_definition={"iosv": (8.0, 8.0)})
    worker, definition = await world.worker(simulator.url), await world.define(ROUTER)
    always, never = [await world.pod(definition, worker, restartPolicy=policy) for policy in ("Always", "Never")]
    for starts in (0, 1, 2, 3):
        for lablet in (always, never):
            await until_done(simulator, lablet, lambda done, n=starts: done == MADE + ["start"] * n)  # type: ignore[misc]
            crash(simulator, lablet.uid, "r1")
    ended = await failed(never, simulator, "LabCrashed")
    assert "r1 stopped on the worker while it booted" in ended["message"]
    assert history(simulator, never.uid) == [*MADE, *["start"] * 3, "wipe", "DELETE"]

    now = await restarted(always, 4)
    assert container(now)["restartCount"] == 1, "it failed once"
    assert history(simulator, always.uid) == [*MADE, *["start"] * 3, "wipe", "start"]
    assert last_end(now)["reason"] == "LabCrashed"


async def test_lab_that_never_boots_follows_the_restart_policy(world: World) -> None:
    """It is stopped, wiped and started afresh with a back-off, or ends; it never was Ready, so nothing can be lost."""
    groups = impatient(2.0)
    await world.replica({**groups, "lablets": {**groups["lablets"], "start_retry_first_s": 2.0}})
    simulator = await world.simulator(boot_seconds_by_definition={"csr1000v": (NEVER_S, NEVER_S)})
    worker = await world.worker(simulator.url)
    definition = await world.define(topology({"h0": "alpine", "r1": "csr1000v"}))
    always, on_failure, never = [await world.pod(definition, worker, restartPolicy=policy) for policy in POLICIES]
    for lablet in (always, on_failure, never):
        await until_done(simulator, lablet, lambda done: done[: len(MADE)] == MADE)
    ids = {lablet: existing_lab(simulator, lablet.uid).id for lablet in (always, on_failure)}
    await always.waits("CrashLoopBackOff")
    pod = await always.until(bool)
    assert (pod["status"]["phase"], is_ready(pod)) == ("Pending", False)
    await failed(never, simulator, "LabStartTimeout")
    assert history(simulator, never.uid) == [*MADE, *TAKEN_DOWN]
    for lablet in (always, on_failure):
        await until_done(simulator, lablet, lambda done: done[:5] == [*MADE, "stop", "wipe", "start"])
        pod = await lablet.until(lambda pod: container(pod).get("restartCount"), "no restart is counted")
        assert existing_lab(simulator, lablet.uid).id == ids[lablet]
        assert (pod["status"]["phase"], is_ready(pod)) == ("Pending", False)
        assert last_end(pod)["reason"] == "LabStartTimeout"
        assert "not booted 2 s after the start: r1" in last_end(pod)["message"]
        await lablet.delete()
        await lablet.gone()
        assert lab_of(simulator, lablet.uid) is None


async def test_device_that_boots_late_is_waited_for(world: World) -> None:
    """Each start has its own time; a recovered lab that needs too long is kept, and Ready when it boots after all."""
    await world.replica(impatient(15.0))
    simulator = await world.simulator(licence_nodes=2, boot_seconds_by_definition={"iosv": (2.5, 2.5)})
    worker, definition = await world.worker(simulator.url), await world.define(topology({"r1": "iosv", "r2": "iosv"}))
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    assert history(simulator, lablet.uid) == MADE
    crash(simulator, lablet.uid, "r2")
    await restarted(lablet, 1)
    assert history(simulator, lablet.uid) == [*MADE, "start"]

    cml = simulator.simulation.world
    cml.set_quota(simulator.now(), 1)
    crash(simulator, lablet.uid, "r1")
    await lablet.waits("LabQueued")
    message = (await lablet.waits("NeedsAttention"))["message"]
    for words in ("not booted 15 s after the start: r1", "node licences", "is kept as it is"):
        assert words in message
    cml.set_quota(simulator.now(), 2)
    await restarted(lablet, 2)
    assert history(simulator, lablet.uid) == [*MADE, "start", "start"]


async def test_lab_that_another_client_deleted_follows_the_restart_policy(world: World) -> None:
    """There is no work left to save: it is imported again, under Never the lablet has failed."""
    await world.replica(SOON)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablets = [await world.pod(definition, worker, restartPolicy=policy) for policy in POLICIES]
    for lablet in lablets:
        await lablet.ready()
    ids = {existing_lab(simulator, lablet.uid).id for lablet in lablets}
    for lablet in lablets:
        take_away(simulator, existing_lab(simulator, lablet.uid), delete=True)
    always, on_failure, never = lablets
    await failed(never, simulator, "LabLost")
    for lablet in (always, on_failure):
        pod = await restarted(lablet, 1)
        lab = existing_lab(simulator, lablet.uid)
        assert lab.id not in ids
        assert pod["metadata"]["annotations"]["vkprovider.io/lab-id"] == lab.id
        assert last_end(pod)["reason"] == "LabLost"
        assert "deleted on the worker by another client" in last_end(pod)["message"]
        assert history(simulator, lablet.uid).count("import") == 2
        await world.until_event("LabLost", lablet.name)
    assert history(simulator, never.uid).count("import") == 1


async def test_lab_that_another_client_stopped_is_started_as_it_was(world: World) -> None:
    """Under every policy: what was worked on is still on its disks. One that was wiped too is not imported again."""
    await world.replica(SOON)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    wiped, *stopped = [await world.pod(definition, worker, restartPolicy=policy) for policy in ("Always", *POLICIES)]
    for lablet in (wiped, *stopped):
        await lablet.ready()
    ids = {lablet: existing_lab(simulator, lablet.uid).id for lablet in (wiped, *stopped)}
    for lablet in ids:
        take_away(simulator, existing_lab(simulator, lablet.uid), wipe=lablet is wiped)
    for lablet, lab_id in ids.items():
        await restarted(lablet, 1)
        assert existing_lab(simulator, lablet.uid).id == lab_id
        assert history(simulator, lablet.uid) == [*MADE, "start"]


async def test_lab_that_cml_queues_boots_when_a_licence_is_free(world: World) -> None:
    """Another client uses the licences that the worker's capacity promised: the lablet says so and waits."""
    await world.replica(SOON)
    simulator = await world.simulator(licence_nodes=2)
    worker, definition = await world.worker(simulator.url), await world.define(TWO_HOSTS)
    first = await world.pod(definition, worker)
    await first.ready()
    second = await world.pod(definition, worker)
    message = (await second.waits("LabQueued"))["message"]
    assert "h0, h1" in message
    assert "node licences" in message
    await first.delete()
    await second.ready()
    assert history(simulator, second.uid) == MADE


async def test_start_that_died_with_its_replica_is_given_its_time_when_the_next_one_sends_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All replicas were away for longer than a start may take; CML accepts it twice and is slow to act."""
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    cml = simulator.simulation.world
    worker, definition = await world.worker(simulator.url), await world.define(ROUTER)
    with monkeypatch.context() as slow:
        slow.setattr(cml, "start_lab", lambda *_: None)
        lablet = await world.pod(definition, worker)
        await lablet.claim(lambda row: row.get("started"))
        await first.crash()
        world.ahead_s += 400.0
        await world.replica(MORTAL)

        def looks() -> int:
            """Count how often the devices were looked at since CML accepted the second start."""
            sent = [entry.number for entry in requests(simulator, "PUT", "/start")][1:]
            looked = [entry.number for entry in requests(simulator, "GET", "/api/v0/nodes")]
            return sum(number > sent[0] for number in looked) if sent else 0

        await when(lambda: looks() > 2, "the next replica looks")
    cml.start_lab(simulator.now(), existing_lab(simulator, lablet.uid))
    pod = await lablet.ready()
    assert (container(pod)["restartCount"], last_end(pod)) == (0, {})
    assert history(simulator, lablet.uid) == [*MADE, "start"]


async def test_compute_host_that_is_away_starts_nothing_again(world: World) -> None:
    """CML brings the devices back by itself; nothing had stopped."""
    await world.replica(SOON)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    cml = simulator.simulation.world
    cml.set_connected(simulator.now(), connected=False)
    assert "the compute host of h0 is away" in (await lablet.waits("ComputeDisconnected"))["message"]
    cml.set_connected(simulator.now(), connected=True)
    await restarted(lablet, 0)
    assert history(simulator, lablet.uid) == MADE


async def test_rebooted_worker_brings_all_labs_back(world: World) -> None:
    """All labs stop at once, also one that boots and one of somebody else: ours come back as they were."""
    running = await world.replica(SOON)
    simulator = await world.simulator(boot_seconds_by_definition={"iosv": (7.0, 7.0)})
    worker, definition = await world.worker(simulator.url), await world.define(TWO_HOSTS)
    lablets = [await world.pod(definition, worker) for _ in range(3)]
    for lablet in lablets:
        await lablet.ready()
    ids = {lablet: existing_lab(simulator, lablet.uid).id for lablet in lablets}
    foreign = (await running.replica.fleet.items[worker].labs.import_lab(TWO_HOSTS, "homework")).id
    boots = await world.pod(await world.define(ROUTER), worker)
    await until_done(simulator, boots, lambda done: done == MADE)
    seen = simulator.log.entries[-1].number
    simulator.simulation.world.reboot(simulator.now())
    for lablet, lab_id in ids.items():
        pod = await restarted(lablet, 1)
        assert existing_lab(simulator, lablet.uid).id == lab_id
        assert container(pod)["restartCount"] == 0, "nothing failed"
        assert last_end(pod)["reason"] == "DeviceStopped"
        assert last_end(pod)["message"] == "h0, h1 stopped on the worker (number 1)"
    await boots.ready()
    for lablet in (*lablets, boots):
        assert history(simulator, lablet.uid) == [*MADE, "start"]
    touched = [entry for entry in simulator.log.entries if entry.number > seen and foreign in entry.path]
    assert [entry for entry in touched if entry.method != "GET"] == []
