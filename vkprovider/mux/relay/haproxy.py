"""One HAProxy, through its runtime socket."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Final

from vkprovider.mux.relay import runtime
from vkprovider.mux.relay.wanted import Backend, Goal
from vkprovider.platform.errors import Unavailable

CONFIG: Final = files("vkprovider.mux.relay").joinpath("haproxy.cfg").read_text("utf-8")
"""HAProxy's configuration; its variables are settings."""
_DEADLINE_S: Final = 5.0
_LINE_CHARS_MAX: Final = 8000
"""Characters of the commands in one line: HAProxy reads a line into a buffer of 16 KiB."""


class Haproxy:
    """One HAProxy; each question takes a connection of its own, which HAProxy closes after its answer.

    Raises from each method:
        Unavailable: It does not answer.
    """

    def __init__(self, socket: str) -> None:
        self._socket: Final = socket

    async def is_filled(self) -> bool:
        """Return whether it accepts connections: it does not after its start."""
        return runtime.is_open(await self._ask(runtime.SHOW_GATE))

    async def fill(self, wanted: Goal) -> list[str]:
        """Make it do what is wanted, then let it accept connections; return the commands that it took."""
        found = await self._ask(runtime.SHOW_PORTS), await self._ask(runtime.SHOW_SOURCES)
        commands = runtime.changes(*found, wanted) + runtime.open_gate(await self._ask(runtime.SHOW_GATE))
        for line in _lines(commands):
            await self._ask(line)
        return commands

    async def end(self, allowed: dict[int, frozenset[Backend]]) -> int:
        """End the connections that lead to no endpoint of their port; return how many there were."""
        async with self._asked(runtime.SHOW_CONNECTIONS) as answer:
            told = [line async for raw in answer if runtime.is_of_connection(line := raw.decode())]
        commands = runtime.ended(runtime.connections(told), allowed)
        for line in _lines(commands):
            await self._ask(line)
        return len(commands)

    async def _ask(self, line: str) -> str:
        async with self._asked(line) as answer:
            return (await answer.read()).decode()

    @asynccontextmanager
    async def _asked(self, line: str) -> AsyncIterator[asyncio.StreamReader]:
        try:
            async with asyncio.timeout(_DEADLINE_S):
                reader, writer = await asyncio.open_unix_connection(self._socket)
                try:
                    writer.write(line.encode() + b"\n")
                    yield reader
                finally:
                    writer.close()
        except OSError as error:  # also TimeoutError
            raise Unavailable(f"HAProxy at {self._socket}: {str(error) or type(error).__name__}") from error


def _lines(commands: Sequence[str]) -> Iterator[str]:
    """Yield lines of several commands each, in their order."""
    line = ""
    for command in commands:
        if len(line) + len(command) > _LINE_CHARS_MAX:
            yield line
            line = ""
        line += f"{command};"
    if line:
        yield line
