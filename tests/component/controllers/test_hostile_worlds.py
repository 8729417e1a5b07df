"""Edits of learners' names, reports and CMLWorkers at random: two urls of one controller, lost claims, killed replicas.

No learner ever sees another's session, lab or port. `HOSTILE_STEPS=600` is the long run; `HOSTILE_SEED` repeats one.
"""

import asyncio
import os
import random
from collections import Counter
from contextlib import suppress
from typing import Any, Final

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition, eventually, is_ready, rows_of, waiting
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import MORTAL, Running
from tests.support.apiserver import CONFIG_MAPS, GROUP, SECRETS, SYSTEM, Refused
from tests.support.topologies import topology
from vkpsim.cml.server import CmlSimulator
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

STEPS: Final = int(os.environ.get("HOSTILE_STEPS") or 40)
WORKERS_MAX, LABLETS_MAX = 2, 6
LEARNERS: Final = ("mallory", "eve", "frank", None, "")
PORT: Final = topology({"r1": "iosv"}, {"r1": ["serial:4000"]})
PROVIDER: Final = f"system:serviceaccount:{SYSTEM}:vkprovider"
"""The policies spare it alone; so edits are made as where they are not installed."""


class Chaos:
    """Edits and failures at random.

    Attributes:
        done: What was done, and how often.
    """

    def __init__(self, world: World, simulator: CmlSimulator, lds: LdsSimulator, dice: random.Random) -> None:
        self.world, self.simulator, self.lds, self.dice = world, simulator, lds, dice
        self.urls = (simulator.url, simulator.url.replace("127.0.0.1", "localhost"))
        self.done: Counter[str] = Counter()
        self.lablets: list[Lablet] = []
        self.workers: list[str] = []
        self.replicas: list[Running] = []
        self.definition = ""

    async def begin(self) -> None:
        """Start two replicas, and connect the controller twice while it is empty."""
        for _ in range(2):
            await self._start()
        self.definition = await self.world.define(PORT)
        await self.connect()
        await self.connect()
        for _ in range(2):
            await self.lend()

    async def _start(self) -> None:
        self.replicas.append(await self.world.replica(MORTAL, LDS_API_URL=self.lds.url, LDS_API_TOKEN="t"))

    async def step(self) -> None:
        """Do one thing."""
        acts = {
            self.lend: 5, self.end: 3, self.rename: 8, self.connect: 2, self.disconnect: 0.7, self.redirect: 2,
            self.log_in: 1, self.lose: 0.3, self.kill: 0.3,
        }  # fmt: skip
        [act] = self.dice.choices(list(acts), list(acts.values()))
        with suppress(Refused):  # it is gone, or has changed
            await act()
            self.done[act.__name__] += 1

    async def connect(self) -> None:
        """Make one more CMLWorker of the controller."""
        if len(self.workers) < WORKERS_MAX:
            url = self.dice.choice(self.urls) if self.workers else self.urls[0]
            name = await self.world.worker(url, ready=False)
            hosts = {"vkprovider.io/host": ",".join(self.urls)}
            await self.world.admin.patch(f"{SECRETS}/{name}", {"metadata": {"annotations": hosts}})
            self.workers.append(name)

    async def disconnect(self) -> None:
        """Delete a CMLWorker; it goes with its last lablet."""
        if len(self.workers) == WORKERS_MAX:
            name = self.dice.choice(self.workers)
            await self.world.admin.delete(f"{GROUP}/cmlworkers/{name}")
            for lablet in [lablet for lablet in self.lablets if lablet.worker == name]:
                await lablet.delete()
            self.workers.remove(name)

    async def redirect(self) -> None:
        """Change the url, or something else, of a CMLWorker."""
        name = self.dice.choice(self.workers)
        address = f"198.51.100.{self.dice.randint(100, 250)}"
        spec = self.dice.choice([{"url": self.dice.choice(self.urls)}, {"stats": "Off"}, {"address": address}])
        note = {"annotations": {"edited": str(self.dice.random())}}
        await self.world.admin.patch(f"{GROUP}/cmlworkers/{name}", {"spec": spec, "metadata": note})

    async def lend(self) -> None:
        """Make a lablet on one of the CMLWorkers, for a learner or for none."""
        if len(self.lablets) < LABLETS_MAX and self.workers:
            name = self.dice.choice(LEARNERS)
            notes = {"vkprovider.io/username": name} if name else {}
            worker = self.dice.choice(self.workers)
            self.lablets.append(await self.world.pod(self.definition, worker, annotations=notes))

    async def end(self) -> None:
        """Delete a lablet, gracefully or at once."""
        if self.lablets:
            lablet = self.lablets.pop(self.dice.randrange(len(self.lablets)))
            await lablet.delete(grace_s=self.dice.choice([None, None, 0]))

    async def rename(self) -> None:
        """Write whose lablet it is, or what is reported of it."""
        if not self.lablets:
            return
        keys = ["username", "username", "username", "learner", "lds-session-id", "lab-id", "state"]
        notes = {f"vkprovider.io/{self.dice.choice(keys)}": self.dice.choice(LEARNERS)}
        body = {"metadata": {"annotations": notes}}
        path = self.dice.choice(self.lablets).path
        await self.world.admin.request("PATCH", path, body, "application/merge-patch+json", user=PROVIDER)

    async def log_in(self) -> None:
        """Log every learner in."""
        for session in list(self.lds.world.sessions.values()):
            with suppress(Exception):
                self.lds.world.log_in(self.lds.now(), session)

    async def kill(self) -> None:
        """Kill a replica, and start another one."""
        await self.replicas.pop(0).crash()
        await self._start()

    async def lose(self) -> None:
        """Lose the claims of a CMLWorker while no replica runs; its lablets are renamed meanwhile."""
        for replica in self.replicas:
            await replica.crash()
        self.replicas.clear()
        await self.world.admin.delete(f"{CONFIG_MAPS}/{self.dice.choice(self.workers)}-port-allocations")
        for _ in range(4):
            with suppress(Refused):
                await self.rename()
        for _ in range(2):
            await self._start()

    # --------------------------------------------------------------------------------------------- what must hold

    def check(self) -> None:
        """No port of two labs that run, none in two live sessions, and one learner to a lablet."""
        ports: dict[str, str] = {}
        for lab in self.simulator.simulation.world.labs.values():
            for node in lab.nodes.values():
                if node.state.value in {"DEFINED_ON_CORE", "STOPPED"}:
                    continue
                for tag in node.tags:
                    other = ports.setdefault(tag, lab.title)
                    assert other == lab.title, f"{tag} is open for {lab.title} and for {other}"
        learners: dict[str, set[str]] = {}
        places: dict[tuple[str, int | None], str] = {}
        for session in self.lds.world.sessions.values():
            learners.setdefault((session.client_key or "").partition(".")[0], set()).add(session.username)
            for device in session.devices if not session.archived else ():
                other = places.setdefault((device.host, device.port), session.id)
                assert other == session.id, f"port {device.port} is shown to two learners"
        assert all(len(names) == 1 for names in learners.values()), learners

    async def settled(self) -> bool:
        """Each lablet that goes on is Ready as its learner's, or says why not."""
        rows: dict[str, dict[str, Any]] = {}
        for name in self.workers:
            rows |= rows_of(await self.world.admin.get(f"{CONFIG_MAPS}/{name}-port-allocations"))
        for lablet in self.lablets:
            pod = await self.world.admin.get(lablet.path)
            if pod is None or pod["metadata"].get("deletionTimestamp"):
                continue
            if not is_ready(pod):
                if not waiting(pod) and not any(
                    same in str(pod["status"]) for same in ("SameController", "SameAddress")
                ):
                    return False
                continue
            learner = rows.get(lablet.uid, {}).get("learner", "")
            if pod["metadata"]["annotations"].get("vkprovider.io/username", "").strip() != learner:
                return False
        return True


