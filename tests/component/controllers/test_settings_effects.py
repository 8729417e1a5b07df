"""What settings change that no other test sets: whole replicas, configured by environment variables alone."""

import logging
import time
from pathlib import Path

import aiohttp
import pytest
import structlog
import yaml

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition, is_ready, requests, when
from tests.component.controllers.running import SHORT, Running
from tests.component.controllers.test_sessions_flow import CONFIGS, PORT, TOKEN
from tests.support.apiserver import GROUP
from tests.support.topologies import topology
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.main import page_of
from vkprovider.platform.times import iso
from vkpsim.cml.server import CmlSimulator
from vkpsim.http.faults import Fault
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings


def stop_devices(simulator: CmlSimulator) -> None:
    """Stop every device, as someone does in CML's own page."""
    world = simulator.simulation.world
    for lab in world.labs.values():
        for node in lab.nodes.values():
            world.stop_node(simulator.now(), lab, node)


async def open_lds(world: World) -> LdsSimulator:
    return await world.stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN)))


async def test_taint_effect(world: World) -> None:
    await world.replica(VKPROVIDER_TAINT_EFFECT="NoSchedule")
    node = await world.node(await world.worker(), is_ready)
    ours = {taint["effect"] for taint in node["spec"]["taints"] if taint["key"].startswith(("vkprovider", "virtual"))}
    assert ours == {"NoSchedule"}


@pytest.mark.parametrize("most", [1, 4])
async def test_worker_probe_failures(world: World, most: int) -> None:
    """A worker is silent when so many probes failed one after the other, and not before."""
    await world.replica(VKPROVIDER_WORKER_PROBE_FAILURES=str(most))
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    probe = "^GET /api/v0/labs$"
    before = condition(await world.node(worker), "Ready")
    if most > 1:
        simulator.faults.add(Fault(kind="status", status=503, route=probe, count=most - 1), simulator.now())
        await when(lambda: not simulator.faults.list(simulator.now()), "one probe less failed")
        passed = len(requests(simulator, "GET", "/labs"))
        await when(lambda: len(requests(simulator, "GET", "/labs")) > passed, "it is asked again")
    assert await world.events("WorkerUnreachable", worker) == []
    assert condition(await world.node(worker, is_ready), "Ready") == before
    simulator.faults.add(Fault(kind="status", status=503, route=probe, count=most), simulator.now())
    await world.until_event("WorkerUnreachable", worker)
    await world.node(worker, is_ready)
    assert [event["count"] for event in await world.events("WorkerUnreachable", worker)] == [1]


async def test_recovery_attempts(world: World) -> None:
    """Without attempts, a lab whose devices stopped is wiped at once, or kept for a person if it was in use."""
    await world.replica(RECOVERY_MAX_ATTEMPTS="0")
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    stop_devices(simulator)
    await lablet.waits("NeedsAttention")
    assert await world.events("Recovering", lablet.name) == []


async def test_stopped_max_seconds(world: World) -> None:
    await world.replica(VKPROVIDER_STOPPED_MAX_SECONDS="1")
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    await lablet.annotate(desired_state="STOPPED")
    await lablet.until(lambda pod: pod["status"]["phase"] == "Failed")
    assert await world.until_event("StoppedTooLong", lablet.name)


async def test_timeslot_warning_seconds(world: World) -> None:
    """With the default nothing is announced an hour before the end."""
    await world.replica(VKPROVIDER_TIMESLOT_WARNING_SECONDS="4000")
    notes = {"vkprovider.io/username": "alice", "vkprovider.io/timeslot-end": iso(int(time.time()) + 3600)}
    lablet = await world.pod(await world.define(), await world.worker(), annotations=notes)
    said = await world.until_event("TimeslotEnding", lablet.name)
    assert (said["type"], said["message"].startswith("the time of alice ends in ")) == ("Warning", True)


async def test_kept_seconds(world: World) -> None:
    running = await world.replica(VKPROVIDER_KEPT_SECONDS="3600")
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(PORT)
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    await lablet.annotate(desired_state="COLLECTING")
    await world.until_event("Collected", lablet.name)
    world.ahead_s = 3000
    await running.replica.archive.sweep()
    assert len(await world.admin.items(CONFIGS)) == 1
    world.ahead_s = 4000
    await running.replica.archive.sweep()
    assert await world.admin.items(CONFIGS) == []


async def test_timeslot_seconds_and_every_access(world: World) -> None:
    lds = await open_lds(world)
    await world.replica(
        LDS_API_URL=lds.url,
        LDS_API_TOKEN=TOKEN,
        VKPROVIDER_TIMESLOT_SECONDS="5400",
        VKPROVIDER_LDS_EVERY_ACCESS="true",
    )
    simulator = await world.simulator()
    both = topology({"r1": "iosv"}, {"r1": ["serial:4000", "vnc:4001"]})
    worker, definition = await world.worker(simulator.url), await world.define(both)
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    [session] = lds.world.sessions.values()
    assert {device.protocol for device in session.devices} == {"telnet", "vnc"}
    [part] = session.parts
    assert abs(part.ends_unix_s - time.time() - 5400) < 60


