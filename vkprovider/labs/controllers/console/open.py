"""Everything that is open on the workers of this replica, and notes that somebody has typed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from tunnels.base import ByteChannel
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.labs.controllers.console.finding import MOVED, FoundDevice, FoundLablet, check
from vkprovider.labs.controllers.console.shared import Console
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.console import writers
from vkprovider.platform.errors import InputError, NotFound, Unavailable
from vkprovider.platform.runtime.context import Context


@dataclass(frozen=True, slots=True)
class Noting:
    """Notes input, at most once a minute for each lablet; what is noted is written with the Pod's status.

    Attributes:
        ctx: The replica.
        wake: Queue a lablet, by Pod UID.
    """

    ctx: Context
    wake: Callable[[str], None]

    def typed(self, place: FoundLablet) -> None:
        """Note that keys were passed on to a device of a lablet."""
        lablet, pod = place.lablet, place.lablet.pod
        claim = place.worker.claims.claims.get(lablet.uid)
        if pod is None or claim is None:
            return
        noted = writers.noted(lablet.activity, pod.metadata.annotations, claim.learner, self.ctx.now_unix)
        if noted is not lablet.activity:
            lablet.activity = noted
            self.wake(lablet.uid)


CONNECTIONS_MAX: Final = 256
"""The most connections to ports of one worker at once."""

_Key = tuple[str, str, str, int]
"""Worker, lab, node and serial line."""


class OpenConsoles:
    """The consoles and connections, by worker; a `Holder` of `Ownership`: they end when a worker is given up."""

    def __init__(self, typed: Callable[[FoundLablet], None]) -> None:
        """Create it without anything open; `typed` is called after keys were passed on to a device of a lablet."""
        self._typed = typed
        self._consoles: dict[_Key, Console] = {}
        self._connections: dict[str, set[ByteChannel]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def console(self, device: FoundDevice, line: int = 0) -> Console:
        """Return a serial line of a device; others that were not watched any more are forgotten."""
        self._consoles = {key: found for key, found in self._consoles.items() if found.is_watched}
        worker, fact = device.worker, device.fact
        key = (worker.name, device.lab_id, fact.id, line)
        found = self._consoles.get(key)
        if found is None:
            place, connect = device.place, partial(_connected, device, line)
            found = self._consoles[key] = Console(
                device.label, place.claim.pod, connect, partial(check, worker), partial(self._typed, place)
            )
        return found

    async def connect(self, worker: Worker, dial: Callable[[], Awaitable[ByteChannel]]) -> ByteChannel:
        """Open a connection that ends with the worker.

        Raises:
            InputError: `TooManySessions`.
            OutsideError: It did not come about.
        """
        open_ = self._connections.setdefault(worker.name, set())
        if len(open_) >= CONNECTIONS_MAX:
            text = f"{CONNECTIONS_MAX} connections are open to ports of worker {worker.name} already"
            raise InputError(ConsoleReason.TOO_MANY_SESSIONS, text)
        check(worker)
        channel = Tracked(await dial(), open_)
        if self._connections.get(worker.name) is not open_:  # the worker was given up meanwhile
            await channel.close()
            raise Unavailable(MOVED)
        open_.add(channel)
        return channel

    def announce(self, worker: str, lab_id: str, text: str) -> None:
        """Show a line to the people at the consoles of a lab."""
        for key, console in self._consoles.items():
            if key[:2] == (worker, lab_id):
                console.announce(text)

    def end(self) -> None:
        """End all that is open: the replica is about to end."""
        for worker in {*self._connections, *(key[0] for key in self._consoles)}:
            self.given_up(worker)

    def given_up(self, worker: str) -> None:
        """End what is open on a worker."""
        for key, console in list(self._consoles.items()):
            if key[0] == worker:
                del self._consoles[key]
                console.end(MOVED)
        for channel in self._connections.pop(worker, set()).copy():
            task = asyncio.get_running_loop().create_task(channel.close(), name=f"close a connection of {worker}")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


async def _connected(device: FoundDevice, line: int) -> ByteChannel:
    """Connect to a serial line of a device.

    Raises:
        InputError: `NoConsole`.
        OutsideError: CML did not answer.
    """
    try:
        return await device.worker.labs.consoles.open_console(device.lab_id, device.fact.id, line)
    except NotFound:
        text = f"CML has no console for {device.label} ({device.fact.definition}) at the moment"
        raise InputError(ConsoleReason.NO_CONSOLE, text) from None


class Tracked:
    """A `ByteChannel` that is in a set as long as it is open."""

    def __init__(self, channel: ByteChannel, among: set[ByteChannel]) -> None:
        self._channel = channel
        self._among = among

    async def read(self) -> bytes:
        """See `ByteChannel`."""
        return await self._channel.read()

    async def write(self, data: bytes) -> None:
        """See `ByteChannel`."""
        await self._channel.write(data)

    async def end(self) -> None:
        """See `ByteChannel`."""
        await self._channel.end()

    async def close(self) -> None:
        """See `ByteChannel`."""
        self._among.discard(self)
        await self._channel.close()
