"""The ends of a device's log, by kubectl and a stock API server: a silent worker, a lablet that is deleted or ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.controllers.consolesite import Site, open_site
from tests.component.controllers.harness import World
from tests.component.controllers.looking import when
from tests.component.kubelet.kubectl import Kubectl
from tests.support.apiserver import ApiServer
from vkpsim.http.faults import Fault


@pytest.fixture
async def site(world: World) -> Site:
    return await open_site(world)


@pytest.fixture
async def kubectl(apiserver: ApiServer, world: World, tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with Kubectl(apiserver.kubeconfig, world.namespace, tmp_path) as kubectl:
        yield kubectl


async def test_a_log_that_cannot_be_read_is_an_error_and_no_line(site: Site, kubectl: Kubectl) -> None:
    simulator, worker = site.simulator, site.running.replica.fleet.items[site.worker]
    simulator.faults.add(Fault(kind="silence", route="^GET .*/consoles/"), simulator.now())
    logs = ("logs", site.lablet.name, "-c", "h0", "--timestamps")
    once, followed = await asyncio.gather(kubectl(*logs, "--tail=1"), kubectl(*logs, "-f"))
    for code, out, err in (once, followed):
        assert (code, out, "no response within" in err) == (1, "", True), err
    simulator.faults.add(Fault(kind="silence"), simulator.now())
    await when(lambda: bool(worker.seen.silent_because), "the worker is known to be silent")
    for options in ((), ("-f",), ("--previous",)):
        code, out, err = await kubectl(*logs, *options)
        assert (code, out, f"worker {site.worker}: " in err) == (1, "", True), err
    simulator.faults.clear()
    await when(lambda: not worker.seen.silent_because, "the worker answers again")
    assert (await kubectl(*logs))[0] == 0


async def test_who_follows_a_device_is_told_that_its_lablet_was_deleted(site: Site, kubectl: Kubectl) -> None:
    following = await kubectl.start("logs", "-f", site.lablet.name, "-c", "h0")
    assert following.stdout is not None
    assert await following.stdout.readline()
    await site.lablet.delete()
    async with asyncio.timeout(90):
        out, _ = await following.communicate()
    assert out.decode().splitlines()[-1] == "[the lablet has ended]"
    assert following.returncode == 0


async def test_the_log_of_a_device_that_has_gone_says_so(site: Site, kubectl: Kubectl) -> None:
    await site.lablet.annotate(desired_state="TERMINATED")
    await site.lablet.until(lambda pod: pod["status"]["phase"] in {"Succeeded", "Failed"}, "the lablet ends")
    await site.lablet.unclaimed()

    async def read(container: str) -> list[str]:
        code, out, err = await kubectl("logs", site.lablet.name, "-c", container)
        assert (code, err) == (0, "")
        return out.splitlines()

    *story, last = await read("h0")
    assert last == "[the console log of h0 went with its lab; this is the story of the lablet]"
    assert story[0].endswith("Pod created")
    assert await read("lab") == story
