"""The process of a relay: follow the mux, and keep one HAProxy as the mux wants it.

    change of the Service or a slice ─┐
    HAProxy has started again ────────┼─▶ fill ──a port ended or moved──▶ end connections, until two looks find none
    every 30 s ───────────────────────┘

Nothing is told before Service and slices are read completely, and what cannot be read any more stays as it was.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Final

import structlog

from vkprovider.mux.relay.wanted import (
    SHOW_CONNECTIONS,
    SHOW_GATE,
    SHOW_PORTS,
    SHOW_SOURCES,
    Backend,
    Goal,
    MuxService,
    changes,
    connections,
    ended,
    is_of_connection,
    is_open,
    open_gate,
    outside_of,
    takes_away,
    wanted,
)
from vkprovider.mux.settings import RelaySettings
from vkprovider.platform.concurrency import stop_on_signals
from vkprovider.platform.errors import OutsideError, Unavailable
from vkprovider.platform.kube.client import KubeClient, user_agent
from vkprovider.platform.kube.informer import ALERT, Informer
from vkprovider.platform.objects import EndpointSlice
from vkprovider.platform.runtime.loops import running
from vkprovider.platform.settings import KubeSettings

_log: Final = structlog.get_logger(__name__)

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
        return is_open(await self._ask(SHOW_GATE))

    async def fill(self, wanted: Goal) -> list[str]:
        """Make it do what is wanted, then let it accept connections; return the commands that it took."""
        found = await self._ask(SHOW_PORTS), await self._ask(SHOW_SOURCES)
        commands = changes(*found, wanted) + open_gate(await self._ask(SHOW_GATE))
        for line in _lines(commands):
            await self._ask(line)
        return commands

    async def end(self, allowed: dict[int, frozenset[Backend]]) -> int:
        """End the connections that lead to no endpoint of their port; return how many there were."""
        async with self._asked(SHOW_CONNECTIONS) as answer:
            told = [line async for raw in answer if is_of_connection(line := raw.decode())]
        commands = ended(connections(told), allowed)
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


_LOOK_S: Final = 0.2
"""Seconds between two looks whether HAProxy has started again: until then it accepts nothing."""
_WHOLE_S: Final = 30.0
"""Seconds after which HAProxy is compared with what is wanted though nothing has changed."""
_TOGETHER_S: Final = 0.02
"""Seconds in which changes are gathered."""
_AGAIN_S: Final = 0.4
_CLEAN: Final = 2
"""Seconds between two looks at the connections, and how many in a row must find nothing to end: one that was accepted
as its port ended is seen only a moment later, and HAProxy may need longer to end one."""


class Relay:
    """Keeps one HAProxy as one mux wants it."""

    def __init__(self, kube: KubeClient, settings: RelaySettings) -> None:
        self._settings: Final = settings
        self._haproxy: Final = Haproxy(settings.socket)
        self._service: Final = Informer(
            kube,
            f"/api/v1/namespaces/{settings.namespace}/services",
            MuxService,
            name="mux",
            field_selector=f"metadata.name={settings.name}",
            patience=ALERT,
        )
        self._slices: Final = Informer(
            kube,
            f"/apis/discovery.k8s.io/v1/namespaces/{settings.namespace}/endpointslices",
            EndpointSlice,
            name="endpointslices",
            label_selector=f"kubernetes.io/service-name={settings.name}",
            patience=ALERT,
        )
        self._changed: Final = asyncio.Event()
        self._ended: Final = asyncio.Event()
        self._service.add_handler(lambda *_: self._changed.set())
        self._slices.add_handler(lambda *_: self._changed.set())

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set."""
        loops = {
            "mux": self._service.run(),
            "endpointslices": self._slices.run(),
            "maps": self._keep_filled(),
            "connections": self._end_connections(),
        }
        async with running(loops):
            await stop.wait()

    async def _synced(self) -> None:
        await self._service.synced.wait()
        await self._slices.synced.wait()

    def _wanted(self) -> Goal:
        return wanted(self._service.items.get(self._settings.mux), self._slices.items.values(), self._settings.moved)

    async def _keep_filled(self) -> None:
        loop = asyncio.get_running_loop()
        await self._synced()
        due_s, answers = loop.time(), True
        while True:
            changed = self._changed.is_set()
            self._changed.clear()
            try:
                if changed or loop.time() >= due_s or not await self._haproxy.is_filled():
                    await self._fill()
                    due_s = loop.time() + _WHOLE_S
                answers = True
            except OutsideError as error:
                due_s = loop.time()  # a change that did not arrive is not forgotten
                if answers:
                    _log.warning("HAProxy cannot be filled; tries again until it can", error=error.message)
                answers = False
            await _woken(self._changed, _LOOK_S)
            await asyncio.sleep(_TOGETHER_S)

    async def _fill(self) -> None:
        goal = self._wanted()
        commands = await self._haproxy.fill(goal)
        if takes_away(commands):
            self._ended.set()
        if commands:
            _log.info("HAProxy filled", ports=len(goal.targets), sources=len(goal.sources), changes=len(commands))
        if goal.unread:
            _log.warning("addresses or networks of the mux cannot be read", unread=goal.unread[:10])
        if silent := outside_of(*self._settings.port_range, goal.targets):
            _log.warning(
                "ports of the mux lie outside of those that HAProxy listens on", ports=silent[:10], count=len(silent)
            )

    async def _end_connections(self) -> None:
        await self._synced()
        while True:
            clean = 0
            while clean < _CLEAN:
                try:
                    count = await self._haproxy.end(self._wanted().allowed)
                except OutsideError:
                    break  # said where it is filled; without HAProxy there is none
                if count:
                    _log.info("connections ended whose port leads elsewhere or nowhere", connections=count)
                clean = 0 if count else clean + 1
                await asyncio.sleep(_AGAIN_S)
            await _woken(self._ended, _WHOLE_S)
            self._ended.clear()


async def main(kube_settings: KubeSettings, settings: RelaySettings) -> None:
    """Run a relay until SIGTERM or SIGINT.

    Raises:
        InputError: There are no credentials for the API server, or they cannot be read.
    """
    stop = stop_on_signals()
    kube = await KubeClient.connect(kube_settings, user_agent=user_agent("relay"))
    try:
        _log.info("started", mux=settings.mux, server=kube.server, socket=settings.socket)
        await Relay(kube, settings).run(stop)
    finally:
        await kube.close()


async def _woken(event: asyncio.Event, within_s: float) -> None:
    """Wait until an event is set, or for so many seconds."""
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        pass
