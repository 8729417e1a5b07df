"""Who is looked at after an observation: those about whose labs there is news, and those who wait for one."""

import dataclasses
import json
from collections.abc import AsyncIterator

import pytest

from tests.component.cml.conftest import MiniCml, Secret, reply, serving
from tests.component.controllers.parts import claim_store, context
from vkprovider.cml.factory import open_labs, open_session
from vkprovider.cml.operations import STATS_API
from vkprovider.cml.stats import CmlWorkerStats
from vkprovider.lablet import observations
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.labs.controllers.worker.connection import WorkerConnection
from vkprovider.labs.controllers.worker.finalizer import Finalizer
from vkprovider.labs.controllers.worker.lab_index import LabIndex
from vkprovider.labs.controllers.worker.observer import Observer
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.settings.cluster import WorkerSettings
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.runtime.context import Context


@pytest.fixture
async def mini() -> AsyncIterator[MiniCml]:
    async with serving(MiniCml()) as mini:
        yield mini


@pytest.fixture
def ctx(kube: KubeClient) -> Context:
    return context(kube)


@pytest.fixture
async def worker(mini: MiniCml, ctx: Context) -> AsyncIterator[Worker]:
    """It has the labs of two lablets, `a` and `b`, and all that they have runs."""
    claims = claim_store(ctx)
    for uid in "ab":
        claims.put(Claim(uid, "team", uid, "netlab", "d", "1", "x", lab_id=f"lab-{uid}", started_at=1))
    spec = {"url": mini.url, "credentialsSecretName": "s"}
    labs_ = open_labs(mini.url, Secret().read)
    connection = WorkerConnection(
        parse_worker_spec(spec), labs_, LabIndex(ctx.installation, "w1", labs_), lambda: None, int, lambda: False
    )
    worker = Worker(
        "w1", "uid-w1", spec, connection, claims, lambda: None, Finalizer(ctx, "w1", lambda: None, lambda _: None)
    )
    show(mini, {"a": observations.BOOTED, "b": observations.BOOTED})
    yield worker
    await labs_.close()


def show(mini: MiniCml, states: dict[str, str]) -> None:
    """Have CML show labs with one device each."""
    rows = [
        {"id": f"n-{uid}", "lab_id": f"lab-{uid}", "label": "h0", "node_definition": "alpine", "state": state}
        for uid, state in states.items()
    ]
    mini.replies["/nodes"] = reply(200, json.dumps(rows))
    mini.replies["/labs"] = reply(200, json.dumps([f"lab-{uid}" for uid in states]))


@pytest.fixture
def observer(ctx: Context) -> Observer:
    return Observer(ctx, WorkerSettings(), lambda _: None)


async def test_only_news_wake(mini: MiniCml, worker: Worker, observer: Observer) -> None:
    assert sorted(await observer.observe(worker)) == ["a", "b"]
    worker.seen.devices_at = -1e9
    assert await observer.observe(worker) == []
    show(mini, {"a": observations.STOPPED, "b": observations.BOOTED})
    worker.seen.devices_at = -1e9
    assert await observer.observe(worker) == ["a"]
    show(mini, {"a": observations.STOPPED})
    worker.seen.devices_at = -1e9
    assert await observer.observe(worker) == ["b"]
    assert worker.seen.look("lab-b", -1e9)[0] is Presence.ABSENT


async def test_who_waits_is_woken_even_if_nothing_has_changed(worker: Worker, observer: Observer) -> None:
    """A stop that CML has accepted and not begun, or one without effect: all devices run, as before."""
    await observer.observe(worker)
    worker.awaiting.add("b")
    assert await observer.observe(worker) == ["b"]
    assert worker.awaiting == set()


async def test_who_waits_goes_on_waiting_while_the_worker_does_not_answer(
    mini: MiniCml, worker: Worker, observer: Observer
) -> None:
    await observer.observe(worker)
    worker.awaiting.add("b")
    mini.replies["/nodes"] = reply(500, '{"code": 500, "description": "no"}')
    assert await observer.observe(worker) == []
    assert worker.awaiting == {"b"}
    show(mini, {"a": observations.BOOTED, "b": observations.BOOTED})
    assert await observer.observe(worker) == ["b"]


async def test_lab_that_is_stopped_on_request_is_not_taken_off_what_cml_allocates(
    mini: MiniCml, worker: Worker, ctx: Context
) -> None:
    """CML allocates nothing for it, so that what is allocated is that of others."""
    need = Resources(cpu_m=4000, memory_bytes=2**30, lab_nodes=2)
    observer = Observer(ctx, WorkerSettings(), lambda _: need)
    host = {
        "cpu": {"count": 64},
        "memory": {"total": 2**36},
        "dominfo": {"allocated_cpus": 10, "allocated_memory": 2**22},
    }
    stats = {"computes": {"h": {"is_controller": True, "stats": host}}, "all": host}
    mini.replies["/system_stats"] = reply(200, json.dumps(stats))
    mini.replies["/diagnostics/licensing"] = reply(200, json.dumps({"quota": 500, "started": 5}))
    asked = CmlWorkerStats(open_session(mini.url, Secret().read, allow=STATS_API))
    worker.connection = dataclasses.replace(worker.connection, stats=asked)
    await observer.observe(worker)

    async def foreign() -> Resources:
        worker.seen.usage_at = -1e9
        await observer.ask_stats(worker)
        assert worker.seen.usage is not None
        return worker.seen.usage.foreign

    assert await foreign() == Resources(cpu_m=2000, memory_bytes=2 * 2**30, lab_nodes=1)
    worker.claims.put(worker.claims.claims["a"].paused(1))
    assert await foreign() == Resources(cpu_m=2000, memory_bytes=2 * 2**30, lab_nodes=1), "it still runs"
    show(mini, {"a": observations.STOPPED, "b": observations.BOOTED})
    worker.seen.devices_at = -1e9
    await observer.observe(worker)
    assert await foreign() == Resources(cpu_m=6000, memory_bytes=3 * 2**30, lab_nodes=3)
    await asked.close()


async def test_lab_that_cannot_be_read_does_not_make_the_worker_silent(
    mini: MiniCml, worker: Worker, observer: Observer
) -> None:
    show(mini, {"a": observations.BOOTED, "b": observations.BOOTED, "foreign": observations.BOOTED})
    mini.replies["/labs/lab-foreign"] = reply(403, '{"code": 403, "description": "Access denied"}')
    for _ in range(4):
        worker.seen.devices_at = -1e9
        await observer.observe(worker)
        assert (worker.seen.silent_because, worker.seen.failures, worker.lab_index.foreign) == ("", 0, 1)
