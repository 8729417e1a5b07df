"""HTTP/1.1 as an API server speaks it: one connection, one request on it at a time.

A general client spends 100 µs of CPU on a request, mostly for what an API server never does: cookies, redirects,
compression, multipart bodies. A thousand pods that come and go are thousands of small requests and as many watch
events, so that was a third of all CPU. Here a request is one write, and an answer is cut by its length.
"""

import asyncio
from typing import Final, Literal, cast

_HEAD_BYTES_MAX: Final = 1 << 16
_BUFFERED_BYTES_MAX: Final = 1 << 22
_BODILESS: Final = {204, 304}
_INTERIM: Final = {100, 102, 103}
_EVERYTHING: Final = -1


class ProtocolError(Exception):
    """The other side does not speak HTTP/1.1."""


class SilentError(OSError):
    """Nothing came for as long as something should have."""


class Connection(asyncio.BufferedProtocol):
    """One connection, with one request on it at a time.

    What arrives is read into a buffer that connections share: a read of its own takes uvloop 256 KiB, most of it for
    a few hundred bytes.

    Attributes:
        status: Of the answer; 0 before its head has come.
        headers: Of the answer, names in lower case.
        complete: Whether all of the answer has come.
        heard: Whether any byte of it has come.
        closed: Whether the connection is lost.
        uses: Requests sent on it.
        idle_since_s: For the pool, as the next one.
        generation: Which of our credentials it was made with.
    """

    def __init__(self, buffer: memoryview) -> None:
        """Read into `buffer`; it holds nothing between two calls of the loop."""
        self._buffer = buffer
        self.closed = False
        self.uses = 0
        self.idle_since_s = 0.0
        self.generation = 0
        self._transport: asyncio.Transport | None = None
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._awaited: Literal["head", "some", "all"] = "all"
        self._paused = False
        self._silence_s_max = 0.0
        self._heard_at_s = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._begin()

    def _begin(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.complete = self.heard = False
        self._rest = b""  # a head, or the line before a chunk, that has not come whole
        self._parts: list[bytes] = []
        self._buffered_bytes = 0
        self._chunked = self._trailer = False
        self._left_bytes = 0  # of the body, or of the chunk; _EVERYTHING: until the connection ends
        self._lasting = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    @property
    def usable(self) -> bool:
        """Whether another request may follow."""
        return self.complete and self._lasting and not self.closed and not self._rest

    def send(self, request: bytes) -> None:
        """Send a request; its answer replaces the former one."""
        self._begin()
        self.uses += 1
        if self._transport is not None:
            self._transport.write(request)

    async def head(self) -> int:
        """Wait for the answer's head; give its status.

        Raises:
            OSError: The connection is lost.
            ProtocolError: What came is no answer.
        """
        if not self.status:
            await self._wait("head")
        return self.status

    async def body(self) -> bytes:
        """Wait for the whole answer; give its body.

        Raises:
            OSError: The connection is lost.
            ProtocolError: What came is no answer.
        """
        if not self.complete:
            await self._wait("all")
        return self._take()

    async def piece(self) -> bytes:
        """Wait for more of the body; give what there is, nothing at its end.

        Raises:
            OSError: The connection is lost.
            ProtocolError: What came is no answer.
        """
        if not self._parts and not self.complete:
            await self._wait("some")
        return self._take()

    def limit_silence(self, silence_s_max: float) -> None:
        """From now on have `piece` raise `SilentError` when nothing has come for so long; for this answer only.

        One timer for the whole answer, for a stream brings thousands of pieces.
        """
        self._silence_s_max = silence_s_max
        self._heard_at_s = asyncio.get_running_loop().time()
        self._listen(silence_s_max)

    def _listen(self, for_s: float) -> None:
        self._alarm = asyncio.get_running_loop().call_later(for_s, self._judge_silence)

    def _judge_silence(self) -> None:
        if self.complete or self.closed:
            return
        left_s = self._heard_at_s + self._silence_s_max - asyncio.get_running_loop().time()
        if self._paused:  # it is we who do not listen
            left_s = self._silence_s_max
        if left_s > 0:
            self._listen(left_s)
            return
        self._error = SilentError(f"nothing heard for {self._silence_s_max:g} s")
        self.close()
        self._wake()

    def close(self) -> None:
        """Close without ceremony; what has not come will not come."""
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self, what: Literal["head", "some", "all"]) -> None:
        if self._error is not None:
            raise self._error
        self._awaited = what
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if self._error is not None:
            self._waiter.set_exception(self._error)
        elif self.complete or (self._awaited == "head" and self.status) or (self._awaited == "some" and self._parts):
            self._waiter.set_result(None)

    def _take(self) -> bytes:
        parts, self._parts, self._buffered_bytes = self._parts, [], 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none, but behave like one

    def connection_lost(self, exc: Exception | None) -> None:
        """End; for an answer that has no length this is how it ends well."""
        self.closed = True
        if self.status and not self._chunked and self._left_bytes == _EVERYTHING and exc is None:
            self.complete = True
        else:
            self._error = self._error or exc or ConnectionResetError("the server closed the connection")
        self._wake()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (asyncio's signature)
        """Say where to read to."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take in a piece of the answer."""
        if self._alarm is not None:
            self._heard_at_s = asyncio.get_running_loop().time()
        self._take_in(bytes(self._buffer[:nbytes]))

    def _take_in(self, data: bytes) -> None:
        self.heard = True
        if self._rest:
            data, self._rest = self._rest + data, b""
        try:
            while data and not self.status:
                data = self._take_head(data)
            if self.complete:
                self._rest = data  # more than was asked for: nothing can follow on this connection
            elif self._chunked:
                self._take_chunks(data)
            elif data:
                self._take_plain(data)
        except ValueError as error:
            self._error = ProtocolError(f"no HTTP/1.1 answer: {error}")
            self.close()
        if self._buffered_bytes > _BUFFERED_BYTES_MAX and self._awaited == "some" and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    # How an answer is cut. ValueError means that it is none.

    def _take_head(self, data: bytes) -> bytes:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > _HEAD_BYTES_MAX:
                raise ValueError("its head has no end")
            self._rest = data
            return b""
        first, *lines = data[:end].decode("latin-1").split("\r\n")
        if not first.startswith("HTTP/1."):
            raise ValueError(f"it begins with {first[:16]!r}")
        status = int(first[9:12])
        if status in _INTERIM:
            return data[end + 4 :]
        self.status = status
        headers = self.headers
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        self._lasting = first.startswith("HTTP/1.1") and "close" not in headers.get("connection", "").lower()
        self._chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        if not self._chunked:
            length = headers.get("content-length")
            self._left_bytes = 0 if status in _BODILESS else _EVERYTHING if length is None else int(length)
            self.complete = self._left_bytes == 0
        return data[end + 4 :]

    def _take_plain(self, data: bytes) -> None:
        left_bytes = self._left_bytes
        if left_bytes == _EVERYTHING:
            self._keep(data)
            return
        self._keep(data[:left_bytes])
        self._left_bytes = max(0, left_bytes - len(data))
        self.complete = self._left_bytes == 0
        self._rest = data[left_bytes:]

    def _take_chunks(self, data: bytes) -> None:
        position, size = 0, len(data)
        while position < size:
            if self._left_bytes:
                piece = data[position : position + self._left_bytes]
                self._keep(piece)
                self._left_bytes -= len(piece)
                position += len(piece)
                continue
            end = data.find(b"\r\n", position)
            if end < 0:
                if size - position > _HEAD_BYTES_MAX:
                    raise ValueError("a chunk has no size")
                self._rest = data[position:]
                return
            line, position = data[position:end], end + 2
            if self._trailer:
                if not line:
                    self.complete = True
                    self._rest = data[position:]
                    return
            elif line:  # an empty one is the end of the chunk before
                self._left_bytes = int(line.partition(b";")[0], 16)
                self._trailer = self._left_bytes == 0
                if self._left_bytes < 0:
                    raise ValueError("a chunk of negative size")

    def _keep(self, piece: bytes) -> None:
        self._parts.append(piece)
        self._buffered_bytes += len(piece)
