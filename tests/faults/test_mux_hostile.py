"""Two replicas serve muxes whose channels come and go, while the API server fails them and they are killed."""

import asyncio
import random
from typing import Final

import msgspec
import pytest

from tests.component.mux.harness import PREFIX, MuxWorld, Running
from tests.component.mux.lending import expose, exposed
from tests.support.apiserver import until
from tests.support.muxhistory import MuxHistory
from vkprovider.mux.pure.facts import Owner

MUXES: Final = ("mux-a", "mux-b")
SEATS: Final = 3
LASTS_S: Final = 40.0
CALM_S: Final = 30.0
"""The time until all is as it should be after the last fault: a watch may be silent for so long."""
ASKED: Final = ("", "configmaps", "endpointslices", "services", "leases", "^PATCH", "^POST", "^DELETE")


class Chaos:
    """What happens to muxes, and what should forward at last."""

    def __init__(self, world: MuxWorld, seed: int) -> None:
        self._world = world
        self._dice = random.Random(seed)
        self._replicas: list[Running] = []
        self._channels: dict[tuple[str, str], str] = {}
        self._slices: dict[tuple[str, str], str] = {}
        self._lablets: dict[tuple[str, str], tuple[str, str]] = {}

    async def begin(self) -> None:
        for name in MUXES:
            await self._world.mux(name)
            await self._world.address("203.0.113.10", name)
        for _ in range(2):
            self._replicas.append(await self._world.shipped())

    async def happen(self) -> None:
        """Change something, and let something fail."""
        await self._dice.choice((self._channel, self._backend, self._lablet, self._lablet))()
        await self._dice.choice((self._fails, self._fails, self._fails, self._watches, self._dies))()

    async def end(self) -> None:
        for each in self._replicas:
            each.api.heal()

    async def _channel(self) -> None:
        key = (self._dice.choice(MUXES), self._dice.choice("xyz"))
        name = f"{key[1]}-{key[0]}"
        if key in self._channels:
            await self._world.admin.delete(self._world.path(name))
            del self._channels[key]
            return
        if key not in self._slices:
            self._slices[key] = await self._world.slice(name, ("10.1.0.1",))
        mux = f"{PREFIX}/{key[0]}.{self._world.edge}"
        await self._world.channel(name, "http:auto", mux=mux, backends=())
        self._channels[key] = name

    async def _backend(self) -> None:
        if self._slices:
            path = self._slices[self._dice.choice(sorted(self._slices))]
            points = [{"addresses": [f"10.1.0.{self._dice.randint(1, 200)}"], "conditions": {"ready": True}}]
            await self._world.admin.patch(path, {"endpoints": points})

    async def _lablet(self) -> None:
        """End the lablet of a seat, and mostly begin that of another learner at the same port of the worker."""
        number = self._dice.randrange(SEATS)
        key = (self._dice.choice(MUXES), f"seat-{number}")
        if key in self._lablets:
            await self._world.admin.delete(self._lablets.pop(key)[1])
        if self._dice.random() < 0.8:
            learner = self._dice.choice(("ann", "bob", "cy"))
            lablet = exposed(self._world, f"{key[1]}-{key[0]}", learner, 10011 + number)
            path = await expose(self._world, msgspec.structs.replace(lablet, mux=f"{key[0]}.{self._world.edge}"))
            self._lablets[key] = (learner, path)

    async def _fails(self) -> None:
        api, count = self._dice.choice(self._replicas).api, self._dice.randint(1, 6)
        how = self._dice.choice(
            ({"status": 409}, {"status": 500}, {"status": 503}, {"status": 429}, {"drop": True}, {"lose": True})
        )
        api.fault(self._dice.choice(ASKED), count=count, delay_s=self._dice.choice((0.0, 0.0, 3.0)), **how)

    async def _watches(self) -> None:
        api = self._dice.choice(self._replicas).api
        if self._dice.random() < 0.5:
            api.end_watches()
        else:
            api.silence_watches("endpointslices" if self._dice.random() < 0.5 else "")

    async def _dies(self) -> None:
        if self._dice.random() < 0.3:
            place = self._dice.randrange(2)
            await self._replicas[place].crash()
            self._replicas[place] = await self._world.shipped()

    async def wanted(self, name: str, history: MuxHistory) -> dict[int, set[str]]:
        """Return where each outside port of a mux should lead."""
        numbers, team = history.numbers[name], self._world.team
        found = {}
        for (mux, channel), service in self._channels.items():
            if mux == name:
                each = await self._world.admin.get(self._slices[mux, channel])
                assert each is not None
                number = numbers.get((Owner(team, service), "http"), 0)
                found[number] = {f"{each['endpoints'][0]['addresses'][0]}:8080"}
        for (mux, seat), (learner, _) in self._lablets.items():
            if mux == name:
                number = numbers.get((Owner(team, f"{seat}-{mux}", learner), "pc-serial"), 0)
                found[number] = {f"198.51.100.1:{10011 + int(seat[-1])}"}
        return found


@pytest.mark.parametrize("seed", [34])
async def test_mux_numbers_stay_whatever_fails(muxes: MuxWorld, seed: int) -> None:
    chaos, history = Chaos(muxes, seed), MuxHistory(muxes, *MUXES)
    await chaos.begin()
    async with history.watched():
        loop = asyncio.get_running_loop()
        ends = loop.time() + LASTS_S
        while loop.time() < ends:
            await chaos.happen()
            await asyncio.sleep(0.5)
        await chaos.end()
        found: dict[str, object] = {}

        async def calm() -> bool:
            for name in MUXES:
                forwards = await muxes.forwards(name)
                found[name] = {port: to for (port, _), to in forwards.items() if to}
                wanted = await chaos.wanted(name, history)
                if found[name] != wanted:
                    found[f"{name} should be"] = wanted
                    return False
            return True

        try:
            await until(calm, CALM_S, 0.2)
        except TimeoutError:
            raise AssertionError(f"not as it should be after {CALM_S} s: {found}") from None
