"""A link on the way to a portal on which each byte takes its time, both ways."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

END = b""


class SlowLink:
    """Forwards 127.0.0.1:`port` to another port of this machine.

    Attributes:
        port: Where it listens.
        delay_s: How long each byte takes that comes from now on.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: list[asyncio.StreamWriter] = []
        self.port = 0
        self.delay_s = 0.0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["SlowLink"]:
        """Listen while the block runs."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for end in self._ends:
                end.close()
            await asyncio.gather(*(end.wait_closed() for end in self._ends), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            self._ends.append(writer)
            above, to_server = await asyncio.open_connection("127.0.0.1", self._target)
            self._ends.append(to_server)
            for source, sink in ((reader, to_server), (above, writer)):
                under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
                for each in (self._take(source, under_way), self._deliver(under_way, sink)):
                    task = asyncio.create_task(each)
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def _take(self, source: asyncio.StreamReader, under_way: asyncio.Queue[tuple[float, bytes]]) -> None:
        data = b"first"
        while data != END:
            try:
                data = await source.read(1 << 16)
            except OSError:
                data = END
            under_way.put_nowait((asyncio.get_running_loop().time() + self.delay_s, data))

    async def _deliver(self, under_way: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                due, data = await under_way.get()
                await asyncio.sleep(due - asyncio.get_running_loop().time())
                if data == END:
                    sink.close()
                    return
                sink.write(data)
                await sink.drain()
