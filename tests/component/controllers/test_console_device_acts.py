"""`kubectl exec POD -c lab -- device restart r1`: one device, while the others run on, by real CML calls."""

import asyncio
from typing import Any

import pytest

from tests.component.controllers.consolesite import Site
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually, is_ready
from tests.support.terminals import Terminal
from tests.support.topologies import topology
from vkprovider.labs.kubelet.spi import Exit
from vkprovider.platform.errors import InputError, OutsideError

USAGE = "CommandInvalid: write `device start|stop|restart|wipe DEVICE [--yes]`"
LOST = "What is not saved on it is lost."


async def site_of(world: World) -> Site:
    simulator, running = await world.simulator(), await world.replica()
    worker = await world.worker(simulator.url)
    definition = await world.define(topology({"r1": "iosv", "r2": "iosv"}))
    lablet = await world.pod(definition, worker, devices=["r1", "r2"], typed=True)
    await lablet.ready()
    await lablet.claim(lambda row: row.get("readyAt"))
    return Site(world, running, simulator, worker, lablet)


def shown(pod: dict[str, Any], container: str) -> str:
    """Return the reason for which a container waits; `running` if it does not wait."""
    [state] = [each["state"] for each in pod["status"]["containerStatuses"] if each["name"] == container]
    return str(state.get("waiting", {}).get("reason", "running"))


def ready_since(pod: dict[str, Any]) -> str:
    [since] = [each["lastTransitionTime"] for each in pod["status"]["conditions"] if each["type"] == "Ready"]
    return str(since)


async def do(site: Site, *words: str) -> str:
    status, person = await site.run("lab", "device", *words, "--yes")
    assert status == Exit(0), person.out
    return person.out


async def refused(site: Site, *words: str) -> str:
    with pytest.raises(InputError) as refusal:
        await site.run("lab", *words)
    return f"{refusal.value.reason}: {refusal.value.message}"


async def in_state(site: Site, label: str, *states: str) -> None:
    async def look() -> bool:
        return site.node(label).state in states

    await eventually(look, f"{label} is {states}")


async def test_a_restart_concerns_one_device_and_asks(world: World) -> None:
    site = await site_of(world)
    before = {label: list(site.node(label).boots) for label in ("r1", "r2")}
    assert await refused(site, "device", "restart", "r1") == (
        f"NotConfirmed: Stop r1 and start it again? {LOST} Nobody was there to confirm that: add --yes, or "
        f"`kubectl exec -it {site.lablet.name} -c lab -- device restart r1` asks"
    )
    person = Terminal()
    asking = asyncio.create_task(site.devices.execute(site.target("lab"), ["device", "restart", "r1"], person))
    await person.shows(f"{LOST} [y/N]: ")
    person.type("n\r")
    assert (await asking).code == 1
    assert await do(site, "restart", "r1") == "r1 is being stopped, and is started then.\n"

    async def booted_twice() -> bool:
        return len(site.node("r1").boots) == len(before["r1"]) + 1 and site.node("r1").state == "BOOTED"

    await eventually(booted_twice, "r1 is started again")
    await site.lablet.until(lambda pod: shown(pod, "r1") == "running", "r1 runs")
    assert site.node("r2").boots == before["r2"]
    row = await site.lablet.claim(lambda row: not row.get("wishes"))
    assert not row.get("restarts"), "no failure"
    assert not row.get("uncounted"), "no recovery"


async def test_a_stopped_device_stays_off_through_replicas_and_the_lab_stays_ready(world: World) -> None:
    site = await site_of(world)
    since = ready_since(await site.lablet.ready())
    assert await do(site, "stop", "r1") == "r1 is being stopped, and stays off until it is started.\n"
    told = await site.lablet.until(lambda pod: shown(pod, "r1") == "StoppedOnRequest", "r1 is off")
    assert is_ready(told)
    assert site.node("r1").state == "STOPPED"
    assert await refused(site, "device", "stop", "r1", "--yes") == "NothingToDo: r1 is stopped already"
    await site.running.crash()
    again = await world.replica()
    late = Site(world, again, site.simulator, site.worker, site.lablet)
    starts = len(site.node("r1").boots)

    async def taken_over() -> bool:
        try:
            return await late.devices._finder.is_whole(late.target("lab"))
        except OutsideError:
            return False

    await eventually(taken_over, "the other replica acts for the worker")
    row = await site.lablet.claim(lambda row: row.get("wishes") == {"r1": "off"})
    assert not row.get("uncounted"), "it is not started again"
    pod = await site.lablet.until(is_ready, "Ready")
    assert (site.node("r1").state, len(site.node("r1").boots)) == ("STOPPED", starts)
    assert ready_since(pod) == since
    assert await do(late, "start", "r1") == "r1 is being started.\n"
    await in_state(site, "r1", "BOOTED")
    await site.lablet.until(lambda pod: shown(pod, "r1") == "running", "r1 runs")
    assert await refused(late, "device", "start", "r1") == "NothingToDo: r1 runs"


async def test_a_wiped_device_begins_with_the_configuration_that_cml_has_stored(world: World) -> None:
    """Whoever is asked reads that: a stop on request, and `config`, have CML store another one than the lab's."""
    site = await site_of(world)
    assert "it begins with the configuration that CML has stored; `reset` begins with that of the lab. Nobody" in (
        await refused(site, "device", "wipe", "r1")
    )
    given = [file.content for file in site.node("r1").configuration]
    site.node("r1").learned.append("banner login ^saved^")
    status, _ = await site.run("lab", "config", "r1")
    assert status == Exit(0)
    assert await do(site, "wipe", "r1") == "r1 is being wiped.\n"

    async def started_afresh() -> bool:
        return site.node("r1").wipes == 1 and site.node("r1").state == "BOOTED"

    await eventually(started_afresh, "r1 is started afresh")
    assert (site.node("r2").wipes, len(site.node("r2").boots)) == (0, 1)
    stored = [file.content for file in site.node("r1").configuration]
    assert "banner login ^saved^" in stored[0]
    assert stored != given
    await do(site, "stop", "r1")
    await in_state(site, "r1", "STOPPED")
    await do(site, "wipe", "r1")
    await in_state(site, "r1", "DEFINED_ON_CORE")
    await site.lablet.claim(lambda row: row.get("wishes") == {"r1": "off"})


async def test_what_cannot_be_done_is_said(world: World) -> None:
    site = await site_of(world)
    assert await refused(site, "device", "explode", "r1") == USAGE
    assert await refused(site, "device", "restart") == USAGE
    assert (await refused(site, "device", "stop", "r9", "--yes")).startswith("NotADevice: device 'r9' of pod")
    await site.lablet.annotate(desired_state="stopped")
    await site.lablet.claim(lambda row: row.get("stopped"))
    assert (await refused(site, "device", "stop", "r1", "--yes")).startswith("NothingToDo: the lab of ")


async def test_two_requests_at_one_moment_are_both_done(world: World) -> None:
    site = await site_of(world)
    await asyncio.gather(do(site, "stop", "r1"), do(site, "stop", "r2"))
    await in_state(site, "r1", "STOPPED")
    await in_state(site, "r2", "STOPPED")
    pod = await site.lablet.until(
        lambda pod: shown(pod, "r2") == shown(pod, "r1") == "StoppedOnRequest", "both are off"
    )
    assert is_ready(pod)
