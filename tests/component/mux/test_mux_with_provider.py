"""The provider and the program that serves muxes, each with its own account, on one API server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.harness import open_world as open_provider
from tests.component.controllers.podhandle import Lablet
from tests.component.mux.harness import MuxWorld
from tests.support.apiserver import ApiServer
from tests.support.topologies import topology

PORT = topology({"r1": "iosv"}, {"r1": ["serial:4000"]})


@pytest.fixture
async def labs(mux_server: ApiServer, tmp_path: Path) -> AsyncIterator[World]:
    folder = tmp_path / "labs"
    folder.mkdir()
    async with open_provider(mux_server, folder) as labs:
        yield labs


def access(pod: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, dict[str, Any]] = json.loads(pod["metadata"]["annotations"].get("vkprovider.io/access", "{}"))
    return said.get("r1_serial", {})


async def lend(labs: World, definition: str, worker: str, learner: str) -> Lablet:
    return await labs.pod(definition, worker, annotations={"vkprovider.io/username": learner})


async def until_live(lablet: Lablet) -> int:
    """Wait until the Pod shows an outside port, and return it."""
    pod = await lablet.until(lambda pod: access(pod).get("state") == "live", "not live")
    return int(access(pod)["port"])


async def test_another_learner_gets_another_number_although_the_worker_has_one_port(
    world: MuxWorld, labs: World
) -> None:
    """A worker range of exactly one lablet's size: A ends while no mux runs, B starts."""
    mux = await world.replica()
    await world.mux(port_range="20000-20009", allowed_namespaces="")
    await world.address("203.0.113.10")
    await labs.replica()
    worker = await labs.worker(address="198.51.100.7", portRange={"start": 2000, "end": 2000})
    definition = await labs.define(PORT, expose={"mux": f"mux.{world.edge}"})
    a = await lend(labs, definition, worker, "ann")
    first = await until_live(a)
    await world.until_forwards({first: {"198.51.100.7:2000"}})
    await mux.crash()
    await a.delete()
    await a.gone()
    await a.unclaimed()
    b = await lend(labs, definition, worker, "bob")
    await b.waits("PortsResting")
    await world.replica()
    await world.until_forwards({})
    labs.ahead_s = 61.0
    second = await until_live(b)
    await world.until_forwards({second: {"198.51.100.7:2000"}})
    assert second != first
    assert await labs.ports(worker) == {b.name: {"r1_serial": 2000}}