async def test_one_access_for_each_device_without_every_access(world: World) -> None:
    lds = await open_lds(world)
    await world.replica(LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN)
    simulator = await world.simulator()
    both = topology({"r1": "iosv"}, {"r1": ["serial:4000", "vnc:4001"]})
    worker, definition = await world.worker(simulator.url), await world.define(both)
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    [session] = lds.world.sessions.values()
    assert len(session.devices) == 1
    [part] = session.parts
    assert abs(part.ends_unix_s - time.time() - 86400) < 60


@pytest.mark.parametrize("setting", ["true", "false"])
async def test_refresh_of_content(world: World, setting: str) -> None:
    """R000-080: the LDS fetches the form of new content anew, unless the setting says otherwise."""
    lds = await open_lds(world)
    await world.replica(LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN, VKPROVIDER_LDS_REFRESH_CONTENT=setting)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(PORT)

    def refreshes() -> int:
        return sum(entry.path.endswith("/content/refresh") for entry in lds.log.since(0))

    if setting == "true":
        await when(lambda: refreshes() == 1, "the LDS is asked once")
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    assert lds.world.sessions, "with either setting sessions are made"
    assert refreshes() == (1 if setting == "true" else 0)


async def test_api_qps_and_burst(world: World) -> None:
    """R004-051: a provider keeps to its rate on a real API server; only Leases and watches go before.

    Up to three requests that were let through before the first count may arrive after it.
    """
    running = await world.replica(VKPROVIDER_API_QPS="6", VKPROVIDER_API_BURST="4")
    began, before = running.ctx.now(), paced(running)
    worker, definition = await world.worker(), await world.define()
    for lablet in [await world.pod(definition, worker) for _ in range(4)]:
        await lablet.ready()
    sent = paced(running) - before
    assert 4 < sent <= 4 + 6 * (running.ctx.now() - began) + 3


def paced(running: Running) -> int:
    """Count the requests to the API server so far that are neither about Leases nor watches."""
    return len(running.api.matching(r"^(?!.*(/leases|watch=))"))


@pytest.mark.parametrize("several", [False, True])
async def test_lds_timeouts(world: World, tmp_path: Path, *, several: bool) -> None:
    """R000-097, R000-121: LDS_API_TIMEOUT bounds calls of the one deployment, the other those of the file's."""
    lds = await open_lds(world)
    file = tmp_path / "lds_deployments.yaml"
    entry = {"id": "one", "base_url": lds.url, "capacity": 10, "priority": 1}
    file.write_text(yaml.safe_dump({"lds_deployments": [entry]}))
    short, long = "1.5", "600"
    timeouts = {"LDS_API_TIMEOUT": long if several else short, "LDS_DEFAULT_TIMEOUT": short if several else long}
    way = {"LDS_DEPLOYMENTS_CONFIG": str(file)} if several else {"LDS_API_URL": lds.url}
    lds.faults.add(Fault(kind="silence", route="^POST .*/sessions$"), lds.now())
    await world.replica(SHORT, LDS_API_TOKEN=TOKEN, **timeouts, **way)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(PORT)
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    assert "1.5 s" in (await lablet.waits("LDSUnavailable"))["message"]


async def test_secrets_of_lds_grader_and_senders_are_in_no_log_and_no_object(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """They are used: right, refused and while the other side fails; what is logged on the way is there."""
    caplog.set_level(logging.DEBUG)
    lds = await open_lds(world)
    secrets = {
        "LDS_API_TOKEN": TOKEN,
        "VKPROVIDER_GRADER_TOKEN": "a-grader-token-that-is-wrong",
        "VKPROVIDER_EVENTS_SECRET": "a-secret-of-senders another-secret-of-senders",
    }
    variables = {"LDS_API_URL": lds.url, "VKPROVIDER_GRADER_URL": f"{lds.url}/grade", **secrets}
    with structlog.testing.capture_logs() as logged:
        running = await world.replica(SHORT, **variables)
        page = page_of(
            Settings.from_environment({"VKPROVIDER_HTTP_PORT": "0", "VKPROVIDER_HTTP_HOST": "127.0.0.1", **variables})
        )
        await page.start()
        world.stack.push_async_callback(page.stop)
        page.serve(running.replica.process)
        lds.faults.add(Fault(kind="status", status=503, route="^POST .*/sessions$", count=1), lds.now())
        simulator = await world.simulator()
        worker, definition = await world.worker(simulator.url), await world.define(PORT)
        lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
        await lablet.ready()
        async with aiohttp.ClientSession() as http:
            for token, status in (("a-secret-of-senders", 400), ("another-wrong-secret-x", 401)):
                headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/cloudevents+json"}
                async with http.post(f"http://127.0.0.1:{page.port}/events", data=b"no event", headers=headers) as said:
                    assert said.status == status
        await lablet.annotate(desired_state="COLLECTING")
        await lablet.until(lambda pod: "GraderRefused" in str(pod["status"]))
    paths = (
        "/api/v1/events",
        "/api/v1/pods",
        "/api/v1/configmaps",
        f"{GROUP}/cmlworkers",
        f"{GROUP}/labletdefinitions",
    )
    objects = [item for path in paths for item in await world.admin.items(path)]
    text = f"{logged} {caplog.text} {objects}"
    assert "GraderRefused" in text
    assert "events refused" in str(logged)
    for secret in " ".join(secrets.values()).split():
        assert secret not in text
