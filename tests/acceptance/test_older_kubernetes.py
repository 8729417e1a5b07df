"""An API server that behaves as an older version does: it drops fields that it does not know yet."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.component.controllers.harness import World, open_world
from tests.component.controllers.looking import when
from tests.component.controllers.running import WITH_PASSES
from tests.support import apiserver as real
from tests.support.apiserver import ApiServer


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Kubernetes as it was in 1.33, the oldest version that this kube-apiserver emulates."""
    with real.running(tmp_path_factory.mktemp("oldest"), "--emulated-version=1.33") as server:
        yield server


@pytest.fixture
async def world(oldest: ApiServer, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(oldest, tmp_path) as world:
        yield world


async def test_an_idle_lablet_is_never_written(world: World) -> None:
    """1.33 counts a Pod's generations and drops `observedGeneration`; that is no reason to write it again."""
    running = await world.replica(WITH_PASSES)
    lablet = await world.pod(await world.define(), await world.worker())
    pod = await lablet.ready()
    assert pod["metadata"]["generation"] == 1
    assert "observedGeneration" not in pod["status"]
    counters, queue = running.replica.counters, running.replica.queues.lablets
    await lablet.claim(lambda row: row.get("readyAt"))
    await when(lambda: counters.status_writes and not queue.depth, "nothing is under way")
    written, turns = counters.status_writes, queue.runs_total
    await when(lambda: queue.runs_total >= turns + 3, "passes look at the lablet")
    assert counters.status_writes == written