@pytest.mark.timeout(1500)
async def test_no_learner_sees_anothers_session_lab_or_port(world: World) -> None:
    seed = int(os.environ.get("HOSTILE_SEED") or random.SystemRandom().randrange(1, 10**6))
    print(f"HOSTILE_SEED={seed} HOSTILE_STEPS={STEPS} plays the same steps")  # noqa: T201 (to repeat it)
    lds = await world.stack.enter_async_context(LdsSimulator(LdsSettings(token="t")))
    chaos = Chaos(world, await world.simulator(boot_seconds=(0.0, 0.3)), lds, random.Random(seed))
    await chaos.begin()
    refused = steps = 0
    while steps < STEPS or (not lds.world.sessions and steps < 4 * STEPS):  # now and then no learner gets a lab so soon
        steps += 1
        await chaos.step()
        await asyncio.sleep(chaos.dice.choice([0.0, 0.05, 0.3, 0.6]))
        chaos.check()
    await eventually(chaos.settled, "each lablet is its learner's, or says why not")
    chaos.check()
    for name in chaos.workers:
        found = await world.cmlworker(name)
        refused += condition(found, "Ready").get("reason") == "SameController"
    sessions = len(lds.world.sessions)
    assert sessions, "a run without sessions shows nothing"
    print(f"{dict(chaos.done)}: {sessions} sessions, {refused} CMLWorkers SameController at the end")  # noqa: T201 (figures)
