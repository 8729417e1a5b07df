"""The numbers of a mux over time: none may have two owners, and no owner two of them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Final

from tests.component.mux.harness import MuxWorld
from vkprovider.mux.pure.decide import PLACEHOLDER
from vkprovider.mux.pure.facts import Owner

_LOOK_S: Final = 0.2
Port = tuple[Owner, str]
"""A port of a channel."""


class MuxHistory:
    """What was ever stored and shown for some muxes; times are shorter than the rest of a number.

    Attributes:
        numbers: The number of each port, by the name of the mux.
        looks: How often it was looked.
    """

    def __init__(self, world: MuxWorld, *names: str) -> None:
        self._world = world
        self.numbers: dict[str, dict[Port, int]] = {name: {} for name in names}
        self.looks = 0

    async def look(self) -> None:
        """Look once: what is new must not contradict what was."""
        for name, numbers in self.numbers.items():
            service = await self._world.admin.get(self._world.path(name))
            store = await self._world.store(f"{name}-port-allocations")  # later: a port is claimed before it is shown
            document = json.loads(store["data"]["allocations.json"]) if store else {}
            rows = [(row, row["port"]) for row in document.get("portClaims", [])]
            rows += [(row, row["port"]) for row in document.get("resting", [])]
            for row, number in rows:
                port = (Owner(row["namespace"], row["service"], row.get("learner")), row["portName"])
                assert numbers.setdefault(port, number) == number, f"{port} has {number} and {numbers[port]}"
            owners = {number: port for port, number in numbers.items()}
            assert len(owners) == len(numbers), f"a number was given twice: {numbers}"
            for shown in service["spec"]["ports"] if service else ():
                if shown["port"] != PLACEHOLDER.port:
                    owner, port_name = owners[shown["port"]]
                    assert owner.mux_port_name(port_name) == shown["name"], f"{shown} belongs to {owner}"
        self.looks += 1

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Look again and again until the end of the block."""
        done = asyncio.Event()

        async def look() -> None:
            while not done.is_set():
                await self.look()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(done.wait(), _LOOK_S)

        looking = asyncio.create_task(look())
        try:
            yield
        finally:
            done.set()
            await looking
        await self.look()
        assert self.looks > 1
