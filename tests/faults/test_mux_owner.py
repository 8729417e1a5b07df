"""The owner of muxes is killed between every pair of writes of a pass, or stopped for longer than its Lease: another
replica goes on, no number is given twice, and none is lost.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
import pytest

from tests.component.controllers.looking import when
from tests.component.mux.harness import ACCOUNT, PREFIX, MuxWorld
from tests.component.mux.lending import expose, exposed
from tests.support.apiserver import MEMBERS, SYSTEM, until
from tests.support.faultyapi import Asked, FaultyApi
from tests.support.muxhistory import MuxHistory
from vkprovider.lablet import exposure, names
from vkprovider.platform import wellknown

WRITES: Final = "^(POST|PATCH|PUT|DELETE) (?!.*(leases|events|reviews))"
LOOK_S: Final = 10.0
"""From one look at a mux to the next."""
BACK_S: Final = 15.0
"""The time until a mux is served again."""
AT_ONCE: Final = 8
"""Muxes that a replica serves at once: so many are interrupted by one kill."""
_MUX = re.compile(r"mux-\w+x")


class Interrupted:
    """Holds the writes of passes; of each mux so many are let through, and of others all.

    Attributes:
        held: The first write that was held, by the name of the mux.
        passed: How many were let through.
    """

    def __init__(self, through: Mapping[str, int] = MappingProxyType({})) -> None:
        self._through = through
        self.held: dict[str, str] = {}
        self.passed: Counter[str] = Counter()
        self.free = asyncio.Event()

    def __call__(self, asked: Asked) -> Awaitable[object] | None:
        match = _MUX.search(asked.path) or _MUX.search(asked.body.decode())
        assert match, f"a write for no mux: {asked.line}"
        name = match[0]
        if self.passed[name] < self._through.get(name, sys.maxsize):
            self.passed[name] += 1
            return None
        self.held.setdefault(name, asked.line)
        return self.free.wait()


class Story:
    """A mux with a channel and a lablet: how it begins, changes and ends."""

    def __init__(self, world: MuxWorld, name: str) -> None:
        self._world = world
        self.name = name
        self._api, self._pod = f"api-{name}", f"seat-{name}"
        self._lablet = ""
        self.seen: object = None

    async def begins(self) -> None:
        world = self._world
        self._backends = await world.slice(self._api, ("10.1.0.10",))
        of_mux = f"{PREFIX}/{self.name}.{world.edge}"
        await world.channel(self._api, "http:auto", mux=of_mux, backends=())
        await self._lend("ann")
        await world.mux(self.name)
        await world.address("203.0.113.10", self.name)

    async def has_begun(self) -> bool:
        return await self._shows({20000: "10.1.0.10:8080", 20001: "198.51.100.1:10011"})

    async def changes(self) -> None:
        """Another learner gets the worker's port, and the channel another backend."""
        await self._world.admin.delete(self._lablet)
        await self._lend("bob")
        points = [{"addresses": ["10.1.0.11"], "conditions": {"ready": True}}]
        await self._world.admin.patch(self._backends, {"endpoints": points})

    async def has_changed(self) -> bool:
        return await self._shows({20000: "10.1.0.11:8080", 20002: "198.51.100.1:10011"})

    async def ends(self) -> None:
        await self._world.admin.delete(self._world.path(self.name))

    async def has_ended(self) -> bool:
        world = self._world
        if await world.admin.get(world.path(self.name)) or await world.own_slices(self.name):
            return False
        api = await world.admin.get(world.path(self._api))
        assert api is not None
        told = await world.told(self._api)
        return told is None and not api["status"]["loadBalancer"] and await self._answer() == "refused"

    async def _lend(self, learner: str) -> None:
        lablet = exposed(self._world, self._pod, learner, 10011)
        lablet = msgspec.structs.replace(lablet, mux=f"{self.name}.{self._world.edge}")
        self._lablet = await expose(self._world, lablet)

    async def _answer(self) -> str:
        found = await self._world.admin.get(self._lablet)
        assert found is not None
        answers = json.loads(found["metadata"]["annotations"].get(names.ANNOTATION_MUX_ANSWER, "{}"))
        return str(answers.get("pc-serial", {}).get("state", ""))

    async def _shows(self, wanted: dict[int, str]) -> bool:
        world = self._world
        mux = await world.admin.get(world.path(self.name))
        assert mux is not None
        forwards = await world.forwards(self.name)
        self.seen = {
            "forwards": {port: to for (port, _), to in forwards.items()},
            "told": await world.told(self._api),
            "answer": await self._answer(),
            "summary": mux["metadata"]["annotations"].get(f"{PREFIX}/summary", "")[:36],
            "finalizers": mux["metadata"].get("finalizers"),
        }
        return self.seen == {
            "forwards": {port: {to} for port, to in wanted.items()},
            "told": "http:80->20000",
            "answer": exposure.LIVE,
            "summary": "2 channel(s) | 2 port(s) | 2 pod(s) ",
            "finalizers": [f"{PREFIX}/finalizer"],
        }


