"""A process of one part that knows no labs, on the real API server: it owns keys, works, serves its page, and ends."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

import aiohttp
import pytest
from aiohttp import web

from tests.component.controllers.looking import when
from tests.component.controllers.parts import context
from tests.support.apiserver import MEMBERS, SYSTEM, Admin
from tests.support.faultyapi import FaultyApi
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.platform.errors import InputError
from vkprovider.platform.http.page import Page
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.kube.queue import DONE, KeyedQueue, Result
from vkprovider.platform.runtime.leases import LeaseKind
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.metrics import counter, value
from vkprovider.platform.runtime.ownership import Ownership
from vkprovider.platform.runtime.parts import Part, Route, Work
from vkprovider.platform.runtime.process import Process
from vkprovider.platform.settings import HttpSettings

KEYS: Final = ["m0", "m1"]
MUXES: Final = LeaseKind(
    noun="mux",
    key="mux",
    namespace=SYSTEM,
    seconds=60,
    labels={"vkprovider.io/mux": "true"},
    name_of=lambda key: f"mux-{key}",
    key_of=lambda name: name.removeprefix("mux-") if name.startswith("mux-") else None,
    about=partial(ObjectRef, "v1", "Service", SYSTEM),
    taken_over=WorkerReason.TAKEN_OVER,
    owner=lambda key, uid: None,  # noqa: ARG005 (a mux may be in another namespace than its Lease)
    foreign=partial(InputError, WorkerReason.NODE_CONFLICT),
)


class Muxes:
    """A part that owns keys, and notes what the process has it do."""

    def __init__(self, kube: KubeClient) -> None:
        self.told: list[str] = []
        ctx = context(kube, replica="me")
        membership = Membership(ctx, 3.0)
        self.queue: KeyedQueue[str] = KeyedQueue(name="muxes", workers=2)
        self.early: KeyedQueue[str] = KeyedQueue(name="endpoints", workers=1)
        self.ownership = Ownership(ctx, membership, MUXES, lambda: KEYS, levels=1, wake=self.queue.add)
        part = Part(
            owns=(self.ownership,),
            informers=(self.ownership.leases,),
            works=(Work(self.queue, self._take), Work(self.early, self._read, is_early=True, first_s=5.0)),
            loops={"plan": self.ownership.plan.run, "heartbeat": self.ownership.run_heartbeat},
            measures=(counter("muxes_owned_total", "Keys.", lambda: value(len(self.ownership.epochs))),),
            routes=(Route("GET", "/muxes/{name}", self._show),),
            health=lambda: {"muxes": sorted(self.ownership.epochs)},
            known=partial(self.told.append, "known"),
            fenced=partial(self.told.append, "fenced"),
            resumed=self._resumed,
            led=partial(self.told.append, "led"),
            finish=partial(self._note, "finish"),
            hand_over=partial(self._note, "hand over"),
            close=partial(self._note, "close"),
        )
        self.process = Process(ctx, membership, (part,))

    async def _take(self, key: str) -> Result:
        self.told.append(f"take {key}")
        self.ownership.plan.act(key)
        await self.ownership.acquire(key, "uid")
        return DONE

    async def _read(self, key: str) -> Result:
        self.told.append(f"read {key}")
        return DONE

    async def _show(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=request.match_info["name"])

    def _resumed(self) -> None:
        self.told.append("resumed")
        for key in KEYS:
            self.queue.add(key)

    async def _note(self, moment: str) -> None:
        self.told.append(moment if self.ownership.epochs else f"{moment}, owning nothing")


@pytest.fixture
async def muxes(real_kube: KubeClient, admin: Admin) -> Muxes:  # noqa: ARG001 (deletes what was written)
    return Muxes(real_kube)


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    page = Page(HttpSettings(host="127.0.0.1", port=0), "me", starting={"muxes": []})
    await page.start()
    yield page
    await page.stop()


async def test_a_process_owns_keys_works_serves_and_hands_over(muxes: Muxes, page: Page, admin: Admin) -> None:
    muxes.early.add("e")
    stop = asyncio.Event()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{page.port}") as http:
        async with http.get("/muxes/m0") as answer:
            assert (answer.status, (await answer.json())["reason"]) == (503, "Starting")
        page.serve(muxes.process)
        running = asyncio.create_task(muxes.process.run(stop))
        await when(lambda: set(muxes.ownership.epochs) == set(KEYS), "it owns all keys")
        assert muxes.process.unready() == []
        async with http.get("/health") as answer:
            assert (await answer.json())["muxes"] == KEYS
        async with http.get("/muxes/m0") as answer:
            assert (answer.status, await answer.text()) == (200, "m0")
        async with http.post("/muxes/m0") as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, "GET")
        async with http.get("/nowhere") as answer:
            assert answer.status == 404
        async with http.get("/metrics") as answer:
            shown = await answer.text()
            assert "muxes_owned_total 2.0" in shown
            assert 'vkprovider_queue_depth{queue="muxes"} 0.0' in shown
            assert 'vkprovider_queue_depth{queue="endpoints"} 0.0' in shown
    stop.set()
    await running
    assert muxes.told.index("read e") < muxes.told.index("known") < min(map(muxes.told.index, ("take m0", "take m1")))
    assert muxes.told[-3:] == ["finish", "hand over", "close, owning nothing"]
    leases = await admin.items(MEMBERS)
    assert {lease["metadata"]["name"]: lease["spec"].get("holderIdentity") for lease in leases} == {
        "mux-m0": None,
        "mux-m1": None,
    }


async def test_parts_are_told_of_the_fence_and_of_its_end(muxes: Muxes, api: FaultyApi) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(muxes.process.run(stop))
    await when(lambda: set(muxes.ownership.epochs) == set(KEYS), "it owns all keys")
    muxes.told.clear()
    api.fault("^PUT .*/vkprovider-replica-", status=503, count=None)
    await when(lambda: "fenced" in muxes.told, "it is fenced")
    assert muxes.process.unready() == ["lease"]
    assert not muxes.process.membership.leads()
    api.heal()
    await when(lambda: "resumed" in muxes.told, "it may act again")
    assert "led" in muxes.told
    assert muxes.process.unready() == []
    stop.set()
    await running
