"""A TCP proxy of the test's own: it holds up what passes, for every process or for one, or fails as networks do.

With the two TLS settings it ends TLS and begins it anew, so that it sees which connections carry a watch. Held bytes
are not lost: they arrive when the proxy is healed, late, as they do when a network comes back; perhaps from a process
that has long given up.
"""

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.support.connectproxy import run_until_one_ends

T = TypeVar("T")


class _Pair:
    """One connection through the proxy.

    Attributes:
        port: The client's.
        watches: Whether the last request on it was a watch.
    """

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.ends = (client, server)
        self.port: int = client.get_extra_info("peername")[1]
        self.watches = False
        self._of: dict[int, bool] = {}

    def belongs(self, pid: int) -> bool:
        """Return whether the client is this process."""
        if pid not in self._of:
            self._of[pid] = _belongs(self.port, pid)
        return self._of[pid]


class Proxy:
    """Forwards 127.0.0.1:`port` to a server.

    Attributes:
        held_bytes: What has been held up since the last `cut` or `stall_watches`, of all connections.
        held_pairs: On how many connections.
    """

    def __init__(
        self, host: str, port: int, *, listen: ssl.SSLContext | None = None, dial: ssl.SSLContext | None = None
    ) -> None:
        self._target = (host, port)
        self._listen, self._dial = listen, dial
        self._held: Callable[[_Pair, bool], bool] = lambda _pair, _upwards: False
        self._free: asyncio.Condition
        self._server: asyncio.Server
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pairs: set[_Pair] = set()
        self._pairs_held: set[_Pair] = set()
        self._backlog: socket.socket | None = None
        self._resets = False
        self.held_bytes = 0
        self.port = 0
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._call(self._open())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def held_pairs(self) -> int:
        """On how many connections bytes were held up."""
        return len(self._pairs_held)

    def cut(self, pid: int | None = None) -> None:
        """Let nothing through any more, in neither direction, on no connection (of a process)."""
        self._hold(lambda pair, _: pid is None or pair.belongs(pid))

    def deafen(self) -> None:
        """Let what the clients send through, and nothing that they are answered."""
        self._hold(lambda _, upwards: not upwards)

    def refuse(self) -> None:
        """Reset every connection, and refuse new ones: the server's process has ended."""
        self._call(self._deny())

    def reset(self) -> None:
        """Reset every connection, and each new one as soon as it is made: a firewall has forgotten them."""

        async def reset() -> None:
            self._resets = True
            self._abort()

        self._call(reset())

    def half_open(self) -> None:
        """Let nothing through, and accept new connections of which nothing follows: the server hangs."""
        self.cut()

        async def half_open() -> None:
            await self._deny(abort=False)
            self._backlog = socket.create_server(("127.0.0.1", self.port), backlog=64)

        self._call(half_open())

    def stall_watches(self) -> None:
        """Let nothing of a watch through to the client any more; all else goes on."""
        self._hold(lambda pair, upwards: pair.watches and not upwards)

    def heal(self) -> None:
        """Let everything through again."""

        async def heal() -> None:
            self._held, self._resets = lambda _pair, _upwards: False, False
            if self._backlog is not None:
                self._backlog.close()
                self._backlog = None
            if not self._server.is_serving():
                await self._listen_at(self.port)
            async with self._free:
                self._free.notify_all()

        self._call(heal())

    async def _deny(self, *, abort: bool = True) -> None:
        self._server.close()
        if abort:
            self._abort()

    def _abort(self) -> None:
        """Reset every connection."""
        for pair in self._pairs:
            for end in pair.ends:
                _reset(end)

    def _hold(self, held: Callable[[_Pair, bool], bool]) -> None:
        async def hold() -> None:
            self._held, self.held_bytes = held, 0
            self._pairs_held.clear()

        self._call(hold())

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _open(self) -> None:
        self._free = asyncio.Condition()
        await self._listen_at(0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _listen_at(self, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=self._listen)

    async def _close(self) -> None:
        if self._backlog is not None:
            self._backlog.close()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if self._resets:
                return _reset(writer)
            host, port = self._target
            name = None if self._dial is None else host
            try:
                above, to_server = await asyncio.open_connection(host, port, ssl=self._dial, server_hostname=name)
            except OSError:  # what the client would have met itself, a moment later
                return _reset(writer)
            pair = _Pair(writer, to_server)
            self._pairs.add(pair)
            try:
                await run_until_one_ends(
                    self._pump(pair, reader, to_server, upwards=True), self._pump(pair, above, writer, upwards=False)
                )
            finally:
                self._pairs.discard(pair)
                for end in pair.ends:
                    end.transport.abort()
        return None

    async def _pump(
        self,
        pair: _Pair,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        *,
        upwards: bool,
    ) -> None:
        while data := await source.read(1 << 16):
            if upwards and self._dial is not None and data[:4] in {b"GET ", b"PUT ", b"POST", b"PATC", b"DELE"}:
                pair.watches = b"watch=1" in data.partition(b"\r\n")[0]
            if self._held(pair, upwards):
                self.held_bytes += len(data)
                self._pairs_held.add(pair)
                async with self._free:
                    await self._free.wait_for(lambda: not self._held(pair, upwards))
            sink.write(data)
            await sink.drain()
        async with self._free:  # an end is no news either, as long as nothing gets through
            await self._free.wait_for(lambda: not self._held(pair, upwards))


def _reset(end: asyncio.StreamWriter) -> None:
    """Close a connection by RST."""
    made: socket.socket | None = end.get_extra_info("socket")
    if made is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.transport.abort()


def _belongs(port: int, pid: int) -> bool:
    """Return whether the client's end of a connection is a socket of a process."""
    inodes = {
        fields[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if (fields := line.split())[1].endswith(f":{port:04X}")
    }
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                target = str(entry.readlink())
                if target.startswith("socket:[") and target[8:-1] in inodes:
                    return True
    return False
