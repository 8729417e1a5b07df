"""Which change wakes which queue: the table of `labs.wiring.parts.changes`, row by row, on a replica that stands."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.idle import idle_provider
from vkprovider.labs.controllers.worker.observer import Observer
from vkprovider.labs.wiring.parts.changes import agent_handlers
from vkprovider.labs.wiring.provider import Provider
from vkprovider.platform.kube.queue import DONE, KeyedQueue, Result

TUNNEL: Final = {"VKPROVIDER_TUNNEL_HTTP_TOKENS": "w:the-token-of-w-which-is-long"}
WORKER: Final = {"metadata": {"name": "w", "uid": "u-w", "generation": 1}}
DEFINITION: Final = {"metadata": {"name": "d", "uid": "u-d"}}
CONTENT: Final = {"metadata": {"name": "d-1", "namespace": "n", "annotations": {"vkprovider.io/definition": "d"}}}
NODE: Final = {"metadata": {"name": "vnode.w"}}
POD: Final = {
    "metadata": {"name": "p", "namespace": "team", "uid": "u-p"},
    "spec": {"nodeName": "vnode.w", "containers": []},
}
CLAIMS: Final = {"metadata": {"name": "w-port-allocations", "namespace": "n"}}

Woken = dict[str, set[str]]


class Idle:
    """A replica whose handlers are registered."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._versions = itertools.count(1)
        self.informers = {informer.name: informer for informer in provider.process.informers}
        for part in provider.process.parts:
            for change in part.changes:
                change.register()

    def see(self, informer: str, kind: str, found: dict[str, Any], **metadata: Any) -> None:
        """Show a replica what its watch would."""
        version = {"resourceVersion": str(next(self._versions))}
        shown = {**found, "metadata": {**found["metadata"], **version, **metadata}}
        self.informers[informer]._read_line(json.dumps({"type": kind, "object": shown}, separators=(",", ":")).encode())

    def lead(self) -> None:
        """Have it lead, which it learns from the API server otherwise."""
        membership = self.provider.base.membership
        membership._is_first, membership._renew_began_at = True, 1e12

    async def woken(self) -> Woken:
        """Return the keys that are due, by queue, and take them away."""
        found = {work.queue.name: await self._taken(work.queue) for work in self.provider.process.works}
        return {name: keys for name, keys in found.items() if keys}

    async def _taken(self, queue: KeyedQueue[str]) -> set[str]:
        keys: set[str] = set()

        async def take(key: str) -> Result:
            keys.add(key)
            return DONE

        running = asyncio.create_task(queue.run(take))
        assert await queue.drain(5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return keys


@pytest.fixture
async def idle(tmp_path: Path) -> AsyncIterator[Idle]:
    async with idle_provider(tmp_path) as provider:
        yield Idle(provider)


@pytest.fixture
async def tunnelled(tmp_path: Path) -> AsyncIterator[Idle]:
    async with idle_provider(tmp_path, **TUNNEL) as provider:
        yield Idle(provider)


@pytest.mark.parametrize(
    ("informer", "found", "woken"),
    [
        ("cmlworkers", WORKER, {"workers": {"w"}}),
        ("nodes", NODE, {"workers": {"w"}}),
        ("nodes", {"metadata": {"name": "another"}}, {}),
        ("labletdefinitions", DEFINITION, {"definitions": {"d"}}),
        ("runtimeclasses", DEFINITION, {"definitions": {"d"}}),
        ("content", CONTENT, {"definitions": {"d"}}),
        ("pods", POD, {}),  # the replica that acts for its worker wakes it
        ("claims", CLAIMS, {}),
    ],
)
@pytest.mark.parametrize("kind", ["ADDED", "DELETED"])
async def test_an_object_that_comes_or_goes_wakes(
    idle: Idle, informer: str, found: dict[str, Any], woken: Woken, kind: str
) -> None:
    if kind == "DELETED":
        idle.see(informer, "ADDED", found)
        await idle.woken()
    idle.see(informer, kind, found)
    assert await idle.woken() == woken


@pytest.mark.parametrize(
    ("change", "woken"),
    [
        ({"generation": 2}, {"workers": {"w"}}),
        ({"annotations": {"vkprovider.io/approved": "true"}}, {"workers": {"w"}}),
        ({"finalizers": ["vkprovider.io/claims"]}, {"workers": {"w"}}),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, {"workers": {"w"}}),
        ({}, {}),  # a status that a replica wrote
    ],
)
async def test_a_worker_wakes_when_people_ask_for_something_else(
    idle: Idle, change: dict[str, Any], woken: Woken
) -> None:
    idle.see("cmlworkers", "ADDED", WORKER)
    await idle.woken()
    idle.see("cmlworkers", "MODIFIED", WORKER, **change)
    assert await idle.woken() == woken


async def test_a_worker_wakes_all_definitions_where_the_replica_leads(idle: Idle) -> None:
    idle.see("labletdefinitions", "ADDED", DEFINITION)
    await idle.woken()
    idle.lead()
    idle.see("cmlworkers", "ADDED", WORKER)
    assert await idle.woken() == {"workers": {"w"}, "definitions": {"d"}}


@pytest.mark.parametrize(
    ("status", "woken"),
    [
        ({"cmlVersion": "2.10.1+build.2"}, {"definitions": {"d"}}),
        ({"nodeDefinitions": [{"name": "acme", "cpus": 1, "ram": 512}]}, {"definitions": {"d"}}),
        ({"labs": {"ours": 1, "foreign": 0}}, {}),
    ],
)
async def test_what_definitions_fit_by_wakes_them_where_the_replica_leads(
    idle: Idle, status: dict[str, Any], woken: Woken
) -> None:
    idle.see("labletdefinitions", "ADDED", DEFINITION)
    idle.lead()
    idle.see("cmlworkers", "ADDED", WORKER)
    await idle.woken()
    idle.see("cmlworkers", "MODIFIED", {**WORKER, "status": status})
    assert await idle.woken() == woken


@pytest.mark.parametrize("kind", ["ADDED", "DELETED"])
async def test_a_worker_that_comes_or_goes_wakes_its_agent(tunnelled: Idle, kind: str) -> None:
    if kind == "DELETED":
        tunnelled.see("cmlworkers", "ADDED", WORKER)
        await tunnelled.woken()
    tunnelled.see("cmlworkers", kind, WORKER)
    assert await tunnelled.woken() == {"workers": {"w"}, "agents": {"w"}}


async def test_an_agent_wakes_its_worker_and_its_registration(idle: Idle) -> None:
    base = idle.provider.base
    heard, happened = agent_handlers(base, Observer(base.ctx, base.settings.workers, lambda _: None))
    happened("w")
    assert await idle.woken() == {"workers": {"w"}}
    heard("w")
    assert await idle.woken() == {"workers": {"w"}, "agents": {"w"}}


async def test_what_only_the_leader_does_wakes_when_it_begins_to_lead(idle: Idle) -> None:
    for informer, found in (("labletdefinitions", DEFINITION), ("nodes", NODE), ("pods", POD)):
        idle.see(informer, "ADDED", found)
    await idle.woken()
    idle.provider.process._led()
    assert await idle.woken() == {"workers": {"w"}, "definitions": {"d"}}


async def test_everything_wakes_when_the_replica_may_act_again(idle: Idle) -> None:
    for informer, found in (("labletdefinitions", DEFINITION), ("cmlworkers", WORKER), ("pods", POD)):
        idle.see(informer, "ADDED", found)
    await idle.woken()
    idle.provider.process._resumed()
    assert await idle.woken() == {"workers": {"w"}, "definitions": {"d"}, "lablets": {"u-p"}}