async def two_live(world: MuxWorld) -> None:
    """Wait until two replicas are members."""
    label = f"{wellknown.GROUP}/mux-replica"

    async def look() -> bool:
        return len([each for each in await world.admin.items(MEMBERS) if label in each["metadata"]["labels"]]) == 2

    await until(look)


async def all_of(stories: list[Story], how: str) -> None:
    for story in stories:
        await getattr(story, how)()


async def until_all(stories: list[Story], how: str, within_s: float = 60.0) -> None:
    left = list(stories)

    async def look() -> bool:
        left[:] = [story for story in left if not await getattr(story, how)()]
        return not left

    try:
        await until(look, within_s, 0.1)
    except TimeoutError:
        raise AssertionError(f"not {how} within {within_s} s: {[(story.name, story.seen) for story in left]}") from None


@pytest.mark.parametrize(
    ("before", "act", "done"),
    [([], "begins", "has_begun"), (["begins"], "changes", "has_changed"), (["begins"], "ends", "has_ended")],
    ids=["begins", "changes", "ends"],
)
async def test_mux_owner_killed_between_any_two_writes(muxes: MuxWorld, before: list[str], act: str, done: str) -> None:
    owner = await muxes.shipped()
    whole, writes = Story(muxes, "mux-wholex"), Interrupted()
    for step in before:
        await getattr(whole, step)()
        await until_all([whole], "has_begun")
    fault = owner.api.fault(WRITES, count=None, first=writes)
    await getattr(whole, act)()
    await until_all([whole], done)
    count = writes.passed[whole.name]
    assert count >= 5, "claim, slices, ports, reports"
    fault.count = 0
    took = []
    for first in range(0, count, AT_ONCE):
        through = {f"mux-{number}x": number for number in range(first, min(first + AT_ONCE, count))}
        stories = [Story(muxes, name) for name in through]
        if before:
            await all_of(stories, "begins")
            await until_all(stories, "has_begun")
        history = MuxHistory(muxes, *(story.name for story in stories))
        async with history.watched():
            held = Interrupted(through)
            owner.api.fault(WRITES, count=None, first=held)
            await all_of(stories, act)
            await when(lambda: len(held.held) == len(stories), f"every pass is interrupted: {held.held}")  # noqa: B023 (awaited here)
            standby = await muxes.shipped()
            await two_live(muxes)
            began = asyncio.get_running_loop().time()
            await owner.crash()
            await until_all(stories, done, BACK_S)
            took.append(asyncio.get_running_loop().time() - began)
            owner = standby
    print(f"{act}: killed at {count} writes; served again after {', '.join(f'{s:.1f} s' for s in took)}")  # noqa: T201 (a figure)


class Program:
    """The program as a process of its own, behind a proxy."""

    def __init__(self, api: FaultyApi, process: asyncio.subprocess.Process, log: Path) -> None:
        self.api = api
        self.log = log
        self._process = process

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def unowned_writes(self, since: int) -> list[str]:
        """Return its writes from its nth request on that took effect for muxes whose Lease it has not taken since."""
        taken, found = set[str](), []
        for asked in self.api.asked[since:]:
            name = _MUX.search(asked.path) or _MUX.search(asked.body.decode())
            if asked.method != "GET" and name is not None and 200 <= asked.status < 300:
                if "/leases" in asked.path:
                    taken.add(name[0])
                elif "/events" not in asked.path and name[0] not in taken:
                    found.append(asked.line)
        return found


@contextlib.asynccontextmanager
async def program(world: MuxWorld, folder: Path, name: str) -> AsyncIterator[Program]:
    async with FaultyApi(world.server.url, world.server.client_tls()) as api:
        env = {
            **os.environ,
            "KUBECONFIG": world.server.write_provider_kubeconfig(folder / name, api.url, ACCOUNT),
            "LABLET_CONTROLLER_INSTANCE_ID": f"{name}-{world.run}",
            "VKPROVIDER_NAMESPACE": SYSTEM,
            "VKPROVIDER_HTTP_HOST": "127.0.0.1",
            "VKPROVIDER_HTTP_PORT": "0",
        }
        log = folder / f"{name}.log"
        with log.open("wb") as file:
            command = (str(Path(sys.executable).with_name("vkprovider")), "mux")
            process = await asyncio.create_subprocess_exec(*command, env=env, stdout=file, stderr=file)
        try:
            yield Program(api, process, log)
        finally:
            process.kill()
            await process.wait()


LATE: Final = {"mux-storex": "configmaps", "mux-slicex": "endpointslices", "mux-portx": "services/mux-portx"}
"""The write of each mux that is on its way when its owner is stopped, and arrives when another one serves the mux."""


async def test_mux_owner_stopped_for_longer_than_its_lease_writes_nothing_late(muxes: MuxWorld, tmp_path: Path) -> None:
    """What it sent before is on its way; what it has still in hand is guarded."""
    stories = [Story(muxes, name) for name in LATE]
    arrive = asyncio.Event()
    held: dict[str, Asked] = {}

    def late(asked: Asked) -> Awaitable[object] | None:
        match = _MUX.search(asked.path) or _MUX.search(asked.body.decode())
        name = match[0] if match else ""
        if name in held or name not in LATE or LATE[name] not in asked.path or "finalizers" in asked.body.decode():
            return None
        held[name] = asked
        return arrive.wait()

    async with program(muxes, tmp_path, "first") as first:
        first.api.fault(WRITES, count=None, first=late)
        await all_of(stories, "begins")
        await when(lambda: held.keys() == LATE.keys(), f"each is on its way: {held}")
        async with program(muxes, tmp_path, "second"):
            await two_live(muxes)
            history = MuxHistory(muxes, *LATE)
            async with history.watched():
                first.signal(signal.SIGSTOP)
                await until_all(stories, "has_begun", BACK_S)
                await all_of(stories, "changes")
                await until_all(stories, "has_changed", BACK_S)
                arrive.set()
                await when(lambda: all(each.status for each in held.values()), "what was on its way has arrived")
                assert held["mux-storex"].status == held["mux-portx"].status == 409, (
                    "they name what they were made from"
                )
                await until_all(stories, "has_changed", BACK_S)  # a slice that came late leads nowhere, and goes
                asked = len(first.api.asked)
                first.signal(signal.SIGCONT)
                await when(lambda: first.log.read_text().count('"mux lost"'), "it learns that it was overtaken")
                await asyncio.sleep(LOOK_S)  # its next looks
                assert first.unowned_writes(asked) == []
                await until_all(stories, "has_changed", 1.0)
